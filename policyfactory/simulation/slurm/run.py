"""A workload on a site under Slurm's rules.

Such a run can be followed: how far it is, whether its queue runs away, and what holds its jobs.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from policyfactory.core.jit import interruptible
from policyfactory.core.options import Int64Array, UInt8Array
from policyfactory.core.text import counted, number_text
from policyfactory.engine.events import NEVER
from policyfactory.engine.slurm.jobs import (
    CLOSED,
    CONFINED,
    LIMITED,
    PER_NODE,
    SlurmJobs,
    SlurmMachine,
    SlurmSettings,
)
from policyfactory.engine.slurm.nodes import CORE_MEMORY, NODE_GPUS, NODE_MEMORY, NODES, new_choice
from policyfactory.engine.slurm.numbers import LivePredictions, Numbering, no_numbering
from policyfactory.engine.slurm.passes import slurm
from policyfactory.engine.slurm.priority import FairShares, PriorityWeights
from policyfactory.engine.slurm.state import NOW, READY, RUNNING, WAITING, RunState, new_run
from policyfactory.engine.slurm.stopping import GOES_BACK, IS_CANCELLED, NOT_SOON, STAYS, SlurmPreemption
from policyfactory.simulation.slurm.jobs import Placed, place_jobs
from policyfactory.simulation.slurm.machine import machine_of, settings_of, shares_of, weights_of
from policyfactory.site.fits import Layout
from policyfactory.site.model import Partition, Qos, Site
from policyfactory.site.values import LONGEST_TIME
from policyfactory.workload.jobs import Workload


class Parts(NamedTuple):
    """What the engine is given of a run under Slurm's rules; see `policyfactory.engine.slurm.passes`."""

    jobs: SlurmJobs
    machine: SlurmMachine
    run: RunState
    settings: SlurmSettings
    weights: PriorityWeights
    shares: FairShares | None


def advance(
    parts: Parts,
    numbering: Numbering | None = None,
    predictions: LivePredictions | None = None,
    until: int = NEVER,
) -> bool:
    """Begin a run, or go on with one that was left, up to where its caller is to do something; or to its end.

    Parameters
    ----------
    parts : Parts
        Of the run, which stands where it was left.
    numbering : Numbering, optional
        How jobs get new numbers where the run stops for them; without it the kernel gives them none.
    predictions : LivePredictions, optional
        What predicts the jobs, for numbers that are made from it.
    until : int
        Seconds, on the run's clock: the first stop for numbers from then on is left to the caller.

    Returns
    -------
    bool
        Whether the run has not ended.
    """
    return interruptible(slurm, *parts, numbering or no_numbering(), predictions, until)


def cancelling(jobs: SlurmJobs, job: Int64Array, when: Int64Array) -> SlurmJobs:
    """Return the engine's jobs of which some (k,) are cancelled at some times (k,) of the run's clock (s)."""
    order = np.argsort(when, kind="stable")
    return jobs._replace(cancelled=np.ascontiguousarray(np.stack([when[order], job[order]], axis=1)))


class Numbers(Protocol):
    """What sets site_factor of the jobs; they are in the order of their submission."""

    @property
    def at_submission(self) -> bool:
        """Whether numbers are made when jobs are submitted."""

    @property
    def at_calculation(self) -> bool:
        """Whether numbers of waiting jobs change when priorities are calculated."""

    @property
    def first(self) -> Int64Array:
        """The numbers at submission, where they are known before: int64 (n,)."""

    def run(self, parts: Parts, zero: int) -> None:
        """Run all jobs where numbers change.

        Parameters
        ----------
        parts : Parts
            Of a run that has not begun; its jobs have the numbers of `first`, or none where numbers are made when they
            are submitted.
        zero : int
            When the workload's clock began, on the run's (s).
        """


class RunFollower(Protocol):
    """Who follows a run."""

    def run(self, parts: Parts, placed: Placed, site: Site, zero: int) -> None:
        """Run all jobs, or up to where it is to stop.

        Parameters
        ----------
        parts : Parts
            Of a run that has not begun.
        placed : Placed
            Its jobs.
        site : Site
            Where they run.
        zero : int
            When the workload's clock began, on the run's (s).
        """


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SlurmRun:
    """When Slurm would run each job; arrays (n,) in the order of the workload's rows.

    Parameters
    ----------
    start, end : int64 array
        Seconds on the workload's clock; -1 for a job that never starts.
    by : int64 array
        1: started by the main pass, 2: by the backfilling pass.
    restarts : int64 array
        How often a node under the job failed.
    never : dict of int to str
        Rows of jobs that cannot start on this site, and why.
    preempted, lost : int64 array
        How often the job was stopped for others, and the node seconds of those runs. Of one that was put back ``start``
        is its last one; one that was cancelled has ended then.
    """

    start: Int64Array
    end: Int64Array
    by: Int64Array
    restarts: Int64Array
    never: dict[int, str]
    preempted: Int64Array
    lost: Int64Array


def run_slurm(
    workload: Workload,
    site: Site,
    factor: Int64Array | None = None,
    *,
    numbers: Numbers | None = None,
    reservation: Int64Array | None = None,
    origin: int | None = None,
    turn_round: int = 0,
    cancelled: Int64Array | None = None,
    watch: RunFollower | None = None,
) -> SlurmRun:
    """Return when Slurm would run the jobs of a workload on a site.

    Parameters
    ----------
    workload : Workload
        With `Requests` where the log says more than processors.
    site : Site
        Where they run, and by which settings.
    factor : int64 array (n,), optional
        site_factor of each job.
    numbers : Numbers, optional
        What sets it instead as the run goes on, as an export does.
    reservation : int64 array (n,), optional
        The number of the site's reservation that each job asks for; -1 for none.
    origin : int, optional
        When the scheduler was started (s on the workload's clock); default: at the first submission.
    turn_round : int
        Seconds from a job's end until its nodes are free.
    cancelled : int64 array (n,), optional
        When each job is cancelled if it has not started by then (s on the workload's clock), after its submission; -1
        where it is not.
    watch : RunFollower, optional
        Who follows the run. Where ``numbers`` change nobody does.

    Raises
    ------
    EvaluationError
        If the workload's clock does not count seconds, or it names a partition that the site does not have.
    UsageError
        If the site has reservations or outages and the workload has no date.
    """
    n = len(workload)
    machine, layout = machine_of(site, workload.unix_start)
    shares, associations = shares_of(site)
    placed = place_jobs(workload, site, layout, associations, factor, reservation)
    if origin is None:
        origin = int(workload.submit[0]) if n else 0
    # On the Unix clock: planned times are rounded there.
    zero = workload.unix_start or 0
    settings = settings_of(site, origin + zero, turn_round, stops=numbers is not None and numbers.at_calculation)
    settings = settings._replace(foretells=numbers is not None and numbers.at_submission)
    weights = weights_of(site)
    # All of the rare rules or none: the kernel is compiled once more for each choice among them.
    rare = weights.fair_share > 0 or bool(site.outages) or site.preemption.on or settings.foretells
    counting = shares if rare else None
    if cancelled is not None:
        job = np.flatnonzero(cancelled[placed.order] >= 0)
        placed = dataclasses.replace(placed, jobs=cancelling(placed.jobs, job, cancelled[placed.order[job]] + zero))
    preemption = preemption_of(site, layout, len(machine.has), placed, weights, counting)
    run = new_run(placed.jobs, machine, placed.most, max(len(placed.held), 1), settings, preemption)
    parts = Parts(placed.jobs, machine, run, settings, weights, counting)
    if numbers is not None and not numbers.at_submission:
        placed.jobs.fixed[:] += numbers.first[placed.jobs.first]
    if numbers is not None and (numbers.at_submission or numbers.at_calculation):
        numbers.run(parts, zero)
    elif watch is not None:
        watch.run(parts, placed, site, zero)
    else:
        advance(parts)

    def in_rows(column: Int64Array) -> Int64Array:
        rows = np.empty(n, dtype=np.int64)
        rows[placed.order] = column[:n]
        return rows

    def on_clock(column: Int64Array) -> Int64Array:
        return np.where(run.start >= 0, column - zero, -1)

    none = np.zeros(n, dtype=np.int64)
    return SlurmRun(
        start=in_rows(on_clock(run.start)),
        end=in_rows(on_clock(run.end)),
        by=in_rows(run.by),
        restarts=in_rows(run.restarts),
        never=placed.never,
        preempted=in_rows(none if preemption is None else preemption.stopped),
        lost=in_rows(none if preemption is None else preemption.lost),
    )


# A run that is followed. ----------------------------------------------------------------------------------------------

_REPORTS = 100  # of how far a run is
# Of a limit, in the order of the engine's columns: of what it is, one and many, and Slurm's word for it.
_WHAT = (
    ("running job", "running jobs", "Jobs"),
    ("node", "nodes", "TRES=node"),
    ("core", "cores", "TRES=cpu"),
    ("MB of memory", "MB of memory", "TRES=mem"),
    ("GPU", "GPUs", "TRES=gres/gpu"),
)
# The reasons in `SlurmJobs.hopeless` for which a job is in the queue in vain.
_IN_VAIN = {
    LIMITED: "MaxWall, which they are above",
    CLOSED: "a partition that does not let them in",
    CONFINED: "limits that leave them too few nodes",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """What holds the jobs of a queue.

    Parameters
    ----------
    waiting : int
        The jobs in the queue.
    by : str
        What holds most of them: a limit, a partition that is closed or full.
    share : float
        The part of the queue that it holds.
    """

    waiting: int
    by: str
    share: float

    @property
    def text(self) -> str:
        """What holds them, in words."""
        part = "all" if self.share == 1 else f"{number_text(100 * self.share)} %"
        return f"{part} of them are held by {self.by}"


class Watch:
    """Follows a run of all jobs, and stops it where its queue runs away.

    Parameters
    ----------
    look, most : int
        What holds the jobs is looked at once more jobs than ``look`` wait, and again whenever twice as many do; where
        more than ``most`` wait, the run is stopped.
    progress : callable, optional
        Called with how many jobs have been submitted, first before any is.

    Attributes
    ----------
    held : Held or None
        What held the jobs when it was last looked at.
    stopped : int or None
        When the run was stopped (s on the workload's clock); None: it was not.
    """

    def __init__(self, look: int, most: int, progress: Callable[[int], None] = lambda _: None) -> None:
        self.look, self.most, self._progress = look, most, progress
        self.held: Held | None = None
        self.stopped: int | None = None

    def run(self, parts: Parts, placed: Placed, site: Site, zero: int) -> None:
        """Run all jobs, or up to where the queue is too long; as of `RunFollower`."""
        state, jobs = parts.run.state, len(parts.jobs.ready)
        step, limit = max(jobs // _REPORTS, 1), min(self.look, self.most)
        submitted = step
        self._progress(0)
        while True:
            settings = parts.settings._replace(most_waiting=limit, most_submitted=submitted)
            going = advance(parts._replace(settings=settings))
            self._progress(int(state[READY]))
            if not going:
                return
            if state[WAITING] > limit:
                self.held = _held(parts, placed, site)
                if state[WAITING] > self.most:
                    self.stopped = int(state[NOW]) - zero
                    return
                limit = min(2 * int(state[WAITING]), self.most)
            submitted = (int(state[READY]) // step + 1) * step if state[READY] < jobs else 0


class HeldNodes(NamedTuple):
    """The nodes of the jobs that run at an instant: job by job, in rows of the workload."""

    rows: Int64Array
    partition: Int64Array
    first: Int64Array
    node: Int64Array
    cores: Int64Array


class NodesSeen:
    """Notes which nodes the running jobs have once so many jobs have been submitted; a `RunFollower`.

    Parameters
    ----------
    counts : int64 array
        Ascending.
    """

    def __init__(self, counts: Int64Array) -> None:
        self._counts = counts
        self.seen: dict[int, HeldNodes] = {}

    def run(self, parts: Parts, placed: Placed, site: Site, zero: int) -> None:
        """Run all jobs."""
        del site, zero
        run, settings = parts.run, parts.settings
        for count in self._counts.tolist():
            if run.state[READY] < count:
                advance(parts._replace(settings=settings._replace(most_submitted=count)))
            running = run.running[: run.state[RUNNING]]
            held = [np.arange(run.held_from[job], run.held_from[job] + run.held_count[job]) for job in running]
            first = np.cumsum([0, *(len(its) for its in held)])
            which = np.concatenate([first[:0], *held])
            cores = run.held_cores[which].astype(np.int64)
            rows, partition = placed.order[parts.jobs.first[running]], parts.jobs.partition[running]
            self.seen[count] = HeldNodes(rows, partition, first, run.held_node[which].astype(np.int64), cores)
        advance(parts)


def _held(parts: Parts, placed: Placed, site: Site) -> Held:
    """Return what holds most of the waiting jobs."""
    waiting = parts.run.waiting[: parts.run.state[WAITING]].tolist()
    by, count = Counter(_holder(parts, placed, site, job) for job in waiting).most_common(1)[0]
    return Held(len(waiting), by, count / len(waiting))


def _holder(parts: Parts, placed: Placed, site: Site, job: int) -> str:
    """Return what keeps a waiting job from starting."""
    jobs, partition = parts.jobs, parts.jobs.partition[job]
    name = site.partitions[partition].name
    if parts.machine.closed[partition] == 1:
        return f"partition {name}, which is not up"
    if (why := _IN_VAIN.get(int(jobs.hopeless[job]))) is not None:
        return f"{why} (partition {name})"
    return _limit(parts, placed, job) or f"partition {name}, whose nodes are in use or wait for jobs before them"


def _limit(parts: Parts, placed: Placed, job: int) -> str:
    """Return the limit that a job would break if it started now; empty if there is none."""
    return next((broken.text for broken in broken_limits(parts, placed, job, asks_of(parts, job))), "")


def asks_of(parts: Parts, job: int) -> Int64Array:
    """Return what a job asks for, as limits count it: itself, nodes, cores, MB and GPUs."""
    request, cores = parts.jobs.request[job], parts.jobs.processors[job]
    nodes, of_core = request[NODES], max(request[CORE_MEMORY], 0) // parts.jobs.threads[job]
    memory = request[NODE_MEMORY] * nodes if request[NODE_MEMORY] > 0 else of_core * cores
    return np.array([1, nodes, cores, memory, request[NODE_GPUS] * nodes], dtype=np.int64)


class BrokenLimit(NamedTuple):
    """A limit that a job would break.

    Parameters
    ----------
    of : tuple of str
        What is held together: the kind of the counter, and of what; empty: of the job alone; ``node``: on each node.
    text : str
        The limit in words, with Slurm's name for it.
    most, held, asked : int
        What it allows, what running jobs hold of it, what the job asks for.
    """

    of: tuple[str, ...]
    text: str
    most: int
    held: int
    asked: int


def broken_limits(parts: Parts, placed: Placed, job: int, asks: Int64Array) -> Iterator[BrokenLimit]:
    """Give the limits that a job would break if it started now.

    Parameters
    ----------
    parts : Parts
    placed : Placed
    job : int
        Its number.
    asks : int64 array (5,)
        What it would hold: jobs, nodes, cores, MB, GPUs; 0 where that is not asked.
    """
    jobs, limits = parts.jobs, parts.run.limits
    for counter in range(jobs.counters_from[job], jobs.counters_from[job + 1]):
        row, limit = jobs.counters[counter]
        held = limits.held[row] if row >= 0 else np.zeros(len(asks), dtype=np.int64)
        of = placed.held[row] if row >= 0 else ("node",) if row == PER_NODE else ()
        wanted = asks // max(asks[1], 1) if row == PER_NODE else asks
        over = np.flatnonzero((wanted > 0) & (held + wanted > limits.most[limit]))
        if len(over):
            what = int(over[0])
            most = float(limits.most[limit, what])
            yield BrokenLimit(of, _named(of, what, most), int(most), int(held[what]), int(wanted[what]))


def _named(of: tuple[str, ...], what: int, most: float) -> str:
    """Return a limit in words, alike for all users and accounts that it holds one by one, with Slurm's name for it."""
    singular, plural, word = _WHAT[what]
    kind, names = (of[0], of[1:]) if of else ("job", ())
    per = word.replace("TRES=", "TRESPer{}=") if word.startswith("TRES") else f"{word}Per{{}}"
    whose, name = {
        "job": ("of one job", f"Max{word}"),
        "node": ("of one job on each node", f"Max{per.format('Node')}"),
        "array": ("of one array", "ArrayTaskThrottle"),
        "qos": ("of QOS {} together", f"Grp{word}"),
        "qos user": ("of one user in QOS {}", f"Max{per.format('User')}"),
        "qos account": ("of one account in QOS {}", f"Max{per.format('Account')}"),
        "association": ("of account {} and those below it together", f"Grp{word}"),
    }[kind]
    if kind == "association" and names[1]:
        whose, name = "of one user in account {}", f"Grp{word}" + (" or MaxJobs" if word == "Jobs" else "")
    return f"the limit of {counted(int(most), singular, plural)} {whose.format(*names)} ({name})"


# Preemption: which jobs are stopped for which others, and how ---------------------------------------------------------

K = TypeVar("K")
_OUTCOMES = {"off": STAYS, "requeue": GOES_BACK, "cancel": IS_CANCELLED}
_LARGEST_RANK = 0xFFFF
_DEPTH = 64  # of halves of halves of a queue


def preemption_of(
    site: Site, layout: Layout, nodes: int, placed: Placed, weights: PriorityWeights, shares: FairShares | None
) -> SlurmPreemption | None:
    """Return what the engine is given of a site's preemption; None if no job is ever stopped for another.

    Parameters
    ----------
    site : Site
        Its partitions or QOS, and PreemptType and the like.
    layout : Layout
        Of its nodes.
    nodes : int
        Of the engine's machine.
    placed : Placed
        The jobs.
    weights : PriorityWeights
        Of the run.
    shares : FairShares or None
        Of the run.
    """
    given, n = site.preemption, len(placed.jobs.ready)
    if not given.on:
        return None
    if given.kind == "partition_prio":
        kinds: tuple[Partition, ...] | tuple[Qos, ...] = site.partitions
        members = layout.members.astype(np.int64)
        shared = (members @ members.T > 0).astype(np.uint8)
        higher = _pairs(site.partitions, lambda kind, other: kind.tier > other.tier)
        before, kind, rank = higher & shared, placed.jobs.partition.copy(), [its.tier for its in site.partitions]
    else:
        kinds, kind, rank = site.qos, placed.qos, [its.priority for its in site.qos]
        before = higher = _pairs(site.qos, lambda kind, other: kind is not other and other.name in kind.preempts)
    outcome = np.array([_OUTCOMES[its.preempt_mode or given.mode] for its in kinds], dtype=np.int64)
    if not given.job_requeue:
        outcome[outcome == GOES_BACK] = IS_CANCELLED
    return SlurmPreemption(
        kind=kind,
        stops=higher & (outcome != STAYS).astype(np.uint8),
        goes_before=before,
        rank=np.minimum(np.array(rank, dtype=np.int64), _LARGEST_RANK),
        outcome=outcome,
        grace=np.array([int(min(its.grace_time, LONGEST_TIME)) for its in kinds], dtype=np.int64),
        exempt=placed.exempt,
        least_exempt=given.min_exempt_priority if math.isfinite(given.min_exempt_priority) else float(NOT_SOON),
        youngest_first=given.youngest_first,
        strict=given.strict_order,
        reorders=given.reorder_count,
        sorts=given.kind == "qos" or bool(site.reservations),
        weights=weights,
        shares=shares,
        until=np.full(n, NOT_SOON, dtype=np.int64),
        stopped_at=np.full(n, -1, dtype=np.int64),
        last_stopping=np.full(n, -NOT_SOON, dtype=np.int64),
        stopped=np.zeros(n, dtype=np.int64),
        lost=np.zeros(n, dtype=np.int64),
        back=np.full(n, -NOT_SOON, dtype=np.int64),
        candidate=np.zeros(n + 1, dtype=np.int64),
        gone=np.zeros(n + 1, dtype=np.uint8),
        mark=np.zeros(nodes, dtype=np.uint8),
        kept=new_choice(nodes),
        absent=np.zeros(n, dtype=np.uint8),
        merged=np.zeros(n, dtype=np.int64),
        stack=np.zeros((_DEPTH, 3), dtype=np.int64),
    )


def _pairs(kinds: Sequence[K], related: Callable[[K, K], bool]) -> UInt8Array:
    """Return which kinds stand in a relation to which others, (K, K)."""
    pairs = [[related(kind, other) for other in kinds] for kind in kinds]
    return np.array(pairs, dtype=np.uint8).reshape(len(kinds), len(kinds))
