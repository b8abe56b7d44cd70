"""The plain Slurm beside the record of a real one: what it wants in the real state, and what it makes of the jobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from naive.forced import Snapshot, Wanted, at_origin
from naive.slurm import Running, State, Waiting, resume, simulate, wanted_now
from naive.slurm_jobs import Entry
from naive.slurm_jobs import Job as PlainJob
from naive.slurm_nodes import Nodes, Use, place, taken_of
from naive.slurm_priority import LARGEST
from naive.slurm_versions import versioned
from policyfactory.site.model import Site
from schedulers.record import Job, Past, Record

# Of each node, by its number in the site.
Cores = dict[int, int]


def plain_job(site: Site, job: Job, past: Past, origin: int) -> PlainJob:
    """Return a job as the plain Slurm takes it, with the submit and run time that it really had."""
    account = job.account or next((one.account for one in site.associations if one.user == job.user), "")
    run, partition = past.runs[-1], job.partition or next(one.name for one in site.partitions if one.default)
    several = tuple(partition.split(",")) if "," in partition else ()
    return PlainJob(
        id=job.id,
        submit=past.submit // 1000 + origin,
        run_time=job.run_time if run.ended == "cancelled" else run.end // 1000 - run.start // 1000,
        limit=job.limit,
        nodes=job.nodes or -1,
        cores=job.cores,
        memory=job.memory or -1,
        gpus=job.gpus,
        partition=several[0] if several else partition,
        qos=job.qos or ("normal" if site.qos else ""),
        account=account,
        user=job.user,
        eligible=job.eligible + origin if job.eligible else -1,
        after=int(job.dependency.partition(":")[2] or -1),
        site_factor=past.site_factor,
        exclusive=job.exclusive,
        array=job.array or -1,
        array_limit=job.array_limit or -1,
        reservation=job.reservation,
        # Who asks for GPUs and says no cores gets those of each GPU.
        ran=not (job.gpus and job.cores == job.nodes),
        partitions=several,
    )


def plain_jobs(site: Site, record: Record) -> dict[int, PlainJob]:
    """Return the jobs of a record by id."""
    pairs = zip(record.jobs, record.past, strict=True)
    return {job.id: plain_job(site, job, past, record.origin) for job, past in pairs}


def wanted_by(site: Site, record: Record) -> Wanted:
    """Return what the plain Slurm would start, as a function of the real state."""
    real, jobs = at_origin(site, record), plain_jobs(site, record)
    cores = cores_held(real, record, jobs)

    def wanted(state: Snapshot) -> Mapping[int, frozenset[int]]:
        running = [Running(jobs[one.job.id], one.start, cores[one.job.id, one.nodes]) for one in state.running]
        waits = state.waiting
        if site.priority.kind == "basic" and versioned(real).sets_anew:
            # The log tells of the first submission alone.
            queue = sorted(waits, key=lambda one: (one.submit, -one.priority))
            waits = tuple(dataclasses.replace(one, priority=LARGEST - place) for place, one in enumerate(queue))
        waiting = [Waiting(jobs[one.job.id], one.priority, one.submit, one.eligible) for one in waits]
        starts = wanted_now(real, State(state.now, running, waiting, state.away, state.completing, state.by))
        return {job: nodes for job, (_, nodes) in starts.items()}

    return wanted


def cores_held(site: Site, record: Record, jobs: Mapping[int, PlainJob]) -> dict[tuple[int, tuple[int, ...]], Cores]:
    """Return how many cores each run of a job had of its nodes: the record has their names alone.

    A job alone on its nodes has all of theirs, one that says its nodes as many of each. Another has what the rules of
    placing give it on these very nodes, beside the jobs that ran there.
    """
    nodes, held = Nodes(site), dict[tuple[int, tuple[int, ...]], Cores]()
    use, running = Use.none(len(nodes.cores)), list[tuple[int, Entry]]()
    resumed = resume(site, State(record.origin, [], []))
    runs = [(run, job) for job, past in zip(record.jobs, record.past, strict=True) for run in past.runs]
    for run, job in sorted(runs, key=lambda pair: pair[0].start):
        for end, entry in [one for one in running if one[0] <= run.start]:
            use.add(entry, -1)
            running.remove((end, entry))
        entry = resumed.entry_of(jobs[job.id])
        among = {nodes.inner[number] for number in run.nodes}
        placed = None if job.nodes else place(nodes, entry.demand, among, use)
        if entry.demand.whole or placed is None or set(placed) != among:
            of_each = entry.demand.per_node or job.cores // len(among)
            each = {node: nodes.cores[node] if entry.demand.whole else of_each for node in among}
            placed = {node: taken_of(nodes, entry.demand, node, cores) for node, cores in each.items()}
        entry.allocation = placed
        use.add(entry)
        running.append((run.end, entry))
        held[job.id, run.nodes] = {nodes.number[i]: cores for i, (cores, _, _) in placed.items()}
    return held


def turnrounds(record: Record) -> dict[int, int]:
    """Return how many seconds after the end of each job the last of its nodes really was free again."""
    last = {job.id: past.runs[-1] for job, past in zip(record.jobs, record.past, strict=True)}
    return {job: max(run.freed) // 1000 - run.end // 1000 for job, run in last.items()}


def starts_by(site: Site, record: Record) -> list[float]:
    """Return when the plain Slurm starts each job (its last start), in seconds from the record's origin.

    Jobs are submitted, run, and leave their nodes as long after their ends as they really did.
    """
    jobs, turnround = plain_jobs(site, record), turnrounds(record)
    placed = simulate(at_origin(site, record), list(jobs.values()), begin=record.begin, turnround=turnround)
    return [float(placed[job.id].start - record.origin) for job in record.jobs]
