"""What running jobs hold of the nodes under Slurm's rules: taken at their start, given back at their end."""

from __future__ import annotations

import numpy as np

from policyfactory.core.jit import inlined, step
from policyfactory.engine.running import push_end
from policyfactory.engine.slurm_blocks import BLOCKS, LISTED, WORD, WORDS, Blocks, block_at, mark_edges, split_block
from policyfactory.engine.slurm_demand import (
    ALONE,
    CORES,
    GPUS,
    JOBS,
    MEMORY,
    NODES,
    TOTAL_CORES,
    WHOLE,
    taken_gpus,
    taken_memory,
)
from policyfactory.engine.slurm_jobs import Jobs, Machine, Settings
from policyfactory.engine.slurm_limits import count_in_limits
from policyfactory.engine.slurm_nodes import Choice
from policyfactory.engine.slurm_plan import Plan, split_in_plan
from policyfactory.engine.slurm_state import (
    CHANGED,
    FREE_CORES,
    FREE_NODES,
    HELD,
    IDLE_NODES,
    NOW,
    RUNNING,
    VERSION,
    Run,
)

__all__ = ["count_room", "give_back", "may_fit", "part_blocks", "start_job"]

_CHECKS = 30  # seconds from one check of time limits to the next


@inlined
def count_room(machine: Machine, run: Run, node: int, sign: int) -> None:
    """Count a node that is up in the rooms of its partitions, or count it no more."""
    if run.up[node] == 0:
        return
    free = machine.has[node, CORES] - run.used[node, CORES]
    idle = run.used[node, JOBS] == 0
    last = len(run.rooms) - 1
    for at in range(last + 1):
        if at == last or machine.partition[at, node] == 1:
            run.rooms[at, FREE_NODES] += sign * (free > 0)
            run.rooms[at, IDLE_NODES] += sign * idle
            run.rooms[at, FREE_CORES] += sign * free


@inlined
def may_fit(jobs: Jobs, run: Run, job: int) -> bool:
    """Tell whether a job's partition has as many free nodes and cores as it needs: if not, it cannot start now."""
    room, request = run.rooms[jobs.partition[job]], jobs.request[job]
    nodes = room[IDLE_NODES] if request[WHOLE] == 1 else room[FREE_NODES]
    return bool(request[NODES] <= nodes and request[TOTAL_CORES] <= room[FREE_CORES])


@step
def _take(jobs: Jobs, machine: Machine, run: Run, job: int, sign: int) -> None:
    """Count what a job holds as taken of its nodes and limits, or as taken no more."""
    used = run.used
    for at in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
        node = run.held_node[at]
        count_room(machine, run, node, -1)
        used[node, CORES] += sign * run.held_cores[at]
        used[node, MEMORY] += sign * taken_memory(jobs.request[job], machine.has[node], run.held_cores[at])
        used[node, GPUS] += sign * taken_gpus(jobs.request[job], machine.has[node])
        used[node, JOBS] += sign * (ALONE if jobs.request[job, WHOLE] == 1 else 1)
        run.free[node] = -1 if used[node, JOBS] >= ALONE else machine.has[node, CORES] - used[node, CORES]
        count_room(machine, run, node, 1)
    first, last = run.held_from[job], run.held_from[job] + run.held_count[job]
    mark_edges(run.blocks, run.held_node, run.held_cores, first, last, sign)
    nodes, cores = run.held_node[first:last], run.held_cores[first:last]
    count_in_limits(jobs, machine, run.limits, job, nodes, cores, sign)


@step
def _make_room(run: Run, count: int) -> None:
    """Move the nodes of the running jobs together at the begin of the arena if its end is reached."""
    if run.state[HELD] + count <= len(run.held_node):
        return
    # By their places, so that nothing is overwritten that is still to be moved.
    to = done = 0
    for _ in range(run.state[RUNNING]):
        job = -1
        for place in range(run.state[RUNNING]):
            other = run.running[place]
            if run.held_from[other] >= done and (job < 0 or run.held_from[other] < run.held_from[job]):
                job = other
        first = run.held_from[job]
        done = first + run.held_count[job]
        run.held_from[job] = to
        for at in range(first, first + run.held_count[job]):
            run.held_node[to], run.held_cores[to] = run.held_node[at], run.held_cores[at]
            to += 1
    run.state[HELD] = to


@inlined
def _split(plan: Plan, blocks: Blocks, block: int, nodes: int) -> None:
    """Split a block in two, so many nodes in the first one, wherever blocks are counted."""
    split_in_plan(plan, block, blocks.size[BLOCKS])
    split_block(blocks, block, nodes)


@step
def part_blocks(plan: Plan, blocks: Blocks, choice: Choice) -> None:
    """Split blocks until those that were chosen are whole; note these in the choice.

    Parameters
    ----------
    plan : Plan
        Its sets are of the same blocks.
    blocks : Blocks
    choice : Choice
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
def _check_after(settings: Settings, time: int) -> int:
    """Return when time limits are checked next, from a time on."""
    return settings.origin + max((time - settings.origin + _CHECKS - 1) // _CHECKS, 1) * _CHECKS


@step
def start_job(jobs: Jobs, machine: Machine, run: Run, settings: Settings, job: int, chosen: int, by: int) -> None:
    """Start a job on the nodes of ``run.choice``, which are whole blocks (`part_blocks`).

    Parameters
    ----------
    jobs : Jobs
    run : Run
        Changed; the queue is not.
    settings : Settings
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
    _take(jobs, machine, run, job, 1)
    for part in range(choice.parts[0]):
        blocks.free[blocks.of[choice.node[part]]] = run.free[choice.node[part]]
    blocks.size[LISTED] = 0
    run.start[job], run.by[job] = now, by
    run.end[job] = min(
        now + max(jobs.run_time[job], 1), _check_after(settings, now + jobs.limit[job] + settings.overrun)
    )
    reservation = jobs.reservation[job]
    if reservation >= 0:
        run.end[job] = min(run.end[job], _check_after(settings, machine.reservation[reservation, 1] + 1))
    push_end(run.heap, run.end[job], job)
    # By believed end; of equal ones, the one with the lower number first.
    at = run.state[RUNNING]
    believed = now + jobs.limit[job]
    while at > 0:
        other = run.running[at - 1]
        end = run.start[other] + jobs.limit[other]
        if end < believed or (end == believed and jobs.number[other] < jobs.number[job]):
            break
        run.running[at] = other
        at -= 1
    run.running[at] = job
    run.state[RUNNING] += 1
    run.state[CHANGED] = now
    run.state[VERSION] += 1


@step
def give_back(jobs: Jobs, machine: Machine, run: Run, job: int) -> None:
    """Give back what a running job holds."""
    _take(jobs, machine, run, job, -1)
    at = 0
    while run.running[at] != job:
        at += 1
    for place in range(at, run.state[RUNNING] - 1):
        run.running[place] = run.running[place + 1]
    run.held_count[job] = 0
    run.state[RUNNING] -= 1
    run.state[CHANGED] = run.state[NOW]
    run.state[VERSION] += 1
