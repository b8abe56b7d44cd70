"""The waiting jobs where scores change with time: a list in submit order, scored anew at each pass.

The list is an int64 array (n + 1,): its first element counts the jobs, and from index 1 on are their numbers. Since
it is in submit order, the jobs that have waited longer than a threshold are its beginning, and ties need no
comparison but that of places. Jobs that are started stay in the list until the pass is over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.events import (
    FREE,
    NEVER,
    NEXT,
    NOW,
    OVERDUE,
    SMALLEST,
    Jobs,
    Order,
    is_listed,
    new_state,
)
from policyfactory.engine.formula import ASKED, COLUMNS, PREDICTIONS, evaluate
from policyfactory.engine.running import new_heap, new_running

__all__ = [
    "Formula",
    "Space",
    "close_gaps",
    "count_overdue",
    "head",
    "is_ahead",
    "new_space",
    "score_waiting",
    "submit_all",
]


class Formula(NamedTuple):
    """A policy as a program of `policyfactory.engine.formula`.

    Parameters
    ----------
    codes : int64 array (k,)
        Instructions.
    operands : float64 array (at least k,)
        Their operands, and behind them the layers of a network.
    depth : int
        Deepest stack.
    r : float64 array (n,)
        Submit time of each job since the policy's epoch, in seconds.
    from_oldest : bool
        The epoch is the submission of the waiting job that was submitted first; ``r`` is not read.
    predictions : float64 array (5, n)
        e, s, e90, user_waiting and user_running of each job; (5, 0) where the program reads none of them.
    asked : float64 array (3, n)
        n, mem and g of each job; (3, 0) where the program reads none of them.
    """

    codes: Int64Array
    operands: FloatArray
    depth: int
    r: FloatArray
    from_oldest: bool
    predictions: FloatArray
    asked: FloatArray


class Space(NamedTuple):
    """What a run works on: state, running jobs, waiting jobs and their scores (by the queue's order, by their own)."""

    state: Int64Array
    heap: Int64Array
    running: Int64Array
    waiting: Int64Array
    scores: FloatArray
    work: FloatArray


def new_space(jobs: int, processors: int, depth: int) -> Space:
    """Return the space for a run of ``jobs`` jobs with formulas that need ``depth`` rows of a stack."""
    rows = min(jobs, processors)
    waiting = np.zeros(jobs + 1, dtype=np.int64)
    scores, work = np.empty((2, jobs + 1)), np.empty((COLUMNS + PREDICTIONS + ASKED + depth, jobs))
    return Space(new_state(processors), new_heap(rows), new_running(rows), waiting, scores, work)


@inlined
def submit_all(jobs: Jobs, state: Int64Array, waiting: Int64Array) -> None:
    """Append every job that is submitted now."""
    while state[NEXT] < len(jobs.submit) and jobs.submit[state[NEXT]] == state[NOW]:
        job = state[NEXT]
        state[NEXT] = job + 1
        waiting[0] += 1
        waiting[waiting[0]] = job
        state[SMALLEST] = min(state[SMALLEST], jobs.processors[job])


@inlined
def close_gaps(jobs: Jobs, state: Int64Array, waiting: Int64Array) -> None:
    """Drop the jobs that were started; ``SMALLEST`` is exact afterwards."""
    kept = 0
    smallest = NEVER
    for at in range(1, waiting[0] + 1):
        if jobs.start[waiting[at]] < 0:
            kept += 1
            waiting[kept] = waiting[at]
            smallest = min(smallest, jobs.processors[waiting[at]])
    waiting[0] = kept
    state[SMALLEST] = smallest


@inlined
def count_overdue(jobs: Jobs, state: Int64Array, waiting: Int64Array, threshold: int) -> None:
    """Let ``OVERDUE`` be how many jobs, from the beginning of the list, have waited longer than the threshold."""
    count = 0
    while count < waiting[0] and state[NOW] - jobs.submit[waiting[count + 1]] > threshold:
        count += 1
    state[OVERDUE] = count
    if is_listed(jobs):
        _turn_instants(jobs, waiting, count)


@inlined
def _turn_instants(jobs: Jobs, waiting: Int64Array, count: int) -> None:
    """Let the first ``count`` jobs be in the order of ocst: of those submitted at one instant the last first."""
    first = 1
    while first <= count:
        last = first
        while last < count and jobs.submit[waiting[last + 1]] == jobs.submit[waiting[first]]:
            last += 1
        if waiting[first] < waiting[last]:
            for step in range((last - first + 1) // 2):
                one, other = waiting[first + step], waiting[last - step]
                waiting[first + step], waiting[last - step] = other, one
        first = last + 1


@inlined
def is_ahead(state: Int64Array, scores: FloatArray, order: Order, at: int, other: int) -> bool:
    """Say whether the job at place ``at`` is ahead in the queue of the one at ``other``, an earlier place."""
    if other <= state[OVERDUE]:
        return False
    return bool(scores[at] < scores[other] or (order.last_first and scores[at] == scores[other]))


@inlined
def head(jobs: Jobs, state: Int64Array, waiting: Int64Array, scores: FloatArray, order: Order) -> int:
    """Return the place of the first job in the queue, 0 if none waits."""
    best = 0
    for at in range(1, waiting[0] + 1):
        if jobs.start[waiting[at]] < 0 and (best == 0 or is_ahead(state, scores, order, at, best)):
            best = at
            if best <= state[OVERDUE]:
                break
    return best


@kernel
def score_waiting(
    jobs: Jobs,
    state: Int64Array,
    waiting: Int64Array,
    formula: Formula,
    machine: tuple[int, int],
    work: FloatArray,
    scores: FloatArray,
) -> None:
    """Fill in the value of each waiting job now; NaN becomes inf (runs last).

    Parameters
    ----------
    jobs : Jobs
        The jobs.
    state : int64 array
        Of the run: this instant, in ticks, and the processors that are free before anything is started (f).
    waiting : int64 array (n + 1,)
        The list.
    formula : Formula
        What to evaluate.
    machine : (int, int)
        Ticks in a second, processors of the machine (m).
    work : float64 array (12 + depth, at least n)
        Work space.
    scores : float64 array (n + 1,)
        The result, by place in the list.
    """
    ticks, processors = machine
    now, free = state[NOW], state[FREE]
    submit, estimate, width, since_epoch = jobs.submit, jobs.estimate, jobs.processors, formula.r
    count = waiting[0]
    oldest = submit[waiting[1]]
    for i in range(count):
        job = waiting[i + 1]
        work[0, i] = estimate[job] / ticks
        work[1, i] = width[job]
        work[2, i] = (submit[job] - oldest) / ticks if formula.from_oldest else since_epoch[job]
        work[3, i] = (now - submit[job]) / ticks
    predictions = formula.predictions
    if predictions.shape[1] > 0:
        for row in range(PREDICTIONS):
            for i in range(count):
                work[COLUMNS + row, i] = predictions[row, waiting[i + 1]]
    asked = formula.asked
    if asked.shape[1] > 0:
        for row in range(ASKED):
            for i in range(count):
                work[COLUMNS + PREDICTIONS + row, i] = asked[row, waiting[i + 1]]
    stack = work[COLUMNS + PREDICTIONS + ASKED :]
    evaluate(formula.codes, formula.operands, work, count, float(processors), float(free), stack)
    for i in range(count):
        scores[i + 1] = np.inf if np.isnan(stack[0, i]) else stack[0, i]
