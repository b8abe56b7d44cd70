"""Two schedules of one case side by side: which job runs when, on how many processors, and who gains by it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from policyfactory.analyses.analysis import LogAnalysis, check_place, texts, whole_number
from policyfactory.analyses.excerpt import (
    Colouring,
    Excerpt,
    KeptSchedule,
    busiest,
    draw_gantt,
    ends_of,
    excerpt_of,
    keep,
    worst,
)
from policyfactory.analyses.logs import LogView
from policyfactory.analyses.tables import log_column, pictures_by_log
from policyfactory.analyses.wording import shared_unit
from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted
from policyfactory.core.units import format_duration, parse_duration
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.report.timeline import Drawn, Timeline, packed
from policyfactory.simulate.metrics import METRICS

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.workload.jobs import Workload

__all__ = ["Gantt"]

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
        check_place(cases, self.name, self.log, self.case)
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
            _ChartOfLog(evaluation, own.log, own.kept, self._excerpt(evaluation, row, seen[row]))
            for own in self.by_log(evaluation, seen, LogView)
            for row in evaluation.rows(own.log).tolist()
            if evaluation.cases[row].number == self.case
        ]
        pair = logs[0].excerpt.policies if logs else ()
        pictures = pictures_by_log(
            "gantt",
            logs,
            lambda own: f"the schedules of {' and '.join(own.excerpt.policies)}",
            lambda own: draw_gantt(own.excerpt, self.colour, self.rectangles),
            f"{_COLOURED[self.colour if len(pair) > 1 else 'user']} Hatched: backfilled. Which processors a job has is "
            "chosen afterwards, the lowest free ones; the policies decide only when it runs.",
            self.case,
        )
        tables = (_moved_table(logs),) if any(_moved_jobs(own) for own in logs) else ()
        sentences = gantt_in_words(logs, self.case, self.rectangles)
        timelines = tuple(self._timeline(own) for own in logs)
        return Section("gantt", "Two schedules side by side", sentences, tables, pictures, timelines=timelines)

    def _timeline(self, own: _ChartOfLog) -> Timeline:
        """Return all schedules of the case, first the two of the picture."""
        kept = own.kept[[own.number(at) for at in range(len(own.kept))].index(self.case)]
        shown, others = own.excerpt.policies, dict(zip(own.policies, kept, strict=True))
        names = [*shown, *(name for name in own.policies if name not in shown)]
        schedules = [Drawn(name, one.start, ends_of(one)) for name in names if (one := others[name]) is not None]
        return Timeline(
            f"{own.log}, {own.place_of(self.case)}: what runs when, the queue and the use of the machine",
            functools.partial(packed, own.jobs, schedules, own.excerpt.first, own.excerpt.last),
            "Which processors a job has is chosen afterwards, the lowest free ones; the policies decide only when it "
            "runs.",
        )

    def _excerpt(self, evaluation: Evaluation, row: int, kept: list[KeptSchedule | None]) -> Excerpt:
        pair = self._pair(evaluation, row)
        chosen = [one for one in (kept[k] for k in pair) if one is not None]
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


def _moved_jobs(own: _ChartOfLog) -> list[int]:
    return own.excerpt.moved(_MOVED) if len(own.excerpt.policies) == 2 else []


def _moved_table(logs: Sequence[_ChartOfLog]) -> Table:
    rows = [(own, at) for own in logs for at in _moved_jobs(own)]
    unit = shared_unit(float(wait[at]) for own, at in rows for wait in own.excerpt.waits)

    def change(own: _ChartOfLog, at: int) -> Cell:
        value = float(own.excerpt.change[at])
        return Cell(value, mark="longer" if value > 0 else "shorter")

    minus = "wait under the second policy minus wait under the first"
    columns = {
        **log_column(several=len(logs) > 1),
        Column("job", "", "its id in the log"): lambda own, at: str(own.jobs.job_id[at]),
        Column("user"): lambda own, at: "unknown" if own.jobs.user[at] < 0 else str(own.jobs.user[at]),
        Column("processors", "processors"): lambda own, at: int(own.jobs.processors[at]),
        Column("requested time", "s"): lambda own, at: float(own.jobs.requested_time[at]) / own.jobs.ticks,
        Column("first policy"): lambda own, _: own.excerpt.policies[0],
        Column("its wait", "s", shown=unit): lambda own, at: float(own.excerpt.waits[0][at]),
        Column("second policy"): lambda own, _: own.excerpt.policies[1],
        Column("its wait there", "s", shown=unit): lambda own, at: float(own.excerpt.waits[1][at]),
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
    for own in logs:
        name = f"{own.log}: " if len(logs) > 1 else ""
        shown = own.excerpt
        sentences = [_where(shown, own.place_of(case)), _in_use(shown), _moved(shown), _left_out(shown, most)]
        paragraphs.append(name + " ".join(sentence for sentence in sentences if sentence))
    if len(logs[0].policies) == 1:
        paragraphs.append("Only one policy was run, so there is nothing beside it.")
    return tuple(paragraphs)


def _where(own: Excerpt, where: str) -> str:
    ticks = own.jobs.ticks
    since = format_duration((own.first - int(own.jobs.submit[0])) / ticks)
    length = format_duration((own.last - own.first) / ticks)
    reason = {
        "busiest": f"the stretch in which most waits under {own.policies[0]}",
        "worst": f"around the wait of the job that loses most under {own.policies[-1]}",
        "first": "as asked for",
    }[own.why]
    date = ""
    if own.jobs.unix_start is not None and not where.startswith("resampled"):
        instant = datetime.fromtimestamp(own.jobs.unix_start + own.first // ticks, UTC)
        date = f", from {instant:%Y-%m-%d %H:%M} UTC on"
    return f"Shown are {length} of {where}, beginning {since} after its first submission{date}: {reason}."


def _in_use(own: Excerpt) -> str:
    sentences = [
        f"under {policy} {counted(len(np.unique(rectangles.row)), 'job runs', 'jobs run')} in it and "
        f"{own.utilisation(k):.0f} % of the machine is in use"
        for k, (policy, rectangles) in enumerate(zip(own.policies, own.drawn, strict=True))
    ]
    text = "; ".join(sentences)
    return f"{text[0].upper()}{text[1:]}."


def _moved(own: Excerpt) -> str:
    if len(own.policies) < 2:
        return ""
    change = own.change[own.shown]
    less, more = int((change < 0).sum()), int((change > 0).sum())
    fewer = counted(less, "waits", "wait")
    first, second = own.policies
    if not less and not more:
        return f"Each of these jobs waits as long under {second} as under {first}."
    text = (
        f"Of the {len(change):,} jobs that run in it under either policy, {fewer} less under {second} than under "
        f"{first}, {more:,} more, {len(change) - less - more:,} as long."
    )
    if own.loser is None:
        return text
    at, jobs = own.loser, own.jobs
    before, after = (format_duration(float(wait[at])) for wait in own.waits)
    size = counted(int(jobs.processors[at]), "processor")
    return f"{text} Job {jobs.job_id[at]} ({size}, outlined) loses most: it waits {after} instead of {before}."


def _left_out(own: Excerpt, most: int) -> str:
    each = max(1, most // len(own.policies))
    sentences = []
    for policy, rectangles in zip(own.policies, own.drawn, strict=True):
        drawn = rectangles.largest(each)
        missing = len(np.unique(rectangles.row)) - len(np.unique(drawn.row))
        if len(drawn.row) < len(rectangles.row):
            share = 100 * (1 - float(drawn.area.sum()) / float(rectangles.area.sum()))
            sentences.append(f"{counted(missing, 'small job')} under {policy} ({share:.1f} % of the area)")
    return f"Not drawn: {'; '.join(sentences)}." if sentences else ""
