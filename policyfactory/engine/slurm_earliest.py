"""When a job could start, and on which of the nodes that it may use, by the limits of the running jobs.

The rules are those of select/cons_tres of Slurm 22.05, found in its source.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Int64Array, UInt8Array
from policyfactory.core.jit import inlined, step
from policyfactory.engine.slurm_blocks import BLOCKS, LISTED, Blocks
from policyfactory.engine.slurm_demand import (
    ALONE,
    CORES,
    GPUS,
    JOBS,
    MEMORY,
    NODE_CORES,
    NODES,
    TOTAL_CORES,
    WHOLE,
    asks_cores_alone,
    cores_for,
    taken_gpus,
    taken_memory,
)
from policyfactory.engine.slurm_holding import may_fit
from policyfactory.engine.slurm_jobs import Jobs, Machine, Settings
from policyfactory.engine.slurm_nodes import choose, choose_by_cores
from policyfactory.engine.slurm_state import HORIZON, NOW, RUNNING, Run

__all__ = [
    "asked",
    "choose_now",
    "could_start",
    "count_usable",
    "earliest",
    "is_young",
    "list_given",
]

# Columns of `Run.given` and `Run.given_part`.
_FROM, _ENDS, _SHARES_NOT = range(3)
_NODE, _NODES, _CORES = range(3)
# Running jobs are let end in steps of so many seconds, doubled each time; so many at once are not tested after each.
_STEP = 30
_MOST_REMOVED = 200
_NEVER = 2**60
_YEAR = 365 * 86400


@step
def _believed_end(jobs: Jobs, run: Run, settings: Settings, job: int) -> int:
    """Return when a running job is believed to end: by its limit, or soon if that is over."""
    state, end = run.state, run.start[job] + jobs.limit[job]
    if end > state[NOW]:
        state[HORIZON] = min(state[HORIZON], end)
        return int(end)
    if settings.overrun >= _YEAR:
        state[HORIZON] = state[NOW]
        return int(state[NOW] + min(jobs.limit[job], _YEAR))
    state[HORIZON] = min(state[HORIZON], end + settings.kill_wait + settings.overrun)
    return int(max(end + settings.kill_wait + settings.overrun, state[NOW] + 1))


@inlined
def earliest(
    jobs: Jobs,
    machine: Machine,
    run: Run,
    settings: Settings,
    job: int,
    allowed: UInt8Array,
    now_only: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
    later: int,
) -> tuple[int, int]:
    """Find when and where a job could start on some nodes, by the limits of the running jobs.

    Parameters
    ----------
    jobs : Jobs
    machine : Machine
    run : Run
        ``choice`` is filled in; what is given back is listed (`list_given`).
    settings : Settings
    job : int
        Its number.
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    now_only : bool
        Whether only the present is looked at.
    later : int
        A start after this time (s) does not count; 0: any does.

    Returns
    -------
    start : int
        Seconds; -1 if there is none.
    nodes : int
        How many are in ``run.choice``.
    """
    request, now, blocks = jobs.request[job], run.state[NOW], run.blocks
    by_cores = asks_cores_alone(request)
    if by_cores:
        nodes, cores = count_usable(request, blocks, allowed)
    else:
        nodes, cores = _look_ahead(request, machine, run, allowed)
    if nodes >= request[NODES] and cores >= request[TOTAL_CORES]:
        chosen = choose_now(jobs, machine, run, job, allowed)
        if chosen > 0:
            return now, chosen
    if now_only:
        return -1, 0
    for block in range(blocks.size[BLOCKS]):
        blocks.ahead[block] = blocks.free[block]
    window, bound, at, last, removed = _STEP, -1, 0, -1, 0
    while True:
        # Jobs end until one is reached that ends beyond the window; then the job is tried.
        reached, following = at >= run.state[RUNNING], _NEVER
        if not reached:
            other, end = at, run.given[at, _ENDS]
            more_nodes, more_cores, touched = (
                _end_of_cores(run, allowed, request, at) if by_cores else _end(jobs, machine, run, allowed, request, at)
            )
            at += 1
            if not touched:
                continue
            nodes, cores, last = nodes + more_nodes, cores + more_cores, other
            if 0 < later < end:
                return -1, 0
            if bound < 0:
                bound = end + _STEP - end % _STEP
            if at < run.state[RUNNING]:
                following = run.given[at, _ENDS]
                if following <= bound + window:
                    removed += 1
                    if removed > _MOST_REMOVED:
                        removed, last = 0, -1
                    continue
        if last < 0:
            return -1, 0
        removed = 0
        window *= 2
        while following < _NEVER and following > bound + window:
            window *= 2
        if nodes >= request[NODES] and cores >= request[TOTAL_CORES]:
            if by_cores:
                chosen = choose_by_cores(request, blocks, blocks.ahead, allowed, run.choice)
            else:
                chosen = choose(request, machine.has, run.scratch, blocks, allowed, run.choice)
            if chosen > 0:
                return _believed_end(jobs, run, settings, run.running[last]), chosen
        if reached:
            return -1, 0
        last = -1


@inlined
def list_given(jobs: Jobs, run: Run) -> None:
    """List which nodes each running job gives back, and when the first job on each is believed to end, if not done."""
    if run.blocks.size[LISTED] == 0:
        _list_given(jobs, run)


@step
def _list_given(jobs: Jobs, run: Run) -> None:
    """List what `list_given` does."""
    blocks, to = run.blocks, 0
    for block in range(blocks.size[BLOCKS]):
        blocks.soon[block] = _NEVER
    for at in range(run.state[RUNNING]):
        other = run.running[at]
        ends = run.start[other] + jobs.limit[other]
        run.given[at, _FROM], run.given[at, _ENDS], run.given[at, _SHARES_NOT] = to, ends, jobs.request[other, WHOLE]
        place, end = run.held_from[other], run.held_from[other] + run.held_count[other]
        while place < end:
            node = run.held_node[place]
            block = blocks.of[node]
            nodes = blocks.nodes[block]
            run.given_part[to, _NODE], run.given_part[to, _NODES] = node, nodes
            run.given_part[to, _CORES] = run.held_cores[place]
            blocks.soon[block] = min(blocks.soon[block], ends)
            to += 1
            place += nodes
    run.given[run.state[RUNNING], _FROM] = to
    blocks.size[LISTED] = 1


@inlined
def could_start(request: Int64Array, blocks: Blocks, allowed: UInt8Array, time: int) -> bool:
    """Tell whether a request could be met at a time if each job there ended with the first one of its block.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    blocks : Blocks
        What is given back is listed (`list_given`).
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    time : int
        Seconds.
    """
    cores, free, count, soon = blocks.cores, blocks.free, blocks.nodes, blocks.soon
    whole, least = request[WHOLE] == 1, max(request[NODE_CORES], 1)
    nodes = total = np.int32(0)
    for block in range(blocks.size[BLOCKS]):
        # Both are read before one is chosen, or they would be gathered one by one.
        all_of, now_free = cores[block], free[block]
        have = all_of if soon[block] <= time else now_free
        usable = allowed[block] != 0 and have >= (all_of if whole else least)
        nodes = np.int32(nodes + (count[block] if usable else 0))
        total = np.int32(total + (np.int32(have * count[block]) if usable else 0))
    return bool(nodes >= request[NODES] and total >= request[TOTAL_CORES])


@step
def choose_now(jobs: Jobs, machine: Machine, run: Run, job: int, allowed: UInt8Array) -> int:
    """Choose nodes for a job as they are now; return how many (see `choose`)."""
    request, blocks = jobs.request[job], run.blocks
    if not may_fit(jobs, run, job):
        return 0
    if asks_cores_alone(request):
        return int(choose_by_cores(request, blocks, blocks.free, allowed, run.choice))
    return int(choose(request, machine.has, run.used, blocks, allowed, run.choice))


@inlined
def count_usable(request: Int64Array, blocks: Blocks, allowed: UInt8Array) -> tuple[int, int]:
    """Return how many of the allowed nodes a request can have by their free cores, and how many cores those have."""
    cores, free, count = blocks.cores, blocks.free, blocks.nodes
    least, nodes, total = max(request[NODE_CORES], 1), 0, 0
    # Two loops without branches inside: each is made of wide instructions.
    if request[WHOLE] == 1:
        for block in range(blocks.size[BLOCKS]):
            usable = allowed[block] != 0 and free[block] >= cores[block]
            nodes += count[block] if usable else 0
            total += np.int64(free[block]) * count[block] if usable else 0
    else:
        for block in range(blocks.size[BLOCKS]):
            usable = allowed[block] != 0 and free[block] >= least
            nodes += count[block] if usable else 0
            total += np.int64(free[block]) * count[block] if usable else 0
    return nodes, total


@inlined
def _look_ahead(request: Int64Array, machine: Machine, run: Run, allowed: UInt8Array) -> tuple[int, int]:
    """Fill in ``run.scratch`` as it is now; return how many nodes and cores a request can have."""
    used, blocks, nodes, cores = run.scratch, run.blocks, 0, 0
    for block in range(blocks.size[BLOCKS]):
        node = blocks.first[block]
        for what in range(used.shape[1]):
            used[node, what] = run.used[node, what]
        if allowed[block]:
            here = cores_for(request, machine.has[node], used[node], False)
            nodes += blocks.nodes[block] if here > 0 else 0
            cores += here * blocks.nodes[block]
    return nodes, cores


@step
def _end_of_cores(run: Run, allowed: UInt8Array, request: Int64Array, at: int) -> tuple[int, int, bool]:
    """Let a running job end in ``blocks.ahead``; return how many nodes and cores more a request for cores has then."""
    blocks, place, nodes, cores, touched = run.blocks, np.uint64(at), 0, 0, False
    least, whole, alone = max(request[NODE_CORES], 1), request[WHOLE] == 1, run.given[place, _SHARES_NOT] == 1
    for given in range(run.given[place, _FROM], run.given[place + np.uint64(1), _FROM]):
        part = np.uint64(given)
        node, held = run.given_part[part, _NODE], run.given_part[part, _CORES]
        block, end = np.uint64(blocks.of[np.uint64(node)]), node + run.given_part[part, _NODES]
        while node < end:
            count = blocks.nodes[block]
            if allowed[block]:
                touched = True
                before = blocks.ahead[block]
                after = blocks.cores[block] if alone else before + held
                blocks.ahead[block] = after
                enough = blocks.cores[block] if whole else least
                if after >= enough:
                    cores += (after - (before if before >= enough else 0)) * count
                    nodes += count if before < enough else 0
            node += count
            block += np.uint64(1)
    return nodes, cores, touched


@step
def _end(
    jobs: Jobs, machine: Machine, run: Run, allowed: UInt8Array, request: Int64Array, at: int
) -> tuple[int, int, bool]:
    """Let a running job end in ``run.scratch``; return how many nodes and cores more a request can have then."""
    used, blocks, other, nodes, cores, touched = run.scratch, run.blocks, run.running[at], 0, 0, False
    for given in range(run.given[at, _FROM], run.given[at + 1, _FROM]):
        node, held = run.given_part[given, _NODE], run.given_part[given, _CORES]
        block, end = blocks.of[node], node + run.given_part[given, _NODES]
        while node < end:
            count = blocks.nodes[block]
            if allowed[block]:
                touched = True
                before = cores_for(request, machine.has[node], used[node], False)
                used[node, CORES] -= held
                used[node, MEMORY] -= taken_memory(jobs.request[other], machine.has[node], held)
                used[node, GPUS] -= taken_gpus(jobs.request[other], machine.has[node])
                used[node, JOBS] -= ALONE if jobs.request[other, WHOLE] == 1 else 1
                after = cores_for(request, machine.has[node], used[node], False)
                nodes += (int(after > 0) - int(before > 0)) * count
                cores += (after - before) * count
            node += count
            block += 1
    return nodes, cores, touched


@inlined
def is_young(run: Run, settings: Settings, job: int) -> bool:
    """Tell whether a job has not waited long enough for a reservation (bf_min_age_reserve)."""
    state, old = run.state, run.ready[job] + settings.least_age
    if state[NOW] < old:
        state[HORIZON] = min(state[HORIZON], old)
    return bool(state[NOW] < old)


@inlined
def asked(request: Int64Array, machine: Machine, run: Run, chosen: int) -> tuple[int, int, int, int]:
    """Return the nodes, cores, MB and GPUs that a job has on its chosen nodes."""
    cores = memory = gpus = 0
    choice = run.choice
    for part in range(choice.parts[0]):
        many, has = choice.many[part], machine.has[choice.node[part]]
        cores += many * choice.cores[part]
        memory += many * taken_memory(request, has, choice.cores[part])
        gpus += many * taken_gpus(request, has)
    return chosen, cores, memory, gpus
