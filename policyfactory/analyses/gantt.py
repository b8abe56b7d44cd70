"""Two schedules of one case side by side: which job runs when, on how many processors, and who gains by it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
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
    excerpt_of,
    keep,
    worst,
)
from policyfactory.analyses.tables import log_cells, log_columns, stem_by_log
from policyfactory.analyses.wording import place_of, shared_unit
from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted
from policyfactory.core.units import format_duration, parse_duration
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulate.metrics import METRICS

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

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
        excerpts: dict[str, Excerpt] = {}
        for log in self.chosen_logs(evaluation):
            for row in evaluation.rows(log):
                if evaluation.cases[row].number == self.case:
                    excerpts[log] = self._excerpt(evaluation, int(row), seen[row])
        stems = stem_by_log("gantt", list(excerpts))
        pictures = tuple(
            Picture(
                stems[log],
                f"{log}, {place_of(evaluation, log, self.case)}: the schedules of {' and '.join(own.policies)}",
                functools.partial(draw_gantt, own, self.colour, self.rectangles),
                _NOTES[self.colour if len(own.policies) > 1 else "user"],
            )
            for log, own in excerpts.items()
        )
        moved = _moved_table(excerpts)
        tables = (moved,) if moved.rows else ()
        sentences = gantt_in_words(evaluation, excerpts, self.case, self.rectangles)
        return Section("gantt", "Two schedules side by side", sentences, tables, pictures)

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


_NOTES = {
    "wait": "Blue jobs wait less than under the other policy, orange ones more, grey ones as long. Hatched: "
    "backfilled. Which processors a job has is chosen afterwards, the lowest free ones; the policies decide only when "
    "it runs.",
    "user": "Each colour is a user; grey are all others. Hatched: backfilled. Which processors a job has is chosen "
    "afterwards, the lowest free ones; the policies decide only when it runs.",
}


def _seconds(option: str, text: object) -> float:
    if not isinstance(text, str):
        raise UsageError(f'analysis gantt: {option} is {text!r}; give a duration as text, for example "1d"')
    return parse_duration(text)


def _moved_table(excerpts: dict[str, Excerpt]) -> Table:
    logs = list(excerpts)
    unit = shared_unit(float(wait[at]) for own in excerpts.values() for at in own.moved(_MOVED) for wait in own.waits)
    columns = (
        *log_columns(logs),
        Column("job", "", "its id in the log"),
        Column("user"),
        Column("processors", "processors"),
        Column("requested time", "s"),
        Column("first policy"),
        Column("its wait", "s", shown=unit),
        Column("second policy"),
        Column("its wait there", "s", shown=unit),
        Column("change", "s", "wait under the second policy minus wait under the first", shown=unit),
    )
    rows = []
    for log, own in excerpts.items():
        if len(own.policies) < 2:
            continue
        for at in own.moved(_MOVED):
            user = int(own.jobs.user[at])
            first, second = (float(wait[at]) for wait in own.waits)
            cells = (
                Cell(str(own.jobs.job_id[at])),
                Cell("unknown" if user < 0 else str(user)),
                Cell(int(own.jobs.processors[at])),
                Cell(float(own.jobs.requested_time[at]) / own.jobs.ticks),
                Cell(own.policies[0]),
                Cell(first),
                Cell(own.policies[1]),
                Cell(second),
                Cell(second - first, mark="worse" if second > first else "better"),
            )
            rows.append((*log_cells(logs, log), *cells))
    return Table(
        "moved",
        "Jobs of the picture whose waits differ most between the two policies",
        columns,
        tuple(rows),
        "Single jobs, so there are no intervals.",
    )


# In words. ------------------------------------------------------------------------------------------------------------


def gantt_in_words(evaluation: Evaluation, excerpts: Mapping[str, Excerpt], case: int, most: int) -> tuple[str, ...]:
    """Return a paragraph a log.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    excerpts : mapping of str to Excerpt
        The stretch of each log.
    case : int
        Number of the case.
    most : int
        Rectangles that are drawn at most.
    """
    if not excerpts:
        return (f"There is no case {case}, so there is no chart.",)
    paragraphs = []
    for log, own in excerpts.items():
        name = f"{log}: " if len(excerpts) > 1 else ""
        parts = [_where(evaluation, log, own, case), *_in_use(own), *_moved(own), *_left_out(own, most)]
        paragraphs.append(name + " ".join(parts))
    if len(evaluation.policies) == 1:
        paragraphs.append("Only one policy was run, so there is nothing beside it.")
    return tuple(paragraphs)


def _where(evaluation: Evaluation, log: str, own: Excerpt, case: int) -> str:
    ticks = own.jobs.ticks
    since = format_duration((own.first - int(own.jobs.submit[0])) / ticks)
    length = format_duration((own.last - own.first) / ticks)
    reason = {
        "busiest": f"the stretch in which most waits under {own.policies[0]}",
        "worst": f"around the wait of the job that loses most under {own.policies[-1]}",
        "first": "as asked for",
    }[own.why]
    where = place_of(evaluation, log, case)
    date = ""
    if own.jobs.unix_start is not None and not where.startswith("resampled"):
        instant = datetime.fromtimestamp(own.jobs.unix_start + own.first // ticks, UTC)
        date = f", from {instant:%Y-%m-%d %H:%M} UTC on"
    return f"Shown are {length} of {where}, beginning {since} after its first submission{date}: {reason}."


def _in_use(own: Excerpt) -> list[str]:
    sentences = [
        f"under {policy} {counted(len(np.unique(rectangles.row)), 'job runs', 'jobs run')} in it and "
        f"{own.utilisation(k):.0f} % of the machine is in use"
        for k, (policy, rectangles) in enumerate(zip(own.policies, own.drawn, strict=True))
    ]
    text = "; ".join(sentences)
    return [f"{text[0].upper()}{text[1:]}."]


def _moved(own: Excerpt) -> list[str]:
    if len(own.policies) < 2:
        return []
    change = own.change[own.shown]
    less, more = int((change < 0).sum()), int((change > 0).sum())
    fewer = counted(less, "waits", "wait")
    first, second = own.policies
    if not less and not more:
        return [f"Each of these jobs waits as long under {second} as under {first}."]
    text = (
        f"Of the {len(change):,} jobs that run in it under either policy, {fewer} less under {second} than under "
        f"{first}, {more:,} more, {len(change) - less - more:,} as long."
    )
    if own.loser is None:
        return [text]
    at, jobs = own.loser, own.jobs
    before, after = (format_duration(float(wait[at])) for wait in own.waits)
    size = counted(int(jobs.processors[at]), "processor")
    return [f"{text} Job {jobs.job_id[at]} ({size}, outlined) loses most: it waits {after} instead of {before}."]


def _left_out(own: Excerpt, most: int) -> list[str]:
    each = max(1, most // len(own.policies))
    sentences = []
    for policy, rectangles in zip(own.policies, own.drawn, strict=True):
        drawn = rectangles.largest(each)
        missing = len(np.unique(rectangles.row)) - len(np.unique(drawn.row))
        if len(drawn.row) < len(rectangles.row):
            share = 100 * (1 - float(drawn.area.sum()) / float(rectangles.area.sum()))
            sentences.append(f"{counted(missing, 'small job')} under {policy} ({share:.1f} % of the area)")
    return [f"Not drawn: {'; '.join(sentences)}."] if sentences else []
