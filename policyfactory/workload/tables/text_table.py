"""Tables in text: CSV, fields parted by tabs, and fields parted by blanks with comments ahead (SWF and its likes)."""

from __future__ import annotations

import csv
import difflib
import operator
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import Remark
from policyfactory.workload.header import parse_header, printable
from policyfactory.workload.tables.cells import Cells, TextCells
from policyfactory.workload.tables.mapping import TableMapping

__all__ = ["Rows", "TextTable", "check_columns"]

# Rows of a block: their cells are held as texts.
_BLOCK = 1 << 15
# Characters of a cell: a list of ten thousand nodes has some hundred thousand.
_LONGEST_CELL = 1 << 20
_MOST_COLUMNS = 5000
_MOST_COMMENTS = 5000

# Row numbers, and the cells of the columns asked for, in their order.
Rows = tuple[Int64Array, list[Cells]]


def check_columns(names: Sequence[str], wanted: Sequence[str], place: str) -> None:
    """Refuse a table that lacks a column.

    Raises
    ------
    TraceFormatError
        If it does; it names what is there, and what is near.
    """
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    near = difflib.get_close_matches(missing[0], names, n=1, cutoff=0.6)
    hint = f"is it {printable(near[0], 60)!r}? " if near else ""
    raise TraceFormatError(
        f"{place}: no column {printable(', '.join(missing), 200)}; {hint}the table has "
        f"{printable(', '.join(names), 800) or 'no columns'}. Name another --format, or your own --mapping"
    )


class TextTable:
    """A table in text.

    Parameters
    ----------
    lines : iterable of str
        Its lines, without their ends.
    place : str
        Its name, for messages.
    mapping : TableMapping
        How it is parted, and the names of its columns if it has none.

    Raises
    ------
    TraceFormatError
        If it is empty, or its line of names is none.
    """

    def __init__(self, lines: Iterable[str], place: str, mapping: TableMapping) -> None:
        self.place = place
        self._form = mapping.form
        self._line = 0
        self._lines = iter(lines)
        self._comments: list[str] = []
        self.names = tuple(mapping.header)
        if not self.names:
            self.names = self._header()

    def _header(self) -> tuple[str, ...]:
        rows = self._fields()
        first = next(rows, None)
        if first is None:
            raise TraceFormatError(f"{self.place}: is empty; a table has a line with the names of its columns")
        names = tuple(name.strip() for name in first)
        if len(names) > _MOST_COLUMNS or len(names) < 2:
            raise TraceFormatError(
                f"{self.place}:1: {printable(', '.join(names), 80)!r} are {len(names):,} names of columns; is this the "
                f"table, and parted as the mapping says ({self._form})?"
            )
        double = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if double is not None:
            raise TraceFormatError(f"{self.place}:1: two columns are called {printable(double, 60)!r}; rename one")
        return names

    @property
    def origin(self) -> int:
        """The UnixStartTime of the comments ahead of the rows, 0 if there is none."""
        return parse_header(self._comments).unix_start or 0

    def blocks(self, wanted: Sequence[str]) -> Iterator[Rows | Remark]:
        """Give the cells of some columns, some ten thousand rows at a time; can be asked for once.

        Raises
        ------
        TraceFormatError
            If a column is missing, or quotes are not closed.
        """
        check_columns(self.names, wanted, self.place)
        places = [self.names.index(name) for name in wanted]
        # With one place alone it would give no tuple.
        pick = operator.itemgetter(*places, *places[:1])
        width = len(self.names)
        rows: list[tuple[str, ...]] = []
        lines: list[int] = []
        for fields in self._fields():
            if len(fields) == width:
                rows.append(pick(fields))
                lines.append(self._line)
            elif fields:
                yield Remark(self._line, "", "tables.cut_off" if len(fields) < width else "tables.surplus")
            if len(rows) >= _BLOCK:
                yield _block(lines, rows)
                rows, lines = [], []
        if rows:
            yield _block(lines, rows)

    def _fields(self) -> Iterator[list[str]]:
        """Give the fields of each line; ``_line`` is its number."""
        if self._form in {"tsv", "blank"}:
            yield from self._plain("\t" if self._form == "tsv" else None)
            return
        before = csv.field_size_limit(_LONGEST_CELL)
        reader = csv.reader(self._lines, strict=True)
        first = self._line
        try:
            for fields in reader:
                self._line = first + reader.line_num
                yield fields
        except csv.Error as error:
            raise TraceFormatError(
                f"{self.place}:{first + reader.line_num}: is no CSV ({printable(str(error), 80)}); a quote in a text "
                "is doubled, and a text with a comma stands in quotes"
            ) from None
        finally:
            csv.field_size_limit(before)

    def _plain(self, mark: str | None) -> Iterator[list[str]]:
        for line in self._lines:
            self._line += 1
            if mark is None and line.lstrip().startswith(";"):
                if len(self._comments) < _MOST_COMMENTS:
                    self._comments.append(line.strip())
            elif line.strip():
                yield line.split(mark)


def _block(lines: list[int], rows: list[tuple[str, ...]]) -> Rows:
    columns = list(zip(*rows, strict=True))[:-1]
    return np.array(lines, dtype=np.int64), [TextCells(list(column)) for column in columns]
