"""What every scheduler of the online simulator shares: the jobs, the clock, starts and completions.

At one instant all completions come first, then all submissions, then one scheduling pass. Times are whole ticks, so
"at one instant" is exact. A job of no run time completes at the instant of its start and brings one more pass then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, joined, kernel, read_only, step
from policyfactory.core.options import FloatArray, Int64Array

# Later than any instant, larger than any job, longer than any threshold.
NEVER = 1 << 62

# The state of a run, an int64 array (11,): the instant; free processors; jobs started; the next job to be submitted;
# how many jobs, by submit time, have passed the threshold; a lower bound of the processors of every waiting job;
# shadow time and extra processors of the head's reservation, and whether they still hold (1; ONCE: for this pass
# only, and the next must be made in full); the instant before which the run stops; how many jobs were started before
# this pass.
NOW, FREE, STARTED, NEXT, OVERDUE, SMALLEST, SHADOW, EXTRA, VALID, UNTIL, PASS = range(11)
ONCE = 2


@by_pointer
class Jobs(NamedTuple):
    """The jobs by submit time, then job id: what is given, and what becomes of them; arrays (n,), times in ticks.

    Parameters
    ----------
    submit, run_time, estimate, processors : int64 array
        The run time is what the machine executes, the estimate what the scheduler believes.
    key, backfill_key : int64 array
        `policyfactory.engine.events.sort_keys` of the queue's order and of that for backfilling; empty if not used.
    start : int64 array
        The start, -1 before it.
    backfilled : bool array
        Whether it was started while a job ahead of it in the queue stayed waiting.
    sequence : int64 array
        How many were started before it. Empty but where the rules of ocst are in force.
    started : int64 array
        The jobs in the order of their starts, as far as the run has come. Empty where nobody asks.
    """

    submit: Int64Array
    run_time: Int64Array
    estimate: Int64Array
    processors: Int64Array
    key: Int64Array
    backfill_key: Int64Array
    start: Int64Array
    backfilled: NDArray[np.bool_]
    sequence: Int64Array
    started: Int64Array


@by_pointer
class Order(NamedTuple):
    """What decides between jobs besides their keys, or scores.

    Parameters
    ----------
    threshold : int
        Ticks; a job that has waited longer goes before all that have not, in submit order.
    last_first : bool
        Equal keys: the last submitted first.
    backfill : bool
        False: strict order.
    own_order : bool
        Candidates for backfilling are tried by a key or formula of their own, not in the queue's order.
    same_formula : bool
        That formula is the queue's: jobs that have waited longer than the threshold are not tried first. Read where
        scores change with time.
    ticks : int
        Ticks in a second; read there too.
    """

    threshold: int
    last_first: bool
    backfill: bool
    own_order: bool
    same_formula: bool = False
    ticks: int = 1


def new_jobs(
    *columns: Int64Array,
    key: Int64Array | None = None,
    backfill_key: Int64Array | None = None,
    listed: bool = False,
    noted: bool = False,
) -> Jobs:
    """Return ``Jobs`` of submit, run_time, estimate, processors, none of them started yet.

    ``listed``: with the rules of ocst; ``noted``: the order of the starts is written down.
    """
    n = len(columns[0])
    none = np.empty(0, dtype=np.int64)
    given = (*columns, none if key is None else key, none if backfill_key is None else backfill_key)
    submit, run_time, estimate, processors, first, second = map(read_only, given)
    start, backfilled = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    sequence = np.zeros(n if listed else 0, dtype=np.int64)
    started = np.zeros(n if noted else 0, dtype=np.int64)
    return Jobs(submit, run_time, estimate, processors, first, second, start, backfilled, sequence, started)


def new_state(processors: int) -> Int64Array:
    """Return the state of an idle machine before the first submission."""
    state = np.zeros(PASS + 1, dtype=np.int64)
    state[FREE] = processors
    state[SMALLEST] = state[UNTIL] = NEVER
    return state


@inlined
def is_listed(jobs: Jobs) -> bool:
    """Say whether running jobs are listed as ocst lists them."""
    return len(jobs.sequence) > 0


@inlined
def advance(jobs: Jobs, state: Int64Array, heap: Int64Array) -> bool:
    """Go on to the instant at which something happens next, unless that is not before ``UNTIL``; say whether it is."""
    submission = NEVER
    if state[NEXT] < len(jobs.submit):
        submission = jobs.submit[state[NEXT]]
    instant = next_end(heap, submission)
    if instant >= state[UNTIL]:
        return False
    state[NOW] = instant
    state[PASS] = state[STARTED]
    return True


@joined
def start_job(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, job: int) -> None:
    """Start ``job`` now; it must fit."""
    now, processors = state[NOW], jobs.processors[job]
    jobs.start[job] = now
    state[FREE] -= processors
    if is_listed(jobs):
        jobs.sequence[job] = state[STARTED]
        push_end(heap, now + jobs.run_time[job], job)
        put_listed(running, jobs.sequence, jobs.backfilled, state[PASS], job, now + jobs.estimate[job], processors)
    else:
        put_running(heap, running, now + jobs.run_time[job], job, now + jobs.estimate[job], processors)
    if len(jobs.started) > 0:
        jobs.started[state[STARTED]] = job
    state[STARTED] += 1


@step
def start_queued(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, job: int) -> None:
    """Start a waiting job: `start_job` by a call, since its code would be there once more for each place."""
    start_job(jobs, state, heap, running, job)


@joined
def complete(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array) -> bool:
    """Free the processors of every job that ends now; say whether there was one."""
    any_ended = False
    while next_end(heap, NEVER) <= state[NOW]:
        job = pop_end(heap)
        processors = jobs.processors[job]
        state[FREE] += processors
        if is_listed(jobs):
            processors = tagged(processors, job)
        take_running(running, jobs.start[job] + jobs.estimate[job], processors)
        any_ended = True
    return any_ended


@inlined
def reserve_for(jobs: Jobs, state: Int64Array, running: Int64Array, job: int) -> None:
    """Reserve processors for ``job``, which does not fit now, at the earliest time by the running jobs' estimates."""
    if is_listed(jobs):
        shadow, extra, once = reserve_listed(running, jobs.sequence, state[PASS], state[FREE], jobs.processors[job])
        state[VALID] = ONCE if once else 1
    else:
        shadow, extra = reserve(running, state[NOW], state[FREE], jobs.processors[job])
        state[VALID] = 1
    state[SHADOW] = shadow
    state[EXTRA] = extra


@inlined
def may_backfill(jobs: Jobs, state: Int64Array, job: int) -> bool:
    """Say whether ``job``, which fits now, leaves the reservation as it is."""
    return bool(jobs.processors[job] <= state[EXTRA] or state[NOW] + jobs.estimate[job] <= state[SHADOW])


@inlined
def backfill(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, job: int) -> None:
    """Start ``job`` behind the head."""
    if state[NOW] + jobs.estimate[job] > state[SHADOW]:
        state[EXTRA] -= jobs.processors[job]
    jobs.backfilled[job] = True
    start_queued(jobs, state, heap, running, job)


# The running jobs -----------------------------------------------------------------------------------------------------

# A heap by actual end, which drives the clock, and a table by predicted end, for reservations.
#
# The heap is an int64 array (2, rows + 1): ``heap[END, 0]`` counts the entries, and from column 1 on row 0 has their
# ends and row 1 their jobs, the earliest end first. The table (`policyfactory.engine.events`) has the predicted end
# as key and the processors below it. Two jobs with equal predicted end and equal processors are the same to a
# reservation, so the table keeps no job numbers, and a job that completes may take out its double.


# Rows of the table, rows of the heap.
PREDICTED, WIDTH = 1, 2
END, JOB = 0, 1


def new_heap(capacity: int) -> Int64Array:
    """Return an empty heap for at most ``capacity`` jobs."""
    heap = np.empty((2, capacity + 1), dtype=np.int64)
    heap[END, 0] = 0
    return heap


def new_running(capacity: int) -> Int64Array:
    """Return an empty table for at most ``capacity`` jobs."""
    return new_table(2, capacity)


@inlined
def next_end(heap: Int64Array, otherwise: int) -> int:
    """Return the earliest actual end, or ``otherwise`` if nothing ends before it."""
    if heap[END, 0] > 0 and heap[END, 1] < otherwise:
        return int(heap[END, 1])
    return otherwise


@inlined
def pop_end(heap: Int64Array) -> int:
    """Take the job with the earliest end off the heap and return it."""
    first = heap[JOB, 1]
    last = heap[END, 0]
    heap[END, 0] = last - 1
    end, job = heap[END, last], heap[JOB, last]
    hole, child = 1, 2
    while child < last:
        if child + 1 < last and heap[END, child + 1] < heap[END, child]:
            child += 1
        if heap[END, child] >= end:
            break
        heap[END, hole] = heap[END, child]
        heap[JOB, hole] = heap[JOB, child]
        hole = child
        child = 2 * hole
    # The count is in column 0: with nothing left, the last entry goes back to column 1, unused.
    heap[END, hole] = end
    heap[JOB, hole] = job
    return int(first)


@inlined
def push_end(heap: Int64Array, end: int, job: int) -> None:
    """Put a job that ends at ``end`` on the heap."""
    hole = heap[END, 0] + 1
    heap[END, 0] = hole
    while hole > 1 and heap[END, hole >> 1] > end:
        heap[END, hole] = heap[END, hole >> 1]
        heap[JOB, hole] = heap[JOB, hole >> 1]
        hole >>= 1
    heap[END, hole] = end
    heap[JOB, hole] = job


# A heap of jobs alone: element 0 counts them, and from element 1 on stand their numbers, the earliest first. Their
# times are read where they are kept; of equal ones the lower number goes first.


@inlined
def _is_later(time: Int64Array | FloatArray, job: int, other: int) -> bool:
    return bool(time[job] > time[other] or (time[job] == time[other] and job > other))


@inlined
def push_job(heap: Int64Array, time: Int64Array | FloatArray, job: int) -> None:
    """Put a job on a heap of jobs."""
    hole = heap[0] + 1
    heap[0] = hole
    while hole > 1 and _is_later(time, heap[hole >> 1], job):
        heap[hole] = heap[hole >> 1]
        hole >>= 1
    heap[hole] = job


@inlined
def pop_job(heap: Int64Array, time: Int64Array | FloatArray) -> int:
    """Take the earliest job off a heap of jobs and return it."""
    first, count = heap[1], heap[0] - 1
    last = heap[count + 1]
    heap[0] = count
    hole, child = 1, 2
    while child <= count:
        if child < count and _is_later(time, heap[child], heap[child + 1]):
            child += 1
        if not _is_later(time, last, heap[child]):
            break
        heap[hole] = heap[child]
        hole = child
        child = 2 * hole
    if count > 0:
        heap[hole] = last
    return int(first)


@joined
def put_running(heap: Int64Array, running: Int64Array, end: int, job: int, predicted: int, processors: int) -> None:
    """Add a job that ends at ``end`` and was predicted to end at ``predicted``."""
    push_end(heap, end, job)
    column = insert_gap(running, 2, upper_bound(running, predicted))
    running[PREDICTED, column] = predicted
    running[WIDTH, column] = processors


@joined
def take_running(running: Int64Array, predicted: int, processors: int) -> None:
    """Take a job out of the table by predicted end."""
    column = lower_bound(running, predicted)
    while running[WIDTH, column] != processors:
        column += 1
    remove_column(running, 2, column)


@joined
def reserve(running: Int64Array, now: int, free: int, needed: int) -> tuple[int, int]:
    """Return the shadow time of a job that does not fit now, and the extra processors.

    The shadow time is the earliest at which, by the predicted ends, ``needed`` processors are free; the extra ones
    are what is left over then, all jobs counted that are predicted to end by then. A job that has outlived its
    prediction counts as ending now.
    """
    column, high = running[BOUNDS, LOW], running[BOUNDS, HIGH]
    available = free + running[WIDTH, column]
    while available < needed:
        column += 1
        available += running[WIDTH, column]
    shadow = max(running[PREDICTED, column], now)
    column += 1
    while column < high and running[PREDICTED, column] <= shadow:
        available += running[WIDTH, column]
        column += 1
    return shadow, available - needed


# A sorted table that grows and shrinks at either end ------------------------------------------------------------------

# The waiting jobs by rank, the running ones by predicted end.
#
# It is one int64 array. Row 0 keeps the bounds: columns ``low`` to ``high`` (exclusive) of the other rows are in use.
# Row 1 is the key, ascending; the rows below it belong to the key above them. Most entries come in near one end and
# leave near the other, so an entry is moved to or from the nearer end, and the used columns drift; they are put back
# into the middle when they reach an end of the array, which is seldom.


# Keys below those of any score: the key of -inf is 2**52 - 1 above it.
FIRST_KEY = int(np.iinfo(np.int64).min)
BOUNDS, SORTED = 0, 1
LOW, HIGH = 0, 1
_SPARE = 64


def sort_keys(scores: NDArray[np.float64]) -> Int64Array:
    """Return integers that are ordered as the scores are (equal scores, also -0.0 and 0.0, have equal keys).

    Parameters
    ----------
    scores : float64 array (n,)
        No NaN; -inf and inf are allowed.
    """
    # IEEE doubles compare as sign-magnitude integers; + 0.0 makes -0.0 positive.
    bits: Int64Array = (scores + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & np.iinfo(np.int64).max)


def new_table(rows: int, capacity: int) -> Int64Array:
    """Return an empty table with a key and ``rows`` - 1 further rows for at most ``capacity`` entries."""
    size = 2 * capacity + _SPARE
    table = np.empty((rows + 1, size), dtype=np.int64)
    table[BOUNDS, : HIGH + 1] = size // 2
    return table


@inlined
def is_empty(table: Int64Array) -> bool:
    """Say whether no entry is in the table."""
    return bool(table[BOUNDS, LOW] == table[BOUNDS, HIGH])


@inlined
def lower_bound(table: Int64Array, key: int) -> int:
    """Return the first column with a key of at least ``key``, or ``high``."""
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    while low < high:
        middle = (low + high) >> 1
        if table[SORTED, middle] < key:
            low = middle + 1
        else:
            high = middle
    return int(low)


@inlined
def upper_bound(table: Int64Array, key: int) -> int:
    """Return the first column with a key above ``key``, or ``high``."""
    return lower_bound(table, key + 1)


@kernel
def _recentre(table: Int64Array) -> int:
    """Move the used columns to the middle and return by how far."""
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    shift = (table.shape[1] - (high - low)) // 2 - low
    # Element by element, from the side that is not overwritten: the compiled slice assignment is 15,000 lines long.
    for row in range(1, table.shape[0]):
        for moved in range(high - low):
            column = low + moved if shift < 0 else high - 1 - moved
            table[row, column + shift] = table[row, column]
    table[BOUNDS, LOW] = low + shift
    table[BOUNDS, HIGH] = high + shift
    return int(shift)


# Unsigned, so that numba need not ask at every access whether an index counts from the end (a tenth of all time).
ONE = np.uint64(1)


@inlined
def _move(table: Int64Array, rows: int, to: np.uint64, source: np.uint64) -> None:
    table[1, to] = table[1, source]
    table[2, to] = table[2, source]
    if rows == 3:
        table[3, to] = table[3, source]


@inlined
def _shift_left(table: Int64Array, rows: int, first: int, last: int) -> None:
    """Move columns ``first`` to ``last`` (exclusive) one to the left."""
    column, end = np.uint64(first), np.uint64(last)
    while column < end:
        _move(table, rows, column - ONE, column)
        column += ONE


@inlined
def _shift_right(table: Int64Array, rows: int, first: int, last: int) -> None:
    """Move columns ``first`` to ``last`` (exclusive) one to the right."""
    column, end = np.uint64(last), np.uint64(first)
    while column > end:
        _move(table, rows, column, column - ONE)
        column -= ONE


@inlined
def insert_gap(table: Int64Array, rows: int, column: int) -> int:
    """Make room before ``column`` and return the free column, to be filled with a key that fits there.

    ``rows`` (2 or 3, a constant) is the number of rows with the key; the columns are moved with one loop.
    """
    if table[BOUNDS, LOW] == 0 or table[BOUNDS, HIGH] == table.shape[1]:
        # At least capacity / 2 insertions lie between two of these.
        column += _recentre(table)
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    if column - low < high - column:
        _shift_left(table, rows, low, column)
        table[BOUNDS, LOW] = low - 1
        return column - 1
    _shift_right(table, rows, column, high)
    table[BOUNDS, HIGH] = high + 1
    return column


@inlined
def remove_column(table: Int64Array, rows: int, column: int) -> int:
    """Take ``column`` out and return where the entry behind it is now (``rows`` as in `insert_gap`)."""
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    if column - low < high - 1 - column:
        _shift_right(table, rows, low, column)
        table[BOUNDS, LOW] = low + 1
        return column + 1
    _shift_left(table, rows, column + 1, high)
    table[BOUNDS, HIGH] = high - 1
    return column


# The order of the running jobs in ocst --------------------------------------------------------------------------------

# The order of the running jobs in ocst, the simulator of IEEE TPDS 29(10), 2018, where it decides a reservation.
#
# ocst keeps the running jobs in a list, and for a reservation takes them by predicted end, equal ones in the list's
# order, until the head fits. What else ends at that instant is not counted: its extra processors are fewer than ours,
# and which of the jobs that end together are counted hangs on the list. The list has the jobs of the last pass first;
# of one pass those that were backfilled, in the order of their starts, then the others, the last started first.
# While a pass still runs, and nothing is backfilled yet, its own jobs are in the order of their starts.
#
# Here the list is the table of `policyfactory.engine.events` with equal predicted ends in that order. It has to tell
# jobs apart, so below the processors, from bit 32 on, stands the job. Jobs do not outlive their estimates.


_BITS = 32
# The most processors that a machine may have.
WIDEST = (1 << _BITS) - 1


@inlined
def tagged(processors: int, job: int) -> int:
    """Return the entry of ``job`` in the table."""
    return processors | (job << _BITS)


@joined
def place_of_instant(submit: Int64Array, job: int) -> int:
    """Return the number that ``job`` would have if the jobs of its instant were numbered from the last."""
    first, last = job, job
    while first > 0 and submit[first - 1] == submit[job]:
        first -= 1
    while last + 1 < len(submit) and submit[last + 1] == submit[job]:
        last += 1
    return first + last - job


@step
def put_listed(
    running: Int64Array,
    sequence: Int64Array,
    backfilled: NDArray[np.bool_],
    first: int,
    job: int,
    predicted: int,
    processors: int,
) -> None:
    """Add ``job``, whose sequence is set, to the table; those from sequence ``first`` on are of this pass."""
    # A call: the code would be there once more for each place at which a job is started, and slow down our own rules.
    column = lower_bound(running, predicted)
    if backfilled[job]:
        while column < running[BOUNDS, HIGH] and running[PREDICTED, column] == predicted:
            other = running[WIDTH, column] >> _BITS
            if not backfilled[other] or sequence[other] < first:
                break
            column += 1
    column = insert_gap(running, 2, column)
    running[PREDICTED, column] = predicted
    running[WIDTH, column] = tagged(processors, job)


@step
def reserve_listed(
    running: Int64Array, sequence: Int64Array, first: int, free: int, needed: int
) -> tuple[int, int, int]:
    """Return the shadow time of a job that does not fit now, the extra processors, 1 if both hold for this pass only.

    The sequence of this pass's jobs is ``first`` or more; none of them was backfilled.
    """
    low, high = running[BOUNDS, LOW], running[BOUNDS, HIGH]
    last = low
    available = free + (running[WIDTH, last] & WIDEST)
    while available < needed:
        last += 1
        available += running[WIDTH, last] & WIDEST
    shadow = running[PREDICTED, last]
    # Column ``last`` is one of those that end together; are the first of them jobs of this pass?
    together = lower_bound(running, shadow)
    stop = together
    while stop < high and running[PREDICTED, stop] == shadow and sequence[running[WIDTH, stop] >> _BITS] >= first:
        stop += 1
    if stop - together < 2:
        return shadow, available - needed, 0
    for column in range(together, last + 1):
        available -= running[WIDTH, column] & WIDEST
    step = stop - 1
    while available < needed:
        available += running[WIDTH, step] & WIDEST
        # From the last to the first of this pass, then on behind them.
        step = stop if step == together else (step - 1 if step < stop else step + 1)
    return shadow, available - needed, 1
