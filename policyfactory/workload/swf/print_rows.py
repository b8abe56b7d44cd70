"""Whole numbers as the lines of a log: what ``%`` of Python prints, without a string of each number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import kernel

__all__ = ["print_rows", "printed"]

# Lines at once: their text stays within the caches.
_LINES = 4096
_LONGEST = 20  # -2**63
_ZERO, _MINUS, _SPACE, _LINE_FEED = 48, 45, 32, 10


@kernel
def print_rows(columns: Int64Array, widths: Int64Array, text: NDArray[np.uint8]) -> int:
    """Print lines of right-aligned numbers, a space between two, and return how many bytes they take.

    Parameters
    ----------
    columns : int64 array (c, n)
        The numbers.
    widths : int64 array (c,)
        The least width of each column.
    text : uint8 array
        Filled in; large enough for n lines of the longest numbers.
    """
    digits = np.empty(_LONGEST, dtype=np.uint8)
    at = 0
    for row in range(columns.shape[1]):
        for column in range(columns.shape[0]):
            number = columns[column, row]
            left = np.uint64(number) if number >= 0 else np.uint64(-(number + 1)) + np.uint64(1)
            count = 0
            while True:
                digits[count] = _ZERO + np.int64(left % np.uint64(10))
                left //= np.uint64(10)
                count += 1
                if left == 0:
                    break
            if number < 0:
                digits[count] = _MINUS
                count += 1
            for _ in range(widths[column] - count):
                text[at] = _SPACE
                at += 1
            for place in range(count - 1, -1, -1):
                text[at] = digits[place]
                at += 1
            text[at] = _SPACE
            at += 1
        text[at - 1] = _LINE_FEED
    return at


def printed(columns: Sequence[Int64Array], widths: Sequence[int]) -> Iterator[bytes]:
    """Give the lines of ``columns`` in parts, each line with its end.

    Parameters
    ----------
    columns : sequence of int64 array (n,)
        The numbers.
    widths : sequence of int
        The least width of each column.
    """
    least = np.array(widths, dtype=np.int64)
    text = np.empty(_LINES * int(np.maximum(least, _LONGEST).sum() + len(columns)), dtype=np.uint8)
    for first in range(0, len(columns[0]), _LINES):
        some = np.array([column[first : first + _LINES] for column in columns])
        yield text[: print_rows(some, least, text)].tobytes()
