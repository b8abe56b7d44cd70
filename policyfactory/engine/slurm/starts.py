"""When a job could start, and which running jobs are stopped so that it does.

By the limits of the running jobs. The rules are those of select/cons_tres of Slurm (versions.py), found in its sources.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.jit import inlined, joined, step
from policyfactory.core.options import Int64Array, UInt8Array
from policyfactory.engine.slurm.holding import (
    asked,
    expected_end,
    may_fit,
    weigh,
)
from policyfactory.engine.slurm.jobs import (
    SlurmJobs,
    SlurmMachine,
    SlurmSettings,
    is_limited,
)
from policyfactory.engine.slurm.nodes import (
    ALONE,
    BLOCKS,
    CORES,
    GPUS,
    JOBS,
    LISTED,
    MEMORY,
    NODE_CORES,
    NODES,
    TOTAL_CORES,
    WHOLE,
    asks_cores_alone,
    choose,
    choose_by_cores,
    cores_for,
    count_usable,
    taken_gpus,
    taken_memory,
)
from policyfactory.engine.slurm.state import (
    HORIZON,
    LEAVING,
    NOW,
    RUNNING,
    RunState,
    believed_end,
    see_processors,
)
from policyfactory.engine.slurm.stopping import (
    SlurmPreemption,
    after_gone,
    is_gone,
    list_candidates,
    mark_chosen,
    put_first,
    stop_chosen,
)
from policyfactory.engine.slurm.versions import (
    ENDS_THERE,
    GONE_AT_START,
    LOOKS_FROM_START,
    WEIGHS_ANEW,
)

# Columns of `RunState.given` and `RunState.given_part`.
_FROM, _ENDS, _SHARES_NOT = range(3)
_NODE, _NODES, _CORES = range(3)
# Running jobs are let end in steps of so many seconds, doubled each time; so many at once are not tested after each.
_STEP = 30
_MOST_REMOVED = 200
_NEVER = 2**60


@joined
def earliest(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    allowed: UInt8Array,
    begin: int,
    now_only: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
    later: int,
) -> tuple[int, int]:
    """Find when and where a job could start on some nodes, by the limits of the running jobs.

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    run : RunState
        ``choice`` is filled in; what is given back is listed (`list_given`).
    settings : SlurmSettings
    job : int
        Its number.
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    begin : int
        It cannot start before (s).
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
    by_cores, from_start = asks_cores_alone(request), settings.version >= LOOKS_FROM_START
    clean_first = settings.version >= WEIGHS_ANEW and run.state[LEAVING] > 0
    if by_cores:
        nodes, cores = count_usable(request, blocks, allowed)
    else:
        nodes, cores = _look_ahead(request, machine, run, allowed)
    if (begin <= now or not from_start) and nodes >= request[NODES] and cores >= request[TOTAL_CORES]:
        chosen = choose_now(jobs, machine, run, settings, job, allowed, clean_first)
        if chosen > 0:
            return now, chosen
    gone = list_candidates(jobs, machine, run, job, run.preemption)
    if now_only and gone == 0:
        return -1, 0
    for block in range(blocks.size[BLOCKS]):
        blocks.ahead[block] = blocks.free[block]
    window, bound, last, removed = _STEP, -1, -1, 0
    more_nodes, more_cores, first = _give_back_at_once(jobs, machine, run, settings, allowed, request, begin, gone)
    nodes, cores, ended = nodes + more_nodes, cores + more_cores, first
    if from_start or gone > 0:
        chosen = _choose_ahead(machine, run, settings, request, allowed, nodes, cores)
        if chosen > 0 or (now_only and not from_start):
            return (now if chosen > 0 else -1), chosen
    while True:
        # Jobs end until one is reached that ends beyond the window; then the job is tried.
        reached, following = ended >= run.state[RUNNING], _NEVER
        reached = reached or (from_start and 0 < later < run.given[ended, _ENDS])
        if not reached:
            other, end = ended, run.given[ended, _ENDS]
            more_nodes, more_cores, touched = _give_back(jobs, machine, run, allowed, request, ended)
            ended = after_gone(run, ended + 1, run.preemption)
            if not touched:
                continue
            nodes, cores, last = nodes + more_nodes, cores + more_cores, other
            if 0 < later < end:
                return -1, 0
            if bound < 0:
                bound = end + _STEP - end % _STEP
            if ended < run.state[RUNNING]:
                following = run.given[ended, _ENDS]
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
        chosen = _choose_ahead(machine, run, settings, request, allowed, nodes, cores)
        if chosen > 0:
            last = _last_there(run, settings, first, ended, last)
            return expected_end(jobs, run, settings, run.running[last]), chosen
        if reached:
            return -1, 0
        last = -1


@step
def _last_there(run: RunState, settings: SlurmSettings, first: int, end: int, last: int) -> int:
    """Return for the end of which running job one is planned: the last of all that have ended, or of those there.

    Those are the ones from ``first`` on, before ``end``, on a chosen node.
    """
    if settings.version < ENDS_THERE:
        return last
    blocks, choice = run.blocks, run.choice
    for position in range(end - 1, first - 1, -1):
        if is_gone(position, run.preemption):
            continue
        for given in range(run.given[position, _FROM], run.given[position + 1, _FROM]):
            for part in range(choice.parts[0]):
                if blocks.of[choice.node[part]] == blocks.of[run.given_part[given, _NODE]]:
                    return position
    return last


@step
def _choose_ahead(
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    request: Int64Array,
    allowed: UInt8Array,
    nodes: int,
    cores: int,
) -> int:
    """Choose nodes for a request as they will be, where there are so many nodes and cores; return how many."""
    if nodes < request[NODES] or cores < request[TOTAL_CORES]:
        return 0
    blocks, choice, version = run.blocks, run.choice, settings.version
    if asks_cores_alone(request):
        return int(choose_by_cores(request, blocks, blocks.weight, blocks.ahead, allowed, choice, version))
    weights = choice.weight if weigh(request, machine, run, settings, False) else blocks.weight
    return int(choose(request, machine.has, run.scratch, blocks, weights, allowed, choice, version))


@joined
def _give_back_until(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    allowed: UInt8Array,
    request: Int64Array,
    begin: int,
) -> tuple[int, int, int]:
    """Let running jobs end that end before a time, since 26.05 also at it.

    Return how many more nodes and cores there are, and how many jobs have ended.
    """
    ended = nodes = cores = 0
    more = 1 if settings.version >= GONE_AT_START else 0
    while ended < run.state[RUNNING] and run.given[ended, _ENDS] < begin + more:
        more_nodes, more_cores, _ = _give_back(jobs, machine, run, allowed, request, ended)
        nodes, cores, ended = nodes + more_nodes, cores + more_cores, ended + 1
    if begin <= run.state[NOW] and ended < run.state[RUNNING]:
        # From then on the next one is over its limit.
        run.state[HORIZON] = min(run.state[HORIZON], run.given[ended, _ENDS] + 1 - more)
    return nodes, cores, ended


@joined
def _give_back_at_once(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    allowed: UInt8Array,
    request: Int64Array,
    begin: int,
    gone: int,
) -> tuple[int, int, int]:
    """Let running jobs end that end before a time, and those that may be stopped; return what more there is.

    That are nodes and cores, and the place of the first job that ends later.
    """
    nodes = cores = ended = 0
    if settings.version >= LOOKS_FROM_START:
        nodes, cores, ended = _give_back_until(jobs, machine, run, settings, allowed, request, begin)
    if gone > 0:
        more_nodes, more_cores = _give_back_gone(jobs, machine, run, allowed, request, ended, gone, run.preemption)
        nodes, cores = nodes + more_nodes, cores + more_cores
    return nodes, cores, after_gone(run, ended, run.preemption)


@step
def _give_back_gone(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    allowed: UInt8Array,
    request: Int64Array,
    begin: int,
    gone: int,
    preemption: SlurmPreemption | None,
) -> tuple[int, int]:
    """Let the running jobs end, from a place on, that may be stopped; return nodes and cores that are free then."""
    nodes = cores = 0
    if preemption is not None:
        for candidate in range(gone):
            if preemption.candidate[candidate] >= begin:
                position = preemption.candidate[candidate]
                more_nodes, more_cores, _ = _give_back(jobs, machine, run, allowed, request, position)
                nodes, cores = nodes + more_nodes, cores + more_cores
    return nodes, cores


@step
def _give_back(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, allowed: UInt8Array, request: Int64Array, position: int
) -> tuple[int, int, bool]:
    """Let a running job end; return how many nodes and cores more a request can have then, and whether it had any."""
    if asks_cores_alone(request):
        return _end_of_cores(run, allowed, request, position)
    return _end(jobs, machine, run, allowed, request, position)


@inlined
def list_given(jobs: SlurmJobs, run: RunState) -> None:
    """List which nodes each running job gives back, and when the first job on each is believed to end, if not done."""
    if run.blocks.size[LISTED] == 0:
        _list_given(jobs, run)


@step
def _list_given(jobs: SlurmJobs, run: RunState) -> None:
    """List what `list_given` does."""
    blocks, to = run.blocks, 0
    for block in range(blocks.size[BLOCKS]):
        blocks.soon[block] = _NEVER
    for position in range(run.state[RUNNING]):
        other = run.running[position]
        ends = believed_end(jobs, run, other, run.preemption)
        run.given[position, _FROM], run.given[position, _ENDS] = to, ends
        run.given[position, _SHARES_NOT] = jobs.request[other, WHOLE]
        entry, end = run.held_from[other], run.held_from[other] + run.held_count[other]
        while entry < end:
            node = run.held_node[entry]
            block = blocks.of[node]
            nodes = blocks.nodes[block]
            run.given_part[to, _NODE], run.given_part[to, _NODES] = node, nodes
            run.given_part[to, _CORES] = run.held_cores[entry]
            blocks.soon[block] = min(blocks.soon[block], ends)
            to += 1
            entry += nodes
    run.given[run.state[RUNNING], _FROM] = to
    blocks.size[LISTED] = 1


@step
def choose_now(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    allowed: UInt8Array,
    clean_first: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Choose nodes for a job as they are now; return how many (see `choose` and `weigh`)."""
    request, blocks, choice, version = jobs.request[job], run.blocks, run.choice, settings.version
    if not may_fit(jobs, run, job):
        return 0
    weights = choice.weight if weigh(request, machine, run, settings, clean_first) else blocks.weight
    if asks_cores_alone(request):
        return int(choose_by_cores(request, blocks, weights, blocks.free, allowed, choice, version))
    return int(choose(request, machine.has, run.used, blocks, weights, allowed, choice, version))


@joined
def _look_ahead(request: Int64Array, machine: SlurmMachine, run: RunState, allowed: UInt8Array) -> tuple[int, int]:
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
def _end_of_cores(run: RunState, allowed: UInt8Array, request: Int64Array, position: int) -> tuple[int, int, bool]:
    """Let a running job end in ``blocks.ahead``; return how many nodes and cores more a request for cores has then."""
    blocks, row, nodes, cores, touched = run.blocks, np.uint64(position), 0, 0, False
    least, whole, alone = max(request[NODE_CORES], 1), request[WHOLE] == 1, run.given[row, _SHARES_NOT] == 1
    for given in range(run.given[row, _FROM], run.given[row + np.uint64(1), _FROM]):
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
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, allowed: UInt8Array, request: Int64Array, position: int
) -> tuple[int, int, bool]:
    """Let a running job end in ``run.scratch``; return how many nodes and cores more a request can have then."""
    used, blocks, other, nodes, cores, touched = run.scratch, run.blocks, run.running[position], 0, 0, False
    for given in range(run.given[position, _FROM], run.given[position + 1, _FROM]):
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


# Which jobs are stopped so that another fits (select/cons_tres, _run_now) ---------------------------------------------


# What came of looking for jobs to stop: none would do; limits are against it; some were stopped, or were before.
NOBODY, OVER_LIMIT, OTHERS_STOP = range(3)


@step
def stop_for(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    allowed: UInt8Array,
    preemption: SlurmPreemption | None,
) -> int:
    """Stop jobs so that a job can start on some nodes later; tell what came of it."""
    if preemption is not None:
        count, passes, last = list_candidates(jobs, machine, run, job, preemption), 0, 0
        list_given(jobs, run)
        while True:
            last, chosen = _until_it_fits(jobs, machine, run, settings, job, allowed, count, preemption)
            if chosen == 0:
                return NOBODY
            mark_chosen(run, preemption)
            passes += 1
            if passes - 1 > preemption.reorders or count <= passes:
                break
            put_first(run, last, preemption)
        nodes, processors, memory, gpus = asked(jobs, machine, run, job, chosen)
        see_processors(jobs, run, settings, job, processors)
        if is_limited(jobs, run.limits, run.choice, job, nodes, processors, memory, gpus, True):
            return OVER_LIMIT
        stop_chosen(jobs, machine, run, settings, job, last, preemption)
        return OTHERS_STOP
    return NOBODY


@step
def _until_it_fits(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    allowed: UInt8Array,
    count: int,
    preemption: SlurmPreemption,
) -> tuple[int, int]:
    """Let candidates end one by one until the job fits; return which was the last, and on how many nodes it fits."""
    request, blocks = jobs.request[job], run.blocks
    if asks_cores_alone(request):
        nodes, cores = count_usable(request, blocks, allowed)
    else:
        nodes, cores = _look_ahead(request, machine, run, allowed)
    for block in range(blocks.size[BLOCKS]):
        blocks.ahead[block] = blocks.free[block]
    for index in range(count):
        position = preemption.candidate[index]
        more_nodes, more_cores, touched = _give_back(jobs, machine, run, allowed, request, position)
        nodes, cores = nodes + more_nodes, cores + more_cores
        if not touched:
            continue
        chosen = _choose_ahead(machine, run, settings, request, allowed, nodes, cores)
        if chosen > 0:
            return index, chosen
    return -1, 0
