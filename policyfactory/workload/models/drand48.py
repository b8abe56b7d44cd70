"""The C library's random numbers, number for number: ``drand48``, ``lrand48``, ``rand`` and ``random_shuffle``.

Programs that other people's results were made with draw from these; the same numbers give the same jobs.
``drand48`` and ``lrand48`` are a linear congruential generator of 48 bits (POSIX); ``rand`` is the additive
feedback generator of the GNU C library with 31 words of state; ``random_shuffle`` is libstdc++'s.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel
from policyfactory.core.options import Int64Array

_MULTIPLIER = 0x5DEECE66D
_LOW = 0xFFFFFF
_SCALE = 2.0**-48


def seed48(seed: int) -> NDArray[np.int64]:
    """Return the state after ``srand48(seed)``.

    Parameters
    ----------
    seed : int
        Its lowest 32 bits count.

    Returns
    -------
    int64 array (1,)
        The 48 bits X.
    """
    return np.array([((seed & 0xFFFFFFFF) << 16) | 0x330E], dtype=np.int64)


@kernel
def _advance(state: NDArray[np.int64]) -> int:
    # X <- (0x5DEECE66D X + 0xB) mod 2^48, the factor X in two halves so that 64 bits hold every product.
    low = _MULTIPLIER * (state[0] & _LOW) + 0xB
    high = _MULTIPLIER * (state[0] >> 24) + (low >> 24)
    value: int = ((high & _LOW) << 24) | (low & _LOW)
    state[0] = value
    return value


@kernel
def uniform48(state: NDArray[np.int64]) -> float:
    """Return what ``drand48()`` returns and advance the state.

    Parameters
    ----------
    state : int64 array (1,)
        From `seed48`; changed.
    """
    return _advance(state) * _SCALE


@kernel
def lrand48_values(state: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the next ``count`` values of ``lrand48()`` (0 to 2**31 - 1) and advance the state.

    Parameters
    ----------
    state : int64 array (1,)
        From `seed48`; changed.
    count : int
        How many.
    """
    values = np.empty(count, dtype=np.int64)
    for i in range(count):
        values[i] = _advance(state) >> 17
    return values


class GlibcRand:
    """``rand()`` of the GNU C library (TYPE_3: r[i] = r[i-3] + r[i-31] mod 2^32, the top 31 bits are given out).

    Parameters
    ----------
    seed : int
        The argument of ``srand``; 1 is what a program has that never calls it.
    """

    def __init__(self, seed: int = 1) -> None:
        seed = seed & 0xFFFFFFFF or 1
        word = seed - (1 << 32) if seed >= 1 << 31 else seed
        words = [seed]
        for _ in range(30):
            # Schrage's form of 16807 word mod (2^31 - 1); C divides towards zero.
            high, low = int(word / 127773), word - int(word / 127773) * 127773
            word = 16807 * low - 2836 * high
            word += 2147483647 if word < 0 else 0
            words.append(word)
        # The feedback taps 3 words apart index at word 3.
        self._words = words[3:] + words[:3]
        for _ in range(310):
            self()

    def __call__(self) -> int:
        """Return the next value, 0 to 2**31 - 1."""
        word = (self._words[-31] + self._words[-3]) & 0xFFFFFFFF
        self._words = [*self._words[1:], word]
        return word >> 1


def random_shuffle(values: MutableSequence[Any], rand: GlibcRand) -> None:
    """Shuffle in place as libstdc++'s ``std::random_shuffle`` does: element i changes with ``rand() % (i + 1)``.

    Parameters
    ----------
    values : mutable sequence
        What is shuffled.
    rand : GlibcRand
        Where the numbers come from.
    """
    for i in range(1, len(values)):
        j = rand() % (i + 1)
        values[i], values[j] = values[j], values[i]


# The order in which C++'s ``std::sort`` leaves equal values, as libstdc++ does it -------------------------------------

# ``std::sort`` does not keep equal values in order, but what it does with them is determined: introsort (Musser,
# Software: Practice and Experience 27(8), 1997) with the median of three, ranges of 16 left to an insertion sort at the
# end, and heapsort where the halving goes wrong too often. A result that hangs on a sort can so be met job by job.


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
    """Put the median of three in front and return where the values that may not go before it index."""
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
    for index in range(1, len(rows)):
        row = rows[index]
        value = values[row]
        to = index
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
