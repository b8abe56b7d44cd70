"""Why one job is before another in a cluster's queue, and what each waits for, by Slurm's rules on its site.

The terms of a priority are those of ``sprio -l``. What a job waits for is read from the state of the simulation at the
snapshot, before any time has passed: limits, nodes, its place. When it would start is found by letting all jobs run to
their limits.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import counted, enumerated, format_duration, number_text
from policyfactory.engine.slurm.jobs import CLOSED, LIMITED, WELCOME
from policyfactory.engine.slurm.nodes import (
    ALONE,
    CORE_MEMORY,
    CORES,
    GPUS,
    JOBS,
    MEMORY,
    NODE_CORES,
    NODE_GPUS,
    NODE_MEMORY,
    NODES,
    WHOLE,
)
from policyfactory.engine.slurm.state import WAITING
from policyfactory.simulation.slurm.jobs import Weighed, fixed_terms
from policyfactory.simulation.slurm.machine import YEAR, Enforced, weights_of
from policyfactory.simulation.slurm.queue import (
    QueueOnSite,
    QueueRun,
    after,
    begins_far,
    find_job,
    place_queue,
    ready,
    waits_for_change,
)
from policyfactory.simulation.slurm.run import BrokenLimit, asks_of, broken_limits
from policyfactory.site.file import read_site
from policyfactory.site.fits import lay_out
from policyfactory.site.model import Site
from policyfactory.workload.snapshot import QueuedJob, Snapshot

_REST = 2.5  # what rounding may leave of a priority
_NAMED = 3
_TRES = ("cpu", "mem", "node", "gres/gpu")


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """Something that a job waits for.

    Parameters
    ----------
    kind : str
        ``held``, ``dependency``, ``begin``, ``never``, ``partition``, ``reservation``, ``array``, ``limit``, ``nodes``,
        ``priority``, ``backfill``, ``nothing``.
    short, text : str
        In a few words, and in a sentence.
    """

    kind: str
    short: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExplainedJob:
    """A waiting job.

    Parameters
    ----------
    job : QueuedJob
    partition : str
        In which it is planned.
    position : int
        In the queue, from 1; 0: it is not in it.
    ahead : int
        How many jobs before it may use nodes that it may use.
    terms : mapping of str to float
        Of its priority, by the columns of sprio; NICE as it counts, negative.
    waits : tuple of Wait
        What it waits for, the main reason first.
    start : int or None
        When it would start if all ran to their limits (Unix seconds); None: never, as far as this can be foreseen.
    stands : tuple of (str, int)
        Of its partitions the one by which it has its position, and its priority there.
    """

    job: QueuedJob
    partition: str
    position: int
    ahead: int
    terms: Mapping[str, float]
    waits: tuple[Wait, ...]
    start: int | None
    stands: tuple[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        job = {name: getattr(self.job, name) for name in ("user", "account", "qos", "priority", "reason")}
        others = {name: getattr(self, name) for name in ("partition", "position", "ahead", "start")}
        waits = [dataclasses.asdict(wait) for wait in self.waits]
        return {"job": self.job.name, **job, **others, "terms": dict(self.terms), "waits": waits}


@dataclasses.dataclass(frozen=True, slots=True)
class QueueOrder:
    """Why one job is before another.

    Parameters
    ----------
    first, second : str
        The job that is looked at first, and the other.
    why : str
        By what, in a sentence.
    terms : mapping of str to (float, float)
        Of their priorities, where these decide, or would.
    """

    first: str
    second: str
    why: str
    terms: Mapping[str, tuple[float, float]]


@dataclasses.dataclass(frozen=True, slots=True)
class QueueExplanation:
    """The waiting jobs of a snapshot, explained.

    Parameters
    ----------
    queue : QueueOnSite
    jobs : tuple of ExplainedJob
        The queue in its order, then those that are not in it.
    assumed : tuple of str
        What was assumed, in sentences.
    of_terms : tuple of str
        Those of them that are about the terms of priorities, or its plan.
    """

    queue: QueueOnSite
    jobs: tuple[ExplainedJob, ...]
    assumed: tuple[str, ...]
    of_terms: tuple[str, ...] = ()

    def find(self, name: str) -> ExplainedJob | None:
        """Return a waiting job as squeue calls it; None for one that runs.

        Raises
        ------
        UsageError
            If there is no such job, or the site does not have its partition.
        """
        job = find_job(self.queue.snapshot, name)
        found = next((explained for explained in self.jobs if explained.job is job), None)
        if found is None and job.state == "waiting":
            raise UsageError(
                f"job {job.name} waits for partition {','.join(job.partitions)}, which site {self.queue.site.name} "
                "does not have; add it to the site file"
            )
        return found

    def alone(self, explained: ExplainedJob) -> int | None:
        """Return when a job would start if no other one waited (Unix seconds), all running to their limits."""
        index = next(index for index, job in enumerate(self.queue.jobs) if job is explained.job)
        run = ready(self.queue, index).begin()
        run.run()
        return run.starts(self.queue).get(index)

    def order(self, job: ExplainedJob, other: ExplainedJob) -> QueueOrder:
        """Say which of two jobs is looked at first, and why."""
        return _order(self.queue.site, job, other)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "schema_version": 1,
            "site": self.queue.site.name,
            "taken": self.queue.snapshot.taken,
            "jobs": [job.as_dict() for job in self.jobs],
            "assumed": list(self.assumed),
        }

    def frame(self) -> pd.DataFrame:
        """Return the jobs as a table, a row each."""
        rows = [job.as_dict() | {"waits": job.waits[0].text, **job.terms} for job in self.jobs]
        return pd.DataFrame(rows).drop(columns="terms", errors="ignore")


def explain_queue(
    snapshot: Snapshot, site: Site | Path | str, fair_shares: Mapping[tuple[str, str], float] | None = None
) -> QueueExplanation:
    """Explain the waiting jobs of a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        The queue, as `policyfactory.workload.snapshot.read_snapshot` reads it.
    site : Site, Path or str
        The cluster, or its site file.
    fair_shares : mapping of (str, str) to float, optional
        Factors by account and user, as sshare has them; without them what is left of a priority is its fair share.

    Raises
    ------
    SiteError
        If the snapshot is of another cluster.
    UsageError
        If it has no job, or too many tasks.
    """
    site = site if isinstance(site, Site) else read_site(site)
    queue = place_queue(snapshot, site)
    run = ready(queue).begin()
    terms, remarks = _terms(queue, fair_shares)
    waits, ahead = _waits(queue, run)
    stands = _stands(queue, run)
    run.run()
    starts = run.starts(queue)
    inside = {*run.order}
    outside = [index for index in range(queue.running, len(queue.jobs)) if index not in inside]
    window, jobs = site.scheduling.bf_window, []
    for position, index in [*enumerate(run.order, 1), *((0, index) for index in outside)]:
        if site.scheduling.backfill and starts.get(index, 0) > snapshot.taken + window:
            text = f"it would start beyond what the backfilling pass plans (bf_window, {format_duration(window)})"
            waits[index] = (*waits[index], Wait("backfill", "beyond bf_window", text))
        jobs.append(
            ExplainedJob(
                *(queue.jobs[index], queue.partition[index], position, ahead.get(index, 0), terms[index]),
                waits[index],
                starts.get(index),
                stands.get(index, (queue.partition[index], queue.jobs[index].priority or 0)),
            )
        )
    of_terms = (*remarks, "running and waiting jobs run to their limits, nobody submits, no node fails")
    assumed = [*queue.assumed, *remarks]
    if unknown := len(site.not_modelled):
        verb = "is" if unknown == 1 else "are"
        assumed.append(f"{counted(unknown, 'setting')} of the site {verb} not modelled (site show)")
    return QueueExplanation(queue, tuple(jobs), (*assumed, of_terms[-1]), of_terms)


def _stands(queue: QueueOnSite, run: QueueRun) -> dict[int, tuple[str, int]]:
    """Return by which of its partitions each job of the queue stands where it does, and its priority there."""
    jobs, found = run.parts.jobs, {}
    for row in reversed(run.parts.run.waiting[: run.parts.run.state[WAITING]].tolist()):
        index, partition = int(queue.rows[jobs.first[row]]), queue.site.partitions[jobs.partition[row]].name
        # What squeue says is of the one in which it is told of.
        told = queue.jobs[index].priority if row < len(queue.rows) else None
        found[index] = partition, int(run.parts.run.priority[row]) if told is None else told
    return found


# The priority, term by term -------------------------------------------------------------------------------------------


def _terms(
    queue: QueueOnSite, fair_shares: Mapping[tuple[str, str], float] | None
) -> tuple[dict[int, dict[str, float]], list[str]]:
    """Return the terms of each waiting job's priority, by its index, and in sentences what was assumed."""
    site, given = queue.site, queue.site.priority
    waiting = [index for index in range(queue.running, len(queue.jobs)) if queue.jobs[index].priority]
    terms: dict[int, dict[str, float]] = {index: {} for index in range(queue.running, len(queue.jobs))}
    if given.kind != "multifactor":
        return terms, ["PriorityType is priority/basic: first come, first served"]
    if not waiting:
        return terms, []
    jobs = [queue.jobs[index] for index in waiting]
    fixed = fixed_terms(site, lay_out(site), _weighed(queue, waiting))
    nice = 0.0 - np.array([job.nice for job in jobs], dtype=np.float64)
    rest = np.array([job.priority for job in jobs], dtype=np.float64) - sum(fixed.values()) - nice
    factors = np.array([(fair_shares or {}).get((job.account, job.user), math.nan) for job in jobs])
    fair = given.fair_share * factors if given.fair_share else np.zeros(len(jobs))
    age, remarks = _age(queue, jobs, rest - fair)
    rest -= age
    unknown = np.isnan(fair)
    fair = np.where(unknown, rest, fair)
    left = rest - fair
    left[np.abs(left) <= _REST] = 0.0
    if unknown.any():
        remarks.append(
            f"FAIRSHARE of {counted(int(unknown.sum()), 'job')} is what is left of the priority, with SITE and what "
            "age grew since it was calculated (--sshare FILE, of sshare -a -l -P, says it)"
        )
    columns = {"SITE": left, "AGE": age, "ASSOC": fixed.pop("ASSOC"), "FAIRSHARE": fair, **fixed, "NICE": nice}
    for number, index in enumerate(waiting):
        terms[index] = {name: float(column[number]) for name, column in columns.items()}
    return terms, remarks


def _weighed(queue: QueueOnSite, waiting: Sequence[int]) -> Weighed:
    """Return what the request of each job counts in its priority."""
    site, layout = queue.site, lay_out(queue.site)
    rules, numbers = Enforced(site), {its.name: number for number, its in enumerate(site.partitions)}
    jobs, partition = [queue.jobs[index] for index in waiting], [numbers[queue.partition[index]] for index in waiting]
    cores, qos, association = [], [], []
    for job, number in zip(jobs, partition, strict=True):
        chain = rules.chain(job.account, job.user)
        its = rules.qos.get(rules.qos_of(job.qos, chain))
        qos.append(0 if its is None else its.priority)
        association.append(next((rank.priority for rank in chain if rank.priority), 0))
        whole = job.exclusive or site.partitions[number].exclusive or site.scheduling.select == "nodes"
        each = _usual(layout.cores[layout.members[number]]) if whole else 1
        cores.append(max(job.cores, max(job.nodes, 1) * each))
    asked = [
        job.resources or {"cpu": job.cores, "mem": job.memory or 0, "node": max(job.nodes, 1), "gres/gpu": job.gpus}
        for job in jobs
    ]
    counts = {name: np.array([amounts.get(name, 0) for amounts in asked], dtype=np.float64) for name in _TRES}
    return Weighed(
        partition=np.array(partition, dtype=np.int64),
        limit=np.array([max(job.limit or YEAR, 60) for job in jobs], dtype=np.int64),
        nodes=np.array([max(job.nodes, 1) for job in jobs], dtype=np.int64),
        cores=np.array(cores, dtype=np.int64),
        qos=np.array(qos, dtype=np.float64),
        association=np.array(association, dtype=np.float64),
        resources=counts,
    )


def _age(queue: QueueOnSite, jobs: Sequence[QueuedJob], rest: FloatArray) -> tuple[FloatArray, list[str]]:
    """Return what age gives each job, as of the last calculation of priorities.

    That was at most a period ago. When, shows in what the other terms leave of the priorities (``rest``; NaN where fair
    share is not known): the second at which age explains them best.
    """
    weights, now = weights_of(queue.site), queue.snapshot.taken
    since = np.array(
        [(job.submit if weights.from_submission else job.accrued) or now for job in jobs], dtype=np.float64
    )

    def age_at(second: float) -> FloatArray:
        return weights.age * np.clip((second - since) / weights.max_age, 0.0, 1.0)

    if not weights.age:
        return np.zeros(len(jobs)), []
    known = ~np.isnan(rest)
    period = int(queue.site.priority.calculation_period)
    if not known.any():
        return age_at(now), [f"AGE is that of the snapshot; Slurm's is up to {format_duration(period)} older"]
    missed = [float(np.median(np.abs(age_at(now - back)[known] - rest[known]))) for back in range(period + 1)]
    return age_at(now - int(np.argmin(missed))), []


def _order(site: Site, job: ExplainedJob, other: ExplainedJob) -> QueueOrder:
    tiers = {its.name: its.tier for its in site.partitions}
    first, second = sorted((job, other), key=lambda its: its.position or math.inf)
    ours, theirs = first.job, second.job
    if not second.position:
        missing = [its.job.name for its in (first, second) if not its.position]
        verb = "are" if len(missing) > 1 else "is"
        why = f"{enumerated(missing)} {verb} not in the queue: {second.waits[0].text}"
    elif bool(ours.reservation) != bool(theirs.reservation):
        why = f"job {ours.name} asks for reservation {ours.reservation}: such jobs are looked at first"
    elif tiers[first.stands[0]] != tiers[second.stands[0]]:
        why = (
            f"partition {first.stands[0]} has PriorityTier {tiers[first.stands[0]]}, {second.stands[0]} has "
            f"{tiers[second.stands[0]]}: jobs of a higher tier are all looked at first, whatever their priorities"
        )
    elif first.stands[1] != second.stands[1]:
        more = {name: first.terms[name] - second.terms.get(name, 0.0) for name in first.terms}
        name = max(more, key=more.__getitem__, default="")
        why = f"its priority is higher: {first.stands[1]:,} against {second.stands[1]:,}"
        elsewhere = [f"{its.job.name} in {its.stands[0]}" for its in (first, second) if its.stands[0] != its.partition]
        if elsewhere:
            why += f" ({enumerated(elsewhere)}, of several partitions)"
        elif name:
            why += f", most of it by {name} ({more[name]:+,.0f})"
    elif ours.submit != theirs.submit:
        earlier = format_duration(theirs.submit - ours.submit)
        why = f"their priorities are equal, and it was submitted {earlier} earlier"
    else:
        why = "their priorities and times of submission are equal, and its number is lower"
    names = dict.fromkeys([*first.terms, *second.terms])
    terms = {name: (first.terms.get(name, 0.0), second.terms.get(name, 0.0)) for name in names}
    return QueueOrder(first.job.name, second.job.name, why, terms)


# What a job waits for -------------------------------------------------------------------------------------------------


def _waits(queue: QueueOnSite, run: QueueRun) -> tuple[dict[int, tuple[Wait, ...]], dict[int, int]]:
    """Return by index what each waiting job waits for, and how many jobs are before it on nodes that it may use."""
    parts, machine, ahead, before = run.parts, run.parts.machine, {}, Counter[tuple[int, ...]]()
    members = machine.partition.astype(np.int64)
    shared = members @ members.T > 0
    first, partition = parts.jobs.first, parts.jobs.partition
    names = [its.name for its in queue.site.partitions]
    told: dict[int, int] = {}  # the row that each job is told of: of its first task, in the partition of its plan
    for row, index in enumerate(queue.rows[first].tolist()):
        mine = told.setdefault(index, row)
        if first[row] == first[mine] and names[partition[row]] == queue.partition[index] != names[partition[mine]]:
            told[index] = row
    looked_at: dict[int, set[int]] = {}  # partitions in which each is
    tasks: dict[int, list[int]] = {}  # the rows of each task there
    for row in parts.run.waiting[: parts.run.state[WAITING]].tolist():
        looked_at.setdefault(int(queue.rows[first[row]]), set()).add(int(partition[row]))
        tasks.setdefault(int(first[row]), []).append(row)
    for index in run.order:
        its = tuple(sorted(looked_at[index]))
        ahead[index] = sum(count for others, count in before.items() if shared[np.ix_(its, others)].any())
        before[its] += 1
    looked = _not_looked_at(queue, run)
    waits = {}
    for index in range(queue.running, len(queue.jobs)):
        row = told[index]
        found = [*_outside(queue, run, index, row)]
        if not found and index in ahead:
            rows = tasks.get(int(first[row]), [row])
            # Of several partitions one that is open to it and has room is what counts.
            may = [its for its in rows if parts.jobs.hopeless[its] == WELCOME and not machine.closed[partition[its]]]
            each = [_inside(queue, run, index, its, ahead[index]) for its in dict.fromkeys((row, *may))]
            found = next((its for its in each if its[0].kind != "nodes"), each[0])
            whys = [looked.get(its_row, "") for its_row in rows]
            if all(whys):
                found.append(Wait("backfill", "not looked at in backfilling", whys[0]))
        waits[index] = tuple(found) or (Wait("nothing", "nothing known", "nothing that these rules know keeps it"),)
    return waits, ahead


def _outside(queue: QueueOnSite, run: QueueRun, index: int, row: int) -> list[Wait]:
    """Return what keeps a job out of the queue, or in it in vain."""
    job, now, partition = queue.jobs[index], queue.snapshot.taken, queue.partition[index]
    number = int(run.parts.jobs.partition[row])
    if run.parts.machine.closed[number]:
        return [Wait("partition", f"partition {partition} (not up)", f"partition {partition} is not up")]
    if index in queue.stopped:
        kind = "begin" if begins_far(job, now) else "dependency" if job.dependency else "reservation"
        kind = "never" if job.cores > queue.workload.machine else "held" if job.held else kind
        kind = "never" if waits_for_change(job) and not job.held else kind
        short = {
            "held": "its release (held)",
            "begin": "its begin time",
            "dependency": "other jobs",
            "never": "it cannot run here",
        }
        return [Wait(kind, short.get(kind, "its reservation"), queue.stopped[index])]
    if why := run.placed.never.get(int(run.parts.jobs.first[row])):
        return [Wait("never", "it cannot run here", f"it can never start on this site: {why}")]
    found = []
    if (eligible := job.eligible or 0) > now:
        text = f"it may start {format_duration(eligible - now)} after the snapshot at the earliest (--begin)"
        found.append(Wait("begin", f"its begin time ({format_duration(eligible - now)})", text))
    other = after(job)
    if other is not None and run.parts.jobs.after[row] >= 0:
        text = f"it waits for the end of job {other} ({job.dependency})"
        found.append(Wait("dependency", f"job {other} to end", text))
    reservation = next((its for its in queue.site.reservations if its.name == job.reservation), None)
    if reservation is not None and not reservation.start <= now < reservation.end:
        text = f"reservation {reservation.name} begins {format_duration(reservation.start - now)} after the snapshot"
        found.append(Wait("reservation", f"reservation {reservation.name}", text))
    return found


def _inside(queue: QueueOnSite, run: QueueRun, index: int, row: int, ahead: int) -> list[Wait]:
    """Return what a job in the queue waits for."""
    found: list[Wait] = []
    job, partition = queue.jobs[index], queue.site.partitions[run.parts.jobs.partition[row]].name
    request, threads = run.parts.jobs.request[row], int(run.parts.jobs.threads[row])
    nodes, cores, free, free_cores = int(request[NODES]), int(run.parts.jobs.processors[row]), *_room(run, row)
    machine = run.parts.machine
    each = threads * _usual(machine.has[machine.partition[run.parts.jobs.partition[row]] == 1, CORES])
    held = max(cores, nodes * each) if request[WHOLE] else cores
    would = asks_of(run.parts, row)
    would[2] = held  # the cores of whole nodes
    broken = sorted(broken_limits(run.parts, run.placed, row, would), key=lambda limit: limit.asked <= limit.most)
    found += [_limit_wait(limit, job) for limit in broken[:_NAMED]]
    by_node = nodes > 1 or bool(request[WHOLE])
    kind = "whole node" if request[WHOLE] else "node"
    asks = f"{counted(nodes, kind)} ({counted(held, 'core')})" if by_node else counted(cores, "core")
    have = f"{counted(free, 'node')} with {counted(free_cores, 'core')}" if by_node else counted(free_cores, "core")
    needs = f"it needs {asks} of partition {partition}; free for it: {have}"
    before = f"{counted(ahead, 'job')} before it"
    if free < nodes or free_cores < cores:
        short = f"{counted(nodes, 'node')} ({free:,} free)"
        if not by_node:
            short = f"{counted(cores, 'core')} ({free_cores:,} free)"
        found.append(Wait("nodes", short, needs))
    elif ahead:
        found.append(Wait("priority", before, f"{before} may use its nodes; {needs}"))
    found += _reserved(queue, run, row)
    if not found:
        # What is not modelled, Slurm names: licences, features.
        why = "" if job.reason in {"", "Priority", "Resources"} else f" (Slurm says {job.reason})"
        found.append(Wait("nothing", f"the next pass{why}", f"{asks} are free, and the next pass may start it{why}"))
    elif ahead and not any(wait.kind == "priority" for wait in found):
        found.append(Wait("priority", before, f"{before} may use its nodes"))
    return found


def _limit_wait(broken: BrokenLimit, job: QueuedJob) -> Wait:
    """Return that a job waits for a limit, or exceeds it by itself."""
    of = {"qos": f"QOS {job.qos}", "qos user": f"user {job.user}", "qos account": f"account {job.account}"}
    name = broken.text.rpartition("(")[2].rstrip(")")
    kind, *names = broken.of or ("job",)
    whose = of.get(kind, "account " + names[0] if kind == "association" else "it")
    if broken.asked > broken.most:
        text = f"it asks for {broken.asked:,}, more than {broken.text}: it can never start"
        return Wait("never", name, text)
    if kind == "array":
        text = f"{broken.most:,} tasks of its array may run at once, and do"
        return Wait("array", f"its array (%{broken.most})", text)
    text = f"{broken.text}: {whose} holds {broken.held:,}, and it asks for {broken.asked:,}"
    return Wait("limit", f"{name} ({whose.partition(' ')[2] or whose})", text)


def _usual(cores: Int64Array) -> int:
    """Return how many cores a node of some has; 1 where there is none."""
    return int(np.median(cores)) if len(cores) else 1


def _members(run: QueueRun, row: int) -> NDArray[np.bool_]:
    """Return which nodes a job may use: those of its partition that are up."""
    machine = run.parts.machine
    return np.asarray((machine.partition[run.parts.jobs.partition[row]] == 1) & (run.parts.run.up == 1))


def _room(run: QueueRun, row: int) -> tuple[int, int]:
    """Return how many nodes of its partition have room for a job's part on a node, and their free processors."""
    request, has, used = run.parts.jobs.request[row], run.parts.machine.has, run.parts.run.used
    least, memory = max(int(request[NODE_CORES]), 1), int(request[NODE_MEMORY])
    free = has[:, CORES] - used[:, CORES]
    fits = _members(run, row) & (free >= least) & (has[:, GPUS] - used[:, GPUS] >= request[NODE_GPUS])
    needed = memory if memory > 0 else max(int(request[CORE_MEMORY]), 0) * least
    fits &= (used[:, MEMORY] == 0) if memory < 0 else (has[:, MEMORY] - used[:, MEMORY] >= needed)
    fits &= (used[:, JOBS] == 0) if request[WHOLE] else (used[:, JOBS] < ALONE)
    return int(fits.sum()), int(free[fits].sum() * run.parts.jobs.threads[row])


def _reserved(queue: QueueOnSite, run: QueueRun, row: int) -> list[Wait]:
    """Return the reservations of others that take nodes away from a job if it started now."""
    now, limit, found = queue.snapshot.taken, int(run.parts.jobs.limit[row]), []
    for number, reservation in enumerate(queue.site.reservations):
        if number == run.parts.jobs.reservation[row] or reservation.known > now or reservation.start >= now + limit:
            continue
        count = int((_members(run, row) & (run.parts.machine.reserved[number] == 1)).sum())
        if count:
            begins = "now" if reservation.start <= now else f"in {format_duration(reservation.start - now)}"
            kept = f"keeps {counted(count, 'node')} from jobs that would run into it"
            text = f"reservation {reservation.name} ({begins}) {kept}"
            found.append(Wait("reservation", f"reservation {reservation.name}", text))
    return found


def _not_looked_at(queue: QueueOnSite, run: QueueRun) -> dict[int, str]:
    """Return why the backfilling pass does not look at jobs of the queue, or reserves nothing for them, by row."""
    parts, given = run.parts, queue.site.scheduling
    jobs, waiting = parts.jobs, parts.run.waiting[: parts.run.state[WAITING]].tolist()
    if not given.backfill:
        return dict.fromkeys(waiting, "SchedulerType is sched/builtin: there is no backfilling")
    counts = ("bf_max_job_user_part", "bf_max_job_part", "bf_max_job_assoc", "bf_max_job_user")
    seen: dict[str, Counter[Any]] = {name: Counter() for name in counts}
    found, tried, reserved, now = {}, 0, Counter[int](), queue.snapshot.taken
    youngest = format_duration(given.bf_min_age_reserve)
    for row in waiting:
        partition, user, association = (int(column[row]) for column in (jobs.partition, jobs.user, jobs.association))
        closed = parts.machine.closed[partition] or jobs.hopeless[row] in {CLOSED, LIMITED}
        if closed or any(broken_limits(parts, run.placed, row, np.array([1, 0, 0, 0, 0]))):
            continue
        if tried >= given.bf_max_job_test:
            found[row] = f"the backfilling pass looks at the first {given.bf_max_job_test:,} jobs (bf_max_job_test)"
            continue
        groups = dict(zip(counts, ((user, partition), partition, association, user), strict=True))
        full = [name for name, group in groups.items() if 0 < getattr(given, name) <= seen[name][group]]
        if full:
            most = getattr(given, full[0])
            found[row] = f"the backfilling pass has looked at {most:,} such jobs before it ({full[0]}={most})"
            continue
        for name, group in groups.items():
            seen[name][group] += 1
        tried += 1
        age = now - int(jobs.ready[row])
        if age < given.bf_min_age_reserve:
            found[row] = f"nothing is reserved for it in its first {youngest} (bf_min_age_reserve)"
        elif parts.run.priority[row] < given.bf_min_prio_reserve:
            found[row] = (
                f"nothing is reserved below priority {number_text(given.bf_min_prio_reserve)} (bf_min_prio_reserve)"
            )
        elif 0 < given.bf_job_part_count_reserve <= reserved[partition]:
            found[row] = (
                f"nodes are reserved for {given.bf_job_part_count_reserve:,} jobs of its partition before it "
                "(bf_job_part_count_reserve), and not for it"
            )
        elif not jobs.no_reserve[row]:
            reserved[partition] += 1
    return found
