"""Utilisation and queue over time: how busy the machine is, and how much waits beside it.

Utilisation hardly tells policies apart, since all of them have the same work to do and a busy machine is busy under
each; what waits does. The backlog is what the waiting jobs ask for, in machines: 2 means that they would fill the
machine twice.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.common import (
    check_place,
    chosen_logs,
    log_cells,
    log_columns,
    place_of,
    shared_unit,
    stem_by_log,
    whole_number,
)
from policyfactory.analyses.course import Course, LoadSums, bin_width, course_of, load_sums
from policyfactory.analyses.curves import Curve, Panel, draw_panels
from policyfactory.analyses.load_words import LoadOfLog, load_in_words
from policyfactory.analyses.over_cases import cell_of, difference_cell, median_of
from policyfactory.core.units import DAY, HOUR, format_duration
from policyfactory.report.sections import Cell, Column, Picture, Section, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Load"]

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


class _Kept(NamedTuple):
    """What is kept of one schedule; the course of the chosen case only."""

    sums: LoadSums
    course: Course | None


@dataclasses.dataclass(frozen=True, slots=True)
class Load(Analysis):
    """Utilisation, backlog, waiting jobs and offered load over time.

    Parameters
    ----------
    case : int
        Number of the case whose course is shown.
    bins : int
        About so many points from its first to its last submission.
    log : str
        The log to look at; empty: each.

    Raises
    ------
    UsageError
        If ``case`` or ``bins`` is no whole number of at least 1.
    """

    name: ClassVar[str] = "load"

    case: int = 1
    bins: int = 200
    log: str = ""

    def __post_init__(self) -> None:
        whole_number(self.name, "case", self.case, 1)
        whole_number(self.name, "bins", self.bins, 1)

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse a log or a case that there is not."""
        check_place(cases, self.name, self.log, self.case)

    def observe(self, case: Case, schedule: Schedule) -> _Kept:
        """Return the load of a schedule, and its course if it is the chosen case's."""
        chosen = case.number == self.case and self.log in {"", case.log}
        return _Kept(load_sums(schedule), course_of(schedule, self.bins) if chosen else None)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the load of every policy, utilisation week by week, and the course of the chosen case."""
        logs = chosen_logs(evaluation, self.name, self.log)
        kept: dict[str, list[list[_Kept]]] = {log: [seen[row] for row in evaluation.rows(log)] for log in logs}
        found = {log: LoadOfLog([[one.sums for one in case] for case in cases]) for log, cases in kept.items()}
        courses = self._courses(evaluation, kept)
        tables = [_load_table(evaluation, found), _weeks_table(evaluation, found), _course_table(evaluation, courses)]
        pictures = tuple(
            Picture(
                stem,
                f"{log}, {place_of(evaluation, log, self.case)}: utilisation and backlog over time",
                functools.partial(_draw, courses[log], evaluation.policies),
                "The backlog is what the waiting jobs request, in machines. It tells the policies apart; utilisation "
                "hardly does, since the work is the same under each.",
            )
            for log, stem in (stem_by_log("course", list(courses)) if courses else {}).items()
        )
        told = load_in_words(evaluation, found)
        return Section("load", "Load over time", told, tuple(table for table in tables if table.rows), pictures)

    def _courses(self, evaluation: Evaluation, kept: dict[str, list[list[_Kept]]]) -> dict[str, list[Course]]:
        """Return the courses of the chosen case of each log that has it, by policy."""
        found = {}
        for log, cases in kept.items():
            for case in cases:
                own = [one.course for one in case if one.course is not None]
                if own:
                    found[log] = own
        return found


def _load_table(evaluation: Evaluation, found: dict[str, LoadOfLog]) -> Table:
    logs = list(found)
    columns = [
        *log_columns(logs),
        Column("policy"),
        Column(
            "offered",
            "%",
            "work of all jobs, in % of what the machine can do between the first and the last submission",
        ),
    ]
    for field, title, unit, text in _MEASURES:
        shown = (
            shared_unit(value for own in found.values() for value in own.values(field).ravel()) if unit == "s" else ""
        )
        minus = f"from {evaluation.baseline}; median over cases, paired"
        columns.append(Column(title, unit, f"{text}; median over cases", shown=shown))
        columns.append(Column(f"{title}, difference", unit, minus, shown=shown))
    rows = []
    for log, own in found.items():
        for k, policy in enumerate(evaluation.policies):
            cells = [*log_cells(logs, log), Cell(policy), cell_of(median_of(own.values("offered")[:, k]))]
            for field, _, _, _ in _MEASURES:
                values = own.values(field)
                cells.append(cell_of(median_of(values[:, k])))
                cells.append(_difference(field, values, k))
            rows.append(tuple(cells))
    return Table("load", "Load of the machine, and what waits", tuple(columns), tuple(rows))


def _difference(field: str, values: FloatArray, k: int) -> Cell:
    if k == 0:
        return Cell(None)
    lower = field != "utilisation"
    return difference_cell(values, k, lower_is_better=lower)


def _weeks_table(evaluation: Evaluation, found: dict[str, LoadOfLog]) -> Table:
    logs = list(found)
    columns = (
        *log_columns(logs),
        Column("week", "", "of the case, from its first submission; a last part of less than six days is left out"),
        Column("cases", "cases", "that have this week"),
        Column("policy"),
        Column("utilisation", "%", "median over cases"),
        Column("difference", "%", f"from {evaluation.baseline}; median over cases, paired"),
    )
    rows = []
    for log, own in found.items():
        for week in range(own.weeks):
            values = own.week(week)
            for k, policy in enumerate(evaluation.policies):
                estimate = median_of(values[:, k])
                cells = (Cell(str(week + 1)), Cell(estimate.cases), Cell(policy), cell_of(estimate))
                rows.append((*log_cells(logs, log), *cells, _difference("utilisation", values, k)))
    shown = 10 * len(evaluation.policies)
    return Table("weeks", "Utilisation week by week", columns, tuple(rows), shown=shown)


def _course_table(evaluation: Evaluation, courses: dict[str, list[Course]]) -> Table:
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


def _draw(courses: Sequence[Course], policies: Sequence[str]) -> Figure:
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
