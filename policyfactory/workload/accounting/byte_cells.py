"""Kernels that read the cells of a table of text where they stand in its bytes."""

from __future__ import annotations

import numpy as np

from policyfactory.core.jit import kernel
from policyfactory.core.options import Int64Array, UInt8Array

# More digits may have no place in 64 bits.
_MOST_DIGITS = 18
_ZERO, _NINE = 48, 57


@kernel
def read_digits(text: UInt8Array, begins: Int64Array, ends: Int64Array, numbers: Int64Array) -> bool:
    """Read cells of at most 18 digits, and return whether all are such."""
    for cell in range(len(numbers)):
        if not 0 < ends[cell] - begins[cell] <= _MOST_DIGITS:
            return False
        number = 0
        for position in range(begins[cell], ends[cell]):
            digit = text[position]
            if digit < _ZERO or digit > _NINE:
                return False
            number = 10 * number + (digit - _ZERO)
        numbers[cell] = number
    return True


@kernel
def number_texts(text: UInt8Array, begins: Int64Array, ends: Int64Array, codes: Int64Array) -> Int64Array:
    """Give the different texts of some cells numbers, by first appearance, and return the first cell of each."""
    n = len(codes)
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    firsts = np.empty(n, dtype=np.int64)
    count = 0
    for cell in range(n):
        begin, length = begins[cell], ends[cell] - begins[cell]
        # FNV-1a; which slot a text takes changes no result.
        mixed = np.uint64(14695981039346656037)
        for offset in range(begin, begin + length):
            mixed = (mixed ^ np.uint64(text[offset])) * np.uint64(1099511628211)
        slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(size - 1))
        while True:
            code = slots[slot]
            if code < 0:
                slots[slot] = code = count
                firsts[count] = cell
                count += 1
                break
            other = begins[firsts[code]]
            if ends[firsts[code]] - other == length:
                equal = True
                for offset in range(length):
                    if text[begin + offset] != text[other + offset]:
                        equal = False
                        break
                if equal:
                    break
            slot = (slot + 1) & (size - 1)
        codes[cell] = code
    return firsts[:count].copy()
