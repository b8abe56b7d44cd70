"""What a report is made of: sections with paragraphs, tables and pictures, before they are HTML, CSV or SVG.

An analysis says what it found in these words, and nothing about how it is shown; the page (`report.html`), the files
and the terminal show the same sections.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from policyfactory.core.text import DAY, HOUR, MINUTE, number_text
from policyfactory.statistics.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.report.timeline import Timeline


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    title : str
        Its heading in files, as text (not markup); unless it has a label, everywhere.
    unit : str
        Unit of its numbers ("s", "%", "1", ...; "" for words); the page chooses hours or days from seconds.
    help : str
        What it means, in a sentence; shown on demand.
    shown : str
        The unit in which seconds are shown ("s", "min", "h", "d"), so that a metric has one unit in all tables; empty:
        chosen from the numbers.
    decimals : int or None
        Digits after the point, where they are given (published values); None: as many as are worth reading.
    digits : int
        Significant digits, where the decimals are not given.
    label : str
        Its heading on the page and the terminal, where that of files is a symbol: "mean wait".
    """

    title: str
    unit: str = ""
    help: str = ""
    shown: str = ""
    decimals: int | None = None
    digits: int = 3
    label: str = ""

    @property
    def heading(self) -> str:
        """What a reader sees above it."""
        return self.label or self.title


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """A value of a table.

    Parameters
    ----------
    value : float, str or None
        A number in the column's unit, a text, or None for nothing.
    interval : Interval or None
        95 % confidence interval of the number.
    mark : str
        A word about it: "best", "better", "worse", "no difference", ...
    """

    value: float | str | None
    interval: Interval | None = None
    mark: str = ""


def number_cell(value: float) -> Cell:
    """Return a number as a value of a table; NaN is nothing."""
    return Cell(None if math.isnan(value) else float(value))


# What a table shows of each row: heading -> what makes the cell, or its value, from the parts of the row.
Columns = Mapping[Column, Callable[..., "Cell | float | str | None"]]


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A table; each is also written as CSV.

    Parameters
    ----------
    name : str
        Stem of its file: lower-case letters, digits and hyphens, unique within its section.
    title : str
        What it shows, with what is varied and what is kept.
    columns : tuple of Column
        From left to right.
    rows : tuple of tuple of Cell
        From top to bottom, one cell a column.
    note : str
        What must be known to read it.
    shown : int or None
        So many of its rows are on the page, the first ones; None: as many as a page can have. The CSV has all.
    names : int
        So many of its columns name the rows; 0: the first ones that hold only words, two at most.
    bars : int
        The column of differences that is also drawn, as points with their intervals on one axis; -1: none.
    front : bool
        It stands on the page unfolded.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    shown: int | None = None
    names: int = 0
    bars: int = -1
    front: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        columns: Columns,
        rows: Iterable[tuple[Any, ...]],
        note: str = "",
        *,
        shown: int | None = None,
    ) -> Table:
        """Return the table of ``columns`` that say themselves what they show of each row.

        Parameters
        ----------
        name, title, note, shown
            As the table has them.
        columns : mapping of Column to callable
            From left to right; each callable takes the parts of a row.
        rows : iterable of tuple
            What each row is about.
        """
        values = ([show(*row) for show in columns.values()] for row in rows)
        cells = tuple(tuple(value if isinstance(value, Cell) else Cell(value) for value in line) for line in values)
        return cls(name, title, tuple(columns), cells, note, shown)

    @property
    def leading(self) -> int:
        """How many columns name the rows, at least one."""
        count = self.names
        while not self.names and count < min(2, len(self.columns) - 1):
            if not all(isinstance(row[count].value, str) for row in self.rows):
                break
            count += 1
        return max(1, count)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture; each is also written as SVG.

    Parameters
    ----------
    name : str
        Stem of its file, unique within its section.
    title : str
        What it shows; the alternative text too.
    draw : callable
        Returns the figure (`policyfactory.core.picture.new_figure`).
    note : str
        What must be known to read it.
    """

    name: str
    title: str
    draw: Callable[[], Figure]
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One finding.

    Parameters
    ----------
    name : str
        Stem of its files: lower-case letters, digits and hyphens.
    title : str
        The heading.
    paragraphs : tuple of str
        What was found, in words; plain text.
    tables, pictures
        The evidence.
    answers : tuple of str
        Paragraphs that also stand at the head of the report, where they answer what it was made for.
    timelines : tuple of Timeline
        Schedules that the page draws itself.
    """

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    answers: tuple[str, ...] = ()
    timelines: tuple[Timeline, ...] = ()


# Numbers with their units as people read them -------------------------------------------------------------------------

# One unit for a whole column, and one for a metric all over a report.


_TIME = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (5 * MINUTE, MINUTE, "min"))
_DIFFERENCE = re.compile(r"\b(difference|change|minus|deviation)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """In which unit the values of one metric are shown.

    Parameters
    ----------
    divisor : float
        Shown value = value / ``divisor``.
    label : str
        Unit of the shown value; empty for a pure number.
    """

    divisor: float
    label: str

    @property
    def most(self) -> int | None:
        """Digits behind the point, of a unit that seconds are shown in: a second is the least that is meant."""
        return math.ceil(math.log10(self.divisor)) if self.divisor > 1 else None

    @property
    def suffix(self) -> str:
        """The unit as it follows a number: `` h``, or nothing for a pure number."""
        return f" {self.label}" if self.label else ""

    def text(self, value: float, *, signed: bool = False) -> str:
        """Return the value in this unit, without the unit."""
        return number_text(value / self.divisor, signed=signed, most=self.most)


def scale_for(unit: str, values: Iterable[float], shown: str = "") -> Scale:
    """Return the scale on which the values of a metric are all readable.

    Parameters
    ----------
    unit : str
        Unit of the values; ``s`` becomes minutes, hours or days where the largest values ask for it.
    values : iterable of float
        What will be shown.
    shown : str
        The unit in which seconds are shown ("s", "min", "h", "d"), where it is decided already (`shown_units`).
    """
    if unit != "s":
        return Scale(1, "" if unit == "1" else unit)
    if shown:
        return next((Scale(by, name) for _, by, name in _TIME if name == shown), Scale(1, "s"))
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return next((Scale(by, name) for least, by, name in _TIME if largest >= least), Scale(1, "s"))


def span(*seconds: float) -> str:
    """Return times in one unit: ``35 min``, ``2.3-5.6 h``."""
    scale = scale_for("s", seconds)
    most = 1 if max(seconds) >= scale.divisor else scale.most
    # In hours, seconds are nothing.
    numbers = (
        number_text(second / scale.divisor if second > 0.005 * max(seconds) else 0, digits=2, most=most)
        for second in seconds
    )
    return f"{'-'.join(dict.fromkeys(numbers))}{scale.suffix}"


def scaled(value: float, unit: str) -> str:
    """Return one number with the unit that suits it: ``4.20 h``."""
    return with_ends(value, None, unit)[0]


def with_ends(
    value: float, interval: Interval | None, unit: str, shown: str = "", *, signed: bool = False
) -> tuple[str, str]:
    """Return a number and its interval on one scale: ``4.20 h`` and ``3.10 to 5.50 h``; the latter empty without one.

    Parameters
    ----------
    value : float
        The number.
    interval : Interval or None
        Of the number.
    unit, shown : str
        As `scale_for` takes them.
    signed : bool
        Whether all have a sign.
    """
    ends = [] if interval is None else [interval.low, interval.high]
    scale = scale_for(unit, [value, *ends], shown)
    text, *limits = (scale.text(number, signed=signed) for number in (value, *ends))
    return f"{text}{scale.suffix}", f"{' to '.join(limits)}{scale.suffix}" if limits else ""


def shown_units(values: Mapping[str, tuple[str, Iterable[float]]]) -> dict[str, str]:
    """Return one unit for each metric, so that its numbers can be compared all over a report.

    Parameters
    ----------
    values : mapping of str to (str, iterable of float)
        Metric: its unit, and the values of all policies on all logs (not of their differences or single cases).

    Returns
    -------
    dict of str to str
        What `scale_for` takes as ``shown``; empty where there is nothing to choose.
    """
    return {metric: scale_for("s", numbers).label if unit == "s" else "" for metric, (unit, numbers) in values.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class NumberFormat:
    """How the numbers of one column are shown.

    Parameters
    ----------
    scale : Scale
        In which unit.
    signed : bool
        Whether positive numbers carry a plus: in a column of differences.
    decimals : int or None
        Digits after the point; None: by the significant digits.
    digits : int
        Significant digits.
    """

    scale: Scale
    signed: bool
    decimals: int | None
    digits: int = 3

    def texts(self, cell: Cell) -> tuple[str, str]:
        """Return the number of ``cell`` and its interval (``[low, high]``, or nothing) as text."""
        ends = [cell.interval.low, cell.interval.high] if cell.interval else []
        width = (ends[1] - ends[0]) / self.scale.divisor if ends else math.nan
        # A narrow interval needs more digits than three: its ends would look the same.
        least = 1 - math.floor(math.log10(width / 2)) if 0 < width < math.inf else 0
        value, *bounds = (self._text(shown, least) for shown in (float(cell.value or 0), *ends))
        return value, f"[{', '.join(bounds)}]" if bounds else ""

    def _text(self, value: float, least: int) -> str:
        shown = value / self.scale.divisor
        most = self.scale.most
        return number_text(
            shown, signed=self.signed, decimals=self.decimals, least=least, digits=self.digits, most=most
        )


def format_for(column: Column, cells: Sequence[Cell]) -> NumberFormat:
    """Return the format in which all numbers of a column are readable.

    Parameters
    ----------
    column : Column
        Its unit; seconds become minutes, hours or days where the numbers ask for it.
    cells : sequence of Cell
        Its cells; texts are left alone.
    """
    values = [float(cell.value or 0) for cell in cells if _is_number(cell)]
    with_interval = any(cell.interval for cell in cells)
    sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
    # The middle one decides: one job that waits for a month shall not turn all others into 0.0001 months.
    scale = scale_for(column.unit, sizes[len(sizes) // 2 :][:1], column.shown)
    finite = [value / scale.divisor for value in values if math.isfinite(value)]
    whole = not with_interval and all(value == round(value) for value in finite)
    decimals = 0 if whole and column.decimals is None else column.decimals
    signed = any(value < 0 for value in finite) or _DIFFERENCE.search(column.title) is not None
    return NumberFormat(scale, signed, decimals, column.digits)


def column_texts(column: Column, cells: Sequence[Cell]) -> list[str]:
    """Return the heading of a column and its cells as lines of text have them: ``* 4.20 [3.10, 5.50]`` is the best."""
    how = format_for(column, cells)
    unit = f" ({how.scale.label})" if how.scale.label and any(_is_number(cell) for cell in cells) else ""
    texts = [f"{column.heading}{unit}"]
    for cell in cells:
        if isinstance(cell.value, str):
            texts.append(cell.value)
        else:
            shown = how.texts(cell) if _is_number(cell) else ()
            marked = ("*", *shown) if cell.mark == "best" else (*shown, cell.mark)
            texts.append(" ".join(filter(None, marked)))
    return texts


def _is_number(cell: Cell) -> bool:
    return not isinstance(cell.value, str | None)
