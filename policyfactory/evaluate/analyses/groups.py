"""Who wins and who loses: waits and slowdowns of users, sizes and run times under each policy against the baseline.

A group's mean is taken case by case, and so is its difference from the baseline: both policies ran the same jobs of the
group. What is said of the cases is their median, with the interval of every other comparison in the report.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted, enumerated, number_text, shortened
from policyfactory.evaluate.analyses.analysis import (
    LogAnalysis,
    LogView,
    cell_of,
    difference_text,
    log_column,
    shared_unit,
    stem_by_log,
    texts,
    whole_number,
)
from policyfactory.evaluate.analyses.grouping import GROUPINGS, GroupingName, GroupSums, GroupTable, Measure, gather
from policyfactory.evaluate.picture import draw_cells, panels_down
from policyfactory.report.sections import Cell, Column, Columns, Picture, Scale, Section, Table, scale_for
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.intervals import MIN_CASES, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Groups", "MeasureName", "front_table", "groups_in_words", "summary_table"]

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
    names = {"size": "processors", "runtime": "actual run time", "request": "requested time", "user": "user"}
    titles = [f"by {names[table.grouping.name]}" for table in tables]
    figure, panels = panels_down(titles, [0.4 + 0.34 * (len(tables[0].policies) - 1)] * len(tables))
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
    rows = [row[:columns] for row in table.wait.differences[1:]]
    values = np.array([[each.value for each in row] for row in rows])
    texts = [[_number_text(value / scale.divisor) if np.isfinite(value) else "" for value in row] for row in values]
    sure = [[mark in {"better", "worse"} for mark in marks[:columns]] for marks in table.wait.marks[1:]]
    # Blue waits less; a square root makes small differences visible.
    draw_cells(axes, -np.sign(values) * np.sqrt(np.abs(values) / strongest), texts, sure)
    shares = [f"{share:.2g} %" if share < 99.5 else "100 %" for share in table.job_share[:columns]]
    ticks = [f"{name}\n{share}" for name, share in zip(table.shorts[:columns], shares, strict=True)]
    axes.set_xticks(range(columns), ticks, fontsize=8)
    axes.set_yticks(range(len(rows)), [shortened(name, 16) for name in table.policies[1:]], fontsize=9)


def _number_text(value: float) -> str:
    """Return a difference with two digits after the point at most; what is not zero is not shown as zero."""
    size = abs(value)
    if size == 0:
        return "0"
    return f"{value:+.1g}" if size < 0.005 else f"{value:+.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


# Who wins and who loses at a glance -----------------------------------------------------------------------------------

# The groups that differ, a column a policy; all others in one sentence.


_CLASSES = 6  # groups of one grouping and log; those that move most
_MOST_USERS = 3
_UNTESTED = "No intervals: this is what happened to these jobs, and not what would happen to others."


def front_table(tables: Sequence[GroupTable], *, several: bool) -> Table:
    """Return how much longer or shorter the groups wait than under the baseline.

    Parameters
    ----------
    tables : sequence of GroupTable
        The groupings of each log, with at least two policies.
    several : bool
        Whether there are several logs.
    """
    first = tables[0]
    rows, same, fewer, few = [], [], [], []
    for table in tables:
        worst = {table.worst_without_interval(place) for place in range(1, len(table.policies))} - {None}
        moved = [group for group in range(len(table.labels)) if group in worst or _moves(table, group)]
        most = _MOST_USERS if table.grouping.name == "user" else _CLASSES
        top = sorted(moved, key=lambda group: -_largest(table, group))[:most]
        kept = [group for group in moved if group in top or group in worst]
        rows += [(table, group) for group in kept]
        where = f"{table.log}, " if several else ""
        few += [
            f"{where}{table.grouping.phrase}{table.labels[group]} ({counted(int(table.jobs[group]), 'job')})"
            for group in kept
            if not table.enough[group]
        ]
        if quiet := len(table.labels) - len(moved):
            same.append(f"{where}{quiet} of {counted(len(table.labels), *_named(table))}")
        if more := len(moved) - len(kept):
            fewer.append(f"{where}{counted(more, *_named(table))}")
    shown = [each.value for own, group in rows for row in own.wait.differences[1:] for each in [row[group]]]
    unit = shared_unit(value for value in shown if np.isfinite(value))

    def difference(place: int, own: GroupTable, group: int) -> Cell:
        mark = own.wait.marks[place][group]
        return Cell(None) if mark == "no difference" else cell_of(own.wait.differences[place][group], mark)

    minus = f"mean wait minus that under {first.baseline}"
    columns = {
        **log_column(several=several),
        Column("group"): lambda own, group: f"{own.grouping.phrase}{own.labels[group]}",
        Column("share of jobs", "%"): lambda own, group: float(own.job_share[group]),
    } | {
        Column(name, "s", minus, unit): lambda own, group, place=place: difference(place, own, group)
        for place, name in enumerate(first.policies)
        if place
    }
    words = ["An empty cell: no difference is shown." if any(map(_tested, tables)) else _UNTESTED]
    words += [f"Too few jobs for an interval, but those that lose most: {enumerated(few)}." if few else ""]
    words += [f"No difference is shown, or nothing is known, for {enumerated(same)}." if same else ""]
    words += [f"Left out, since they differ less: {enumerated(fewer)}." if fewer else ""]
    note = " ".join(text for text in words if text)
    title = f"Mean wait of a group minus its mean wait under {first.baseline}"
    made = Table.of("who", title, columns, rows, note)
    return dataclasses.replace(made, names=2 if several else 1, front=True)


def _named(table: GroupTable) -> tuple[str, str]:
    many = table.grouping.many
    return many.removesuffix("es") if many.endswith("classes") else many.removesuffix("s"), many


def _moves(table: GroupTable, group: int) -> bool:
    """Return whether a group differs under any policy: by its intervals, or, where none has any, at all."""
    if _tested(table):
        return any(row[group] in {"better", "worse"} for row in table.wait.marks)
    return bool(table.enough[group]) and any(_size(row[group]) > 0 for row in table.wait.differences[1:])


def _tested(table: GroupTable) -> bool:
    return any(each.interval for row in table.wait.differences for each in row)


def _largest(table: GroupTable, group: int) -> float:
    return max(_size(row[group]) for row in table.wait.differences[1:])


def _size(each: Estimate) -> float:
    return abs(each.value) if np.isfinite(each.value) else 0.0


# The groups in words --------------------------------------------------------------------------------------------------

# The groups in words, and the table that sums them up: how many wait less or more, who is hit worst, who gains.


MeasureName = Literal["wait", "bsld"]
_IN_WORDS = 6  # policies that are described in words, all logs together; the table has all


@dataclasses.dataclass(frozen=True, slots=True)
class _Score:
    """How the groups of one grouping fare under one policy.

    Parameters
    ----------
    groups : int
        All of them.
    compared : int
        Those that have an interval, or, where none has, enough jobs.
    tested : bool
        Whether any has an interval. Then a group differs if that is shown; else if its value is not zero.
    less, more : int
        Groups that have less, and more, than under the baseline.
    worst, best : int or None
        Of these the ones that lose and gain most.
    few : int or None
        The class that loses more than any of these, but has no interval.
    """

    groups: int
    compared: int
    tested: bool
    less: int
    more: int
    worst: int | None
    best: int | None
    few: int | None

    @property
    def worst_of_all(self) -> int | None:
        """The group that loses most, with an interval or without."""
        return self.worst if self.few is None else self.few


def _score(table: GroupTable, measure: Measure, k: int) -> _Score:
    own = measure.differences[k]
    verdicts = {int(g): measure.marks[k][g] for g in np.flatnonzero(table.enough)}
    tested = any(verdicts.values())
    less = [g for g, word in verdicts.items() if (word == "better" if tested else own[g].value < 0)]
    more = [g for g, word in verdicts.items() if (word == "worse" if tested else own[g].value > 0)]
    worst = max(more, key=lambda g: own[g].value, default=None)
    few = table.worst_without_interval(k) if measure is table.wait else None
    return _Score(
        len(table.labels),
        sum(bool(word) or not tested for word in verdicts.values()),
        tested,
        len(less),
        len(more),
        worst,
        min(less, key=lambda g: own[g].value, default=None),
        None if few == worst else few,
    )


def summary_table(tables: Sequence[GroupTable], least: int, of: MeasureName, several: bool) -> Table:  # noqa: FBT001
    """Return a row for each log, policy and grouping: how many groups fare better, who is hit worst, who gains most.

    Parameters
    ----------
    tables : sequence of GroupTable
        The groupings of each log.
    least : int
        Jobs that a group needs.
    of : {"wait", "bsld"}
        Which measure.
    several : bool
        Whether there are several logs.
    """
    base, measure = tables[0].baseline, getattr(tables[0], of)
    waits = [each.value for table in tables for row in table.wait.values for each in row]
    unit = shared_unit(waits) if of == "wait" else ""
    few = f"groups with jobs in fewer than {MIN_CASES} cases, or fewer than {least} jobs"

    def label(group: str) -> Callable[[GroupTable, int, _Score], str]:
        return lambda own, _, score: "none" if (at := getattr(score, group)) is None else own.labels[at]

    def difference(group: str) -> Callable[[GroupTable, int, _Score], Cell | None]:
        def cell(own: GroupTable, k: int, score: _Score) -> Cell | None:
            at = getattr(score, group)
            if at is None:
                return None
            measure = getattr(own, of)
            return cell_of(measure.differences[k][at], measure.marks[k][at])

        return cell

    shown, minus = "groups whose mean is shown to be", f"its mean minus that under {base}"
    extreme = "most, of those that are shown to differ"
    rises = f"{extreme}, or a class without an interval that waits longer still" if of == "wait" else extreme
    columns = {
        **log_column(several=several),
        Column("policy"): lambda own, k, _: own.policies[k],
        Column("by"): lambda own, *_: own.grouping.title,
        Column("lower", "groups", f"{shown} lower than under {base}"): lambda _, __, score: score.tested * score.less,
        Column("higher", "groups", f"{shown} higher than under {base}"): lambda _, __, score: score.tested * score.more,
        Column("same", "groups", "groups for which no difference is shown"): (
            lambda _, __, score: score.tested * (score.compared - score.less - score.more)
        ),
        Column("not known", "groups", few): lambda _, __, score: score.groups - score.tested * score.compared,
        Column("worst hit", "", f"the group whose mean rises {rises}"): label("worst_of_all"),
        Column("its loss", measure.unit, minus, unit): difference("worst_of_all"),
        Column("best off", "", f"the group whose mean falls {extreme}"): label("best"),
        Column("its gain", measure.unit, minus, unit): difference("best"),
    }
    rows = [
        (table, k, _score(table, getattr(table, of), k))
        for log in dict.fromkeys(table.log for table in tables)
        for k in range(1, len(tables[0].policies))
        for table in tables
        if table.log == log
    ]
    return Table.of(
        f"summary-{of}",
        f"Groups whose mean {measure.title} is lower or higher than under {base}",
        columns,
        rows,
        "Differences are medians over cases, paired by case. Where no group has an interval, worst hit and best off "
        "are those that differ most.",
    )


# Words. --------------------------------------------------------------------------------------------------------------


def groups_in_words(
    logs: Sequence[LogView], tables: Sequence[GroupTable], least: int, *, by_user: bool
) -> tuple[str, ...]:
    """Return who wins and who loses, a paragraph a log and policy.

    Parameters
    ----------
    logs : sequence of LogView
        The logs.
    tables : sequence of GroupTable
        The groupings of each log.
    least : int
        Jobs that a group needs to be named.
    by_user : bool
        Whether users are among the groupings that were asked for.
    """
    first = logs[0]
    nobody = [own.log for own in logs if by_user and not _groups(own, tables, "user")]
    without = [f"{enumerated(nobody)}: no job has a known user, so there are no groups by user."] if nobody else []
    if len(first.policies) == 1:
        alone = f"Only {first.baseline} was run: the tables say who waits how long, and there is nothing to compare."
        return (alone, *without)
    grouped = [own for own in logs if _groups(own, tables)]
    if not grouped:
        return tuple(without)
    named = max(1, _IN_WORDS // len(logs))
    paragraphs = [_how(grouped, least), *without]
    for own in grouped:
        name = f"{own.log}, " if len(logs) > 1 else ""
        paragraphs += [
            f"{name}{own.policies[k]} against {own.baseline}: {_policy_words(_groups(own, tables), k)}"
            for k in _best_policies(own, named)
        ]
    others = len(first.policies) - 1 - named
    if others > 0:
        paragraphs.append(
            f"In words: the {counted(named, 'policy', 'policies')} with the best {first.evaluation.metrics[0]}; the "
            f"other {others} {'are' if others > 1 else 'is'} in the tables."
        )
    return tuple(paragraphs)


def _groups(own: LogView, tables: Sequence[GroupTable], grouping: str = "") -> list[GroupTable]:
    """Return the groupings of a log, or the one of this name."""
    return [table for table in tables if table.log == own.log and grouping in ("", table.grouping.name)]


def _how(logs: Sequence[LogView], least: int) -> str:
    most = max(len(own.kept) for own in logs)
    (what, *others) = dict.fromkeys(own.noun for own in logs)
    what = "case" if others else what
    text = f"The mean wait of each group is compared with its mean wait under {logs[0].baseline}, {what} by {what}; "
    if most == 1:
        text += (
            f"there is one {what}, so these are the differences that happened there, without an interval: what would "
            "happen in another month is not known."
        )
    elif most < MIN_CASES:
        text += f"differences are medians over {most} {what}s, too few for an interval ({MIN_CASES} are needed)."
    else:
        text += (
            f"differences are medians over {most} {what}s. A group is said to wait less or more only where that stands "
            "with all policies judged together (Holm); of 100 groups that nothing happens to, up to 5 are called "
            "different by chance."
        )
    return f"{text} Of groups with fewer than {least} jobs only a class that loses most is named."


def _best_policies(own: LogView, count: int) -> list[int]:
    """Return the places of the policies, but for the baseline, that are best in the first metric, in their order."""
    metric = own.evaluation.metrics[0]
    matrix = own.evaluation.matrix(own.log, metric)
    values = np.nanmedian(np.where(np.isfinite(matrix), matrix, np.nan), axis=0)
    sign = -1.0 if METRICS[metric].lower_is_better is False else 1.0
    order = sorted(range(1, len(values)), key=lambda k: (np.inf if np.isnan(values[k]) else sign * values[k], k))
    return sorted(order[:count])


def _policy_words(tables: Sequence[GroupTable], k: int) -> str:
    if all(each.value == 0 for table in tables for each in table.wait.differences[k]):
        return "no group waits longer or shorter."
    own = [(table, _score(table, table.wait, k)) for table in tables]
    few = [_worst_words(table, k, score.few) for table, score in own if score.few is not None]
    unknown = f" Worst hit, but without an interval: {'; '.join(few)}." if few else ""
    scores = [(table, score) for table, score in own if score.compared]
    if not scores:
        return f"no group has enough jobs for an interval.{unknown}" if few else "no group has enough jobs to be named."
    many = [f"{score.compared:,} {table.grouping.many}" for table, score in scores]
    tested = any(score.tested for _, score in scores)
    if tested and not any(score.less or score.more for _, score in scores):
        return f"of {enumerated(many)} none is shown to wait longer or shorter.{unknown}"
    less = enumerated(f"{score.less:,} of {groups}" for groups, (_, score) in zip(many, scores, strict=True))
    text = f"{less} wait less; {enumerated(f'{score.more:,}' for _, score in scores)} more.{unknown}"
    worst = [_worst_words(table, k, score.worst) for table, score in scores if score.worst is not None]
    best = [_best_words(table, k, score.best) for table, score in scores if score.best is not None]
    if worst:
        text += f" Worst hit{' of those with enough jobs' if few else ''}: {'; '.join(worst)}."
    elif not few:
        text += " None is shown to wait longer." if tested else " None waits longer."
    return f"{text} Best off: {'; '.join(best)}." if best else text


def _worst_words(table: GroupTable, k: int, group: int) -> str:
    about = f"{counted(int(table.jobs[group]), 'job')}, {number_text(float(table.work_share[group]))} % of the work"
    longer = difference_text(table.wait.differences[k][group], "s", ("longer on average", ""))
    return f"{table.grouping.phrase}{table.labels[group]} ({about}), {longer}"


def _best_words(table: GroupTable, k: int, group: int) -> str:
    less = difference_text(table.wait.differences[k][group], "s", ("", "less"))
    return f"{table.grouping.phrase}{table.labels[group]}, {less}"
