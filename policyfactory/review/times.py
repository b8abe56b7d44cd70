"""Weeks of two times compared at like load: by pairs of weeks, and by a regression on the load.

A week in which more is submitted makes everybody wait longer under any order, so that weeks are comparable only where
their offered load is. Both ways use only weeks of loads that both times have. An interval is over weeks, drawn in
blocks that are longer than the queue remembers (`policyfactory.statistics.evaluation`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.core.text import WEEK, counted
from policyfactory.engine.metrics import TAU
from policyfactory.report.sections import Column, Columns, with_ends
from policyfactory.report.verdict import NOBODY
from policyfactory.simulation.metrics import job_values, memory_of, weeks_of
from policyfactory.simulation.schedule import Schedule
from policyfactory.statistics.evaluation import block_weeks, estimate_weekly
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, Estimate, Interval
from policyfactory.workload.accounting.importing import Zone, import_logs
from policyfactory.workload.accounting.options import ImportRules, parse_limit
from policyfactory.workload.accounting.rules import STILL_WAIT
from policyfactory.workload.clean import clean
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import Workload
from policyfactory.workload.presets import EstimateMissing
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog

_NEAR = 0.05  # offered load: weeks that are further apart are not alike
_ROUNDING = 1e-20  # squares of offered loads: what equal loads differ by from their mean is less
_RESAMPLES = 1999
_PURPOSE = 43  # of the random stream; see core.random
METRICS = ("wait", "bsld")
BASELINE = "FCFS"  # against what is simulated


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
    sums = {metric: np.bincount(week, job_values(schedule, metric), count).astype(np.float64) for metric in METRICS}
    number = np.bincount(week, minlength=count).astype(np.float64)
    return Weeks(week, work / (jobs.machine * length), number, sums, block_weeks(memory_of(schedule)))


def match_weeks(before: Weeks, after: Weeks) -> list[tuple[int, int]]:
    """Return pairs of a week before and one after, nearest in load first, each week once; by the week after."""
    apart = np.abs(before.load[:, None] - after.load[None, :])
    apart[before.jobs == 0] = apart[:, after.jobs == 0] = np.inf
    pairs = []
    for index in np.argsort(apart, axis=None, kind="stable").tolist():
        first, second = divmod(index, apart.shape[1])
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
    return estimate_weekly(apart, np.ones(len(apart)), shared_block(before, after))


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
    block = shared_block(before, after)
    counts = [len(load) for load in loads]
    if min(counts) < 2:
        return Estimate(math.nan, None, None, sum(counts))
    value = float(_added(loads, means))
    if math.isnan(value) or block is None or min(counts) < MIN_CASES * block:
        return Estimate(value, None, None, min(counts), None if block is None else MIN_CASES * block)
    random = generator(0, _PURPOSE, *counts)
    drawn = [
        [((random.integers(0, n, -(-n // block))[:, None] + np.arange(block)).ravel() % n)[:n] for n in counts]
        for _ in range(_RESAMPLES)
    ]
    rows = [np.array(of_time) for of_time in zip(*drawn, strict=True)]
    resampled = ([values[row] for values, row in zip(both, rows, strict=True)] for both in (loads, means))
    error = float(np.nanstd(_added(*resampled), ddof=1))
    freedom = sum(counts) / block - 3
    half = float(student.ppf((1 + LEVEL) / 2, freedom)) * error
    return Estimate(value, Interval(value - half, value + half), None, sum(counts))


def difference_of(after: Estimate, before: Estimate) -> Estimate:
    """Return the difference of two independent estimates, its interval from theirs.

    Each end is as far from the difference as the root of the sum of squares of theirs (G. Y. Zou and A. Donner,
    "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008, section 2).
    """
    value = after.value - before.value
    cases = min(after.cases, before.cases)
    if after.interval is None or before.interval is None:
        lacking = [estimate.needed for estimate in (after, before) if estimate.interval is None]
        needed = None if None in lacking else max(count for count in lacking if count is not None)
        return Estimate(value, None, None, cases, needed)
    low = math.hypot(after.value - after.interval.low, before.interval.high - before.value)
    high = math.hypot(after.interval.high - after.value, before.value - before.interval.low)
    return Estimate(value, Interval(value - low, value + high), None, cases)


def _added(loads: list[FloatArray], means: list[FloatArray]) -> FloatArray:
    """Return c of the regression, of weeks along the last axis; NaN where the loads do not determine it.

    The slope b is that of deviations from the means of each time (R. Frisch and F. V. Waugh, "Partial time regressions
    as compared with individual trends", Econometrica 1, 1933).
    """
    load, mean = (
        np.concatenate([values - values.mean(-1, keepdims=True) for values in both], axis=-1) for both in (loads, means)
    )
    squares = (load**2).sum(-1)
    slope = (load * mean).sum(-1) / np.where(squares > _ROUNDING, squares, np.nan)
    further, more = (both[1].mean(-1) - both[0].mean(-1) for both in (loads, means))
    return np.asarray(more - slope * further)


def shared_block(before: Weeks, after: Weeks) -> int | None:
    """Return how many weeks are drawn together in both times; None if that cannot be told of one of them."""
    return None if before.block is None or after.block is None else max(before.block, after.block)


# Schedules of one time compared, with intervals over its weeks --------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class WeekMeans:
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


def means_of(schedule: Schedule) -> WeekMeans:
    """Return the means of a schedule of at least one job."""
    wait = schedule.wait
    return WeekMeans(
        float(wait.mean()), float(job_values(schedule, "bsld").mean()), float(wait.max()), float((wait > TAU).mean())
    )


MEANS: Columns = {
    Column("mean wait", "s"): lambda *row: row[-1].wait_s,
    Column("mean bounded slowdown", "1"): lambda *row: row[-1].bsld,
    Column("longest wait", "s"): lambda *row: row[-1].longest_s,
    Column("jobs that wait longer than 10 s", "%"): lambda *row: 100 * row[-1].waiting,
}


def nobody_waits(*schedules: Schedule) -> bool:
    """Return whether so few jobs wait under all orders that none can be told from another."""
    return all(means_of(schedule).waiting < NOBODY for schedule in schedules)


def difference(new: Schedule, base: Schedule, metric: str) -> Estimate:
    """Return the mean difference of a metric over the jobs, its interval over the weeks.

    Parameters
    ----------
    new, base : Schedule
        Of the same workload.
    metric : {"wait", "bsld"}
        The metric of each job.
    """
    values, week = job_values(new, metric) - job_values(base, metric), weeks_of(new.workload.submit, new.workload.ticks)
    sums, jobs = (np.bincount(week, weights).astype(np.float64) for weights in (values, None))
    memory = max(memory_of(new), memory_of(base))
    return estimate_weekly(sums, jobs, block_weeks(memory))


def in_words(estimate: Estimate, unit: str = "") -> str:
    """Return a difference with its interval, in brackets."""
    if np.isnan(estimate.value):
        return "an amount that cannot be told"

    value, ends = with_ends(estimate.value, estimate.interval, unit, signed=True)
    if ends:
        return f"{value} (95 % interval {ends})"
    weeks = counted(estimate.cases, "week")
    why = f"{weeks}, {estimate.needed} are needed"
    if estimate.needed is None:
        why = f"its queue remembers longer than {weeks} can tell"
    return f"{value} (no interval: {why})"


# The accounting of a time ---------------------------------------------------------------------------------------------

# The accounting of a time, as ``workload import`` reads it, or a log in the Standard Workload Format.


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """How accounting is read; the same for all times that are compared.

    Parameters
    ----------
    processors : int or None
        Of the machine; None: the most in use at once.
    estimate_missing : {"error", "runtime", "model", "drop"}
        What to do with jobs without a requested time.
    unlimited : str or None
        Requested time of jobs without a limit.
    time_zone : str or None
        Of times that have none; None: this machine's.
    """

    processors: int | None = None
    estimate_missing: EstimateMissing = "model"
    unlimited: str | None = None
    time_zone: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Accounting:
    """Jobs of a time, with their starts.

    Parameters
    ----------
    name : str
        The files, for messages.
    log : SwfLog
        The jobs as recorded, in order of submission.
    workload : Workload
        Those that a simulation can use.
    machine_given : bool
        Whether the size of the machine was given or is in the header, and not the most in use at once.
    job, user, partition : tuple of str
        Numbers, users and partitions of the jobs of ``log`` as the site writes them; empty for a log in SWF.
    waiting : int
        Jobs that waited when the accounting was taken, which are not in ``log``; 0 for a log in SWF, which has none.
    late : int or None
        Jobs that could not run when they were submitted (a begin time, a hold, a dependency): in the workload they
        are submitted when they could. None if no job's eligible time is known.
    early : int
        Jobs that are left out of the workload as they were submitted in the time before.
    hashes : dict of str to str
        SHA-256 of the files, as they were read.
    """

    name: str
    log: SwfLog
    workload: Workload
    machine_given: bool
    job: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    waiting: int = 0
    late: int | None = None
    early: int = 0
    hashes: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def late_text(self) -> str:
        """How many jobs could not run when they were submitted, in words; empty if none."""
        if self.late is None:
            return (
                "when jobs could run (Eligible) is not known: waits for begin times, holds, dependencies count as waits"
            )
        return f"{counted(self.late, 'job')} count from when they could run (Eligible)" if self.late else ""

    @property
    def rows(self) -> Int64Array:
        """The row of ``log`` of each job of the workload."""
        order = np.argsort(self.log.job_id, kind="stable")
        return np.asarray(order[np.searchsorted(self.log.job_id[order], self.workload.job_id)], dtype=np.int64)


def read_accounting(paths: Sequence[Path | str], reading: Reading | None = None) -> Accounting:
    """Read the accounting of one time.

    Parameters
    ----------
    paths : sequence of Path or str
        Its files: what sacct, PBS or TORQUE wrote, or one log in the Standard Workload Format (``.swf``, ``.swf.gz``).
    reading : Reading, optional
        How it is read.

    Raises
    ------
    InputError, TraceFormatError, WorkloadError
        If a file cannot be read, is no accounting, or no job is left.
    UsageError
        If an option is refused.
    """
    reading = reading or Reading()
    name = printable(", ".join(Path(path).name for path in paths[:3]), 200) + (", ..." if len(paths) > 3 else "")
    swf = [path for path in paths if str(path).lower().endswith((".swf", ".swf.gz"))]
    if swf:
        if len(paths) > 1:
            raise UsageError(f"{name}: give one log in SWF, or files of accounting")
        log = _numbered(read_swf(swf[0]))
        given, of = reading.processors is not None, reading.estimate_missing
        ready, late = _from_eligible(log)
        workload = clean(ready, processors=reading.processors, force_processors=given, estimate_missing=of)
        workload.cleaning.warn()
        ordered = log.select(np.argsort(log.submit, kind="stable"))
        return Accounting(name, ordered, workload, machine_given=True, late=late, hashes={str(swf[0]): log.sha256})
    from policyfactory.workload.accounting.times import find_zone

    zone = None
    if reading.time_zone is not None:
        zone = Zone(find_zone(reading.time_zone), reading.time_zone, "given by --time-zone")
    unlimited = None if reading.unlimited is None else parse_limit(reading.unlimited, "--unlimited")
    imported = import_logs(paths, rules=ImportRules(unlimited=unlimited), zone=zone, processors=reading.processors)
    ready, late = _from_eligible(imported.log)
    workload = clean(ready, estimate_missing=reading.estimate_missing)
    workload.cleaning.warn()
    given = reading.processors is not None
    names = (imported.job, imported.user, imported.partition)
    waiting = sum(step.count for step in imported.report.steps if step.what.endswith(STILL_WAIT))
    hashes = {path: digest for path, _, digest in imported.report.inputs}
    return Accounting(name, imported.log, workload, given, *names, waiting=waiting, late=late, hashes=hashes)


def _from_eligible(log: SwfLog) -> tuple[SwfLog, int | None]:
    """Return a log whose jobs are submitted when they could run, and how many that is later for; None: not known."""
    eligible = log.extra.get("eligible")
    if eligible is None or not (eligible >= 0).any():
        return log, None
    # A requeued job has become eligible again after its start.
    latest = np.where(log.wait >= 0, log.submit + log.wait, eligible)
    later = np.where((eligible >= 0) & (log.submit >= 0), np.minimum(eligible, latest) - log.submit, 0)
    later = np.maximum(later, 0)
    ready = dataclasses.replace(log, submit=log.submit + later, wait=np.where(log.wait >= 0, log.wait - later, -1))
    return ready.select(np.argsort(ready.submit, kind="stable")), int((later > 0).sum())


def _numbered(log: SwfLog) -> SwfLog:
    """Return a log of which no two jobs have one number, so that a number finds its job after the cleaning too.

    The parts of a job (status 2, 3, 4) share its number and are joined by it.
    """
    numbers = log.job_id.copy()
    whole = np.flatnonzero((log.status < 2) | (log.status > 4))
    _, first = np.unique(numbers[whole], return_index=True)
    again = np.delete(whole, first)
    numbers[again] = max(0, int(numbers.max(initial=0))) + 1 + np.arange(len(again))
    return dataclasses.replace(log, job_id=numbers)
