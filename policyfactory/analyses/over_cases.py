"""What the cases of a log say together: estimates, their cells, their verdicts and how they are told.

What is kept of a schedule is a few numbers. Shares and counts are averaged over the cases (shares add up to 100 then);
of what has heavy tails (waits, slowdowns and their ratios) the median over the cases is taken. Differences from the
baseline are paired by case. 95 % intervals where there are enough cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.common import scaled
from policyfactory.core.text import counted, number_text
from policyfactory.report.numbers import scale_for
from policyfactory.report.sections import Cell
from policyfactory.statistics.compare import verdict_of
from policyfactory.statistics.intervals import MIN_CASES, Estimate
from policyfactory.statistics.means import estimate_mean
from policyfactory.statistics.medians import estimate_median

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = [
    "against",
    "by_log",
    "cases_text",
    "cell_of",
    "difference_cell",
    "few_cases",
    "mark_of",
    "mean_cell",
    "mean_difference",
    "mean_of",
    "median_cell",
    "median_difference",
    "median_of",
    "named",
    "told_difference",
    "value_text",
]

FloatArray = NDArray[np.float64]


def by_log(evaluation: Evaluation, seen: list[list[Any]], log: str) -> list[list[Any]]:
    """Return what was kept of the cases of one log."""
    return [seen[row] for row in evaluation.rows(log).tolist()]


# Estimates. ----------------------------------------------------------------------------------------------------------


def mean_of(values: FloatArray) -> Estimate:
    """Return the mean of the values that there are (NaN: a case has none), with its interval."""
    return estimate_mean([values[np.isfinite(values)]])


def mean_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `mean_of`; empty without a case."""
    return cell_of(mean_of(values), mark)


def mean_difference(values: FloatArray, place: int) -> Estimate:
    """Return the mean over cases of (value minus the baseline's), paired by case; as `median_difference`."""
    return mean_of(values[:, place] - values[:, 0])


def median_of(values: FloatArray) -> Estimate:
    """Return the median of the values that there are (NaN: a case has none), with its interval."""
    return estimate_median(values[np.isfinite(values)])


def median_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `median_of`; empty without a case."""
    return cell_of(median_of(values), mark)


def median_difference(values: FloatArray, place: int) -> Estimate:
    """Return the median over cases of (value of the policy at ``place`` minus that of the baseline), paired by case.

    Parameters
    ----------
    values : float64 array (cases, policies)
        NaN where a case has none.
    place : int
        Which policy; the baseline is 0.
    """
    return median_of(values[:, place] - values[:, 0])


def cell_of(estimate: Estimate, mark: str = "") -> Cell:
    """Return the cell of an estimate; empty without a case."""
    return Cell(estimate.value if estimate.cases else None, estimate.interval, mark)


def difference_cell(values: FloatArray, place: int, *, lower_is_better: bool = True) -> Cell:
    """Return the cell of `median_difference` with its verdict."""
    difference = median_difference(values, place)
    return cell_of(difference, mark_of(difference, lower_is_better=lower_is_better))


def mark_of(difference: Estimate, *, lower_is_better: bool | None = True) -> str:
    """Return the verdict on a difference; empty without an interval, ``higher`` or ``lower`` without a direction."""
    if difference.interval is None:
        return ""
    verdict = verdict_of(difference.interval, lower_is_better=lower_is_better)
    if verdict == "differs":
        return "lower" if difference.interval.high < 0 else "higher"
    return verdict


# Words. --------------------------------------------------------------------------------------------------------------


def value_text(estimate: Estimate, unit: str = "1", *, signed: bool = False) -> str:
    """Return the value with its unit and interval: ``12.3 % [11.9, 12.8]``."""
    ends = [] if estimate.interval is None else [estimate.interval.low, estimate.interval.high]
    scale = scale_for(unit, [estimate.value, *ends])
    text = f"{scale.text(estimate.value, signed=signed)}{scale.suffix}"
    if not ends:
        return text
    low, high = (scale.text(end, signed=signed) for end in ends)
    return f"{text} [{low}, {high}]"


def told_difference(difference: Estimate, unit: str, words: tuple[str, str]) -> str:
    """Return a difference in words: ``7.71 h longer (95 % interval 4.86 to 15.5 h)``.

    Parameters
    ----------
    difference : Estimate
        With a value.
    unit : str
        Its unit.
    words : tuple of str
        What a positive and a negative difference are called.
    """
    value, interval = difference.value, difference.interval
    word = words[0] if value > 0 else words[1]
    if interval is None:
        return f"{scaled(abs(value), unit)} {word}"
    scale = scale_for(unit, [value, interval.low, interval.high])
    sign = -1.0 if value < 0 else 1.0
    ends = sorted((sign * interval.low, sign * interval.high))
    low, high = (number_text(end / scale.divisor) for end in ends)
    return (
        f"{number_text(abs(value) / scale.divisor)}{scale.suffix} {word} (95 % interval {low} to {high}{scale.suffix})"
    )


def cases_text(evaluation: Evaluation, log: str) -> str:
    """Return how many cases of which kind a log has: ``10 resamples``, ``the whole log``."""
    rows = evaluation.rows(log)
    kind = evaluation.cases[int(rows[0])].kind
    if kind == "log":
        return "the whole log"
    return counted(len(rows), kind)


def few_cases(evaluation: Evaluation, log: str) -> str:
    """Return why a log has no intervals."""
    return f"{cases_text(evaluation, log).capitalize()}: too few cases for intervals ({MIN_CASES} are needed)."


def against(evaluation: Evaluation) -> str:
    """Return what the marks of a table mean; nothing where there is nobody to compare with."""
    if len(evaluation.policies) == 1:
        return ""
    return f" Marks: against {evaluation.baseline}, paired by case."


def named(verdicts: Sequence[tuple[str, str]], word: str) -> list[str]:
    """Return the policies of ``verdicts`` (policy, mark) whose mark is ``word``."""
    return [policy for policy, mark in verdicts if mark == word]
