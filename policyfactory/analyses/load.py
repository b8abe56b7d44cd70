"""Utilisation and queue over time: how busy the machine is, and how much waits beside it.

Utilisation hardly tells policies apart, since all of them have the same work to do and a busy machine is busy under
each; what waits does. The backlog is what the waiting jobs ask for, in machines: 2 means that they would fill the
machine twice.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from policyfactory.analyses.analysis import LogAnalysis, check_place, whole_number
from policyfactory.analyses.estimates import median_of
from policyfactory.analyses.load_over_time import (
    MOST_BINS,
    LoadCourse,
    LoadSums,
    bin_width,
    coarser,
    course_of,
    load_sums,
)
from policyfactory.analyses.logs import LogView
from policyfactory.analyses.plots import Curve, Panel, draw_panels
from policyfactory.analyses.tables import (
    compared_columns,
    difference_cell,
    log_column,
    median_cell,
    pictures_by_log,
    policy_table,
)
from policyfactory.analyses.wording import differences_in_words, shared_unit
from policyfactory.core.arrays import FloatArray
from policyfactory.core.text import number_text
from policyfactory.core.units import DAY, HOUR, format_duration
from policyfactory.report.sections import Column, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Load", "ObservedLoad"]


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
        check_place(cases, self.name, self.log, self.case)

    def observe(self, case: Case, schedule: Schedule) -> ObservedLoad:
        """Return the load of a schedule, and its course if it is the chosen case's."""
        chosen = case.number == self.case and self.log in {"", case.log}
        return ObservedLoad(load_sums(schedule), course_of(schedule, self.bins) if chosen else None)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the load of every policy, utilisation week by week, and the course of the chosen case."""
        logs = self.by_log(evaluation, seen, functools.partial(LoadOfLog, most=_LONGER * self.bins))
        shown = [own for own in logs if own.courses]
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
        words = tuple(f"{own.log}: {_words(own)}" if len(logs) > 1 else _words(own) for own in logs)
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
        return [one.course for case in self.kept for one in case if one.course is not None]

    @functools.cached_property
    def courses(self) -> list[LoadCourse]:
        """The courses of the chosen case by policy, in bins of one width; empty where the log has no such case."""
        return coarser(self._as_kept, self.most)

    @property
    def said(self) -> str:
        """Of bins that are wider than asked for, how wide they are and where they end; from a blank on."""
        if not self.courses or self.courses[0].width == self._as_kept[0].width:
            return ""
        longest = max(self._as_kept, key=lambda one: len(one.waiting))
        cut = f", and what is later than {format_duration(longest.width * MOST_BINS)} is left out"
        width = format_duration(self.courses[0].width)
        return (
            f" Of {self.log} over {width}, since schedules end long after the last submission"
            f"{cut if len(longest.waiting) == MOST_BINS else ''}."
        )

    def load(self, field: str) -> FloatArray:
        """Return one field of `LoadSums`: float64 array (cases, policies)."""
        return self.values(lambda one: getattr(one.sums, field))

    @property
    def weeks(self) -> int:
        """Whole weeks of the longest case."""
        return max(len(case[0].sums.weeks) for case in self.kept)

    def week(self, week: int) -> FloatArray:
        """Return the utilisation of one week: float64 array (cases, policies), NaN where a case is shorter."""
        return self.values(lambda one: one.sums.weeks[week] if week < len(one.sums.weeks) else np.nan)


def _load_table(logs: Sequence[LoadOfLog]) -> Table:
    offered = "work of all jobs, in % of what the machine can do between the first and the last submission"
    drain = shared_unit(value for own in logs for value in own.load("drain").ravel())
    columns: dict[Column, Callable[..., Any]] = {
        Column("offered", "%", offered): lambda own, place: median_cell(own.load("offered")[:, place])
    }
    for field, column in _MEASURES.items():
        columns |= compared_columns(
            dataclasses.replace(column, shown=drain if column.unit == "s" else ""),
            lambda own, field=field: own.load(field),  # type: ignore[misc]
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
            lambda _, __, values, place: median_of(values[:, place]).cases
        ),
        Column("policy"): lambda *row: policies[row[-1]],
        Column("utilisation", "%", "median over cases"): (lambda _, __, values, place: median_cell(values[:, place])),
        Column("difference", "%", f"from {base}; median over cases, paired"): (
            lambda own, __, values, place: difference_cell(values, place, drawn=own.drawn, lower_is_better=False)
        ),
    }
    rows = [
        (own, week, values, place)
        for own in logs
        for week, values in enumerate(map(own.week, range(own.weeks)))
        for place in range(len(policies))
    ]
    return Table.of("weeks", "Utilisation week by week", columns, rows, shown=10 * len(policies))


def _course_table(logs: Sequence[LoadOfLog]) -> Table:
    columns = {
        **log_column(several=len(logs) > 1),
        Column("time", "s", "begin of the bin, from the first submission"): lambda _, __, course, at: course.width * at,
        Column("policy"): lambda _, policy, *__: policy,
        Column("utilisation", "%"): lambda _, __, course, at: float(course.utilisation[at]),
        Column("backlog", "machines"): lambda _, __, course, at: float(course.backlog[at]),
        Column("waiting jobs", "jobs"): lambda _, __, course, at: float(course.waiting[at]),
        Column("offered", "%", "work of the jobs submitted in the bin, in % of what the machine can do in it"): (
            lambda _, __, course, at: float(course.offered[at])
        ),
    }
    rows = [
        (own, policy, course, at)
        for own in logs
        for at in range(max(len(course.waiting) for course in own.courses))
        for policy, course in zip(own.policies, own.courses, strict=True)
        if at < len(course.waiting)
    ]
    note = "Means over the bin." + "".join(own.said for own in logs)
    return Table.of("course", "Load over time", columns, rows, note, shown=0)


def _draw(own: LoadOfLog) -> Figure:
    courses = own.courses
    width = courses[0].width
    bins = max(len(course.waiting) for course in courses)
    divisor, unit = (DAY, "d") if width * bins >= 2 * DAY else (HOUR, "h")
    label = f"time since the first submission ({unit})"

    def panel(title: str, y_label: str, field: str, together: int) -> Panel:
        steps = -(-bins // together)
        times = width * together * np.arange(steps + 1) / divisor
        curves = []
        for course, policy in zip(courses, own.policies, strict=True):
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


def _words(own: LoadOfLog) -> str:
    several = len(own.kept) > 1
    offered, utilisation, backlog, waiting = (
        median_of(own.load(field)[:, 0]).value for field in ("offered", "utilisation", "backlog", "waiting")
    )
    if not np.isfinite(offered):
        return "All jobs come at one instant, so there is no load over time to speak of."
    text = (
        f"From the first to the last submission {offered:.1f} % of the machine's capacity is submitted and under "
        f"{own.baseline} {utilisation:.1f} % is done{f' (medians over {own.noun}s)' if several else ''}; "
        f"{number_text(waiting)} jobs wait on average, which request {number_text(backlog)} times the machine."
    )
    if several:
        backlogs = own.load("backlog")[:, 0]
        most = int(np.argmax(backlogs))
        largest = number_text(float(backlogs[most]))
        text += f" Most waits in {own.place_of(own.number(most))}: {largest} times the machine."
    if offered >= _FULL:
        text += " That is so much that the queue hardly empties, and the order of the queue matters most."
    if len(own.policies) > 1:
        points, machines = ("points higher", "points lower"), ("machines more", "machines less")
        done = own.load("utilisation")
        text += differences_in_words(
            own, done, ("utilisation until the last submission", "1"), points, lower_is_better=False
        )
        text += differences_in_words(own, own.load("backlog"), ("the backlog", "1"), machines)
        text += own.no_intervals
    if not own.weeks:
        text += f" No {own.noun} is a whole week long, so there is no utilisation by week."
    return text
