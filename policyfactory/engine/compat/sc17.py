"""The scheduler of the programs of paper 004 (SC'17), with all that is particular to it.

Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation and machine learning", SC 2017,
run on SimGrid 3.13. Its rules are in docs/papers.md: a window of 32 jobs, the first 16 jobs in the order of the log,
backfilling one job at a time, 2.61 ms for each dispatch. The twin in tests/naive/sc17.py follows them line by line.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import inlined, kernel
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import pop_job, push_job
from policyfactory.engine.waiting import Formula, evaluate

# Jobs that go in the order of the log, and that no value counts.
FIRST_JOBS = 16


def sc17(jobs: Sc17Jobs, order: Sc17Order, machine: int) -> None:
    """Fill in the start and end of each job, and whether it was backfilled.

    Parameters
    ----------
    jobs : Sc17Jobs
        In the order of the log; ``start``, ``end`` and ``backfilled`` are filled in.
    order : Sc17Order
        What decides between jobs.
    machine : int
        Processors, at least those of any job.
    """
    space = new_space(len(jobs.submit), machine, backfill=order.backfill)
    _run(jobs, space, order, new_picks(space))


@kernel
def _run(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, picks: Picks) -> None:
    state = space.state
    for head in range(len(jobs.submit)):
        state[PLACE] = head
        _wait_for_head(jobs, space, order, picks)
        job = space.queue[head]
        state[FREE] -= jobs.processors[job]
        start = space.clock[0] + DELAY
        go_on_to(jobs, space, space.clock[0] + LATENCY)
        go_on_to(jobs, space, start)
        put_running(jobs, space, job)
    while space.heap[0] > 0:
        next_event(jobs, space)


@inlined
def _wait_for_head(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, picks: Picks) -> None:
    """Go on until the job that is to be dispatched next has come and fits."""
    state, head = space.state, space.state[PLACE]
    while True:
        count = min(state[ARRIVED], head + order.visible) - head
        if head >= FIRST_JOBS and count > 1:
            sort_visible(jobs, space, order, count)
            if order.backfill:
                bring_forward(jobs, space, picks, count)
        job = space.queue[head]
        woken = False
        if state[ARRIVED] <= head:
            go_on_to(jobs, space, jobs.submit[job])
            # Several that arrive in the second that was waited for wake the dispatcher up at once.
            woken = state[ARRIVED] > head + 1
        if state[FREE] >= jobs.processors[job]:
            return
        if not woken:
            next_event(jobs, space)


# The clock of the SC'17 programs --------------------------------------------------------------------------------------

# Arrivals, completions and the delay of a dispatch, as SimGrid 3.13 times them.
#
# Times are seconds, as doubles: a dispatch takes 2.61 ms, so starts are no whole numbers of anything, and whatever
# falls within 1e-5 s after an instant happens at it. docs/papers.md has the rules.


# A message of 1,000 bytes over two links of 100 us and 125 MB/s, in SimGrid's model LV08.
LATENCY = 13.01 * 2 * 100e-6
DELAY = LATENCY + 1000 / (0.97 * 125e6)
AT_ONCE = 1e-5

# The state of a run, an int64 array (5,): the job to be dispatched next, by its place in the queue; free processors;
# jobs whose submit time has come; up to which place the queue is sorted; length of the list of running jobs.
PLACE, FREE, ARRIVED, SORTED, RUNNING = range(5)


class Sc17Jobs(NamedTuple):
    """The jobs in the order of the log: what is given, and what becomes of them; arrays (n,).

    Parameters
    ----------
    submit, run_time : float64 array
        s; submit times are whole numbers, ascending.
    decide, request : float64 array
        s; the p of the policies, and the run time that backfilling reckons with.
    processors : int64 array
        q.
    start, end : float64 array
        s; NaN before.
    backfilled : bool array
        Whether it was brought to the front of the queue by backfilling.
    """

    submit: FloatArray
    run_time: FloatArray
    decide: FloatArray
    request: FloatArray
    processors: Int64Array
    start: FloatArray
    end: FloatArray
    backfilled: NDArray[np.bool_]


class Sc17Space(NamedTuple):
    """What a run works on.

    Parameters
    ----------
    state : int64 array (5,)
        See above.
    clock : float64 array (1,)
        This instant, s.
    due : float64 array (n,)
        When each running job is to end, s.
    heap : int64 array (n + 1,)
        Running jobs, the next to end first; element 0 counts them.
    running : int64 array (rows,)
        Running jobs by start + request; kept for backfilling only, else without rows.
    predicted : float64 array (rows,)
        Their start + request, s.
    queue : int64 array (n,)
        All jobs in the order in which they are dispatched; from ``PLACE`` on, the queue.
    """

    state: Int64Array
    clock: FloatArray
    due: FloatArray
    heap: Int64Array
    running: Int64Array
    predicted: FloatArray
    queue: Int64Array


def new_space(jobs: int, machine: int, *, backfill: bool) -> Sc17Space:
    """Return the space for a run of ``jobs`` jobs on an idle machine."""
    state = np.zeros(5, dtype=np.int64)
    state[FREE] = machine
    rows = min(jobs, machine) if backfill else 0
    heap, running = np.zeros(jobs + 1, dtype=np.int64), np.empty(rows, dtype=np.int64)
    return Sc17Space(state, np.zeros(1), np.empty(jobs), heap, running, np.empty(rows), np.arange(jobs))


@inlined
def next_event(jobs: Sc17Jobs, space: Sc17Space) -> None:
    """Go on to the instant at which a job arrives or ends next."""
    _settle(jobs, space, _next_instant(jobs, space))


@inlined
def go_on_to(jobs: Sc17Jobs, space: Sc17Space, instant: float) -> None:
    """Go on to ``instant``, through all that happens before it."""
    time = _next_instant(jobs, space)
    while time < instant:
        _settle(jobs, space, time)
        time = _next_instant(jobs, space)
    _settle(jobs, space, instant)


@inlined
def put_running(jobs: Sc17Jobs, space: Sc17Space, job: int) -> None:
    """Let ``job`` start now; its processors are taken already."""
    now = space.clock[0]
    jobs.start[job] = now
    space.due[job] = now + jobs.run_time[job]
    if len(space.running) > 0:
        _list(space, job, now + jobs.request[job])
    push_job(space.heap, space.due, job)
    # A run time of 0 is over already.
    _complete(jobs, space)


@inlined
def _next_instant(jobs: Sc17Jobs, space: Sc17Space) -> float:
    arrived = space.state[ARRIVED]
    instant = jobs.submit[arrived] if arrived < len(jobs.submit) else np.inf
    if space.heap[0] > 0:
        instant = min(instant, space.due[space.heap[1]])
    return instant


@inlined
def _settle(jobs: Sc17Jobs, space: Sc17Space, instant: float) -> None:
    """Let the clock be ``instant``, and let happen what happens then."""
    state = space.state
    space.clock[0] = instant
    while state[ARRIVED] < len(jobs.submit) and jobs.submit[state[ARRIVED]] <= instant:
        state[ARRIVED] += 1
    _complete(jobs, space)


@inlined
def _complete(jobs: Sc17Jobs, space: Sc17Space) -> None:
    """Free the processors of all jobs that end now, or so soon that it counts as now."""
    heap, now = space.heap, space.clock[0]
    while heap[0] > 0 and space.due[heap[1]] - now < AT_ONCE:
        job = pop_job(heap, space.due)
        jobs.end[job] = now
        space.state[FREE] += jobs.processors[job]
        if len(space.running) > 0:
            _unlist(space, job, jobs.start[job] + jobs.request[job])


@inlined
def _list(space: Sc17Space, job: int, predicted: float) -> None:
    position = space.state[RUNNING]
    space.state[RUNNING] = position + 1
    while position > 0 and space.predicted[position - 1] > predicted:
        space.predicted[position] = space.predicted[position - 1]
        space.running[position] = space.running[position - 1]
        position -= 1
    space.predicted[position] = predicted
    space.running[position] = job


@inlined
def _unlist(space: Sc17Space, job: int, predicted: float) -> None:
    low, high = 0, space.state[RUNNING] - 1
    while low < high:
        middle = (low + high) >> 1
        if space.predicted[middle] < predicted:
            low = middle + 1
        else:
            high = middle
    while space.running[low] != job:
        low += 1
    space.state[RUNNING] -= 1
    for position in range(low, space.state[RUNNING]):
        space.predicted[position] = space.predicted[position + 1]
        space.running[position] = space.running[position + 1]


# How the SC'17 programs order the first 32 jobs of the queue: see docs/papers.md --------------------------------------


# Jobs of the queue that the scheduler sees.
VISIBLE = 32

# Kinds of order.
AS_IT_IS, EXCHANGE, WFP, UNICEF, BY_KEY, BY_FORMULA = range(6)

# Functions of paper 004 with keys of the program's own.
F1, F2, F3, F4 = range(1, 5)


class Sc17Order(NamedTuple):
    """What decides between jobs.

    Parameters
    ----------
    kind : int
        One of the kinds above.
    key : float64 array (n,)
        The key of a job, lower first (``BY_KEY``); its p (``EXCHANGE``, ``WFP``); log2(q) p (``UNICEF``).
    formula : Formula
        Read by ``BY_FORMULA`` only.
    machine : float
        Processors of the machine, for formulas.
    backfill : bool
        Whether a job may go before the head of the queue.
    visible : int
        Jobs of the queue that are seen: 32 in the programs.
    keys : float64 array (visible,)
        Work space.
    work : float64 array (4 + depth, visible)
        Work space of formulas.
    """

    kind: int
    key: FloatArray
    formula: Formula
    machine: float
    backfill: bool
    visible: int
    keys: FloatArray
    work: FloatArray


@kernel
def program_keys(function: int, decide: FloatArray, processors: Int64Array, submit: FloatArray) -> FloatArray:
    """Return the keys of F1 to F4 as the program has them: coefficients not merged, r in seconds from the first job.

    Parameters
    ----------
    function : int
        ``F1`` to ``F4``.
    decide, submit : float64 array (n,)
        p and r, s.
    processors : int64 array (n,)
        q.
    """
    keys = np.empty(len(decide))
    for job in range(len(decide)):
        p, q = decide[job], float(processors[job])
        r = math.log10(submit[job]) if submit[job] > 0.0 else -np.inf
        if function == F4:
            keys[job] = (0.0056500287 * p) * (0.0000024814 * math.sqrt(q)) + 0.0074444355 * r
        elif function == F3:
            keys[job] = (-0.2188093701 * p) * (-0.0000000049 * q) + 0.0073580361 * r
        elif function == F2:
            keys[job] = (0.0000342717 * math.sqrt(p)) * (0.0076562110 * q) + 0.0067364626 * r
        else:
            size = math.log10(p) if p > 0.0 else -np.inf
            keys[job] = (-0.0155183403 * size) * (-0.0005149209 * q) + 0.0069596182 * r
    return keys


@inlined
def sort_visible(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Sort the first ``count`` jobs of the queue, at least 2; equal keys stay in the order in which they are."""
    if order.kind == BY_KEY:
        _insert_new(space, order, count)
    elif order.kind == EXCHANGE:
        _exchange(space, order, count)
    elif order.kind != AS_IT_IS:
        _find_keys(jobs, space, order, count)
        _insert_all(space, order.keys, count)


@inlined
def _insert_new(space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Sort where keys never change: only what has come since the last time is inserted."""
    queue, key, head = space.queue, order.key, space.state[PLACE]
    for position in range(max(space.state[SORTED], head), head + count):
        job = queue[position]
        job_key = key[job]
        to = position
        while to > head and key[queue[to - 1]] > job_key:
            queue[to] = queue[to - 1]
            to -= 1
        queue[to] = job
    space.state[SORTED] = head + count


@inlined
def _insert_all(space: Sc17Space, keys: FloatArray, count: int) -> None:
    queue, head = space.queue, space.state[PLACE]
    for offset in range(1, count):
        key, job = keys[offset], queue[head + offset]
        to = offset
        while to > 0 and keys[to - 1] > key:
            keys[to] = keys[to - 1]
            queue[head + to] = queue[head + to - 1]
            to -= 1
        keys[to] = key
        queue[head + to] = job


@inlined
def _exchange(space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Do what ``for a: for b: if key[a] < key[b]: swap`` does, which turns equal keys round at each call.

    Its first round leaves the largest key in front; round a then sends the job at place a through those before it,
    which are in order, and finds nothing larger behind. So each round may begin at the first larger key.
    """
    queue, keys, head = space.queue, order.keys, space.state[PLACE]
    for offset in range(count):
        keys[offset] = order.key[queue[head + offset]]
    for b in range(1, count):
        if keys[0] < keys[b]:
            _swap(queue, keys, head, 0, b)
    for a in range(1, count):
        b = a
        while b > 0 and keys[b - 1] > keys[a]:
            b -= 1
        while b < a:
            if keys[a] < keys[b]:
                _swap(queue, keys, head, a, b)
            b += 1


@inlined
def _swap(queue: Int64Array, keys: FloatArray, head: int, a: int, b: int) -> None:
    keys[a], keys[b] = keys[b], keys[a]
    queue[head + a], queue[head + b] = queue[head + b], queue[head + a]


@inlined
def _find_keys(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Fill in the keys of the first ``count`` jobs at this second, lower first."""
    queue, keys, head = space.queue, order.keys, space.state[PLACE]
    now = math.floor(space.clock[0])
    if order.kind == BY_FORMULA:
        _evaluate(jobs, space, order, count, now)
        return
    for offset in range(count):
        job = queue[head + offset]
        age = now - jobs.submit[job]
        if order.kind == WFP:
            # The quotient has 24 bits and its square is exact, so the cube is rounded once; the C library's pow(x, 3)
            # is off by one in the last digit in a case of 800.
            ratio = float(np.float32(age) / np.float32(order.key[job]))
            key = -((ratio * ratio * ratio) * jobs.processors[job])
        else:
            key = -((age + 1e-20) / order.key[job])
        # 0/0: the program would never pick such a job; here it goes last.
        keys[offset] = np.inf if math.isnan(key) else key


@kernel
def _evaluate(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, count: int, now: float) -> None:
    queue, work, head, formula = space.queue, order.work, space.state[PLACE], order.formula
    oldest = jobs.submit[queue[head]]
    for offset in range(1, count):
        oldest = min(oldest, jobs.submit[queue[head + offset]])
    for offset in range(count):
        job = queue[head + offset]
        work[0, offset] = jobs.decide[job]
        work[1, offset] = jobs.processors[job]
        work[2, offset] = jobs.submit[job] - oldest if formula.from_oldest else formula.r[job]
        work[3, offset] = now - jobs.submit[job]
    evaluate(
        formula.codes, formula.operands, work[:4], count, order.machine, 0.0, work[4:]
    )  # no formula with f comes here
    for offset in range(count):
        order.keys[offset] = np.inf if math.isnan(work[4, offset]) else work[4, offset]


# Backfilling as the SC'17 programs do it ------------------------------------------------------------------------------

# One job is brought to the front at a time. See docs/papers.md.
#
# The programs look for the reservation of the head again and again through all running jobs: each round picks one of
# those with the least rest of their request, in whole seconds, until enough processors are counted. Here the running
# jobs are kept in the order of start + request, and the rounds are made among the few whose rest is that of the last
# one picked; all with less are picked before, in whatever order.


# The largest int of C.
_INT_MAX = 2147483647.0


class Picks(NamedTuple):
    """Work space: running jobs that may be picked, in the order of dispatch, and what is left of their requests, s."""

    job: Int64Array
    left: FloatArray


def new_picks(space: Sc17Space) -> Picks:
    """Return work space for a run."""
    rows = len(space.running)
    return Picks(np.empty(rows, dtype=np.int64), np.empty(rows))


@inlined
def bring_forward(jobs: Sc17Jobs, space: Sc17Space, picks: Picks, count: int) -> None:
    """Bring the first job to the front that may go before the head of the queue; one at most.

    Parameters
    ----------
    jobs, space
        The run.
    picks : Picks
        Work space.
    count : int
        Jobs of the queue that are seen.
    """
    queue, head, free = space.queue, space.state[PLACE], space.state[FREE]
    now = math.floor(space.clock[0])
    shadow, extra = 0.0, 0
    if jobs.processors[queue[head]] > free:
        if not _some_fits(jobs, space, count):
            return
        shadow, extra = _reservation(jobs, space, picks, now)
    elif now > 0:
        # A head that fits is reserved second 0, by which only jobs of no run time end, in that second itself.
        return
    for position in range(head + 1, head + count):
        job = queue[position]
        needed = jobs.processors[job]
        if needed <= free and (now + jobs.request[job] <= shadow or needed <= extra):
            jobs.backfilled[job] = True
            for to in range(position, head, -1):
                queue[to] = queue[to - 1]
            queue[head] = job
            return


@inlined
def _some_fits(jobs: Sc17Jobs, space: Sc17Space, count: int) -> bool:
    smallest, head = jobs.processors[space.queue[space.state[PLACE]]], space.state[PLACE]
    for position in range(head + 1, head + count):
        smallest = min(smallest, jobs.processors[space.queue[position]])
    return bool(smallest <= space.state[FREE])


@inlined
def _rest(jobs: Sc17Jobs, job: int, now: float) -> float:
    """Return what is left of the request of a running job, s: the time passed is kept in single precision."""
    return float(jobs.request[job] - float(np.float32(now - jobs.start[job])))


@inlined
def _reservation(jobs: Sc17Jobs, space: Sc17Space, picks: Picks, now: float) -> tuple[float, int]:
    """Return when the head can start, by the requests of the running jobs, and how many processors are left then.

    Rests differ from start + request - now by less than ``doubt``. If u is that of the first job, in the order of
    start + request, with which enough are free, the whole seconds of the last pick are between those of u - doubt
    and of u + doubt: no job with less than the former makes it enough, and those up to the latter do.
    """
    running, predicted, held = space.running, space.predicted, space.state[RUNNING]
    needed, doubt = jobs.processors[space.queue[space.state[PLACE]]], now * 6e-8 + 1e-6
    reached = space.state[FREE]
    last = 0
    while last < held and reached < needed:
        reached += _counted(jobs, running[last], predicted[last], now, doubt)
        last += 1
    if reached < needed:
        return -1.0, -1
    border = predicted[last - 1] - now
    from_, to = math.floor(border - doubt) - doubt, math.floor(border + doubt) + 1.0 + doubt
    first = last - 1
    while first > 0 and predicted[first - 1] - now >= from_:
        first -= 1
    while last < held and predicted[last] - now <= to:
        last += 1
    future = space.state[FREE]
    for row in range(first):
        future += _counted(jobs, running[row], predicted[row], now, doubt)
    return _pick(jobs, space, picks, (first, last), (now, future))


@inlined
def _counted(jobs: Sc17Jobs, job: int, predicted: float, now: float, doubt: float) -> int:
    """Return the processors of a running job; none if its rest is -1, the programs' mark of a job that has ended."""
    if abs(predicted - now + 1.0) <= doubt and _rest(jobs, job, now) == -1.0:
        return 0
    return int(jobs.processors[job])


@inlined
def _pick(
    jobs: Sc17Jobs, space: Sc17Space, picks: Picks, rows: tuple[int, int], counted: tuple[float, int]
) -> tuple[float, int]:
    """Pick running jobs of ``rows`` as the programs do, until the head fits; ``counted``: now, processors so far."""
    job, left, (first, last), (now, future) = picks.job, picks.left, rows, counted
    needed, count = jobs.processors[space.queue[space.state[PLACE]]], last - first
    for index in range(count):
        # In the order of dispatch, which is that of the starts.
        running, to = space.running[first + index], index
        while to > 0 and jobs.start[job[to - 1]] > jobs.start[running]:
            job[to] = job[to - 1]
            to -= 1
        job[to] = running
    for index in range(count):
        left[index] = _rest(jobs, job[index], now)
    while True:
        least, pick = _INT_MAX, -1
        for index in range(count):
            if left[index] < least and left[index] != -1.0:
                # Toward zero, as C does it.
                least, pick = float(int(left[index])), index
        left[pick] = _INT_MAX
        future += jobs.processors[job[pick]]
        if future >= needed:
            return now + least, future - needed
