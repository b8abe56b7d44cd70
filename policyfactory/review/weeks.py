"""Weeks of two times compared at like load: by pairs of weeks, and by a regression on the load.

A week in which more is submitted makes everybody wait longer under any order, so that weeks are comparable only where
their offered load is. Both ways use only weeks of loads that both times have. An interval is over weeks, drawn in
blocks that are longer than the queue remembers (`policyfactory.statistics.weeks`).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.units import WEEK
from policyfactory.simulate.metrics import job_values, memory_of, weeks_of
from policyfactory.simulate.schedule import Schedule
from policyfactory.statistics.intervals import MIN_CASES, Estimate, Interval
from policyfactory.statistics.weeks import block_weeks, estimate_weekly

__all__ = ["Weeks", "by_regression", "difference_of", "match_weeks", "of_matched", "weeks_of_schedule"]

_NEAR = 0.05  # offered load: weeks that are further apart are not alike
_RESAMPLES = 1999
_PURPOSE = 43  # of the random stream; see core.random


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Weeks:
    """The weeks of a schedule.

    Parameters
    ----------
    week : int64 array (n,)
        That of each job, from 0.
    load : float64 array (weeks,)
        Work submitted in the week over what the machine can do in it.
    jobs : float64 array (weeks,)
        Jobs submitted.
    sums : dict of str to float64 array (weeks,)
        Of ``wait`` (s) and ``bsld`` over these jobs.
    block : int or None
        Weeks in a block: twice as long as the queue remembers; None if that cannot be told.
    """

    week: NDArray[np.int64]
    load: FloatArray
    jobs: FloatArray
    sums: dict[str, FloatArray]
    block: int | None

    def mean(self, metric: str) -> FloatArray:
        """Return the mean of each week; NaN of a week without a job."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.sums[metric] / self.jobs)


def weeks_of_schedule(schedule: Schedule) -> Weeks:
    """Return the weeks of a recorded schedule of at least one job."""
    jobs = schedule.workload
    week = weeks_of(jobs.submit, jobs.ticks)
    count = int(week[-1]) + 1
    length = np.full(count, float(WEEK * jobs.ticks))
    length[-1] = max(float(jobs.submit[-1] - jobs.submit[0]) - WEEK * jobs.ticks * (count - 1), length[-1] / 2)
    work = np.bincount(week, jobs.run_time.astype(np.float64) * jobs.processors, count)
    sums = {
        metric: np.bincount(week, job_values(schedule, metric), count).astype(np.float64) for metric in ("wait", "bsld")
    }
    number = np.bincount(week, minlength=count).astype(np.float64)
    return Weeks(week, work / (jobs.machine * length), number, sums, block_weeks(memory_of(schedule)))


def match_weeks(before: Weeks, after: Weeks) -> list[tuple[int, int]]:
    """Return pairs of a week before and one after, nearest in load first, each week once; by the week after."""
    apart = np.abs(before.load[:, None] - after.load[None, :])
    apart[before.jobs == 0] = apart[:, after.jobs == 0] = np.inf
    pairs = []
    for place in np.argsort(apart, axis=None, kind="stable").tolist():
        first, second = divmod(place, apart.shape[1])
        if apart[first, second] > _NEAR:
            # The nearest that are left, or a week that has its pair.
            if not np.isfinite(apart[first, second]):
                continue
            break
        pairs.append((first, second))
        apart[first], apart[:, second] = np.inf, np.inf
    return sorted(pairs, key=lambda pair: pair[1])


def of_matched(before: Weeks, after: Weeks, pairs: list[tuple[int, int]], metric: str) -> Estimate:
    """Return the mean over the pairs of the difference, after minus before, with its interval."""
    if not pairs:
        return Estimate(math.nan, None, None, 0)
    first, second = np.array(pairs).T
    apart = after.mean(metric)[second] - before.mean(metric)[first]
    return estimate_weekly(apart, np.ones(len(apart)), _block(before, after))


def by_regression(before: Weeks, after: Weeks, metric: str) -> Estimate:
    """Return what being after adds to the mean of a week at equal load, by least squares over the weeks.

    mean = a + b load + c after, over the weeks whose load both times have; NaN where those do not determine c, as
    where all weeks have one load. The interval is Student's, its standard
    error that of a bootstrap over blocks of weeks of each time, with three degrees of freedom less than there are
    blocks.
    """
    from scipy.stats import t as student

    low = max(before.load.min(), after.load.min()) - _NEAR
    high = min(before.load.max(), after.load.max()) + _NEAR
    loads, means = [], []
    for weeks in (before, after):
        inside = (weeks.load >= low) & (weeks.load <= high) & (weeks.jobs > 0)
        loads.append(weeks.load[inside])
        means.append(weeks.mean(metric)[inside])
    block = _block(before, after)
    counts = [len(load) for load in loads]
    if min(counts) < 2:
        return Estimate(math.nan, None, None, sum(counts))
    value = _added(loads, means)
    if math.isnan(value) or block is None or min(counts) < MIN_CASES * block:
        return Estimate(value, None, None, min(counts), None if block is None else MIN_CASES * block)
    random = generator(0, _PURPOSE, *counts)
    drawn = np.empty(_RESAMPLES)
    for at in range(_RESAMPLES):
        rows = [
            ((random.integers(0, count, -(-count // block))[:, None] + np.arange(block)).ravel() % count)[:count]
            for count in counts
        ]
        drawn[at] = _added(
            [load[row] for load, row in zip(loads, rows, strict=True)],
            [mean[row] for mean, row in zip(means, rows, strict=True)],
        )
    freedom = sum(counts) / block - 3
    half = float(student.ppf(0.975, freedom)) * float(np.nanstd(drawn, ddof=1))
    return Estimate(value, Interval(value - half, value + half), None, sum(counts))


def difference_of(after: Estimate, before: Estimate) -> Estimate:
    """Return the difference of two independent estimates, its interval from theirs.

    Each end is as far from the difference as the root of the sum of squares of theirs (G. Y. Zou and A. Donner,
    "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008, section 2).
    """
    value = after.value - before.value
    cases = min(after.cases, before.cases)
    if after.interval is None or before.interval is None:
        lacking = [one.needed for one in (after, before) if one.interval is None]
        needed = None if None in lacking else max(one for one in lacking if one is not None)
        return Estimate(value, None, None, cases, needed)
    low = math.hypot(after.value - after.interval.low, before.interval.high - before.value)
    high = math.hypot(after.interval.high - after.value, before.value - before.interval.low)
    return Estimate(value, Interval(value - low, value + high), None, cases)


def _added(loads: list[FloatArray], means: list[FloatArray]) -> float:
    """Return c of the regression; NaN where the loads do not determine it."""
    load, mean = np.concatenate(loads), np.concatenate(means)
    after = np.repeat([0.0, 1.0], [len(loads[0]), len(loads[1])])
    columns = np.column_stack([np.ones_like(load), load, after])
    found, _, rank, _ = np.linalg.lstsq(columns, mean, rcond=None)
    return float(found[2]) if rank == 3 else math.nan


def _block(before: Weeks, after: Weeks) -> int | None:
    return None if before.block is None or after.block is None else max(before.block, after.block)
