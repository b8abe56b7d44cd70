"""Mean and ratio of sums over cases with studentised bootstrap intervals.

The studentised bootstrap (P. Hall, The Bootstrap and Edgeworth Expansion, 1992, section 3.10) follows skewness. It is
too short for heavy tails, where Student's interval holds; so each end is the farther one of the two. The standard
deviation of a resample is taken as at least a tenth of the sample's: resamples of few distinct cases would otherwise
make intervals of any length. The standard error of a ratio is that of its linearisation, the residuals
a - (1 + ratio) b over the mean of b.

Places (ranks) are few distinct numbers between 1 and the number of policies: no tail is heavy, and resamples without
any spread are frequent, so there the plain bootstrap distribution of the mean takes the place of the studentised one
(with the tails of `medians`), again never narrower than Student's interval.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, RESAMPLES, Estimate, Interval, RowStatistic, Statistic
from policyfactory.statistics.medians import estimate_median

__all__ = [
    "LEAST_SPREAD",
    "ROUNDING",
    "difference_unit",
    "estimate_difference",
    "estimate_mean",
    "estimate_ratio",
    "estimate_value",
    "studentised",
]


_PURPOSE = 41  # of the random stream; see core.random
LEAST_SPREAD = 0.1  # of the sample's standard deviation, in a resample
_AT_ONCE = 2_000_000  # draws that are held at a time
ROUNDING = 1e-12  # a standard deviation below this part of the largest value is rounding


def estimate_mean(strata: Sequence[FloatArray], *, seed: int = 0, places: bool = False) -> Estimate:
    """Return the mean over strata of the mean of each, with its interval; one stratum is a plain mean.

    Cases are drawn within their stratum, and every stratum counts alike, however many cases it has.

    Parameters
    ----------
    strata : sequence of float64 array (n_s,)
        One finite value a case.
    seed : int
        Seed of the resampling.
    places : bool
        Whether the values are places or differences of places.
    """
    cases = sum(len(values) for values in strata)
    if not cases or any(len(values) == 0 for values in strata):
        return Estimate(math.nan, None, None, cases)
    value = float(np.mean([values.mean() for values in strata]))
    if any(len(values) < MIN_CASES for values in strata):
        return Estimate(value, None, None, cases)
    parts = [_resampled_mean(values, seed, stratum) for stratum, values in enumerate(strata)]
    share = 1 / len(strata)
    deviation = share * np.sum([part[0] for part in parts], axis=0)
    square = share**2 * np.sum([part[1] ** 2 for part in parts], axis=0)
    errors = np.array([part[2] for part in parts])
    error = share * math.sqrt(float((errors**2).sum()))
    # Welch and Satterthwaite: the degrees of freedom of a sum of variances.
    sizes = np.array([len(values) for values in strata])
    freedom = (errors**2).sum() ** 2 / (errors**4 / (sizes - 1)).sum() if error > 0 else 1.0
    size = float(freedom), cases
    if places and error > 0:
        return _percentile(value, error, deviation, size)
    return studentised(value, error, deviation, np.sqrt(square), size)


def estimate_ratio(policy: FloatArray, baseline: FloatArray, *, seed: int = 0) -> Estimate:
    """Return 100 (sum of the policy / sum of the baseline - 1), in %, with its interval.

    Equation 12 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering
    policies", IEEE TPDS 29(10), 2018. NaN if the baseline sums to 0; no interval if a value is negative.

    Parameters
    ----------
    policy, baseline : float64 array (n,)
        One value a case, in the same order; finite.
    seed : int
        Seed of the resampling.
    """
    n = len(policy)
    total = float(baseline.sum())
    if n == 0 or total == 0:
        return Estimate(math.nan, None, None, n)
    ratio = float(policy.sum()) / total
    value = 100 * (ratio - 1)
    if n < MIN_CASES or (baseline < 0).any():
        return Estimate(value, None, None, n)
    mean = total / n
    residual = policy - ratio * baseline
    moments = _moments(seed, 0, np.column_stack([residual, baseline, residual**2, residual * baseline, baseline**2]))
    drawn = np.where(moments[:, 1] > 0, moments[:, 1], np.nan)
    deviation = moments[:, 0] / drawn
    # The residuals of a resample are of its own ratio: residual - deviation * baseline; their mean is 0.
    square = moments[:, 2] - 2 * deviation * moments[:, 3] + deviation**2 * moments[:, 4]
    own = float(np.sqrt(np.mean(residual**2))) / mean
    if own <= ROUNDING * max(abs(ratio), 1.0):
        return Estimate(value, Interval(value, value), 1.0 if value == 0 else 2.0 ** (1 - n), n)
    spread = np.maximum(np.sqrt(np.maximum(square, 0.0)) / drawn, LEAST_SPREAD * own) / math.sqrt(n - 1)
    counted = np.isfinite(deviation)  # resamples of cases in which the baseline is 0 have no ratio
    error = own / math.sqrt(n - 1)
    return studentised(value, 100 * error, 100 * deviation[counted], 100 * spread[counted], (n - 1.0, n))


def _resampled_mean(values: FloatArray, seed: int, stratum: int) -> tuple[FloatArray, FloatArray, float]:
    """Return, of resamples: deviation of the mean, standard error; and the standard error of the sample."""
    n = len(values)
    centred = values - values.mean()
    own = float(np.sqrt(np.mean(centred**2)))
    if own <= ROUNDING * float(np.abs(values).max()):
        return np.zeros(RESAMPLES), np.zeros(RESAMPLES), 0.0
    moments = _moments(seed, stratum, np.column_stack([centred, centred**2]))
    spread = np.sqrt(np.maximum(moments[:, 1] - moments[:, 0] ** 2, 0.0))
    root = math.sqrt(n - 1)
    return moments[:, 0], np.maximum(spread, LEAST_SPREAD * own) / root, own / root


def studentised(
    value: float, error: float, deviation: FloatArray, errors: FloatArray, size: tuple[float, int]
) -> Estimate:
    """Return the wider of the studentised bootstrap's and Student's interval at each end.

    Parameters
    ----------
    value, error : float
        The statistic and its standard error.
    deviation, errors : float64 array (resamples,)
        Statistic minus ``value``, and standard error, of each resample.
    size : tuple of float and int
        Degrees of freedom, and cases.
    """
    from scipy import stats

    freedom, cases = size
    if error == 0:
        # All values are one: nothing to resample. What p can be, the sign test says.
        return Estimate(value, Interval(value, value), 1.0 if value == 0 else 2.0 ** (1 - cases), cases)
    drawn = deviation / errors
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    student = float(stats.t.ppf(1 - tail, freedom))
    interval = Interval(value - error * max(float(high), student), value + error * max(-float(low), student))
    observed = value / error
    beyond = np.count_nonzero(drawn >= observed) if observed > 0 else np.count_nonzero(drawn <= observed)
    by_draws = 2 * (beyond + 1) / (len(drawn) + 1)
    return Estimate(value, interval, min(1.0, max(by_draws, 2 * float(stats.t.sf(abs(observed), freedom)))), cases)


def _percentile(value: float, error: float, deviation: FloatArray, size: tuple[float, int]) -> Estimate:
    """Return the wider of the expanded percentile's and Student's interval at each end; p is Student's."""
    from scipy import stats

    freedom, cases = size
    student = float(stats.t.ppf((1 + LEVEL) / 2, freedom))
    tail = float(stats.norm.cdf(-math.sqrt((freedom + 1) / freedom) * student))
    low, high = np.quantile(deviation, [tail, 1 - tail])
    interval = Interval(value + min(float(low), -error * student), value + max(float(high), error * student))
    return Estimate(value, interval, 2 * float(stats.t.sf(abs(value) / error, freedom)), cases)


def _moments(seed: int, stratum: int, columns: FloatArray) -> FloatArray:
    """Return the means of each column over each resample: float64 array (resamples, columns)."""
    counts = _counts(seed, stratum, len(columns))
    means = np.empty((RESAMPLES, columns.shape[1]))
    block = max(1, _AT_ONCE // len(columns))
    for first in range(0, RESAMPLES, block):
        rows = slice(first, first + block)
        drawn = counts[rows].astype(np.float64)
        for at, column in enumerate(columns.T.copy()):
            # einsum, not BLAS: the same bytes for any number of threads. A column at a time is several times faster.
            means[rows, at] = np.einsum("rn,n->r", drawn, column)
    return means / len(columns)


@functools.lru_cache(maxsize=8)
def _counts(seed: int, stratum: int, n: int) -> NDArray[np.uint16]:
    """Return how often each of n cases is in each resample: uint16 array (resamples, n)."""
    random = generator(seed, _PURPOSE, n, stratum)
    counts = np.zeros((RESAMPLES, n), dtype=np.uint16)
    # Some resamples at a time, so that the draws take no more memory than the counts; the draws are the same.
    block = max(1, _AT_ONCE // n)
    for first in range(0, RESAMPLES, block):
        rows = counts[first : first + block]
        np.add.at(rows, (np.arange(len(rows))[:, None], random.integers(0, n, rows.shape)), 1)
    return counts


# Statistics by their names. -------------------------------------------------------------------------------------------


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


def difference_unit(statistic: RowStatistic, unit: str) -> str:
    """Return the unit of a difference of a metric in ``unit``: percentage points of a percentage, % of a ratio."""
    if statistic == "ratio":
        return "%"
    return "pp" if unit == "%" else unit
