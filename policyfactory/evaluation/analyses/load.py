"""Utilisation and queue over time: how busy the machine is, and how much waits beside it.

Utilisation hardly tells policies apart, since all of them have the same work to do and a busy machine is busy under
each; what waits does. The backlog is what the waiting jobs ask for, in machines: 2 means that they would fill the
machine twice.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.core.text import DAY, HOUR, MINUTE, WEEK, format_duration, number_text
from policyfactory.engine.metrics import binned_integral
from policyfactory.evaluation.analyses.analysis import (
    LogAnalysis,
    LogView,
    check_case,
    compared_columns,
    difference_cell,
    differences_in_words,
    estimate_cell,
    estimate_of,
    log_column,
    pictures_by_log,
    policy_table,
    shared_unit,
    whole_number,
)
from policyfactory.evaluation.picture import Curve, Panel, draw_panels
from policyfactory.report.sections import Column, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

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
    capacity = float(width) * jobs.machine
    submit_bin = np.minimum((jobs.submit - origin) // width, count - 1)
    work = (schedule.end - schedule.start).astype(np.float64) * jobs.processors
    submitted: FloatArray = np.bincount(submit_bin, work, count).astype(np.float64)
    means = _means(schedule, origin, width, count)
    return LoadCourse(width / jobs.ticks, *means, 100.0 * submitted / capacity)


def _means(schedule: Schedule, origin: int, width: int, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return utilisation (%), waiting jobs and backlog (machines), each the mean over each of ``count`` bins."""
    jobs, grid = schedule.workload, (origin, width, count)
    capacity, ones = float(width) * jobs.machine, np.ones(len(jobs), dtype=np.int64)
    return (
        100.0 * binned_integral(schedule.start, schedule.end, jobs.processors, *grid) / capacity,
        binned_integral(jobs.submit, schedule.start, ones, *grid) / width,
        binned_integral(jobs.submit, schedule.start, jobs.processors, *grid) / capacity,
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
    longest = max((len(course.waiting) for course in courses), default=0)
    if longest <= most:
        return list(courses)
    width = courses[0].width
    wide = bin_width(width * longest, most)
    together = int(wide // width) if wide % width == 0 else -(-longest // most)
    starts = [np.arange(0, len(course.waiting), together) for course in courses]
    return [
        LoadCourse(
            width * together,
            *(
                np.add.reduceat(values, begins) / together
                for values in (course.utilisation, course.waiting, course.backlog, course.offered)
            ),
        )
        for course, begins in zip(courses, starts, strict=True)
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
    capacity = float(span) * jobs.machine
    work = (schedule.end - schedule.start).astype(np.float64) * jobs.processors
    week = WEEK * jobs.ticks
    weeks = np.empty(0)
    count = (span + DAY * jobs.ticks) // week
    if count:
        done = binned_integral(schedule.start, schedule.end, jobs.processors, first, week, count)
        weeks = 100.0 * done / (float(week) * jobs.machine)
    utilisation, waiting, backlog = (float(means[0]) for means in _means(schedule, first, span, 1))
    return LoadSums(100.0 * float(work.sum()) / capacity, utilisation, waiting, backlog, drain, weeks)


# Utilisation and queue over time: how busy the machine is, and how much waits beside it -------------------------------


_DONE = "work done from the first to the last submission, in % of what is possible; the metric counts to the last end"
_MEASURES = {
    "utilisation": Column("utilisation until the last submission", "%", _DONE),
    "backlog": Column(
        "backlog", "machines", "processors requested by waiting jobs / processors of the machine; mean over time"
    ),
    "waiting": Column("waiting jobs", "jobs", "mean over time"),
    "drain": Column("drain", "s", "from the last submission to the last end"),
}
_FULL = 95.0  # % of offered load from which the queue grows for most of the time, whatever the policy
_LONGER = 5  # times ``bins``: what is drawn and written where schedules end long after the last submission
_COARSE = 32  # points of the utilisation in the picture


class ObservedLoad(NamedTuple):
    """What is kept of one schedule; the course of the chosen case only."""

    sums: LoadSums
    course: LoadCourse | None


@dataclasses.dataclass(frozen=True, slots=True)
class Load(LogAnalysis):
    """Utilisation, backlog, waiting jobs and offered load over time.

    Parameters
    ----------
    case : int
        Number of the case whose course is shown.
    bins : int
        About so many points from its first to its last submission; at most five times as many to the last end.

    Raises
    ------
    UsageError
        If ``case`` or ``bins`` is no whole number of at least 1.
    """

    name: ClassVar[str] = "load"

    case: int = 1
    bins: int = 200

    def __post_init__(self) -> None:
        whole_number(self.name, "case", self.case, 1)
        whole_number(self.name, "bins", self.bins, 1)

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse a log or a case that there is not."""
        check_case(cases, self.name, self.log, self.case)

    def observe(self, case: Case, schedule: Schedule) -> ObservedLoad:
        """Return the load of a schedule, and its course if it is the chosen case's."""
        chosen = case.number == self.case and self.log in {"", case.log}
        return ObservedLoad(load_sums(schedule), course_of(schedule, self.bins) if chosen else None)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the load of every policy, utilisation week by week, and the course of the chosen case."""
        logs = self.by_log(evaluation, seen, functools.partial(LoadOfLog, most=_LONGER * self.bins))
        shown = [view for view in logs if view.courses]
        tables = [_load_table(logs), _weeks_table(logs), _course_table(shown)]
        pictures = pictures_by_log(
            "course",
            shown,
            "utilisation and backlog over time",
            _draw,
            "The backlog is what the waiting jobs request, in machines. It tells the policies apart; utilisation "
            "hardly does, since the work is the same under each.",
            self.case,
        )
        words = tuple(f"{view.log}: {_words(view)}" if len(logs) > 1 else _words(view) for view in logs)
        return Section("load", "Load over time", words, tuple(table for table in tables if table.rows), pictures)


@dataclasses.dataclass(frozen=True, eq=False)
class LoadOfLog(LogView):
    """The loads of all cases of a log.

    Parameters
    ----------
    most : int
        Bins of the courses, at most.
    """

    most: int

    @functools.cached_property
    def _as_kept(self) -> list[LoadCourse]:
        return [kept.course for case in self.kept for kept in case if kept.course is not None]

    @functools.cached_property
    def courses(self) -> list[LoadCourse]:
        """The courses of the chosen case by policy, in bins of one width; empty where the log has no such case."""
        return coarser(self._as_kept, self.most)

    @property
    def note(self) -> str:
        """Of bins that are wider than asked for, how wide they are and where they end; from a blank on."""
        if not self.courses or self.courses[0].width == self._as_kept[0].width:
            return ""
        longest = max(self._as_kept, key=lambda course: len(course.waiting))
        cut = f", and what is later than {format_duration(longest.width * MOST_BINS)} is left out"
        width = format_duration(self.courses[0].width)
        return (
            f" Of {self.log} over {width}, since schedules end long after the last submission"
            f"{cut if len(longest.waiting) == MOST_BINS else ''}."
        )

    def load(self, field: str) -> FloatArray:
        """Return one field of `LoadSums`: float64 array (cases, policies)."""
        return self.values(lambda kept: getattr(kept.sums, field))

    @property
    def weeks(self) -> int:
        """Whole weeks of the longest case."""
        return max(len(case[0].sums.weeks) for case in self.kept)

    def week(self, week: int) -> FloatArray:
        """Return the utilisation of one week: float64 array (cases, policies), NaN where a case is shorter."""
        return self.values(lambda kept: kept.sums.weeks[week] if week < len(kept.sums.weeks) else np.nan)


def _load_table(logs: Sequence[LoadOfLog]) -> Table:
    offered = "work of all jobs, in % of what the machine can do between the first and the last submission"
    drain = shared_unit(value for view in logs for value in view.load("drain").ravel())
    columns: dict[Column, Callable[..., Any]] = {
        Column("offered", "%", offered): lambda view, index: estimate_cell(view.load("offered")[:, index])
    }
    for field, column in _MEASURES.items():
        columns |= compared_columns(
            dataclasses.replace(column, shown=drain if column.unit == "s" else ""),
            lambda view, field=field: view.load(field),  # type: ignore[misc]
            logs[0].baseline,
            lower_is_better=field != "utilisation",
        )
    return policy_table("load", "Load of the machine, and what waits", logs, columns)


def _weeks_table(logs: Sequence[LoadOfLog]) -> Table:
    base, policies = logs[0].baseline, logs[0].policies
    week = "of the case, from its first submission; a last part of less than six days is left out"
    columns = {
        **log_column(several=len(logs) > 1),
        Column("week", "", week): lambda _, week, *__: str(week + 1),
        Column("cases", "cases", "that have this week"): (
            lambda _, __, values, index: estimate_of(values[:, index]).cases
        ),
        Column("policy"): lambda *row: policies[row[-1]],
        Column("utilisation", "%", "median over cases"): (lambda _, __, values, index: estimate_cell(values[:, index])),
        Column("difference", "%", f"from {base}; median over cases, paired"): (
            lambda view, __, values, index: difference_cell(values, index, drawn=view.drawn, lower_is_better=False)
        ),
    }
    rows = [
        (view, week, values, index)
        for view in logs
        for week, values in enumerate(map(view.week, range(view.weeks)))
        for index in range(len(policies))
    ]
    return Table.of("weeks", "Utilisation week by week", columns, rows, shown=10 * len(policies))


def _course_table(logs: Sequence[LoadOfLog]) -> Table:
    columns = {
        **log_column(several=len(logs) > 1),
        Column("time", "s", "begin of the bin, from the first submission"): lambda _, __, course, k: course.width * k,
        Column("policy"): lambda _, policy, *__: policy,
        Column("utilisation", "%"): lambda _, __, course, k: float(course.utilisation[k]),
        Column("backlog", "machines"): lambda _, __, course, k: float(course.backlog[k]),
        Column("waiting jobs", "jobs"): lambda _, __, course, k: float(course.waiting[k]),
        Column("offered", "%", "work of the jobs submitted in the bin, in % of what the machine can do in it"): (
            lambda _, __, course, k: float(course.offered[k])
        ),
    }
    rows = [
        (view, policy, course, row)
        for view in logs
        for row in range(max(len(course.waiting) for course in view.courses))
        for policy, course in zip(view.policies, view.courses, strict=True)
        if row < len(course.waiting)
    ]
    note = "Means over the bin." + "".join(view.note for view in logs)
    return Table.of("course", "Load over time", columns, rows, note, shown=0)


def _draw(view: LoadOfLog) -> Figure:
    courses = view.courses
    width = courses[0].width
    bins = max(len(course.waiting) for course in courses)
    divisor, unit = (DAY, "d") if width * bins >= 2 * DAY else (HOUR, "h")
    label = f"time since the first submission ({unit})"

    def panel(title: str, y_label: str, field: str, together: int) -> Panel:
        steps = -(-bins // together)
        times = width * together * np.arange(steps + 1) / divisor
        curves = []
        for course, policy in zip(courses, view.policies, strict=True):
            values = np.zeros(steps * together)
            values[: len(course.waiting)] = getattr(course, field)
            means = values.reshape(steps, together).mean(axis=1)
            # The last value holds to the end of its bin.
            curves.append(Curve(policy, times, np.append(means, means[-1])))
        return Panel(f"{title}, mean over {format_duration(width * together)}", label, y_label, curves, steps=True)

    # The machine is full or not from hour to hour under any policy: only longer means can be told apart.
    wide = bin_width(width * bins, _COARSE)
    coarse = int(wide // width) if wide % width == 0 else -(-bins // _COARSE)
    return draw_panels(
        [
            panel("utilisation", "in use (%)", "utilisation", coarse),
            panel("backlog: processors requested by waiting jobs", "machines", "backlog", 1),
        ],
        height=2.5,
    )


def _words(view: LoadOfLog) -> str:
    several = len(view.kept) > 1
    offered, utilisation, backlog, waiting = (
        estimate_of(view.load(field)[:, 0]).value for field in ("offered", "utilisation", "backlog", "waiting")
    )
    if not np.isfinite(offered):
        return "All jobs come at one instant, so there is no load over time to speak of."
    text = (
        f"From the first to the last submission {offered:.1f} % of the machine's capacity is submitted and under "
        f"{view.baseline} {utilisation:.1f} % is done{f' (medians over {view.noun}s)' if several else ''}; "
        f"{number_text(waiting)} jobs wait on average, which request {number_text(backlog)} times the machine."
    )
    if several:
        backlogs = view.load("backlog")[:, 0]
        most = int(np.argmax(backlogs))
        largest = number_text(float(backlogs[most]))
        text += f" Most waits in {view.case_name(view.number(most))}: {largest} times the machine."
    if offered >= _FULL:
        text += " That is so much that the queue hardly empties, and the order of the queue matters most."
    if len(view.policies) > 1:
        points, machines = ("points higher", "points lower"), ("machines more", "machines less")
        done = view.load("utilisation")
        text += differences_in_words(
            view, done, ("utilisation until the last submission", "1"), points, lower_is_better=False
        )
        text += differences_in_words(view, view.load("backlog"), ("the backlog", "1"), machines)
        text += view.no_intervals
    if not view.weeks:
        text += f" No {view.noun} is a whole week long, so there is no utilisation by week."
    return text
