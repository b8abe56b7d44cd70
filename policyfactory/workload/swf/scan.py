"""Kernels that turn the bytes of logs and of tables of text into numbers: one pass, no Python object per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel
from policyfactory.core.options import Int64Array, UInt8Array

FIELD_COUNT = 18

# What a scan, or the reading of one number, ended with.
OK, BAD_NUMBER, BAD_WIDTH, TOO_LARGE, DECIMAL, IRREGULAR = range(6)

_TAB, _LF, _CR, _BLANK = 9, 10, 13, 32
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _SEMICOLON = 43, 45, 46, 48, 57, 59
_UPPER_E, _LOWER_E = 69, 101
# 18 digits always fit into an int64; 15 digits and a power of ten up to 15 are exact in a double, so that their
# quotient is the correctly rounded value of the decimal.
_MOST_DIGITS = 18
_EXACT_DIGITS = 15


@kernel
def _is_end(byte: int) -> bool:
    """Tell whether a byte ends a number."""
    return byte in (_BLANK, _TAB, _LF, _CR)


@kernel
def _skip_blanks(data: NDArray[np.uint8], position: int) -> int:
    """Return the next byte that is no blank."""
    while data[position] in (_BLANK, _TAB, _CR):
        position += 1
    return position


@kernel
def scan_number(data: NDArray[np.uint8], position: int) -> tuple[int, int, int, int]:
    """Read the number that begins at ``at``.

    Parameters
    ----------
    data : uint8 array (bytes,)
        The text; its last byte is a line feed.
    position : int
        The first byte of the token.

    Returns
    -------
    tuple of (int, int, int, int)
        The place where reading ended; the digits as one whole number, with its sign; how many of them are
        behind the point; and OK, DECIMAL (value / 10**behind), IRREGULAR (has an exponent, or more digits than a
        double holds: for the C library to read, whole token read), BAD_NUMBER or TOO_LARGE.
    """
    negative = data[position] == _MINUS
    if negative or data[position] == _PLUS:
        position += 1
    number = np.int64(0)
    first = position
    byte = data[position]
    while _ZERO <= byte <= _NINE:
        if position - first < _MOST_DIGITS:
            number = number * 10 + np.int64(byte - _ZERO)
        position += 1
        byte = data[position]
    digits = position - first
    behind = 0
    kind = OK
    if byte == _POINT:
        position += 1
        byte = data[position]
        while _ZERO <= byte <= _NINE:
            if digits + behind < _MOST_DIGITS:
                number = number * 10 + np.int64(byte - _ZERO)
            behind += 1
            position += 1
            byte = data[position]
        digits += behind
        kind = DECIMAL if digits <= _EXACT_DIGITS else IRREGULAR
    if digits == 0:
        kind = BAD_NUMBER
    elif byte in (_LOWER_E, _UPPER_E):
        kind = IRREGULAR
        while not _is_end(data[position]):
            position += 1
    elif not _is_end(byte):
        kind = BAD_NUMBER
    elif kind == OK and digits > _MOST_DIGITS:
        kind = TOO_LARGE
    return position, int(-number if negative else number), behind, kind


@kernel
def scan_jobs(
    data: NDArray[np.uint8],
    values: NDArray[np.int64],
    line_of: NDArray[np.int64],
    decimals: NDArray[np.int64],
    outcome: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> None:
    """Read job lines of blank-separated numbers; comment and blank lines are skipped.

    Parameters
    ----------
    data : uint8 array (bytes,)
        The text, beginning at a line's start; its last byte is a line feed.
    values : int64 array (kept, lines)
        Filled with the fields of job ``j`` in column ``j``; of a decimal all digits, without the point.
    line_of : int64 array (lines,)
        Filled with each job's line, counted from 0.
    decimals : int64 array (tokens, 6)
        Filled with job, row of ``values``, first byte, end byte, digits behind the point and DECIMAL or IRREGULAR of
        each number that is not whole; as many rows as ``data`` has bytes ``.``, ``e`` and ``E`` are enough.
    outcome : int64 array (8,)
        Filled with: result (OK, ...), jobs, decimals, comment lines, blank lines, and for a fault its line
        (from 0), its field (from 0; for BAD_WIDTH the number of fields) and the first byte of the token.
    rows : int64 array (fields,)
        The row of ``values`` for each field of a line, -1 for one that is passed over, whatever it holds; a line has
        as many fields as this.
    """
    size = len(data)
    fields = len(rows)
    position, line, job, special, comments, blanks, field, first = 0, 0, 0, 0, 0, 0, 0, 0
    result = OK
    while position < size:
        position = _skip_blanks(data, position)
        if data[position] == _SEMICOLON:
            comments += 1
            while data[position] != _LF:
                position += 1
        elif data[position] == _LF:
            blanks += 1
        else:
            field = 0
            while data[position] != _LF and result == OK:
                first = position
                row = rows[field] if field < fields else 0
                if row < 0:
                    while not _is_end(data[position]):
                        position += 1
                    field += 1
                    position = _skip_blanks(data, position)
                    continue
                position, number, behind, kind = scan_number(data, position)
                if kind in (BAD_NUMBER, TOO_LARGE):
                    result = kind
                    break
                if field < fields:
                    values[row, job] = number
                    if kind != OK:
                        decimals[special, 0] = job
                        decimals[special, 1] = row
                        decimals[special, 2] = first
                        decimals[special, 3] = position
                        decimals[special, 4] = behind
                        decimals[special, 5] = kind
                        special += 1
                field += 1
                position = _skip_blanks(data, position)
            if result == OK and field != fields:
                result = BAD_WIDTH
            if result != OK:
                break
            line_of[job] = line
            job += 1
        position += 1
        line += 1
    # Each by itself: the assignment of all at once takes longer to compile than the rest.
    outcome[0], outcome[1], outcome[2], outcome[3] = result, job, special, comments
    outcome[4], outcome[5], outcome[6], outcome[7] = blanks, line, field, first


# Whole numbers as the lines of a log ----------------------------------------------------------------------------------

# What ``%`` of Python prints, without a string of each number.


# Lines at once: their text stays within the caches.
_LINES = 4096
_LONGEST = 20  # -2**63
_ZERO_BYTE, _MINUS_BYTE, _SPACE, _LINE_FEED = 48, 45, 32, 10


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
    position = 0
    for row in range(columns.shape[1]):
        for column in range(columns.shape[0]):
            number = columns[column, row]
            left = np.uint64(number) if number >= 0 else np.uint64(-(number + 1)) + np.uint64(1)
            count = 0
            while True:
                digits[count] = _ZERO_BYTE + np.int64(left % np.uint64(10))
                left //= np.uint64(10)
                count += 1
                if left == 0:
                    break
            if number < 0:
                digits[count] = _MINUS_BYTE
                count += 1
            for _ in range(widths[column] - count):
                text[position] = _SPACE
                position += 1
            for index in range(count - 1, -1, -1):
                text[position] = digits[index]
                position += 1
            text[position] = _SPACE
            position += 1
        text[position - 1] = _LINE_FEED
    return position


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


# Cells of a table of text, read where they stand in its bytes ---------------------------------------------------------


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
