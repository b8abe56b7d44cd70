"""Who wins and who loses: waits and slowdowns of users, sizes and run times under each policy against the baseline.

A group's mean is taken case by case, and so is its difference from the baseline: both policies ran the same jobs of the
group. What is told of the cases is their median, with the interval of every other comparison in the report.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.common import (
    check_place,
    chosen_logs,
    log_cells,
    log_columns,
    shared_unit,
    stem_by_log,
    texts,
    whole_number,
)
from policyfactory.analyses.group_table import GroupTable, gather
from policyfactory.analyses.grouping import GROUPINGS, GroupingName, GroupSums
from policyfactory.analyses.groups_picture import draw_groups
from policyfactory.analyses.groups_words import groups_in_words, summary_table
from policyfactory.analyses.over_cases import cell_of, mark_of
from policyfactory.core.errors import UsageError
from policyfactory.report.sections import Cell, Column, Picture, Section, Table

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Groups"]

_HEAD = (
    Column("group"),
    Column("jobs", "jobs", "jobs of the group in all cases"),
    Column("share of jobs", "%"),
    Column("share of work", "%", "processors x run time of the group's jobs, of all jobs' work"),
    Column("policy"),
)
_USERS = 20  # shown on the page


@dataclasses.dataclass(frozen=True, slots=True)
class Groups(Analysis):
    """Mean wait and mean bounded slowdown by group.

    Parameters
    ----------
    by : sequence of str
        Groupings: ``size`` (1, 2-4, 5-16, ... processors), ``runtime`` (actual run time), ``request`` (requested
        time), ``user``.
    min_jobs : int
        Groups with fewer jobs, all cases of a log together, are listed, but have no interval and are not named.
    log : str
        The log to look at; empty: each.

    Raises
    ------
    UsageError
        If there is no such grouping, or ``min_jobs`` is no whole number of at least 1.
    """

    name: ClassVar[str] = "groups"

    by: Sequence[GroupingName] = ("size", "runtime", "user")
    min_jobs: int = 30
    log: str = ""

    def __post_init__(self) -> None:
        by = texts(self.name, "by", self.by)
        for name in by:
            if name not in GROUPINGS:
                known = ", ".join(get_args(GroupingName))
                raise UsageError(f"analysis groups: there is no grouping {name!r}; choose from {known}")
        if not by:
            raise UsageError(f"analysis groups: by is empty; choose from {', '.join(get_args(GroupingName))}")
        object.__setattr__(self, "by", tuple(dict.fromkeys(by)))
        whole_number(self.name, "min_jobs", self.min_jobs, 1)

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse a log that there is not."""
        check_place(cases, self.name, self.log)

    def observe(self, case: Case, schedule: Schedule) -> tuple[GroupSums, ...]:
        """Return the sums of every grouping."""
        return tuple(GROUPINGS[name].sums(schedule) for name in self.by)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return who wins and who loses in words, a summary, all groups, and a picture a log."""
        logs = chosen_logs(evaluation, self.name, self.log)
        found = {
            log: [gather(evaluation, log, GROUPINGS[name], seen, at, self.min_jobs) for at, name in enumerate(self.by)]
            for log in logs
        }
        tables = [_table([found[log][at] for log in logs], self.min_jobs) for at in range(len(self.by))]
        pictures: list[Picture] = []
        if len(evaluation.policies) > 1:
            tables = [summary_table(evaluation, found, self.min_jobs, of) for of in ("wait", "bsld")] + tables
            pictures = [_picture(found[log], stem) for log, stem in stem_by_log("differences", logs).items()]
        told = groups_in_words(evaluation, found, self.min_jobs)
        return Section("groups", "Who wins, who loses", told, tuple(tables), tuple(pictures))


def _picture(tables: list[GroupTable], stem: str) -> Picture:
    first = tables[0]
    return Picture(
        stem,
        f"{first.log}: mean wait of each group minus its mean wait under {first.policies[0]}",
        functools.partial(draw_groups, tables),
        "Blue waits less, orange waits more; bold where the 95 % interval over cases leaves out zero. Below each group "
        "its share of the jobs. Of the users, those with most work.",
    )


def _table(found: Sequence[GroupTable], least: int) -> Table:
    logs, grouping = [table.log for table in found], found[0].grouping
    rows = [
        (*log_cells(logs, table.log), *row)
        for table in found
        for at in range(len(table.labels))
        for row in _rows(table, at)
    ]
    order = " Those with most work come first." if grouping.name == "user" else ""
    return Table(
        f"by-{grouping.name}",
        f"Mean wait and mean bounded slowdown by {grouping.title}",
        (*log_columns(logs), *_HEAD, *_measures(shared_unit(_waits(found)))),
        tuple(rows),
        f"Medians over cases, with 95 % intervals; none for groups with fewer than {least} jobs.{order}",
        shown=_USERS * len(found[0].policies) if grouping.name == "user" else None,
    )


def _waits(found: Sequence[GroupTable]) -> list[float]:
    return [each.value for table in found for row in table.wait.values for each in row]


def _measures(unit: str) -> tuple[Column, ...]:
    mean, minus = "median over cases of the mean of the group's jobs", "median over cases of that minus the baseline's"
    return (
        Column("mean wait", "s", mean, shown=unit),
        Column("wait difference", "s", minus, shown=unit),
        Column("mean bsld", "1", f"bounded slowdown; {mean}"),
        Column("bsld difference", "1", minus),
        Column("cases", "cases", "cases in which the group has jobs"),
    )


def _rows(table: GroupTable, at: int) -> list[tuple[Cell, ...]]:
    """Return a row a policy for one group."""
    head = (
        Cell(table.labels[at]),
        Cell(int(table.jobs[at])),
        Cell(float(table.job_share[at])),
        Cell(float(table.work_share[at])),
    )
    rows = []
    for k, policy in enumerate(table.policies):
        cells = [Cell(policy)]
        for measure in (table.wait, table.bsld):
            difference = measure.differences[k][at]
            cells.append(cell_of(measure.values[k][at]))
            cells.append(Cell(None) if k == 0 else cell_of(difference, mark_of(difference)))
        rows.append((*head, *cells, Cell(table.wait.values[k][at].cases)))
    return rows
