"""What the analyses of paper CCGrid'19 share: estimates over the cases of a log, and panels of one log each.

What is kept of a schedule is a few numbers. Shares and counts are averaged over the cases (shares add up to 100 then);
of what has heavy tails (waits, slowdowns and their ratios) the median over the cases is taken. Differences from the
baseline are paired by case. 95 % intervals where there are enough cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.evaluate.report.display import scale_for
from policyfactory.evaluate.report.sections import Cell
from policyfactory.evaluate.statistics.intervals import MIN_CASES, Estimate
from policyfactory.evaluate.statistics.means import estimate_mean
from policyfactory.evaluate.statistics.medians import estimate_median

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.evaluate.evaluation import Evaluation

__all__ = [
    "against",
    "by_log",
    "cases_text",
    "colour_of",
    "dash_of",
    "few_cases",
    "key_below",
    "mark_of",
    "mean_cell",
    "mean_difference",
    "mean_of",
    "middle_cell",
    "middle_difference",
    "middle_of",
    "named",
    "number_text",
    "panels_down",
    "short",
    "value_text",
]

FloatArray = NDArray[np.float64]

_BASELINE = COLOURS[1]
_OTHERS = (COLOURS[0], COLOURS[2], COLOURS[3], COLOURS[5], COLOURS[7], COLOURS[4])
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1, 1, 1)))


def by_log(evaluation: Evaluation, seen: list[list[Any]], log: str) -> list[list[Any]]:
    """Return what was kept of the cases of one log."""
    return [seen[row] for row in evaluation.rows(log).tolist()]


# Estimates. ----------------------------------------------------------------------------------------------------------


def mean_of(values: FloatArray) -> Estimate:
    """Return the mean of the values that there are (NaN: a case has none), with its interval."""
    return estimate_mean([values[np.isfinite(values)]])


def mean_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `mean_of`; empty without a case."""
    return _cell(mean_of(values), mark)


def mean_difference(values: FloatArray, place: int) -> Estimate:
    """Return the mean over cases of (value minus the baseline's), paired by case; as `middle_difference`."""
    return mean_of(values[:, place] - values[:, 0])


def middle_of(values: FloatArray) -> Estimate:
    """Return the median of the values that there are (NaN: a case has none), with its interval."""
    return estimate_median(values[np.isfinite(values)])


def middle_cell(values: FloatArray, mark: str = "") -> Cell:
    """Return the cell of `middle_of`; empty without a case."""
    return _cell(middle_of(values), mark)


def middle_difference(values: FloatArray, place: int) -> Estimate:
    """Return the median over cases of (value of the policy at ``place`` minus that of the baseline), paired by case.

    Parameters
    ----------
    values : float64 array (cases, policies)
        NaN where a case has none.
    place : int
        Which policy; the baseline is 0.
    """
    return middle_of(values[:, place] - values[:, 0])


def _cell(estimate: Estimate, mark: str) -> Cell:
    return Cell(estimate.value if estimate.cases else None, estimate.interval, mark)


def mark_of(difference: Estimate, *, lower_is_better: bool | None = None) -> str:
    """Return the verdict on a difference; empty without an interval, ``higher`` or ``lower`` without a direction."""
    if difference.interval is None:
        return ""
    if difference.interval.covers(0.0):
        return "no difference"
    below = difference.interval.high < 0
    if lower_is_better is None:
        return "lower" if below else "higher"
    return "better" if below == lower_is_better else "worse"


# Words. --------------------------------------------------------------------------------------------------------------


def number_text(value: float) -> str:
    """Return a number with three to four digits, without needless decimals."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.3g}"


def value_text(estimate: Estimate, unit: str = "1", *, signed: bool = False) -> str:
    """Return the value with its unit and interval: ``12.3 % [11.9, 12.8]``."""
    ends = [] if estimate.interval is None else [estimate.interval.low, estimate.interval.high]
    scale = scale_for(unit, [estimate.value, *ends])
    text = f"{scale.text(estimate.value, signed=signed)}{scale.suffix}"
    if not ends:
        return text
    low, high = (scale.text(end, signed=signed) for end in ends)
    return f"{text} [{low}, {high}]"


def cases_text(evaluation: Evaluation, log: str) -> str:
    """Return how many cases of which kind a log has: ``10 resamples``, ``the whole log``."""
    rows = evaluation.rows(log)
    kind = evaluation.cases[int(rows[0])].kind
    if kind == "log":
        return "the whole log"
    return f"{len(rows)} {kind}{'' if len(rows) == 1 else 's'}"


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


# Pictures. -----------------------------------------------------------------------------------------------------------


def panels_down(logs: int, height: float, *, share_x: bool = False) -> tuple[Figure, list[Any]]:
    """Return a figure of 7 inches with one panel of ``height`` inches a log, one below the other."""
    figure = new_figure(7.0, logs * height + 0.5)
    return figure, list(figure.subplots(logs, 1, squeeze=False, sharex=share_x).ravel())


def colour_of(place: int) -> str:
    """Return the colour of the contender at ``place``; the baseline (0) is orange in all pictures."""
    return _BASELINE if place == 0 else _OTHERS[(place - 1) % len(_OTHERS)]


def dash_of(place: int) -> Any:
    """Return the line style of the contender at ``place``: colours come again from the eighth on, dashed."""
    return _DASHES[0 if place == 0 else (place - 1) // len(_OTHERS) % len(_DASHES)]


def short(name: str, length: int = 28) -> str:
    """Return a name that fits beside a panel."""
    return name if len(name) <= length else f"{name[: length - 3]}..."


def key_below(figure: Figure, text: str) -> None:
    """Write how to read the picture below it."""
    figure.supxlabel(text, fontsize=8, x=0.99, ha="right")
