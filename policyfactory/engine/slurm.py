"""Slurm's scheduler: its main pass, its backfilling pass and its priorities, each at its times.

The clock counts whole seconds. At one second: ends, nodes that go and come, submissions, the calculation of priorities,
the main pass, the backfilling pass. Passes take no time. The rules are those of Slurm 22.05, found in its source.

Left out: while it looks for GPUs, the real scheduler lowers the weights of the nodes where it found some, until a job
of their partition is next tried for a start. Where nodes of one partition differ in GPUs, its plans can have others.
Nor are jobs refused for how many their user has submitted (MaxSubmitJobs), and priorities also fall (INCR_ONLY).
"""

from __future__ import annotations

from policyfactory.core.arrays import UInt8Array
from policyfactory.core.jit import inlined, kernel, step
from policyfactory.engine.running import next_end, pop_end, push_end
from policyfactory.engine.slurm_backfill import backfill_pass
from policyfactory.engine.slurm_holding import count_room, give_back
from policyfactory.engine.slurm_jobs import ABSENT, REFUSED, Jobs, Machine, Settings
from policyfactory.engine.slurm_main import main_pass
from policyfactory.engine.slurm_priority import Shares, Weights, _calculate, add_usage, new_priority
from policyfactory.engine.slurm_state import (
    ASIDE,
    CALCULATED,
    CHANGED,
    DUE,
    EVENTS,
    FULL,
    LEAVING,
    LEFT,
    MAIN,
    MAIN_SKIPPED,
    MAIN_UNTIL,
    MAIN_VERSION,
    NOW,
    PASSED,
    PENDING,
    PLAN_UNTIL,
    PLAN_VERSION,
    PLANNED,
    READY,
    RELEASED,
    RUNNING,
    STOPPED,
    STUCK,
    UNSEEN,
    VERSION,
    WAITING,
    Run,
    close_queue,
    enqueue,
    see_all,
)

__all__ = ["AT_CALCULATION", "AT_SUBMISSION", "slurm"]

_NEVER = 2**61
# How often a queue is looked at that waits for nothing.
_PATIENCE = 100
# Values of `STOPPED`.
_NOT_BEGUN, _GOES_ON, AT_CALCULATION, AT_SUBMISSION, _PAUSED = range(5)
# Kinds of node events.
_UP, _DOWN = 0, 1


@kernel
def slurm(jobs: Jobs, machine: Machine, run: Run, settings: Settings, weights: Weights, shares: Shares) -> bool:
    """Run all jobs, or up to when priorities are calculated or jobs submitted next, or up to a pause.

    Parameters
    ----------
    jobs : Jobs
    machine : Machine
    run : Run
        As `new_run` gives it; afterwards it has the starts, ends and restarts. Jobs that never could start have -1.
    settings : Settings
    weights : Weights
    shares : Shares
        Changed.

    Returns
    -------
    bool
        Whether it is to be called again, after the ``fixed`` parts of priorities were changed: of the jobs that are
        about to be submitted (``settings.foretells``), or of waiting ones (``settings.stops``); or after a pause, once
        ``settings`` name a later one.
    """
    state = run.state
    if state[STOPPED] == _NOT_BEGUN:
        state[NOW] = state[PASSED] = state[MAIN] = state[FULL] = state[CALCULATED] = settings.origin
        state[CHANGED] = settings.origin - 1
        _calculate(jobs, machine, run, weights, shares, settings.origin)
    while state[STUCK] < _PATIENCE:
        time = state[NOW]
        if state[STOPPED] != AT_CALCULATION:
            if state[STOPPED] != AT_SUBMISSION:
                _tick(jobs, machine, run, settings, weights)
                time = _next_time(jobs, machine, run, settings)
                if time >= _NEVER:
                    return False
                _keep_phase(machine, run, settings, time)
                state[NOW] = time
                _end_jobs(jobs, machine, run, settings, weights, shares)
                _change_nodes(jobs, machine, run, settings, weights, shares)
                if settings.foretells and state[READY] < len(jobs.ready) and jobs.submit[state[READY]] <= time:
                    state[STOPPED] = AT_SUBMISSION
                    return True
            _submit(jobs, machine, run, weights, shares)
        due = (
            settings.calculation > 0 and (time - settings.origin) % settings.calculation == 0 and time > settings.origin
        )
        if due and settings.stops and state[WAITING] > 0 and state[STOPPED] != AT_CALCULATION:
            state[STOPPED] = AT_CALCULATION
            return True
        state[STOPPED] = _GOES_ON
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
            if backfill_pass(jobs, machine, run, settings) > 0:
                close_queue(run)
            state[PASSED] = time
        if 0 < settings.most_waiting < state[WAITING] or 0 < settings.most_submitted <= state[READY]:
            state[STOPPED] = _PAUSED
            return True
    return False


@inlined
def _next_time(jobs: Jobs, machine: Machine, run: Run, settings: Settings) -> int:
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
        for at in range(len(machine.reservation)):
            for side in range(3):
                if now < machine.reservation[at, side]:
                    time = min(time, machine.reservation[at, side])
    # A queue that waits for nothing is looked at a few times more.
    state[STUCK] = state[STUCK] + 1 if time == _NEVER else 0
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
def _tick(jobs: Jobs, machine: Machine, run: Run, settings: Settings, weights: Weights) -> None:
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
    # A queue that waits for nothing is counted (STUCK).
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


@inlined
def _has_changed(machine: Machine, run: Run) -> bool:
    """Tell whether the backfilling pass could find anything new; while a reservation lasts, Slurm always says so."""
    for at in range(len(machine.reservation)):
        begin = max(machine.reservation[at, 0], machine.reservation[at, 2])
        if begin <= run.state[NOW] < machine.reservation[at, 1]:
            return True
    return bool(run.state[CHANGED] >= run.state[PASSED])


@inlined
def _keep_phase(machine: Machine, run: Run, settings: Settings, time: int) -> None:
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


@step
def _end_jobs(jobs: Jobs, machine: Machine, run: Run, settings: Settings, weights: Weights, shares: Shares) -> None:
    """End the jobs whose time it is; put those that are ready now into the queue."""
    n, now, state = len(jobs.ready), run.state[NOW], run.state
    while next_end(run.heap, _NEVER) <= now:
        job = pop_end(run.heap)
        if job >= n:
            job -= n
            if weights.tail:
                run.seen[job] = RELEASED * (run.seen[job] == RELEASED)
            elif run.seen[job] == 0 and max(state[MAIN], state[PASSED]) >= run.submit[job]:
                run.seen[job] = 1  # without limits a pass looks at those aside, too
            if state[CALCULATED] > run.submit[job]:
                run.priority[job] = new_priority(jobs, run, weights, shares, job)
            enqueue(jobs, machine, run, job)
            state[ASIDE] -= 1
        elif run.held_count[job] > 0 and run.end[job] == now:
            if weights.tail:
                add_usage(jobs, run, weights, shares, job, state[CALCULATED])
            _clean_up(run, settings, job, run.nowhere)
            give_back(jobs, machine, run, job)
            _let_go(jobs, run, job)
    while state[LEAVING] > 0 and run.leaving[state[LEFT], 0] <= now:
        run.completing[run.leaving[state[LEFT], 1]] -= 1
        state[LEFT], state[LEAVING] = (state[LEFT] + 1) % len(run.leaving), state[LEAVING] - 1
        state[DUE], state[CHANGED] = 1, now
        state[VERSION] += 1


@inlined
def _clean_up(run: Run, settings: Settings, job: int, down: UInt8Array) -> None:
    """Free the nodes of a job that has ended, at once or after the turn-round."""
    state = run.state
    for place in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
        node = run.held_node[place]
        # On a node that is down nothing is left to clean up.
        if down[node] == 1:
            continue
        if settings.turn_round == 0:
            state[DUE] = 1
            continue
        at = (state[LEFT] + state[LEAVING]) % len(run.leaving)
        run.leaving[at, 0], run.leaving[at, 1] = state[NOW] + settings.turn_round, node
        run.completing[node] += 1
        state[LEAVING] += 1


@inlined
def _has_ended(run: Run, job: int) -> bool:
    """Tell whether a submitted job has ended, or was refused."""
    return bool(0 <= run.end[job] <= run.state[NOW])


@inlined
def _let_go(jobs: Jobs, run: Run, job: int) -> None:
    """Let the jobs start that waited for the end of another."""
    other = run.dependent[job]
    while other >= 0:
        run.seen[other] = RELEASED
        run.ready[other] = max(run.ready[other], run.state[NOW])
        push_end(run.heap, run.ready[other], len(jobs.ready) + other)
        other = run.sibling[other]
    run.dependent[job] = -1


@step
def _change_nodes(jobs: Jobs, machine: Machine, run: Run, settings: Settings, weights: Weights, shares: Shares) -> None:
    """Let nodes go and come; jobs on a node that is down go back into the queue later."""
    state = run.state
    for at in range(len(machine.reservation)):
        if state[NOW] == machine.reservation[at, 0]:
            state[PENDING] = 1
        for side in range(3):
            if state[NOW] == machine.reservation[at, side]:
                state[CHANGED] = state[NOW]
                state[VERSION] += 1
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
        at = 0
        while at < state[RUNNING]:
            job = run.running[at]
            hit = 0
            for place in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
                hit += nodes[run.held_node[place]]
            if hit == 0:
                at += 1
                continue
            if weights.tail:
                add_usage(jobs, run, weights, shares, job, state[CALCULATED])
            _clean_up(run, settings, job, nodes)
            give_back(jobs, machine, run, job)
            run.priority[job] = new_priority(jobs, run, weights, shares, job)
            run.start[job] = run.end[job] = -1
            run.by[job] = run.cores_seen[job] = run.seen[job] = 0
            run.restarts[job] += 1
            run.submit[job], run.ready[job] = state[NOW], state[NOW] + settings.requeue_delay
            push_end(run.heap, run.ready[job], len(jobs.ready) + job)
            state[ASIDE] += 1


@step
def _submit(jobs: Jobs, machine: Machine, run: Run, weights: Weights, shares: Shares) -> None:
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
        run.priority[job] = new_priority(jobs, run, weights, shares, job)
        before = jobs.after[job]
        if 0 <= before < job and not _has_ended(run, before):
            run.sibling[job], run.dependent[before] = run.dependent[before], job
            state[ASIDE] += 1
        elif jobs.ready[job] <= state[NOW]:
            enqueue(jobs, machine, run, job)
        else:
            push_end(run.heap, jobs.ready[job], len(jobs.ready) + job)
            state[ASIDE] += 1


@step
def _pass_main(jobs: Jobs, machine: Machine, run: Run, settings: Settings) -> None:
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
        if whole and state[MAIN_VERSION] == state[VERSION] and now < state[MAIN_UNTIL]:
            if state[MAIN_SKIPPED] == 1:
                state[CHANGED] = now
        elif main_pass(jobs, machine, run, settings, whole) > 0:
            close_queue(run)
    state[DUE] = 0
