"""What tuners save against the baseline as time passes, and which policy each of them chose, and when.

Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering policies", IEEE TPDS
29(10), 2018. Figures 4 to 6: a job's wait is added when the job ends, the difference from the baseline is in % of the
baseline's total wait, so that a curve ends at the value of equation 12 and a straight line is a constant gain. Figures
7 and 8: at each time the share of the cases in which a policy was in force.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import new_figure
from policyfactory.core.text import DAY, HOUR, WEEK, counted, enumerated, format_duration, shortened
from policyfactory.evaluation.analyses.analysis import (
    LogAnalysis,
    LogView,
    cell_of,
    difference_text,
    log_column,
    policy_table,
    stem_by_log,
)
from policyfactory.evaluation.picture import area_look, line_look
from policyfactory.report.sections import Cell, Column, Columns, Picture, Section, Table
from policyfactory.simulation.tuning.tuner import TunedSchedule, Tuner
from policyfactory.statistics.intervals import Estimate, estimate_ratio

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation


_BINS = {"week": WEEK, "day": DAY, "hour": HOUR}
_PERIODS = {seconds: name for name, seconds in _BINS.items()}
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
        bins = np.minimum((schedule.end - jobs.submit[0]) // (bin_s * jobs.ticks), _MOST_BINS - 1)
        return WaitCourse(bin_s, np.cumsum(np.bincount(bins, weights=schedule.start - jobs.submit)) / jobs.ticks)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the course of every contender in words, a table and pictures."""
        logs = [_courses_of(view) for view in self.by_log(evaluation, seen, LogView)]
        stems = stem_by_log("", [view.log for view in logs])
        pictures = [picture for courses in logs for picture in _pictures(courses, stems[courses.log])]
        words = tuple(map(_in_words, logs))
        return Section(
            "improvement",
            f"What is saved against {evaluation.baseline}, as time passes",
            words,
            (_table(logs),),
            tuple(pictures),
            words if any(isinstance(contender, Tuner) for contender in evaluation.contenders) else (),
        )


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

    def coarsened(self, bin_s: int) -> FloatArray:
        """Return the waits at the ends of longer bins."""
        step = bin_s // self.bin_s
        return self.wait_s if step == 1 else np.append(self.wait_s[step - 1 :: step], self.wait_s[-1])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Courses(LogView):
    """All contenders on the cases of one log.

    Parameters
    ----------
    bin_s : int
        Length of a bin in seconds.
    total_s : float64 array (cases, contenders), seconds
        Total wait.
    change : float64 array (cases, contenders, bins)
        Wait so far minus the baseline's, in % of the baseline's mean total; NaN if that is 0.
    mean : float64 array (contenders, bins)
        Mean of ``change`` over the cases; it ends at the ratio of the sums.
    """

    bin_s: int
    total_s: FloatArray
    change: FloatArray
    mean: FloatArray

    @property
    def tuners(self) -> list[int]:
        """Places of the tuners."""
        return [k for k, contender in enumerate(self.evaluation.contenders) if k and isinstance(contender, Tuner)]

    @property
    def fixed(self) -> list[int]:
        """Places of the policies but for the baseline."""
        return [index for index in range(1, len(self.policies)) if index not in self.tuners]

    @property
    def has_ratio(self) -> bool:
        """Whether something is waited under the baseline: of nothing there is no percentage."""
        return bool(self.total_s[:, 0].any())

    def end(self, index: int) -> float:
        """Return the mean at the end."""
        return float(self.mean[index, -1])

    def ratio(self, index: int) -> Estimate:
        """Return the same with its interval."""
        return estimate_ratio(self.total_s[:, index], self.total_s[:, 0])

    def after(self, index: int, part: float) -> float:
        """Return the mean when this part of the time had passed."""
        course = self.mean[index]
        return float(course[max(0, round(part * len(course)) - 1)])

    def band(self, contender: int) -> FloatArray:
        """Return the 10 and 90 % quantile of the cases, (2, bins)."""
        return np.asarray(np.quantile(self.change[:, contender], [0.1, 0.9], axis=0))


def _courses_of(view: LogView) -> Courses:
    bin_s = max(course.bin_s for case in view.kept for course in case)
    coarse = [[course.coarsened(bin_s) for course in case] for case in view.kept]
    bins = max(len(course) for case in coarse for course in case)
    # After its last job a schedule's total wait stays as it is.
    wait = np.array([[np.pad(course, (0, bins - len(course)), mode="edge") for course in case] for case in coarse])
    base = wait[:, 0, -1].mean()
    change = 100 * (wait - wait[:, :1]) / base if base else np.full_like(wait, np.nan)
    return Courses(
        evaluation=view.evaluation,
        log=view.log,
        kept=view.kept,
        bin_s=bin_s,
        total_s=wait[:, :, -1],
        change=change,
        mean=change.mean(axis=0),
    )


# The table and the pictures. ------------------------------------------------------------------------------------------


def _table(logs: Sequence[Courses]) -> Table:
    base = logs[0].baseline

    def shown(get: Callable[[Courses, int], float | Cell | None]) -> Callable[[Courses, int], float | Cell | None]:
        return lambda courses, index: get(courses, index) if courses.has_ratio else None

    def tail(edge: int) -> Callable[[Courses, int], float | Cell | None]:
        return shown(lambda courses, index: float(courses.band(index)[edge, -1]) if len(courses.kept) > 1 else None)

    columns = {
        Column(f"after {part}/4", "%", f"mean over cases when {part}/4 of the time had passed"): shown(
            lambda courses, index, part=part: courses.after(index, part / 4)  # type: ignore[misc]
        )
        for part in (1, 2, 3)
    }
    columns |= {
        Column("at the end", "%", "sum over the cases against the baseline's, with its 95 % interval"): shown(
            lambda courses, index: cell_of(courses.ratio(index))
        ),
        Column("10 % of cases below", "%", "10 % quantile of the cases at the end"): tail(0),
        Column("90 % of cases below", "%", "90 % quantile of the cases at the end"): tail(1),
    }
    note = "Negative: less is waited. A wait counts when its job ends."
    if not all(courses.has_ratio for courses in logs):
        note += f" Empty: no job waits under {base}, of which no percentage can be taken."
    title = f"Total wait minus that under {base}, in % of the latter's total"
    return policy_table("improvement", title, logs, columns, note, first=1)


def _pictures(courses: Courses, stem: str) -> list[Picture]:
    if not courses.has_ratio:
        return []
    policies, tuners = courses.fixed, courses.tuners
    hindsight = ""
    if tuners and policies:
        # What could have been had: the best of the policies, known only afterwards.
        tuners = [min(policies, key=courses.end), *tuners]
        hindsight = "The first policy is the best in hindsight. "
    note = "Below zero less is waited."
    if len(courses.kept) > 1:
        note = (
            "Lines: mean over the cases; shaded, for the best and the worst, and the bars at the right: from the 10 to "
            f"the 90 % quantile of the cases. {note}"
        )
    return [
        Picture(
            f"{what}{stem}",
            f"{courses.log}: total wait of {what} minus that under {courses.baseline}, as time passes",
            functools.partial(draw_courses, courses, chosen),
            f"{first}{note}",
        )
        for what, chosen, first in (("policies", policies, ""), ("tuners", tuners, hindsight))
        if chosen
    ]


# The picture. ---------------------------------------------------------------------------------------------------------


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
    order = sorted(chosen, key=courses.end)
    many = len(courses.kept) > 1
    for index in chosen:
        look = line_look(1 + chosen.index(index))
        left.plot(time, np.append(0.0, courses.mean[index]), **look)
        if many and index in (order[0], order[-1]):
            low, high = (np.append(0.0, edge) for edge in courses.band(index))
            left.fill_between(time, low, high, color=look["color"], alpha=0.15, linewidth=0)
    left.axhline(0, color="black", linewidth=1)
    left.set_xlim(0, time[-1])
    left.set_xlabel(f"time ({_PERIODS[courses.bin_s]}s)")
    left.set_ylabel(f"total wait minus {shortened(courses.baseline, 16)}'s\n(% of the latter's total)")
    _ends(right, courses, {index: line_look(1 + chosen.index(index)) for index in order}, many=many)
    return figure


def _ends(axes: Any, courses: Courses, looks: dict[int, dict[str, Any]], *, many: bool) -> None:
    order = list(looks)
    for row, index in enumerate(order):
        value, colour = courses.end(index), looks[index]["color"]
        if many:
            low, high = courses.band(index)[:, -1]
            axes.plot([low, high], [row, row], color=colour, linewidth=3, alpha=0.45, solid_capstyle="butt")
        face = colour if looks[index]["linestyle"] == "-" else "white"
        axes.plot(value, row, "o", color=colour, markersize=5, markerfacecolor=face)
    axes.axvline(0, color="black", linewidth=1)
    axes.set_yticks(range(len(order)), [shortened(courses.policies[index], 22) for index in order], fontsize=8)
    axes.yaxis.tick_right()
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("at the end (%)")


# In words. ------------------------------------------------------------------------------------------------------------


def _in_words(courses: Courses) -> str:
    cases = len(courses.kept)
    over = courses.log if cases == 1 else f"{courses.log}, {counted(cases, 'case')}"
    if len(courses.policies) == 1:
        return f"{over}: there is nothing to compare {courses.baseline} with."
    if not courses.has_ratio:
        return f"{over}: no job waits under {courses.baseline}, so nothing can be saved."
    fixed = courses.fixed
    sentences = [_best_in_words(courses, over)] if fixed else []
    if courses.tuners:
        sentences += _tuners_in_words(courses, "" if fixed else f"{over}: ")
    return " ".join(sentences)


def _amount(courses: Courses, index: int) -> str:
    """Return the change at the end with its interval: ``saves 16.2 % of FCFS's total wait (...)``."""
    change = dataclasses.replace(courses.ratio(index), value=courses.end(index))
    of = f"of {courses.baseline}'s total wait"
    return f"{'saves' if change.value < 0 else 'adds'} {difference_text(change, '%', (of, of))}"


def _best_in_words(courses: Courses, over: str) -> str:
    best = min(courses.fixed, key=courses.end)
    if courses.end(best) >= 0:
        return f"{over}: no policy waits less than {courses.baseline} in total."
    half = courses.mean[best, (courses.mean.shape[1] - 1) // 2] / courses.end(best)
    pace = f"{max(0, round(100 * half))} % of that in the first half of the time; it is the best in hindsight"
    return f"{over}: of the policies, {courses.policies[best]} {_amount(courses, best)}, {pace}."


def _tuners_in_words(courses: Courses, start: str) -> list[str]:
    tuners = courses.tuners
    best = min(tuners, key=courses.end)
    of = [index for index in tuners if courses.end(index) > 0]
    sentences = [f"{start}Of the tuners, {courses.policies[best]} {_amount(courses, best)}{_recovered(courses, best)}."]
    if len(tuners) > 1:
        worst = max(tuners, key=courses.end)
        sentences.append(f"The last is {courses.policies[worst]}, which {_amount(courses, worst)}.")
    if of:
        sentences.append(f"Worse than {courses.baseline}: {enumerated(courses.policies[index] for index in of)}.")
    return sentences


def _recovered(courses: Courses, index: int) -> str:
    hindsight = min(map(courses.end, courses.fixed), default=0.0)
    if hindsight >= 0 or courses.end(index) >= 0:
        return ""
    return f", {round(100 * courses.end(index) / hindsight)} % of what the best policy in hindsight saves"


# Which policy each tuner chose ----------------------------------------------------------------------------------------


_NAMED = 3  # policies that a sentence names


@dataclasses.dataclass(frozen=True, slots=True)
class Choices(LogAnalysis):
    """Shares of the policies that each tuner chose."""

    name: ClassVar[str] = "choices"

    def observe(self, case: Case, schedule: Schedule) -> NDArray[np.uint8] | None:
        """Return the choices; None of a policy."""
        return schedule.choices.astype(np.uint8) if isinstance(schedule, TunedSchedule) else None

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return what every tuner chose in words, a table and a picture a log."""
        title = "What the tuners chose"
        logs = self.by_log(evaluation, seen, LogView)
        each_log = [_shares_of(view) for view in logs]
        shares = [choices for of_log in each_log for choices in of_log]
        if not shares:
            return Section("choices", title, ("No tuner was evaluated: each policy was in force all the time.",))
        several = len(logs) > 1
        stems = stem_by_log("choices", [view.log for view in logs]).values()
        pictures = tuple(map(_picture, each_log, stems))
        paragraphs = tuple(_choices_in_words(choices, several=several) for choices in shares)
        return Section("choices", title, paragraphs, (_course(shares, several), _all(shares, several)), pictures)


def _shares_of(view: LogView) -> list[ArmShares]:
    """Return what each tuner chose on one log."""
    results = []
    for index, tuner in enumerate(view.evaluation.contenders):
        if isinstance(tuner, Tuner):
            rows = [case[index].astype(np.int64) for case in view.kept]
            periods = max(map(len, rows))
            choices = np.array([np.pad(row, (0, periods - len(row)), constant_values=-1) for row in rows])
            results.append(
                ArmShares(view.log, tuner.name, tuple(arm.name for arm in tuner.arms), tuner.period_s, choices)
            )
    return results


# Words and tables. ----------------------------------------------------------------------------------------------------


def _choices_in_words(choices: ArmShares, *, several: bool) -> str:
    shares, late = choices.shares(), choices.shares(0.75, 1.0)
    top = int(np.argmax(late))
    steady = np.count_nonzero(shares) > 1
    end = f" In the last quarter of the time it was {choices.arms[top]} in {_percent(late[top])}." if steady else ""
    where = f"{choices.tuner} on {choices.log}" if several else choices.tuner
    return f"{where}: {_most(choices, shares)}; {_percent(choices.changes)} of them began with a change.{end}"


def _most(choices: ArmShares, shares: FloatArray) -> str:
    """Return the policies with the largest shares: ``SPF in 83 % and SRF in 8 % of the periods, 2 other ...``."""
    order = [int(arm) for arm in np.argsort(-shares, kind="stable") if shares[arm] > 0]
    named = enumerated(f"{choices.arms[arm]} in {_percent(shares[arm])}" for arm in order[:_NAMED])
    rest = len(order) - _NAMED
    others = f", {counted(rest, 'other policy', 'other policies')} in the rest" if rest > 0 else ""
    return f"{named} of the periods{others}"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 1 or value == 0 else "under 1 %"


def _course(shares: Sequence[ArmShares], several: bool) -> Table:  # noqa: FBT001 (a column is there or not)
    """Return the policies that each tuner chose most, by quarters of the time."""
    quarters = {
        Column(f"{word} quarter", "", f"policies with the largest shares in the {word} quarter of the time, in %"): (
            lambda choices, quarter=quarter: _largest(choices, quarter / 4)
        )
        for quarter, word in enumerate(("first", "second", "third", "last"))
    }
    columns = {
        **_names(several),
        Column("period"): lambda choices: _PERIODS.get(choices.period_s) or format_duration(choices.period_s),
        Column("changes", "%", "periods that began with a change of the policy"): lambda choices: choices.changes,
        **quarters,
    }
    title = "The policies that each tuner chose most, as time passes (% of the periods)"
    return Table.of("course", title, columns, zip(shares))


def _names(several: bool) -> Columns:  # noqa: FBT001 (as above)
    return {**log_column(several=several), Column("tuner"): lambda choices: choices.tuner}


def _largest(choices: ArmShares, first: float) -> str:
    shares = choices.shares(first, first + 0.25)
    order = [int(arm) for arm in np.argsort(-shares, kind="stable")[:_NAMED] if shares[arm] > 0]
    return ", ".join(f"{choices.arms[arm]} {shares[arm]:.0f}" for arm in order)


def _all(shares: Sequence[ArmShares], several: bool) -> Table:  # noqa: FBT001 (a column is there or not)
    """Return the share of each policy among all periods of each tuner."""
    arms = {
        Column(arm, "%"): lambda choices, arm=arm: dict(zip(choices.arms, choices.shares().tolist(), strict=True)).get(
            arm
        )
        for arm in used_arms(shares)
    }
    title = "Share of each policy among all periods of each tuner"
    return Table.of(
        "shares", title, {**_names(several), **arms}, zip(shares), "Policies that no tuner chose are left out."
    )


def _picture(shares: Sequence[ArmShares], stem: str) -> Picture:
    cases = len(shares[0].choices)
    what = "of the cases" if cases > 1 else "of the time"
    return Picture(
        stem,
        f"{shares[0].log}: the policies that each tuner had in force, as time passes",
        functools.partial(draw_shares, shares),
        f"The height of a colour is the share {what} in which the policy was in force. Policies that were never chosen "
        "are left out.",
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ArmShares:
    """What one tuner chose on the cases of one log.

    Parameters
    ----------
    log, tuner : str
        Where, and who.
    arms : tuple of str
        The policies that it chose from.
    period_s : int
        Length of a period in seconds.
    choices : int64 array (cases, periods)
        Which of ``arms``; -1 where a case has ended.
    """

    log: str
    tuner: str
    arms: tuple[str, ...]
    period_s: int
    choices: Int64Array

    def shares(self, first: float = 0.0, last: float = 1.0) -> FloatArray:
        """Return the share of each arm in a part of the time, in %: float64 array (arms,).

        Parameters
        ----------
        first, last : float
            Where the part begins and ends, as parts of the whole; it has one period at least.
        """
        periods = self.choices.shape[1]
        begin = min(int(first * periods), periods - 1)
        return self._of(begin, max(begin + 1, round(last * periods)))

    def _of(self, begin: int, end: int) -> FloatArray:
        part = self.choices[:, begin:end]
        counts = np.bincount(part[part >= 0], minlength=len(self.arms))
        return np.asarray(100 * counts / max(1, counts.sum()), dtype=np.float64)

    def over_time(self, most: int) -> tuple[FloatArray, FloatArray]:
        """Return the edges of at most ``most`` bins in days (bins + 1,), and the shares in each (bins, arms), in %."""
        periods = self.choices.shape[1]
        edges = np.unique(np.linspace(0, periods, min(periods, most) + 1).astype(np.int64))
        rows = [self._of(begin, end) for begin, end in itertools.pairwise(edges.tolist())]
        return edges * self.period_s / DAY, np.array(rows)

    @property
    def changes(self) -> float:
        """How many of the periods begin with a change of the policy, in %."""
        both = (self.choices[:, 1:] >= 0) & (self.choices[:, :-1] >= 0)
        changed = both & (self.choices[:, 1:] != self.choices[:, :-1])
        return 100 * float(changed.sum()) / max(1, int(both.sum()))


_MOST_AREAS = 52
_ABREAST = 2
_LONGEST, _LEGEND_WIDTH = 30, 84  # letters of a name, and of a line of the legend
_WEEKS_FROM = 60  # days from which time is counted in weeks


def used_arms(shares: Sequence[ArmShares]) -> list[str]:
    """Return the policies that some tuner chose, in the order of the tuners' lists.

    Parameters
    ----------
    shares : sequence of Shares
        Of one log or several.
    """
    names = list(dict.fromkeys(arm for choices in shares for arm in choices.arms))
    chosen = {choices.arms[arm] for choices in shares for arm in np.flatnonzero(choices.shares() > 0)}
    return [name for name in names if name in chosen]


def draw_shares(shares: Sequence[ArmShares]) -> Figure:
    """Draw the shares of each tuner in a panel of its own, with one legend.

    Parameters
    ----------
    shares : sequence of Shares
        Of one log.

    Returns
    -------
    Figure
    """
    used = used_arms(shares)
    across = min(_ABREAST, len(shares))
    down = -(-len(shares) // across)
    lines = -(-len(used) // _legend_names(used)[1])
    figure = new_figure(7.0, (3.0 if across == 1 else 1.9) * down + 0.6 + 0.22 * lines)
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for axes in grid.ravel()[len(shares) :]:
        axes.set_axis_off()
    for number, (axes, choices) in enumerate(zip(grid.ravel(), shares, strict=False)):
        unit = _shares_panel(axes, choices, used)
        axes.tick_params(labelbottom=number >= len(shares) - across)
        if number >= len(shares) - across:
            axes.set_xlabel(f"time ({unit})")
    figure.supylabel("share (%)", fontsize=10)
    _legend(figure, used)
    return figure


def _shares_panel(axes: Any, choices: ArmShares, used: Sequence[str]) -> str:
    days, rows = choices.over_time(_MOST_AREAS)
    unit, divisor = ("weeks", 7) if days[-1] >= _WEEKS_FROM else ("days", 1)
    bottom = np.zeros(len(rows))
    for index, name in enumerate(used):
        if name not in choices.arms:
            continue
        top = bottom + rows[:, choices.arms.index(name)]
        low, high = np.append(bottom, bottom[-1]), np.append(top, top[-1])
        axes.fill_between(days / divisor, low, high, step="post", **area_look(index))
        bottom = top
    axes.set_title(shortened(choices.tuner, 40), loc="left", fontsize=9)
    axes.set_xlim(0, days[-1] / divisor)
    axes.set_ylim(0, 100)
    axes.grid(visible=False)
    return unit


def _legend_names(used: Sequence[str]) -> tuple[list[str], int]:
    """Return the names as they are written below the picture, and how many abreast."""
    names = [shortened(name, _LONGEST) for name in used]
    return names, max(1, min(6, len(used), _LEGEND_WIDTH // (max(map(len, names)) + 6)))


def _legend(figure: Figure, used: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    names, abreast = _legend_names(used)
    handles = [Patch(**area_look(index)) for index in range(len(used))]
    figure.legend(handles, names, loc="outside lower center", ncols=abreast, fontsize=9)
