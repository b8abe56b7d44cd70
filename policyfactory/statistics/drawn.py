"""Intervals from draws of a log: what other weeks and other users would give, not what more draws would.

Logs that are drawn from one log, and replicas of it, all have its jobs. Their mean gets as exact as one likes with more
of them, and says nothing of other jobs. But a draw deviates from its log as the log deviates from what it is a sample
of (B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979; of random halves
P. J. McCarthy, "Pseudo-replication: half samples", Review of the International Statistical Institute 37, 1969). So the
standard error is the standard deviation of single draws, never that of their mean; what the draws add by being few
stands on top. evaluate/studies/null_logs.py measures how often a verdict of such an interval is wrong.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, Estimate, Interval

__all__ = ["estimate_drawn", "estimate_halves", "estimate_level", "freedom_of", "logarithms"]

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
