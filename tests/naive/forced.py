"""How near a simulation is to a real slurmctld, whose record is there: forced, and by whole schedules.

Two schedules of one workload drift apart for the smallest of reasons, Slurm's own second one as well: who starts first
decides who fits next. So the measure to trust is the forced one. At each instant at which something happened the
simulation is put into the real state, the jobs that run and their nodes, the queue and its priorities, and says what
it would start now. A start that it wants agrees; how long it has wanted it without a break is the lag, which the
intervals of Slurm's passes explain, or do not.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import heapq
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from policyfactory.site.model import Outage, Site
from schedulers.record import Job, Record, Run, expand


@dataclasses.dataclass(frozen=True, slots=True)
class Runs:
    """A job that runs: since when (Unix seconds of the scheduler's clock), and on which nodes (numbers from 0)."""

    job: Job
    start: int
    nodes: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Waits:
    """A job that waits, its priority, when it was submitted and since when it may start (Unix seconds)."""

    job: Job
    priority: int
    submit: int
    eligible: int


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A real cluster at an instant (Unix seconds); ``away`` are nodes that are down or drained.

    On ``completing`` nodes jobs have ended that are still being cleaned up: their cores are free, their nodes not.
    ``by`` is the pass that is made, main or backfill; empty: one after the other.
    """

    now: int
    running: tuple[Runs, ...]
    waiting: tuple[Waits, ...]
    away: frozenset[int]
    completing: frozenset[int] = frozenset()
    by: str = ""


# What a simulation would start now: ids of jobs, and on which nodes (numbers from 0).
Wanted = Callable[[Snapshot], Mapping[int, Collection[int]]]


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """A real start: of which job, when (seconds from the origin), by which pass, and since when it was wanted.

    It is ``there`` where the simulation wanted it and put it on the same nodes.
    """

    job: int
    at: float
    by: str
    since: float
    there: bool

    @property
    def wanted(self) -> bool:
        """Whether the simulation wanted it."""
        return not math.isnan(self.since)

    @property
    def lag(self) -> float:
        """Seconds that it was wanted."""
        return self.at - self.since


@dataclasses.dataclass(frozen=True, slots=True)
class Forced:
    """Every start of a record, and whether it was wanted.

    Parameters
    ----------
    starts : tuple of Start
        In their order.
    in_vain : tuple of (int, float, float)
        Job, from when, until when: it was wanted that long, and then no more, without having been started.
    """

    starts: tuple[Start, ...]
    in_vain: tuple[tuple[int, float, float], ...]

    @property
    def agreement(self) -> float:
        """Share of the starts that were wanted."""
        return sum(start.wanted for start in self.starts) / len(self.starts)

    @property
    def placed_alike(self) -> float:
        """Share of the wanted starts that were wanted on the nodes on which they were."""
        wanted = [start for start in self.starts if start.wanted]
        return sum(start.there for start in wanted) / len(wanted)

    def lags(self) -> list[float]:
        """Return the lags of the wanted starts in increasing order, in seconds."""
        return sorted(start.lag for start in self.starts if start.wanted)

    def lag(self, share: float) -> float:
        """Return the lag that this share of the wanted starts does not exceed."""
        lags = self.lags()
        return lags[min(math.ceil(share * len(lags)), len(lags)) - 1] if lags else math.nan

    @property
    def mean_lag(self) -> float:
        """Mean of the lags, in seconds."""
        lags = self.lags()
        return sum(lags) / len(lags) if lags else math.nan

    def ignored(self, seconds: float) -> int:
        """Return how often a job was wanted longer than ``seconds`` and not started."""
        return sum(until - since > seconds for _, since, until in self.in_vain)


# Seconds after which a job that was put back may start again.
REQUEUED = 121
# How a run ends after which its job is in the queue again.
BACK = ("requeued", "stopped")
# What happens at one moment: ends first, then nodes, submissions, times at which a job may start; starts last.
_END, _FREE, _NODES, _SUBMIT, _LOOK, _START = range(6)
# When (milliseconds from the origin), which of these, a number, about what.
_Event = tuple[float, int, int, Any]


class _Real:
    """The real state, as the record has it."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.running: dict[int, Runs] = {}
        self.waiting: dict[int, int] = {}  # job: since when it may start, seconds from the origin
        self.away: set[int] = set()
        self.cleaned: collections.Counter[int] = collections.Counter()  # node: jobs that are being cleaned up there
        self.starts: dict[int, list[int]] = {}
        for start, nodes in sorted((run.start, run.nodes) for past in record.past for run in past.runs):
            for node in nodes:
                self.starts.setdefault(node, []).append(start)

    def events(self, looks: Sequence[float]) -> Iterator[_Event]:
        """Give what happened, in its order."""
        queue: list[_Event] = []
        for number, (job, past) in enumerate(zip(self.record.jobs, self.record.past, strict=True)):
            # On a busy machine Slurm may write of a submission after it has started the job.
            queue.append((min((past.submit, *(run.start for run in past.runs))), _SUBMIT, number, job))
            # Of a job that was put back the record has since when it might start again.
            begins = {past.eligible, self.first_eligible(job, past.submit // 1000)}
            queue += [(begin * 1000, _LOOK, number, None) for begin in begins if begin * 1000 > past.submit]
            for run in past.runs:
                queue.append((run.start, _START, number, run))
                queue.append((run.end, _END, number, run))
                queue += [(at, _FREE, number, node) for at, node in zip(run.freed, self.as_taken(run), strict=True)]
        queue += [(at, _NODES, number, what) for number, (at, what) in enumerate(self.record.events)]
        queue += [(look * 1000, _LOOK, -1, None) for look in set(looks)]
        heapq.heapify(queue)
        while queue:
            yield heapq.heappop(queue)

    def first_eligible(self, job: Job, submitted: int) -> int:
        """Return since when a job might start; of one that was put back the record has when it might start again."""
        before = int(job.dependency.partition(":")[2] or 0)
        ended = -(-self.record.past[before - 1].runs[-1].end // 1000) if before else 0
        return max(submitted, job.eligible, ended)

    def as_taken(self, run: Run) -> list[int]:
        """Return the nodes of a run that has ended: first those that others had first, so were free first."""

        def next_start(node: int) -> float:
            starts = self.starts.get(node, [])
            at = bisect.bisect_left(starts, run.end)
            return starts[at] if at < len(starts) else math.inf

        return sorted(run.nodes, key=next_start)

    def apply(self, kind: int, number: int, about: Any, at: float) -> None:
        """Let something happen."""
        job = self.record.jobs[number]
        past = self.record.past[number]
        second = int(at // 1000)
        if kind == _SUBMIT:
            self.waiting[job.id] = past.eligible if len(past.runs) == 1 else self.first_eligible(job, second)
        elif kind == _START:
            del self.waiting[job.id]
            self.running[job.id] = Runs(job, second + self.record.origin, about.nodes)
        elif kind == _END:
            del self.running[job.id]
            self.cleaned.update(about.nodes)
            if about.ended in BACK:
                # Of a job that was put back more than once Slurm tells the last time alone.
                last = about == [run for run in past.runs if run.ended in BACK][-1]
                self.waiting[job.id] = past.eligible if last else max(about.freed) // 1000 + REQUEUED
        elif kind == _FREE:
            self.cleaned[about] -= 1
        elif kind == _NODES:
            state, names = str(about).split()
            (self.away.difference_update if state == "RESUME" else self.away.update)(expand(names))

    def snapshot(self, at: float, by: str = "") -> Snapshot:
        """Return the state as slurmctld saw it at ``at`` milliseconds, in whole seconds."""
        now, origin = int(at // 1000), self.record.origin
        waiting = tuple(
            Waits(self.record.jobs[job - 1], self._priority(job, at), self._submitted(job, at), since + origin)
            for job, since in self.waiting.items()
            if since <= now
        )
        cleaned = frozenset(node for node, jobs in self.cleaned.items() if jobs)
        return Snapshot(now + origin, tuple(self.running.values()), waiting, frozenset(self.away), cleaned, by)

    def _priority(self, job: int, at: float) -> int:
        """Return the priority that Slurm had given it by then."""
        value = 0
        for since, priority in self.record.past[job - 1].priorities:
            if since > at and value:
                break
            value = priority
        return value

    def _submitted(self, job: int, at: float) -> int:
        """Return when it came into the queue: one that is put back counts as submitted then, or once it is gone."""
        past = self.record.past[job - 1]
        ends = [run.end for run in past.runs if run.ended == "requeued" and run.end <= at]
        ends += [max(run.freed) for run in past.runs if run.ended == "stopped" and run.end <= at]
        return int(max([past.submit, *ends]) // 1000) + self.record.origin


def forced(record: Record, wanted: Wanted, looks: Sequence[float] = (), only: Collection[int] | None = None) -> Forced:
    """Return which real starts a simulation wanted, put into the real state at each instant.

    Parameters
    ----------
    record : Record
        What slurmctld did.
    wanted : function of Snapshot
        What the simulation would start now.
    looks : sequence of float
        Further instants to look at, in seconds from the origin: when reservations begin and end.
    only : collection of int, optional
        Look only when one of these jobs is started, which is fast and tells no lags.
    """
    real = _Real(record)
    since: dict[int, float] = {}
    starts, in_vain = [], []

    def look(at: float) -> None:
        if only is not None:
            since.clear()
        wants = set(wanted(real.snapshot(at)))
        in_vain.extend((job, since.pop(job), at / 1000) for job in set(since) - wants)
        for job in wants:
            since.setdefault(job, at / 1000)

    for (started_by, _), group in itertools.groupby(real.events(looks), _pass_of(record)):
        events = list(group)
        chosen = [event for event in events if only is None or record.jobs[event[2]].id in only]
        # What one pass starts was decided in the state in which it began, and it alone must want to start it.
        if started_by and chosen:
            begun = events[0][0]
            look(begun)
            wants = wanted(real.snapshot(begun, started_by))
            for at, _, number, run in chosen:
                job = record.jobs[number].id
                before = since.pop(job, begun / 1000)
                there = job in wants and set(wants[job]) == set(run.nodes)
                starts.append(Start(job, at / 1000, started_by, before if job in wants else math.nan, there))
        for at, kind, number, about in events:
            real.apply(kind, number, about, at)
            if only is None and not started_by:
                look(at)
        if only is None and started_by:
            look(events[-1][0])
    return Forced(tuple(starts), tuple(in_vain))


def _pass_of(record: Record) -> Callable[[_Event], tuple[str, int]]:
    """Return what tells of an event which pass it is a start of: kind of pass and its number; nothing of others."""

    def find(event: _Event) -> tuple[str, int]:
        at, kind, _, about = event
        return (about.by, bisect.bisect(record.passes[about.by], at)) if kind == _START else ("", 0)

    return find


def distance(starts: Sequence[float], others: Sequence[float], mean_wait: float) -> float:
    """Return the mean difference of two schedules' starts as a share of the mean wait."""
    return sum(abs(a - b) for a, b in zip(starts, others, strict=True)) / len(starts) / mean_wait


def at_origin(site: Site, record: Record) -> Site:
    """Return a site as it was in the record: times in Unix seconds, its outages, and the rules of its version."""
    reservations = tuple(
        dataclasses.replace(
            one,
            start=one.start + record.origin,
            end=one.end + record.origin,
            known=max(one.known, 0.0) + record.origin,
        )
        for one in site.reservations
    )
    gone: dict[str, tuple[float, bool]] = {}
    outages = []
    for at, what in record.events:
        state, names = what.split()
        if state == "RESUME":
            begin, drained = gone.pop(names)
            outages.append(Outage(names, begin, at // 1000 + record.origin, drained=drained))
        else:
            gone[names] = (at // 1000 + record.origin, state == "DRAIN")
    version = ".".join(record.version.split(".")[:2])
    return dataclasses.replace(
        site,
        reservations=reservations,
        outages=tuple(outages),
        scheduling=dataclasses.replace(site.scheduling, slurm_version=version),
    )
