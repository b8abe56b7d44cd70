"""Tables and pictures of analyses: a row a log and policy, values beside their differences from the baseline."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from policyfactory.analyses.estimates import count_of, marks_of, median_differences, median_of, share_of
from policyfactory.analyses.logs import LogView
from policyfactory.core.arrays import FloatArray
from policyfactory.core.text import anchors
from policyfactory.report.sections import Cell, Column, Columns, Picture, Table
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

View = TypeVar("View", bound=LogView)
__all__ = [
    "cell_of",
    "compared_columns",
    "count_cell",
    "difference_cell",
    "log_column",
    "median_cell",
    "pictures_by_log",
    "policy_table",
    "share_cell",
    "stem_by_log",
]


def log_column(*, several: bool) -> Columns:
    """Return the column of the log, if there are several; each row begins with a view of its log."""
    return {Column("log"): lambda own, *_: own.log} if several else {}


def policy_table(
    name: str, title: str, logs: Sequence[LogView], columns: Columns, note: str = "", *, first: int = 0
) -> Table:
    """Return a table with a row a log and policy.

    Parameters
    ----------
    name, title, note : str
        As the table has them.
    logs : sequence of LogView
        The logs.
    columns : mapping of Column to callable
        What follows the names; each callable makes a cell from the log and the place of the policy.
    first : int
        Place of the first policy that has a row; 1 leaves the baseline out.
    """
    rows = [(own, place) for own in logs for place in range(first, len(own.policies))]
    names = {**log_column(several=len(logs) > 1), Column("policy"): lambda own, place: own.policies[place]}
    return Table.of(name, title, {**names, **columns}, rows, note)


def compared_columns(
    column: Column, values: Callable[[Any], FloatArray], baseline: str, *, lower_is_better: bool = True
) -> Columns:
    """Return the columns of a median over cases and of its difference from the baseline.

    Parameters
    ----------
    column : Column
        What the number of a case is.
    values : callable
        From a log to its numbers, float64 array (cases, policies).
    baseline : str
        Its name.
    lower_is_better : bool
        Which way is good.
    """
    minus = dataclasses.replace(
        column, title=f"{column.title}, difference", help=f"from {baseline}; median over cases, paired"
    )
    return {
        dataclasses.replace(column, help=f"{column.help}; median over cases"): lambda own, place: median_cell(
            values(own)[:, place]
        ),
        minus: lambda own, place: difference_cell(values(own), place, drawn=own.drawn, lower_is_better=lower_is_better),
    }


def stem_by_log(stem: str, logs: Sequence[str]) -> dict[str, str]:
    """Return a name for the file of each log: ``stem`` if there is one log, else with the log's name in it.

    Parameters
    ----------
    stem : str
        What the files show.
    logs : sequence of str
        Names of logs, all distinct, which may hold anything.
    """
    if len(logs) <= 1:
        return dict.fromkeys(logs, stem)
    return {log: f"{stem}-{part}" for log, part in zip(logs, anchors(logs), strict=True)}


def pictures_by_log(
    stem: str,
    logs: Sequence[View],
    title: str | Callable[[View], str],
    draw: Callable[[View], Figure],
    note: str,
    number: int = 0,
) -> tuple[Picture, ...]:
    """Return a picture for each log.

    Parameters
    ----------
    stem : str
        Name of its file.
    logs : sequence of LogView
        The logs.
    title : str or callable
        What it shows, after the name of the log; or what makes that from the log.
    draw : callable
        Draws a log.
    note : str
        What must be known to read it.
    number : int
        Number of the case that it shows; 0: it is about all.
    """
    stems = stem_by_log(stem, [own.log for own in logs])
    pictures = []
    for own in logs:
        where = f"{own.log}, {own.place_of(number)}" if number else own.log
        what = title if isinstance(title, str) else title(own)
        pictures.append(Picture(stems[own.log], f"{where}: {what}", functools.partial(draw, own), note))
    return tuple(pictures)


# Cells. --------------------------------------------------------------------------------------------------------------


def count_cell(values: FloatArray) -> Cell:
    """Return the cell of `count_of`; empty without a case."""
    return cell_of(count_of(values))


def share_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `share_of`; empty without a case."""
    return cell_of(share_of(values), mark)


def median_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `median_of`; empty without a case."""
    return cell_of(median_of(values), mark)


def cell_of(estimate: Estimate, mark: str = "") -> Cell:
    """Return the cell of an estimate; empty without a case."""
    return Cell(estimate.value if estimate.cases else None, estimate.interval, mark)


def difference_cell(values: FloatArray, place: int, *, drawn: float | None, lower_is_better: bool = True) -> Cell:
    """Return the cell of a policy's median difference with its verdict; empty for the baseline."""
    if not place:
        return Cell(None)
    differences = median_differences(values)
    return cell_of(differences[place], marks_of(differences, values, drawn, lower_is_better=lower_is_better)[place])
