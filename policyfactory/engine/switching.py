"""Runs in which the policy changes at given instants, and runs of each period's jobs alone.

A change of policy is no event: the first pass after it, at the next submission or completion, is made in the new order.
A policy whose scores do not change while a job waits has a sorted queue (`policyfactory.engine.easy`), another a list
in submit order (`policyfactory.engine.easy`); at a change the waiting jobs go from one to the other, or are sorted
anew.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel
from policyfactory.core.options import Int64Array, Mask
from policyfactory.engine.easy import JOB, RANK, WIDTH, SortedRun, easy_until, new_queue, overdue_key, timed_until
from policyfactory.engine.events import (
    BOUNDS,
    FREE,
    HIGH,
    LOW,
    NEVER,
    NEXT,
    NOW,
    ONCE,
    OVERDUE,
    SMALLEST,
    UNTIL,
    VALID,
    Jobs,
    Order,
)
from policyfactory.engine.waiting import ASKED, PREDICTIONS, Formula, Space, new_space


class Arms(NamedTuple):
    """The policies that can be in force, and behind them the order for backfilling if it is none of them.

    Parameters
    ----------
    keys : int64 array (arms, n)
        Sort key of each job; not read for a policy that is not sorted.
    is_sorted : bool array (arms,)
        Whether the keys hold, and those of its order for backfilling.
    backfill_arm : int64 array (arms,)
        Which of the arms orders the candidates for backfilling; the policy itself if none has an order of its own.
    threshold : int64 array (arms,)
        Ticks.
    programs : int64 array (arms + 1,)
        Where the program of each begins in ``codes``.
    places : int64 array (arms + 1,)
        Where its operands begin in ``operands``.
    codes : int64 array (k,)
        Instructions.
    operands : float64 array (at least k,)
        Their operands.
    depth : int
        Deepest stack.
    r : float64 array (arms, n)
        Submit time since the epoch, in seconds; not read for a policy that is sorted.
    from_oldest : bool array (arms,)
        As in `policyfactory.engine.waiting.Formula`.
    """

    keys: Int64Array
    is_sorted: Mask
    backfill_arm: Int64Array
    threshold: Int64Array
    programs: Int64Array
    places: Int64Array
    codes: Int64Array
    operands: NDArray[np.float64]
    depth: int
    r: NDArray[np.float64]
    from_oldest: Mask


class SwitchingState(NamedTuple):
    """Where a run stands: for policies without keys, for those with keys, and the policy in force (or -1)."""

    space: Space
    sorted: SortedRun
    in_force: Int64Array


def new_run(jobs: int, processors: int, depth: int) -> SwitchingState:
    """Return a run of ``jobs`` jobs with formulas that need ``depth`` rows of a stack, before its first event."""
    space = new_space(jobs, processors, depth)
    keyed = SortedRun(space.state, space.heap, space.running, new_queue(jobs))
    return SwitchingState(space, keyed, np.array([-1], dtype=np.int64))


def run_timetable(
    jobs: Jobs, run: SwitchingState, arms: Arms, order: Order, choices: Int64Array, untils: Int64Array, processors: int
) -> None:
    """Go on with a run, one policy after another.

    Parameters
    ----------
    jobs : Jobs
        Without keys; ``start`` and ``backfilled`` are filled in.
    run : SwitchingState
        Where the run stands.
    arms : Arms
        The policies.
    order : Order
        The rest of the order; the threshold and the order for backfilling are those of the policy in force.
    choices, untils : int64 array (k,)
        Policies, and the instants (ticks) before which each of them stops.
    processors : int
        Processors of the machine.
    """
    for arm, until in zip(choices.tolist(), untils.tolist(), strict=True):
        backfill_arm = int(arms.backfill_arm[arm])
        run.space.state[UNTIL] = until
        now = order._replace(threshold=int(arms.threshold[arm]), same_formula=backfill_arm == arm)
        if run.in_force[0] != arm:
            _list_waiting(run, arms)
        if arms.is_sorted[arm]:
            mine = jobs._replace(key=arms.keys[arm], backfill_key=arms.keys[backfill_arm])
            if run.in_force[0] != arm:
                _sort_waiting(mine, run.space, run.sorted, now)
            easy_until(mine, run.sorted, now)
        else:
            timed_until(jobs, run.space, _formula(arms, arm), _formula(arms, backfill_arm), now, processors)
        run.in_force[0] = arm


def _formula(arms: Arms, arm: int) -> Formula:
    codes = arms.codes[arms.programs[arm] : arms.programs[arm + 1]]
    operands = arms.operands[arms.places[arm] : arms.places[arm + 1]]
    none = np.empty((PREDICTIONS, 0))
    return Formula(codes, operands, arms.depth, arms.r[arm], bool(arms.from_oldest[arm]), none, np.empty((ASKED, 0)))


def _list_waiting(run: SwitchingState, arms: Arms) -> None:
    """Let the list have the waiting jobs in submit order, wherever they are."""
    waiting, queue, arm = run.space.waiting, run.sorted.queue, run.in_force[0]
    if arm >= 0 and arms.is_sorted[arm]:
        low, high = queue[BOUNDS, LOW], queue[BOUNDS, HIGH]
        waiting[0] = high - low
        waiting[1 : high - low + 1] = queue[JOB, low:high]
        queue[BOUNDS, HIGH] = low
    # Also a list: under the rules of ocst the overdue jobs of an instant are turned round.
    waiting[1 : waiting[0] + 1].sort()


@kernel
def _sort_waiting(jobs: Jobs, space: Space, run: SortedRun, order: Order) -> None:
    """Fill the sorted queue from the list."""
    state, waiting, queue = space.state, space.waiting, run.queue
    count, now = waiting[0], state[NOW]
    listed = waiting[1 : count + 1]
    if order.last_first:
        listed = listed[::-1]
    keys = np.empty(count, dtype=np.int64)
    for i in range(count):
        job = listed[i]
        keys[i] = overdue_key(jobs, job) if now - jobs.submit[job] > order.threshold else jobs.key[job]
    # Stable: equal keys stay in the order of the list, or of its reverse.
    places = np.argsort(keys, kind="mergesort")
    low = (queue.shape[1] - count) // 2
    state[SMALLEST] = NEVER
    for i in range(count):
        job = listed[places[i]]
        queue[RANK, low + i] = keys[places[i]]
        queue[WIDTH, low + i] = jobs.processors[job]
        queue[JOB, low + i] = job
        state[SMALLEST] = min(state[SMALLEST], jobs.processors[job])
    queue[BOUNDS, LOW], queue[BOUNDS, HIGH] = low, low + count
    waiting[0] = 0
    overdue = np.searchsorted(jobs.submit[: state[NEXT]], now - order.threshold)
    state[OVERDUE] = overdue
    state[VALID] = ONCE


def total_waits(
    jobs: Jobs,
    run: SwitchingState,
    formulas: tuple[Formula, Formula] | None,
    order: Order,
    bounds: Int64Array,
    processors: int,
) -> Int64Array:
    """Return the total wait of each period's jobs, run alone from an empty machine, under one policy.

    Parameters
    ----------
    jobs : Jobs
        With keys where there are no formulas; ``start`` and ``backfilled`` are filled in.
    run : SwitchingState
        Space to work on.
    formulas : tuple of Formula or None
        Of a policy whose scores change while a job waits, the two of `policyfactory.engine.easy.easy_timed`; r counts
        as it should in each period.
    order : Order
        The rest of the order.
    bounds : int64 array (periods + 1,)
        Period i has the jobs from ``bounds[i]`` to before ``bounds[i + 1]``.
    processors : int
        Processors of the machine.

    Returns
    -------
    int64 array (periods,)
        Ticks.
    """
    jobs.start[bounds[0] : bounds[-1]] = -1
    jobs.backfilled[bounds[0] : bounds[-1]] = False
    for first, last in pairwise(bounds.tolist()):
        part = _part(jobs, first, last)
        _reset(run, processors)
        if formulas is None:
            easy_until(part, run.sorted, order)
        else:
            queue, candidates = (_cut(formula, first, last) for formula in formulas)
            timed_until(part, run.space, queue, candidates, order, processors)
    waited = np.zeros(len(jobs.start) + 1, dtype=np.int64)
    np.cumsum(jobs.start - jobs.submit, out=waited[1:])
    return waited[bounds[1:]] - waited[bounds[:-1]]


def _cut(formula: Formula, first: int, last: int) -> Formula:
    # Nothing else in the formulas of switching runs is of single jobs.
    return formula._replace(r=formula.r[first:last])


def _part(jobs: Jobs, first: int, last: int) -> Jobs:
    *columns, started = jobs
    return Jobs._make([*[column[first:last] for column in columns], started])


def _reset(run: SwitchingState, processors: int) -> None:
    """Empty the machine and the queues."""
    state = run.space.state
    state[:] = 0
    state[FREE], state[SMALLEST], state[UNTIL] = processors, NEVER, NEVER
    run.space.heap[0, 0] = 0
    run.space.waiting[0] = 0
    for table in (run.space.running, run.sorted.queue):
        table[BOUNDS, LOW] = table[BOUNDS, HIGH] = table.shape[1] // 2
