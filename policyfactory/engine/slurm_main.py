"""Slurm's main pass: the queue in its order, each partition up to the first job that cannot start.

The rules are those of Slurm 22.05, found in its source.
"""

from __future__ import annotations

from policyfactory.core.arrays import Int64Array, UInt8Array
from policyfactory.core.jit import inlined, step
from policyfactory.engine.slurm_allowed import allow, allow_members, is_open
from policyfactory.engine.slurm_blocks import BLOCKS, Blocks, count_nodes
from policyfactory.engine.slurm_demand import (
    ALONE,
    CORE_MEMORY,
    JOBS,
    MEMORY,
    NODE_GPUS,
    NODE_MEMORY,
    NODES,
    TOTAL_CORES,
    WHOLE,
)
from policyfactory.engine.slurm_earliest import asked, choose_now, is_young
from policyfactory.engine.slurm_holding import may_fit, part_blocks, start_job
from policyfactory.engine.slurm_jobs import CLOSED, LIMITED, Jobs, Machine, Settings
from policyfactory.engine.slurm_limits import is_limited, waits_for_array
from policyfactory.engine.slurm_nodes import choose
from policyfactory.engine.slurm_state import (
    CHANGED,
    HORIZON,
    MAIN_SKIPPED,
    MAIN_UNTIL,
    MAIN_VERSION,
    NOW,
    VERSION,
    WAITING,
    Run,
    divide_nodes,
    see_cores,
)

__all__ = ["STARTED_BY_MAIN", "main_pass"]

STARTED_BY_MAIN = 1  # in `Run.by`
# Rows of `Blocks.mask`: nodes that a job may use; those of its partition; nodes that no job of a blocked partition
# waits for; of the first, those where nothing is being cleaned up.
_ALLOWED, _MEMBERS, _FREE, _READY = range(4)
_NEVER = 2**61
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
    divide_nodes(machine, run)
    now, version, blocks, free = run.state[NOW], run.state[VERSION], run.blocks, run.blocks.mask[_FREE]
    run.state[HORIZON], skipped = _NEVER, False
    blocked, looked_at, failed = run.tally[_BLOCKED], run.tally[_LOOKED_AT], run.tally[_FAILED]
    run.tally[:] = 0
    allow_members(blocks, run.up, run.up, free)
    # As long as a job may have all nodes of its partition, it is known what it would do if they were empty.
    plain = count_nodes(blocks, free) == len(run.up) and len(machine.reservation) == 0
    depth, started, all_blocked = 0, 0, False
    for at in range(run.state[WAITING]):
        job = run.waiting[at]
        partition = jobs.partition[job]
        if machine.closed[partition] == 1 or waits_for_array(jobs, run.limits, job):
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
            run.state[CHANGED], skipped = now, True
            # Every job that follows would come to this again.
            if all_blocked:
                break
            continue
        if (
            (reservation >= 0 and failed[reservation] == 1)
            or jobs.hopeless[job] == LIMITED
            or is_limited(jobs, run.limits, run.choice, job, 0, 0, 0, 0, False)
        ):
            continue
        waits = few = _count(blocks, machine.partition[partition], free) < jobs.request[job, NODES]
        if not few:
            if jobs.hopeless[job] >= CLOSED:
                continue
            outcome = _try(jobs, machine, run, settings, job, free, plain)
            started += outcome == _STARTED
            waits = outcome == _BUSY
        young = is_young(run, settings, job)
        if not waits or (not few and (young or run.priority[job] < settings.least_priority)):
            continue
        if reservation >= 0 and not few:
            failed[reservation] = 1
        else:
            plain, all_blocked = False, _block(machine, blocks, partition, blocked, free)
    if whole:
        run.state[MAIN_VERSION], run.state[MAIN_UNTIL] = version, run.state[HORIZON]
        run.state[MAIN_SKIPPED] = skipped
    return started


@step
def _try(
    jobs: Jobs,
    machine: Machine,
    run: Run,
    settings: Settings,
    job: int,
    free: UInt8Array,
    plain: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Start a job on free nodes, or tell why not: it waits for others to end, or for something else."""
    request, now, blocks, members = (
        jobs.request[job],
        run.state[NOW],
        run.blocks,
        machine.partition[jobs.partition[job]],
    )
    allowed, ready = blocks.mask[_ALLOWED], blocks.mask[_READY]
    if plain and not may_fit(jobs, run, job) and _needs(jobs, machine, run, job, members) > 0:
        return _NOT_NOW if _would_be_limited(jobs, run, job, run.needs[job]) else _BUSY
    begin, _ = allow(jobs, machine, run, job, now, allowed)
    if begin != now:
        return _NOT_NOW
    for block in range(blocks.size[BLOCKS]):
        allowed[block] &= free[block]
        ready[block] = allowed[block] & (run.completing[blocks.first[block]] == 0)
    chosen = choose_now(jobs, machine, run, job, ready)
    if chosen > 0:
        nodes, cores, memory, gpus = asked(request, machine, run, chosen)
        see_cores(run, settings, job, cores)
        if is_limited(jobs, run.limits, run.choice, job, nodes, cores, memory, gpus, True):
            return _NOT_NOW
        part_blocks(run.plan, run.blocks, run.choice)
        start_job(jobs, machine, run, settings, job, chosen, STARTED_BY_MAIN)
        return _STARTED
    busy, nodes = _is_busy(request, machine, run, allowed, ready, members)
    # A limit outweighs other reasons: such a job keeps nobody else from starting.
    return _BUSY if busy and not _would_be_limited(jobs, run, job, nodes) else _NOT_NOW


@inlined
def _block(machine: Machine, blocks: Blocks, partition: int, blocked: Int64Array, free: UInt8Array) -> bool:
    """Keep the jobs of a partition from starting, and others from its nodes; tell whether no job can start any more."""
    blocked[partition] = 1
    members, every = machine.partition[partition], len(machine.reservation) == 0
    for block in range(blocks.size[BLOCKS]):
        free[block] &= 1 - members[blocks.first[block]]
    for other in range(len(machine.tier)):
        every = every and blocked[other] == 1
    return every


@inlined
def _count(blocks: Blocks, members: UInt8Array, mask: UInt8Array) -> int:
    """Return how many of some nodes (N,) the blocks of a mask have."""
    count = 0
    for block in range(blocks.size[BLOCKS]):
        count += blocks.nodes[block] if members[blocks.first[block]] & mask[block] != 0 else 0
    return count


@inlined
def _would_be_limited(jobs: Jobs, run: Run, job: int, nodes: int) -> bool:
    """Tell whether a job that waits for nodes would break a limit on them."""
    request = jobs.request[job]
    cores = run.cores_seen[job] if run.cores_seen[job] > 0 else request[TOTAL_CORES]
    memory = request[NODE_MEMORY] * nodes if request[NODE_MEMORY] > 0 else request[CORE_MEMORY] * cores
    return bool(is_limited(jobs, run.limits, run.choice, job, nodes, cores, memory, request[NODE_GPUS] * nodes, False))


@inlined
def _needs(jobs: Jobs, machine: Machine, run: Run, job: int, members: UInt8Array) -> int:
    """Return how many nodes a job gets if those of its partition are all there and empty; 0 if it cannot run."""
    if run.needs[job] < 0:
        run.needs[job] = _choose_empty(jobs.request[job], machine, run, members)
    return int(run.needs[job])


@step
def _choose_empty(request: Int64Array, machine: Machine, run: Run, members: UInt8Array) -> int:
    """Return how many nodes a request gets of some nodes (N,) if they are all there and empty."""
    blocks, mask = run.blocks, run.blocks.mask[_MEMBERS]
    for block in range(blocks.size[BLOCKS]):
        mask[block] = members[blocks.first[block]]
    _empty(run)
    return int(choose(request, machine.has, run.scratch, blocks, mask, run.choice))


@inlined
def _empty(run: Run) -> None:
    """Let all nodes be empty in ``run.scratch``."""
    for block in range(run.blocks.size[BLOCKS]):
        for what in range(run.scratch.shape[1]):
            run.scratch[run.blocks.first[block], what] = 0


@step
def _is_busy(
    request: Int64Array, machine: Machine, run: Run, allowed: UInt8Array, ready: UInt8Array, members: UInt8Array
) -> tuple[bool, int]:
    """Tell whether a job waits for others to end, and not for nodes to be there again; and how many nodes it needs."""
    blocks = run.blocks
    _empty(run)
    enough = free = 0
    for block in range(blocks.size[BLOCKS]):
        node = blocks.first[block]
        if allowed[block] and machine.has[node, MEMORY] >= max(request[NODE_MEMORY], request[CORE_MEMORY]):
            jobs = run.used[node, JOBS]
            enough += blocks.nodes[block]
            if ready[block] == 1 and jobs < (1 if request[WHOLE] == 1 else ALONE):
                free += blocks.nodes[block]
    possible = 0
    if free >= request[NODES]:
        possible = choose(request, machine.has, run.scratch, blocks, allowed, run.choice)
    nodes = possible if possible > 0 else _choose_empty(request, machine, run, members)
    return possible > 0 or enough != free, max(nodes, request[NODES])
