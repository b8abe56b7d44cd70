"""A table as the page shows it: numbers as text with the value to sort by beside them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from policyfactory.report.numbers import NumberFormat, format_for
from policyfactory.report.sections import Cell, Column, Table

__all__ = ["MOST_ROWS", "Axis", "Bar", "CellView", "ColumnView", "TableView", "view"]

MOST_ROWS = 2000  # more make a page slow on a phone; the CSV has them all
_TALL = 30  # rows from which a table scrolls below its headings
_LONG = 24  # letters; a longer text is broken between words, a longer word anywhere

# Words whose meaning has a colour; others are shown without one.
_KINDS = {"best": "best", "better": "better", "worse": "worse", "no difference": "same", "chosen": "chosen"}
_BENT_FROM = 20.0  # times the middle reach: beyond, one row would hide the others on a linear axis
_MARGIN = 4.0  # % of the axis at either end


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
    chosen: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A difference on an axis: the point and the ends of its interval in % of its width; ``label``: both as text."""

    at: float
    low: float | None
    high: float | None
    kind: str
    label: str


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """The bars of a table, None for a row without a difference; ``zero``: where no difference is; ``ends`` as text."""

    column: int
    title: str
    bars: tuple[Bar | None, ...]
    zero: float
    bent: bool
    ends: str


@dataclasses.dataclass(frozen=True, slots=True)
class TableView:
    """A table, cut if it is too long; ``file`` is where all of it is; ``keys``: the policy that each row is about."""

    title: str
    note: str
    columns: tuple[ColumnView, ...]
    rows: tuple[tuple[CellView, ...], ...]
    all_rows: int
    file: str
    tall: bool
    keys: tuple[str, ...] = ()
    axis: Axis | None = None
    front: bool = False


def view(table: Table, folder: str, section: str, chosen: str = "") -> TableView:
    """Return ``table`` as the page shows it.

    Parameters
    ----------
    table : Table
        The numbers.
    folder, section : str
        Where its CSV lies: ``folder/section/NAME.csv``.
    chosen : str
        Name of a policy that is marked wherever it stands alone in a cell or a heading.
    """
    rows = table.rows[: MOST_ROWS if table.shown is None else min(table.shown, MOST_ROWS)]
    columns, cells = [], []
    for at, column in enumerate(table.columns):
        own = [_marked(row[at], chosen) for row in rows]
        number_format = format_for(column, own)
        shown = [_cell(cell, number_format) for cell in own]
        number = any(cell.number for cell in shown)
        unit = _unit(column, number_format) if number else ""
        room = max((_room(cell.interval) for cell in shown), default=0)
        columns.append(
            ColumnView(column.heading, unit, column.help, number, room, bool(chosen) and column.title == chosen)
        )
        cells.append(shown)
    path = "/".join(part for part in (folder, section, f"{table.name}.csv") if part)
    turned = tuple(zip(*cells, strict=True)) if cells else ()
    places = [at for at, column in enumerate(table.columns) if column.title == "policy"]
    keys = tuple(str(row[places[0]].value) for row in rows) if places else ()
    axis = _axis(table, cells[table.bars], rows, columns[table.bars]) if table.bars > 0 else None
    tall = len(rows) > _TALL
    return TableView(
        table.title, table.note, tuple(columns), turned, len(table.rows), path, tall, keys, axis, table.front
    )


def _marked(cell: Cell, chosen: str) -> Cell:
    return dataclasses.replace(cell, mark="chosen") if chosen and cell.value == chosen and not cell.mark else cell


def _axis(table: Table, shown: Sequence[CellView], rows: Sequence[Sequence[Cell]], column: ColumnView) -> Axis | None:
    """Return the differences of a column as bars; None if there are none."""
    at = table.bars
    cells = [row[at] for row in rows]
    points = [_points(cell) for cell in cells]
    reach = sorted(max(map(abs, own)) for own in points if own and any(own))
    if not reach:
        return None
    middle = reach[len(reach) // 2]
    bent = reach[-1] >= _BENT_FROM * middle
    scaled = [[math.asinh(value / middle) if bent else value for value in own] for own in points]
    ends = [0.0, *(value for own in scaled for value in own)]
    low, width = min(ends), max(ends) - min(ends)

    def place(value: float) -> float:
        return round(_MARGIN + (100 - 2 * _MARGIN) * (value - low) / width, 2)

    bars = []
    for cell, seen, own in zip(cells, shown, scaled, strict=True):
        label = " ".join(part for part in (seen.text, seen.interval, column.unit, seen.mark) if part)
        low_end, high_end = (place(own[1]), place(own[2])) if len(own) == 3 else (None, None)
        kind = _KINDS.get(cell.mark, "other")
        bars.append(Bar(place(own[0]), low_end, high_end, kind, label) if own else None)
    how = format_for(table.columns[at], cells)
    every = [0.0, *(value for own in points for value in own)]
    first, last = (how.texts(Cell(end))[0] if end else "0" for end in (min(every), max(every)))
    said = " ".join(part for part in (f"{first} to {last}", column.unit) if part)
    return Axis(at, column.title, tuple(bars), place(0.0), bent, said)


def _points(cell: Cell) -> list[float]:
    """Return the number of a cell and the ends of its interval; nothing if it has no finite number."""
    if cell.value is None or isinstance(cell.value, str) or not math.isfinite(cell.value):
        return []
    ends = [cell.interval.low, cell.interval.high] if cell.interval else []
    return [float(cell.value), *(ends if all(map(math.isfinite, ends)) else [])]


def _unit(column: Column, number_format: NumberFormat) -> str:
    """Return the unit to show: none for a pure number or where the heading says it already ("windows won")."""
    unit = number_format.scale.label
    return "" if unit == "1" or (len(unit) > 2 and unit.casefold() in column.heading.casefold()) else unit


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
    return CellView(text, f"{float(value):.12g}".replace("inf", "Infinity"), True, interval, cell.mark, kind)
