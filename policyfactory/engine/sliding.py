"""A sorted table that grows and shrinks at either end: the waiting jobs by rank, the running ones by predicted end.

It is one int64 array. Row 0 keeps the bounds: columns ``low`` to ``high`` (exclusive) of the other rows are in use.
Row 1 is the key, ascending; the rows below it belong to the key above them. Most entries come in near one end and
leave near the other, so an entry is moved to or from the nearer end, and the used columns drift; they are put back
into the middle when they reach an end of the array, which is seldom.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined, kernel

__all__ = [
    "BOUNDS",
    "FIRST_KEY",
    "HIGH",
    "LOW",
    "ONE",
    "insert_gap",
    "is_empty",
    "lower_bound",
    "new_table",
    "remove_column",
    "sort_keys",
    "upper_bound",
]

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
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    while low < high:
        middle = (low + high) >> 1
        if table[SORTED, middle] <= key:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def _recentre(table: Int64Array) -> int:
    """Move the used columns to the middle and return by how far."""
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    shift = (table.shape[1] - (high - low)) // 2 - low
    # Element by element, from the side that is not overwritten: the compiled slice assignment is 15,000 lines long.
    for row in range(1, table.shape[0]):
        for step in range(high - low):
            at = low + step if shift < 0 else high - 1 - step
            table[row, at + shift] = table[row, at]
    table[BOUNDS, LOW] = low + shift
    table[BOUNDS, HIGH] = high + shift
    return int(shift)


# Unsigned, so that numba need not ask at every access whether an index counts from the end (a tenth of all time).
ONE = np.uint64(1)


@inlined
def _move(table: Int64Array, rows: int, to: np.uint64, at: np.uint64) -> None:
    table[1, to] = table[1, at]
    table[2, to] = table[2, at]
    if rows == 3:
        table[3, to] = table[3, at]


@inlined
def _shift_left(table: Int64Array, rows: int, first: int, last: int) -> None:
    """Move columns ``first`` to ``last`` (exclusive) one to the left."""
    at, end = np.uint64(first), np.uint64(last)
    while at < end:
        _move(table, rows, at - ONE, at)
        at += ONE


@inlined
def _shift_right(table: Int64Array, rows: int, first: int, last: int) -> None:
    """Move columns ``first`` to ``last`` (exclusive) one to the right."""
    at, end = np.uint64(last), np.uint64(first)
    while at > end:
        _move(table, rows, at, at - ONE)
        at -= ONE


@inlined
def insert_gap(table: Int64Array, rows: int, at: int) -> int:
    """Make room before column ``at`` and return the free column, to be filled with a key that fits there.

    ``rows`` (2 or 3, a constant) is the number of rows with the key; the columns are moved with one loop.
    """
    if table[BOUNDS, LOW] == 0 or table[BOUNDS, HIGH] == table.shape[1]:
        # At least capacity / 2 insertions lie between two of these.
        at += _recentre(table)
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    if at - low < high - at:
        _shift_left(table, rows, low, at)
        table[BOUNDS, LOW] = low - 1
        return at - 1
    _shift_right(table, rows, at, high)
    table[BOUNDS, HIGH] = high + 1
    return at


@inlined
def remove_column(table: Int64Array, rows: int, at: int) -> int:
    """Take column ``at`` out and return where the entry behind it is now (``rows`` as in `insert_gap`)."""
    low, high = table[BOUNDS, LOW], table[BOUNDS, HIGH]
    if at - low < high - 1 - at:
        _shift_right(table, rows, low, at)
        table[BOUNDS, LOW] = low + 1
        return at + 1
    _shift_left(table, rows, at + 1, high)
    table[BOUNDS, HIGH] = high - 1
    return at
