"""The median over cases and its bootstrap interval, without drawing: the distribution is known exactly.

The middle of n draws from n sorted values is a matter of binomial probabilities (B. Efron, "Bootstrap methods: another
look at the jackknife", Annals of Statistics 7(1), 1979, section 3). The plain percentile interval is too narrow for
few cases, so its tail probability is made smaller, as T. Hesterberg proposes ("What teachers should know about the
bootstrap", The American Statistician 69(4), 2015, section 5.2, "expanded percentile":
``alpha' / 2 = Phi(-sqrt(n / (n - 1)) t_{1 - alpha / 2, n - 1})``).
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import EvaluationError
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, Estimate, Interval

__all__ = ["estimate_median"]


_EXACT_PAIRS = 400  # up to so many cases the two middle values are taken together; beyond, the lower one alone


def _interval(distribution: tuple[FloatArray, FloatArray, FloatArray], tail: float) -> Interval:
    support, below, above = distribution
    low = support[int(np.argmax(below >= tail))]
    high = support[len(support) - 1 - int(np.argmax(above[::-1] >= tail))]
    return Interval(float(low), float(high))


def estimate_median(values: FloatArray) -> Estimate:
    """Return the median of independent values with its interval (expanded percentile).

    Parameters
    ----------
    values : float64 array (n,)
        One value a case; with fewer than ``MIN_CASES`` of them there is no interval.

    Raises
    ------
    EvaluationError
        If there is to be an interval and a value is not finite.
    """
    n = len(values)
    if n < MIN_CASES:
        return Estimate(float(np.median(values)) if n else math.nan, None, None, n)
    distribution = _median_distribution(values)
    interval = _interval(distribution, _expanded_tail(n))
    return Estimate(float(np.median(values)), interval, _p_of_median(distribution, n), n)


@functools.lru_cache(maxsize=64)
def _expanded_tail(n: int) -> float:
    from scipy import special

    return float(special.ndtr(-math.sqrt(n / (n - 1)) * special.stdtrit(n - 1, (1 + LEVEL) / 2)))


def _p_of_median(distribution: tuple[FloatArray, FloatArray, FloatArray], n: int) -> float:
    """Return the error probability whose expanded tail is the smaller bootstrap probability beside 0."""
    # The functions behind scipy.stats' distributions, without their checks: a report has thousands of medians.
    from scipy import special

    support, below, above = distribution
    down = float(below[support <= 0][-1]) if (support <= 0).any() else 0.0
    up = float(above[support >= 0][0]) if (support >= 0).any() else 0.0
    mass = min(down, up)
    t = -float(special.ndtri(mass)) * math.sqrt((n - 1) / n) if mass > 0 else math.inf
    return min(1.0, max(2 * float(special.stdtr(n - 1, -t)), 2.0 ** (1 - n)))


def _median_distribution(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the values that the median of n draws can have, sorted, and the probabilities to be <= and >= each."""
    n = len(values)
    finite = int(np.isfinite(values).sum())
    if finite < n:
        raise EvaluationError(f"{n - finite} of {n} values are not finite; leave those cases out")
    ordered = np.sort(values)
    first, second, weight = _middle_pair(n)
    support = (ordered[first] + ordered[second]) / 2
    order = np.argsort(support, kind="stable")
    support, weight = support[order], weight[order]
    # Equal values are one point.
    starts = np.flatnonzero(np.append(True, np.diff(support) > 0))
    mass = np.add.reduceat(weight, starts)
    return support[starts], np.cumsum(mass), np.cumsum(mass[::-1])[::-1]


@functools.lru_cache(maxsize=64)
def _middle_pair(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Return the places of the two middle ones of n draws among n sorted values, and the probability of each pair.

    Of k = n / 2 draws at or below place i and the others at or above place j: with F(i) = i / n, the pair i < j has
    C(n, k) [F(i)^k - F(i - 1)^k] [(1 - F(j - 1))^(n - k) - (1 - F(j))^(n - k)]. For odd n the two are one.
    """
    from scipy import stats

    middle = (n + 1) // 2
    shares = np.arange(n + 1) / n
    single = np.diff(stats.binom.sf(middle - 1, n, shares))  # the middle-th smallest draw is place i
    places = np.arange(n)
    if n % 2 or n > _EXACT_PAIRS:
        return places, places, single
    k = n // 2
    lower = np.diff(shares**k)
    upper = -np.diff((1 - shares) ** (n - k))
    joint = np.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) * np.triu(
        np.outer(lower, upper), 1
    )
    joint[places, places] = np.maximum(single - joint.sum(axis=1), 0.0)
    first, second = np.triu_indices(n)
    return first, second, joint[first, second]
