"""Places of the policies in the cases, and in how many cases each is better than each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.compare import Paired, Verdict, compare_values, verdict_of
from policyfactory.statistics.intervals import Estimate, Statistic
from policyfactory.statistics.means import estimate_mean

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Rank", "mean_ranks", "ranks", "wins"]


@dataclasses.dataclass(frozen=True, slots=True)
class Rank:
    """A policy's mean place, 1 is the best.

    Parameters
    ----------
    policy : str
        The policy.
    mean : Estimate
        Its mean place, with interval.
    difference : Estimate or None
        Its mean place minus the baseline's; None for the baseline itself.
    verdict : str
        Of the difference's interval.
    """

    policy: str
    mean: Estimate
    difference: Estimate | None
    verdict: Verdict


def ranks(values: FloatArray, *, lower_is_better: bool = True) -> FloatArray:
    """Return the place of each value in its row, from 1; equal values share the mean place.

    Parameters
    ----------
    values : float64 array (n_cases, n_policies)
        Values to be ranked along the second axis.
    lower_is_better : bool
        Whether the lowest value is first.

    Returns
    -------
    float64 array (n_cases, n_policies)
    """
    # As `scipy.stats.rankdata` does it, whose import takes longer than a small evaluation.
    placed = np.empty(values.shape)
    for row, own in zip(placed, values if lower_is_better else -values, strict=True):
        ordered = np.sort(own[~np.isnan(own)])
        row[:] = (np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right") + 1) / 2
        row[np.isnan(own)] = np.nan
    return placed


def mean_ranks(evaluation: Evaluation, metric: str, logs: Sequence[str], *, seed: int = 0) -> list[Rank]:
    """Return the mean place of each policy over the cases of one or several logs.

    The policies are ranked in each case in which all have a value; equal values share the mean place. Over several logs
    the result is the mean of the logs' mean places, every log counting alike, and the cases are drawn within their
    log (stratified): the interval is about other cases of these logs, not about other logs.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    metric : str
        One of its metrics.
    logs : sequence of str
        The strata; those without a complete case are left out.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    list of Rank
        In the order of the policies; empty if the metric has no better direction or there is no complete case.
    """
    direction = METRICS[metric].lower_is_better
    if direction is None:
        return []
    strata = []
    for log in logs:
        values = evaluation.matrix(log, metric)
        complete = values[np.isfinite(values).all(axis=1)]
        if len(complete):
            strata.append(ranks(complete, lower_is_better=direction))
    if not strata:
        return []
    results = []
    for column, policy in enumerate(evaluation.policies):
        own = [places[:, column] for places in strata]
        mean = estimate_mean(own, seed=seed, places=True).within(1.0, float(len(evaluation.policies)))
        difference = None
        if column:
            pairs = [places[:, column] - places[:, 0] for places in strata]
            difference = estimate_mean(pairs, seed=seed, places=True)
        verdict = verdict_of(difference.interval if difference else None)
        results.append(Rank(policy, mean, difference, verdict))
    return results


def wins(
    evaluation: Evaluation, log: str, metric: str, *, statistic: Statistic = "median", seed: int = 0
) -> list[list[Paired | None]]:
    """Return each policy compared with each other one on one log.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    log, metric : str
        What to compare.
    statistic : {"median", "mean", "ratio"}
        What is said over all cases.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    list of list of Paired
        ``results[a][b]`` compares policy a with policy b as its baseline; None on the diagonal.
    """
    values = evaluation.matrix(log, metric)
    direction = METRICS[metric].lower_is_better
    count = len(evaluation.policies)
    return [
        [
            None
            if a == b
            else compare_values(values[:, a], values[:, b], lower_is_better=direction, statistic=statistic, seed=seed)
            for b in range(count)
        ]
        for a in range(count)
    ]
