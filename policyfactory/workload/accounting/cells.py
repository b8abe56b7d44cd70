"""The lines of a table of text by column: as texts, as numbers, or as numbers of their different texts.

Two forms have the same methods: `TextRows` have a string of each cell; `byte_cells.ByteRows` look at the bytes of all
lines by compiled kernels, which is twice as fast, but takes a second to begin with.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from policyfactory.workload.accounting.record import coded
from policyfactory.workload.accounting.sacct_columns import Columns
from policyfactory.workload.accounting.times import whole_numbers

__all__ = ["Rows", "TextRows"]

_Int64Array = NDArray[np.int64]
_Mask = NDArray[np.bool_]


class Rows(abc.ABC):
    """Lines with as many fields as the header, column by column; a column that the header lacks is empty.

    Parameters
    ----------
    columns : Columns
        The header.
    lines : int64 array (n,)
        Line of each row, from 1.
    """

    def __init__(self, columns: Columns, lines: _Int64Array) -> None:
        self.columns, self.lines = columns, lines
        # What was asked for: most columns are asked for again.
        self._known_texts: dict[str, Sequence[str]] = {}
        self._known_codes: dict[str, tuple[_Int64Array, list[str]]] = {}

    def __len__(self) -> int:
        return len(self.lines)

    def has(self, term: str) -> bool:
        """Tell whether the header has a column for ``term``."""
        return term in self.columns.place

    def texts(self, term: str) -> Sequence[str]:
        """Return the cells of a column."""
        if term not in self._known_texts:
            self._known_texts[term] = self._texts(self.columns.place[term]) if self.has(term) else [""] * len(self)
        return self._known_texts[term]

    def coded(self, term: str) -> tuple[_Int64Array, list[str]]:
        """Return a column as numbers of its different texts, and these."""
        if term not in self._known_codes:
            nothing = (np.zeros(len(self), dtype=np.int64), [""])
            self._known_codes[term] = self._coded(self.columns.place[term]) if self.has(term) else nothing
        return self._known_codes[term]

    def numbers(self, term: str) -> _Int64Array | None:
        """Return a column of whole numbers, None if a cell is something else."""
        return self._numbers(self.columns.place[term]) if self.has(term) else None

    @abc.abstractmethod
    def where(self, mask: _Mask) -> Self:
        """Return the rows of ``mask``."""

    @abc.abstractmethod
    def _texts(self, column: int) -> Sequence[str]: ...

    @abc.abstractmethod
    def _coded(self, column: int) -> tuple[_Int64Array, list[str]]: ...

    @abc.abstractmethod
    def _numbers(self, column: int) -> _Int64Array | None: ...


class TextRows(Rows):
    """Rows with a string of each cell.

    Parameters
    ----------
    columns : Columns
        The header.
    lines : int64 array (n,)
        Line of each row, from 1.
    cells : list of sequence of str
        The cells of each column.
    """

    def __init__(self, columns: Columns, lines: _Int64Array, cells: list[Sequence[str]]) -> None:
        super().__init__(columns, lines)
        self._cells = cells

    def where(self, mask: _Mask) -> Self:
        """Return the rows of ``mask``."""
        chosen = mask.tolist()
        return type(self)(
            self.columns, self.lines[mask], [list(itertools.compress(texts, chosen)) for texts in self._cells]
        )

    def _texts(self, column: int) -> Sequence[str]:
        return self._cells[column]

    def _coded(self, column: int) -> tuple[_Int64Array, list[str]]:
        return coded(self._cells[column])

    def _numbers(self, column: int) -> _Int64Array | None:
        return whole_numbers(self._cells[column])
