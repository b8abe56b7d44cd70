"""Week by week: how metrics settle as weeks are added, or how much they vary from week to week.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
figure 1 (cumulative means, with the spread over resampled logs), and Gaussier, Lelong, Reis and Trystram, "Online
tuning of EASY-backfilling using queue reordering policies", IEEE TPDS 29(10), 2018, figure 1 (plain weekly means).
The former leaves out the best and the worst of ten samples; here all are kept, and the band is between
their 10 and 90 % quantiles.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import Analysis, texts
from policyfactory.analyses.estimates import by_log, mark_of, median_difference, median_of, policies_by_mark
from policyfactory.analyses.plots import colour_of, dash_of, name_panel, panels_down
from policyfactory.analyses.tables import log_cells, median_cell, policy_columns, policy_rows
from policyfactory.analyses.wording import against, cases_text, listed
from policyfactory.core.errors import UsageError
from policyfactory.core.picture import plain_numbers
from policyfactory.core.text import counted, shortened
from policyfactory.core.units import WEEK
from policyfactory.report.numbers import Scale, scale_for
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulate.metrics import METRICS, job_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Weekly", "weekly_course"]

FloatArray = NDArray[np.float64]

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
                raise UsageError(f"analysis {self.name}: {name!r} is no mean over jobs; choose from {', '.join(known)}")
        if not names:
            raise UsageError(f"analysis {self.name}: no metric is named; choose from {', '.join(known)}")
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
        courses: dict[str, list[WeeklyCourse]] = {metric: [] for metric in self.metrics}
        for log in evaluation.logs:
            kept = by_log(evaluation, seen, log)
            for at, metric in enumerate(self.metrics):
                courses[metric].append(weekly_course(log, _means(kept, at + 1, self.cumulative)))
        paragraphs = [_words(evaluation, courses, at, self.cumulative) for at in range(len(evaluation.logs))]
        what = "Cumulative mean" if self.cumulative else "Mean of each week"
        return Section(
            "weekly",
            "Week by week, cumulative" if self.cumulative else "Week by week",
            tuple(paragraphs),
            (
                *(_table(evaluation, metric, courses[metric], self.cumulative) for metric in self.metrics),
                *(_series(evaluation, metric, courses[metric]) for metric in self.metrics),
            ),
            tuple(
                Picture(
                    f"weekly-{metric.replace('_', '-')}",
                    f"{what}: {metric}, a line a policy, a panel a log",
                    lambda metric=metric: _draw(evaluation, metric, courses[metric], self.cumulative),  # type: ignore[misc]
                    "Line: median over the cases; band: between their 10 and 90 % quantiles. All cases count: none is "
                    "dropped as the best or the worst.",
                )
                for metric in self.metrics
            ),
        )


def _means(kept: list[list[FloatArray]], row: int, cumulative: bool) -> FloatArray:  # noqa: FBT001 (an option)
    """Return the mean of each week: float64 array (cases, policies, weeks of the longest case); NaN without jobs."""
    weeks = max(sums.shape[1] for case in kept for sums in case)
    jobs, sums = np.zeros((2, len(kept), len(kept[0]), weeks))
    for at, case in enumerate(kept):
        for place, seen in enumerate(case):
            jobs[at, place, : seen.shape[1]] = seen[0]
            sums[at, place, : seen.shape[1]] = seen[row]
    if cumulative:
        jobs, sums = np.cumsum(jobs, axis=2), np.cumsum(sums, axis=2)
    return np.asarray(np.divide(sums, jobs, out=np.full(sums.shape, np.nan), where=jobs > 0))


_LOG_FROM = 20.0  # a range of values wider than this factor is shown on a logarithmic scale


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WeeklyCourse:
    """The weeks of one metric on one log.

    Parameters
    ----------
    log : str
        The log.
    values : float64 array (cases, policies, weeks)
        NaN where a week has no job.
    middle, low, high : float64 array (policies, weeks)
        Median over the cases, and their 10 and 90 % quantiles.
    """

    log: str
    values: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def ends(self) -> FloatArray:
        """Values of the last week: float64 array (cases, policies)."""
        return np.asarray(self.values[:, :, -1])


def weekly_course(log: str, values: FloatArray) -> WeeklyCourse:
    """Return the weeks of one log with their quantiles over the cases."""
    there = np.isfinite(values).any(axis=0)
    # Weeks without a job in any case have no quantile; what stands in for them is taken out again.
    quantiles = np.nanquantile(np.where(there, values, 0.0), [0.5, 0.1, 0.9], axis=0)
    return WeeklyCourse(log, values, *np.where(there, quantiles, np.nan))


def _settled(course: WeeklyCourse) -> int | None:
    """Return the week (from 1) from which on the policies have the order of the last one; None for one policy."""
    if course.middle.shape[0] < 2:
        return None
    order = np.argsort(np.argsort(course.middle, axis=0, kind="stable"), axis=0)
    differs = np.flatnonzero((order != order[:, -1:]).any(axis=0))
    return int(differs[-1]) + 2 if len(differs) else 1


def _best_of_weeks(course: WeeklyCourse) -> tuple[FloatArray, float]:
    """Return in how many % of the weeks each policy is the best, and in how many the best one has changed.

    Weeks in which all policies are equal, because nobody waits, do not count.
    """
    tells = np.isfinite(course.values).all(axis=1) & (np.ptp(np.nan_to_num(course.values), axis=1) > 0)
    best = np.argmin(np.where(np.isfinite(course.values), course.values, np.inf), axis=1)
    shares = np.bincount(best[tells], minlength=course.values.shape[1]).astype(np.float64)
    pairs = tells[:, 1:] & tells[:, :-1]
    changes = (best[:, 1:] != best[:, :-1])[pairs]
    return 100 * shares / max(float(shares.sum()), 1.0), 100 * float(changes.mean()) if len(changes) else 0.0


def _table(evaluation: Evaluation, metric: str, courses: list[WeeklyCourse], cumulative: bool) -> Table:  # noqa: FBT001 (an option)
    """Return the values at the end (cumulative), or over all weeks, of one metric.

    Parameters
    ----------
    evaluation : Evaluation
        Names of logs and policies.
    metric : str
        The metric.
    courses : list of WeeklyCourse
        One a log.
    cumulative : bool
        Whether the means are cumulative.
    """
    unit, course_of = METRICS[metric].unit, {course.log: course for course in courses}

    def cells(log: str, place: int) -> tuple[Cell, ...]:
        course = course_of[log]
        if cumulative:
            mark = mark_of(median_difference(course.ends, place)) if place else ""
            return (median_cell(course.ends[:, place], mark), *map(_number, _tails(course.ends[:, place])))
        own = course.values[:, place][np.isfinite(course.values[:, place])]
        return (_number(own.mean()), *map(_number, _tails(own)), Cell(_best_of_weeks(course)[0][place]))

    what = (
        (Column("at the end", unit, "mean over all jobs, median over the cases"), "of the cases")
        if cumulative
        else (Column("mean", unit, "of the weekly means of all cases"), "of the weeks of all cases")
    )
    best = () if cumulative else (Column("best week", "%", "weeks in which the policy has the lowest mean"),)
    marks = against(evaluation) if cumulative else ""
    return Table(
        f"weekly-{metric.replace('_', '-')}",
        f"{'Cumulative' if cumulative else 'Weekly'} {metric}",
        policy_columns(
            evaluation.logs,
            what[0],
            Column("10 %", unit, f"a tenth {what[1]} lies below"),
            Column("90 %", unit, f"a tenth {what[1]} lies above"),
            *best,
        ),
        policy_rows(evaluation.logs, evaluation.policies, cells),
        f"{METRICS[metric].description}.{marks}",
    )


def _series(evaluation: Evaluation, metric: str, courses: list[WeeklyCourse]) -> Table:
    """Return every week of one metric, for whoever draws it again: the page shows the first, the file has all.

    Parameters
    ----------
    evaluation : Evaluation
        Names of logs and policies.
    metric : str
        The metric.
    courses : list of WeeklyCourse
        One a log.
    """
    unit = METRICS[metric].unit
    rows = [
        (
            *log_cells(evaluation.logs, course.log),
            Cell(policy),
            Cell(float(week + 1)),
            *(_number(values[place, week]) for values in (course.middle, course.low, course.high)),
        )
        for course in courses
        for week in range(course.middle.shape[1])
        for place, policy in enumerate(evaluation.policies)
    ]
    return Table(
        f"weekly-{metric.replace('_', '-')}-weeks",
        f"Every week of {metric}",
        policy_columns(
            evaluation.logs,
            Column("week", "1", "from 1"),
            Column("median", unit, "over the cases"),
            Column("10 %", unit, "a tenth of the cases lies below"),
            Column("90 %", unit, "a tenth of the cases lies above"),
        ),
        tuple(rows),
        "The lines and bands of the picture.",
        shown=min(len(rows), len(evaluation.policies)),
    )


def _number(value: float) -> Cell:
    return Cell(float(value) if np.isfinite(value) else None)


def _tails(values: FloatArray) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    return (float(np.quantile(values, 0.1)), float(np.quantile(values, 0.9))) if len(values) else (np.nan, np.nan)


def _words(evaluation: Evaluation, courses: dict[str, list[WeeklyCourse]], at: int, cumulative: bool) -> str:  # noqa: FBT001 (an option)
    """Return what the curves of one log show.

    Parameters
    ----------
    evaluation : Evaluation
        Names of policies, numbers of cases.
    courses : dict of str to list of WeeklyCourse
        For each metric one course a log.
    at : int
        Place of the log.
    cumulative : bool
        Whether the means are cumulative.
    """
    log = evaluation.logs[at]
    tell = _where_it_settles if cumulative else _how_it_varies
    sentences = [tell(evaluation, metric, own[at]) for metric, own in courses.items()]
    weeks = next(iter(courses.values()))[at].middle.shape[1]
    return f"{log} ({cases_text(evaluation, log)}, {counted(weeks, 'week')}): {' '.join(sentences)}"


def _where_it_settles(evaluation: Evaluation, metric: str, course: WeeklyCourse) -> str:
    ends = [median_of(course.ends[:, place]).value for place in range(len(evaluation.policies))]
    scale = scale_for(METRICS[metric].unit, ends)
    order = np.argsort(ends, kind="stable").tolist()
    values = [f"{evaluation.policies[place]} {scale.text(ends[place])}" for place in order]
    text = f"{metric} at the end: {', '.join(values)}{scale.suffix}"
    settled = _settled(course)
    if settled is None:
        return f"{text}."
    if min(ends) == max(ends):
        return f"{text}; it is the same under all policies."
    text += f"; in this order from week {settled} on." if settled > 1 else "; in this order from the first week on."
    marked = policies_by_mark(evaluation.policies, lambda place: mark_of(median_difference(course.ends, place)))
    for word, what in (
        ("better", "Lower than under"),
        ("worse", "Higher than under"),
        ("no difference", "No difference from"),
    ):
        text += listed(f"{what} {evaluation.baseline}", marked.get(word, []))
    return text


def _how_it_varies(evaluation: Evaluation, metric: str, course: WeeklyCourse) -> str:
    shares, changes = _best_of_weeks(course)
    if len(evaluation.policies) == 1 or not shares.any():
        return f"{metric}: in no week do policies differ."
    most = int(np.argmax(shares))
    overall = int(np.argmin([np.nanmean(course.values[:, place]) for place in range(len(evaluation.policies))]))
    text = (
        f"{metric}: {evaluation.policies[overall]} has the lowest mean over all weeks, and is the best in "
        f"{shares[overall]:.0f} % of the weeks in which policies differ"
    )
    if most != overall:
        text += f" ({evaluation.policies[most]} in {shares[most]:.0f} %)"
    return f"{text}; from one week to the next the best one changes in {changes:.0f} % of the pairs."


def _draw(evaluation: Evaluation, metric: str, courses: list[WeeklyCourse], cumulative: bool) -> Figure:  # noqa: FBT001 (an option)
    """Return the picture of one metric: a panel a log, a line and a band a policy."""
    figure, panels = panels_down(len(courses), 2.7 if len(courses) > 1 else 3.4)
    finite = np.concatenate([course.middle[np.isfinite(course.middle)] for course in courses])
    scale = scale_for(METRICS[metric].unit, finite.tolist())
    for axes, course in zip(panels, courses, strict=True):
        _lines(axes, evaluation, course, scale)
        name_panel(axes, evaluation, course.log)
        axes.set_ylabel(f"{metric}{f' ({scale.label})' if scale.label else ''}")
    panels[-1].set_xlabel("weeks since the first submission" if cumulative else "week of submission")
    handles, labels = panels[0].get_legend_handles_labels()
    columns = min(4 if max(map(len, labels)) <= 14 else 3, len(labels))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=9)
    return figure


def _lines(axes: Any, evaluation: Evaluation, course: WeeklyCourse, scale: Scale) -> None:
    from matplotlib.ticker import MaxNLocator

    weeks = np.arange(1, course.middle.shape[1] + 1)
    for place, policy in enumerate(evaluation.policies):
        style = {"color": colour_of(place), "zorder": 3 if place == 0 else 2}
        marker = "o" if len(weeks) == 1 else None
        line = course.middle[place] / scale.divisor
        look = {"linestyle": dash_of(place), "marker": marker, **style}
        axes.plot(weeks, line, linewidth=1.6, label=shortened(policy, 22), **look)
        if len(course.values) > 1:
            low, high = course.low[place] / scale.divisor, course.high[place] / scale.divisor
            axes.fill_between(weeks, low, high, alpha=0.12, linewidth=0, **style)
            for edge in (low, high):
                axes.plot(weeks, edge, linewidth=0.6, alpha=0.7, linestyle=(0, (4, 3)), **style)
    shown = course.middle[np.isfinite(course.middle)]
    if len(shown) and shown.min() > 0 and shown.max() / shown.min() >= _LOG_FROM:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlim(1, max(2, len(weeks)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_numbers(axes.yaxis)
