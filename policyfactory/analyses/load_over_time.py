"""Work and queue over time, as exact integrals over bins: nothing is sampled, nothing is sorted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.units import DAY, HOUR, MINUTE, WEEK
from policyfactory.engine.binned import binned_integral

if TYPE_CHECKING:
    from policyfactory.simulate.schedule import Schedule

__all__ = ["MOST_BINS", "LoadCourse", "LoadSums", "bin_width", "coarser", "course_of", "load_sums"]


# Bins that people count in; the last ones are for logs of many years.
_WIDTHS = (
    1, 10, MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY,
    WEEK, 2 * WEEK, 4 * WEEK, 8 * WEEK, 16 * WEEK, 52 * WEEK,
)  # fmt: skip
MOST_BINS = 20_000  # of a schedule that ends so much later than the last submission the rest is not looked at


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LoadCourse:
    """One schedule over time, from the first submission on; every number is the mean over its bin.

    Parameters
    ----------
    width : float, s
        Of a bin.
    utilisation : float64 array (bins,), %
        Processors in use, in % of the machine.
    waiting : float64 array (bins,), jobs
        Jobs that wait.
    backlog : float64 array (bins,)
        Processors requested by the jobs that wait, in machines.
    offered : float64 array (bins,), %
        Work of the jobs submitted in the bin, in % of what the machine can do in it.
    """

    width: float
    utilisation: FloatArray
    waiting: FloatArray
    backlog: FloatArray
    offered: FloatArray


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LoadSums:
    """The load of one schedule, from the first submission to the last; NaN where all jobs come at one instant.

    Parameters
    ----------
    offered, utilisation : float, %
        Work submitted, and done, in % of what the machine could do in that time.
    waiting : float, jobs
        Time-weighted mean of the jobs that wait.
    backlog : float
        Time-weighted mean of the processors requested by waiting jobs, in machines.
    drain : float, s
        From the last submission to the last end.
    weeks : float64 array (weeks,), %
        Utilisation of each week after the first submission of which at least six days lie before the last (a window of
        a week has its last submission before its end).
    """

    offered: float
    utilisation: float
    waiting: float
    backlog: float
    drain: float
    weeks: FloatArray


def bin_width(span: float, bins: int) -> int:
    """Return the shortest width in seconds that people count in with which ``span`` has at most ``bins`` bins.

    Parameters
    ----------
    span : float, s
        What is divided.
    bins : int
        At least 1.
    """
    fitting = [width for width in _WIDTHS if width * bins >= span]
    return fitting[0] if fitting else _WIDTHS[-1] * int(np.ceil(span / (_WIDTHS[-1] * bins)))


def course_of(schedule: Schedule, bins: int) -> LoadCourse:
    """Return the course of a schedule of at least one job.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    bins : int
        At most so many from the first to the last submission; the width follows from the jobs alone, so
        that it is the same under every policy.
    """
    jobs = schedule.workload
    origin = int(jobs.submit[0])
    width = bin_width((int(jobs.submit[-1]) - origin + 1) / jobs.ticks, bins) * jobs.ticks
    count = min((int(schedule.end.max()) - origin) // width + 1, MOST_BINS)
    grid = (origin, width, count)
    ones = np.ones(len(jobs), dtype=np.int64)
    capacity = float(width) * jobs.machine
    at = np.minimum((jobs.submit - origin) // width, count - 1)
    work = (schedule.end - schedule.start).astype(np.float64) * jobs.processors
    submitted: FloatArray = np.bincount(at, work, count).astype(np.float64)
    return LoadCourse(
        width / jobs.ticks,
        100.0 * binned_integral(schedule.start, schedule.end, jobs.processors, *grid) / capacity,
        binned_integral(jobs.submit, schedule.start, ones, *grid) / width,
        binned_integral(jobs.submit, schedule.start, jobs.processors, *grid) / capacity,
        100.0 * submitted / capacity,
    )


def coarser(courses: Sequence[LoadCourse], most: int) -> list[LoadCourse]:
    """Return courses of one width in at most so many bins, which are as wide for all: as they are, or wider ones.

    Parameters
    ----------
    courses : sequence of LoadCourse
        Of one case, by policy.
    most : int
        At least 1.
    """
    longest = max((len(one.waiting) for one in courses), default=0)
    if longest <= most:
        return list(courses)
    width = courses[0].width
    wide = bin_width(width * longest, most)
    together = int(wide // width) if wide % width == 0 else -(-longest // most)
    starts = [np.arange(0, len(one.waiting), together) for one in courses]
    return [
        LoadCourse(
            width * together,
            *(
                np.add.reduceat(values, at) / together
                for values in (one.utilisation, one.waiting, one.backlog, one.offered)
            ),
        )
        for one, at in zip(courses, starts, strict=True)
    ]


def load_sums(schedule: Schedule) -> LoadSums:
    """Return the load of a schedule of at least one job.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    """
    jobs = schedule.workload
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    span = last - first
    drain = (int(schedule.end.max()) - last) / jobs.ticks
    if span == 0:
        return LoadSums(math.nan, math.nan, math.nan, math.nan, drain, np.empty(0))
    ones = np.ones(len(jobs), dtype=np.int64)
    grid, capacity = (first, span, 1), float(span) * jobs.machine
    work = (schedule.end - schedule.start).astype(np.float64) * jobs.processors
    week = WEEK * jobs.ticks
    weeks = np.empty(0)
    count = (span + DAY * jobs.ticks) // week
    if count:
        done = binned_integral(schedule.start, schedule.end, jobs.processors, first, week, count)
        weeks = 100.0 * done / (float(week) * jobs.machine)
    return LoadSums(
        100.0 * float(work.sum()) / capacity,
        100.0 * float(binned_integral(schedule.start, schedule.end, jobs.processors, *grid)[0]) / capacity,
        float(binned_integral(jobs.submit, schedule.start, ones, *grid)[0]) / span,
        float(binned_integral(jobs.submit, schedule.start, jobs.processors, *grid)[0]) / capacity,
        drain,
        weeks,
    )
