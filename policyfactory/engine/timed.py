"""Strict order and EASY backfilling for policies whose scores change while a job waits.

The rule is that of `policyfactory.engine.easy`. Every waiting job is scored at each pass in which one could start;
the queue is never sorted: the heads are found one by one, and of the rest only those are compared that may start.
"""

from __future__ import annotations

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.events import (
    FREE,
    SMALLEST,
    STARTED,
    Jobs,
    Order,
    advance,
    backfill,
    complete,
    may_backfill,
    reserve_for,
    start_job,
)
from policyfactory.engine.waiting import (
    Formula,
    Space,
    close_gaps,
    count_overdue,
    head,
    is_ahead,
    new_space,
    score_waiting,
    submit_all,
)

__all__ = ["easy_timed", "timed_until"]

# Rows of the scores: of the queue's policy, of the order for backfilling.
QUEUE, OWN = 0, 1


def easy_timed(jobs: Jobs, formula: Formula, backfill_formula: Formula, order: Order, processors: int) -> None:
    """Fill in the start of each job, and whether it was backfilled.

    Parameters
    ----------
    jobs : Jobs
        Without keys; ``start`` and ``backfilled`` are filled in.
    formula : Formula
        The order of the queue.
    backfill_formula : Formula
        The order of the candidates for backfilling, if ``order.own_order``; else not read.
    order : Order
        The rest of the order.
    processors : int
        Processors of the machine, at least those of any job.
    """
    space = new_space(len(jobs.submit), processors, max(formula.depth, backfill_formula.depth))
    timed_until(jobs, space, formula, backfill_formula, order, processors)


@kernel
def timed_until(
    jobs: Jobs, space: Space, formula: Formula, backfill_formula: Formula, order: Order, processors: int
) -> None:
    """Go on with a run until all jobs are started, or up to the last instant before ``state[UNTIL]``.

    Parameters
    ----------
    jobs : Jobs
        Without keys; ``start`` and ``backfilled`` are filled in.
    space : Space
        Where the run stands.
    formula, backfill_formula : Formula
        As for `easy_timed`; they may be others than before.
    order : Order
        The rest of the order.
    processors : int
        Processors of the machine.
    """
    state, heap, running, waiting, scores, work = space
    machine = (order.ticks, processors)
    while state[STARTED] < len(jobs.submit) and advance(jobs, state, heap):
        complete(jobs, state, heap, running)
        submit_all(jobs, state, waiting)
        if state[FREE] < state[SMALLEST]:
            continue
        count_overdue(jobs, state, waiting, order.threshold)
        score_waiting(jobs, state, waiting, formula, machine, work, scores[QUEUE])
        if order.own_order and not order.same_formula:
            score_waiting(jobs, state, waiting, backfill_formula, machine, work, scores[OWN])
        _schedule(jobs, state, heap, running, waiting, scores, order)
        close_gaps(jobs, state, waiting)


@inlined
def _schedule(
    jobs: Jobs,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    waiting: Int64Array,
    scores: FloatArray,
    order: Order,
) -> None:
    """Make one pass over scored jobs."""
    first = head(jobs, state, waiting, scores[QUEUE], order)
    while first > 0 and jobs.processors[waiting[first]] <= state[FREE]:
        start_job(jobs, state, heap, running, waiting[first])
        first = head(jobs, state, waiting, scores[QUEUE], order)
    if first == 0 or not order.backfill or state[FREE] < state[SMALLEST]:
        return
    reserve_for(jobs, state, running, waiting[first])
    # A start only takes from the free and the extra processors, so the next to start is the first of all that can.
    while state[FREE] >= state[SMALLEST]:
        best = _best_candidate(jobs, state, waiting, scores, order)
        if best == 0:
            return
        backfill(jobs, state, heap, running, waiting[best])


@inlined
def _best_candidate(jobs: Jobs, state: Int64Array, waiting: Int64Array, scores: FloatArray, order: Order) -> int:
    """Return the place of the first job behind the head (which does not fit) that may start, 0 if there is none."""
    best = 0
    for at in range(1, waiting[0] + 1):
        job = waiting[at]
        if jobs.processors[job] > state[FREE] or jobs.start[job] >= 0:
            continue
        if may_backfill(jobs, state, job) and (best == 0 or _goes_before(state, scores, order, at, best)):
            best = at
    return best


@inlined
def _goes_before(state: Int64Array, scores: FloatArray, order: Order, at: int, other: int) -> bool:
    """Say whether the candidate at ``at`` is tried before that at ``other``, an earlier place in the list."""
    own = QUEUE if order.same_formula else OWN
    if order.own_order and scores[own, at] != scores[own, other]:
        return bool(scores[own, at] < scores[own, other])
    return is_ahead(state, scores[QUEUE], order, at, other)
