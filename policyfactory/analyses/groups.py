"""Who wins and who loses: waits and slowdowns of users, sizes and run times under each policy against the baseline.

A group's mean is taken case by case, and so is its difference from the baseline: both policies ran the same jobs of the
group. What is said of the cases is their median, with the interval of every other comparison in the report.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np

from policyfactory.analyses.analysis import LogAnalysis, texts, whole_number
from policyfactory.analyses.grouping import GROUPINGS, GroupingName, GroupSums, GroupTable, gather
from policyfactory.analyses.groups_front import front_table
from policyfactory.analyses.groups_words import groups_in_words, summary_table
from policyfactory.analyses.logs import LogView
from policyfactory.analyses.tables import cell_of, log_column, stem_by_log
from policyfactory.analyses.wording import shared_unit
from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import UsageError
from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened
from policyfactory.report.numbers import Scale, scale_for
from policyfactory.report.sections import Cell, Column, Columns, Picture, Section, Table
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Groups"]

_USERS = 20  # shown on the page


@dataclasses.dataclass(frozen=True, slots=True)
class Groups(LogAnalysis):
    """Mean wait and mean bounded slowdown by group.

    Parameters
    ----------
    by : sequence of str
        Groupings: ``size`` (1, 2-4, 5-16, ... processors), ``runtime`` (actual run time), ``request`` (requested
        time), ``user``.
    min_jobs : int
        Groups with fewer jobs, all cases of a log together, are listed, but have no interval; of these only the class
        that loses most is named.

    Raises
    ------
    UsageError
        If there is no such grouping, or ``min_jobs`` is no whole number of at least 1.
    """

    name: ClassVar[str] = "groups"

    by: Sequence[GroupingName] = ("size", "runtime", "user")
    min_jobs: int = 30

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

    def observe(self, case: Case, schedule: Schedule) -> tuple[GroupSums, ...]:
        """Return the sums of every grouping."""
        return tuple(GROUPINGS[name].sums(schedule) for name in self.by)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return who wins and who loses in words, a summary, all groups, and a picture a log."""
        logs = self.by_log(evaluation, seen, LogView)
        gathered = [gather(own, GROUPINGS[name], at, self.min_jobs) for own in logs for at, name in enumerate(self.by)]
        groups = [table for table in gathered if table is not None]
        several, names = len(logs) > 1, dict.fromkeys(table.grouping.name for table in groups)
        tables = [self._table([table for table in groups if table.grouping.name == name], several) for name in names]
        pictures: list[Picture] = []
        if len(evaluation.policies) > 1 and groups:
            tables = [
                front_table(groups, several=several),
                *(summary_table(groups, self.min_jobs, of, several) for of in ("wait", "bsld")),
                *tables,
            ]
            stems = stem_by_log("differences", [own.log for own in logs])
            drawn = ([table for table in groups if table.log == log] for log in stems)
            pictures = [_picture(own, stem) for own, stem in zip(drawn, stems.values(), strict=True) if own]
        paragraphs = groups_in_words(logs, groups, self.min_jobs, by_user="user" in self.by)
        return Section("groups", "Who wins, who loses", paragraphs, tuple(tables), tuple(pictures))

    def _table(self, tables: Sequence[GroupTable], several: bool) -> Table:  # noqa: FBT001 (a column is there or not)
        """Return all groups of one grouping, a row a policy."""
        first = tables[0]
        by_user, policies = first.grouping.name == "user", first.policies
        unit = shared_unit(each.value for own in tables for row in own.wait.values for each in row)
        mean = "median over cases of the mean of the group's jobs"
        columns = {
            **log_column(several=several),
            Column("group"): lambda own, group, _: own.labels[group],
            Column("jobs", "jobs", "jobs of the group in all cases"): lambda own, group, _: int(own.jobs[group]),
            Column("share of jobs", "%"): lambda own, group, _: float(own.job_share[group]),
            Column("share of work", "%", "processors x run time of the group's jobs, of all jobs' work"): (
                lambda own, group, _: float(own.work_share[group])
            ),
            Column("policy"): lambda own, _, place: own.policies[place],
            **_compared(Column("mean wait", "s", mean, unit), "wait difference", "wait"),
            **_compared(Column("mean bsld", "1", f"bounded slowdown; {mean}"), "bsld difference", "bsld"),
            Column("cases", "cases", "cases in which the group has jobs"): (
                lambda own, group, place: own.wait.values[place][group].cases
            ),
        }
        rows = [
            (own, group, place) for own in tables for group in range(len(own.labels)) for place in range(len(policies))
        ]
        few = f"none for groups with fewer than {self.min_jobs} jobs."
        return Table.of(
            f"by-{first.grouping.name}",
            f"Mean wait and mean bounded slowdown by {first.grouping.title}",
            columns,
            rows,
            f"Medians over cases, with 95 % intervals; {few}{' Those with most work come first.' if by_user else ''}",
            shown=_USERS * len(policies) if by_user else None,
        )


def _compared(column: Column, title: str, field: str) -> Columns:
    """Return the columns of a measure and of its difference from the baseline, ``title``."""

    def value(own: GroupTable, group: int, place: int) -> Cell:
        return cell_of(getattr(own, field).values[place][group])

    def difference(own: GroupTable, group: int, place: int) -> Cell | None:
        measure = getattr(own, field)
        return cell_of(measure.differences[place][group], measure.marks[place][group]) if place else None

    minus = Column(title, column.unit, "median over cases of that minus the baseline's", column.shown)
    return {column: value, minus: difference}


def _picture(tables: list[GroupTable], stem: str) -> Picture:
    return Picture(
        stem,
        f"{tables[0].log}: mean wait of each group minus its mean wait under {tables[0].baseline}",
        functools.partial(draw_groups, tables),
        "Blue waits less, orange waits more; bold where that is shown. Below each group "
        "its share of the jobs. Of the users, those with most work.",
    )


# The picture. ---------------------------------------------------------------------------------------------------------


_USERS_DRAWN = 8  # those with most work; the table has all
_LESS, _MORE = COLOURS[0], COLOURS[1]
_FAINTEST, _STRONGEST = 0.06, 0.85


def draw_groups(tables: Sequence[GroupTable]) -> Figure:
    """Draw the difference of each group's mean wait from the baseline's: a panel a grouping, a row a policy.

    Parameters
    ----------
    tables : sequence of GroupTable
        The groupings of one log, with at least two policies.

    Returns
    -------
    Figure
    """
    count = len(tables[0].policies) - 1
    figure = new_figure(7.0, 0.5 + len(tables) * (1.15 + 0.34 * count))
    panels = figure.subplots(len(tables), 1, squeeze=False)[:, 0]
    shown = [each.value for table in tables for row in table.wait.differences for each in row[: _most(table)]]
    scale = scale_for("s", shown)
    strongest = float(np.max(np.abs([value for value in shown if np.isfinite(value)]), initial=0.0)) or 1.0
    for axes, table in zip(panels, tables, strict=True):
        _panel(axes, table, scale, strongest)
    figure.suptitle(f"Mean wait minus that under {shortened(tables[0].baseline, 30)} ({scale.label})", fontsize=11)
    return figure


def _most(table: GroupTable) -> int:
    return _USERS_DRAWN if table.grouping.name == "user" else len(table.labels)


def _panel(axes: Any, table: GroupTable, scale: Scale, strongest: float) -> None:
    columns = min(_most(table), len(table.labels))
    rows = table.wait.differences[1:]
    colours = np.ones((len(rows), columns, 3))
    for k, row in enumerate(rows):
        for g, each in enumerate(row[:columns]):
            colours[k, g] = _colour(each.value / strongest)
            sure = table.wait.marks[k + 1][g] in {"better", "worse"}
            _number(axes, (g, k), each, scale, sure=sure)
    axes.imshow(colours, aspect="auto")
    shares = [f"{share:.2g} %" if share < 99.5 else "100 %" for share in table.job_share[:columns]]
    ticks = [f"{name}\n{share}" for name, share in zip(table.shorts[:columns], shares, strict=True)]
    axes.set_xticks(range(columns), ticks, fontsize=8)
    axes.set_yticks(range(len(rows)), [shortened(name, 16) for name in table.policies[1:]], fontsize=9)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)
    names = {"size": "processors", "runtime": "actual run time", "request": "requested time", "user": "user"}
    axes.set_title(f"by {names[table.grouping.name]}", loc="left", fontsize=10)


def _colour(strength: float) -> FloatArray:
    """Return white for 0, blue for less, orange for more; a square root makes small differences visible."""
    from matplotlib.colors import to_rgb

    if strength == 0 or not np.isfinite(strength):
        return np.ones(3)
    full = np.array(to_rgb(_LESS if strength < 0 else _MORE))
    part = _FAINTEST + (_STRONGEST - _FAINTEST) * float(np.sqrt(abs(strength)))
    mixed: FloatArray = 1 - part * (1 - full)
    return mixed


def _number(axes: Any, place: tuple[int, int], each: Estimate, scale: Scale, *, sure: bool) -> None:
    if not np.isfinite(each.value):
        return
    axes.text(
        *place,
        _number_text(each.value / scale.divisor),
        ha="center",
        va="center",
        fontsize=8.5,
        fontweight="bold" if sure else "normal",
    )


def _number_text(value: float) -> str:
    """Return a difference with two digits after the point at most; what is not zero is not shown as zero."""
    size = abs(value)
    if size == 0:
        return "0"
    return f"{value:+.1g}" if size < 0.005 else f"{value:+.{0 if size >= 100 else 1 if size >= 10 else 2}f}"
