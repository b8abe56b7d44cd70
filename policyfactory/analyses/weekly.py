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

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.common import texts
from policyfactory.analyses.over_cases import by_log
from policyfactory.analyses.weekly_view import Course, course_of, draw, series, table, words
from policyfactory.core.errors import UsageError
from policyfactory.core.units import WEEK
from policyfactory.report.sections import Picture, Section
from policyfactory.simulate.metrics import METRICS, job_values

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Weekly"]

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
        courses: dict[str, list[Course]] = {metric: [] for metric in self.metrics}
        for log in evaluation.logs:
            kept = by_log(evaluation, seen, log)
            for at, metric in enumerate(self.metrics):
                courses[metric].append(course_of(log, _means(kept, at + 1, self.cumulative)))
        paragraphs = [words(evaluation, courses, at, self.cumulative) for at in range(len(evaluation.logs))]
        what = "Cumulative mean" if self.cumulative else "Mean of each week"
        return Section(
            "weekly",
            "Week by week, cumulative" if self.cumulative else "Week by week",
            tuple(paragraphs),
            (
                *(table(evaluation, metric, courses[metric], self.cumulative) for metric in self.metrics),
                *(series(evaluation, metric, courses[metric]) for metric in self.metrics),
            ),
            tuple(
                Picture(
                    f"weekly-{metric.replace('_', '-')}",
                    f"{what}: {metric}, a line a policy, a panel a log",
                    lambda metric=metric: draw(evaluation, metric, courses[metric], self.cumulative),  # type: ignore[misc]
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
