"""Small parts of the tables of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from policyfactory.report.sections import Cell, Column
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.means import difference_unit

if TYPE_CHECKING:
    from policyfactory.statistics.compare import Comparison

__all__ = ["OF_PAIRS", "difference_cell", "difference_column"]

OF_PAIRS = {
    "median": "median of the paired differences",
    "mean": "mean of the paired differences",
    "ratio": "sum over all cases against the baseline's sum, minus 1",
    "weeks": "difference of the means over all jobs",
}


def difference_column(metric: str, row: Comparison, units: Mapping[str, str], title: str = "") -> Column:
    """Return the column of the differences in one metric.

    Parameters
    ----------
    metric : str
        The metric.
    row : Comparison
        One of its comparisons.
    units : mapping of str to str
        The unit in which each metric is shown.
    title : str
        Its heading, if not the metric.
    """
    unit = difference_unit(row.statistic, METRICS[metric].unit)
    named = {"pp": "percentage points"}.get(unit, unit)
    shown = units[metric] if unit == "s" else ""
    label = "" if title else METRICS[metric].title
    return Column(title or metric, named, OF_PAIRS[row.statistic], shown, label=label)


def difference_cell(row: Comparison) -> Cell:
    """Return the difference with its interval, and the verdict where there is one."""
    return Cell(row.difference, row.interval, row.verdict if row.interval else "")
