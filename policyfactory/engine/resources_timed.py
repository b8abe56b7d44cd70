"""Strict order and EASY backfilling on machines of several resources, for policies whose scores change with time.

The rule is that of `policyfactory.engine.resources_easy`; the queue is kept as in `policyfactory.engine.timed`.
"""

from __future__ import annotations

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.events import FREE, SMALLEST, STARTED, Jobs, Order, advance
from policyfactory.engine.resources import (
    Demand,
    Machine,
    complete_on,
    fits_now,
    leaves_the_head,
    reserve_on,
    start_behind,
    start_on,
)
from policyfactory.engine.timed import OWN, QUEUE, goes_before
from policyfactory.engine.waiting import (
    Formula,
    Space,
    close_gaps,
    count_overdue,
    head,
    new_space,
    score_waiting,
    submit_all,
)

__all__ = ["resources_timed", "timed_on"]


def resources_timed(
    jobs: Jobs,
    scored: Jobs,
    demand: Demand,
    machine: Machine,
    formula: Formula,
    backfill_formula: Formula,
    order: Order,
    processors: int,
) -> None:
    """Fill in the start of each job, whether it was backfilled, and its nodes.

    Parameters
    ----------
    jobs, demand, machine, order, processors
        As for `policyfactory.engine.resources_easy.resources_easy`; keys are not read.
    scored : Jobs
        The same jobs with the processors that formulas see.
    formula, backfill_formula : Formula
        The order of the queue, and of the candidates for backfilling if ``order.own_order``.
    """
    space = new_space(len(jobs.submit), processors, max(formula.depth, backfill_formula.depth))
    timed_on(jobs, scored, demand, machine, space, formula, backfill_formula, order, processors)


@kernel
def timed_on(
    jobs: Jobs,
    scored: Jobs,
    demand: Demand,
    machine: Machine,
    space: Space,
    formula: Formula,
    backfill_formula: Formula,
    order: Order,
    processors: int,
) -> None:
    """Run until all jobs are started.

    Parameters
    ----------
    jobs, scored, demand, machine, formula, backfill_formula, order, processors
        As for `resources_timed`.
    space : Space
        Where the run stands.
    """
    state, heap, running, waiting, scores, work = space
    whole = (order.ticks, processors)
    while state[STARTED] < len(jobs.submit) and advance(jobs, state, heap):
        complete_on(jobs, demand, machine, state, heap, running)
        submit_all(jobs, state, waiting)
        if state[FREE] < state[SMALLEST]:
            continue
        count_overdue(jobs, state, waiting, order.threshold)
        score_waiting(scored, state, waiting, formula, whole, work, scores[QUEUE])
        if order.own_order and not order.same_formula:
            score_waiting(scored, state, waiting, backfill_formula, whole, work, scores[OWN])
        _schedule(jobs, demand, machine, state, heap, running, waiting, scores, order)
        close_gaps(jobs, state, waiting)


@inlined
def _schedule(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    waiting: Int64Array,
    scores: FloatArray,
    order: Order,
) -> None:
    """Make one pass over scored jobs."""
    first = head(jobs, state, waiting, scores[QUEUE], order)
    while first > 0 and fits_now(demand, machine, waiting[first]):
        start_on(jobs, demand, machine, state, heap, running, waiting[first])
        first = head(jobs, state, waiting, scores[QUEUE], order)
    if first == 0 or not order.backfill or state[FREE] < state[SMALLEST]:
        return
    reserved = False
    # A start only takes from what is free and from what is left over: the next to start is the first of all that can.
    while state[FREE] >= state[SMALLEST]:
        best = 0
        for at in range(1, waiting[0] + 1):
            job = waiting[at]
            if jobs.processors[job] > state[FREE] or jobs.start[job] >= 0:
                continue
            if best != 0 and not goes_before(state, scores, order, at, best):
                continue
            if not fits_now(demand, machine, job):
                continue
            if not reserved:
                reserve_on(demand, machine, state, running, waiting[first])
                reserved = True
            if leaves_the_head(jobs, demand, machine, state, job, waiting[first]):
                best = at
        if best == 0:
            return
        start_behind(jobs, demand, machine, state, heap, running, waiting[best], waiting[first])
