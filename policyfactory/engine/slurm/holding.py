"""What running jobs hold of the nodes under Slurm's rules: taken at their start, given back at their end."""

from __future__ import annotations

import numpy as np

from policyfactory.core.jit import inlined, joined, step
from policyfactory.core.options import Int64Array, UInt8Array
from policyfactory.engine.events import push_end
from policyfactory.engine.slurm.jobs import SEVERAL, SlurmJobs, SlurmMachine, SlurmSettings, count_in_limits
from policyfactory.engine.slurm.nodes import (
    ALONE,
    BLOCKS,
    CORES,
    GPUS,
    JOBS,
    LISTED,
    MEMORY,
    NODE_GPUS,
    NODES,
    TOTAL_CORES,
    WHOLE,
    WORD,
    WORDS,
    Blocks,
    NodeChoice,
    block_at,
    mark_edges,
    split_block,
    taken_gpus,
    taken_memory,
)
from policyfactory.engine.slurm.plan import BackfillPlan, split_in_plan
from policyfactory.engine.slurm.state import (
    CHANGED,
    FREE_CORES,
    FREE_NODES,
    HELD,
    HORIZON,
    IDLE_NODES,
    NOW,
    RUNNING,
    VERSION,
    RunState,
    believed_end,
)
from policyfactory.engine.slurm.versions import WEIGHS_ANEW

_GPUS_TOLD = 256  # so many or more GPUs of a node are as good as one less
_YEAR = 365 * 86400
_CHECKS = 30  # seconds from one check of time limits to the next


@step
def count_room(machine: SlurmMachine, run: RunState, node: int, sign: int) -> None:
    """Count a node that is up in the rooms of its partitions, or count it no more."""
    if run.up[node] == 0:
        return
    free = machine.has[node, CORES] - run.used[node, CORES]
    idle = run.used[node, JOBS] == 0
    last = len(run.rooms) - 1
    for room in range(last + 1):
        if room == last or machine.partition[room, node] == 1:
            run.rooms[room, FREE_NODES] += sign * (free > 0)
            run.rooms[room, IDLE_NODES] += sign * idle
            run.rooms[room, FREE_CORES] += sign * free


@inlined
def may_fit(jobs: SlurmJobs, run: RunState, job: int) -> bool:
    """Tell whether a job's partition has as many free nodes and cores as it needs: if not, it cannot start now."""
    room, request = run.rooms[jobs.partition[job]], jobs.request[job]
    nodes = room[IDLE_NODES] if request[WHOLE] == 1 else room[FREE_NODES]
    return bool(request[NODES] <= nodes and request[TOTAL_CORES] <= room[FREE_CORES])


@step
def _count_held(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, job: int, sign: int) -> None:
    """Count what a job holds as taken of its nodes and limits, or as taken no more."""
    used = run.used
    for entry in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
        node = run.held_node[entry]
        count_room(machine, run, node, -1)
        used[node, CORES] += sign * run.held_cores[entry]
        used[node, MEMORY] += sign * taken_memory(jobs.request[job], machine.has[node], run.held_cores[entry])
        used[node, GPUS] += sign * taken_gpus(jobs.request[job], machine.has[node])
        used[node, JOBS] += sign * (ALONE if jobs.request[job, WHOLE] == 1 else 1)
        run.free[node] = -1 if used[node, JOBS] >= ALONE else machine.has[node, CORES] - used[node, CORES]
        count_room(machine, run, node, 1)
    first, last = run.held_from[job], run.held_from[job] + run.held_count[job]
    mark_edges(run.blocks, run.held_node, run.held_cores, first, last, sign)
    nodes, cores = run.held_node[first:last], run.held_cores[first:last]
    count_in_limits(jobs, machine, run.limits, job, nodes, cores, sign)


@joined
def _make_room(run: RunState, count: int) -> None:
    """Move the nodes of the running jobs together at the begin of the arena if its end is reached."""
    if run.state[HELD] + count <= len(run.held_node):
        return
    # By their places, so that nothing is overwritten that is still to be moved.
    to = done = 0
    for _ in range(run.state[RUNNING]):
        job = -1
        for position in range(run.state[RUNNING]):
            other = run.running[position]
            if run.held_from[other] >= done and (job < 0 or run.held_from[other] < run.held_from[job]):
                job = other
        first = run.held_from[job]
        done = first + run.held_count[job]
        run.held_from[job] = to
        for entry in range(first, first + run.held_count[job]):
            run.held_node[to], run.held_cores[to] = run.held_node[entry], run.held_cores[entry]
            to += 1
    run.state[HELD] = to


@inlined
def _split(plan: BackfillPlan, blocks: Blocks, block: int, nodes: int) -> None:
    """Split a block in two, so many nodes in the first one, wherever blocks are counted."""
    split_in_plan(plan, block, blocks.size[BLOCKS])
    split_block(blocks, block, nodes)


@step
def part_blocks(plan: BackfillPlan, blocks: Blocks, choice: NodeChoice) -> None:
    """Split blocks until those that were chosen are whole; note these in the choice.

    Parameters
    ----------
    plan : BackfillPlan
        Its sets are of the same blocks.
    blocks : Blocks
    choice : NodeChoice
        ``bits`` are filled in.
    """
    for part in range(choice.parts[0]):
        node, many = choice.node[part], choice.many[part]
        block = block_at(blocks, node)
        before = node - blocks.first[block]
        if before > 0:
            _split(plan, blocks, block, before)
            block += 1
        if many < blocks.nodes[block]:
            _split(plan, blocks, block, many)
    for word in range(blocks.size[WORDS]):
        choice.bits[word] = np.uint64(0)
    for part in range(choice.parts[0]):
        block = blocks.of[choice.node[part]]
        choice.bits[block // WORD] |= np.uint64(1) << np.uint64(block % WORD)


@inlined
def check_after(settings: SlurmSettings, time: int) -> int:
    """Return when time limits are checked next, from a time on."""
    return settings.origin + max((time - settings.origin + _CHECKS - 1) // _CHECKS, 1) * _CHECKS


@step
def start_job(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings, job: int, chosen: int, by: int
) -> None:
    """Start a job on the nodes of ``run.choice``, which are whole blocks (`part_blocks`).

    Parameters
    ----------
    jobs : SlurmJobs
    run : RunState
        Changed; the queue is not.
    settings : SlurmSettings
    job, chosen : int
        Its number; its nodes.
    by : int
        1: the main pass, 2: the backfilling pass.
    """
    now = run.state[NOW]
    _make_room(run, chosen)
    run.held_from[job], run.held_count[job] = run.state[HELD], chosen
    choice, blocks = run.choice, run.blocks
    for part in range(choice.parts[0]):
        for node in range(choice.node[part], choice.node[part] + choice.many[part]):
            run.held_node[run.state[HELD]], run.held_cores[run.state[HELD]] = node, choice.cores[part]
            run.state[HELD] += 1
    _count_held(jobs, machine, run, job, 1)
    for part in range(choice.parts[0]):
        blocks.free[blocks.of[choice.node[part]]] = run.free[choice.node[part]]
    blocks.size[LISTED] = 0
    run.start[job], run.by[job] = now, by
    run.end[job] = min(
        now + max(jobs.run_time[job], 1), check_after(settings, now + jobs.limit[job] + settings.overrun)
    )
    reservation = jobs.reservation[job]
    if reservation >= 0:
        run.end[job] = min(run.end[job], check_after(settings, machine.reservation[reservation, 1] + 1))
    push_end(run.heap, run.end[job], job)
    # By believed end; of equal ones, the one with the lower number first.
    position = run.state[RUNNING]
    believed = now + jobs.limit[job]
    while position > 0:
        other = run.running[position - 1]
        end = believed_end(jobs, run, other, run.preemption)
        if end < believed or (end == believed and jobs.number[other] < jobs.number[job]):
            break
        run.running[position] = other
        position -= 1
    run.running[position] = job
    run.state[RUNNING] += 1
    run.state[CHANGED] = now
    run.state[VERSION] += 1
    if jobs.in_array[job] >= SEVERAL:
        tell_rows(jobs, run, job)


@step
def tell_rows(jobs: SlurmJobs, run: RunState, job: int) -> None:
    """Let all rows of a job of several partitions say what the started one does: they leave the queue."""
    row = jobs.first[job]
    while row >= 0:
        run.start[row], run.end[row], run.by[row] = run.start[job], run.end[job], run.by[job]
        row = jobs.other[row]


@step
def give_back(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, job: int) -> None:
    """Give back what a running job holds."""
    _count_held(jobs, machine, run, job, -1)
    position = 0
    while run.running[position] != job:
        position += 1
    for later in range(position, run.state[RUNNING] - 1):
        run.running[later] = run.running[later + 1]
    run.held_count[job] = 0
    run.state[RUNNING] -= 1
    run.state[CHANGED] = run.state[NOW]
    run.state[VERSION] += 1


@step
def asked(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, job: int, chosen: int) -> tuple[int, int, int, int]:
    """Return the nodes, processors, MB and GPUs that a job has on its chosen nodes."""
    cores = memory = gpus = 0
    request, choice = jobs.request[job], run.choice
    for part in range(choice.parts[0]):
        many, has = choice.many[part], machine.has[choice.node[part]]
        cores += many * choice.cores[part]
        memory += many * taken_memory(request, has, choice.cores[part])
        gpus += many * taken_gpus(request, has)
    return chosen, cores * jobs.threads[job], memory, gpus


@inlined
def weigh(
    request: Int64Array,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    clean_first: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> bool:
    """Fill in the weights of blocks for one request, and tell whether they are not the nodes' own.

    Of nodes of one weight those with more GPUs are lighter for a job that gets all of them, and with ``clean_first``
    those where a job is being cleaned up are heavier.
    """
    gpus = settings.version >= WEIGHS_ANEW and request[WHOLE] == 1 and request[NODE_GPUS] > 0
    if not gpus and not clean_first:
        return False
    blocks = run.blocks
    for block in range(blocks.size[BLOCKS]):
        node = blocks.first[block]
        weight = 2 * blocks.weight[block] + (clean_first and run.completing[node] > 0)
        run.choice.weight[block] = weight * _GPUS_TOLD - (min(machine.has[node, GPUS], _GPUS_TOLD - 1) if gpus else 0)
    return True


@inlined
def is_young(run: RunState, settings: SlurmSettings, job: int) -> bool:
    """Tell whether a job has not waited long enough for a reservation (bf_min_age_reserve)."""
    state, old = run.state, run.ready[job] + settings.least_age
    if state[NOW] < old:
        state[HORIZON] = min(state[HORIZON], old)
    return bool(state[NOW] < old)


@step
def expected_end(jobs: SlurmJobs, run: RunState, settings: SlurmSettings, job: int) -> int:
    """Return when a running job is believed to end: by its limit, or soon if that is over."""
    state, end = run.state, believed_end(jobs, run, job, run.preemption)
    if end > state[NOW]:
        state[HORIZON] = min(state[HORIZON], end)
        return int(end)
    if settings.overrun >= _YEAR:
        state[HORIZON] = state[NOW]
        return int(state[NOW] + min(jobs.limit[job], _YEAR))
    state[HORIZON] = min(state[HORIZON], end + settings.kill_wait + settings.overrun)
    return int(max(end + settings.kill_wait + settings.overrun, state[NOW] + 1))


# Which nodes a job may use from a time on -----------------------------------------------------------------------------

# Those of its partition that are up, and what reservations leave of them.
#
# The rules are those of the reservations of Slurm (versions.py), found in their source.


# How often a maintenance of the whole partition is waited for.
_TRIES = 10
# Kinds of reservations: who has no node beside it waits for its end; a maintenance, whose own jobs pass over all
# others; one whose jobs pass over all others but a maintenance.
CLOSES, MAINTAINS, OVERLAPS = 1, 2, 4


@step
def allow(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, job: int, begin: int, allowed: UInt8Array
) -> tuple[int, bool]:
    """Fill in which blocks a job may use from a time on, by its partition and the reservations.

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    run : RunState
    job, begin : int
        Its number; seconds.
    allowed : uint8 array (N,)
        Filled in.

    Returns
    -------
    begin : int
        Later than given if a maintenance of the whole partition is to be waited for; -1 if the job is not to be
        planned now.
    overlaps : bool
        Whether a reservation takes nodes of the partition away.
    """
    partition, blocks = machine.partition[jobs.partition[job]], run.blocks
    reservation = jobs.reservation[job]
    overlaps = False
    for _ in range(_TRIES):
        whole = -1
        allow_members(blocks, run.up, partition, allowed)
        if reservation >= 0:
            if begin < machine.reservation[reservation, 0] or begin > machine.reservation[reservation, 1]:
                return -1, False
            run.state[HORIZON] = min(run.state[HORIZON], machine.reservation[reservation, 1] + 1)
            for block in range(blocks.size[BLOCKS]):
                allowed[block] &= machine.reserved[reservation, blocks.first[block]]
        for other in range(len(machine.reservation)):
            begins, ends = machine.reservation[other, 0], machine.reservation[other, 1]
            if other != reservation and begins >= begin + jobs.limit[job] and begin == run.state[NOW]:
                run.state[HORIZON] = min(run.state[HORIZON], begins - jobs.limit[job] + 1)
            if other == reservation or begins >= begin + jobs.limit[job] or ends <= begin:
                continue
            if reservation >= 0 and _passes_over(machine.reservation[reservation, 3], machine.reservation[other, 3]):
                continue
            if machine.reservation[other, 2] > run.state[NOW]:
                continue
            inside = overlap = 0
            for block in range(blocks.size[BLOCKS]):
                node = blocks.first[block]
                inside += partition[node] > machine.reserved[other, node]
                overlap += (partition[node] if reservation < 0 else allowed[block]) & machine.reserved[other, node]
                allowed[block] &= 1 - machine.reserved[other, node]
            if inside == 0 and machine.reservation[other, 3] & CLOSES and reservation < 0:
                whole = other
                break
            overlaps = overlaps or overlap > 0
        if whole < 0:
            return begin, overlaps
        begin = machine.reservation[whole, 1]
    return -1, False


@joined
def _passes_over(flags: int, others: int) -> bool:
    """Tell whether the jobs of a reservation may have the nodes of another, by their kinds (job_test_resv)."""
    return bool(flags & MAINTAINS or (flags & OVERLAPS and not others & MAINTAINS))


@inlined
def is_open(machine: SlurmMachine, reservation: int, now: int) -> bool:
    """Tell whether jobs can start in a reservation at this time."""
    begin = max(machine.reservation[reservation, 0], machine.reservation[reservation, 2])
    return bool(begin <= now < machine.reservation[reservation, 1])


@step
def allow_members(blocks: Blocks, up: UInt8Array, members: UInt8Array, allowed: UInt8Array) -> None:
    """Fill in a mask with the blocks of some nodes that are up; it is 0 up to a whole word of bits."""
    for block in range(blocks.size[BLOCKS]):
        allowed[block] = up[blocks.first[block]] & members[blocks.first[block]]
    for block in range(blocks.size[BLOCKS], WORD * blocks.size[WORDS]):
        allowed[block] = 0


@joined
def after_reservations(machine: SlurmMachine, settings: SlurmSettings, now: int, begin: int, later: int) -> int:
    """Return when to try again where reservations take nodes away: when the next one ends, if that is before."""
    end, resolution = 0, settings.resolution
    for other in range(len(machine.reservation)):
        if machine.reservation[other, 2] > now or machine.reservation[other, 1] <= now:
            continue
        if begin <= machine.reservation[other, 1] and (end == 0 or machine.reservation[other, 1] < end):
            end = machine.reservation[other, 1]
    free_again = (end + resolution - 1) // resolution * resolution + 1
    window_end = (now + settings.window) // resolution * resolution
    return int(free_again if 1 < free_again < window_end and (later == 0 or free_again < later) else later)
