"""What the cases of a log say together: the statistic with its interval, spread, ranks, the best."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.recorded import RECORDED
from policyfactory.statistics.intervals import Estimate, Interval, Statistic
from policyfactory.statistics.means import estimate_value
from policyfactory.statistics.ranks import mean_ranks

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Summary", "WorstOff", "summarise", "summarise_recorded", "worst_off"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """One policy in one metric over the cases of one log.

    Parameters
    ----------
    log, metric, policy : str
        What is summarised.
    unit : str
        Unit of the metric.
    cases : int
        Windows with a finite value.
    median, mean, lowest, highest : float
        Over those cases; NaN without one.
    quartile_1, quartile_3 : float or None
        Ends of the middle half of the cases; None with one case, which has no spread.
    rank : int or None
        Place by the value among the policies, 1 is the best, equal values share the better place; None for a
        metric without a better direction.
    mean_rank : float or None
        Mean over cases of the policy's place in the case (equal values share the mean place).
    mean_rank_interval : Interval or None
        95 % bootstrap interval of ``mean_rank``.
    best : bool
        Whether no policy has a better value.
    """

    log: str
    metric: str
    policy: str
    unit: str
    statistic: Statistic
    cases: int
    value: float
    interval: Interval | None
    median: float
    mean: float
    lowest: float
    highest: float
    quartile_1: float | None
    quartile_3: float | None
    rank: int | None
    mean_rank: float | None
    mean_rank_interval: Interval | None
    best: bool


@dataclasses.dataclass(frozen=True, slots=True)
class WorstOff:
    """The job that waits longest under a policy.

    Parameters
    ----------
    policy : str
        The policy.
    case : int
        Number of the case.
    job_id : int
        The job.
    wait_s : float
        Its wait in seconds.
    """

    policy: str
    case: int
    job_id: int
    wait_s: float


def summarise(evaluation: Evaluation, *, statistic: Statistic = "median", seed: int = 0) -> list[Summary]:
    """Return a summary of every log, metric and policy, in that order.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    statistic : {"median", "mean", "ratio"}
        What ``value`` is, by which the policies are placed.
    seed : int
        Seed of the bootstrap.
    """
    rows: list[Summary] = []
    for log in evaluation.logs:
        for metric in evaluation.metrics:
            rows.extend(_summarise_metric(evaluation, (log, metric), statistic, seed))
    return rows


def summarise_recorded(evaluation: Evaluation, *, statistic: Statistic = "median", seed: int = 0) -> list[Summary]:
    """Return a summary of the recorded schedules, by log and metric; none if they were not measured.

    They have no place among the policies, and are never the best.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    statistic : {"median", "mean", "ratio"}
        What ``value`` is.
    seed : int
        Seed of the bootstrap.
    """
    rows: list[Summary] = []
    for log in evaluation.logs if evaluation.recorded is not None else ():
        for metric in evaluation.metrics:
            column = evaluation.recorded_values(log, metric)
            column = column[np.isfinite(column)]
            estimate = estimate_value(statistic, column, seed=seed)
            rows.append(_summary((log, metric, RECORDED), column, (statistic, estimate), (None, None)))
    return rows


def _summarise_metric(evaluation: Evaluation, key: tuple[str, str], statistic: Statistic, seed: int) -> list[Summary]:
    log, metric = key
    direction = METRICS[metric].lower_is_better
    columns = [column[np.isfinite(column)] for column in evaluation.matrix(log, metric).T]
    estimates = [estimate_value(statistic, column, seed=seed) for column in columns]
    places: list[int | None] = [None] * len(columns)
    if direction is not None:
        keys = np.array([estimate.value if direction else -estimate.value for estimate in estimates])
        places = [None if math.isnan(own) else 1 + int((keys < own).sum()) for own in keys]
    mean = {rank.policy: rank.mean for rank in mean_ranks(evaluation, metric, [log], seed=seed)}
    return [
        _summary((log, metric, policy), column, (statistic, estimate), (place, mean.get(policy)))
        for policy, column, estimate, place in zip(evaluation.policies, columns, estimates, places, strict=True)
    ]


def _summary(
    key: tuple[str, str, str],
    column: FloatArray,
    estimated: tuple[Statistic, Estimate],
    places: tuple[int | None, Estimate | None],
) -> Summary:
    log, metric, policy = key
    statistic, estimate = estimated
    place, mean_rank = places
    n = len(column)
    low, median, high = np.quantile(column, [0.25, 0.5, 0.75]).tolist() if n else (math.nan,) * 3
    return Summary(
        log=log,
        metric=metric,
        policy=policy,
        unit=METRICS[metric].unit,
        statistic=statistic,
        cases=n,
        value=estimate.value,
        interval=estimate.interval,
        median=median,
        mean=float(column.mean()) if n else math.nan,
        lowest=float(column.min()) if n else math.nan,
        highest=float(column.max()) if n else math.nan,
        quartile_1=low if n > 1 else None,
        quartile_3=high if n > 1 else None,
        rank=place,
        mean_rank=mean_rank.value if mean_rank else None,
        mean_rank_interval=mean_rank.interval if mean_rank else None,
        best=place == 1,
    )


def worst_off(evaluation: Evaluation, log: str) -> list[WorstOff]:
    """Return, for each policy, the job of the log that waits longest over all its cases.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    log : str
        Name of the log.
    """
    rows = evaluation.rows(log)
    estimated = []
    for column, policy in enumerate(evaluation.policies):
        at = rows[int(np.argmax(evaluation.longest_wait[rows, column]))]
        estimated.append(
            WorstOff(
                policy,
                evaluation.cases[at].number,
                int(evaluation.longest_wait_job[at, column]),
                float(evaluation.longest_wait[at, column]),
            )
        )
    return estimated
