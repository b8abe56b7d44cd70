"""Slurm's main pass: the queue in its order, each partition up to the first job that cannot start.

The rules are those of Slurm 22.05, found in its source.
"""

from __future__ import annotations

from policyfactory.core.arrays import Int64Array, UInt8Array
from policyfactory.core.jit import step
from policyfactory.engine.slurm_earliest import allow, asked, is_open
from policyfactory.engine.slurm_jobs import CLOSED, LIMITED, Jobs, Machine, Settings
from policyfactory.engine.slurm_limits import is_limited
from policyfactory.engine.slurm_nodes import (
    ALONE,
    CORE_MEMORY,
    JOBS,
    MEMORY,
    NODE_GPUS,
    NODE_MEMORY,
    NODES,
    TOTAL_CORES,
    WHOLE,
    choose,
)
from policyfactory.engine.slurm_state import CHANGED, NOW, WAITING, Run, start_job

__all__ = ["STARTED_BY_MAIN", "main_pass"]

STARTED_BY_MAIN = 1  # in `Run.by`
# Rows of `Run.mask`: nodes that a job may use, nodes that no job of a blocked partition waits for; of
# the first, those where nothing is being cleaned up.
_ALLOWED, _FREE, _READY = 0, 2, 4
# What came of a job.
_NOT_NOW, _STARTED, _BUSY = range(3)
# Rows of `Run.tally`: 1 for a partition whose first job waits; its jobs looked at; 1 for such a reservation.
_BLOCKED, _LOOKED_AT, _FAILED = range(3)


@step
def main_pass(
    jobs: Jobs,
    machine: Machine,
    run: Run,
    settings: Settings,
    whole: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Make one main pass.

    Parameters
    ----------
    jobs : Jobs
    machine : Machine
    run : Run
        Jobs are started; they stay in the queue.
    settings : Settings
    whole : bool
        Whether the whole queue is looked at, or as many jobs as ``settings`` say.

    Returns
    -------
    int
        How many jobs were started.
    """
    now, free = run.state[NOW], run.mask[_FREE]
    blocked, looked_at, failed = run.tally[_BLOCKED], run.tally[_LOOKED_AT], run.tally[_FAILED]
    run.tally[:] = 0
    for node in range(len(free)):
        free[node] = run.up[node]
    depth = started = 0
    for at in range(run.state[WAITING]):
        job = run.waiting[at]
        partition = jobs.partition[job]
        if machine.closed[partition] == 1:
            continue
        reservation = jobs.reservation[job]
        if reservation >= 0 and not is_open(machine, reservation, now):
            continue
        if 0 < settings.most_starts <= started:
            break
        if settings.partition_depth > 0:
            looked_at[partition] += 1
            if looked_at[partition] > settings.partition_depth:
                continue
        # One more than the setting says.
        if not whole and depth > settings.queue_depth:
            break
        depth += 1
        if reservation < 0 and blocked[partition] == 1:
            run.state[CHANGED] = now
            continue
        if reservation >= 0 and failed[reservation] == 1:
            continue
        if jobs.hopeless[job] == LIMITED or is_limited(jobs, run.limits, run.choice, job, 0, 0, 0, 0, False):
            continue
        there = 0
        for node in range(len(free)):
            there += machine.partition[partition, node] & free[node]
        few = there < jobs.request[job, NODES]
        waits = few
        if not few:
            if jobs.hopeless[job] >= CLOSED:
                continue
            outcome = _try(jobs, machine, run, settings, job, free)
            started += outcome == _STARTED
            waits = outcome == _BUSY
        if not waits or (
            not few and (now - run.ready[job] < settings.least_age or run.priority[job] < settings.least_priority)
        ):
            continue
        if reservation >= 0 and not few:
            failed[reservation] = 1
        else:
            blocked[partition] = 1
            for node in range(len(free)):
                free[node] &= 1 - machine.partition[partition, node]
    return started


@step
def _try(jobs: Jobs, machine: Machine, run: Run, settings: Settings, job: int, free: UInt8Array) -> int:
    """Start a job on free nodes, or tell why not: it waits for others to end, or for something else."""
    request, now, allowed, ready = jobs.request[job], run.state[NOW], run.mask[_ALLOWED], run.mask[_READY]
    begin, _ = allow(jobs, machine, run, job, now, allowed)
    if begin != now:
        return _NOT_NOW
    for node in range(len(allowed)):
        allowed[node] &= free[node]
        ready[node] = allowed[node] & (run.completing[node] == 0)
    chosen = choose(request, machine.has, run.used, ready, run.choice)
    if chosen > 0:
        nodes, cores, memory, gpus = asked(request, machine, run, chosen)
        run.cores_seen[job] = cores
        if is_limited(jobs, run.limits, run.choice, job, nodes, cores, memory, gpus, True):
            return _NOT_NOW
        start_job(jobs, machine, run, settings, job, chosen, STARTED_BY_MAIN)
        return _STARTED
    busy, nodes = _is_busy(request, machine, run, allowed, ready, machine.partition[jobs.partition[job]])
    cores = run.cores_seen[job] if run.cores_seen[job] > 0 else request[TOTAL_CORES]
    memory = request[NODE_MEMORY] * nodes if request[NODE_MEMORY] > 0 else request[CORE_MEMORY] * cores
    # A limit outweighs other reasons: such a job keeps nobody else from starting.
    if is_limited(jobs, run.limits, run.choice, job, nodes, cores, memory, request[NODE_GPUS] * nodes, False):
        return _NOT_NOW
    return _BUSY if busy else _NOT_NOW


@step
def _is_busy(
    request: Int64Array, machine: Machine, run: Run, allowed: UInt8Array, ready: UInt8Array, members: UInt8Array
) -> tuple[bool, int]:
    """Tell whether a job waits for others to end, and not for nodes to be there again; and how many nodes it needs."""
    empty = run.scratch
    empty[:] = 0
    enough = free = 0
    for node in range(len(allowed)):
        if allowed[node] and machine.has[node, MEMORY] >= max(request[NODE_MEMORY], request[CORE_MEMORY]):
            jobs = run.used[node, JOBS]
            enough += 1
            free += ready[node] == 1 and jobs < (1 if request[WHOLE] == 1 else ALONE)
    possible = choose(request, machine.has, empty, allowed, run.choice) if free >= request[NODES] else 0
    nodes = possible if possible > 0 else choose(request, machine.has, empty, members, run.choice)
    return possible > 0 or enough != free, max(nodes, request[NODES])
