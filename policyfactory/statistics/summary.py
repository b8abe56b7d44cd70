"""What the cases of a log say together: the statistic with its interval, spread, ranks, the best."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.schedule import RECORDED
from policyfactory.statistics.compare import mean_ranks
from policyfactory.statistics.evaluation import Evaluation, estimate_weekly
from policyfactory.statistics.intervals import Interval, RowStatistic, Statistic, estimate_level, estimate_value


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
    statistic: RowStatistic
    cases: int
    value: float
    interval: Interval | None
    median: float
    mean: float
    lowest: float
    highest: float
    quartile_1: float | None
    quartile_3: float | None
    rank: int | None = None
    mean_rank: float | None = None
    mean_rank_interval: Interval | None = None
    best: bool = False


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
    return [
        row
        for log in evaluation.logs
        for metric in evaluation.metrics
        for row in _summarise_metric(evaluation, log, metric, statistic, seed)
    ]


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
    return [
        _summary(evaluation, (log, metric, RECORDED), statistic, seed)
        for log in (evaluation.logs if evaluation.recorded is not None else ())
        for metric in evaluation.metrics
    ]


def _summarise_metric(
    evaluation: Evaluation, log: str, metric: str, statistic: Statistic, seed: int
) -> Iterator[Summary]:
    rows = [_summary(evaluation, (log, metric, policy), statistic, seed) for policy in evaluation.policies]
    direction = METRICS[metric].lower_is_better
    if direction is None:
        yield from rows
        return
    keys = np.array([row.value if direction else -row.value for row in rows])
    mean = {rank.policy: rank.mean for rank in mean_ranks(evaluation, metric, [log], seed=seed)}
    for row, key in zip(rows, keys, strict=True):
        rank = None if math.isnan(key) else 1 + int((keys < key).sum())
        placed = dataclasses.replace(row, rank=rank, best=rank == 1)
        estimate = mean.get(row.policy)
        if estimate:
            placed = dataclasses.replace(placed, mean_rank=estimate.value, mean_rank_interval=estimate.interval)
        yield placed


def _summary(evaluation: Evaluation, key: tuple[str, str, str], statistic: Statistic, seed: int) -> Summary:
    """Return the summary of the finite values, without a place."""
    log, metric, policy = key
    values = evaluation.column(log, metric, policy)
    column = values[np.isfinite(values)]
    estimate = estimate_value(statistic, column, seed=seed)
    widening = evaluation.drawn(log)
    if widening is not None:
        estimate = estimate_level(estimate, column, METRICS[metric].lowest, widening)
    weekly = evaluation.weekly_column(log, metric, policy)
    if weekly is not None:
        # The value is the metric's own, to the last digit; its weeks say how certain it is.
        over_weeks = estimate_weekly(*weekly, evaluation.weekly[log].block, seed=seed)
        estimate = dataclasses.replace(estimate, interval=over_weeks.interval)
    # A record may have more jobs at once than its machine has processors for.
    highest = math.inf if policy == RECORDED else METRICS[metric].highest
    estimate = estimate.within(METRICS[metric].lowest, highest)
    n = len(column)
    quantiles = np.quantile(column, [0, 0.25, 0.5, 0.75, 1]).tolist() if n else [math.nan] * 5
    lowest, low, median, high, highest = quantiles
    return Summary(
        log=log,
        metric=metric,
        policy=policy,
        unit=METRICS[metric].unit,
        statistic=statistic if weekly is None else "weeks",
        cases=n,
        value=estimate.value,
        interval=estimate.interval,
        median=median,
        mean=float(column.mean()) if n else math.nan,
        lowest=lowest,
        highest=highest,
        quartile_1=low if n > 1 else None,
        quartile_3=high if n > 1 else None,
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
    longest = rows[np.argmax(evaluation.longest_wait[rows], axis=0)]
    return [
        WorstOff(
            policy,
            evaluation.cases[case].number,
            int(evaluation.longest_wait_job[case, column]),
            float(evaluation.longest_wait[case, column]),
        )
        for column, (policy, case) in enumerate(zip(evaluation.policies, longest.tolist(), strict=True))
    ]
