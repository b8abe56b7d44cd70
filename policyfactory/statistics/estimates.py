"""A named statistic of one policy, and of the difference of two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.statistics.intervals import Estimate, Statistic
from policyfactory.statistics.means import estimate_mean, estimate_ratio
from policyfactory.statistics.medians import estimate_median

__all__ = ["difference_unit", "estimate_difference", "estimate_value"]

FloatArray = NDArray[np.float64]


def estimate_value(statistic: Statistic, values: FloatArray, *, seed: int = 0) -> Estimate:
    """Return the median of the values, or their mean for ``mean`` and ``ratio`` (a policy alone has no ratio)."""
    if statistic == "median":
        return estimate_median(values)
    return estimate_mean([values], seed=seed)


def estimate_difference(statistic: Statistic, policy: FloatArray, baseline: FloatArray, *, seed: int = 0) -> Estimate:
    """Return how far a policy is from the baseline, pairs of cases kept together.

    Parameters
    ----------
    statistic : {"median", "mean", "ratio"}
        Median or mean of (policy minus baseline), in the unit of the values; or sum of the policy over sum of the
        baseline minus 1, in %.
    policy, baseline : float64 array (n,)
        One value a case, in the same order; finite.
    seed : int
        Seed of the resampling; equal seeds and equal ``n`` draw the same cases.
    """
    if statistic == "ratio":
        return estimate_ratio(policy, baseline, seed=seed)
    return estimate_value(statistic, policy - baseline, seed=seed)


def difference_unit(statistic: Statistic, unit: str) -> str:
    """Return the unit of a difference of a metric in ``unit``: percentage points of a percentage, % of a ratio."""
    if statistic == "ratio":
        return "%"
    return "pp" if unit == "%" else unit
