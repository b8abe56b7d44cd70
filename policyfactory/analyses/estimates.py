"""What the cases of a log say together: estimates over cases, and differences from the baseline paired by case.

What is kept of a schedule is a few numbers. Shares and counts are averaged over the cases (shares add up to 100 then);
of what has heavy tails (waits, slowdowns and their ratios) the median over the cases is taken. Differences from the
baseline are paired by case. 95 % intervals where there are enough cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.statistics.compare import verdict_of
from policyfactory.statistics.intervals import Estimate
from policyfactory.statistics.means import estimate_mean
from policyfactory.statistics.medians import estimate_median

__all__ = [
    "count_of",
    "mark_of",
    "mean_difference",
    "mean_of",
    "median_difference",
    "median_of",
    "policies_by_mark",
    "share_of",
]


def mean_of(values: FloatArray) -> Estimate:
    """Return the mean of the values that there are (NaN: a case has none), with its interval."""
    return estimate_mean([values[np.isfinite(values)]])


def count_of(values: FloatArray) -> Estimate:
    """Return `mean_of` of what is never below 0; its interval is not either."""
    return mean_of(values).within(0.0, math.inf)


def share_of(values: FloatArray) -> Estimate:
    """Return `mean_of` of shares in %; its interval lies between 0 and 100."""
    return mean_of(values).within(0.0, 100.0)


def mean_difference(values: FloatArray, place: int) -> Estimate:
    """Return the mean over cases of (value minus the baseline's), paired by case; as `median_difference`."""
    return mean_of(values[:, place] - values[:, 0])


def median_of(values: FloatArray) -> Estimate:
    """Return the median of the values that there are (NaN: a case has none), with its interval."""
    return estimate_median(values[np.isfinite(values)])


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


def mark_of(difference: Estimate, *, lower_is_better: bool | None = True) -> str:
    """Return the verdict on a difference; empty without an interval, ``higher`` or ``lower`` without a direction."""
    if difference.interval is None:
        return ""
    verdict = verdict_of(difference.interval, lower_is_better=lower_is_better)
    if verdict == "differs":
        return "lower" if difference.interval.high < 0 else "higher"
    return verdict


def policies_by_mark(policies: Sequence[str], mark: Callable[[int], str]) -> dict[str, list[str]]:
    """Return the policies but for the baseline by their verdicts.

    Parameters
    ----------
    policies : sequence of str
        The first is the baseline.
    mark : callable
        From the place of a policy to its verdict.
    """
    marked: dict[str, list[str]] = {}
    for place, policy in enumerate(policies[1:], 1):
        marked.setdefault(mark(place), []).append(policy)
    return marked
