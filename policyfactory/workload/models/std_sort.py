"""The order in which C++'s ``std::sort`` leaves equal values, as libstdc++ does it.

``std::sort`` does not keep equal values in order, but what it does with them is determined: introsort (Musser,
Software: Practice and Experience 27(8), 1997) with the median of three, ranges of 16 left to an insertion sort at the
end, and heapsort where the halving goes wrong too often. A result that hangs on a sort can so be met job by job.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import kernel

__all__ = ["largest_first"]

_SMALL = 16


@kernel
def largest_first(values: Int64Array) -> Int64Array:
    """Return the rows of ``values`` as ``std::sort`` with ``>`` orders them.

    Parameters
    ----------
    values : int64 array (n,)
        What is compared.
    """
    n = len(values)
    rows = np.arange(n)
    limit = 0
    while n >> (limit + 1):
        limit += 1
    # Ranges that are still to be divided, and how often they may be.
    stack = np.empty((2 * limit + 2, 3), dtype=np.int64)
    stack[0] = 0, n, 2 * limit
    depth = 1
    while depth > 0:
        depth -= 1
        first, last, left = stack[depth]
        while last - first > _SMALL:
            if left == 0:
                _heap_sort(values, rows[first:last])
                break
            left -= 1
            cut = _divide(values, rows, first, last)
            stack[depth] = cut, last, left
            depth += 1
            last = cut
    _insert_all(values, rows)
    return rows


@kernel
def _divide(values: Int64Array, rows: Int64Array, first: int, last: int) -> int:
    """Put the median of three in front and return where the values that may not go before it begin."""
    _median_first(values, rows, first, (first + 1, first + (last - first) // 2, last - 1))
    pivot = values[rows[first]]
    low, high = first + 1, last
    while True:
        while values[rows[low]] > pivot:
            low += 1
        high -= 1
        while pivot > values[rows[high]]:
            high -= 1
        if low >= high:
            return low
        rows[low], rows[high] = rows[high], rows[low]
        low += 1


@kernel
def _median_first(values: Int64Array, rows: Int64Array, first: int, three: tuple[int, int, int]) -> None:
    a, b, c = three
    x, y, z = values[rows[a]], values[rows[b]], values[rows[c]]
    # Which place it is with equal values is part of the order.
    median = a if x > z else (c if y > z else b)
    if x > y:
        median = b if y > z else (c if x > z else a)
    rows[first], rows[median] = rows[median], rows[first]


@kernel
def _insert_all(values: Int64Array, rows: Int64Array) -> None:
    # The first 16 have the largest value among them, so that only they need a look at the beginning; either way a
    # row goes behind its equals.
    for at in range(1, len(rows)):
        row = rows[at]
        value = values[row]
        to = at
        while to > 0 and value > values[rows[to - 1]]:
            rows[to] = rows[to - 1]
            to -= 1
        rows[to] = row


@kernel
def _heap_sort(values: Int64Array, rows: Int64Array) -> None:
    n = len(rows)
    for parent in range((n - 2) // 2, -1, -1):
        _sift(values, rows[:n], parent, rows[parent])
    for last in range(n - 1, 0, -1):
        row = rows[last]
        rows[last] = rows[0]
        _sift(values, rows[:last], 0, row)


@kernel
def _sift(values: Int64Array, rows: Int64Array, top: int, row: int) -> None:
    """Let the hole at ``top`` sink to a leaf, and ``row`` rise from there."""
    n, hole = len(rows), top
    while 2 * hole + 2 < n:
        child = 2 * hole + 2
        if values[rows[child]] > values[rows[child - 1]]:
            child -= 1
        rows[hole] = rows[child]
        hole = child
    if 2 * hole + 2 == n:
        rows[hole] = rows[n - 1]
        hole = n - 1
    while hole > top and values[rows[(hole - 1) // 2]] > values[row]:
        rows[hole] = rows[(hole - 1) // 2]
        hole = (hole - 1) // 2
    rows[hole] = row
