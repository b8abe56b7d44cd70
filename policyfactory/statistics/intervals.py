"""Intervals over cases: what they are made of, and the words for it.

The case (a window, a resampled log) is the unit of resampling, never the job: jobs of one case share its queue and are
not independent. What is resampled is one number a case (a value, a paired difference, a rank), so policies are
compared on equal draws of cases. `medians` and `means` compute the intervals; docs/statistics.md has their measured
coverage.

Below 6 cases no interval of a median can have 95 %: even the whole range of 5 values misses it in 2 * 0.5**5 = 6 % of
the experiments; none is given, for any statistic.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError
from policyfactory.core.options import FloatArray
from policyfactory.core.random import generator

Statistic = Literal["median", "mean", "ratio"]
# What a row is of: that, or of one case the mean over all its jobs, with the interval over its weeks.
RowStatistic = Literal[Statistic, "weeks"]

# Of all intervals; their words, "95 %", and the fewest cases go with it.
LEVEL = 0.95
MIN_CASES = 6
RESAMPLES = 9_999


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Parameters
    ----------
    low, high : float
        Its ends, in the unit of the values.
    """

    low: float
    high: float

    def covers(self, value: float) -> bool:
        """Return whether ``value`` lies in it, the ends included."""
        return self.low <= value <= self.high

    @property
    def half_width(self) -> float:
        """Half its length."""
        return (self.high - self.low) / 2

    def towards_zero(self, value: float) -> float:
        """Return how far its end on the side of 0 is from a value in it."""
        return value - self.low if value > 0 else self.high - value


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic over cases.

    Parameters
    ----------
    value : float
        The statistic; NaN without a case.
    interval : Interval or None
        95 % interval; None with fewer than ``MIN_CASES`` cases.
    p : float or None
        The smallest error probability at which the interval would not cover 0 (a two-sided p-value); None without an
        interval. Of a median it is at least that of the sign test, 2 * 0.5**n.
    cases : int
        Cases with a value.
    needed : int or None
        Cases that an interval would need, where there are too few and it is known.
    """

    value: float
    interval: Interval | None
    p: float | None
    cases: int
    needed: int | None = None

    def mapped(self, scale: Callable[[float], float]) -> Estimate:
        """Return the same on another scale, an ascending function of this one."""
        interval = self.interval and Interval(scale(self.interval.low), scale(self.interval.high))
        return dataclasses.replace(self, value=scale(self.value), interval=interval)

    def within(self, lowest: float, highest: float) -> Estimate:
        """Return the same with an interval that ends where the quantity does.

        An interval never loses coverage by what the quantity cannot be. The value itself stays in it: a record may have
        more jobs at once than its machine has processors for.

        Parameters
        ----------
        lowest, highest : float
            Between which values the quantity lies, in the unit of the value.
        """
        if self.interval is None:
            return self
        low = max(self.interval.low, min(lowest, self.value))
        high = min(self.interval.high, max(highest, self.value))
        return dataclasses.replace(self, interval=Interval(low, high))


# The median over cases and its bootstrap interval ---------------------------------------------------------------------

# The median over cases and its bootstrap interval, without drawing: the distribution is known exactly.
#
# The middle of n draws from n sorted values is a matter of binomial probabilities (B. Efron, "Bootstrap methods:
# another look at the jackknife", Annals of Statistics 7(1), 1979, section 3). The plain percentile interval is too
# narrow for few cases, so its tail probability is made smaller, as T. Hesterberg proposes ("What teachers should know
# about the bootstrap", The American Statistician 69(4), 2015, section 5.2, "expanded percentile": ``alpha' / 2 =
# Phi(-sqrt(n / (n - 1)) t_{1 - alpha / 2, n - 1})``).


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


# Mean and ratio of sums over cases with studentised bootstrap intervals -----------------------------------------------

# The studentised bootstrap (P. Hall, The Bootstrap and Edgeworth Expansion, 1992, section 3.10) follows skewness. It is
# too short for heavy tails, where Student's interval holds; so each end is the farther one of the two. The standard
# deviation of a resample is taken as at least a tenth of the sample's: resamples of few distinct cases would otherwise
# make intervals of any length. The standard error of a ratio is that of its linearisation, the residuals
# a - (1 + ratio) b over the mean of b.
#
# Places (ranks) are few distinct numbers between 1 and the number of policies: no tail is heavy, and resamples without
# any spread are frequent, so there the plain bootstrap distribution of the mean takes the place of the studentised one
# (with the tails of `medians`), again never narrower than Student's interval.


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
    largest = float(errors.max())
    if error > 0 and not 1e-70 < largest < 1e70:
        errors = errors / largest  # whose fourth powers are numbers
    freedom = (errors**2).sum() ** 2 / (errors**4 / (sizes - 1)).sum() if error > 0 else 1.0
    size = float(freedom), cases
    if places and error > 0:
        return _percentile(value, error, deviation, size)
    return studentised(value, error, deviation, np.sqrt(square), size)


def estimate_ratio(policy: FloatArray, baseline: FloatArray, *, seed: int = 0) -> Estimate:
    """Return 100 (sum of the policy / sum of the baseline - 1), in %, with its interval.

    Equation 12 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering
    policies", IEEE TPDS 29(10), 2018. NaN if the baseline sums to 0; no interval if a value is negative.

    Where a few cases have most of the sum, the interval of a ratio is too short. Two sums are equal where their
    difference is 0: unless the mean difference is told from 0, neither is the ratio.

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
    residual_share = float(np.sqrt(np.mean(residual**2))) / mean
    if residual_share <= ROUNDING * max(abs(ratio), 1.0):
        return Estimate(value, Interval(value, value), 1.0 if value == 0 else 2.0 ** (1 - n), n)
    spread = np.maximum(np.sqrt(np.maximum(square, 0.0)) / drawn, LEAST_SPREAD * residual_share) / math.sqrt(n - 1)
    counted = np.isfinite(deviation)  # resamples of cases in which the baseline is 0 have no ratio
    error = residual_share / math.sqrt(n - 1)
    found = studentised(value, 100 * error, 100 * deviation[counted], 100 * spread[counted], (n - 1.0, n))
    if not (policy < 0).any():
        found = found.within(-100.0, math.inf)
    apart = estimate_mean([policy - baseline], seed=seed)
    interval = found.interval
    if interval is not None and apart.interval is not None and apart.interval.covers(0.0):
        interval = Interval(min(interval.low, 0.0), max(interval.high, 0.0))
    return dataclasses.replace(found, interval=interval, p=max(found.p or 0.0, apart.p or 0.0))


def _resampled_mean(values: FloatArray, seed: int, stratum: int) -> tuple[FloatArray, FloatArray, float]:
    """Return, of resamples: deviation of the mean, standard error; and the standard error of the sample."""
    n = len(values)
    centred = values - values.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    if deviation <= ROUNDING * float(np.abs(values).max()):
        return np.zeros(RESAMPLES), np.zeros(RESAMPLES), 0.0
    moments = _moments(seed, stratum, np.column_stack([centred, centred**2]))
    spread = np.sqrt(np.maximum(moments[:, 1] - moments[:, 0] ** 2, 0.0))
    root = math.sqrt(n - 1)
    return moments[:, 0], np.maximum(spread, LEAST_SPREAD * deviation) / root, deviation / root


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
        for number, column in enumerate(columns.T.copy()):
            # einsum, not BLAS: the same bytes for any number of threads. A column at a time is several times faster.
            means[rows, number] = np.einsum("rn,n->r", drawn, column)
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


# Intervals for the best of many: as wide as the number of candidates asks for -----------------------------------------

# Where nothing differs, each of n verdicts at 95 % is wrong with 5 %, and of a thousand candidates fifty look better
# than they are. Intervals at the level 0.95**(1/n) (Z. Sidak, "Rectangular confidence regions for the means of
# multivariate normal distributions", JASA 62, 1967) all hold at once with 95 %. A bootstrap has too few resamples for
# such tails, so each end is moved away from the estimate as far as Student's quantile moves.


def level_of(trials: int) -> float:
    """Return the level at which so many intervals all hold at once with 95 %."""
    return math.exp(math.log(LEVEL) / max(trials, 1))


def adjusted(value: float, interval: Interval, freedom: float, trials: int) -> Interval:
    """Return an interval that holds for the best of many.

    Parameters
    ----------
    value : float
        The estimate.
    interval : Interval
        Its 95 % interval.
    freedom : float
        Degrees of freedom of its standard error.
    trials : int
        Candidates that were tried.
    """
    from scipy import stats

    beyond = -math.expm1(math.log(LEVEL) / max(trials, 1)) / 2
    factor = float(stats.t.isf(beyond, freedom) / stats.t.isf((1 - LEVEL) / 2, freedom))
    return Interval(value - factor * (value - interval.low), value + factor * (interval.high - value))


# Intervals from draws of a log ----------------------------------------------------------------------------------------

# What other weeks and other users would give, not what more draws would.
#
# Logs that are drawn from one log, and replicas of it, all have its jobs. Their mean gets as exact as one likes with
# more of them, and says nothing of other jobs. But a draw deviates from its log as the log deviates from what it is a
# sample of (B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979; of random
# halves P. J. McCarthy, "Pseudo-replication: half samples", Review of the International Statistical Institute 37,
# 1969). So the standard error is the standard deviation of single draws, never that of their mean; what the draws add
# by being few stands on top. evaluate/studies/null_logs.py measures how often a verdict of such an interval is wrong.


_FREEDOM = 4


def estimate_drawn(values: FloatArray, *, widening: float = 1.0) -> Estimate:
    """Return the mean of a statistic over draws of a log, with an interval of the variation of single draws.

    Parameters
    ----------
    values : float64 array (n,)
        The statistic on each draw, which deviates from the log as the log does from the truth.
    widening : float
        By how much more the log deviates than a draw.

    Returns
    -------
    Estimate
        Without an interval where there are fewer than ``MIN_CASES`` draws, or a value is not finite.
    """
    count = len(values)
    value = float(values.mean()) if count else math.nan
    if count < MIN_CASES or not np.isfinite(values).all():
        return Estimate(value, None, None, count)
    spread = float(values.std(ddof=1)) * math.sqrt(1 + 1 / count) * widening
    return _student(value, spread, count - 1, count)


def estimate_halves(values: FloatArray, halves: FloatArray) -> Estimate:
    """Return the mean of a statistic over replicas of a log, with an interval of the variation of random halves of it.

    What one half deviates by in one direction, the other does in the other: half of the difference between the two of a
    pair varies as the log does, and somewhat more, since a half is simulated once.

    Parameters
    ----------
    values : float64 array (n,)
        The statistic on each replica.
    halves : float64 array (2 k,)
        The statistic on half replicas, the two of a pair one after the other.

    Returns
    -------
    Estimate
        Without an interval where there are fewer than ``MIN_CASES`` halves, or a value is not finite.
    """
    value = float(values.mean()) if len(values) else math.nan
    if len(halves) < MIN_CASES or not (np.isfinite(values).all() and np.isfinite(halves).all()):
        return Estimate(value, None, None, len(halves))
    apart = (halves[::2] - halves[1::2]) / 2
    spread = math.sqrt(float(np.mean(apart**2)) * (1 + 1 / len(apart)))
    if spread == 0:
        # Halves that are alike say nothing of how the log varies, only what they are themselves.
        ends = Interval(min(value, float(halves.min())), max(value, float(halves.max())))
        return Estimate(value, ends, 1.0 if ends.covers(0.0) else 2.0 ** (1 - len(halves)), len(halves))
    return _student(value, spread, freedom_of(len(halves)), len(halves))


def freedom_of(halves: int) -> int:
    """Return the degrees of freedom that so many half replicas give: no more than four, as few users have most jobs."""
    return min(halves // 2, _FREEDOM)


def _student(value: float, spread: float, freedom: int, count: int) -> Estimate:
    from scipy import stats

    if spread == 0:
        return Estimate(value, Interval(value, value), 1.0 if value == 0 else 2.0 ** (1 - count), count)
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * spread
    p = 2 * float(stats.t.sf(abs(value) / spread, freedom))
    return Estimate(value, Interval(value - half, value + half), p, count)


def logarithms(values: FloatArray, least: float) -> FloatArray:
    """Return logarithms of a metric; of one that may be 0 (``least``) those of the value and one more."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: FloatArray = np.log(values + (least <= 0))
    return logs


def estimate_level(estimate: Estimate, values: FloatArray, least: float, widening: float) -> Estimate:
    """Return the estimate of a metric's value with the interval of draws of a log (`estimate_drawn`, in logarithms).

    Parameters
    ----------
    estimate : Estimate
        Of the values.
    values : float64 array (n,)
        The metric on each draw.
    least : float
        What the metric is at least.
    widening : float
        As of `estimate_drawn`.
    """
    interval = estimate_drawn(logarithms(values, least), widening=widening).interval
    if interval is not None:
        low, high = (math.exp(min(end, 700.0)) - (least <= 0) for end in (interval.low, interval.high))
        interval = Interval(min(low, estimate.value), max(high, estimate.value))
    return dataclasses.replace(estimate, interval=interval)


# What verdicts are called when they are judged together ---------------------------------------------------------------

# S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979: the
# probability that any of the words is wrong is at most 5 %.


Verdict = Literal["better", "worse", "differs", "no difference", "too few cases"]


def judged_together(
    verdicts: Sequence[Verdict], p_values: Sequence[float | None]
) -> list[tuple[Verdict, float | None]]:
    """Return what differences are called when they are judged together, and their p-values after Holm.

    Parameters
    ----------
    verdicts : sequence of str
        What each is called alone (`verdict_of`).
    p_values : sequence of float or None
        The p-value of each; one without an interval has none, and does not count.
    """
    adjusted = iter(holm(p for p in p_values if p is not None))
    results: list[tuple[Verdict, float | None]] = []
    for verdict, p in zip(verdicts, p_values, strict=True):
        p_adjusted = None if p is None else next(adjusted)
        stands = verdict == "too few cases" or (p_adjusted is not None and p_adjusted < 1 - LEVEL)
        results.append((verdict if stands else "no difference", p_adjusted))
    return results


def holm(p_values: Iterable[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's procedure, in the order in which they were given."""
    # Not statsmodels' multipletests, which it equals: that collects garbage at each call, a tenth of a second here.
    given = np.array(list(p_values), dtype=np.float64)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return [float(p) for p in adjusted]
