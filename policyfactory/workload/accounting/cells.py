"""Cells of a table in text, where each stands and what is in it, without making a string of each.

The kernels take the bytes of whole lines. Which bytes are which cell is an int64 array (lines, width + 1): a cell
goes from its edge to the byte before the delimiter, which is one before the next edge.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel

__all__ = ["NOT_DIGITS", "cut", "digits", "marks", "same"]

Bytes = NDArray[np.uint8]
Int64Array = NDArray[np.int64]

# What `digits` gives for a cell that is none or has too many for 64 bits.
NOT_DIGITS = -2
_MOST_DIGITS = 18


@kernel
def cut(text: Bytes, ends: Int64Array, delimiter: int, closed: int, edges: Int64Array) -> Int64Array:
    """Find the cells of each line.

    Parameters
    ----------
    text : uint8 array
        Whole lines.
    ends : int64 array (n,)
        Where each line ends: the place of its LF.
    delimiter : int
        The byte between cells.
    closed : int
        1: a delimiter at the end of a line ends the last cell; 0: an empty cell follows it.
    edges : int64 array (n, width + 1)
        Filled in for lines of just ``width`` cells.

    Returns
    -------
    int64 array (n,)
        How many cells each line has, up to ``width`` + 1.
    """
    width = edges.shape[1] - 1
    counts = np.empty(len(ends), dtype=np.int64)
    begin = 0
    for line in range(len(ends)):
        end = ends[line]
        if end > begin and text[end - 1] == 13:
            end -= 1
        if closed and end > begin and text[end - 1] == delimiter:
            end -= 1
        edges[line, 0] = begin
        cells = 1
        for place in range(begin, end):
            if text[place] == delimiter:
                if cells > width:
                    break
                edges[line, cells] = place + 1
                cells += 1
        if cells <= width:
            edges[line, cells] = end + 1
        counts[line] = cells
        begin = ends[line] + 1
    return counts


@kernel
def digits(text: Bytes, edges: Int64Array, column: int, numbers: Int64Array) -> int:
    """Read the cells of a column as whole numbers, and return how many are none (`NOT_DIGITS`)."""
    others = 0
    for line in range(len(numbers)):
        begin, end = edges[line, column], edges[line, column + 1] - 1
        number = 0
        plain = begin < end <= begin + _MOST_DIGITS
        if plain:
            for place in range(begin, end):
                digit = text[place] - 48
                if digit < 0 or digit > 9:
                    plain = False
                    break
                number = 10 * number + digit
        numbers[line] = number if plain else NOT_DIGITS
        others += not plain
    return others


@kernel
def marks(text: Bytes, edges: Int64Array, column: int, wanted: Bytes) -> NDArray[np.bool_]:
    """Return which cells of a column have one of the ``wanted`` bytes."""
    found = np.zeros(len(edges), dtype=np.bool_)
    for line in range(len(edges)):
        for place in range(edges[line, column], edges[line, column + 1] - 1):
            for byte in wanted:
                if text[place] == byte:
                    found[line] = True
    return found


@kernel
def same(text: Bytes, edges: Int64Array, column: int, codes: Int64Array) -> Int64Array:
    """Give the different texts of a column numbers, in order of appearance.

    Parameters
    ----------
    text, edges, column
        As above.
    codes : int64 array (n,)
        Filled in: the number of each line's text.

    Returns
    -------
    int64 array
        The first line of each text.
    """
    n = len(codes)
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    firsts = np.empty(n, dtype=np.int64)
    count = 0
    for line in range(n):
        begin, end = edges[line, column], edges[line, column + 1] - 1
        # FNV-1a; which slot a text takes changes no result.
        mixed = np.uint64(14695981039346656037)
        for place in range(begin, end):
            mixed = (mixed ^ np.uint64(text[place])) * np.uint64(1099511628211)
        slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(size - 1))
        while True:
            code = slots[slot]
            if code < 0:
                slots[slot] = code = count
                firsts[count] = line
                count += 1
                break
            other = edges[firsts[code], column]
            if edges[firsts[code], column + 1] - 1 - other == end - begin:
                equal = True
                for place in range(end - begin):
                    if text[begin + place] != text[other + place]:
                        equal = False
                        break
                if equal:
                    break
            slot = (slot + 1) & (size - 1)
        codes[line] = code
    return firsts[:count].copy()
