"""Week by week: how metrics settle as weeks are added, or how much they vary from week to week.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
figure 1 (cumulative means, with the spread over resampled logs), and Gaussier, Lelong, Reis and Trystram, "Online
tuning of EASY-backfilling using queue reordering policies", IEEE TPDS 29(10), 2018, figure 1 (plain weekly means).
The former leaves out the best and the worst of ten samples; here all are kept, and the band is between
their 10 and 90 % quantiles.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import WEEK, counted
from policyfactory.evaluation.analyses.analysis import (
    Analysis,
    LogView,
    against,
    differences_of,
    estimate_cell,
    estimate_of,
    log_column,
    marked_in_words,
    marks_of,
    policy_table,
    texts,
)
from policyfactory.evaluation.picture import LOG_FROM, Curve, Panel, draw_panels
from policyfactory.report.sections import Cell, Column, Picture, Section, Table, scale_for
from policyfactory.simulation.metrics import METRICS, job_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

_MOST_WEEKS = 5_200
_MEAN = "mean_"


@dataclasses.dataclass(frozen=True, slots=True)
class Weekly(Analysis):
    """Means of metrics week by week.

    Cumulative means are over all jobs that have ended by the end of a week; jobs that end after the week of the last
    submission count in that week, so that a curve ends at the mean over all jobs. Plain means are over the jobs
    submitted in a week.

    Parameters
    ----------
    metrics : tuple of str
        Means over jobs in `METRICS`, for example ``mean_wait``.
    cumulative : bool
        Cumulative or plain weekly means.

    Raises
    ------
    UsageError
        If a metric is no mean over jobs.
    """

    name: ClassVar[str] = "weekly"
    metrics: tuple[str, ...] = ("mean_wait", "mean_bsld", "mean_pp_bsld")
    cumulative: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.cumulative, bool):
            raise UsageError(f"analysis {self.name}: cumulative is {self.cumulative!r}; give true or false")
        names = texts(self.name, "metrics", self.metrics)
        known = [name for name in METRICS if name.startswith(_MEAN)]
        for name in names:
            if name not in known:
                raise UsageError(f"analysis {self.name}: metrics {name!r}: no mean over jobs; give {', '.join(known)}")
        if not names:
            raise UsageError(f"analysis {self.name}: metrics names none; give {', '.join(known)}")
        object.__setattr__(self, "metrics", tuple(dict.fromkeys(names)))

    def observe(self, case: Case, schedule: Schedule) -> FloatArray:
        """Return jobs and sums of the metrics of each week: float64 array (1 + metrics, weeks)."""
        submit, week = schedule.workload.submit, WEEK * schedule.workload.ticks
        first = int(submit[0]) // week
        weeks = min(int(submit[-1]) // week - first + 1, _MOST_WEEKS)
        which = (schedule.end if self.cumulative else submit) // week - first
        np.minimum(which, weeks - 1, out=which)
        columns = [job_values(schedule, metric.removeprefix(_MEAN)) for metric in self.metrics]
        jobs = np.bincount(which, minlength=weeks)
        return np.array([jobs, *(np.bincount(which, column, minlength=weeks) for column in columns)], dtype=np.float64)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the section: a picture and a table a metric, and what the curves show."""
        views = self.by_log(evaluation, seen, LogView)
        each_metric = [
            [weekly_course(view, metric, row, cumulative=self.cumulative) for view in views]
            for row, metric in enumerate(self.metrics, 1)
        ]
        what = "Cumulative mean" if self.cumulative else "Mean of each week"
        pictures = [
            Picture(
                f"weekly-{courses[0].metric.replace('_', '-')}",
                f"{what}: {courses[0].metric}, a line a policy, a panel a log",
                functools.partial(_draw, courses),
                "Line: median over the cases; band: between their 10 and 90 % quantiles. All cases count: none is "
                "dropped as the best or the worst.",
            )
            for courses in each_metric
        ]
        return Section(
            "weekly",
            "Week by week, cumulative" if self.cumulative else "Week by week",
            tuple(map(_words, zip(*each_metric, strict=True))),
            (*map(_table, each_metric), *map(_series, each_metric)),
            tuple(pictures),
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WeeklyCourse(LogView):
    """The weeks of one metric on one log.

    Parameters
    ----------
    metric : str
        The metric.
    cumulative : bool
        Whether its means are cumulative.
    weekly : float64 array (cases, policies, weeks)
        NaN where a week has no job.
    middle, low, high : float64 array (policies, weeks)
        Median over the cases, and their 10 and 90 % quantiles.
    """

    metric: str
    cumulative: bool
    weekly: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def ends(self) -> FloatArray:
        """Values of the last week: float64 array (cases, policies)."""
        return np.asarray(self.weekly[:, :, -1])

    def mark(self, index: int) -> str:
        """Return the verdict on a policy's value of the last week."""
        return marks_of(differences_of(self.ends), self.ends, self.drawn)[index]

    def column(self, index: int) -> FloatArray:
        """Return the finite numbers of a policy that the table sums up: those of the last week, or of all weeks."""
        values = self.ends[:, index] if self.cumulative else self.weekly[:, index]
        return values[np.isfinite(values)]

    def settled(self) -> int | None:
        """Return the week (from 1) from which on the policies have the order of the last one; None for one policy."""
        if len(self.policies) < 2:
            return None
        order = np.argsort(np.argsort(self.middle, axis=0, kind="stable"), axis=0)
        differs = np.flatnonzero((order != order[:, -1:]).any(axis=0))
        return int(differs[-1]) + 2 if len(differs) else 1

    def best_of_weeks(self) -> tuple[FloatArray, float]:
        """Return in how many % of the weeks each policy is the best, and in how many the best one has changed.

        Weeks in which all policies are equal, because nobody waits, do not count.
        """
        values = self.weekly
        counts = np.isfinite(values).all(axis=1) & (np.ptp(np.nan_to_num(values), axis=1) > 0)
        best = np.argmin(np.where(np.isfinite(values), values, np.inf), axis=1)
        shares = np.bincount(best[counts], minlength=values.shape[1]).astype(np.float64)
        changes = (best[:, 1:] != best[:, :-1])[counts[:, 1:] & counts[:, :-1]]
        return 100 * shares / max(float(shares.sum()), 1.0), 100 * float(changes.mean()) if len(changes) else 0.0


def weekly_course(view: LogView, metric: str, row: int, *, cumulative: bool) -> WeeklyCourse:
    """Return the weeks of a metric on one log, with their quantiles over the cases.

    Parameters
    ----------
    view : LogView
        The log, with what `Weekly.observe` kept.
    metric : str
        The metric.
    row : int
        Where its sums are in what was kept; the jobs are in row 0.
    cumulative : bool
        Cumulative or plain weekly means.
    """
    weeks = max(sums.shape[1] for case in view.kept for sums in case)
    # A case that ends earlier has no jobs and no sums in the weeks after.
    padded = np.array(
        [[np.pad(sums[[0, row]], ((0, 0), (0, weeks - sums.shape[1]))) for sums in case] for case in view.kept]
    )
    jobs, sums = np.moveaxis(np.cumsum(padded, axis=3) if cumulative else padded, 2, 0)
    values = np.divide(sums, jobs, out=np.full(sums.shape, np.nan), where=jobs > 0)
    there = np.isfinite(values).any(axis=0)
    # Weeks without a job in any case have no quantile; what stands in for them is taken out again.
    quantiles = np.nanquantile(np.where(there, values, 0.0), [0.5, 0.1, 0.9], axis=0)
    return WeeklyCourse(
        view.evaluation, view.log, view.kept, metric, cumulative, values, *np.where(there, quantiles, np.nan)
    )


def _table(courses: Sequence[WeeklyCourse]) -> Table:
    """Return the values at the end (cumulative), or over all weeks, of one metric."""
    first = courses[0]
    unit, metric = METRICS[first.metric].unit, first.metric

    def tail(level: float) -> Callable[[WeeklyCourse, int], Cell]:
        return lambda course, index: _number(
            np.quantile(values, level) if len(values := course.column(index)) else np.nan
        )

    of = "of the cases" if first.cumulative else "of the weeks of all cases"
    tails = {
        Column("10 %", unit, f"a tenth {of} lies below"): tail(0.1),
        Column("90 %", unit, f"a tenth {of} lies above"): tail(0.9),
    }
    if first.cumulative:
        at_end = Column("at the end", unit, "mean over all jobs, median over the cases")
        columns = {at_end: lambda course, index: estimate_cell(course.ends[:, index], mark=course.mark(index)), **tails}
    else:
        mean = Column("mean", unit, "of the weekly means of all cases")
        best = Column("best week", "%", "weeks in which the policy has the lowest mean")
        columns = {
            mean: lambda course, index: _number(course.column(index).mean()),
            **tails,
            best: lambda course, index: Cell(course.best_of_weeks()[0][index]),
        }
    return policy_table(
        f"weekly-{metric.replace('_', '-')}",
        f"{'Cumulative' if first.cumulative else 'Weekly'} {metric}",
        courses,
        columns,
        f"{METRICS[metric].description}.{against(first.evaluation) if first.cumulative else ''}",
    )


def _series(courses: Sequence[WeeklyCourse]) -> Table:
    """Return every week of one metric, for whoever draws it again: the page shows the first, the file has all."""
    metric = courses[0].metric
    unit = METRICS[metric].unit
    rows = [
        (course, index, week)
        for course in courses
        for week in range(course.middle.shape[1])
        for index in range(len(course.policies))
    ]
    columns = {
        **log_column(several=len(courses) > 1),
        Column("policy"): lambda course, index, _: course.policies[index],
        Column("week", "1", "from 1"): lambda _, __, week: float(week + 1),
        Column("median", unit, "over the cases"): lambda course, *indices: _number(course.middle[indices]),
        Column("10 %", unit, "a tenth of the cases lies below"): lambda course, *indices: _number(course.low[indices]),
        Column("90 %", unit, "a tenth of the cases lies above"): lambda course, *indices: _number(course.high[indices]),
    }
    name, title = f"weekly-{metric.replace('_', '-')}-weeks", f"Every week of {metric}"
    shown = min(len(rows), len(courses[0].policies))
    return Table.of(name, title, columns, rows, "The lines and bands of the picture.", shown=shown)


def _number(value: float) -> Cell:
    return Cell(float(value) if np.isfinite(value) else None)


# In words. ------------------------------------------------------------------------------------------------------------


def _words(metrics: Sequence[WeeklyCourse]) -> str:
    """Return what the curves of one log show, metric by metric."""
    first = metrics[0]
    sentences = map(_where_it_settles if first.cumulative else _how_it_varies, metrics)
    return f"{first.log} ({first.cases}, {counted(first.middle.shape[1], 'week')}): {' '.join(sentences)}"


def _where_it_settles(course: WeeklyCourse) -> str:
    ends = [estimate_of(course.ends[:, index]).value for index in range(len(course.policies))]
    scale = scale_for(METRICS[course.metric].unit, ends)
    order = np.argsort(ends, kind="stable").tolist()
    values = [f"{course.policies[index]} {scale.text(ends[index])}" for index in order]
    text = f"{course.metric} at the end: {', '.join(values)}{scale.suffix}"
    settled, base = course.settled(), course.baseline
    if settled is None:
        return f"{text}."
    if min(ends) == max(ends):
        return f"{text}; it is the same under all policies."
    text += f"; in this order from {f'week {settled}' if settled > 1 else 'the first week'} on."
    phrases = {"better": f"Lower than under {base}", "worse": f"Higher than under {base}"}
    return text + marked_in_words(course.policies, course.mark, phrases)


def _how_it_varies(course: WeeklyCourse) -> str:
    metric, policies = course.metric, course.policies
    shares, changes = course.best_of_weeks()
    if len(policies) == 1 or not shares.any():
        return f"{metric}: in no week do policies differ."
    most = int(np.argmax(shares))
    overall = int(np.argmin([course.column(index).mean() for index in range(len(policies))]))
    text = (
        f"{metric}: {policies[overall]} has the lowest mean over all weeks, and is the best in "
        f"{shares[overall]:.0f} % of the weeks in which policies differ"
    )
    if most != overall:
        text += f" ({policies[most]} in {shares[most]:.0f} %)"
    return f"{text}; from one week to the next the best one changes in {changes:.0f} % of the pairs."


# The picture. ---------------------------------------------------------------------------------------------------------


def _draw(courses: Sequence[WeeklyCourse]) -> Figure:
    """Return the picture of one metric: a panel a log, a line and a band a policy."""
    first = courses[0]
    finite = np.concatenate([course.middle[np.isfinite(course.middle)] for course in courses])
    scale = scale_for(METRICS[first.metric].unit, finite.tolist())
    label = "weeks since the first submission" if first.cumulative else "week of submission"
    panels = []
    for course in courses:
        weeks = np.arange(1.0, course.middle.shape[1] + 1)
        middle, low, high = (values / scale.divisor for values in (course.middle, course.low, course.high))
        several = len(course.weekly) > 1
        curves = [
            Curve(policy, weeks, middle[index], (low[index], high[index]) if several else None)
            for index, policy in enumerate(course.policies)
        ]
        shown = middle[np.isfinite(middle)]
        wide = len(shown) > 0 and shown.min() > 0 and shown.max() / shown.min() >= LOG_FROM
        what = f"{first.metric}{f' ({scale.label})' if scale.label else ''}"
        panels.append(Panel(course.heading, label, what, curves, log_y=wide, whole=True))
    return draw_panels(panels, height=3.5 if len(courses) > 1 else 4.2)
