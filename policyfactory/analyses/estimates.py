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
from policyfactory.statistics.drawn import estimate_drawn, logarithms
from policyfactory.statistics.intervals import Estimate
from policyfactory.statistics.means import estimate_mean
from policyfactory.statistics.medians import estimate_median
from policyfactory.statistics.together import judged_together

__all__ = [
    "count_of",
    "marks_of",
    "mean_differences",
    "mean_of",
    "median_differences",
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


def mean_differences(values: FloatArray) -> list[Estimate]:
    """Return the mean over cases of (value minus the baseline's), paired by case; as `median_differences`."""
    return [mean_of(column) for column in (values - values[:, :1]).T]


def median_of(values: FloatArray) -> Estimate:
    """Return the median of the values that there are (NaN: a case has none), with its interval."""
    return estimate_median(values[np.isfinite(values)])


def median_differences(values: FloatArray) -> list[Estimate]:
    """Return the median over cases of (value minus the baseline's), paired by case, of each policy.

    Parameters
    ----------
    values : float64 array (cases, policies)
        NaN where a case has none; the baseline is the first column.
    """
    return [median_of(column) for column in (values - values[:, :1]).T]


def marks_of(
    differences: Sequence[Estimate], values: FloatArray, drawn: float | None, *, lower_is_better: bool | None = True
) -> list[str]:
    """Return the verdicts on the policies' differences in one number, judged together (`judged_together`).

    Parameters
    ----------
    differences : sequence of Estimate
        Of each policy; the first, the baseline's own, has no verdict, and nothing without an interval has one.
    values : float64 array (cases, policies)
        What they are differences of; at least 0.
    drawn : float or None
        The widening of cases that were drawn from one log (`LogView.drawn`): verdicts are then those of the log.
    lower_is_better : bool or None
        Which way is good; None: what differs is ``higher`` or ``lower``.
    """
    own = (differences if drawn is None else _of_draws(differences, values, drawn))[1:]
    alone = [verdict_of(one.interval, lower_is_better=lower_is_better) for one in own]
    called = judged_together(alone, [one.p for one in own])
    marks = {"differs": "higher", "too few cases": ""}
    return [
        "",
        *(
            "lower" if verdict == "differs" and one.value < 0 else marks.get(verdict, verdict)
            for one, (verdict, _) in zip(own, called, strict=True)
        ),
    ]


def _of_draws(differences: Sequence[Estimate], values: FloatArray, widening: float) -> list[Estimate]:
    """Return how far each policy is from the baseline over draws of a log, in logarithms (`estimate_drawn`)."""
    changes = logarithms(values, 0.0)
    changes = changes - changes[:, :1]
    return [
        plain if plain.interval is None else estimate_drawn(own[np.isfinite(own)], widening=widening)
        for plain, own in zip(differences, changes.T, strict=True)
    ]


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
