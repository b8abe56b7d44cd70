"""A schedule by weeks of submission: what each adds to a mean over the jobs, and how long the queue remembers.

Weeks of one schedule depend on each other, for a queue that is long at the end of one is long at the start of the
next. How long that lasts is measured on the number of waiting jobs: its integrated autocorrelation time,
1 + 2 sum of rho(k), the sum cut at the first lag that is several times as long (A. Sokal, "Monte Carlo methods in
statistical mechanics", 1997, section 3). Two observations that far apart tell about as much as two independent ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import HOUR, WEEK
from policyfactory.simulate.metrics import METRICS, Ran

__all__ = ["LEAST_WEEKS", "WeeklySums", "correlation_time", "memory_of", "weekly_sums", "weeks_in", "weeks_of"]

LEAST_WEEKS = 2
_WINDOW = 5  # times the autocorrelation time: where its sum is cut


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WeeklySums:
    """What each week of a schedule adds to the metrics that are means over the jobs.

    Parameters
    ----------
    jobs : int64 array (weeks,)
        Jobs submitted in the week.
    values, weights : float64 array (weeks, metrics)
        Sums over them of weight times value, and of the weights: the metric is the sum of the one over that of the
        other. NaN for a metric that is no mean over the jobs.
    memory_s : float
        How long the queue remembers, in seconds; infinite where the schedule is too short to tell.
    """

    jobs: NDArray[np.int64]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    memory_s: float


def weeks_of(submit: NDArray[np.int64], ticks: int) -> NDArray[np.int64]:
    """Return the week in which each job was submitted, from 0.

    Parameters
    ----------
    submit : int64 array (n,), ticks
        When each job was submitted, ascending; weeks count from the first. Jobs of a last week that is not half as
        long belong to the week before.
    ticks : int
        Ticks in a second.
    """
    since = submit - submit[0]
    weeks: NDArray[np.int64] = since // (WEEK * ticks)
    last = int(weeks[-1])
    if last and 2 * (since[-1] - last * WEEK * ticks) < WEEK * ticks:
        weeks = np.minimum(weeks, last - 1)
    return weeks


def weeks_in(span: int, ticks: int) -> int:
    """Return how many weeks jobs have that are submitted within so many ticks."""
    return int(weeks_of(np.array([0, span]), ticks)[-1]) + 1


def weekly_sums(schedule: Ran, metrics: Sequence[str]) -> WeeklySums | None:
    """Return the sums of each week; None of a schedule that lasts less than two.

    Parameters
    ----------
    schedule : Schedule
        At least one job, in the order of submission.
    metrics : sequence of str
        Names in `METRICS`.
    """
    jobs = schedule.workload
    week = weeks_of(jobs.submit, jobs.ticks)
    count = int(week[-1]) + 1
    if count < LEAST_WEEKS:
        return None
    values = np.full((count, len(metrics)), np.nan)
    weights = values.copy()
    for at, name in enumerate(metrics):
        of_each = METRICS[name].of_each
        if of_each is not None:
            value, weight = of_each(schedule)
            values[:, at] = np.bincount(week, weight * value, count)
            weights[:, at] = np.bincount(week, weight, count)
    return WeeklySums(np.bincount(week, minlength=count), values, weights, memory_of(schedule))


def memory_of(schedule: Ran) -> float:
    """Return how long the queue remembers, in seconds: the autocorrelation time of the number of waiting jobs.

    Parameters
    ----------
    schedule : Schedule
        At least one job.
    """
    jobs = schedule.workload
    hours = np.arange(jobs.submit[0], jobs.submit[-1] + 1, HOUR * jobs.ticks)
    waiting = np.searchsorted(jobs.submit, hours, "right") - np.searchsorted(np.sort(schedule.start), hours, "right")
    return correlation_time(waiting.astype(np.float64)) * HOUR


def correlation_time(series: NDArray[np.float64]) -> float:
    """Return the integrated autocorrelation time of a series, in its steps: 1 of white noise, 0 of a constant.

    Infinite where the series is shorter than ten times that: then it tells nothing of itself.

    Parameters
    ----------
    series : float64 array (n,)
        Evenly spaced.
    """
    count = len(series)
    if count < 2 or (series == series[0]).all():
        return 0.0
    centred = series - series.mean()
    spectrum = np.fft.rfft(centred, 2 * count)
    products = np.fft.irfft(np.abs(spectrum) ** 2)[:count]
    times = 2 * np.cumsum(products / products[0]) - 1
    cut = np.flatnonzero(np.arange(count) >= _WINDOW * times)
    # A series that swings back and forth has a sum below 0.
    time = max(float(times[cut[0]]), 0.0) if len(cut) else float("inf")
    return time if 2 * _WINDOW * time <= count else float("inf")
