"""How much less is waited than under the baseline, as time passes: who saves what, and how soon.

Figures 4 to 6 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering
policies", IEEE TPDS 29(10), 2018: a job's wait is added when the job ends, the difference from the baseline is in % of
the baseline's total wait, so that a curve ends at the value of equation 12 and a straight line is a constant gain.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import LogAnalysis
from policyfactory.analyses.plots import is_dashed, line_look
from policyfactory.analyses.tables import log_cells, policy_columns, stem_by_log
from policyfactory.core.errors import UsageError
from policyfactory.core.picture import new_figure
from policyfactory.core.text import counted, enumerated, number_text, shortened
from policyfactory.core.units import DAY, HOUR, WEEK
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.statistics.means import estimate_ratio
from policyfactory.tuning.tuner import Tuner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Improvement", "WaitCourse"]

FloatArray = NDArray[np.float64]

_BINS = {"week": WEEK, "day": DAY, "hour": HOUR}
_MOST_BINS = 100_000
_WEEKLY, _DAILY = 26 * WEEK, 10 * DAY  # spans from which time is counted in weeks, in days


@dataclasses.dataclass(frozen=True, slots=True)
class Improvement(LogAnalysis):
    """Total wait against the baseline's, as time passes.

    Parameters
    ----------
    every : str
        Time is counted in ``week``, ``day`` or ``hour``; empty: by the length of the case.

    Raises
    ------
    UsageError
        If ``every`` is none of these.
    """

    name: ClassVar[str] = "improvement"

    every: str = ""

    def __post_init__(self) -> None:
        if self.every and self.every not in _BINS:
            raise UsageError(f"analysis improvement: every is {self.every!r}; choose from {', '.join(_BINS)}")

    def observe(self, case: Case, schedule: Schedule) -> WaitCourse:
        """Return the total wait at the end of each bin."""
        jobs = schedule.workload
        span = (int(jobs.submit[-1]) - int(jobs.submit[0])) / jobs.ticks
        bin_s = _BINS[self.every] if self.every else WEEK if span >= _WEEKLY else DAY if span >= _DAILY else HOUR
        # What ends later than any bin that is drawn counts in the last one.
        at = np.minimum((schedule.end - jobs.submit[0]) // (bin_s * jobs.ticks), _MOST_BINS - 1)
        return WaitCourse(bin_s, np.cumsum(np.bincount(at, weights=schedule.start - jobs.submit)) / jobs.ticks)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the course of every contender in words, a table and pictures."""
        logs = self.chosen_logs(evaluation)
        each_log = [_gather(evaluation, log, seen) for log in logs]
        pictures = [
            picture for courses, stem in zip(each_log, stem_by_log("", logs).values(), strict=True)
            for picture in _pictures(courses, stem)
        ]  # fmt: skip
        words = courses_in_words(each_log)
        return Section(
            "improvement",
            f"What is saved against {evaluation.baseline}, as time passes",
            words,
            (_table(each_log),),
            tuple(pictures),
            words if any(isinstance(one, Tuner) for one in evaluation.contenders) else (),
        )


def _gather(evaluation: Evaluation, log: str, seen: list[list[Any]]) -> Courses:
    rows: list[list[WaitCourse]] = [seen[row] for row in evaluation.rows(log).tolist()]
    bin_s = max(course.bin_s for row in rows for course in row)
    coarse = [[_coarsened(course, bin_s) for course in row] for row in rows]
    bins = max(len(one) for row in coarse for one in row)
    # After its last job a schedule's total wait stays as it is.
    wait = np.array([[np.pad(one, (0, bins - len(one)), mode="edge") for one in row] for row in coarse])
    tuned = tuple(isinstance(one, Tuner) for one in evaluation.contenders)
    base = wait[:, 0, -1].mean()
    change = 100 * (wait - wait[:, :1]) / base if base else np.full_like(wait, np.nan)
    return Courses(log, evaluation.policies, tuned, bin_s, wait[:, :, -1], change, change.mean(axis=0))


def _coarsened(course: WaitCourse, bin_s: int) -> FloatArray:
    step = bin_s // course.bin_s
    if step == 1:
        return course.wait_s
    return np.append(course.wait_s[step - 1 :: step], course.wait_s[-1])


# The table and the pictures. ------------------------------------------------------------------------------------------


def _table(each_log: list[Courses]) -> Table:
    logs = [courses.log for courses in each_log]
    columns = policy_columns(
        logs,
        *(
            Column(f"after {part}/4", "%", f"mean over cases when {part}/4 of the time had passed")
            for part in (1, 2, 3)
        ),
        Column("at the end", "%", "sum over the cases against the baseline's, with its 95 % interval"),
        Column("10 % of cases below", "%", "10 % quantile of the cases at the end"),
        Column("90 % of cases below", "%", "90 % quantile of the cases at the end"),
    )
    rows = [
        (*log_cells(logs, courses.log), *_row(courses, at))
        for courses in each_log
        for at in range(1, len(courses.names))
    ]
    return Table(
        "improvement",
        f"Total wait minus that under {each_log[0].names[0]}, in % of the latter's total",
        columns,
        tuple(rows),
        f"Negative: less is waited. A wait counts when its job ends.{_without_ratio(each_log)}",
    )


def _without_ratio(each_log: list[Courses]) -> str:
    if all(courses.has_ratio for courses in each_log):
        return ""
    return f" Empty: no job waits under {each_log[0].names[0]}, of which no percentage can be taken."


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


_LOW, _HIGH = 0.1, 0.9


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WaitCourse:
    """The total wait of one schedule as time passes.

    Parameters
    ----------
    bin_s : int
        Length of a bin in seconds, counted from the first submission.
    wait_s : float64 array (bins,), seconds
        Total wait of the jobs that ended before the end of each bin.
    """

    bin_s: int
    wait_s: FloatArray


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """All contenders on the cases of one log.

    Parameters
    ----------
    log : str
        The log.
    names : tuple of str
        The contenders; the first is the baseline.
    tuned : tuple of bool
        Which of them are tuners.
    bin_s : int
        Length of a bin in seconds.
    total_s : float64 array (cases, contenders), seconds
        Total wait.
    change : float64 array (cases, contenders, bins)
        Wait so far minus the baseline's, in % of the baseline's mean total; NaN if that is 0.
    mean : float64 array (contenders, bins)
        Mean of ``change`` over the cases; it ends at the ratio of the sums.
    """

    log: str
    names: tuple[str, ...]
    tuned: tuple[bool, ...]
    bin_s: int
    total_s: FloatArray
    change: FloatArray
    mean: FloatArray

    @property
    def has_ratio(self) -> bool:
        """Whether something is waited under the baseline: of nothing there is no percentage."""
        return bool(self.total_s[:, 0].any())

    def band(self, contender: int) -> tuple[FloatArray, FloatArray]:
        """Return the 10 and 90 % quantile of the cases, each (bins,)."""
        low, high = np.quantile(self.change[:, contender], [_LOW, _HIGH], axis=0)
        return low, high


# The picture. ---------------------------------------------------------------------------------------------------------


_UNIT = {WEEK: "weeks", DAY: "days", HOUR: "hours"}


def draw_courses(courses: Courses, chosen: Sequence[int]) -> Figure:
    """Draw the mean course of the chosen contenders, the bands of the best and the worst, and all ends.

    Parameters
    ----------
    courses : Courses
        Of one log.
    chosen : sequence of int
        Which contenders.

    Returns
    -------
    Figure
    """
    figure = new_figure(7.0, max(3.6, 1.6 + 0.22 * len(chosen)))
    left, right = figure.subplots(1, 2, width_ratios=[3, 1.1], sharey=False)
    time = np.arange(courses.mean.shape[1] + 1)
    order = sorted(chosen, key=lambda at: courses.mean[at, -1])
    many = len(courses.total_s) > 1
    for at in chosen:
        look = line_look(chosen.index(at))
        left.plot(time, np.append(0.0, courses.mean[at]), **look)
        if many and at in (order[0], order[-1]):
            low, high = (np.append(0.0, edge) for edge in courses.band(at))
            left.fill_between(time, low, high, color=look["color"], alpha=0.15, linewidth=0)
    left.axhline(0, color="black", linewidth=1)
    left.set_xlim(0, time[-1])
    left.set_xlabel(f"time ({_UNIT[courses.bin_s]})")
    left.set_ylabel(f"total wait minus {shortened(courses.names[0], 16)}'s\n(% of the latter's total)")
    _ends(right, courses, {at: chosen.index(at) for at in order}, many=many)
    return figure


def _ends(axes: Any, courses: Courses, lines: dict[int, int], *, many: bool) -> None:
    order = list(lines)
    for place, at in enumerate(order):
        value, colour = courses.mean[at, -1], line_look(lines[at])["color"]
        if many:
            low, high = (edge[-1] for edge in courses.band(at))
            axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.45, solid_capstyle="butt")
        axes.plot(
            value, place, "o", color=colour, markersize=5, markerfacecolor="white" if is_dashed(lines[at]) else colour
        )
    axes.axvline(0, color="black", linewidth=1)
    axes.set_yticks(range(len(order)), [shortened(courses.names[at], 22) for at in order], fontsize=8)
    axes.yaxis.tick_right()
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("at the end (%)")


# In words. ------------------------------------------------------------------------------------------------------------


def courses_in_words(each_log: Sequence[Courses]) -> tuple[str, ...]:
    """Return a paragraph a log: who saves most, what the tuners recover, how steady it is."""
    return tuple(_of_log(courses) for courses in each_log)


def _of_log(courses: Courses) -> str:
    cases = len(courses.total_s)
    over = courses.log if cases == 1 else f"{courses.log}, {counted(cases, 'case')}"
    if len(courses.names) == 1:
        return f"{over}: there is nothing to compare {courses.names[0]} with."
    if not courses.has_ratio:
        return f"{over}: no job waits under {courses.names[0]}, so nothing can be saved."
    fixed = [at for at in range(1, len(courses.names)) if not courses.tuned[at]]
    tuners = [at for at in range(1, len(courses.names)) if courses.tuned[at]]
    sentences = [_best_in_words(courses, fixed, over)] if fixed else []
    if tuners:
        sentences += _tuners_in_words(courses, fixed, tuners, "" if fixed else f"{over}: ")
    return " ".join(sentences)


def _end(courses: Courses, at: int) -> float:
    return float(courses.mean[at, -1])


def _amount(courses: Courses, at: int) -> str:
    """Return the change at the end with the range of the cases: ``saves 16.2 % of FCFS's total wait (...)``."""
    value = _end(courses, at)
    word = "saves" if value < 0 else "adds"
    text = f"{word} {number_text(abs(value))} % of {courses.names[0]}'s total wait"
    estimate = estimate_ratio(courses.total_s[:, at], courses.total_s[:, 0])
    if estimate.interval is None:
        return text
    ends = sorted(abs(end) if value * end > 0 else -abs(end) for end in (estimate.interval.low, estimate.interval.high))
    return f"{text} (95 % interval {number_text(ends[0])} to {number_text(ends[1])})"


def _best_in_words(courses: Courses, fixed: Sequence[int], over: str) -> str:
    best = min(fixed, key=lambda at: _end(courses, at))
    if _end(courses, best) >= 0:
        return f"{over}: no policy waits less than {courses.names[0]} in total."
    half = courses.mean[best, (courses.mean.shape[1] - 1) // 2] / _end(courses, best)
    pace = f"{max(0, round(100 * half))} % of that in the first half of the time"
    return (
        f"{over}: of the policies, {courses.names[best]} {_amount(courses, best)}, {pace}; it is the best in hindsight."
    )


def _tuners_in_words(courses: Courses, fixed: Sequence[int], tuners: Sequence[int], start: str) -> list[str]:
    best = min(tuners, key=lambda at: _end(courses, at))
    of = [at for at in tuners if _end(courses, at) > 0]
    sentences = [
        f"{start}Of the tuners, {courses.names[best]} {_amount(courses, best)}{_recovered(courses, fixed, best)}."
    ]
    if len(tuners) > 1:
        worst = max(tuners, key=lambda at: _end(courses, at))
        sentences.append(f"The last is {courses.names[worst]}, which {_amount(courses, worst)}.")
    if of:
        sentences.append(f"Worse than {courses.names[0]}: {enumerated(courses.names[at] for at in of)}.")
    return sentences


def _recovered(courses: Courses, fixed: Sequence[int], at: int) -> str:
    hindsight = min((_end(courses, one) for one in fixed), default=0.0)
    if hindsight >= 0 or _end(courses, at) >= 0:
        return ""
    return f", {round(100 * _end(courses, at) / hindsight)} % of what the best policy in hindsight saves"
