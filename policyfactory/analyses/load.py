"""Utilisation and queue over time: how busy the machine is, and how much waits beside it.

Utilisation hardly tells policies apart, since all of them have the same work to do and a busy machine is busy under
each; what waits does. The backlog is what the waiting jobs ask for, in machines: 2 means that they would fill the
machine twice.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import LogAnalysis, check_place, whole_number
from policyfactory.analyses.estimates import median_of
from policyfactory.analyses.load_over_time import LoadCourse, LoadSums, bin_width, course_of, load_sums
from policyfactory.analyses.plots import Curve, Panel, draw_panels
from policyfactory.analyses.tables import (
    compared_cells,
    compared_columns,
    log_cells,
    log_columns,
    median_cell,
    policy_columns,
    policy_rows,
    stem_by_log,
)
from policyfactory.analyses.wording import differences_in_words, place_of, shared_unit
from policyfactory.core.text import counted, number_text
from policyfactory.core.units import DAY, HOUR, format_duration
from policyfactory.report.caveats import noun
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.statistics.intervals import MIN_CASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Load", "ObservedLoad"]

FloatArray = NDArray[np.float64]

_MEASURES = (
    ("utilisation", "utilisation", "%", "work done from the first to the last submission, in % of what is possible"),
    (
        "backlog",
        "backlog",
        "machines",
        "processors requested by waiting jobs / processors of the machine; mean over time",
    ),
    ("waiting", "waiting jobs", "jobs", "mean over time"),
    ("drain", "drain", "s", "from the last submission to the last end"),
)
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
        About so many points from its first to its last submission.

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
        logs = self.chosen_logs(evaluation)
        kept: dict[str, list[list[ObservedLoad]]] = {log: [seen[row] for row in evaluation.rows(log)] for log in logs}
        loads = {log: LoadOfLog([[one.sums for one in case] for case in cases]) for log, cases in kept.items()}
        courses = self._courses(evaluation, kept)
        tables = [_load_table(evaluation, loads), _weeks_table(evaluation, loads), _course_table(evaluation, courses)]
        pictures = tuple(
            Picture(
                stem,
                f"{log}, {place_of(evaluation, log, self.case)}: utilisation and backlog over time",
                functools.partial(_draw, courses[log], evaluation.policies),
                "The backlog is what the waiting jobs request, in machines. It tells the policies apart; utilisation "
                "hardly does, since the work is the same under each.",
            )
            for log, stem in stem_by_log("course", list(courses)).items()
        )
        paragraphs = load_in_words(evaluation, loads)
        return Section("load", "Load over time", paragraphs, tuple(table for table in tables if table.rows), pictures)

    def _courses(
        self, evaluation: Evaluation, kept: dict[str, list[list[ObservedLoad]]]
    ) -> dict[str, list[LoadCourse]]:
        """Return the courses of the chosen case of each log that has it, by policy."""
        loads = {}
        for log, cases in kept.items():
            for case in cases:
                own = [one.course for one in case if one.course is not None]
                if own:
                    loads[log] = own
        return loads


def _load_table(evaluation: Evaluation, loads: dict[str, LoadOfLog]) -> Table:
    logs = list(loads)
    columns = [
        *policy_columns(logs),
        Column(
            "offered",
            "%",
            "work of all jobs, in % of what the machine can do between the first and the last submission",
        ),
    ]
    for field, title, unit, text in _MEASURES:
        shown = (
            shared_unit(value for own in loads.values() for value in own.values(field).ravel()) if unit == "s" else ""
        )
        columns += compared_columns(title, unit, text, evaluation.baseline, shown)

    def cells(log: str, k: int) -> list[Cell]:
        own = [median_cell(loads[log].values("offered")[:, k])]
        for field, _, _, _ in _MEASURES:
            own += compared_cells(loads[log].values(field), k, lower_is_better=field != "utilisation")
        return own

    rows = policy_rows(logs, evaluation.policies, cells)
    return Table("load", "Load of the machine, and what waits", tuple(columns), rows)


def _weeks_table(evaluation: Evaluation, loads: dict[str, LoadOfLog]) -> Table:
    logs = list(loads)
    columns = (
        *log_columns(logs),
        Column("week", "", "of the case, from its first submission; a last part of less than six days is left out"),
        Column("cases", "cases", "that have this week"),
        Column("policy"),
        Column("utilisation", "%", "median over cases"),
        Column("difference", "%", f"from {evaluation.baseline}; median over cases, paired"),
    )
    rows = []
    for log, own in loads.items():
        for week in range(own.weeks):
            values = own.week(week)
            for k, policy in enumerate(evaluation.policies):
                head = (*log_cells(logs, log), Cell(str(week + 1)), Cell(median_of(values[:, k]).cases), Cell(policy))
                rows.append((*head, *compared_cells(values, k, lower_is_better=False)))
    shown = 10 * len(evaluation.policies)
    return Table("weeks", "Utilisation week by week", columns, tuple(rows), shown=shown)


def _course_table(evaluation: Evaluation, courses: dict[str, list[LoadCourse]]) -> Table:
    logs = list(courses)
    columns = (
        *log_columns(logs),
        Column("time", "s", "begin of the bin, from the first submission"),
        Column("policy"),
        Column("utilisation", "%"),
        Column("backlog", "machines"),
        Column("waiting jobs", "jobs"),
        Column("offered", "%", "work of the jobs submitted in the bin, in % of what the machine can do in it"),
    )
    rows = []
    for log, own in courses.items():
        for at in range(max(len(course.waiting) for course in own)):
            for course, policy in zip(own, evaluation.policies, strict=True):
                if at < len(course.waiting):
                    values = (course.utilisation[at], course.backlog[at], course.waiting[at], course.offered[at])
                    head = (*log_cells(logs, log), Cell(course.width * at), Cell(policy))
                    rows.append((*head, *(Cell(float(value)) for value in values)))
    return Table("course", "Load over time", columns, tuple(rows), "Means over the bin.", shown=0)


def _draw(courses: Sequence[LoadCourse], policies: Sequence[str]) -> Figure:
    width = courses[0].width
    bins = max(len(course.waiting) for course in courses)
    divisor, unit = (DAY, "d") if width * bins >= 2 * DAY else (HOUR, "h")
    label = f"time since the first submission ({unit})"

    def panel(title: str, y_label: str, field: str, together: int) -> Panel:
        steps = -(-bins // together)
        times = width * together * np.arange(steps + 1) / divisor
        curves = []
        for course, policy in zip(courses, policies, strict=True):
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


# In words. ------------------------------------------------------------------------------------------------------------


_FULL = 95.0  # % of offered load from which the queue grows for most of the time, whatever the policy


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LoadOfLog:
    """The loads of all cases of a log.

    Parameters
    ----------
    cases : list of list of LoadSums [case][policy]
        What was seen.
    """

    cases: list[list[LoadSums]]

    def values(self, field: str) -> FloatArray:
        """Return one field: float64 array (cases, policies)."""
        return np.array([[getattr(sums, field) for sums in case] for case in self.cases], dtype=np.float64)

    @property
    def weeks(self) -> int:
        """Whole weeks of the longest case."""
        return max(len(case[0].weeks) for case in self.cases)

    def week(self, week: int) -> FloatArray:
        """Return the utilisation of one week: float64 array (cases, policies), NaN where a case is shorter."""
        return np.array(
            [[sums.weeks[week] if week < len(sums.weeks) else np.nan for sums in case] for case in self.cases]
        )


def load_in_words(evaluation: Evaluation, loads: Mapping[str, LoadOfLog]) -> tuple[str, ...]:
    """Return a paragraph a log.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    loads : mapping of str to LoadOfLog
        The loads of each log.
    """
    return tuple(
        (f"{log}: " if len(loads) > 1 else "") + _log_in_words(evaluation, log, own) for log, own in loads.items()
    )


def _log_in_words(evaluation: Evaluation, log: str, own: LoadOfLog) -> str:
    policies, what = evaluation.policies, noun(evaluation, log)
    median = f" (medians over {what}s)" if len(own.cases) > 1 else ""
    offered, utilisation, backlog, waiting = (
        median_of(own.values(field)[:, 0]).value for field in ("offered", "utilisation", "backlog", "waiting")
    )
    if not np.isfinite(offered):
        return "All jobs come at one instant, so there is no load over time to speak of."
    text = (
        f"From the first to the last submission {offered:.1f} % of the machine's capacity is submitted and under "
        f"{policies[0]} {utilisation:.1f} % is done{median}; {number_text(waiting)} jobs wait on average, which "
        f"request {number_text(backlog)} times the machine."
    )
    if len(own.cases) > 1:
        most = int(np.argmax(own.values("backlog")[:, 0]))
        number = evaluation.cases[int(evaluation.rows(log)[most])].number
        largest = number_text(float(own.values("backlog")[most, 0]))
        text += f" Most waits in {place_of(evaluation, log, number)}: {largest} times the machine."
    if offered >= _FULL:
        text += " That is so much that the queue hardly empties, and the order of the queue matters most."
    if len(policies) > 1:
        text += _compared(own, policies, what)
    if not own.weeks:
        text += f" No {what} is a whole week long, so there is no utilisation by week."
    return text


def _compared(own: LoadOfLog, policies: tuple[str, ...], what: str) -> str:
    points, machines = ("points higher", "points lower"), ("machines more", "machines less")
    utilisation, backlog = own.values("utilisation"), own.values("backlog")
    text = differences_in_words(policies, utilisation, ("utilisation", "1"), points, lower_is_better=False)
    text += differences_in_words(policies, backlog, ("the backlog", "1"), machines)
    if len(own.cases) < MIN_CASES:
        text += f" No intervals: {counted(len(own.cases), what)}, {MIN_CASES} are needed."
    return text
