"""What a report is made of: sections with paragraphs, tables and pictures, before they are HTML, CSV or SVG.

An analysis says what it found in these words, and nothing about how it is shown; the page (`report.html`), the files
and the terminal show the same sections.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from policyfactory.statistics.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.report.timeline import Timeline

__all__ = ["Cell", "Column", "Columns", "Picture", "Section", "Table"]


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
