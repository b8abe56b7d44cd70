"""Slurm's scheduler: its main pass, its backfilling pass and its priorities, each at its times.

The clock counts whole seconds. At one second: cancellations, ends, nodes that go and come, submissions, the calculation
of priorities, the main pass, the backfilling pass. Passes take no time. The rules are those of Slurm, found in its
source; in what they differ from version to version, versions.py says.

Left out: while it looks for GPUs, the real scheduler lowers the weights of the nodes where it found some, until a job
of their partition is next tried for a start. Where nodes of one partition differ in GPUs, its plans can have others.
Nor are jobs refused for how many their user has submitted (MaxSubmitJobs), and priorities also fall (INCR_ONLY).
"""

from __future__ import annotations

from policyfactory.core.jit import inlined, joined, kernel, step
from policyfactory.core.options import Int64Array, UInt8Array
from policyfactory.engine.events import next_end, pop_end, push_end
from policyfactory.engine.slurm.backfill import backfill_pass
from policyfactory.engine.slurm.holding import (
    allow,
    allow_members,
    asked,
    count_room,
    give_back,
    is_open,
    is_young,
    may_fit,
    part_blocks,
    start_job,
    weigh,
)
from policyfactory.engine.slurm.jobs import (
    ABSENT,
    CLOSED,
    LIMITED,
    REFUSED,
    SlurmJobs,
    SlurmMachine,
    SlurmSettings,
    array_of,
    is_limited,
)
from policyfactory.engine.slurm.nodes import (
    ALONE,
    BLOCKS,
    CORE_MEMORY,
    JOBS,
    MEMORY,
    NODE_GPUS,
    NODE_MEMORY,
    NODES,
    WHOLE,
    Blocks,
    choose,
    count_nodes,
)
from policyfactory.engine.slurm.numbers import LivePredictions, Numbering, renumber
from policyfactory.engine.slurm.priority import (
    FairShares,
    PriorityWeights,
    _calculate,
    add_usage,
    new_priority,
    sort_queue,
)
from policyfactory.engine.slurm.starts import NOBODY, OVER_LIMIT, choose_now, stop_for
from policyfactory.engine.slurm.state import (
    ASIDE,
    AT_CALCULATION,
    AT_SUBMISSION,
    CALCULATED,
    CANCELLATIONS,
    CHANGED,
    DUE,
    EVENTS,
    FULL,
    GOES_ON,
    HORIZON,
    LEAVING,
    LEFT,
    MAIN,
    MAIN_SKIPPED,
    MAIN_UNTIL,
    MAIN_VERSION,
    NOT_BEGUN,
    NOW,
    PASSED,
    PAUSED,
    PENDING,
    PLAN_UNTIL,
    PLAN_VERSION,
    PLANNED,
    READY,
    RELEASED,
    RUNNING,
    STIRRED,
    STOPPED,
    UNSEEN,
    VERSION,
    WAITING,
    RunState,
    change_queue,
    close_queue,
    divide_nodes,
    enqueue,
    see_all,
    see_processors,
)
from policyfactory.engine.slurm.stopping import (
    can_stop,
    forget_grace,
    is_absent,
    known_since,
    let_go,
    order_queue,
    put_back,
    release,
    stop_late,
)

_NEVER = 2**61
# A queue is given up once nothing has happened for so many times two of the longest intervals, and nothing is to.
_PATIENCE = 30
# Kinds of node events.
_UP, _DOWN = 0, 1


@kernel
def slurm(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
    numbering: Numbering,
    predictions: LivePredictions | None,
    until: int,
) -> bool:
    """Run all jobs and number them, or up to where the caller is to do something.

    What is None is not compiled: ``shares`` and events of nodes with them, ``predictions``, ``run.preemption``.

    Parameters
    ----------
    jobs : SlurmJobs
        ``fixed`` is changed where jobs are numbered.
    machine : SlurmMachine
    run : RunState
        As `new_run` gives it; afterwards it has the starts, ends and restarts. Jobs that never could start have -1.
    settings : SlurmSettings
        Which say where the run stops to number jobs.
    weights : PriorityWeights
    shares : FairShares or None
        Changed where ``weights`` count them.
    numbering : Numbering
        How the jobs get their numbers.
    predictions : LivePredictions or None
        Of the jobs, for numbers that are made from them.
    until : int
        Seconds, on the run's clock. The first stop from then on is left for the next call.

    Returns
    -------
    bool
        Whether it is to be called again: with a later ``until``, or, after a pause, once ``settings`` name a later one.
    """
    state = run.state
    if state[STOPPED] == NOT_BEGUN:
        state[NOW] = state[PASSED] = state[MAIN] = state[FULL] = state[CALCULATED] = settings.origin
        state[STIRRED] = settings.origin
        state[CHANGED] = settings.origin - 1
        _calculate(jobs, machine, run, weights, shares, settings.origin)
    while True:
        time = state[NOW]
        if state[STOPPED] == AT_CALCULATION or state[STOPPED] == AT_SUBMISSION:
            if time >= until:
                return True
            renumber(jobs, run, numbering, predictions)
        if state[STOPPED] != AT_CALCULATION:
            if state[STOPPED] != AT_SUBMISSION:
                _tick(jobs, machine, run, settings, weights)
                time = _next_time(jobs, machine, run, settings)
                if time >= _NEVER:
                    return False
                _keep_phase(machine, run, settings, time)
                state[NOW] = time
                _cancel_jobs(jobs, run, weights)
                _end_jobs(jobs, machine, run, settings, weights, shares)
                _change_nodes(jobs, machine, run, settings, weights, shares)
                if settings.foretells and state[READY] < len(jobs.ready) and jobs.submit[state[READY]] <= time:
                    state[STOPPED] = AT_SUBMISSION
                    continue
            _submit(jobs, machine, run, settings, weights, shares)
        due = (
            settings.calculation > 0 and (time - settings.origin) % settings.calculation == 0 and time > settings.origin
        )
        if due and settings.stops and state[WAITING] > 0 and state[STOPPED] != AT_CALCULATION:
            state[STOPPED] = AT_CALCULATION
            continue
        state[STOPPED] = GOES_ON
        if due:
            _calculate(jobs, machine, run, weights, shares, state[CALCULATED])
            state[CALCULATED] = time
            if state[WAITING] > 0 or state[ASIDE] > 0:
                state[CHANGED] = time
            # Beyond their order, priorities count only where there is a least one.
            state[VERSION] += settings.least_priority > 0
        _pass_main(jobs, machine, run, settings)
        if settings.backfill and time - state[PASSED] >= settings.interval and _has_changed(machine, run):
            see_all(run)
            order_queue(jobs, machine, run, run.preemption)
            if backfill_pass(jobs, machine, run, settings) > 0:
                close_queue(run)
            state[PASSED] = time
        if 0 < settings.most_waiting < state[WAITING] or 0 < settings.most_submitted <= state[READY]:
            state[STOPPED] = PAUSED
            return True


@joined
def _next_time(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings) -> int:
    """Return when something happens next."""
    state = run.state
    now = state[NOW]
    time = next_end(run.heap, _NEVER)
    if state[LEAVING] > 0:
        time = min(time, run.leaving[state[LEFT], 0])
    if state[READY] < len(jobs.ready):
        time = min(time, jobs.submit[state[READY]])
    busy = state[WAITING] > 0 or state[RUNNING] > 0 or state[ASIDE] > 0
    if busy or time < _NEVER:
        if state[EVENTS] < len(machine.event):
            time = min(time, machine.event[state[EVENTS], 0])
        if state[CANCELLATIONS] < len(jobs.cancelled):
            time = min(time, jobs.cancelled[state[CANCELLATIONS], 0])
        for reservation in range(len(machine.reservation)):
            for side in range(3):
                if now < machine.reservation[reservation, side]:
                    time = min(time, machine.reservation[reservation, side])
    if time < _NEVER:
        state[STIRRED] = time
    else:
        # Only new priorities may still set such a queue going. Slurm never gives it up.
        quiet = 2 * max(settings.sched_interval, settings.interval, settings.batch_delay) + 60
        if now > state[STIRRED] + _PATIENCE * quiet:
            return _NEVER
    if settings.calculation > 0 and busy:
        since = (now - settings.origin) // settings.calculation
        time = min(time, settings.origin + (since + 1) * settings.calculation)
    if state[WAITING] > 0:
        time = min(time, state[FULL] + settings.sched_interval)
        if state[PENDING] == 1:
            time = min(time, state[MAIN] + settings.batch_delay)
        if settings.backfill and _has_changed(machine, run):
            time = min(time, state[PASSED] + settings.interval)
    return time


@step
def _tick(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings, weights: PriorityWeights
) -> None:
    """Let the clock run on over the times of passes that would find all as it was.

    A queue that runs away takes years to be worked off, in which passes are a thousand times as many as jobs.
    """
    state, origin, period = run.state, settings.origin, settings.calculation
    if state[WAITING] == 0 or state[UNSEEN] > 0 or state[PENDING] == 1:
        return
    if len(machine.reservation) > 0 or state[MAIN_VERSION] != state[VERSION]:
        return
    if settings.backfill and state[PLAN_VERSION] != state[VERSION]:
        return
    until = next_end(run.heap, _NEVER)
    if state[LEAVING] > 0:
        until = min(until, run.leaving[state[LEFT], 0])
    if state[READY] < len(jobs.ready):
        until = min(until, jobs.submit[state[READY]])
    if state[EVENTS] < len(machine.event):
        until = min(until, machine.event[state[EVENTS], 0])
    if state[CANCELLATIONS] < len(jobs.cancelled):
        until = min(until, jobs.cancelled[state[CANCELLATIONS], 0])
    # A queue that waits for nothing is given up, but not yet (STIRRED).
    if until == _NEVER:
        return
    until = min(until, state[MAIN_UNTIL], state[PLAN_UNTIL] if settings.backfill else _NEVER)
    calculated = origin + ((state[NOW] - origin) // period + 1) * period if period > 0 else _NEVER
    if weights.age > 0 or weights.fair_share > 0 or settings.stops or settings.plan_all or settings.least_priority > 0:
        until = min(until, calculated)
    full, passed, changed = state[FULL], state[PASSED], state[CHANGED]
    while True:
        time = min(full + settings.sched_interval, calculated)
        if settings.backfill and changed >= passed:
            time = min(time, passed + settings.interval)
        if time >= until:
            break
        state[NOW] = time
        if time == calculated:
            state[CALCULATED], changed, calculated = time, time, calculated + period
        if time - full >= settings.sched_interval:
            full = time
            changed = time if state[MAIN_SKIPPED] == 1 else changed
        if settings.backfill and time - passed >= settings.interval and changed >= passed:
            changed = time if state[PLANNED] == 1 else changed
            passed = time
    state[MAIN] = full if full > state[FULL] else state[MAIN]
    state[FULL], state[PASSED], state[CHANGED] = full, passed, changed


@step
def _has_changed(machine: SlurmMachine, run: RunState) -> bool:
    """Tell whether the backfilling pass could find anything new; while a reservation lasts, Slurm always says so."""
    for reservation in range(len(machine.reservation)):
        begin = max(machine.reservation[reservation, 0], machine.reservation[reservation, 2])
        if begin <= run.state[NOW] < machine.reservation[reservation, 1]:
            return True
    return bool(run.state[CHANGED] >= run.state[PASSED])


@joined
def _keep_phase(machine: SlurmMachine, run: RunState, settings: SlurmSettings, time: int) -> None:
    """Count the passes before a time that found an empty queue."""
    state = run.state
    asked = state[MAIN] + settings.batch_delay
    if state[PENDING] == 1 and asked < min(time, state[FULL] + settings.sched_interval):
        state[MAIN], state[PENDING] = asked, 0
    missed = (time - 1 - state[FULL]) // settings.sched_interval
    if missed > 0:
        state[FULL] += missed * settings.sched_interval
        state[MAIN], state[PENDING] = state[FULL], 0
    while _has_changed(machine, run) and state[PASSED] + settings.interval < time:
        state[PASSED] += settings.interval
        if state[PLANNED] == 1:
            state[CHANGED], state[PLANNED] = state[PASSED], 0


@joined
def _cancel_jobs(jobs: SlurmJobs, run: RunState, weights: PriorityWeights) -> None:
    """Cancel the jobs whose time it is, if they wait; those that wait for them need wait no more."""
    state = run.state
    while state[CANCELLATIONS] < len(jobs.cancelled) and jobs.cancelled[state[CANCELLATIONS], 0] <= state[NOW]:
        job, to = jobs.cancelled[state[CANCELLATIONS], 1], 0
        state[CANCELLATIONS] += 1
        if job >= state[READY] or run.start[job] >= 0 or run.end[job] >= 0:
            continue
        for position in range(state[WAITING]):
            row = run.waiting[position]
            if jobs.first[row] != job:
                run.waiting[to] = row
                to += 1
        # What is aside stays there until it would have been ready.
        state[ASIDE] -= jobs.hopeless[job] == ABSENT
        state[WAITING] = to
        run.end[job] = state[CHANGED] = state[NOW]
        change_queue(run)
        let_go(jobs, run, weights, job, state[NOW])


@inlined
def _is_cancelled(jobs: SlurmJobs, run: RunState, job: int) -> bool:
    first = jobs.first[job]
    return bool(run.start[first] < 0 and run.end[first] >= 0)


@step
def _end_jobs(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
) -> None:
    """End the jobs whose time it is; put those that are ready now into the queue."""
    n, now, state = len(jobs.ready), run.state[NOW], run.state
    while next_end(run.heap, _NEVER) <= now:
        job = pop_end(run.heap)
        if job >= n:
            job -= n
            if _is_cancelled(jobs, run, job):
                state[ASIDE] -= 1
                continue
            if weights.tail and not weights.from_submission:
                run.seen[job] = RELEASED * (run.seen[job] == RELEASED)
            elif run.seen[job] == 0 and max(state[MAIN], state[PASSED]) >= run.submit[job]:
                run.seen[job] = 1  # without limits, or with ACCRUE_ALWAYS, a pass looks at those aside, too
            if state[CALCULATED] > known_since(run, settings, job, run.preemption):
                run.priority[job] = new_priority(jobs, run, weights, shares, job, state[CALCULATED])
            enqueue(jobs, machine, run, job)
            state[ASIDE] -= 1
        elif run.held_count[job] > 0 and run.end[job] == now:
            if stop_late(jobs, machine, run, settings, job, run.preemption):
                continue
            if weights.tail:
                add_usage(jobs, machine, run, weights, shares, job, state[CALCULATED])
            _clean_up(run, settings, job, run.nowhere)
            give_back(jobs, machine, run, job)
            let_go(jobs, run, weights, job, now + settings.turn_round)
    while state[LEAVING] > 0 and run.leaving[state[LEFT], 0] <= now:
        run.completing[run.leaving[state[LEFT], 1]] -= 1
        state[LEFT], state[LEAVING] = (state[LEFT] + 1) % len(run.leaving), state[LEAVING] - 1
        state[DUE], state[CHANGED] = 1, now
        state[VERSION] += 1


@step
def _clean_up(run: RunState, settings: SlurmSettings, job: int, down: UInt8Array) -> None:
    """Free the nodes of a job that has ended, at once or after the turn-round."""
    state = run.state
    for entry in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
        node = run.held_node[entry]
        # On a node that is down nothing is left to clean up.
        if down[node] == 1:
            continue
        if settings.turn_round == 0:
            state[DUE] = 1
            continue
        slot = (state[LEFT] + state[LEAVING]) % len(run.leaving)
        run.leaving[slot, 0], run.leaving[slot, 1] = state[NOW] + settings.turn_round, node
        run.completing[node] += 1
        state[LEAVING] += 1


@joined
def _change_nodes(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
) -> None:
    """Let reservations begin and end, and nodes go and come."""
    state = run.state
    for reservation in range(len(machine.reservation)):
        if state[NOW] == machine.reservation[reservation, 0]:
            state[PENDING] = 1
        for side in range(3):
            if state[NOW] == machine.reservation[reservation, side]:
                state[CHANGED] = state[NOW]
                state[VERSION] += 1
    _move_nodes(jobs, machine, run, settings, weights, shares)


@step
def _move_nodes(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
) -> None:
    """Let nodes go and come; jobs on a node that is down go back into the queue later."""
    state = run.state
    if shares is not None:
        while state[EVENTS] < len(machine.event) and machine.event[state[EVENTS], 0] <= state[NOW]:
            event = state[EVENTS]
            state[EVENTS] += 1
            kind, nodes, back = machine.event[event, 1], machine.of_event[event], 0
            for node in range(len(nodes)):
                if nodes[node]:
                    count_room(machine, run, node, -1)
                    run.up[node] = kind == _UP
                    count_room(machine, run, node, 1)
                    back += kind == _UP
            state[CHANGED] = state[NOW]
            state[VERSION] += 1
            if back > 0:
                state[PENDING] = 1
            if kind != _DOWN:
                continue
            position = 0
            while position < state[RUNNING]:
                job = run.running[position]
                hit = 0
                for entry in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
                    hit += nodes[run.held_node[entry]]
                if hit == 0:
                    position += 1
                    continue
                if weights.tail:
                    add_usage(jobs, machine, run, weights, shares, job, state[CALCULATED])
                _clean_up(run, settings, job, nodes)
                give_back(jobs, machine, run, job)
                forget_grace(job, run.preemption)
                put_back(jobs, run, settings, weights, shares, job, state[NOW])
                run.restarts[jobs.first[job]] += 1


@step
def _submit(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
) -> None:
    """Put the submitted jobs into the queue, or what is not ready yet aside."""
    state = run.state
    while state[READY] < len(jobs.ready) and jobs.submit[state[READY]] <= state[NOW]:
        job = state[READY]
        state[READY] += 1
        state[CHANGED] = state[NOW]
        if jobs.hopeless[job] == REFUSED:
            run.end[job] = state[NOW]
            continue
        state[PENDING] = 1
        if jobs.hopeless[job] == ABSENT:
            state[ASIDE] += 1
            continue
        before, row = jobs.after[job], job
        while row >= 0:
            run.priority[row] = new_priority(jobs, run, weights, shares, row, state[NOW])
            waits = 0 <= before < job
            if waits and not 0 <= run.end[before] <= state[NOW]:
                run.sibling[row], run.dependent[before] = run.dependent[before], row
                state[ASIDE] += 1
            elif waits and run.start[before] >= 0 and run.end[before] + settings.turn_round > state[NOW]:
                release(jobs, run, weights, row, run.end[before] + settings.turn_round)
                state[ASIDE] += 1
            elif jobs.ready[row] <= state[NOW]:
                enqueue(jobs, machine, run, row)
            else:
                push_end(run.heap, jobs.ready[row], len(jobs.ready) + row)
                state[ASIDE] += 1
            row = jobs.other[row]


@joined
def _pass_main(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings) -> None:
    """Make the main pass if one is due."""
    state = run.state
    now = state[NOW]
    whole = now - state[FULL] >= settings.sched_interval
    if whole:
        state[FULL] = now
    asked = whole or (state[PENDING] == 1 and now - state[MAIN] >= settings.batch_delay)
    if asked:
        state[MAIN], state[PENDING] = now, 0
    if state[WAITING] > 0 and (asked or state[DUE] == 1):
        see_all(run)
        order_queue(jobs, machine, run, run.preemption)
        if whole and state[MAIN_VERSION] == state[VERSION] and now < state[MAIN_UNTIL]:
            if state[MAIN_SKIPPED] == 1:
                state[CHANGED] = now
        elif main_pass(jobs, machine, run, settings, whole) > 0:
            close_queue(run)
    state[DUE] = 0


# Slurm's main pass ----------------------------------------------------------------------------------------------------

# The queue in its order, each partition up to the first job that cannot start.
#
# The rules are those of Slurm (versions.py), found in its source.


STARTED_BY_MAIN = 1  # in `RunState.by`
# Rows of `Blocks.mask`: nodes that a job may use; those of its partition; nodes that no job of a blocked partition
# waits for; of the first, those where nothing is being cleaned up.
_ALLOWED, _MEMBERS, _FREE, _READY = range(4)
# What came of a job.
_NOT_NOW, _STARTED, _BUSY = range(3)
# Rows of `RunState.tally`: 1 for a partition whose first job waits; its jobs looked at; 1 for such a reservation.
_BLOCKED, _LOOKED_AT, _FAILED = range(3)


@joined
def main_pass(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    whole: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Make one main pass.

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    run : RunState
        Jobs are started; they stay in the queue.
    settings : SlurmSettings
    whole : bool
        Whether the whole queue is looked at, or as many jobs as ``settings`` say.

    Returns
    -------
    int
        How many jobs were started.
    """
    divide_nodes(machine, run)
    now, version, blocks, free = run.state[NOW], run.state[VERSION], run.blocks, run.blocks.mask[_FREE]
    # Whom a job may have stopped changes with time.
    run.state[HORIZON], skipped = now if can_stop(run.preemption) else _NEVER, False
    blocked, looked_at, failed = run.tally[_BLOCKED], run.tally[_LOOKED_AT], run.tally[_FAILED]
    run.tally[:] = 0
    allow_members(blocks, run.up, run.up, free)
    # As long as a job may have all nodes of its partition, it is known what it would do if they were empty.
    plain = count_nodes(blocks, free) == len(run.up) and len(machine.reservation) == 0
    depth, started, all_blocked, last_array, before = 0, 0, False, -1, 0
    for position in range(run.state[WAITING]):
        job = run.waiting[position]
        partition, array = jobs.partition[job], array_of(jobs, job)
        reservation = jobs.reservation[job]
        if (
            machine.closed[partition] == 1
            or is_absent(jobs, run, job, run.preemption)
            or (reservation >= 0 and not is_open(machine, reservation, now))
        ):
            continue
        # Where a task was not started, the others of its array are passed over.
        rest, last_array, before = array >= 0 and array == last_array and started == before, array, started
        if rest:
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


@joined
def _try(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
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
    alone = plain and not can_stop(run.preemption)
    if alone and not may_fit(jobs, run, job) and _needs(jobs, machine, run, settings, job, members) > 0:
        return _NOT_NOW if _would_be_limited(jobs, run, job, run.needs[job]) else _BUSY
    begin, _ = allow(jobs, machine, run, job, now, allowed)
    if begin != now:
        return _NOT_NOW
    for block in range(blocks.size[BLOCKS]):
        allowed[block] &= free[block]
        ready[block] = allowed[block] & (run.completing[blocks.first[block]] == 0)
    chosen = choose_now(jobs, machine, run, settings, job, ready, False)
    if chosen > 0:
        nodes, processors, memory, gpus = asked(jobs, machine, run, job, chosen)
        see_processors(jobs, run, settings, job, processors)
        if is_limited(jobs, run.limits, run.choice, job, nodes, processors, memory, gpus, True):
            return _NOT_NOW
        part_blocks(run.plan, run.blocks, run.choice)
        start_job(jobs, machine, run, settings, job, chosen, STARTED_BY_MAIN)
        return _STARTED
    if can_stop(run.preemption):
        outcome = stop_for(jobs, machine, run, settings, job, ready, run.preemption)
        if outcome != NOBODY:
            return _NOT_NOW if outcome == OVER_LIMIT else _BUSY
    busy, nodes = _is_busy(request, machine, run, settings, allowed, ready, members)
    # A limit outweighs other reasons: such a job keeps nobody else from starting.
    return _BUSY if busy and not _would_be_limited(jobs, run, job, nodes) else _NOT_NOW


@joined
def _block(machine: SlurmMachine, blocks: Blocks, partition: int, blocked: Int64Array, free: UInt8Array) -> bool:
    """Keep the jobs of a partition from starting, and others from its nodes; tell whether no job can start any more."""
    blocked[partition] = 1
    members, every = machine.partition[partition], len(machine.reservation) == 0
    for block in range(blocks.size[BLOCKS]):
        free[block] &= 1 - members[blocks.first[block]]
    for other in range(len(machine.tier)):
        every = every and blocked[other] == 1
    return every


@joined
def _count(blocks: Blocks, members: UInt8Array, mask: UInt8Array) -> int:
    """Return how many of some nodes (N,) the blocks of a mask have."""
    count = 0
    for block in range(blocks.size[BLOCKS]):
        count += blocks.nodes[block] if members[blocks.first[block]] & mask[block] != 0 else 0
    return count


@step
def _would_be_limited(jobs: SlurmJobs, run: RunState, job: int, nodes: int) -> bool:
    """Tell whether a job that waits for nodes would break a limit on them."""
    request, gpus = jobs.request[job], jobs.request[job, NODE_GPUS] * nodes
    seen = run.seen_processors[jobs.first[job]]
    processors = seen if seen > 0 else jobs.processors[job]
    of_processors = request[CORE_MEMORY] // jobs.threads[job] * processors
    memory = request[NODE_MEMORY] * nodes if request[NODE_MEMORY] > 0 else of_processors
    return bool(is_limited(jobs, run.limits, run.choice, job, nodes, processors, memory, gpus, False))


@joined
def _needs(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, settings: SlurmSettings, job: int, members: UInt8Array
) -> int:
    """Return how many nodes a job gets if those of its partition are all there and empty; 0 if it cannot run."""
    if run.needs[job] < 0:
        run.needs[job] = _choose_empty(jobs.request[job], machine, run, settings, members)
    return int(run.needs[job])


@step
def _choose_empty(
    request: Int64Array, machine: SlurmMachine, run: RunState, settings: SlurmSettings, members: UInt8Array
) -> int:
    """Return how many nodes a request gets of some nodes (N,) if they are all there and empty."""
    blocks, mask = run.blocks, run.blocks.mask[_MEMBERS]
    for block in range(blocks.size[BLOCKS]):
        mask[block] = members[blocks.first[block]]
    _empty(run)
    weights = run.choice.weight if weigh(request, machine, run, settings, False) else blocks.weight
    return int(choose(request, machine.has, run.scratch, blocks, weights, mask, run.choice, settings.version))


@inlined
def _empty(run: RunState) -> None:
    """Let all nodes be empty in ``run.scratch``."""
    for block in range(run.blocks.size[BLOCKS]):
        for what in range(run.scratch.shape[1]):
            run.scratch[run.blocks.first[block], what] = 0


@step
def _is_busy(
    request: Int64Array,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    allowed: UInt8Array,
    ready: UInt8Array,
    members: UInt8Array,
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
            # Where jobs are stopped for others, nodes are looked at whatever runs there.
            shared = jobs < (1 if request[WHOLE] == 1 else ALONE) or can_stop(run.preemption)
            if ready[block] == 1 and shared:
                free += blocks.nodes[block]
    possible = 0
    if free >= request[NODES]:
        weights = run.choice.weight if weigh(request, machine, run, settings, False) else blocks.weight
        possible = choose(request, machine.has, run.scratch, blocks, weights, allowed, run.choice, settings.version)
    nodes = possible if possible > 0 else _choose_empty(request, machine, run, settings, members)
    return possible > 0 or enough != free, max(nodes, request[NODES])


# A run that begins in the midst: some jobs run already, others wait ---------------------------------------------------


@kernel
def resume(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
    start: Int64Array,
    parts_from: Int64Array,
    node: Int64Array,
    cores: Int64Array,
) -> None:
    """Let the first jobs run that started before ``settings.origin``, and put those into the queue that wait then.

    Nodes that went by then are away. The age of those in the queue counts; the main pass is made at once, others and
    calculations of priorities are counted from the origin. Call `slurm` to go on.

    Parameters
    ----------
    jobs : SlurmJobs
        The running ones first.
    machine : SlurmMachine
    run : RunState
        As `new_run` gives it.
    settings : SlurmSettings
    weights : PriorityWeights
    shares : FairShares or None
    start : int64 array (k,)
        When each of the running ones started (s). They end after the origin by their run times, or are killed then.
    parts_from : int64 array (k + 1,)
        Where the nodes of each begin in ``node``.
    node, cores : int64 array (C,)
        Nodes, and the job's cores there.
    """
    state, choice = run.state, run.choice
    for job in range(len(start)):
        state[NOW] = start[job]
        divide_nodes(machine, run)
        first, count = parts_from[job], parts_from[job + 1] - parts_from[job]
        for part in range(count):
            choice.node[part], choice.many[part], choice.cores[part] = node[first + part], 1, cores[first + part]
        choice.parts[0] = count
        part_blocks(run.plan, run.blocks, choice)
        start_job(jobs, machine, run, settings, job, count, 0)
    state[NOW] = state[PASSED] = state[MAIN] = state[FULL] = state[CALCULATED] = settings.origin
    state[CHANGED] = settings.origin
    state[READY], state[STOPPED] = len(start), GOES_ON
    _change_nodes(jobs, machine, run, settings, weights, shares)
    _submit(jobs, machine, run, settings, weights, shares)
    for position in range(state[WAITING]):
        job = run.waiting[position]
        run.seen[job] = 1
        run.priority[job] = new_priority(jobs, run, weights, shares, job, settings.origin)
    sort_queue(jobs, machine, run)
    state[UNSEEN] = 0
    # What was submitted last may not have been looked at.
    state[PENDING], state[MAIN] = 1, settings.origin - settings.batch_delay
