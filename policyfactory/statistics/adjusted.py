"""Intervals for the best of many: as wide as the number of candidates asks for.

Where nothing differs, each of n verdicts at 95 % is wrong with 5 %, and of a thousand candidates fifty look better than
they are. Intervals at the level 0.95**(1/n) (Z. Sidak, "Rectangular confidence regions for the means of multivariate
normal distributions", JASA 62, 1967) all hold at once with 95 %. A bootstrap has too few resamples for such tails, so
each end is moved away from the estimate as far as Student's quantile moves.
"""

from __future__ import annotations

import math

from policyfactory.statistics.intervals import LEVEL, Interval

__all__ = ["adjusted", "level_of"]


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
