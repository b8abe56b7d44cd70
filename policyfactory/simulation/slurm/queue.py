"""A snapshot of a queue on its site: the running jobs hold their nodes, the waiting ones stand in Slurm's order.

The jobs become a workload whose clock begins before the first of them was submitted. The running ones come first in it
and are put on their nodes as they are (`policyfactory.engine.slurm.passes`); they end by their limits, or when the
caller says. The waiting ones have the priorities that the snapshot says, whatever they are made of; from then on only
their age grows: fair share stays as it is. Tasks of an array are as many jobs; jobs that may start in several
partitions are looked at in each.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import counted, enumerated, format_duration, shortened
from policyfactory.engine.slurm.jobs import ABSENT, WELCOME, SlurmMachine, SlurmSettings
from policyfactory.engine.slurm.passes import resume
from policyfactory.engine.slurm.priority import FairShares, PriorityWeights
from policyfactory.engine.slurm.state import PASSED, WAITING, new_run
from policyfactory.simulation.slurm.jobs import Placed, place_jobs
from policyfactory.simulation.slurm.machine import YEAR, machine_of, settings_of, shares_of, weights_of
from policyfactory.simulation.slurm.run import HeldNodes, Parts, advance, cancelling
from policyfactory.site.fits import Layout, lay_out, mostly_of_others
from policyfactory.site.model import Partition, Site
from policyfactory.site.values import Named
from policyfactory.workload.jobs import Requests, Workload
from policyfactory.workload.snapshot import QueuedJob, Snapshot

MOST_TASKS = 1_000  # of one array that are simulated
_MOST_ROWS = 100_000
# Reasons of Slurm that last until somebody changes the job, the partition or a budget of minutes.
_FOR_GOOD = re.compile(
    r"BadConstraints|Invalid(?:QOS|Account)|(?:Account|QOS)NotAllowed|Partition(?:Down|Inactive)"
    r"|\w*(?<!Run)Minutes\w*",
    re.ASCII,
)
# Those of which nothing is known here: when they end, no rule says.
_UNKNOWN = re.compile(r"Licenses|ReqNodeNotAvail|BurstBuffer\w*|Cleaning|FedJobLock|Prolog|DeadLine|NodeDown", re.ASCII)
# Dependencies that end with one other job; what comes of the others is not known beforehand.
_AFTER_END = re.compile(r"after(?:any|ok|corr):(\d{1,15})(?:\(unfulfilled\))?", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class QueueOnSite:
    """The jobs of a snapshot as a site has them.

    Parameters
    ----------
    snapshot : Snapshot
    site : Site
        As it is at that time: without what has been, and nodes that are away drained.
    jobs : tuple of QueuedJob
        Those that take part: the running ones first, then the waiting ones.
    running : int
        How many of them run.
    rows : int64 array (n,)
        The place in ``jobs`` of each row of the workload: tasks of an array have a row each.
    workload : Workload
    partition : tuple of str
        In which each of ``jobs`` runs; of a waiting one the first that can have it.
    nodes : tuple of int64 array
        Of the running ones: their nodes, in the engine's order, and their cores there.
    cores : tuple of int64 array
    stopped : dict of int to str
        By place in ``jobs``: why it does not take part in the queue, whatever ends.
    assumed : tuple of str
        What was taken or left out, in sentences.
    """

    snapshot: Snapshot
    site: Site
    jobs: tuple[QueuedJob, ...]
    running: int
    rows: Int64Array
    workload: Workload
    partition: tuple[str, ...]
    nodes: tuple[Int64Array, ...]
    cores: tuple[Int64Array, ...]
    stopped: dict[int, str]
    assumed: tuple[str, ...]

    @property
    def task(self) -> Int64Array:
        """Which of the rows of its job each row of the workload is, from 0 on: int64 (n,)."""
        by_job, found = np.argsort(self.rows, kind="stable"), np.empty(len(self.rows), dtype=np.int64)
        found[by_job] = np.arange(len(found)) - np.searchsorted(self.rows[by_job], self.rows[by_job])
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class QueueRun:
    """A run from the snapshot on.

    Parameters
    ----------
    parts : Parts
        As the engine has them: the jobs in the rows of the workload.
    placed : Placed
        What counts together, and what can never start.
    order : tuple of int
        Places in `QueueOnSite.jobs` of those in the queue at the snapshot, the first to be looked at first.
    """

    parts: Parts
    placed: Placed
    order: tuple[int, ...]

    def run(self, until: int = 0) -> None:
        """Run all jobs, or until so many rows of the workload have been submitted."""
        advance(self.parts._replace(settings=self.parts.settings._replace(most_submitted=until)))

    def starts(self, queue: QueueOnSite) -> dict[int, int]:
        """Return when jobs start (Unix seconds), by place in `QueueOnSite.jobs`; of an array the first task."""
        first: dict[int, int] = {}
        for index, start in zip(queue.rows.tolist(), self.parts.run.start[: len(queue.rows)].tolist(), strict=True):
            if start >= 0 and index >= queue.running:
                first[index] = min(first.get(index, start), start)
        return first


def place_queue(snapshot: Snapshot, site: Site, later: Sequence[QueuedJob] = ()) -> QueueOnSite:
    """Put a snapshot on a site.

    Parameters
    ----------
    snapshot : Snapshot
    site : Site
    later : sequence of QueuedJob
        Jobs that are submitted after it was taken, of partitions that the site has; they are the last of ``jobs``.

    Raises
    ------
    SiteError
        If it is of another cluster: most of its jobs are of partitions or nodes that the site does not have.
    UsageError
        If it has no job, or too many tasks.
    """
    _check(snapshot, site)
    now, numbers = snapshot.taken, {partition.name: number for number, partition in enumerate(site.partitions)}
    assumed = [*snapshot.assumed]
    site = _as_now(site, snapshot, assumed)
    machine_layout = machine_of(site, 0)[1]
    layout = lay_out(site)
    node_numbers = {name: number for number, name in enumerate(machine_layout.names)}
    waiting = [job for job in snapshot.of("waiting") if any(name in numbers for name in job.partitions)]
    if lost := len(snapshot.of("waiting")) - len(waiting):
        assumed.append(f"{counted(lost, 'waiting job')} of partitions that {site.name} does not have left out")
    rows = sum(min(job.tasks, MOST_TASKS) for job in (*snapshot.of("running"), *waiting))
    if rows > _MOST_ROWS:
        raise UsageError(
            f"{snapshot.source}: {rows:,} jobs and tasks, and {_MOST_ROWS:,} are simulated; take the snapshot of "
            "fewer partitions (squeue --partition)"
        )
    running, nodes, cores = _running(snapshot, numbers, node_numbers, machine_layout, assumed)
    jobs = (*running, *waiting, *later)
    chosen = [_partition(job, site, layout, numbers) for job in jobs]
    if long := [job.name for job in jobs if job.tasks > MOST_TASKS]:
        assumed.append(f"of {_first(long)} the first {MOST_TASKS:,} tasks are simulated")
    assumed += not_known(waiting)
    if site.preemption.kind != "none":
        assumed.append(f"no job is stopped for another one, as {site.name} does (PreemptType)")
    reserved = {reservation.name for reservation in site.reservations}
    cores_of_site = int(layout.cores.sum())
    ends = _ends(snapshot, jobs)
    stopped = {
        index: why
        for index, job in enumerate(jobs)
        if job.state == "waiting" and (why := _stops(job, now, reserved, ends) or _exceeds(job, cores_of_site))
    }
    workload, of = _workload(jobs, (len(running), len(later)), chosen, layout, now)
    return QueueOnSite(
        *(snapshot, site, jobs, len(running), of, workload, tuple(its.name for its in chosen)),
        *(tuple(nodes), tuple(cores), stopped, tuple(assumed)),
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ReadyQueue:
    """A queue as the engine has it, from which runs begin.

    Parameters
    ----------
    placed : Placed
    machine : SlurmMachine
    settings : SlurmSettings
    weights : PriorityWeights
    counting : FairShares or None
    start : int64 array (k,)
        When each of the running jobs started.
    parts_from, node, cores : int64 array
        As `policyfactory.engine.slurm.passes.resume` has them.
    rows : int64 array (n,)
        As of `QueueOnSite`.
    """

    placed: Placed
    machine: SlurmMachine
    settings: SlurmSettings
    weights: PriorityWeights
    counting: FairShares | None
    start: Int64Array
    parts_from: Int64Array
    node: Int64Array
    cores: Int64Array
    rows: Int64Array

    def begin(
        self,
        run_time: Int64Array | None = None,
        since: int = 0,
        cancelled: Int64Array | None = None,
        later: Int64Array | None = None,
    ) -> QueueRun:
        """Return a run that stands at the snapshot.

        Parameters
        ----------
        run_time : int64 array (n,), optional
            How long each row of the workload runs (s), of a running job more than it has run; their limits if not
            given.
        since : int
            How long ago the last backfilling pass was (s), at most its interval.
        cancelled : int64 array (n,), optional
            When each row is cancelled if it waits still (Unix seconds, after its submission and the snapshot); -1 where
            it is not.
        later : int64 array (n,), optional
            How many seconds later each row is submitted than in the queue, after the snapshot.
        """
        placed = self.placed
        jobs = placed.jobs if run_time is None else placed.jobs._replace(run_time=run_time[placed.jobs.first])
        if later is not None:
            jobs = jobs._replace(ready=jobs.ready + later[jobs.first])
        if cancelled is not None:
            row = np.flatnonzero(cancelled >= 0)
            jobs = cancelling(jobs, row, cancelled[row])
        run = new_run(jobs, self.machine, placed.most, max(len(placed.held), 1), self.settings)
        if later is not None:
            run.submit[:] += later[jobs.first]
        parts = Parts(jobs, self.machine, run, self.settings, self.weights, self.counting)
        resume(*parts, self.start, self.parts_from, self.node, self.cores)
        run.state[PASSED] -= since
        waiting = self.rows[jobs.first[run.waiting[: run.state[WAITING]]]]
        return QueueRun(parts, placed, tuple(dict.fromkeys(waiting.tolist())))


def ready(queue: QueueOnSite, only: int | None = None) -> ReadyQueue:
    """Return a queue from which runs begin.

    Parameters
    ----------
    queue : QueueOnSite
    only : int, optional
        The place of a job in ``queue.jobs``: no other one waits.
    """
    workload, site, now = queue.workload, queue.site, queue.snapshot.taken
    machine, layout = machine_of(site, workload.unix_start)
    shares, associations = shares_of(site)
    names = {its.name: number for number, its in enumerate(site.reservations)}
    reservation = np.array([names.get(queue.jobs[index].reservation, -1) for index in queue.rows], dtype=np.int64)
    placed = place_jobs(workload, site, layout, associations, None, reservation)
    jobs, weights = placed.jobs, weights_of(site)._replace(fair_share=0.0)
    # Rows are in the engine's order already, which is that of submission; behind them, jobs in other partitions.
    of = queue.rows[jobs.first].tolist()
    aside = np.array([index in queue.stopped or (only is not None and queue.running <= index != only) for index in of])
    hopeless = np.where(aside & (jobs.hopeless == WELCOME), ABSENT, jobs.hopeless).astype(np.uint8)
    since = jobs.submit[jobs.first] if weights.from_submission else jobs.ready
    age = weights.age * np.clip((now - since) / weights.max_age, 0.0, 1.0)
    fixed, is_known = _fixed([queue.jobs[index] for index in of], jobs.fixed + age, jobs.first)
    nothing = np.zeros(len(of))
    jobs = jobs._replace(
        hopeless=hopeless,
        fixed=fixed - age,
        by_processor=np.where(is_known, nothing, jobs.by_processor),
        by_processor_beyond_share=np.where(is_known, nothing, jobs.by_processor_beyond_share),
    )
    settings = settings_of(site, now)
    counting = shares if site.outages else None
    first = of[: queue.running]
    parts_from = np.zeros(queue.running + 1, dtype=np.int64)
    np.cumsum([len(queue.nodes[index]) for index in first], out=parts_from[1:])
    start = np.array([queue.jobs[index].start for index in first], dtype=np.int64)
    node, cores = (
        np.concatenate([parts_from[:0], *(its[index] for index in first)]) for its in (queue.nodes, queue.cores)
    )
    return ReadyQueue(
        placed=dataclasses.replace(placed, jobs=jobs),
        machine=machine,
        settings=settings,
        weights=weights,
        counting=counting,
        start=start,
        parts_from=parts_from,
        node=node,
        cores=cores,
        rows=queue.rows,
    )


def _fixed(jobs: Sequence[QueuedJob], computed: FloatArray, first: Int64Array) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the priority of each row at the snapshot, and whether that is what Slurm says.

    What Slurm's own are more than computed, fair share and nice, a job has in its other partitions, and other jobs of
    the user have as well, or of the account, or, for want of both, of the queue: the mean of these.

    Parameters
    ----------
    jobs : sequence of QueuedJob
        Of the rows.
    computed : float64 array (n,)
        Without fair share and nice.
    first : int64 array (n,)
        The row of the same job whose priority Slurm says.
    """
    # Of the fraction that the snapshot cuts off, its mean.
    told = np.array([math.nan if job.priority is None else job.priority + 0.5 for job in jobs], dtype=np.float64)
    is_known, more = ~np.isnan(told), (told - computed)[first]
    rest: dict[tuple[str, str], list[float]] = {}
    known = np.flatnonzero(is_known & (first == np.arange(len(first)))).tolist()
    for row in (row for row in known if jobs[row].state == "waiting" and jobs[row].priority):
        for group in _groups(jobs[row]):
            rest.setdefault(group, []).append(float(more[row]))
    priority = computed + np.where(is_known, more, 0.0)
    for row in np.flatnonzero(~is_known).tolist() if rest else ():
        values = next(rest[group] for group in _groups(jobs[row]) if group in rest)
        priority[row] += sum(values) / len(values)
    return priority, is_known


def _groups(job: QueuedJob) -> tuple[tuple[str, str], ...]:
    return ("user", job.user), ("account", job.account), ("", "")


def on_nodes(snapshot: Snapshot, site: Site) -> Snapshot:
    """Return a snapshot whose running jobs have nodes: the first ones that are free, where it does not say which.

    Parameters
    ----------
    snapshot : Snapshot
    site : Site
    """
    layout, numbers = lay_out(site), {partition.name: number for number, partition in enumerate(site.partitions)}
    free, names = layout.cores.copy(), layout.names
    jobs = []
    for job in snapshot.jobs:
        if job.state == "running" and not job.node_list:
            partition = numbers[job.partitions[0]]
            exclusive = job.exclusive or site.partitions[partition].exclusive
            nodes, cores = _first_free(job, free, layout, layout.members[partition], exclusive=exclusive)
            held = ",".join(names[node] for node in nodes)
            jobs.append(dataclasses.replace(job, node_list=held, node_cores=tuple(cores), exclusive=exclusive))
        else:
            jobs.append(job)
    return dataclasses.replace(snapshot, jobs=tuple(jobs))


def with_nodes(snapshot: Snapshot, site: Site, rows: Int64Array, held: HeldNodes) -> Snapshot:
    """Return a snapshot whose running jobs have the nodes that they had in a run.

    Parameters
    ----------
    snapshot : Snapshot
    site : Site
    rows : int64 array (n,)
        The row in the run's workload of each of its jobs.
    held : HeldNodes
    """
    names, jobs = machine_of(site, snapshot.taken)[1], list(snapshot.jobs)
    entries = {row: entry for entry, row in enumerate(held.rows.tolist())}
    for number, row in enumerate(rows.tolist()):
        if row in entries and jobs[number].state == "running":
            its = slice(*held.first[entries[row] : entries[row] + 2])
            nodes, cores = held.node[its], held.cores[its]
            jobs[number] = dataclasses.replace(
                jobs[number],
                partitions=(site.partitions[held.partition[entries[row]]].name,),
                node_list=",".join(names.names[node] for node in nodes.tolist()),
                node_cores=tuple((cores * names.threads[nodes]).tolist()),
            )
    return dataclasses.replace(snapshot, jobs=tuple(jobs))


def _first_free(
    job: QueuedJob, free: Int64Array, layout: Layout, members: NDArray[np.bool_], *, exclusive: bool
) -> tuple[list[int], list[int]]:
    """Return nodes for a job and its cores there, and take them: the first that are free, or what there is."""
    room = np.where(members & (not exclusive or free == layout.cores), free, 0)
    nodes = np.flatnonzero(room > 0)
    if job.nodes > 0:
        each = -(-job.cores // job.nodes)
        fitting = nodes[room[nodes] >= each][: job.nodes]
        nodes = fitting if len(fitting) == job.nodes else nodes[: job.nodes]
        given = np.minimum(room[nodes], each)
    else:
        before = np.cumsum(room[nodes]) - room[nodes]
        nodes = nodes[before < job.cores]
        given = np.minimum(room[nodes], job.cores - before[: len(nodes)])
    free[nodes] -= room[nodes] if exclusive else given
    return nodes.tolist(), given.tolist()


def find_job(snapshot: Snapshot, name: str) -> QueuedJob:
    """Return the job of a snapshot that squeue calls so; of an array's task that waits, its array.

    Raises
    ------
    UsageError
        If there is none (names the nearest).
    """
    parent = name.partition("_")[0]
    for job in snapshot.jobs:
        if name in {job.name, str(job.number)} or (job.tasks > 1 and str(job.array) == parent):
            return job
    names = [job.name for job in snapshot.jobs]
    near = difflib.get_close_matches(name, names[:10_000], 3, 0.5) or names[:3]
    raise UsageError(
        f"{shortened(name)!r}: no such job in {snapshot.source}, which has {counted(len(names), 'job')} (near it "
        f"{enumerated(near)}); if it is newer, take the snapshot again"
    )


def _check(snapshot: Snapshot, site: Site) -> None:
    """Refuse a snapshot without jobs, or of another cluster."""
    if not snapshot.jobs:
        raise UsageError(f"{snapshot.source}: no job runs or waits there; print the queue with all states (squeue -a)")
    partitions = {partition.name for partition in site.partitions}
    strange = [job for job in snapshot.jobs if not partitions & {*job.partitions}]
    if strange and mostly_of_others(len(snapshot.jobs) - len(strange), len(snapshot.jobs)):
        raise SiteError(
            f"{snapshot.source}: {len(strange):,} of {counted(len(snapshot.jobs), 'job')} are of partitions that site "
            f"{site.name} does not have, the first (job {strange[0].name}) of {','.join(strange[0].partitions)!a}; it "
            f"has {enumerated(sorted(partitions)[:10])}: is the snapshot of another cluster? give the site file of "
            f"{snapshot.cluster or 'its cluster'}"
        )


def _as_now(site: Site, snapshot: Snapshot, assumed: list[str]) -> Site:
    """Return a site with what is away at a time drained, and without what was before or is not known yet."""
    now, named, away, back = snapshot.taken, Named(), [], []
    begun: dict[str, int] = {}
    for job in snapshot.of("running"):
        for name in _names(named, job.node_list):
            begun[name] = max(begun.get(name, 0), job.start or 0)
    for outage in site.outages:
        if outage.start <= now < outage.end:
            nodes = named.expand(outage.nodes)
            # Where a job has started since, the node is back, whatever the site file says.
            back += [name for name in nodes if begun.get(name, 0) > outage.start]
            gone = ",".join(name for name in nodes if begun.get(name, 0) <= outage.start)
            if gone:
                away.append(dataclasses.replace(outage, nodes=gone, start=float(now), end=math.inf, drained=True))
    if back:
        assumed.append(f"{_first(back, 'node')} in use, though the site file has {'them' if back[1:] else 'it'} down")
    if away:
        count = len({name for outage in away for name in named.expand(outage.nodes)})
        assumed.append(
            f"{counted(count, 'node')} away as in the site file, for as long as is looked at; it is as old as its "
            "import (policyfactory site import)"
        )
    kept = tuple(reservation for reservation in site.reservations if reservation.end > now)
    return dataclasses.replace(site, outages=tuple(away), reservations=kept)


def _names(named: Named, nodes: str) -> Sequence[str]:
    """Return the names of a host list; none of what is none."""
    try:
        return named.expand(nodes)
    except UsageError:
        return ()


def not_known(waiting: Sequence[QueuedJob]) -> list[str]:
    """Return in sentences which jobs wait for what no rule here knows, and may start later."""
    found = []
    if named := [f"{job.name} ({job.reason})" for job in waiting if _UNKNOWN.fullmatch(job.reason)]:
        found.append(f"{_first(named)}: when that ends is not known; they may start later than is told")
    if parts := [job.name for job in waiting if job.het]:
        found.append(f"{_first(parts)}: parts of heterogeneous jobs, planned one by one; they start with the last one")
    if only := [f"{job.name} ({shortened(job.only, 40)})" for job in waiting if job.only]:
        found.append(f"{_first(only)}: planned on any nodes; they may start later than is told")
    return found


def _running(
    snapshot: Snapshot, numbers: dict[str, int], node_numbers: dict[str, int], layout: Layout, assumed: list[str]
) -> tuple[list[QueuedJob], list[Int64Array], list[Int64Array]]:
    """Return the running jobs whose nodes the site has, with these and their cores there."""
    jobs, nodes, cores, lost, less = [], [], [], [], []
    free, named = layout.cores.copy(), Named()
    for job in snapshot.of("running"):
        try:
            names = named.expand(job.node_list)
        except UsageError as error:
            raise SiteError(f"{snapshot.source}: job {job.name}: {error}; take the snapshot again") from None
        known = bool(names) and all(name in node_numbers for name in names) and bool(numbers.keys() & {*job.partitions})
        if job.start is None or not known:
            lost.append(job)
            continue
        mine = np.array([node_numbers[name] for name in names], dtype=np.int64)
        given = np.array(job.node_cores, dtype=np.int64)
        if len(given) != len(mine):
            given = _spread(job.cores, layout.cores[mine])
        if job.exclusive:
            given = layout.cores[mine].copy()
        held = np.minimum(given, free[mine])
        if (held < given).any():
            less.append(job.name)
        free[mine] -= held
        jobs.append(job)
        nodes.append(mine[np.argsort(mine)])
        # The engine counts whole cores.
        cores.append(-(-held // layout.threads[mine])[np.argsort(mine)])
    running = len(jobs) + len(lost)
    if lost and mostly_of_others(len(jobs), running):
        first = f"{shortened(lost[0].node_list, 60)!a}" if lost[0].node_list else "none by name"
        raise SiteError(
            f"{snapshot.source}: {len(lost):,} of {counted(running, 'running job')} have nodes that the site does not "
            f"have, the first (job {lost[0].name}) {first}: is the snapshot of another cluster, or is the site file "
            "older than the nodes? import it anew (policyfactory site import)"
        )
    if lost:
        assumed.append(f"{_first([job.name for job in lost])} on nodes that the site does not have left out")
    if less:
        assumed.append(f"{_first(less)}: more cores than the site's nodes have free; those are taken")
    if not running:
        assumed.append(
            "no job runs in the snapshot, so that all nodes are taken for free; print the queue with all states"
        )
    return jobs, nodes, cores


def _spread(cores: int, has: Int64Array) -> Int64Array:
    """Return cores spread over nodes as evenly as these allow."""
    given, left = np.zeros(len(has), dtype=np.int64), cores
    for done, node in enumerate(np.argsort(has, kind="stable").tolist()):
        given[node] = min(-(-left // (len(has) - done)), has[node])
        left -= int(given[node])
    return given


def _partition(job: QueuedJob, site: Site, layout: Layout, numbers: dict[str, int]) -> Partition:
    """Return the partition in which a job runs or is planned: of several the first, by tier, that can have it."""
    known = sorted(
        (numbers[name] for name in job.partitions if name in numbers), key=lambda number: -site.partitions[number].tier
    )

    def fits(number: int) -> bool:
        its, members = site.partitions[number], layout.members[number]
        large = job.cores > layout.cores[members].sum() or job.nodes > min(its.max_nodes, int(members.sum()))
        return its.up and not large and (job.limit or 0) <= its.max_time

    return site.partitions[known[0] if job.state == "running" else next(filter(fits, known), known[0])]


def _ends(snapshot: Snapshot, jobs: Sequence[QueuedJob]) -> dict[int, tuple[int, int] | None]:
    """Return by the jobs' numbers where they stand in the engine's order; None where it is of several jobs."""
    rows = Counter(job.number for job in snapshot.jobs)
    ends: dict[int, tuple[int, int] | None] = {job.number: _turn(job) for job in jobs}
    several = {number for number, count in rows.items() if count > 1}
    return ends | dict.fromkeys(several | {job.array for job in snapshot.jobs if job.array})


def _turn(job: QueuedJob) -> tuple[int, int]:
    """Return by what jobs are in the engine's order: running ones first, then by submission."""
    return (-1, job.number) if job.state == "running" else (job.submit, job.number)


def _stops(job: QueuedJob, now: int, reservations: set[str], ends: Mapping[int, tuple[int, int] | None]) -> str:
    """Return why a job does not take part in the queue, whatever ends; empty if it does, perhaps later."""
    if job.held:
        whose = "an administrator" if job.reason == "JobHeldAdmin" else "its user or an administrator"
        return f"it is held, until {whose} releases it (scontrol release {job.number})"
    if begins_far(job, now):
        return (
            f"it may start {format_duration((job.eligible or now) - now)} after the snapshot at the earliest (--begin)"
        )
    if job.reservation and job.reservation not in reservations:
        return f"it asks for reservation {job.reservation}, which the site file does not have (it may be over)"
    if waits_for_change(job):
        return f"Slurm says {job.reason}, and it does not start until that is changed"
    if job.dependency and not _foreseen(job, ends):
        never = " and never met" if job.reason == "DependencyNeverSatisfied" else ""
        return f"it depends on other jobs{never}: {shortened(job.dependency, 60)}"
    return ""


def keeps_out(job: QueuedJob, machine: int) -> str:
    """Return why a waiting job takes no part in a queue under EASY on so many processors; empty if it does."""
    if job.cores > machine:
        return f"it can never start: it asks for {job.cores:,} processors, and there are {machine:,}"
    if job.held:
        return f"it is held, until it is released (scontrol release {job.number})"
    if waits_for_change(job):
        return f"Slurm says {job.reason}, and it does not start until that is changed"
    if job.state == "waiting" and job.dependency:
        return f"it depends on other jobs: {shortened(job.dependency, 60)}; give --site, whose rules know them"
    return ""


def _exceeds(job: QueuedJob, cores: int) -> str:
    """Return that a job asks for more than the cluster has; empty if it does not."""
    if job.cores <= cores:
        return ""
    return f"it can never start on this site: it asks for {counted(job.cores, 'core')}, and there are {cores:,}"


def waits_for_change(job: QueuedJob) -> bool:
    """Tell whether Slurm says that a job waits until somebody changes it, its partition or a budget."""
    return job.state == "waiting" and _FOR_GOOD.fullmatch(job.reason) is not None


def begins_far(job: QueuedJob, now: int) -> bool:
    """Tell whether a job begins so late that the time up to then is not simulated."""
    return (job.eligible or now) > now + YEAR


def _foreseen(job: QueuedJob, ends: Mapping[int, tuple[int, int] | None]) -> bool:
    """Tell whether the simulation knows when a job's dependency is met: one job that takes part, or has ended."""
    other = after(job)
    if other is None:
        return False
    if other not in ends:
        return job.reason != "Dependency"
    turn = ends[other]
    return turn is not None and turn < _turn(job)


def after(job: QueuedJob) -> int | None:
    """Return the number of the one job whose end a job waits for; None for none, or what cannot be foreseen."""
    match = None if job.reason == "DependencyNeverSatisfied" else _AFTER_END.fullmatch(job.dependency)
    return int(match[1]) if match else None


def _workload(
    jobs: Sequence[QueuedJob], of: tuple[int, int], chosen: Sequence[Partition], layout: Layout, now: int
) -> tuple[Workload, Int64Array]:
    """Return the jobs as a workload, the running ones first, and whose rows these are.

    All but the last ones are submitted before now. ``of``: how many run, and how many come later.
    """
    running, later = of[0], len(jobs) - of[1]
    rows = np.array(
        [index for index, job in enumerate(jobs) for _ in range(min(job.tasks, MOST_TASKS))], dtype=np.int64
    )
    zero = min([now, *(job.submit for job in jobs[running:])]) - 1
    submit = np.array([max(min(job.submit, now) - zero, 1) for job in jobs], dtype=np.int64)
    submit[later:] = [max(job.submit - zero, 1) for job in jobs[later:]]
    submit[:running] = 0
    numbers = np.array([job.number for job in jobs], dtype=np.int64)
    rows = rows[np.lexsort((numbers[rows], submit[rows]))]
    # By their numbers, the tasks of an array one after the other.
    rank = np.empty(len(rows), dtype=np.int64)
    rank[np.argsort(numbers[rows], kind="stable")] = np.arange(1, len(rows) + 1)
    ranks = {jobs[index].number: int(rank[row]) for row, index in enumerate(rows.tolist()) if jobs[index].tasks == 1}
    names: dict[str, tuple[str, ...]] = {}

    def column(value: Callable[[QueuedJob], float]) -> Int64Array:
        return np.array([value(job) for job in jobs], dtype=np.int64)[rows]

    def named(key: str, given: Sequence[str]) -> Int64Array:
        names[key] = tuple(sorted({name for name in given if name}))
        ranks_of = {name: rank_of for rank_of, name in enumerate(names[key])}
        return np.array([ranks_of.get(name, -1) for name in given], dtype=np.int64)[rows]

    longest = np.array([min(its.max_time, YEAR) for its in chosen], dtype=np.int64)[rows]
    limit = column(lambda job: min(job.limit or 0, YEAR))
    limit = np.where(limit > 0, limit, longest)
    # Who has run longer than its limit, or is being cleaned up, is believed to end at once.
    has_run = column(lambda job: now - min(job.start or now, now))
    limit = np.where(rows < running, np.maximum(limit, has_run + 1), limit)
    unknown = np.full(len(rows), -1)
    requests = Requests(
        nodes=column(lambda job: job.nodes if job.nodes and (job.state == "running" or _asks_nodes(job)) else -1),
        memory=column(lambda job: -1 if job.memory is None else math.ceil(job.memory)),
        gpus=column(lambda job: job.gpus),
        exclusive=column(lambda job: int(job.exclusive)),
        eligible=column(lambda job: max(min(job.accrued or job.eligible or zero, now + YEAR) - zero, 0)),
        after=np.array([ranks.get(after(jobs[index]) or -1, -1) for index in rows], dtype=np.int64),
        partition=named("partition", [its.name for its in chosen]),
        partitions=named("partitions", [_listed(job) for job in jobs]),
        qos=named("qos", [job.qos for job in jobs]),
        account=named("account", [job.account for job in jobs]),
        user_name=named("user", [job.user for job in jobs]),
        array=column(lambda job: job.array if job.array_limit else -1),
        array_limit=column(lambda job: job.array_limit if job.array and job.array_limit else -1),
        names=names,
    )
    machine = int(layout.cores.sum())
    cores = column(lambda job: min(max(job.cores, 1), machine))
    return Workload(
        *("the snapshot", machine, rank, submit[rows], limit, limit, cores, unknown, unknown),
        unix_start=zero,
        requests=requests,
    ), rows


def _listed(job: QueuedJob) -> str:
    """Return the partitions of a job that may start in several; empty for one that runs, or has one."""
    return ",".join(job.partitions) if job.state == "waiting" and len(job.partitions) > 1 else ""


def _asks_nodes(job: QueuedJob) -> bool:
    """Tell whether a waiting job asks for so many nodes, and not only for tasks."""
    return job.nodes > 1 or job.most_nodes == job.nodes


def _first(names: Sequence[str], kind: str = "job") -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names[:3])}{more}"
