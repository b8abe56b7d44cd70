"""The named metrics of a schedule, each defined once, and what each week of submission adds to them.

Of every job: w, the time it waited; p, the time it ran (what the machine executed, not what was requested); q, its
processors. tau is 10 s. Quantiles interpolate linearly between the two nearest jobs (Hyndman and Fan's type 7).

Area-weighted response, utilisation and the standard deviation of throughput are what Boezennec, Dufosse and Pallez,
"Qualitatively analyzing optimization objectives in the design of HPC resource manager", ACM TOMPECS, 2024,
doi:10.1145/3701986, recommend beside or instead of mean slowdowns, which a few short jobs decide.

Weeks of one schedule depend on each other, for a queue that is long at the end of one is long at the start of the
next. How long that lasts is measured on the number of waiting jobs: its integrated autocorrelation time,
1 + 2 sum of rho(k), the sum cut at the first lag that is several times as long (A. Sokal, "Monte Carlo methods in
statistical mechanics", 1997, section 3). Two observations that far apart tell about as much as two independent ones.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.text import HOUR, WEEK, counted, did_you_mean, number_text
from policyfactory.engine.metrics import TAU, busy_integrals, slowdown, total, weighted_total
from policyfactory.workload.jobs import Workload

_SC17_FIRST_JOBS = 16  # paper 004 counts the jobs after these


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """Jobs of a lead-in that take processors from those that are measured.

    Parameters
    ----------
    start, end : int64 array (n,), ticks
        When they run, from the first measured submission on.
    processors : int64 array (n,)
        What they take.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    processors: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class StoppedRuns:
    """Runs of jobs that were stopped for other jobs, where a site does that.

    Parameters
    ----------
    times : int64 array (n,)
        How often each job was.
    node_seconds : int64 array (n,)
        What these runs had, and is lost.
    """

    times: NDArray[np.int64]
    node_seconds: NDArray[np.int64]

    @property
    def text(self) -> str:
        """How many there were, in words."""
        jobs = counted(int((self.times > 0).sum()), "job")
        hours = number_text(float(self.node_seconds.sum()) / 3600)
        return f"{counted(int(self.times.sum()), 'run')} of {jobs}, {hours} node hours"


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ran:
    """What a metric is of: when each job of a workload ran.

    Parameters
    ----------
    start, end : int64 array (n,)
        On the workload's clock, in its ticks.
    backfilled : bool array (n,)
        Whether each was started while a job ahead of it in the queue stayed waiting.
    workload : Workload
        The jobs.
    carried : Carried or None
        What was still running of a lead-in.
    stopped : StoppedRuns or None
        Of a site where running jobs are stopped for others.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    backfilled: NDArray[np.bool_]
    workload: Workload
    carried: Carried | None = dataclasses.field(default=None, kw_only=True)
    stopped: StoppedRuns | None = dataclasses.field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.start)


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """One number that tells how good a schedule is.

    Parameters
    ----------
    name : str
        What it is called in commands and tables.
    unit : str
        Its unit ("s", "%", "jobs", "1").
    lower_is_better : bool or None
        Which way is good; None: neither.
    function : callable
        From a Schedule of at least one job to float.
    description : str
        The definition in one line.
    title : str
        Its name in words, for columns and axes: "mean bounded slowdown".
    of_each : callable or None
        Where the metric is a (weighted) mean over the jobs: from a Schedule to each job's value and weight, float64
        arrays (n,).
    lowest, highest : float
        Between which values it lies whatever the schedule, in its unit: an interval of its value ends there.
    """

    name: str
    unit: str
    lower_is_better: bool | None
    function: Callable[[Ran], float]
    description: str
    title: str
    of_each: Callable[[Ran], tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None
    lowest: float = 0.0
    highest: float = math.inf


def measure(schedule: Ran, names: str | Iterable[str] | None = None) -> dict[str, float]:
    """Return the value of each metric of ``names`` (default: all); a single name may be a text.

    Raises
    ------
    UsageError
        If there is no metric of a name, or ``names`` is empty.
    EvaluationError
        If the schedule has no job.

    Examples
    --------
    >>> import policyfactory as pf
    >>> schedule = pf.simulate(pf.generate_lublin(256, 500, seed=1), "SAF")
    >>> round(pf.measure(schedule, "mean_bsld")["mean_bsld"], 2)
    11.15
    """
    if not hasattr(schedule, "workload"):
        raise UsageError(f"a {type(schedule).__name__} has no metrics; a schedule has: simulate(workload, policy)")
    chosen = list(METRICS) if names is None else check_metrics([names] if isinstance(names, str) else names)
    if len(schedule) == 0:
        raise EvaluationError(f"{schedule.workload.name}: no job to measure; give a log or a window with jobs")
    return {name: float(METRICS[name].function(schedule)) for name in chosen}


def check_metrics(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of metrics, each once and in the given order.

    Raises
    ------
    UsageError
        If there is no such metric (near matches are named) or no name at all.
    """
    chosen = tuple(dict.fromkeys(name.strip().lower().replace("-", "_") for name in names if name.strip()))
    for name in chosen:
        if name not in METRICS:
            mean = f"mean_{name}"
            hint = f"did you mean {mean}? " if mean in METRICS else did_you_mean(name, METRICS, 3, cutoff=0.5)
            told = f"there is no metric {name!r}; {hint}".rstrip("; ")
            raise UsageError(f"{told} (metrics: {', '.join(METRICS)})")
    if not chosen:
        raise UsageError(f"no metric was named; choose from {', '.join(METRICS)}")
    return chosen


# Per job. ------------------------------------------------------------------------------------------------------------


def _wait_ticks(schedule: Ran) -> NDArray[np.int64]:
    return schedule.start - schedule.workload.submit


def _wait(schedule: Ran) -> NDArray[np.float64]:
    return _wait_ticks(schedule) / schedule.workload.ticks


def _turnaround(schedule: Ran) -> NDArray[np.float64]:
    return (schedule.end - schedule.workload.submit) / schedule.workload.ticks


def _slowdown(schedule: Ran, least: int, *, per_processor: bool = False) -> NDArray[np.float64]:
    share = schedule.workload.processors if per_processor else np.ones(len(schedule), dtype=np.int64)
    return slowdown(_wait_ticks(schedule), schedule.end - schedule.start, share, least * schedule.workload.ticks)


# Name -> unit, what it is called, its definition, and how it is computed.
_PER_JOB: dict[str, tuple[str, str, str, Callable[[Ran], NDArray[np.float64]]]] = {
    "wait": ("s", "wait", "the wait w", _wait),
    "bsld": (
        "1",
        "bounded slowdown",
        "the bounded slowdown max((w + p)/max(p, tau), 1)",
        functools.partial(_slowdown, least=TAU),
    ),
    "slowdown": (
        "1",
        "slowdown",
        "the slowdown (w + p)/p, a p under 1 s taken as 1 s, at least 1",
        functools.partial(_slowdown, least=1),
    ),
    "pp_bsld": (
        "1",
        "bounded slowdown per processor",
        "the bounded slowdown per processor max((w + p)/(q max(p, tau)), 1)",
        functools.partial(_slowdown, least=TAU, per_processor=True),
    ),
    "turnaround": ("s", "turnaround", "the time w + p from submission to end", _turnaround),
}


def job_values(schedule: Ran, of: str) -> NDArray[np.float64]:
    """Return ``wait``, ``bsld``, ``slowdown``, ``pp_bsld`` or ``turnaround`` of each job: float64 array (n,).

    Raises
    ------
    UsageError
        If ``of`` is none of these.
    """
    if of not in _PER_JOB:
        raise UsageError(f"no job has a {of!r}; choose from {', '.join(_PER_JOB)}")
    return _PER_JOB[of][3](schedule)


def _mean(values: NDArray[np.float64]) -> float:
    return float(total(values) / len(values))


def _sc17_bsld(schedule: Ran) -> float:
    # By submission: the programs dispatch the first 16 in that order, and no policy changes which jobs are counted.
    values = _slowdown(schedule, TAU)
    return _mean(values[_SC17_FIRST_JOBS:] if len(values) > _SC17_FIRST_JOBS else values)


_STATISTICS: dict[str, tuple[str, str, Callable[[NDArray[np.float64]], float]]] = {
    "mean": ("mean", "mean over the jobs of", _mean),
    "median": ("median", "median over the jobs of", functools.partial(np.quantile, q=0.5)),
    "p95": ("95 % quantile of the", "95 % quantile over the jobs of", functools.partial(np.quantile, q=0.95)),
    "p99": ("99 % quantile of the", "99 % quantile over the jobs of", functools.partial(np.quantile, q=0.99)),
    "max": ("largest", "largest of the jobs for", np.max),
}


# Of the machine. -----------------------------------------------------------------------------------------------------


def _makespan_ticks(schedule: Ran) -> int:
    return int(schedule.end.max() - schedule.workload.submit.min())


def _makespan(schedule: Ran) -> float:
    return _makespan_ticks(schedule) / schedule.workload.ticks


def _in_use(schedule: Ran) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return start, end and processors of all that runs in the makespan, also of what a lead-in left running."""
    start, end, processors, carried = schedule.start, schedule.end, schedule.workload.processors, schedule.carried
    if carried is None:
        return start, end, processors
    last = int(end.max())
    return (
        np.concatenate([start, np.minimum(carried.start, last)]),
        np.concatenate([end, np.minimum(carried.end, last)]),
        np.concatenate([processors, carried.processors]),
    )


def _utilisation(schedule: Ran) -> float:
    start, end, processors = _in_use(schedule)
    work = weighted_total(end - start, processors, np.ones(len(start), dtype=np.int64))
    capacity = float(schedule.workload.machine) * _makespan_ticks(schedule)
    return 100.0 * float(work) / capacity if capacity else 0.0


def _of_users(schedule: Ran) -> NDArray[np.float64]:
    """Return the mean bounded slowdown of each known user's jobs; where nobody is known, that of all."""
    user, bsld = schedule.workload.user, job_values(schedule, "bsld")
    if (known := user >= 0).any():
        user, bsld = user[known], bsld[known]
    order = np.argsort(user, kind="stable")
    bounds = np.flatnonzero(np.diff(user[order])) + 1
    return np.array([_mean(values) for values in np.split(bsld[order], bounds)])


def _utilisation_to_last_start(schedule: Ran) -> float:
    # All of a job's work counts, also what is done after the last start: it can exceed 100 %.
    start, end, processors = schedule.start, schedule.end, schedule.workload.processors
    work = weighted_total(end - start, processors, np.ones(len(start), dtype=np.int64))
    capacity = float(schedule.workload.machine) * int(start.max() - schedule.workload.submit.min())
    return 100.0 * float(work) / capacity if capacity else 0.0


def _throughput_sd(schedule: Ran) -> float:
    # The integrals run from the first start; before it nothing is in use, and both integrands are 0.
    linear, square = busy_integrals(*_in_use(schedule))
    makespan = _makespan_ticks(schedule)
    if not makespan:
        return 0.0
    mean = linear / makespan
    # Rounding can leave a tiny negative number where the use is constant.
    return 100.0 * float(np.sqrt(max(square / makespan - mean * mean, 0.0))) / schedule.workload.machine


def _area_weighted(schedule: Ran, lasts: NDArray[np.int64]) -> float:
    run_time, processors = schedule.end - schedule.start, schedule.workload.processors
    area = weighted_total(np.ones(len(schedule), dtype=np.int64), run_time, processors)
    if not area:
        return _mean(lasts / schedule.workload.ticks)
    return float(weighted_total(lasts, run_time, processors) / area) / schedule.workload.ticks


def _wait_and_area(schedule: Ran) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _wait(schedule), _response_and_area(schedule)[1]


def _response_and_area(schedule: Ran) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    area = (schedule.end - schedule.start).astype(np.float64) * schedule.workload.processors
    return _turnaround(schedule), area if area.any() else np.ones(len(schedule))


def _total_wait(schedule: Ran) -> float:
    return float(total(_wait(schedule)))


def _of_jobs(statistic: str, of: str) -> Metric:
    name, words, reduce = _STATISTICS[statistic]
    unit, title, what, values = _PER_JOB[of]
    title = f"{'longest' if unit == 's' and statistic == 'max' else name} {title}"
    of_each = (lambda schedule: (values(schedule), np.ones(len(schedule)))) if statistic == "mean" else None
    return Metric(
        *(f"{statistic}_{of}", unit, True, lambda ran: reduce(values(ran)), f"{words} {what}", title),
        of_each=of_each,
        lowest=1.0 if unit == "1" else 0.0,  # every slowdown is at least 1
    )


_OF_MACHINE = (
    Metric(
        "utilisation", "%", False, _utilisation, "sum of q p over (processors x makespan)", "utilisation", highest=100
    ),
    Metric(
        "utilisation_to_last_start",
        "%",
        False,
        _utilisation_to_last_start,
        "sum of q p over (processors x time from the first submission to the last start): RLScheduler's",
        "utilisation of RLScheduler",
    ),
    Metric("makespan", "s", True, _makespan, "time from the first submission to the last end", "makespan"),
    Metric(
        "area_weighted_response",
        "s",
        True,
        lambda schedule: _area_weighted(schedule, schedule.end - schedule.workload.submit),
        "mean of w + p, each job weighted by its q p",
        "area-weighted response time",
        of_each=_response_and_area,
    ),
    Metric(
        "area_weighted_wait",
        "s",
        True,
        lambda schedule: _area_weighted(schedule, _wait_ticks(schedule)),
        "mean of w, each job weighted by its q p",
        "area-weighted wait",
        of_each=_wait_and_area,
    ),
    Metric(
        "throughput_sd",
        "%",
        True,
        _throughput_sd,
        "standard deviation, over the makespan, of the processors in use (the work done per time), in % of the machine",
        "standard deviation of the throughput",
        highest=50.0,  # all in use half of the time, and nothing the other half
    ),
    Metric(
        "sc17_bsld",
        "1",
        True,
        _sc17_bsld,
        "mean over the jobs, but for the first 16 submitted (if there are more), of the bounded slowdown: SC'17's",
        "mean bounded slowdown of SC'17",
        lowest=1.0,
    ),
    Metric(
        "user_mean_bsld",
        "1",
        True,
        lambda schedule: _mean(_of_users(schedule)),
        "mean over the users of the mean bounded slowdown of each one's jobs; without users, of all jobs",
        "mean bounded slowdown, mean over users",
        lowest=1.0,
    ),
    Metric(
        "user_max_bsld",
        "1",
        True,
        lambda schedule: float(_of_users(schedule).max()),
        "largest over the users of the mean bounded slowdown of each one's jobs; without users, of all jobs",
        "mean bounded slowdown of the worst-off user",
        lowest=1.0,
    ),
    Metric(
        "total_wait", "s", True, _total_wait, "sum over the jobs of the wait w (equation 11 of TPDS'18)", "total wait"
    ),
    Metric(
        "backfilled",
        "jobs",
        None,
        lambda schedule: float(np.count_nonzero(schedule.backfilled)),
        "jobs started while one ahead of them in the queue stayed waiting",
        "backfilled jobs",
    ),
    Metric(
        "preempted",
        "runs",
        True,
        lambda schedule: 0.0 if schedule.stopped is None else float(schedule.stopped.times.sum()),
        "runs stopped for other jobs, by a site's preemption",
        "preempted runs",
    ),
    Metric(
        "lost_node_hours",
        "h",
        True,
        lambda schedule: 0.0 if schedule.stopped is None else float(schedule.stopped.node_seconds.sum()) / 3600,
        "node hours of the runs that were stopped for other jobs",
        "node hours lost to preemption",
    ),
)

PREEMPTION_METRICS = ("preempted", "lost_node_hours")
COSTS = ("p99_wait", "max_wait", "area_weighted_wait")  # what a gain in the mean is paid with
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (*(_of_jobs(statistic, of) for of in _PER_JOB for statistic in _STATISTICS), *_OF_MACHINE)
}


# By weeks of submission. ----------------------------------------------------------------------------------------------

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


def weeks_in(span: int) -> int:
    """Return how many weeks jobs have that are submitted within so many seconds."""
    return int(weeks_of(np.array([0, span]), 1)[-1]) + 1


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
    for column, name in enumerate(metrics):
        of_each = METRICS[name].of_each
        if of_each is not None:
            value, weight = of_each(schedule)
            values[:, column] = np.bincount(week, weight * value, count)
            weights[:, column] = np.bincount(week, weight, count)
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
