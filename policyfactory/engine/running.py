"""The running jobs: a heap by actual end, which drives the clock, and a table by predicted end, for reservations.

The heap is an int64 array (2, rows + 1): ``heap[END, 0]`` counts the entries, and from column 1 on row 0 has their
ends and row 1 their jobs, the earliest end first. The table (`policyfactory.engine.sliding`) has the predicted end
as key and the processors below it. Two jobs with equal predicted end and equal processors are the same to a
reservation, so the table keeps no job numbers, and a job that completes may take out its double.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined
from policyfactory.engine.sliding import (
    BOUNDS,
    HIGH,
    LOW,
    insert_gap,
    lower_bound,
    new_table,
    remove_column,
    upper_bound,
)

__all__ = [
    "PREDICTED",
    "WIDTH",
    "new_heap",
    "new_running",
    "next_end",
    "pop_end",
    "push_end",
    "put_running",
    "reserve",
    "take_running",
]

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
    at, child = 1, 2
    while child < last:
        if child + 1 < last and heap[END, child + 1] < heap[END, child]:
            child += 1
        if heap[END, child] >= end:
            break
        heap[END, at] = heap[END, child]
        heap[JOB, at] = heap[JOB, child]
        at = child
        child = 2 * at
    # The count is in column 0: with nothing left, the last entry goes back to column 1, unused.
    heap[END, at] = end
    heap[JOB, at] = job
    return int(first)


@inlined
def push_end(heap: Int64Array, end: int, job: int) -> None:
    """Put a job that ends at ``end`` on the heap."""
    at = heap[END, 0] + 1
    heap[END, 0] = at
    while at > 1 and heap[END, at >> 1] > end:
        heap[END, at] = heap[END, at >> 1]
        heap[JOB, at] = heap[JOB, at >> 1]
        at >>= 1
    heap[END, at] = end
    heap[JOB, at] = job


@inlined
def put_running(heap: Int64Array, running: Int64Array, end: int, job: int, predicted: int, processors: int) -> None:
    """Add a job that ends at ``end`` and was predicted to end at ``predicted``."""
    push_end(heap, end, job)
    at = insert_gap(running, 2, upper_bound(running, predicted))
    running[PREDICTED, at] = predicted
    running[WIDTH, at] = processors


@inlined
def take_running(running: Int64Array, predicted: int, processors: int) -> None:
    """Take a job out of the table by predicted end."""
    at = lower_bound(running, predicted)
    while running[WIDTH, at] != processors:
        at += 1
    remove_column(running, 2, at)


@inlined
def reserve(running: Int64Array, now: int, free: int, needed: int) -> tuple[int, int]:
    """Return the shadow time of a job that does not fit now, and the extra processors.

    The shadow time is the earliest at which, by the predicted ends, ``needed`` processors are free; the extra ones
    are what is left over then, all jobs counted that are predicted to end by then. A job that has outlived its
    prediction counts as ending now.
    """
    at, high = running[BOUNDS, LOW], running[BOUNDS, HIGH]
    available = free + running[WIDTH, at]
    while available < needed:
        at += 1
        available += running[WIDTH, at]
    shadow = max(running[PREDICTED, at], now)
    at += 1
    while at < high and running[PREDICTED, at] <= shadow:
        available += running[WIDTH, at]
        at += 1
    return shadow, available - needed
