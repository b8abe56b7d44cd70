"""Two schedules of one case side by side: which job runs when, on how many processors, and who gains by it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import COLOURS, ORANGE, SKY, new_figure
from policyfactory.core.text import DAY, HOUR, counted, format_duration, parse_duration, shortened
from policyfactory.engine.metrics import binned_integral
from policyfactory.evaluation.analyses.analysis import (
    LogAnalysis,
    LogView,
    check_case,
    log_column,
    pictures_by_log,
    shared_unit,
    texts,
    whole_number,
)
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.report.timeline import Drawn, Timeline, packed
from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.schedule import Rectangles, Schedule, draw_rectangles, largest_users, rectangles_of
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.statistics.evaluation import Evaluation


Why = Literal["busiest", "worst", "first"]

_STEPS = 8  # places of the busiest stretch that are tried, in each of its lengths


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class KeptSchedule:
    """One schedule in a few bytes a job.

    Parameters
    ----------
    jobs : Workload
        Its jobs; the policies of a case share them.
    start : int64 array (n,), ticks
        Start of each job.
    end : int64 array (n,), ticks, or None
        Its end; None where each job ran for its run time.
    backfilled : uint8 array
        Bits (`numpy.packbits`): whether it was backfilled.
    """

    jobs: Workload
    start: Int64Array
    end: Int64Array | None
    backfilled: NDArray[np.uint8]


def keep(schedule: Schedule) -> KeptSchedule:
    """Return what is kept of a schedule."""
    as_run = bool((schedule.end - schedule.start == schedule.workload.run_time).all())
    end = None if as_run else schedule.end.copy()
    return KeptSchedule(schedule.workload, schedule.start.copy(), end, np.packbits(schedule.backfilled))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """A stretch of one or two schedules of one case.

    Parameters
    ----------
    policies : tuple of str
        One or two.
    jobs : Workload
        All jobs of the case.
    first, last : int, ticks
        The stretch.
    why : {"busiest", "worst", "first"}
        How it was chosen.
    waits : list of float64 array (n,), s
        Wait of every job under each policy.
    backfilled : list of bool array (n,)
        Whether it was backfilled.
    drawn : list of Rectangles
        What runs in the stretch, under each policy.
    """

    policies: tuple[str, ...]
    jobs: Workload
    first: int
    last: int
    why: Why
    waits: list[FloatArray]
    backfilled: list[NDArray[np.bool_]]
    drawn: list[Rectangles]

    @property
    def change(self) -> FloatArray:
        """Wait of every job under the second policy minus that under the first, in s."""
        return self.waits[-1] - self.waits[0]

    @property
    def shown(self) -> Int64Array:
        """Rows of the jobs that run in the stretch under either policy."""
        return np.unique(np.concatenate([rectangles.row for rectangles in self.drawn]))

    @property
    def loser(self) -> int | None:
        """Row of the job of the stretch that loses most under the second policy; None if none does."""
        rows = self.shown
        if len(self.policies) < 2 or not len(rows) or self.change[rows].max() <= 0:
            return None
        return int(rows[np.argmax(self.change[rows])])

    def utilisation(self, k: int) -> float:
        """Return the share of the machine in use under policy k, in %."""
        return 100.0 * float(self.drawn[k].area.sum()) / (float(self.last - self.first) * self.jobs.machine)

    def moved(self, most: int) -> list[int]:
        """Return the rows of the jobs of the stretch that lose most, then of those that gain most."""
        rows = self.shown
        order = rows[np.argsort(-self.change[rows], kind="stable")]
        up = [int(row) for row in order[:most] if self.change[row] > 0]
        down = [int(row) for row in order[::-1][:most] if self.change[row] < 0]
        return up + down


def busiest(kept: KeptSchedule, length: int) -> tuple[int, int]:
    """Return the stretch of ``length`` ticks with the largest backlog; where nothing waits, with most work.

    Parameters
    ----------
    kept : KeptSchedule
        The schedule.
    length : int
        Ticks, at least 1.
    """
    jobs = kept.jobs
    origin, end = int(jobs.submit[0]), ends_of(kept)
    span = max(int(end.max()) - origin, 1)
    if span <= length:
        return origin, origin + length
    width = max(length // _STEPS, 1, span // 100_000)
    grid = (origin, width, span // width + 1)
    amount = binned_integral(jobs.submit, kept.start, jobs.processors, *grid)
    if not amount.any():
        amount = binned_integral(kept.start, end, jobs.processors, *grid)
    together = np.convolve(amount, np.ones(max(length // width, 1)), "valid")
    begin = origin + width * int(np.argmax(together))
    return begin, begin + length


def worst(kept: Sequence[KeptSchedule], length: int) -> tuple[int, int]:
    """Return the wait of the job that loses most under the second policy, with a margin; at least ``length`` ticks.

    Parameters
    ----------
    kept : sequence of KeptSchedule
        The two schedules.
    length : int
        Ticks, at least 1.
    """
    job = int(np.argmax(kept[1].start - kept[0].start))
    begin, end = int(kept[0].start[job]), int(ends_of(kept[1])[job])
    margin = max((end - begin) // 20, (length - (end - begin) + 1) // 2)
    begin = max(begin - margin, int(kept[0].jobs.submit[0]))
    return begin, max(end + margin, begin + length)


def ends_of(kept: KeptSchedule) -> Int64Array:
    """Return when each job ends, in ticks."""
    return kept.start + kept.jobs.run_time if kept.end is None else kept.end


def excerpt_of(policies: tuple[str, ...], kept: Sequence[KeptSchedule], stretch: tuple[int, int], why: Why) -> Excerpt:
    """Return the stretch of the schedules.

    Parameters
    ----------
    policies : tuple of str
        Their names.
    kept : sequence of KeptSchedule
        One schedule a policy.
    stretch : tuple of int, ticks
        From when to when.
    why : {"busiest", "worst", "first"}
        How it was chosen.
    """
    jobs = kept[0].jobs
    return Excerpt(
        policies,
        jobs,
        *stretch,
        why,
        [(run.start - jobs.submit) / jobs.ticks for run in kept],
        [np.unpackbits(run.backfilled, count=len(jobs)).astype(np.bool_) for run in kept],
        [rectangles_of(jobs, run.start, ends_of(run), stretch) for run in kept],
    )


# The picture. ---------------------------------------------------------------------------------------------------------


Colouring = Literal["wait", "user"]
_LESS, _MORE, _SAME = SKY, ORANGE, "#c8c8c8"
_USERS = COLOURS[:7]


def draw_gantt(excerpt: Excerpt, colour: Colouring, most: int) -> Figure:
    """Draw a stretch of one or two schedules.

    Parameters
    ----------
    excerpt : Excerpt
        The stretch.
    colour : {"wait", "user"}
        What the colours mean; of one policy alone it is the users.
    most : int
        Rectangles in all; the largest are drawn.

    Returns
    -------
    Figure
    """
    count = len(excerpt.policies)
    figure = new_figure(7.0, 0.8 + 3.0 * count)
    panels = figure.subplots(count, 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    if count == 1:
        colour = "user"
    users = _largest_users(excerpt)
    for k, axes in enumerate(panels):
        drawn = excerpt.drawn[k].largest(max(1, most // count))
        kinds = _by_wait(excerpt, k, drawn) if colour == "wait" else _by_user(excerpt, users, drawn)
        _chart(axes, excerpt, k, drawn, kinds)
    panels[-1].set_xlabel(f"time since the first submission ({_unit(excerpt)[1]})")
    _legend(figure, excerpt, colour, users)
    return figure


def _by_wait(excerpt: Excerpt, k: int, drawn: Rectangles) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return which rectangles have which colour: the job waits less, more or as long as under the other policy."""
    change = (excerpt.change if k else -excerpt.change)[drawn.row]
    return [(_SAME, change == 0), (_LESS, change < 0), (_MORE, change > 0)]


def _largest_users(excerpt: Excerpt) -> list[int]:
    """Return the known users with most work in the stretch, under all policies together."""
    rows = np.concatenate([rectangles.row for rectangles in excerpt.drawn])
    area = np.concatenate([rectangles.area for rectangles in excerpt.drawn])
    return largest_users(excerpt.jobs.user[rows], area, len(_USERS))


def _by_user(excerpt: Excerpt, users: list[int], drawn: Rectangles) -> list[tuple[str, NDArray[np.bool_]]]:
    drawn_users = excerpt.jobs.user[drawn.row]
    named = [(colour, drawn_users == user) for colour, user in zip(_USERS, users, strict=False)]
    return [(_SAME, ~np.isin(drawn_users, users)), *named]


def _chart(axes: Any, excerpt: Excerpt, k: int, drawn: Rectangles, kinds: list[tuple[str, NDArray[np.bool_]]]) -> None:
    scale, _ = _unit(excerpt)
    origin = int(excerpt.jobs.submit[0])
    times = ((drawn.begin - origin) / scale, (drawn.end - origin) / scale)
    corners = [*times, drawn.low.astype(np.float64), drawn.high.astype(np.float64) + 1.0]
    backfilled = excerpt.backfilled[k][drawn.row]
    for colour, mask in kinds:
        for chosen, hatch in ((mask & ~backfilled, ""), (mask & backfilled, "/////")):
            draw_rectangles(axes, [side[chosen] for side in corners], colour, hatch)
    axes.set_xlim((excerpt.first - origin) / scale, (excerpt.last - origin) / scale)
    axes.set_ylim(0, excerpt.jobs.machine)
    if excerpt.loser is not None:
        outlined = drawn.row == excerpt.loser
        _outline(axes, [side[outlined] for side in corners], f"job {excerpt.jobs.job_id[excerpt.loser]}")
    axes.set_ylabel("processor")
    name = shortened(excerpt.policies[k], 40)
    axes.set_title(f"{name}: {excerpt.utilisation(k):.0f} % in use", loc="left", fontsize=10)
    axes.grid(visible=False)


def _unit(excerpt: Excerpt) -> tuple[float, str]:
    """Return the ticks of the unit in which time is shown, and its name."""
    seconds = (excerpt.last - excerpt.first) / excerpt.jobs.ticks
    length, name = (DAY, "d") if seconds >= 2 * DAY else (HOUR, "h") if seconds >= 2 * HOUR else (60, "min")
    return float(excerpt.jobs.ticks * length), name


def _outline(axes: Any, corners: list[FloatArray], name: str) -> None:
    from matplotlib.patches import Rectangle

    for left, right, low, high in zip(*corners, strict=True):
        axes.add_patch(
            Rectangle((left, low), right - left, high - low, fill=False, edgecolor="black", linewidth=1.6, zorder=5)
        )
    if len(corners[0]):
        largest = int(np.argmax((corners[1] - corners[0]) * (corners[3] - corners[2])))
        left, right, low, high = (side[largest] for side in corners)
        first, last = axes.get_xlim()
        # Beside a narrow rectangle there is room on one side at least.
        narrow = right - left < 0.12 * (last - first)
        leftwards = (left + right) / 2 > (first + last) / 2
        x, align = (
            (left, "right") if narrow and leftwards else (right, "left") if narrow else ((left + right) / 2, "center")
        )
        axes.text(
            x, (low + high) / 2, name, ha=align, va="center", fontsize=8, zorder=6,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1},
        )  # fmt: skip


def _legend(figure: Figure, excerpt: Excerpt, colour: Colouring, users: list[int]) -> None:
    from matplotlib.patches import Patch

    if colour == "wait":
        named = [(_LESS, "waits less than under the other"), (_MORE, "waits more"), (_SAME, "as long")]
    else:
        named = [(colour, f"user {user}") for colour, user in zip(_USERS, users, strict=False)]
        named.append((_SAME, "others"))
    handles = [Patch(facecolor=colour, edgecolor="white", label=label) for colour, label in named]
    if any(mask.any() for mask in excerpt.backfilled):
        handles.append(Patch(facecolor="#888888", edgecolor="white", hatch="/////", label="backfilled"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8.5)


# Two schedules of one case side by side -------------------------------------------------------------------------------


Around = Literal["busiest", "worst"]
_MOVED = 10  # jobs that gain most, and that lose most, in the table


@dataclasses.dataclass(frozen=True, slots=True)
class Gantt(LogAnalysis):
    """A Gantt chart of two policies, one above the other.

    Parameters
    ----------
    case : int
        Number of the case.
    policies : sequence of str
        Two names, or one that is compared with the baseline. Empty: the baseline and the policy that gains most in this
        case by the first metric.
    around : {"busiest", "worst"}
        What is shown: the stretch of ``length`` with the largest backlog under the first of the two policies, or the
        wait of the job that loses most under the second.
    first : str
        Begin of the stretch, as a time since the first submission ("3d12h"), instead of ``around``.
    length : str
        How long it is.
    colour : {"wait", "user"}
        Jobs that wait less or more than under the other policy, or the users with most work.
    rectangles : int
        At most so many are drawn in both charts together; small jobs are left out first, and counted.

    Raises
    ------
    UsageError
        If an option is none of these.
    """

    name: ClassVar[str] = "gantt"

    case: int = 1
    policies: Sequence[str] = ()
    around: Around = "busiest"
    first: str = ""
    length: str = "1d"
    colour: Colouring = "wait"
    rectangles: int = 3000

    def __post_init__(self) -> None:
        whole_number(self.name, "case", self.case, 1)
        whole_number(self.name, "rectangles", self.rectangles, 2)
        names = texts(self.name, "policies", self.policies)
        if len(names) > 2 or len(set(names)) < len(names):
            raise UsageError(
                f"analysis gantt: policies are {', '.join(map(str, names))}; give one or two different names"
            )
        object.__setattr__(self, "policies", names)
        for option, words in (("around", Around), ("colour", Colouring)):
            if getattr(self, option) not in get_args(words):
                known = ", ".join(get_args(words))
                raise UsageError(f"analysis gantt: {option} is {getattr(self, option)!r}; choose one of {known}")
        if self.first and self.around != "busiest":
            raise UsageError(f"analysis gantt: first = {self.first!r} and around = {self.around!r}; give one of them")
        if not 0 < _seconds("length", self.length) < math.inf:
            raise UsageError(f"analysis gantt: length is {self.length!r}; give a duration, for example 1d or 12h")
        if self.first and math.isinf(_seconds("first", self.first)):
            raise UsageError(
                f"analysis gantt: first is {self.first!r}; give a time since the first submission, as 3d12h"
            )

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse a log, a case or a policy that there is not."""
        check_case(cases, self.name, self.log, self.case)
        for name in self.policies:
            if name not in policies:
                raise UsageError(f"analysis gantt: there is no policy {name!r}; there are {', '.join(policies)}")

    def observe(self, case: Case, schedule: Schedule) -> KeptSchedule | None:
        """Return the schedule of the chosen case, a few bytes a job; nothing of any other."""
        chosen = case.number == self.case and self.log in {"", case.log}
        # Of one named policy the other one is the baseline, whose name is not known yet.
        named = len(self.policies) < 2 or schedule.policy_name in self.policies
        return keep(schedule) if chosen and named else None

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the charts, who moved most, and the words."""
        logs = [
            _ChartOfLog(evaluation, view.log, view.kept, self._excerpt(evaluation, row, seen[row]))
            for view in self.by_log(evaluation, seen, LogView)
            for row in evaluation.rows(view.log).tolist()
            if evaluation.cases[row].number == self.case
        ]
        pair = logs[0].excerpt.policies if logs else ()
        pictures = pictures_by_log(
            "gantt",
            logs,
            lambda chart: f"the schedules of {' and '.join(chart.excerpt.policies)}",
            lambda chart: draw_gantt(chart.excerpt, self.colour, self.rectangles),
            f"{_COLOURED[self.colour if len(pair) > 1 else 'user']} Hatched: backfilled. Which processors a job has is "
            "chosen afterwards, the lowest free ones; the policies decide only when it runs.",
            self.case,
        )
        tables = (_moved_table(logs),) if any(_moved_jobs(chart) for chart in logs) else ()
        sentences = gantt_in_words(logs, self.case, self.rectangles)
        timelines = tuple(self._timeline(chart) for chart in logs)
        return Section("gantt", "Two schedules side by side", sentences, tables, pictures, timelines=timelines)

    def _timeline(self, chart: _ChartOfLog) -> Timeline:
        """Return all schedules of the case, first the two of the picture."""
        kept = chart.kept[[chart.number(index) for index in range(len(chart.kept))].index(self.case)]
        shown, others = chart.excerpt.policies, dict(zip(chart.policies, kept, strict=True))
        names = [*shown, *(name for name in chart.policies if name not in shown)]
        schedules = [Drawn(name, run.start, ends_of(run)) for name in names if (run := others[name]) is not None]
        return Timeline(
            f"{chart.log}, {chart.case_name(self.case)}: what runs when, the queue and the use of the machine",
            functools.partial(packed, chart.jobs, schedules, chart.excerpt.first, chart.excerpt.last),
            "Which processors a job has is chosen afterwards, the lowest free ones; the policies decide only when it "
            "runs.",
        )

    def _excerpt(self, evaluation: Evaluation, row: int, kept: list[KeptSchedule | None]) -> Excerpt:
        pair = self._pair(evaluation, row)
        chosen = [run for run in (kept[k] for k in pair) if run is not None]
        names = tuple(evaluation.policies[k] for k in pair)
        jobs = chosen[0].jobs
        length = round(_seconds("length", self.length) * jobs.ticks)
        if self.first:
            begin = int(jobs.submit[0]) + round(_seconds("first", self.first) * jobs.ticks)
            return excerpt_of(names, chosen, (begin, begin + length), "first")
        if self.around == "worst" and len(chosen) == 2:
            return excerpt_of(names, chosen, worst(chosen, length), "worst")
        return excerpt_of(names, chosen, busiest(chosen[0], length), "busiest")

    def _pair(self, evaluation: Evaluation, row: int) -> list[int]:
        """Return the places of the two policies; of one, if there is no other."""
        if self.policies:
            places = [evaluation.policies.index(name) for name in self.policies]
            return places if len(places) == 2 else sorted({0, *places})
        if len(evaluation.policies) == 1:
            return [0]
        values = evaluation.values[row, 1:, 0]
        sign = -1.0 if METRICS[evaluation.metrics[0]].lower_is_better is False else 1.0
        return [0, 1 + int(np.argmin(np.where(np.isfinite(values), sign * values, np.inf)))]


_COLOURED = {
    "wait": "Blue jobs wait less than under the other policy, orange ones more, grey ones as long.",
    "user": "Each colour is a user; grey are all others.",
}


def _seconds(option: str, text: object) -> float:
    if not isinstance(text, str):
        raise UsageError(f'analysis gantt: {option} is {text!r}; give a duration as text, for example "1d"')
    return parse_duration(text)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _ChartOfLog(LogView):
    """The stretch that is shown of one log."""

    excerpt: Excerpt

    @property
    def jobs(self) -> Workload:
        """All jobs of the case."""
        return self.excerpt.jobs


def _moved_jobs(chart: _ChartOfLog) -> list[int]:
    return chart.excerpt.moved(_MOVED) if len(chart.excerpt.policies) == 2 else []


def _moved_table(logs: Sequence[_ChartOfLog]) -> Table:
    rows = [(chart, job) for chart in logs for job in _moved_jobs(chart)]
    unit = shared_unit(float(wait[job]) for chart, job in rows for wait in chart.excerpt.waits)

    def change(chart: _ChartOfLog, job: int) -> Cell:
        value = float(chart.excerpt.change[job])
        return Cell(value, mark="longer" if value > 0 else "shorter")

    minus = "wait under the second policy minus wait under the first"
    columns = {
        **log_column(several=len(logs) > 1),
        Column("job", "", "its id in the log"): lambda chart, job: str(chart.jobs.job_id[job]),
        Column("user"): lambda chart, job: "unknown" if chart.jobs.user[job] < 0 else str(chart.jobs.user[job]),
        Column("processors", "processors"): lambda chart, job: int(chart.jobs.processors[job]),
        Column("requested time", "s"): lambda chart, job: float(chart.jobs.requested_time[job]) / chart.jobs.ticks,
        Column("first policy"): lambda chart, _: chart.excerpt.policies[0],
        Column("its wait", "s", shown=unit): lambda chart, job: float(chart.excerpt.waits[0][job]),
        Column("second policy"): lambda chart, _: chart.excerpt.policies[1],
        Column("its wait there", "s", shown=unit): lambda chart, job: float(chart.excerpt.waits[1][job]),
        Column("change", "s", minus, shown=unit): change,
    }
    title = "Jobs of the picture whose waits differ most between the two policies"
    return Table.of("moved", title, columns, rows, "Single jobs, so there are no intervals.")


# In words. ------------------------------------------------------------------------------------------------------------


def gantt_in_words(logs: Sequence[_ChartOfLog], case: int, most: int) -> tuple[str, ...]:
    """Return a paragraph a log.

    Parameters
    ----------
    logs : sequence of _ChartOfLog
        The stretch of each log.
    case : int
        Number of the case.
    most : int
        Rectangles that are drawn at most.
    """
    if not logs:
        return (f"There is no case {case}, so there is no chart.",)
    paragraphs = []
    for chart in logs:
        name = f"{chart.log}: " if len(logs) > 1 else ""
        shown = chart.excerpt
        sentences = [_where(shown, chart.case_name(case)), _in_use(shown), _moved(shown), _left_out(shown, most)]
        paragraphs.append(name + " ".join(sentence for sentence in sentences if sentence))
    if len(logs[0].policies) == 1:
        paragraphs.append("Only one policy was run, so there is nothing beside it.")
    return tuple(paragraphs)


def _where(excerpt: Excerpt, where: str) -> str:
    ticks = excerpt.jobs.ticks
    since = format_duration((excerpt.first - int(excerpt.jobs.submit[0])) / ticks)
    length = format_duration((excerpt.last - excerpt.first) / ticks)
    reason = {
        "busiest": f"the stretch in which most waits under {excerpt.policies[0]}",
        "worst": f"around the wait of the job that loses most under {excerpt.policies[-1]}",
        "first": "as asked for",
    }[excerpt.why]
    date = ""
    if excerpt.jobs.unix_start is not None and not where.startswith("resampled"):
        instant = datetime.fromtimestamp(excerpt.jobs.unix_start + excerpt.first // ticks, UTC)
        date = f", from {instant:%Y-%m-%d %H:%M} UTC on"
    return f"Shown are {length} of {where}, beginning {since} after its first submission{date}: {reason}."


def _in_use(excerpt: Excerpt) -> str:
    sentences = [
        f"under {policy} {counted(len(np.unique(rectangles.row)), 'job runs', 'jobs run')} in it and "
        f"{excerpt.utilisation(k):.0f} % of the machine is in use"
        for k, (policy, rectangles) in enumerate(zip(excerpt.policies, excerpt.drawn, strict=True))
    ]
    text = "; ".join(sentences)
    return f"{text[0].upper()}{text[1:]}."


def _moved(excerpt: Excerpt) -> str:
    if len(excerpt.policies) < 2:
        return ""
    change = excerpt.change[excerpt.shown]
    less, more = int((change < 0).sum()), int((change > 0).sum())
    fewer = counted(less, "waits", "wait")
    first, second = excerpt.policies
    if not less and not more:
        return f"Each of these jobs waits as long under {second} as under {first}."
    text = (
        f"Of the {len(change):,} jobs that run in it under either policy, {fewer} less under {second} than under "
        f"{first}, {more:,} more, {len(change) - less - more:,} as long."
    )
    if excerpt.loser is None:
        return text
    loser, jobs = excerpt.loser, excerpt.jobs
    before, after = (format_duration(float(wait[loser])) for wait in excerpt.waits)
    size = counted(int(jobs.processors[loser]), "processor")
    return f"{text} Job {jobs.job_id[loser]} ({size}, outlined) loses most: it waits {after} instead of {before}."


def _left_out(excerpt: Excerpt, most: int) -> str:
    each = max(1, most // len(excerpt.policies))
    sentences = []
    for policy, rectangles in zip(excerpt.policies, excerpt.drawn, strict=True):
        drawn = rectangles.largest(each)
        missing = len(np.unique(rectangles.row)) - len(np.unique(drawn.row))
        if len(drawn.row) < len(rectangles.row):
            share = 100 * (1 - float(drawn.area.sum()) / float(rectangles.area.sum()))
            sentences.append(f"{counted(missing, 'small job')} under {policy} ({share:.1f} % of the area)")
    return f"Not drawn: {'; '.join(sentences)}." if sentences else ""
