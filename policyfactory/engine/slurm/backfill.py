"""Slurm's backfilling pass: every job of the queue in its order is started, or gets a reservation.

The rules are those of sched/backfill and select/cons_tres of Slurm 22.05 and 24.11, found in their sources. When a job
could start is found by letting running jobs end, by their limits, in ever larger steps; among the nodes that no
reservation of the plan takes; and again from the end of each record of the plan, until it is before a reservation sets
in.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.jit import inlined, joined, step
from policyfactory.core.options import Int64Array, UInt8Array
from policyfactory.engine.slurm.holding import (
    after_reservations,
    allow,
    allow_members,
    asked,
    is_open,
    is_young,
    may_fit,
    part_blocks,
    start_job,
)
from policyfactory.engine.slurm.jobs import (
    CLOSED,
    CONFINED,
    LIMITED,
    SlurmJobs,
    SlurmMachine,
    SlurmSettings,
    array_of,
    free_tasks,
    is_limited,
    is_task,
)
from policyfactory.engine.slurm.nodes import (
    BLOCKS,
    CORE_MEMORY,
    CORES,
    MEMBERS_OF,
    MEMORY,
    NODE_MEMORY,
    NODES,
    TOTAL_CORES,
    WHOLE,
    WORD,
    WORDS,
    Blocks,
    could_start,
    count_nodes,
    count_usable,
    pack,
    unpack,
)
from policyfactory.engine.slurm.plan import (
    BEGIN,
    END,
    NEXT,
    RECORDS,
    BackfillPlan,
    begin_plan,
    is_reserved,
    reaches_end,
    reserve,
    usable_nodes,
)
from policyfactory.engine.slurm.starts import (
    OVER_LIMIT,
    choose_now,
    earliest,
    list_given,
    stop_for,
)
from policyfactory.engine.slurm.state import (
    CHANGED,
    DIVIDED,
    FREE_NODES,
    HORIZON,
    LEAVING,
    NOW,
    PLAN_UNTIL,
    PLAN_VERSION,
    PLANNED,
    VERSION,
    WAITING,
    RunState,
    divide_nodes,
    see_processors,
)
from policyfactory.engine.slurm.stopping import (
    can_stop,
    is_absent,
    is_stoppable,
    keep_choice,
    restore_choice,
)
from policyfactory.engine.slurm.versions import (
    CONFLICTS_FIRST,
    COUNTS_RUNNING,
    LOOKS_FROM_START,
    LOOKS_PAST_END,
    ROUNDS_UP,
    SMALL_FIRST,
    STAYS_IN_WINDOW,
)

BACKFILLED = 2  # in `RunState.by`
# Rows of `Blocks.mask`: nodes that a job may use; those of them that no plan takes; such where nothing is being cleaned
# up. The first two of `Blocks.bits` are the same; the third is the planned nodes.
_ALLOWED, _USABLE, _READY, _PLANNED = 0, 1, 3, 2
_FAR = 2**60
# Rows of `RunState.tally`, of one pass: jobs looked at by user and partition, by partition, by association, by user;
# reservations by partition.
_OF_BOTH, _OF_PARTITION, _OF_ASSOCIATION, _OF_USER, _RESERVED = range(5)
# What came of a job: it stays as it is, was started, the plan has no room for it, its nodes are busy, or it is planned.
_LEFT, _STARTED, _FULL, _BUSY, _KEPT = range(5)
_MOST_TASKS = 20  # of an array that are planned (bf_max_job_array_resv)


@joined
def _is_over(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings, job: int) -> bool:
    """Tell whether enough jobs of its partition, user or association were looked at; count this one if not."""
    tally, partition, user, association = run.tally, jobs.partition[job], jobs.user[job], jobs.association[job]
    both = user * len(machine.tier) + partition
    if (
        0 < settings.most_of_user_partition <= tally[_OF_BOTH, both]
        or 0 < settings.most_of_partition <= tally[_OF_PARTITION, partition]
        or (association > 0 and 0 < settings.most_of_association <= tally[_OF_ASSOCIATION, association])
        or 0 < settings.most_of_user <= tally[_OF_USER, user]
    ):
        return True
    tally[_OF_BOTH, both] += 1
    tally[_OF_PARTITION, partition] += 1
    tally[_OF_ASSOCIATION, association] += 1
    tally[_OF_USER, user] += 1
    return False


@step
def _last_that_may_start(jobs: SlurmJobs, run: RunState, behind: int) -> int:
    """Return the last place in the queue before another whose job the free nodes have room for; -1 if none has.

    Only what starts now changes anything, so that reservations for jobs behind it are not made.
    """
    for position in range(behind - 1, -1, -1):
        if may_fit(jobs, run, run.waiting[position]):
            return position
    return -1


@step
def _until(plan: BackfillPlan, now: int, end: int) -> int:
    """Return until when a job that would start then, and not now to run to ``end``, meets the same records."""
    until, current, to_the_end = now + _FAR, 0, reaches_end(plan, end)
    while True:
        begins, ends, following = plan.record[current, BEGIN], plan.record[current, END], plan.record[current, NEXT]
        # The last record ends with the window, which moves on.
        if following != 0 and ends > now:
            until = min(until, ends)
            if to_the_end:
                return int(until)
        if begins > end:
            return int(min(until, now + begins - end))
        if following == 0:
            return until
        current = following


@step
def _may_still_start(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings, job: int) -> bool:
    """Tell whether the plan leaves as many nodes and cores as a job needs, to start it now."""
    request, now, end, blocks = jobs.request[job], run.state[NOW], run.state[NOW] + jobs.planned[job], run.blocks
    if blocks.size[MEMBERS_OF] != jobs.partition[job]:
        allow_members(blocks, run.up, machine.partition[jobs.partition[job]], blocks.mask[_ALLOWED])
        _pack_allowed(blocks, jobs.partition[job])
    _leave_planned(run, settings, now, end)
    nodes, cores = count_usable(request, blocks, blocks.mask[_USABLE])
    if nodes >= request[NODES] and cores >= request[TOTAL_CORES]:
        return True
    run.state[HORIZON] = min(run.state[HORIZON], _until(run.plan, now, end))
    return False


@inlined
def _pack_allowed(blocks: Blocks, partition: int) -> None:
    """Fill in the set of the allowed blocks; ``partition`` if they are all of one, or else -1."""
    pack(blocks.eights[_ALLOWED], blocks.bits[_ALLOWED], blocks.size[WORDS])
    blocks.size[MEMBERS_OF] = partition


@step
def _leave_planned(run: RunState, settings: SlurmSettings, start: int, end: int) -> int:
    """Fill in which allowed blocks are not reserved from one time to another; return when to try again (0: never)."""
    blocks, past_end = run.blocks, settings.version >= LOOKS_PAST_END
    later = usable_nodes(run.plan, start, end, blocks.bits[_ALLOWED], blocks.bits[_USABLE], past_end)
    unpack(blocks.bytes_[_USABLE], blocks.eights[_USABLE], blocks.size[WORDS])
    return int(later)


@step
def _plans_room(machine: SlurmMachine, run: RunState) -> bool:
    """Tell whether a planned node is not wholly in use."""
    room, first, planned = False, run.blocks.first, run.blocks.bits[_PLANNED]
    for block in range(run.blocks.size[BLOCKS]):
        node, is_planned = first[block], (planned[block // WORD] >> np.uint64(block % WORD)) & np.uint64(1)
        room = room or (is_planned == 1 and run.used[node, CORES] < machine.has[node, CORES])
    return room


@joined
def backfill_pass(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings) -> int:
    """Make one backfilling pass.

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    run : RunState
        Jobs are started; they stay in the queue (`close_queue`).
    settings : SlurmSettings

    Returns
    -------
    int
        How many jobs were started.
    """
    state, now = run.state, run.state[NOW]
    # The nodes that the pass before had planned are so no more, which counts as a change.
    if state[PLANNED] == 1:
        state[CHANGED] = now
    if state[PLAN_VERSION] == state[VERSION] and now < state[PLAN_UNTIL]:
        return 0
    # Whom a job may have stopped changes with time.
    horizon = now if can_stop(run.preemption) else now + _FAR
    state[PLANNED], state[PLAN_VERSION], state[HORIZON] = 0, state[VERSION], horizon
    last = _last_that_may_start(jobs, run, state[WAITING])
    if last >= 0 or settings.plan_all or run.rooms[len(run.rooms) - 1, FREE_NODES] > 0:
        started = _plan(jobs, machine, run, settings, last)
    else:
        started = 0
    state[PLAN_UNTIL] = state[HORIZON]
    return started


@joined
def _plan(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings, last: int) -> int:
    """Start jobs or reserve nodes for them, the queue in its order; ``last`` is the last place that may start."""
    now = run.state[NOW]
    run.tally[:] = 0
    # Of what the last plan split nothing is kept.
    run.state[DIVIDED] = -1
    divide_nodes(machine, run)
    blocks = run.blocks
    allow_members(blocks, run.up, run.up, blocks.mask[_READY])
    pack(blocks.eights[_READY], blocks.bits[_USABLE], blocks.size[WORDS])
    begin_plan(run.plan, now, settings.window, settings.resolution, blocks.bits[_USABLE], blocks.size[WORDS])
    blocks.size[MEMBERS_OF] = -1
    tried = started = size = tasks = 0
    last_array, rest_left = -1, False
    for word in range(blocks.size[WORDS]):
        blocks.bits[_PLANNED, word] = np.uint64(0)
    for position in range(run.state[WAITING]):
        while not settings.plan_all and position <= last and run.plan.size[RECORDS] > size:
            if _may_still_start(jobs, machine, run, settings, run.waiting[last]):
                size = run.plan.size[RECORDS]
            else:
                last = _last_that_may_start(jobs, run, last)
        # What follows is neither started, nor does it matter that more nodes are planned.
        if position > last and not settings.plan_all and _plans_room(machine, run):
            break
        job = run.waiting[position]
        partition, why = jobs.partition[job], jobs.hopeless[job]
        away = jobs.reservation[job] >= 0 and not is_open(machine, jobs.reservation[job], now)
        if away or machine.closed[partition] == 1:
            continue
        array = array_of(jobs, job)
        follows = array >= 0 and array == last_array
        if tried >= settings.most_tested and not (follows and tasks > 0):
            break
        if is_absent(jobs, run, job, run.preemption) or (follows and rest_left):
            continue
        # Only where a task is started or planned the next one of its array is looked at.
        tasks, last_array, rest_left = tasks if follows else 0, array, True
        if why == CLOSED or why == LIMITED or is_limited(jobs, run.limits, run.choice, job, 0, 0, 0, 0, False):
            continue
        now_only = (
            is_young(run, settings, job)
            or run.priority[job] < settings.least_priority
            or 0 < settings.reserved_of_partition <= run.tally[_RESERVED, partition]
        )
        if _is_over(jobs, machine, run, settings, job) or why == CONFINED:
            continue
        outcome, counted = _plan_job(jobs, machine, run, settings, job, now_only)
        tried += counted
        if outcome == _FULL:
            break
        tasks += outcome == _KEPT
        rest_left = outcome != _STARTED and (outcome != _KEPT or tasks >= _most_planned(jobs, run, settings, job))
        if outcome == _STARTED:
            started += 1
            if 0 < settings.most_started <= started:
                break
    if _plans_room(machine, run):
        run.state[PLANNED], run.state[CHANGED] = 1, now
    return started


@inlined
def _most_planned(jobs: SlurmJobs, run: RunState, settings: SlurmSettings, job: int) -> float:
    """Return how many tasks of a job's array are planned at most."""
    if not is_task(jobs, job) or settings.version < COUNTS_RUNNING:
        return _MOST_TASKS
    return min(_MOST_TASKS, free_tasks(jobs, run.limits, job))


@step
def _plan_job(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    now_only: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> tuple[int, bool]:
    """Start a job or reserve nodes for it; return the outcome and whether nodes were looked for."""
    state, now, limit = run.state, run.state[NOW], jobs.planned[job]
    blocks, usable, later, counted = run.blocks, run.blocks.mask[_USABLE], now, False
    while True:
        begin, overlaps = later, False
        # Without reservations of the site the nodes of a job are the same at all times.
        if len(machine.reservation) > 0 or blocks.size[MEMBERS_OF] != jobs.partition[job]:
            begin, overlaps = allow(jobs, machine, run, job, later, blocks.mask[_ALLOWED])
            _pack_allowed(blocks, -1 if len(machine.reservation) > 0 else jobs.partition[job])
        if begin < 0 or _is_beyond_window(run, settings, begin):
            return _LEFT, counted
        if begin == now:
            state[HORIZON] = min(state[HORIZON], _until(run.plan, now, now + limit))
        later = _leave_planned(run, settings, begin, max(begin, now) + limit)
        if overlaps:
            state[HORIZON] = now
            later = after_reservations(machine, settings, now, begin, later)
        time, chosen, counted = _look(jobs, machine, run, settings, job, usable, begin, later, counted, now_only)
        if chosen == 0:
            if later > 0 and not now_only:
                continue
            return _LEFT, counted
        nodes, processors, memory, gpus = asked(jobs, machine, run, job, chosen)
        see_processors(jobs, run, settings, job, processors)
        part_blocks(run.plan, run.blocks, run.choice)
        time = max(time, begin)
        tested = settings.version >= CONFLICTS_FIRST and time > now
        if tested and _conflicts(run, settings, time, limit):
            later = time
            continue
        if time <= now and state[LEAVING] > 0 and _is_cleaned_up(run):
            time, later, state[HORIZON] = now + 1, 0, now
        if time <= now:
            outcome = _start_now(jobs, machine, run, settings, job, usable)
            if outcome != _BUSY:
                return outcome, counted
            later, state[HORIZON] = 0, now
        if time > now and now_only:
            return _LEFT, counted
        if later > 0 and time > later:
            continue
        if time > now + settings.window:
            state[HORIZON] = min(state[HORIZON], time - settings.window)
            return _LEFT, counted
        if time > now and not tested and _conflicts(run, settings, time, limit):
            later = time
            continue
        if jobs.no_reserve[job] == 1:
            return _LEFT, counted
        if is_limited(jobs, run.limits, run.choice, job, nodes, processors, memory, gpus, False):
            return _LEFT, counted
        return _reserve(jobs, run, settings, job, time), counted


@inlined
def _is_beyond_window(run: RunState, settings: SlurmSettings, begin: int) -> bool:
    """Tell whether nothing is looked for from a time on, because the window has ended."""
    now, resolution = run.state[NOW], settings.resolution
    if settings.version < STAYS_IN_WINDOW or begin <= (now + settings.window) // resolution * resolution:
        return False
    run.state[HORIZON] = now
    return True


@step
def _look(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    job: int,
    usable: UInt8Array,
    begin: int,
    later: int,
    counted: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
    now_only: bool,  # noqa: FBT001
) -> tuple[int, int, bool]:
    """Find when a job could start and on how many nodes, before it is looked again; and whether it has counted."""
    request, blocks, small_first = jobs.request[job], run.blocks, settings.version >= SMALL_FIRST
    # A start after that would not count.
    bound = 0 if settings.plan_all and settings.version < LOOKS_FROM_START else later
    if small_first:
        _leave_small(machine, run, request, usable)
    # Once the job counts, those that it could start on by the bound are counted alone.
    if (not counted or bound == 0) and count_nodes(blocks, usable) < request[NODES]:
        return -1, 0, counted
    if not small_first:
        _leave_small(machine, run, request, usable)
    list_given(jobs, run)
    if bound > 0 and not can_stop(run.preemption) and not could_start(request, blocks, usable, bound):
        return -1, 0, True
    time, chosen = earliest(jobs, machine, run, settings, job, usable, begin, now_only, bound)
    return time, chosen, True


@inlined
def _leave_small(machine: SlurmMachine, run: RunState, request: Int64Array, usable: UInt8Array) -> None:
    """Take nodes with less memory than a job needs of each out of a mask."""
    needed = max(request[NODE_MEMORY], request[CORE_MEMORY])
    if needed > 0:
        for block in range(run.blocks.size[BLOCKS]):
            usable[block] &= machine.has[run.blocks.first[block], MEMORY] >= needed


@joined
def _is_cleaned_up(run: RunState) -> bool:
    """Tell whether the last job of a chosen node is still being cleaned up there."""
    busy = False
    for part in range(run.choice.parts[0]):
        busy = busy or run.completing[run.choice.node[part]] > 0
    return busy


@step
def _conflicts(run: RunState, settings: SlurmSettings, time: int, limit: int) -> bool:
    """Tell whether one of the chosen nodes is reserved for another in the time of a job that starts at a time."""
    first, end = _slot(run, settings, time, limit)
    return bool(is_reserved(run.plan, run.choice.bits, first, end))


@joined
def _reserve(jobs: SlurmJobs, run: RunState, settings: SlurmSettings, job: int, time: int) -> int:
    """Reserve the chosen nodes for a job that starts at a time; return what came of it."""
    first, end = _slot(run, settings, time, jobs.planned[job])
    if settings.reserved_of_partition > 0:
        run.tally[_RESERVED, jobs.partition[job]] += 1
    for word in range(run.blocks.size[WORDS]):
        run.blocks.bits[_PLANNED, word] |= run.choice.bits[word]
    if run.plan.size[RECORDS] >= settings.most_tested:
        return _FULL
    reserve(run.plan, run.choice.bits, first, end, settings.resolution)
    return _KEPT


@inlined
def _rounded_end(settings: SlurmSettings, time: int) -> int:
    """Return until when nodes are reserved for a job that ends at a time."""
    more = settings.resolution - 1 if settings.version >= ROUNDS_UP else 0
    return (time + more) // settings.resolution * settings.resolution


@step
def _slot(run: RunState, settings: SlurmSettings, time: int, limit: int) -> tuple[int, int]:
    """Return from when to when nodes are reserved for a job that starts at a time.

    It is noted when the clock, or the end of the window, comes to the next edge of that.
    """
    state, resolution = run.state, settings.resolution
    first, end = time // resolution * resolution, _rounded_end(settings, time + limit)
    past = first if first > state[NOW] // resolution * resolution else first + resolution
    state[HORIZON] = min(state[HORIZON], past)
    for edge in (first, end):
        if edge >= (state[NOW] + settings.window) // resolution * resolution:
            state[HORIZON] = min(state[HORIZON], edge + resolution - settings.window)
    return first, end


@joined
def _start_now(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings, job: int, usable: UInt8Array
) -> int:
    """Start a job on the nodes that the plan leaves it."""
    request, now = jobs.request[job], run.state[NOW]
    blocks, ready = run.blocks, run.blocks.mask[_READY]
    for block in range(blocks.size[BLOCKS]):
        ready[block] = usable[block] & (run.completing[blocks.first[block]] == 0)
    keep_choice(run, run.preemption)
    # Without the nodes that are being cleaned up it may get others than it was planned for, or none.
    chosen = choose_now(jobs, machine, run, settings, job, ready, False)
    if chosen == 0 and can_stop(run.preemption):
        limited = stop_for(jobs, machine, run, settings, job, ready, run.preemption) == OVER_LIMIT
        restore_choice(run, run.preemption)
        return _LEFT if limited else _BUSY
    if chosen == 0:
        choose_now(jobs, machine, run, settings, job, usable, False)
        part_blocks(run.plan, run.blocks, run.choice)
        return _BUSY
    part_blocks(run.plan, run.blocks, run.choice)
    nodes, processors, memory, gpus = asked(jobs, machine, run, job, chosen)
    see_processors(jobs, run, settings, job, processors)
    if is_limited(jobs, run.limits, run.choice, job, nodes, processors, memory, gpus, True):
        return _LEFT
    start_job(jobs, machine, run, settings, job, chosen, BACKFILLED)
    stays = request[WHOLE] == 1 and not is_stoppable(job, run.preemption)
    if stays and run.plan.size[RECORDS] < settings.most_tested:
        reserve(run.plan, run.choice.bits, 0, _rounded_end(settings, now + jobs.limit[job]), settings.resolution)
    return _STARTED
