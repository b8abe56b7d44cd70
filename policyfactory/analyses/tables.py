"""Tables of analyses: a row a log and policy, values beside their differences from the baseline, a file a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.estimates import mark_of, mean_of, median_difference, median_of
from policyfactory.core.text import anchors
from policyfactory.report.sections import Cell, Column
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    pass

FloatArray = NDArray[np.float64]

__all__ = [
    "cell_of",
    "compared_cells",
    "compared_columns",
    "difference_cell",
    "log_cells",
    "log_columns",
    "mean_cell",
    "median_cell",
    "policy_columns",
    "policy_rows",
    "stem_by_log",
]


def log_columns(logs: Sequence[str]) -> tuple[Column, ...]:
    """Return a column for the log if there are several."""
    return (Column("log"),) if len(logs) > 1 else ()


def log_cells(logs: Sequence[str], log: str) -> tuple[Cell, ...]:
    """Return the cell of that column, if there is one."""
    return (Cell(log),) if len(logs) > 1 else ()


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


def policy_columns(logs: Sequence[str], *others: Column) -> tuple[Column, ...]:
    """Return the columns of a table with a row a log and policy."""
    return (*log_columns(logs), Column("policy"), *others)


def policy_rows(
    logs: Sequence[str], policies: Sequence[str], cells: Callable[[str, int], Iterable[Cell]], first: int = 0
) -> tuple[tuple[Cell, ...], ...]:
    """Return its rows: ``cells(log, place of the policy)`` gives what follows the names.

    Parameters
    ----------
    logs, policies : sequence of str
        The names.
    cells : callable
        The other cells.
    first : int
        Place of the first policy that has a row; 1 leaves the baseline out.
    """
    return tuple(
        (*log_cells(logs, log), Cell(policy), *cells(log, place))
        for log in logs
        for place, policy in enumerate(policies)
        if place >= first
    )


def compared_columns(title: str, unit: str, help: str, baseline: str, shown: str = "") -> tuple[Column, Column]:  # noqa: A002 (as Column has it)
    """Return the columns of a median over cases and of its difference from the baseline."""
    return (
        Column(title, unit, f"{help}; median over cases", shown),
        Column(f"{title}, difference", unit, f"from {baseline}; median over cases, paired", shown),
    )


def compared_cells(values: FloatArray, place: int, *, lower_is_better: bool = True) -> tuple[Cell, Cell]:
    """Return the cells of `compared_columns` for the policy at ``place``; values are (cases, policies)."""
    difference = difference_cell(values, place, lower_is_better=lower_is_better) if place else Cell(None)
    return median_cell(values[:, place]), difference


# Cells. --------------------------------------------------------------------------------------------------------------


def mean_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `mean_of`; empty without a case."""
    return cell_of(mean_of(values), mark)


def median_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `median_of`; empty without a case."""
    return cell_of(median_of(values), mark)


def cell_of(estimate: Estimate, mark: str = "") -> Cell:
    """Return the cell of an estimate; empty without a case."""
    return Cell(estimate.value if estimate.cases else None, estimate.interval, mark)


def difference_cell(values: FloatArray, place: int, *, lower_is_better: bool = True) -> Cell:
    """Return the cell of `median_difference` with its verdict."""
    difference = median_difference(values, place)
    return cell_of(difference, mark_of(difference, lower_is_better=lower_is_better))
