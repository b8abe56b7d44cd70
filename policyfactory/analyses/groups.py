"""Who wins and who loses: waits and slowdowns of users, sizes and run times under each policy against the baseline.

A group's mean is taken case by case, and so is its difference from the baseline: both policies ran the same jobs of the
group. What is told of the cases is their median, with the interval of every other comparison in the report.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import LogAnalysis, texts, whole_number
from policyfactory.analyses.estimates import mark_of
from policyfactory.analyses.grouping import GROUPINGS, GroupingName, GroupSums, GroupTable, gather
from policyfactory.analyses.groups_words import groups_in_words, summary_table
from policyfactory.analyses.tables import cell_of, log_cells, log_columns, stem_by_log
from policyfactory.analyses.wording import shared_unit
from policyfactory.core.errors import UsageError
from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened
from policyfactory.report.numbers import Scale, scale_for
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
class Groups(LogAnalysis):
    """Mean wait and mean bounded slowdown by group.

    Parameters
    ----------
    by : sequence of str
        Groupings: ``size`` (1, 2-4, 5-16, ... processors), ``runtime`` (actual run time), ``request`` (requested
        time), ``user``.
    min_jobs : int
        Groups with fewer jobs, all cases of a log together, are listed, but have no interval and are not named.

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
        logs = self.chosen_logs(evaluation)
        grouped = {
            log: [gather(evaluation, log, GROUPINGS[name], seen, at, self.min_jobs) for at, name in enumerate(self.by)]
            for log in logs
        }
        tables = [_table([grouped[log][at] for log in logs], self.min_jobs) for at in range(len(self.by))]
        pictures: list[Picture] = []
        if len(evaluation.policies) > 1:
            tables = [summary_table(evaluation, grouped, self.min_jobs, of) for of in ("wait", "bsld")] + tables
            pictures = [_picture(grouped[log], stem) for log, stem in stem_by_log("differences", logs).items()]
        paragraphs = groups_in_words(evaluation, grouped, self.min_jobs)
        return Section("groups", "Who wins, who loses", paragraphs, tuple(tables), tuple(pictures))


def _picture(tables: list[GroupTable], stem: str) -> Picture:
    first = tables[0]
    return Picture(
        stem,
        f"{first.log}: mean wait of each group minus its mean wait under {first.policies[0]}",
        functools.partial(draw_groups, tables),
        "Blue waits less, orange waits more; bold where the 95 % interval over cases leaves out zero. Below each group "
        "its share of the jobs. Of the users, those with most work.",
    )


def _table(grouped: Sequence[GroupTable], least: int) -> Table:
    logs, grouping = [table.log for table in grouped], grouped[0].grouping
    rows = [
        (*log_cells(logs, table.log), *row)
        for table in grouped
        for at in range(len(table.labels))
        for row in _rows(table, at)
    ]
    order = " Those with most work come first." if grouping.name == "user" else ""
    return Table(
        f"by-{grouping.name}",
        f"Mean wait and mean bounded slowdown by {grouping.title}",
        (*log_columns(logs), *_HEAD, *_measures(shared_unit(_waits(grouped)))),
        tuple(rows),
        f"Medians over cases, with 95 % intervals; none for groups with fewer than {least} jobs.{order}",
        shown=_USERS * len(grouped[0].policies) if grouping.name == "user" else None,
    )


def _waits(grouped: Sequence[GroupTable]) -> list[float]:
    return [each.value for table in grouped for row in table.wait.values for each in row]


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
    unit = scale.label
    figure.suptitle(f"Mean wait minus that under {shortened(tables[0].policies[0], 30)} ({unit})", fontsize=11)
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
            _number(axes, (g, k), each, scale)
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


def _colour(strength: float) -> NDArray[np.float64]:
    """Return white for 0, blue for less, orange for more; a square root makes small differences visible."""
    from matplotlib.colors import to_rgb

    if strength == 0 or not np.isfinite(strength):
        return np.ones(3)
    full = np.array(to_rgb(_LESS if strength < 0 else _MORE))
    part = _FAINTEST + (_STRONGEST - _FAINTEST) * float(np.sqrt(abs(strength)))
    mixed: NDArray[np.float64] = 1 - part * (1 - full)
    return mixed


def _number(axes: Any, place: tuple[int, int], each: Estimate, scale: Scale) -> None:
    if not np.isfinite(each.value):
        return
    sure = mark_of(each) in {"better", "worse"}
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
