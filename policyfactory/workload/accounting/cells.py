"""The lines of a table of text by column: as texts, as numbers, or as numbers of their different texts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.workload.accounting.record import coded
from policyfactory.workload.accounting.sacct_columns import Columns
from policyfactory.workload.accounting.times import whole_numbers

__all__ = ["Rows"]


class Rows:
    """Lines with as many fields as the header, column by column; a column that the header lacks is empty.

    Parameters
    ----------
    columns : Columns
        The header.
    lines : int64 array (n,)
        Line of each row, from 1.
    cells : object array (n, width), or int64 array (2, n, width)
        The text of each cell, or where it begins in ``data`` and where the delimiter behind it is.
    data : bytes or None
        The lines, each cell of them with the delimiter behind it: compiled kernels look at them.
    """

    def __init__(self, columns: Columns, lines: Int64Array, cells: NDArray[Any], data: bytes | None) -> None:
        self.columns, self.lines = columns, lines
        self._cells, self._data = cells, data
        # What was asked for: most columns are asked for again.
        self._texts: dict[str, list[str]] = {}
        self._coded: dict[str, tuple[Int64Array, list[str]]] = {}

    @classmethod
    def of_lines(cls, columns: Columns, numbers: Int64Array, lines: list[str], *, compiled: bool) -> Self:
        """Return the rows of lines with as many fields as the header.

        With ``compiled``, kernels look at the bytes: that is twice as fast, but they take a second to load.
        """
        text = columns.delimiter.join([*lines, ""])
        if not compiled:
            texts = np.array(text.split(columns.delimiter)[:-1], dtype=object)
            return cls(columns, numbers, texts.reshape(-1, columns.width), None)
        data = text.encode()
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord(columns.delimiter))
        begins = np.concatenate([[0], ends + 1])[:-1]
        return cls(columns, numbers, np.reshape([begins, ends], (2, -1, columns.width)), data)

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, mask: NDArray[np.bool_]) -> Self:
        """Return the rows of ``mask``."""
        return type(self)(self.columns, self.lines[mask], self._cells[..., mask, :], self._data)

    def has(self, term: str) -> bool:
        """Tell whether the header has a column for ``term``."""
        return term in self.columns.place

    def texts(self, term: str) -> list[str]:
        """Return the cells of a column."""
        if term not in self._texts:
            self._texts[term] = self._cut(term) if self.has(term) else [""] * len(self)
        return self._texts[term]

    def _cut(self, term: str) -> list[str]:
        column: list[Any] = self._column(term).tolist()
        if self._data is None:
            return column
        begins, ends = column
        if self._data.isascii():
            text = self._data.decode()
            return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return [self._data[begin:end].decode() for begin, end in zip(begins, ends, strict=True)]

    def coded(self, term: str) -> tuple[Int64Array, list[str]]:
        """Return a column as numbers of its different texts, and these."""
        if term not in self._coded:
            if self._data is None or not self.has(term):
                self._coded[term] = coded(self.texts(term))
            else:
                self._coded[term] = self._by_kernel(term, self._data)
        return self._coded[term]

    def _by_kernel(self, term: str, data: bytes) -> tuple[Int64Array, list[str]]:
        from policyfactory.workload.accounting.byte_cells import number_texts

        begins, ends = self._column(term)
        codes = np.empty(len(self), dtype=np.int64)
        firsts = number_texts(np.frombuffer(data, dtype=np.uint8), begins, ends, codes).tolist()
        return codes, [data[begins[row] : ends[row]].decode() for row in firsts]

    def numbers(self, term: str) -> Int64Array | None:
        """Return a column of whole numbers, None if a cell is something else."""
        if self._data is None or not self.has(term):
            return whole_numbers(self.texts(term)) if self.has(term) else None
        from policyfactory.workload.accounting.byte_cells import read_digits

        numbers = np.empty(len(self), dtype=np.int64)
        begins, ends = self._column(term)
        return numbers if read_digits(np.frombuffer(self._data, dtype=np.uint8), begins, ends, numbers) else None

    def _column(self, term: str) -> NDArray[Any]:
        return self._cells[..., self.columns.place[term]]
