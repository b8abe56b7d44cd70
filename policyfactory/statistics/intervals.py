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
from collections.abc import Callable
from typing import Literal, get_args

from policyfactory.core.errors import UsageError

__all__ = [
    "LEVEL",
    "MIN_CASES",
    "RESAMPLES",
    "STATISTICS",
    "Estimate",
    "Interval",
    "RowStatistic",
    "Statistic",
    "check_statistic",
]

Statistic = Literal["median", "mean", "ratio"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
# What a row is of: that, or of one case the mean over all its jobs, with the interval over its weeks.
RowStatistic = Literal[Statistic, "weeks"]

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


def check_statistic(name: str) -> Statistic:
    """Return ``name`` if it is a statistic.

    Raises
    ------
    UsageError
        If it is none.
    """
    for known in STATISTICS:
        if name == known:
            return known
    raise UsageError(f"there is no statistic {name!r}; choose one of {', '.join(STATISTICS)}")
