"""Schedules of one time compared, with intervals over its weeks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.text import counted
from policyfactory.core.units import format_duration
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.report.verdict import NOBODY
from policyfactory.simulate.metrics import TAU, job_values, memory_of, weeks_of
from policyfactory.simulate.schedule import Schedule
from policyfactory.statistics.intervals import Estimate
from policyfactory.statistics.weeks import block_weeks, estimate_weekly
from policyfactory.workload.jobs import Workload

__all__ = ["Means", "difference", "in_words", "means_of", "nobody_waits", "plain_table", "sign", "weekly"]


@dataclasses.dataclass(frozen=True, slots=True)
class Means:
    """What a schedule did to its jobs.

    Parameters
    ----------
    wait_s, bsld, longest_s : float
        Mean wait (s), mean bounded slowdown, longest wait (s).
    waiting : float
        Share of the jobs that waited longer than 10 s.
    """

    wait_s: float
    bsld: float
    longest_s: float
    waiting: float


def means_of(schedule: Schedule) -> Means:
    """Return the means of a schedule of at least one job."""
    wait = schedule.wait
    return Means(
        float(wait.mean()), float(job_values(schedule, "bsld").mean()), float(wait.max()), float((wait > TAU).mean())
    )


def nobody_waits(*schedules: Means) -> bool:
    """Tell whether so few jobs wait under all orders that none can be told from another."""
    return all(means.waiting < NOBODY for means in schedules)


def weekly(workload: Workload, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sums of the jobs' values, and the jobs, of each week of submission: float64 arrays (weeks,)."""
    week = weeks_of(workload.submit, workload.ticks)
    return np.bincount(week, values).astype(np.float64), np.bincount(week).astype(np.float64)


def difference(new: Schedule, base: Schedule, metric: str, *, seed: int = 0) -> Estimate:
    """Return the mean difference of a metric over the jobs, its interval over the weeks.

    Parameters
    ----------
    new, base : Schedule
        Of the same workload.
    metric : {"wait", "bsld"}
        The metric of each job.
    seed : int
        Of the resampling.
    """
    values = job_values(new, metric) - job_values(base, metric)
    sums, jobs = weekly(new.workload, values)
    memory = max(memory_of(new), memory_of(base))
    return estimate_weekly(sums, jobs, block_weeks(memory), seed=seed)


def sign(estimate: Estimate) -> int:
    """Return -1 if the interval is below 0, 1 if above, else 0."""
    if estimate.interval is None:
        return 0
    return int(estimate.interval.low > 0) - int(estimate.interval.high < 0)


def in_words(estimate: Estimate, unit: str = "") -> str:
    """Return a difference with its interval, in brackets."""
    if np.isnan(estimate.value):
        return "an amount that cannot be told"

    def text(value: float) -> str:
        if unit != "s":
            return f"{value:+.3g}"
        return ("-" if value < 0 else "+") + format_duration(abs(value))

    if estimate.interval is None:
        weeks = counted(estimate.cases, "week")
        if estimate.needed is None:
            return f"{text(estimate.value)} (no interval: its queue remembers longer than {weeks} can tell)"
        return f"{text(estimate.value)} (no interval: {weeks}, {estimate.needed} are needed)"
    return f"{text(estimate.value)} (95 % interval {text(estimate.interval.low)} to {text(estimate.interval.high)})"


def plain_table(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Any]],
) -> Table:
    """Return a table of values, given by rows."""
    cells = tuple(tuple(value if isinstance(value, Cell) else Cell(value) for value in row) for row in rows)
    return Table(name, title, tuple(columns), cells)
