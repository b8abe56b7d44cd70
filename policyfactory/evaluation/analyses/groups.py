"""Who wins and who loses: waits and slowdowns of users, sizes and run times under each policy against the baseline.

Sizes are classes of powers of four, 1, 2-4, 5-16, 17-64 and so on: ten of them at most up to 262,144 processors, the
same on every machine, so that machines can be compared. Run times and requests are classes that people speak in: a
minute, an hour, a shift, a day. By run time means by the *actual* run time, since that is what a user experiences and
what the bounded slowdown divides by; by request means by what the scheduler knows, which a user can change.

A group's mean is taken case by case, and so is its difference from the baseline: both policies ran the same jobs of the
group. What is said of the cases is their median, with the interval of every other comparison in the report.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY, HOUR, MINUTE, counted, enumerated, number_text, shortened
from policyfactory.engine.metrics import TAU, group_sums
from policyfactory.evaluation.analyses.analysis import (
    LogAnalysis,
    LogView,
    cell_of,
    difference_text,
    estimate_of,
    log_column,
    marks_of,
    shared_unit,
    stem_by_log,
    texts,
    whole_number,
)
from policyfactory.evaluation.picture import draw_cells, panels_down
from policyfactory.report.caveats import listed, too_few_cases
from policyfactory.report.sections import Cell, Column, Columns, Picture, Scale, Section, Table, scale_for
from policyfactory.simulation.metrics import METRICS
from policyfactory.statistics.intervals import MIN_CASES, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

GroupingName = Literal["size", "runtime", "request", "user"]

UNKNOWN_USER = -1
_SIZES = np.array([1, 2, *(4**k + 1 for k in range(1, 31))], dtype=np.int64)
_TIMES = (0, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY)
_TIME_NAMES = (
    ("under 1 min", "< 1 min"),
    ("1 to 10 min", "1-10 min"),
    ("10 min to 1 h", "10-60 min"),
    ("1 to 6 h", "1-6 h"),
    ("6 to 24 h", "6-24 h"),
    ("24 h or more", "24 h +"),
)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """The sums of each group in one schedule.

    Parameters
    ----------
    key : int64 array (groups,), ascending
        The user's number, or the number of the class.
    jobs : int64 array (groups,)
        Jobs, at least 1.
    work : float64 array (groups,), processor-seconds
        Sum of q p.
    wait : float64 array (groups,), s
        Sum of the waits.
    bsld : float64 array (groups,)
        Sum of the bounded slowdowns.
    """

    key: Int64Array
    jobs: Int64Array
    work: FloatArray
    wait: FloatArray
    bsld: FloatArray

    def mean(self, field: str) -> FloatArray:
        """Return the mean over the jobs of each group of what ``field`` is the sum of."""
        return np.asarray(getattr(self, field) / self.jobs)

    def with_known_users(self, least: int = 1) -> GroupSums:
        """Return those of the known users with at least so many jobs, if the groups are users."""
        kept = (self.key != UNKNOWN_USER) & (self.jobs >= least)
        return GroupSums(*(getattr(self, field.name)[kept] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True, slots=True)
class Grouping:
    """One way to divide the jobs.

    Parameters
    ----------
    name : {"size", "runtime", "request", "user"}
        What it is called in options and files.
    title : str
        What it divides by, as "by ..." goes on.
    many : str
        What its groups are called.
    phrase : str
        What comes before the label of a group in a sentence.
    sums : callable
        From a schedule to its `GroupSums`.
    names : callable
        From a key and the processors of the machine to the names of the group, in a sentence and below an axis.
    """

    name: GroupingName
    title: str
    many: str
    phrase: str
    sums: Callable[[Schedule], GroupSums]
    names: Callable[[int, int], tuple[str, str]]


def together(parts: Sequence[GroupSums]) -> GroupSums:
    """Return the sums over several schedules."""
    key = np.unique(np.concatenate([sums.key for sums in parts]))
    _, *names = (field.name for field in dataclasses.fields(GroupSums))
    totals = [np.zeros(len(key), dtype=getattr(parts[0], name).dtype) for name in names]
    for name, total in zip(names, totals, strict=True):
        lost = np.zeros_like(total)  # by rounding, which is made good (Kahan's summation)
        for sums in parts:
            rows = np.searchsorted(key, sums.key)
            value = getattr(sums, name) - lost[rows]
            added = total[rows] + value
            lost[rows] = (added - total[rows]) - value
            total[rows] = added
    return GroupSums(key, *totals)


def _sums(schedule: Schedule, code: Int64Array, key: Int64Array) -> GroupSums:
    jobs = schedule.workload
    run_time = schedule.end - schedule.start
    least = TAU * jobs.ticks
    sums = group_sums(code, len(key), schedule.start - jobs.submit, run_time, jobs.processors, least)
    count, work, wait, bsld = sums
    there = count > 0
    ticks = jobs.ticks
    return GroupSums(key[there], count[there], work[there] / ticks, wait[there] / ticks, bsld[there])


def _by_time(schedule: Schedule, ticks: Int64Array) -> GroupSums:
    # Counting the edges that are passed is faster than searching among so few of them.
    code = np.zeros(len(ticks), dtype=np.int64)
    for edge in _TIMES[1:]:
        code += ticks >= edge * schedule.workload.ticks
    return _sums(schedule, code, np.arange(len(_TIMES)))


def _by_size(schedule: Schedule) -> GroupSums:
    jobs = schedule.workload
    if jobs.machine <= len(jobs):
        # A look into a table of all sizes is faster than a search for each job.
        code = (np.searchsorted(_SIZES, np.arange(jobs.machine + 1), side="right") - 1)[jobs.processors]
    else:
        code = np.searchsorted(_SIZES, jobs.processors, side="right") - 1
    return _sums(schedule, code, np.arange(int(np.searchsorted(_SIZES, jobs.machine, side="right"))))


def sums_by_user(schedule: Schedule) -> GroupSums:
    """Return the sums of each user; every unknown user is `UNKNOWN_USER`.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    """
    user = schedule.workload.user
    low, high = (int(user.min()), int(user.max())) if len(user) else (0, 0)
    if high - low >= 4 * len(user) + 1024:
        key, code = np.unique(user, return_inverse=True)
        return _sums(schedule, code, key)
    # Users are small numbers in most logs: a table finds their groups without sorting the jobs.
    return _sums(schedule, user - low, np.arange(low, high + 1))


def _size_names(key: int, machine: int) -> tuple[str, str]:
    low, high = int(_SIZES[key]), min(int(_SIZES[key + 1]) - 1, machine)
    first, last = (str(end) if end <= 4096 else f"{end // 1000}k" for end in (low, high))
    label = counted(low, "processor") if low == high else f"{low:,} to {high:,} processors"
    return label, first if first == last else f"{first}-{last}"


def _time_names(key: int, _machine: int) -> tuple[str, str]:
    return _TIME_NAMES[key]


def _user_names(key: int, _machine: int) -> tuple[str, str]:
    return ("unknown users", "unknown") if key == UNKNOWN_USER else (f"user {key}", str(key))


def _by_run_time(schedule: Schedule) -> GroupSums:
    return _by_time(schedule, schedule.end - schedule.start)


def _by_request(schedule: Schedule) -> GroupSums:
    return _by_time(schedule, schedule.workload.requested_time)


GROUPINGS: dict[GroupingName, Grouping] = {
    "size": Grouping("size", "size", "size classes", "jobs of ", _by_size, _size_names),
    "runtime": Grouping("runtime", "run time", "run-time classes", "jobs that run ", _by_run_time, _time_names),
    "request": Grouping("request", "requested time", "request classes", "jobs that request ", _by_request, _time_names),
    "user": Grouping("user", "user", "users", "", sums_by_user, _user_names),
}


# The groups of a log. -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One measure of all groups.

    Parameters
    ----------
    title, unit : str
        What it is.
    values : list of list of Estimate [policy][group]
        The group's mean, over cases.
    differences : list of list of Estimate [policy][group]
        That minus the baseline's in the same case, over cases.
    marks : list of list of str [policy][group]
        What the differences are called, those of a group judged together.
    """

    title: str
    unit: str
    values: list[list[Estimate]]
    differences: list[list[Estimate]]
    marks: list[list[str]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class GroupTable(LogView):
    """All groups of one grouping of one log; users by work, classes from small to large.

    Parameters
    ----------
    grouping : Grouping
        How its jobs are divided.
    labels, shorts : tuple of str
        Names of the groups, for sentences and for axes.
    jobs : int64 array (groups,)
        Their jobs in all cases.
    work : float64 array (groups,), processor-seconds
        Their work in all cases.
    enough : bool array (groups,)
        Whether a group has enough jobs for an interval and to be named.
    wait, bsld : Measure
        Mean wait (s) and mean bounded slowdown.
    """

    grouping: Grouping
    labels: tuple[str, ...]
    shorts: tuple[str, ...]
    jobs: Int64Array
    work: FloatArray
    enough: NDArray[np.bool_]
    wait: Measure
    bsld: Measure

    @property
    def job_share(self) -> FloatArray:
        """Share of the jobs in %."""
        jobs: FloatArray = self.jobs.astype(np.float64)
        return 100.0 * jobs / float(jobs.sum())

    @property
    def work_share(self) -> FloatArray:
        """Share of the work in %; 0 if no work was done."""
        return 100.0 * self.work / max(float(self.work.sum()), 1e-300)

    def worst_without_interval(self, index: int) -> int | None:
        """Return the class that loses most wait of all under a policy, if it has no interval; None if it has one.

        Never a user: a few jobs of one person say nothing of that person.

        Parameters
        ----------
        index : int
            Which policy.
        """
        differences = self.wait.differences[index]
        known = [group for group in range(len(differences)) if np.isfinite(differences[group].value)]
        worst = max(known, key=lambda group: differences[group].value, default=None)
        if self.grouping.name == "user" or worst is None or differences[worst].value <= 0:
            return None
        return worst if differences[worst].interval is None else None


def gather(view: LogView, grouping: Grouping, index: int, least: int) -> GroupTable | None:
    """Return the groups of one log; None if they are users and no user is known.

    Parameters
    ----------
    view : LogView
        The log; ``view.kept[case][policy][index]`` is a `GroupSums` of that grouping.
    grouping : Grouping
        How the jobs were divided.
    index : int
        Where this grouping is.
    least : int
        Jobs of a group, all cases together, below which it has no interval.
    """
    cases = [[kept[index] for kept in case] for case in view.kept]
    by_user = grouping.name == "user"
    keys = np.unique(np.concatenate([case[0].key for case in cases]))
    if by_user and set(keys.tolist()) == {UNKNOWN_USER}:
        return None
    # Jobs and work are the same under every policy: those of the baseline count.
    count, work = (_aligned(keys, [case[:1] for case in cases], field)[:, 0] for field in ("jobs", "work"))
    jobs, total_work = count.sum(axis=0).astype(np.int64), work.sum(axis=0)
    order = np.argsort(-total_work, kind="stable") if by_user else np.arange(len(keys))
    enough = (jobs >= least)[order]
    measures = []
    for title, unit, field in (("wait", "s", "wait"), ("bounded slowdown", "1", "bsld")):
        with np.errstate(invalid="ignore"):
            # A group without jobs in a case has no mean there.
            means = (_aligned(keys, cases, field) / count[:, None, :])[:, :, order]
        levels, minus = means.swapaxes(0, 1), (means - means[:, :1]).swapaxes(0, 1)
        values, differences = ([_estimates(sample, enough) for sample in each] for each in (levels, minus))
        each_group = zip(zip(*differences, strict=True), np.moveaxis(means, 2, 0), strict=True)
        marks = zip(*(marks_of(some, of, view.drawn) for some, of in each_group), strict=True)
        measures.append(Measure(title, unit, values, differences, list(map(list, marks))))
    labels, shorts = zip(*(grouping.names(int(key), view.machine) for key in keys[order]), strict=True)
    return GroupTable(
        view.evaluation,
        view.log,
        view.kept,
        grouping,
        labels,
        shorts,
        jobs[order],
        total_work[order],
        enough,
        *measures,
    )


def _aligned(keys: Int64Array, cases: list[list[GroupSums]], field: str) -> FloatArray:
    """Return float64 array (cases, policies, groups) of one field; 0 where a group has no jobs."""
    aligned = np.zeros((len(cases), len(cases[0]), len(keys)))
    for c, case in enumerate(cases):
        for k, sums in enumerate(case):
            aligned[c, k, np.searchsorted(keys, sums.key)] = getattr(sums, field)
    return aligned


def _estimates(values: FloatArray, enough: NDArray[np.bool_]) -> list[Estimate]:
    """Return the median of each group's values, float64 array (cases, groups), with its interval if it has enough."""
    return [
        estimate_of(column)
        if known
        else Estimate(float(np.nanmedian(column)), None, None, int(np.isfinite(column).sum()))
        for column, known in zip(values.T, enough, strict=True)
    ]


# Who wins and who loses -----------------------------------------------------------------------------------------------


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
        gathered = [gather(view, GROUPINGS[name], k, self.min_jobs) for view in logs for k, name in enumerate(self.by)]
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
            stems = stem_by_log("differences", [view.log for view in logs])
            drawn = ([table for table in groups if table.log == log] for log in stems)
            pictures = [_picture(tables, stem) for tables, stem in zip(drawn, stems.values(), strict=True) if tables]
        paragraphs = groups_in_words(logs, groups, self.min_jobs, by_user="user" in self.by)
        return Section("groups", "Who wins, who loses", paragraphs, tuple(tables), tuple(pictures))

    def _table(self, tables: Sequence[GroupTable], several: bool) -> Table:  # noqa: FBT001 (a column is there or not)
        """Return all groups of one grouping, a row a policy."""
        first = tables[0]
        by_user, policies = first.grouping.name == "user", first.policies
        unit = shared_unit(each.value for table in tables for row in table.wait.values for each in row)
        mean = "median over cases of the mean of the group's jobs"
        columns = {
            **log_column(several=several),
            Column("group"): lambda table, group, _: table.labels[group],
            Column("jobs", "jobs", "jobs of the group in all cases"): lambda table, group, _: int(table.jobs[group]),
            Column("share of jobs", "%"): lambda table, group, _: float(table.job_share[group]),
            Column("share of work", "%", "processors x run time of the group's jobs, of all jobs' work"): (
                lambda table, group, _: float(table.work_share[group])
            ),
            Column("policy"): lambda table, _, index: table.policies[index],
            **_compared(Column("mean wait", "s", mean, unit), "wait difference", "wait"),
            **_compared(Column("mean bsld", "1", f"bounded slowdown; {mean}"), "bsld difference", "bsld"),
            Column("cases", "cases", "cases in which the group has jobs"): (
                lambda table, group, index: table.wait.values[index][group].cases
            ),
        }
        rows = [
            (table, group, index)
            for table in tables
            for group in range(len(table.labels))
            for index in range(len(policies))
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

    def value(table: GroupTable, group: int, index: int) -> Cell:
        return cell_of(getattr(table, field).values[index][group])

    def difference(table: GroupTable, group: int, index: int) -> Cell | None:
        measure = getattr(table, field)
        return cell_of(measure.differences[index][group], measure.marks[index][group]) if index else None

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
        worst = {table.worst_without_interval(index) for index in range(1, len(table.policies))} - {None}
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
    shown = [each.value for table, group in rows for row in table.wait.differences[1:] for each in [row[group]]]
    unit = shared_unit(value for value in shown if np.isfinite(value))

    def difference(index: int, table: GroupTable, group: int) -> Cell:
        mark = table.wait.marks[index][group]
        return Cell(None) if mark == "no difference" else cell_of(table.wait.differences[index][group], mark)

    minus = f"mean wait minus that under {first.baseline}"
    columns = {
        **log_column(several=several),
        Column("group"): lambda table, group: f"{table.grouping.phrase}{table.labels[group]}",
        Column("share of jobs", "%"): lambda table, group: float(table.job_share[group]),
    } | {
        Column(name, "s", minus, unit): lambda table, group, index=index: difference(index, table, group)
        for index, name in enumerate(first.policies)
        if index
    }
    note = "An empty cell: no difference is shown." if any(map(_tested, tables)) else _UNTESTED
    note += listed("Too few jobs for an interval, but those that lose most", few)
    note += listed("No difference is shown, or nothing is known", same)
    note += listed("Left out, since they differ less", fewer)
    title = f"Mean wait of a group minus its mean wait under {first.baseline}"
    front = Table.of("who", title, columns, rows, note)
    return dataclasses.replace(front, names=2 if several else 1, front=True)


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
    differences = measure.differences[k]
    verdicts = {int(g): measure.marks[k][g] for g in np.flatnonzero(table.enough)}
    tested = any(verdicts.values())
    less = [g for g, word in verdicts.items() if (word == "better" if tested else differences[g].value < 0)]
    more = [g for g, word in verdicts.items() if (word == "worse" if tested else differences[g].value > 0)]
    worst = max(more, key=lambda g: differences[g].value, default=None)
    few = table.worst_without_interval(k) if measure is table.wait else None
    return _Score(
        groups=len(table.labels),
        compared=sum(bool(word) or not tested for word in verdicts.values()),
        tested=tested,
        less=len(less),
        more=len(more),
        worst=worst,
        best=min(less, key=lambda g: differences[g].value, default=None),
        few=None if few == worst else few,
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
        return lambda table, _, score: "none" if (number := getattr(score, group)) is None else table.labels[number]

    def difference(group: str) -> Callable[[GroupTable, int, _Score], Cell | None]:
        def cell(table: GroupTable, k: int, score: _Score) -> Cell | None:
            number = getattr(score, group)
            if number is None:
                return None
            measure = getattr(table, of)
            return cell_of(measure.differences[k][number], measure.marks[k][number])

        return cell

    shown, minus = "groups whose mean is shown to be", f"its mean minus that under {base}"
    extreme = "most, of those that are shown to differ"
    rises = f"{extreme}, or a class without an interval that waits longer still" if of == "wait" else extreme
    columns = {
        **log_column(several=several),
        Column("policy"): lambda table, k, _: table.policies[k],
        Column("by"): lambda table, *_: table.grouping.title,
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
    nobody = [view.log for view in logs if by_user and not _groups(view, tables, "user")]
    without = [f"{enumerated(nobody)}: no job has a known user, so there are no groups by user."] if nobody else []
    if len(first.policies) == 1:
        alone = f"Only {first.baseline} was run: the tables say who waits how long, and there is nothing to compare."
        return (alone, *without)
    grouped = [view for view in logs if _groups(view, tables)]
    if not grouped:
        return tuple(without)
    named = max(1, _IN_WORDS // len(logs))
    paragraphs = [_how(grouped, least), *without]
    for view in grouped:
        name = f"{view.log}, " if len(logs) > 1 else ""
        paragraphs += [
            f"{name}{view.policies[k]} against {view.baseline}: {_policy_words(_groups(view, tables), k)}"
            for k in _best_policies(view, named)
        ]
    others = len(first.policies) - 1 - named
    if others > 0:
        paragraphs.append(
            f"In words: the {counted(named, 'policy', 'policies')} with the best {first.evaluation.metrics[0]}; the "
            f"other {others} {'are' if others > 1 else 'is'} in the tables."
        )
    return tuple(paragraphs)


def _groups(view: LogView, tables: Sequence[GroupTable], grouping: str = "") -> list[GroupTable]:
    """Return the groupings of a log, or the one of this name."""
    return [table for table in tables if table.log == view.log and grouping in ("", table.grouping.name)]


def _how(logs: Sequence[LogView], least: int) -> str:
    most = max(len(view.kept) for view in logs)
    (what, *others) = dict.fromkeys(view.noun for view in logs)
    what = "case" if others else what
    text = f"The mean wait of each group is compared with its mean wait under {logs[0].baseline}, {what} by {what}; "
    if most == 1:
        text += (
            f"there is one {what}, so these are the differences that happened there, without an interval: what would "
            "happen in another month is not known."
        )
    elif most < MIN_CASES:
        text += f"differences are medians over cases. {too_few_cases(most, what)}"
    else:
        text += (
            f"differences are medians over {most} {what}s. A group is said to wait less or more only where that stands "
            "with all policies judged together (Holm); of 100 groups that nothing happens to, up to 5 are called "
            "different by chance."
        )
    return f"{text} Of groups with fewer than {least} jobs only a class that loses most is named."


def _best_policies(view: LogView, count: int) -> list[int]:
    """Return the places of the policies, but for the baseline, that are best in the first metric, in their order."""
    metric = view.evaluation.metrics[0]
    matrix = view.evaluation.matrix(view.log, metric)
    values = np.nanmedian(np.where(np.isfinite(matrix), matrix, np.nan), axis=0)
    sign = -1.0 if METRICS[metric].lower_is_better is False else 1.0
    order = sorted(range(1, len(values)), key=lambda k: (np.inf if np.isnan(values[k]) else sign * values[k], k))
    return sorted(order[:count])


def _policy_words(tables: Sequence[GroupTable], k: int) -> str:
    if all(each.value == 0 for table in tables for each in table.wait.differences[k]):
        return "no group waits longer or shorter."
    scored = [(table, _score(table, table.wait, k)) for table in tables]
    few = [_worst_words(table, k, score.few) for table, score in scored if score.few is not None]
    unknown = f" Worst hit, but without an interval: {'; '.join(few)}." if few else ""
    scores = [(table, score) for table, score in scored if score.compared]
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
