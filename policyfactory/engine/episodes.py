"""Many episodes side by side, each a run under EASY backfilling that somebody else decides, job by job.

The rule is that of `policyfactory.engine.easy` with the order left open. At each instant at which something happens
there is one pass. While a waiting job fits, the next job of the queue is asked for: one that fits is started, one that
does not becomes the head with a reservation. From then on only the jobs are asked for that leave the reservation as
it is, until there is none. Nothing is asked where only one answer is possible. So who always takes the least score by
what is known at the beginning of the pass, ties by the first place, plays the schedule of that policy.

An episode's jobs are, in this order: those that run at its beginning, those that wait then, those still to come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import inlined, kernel
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import (
    BOUNDS,
    EXTRA,
    FREE,
    HIGH,
    LOW,
    NEVER,
    NEXT,
    NOW,
    PASS,
    PREDICTED,
    SHADOW,
    SMALLEST,
    STARTED,
    UNTIL,
    WIDTH,
    Jobs,
    advance,
    insert_gap,
    lower_bound,
    may_backfill,
    next_end,
    pop_end,
    push_end,
    remove_column,
    reserve_for,
    upper_bound,
)
from policyfactory.engine.metrics import TAU
from policyfactory.engine.waiting import close_gaps, submit_all


@kernel
def begin(
    batch: Batch,
    view: View,
    setting: EpisodeSetting,
    number: int,
    log: Log,
    rows: Int64Array,
    started: Int64Array,
    now: int,
) -> None:
    """Begin an episode anew and go on to its first decision.

    Parameters
    ----------
    batch, view : Batch, View
        Where it stands, and what is seen of it.
    setting : Setting
        What holds for all.
    number : int
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
        batch.submit[number, i] = log.submit[job]
        batch.run_time[number, i] = log.run_time[job]
        batch.estimate[number, i] = log.estimate[job]
        batch.processors[number, i] = log.processors[job]
        for column in range(FACTS):
            batch.facts[number, i, column] = log.facts[job, column]
        batch.start[number, i] = -1
        batch.backfilled[number, i] = False
    batch.state[number, :] = 0
    batch.state[number, COUNT], batch.state[number, HELD] = len(rows), len(started)
    episode = _episode(batch, view, number)
    _begin(episode, setting, started, now)
    view.done[number] = view.replaced[number] = False
    _go_on(episode, setting)
    if episode.state[PHASE] == OVER:
        # Nothing is to be decided in the whole of it: any choice ends it.
        show(episode, setting)
        episode.mask[0] = True


@kernel
def step_all(batch: Batch, view: View, setting: EpisodeSetting, actions: Int64Array) -> None:
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
    for number in range(len(actions)):
        if view.done[number]:
            continue
        episode = _episode(batch, view, number)
        if episode.state[PHASE] != OVER:
            slot = actions[number]
            view.replaced[number] = slot < 0 or slot >= len(episode.mask) or not episode.mask[slot]
            if view.replaced[number]:
                slot = 0
                while not episode.mask[slot]:
                    slot += 1
            _decide(episode, setting, episode.waiting[slot + 1])
            _go_on(episode, setting)
        episode.cost[SINCE] = episode.cost[TOTAL] - episode.cost[REPORTED]
        episode.cost[REPORTED] = episode.cost[TOTAL]
        if episode.state[PHASE] == OVER:
            view.done[number] = True
            episode.mask[:] = False


@kernel
def _episode(batch: Batch, view: View, number: int) -> Episode:
    n = batch.state[number, COUNT]
    jobs = Jobs(
        batch.submit[number, :n],
        batch.run_time[number, :n],
        batch.estimate[number, :n],
        batch.processors[number, :n],
        batch.none,
        batch.none,
        batch.start[number, :n],
        batch.backfilled[number, :n],
        batch.none,
        batch.none,
    )
    return Episode(
        jobs,
        batch.facts[number],
        batch.state[number],
        batch.heap[number],
        batch.running[number],
        batch.waiting[number],
        view.jobs[number],
        view.machine[number],
        view.running[number],
        view.mask[number],
        view.cost[number],
    )


@inlined
def _begin(episode: Episode, setting: EpisodeSetting, started: Int64Array, now: int) -> None:
    """Let those that run, run, and those that wait, wait."""
    jobs, state, waiting, running = episode.jobs, episode.state, episode.waiting, episode.running
    state[FREE], state[SMALLEST], state[UNTIL], state[NOW] = setting.machine, NEVER, NEVER, now
    state[SHOWN], state[PHASE] = len(episode.shown), PASSED
    episode.heap[0, 0] = waiting[0] = 0
    running[BOUNDS, LOW] = running[BOUNDS, HIGH] = running.shape[1] // 2
    episode.cost[SINCE] = episode.cost[TOTAL] = episode.cost[SETTLED] = episode.cost[REPORTED] = 0.0
    for i in range(len(started)):
        jobs.start[i] = started[i]
        _put(episode, i, started[i])
    state[NEXT] = len(started)
    while state[NEXT] < len(jobs.submit) and jobs.submit[state[NEXT]] < now:
        waiting[0] += 1
        waiting[waiting[0]] = state[NEXT]
        state[SMALLEST] = min(state[SMALLEST], jobs.processors[state[NEXT]])
        state[NEXT] += 1


@inlined
def _put(episode: Episode, job: int, start: int) -> None:
    """Let ``job`` run since ``start``."""
    jobs, running = episode.jobs, episode.running
    predicted = start + jobs.estimate[job]
    push_end(episode.heap, start + jobs.run_time[job], job)
    column = insert_gap(running, 3, upper_bound(running, predicted))
    running[PREDICTED, column] = predicted
    running[WIDTH, column] = jobs.processors[job]
    running[JOB, column] = job
    episode.state[FREE] -= jobs.processors[job]
    episode.state[STARTED] += 1


@inlined
def _complete(episode: Episode) -> None:
    """Free the processors of every job that ends now."""
    jobs, running = episode.jobs, episode.running
    while next_end(episode.heap, NEVER) <= episode.state[NOW]:
        job = pop_end(episode.heap)
        episode.state[FREE] += jobs.processors[job]
        column = lower_bound(running, jobs.start[job] + jobs.estimate[job])
        while running[JOB, column] != job:
            column += 1
        remove_column(running, 3, column)


@inlined
def _start(episode: Episode, setting: EpisodeSetting, job: int) -> None:
    """Start ``job`` now; it must fit."""
    jobs, state = episode.jobs, episode.state
    if state[PHASE] == BACKFILL:
        jobs.backfilled[job] = True
        if state[NOW] + jobs.estimate[job] > state[SHADOW]:
            state[EXTRA] -= jobs.processors[job]
    jobs.start[job] = state[NOW]
    episode.cost[SETTLED] += _cost_of(jobs, setting, job, state[NOW])
    _put(episode, job, state[NOW])


@inlined
def _decide(episode: Episode, setting: EpisodeSetting, job: int) -> None:
    """Start ``job``, or let it be the head with a reservation."""
    jobs, state = episode.jobs, episode.state
    if jobs.processors[job] <= state[FREE]:
        _start(episode, setting, job)
    elif setting.backfill:
        reserve_for(jobs, state, episode.running, job)
        state[PHASE] = BACKFILL
    else:
        state[PHASE] = PASSED


@inlined
def _next_pass(episode: Episode) -> None:
    """Go on to the next instant at which a waiting job fits, or to the end."""
    jobs, state, waiting = episode.jobs, episode.state, episode.waiting
    close_gaps(jobs, state, waiting)
    state[FRESH] = 0
    state[PHASE] = OVER
    while state[STARTED] < state[COUNT]:
        advance(jobs, state, episode.heap)
        _complete(episode)
        submit_all(jobs, state, waiting)
        if state[FREE] >= state[SMALLEST]:
            state[PHASE] = HEAD
            break


@inlined
def _go_on(episode: Episode, setting: EpisodeSetting) -> None:
    """Do what only one answer is possible to, until something is to be decided, and show it, or all are started."""
    jobs, state, waiting = episode.jobs, episode.state, episode.waiting
    while state[PHASE] != OVER:
        left, possible, only = 0, 0, -1
        for position in range(1, waiting[0] + 1):
            job = waiting[position]
            if jobs.start[job] >= 0 or state[PHASE] == PASSED:
                continue
            left += 1
            if jobs.processors[job] <= state[FREE] and (state[PHASE] == HEAD or may_backfill(jobs, state, job)):
                possible += 1
                only = job
        # A job that does not fit can be the head, so that one that fits is no answer while others wait.
        if possible == 0:
            _next_pass(episode)
        elif possible == 1 and (state[PHASE] == BACKFILL or left == 1):
            _start(episode, setting, only)
        else:
            break
    _settle(episode, setting)
    if state[PHASE] != OVER:
        show(episode, setting)


@inlined
def _cost_of(jobs: Jobs, setting: EpisodeSetting, job: int, now: int) -> float:
    """Return what ``job`` has cost if it starts, or waits, until now."""
    wait, run_time = now - jobs.submit[job], jobs.run_time[job]
    if setting.cost == WAIT:
        return float(wait / setting.ticks)
    if setting.cost == TURNAROUND:
        return float((wait + run_time) / setting.ticks)
    if setting.cost == BSLD or setting.cost == SLOWDOWN:
        least = (TAU if setting.cost == BSLD else 1) * setting.ticks
        return float(max((wait + run_time) / max(run_time, least), 1.0))
    return 0.0


@inlined
def _settle(episode: Episode, setting: EpisodeSetting) -> None:
    """Add up what has accrued until now."""
    if setting.cost != NO_COST:
        total = episode.cost[SETTLED]
        for position in range(1, episode.waiting[0] + 1):
            if episode.jobs.start[episode.waiting[position]] < 0:
                total += _cost_of(episode.jobs, setting, episode.waiting[position], episode.state[NOW])
        episode.cost[TOTAL] = total


# Where episodes stand, and what is seen of them -----------------------------------------------------------------------

# An episode is a run of which somebody else decides job by job (`policyfactory.engine.episodes`). Many of them stand
# side by side in arrays with one more axis. What is shown of the jobs is that of the beginning of a pass; within the
# pass only the mask and the machine's row change.


# Behind the entries of `policyfactory.engine.events` in the state: what is asked for; how many jobs there are, how many
# of them ran at the beginning; how many slots show a job; whether they show this pass; how many processors were free
# when it began.
PHASE, COUNT, HELD, SHOWN, FRESH, FREE_THEN = range(PASS + 1, PASS + 7)
HEAD, BACKFILL, PASSED, OVER = range(4)
# What accrues while a job waits.
NO_COST, WAIT, TURNAROUND, BSLD, SLOWDOWN = range(5)
# Columns: what a log has of a job; what is shown of a waiting job, of the machine, of a running job.
FACTS, FEATURES, MACHINE, RUNNING = 3, 6, 6, 3
# Columns of the costs.
SINCE, TOTAL, SETTLED, REPORTED = range(4)
# Row of the table of running jobs, below the predicted end and the processors.
JOB = 3


class Log(NamedTuple):
    """The jobs that episodes are cut from, by submit time, then job id.

    Parameters
    ----------
    submit, run_time, estimate, processors : int64 array (n,), ticks, processors
        As in `policyfactory.engine.events.Jobs`.
    facts : float32 array (n, 3)
        What is shown of a job and does not change: columns 1 to 3 of what is shown.
    """

    submit: Int64Array
    run_time: Int64Array
    estimate: Int64Array
    processors: Int64Array
    facts: NDArray[np.float32]


class EpisodeSetting(NamedTuple):
    """What holds for all episodes.

    Parameters
    ----------
    machine : int
        Processors.
    ticks : int
        Ticks in a second.
    backfill : bool
        False: strict order; a head that does not fit ends the pass.
    cost : int
        What accrues: ``NO_COST``, ``WAIT``, ``TURNAROUND``, ``BSLD`` or ``SLOWDOWN``.
    """

    machine: int
    ticks: int
    backfill: bool
    cost: int


class Batch(NamedTuple):
    """Where b episodes of at most n jobs stand; arrays (b, ...), of jobs (b, n)."""

    submit: Int64Array
    run_time: Int64Array
    estimate: Int64Array
    processors: Int64Array
    facts: NDArray[np.float32]
    start: Int64Array
    backfilled: NDArray[np.bool_]
    state: Int64Array
    heap: Int64Array
    running: Int64Array
    waiting: Int64Array
    none: Int64Array


class View(NamedTuple):
    """What is seen of b episodes.

    Parameters
    ----------
    jobs : float32 array (b, slots, 6)
        Waiting jobs in submit order: log10(w + 10) - 1, the three facts, whether it fits, free share; then zeros.
    machine : float32 array (b, 6)
        Free share now; log10(1 + waiting jobs); log10(1 + running jobs); 1 behind a head with a reservation, and then
        the share of extra processors and log10(seconds to the shadow time + 10) - 1.
    running : float32 array (b, rows, 3)
        Running jobs by predicted end: log10(seconds to it + 10) - 1, log10(seconds run + 10) - 1, share; then zeros.
    mask : bool array (b, slots)
        Which can be chosen.
    cost : float64 array (b, 4)
        What has accrued, summed over the jobs: since the last decision (the first: since the beginning); in all; by
        the jobs that were started; and what was in all at the last decision.
    done : bool array (b,)
        Whether the episode is over.
    replaced : bool array (b,)
        Whether the last choice was masked, and the first that can be chosen was taken.
    """

    jobs: NDArray[np.float32]
    machine: NDArray[np.float32]
    running: NDArray[np.float32]
    mask: NDArray[np.bool_]
    cost: FloatArray
    done: NDArray[np.bool_]
    replaced: NDArray[np.bool_]


class Episode(NamedTuple):
    """Where one stands, and what is seen of it: rows of a batch and a view.

    Made once a step and handed on to inlined functions: a call would pass, and count, every array.
    """

    jobs: Jobs
    facts: NDArray[np.float32]
    state: Int64Array
    heap: Int64Array
    running: Int64Array
    waiting: Int64Array
    shown: NDArray[np.float32]
    machine: NDArray[np.float32]
    rows: NDArray[np.float32]
    mask: NDArray[np.bool_]
    cost: FloatArray


def new_batch(episodes: int, jobs: int, machine: int) -> Batch:
    """Return the space for episodes of at most ``jobs`` jobs each, those that run at the beginning included."""
    rows, of_jobs = min(jobs, machine), (episodes, jobs)
    return Batch(
        submit=np.zeros(of_jobs, dtype=np.int64),
        run_time=np.zeros(of_jobs, dtype=np.int64),
        estimate=np.zeros(of_jobs, dtype=np.int64),
        processors=np.zeros(of_jobs, dtype=np.int64),
        facts=np.zeros((*of_jobs, FACTS), dtype=np.float32),
        start=np.zeros(of_jobs, dtype=np.int64),
        backfilled=np.zeros(of_jobs, dtype=np.bool_),
        state=np.zeros((episodes, FREE_THEN + 1), dtype=np.int64),
        heap=np.zeros((episodes, 2, rows + 1), dtype=np.int64),
        # As new_table of `policyfactory.engine.events` makes one.
        running=np.zeros((episodes, JOB + 1, 2 * rows + 64), dtype=np.int64),
        waiting=np.zeros((episodes, jobs + 1), dtype=np.int64),
        none=np.empty(0, dtype=np.int64),
    )


def new_view(episodes: int, slots: int, rows: int) -> View:
    """Return the space for what is seen of episodes: ``slots`` waiting and ``rows`` running jobs."""
    return View(
        jobs=np.zeros((episodes, slots, FEATURES), dtype=np.float32),
        machine=np.zeros((episodes, MACHINE), dtype=np.float32),
        running=np.zeros((episodes, rows, RUNNING), dtype=np.float32),
        mask=np.zeros((episodes, slots), dtype=np.bool_),
        cost=np.zeros((episodes, REPORTED + 1)),
        done=np.zeros(episodes, dtype=np.bool_),
        replaced=np.zeros(episodes, dtype=np.bool_),
    )


@inlined
def _log(passed: int, setting: EpisodeSetting) -> float:
    return math.log10(passed / setting.ticks + 10.0) - 1.0


@inlined
def show(episode: Episode, setting: EpisodeSetting) -> None:
    """Fill in what is seen: the mask and the machine's row, and at the beginning of a pass the jobs."""
    jobs, state, waiting, mask, row = episode.jobs, episode.state, episode.waiting, episode.mask, episode.machine
    if state[FRESH] == 0:
        _show_jobs(episode, setting)
        state[FRESH] = 1
    backfills, left = state[PHASE] == BACKFILL, 0
    for slot in range(waiting[0]):
        job = waiting[slot + 1]
        waits = jobs.start[job] < 0
        left += waits
        mask[slot] = waits and (
            not backfills or (jobs.processors[job] <= state[FREE] and may_backfill(jobs, state, job))
        )
    row[0] = state[FREE] / setting.machine
    row[1] = math.log10(1.0 + left)
    row[2] = math.log10(1.0 + episode.heap[0, 0])
    row[3] = 1.0 if backfills else 0.0
    row[4] = state[EXTRA] / setting.machine if backfills else 0.0
    row[5] = _log(state[SHADOW] - state[NOW], setting) if backfills else 0.0


@inlined
def _show_jobs(episode: Episode, setting: EpisodeSetting) -> None:
    """Fill in the waiting jobs and those that run."""
    jobs, state, waiting, running = episode.jobs, episode.state, episode.waiting, episode.running
    shown, rows = episode.shown, episode.rows
    free, count, now = state[FREE], waiting[0], state[NOW]
    for slot in range(count):
        job = waiting[slot + 1]
        shown[slot, 0] = _log(now - jobs.submit[job], setting)
        for column in range(FACTS):
            shown[slot, column + 1] = episode.facts[job, column]
        shown[slot, 4] = 1.0 if jobs.processors[job] <= free else 0.0
        shown[slot, 5] = free / setting.machine
    for slot in range(count, state[SHOWN]):
        episode.mask[slot] = False
        for column in range(FEATURES):
            shown[slot, column] = 0.0
    state[SHOWN], state[FREE_THEN] = count, free
    low = running[BOUNDS, LOW]
    for row in range(len(rows)):
        entry = low + row
        if entry < running[BOUNDS, HIGH]:
            rows[row, 0] = _log(max(running[PREDICTED, entry] - now, 0), setting)
            rows[row, 1] = _log(now - jobs.start[running[JOB, entry]], setting)
            rows[row, 2] = running[WIDTH, entry] / setting.machine
        else:
            for column in range(RUNNING):
                rows[row, column] = 0.0
