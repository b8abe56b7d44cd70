"""Strict order and EASY backfilling for policies whose scores do not change while a job waits.

The rule is Algorithm 1 of Gaussier, Lelong, Reis and Trystram, IEEE TPDS 29(10), 2018, section 4; the twin in
tests/naive/online.py follows it line by line. This module gives the same starts with less work, because of two facts
about the time between two passes in which no job completes and no job becomes overdue.

1. After a pass every waiting job behind the head cannot start: it needs more than the free processors, or it would
   end after the shadow time and needs more than the extra processors. Until a job completes, the free processors do
   not grow; the shadow time and the extra processors stay as they are as long as the head does, since a job that is
   started in between either ends by the shadow time or uses extra processors; and the time left to the shadow time
   shrinks. So when one job is submitted and does not become the head, it is the only one that can start.
   (A running job that outlives its estimate moves the shadow time: then the pass is made in full.)
2. If fewer processors are free than the smallest waiting job needs, nothing can start.

By the rules of ocst both hold as well: a job started behind the head comes first of
those that end together with it, so what counts at the shadow time stays what it was, less the extra processors that
are used. Only jobs started from the head change places after their pass: then the reservation holds ``ONCE``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, joined, kernel
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import (
    BOUNDS,
    FIRST_KEY,
    FREE,
    HIGH,
    LOW,
    NEVER,
    NEXT,
    NOW,
    ONCE,
    ONE,
    OVERDUE,
    PASS,
    PREDICTED,
    SMALLEST,
    STARTED,
    UNTIL,
    VALID,
    Jobs,
    Order,
    advance,
    backfill,
    complete,
    insert_gap,
    is_empty,
    is_listed,
    lower_bound,
    may_backfill,
    new_heap,
    new_running,
    new_state,
    new_table,
    place_of_instant,
    remove_column,
    reserve_for,
    start_job,
    start_queued,
    upper_bound,
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

# Rows of the queue: sort key, processors, job. From this column on, the row of its bounds is free: a scan keeps there
# where the jobs are that may be backfilled.
RANK, WIDTH, JOB = 1, 2, 3
CANDIDATES = HIGH + 1


def easy(jobs: Jobs, order: Order, processors: int, cancelled: Int64Array | None = None) -> None:
    """Fill in the start of each job, and whether it was backfilled.

    Parameters
    ----------
    jobs : Jobs
        With keys; ``start`` and ``backfilled`` are filled in.
    order : Order
        The rest of the order.
    processors : int
        Processors of the machine, at least those of any job.
    cancelled : int64 array (n,), ticks, optional
        When each job is cancelled if it waits still, not before its submission; `NEVER` where it is not. The start of
        one that was cancelled is `NEVER`.
    """
    n = len(jobs.submit)
    rows = min(n, processors)
    run = SortedRun(new_state(processors), new_heap(rows), new_running(rows), new_queue(n))
    if cancelled is None:
        easy_until(jobs, run, order)
    else:
        which = np.argsort(cancelled, kind="stable")[: np.count_nonzero(cancelled < NEVER)]
        easy_cancelled(jobs, run, order, cancelled[which], which)


@by_pointer
class SortedRun(NamedTuple):
    """Where a run with a sorted queue stands: int64 arrays.

    Parameters
    ----------
    state, heap, running : int64 array
        At first as `policyfactory.engine.events.new_state`, `new_heap` and `new_running` return them.
    queue : int64 array
        At first as `new_queue` returns it.
    """

    state: Int64Array
    heap: Int64Array
    running: Int64Array
    queue: Int64Array


def new_queue(jobs: int) -> Int64Array:
    """Return an empty queue for ``jobs`` jobs."""
    return new_table(3, jobs)


@kernel
def easy_until(jobs: Jobs, run: SortedRun, order: Order) -> None:
    """Go on with a run until all jobs are started, or up to the last instant before ``state[UNTIL]``.

    Parameters
    ----------
    jobs : Jobs
        With keys; ``start`` and ``backfilled`` are filled in.
    run : SortedRun
        Where the run stands.
    order : Order
        The rest of the order. The queue must be sorted by it and the keys, and ``state[VALID]`` be ``ONCE`` if it
        was sorted anew.
    """
    state, heap, running, queue = run.state, run.heap, run.running, run.queue
    submit, key = jobs.submit, jobs.key
    n = len(submit)
    while state[STARTED] < n and advance(jobs, state, heap):
        changed = complete(jobs, state, heap, running)
        if _put_overdue_first(jobs, state, queue, order):
            changed = True
        if changed:
            state[VALID] = 0
        job = state[NEXT]
        if not changed and (job + 1 == n or submit[job + 1] > state[NOW]):
            if _submit_alone(jobs, state, heap, running, queue, order):
                continue
        else:
            while state[NEXT] < n and submit[state[NEXT]] == state[NOW]:
                _enqueue(jobs, state, queue, _insertion_column(queue, order, key[state[NEXT]]))
        if state[FREE] >= state[SMALLEST]:
            _schedule(jobs, state, heap, running, queue, order)


@kernel
def easy_cancelled(jobs: Jobs, run: SortedRun, order: Order, when: Int64Array, which: Int64Array) -> None:
    """Run all jobs, of which some are taken out of the queue if they have not started by then.

    At one instant completions and submissions come first, then a pass, then cancellations and, if one was of a waiting
    job, another pass.

    Parameters
    ----------
    jobs : Jobs
        With keys; ``start`` and ``backfilled`` are filled in, ``start`` of a cancelled one with `NEVER`.
    run : SortedRun
        That has not begun.
    order : Order
        The rest of the order.
    when : int64 array (k,), ticks
        When jobs are cancelled, ascending; one that is submitted later is not.
    which : int64 array (k,)
        The jobs.
    """
    state, queue, following = run.state, run.queue, 0
    while following < len(when):
        now, found = when[following], False
        state[UNTIL] = now + 1
        easy_until(jobs, run, order)
        while following < len(when) and when[following] == now:
            job = which[following]
            following += 1
            if jobs.start[job] >= 0 or job >= state[NEXT]:
                continue
            column = queue[BOUNDS, LOW]
            while queue[JOB, column] != job:
                column += 1
            remove_column(queue, 3, column)
            jobs.start[job] = NEVER
            state[STARTED] += 1
            found = True
        if found:
            state[NOW], state[PASS], state[VALID] = now, state[STARTED], 0
            _put_overdue_first(jobs, state, queue, order)
            if state[FREE] >= state[SMALLEST]:
                _schedule(jobs, state, run.heap, run.running, queue, order)
    state[UNTIL] = NEVER
    easy_until(jobs, run, order)


@inlined
def _insertion_column(queue: Int64Array, order: Order, key: int) -> int:
    # Jobs come in submit order, so ties need no comparison: behind its equals, or before them.
    return lower_bound(queue, key) if order.last_first else upper_bound(queue, key)


@inlined
def _put(queue: Int64Array, column: int, key: int, processors: int, job: int) -> None:
    column = insert_gap(queue, 3, column)
    queue[RANK, column] = key
    queue[WIDTH, column] = processors
    queue[JOB, column] = job


@inlined
def _enqueue(jobs: Jobs, state: Int64Array, queue: Int64Array, column: int) -> None:
    """Put the next job to be submitted before ``column``."""
    job = state[NEXT]
    if column == queue[BOUNDS, LOW]:
        # A new head has no reservation yet.
        state[VALID] = 0
    state[SMALLEST] = min(state[SMALLEST], jobs.processors[job])
    _put(queue, column, jobs.key[job], jobs.processors[job], job)
    state[NEXT] = job + 1


@joined
def _put_overdue_first(jobs: Jobs, state: Int64Array, queue: Int64Array, order: Order) -> bool:
    """Move the waiting jobs that became overdue to the front, behind the earlier ones; say whether there was one."""
    moved = False
    while state[OVERDUE] < state[NEXT] and state[NOW] - jobs.submit[state[OVERDUE]] > order.threshold:
        job = state[OVERDUE]
        state[OVERDUE] = job + 1
        if jobs.start[job] >= 0:
            continue
        # It is the earliest submitted of those that are not yet overdue: the first, or the last, of its equals.
        key = jobs.key[job]
        remove_column(queue, 3, upper_bound(queue, key) - 1 if order.last_first else lower_bound(queue, key))
        first = overdue_key(jobs, job)
        _put(queue, lower_bound(queue, first), first, jobs.processors[job], job)
        moved = True
    return moved


@inlined
def overdue_key(jobs: Jobs, job: int) -> int:
    """Return the key of an overdue job: by submit time, then as listed (under the rules of ocst the last first)."""
    return FIRST_KEY + (place_of_instant(jobs.submit, job) if is_listed(jobs) else job)


@joined
def put_elsewhere(jobs: Jobs, state: Int64Array, queue: Int64Array, order: Order, job: int, old: int) -> None:
    """Move a waiting job that is not overdue to where its key, which was ``old`` before, has its place now."""
    column = lower_bound(queue, old)
    while queue[JOB, column] != job:
        column += 1
    remove_column(queue, 3, column)
    key = jobs.key[job]
    column = lower_bound(queue, key)
    # Equal keys are in submit order, or the other way round.
    while (
        column < queue[BOUNDS, HIGH] and queue[RANK, column] == key and (queue[JOB, column] < job) != order.last_first
    ):
        column += 1
    _put(queue, column, key, jobs.processors[job], job)
    state[VALID] = ONCE


@joined
def _submit_alone(
    jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, queue: Int64Array, order: Order
) -> bool:
    """Submit one job where nothing else happened since the last pass; say whether that was the whole pass."""
    job = state[NEXT]
    needed = jobs.processors[job]
    if is_empty(queue):
        if needed > state[FREE]:
            _enqueue(jobs, state, queue, queue[BOUNDS, LOW])
        else:
            start_job(jobs, state, heap, running, job)
            state[NEXT] = job + 1
        return True
    column = _insertion_column(queue, order, jobs.key[job])
    needs_pass = column == queue[BOUNDS, LOW] or state[VALID] == ONCE
    if state[VALID] and _earliest_estimate(running) < state[NOW]:
        needs_pass = True
    if needs_pass or needed > state[FREE] or not order.backfill:
        _enqueue(jobs, state, queue, column)
        return not needs_pass
    if not state[VALID]:
        # No other waiting job fits, or the last pass would have made the reservation.
        reserve_for(jobs, state, running, queue[JOB, queue[BOUNDS, LOW]])
    if may_backfill(jobs, state, job):
        backfill(jobs, state, heap, running, job)
        state[NEXT] = job + 1
    else:
        _enqueue(jobs, state, queue, column)
    return True


@inlined
def _earliest_estimate(running: Int64Array) -> int:
    return int(running[PREDICTED, running[BOUNDS, LOW]])


@joined
def _schedule(
    jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, queue: Int64Array, order: Order
) -> None:
    """Make one pass: start from the head, reserve for the first that does not fit, backfill behind it."""
    if state[VALID] == ONCE:
        state[VALID] = 0
    # A head that fits is new, or the order is, or a job has completed: then no reservation holds any more.
    while not is_empty(queue) and queue[WIDTH, queue[BOUNDS, LOW]] <= state[FREE]:
        start_queued(jobs, state, heap, running, queue[JOB, queue[BOUNDS, LOW]])
        queue[BOUNDS, LOW] += 1
    if is_empty(queue):
        state[SMALLEST] = NEVER
        return
    if not order.backfill or state[FREE] < state[SMALLEST]:
        return
    if _earliest_estimate(running) < state[NOW]:
        state[VALID] = 0
    if order.own_order:
        _scan_by_key(jobs, state, heap, running, queue)
    else:
        _scan(jobs, state, heap, running, queue)


@joined
def _scan(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, queue: Int64Array) -> None:
    """Try the jobs behind the head in the queue's order."""
    column = queue[BOUNDS, LOW]
    smallest = queue[WIDTH, column]
    column += 1
    while True:
        free, high = state[FREE], queue[BOUNDS, HIGH]
        column, smallest = _skip_too_wide(queue, column, free, smallest)
        if column >= high:
            # All were seen: the bound is exact now.
            state[SMALLEST] = smallest
            return
        if not state[VALID]:
            reserve_for(jobs, state, running, queue[JOB, queue[BOUNDS, LOW]])
        if may_backfill(jobs, state, queue[JOB, column]):
            backfill(jobs, state, heap, running, queue[JOB, column])
            column = remove_column(queue, 3, column)
            if state[FREE] < state[SMALLEST]:
                return
        else:
            smallest = min(smallest, queue[WIDTH, column])
            column += 1


@inlined
def _skip_too_wide(queue: Int64Array, begin: int, free: int, smallest: int) -> tuple[int, int]:
    """Go on from column ``begin`` to the first job that fits; return its column and the smallest job passed so far."""
    # Unsigned for speed, as in the shifts of `policyfactory.engine.events`: most of a long queue's time is spent here.
    column, high = np.uint64(begin), np.uint64(queue[BOUNDS, HIGH])
    while column < high:
        width = queue[WIDTH, column]
        if width <= free:
            break
        smallest = min(smallest, width)
        column += ONE
    # Signed again: numba adds an unsigned number and a signed one as floats.
    return int(np.int64(column)), smallest


@joined
def _scan_by_key(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, queue: Int64Array) -> None:
    """Try the jobs behind the head by their backfill key, equal ones in the queue's order."""
    count = _candidates(jobs, state, running, queue)
    # A start only takes from the free and the extra processors: what cannot start now cannot later in this pass.
    any_started = False
    while count > 0:
        count, best = _best_candidate(jobs, state, queue, count)
        if best >= 0:
            backfill(jobs, state, heap, running, queue[JOB, best])
            queue[WIDTH, best] = 0
            any_started = True
    if any_started:
        _close_gaps(state, queue)


@joined
def _candidates(jobs: Jobs, state: Int64Array, running: Int64Array, queue: Int64Array) -> int:
    """Write down the columns of all jobs that may be backfilled now and return their number."""
    count = 0
    column = queue[BOUNDS, LOW]
    smallest = queue[WIDTH, column]
    column += 1
    while True:
        column, smallest = _skip_too_wide(queue, column, state[FREE], smallest)
        if column >= queue[BOUNDS, HIGH]:
            # All were seen: the bound is exact now.
            state[SMALLEST] = smallest
            return count
        if not state[VALID]:
            reserve_for(jobs, state, running, queue[JOB, queue[BOUNDS, LOW]])
        if may_backfill(jobs, state, queue[JOB, column]):
            queue[BOUNDS, CANDIDATES + count] = column
            count += 1
        smallest = min(smallest, queue[WIDTH, column])
        column += 1


@joined
def _best_candidate(jobs: Jobs, state: Int64Array, queue: Int64Array, count: int) -> tuple[int, int]:
    """Forget the candidates that cannot start any more, take out the next to start; return what is left, and it."""
    kept, best, best_key = 0, -1, NEVER
    chosen = -1
    for i in range(count):
        column = queue[BOUNDS, CANDIDATES + i]
        job = queue[JOB, column]
        if jobs.processors[job] > state[FREE] or not may_backfill(jobs, state, job):
            continue
        queue[BOUNDS, CANDIDATES + kept] = column
        if best < 0 or jobs.backfill_key[job] < best_key:
            best, best_key, chosen = column, jobs.backfill_key[job], kept
        kept += 1
    if best >= 0:
        kept -= 1
        for i in range(chosen, kept):
            queue[BOUNDS, CANDIDATES + i] = queue[BOUNDS, CANDIDATES + i + 1]
    return kept, best


@joined
def _close_gaps(state: Int64Array, queue: Int64Array) -> None:
    """Drop the jobs that were started from behind the head, those without a width."""
    low = queue[BOUNDS, LOW]
    to, smallest = low, NEVER
    for column in range(low, queue[BOUNDS, HIGH]):
        width = queue[WIDTH, column]
        if width == 0:
            continue
        smallest = min(smallest, width)
        if to < column:
            queue[RANK, to] = queue[RANK, column]
            queue[WIDTH, to] = width
            queue[JOB, to] = queue[JOB, column]
        to += 1
    queue[BOUNDS, HIGH] = to
    state[SMALLEST] = smallest


# Strict order and EASY backfilling for policies whose scores change while a job waits ---------------------------------

# The rule is that of `policyfactory.engine.easy`. Every waiting job is scored at each pass in which one could start;
# the queue is never sorted: the heads are found one by one, and of the rest only those are compared that may start.


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
    state, heap, running, waiting = space.state, space.heap, space.running, space.waiting
    scores, work = space.scores, space.work
    machine = (order.ticks, processors)
    while state[STARTED] < len(jobs.submit) and advance(jobs, state, heap):
        complete(jobs, state, heap, running)
        submit_all(jobs, state, waiting)
        if state[FREE] < state[SMALLEST]:
            continue
        count_overdue(jobs, state, waiting, order.threshold)
        for row in range(OWN + 1 if order.own_order and not order.same_formula else OWN):
            # Called at one place, so that its code is there once.
            asked = formula if row == QUEUE else backfill_formula
            score_waiting(jobs, state, waiting, asked, machine, work, scores[row])
        _schedule_timed(jobs, state, heap, running, waiting, scores, order)
        close_gaps(jobs, state, waiting)


@joined
def _schedule_timed(
    jobs: Jobs,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    waiting: Int64Array,
    scores: FloatArray,
    order: Order,
) -> None:
    """Make one pass over scored jobs."""
    while True:
        first = head(jobs, state, waiting, scores[QUEUE], order)
        if first == 0 or jobs.processors[waiting[first]] > state[FREE]:
            break
        start_queued(jobs, state, heap, running, waiting[first])
    if first == 0 or not order.backfill or state[FREE] < state[SMALLEST]:
        return
    reserve_for(jobs, state, running, waiting[first])
    # A start only takes from the free and the extra processors, so the next to start is the first of all that can.
    while state[FREE] >= state[SMALLEST]:
        best = _best_candidate_timed(jobs, state, waiting, scores, order)
        if best == 0:
            return
        backfill(jobs, state, heap, running, waiting[best])


@joined
def _best_candidate_timed(jobs: Jobs, state: Int64Array, waiting: Int64Array, scores: FloatArray, order: Order) -> int:
    """Return the place of the first job behind the head (which does not fit) that may start, 0 if there is none."""
    best = 0
    for position in range(1, waiting[0] + 1):
        job = waiting[position]
        if jobs.processors[job] > state[FREE] or jobs.start[job] >= 0:
            continue
        if may_backfill(jobs, state, job) and (best == 0 or _goes_before(state, scores, order, position, best)):
            best = position
    return best


@inlined
def _goes_before(state: Int64Array, scores: FloatArray, order: Order, position: int, other: int) -> bool:
    """Say whether the candidate at ``position`` is tried before that at ``other``, an earlier place in the list."""
    row = QUEUE if order.same_formula else OWN
    if order.own_order and scores[row, position] != scores[row, other]:
        return bool(scores[row, position] < scores[row, other])
    return is_ahead(state, scores[QUEUE], order, position, other)
