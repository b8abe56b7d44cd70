"""Strict order and EASY backfilling on machines of several resources, for policies whose scores do not change.

The rule and the two short cuts are those of `policyfactory.engine.easy`; `policyfactory.engine.resources` says why they
hold here. Processors are the first of the resources: a bound by them alone skips most passes.
"""

from __future__ import annotations

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.easy import (
    CANDIDATES,
    JOB,
    WIDTH,
    earliest_estimate,
    enqueue,
    new_queue,
    place,
    put_overdue_first,
    skip_too_wide,
)
from policyfactory.engine.events import (
    FREE,
    NEVER,
    NEXT,
    NOW,
    SMALLEST,
    STARTED,
    VALID,
    Jobs,
    Order,
    advance,
    new_state,
)
from policyfactory.engine.resources import (
    Demand,
    Machine,
    complete_on,
    fits_now,
    is_hopeless,
    leaves_the_head,
    reserve_on,
    start_behind,
    start_on,
)
from policyfactory.engine.running import new_heap, new_running
from policyfactory.engine.sliding import BOUNDS, HIGH, LOW, is_empty, remove_column

__all__ = ["easy_on", "resources_easy"]


def resources_easy(jobs: Jobs, demand: Demand, machine: Machine, order: Order, processors: int) -> None:
    """Fill in the start of each job, whether it was backfilled, and its nodes.

    Parameters
    ----------
    jobs : Jobs
        With keys; ``start`` and ``backfilled`` are filled in. ``processors`` are those that a job asks for on all of
        its nodes, or the first counter where there are none.
    demand : Demand
        What they ask for; every job fits the idle machine.
    machine : Machine
        Idle; the nodes of the jobs are written down in it.
    order : Order
        The rest of the order.
    processors : int
        Processors of the machine.
    """
    rows = min(len(jobs.submit), processors)
    space = (new_state(processors), new_heap(rows), new_running(rows), new_queue(len(jobs.submit)))
    easy_on(jobs, demand, machine, *space, order)


@kernel
def easy_on(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    queue: Int64Array,
    order: Order,
) -> None:
    """Run until all jobs are started.

    Parameters
    ----------
    jobs, demand, machine, order
        As for `resources_easy`.
    state, heap, running, queue : int64 arrays
        Where the run stands, as `policyfactory.engine.events.new_state` and the like return them.
    """
    submit = jobs.submit
    n = len(submit)
    while state[STARTED] < n and advance(jobs, state, heap):
        changed = complete_on(jobs, demand, machine, state, heap, running)
        if put_overdue_first(jobs, state, queue, order):
            changed = True
        if changed:
            state[VALID] = 0
        job = state[NEXT]
        if not changed and (job + 1 == n or submit[job + 1] > state[NOW]):
            if _submit_alone(jobs, demand, machine, state, heap, running, queue, order):
                continue
        else:
            while state[NEXT] < n and submit[state[NEXT]] == state[NOW]:
                enqueue(jobs, state, queue, place(queue, order, jobs.key[state[NEXT]]))
        if state[FREE] >= state[SMALLEST]:
            _schedule(jobs, demand, machine, state, heap, running, queue, order)


@inlined
def _submit_alone(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    queue: Int64Array,
    order: Order,
) -> bool:
    """Submit one job where nothing else happened since the last pass; say whether that was the whole pass."""
    job = state[NEXT]
    waits = not is_empty(queue)
    at = place(queue, order, jobs.key[job]) if waits else queue[BOUNDS, LOW]
    needs_pass = waits and (at == queue[BOUNDS, LOW] or (state[VALID] and earliest_estimate(running) < state[NOW]))
    may_start = not needs_pass and (order.backfill or not waits) and jobs.processors[job] <= state[FREE]
    if not may_start or not fits_now(demand, machine, job):
        enqueue(jobs, state, queue, at)
        return not needs_pass
    if waits:
        head = queue[JOB, queue[BOUNDS, LOW]]
        if not state[VALID]:
            # No other waiting job fits, or the last pass would have made the reservation.
            reserve_on(demand, machine, state, running, head)
        if not leaves_the_head(jobs, demand, machine, state, job, head):
            enqueue(jobs, state, queue, at)
            return True
        start_behind(jobs, demand, machine, state, heap, running, job, head)
    else:
        start_on(jobs, demand, machine, state, heap, running, job)
    state[NEXT] = job + 1
    return True


@inlined
def _schedule(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    queue: Int64Array,
    order: Order,
) -> None:
    """Make one pass: start from the head, reserve for the first that does not fit, backfill behind it."""
    # A head that fits is new, or a job has completed: then no reservation holds any more.
    while not state[VALID] and not is_empty(queue) and queue[WIDTH, queue[BOUNDS, LOW]] <= state[FREE]:
        head = queue[JOB, queue[BOUNDS, LOW]]
        if not fits_now(demand, machine, head):
            break
        start_on(jobs, demand, machine, state, heap, running, head)
        queue[BOUNDS, LOW] += 1
    if is_empty(queue):
        state[SMALLEST] = NEVER
        return
    if not order.backfill or state[FREE] < state[SMALLEST]:
        return
    if earliest_estimate(running) < state[NOW]:
        state[VALID] = 0
    if order.own_order:
        _scan_by_key(jobs, demand, machine, state, heap, running, queue)
    else:
        _scan(jobs, demand, machine, state, heap, running, queue)


@inlined
def _may_start(
    jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, running: Int64Array, job: int, head: int
) -> bool:
    """Say whether a job behind the head may start now; make the head's reservation if that has not been done."""
    if state[VALID] and is_hopeless(jobs, demand, machine, state, job):
        return False
    if not fits_now(demand, machine, job):
        return False
    if not state[VALID]:
        reserve_on(demand, machine, state, running, head)
    return leaves_the_head(jobs, demand, machine, state, job, head)


@inlined
def _scan(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    queue: Int64Array,
) -> None:
    """Try the jobs behind the head in the queue's order."""
    at = queue[BOUNDS, LOW]
    head, smallest = queue[JOB, at], queue[WIDTH, at]
    at += 1
    while True:
        at, smallest = skip_too_wide(queue, at, state[FREE], smallest)
        if at >= queue[BOUNDS, HIGH]:
            # All were seen: the bound is exact now.
            state[SMALLEST] = smallest
            return
        job = queue[JOB, at]
        if _may_start(jobs, demand, machine, state, running, job, head):
            start_behind(jobs, demand, machine, state, heap, running, job, head)
            at = remove_column(queue, 3, at)
            if state[FREE] < state[SMALLEST]:
                return
        else:
            smallest = min(smallest, queue[WIDTH, at])
            at += 1


@inlined
def _scan_by_key(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    queue: Int64Array,
) -> None:
    """Try the jobs behind the head by their backfill key, equal ones in the queue's order."""
    head = queue[JOB, queue[BOUNDS, LOW]]
    count = _candidates(jobs, demand, machine, state, running, queue, head)
    # What cannot start now cannot later in this pass.
    while count > 0:
        count, best = _best_candidate(jobs, demand, machine, state, queue, count, head)
        if best >= 0:
            start_behind(jobs, demand, machine, state, heap, running, best, head)
    _close_gaps(jobs, queue)


@inlined
def _candidates(
    jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, running: Int64Array, queue: Int64Array, head: int
) -> int:
    """Write down all jobs that may be backfilled now and return their number."""
    at = queue[BOUNDS, LOW]
    count, smallest = 0, queue[WIDTH, at]
    at += 1
    while True:
        at, smallest = skip_too_wide(queue, at, state[FREE], smallest)
        if at >= queue[BOUNDS, HIGH]:
            state[SMALLEST] = smallest
            return count
        if _may_start(jobs, demand, machine, state, running, queue[JOB, at], head):
            queue[BOUNDS, CANDIDATES + count] = queue[JOB, at]
            count += 1
        smallest = min(smallest, queue[WIDTH, at])
        at += 1


@inlined
def _best_candidate(
    jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, queue: Int64Array, count: int, head: int
) -> tuple[int, int]:
    """Forget the candidates that cannot start any more, take out the next to start; return what is left, and it."""
    kept, best, chosen = 0, -1, -1
    for i in range(count):
        job = queue[BOUNDS, CANDIDATES + i]
        if not (fits_now(demand, machine, job) and leaves_the_head(jobs, demand, machine, state, job, head)):
            continue
        queue[BOUNDS, CANDIDATES + kept] = job
        if best < 0 or jobs.backfill_key[job] < jobs.backfill_key[best]:
            best, chosen = job, kept
        kept += 1
    if best >= 0:
        kept -= 1
        for i in range(chosen, kept):
            queue[BOUNDS, CANDIDATES + i] = queue[BOUNDS, CANDIDATES + i + 1]
    return kept, best


@inlined
def _close_gaps(jobs: Jobs, queue: Int64Array) -> None:
    """Drop the jobs that were started."""
    to = queue[BOUNDS, LOW]
    for at in range(to, queue[BOUNDS, HIGH]):
        if jobs.start[queue[JOB, at]] < 0:
            for row in range(1, JOB + 1):
                queue[row, to] = queue[row, at]
            to += 1
    queue[BOUNDS, HIGH] = to
