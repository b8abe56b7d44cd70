"""A table as the page shows it: numbers as text with the value to sort by beside them."""

from __future__ import annotations

import dataclasses
import math

from policyfactory.report.numbers import NumberFormat, format_for
from policyfactory.report.sections import Cell, Column, Table

__all__ = ["MOST_ROWS", "CellView", "ColumnView", "TableView", "view"]

MOST_ROWS = 2000  # more make a page slow on a phone; the CSV has them all
_TALL = 30  # rows from which a table scrolls below its headings
_LONG = 24  # letters; a longer text is broken between words, a longer word anywhere

# Words whose meaning has a colour; others are shown without one.
_KINDS = {"best": "best", "better": "better", "worse": "worse", "no difference": "same"}


@dataclasses.dataclass(frozen=True, slots=True)
class CellView:
    """A cell: ``text`` (interval and mark beside it); ``sort``: a number to sort by; ``wrap``: how its text breaks."""

    text: str
    sort: str
    number: bool
    interval: str
    mark: str
    kind: str
    wrap: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnView:
    """A heading; ``number``: its cells are aligned as numbers; ``room``: width of its intervals in digits, or 0."""

    title: str
    unit: str
    help: str
    number: bool
    room: int


@dataclasses.dataclass(frozen=True, slots=True)
class TableView:
    """A table, cut if it is too long; ``file`` is where all of it is."""

    title: str
    note: str
    columns: tuple[ColumnView, ...]
    rows: tuple[tuple[CellView, ...], ...]
    all_rows: int
    file: str
    tall: bool


def view(table: Table, folder: str, section: str) -> TableView:
    """Return ``table`` as the page shows it.

    Parameters
    ----------
    table : Table
        The numbers.
    folder, section : str
        Where its CSV lies: ``folder/section/NAME.csv``.
    """
    rows = table.rows[: MOST_ROWS if table.shown is None else min(table.shown, MOST_ROWS)]
    columns, cells = [], []
    for at, column in enumerate(table.columns):
        own = [row[at] for row in rows]
        number_format = format_for(column, own)
        shown = [_cell(cell, number_format) for cell in own]
        number = any(cell.number for cell in shown)
        unit = _unit(column, number_format) if number else ""
        room = max((_room(cell.interval) for cell in shown), default=0)
        columns.append(ColumnView(column.title, unit, column.help, number, room))
        cells.append(shown)
    path = "/".join(part for part in (folder, section, f"{table.name}.csv") if part)
    turned = tuple(zip(*cells, strict=True)) if cells else ()
    return TableView(table.title, table.note, tuple(columns), turned, len(table.rows), path, len(rows) > _TALL)


def _unit(column: Column, number_format: NumberFormat) -> str:
    """Return the unit to show: none for a pure number or where the heading says it already ("windows won")."""
    unit = number_format.scale.label
    return "" if unit == "1" or (len(unit) > 2 and unit.casefold() in column.title.casefold()) else unit


def _room(text: str) -> int:
    """Return how many digits wide a text is at most; the page reserves it, so that the values before it line up."""
    narrow = sum(letter in " ,.-[]" for letter in text)
    return math.ceil(len(text) - 0.35 * narrow + 0.4 * text.count("+"))


def _cell(cell: Cell, number_format: NumberFormat) -> CellView:
    kind = _KINDS.get(cell.mark, "other")
    value = cell.value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return CellView("", "", False, "", cell.mark, kind)
    if isinstance(value, str):
        wrap = "" if len(value) <= _LONG else "wrap" if max(map(len, value.split()), default=0) <= _LONG else "break"
        return CellView(value, "", False, "", cell.mark, kind, wrap)
    text, interval = number_format.texts(cell)
    return CellView(text, repr(float(value)).replace("inf", "Infinity"), True, interval, cell.mark, kind)
