"""The lines of a table of text as places in the bytes of all of them, read by compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel
from policyfactory.workload.accounting.cells import Rows
from policyfactory.workload.accounting.sacct_columns import Columns

__all__ = ["ByteRows"]

_Bytes = NDArray[np.uint8]
_Int64Array = NDArray[np.int64]
_Mask = NDArray[np.bool_]

# More digits may have no place in 64 bits.
_MOST_DIGITS = 18
_ZERO, _NINE = 48, 57


class ByteRows(Rows):
    """Rows whose cells are places in the bytes of all lines.

    Parameters
    ----------
    columns : Columns
        The header.
    lines : int64 array (n,)
        Line of each row, from 1.
    data : bytes
        The lines, each cell of them with the delimiter behind it.
    edges : tuple of int64 array (n, width)
        Where each cell begins, and where the delimiter behind it is.
    """

    def __init__(
        self, columns: Columns, lines: _Int64Array, data: bytes, edges: tuple[_Int64Array, _Int64Array]
    ) -> None:
        super().__init__(columns, lines)
        self._data, self._edges = data, edges
        self._bytes = np.frombuffer(data, dtype=np.uint8)

    @classmethod
    def of_lines(cls, columns: Columns, numbers: _Int64Array, lines: list[str]) -> Self:
        """Return the rows of lines with as many fields as the header."""
        delimiter = columns.delimiter
        data = f"{delimiter.join(lines)}{delimiter}".encode()
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord(delimiter))
        begins = np.concatenate([[0], ends[:-1] + 1])
        return cls(columns, numbers, data, (begins.reshape(-1, columns.width), ends.reshape(-1, columns.width)))

    def where(self, mask: _Mask) -> Self:
        """Return the rows of ``mask``."""
        begins, ends = self._edges
        return type(self)(self.columns, self.lines[mask], self._data, (begins[mask], ends[mask]))

    def _texts(self, column: int) -> Sequence[str]:
        begins, ends = (edges[:, column].tolist() for edges in self._edges)
        if self._data.isascii():
            text = self._data.decode("ascii")
            return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return [self._data[begin:end].decode() for begin, end in zip(begins, ends, strict=True)]

    def _coded(self, column: int) -> tuple[_Int64Array, list[str]]:
        begins, ends = (edges[:, column] for edges in self._edges)
        codes = np.empty(len(begins), dtype=np.int64)
        firsts = _number_texts(self._bytes, begins, ends, codes).tolist()
        return codes, [self._data[begins[row] : ends[row]].decode() for row in firsts]

    def _numbers(self, column: int) -> _Int64Array | None:
        numbers = np.empty(len(self), dtype=np.int64)
        begins, ends = (edges[:, column] for edges in self._edges)
        return numbers if _read_digits(self._bytes, begins, ends, numbers) else None


@kernel
def _read_digits(text: _Bytes, begins: _Int64Array, ends: _Int64Array, numbers: _Int64Array) -> bool:
    """Read cells of at most 18 digits, and return whether all are such."""
    for cell in range(len(numbers)):
        if not 0 < ends[cell] - begins[cell] <= _MOST_DIGITS:
            return False
        number = 0
        for place in range(begins[cell], ends[cell]):
            digit = text[place]
            if digit < _ZERO or digit > _NINE:
                return False
            number = 10 * number + (digit - _ZERO)
        numbers[cell] = number
    return True


@kernel
def _number_texts(text: _Bytes, begins: _Int64Array, ends: _Int64Array, codes: _Int64Array) -> _Int64Array:
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
        for place in range(begin, begin + length):
            mixed = (mixed ^ np.uint64(text[place])) * np.uint64(1099511628211)
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
                for place in range(length):
                    if text[begin + place] != text[other + place]:
                        equal = False
                        break
                if equal:
                    break
            slot = (slot + 1) & (size - 1)
        codes[cell] = code
    return firsts[:count].copy()
