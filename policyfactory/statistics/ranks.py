"""Places of the policies in the cases, and in how many cases each is better than each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.intervals import Estimate
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
    """

    policy: str
    mean: Estimate


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
    last = float(len(evaluation.policies))
    return [
        Rank(policy, estimate_mean([places[:, at] for places in strata], seed=seed, places=True).within(1.0, last))
        for at, policy in enumerate(evaluation.policies)
    ]


def wins(evaluation: Evaluation, log: str, metric: str) -> Int64Array:
    """Return in how many cases of a log each policy is better than each other; equal values count for neither.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    log, metric : str
        What to compare; of a metric without a better direction the lower value wins.

    Returns
    -------
    int64 array (policies, policies)
        Of the row's policy against the column's.
    """
    values = evaluation.matrix(log, metric)
    if METRICS[metric].lower_is_better is False:
        values = -values
    finite = np.isfinite(values)
    lower = (values[:, :, None] < values[:, None, :]) & finite[:, :, None] & finite[:, None, :]
    counts: Int64Array = lower.sum(axis=0)
    return counts
