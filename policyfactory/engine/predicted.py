"""Runs in the closed loop: what is predicted of a job comes from jobs that have ended, run or wait in this very run.

Predictions are made when a job is submitted; if they are renewed, also, at the first event of each period, for the
waiting jobs of users of whom a job has ended since the last renewal. The runs themselves are those of
`policyfactory.engine.easy`, `policyfactory.engine.easy` and `policyfactory.engine.conservative`, which are stopped
before each instant at which something is predicted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import joined, kernel, step
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.conservative import conservative_until
from policyfactory.engine.easy import SortedRun, easy_until, put_elsewhere, timed_until
from policyfactory.engine.events import NEVER, OVERDUE, STARTED, UNTIL, Jobs, Order, next_end
from policyfactory.engine.past import (
    DESCRIBED,
    RUNNING,
    WAITING,
    Forest,
    Past,
    describe,
    forest_sum,
    note_until,
    submitted,
    take_changed,
)
from policyfactory.engine.waiting import ASKED, COLUMNS, PREDICTIONS, Formula, Space, evaluate

TAU_S = 10.0
_LEAST = 1e-6  # of a shortness, and of a run time as a share of the request

_MAGNITUDE = (1 << 63) - 1  # all bits but the sign

# Rows of the predictions, in the order of the formulas' variables.
E, S, E90, USER_WAITING, USER_RUNNING = range(PREDICTIONS)
# Elements of `Foresight.renewal`.
PERIOD, DUE = range(2)


@by_pointer
class Foresight(NamedTuple):
    """What predicts, and what was predicted of n jobs.

    Parameters
    ----------
    shortness, share, tail : Forest
        The logarithms of E[10 / max(run time, 10)] and of E[run time / request], and the ninth decile of the latter.
        Without trees the request is taken for the run time.
    features : float64 array (n + 1, FEATURES)
        Of each job when it was submitted; the last row is work space.
    predictions : float64 array (5, n)
        e, s, e90, user_waiting, user_running of each job, as they are now.
    renewal : int64 array (2,)
        Ticks from one renewal to the next, 0 for none; the instant from which on one is due.
    renewed : int64 array (n,)
        Work space: the jobs that are predicted anew.
    """

    shortness: Forest
    share: Forest
    tail: Forest
    features: FloatArray
    predictions: FloatArray
    renewal: Int64Array
    renewed: Int64Array


@by_pointer
class PredictedRun(NamedTuple):
    """A run of n jobs and where it stands.

    Parameters
    ----------
    jobs : Jobs
        With ``started``; with keys if the queue is sorted by them.
    keys, backfill_keys : int64 array (n,)
        The same memory as the keys of ``jobs``, to be written; empty where there are none.
    space : Space
        State, running jobs and, unless the queue is sorted, waiting ones.
    formula, backfill_formula : Formula
        The order of the queue and that of the candidates for backfilling; their predictions are those of `Foresight`.
    order : Order
        The rest of the order.
    processors : int
        Processors of the machine.
    """

    jobs: Jobs
    keys: Int64Array
    backfill_keys: Int64Array
    space: Space
    formula: Formula
    backfill_formula: Formula
    order: Order
    processors: int


@kernel
def predicted_until(
    run: PredictedRun,
    keyed: SortedRun | None,
    scored: Formula | None,
    profile: Int64Array | None,
    past: Past,
    sight: Foresight,
    until: int,
) -> None:
    """Go on with a run until all jobs are started, or up to the last instant before ``until``.

    Of the three ways in which a run is made, that one is compiled whose argument is not None.

    Parameters
    ----------
    run : PredictedRun
        Where the run stands.
    keyed : SortedRun or None
        The same, with a queue that is sorted by keys.
    scored : Formula or None
        Without keys: the order of the candidates for backfilling.
    profile : int64 array or None
        Of `policyfactory.engine.conservative.new_profile`, for conservative backfilling.
    past : Past
        What it has seen.
    sight : Foresight
        What predicts; it may be another than before, with the same arrays of features and predictions.
    until : int
        Ticks.
    """
    jobs, state, heap = run.jobs, run.space.state, run.space.heap
    n = len(jobs.submit)
    while True:
        job = past.progress[DESCRIBED]
        submission = jobs.submit[job] if job < n else NEVER
        due = sight.renewal[DUE] if sight.renewal[PERIOD] > 0 else NEVER
        state[UNTIL] = min(submission, due, until)
        if keyed is not None:
            easy_until(jobs, keyed, run.order)
        if scored is not None:
            timed_until(jobs, run.space, run.formula, scored, run.order, run.processors)
        if profile is not None:
            conservative_until(jobs, run.space, profile, run.formula, run.order, run.processors)
        instant = next_end(heap, submission)
        is_over = state[STARTED] == n or instant >= until
        note_until(past, jobs, state, until - 1 if is_over else instant)
        if is_over:
            break
        if due <= instant:
            _renew(run, keyed, past, sight, instant)
        while job < n and jobs.submit[job] == instant:
            foresee_submitted(past, sight, jobs.start, job, instant)
            if keyed is not None:
                _fill_keys(run, sight, job)
            job += 1


@step
def foresee_submitted(past: Past, sight: Foresight, start: Int64Array, job: int, now: int) -> None:
    """Predict a job that is submitted now, and note that it was.

    Parameters
    ----------
    past : Past
        With all that happened up to now.
    sight : Foresight
    start : int64 array (n,)
        Of the jobs that were started.
    job, now : int
        Which one; ticks.
    """
    user, predictions = past.user[job], sight.predictions
    predictions[USER_WAITING, job] = past.by_user[user, WAITING] if user >= 0 else 0.0
    predictions[USER_RUNNING, job] = past.by_user[user, RUNNING] if user >= 0 else 0.0
    foresee(past, sight, start, job, now, sight.features[job])
    submitted(past, job, now)


@step
def foresee(past: Past, sight: Foresight, start: Int64Array, job: int, now: int, features: FloatArray) -> None:
    """Describe a job as it is now, and fill in e, s and e90; parameters as of `foresee_submitted`."""
    describe(past, start, job, now, features)
    request = math.exp(past.facts[job, 0])
    shortness, share, tail = TAU_S / max(request, TAU_S), 1.0, 1.0
    if len(sight.shortness.roots) > 0:
        shortness = min(max(math.exp(forest_sum(sight.shortness, features)), _LEAST), 1.0)
        share = min(max(math.exp(forest_sum(sight.share, features)), _LEAST), 1.0)
    if len(sight.tail.roots) > 0:
        tail = min(max(forest_sum(sight.tail, features), _LEAST), 1.0)
    sight.predictions[E, job] = share * request
    sight.predictions[S, job] = shortness
    sight.predictions[E90, job] = tail * request


@step
def _fill_keys(run: PredictedRun, sight: Foresight, job: int) -> None:
    """Fill in the keys of a job that was predicted."""
    run.keys[job] = _key(run, run.formula, sight, job)
    if len(run.backfill_keys) > 0:
        run.backfill_keys[job] = _key(run, run.backfill_formula, sight, job)


@step
def _key(run: PredictedRun, formula: Formula, sight: Foresight, job: int) -> int:
    """Return the sort key of a job under a static formula, as `policyfactory.engine.events.sort_keys` has it."""
    work = run.space.work
    work[0, 0] = run.jobs.estimate[job] / run.order.ticks
    work[1, 0] = run.jobs.processors[job]
    work[2, 0] = formula.r[job]
    work[3, 0] = 0.0
    for row in range(PREDICTIONS):
        work[COLUMNS + row, 0] = sight.predictions[row, job]
    if formula.asked.shape[1] > 0:
        for row in range(ASKED):
            work[COLUMNS + PREDICTIONS + row, 0] = formula.asked[row, job]
    stack = work[COLUMNS + PREDICTIONS + ASKED :]
    # A static formula reads no free processors.
    evaluate(formula.codes, formula.operands, work, 1, float(run.processors), 0.0, stack)
    value = stack[0]
    value[0] = np.inf if np.isnan(value[0]) else value[0] + 0.0
    bits = value.view(np.int64)[0]
    return int(bits ^ ((bits >> 63) & _MAGNITUDE))


@step
def _renew(run: PredictedRun, keyed: SortedRun | None, past: Past, sight: Foresight, now: int) -> None:
    """Predict anew the waiting jobs of the users of whom a job has ended."""
    period = sight.renewal[PERIOD]
    sight.renewal[DUE] = (now // period + 1) * period
    for index in range(take_changed(past, sight.renewed)):
        job = sight.renewed[index]
        foresee(past, sight, run.jobs.start, job, now, sight.features[len(run.jobs.submit)])
        if keyed is not None:
            _renew_keys(run, keyed, sight, job)


@joined
def _renew_keys(run: PredictedRun, keyed: SortedRun, sight: Foresight, job: int) -> None:
    """Fill in the keys of a job that was predicted anew, and move it to its place in the queue."""
    old = run.keys[job]
    _fill_keys(run, sight, job)
    # The sorted queue has overdue jobs by another key.
    if job >= keyed.state[OVERDUE] and run.keys[job] != old:
        put_elsewhere(run.jobs, keyed.state, keyed.queue, run.order, job, old)
