"""The longest waits, and what the threshold did about them.

How often the threshold acted can be told from the schedule alone: a job whose wait at its start is longer than the
threshold was overdue, so it had been put at the head of the queue. Some of these were started as backfilled jobs while
another waited ahead of them; the others were started from the head.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.common import (
    check_place,
    chosen_logs,
    log_cells,
    log_columns,
    shared_unit,
    stem_by_log,
    texts,
)
from policyfactory.analyses.curves import Curve, Panel, draw_panels
from policyfactory.analyses.over_cases import cell_of, difference_cell, median_of
from policyfactory.analyses.starvation_words import starvation_in_words
from policyfactory.analyses.waits import LogWaits, Waits, waits_of
from policyfactory.core.errors import UsageError
from policyfactory.core.units import MINUTE, format_duration, parse_duration
from policyfactory.report.sections import Cell, Column, Picture, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Starvation"]

FloatArray = NDArray[np.float64]

# The curve's points: from a minute to four years, four in each doubling of the wait.
_CURVE = tuple(round(MINUTE * 2 ** (k / 4)) for k in range(85))

_ACTED = (
    Column("threshold", "", "waits beyond it put a job at the head of the queue"),
    Column("overdue", "jobs", "jobs whose wait at their start was longer than the threshold"),
    Column("overdue, share", "%", "of the jobs of a case; median over cases"),
    Column("from the head", "jobs", "overdue jobs that were started with none waiting ahead of them"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Starvation(Analysis):
    """Longest waits, p99, and jobs that waited longer than the threshold.

    Parameters
    ----------
    beyond : sequence of str
        Waits; how many jobs waited longer than each is counted, whatever the threshold.
    log : str
        The log to look at; empty: each.

    Raises
    ------
    UsageError
        If one of ``beyond`` is no finite duration.
    """

    name: ClassVar[str] = "starvation"

    beyond: Sequence[str] = ("20h", "40h", "1w")
    log: str = ""

    def __post_init__(self) -> None:
        given = texts(self.name, "beyond", self.beyond)
        for text in given:
            if math.isinf(parse_duration(text)):
                raise UsageError(f"analysis starvation: beyond has {text!r}; give waits as text, for example 20h, 1w")
        object.__setattr__(self, "beyond", tuple(sorted(set(given), key=parse_duration)))

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse a log that there is not."""
        check_place(cases, self.name, self.log)

    def observe(self, case: Case, schedule: Schedule) -> Waits:
        """Return the longest wait and how many jobs waited longer than what."""
        return waits_of(schedule, (*(int(parse_duration(text)) for text in self.beyond), *_CURVE))

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the longest waits, the counts, the words, and how the waits are distributed."""
        logs = chosen_logs(evaluation, self.name, self.log)
        found = {log: LogWaits(log, evaluation.policies, [seen[row] for row in evaluation.rows(log)]) for log in logs}
        tables = (
            _longest_table(evaluation, found),
            _waits_table(evaluation, found),
            _overdue_table(found, self.beyond),
        )
        pictures = tuple(
            Picture(
                stem,
                f"{log}: how many jobs wait longer than so long",
                functools.partial(_draw, found[log], len(self.beyond)),
                "Both axes are logarithmic: the right end of a curve is the longest wait of one job.",
            )
            for log, stem in stem_by_log("waits", logs).items()
            if any(waits.longest > MINUTE for case in found[log].cases for waits in case)
        )
        told = starvation_in_words(evaluation, found, self.beyond)
        return Section("starvation", "The longest waits, and the threshold", told, tables, pictures)


def _longest_table(evaluation: Evaluation, found: dict[str, LogWaits]) -> Table:
    logs = list(found)
    unit = shared_unit(own.longest(k)[1].longest for own in found.values() for k in range(len(own.policies)))
    columns = (
        *log_columns(logs),
        Column("policy"),
        Column("longest wait", "s", "of any job in any case", shown=unit),
        Column("case"),
        Column("job", "", "its id in the log"),
        Column("user"),
        Column("processors", "processors"),
        Column("requested time", "s"),
        Column("run time", "s"),
    )
    rows = []
    for log, own in found.items():
        for k, policy in enumerate(own.policies):
            row, waits = own.longest(k)
            number = evaluation.cases[int(evaluation.rows(log)[row])].number
            user = "unknown" if waits.user < 0 else str(waits.user)
            about = (str(number), str(waits.job_id), user, waits.processors, waits.requested, waits.run_time)
            cells = (Cell(None),) * 6 if waits.longest == 0 else tuple(Cell(value) for value in about)
            rows.append((*log_cells(logs, log), Cell(policy), Cell(waits.longest), *cells))
    return Table("longest", "The job that waits longest under each policy", columns, tuple(rows))


def _waits_table(evaluation: Evaluation, found: dict[str, LogWaits]) -> Table:
    logs, minus = list(found), f"from {evaluation.baseline}; median over cases, paired"
    unit = shared_unit(value for own in found.values() for value in own.values("longest").ravel())
    columns = (
        *log_columns(logs),
        Column("policy"),
        Column("p99 wait", "s", "99 % of a case's jobs wait less; median over cases", shown=unit),
        Column("p99 wait, difference", "s", minus, shown=unit),
        Column("longest wait", "s", "of a case; median over cases", shown=unit),
        Column("longest wait, difference", "s", minus, shown=unit),
    )
    rows = []
    for log, own in found.items():
        measures = (own.values("p99"), own.values("longest"))
        for k, policy in enumerate(own.policies):
            cells = [*log_cells(logs, log), Cell(policy)]
            for values in measures:
                cells.append(cell_of(median_of(values[:, k])))
                cells.append(Cell(None) if k == 0 else difference_cell(values, k))
            rows.append(tuple(cells))
    return Table("waits", "The long waits of a case", columns, tuple(rows))


def _overdue_table(found: dict[str, LogWaits], beyond: Sequence[str]) -> Table:
    logs = list(found)
    acted = any(own.has_threshold(k) for own in found.values() for k in range(len(own.policies)))
    columns = [
        *log_columns(logs),
        Column("policy"),
        *(_ACTED if acted else ()),
    ]
    for text in beyond:
        columns.append(Column(f"over {text}", "jobs", f"jobs that waited longer than {text}"))
        columns.append(Column(f"over {text}, share", "%", "of the jobs of a case; median over cases"))
    rows = []
    for log, own in found.items():
        for k, policy in enumerate(own.policies):
            cells = [*log_cells(logs, log), Cell(policy), *(_acted_cells(own, k) if acted else ())]
            for at in range(len(beyond)):
                share = median_of(own.beyond_share(at)[:, k])
                cells += [Cell(own.beyond(at, k)), cell_of(share)]
            rows.append(tuple(cells))
    return Table("overdue", "Jobs that waited too long", tuple(columns), tuple(rows), "Jobs are those of all cases.")


def _acted_cells(own: LogWaits, k: int) -> list[Cell]:
    if not own.has_threshold(k):
        return [Cell("none"), Cell(None), Cell(None), Cell(None)]
    share = median_of(own.share("overdue")[:, k])
    counts = (Cell(own.count("overdue", k)), cell_of(share), Cell(own.count("from_head", k)))
    return [Cell(own.threshold_text(k)), *counts]


def _draw(own: LogWaits, first: int) -> Figure:
    """Draw the share of the jobs that wait longer than x; the curve's counts begin at place ``first``."""
    x = np.array(_CURVE, dtype=np.float64)
    curves = []
    for k, policy in enumerate(own.policies):
        count = np.array([own.beyond(first + at, k) for at in range(len(_CURVE))], dtype=np.float64)
        there = count > 0
        end = max(own.longest(k)[1].longest, MINUTE)
        curves.append(Curve(policy, np.append(x[there], end), 100.0 * np.append(count[there], 1.0) / own.jobs))
    thresholds = {own.threshold(k) for k in range(len(own.policies))} - {math.inf}
    marks = [(theta, f"threshold {format_duration(theta)}") for theta in sorted(thresholds) if theta >= MINUTE]
    panel = Panel(
        f"{own.jobs:,} jobs", "wait", "jobs that wait longer (%)", curves, durations=True, log_y=True, marks=marks
    )
    return draw_panels([panel], height=3.4)
