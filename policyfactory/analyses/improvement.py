"""How much less is waited than under the baseline, as time passes: who saves what, and how soon.

Figures 4 to 6 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering
policies", IEEE TPDS 29(10), 2018: a job's wait is added when the job ends, the difference from the baseline is in % of
the baseline's total wait, so that a curve ends at the value of equation 12 and a straight line is a constant gain.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.common import chosen_logs, log_cells, log_columns, stem_by_log
from policyfactory.analyses.improvement_course import Course, Courses
from policyfactory.analyses.improvement_picture import draw_courses
from policyfactory.analyses.improvement_words import courses_in_words
from policyfactory.core.errors import UsageError
from policyfactory.core.units import DAY, HOUR, WEEK
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.statistics.means import estimate_ratio
from policyfactory.tuning.tuner import Tuner

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Course", "Courses", "Improvement"]

FloatArray = NDArray[np.float64]

_BINS = {"week": WEEK, "day": DAY, "hour": HOUR}
_MOST_BINS = 100_000
_WEEKLY, _DAILY = 26 * WEEK, 10 * DAY  # spans from which time is counted in weeks, in days


@dataclasses.dataclass(frozen=True, slots=True)
class Improvement(Analysis):
    """Total wait against the baseline's, as time passes.

    Parameters
    ----------
    every : str
        Time is counted in ``week``, ``day`` or ``hour``; empty: by the length of the case.
    log : str
        The log to look at; empty: each.

    Raises
    ------
    UsageError
        If ``every`` is none of these.
    """

    name: ClassVar[str] = "improvement"

    every: str = ""
    log: str = ""

    def __post_init__(self) -> None:
        if self.every and self.every not in _BINS:
            raise UsageError(f"analysis improvement: every is {self.every!r}; choose from {', '.join(_BINS)}")

    def observe(self, case: Case, schedule: Schedule) -> Course:
        """Return the total wait at the end of each bin."""
        jobs = schedule.workload
        span = (int(jobs.submit[-1]) - int(jobs.submit[0])) / jobs.ticks
        bin_s = _BINS[self.every] if self.every else WEEK if span >= _WEEKLY else DAY if span >= _DAILY else HOUR
        # What ends later than any bin that is drawn counts in the last one.
        at = np.minimum((schedule.end - jobs.submit[0]) // (bin_s * jobs.ticks), _MOST_BINS - 1)
        return Course(bin_s, np.cumsum(np.bincount(at, weights=schedule.start - jobs.submit)) / jobs.ticks)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the course of every contender in words, a table and pictures."""
        logs = chosen_logs(evaluation, self.name, self.log)
        found = [_gather(evaluation, log, seen) for log in logs]
        pictures = [
            picture for courses, stem in zip(found, stem_by_log("", logs).values(), strict=True)
            for picture in _pictures(courses, stem)
        ]  # fmt: skip
        words = courses_in_words(found)
        return Section(
            "improvement",
            f"What is saved against {evaluation.baseline}, as time passes",
            words,
            (_table(found),),
            tuple(pictures),
            words if any(isinstance(one, Tuner) for one in evaluation.contenders) else (),
        )


def _gather(evaluation: Evaluation, log: str, seen: list[list[Any]]) -> Courses:
    rows: list[list[Course]] = [seen[row] for row in evaluation.rows(log).tolist()]
    bin_s = max(course.bin_s for row in rows for course in row)
    coarse = [[_coarsened(course, bin_s) for course in row] for row in rows]
    bins = max(len(one) for row in coarse for one in row)
    # After its last job a schedule's total wait stays as it is.
    wait = np.array([[np.pad(one, (0, bins - len(one)), mode="edge") for one in row] for row in coarse])
    tuned = tuple(isinstance(one, Tuner) for one in evaluation.contenders)
    base = wait[:, 0, -1].mean()
    change = 100 * (wait - wait[:, :1]) / base if base else np.full_like(wait, np.nan)
    return Courses(log, evaluation.policies, tuned, bin_s, wait[:, :, -1], change, change.mean(axis=0))


def _coarsened(course: Course, bin_s: int) -> FloatArray:
    step = bin_s // course.bin_s
    if step == 1:
        return course.wait_s
    return np.append(course.wait_s[step - 1 :: step], course.wait_s[-1])


# The table and the pictures. ------------------------------------------------------------------------------------------


def _table(found: list[Courses]) -> Table:
    logs = [courses.log for courses in found]
    columns = (
        *log_columns(logs),
        Column("policy"),
        *(
            Column(f"after {part}/4", "%", f"mean over cases when {part}/4 of the time had passed")
            for part in (1, 2, 3)
        ),
        Column("at the end", "%", "sum over the cases against the baseline's, with its 95 % interval"),
        Column("10 % of cases below", "%", "10 % quantile of the cases at the end"),
        Column("90 % of cases below", "%", "90 % quantile of the cases at the end"),
    )
    rows = [
        (*log_cells(logs, courses.log), *_row(courses, at)) for courses in found for at in range(1, len(courses.names))
    ]
    return Table(
        "improvement",
        f"Total wait minus that under {found[0].names[0]}, in % of the latter's total",
        columns,
        tuple(rows),
        f"Negative: less is waited. A wait counts when its job ends.{_without_ratio(found)}",
    )


def _without_ratio(found: list[Courses]) -> str:
    if all(courses.has_ratio for courses in found):
        return ""
    return f" Empty: no job waits under {found[0].names[0]}, of which no percentage can be taken."


def _row(courses: Courses, at: int) -> list[Cell]:
    course = courses.mean[at]
    quarters = [float(course[max(0, round(part * len(course) / 4) - 1)]) for part in (1, 2, 3)]
    end = estimate_ratio(courses.total_s[:, at], courses.total_s[:, 0])
    many = len(courses.total_s) > 1
    low, high = (float(edge[-1]) if many else None for edge in courses.band(at))
    numbers = [*map(Cell, quarters), Cell(end.value, end.interval), Cell(low), Cell(high)]
    return [Cell(courses.names[at]), *(numbers if courses.has_ratio else [Cell(None)] * len(numbers))]


def _pictures(courses: Courses, stem: str) -> list[Picture]:
    policies = [at for at in range(1, len(courses.names)) if not courses.tuned[at]]
    tuners = [at for at in range(1, len(courses.names)) if courses.tuned[at]]
    if tuners and policies:
        # What could have been had: the best of the policies, known only afterwards.
        tuners = [min(policies, key=lambda at: courses.mean[at, -1]), *tuners]
    if not courses.has_ratio:
        return []
    return [
        Picture(
            f"{what}{stem}",
            f"{courses.log}: total wait of {what} minus that under {courses.names[0]}, as time passes",
            functools.partial(draw_courses, courses, chosen),
            _note(courses, what),
        )
        for what, chosen in (("policies", policies), ("tuners", tuners))
        if chosen
    ]


def _note(courses: Courses, what: str) -> str:
    first = "The first policy is the best in hindsight. " if what == "tuners" and not all(courses.tuned[1:]) else ""
    if len(courses.total_s) == 1:
        return f"{first}Below zero less is waited."
    return (
        f"{first}Lines: mean over the cases; shaded, for the best and the worst, and the bars at the right: from the "
        "10 to the 90 % quantile of the cases. Below zero less is waited."
    )
