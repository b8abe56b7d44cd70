"""Many episodes side by side, each a run under EASY backfilling that somebody else decides, job by job.

The rule is that of `policyfactory.engine.timed` with the order left open. At each instant at which something happens
there is one pass. While a waiting job fits, the next job of the queue is asked for: one that fits is started, one that
does not becomes the head with a reservation. From then on only the jobs are asked for that leave the reservation as
it is, until there is none. Nothing is asked where only one answer is possible. So who always takes the least score by
what is known at the beginning of the pass, ties by the first place, plays the schedule of that policy.

An episode's jobs are, in this order: those that run at its beginning, those that wait then, those still to come.
"""

from __future__ import annotations

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.events import (
    EXTRA,
    FREE,
    NEVER,
    NEXT,
    NOW,
    SHADOW,
    SMALLEST,
    STARTED,
    UNTIL,
    Jobs,
    advance,
    may_backfill,
    reserve_for,
)
from policyfactory.engine.observed import (
    BACKFILL,
    BSLD,
    COUNT,
    FACTS,
    FRESH,
    HEAD,
    HELD,
    JOB,
    NO_COST,
    OVER,
    PASSED,
    PHASE,
    REPORTED,
    SETTLED,
    SHOWN,
    SINCE,
    SLOWDOWN,
    TOTAL,
    TURNAROUND,
    WAIT,
    Batch,
    Episode,
    Log,
    Setting,
    View,
    show,
)
from policyfactory.engine.running import PREDICTED, WIDTH, next_end, pop_end, push_end
from policyfactory.engine.sliding import BOUNDS, HIGH, LOW, insert_gap, lower_bound, remove_column, upper_bound
from policyfactory.engine.waiting import close_gaps, submit_all

__all__ = ["begin", "step_all"]

_TAU = 10


@kernel
def begin(
    batch: Batch, view: View, setting: Setting, episode: int, log: Log, rows: Int64Array, started: Int64Array, now: int
) -> None:
    """Begin an episode anew and go on to its first decision.

    Parameters
    ----------
    batch, view : Batch, View
        Where it stands, and what is seen of it.
    setting : Setting
        What holds for all.
    episode : int
        Which.
    log : Log
        Where its jobs come from.
    rows : int64 array (n,)
        Its jobs: those that run at the beginning, then all others by submit time.
    started : int64 array (k,), ticks
        When those that run were started; they end at ``now`` or later.
    now : int
        Its beginning, in ticks: no later than the first submission after it. Who was submitted before it waits.
    """
    for i in range(len(rows)):
        job = rows[i]
        batch.submit[episode, i] = log.submit[job]
        batch.run_time[episode, i] = log.run_time[job]
        batch.estimate[episode, i] = log.estimate[job]
        batch.processors[episode, i] = log.processors[job]
        for column in range(FACTS):
            batch.facts[episode, i, column] = log.facts[job, column]
        batch.start[episode, i] = -1
        batch.backfilled[episode, i] = False
    batch.state[episode, :] = 0
    batch.state[episode, COUNT], batch.state[episode, HELD] = len(rows), len(started)
    one = _episode(batch, view, episode)
    _begin(one, setting, started, now)
    view.done[episode] = view.replaced[episode] = False
    _go_on(one, setting)
    if one.state[PHASE] == OVER:
        # Nothing is to be decided in the whole of it: any choice ends it.
        show(one, setting)
        one.mask[0] = True


@kernel
def step_all(batch: Batch, view: View, setting: Setting, actions: Int64Array) -> None:
    """Take a decision in each episode that is not over, and go on to its next.

    Parameters
    ----------
    batch, view : Batch, View
        Where they stand, and what is seen of them.
    setting : Setting
        What holds for all.
    actions : int64 array (b,)
        The slot that each chooses; of one that is masked, or none at all, the first that is not takes the place.
    """
    for episode in range(len(actions)):
        if view.done[episode]:
            continue
        one = _episode(batch, view, episode)
        if one.state[PHASE] != OVER:
            at = actions[episode]
            view.replaced[episode] = at < 0 or at >= len(one.mask) or not one.mask[at]
            if view.replaced[episode]:
                at = 0
                while not one.mask[at]:
                    at += 1
            _decide(one, setting, one.waiting[at + 1])
            _go_on(one, setting)
        one.cost[SINCE] = one.cost[TOTAL] - one.cost[REPORTED]
        one.cost[REPORTED] = one.cost[TOTAL]
        if one.state[PHASE] == OVER:
            view.done[episode] = True
            one.mask[:] = False


@kernel
def _episode(batch: Batch, view: View, episode: int) -> Episode:
    n = batch.state[episode, COUNT]
    jobs = Jobs(
        batch.submit[episode, :n],
        batch.run_time[episode, :n],
        batch.estimate[episode, :n],
        batch.processors[episode, :n],
        batch.none,
        batch.none,
        batch.start[episode, :n],
        batch.backfilled[episode, :n],
        batch.none,
        batch.none,
    )
    return Episode(
        jobs,
        batch.facts[episode],
        batch.state[episode],
        batch.heap[episode],
        batch.running[episode],
        batch.waiting[episode],
        view.jobs[episode],
        view.machine[episode],
        view.running[episode],
        view.mask[episode],
        view.cost[episode],
    )


@inlined
def _begin(one: Episode, setting: Setting, started: Int64Array, now: int) -> None:
    """Let those that run, run, and those that wait, wait."""
    jobs, state, waiting, running = one.jobs, one.state, one.waiting, one.running
    state[FREE], state[SMALLEST], state[UNTIL], state[NOW] = setting.machine, NEVER, NEVER, now
    state[SHOWN], state[PHASE] = len(one.shown), PASSED
    one.heap[0, 0] = waiting[0] = 0
    running[BOUNDS, LOW] = running[BOUNDS, HIGH] = running.shape[1] // 2
    one.cost[SINCE] = one.cost[TOTAL] = one.cost[SETTLED] = one.cost[REPORTED] = 0.0
    for i in range(len(started)):
        jobs.start[i] = started[i]
        _put(one, i, started[i])
    state[NEXT] = len(started)
    while state[NEXT] < len(jobs.submit) and jobs.submit[state[NEXT]] < now:
        waiting[0] += 1
        waiting[waiting[0]] = state[NEXT]
        state[SMALLEST] = min(state[SMALLEST], jobs.processors[state[NEXT]])
        state[NEXT] += 1


@inlined
def _put(one: Episode, job: int, start: int) -> None:
    """Let ``job`` run since ``start``."""
    jobs, running = one.jobs, one.running
    predicted = start + jobs.estimate[job]
    push_end(one.heap, start + jobs.run_time[job], job)
    at = insert_gap(running, 3, upper_bound(running, predicted))
    running[PREDICTED, at] = predicted
    running[WIDTH, at] = jobs.processors[job]
    running[JOB, at] = job
    one.state[FREE] -= jobs.processors[job]
    one.state[STARTED] += 1


@inlined
def _complete(one: Episode) -> None:
    """Free the processors of every job that ends now."""
    jobs, running = one.jobs, one.running
    while next_end(one.heap, NEVER) <= one.state[NOW]:
        job = pop_end(one.heap)
        one.state[FREE] += jobs.processors[job]
        at = lower_bound(running, jobs.start[job] + jobs.estimate[job])
        while running[JOB, at] != job:
            at += 1
        remove_column(running, 3, at)


@inlined
def _start(one: Episode, setting: Setting, job: int) -> None:
    """Start ``job`` now; it must fit."""
    jobs, state = one.jobs, one.state
    if state[PHASE] == BACKFILL:
        jobs.backfilled[job] = True
        if state[NOW] + jobs.estimate[job] > state[SHADOW]:
            state[EXTRA] -= jobs.processors[job]
    jobs.start[job] = state[NOW]
    one.cost[SETTLED] += _cost_of(jobs, setting, job, state[NOW])
    _put(one, job, state[NOW])


@inlined
def _decide(one: Episode, setting: Setting, job: int) -> None:
    """Start ``job``, or let it be the head with a reservation."""
    jobs, state = one.jobs, one.state
    if jobs.processors[job] <= state[FREE]:
        _start(one, setting, job)
    elif setting.backfill:
        reserve_for(jobs, state, one.running, job)
        state[PHASE] = BACKFILL
    else:
        state[PHASE] = PASSED


@inlined
def _next_pass(one: Episode) -> None:
    """Go on to the next instant at which a waiting job fits, or to the end."""
    jobs, state, waiting = one.jobs, one.state, one.waiting
    close_gaps(jobs, state, waiting)
    state[FRESH] = 0
    state[PHASE] = OVER
    while state[STARTED] < state[COUNT]:
        advance(jobs, state, one.heap)
        _complete(one)
        submit_all(jobs, state, waiting)
        if state[FREE] >= state[SMALLEST]:
            state[PHASE] = HEAD
            break


@inlined
def _go_on(one: Episode, setting: Setting) -> None:
    """Do what only one answer is possible to, until something is to be decided, and show it, or all are started."""
    jobs, state, waiting = one.jobs, one.state, one.waiting
    while state[PHASE] != OVER:
        left, possible, only = 0, 0, -1
        for at in range(1, waiting[0] + 1):
            job = waiting[at]
            if jobs.start[job] >= 0 or state[PHASE] == PASSED:
                continue
            left += 1
            if jobs.processors[job] <= state[FREE] and (state[PHASE] == HEAD or may_backfill(jobs, state, job)):
                possible += 1
                only = job
        # A job that does not fit can be the head, so that one that fits is no answer while others wait.
        if possible == 0:
            _next_pass(one)
        elif possible == 1 and (state[PHASE] == BACKFILL or left == 1):
            _start(one, setting, only)
        else:
            break
    _settle(one, setting)
    if state[PHASE] != OVER:
        show(one, setting)


@inlined
def _cost_of(jobs: Jobs, setting: Setting, job: int, now: int) -> float:
    """Return what ``job`` has cost if it starts, or waits, until now."""
    wait, run_time = now - jobs.submit[job], jobs.run_time[job]
    if setting.cost == WAIT:
        return float(wait / setting.ticks)
    if setting.cost == TURNAROUND:
        return float((wait + run_time) / setting.ticks)
    if setting.cost == BSLD or setting.cost == SLOWDOWN:
        least = (_TAU if setting.cost == BSLD else 1) * setting.ticks
        return float(max((wait + run_time) / max(run_time, least), 1.0))
    return 0.0


@inlined
def _settle(one: Episode, setting: Setting) -> None:
    """Add up what has accrued until now."""
    if setting.cost != NO_COST:
        total = one.cost[SETTLED]
        for at in range(1, one.waiting[0] + 1):
            if one.jobs.start[one.waiting[at]] < 0:
                total += _cost_of(one.jobs, setting, one.waiting[at], one.state[NOW])
        one.cost[TOTAL] = total
