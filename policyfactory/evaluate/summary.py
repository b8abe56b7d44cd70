"""What the windows of a trace say together: median, spread, ranks, the best."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.evaluate.metrics import METRICS

if TYPE_CHECKING:
    from policyfactory.evaluate.run import Evaluation

__all__ = ["Summary", "WorstOff", "ranks", "summarise", "worst_off"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """One policy in one metric over the windows of one trace.

    Parameters
    ----------
    trace, metric, policy : str
        What is summarised.
    unit : str
        Unit of the metric.
    windows : int
        Windows with a finite value.
    median, mean, lowest, highest : float
        Over those windows; NaN without one.
    quartile_1, quartile_3 : float or None
        Ends of the middle half of the windows; None with one window, which has no spread.
    rank : int or None
        Place by the median among the policies, 1 is the best, equal medians share the better place; None for a
        metric without a better direction.
    mean_rank : float or None
        Mean over windows of the policy's place in the window (equal values share the mean place).
    best : bool
        Whether no policy has a better median.
    """

    trace: str
    metric: str
    policy: str
    unit: str
    windows: int
    median: float
    mean: float
    lowest: float
    highest: float
    quartile_1: float | None
    quartile_3: float | None
    rank: int | None
    mean_rank: float | None
    best: bool


@dataclasses.dataclass(frozen=True, slots=True)
class WorstOff:
    """The job that waits longest under a policy.

    Parameters
    ----------
    policy : str
        The policy.
    window : int
        Number of the window.
    job_id : int
        The job.
    wait_s : float
        Its wait in seconds.
    """

    policy: str
    window: int
    job_id: int
    wait_s: float


def ranks(values: FloatArray, *, lower_is_better: bool = True) -> FloatArray:
    """Return the place of each value in its row, from 1; equal values share the mean place.

    Parameters
    ----------
    values : float64 array (n_windows, n_policies)
        Values to be ranked along the second axis.
    lower_is_better : bool
        Whether the lowest value is first.

    Returns
    -------
    float64 array (n_windows, n_policies)
    """
    from scipy.stats import rankdata

    placed: FloatArray = rankdata(values if lower_is_better else -values, axis=1, nan_policy="omit")
    return placed


def summarise(evaluation: Evaluation) -> list[Summary]:
    """Return a summary of every trace, metric and policy, in that order.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    """
    rows: list[Summary] = []
    for trace in evaluation.traces:
        for metric in evaluation.metrics:
            rows.extend(_summarise_metric(evaluation, trace, metric))
    return rows


def _summarise_metric(evaluation: Evaluation, trace: str, metric: str) -> list[Summary]:
    direction = METRICS[metric].lower_is_better
    values = evaluation.matrix(trace, metric)
    columns = [column[np.isfinite(column)] for column in values.T]
    medians = np.array([np.median(column) if len(column) else math.nan for column in columns])
    places: list[int | None] = [None] * len(columns)
    mean_ranks: list[float | None] = [None] * len(columns)
    if direction is not None:
        key = medians if direction else -medians
        places = [None if math.isnan(own) else 1 + int((key < own).sum()) for own in key]
        complete = values[np.isfinite(values).all(axis=1)]
        if len(complete):
            mean_ranks = ranks(complete, lower_is_better=direction).mean(axis=0).tolist()
    return [
        _summary((trace, metric, policy), column, place, mean_rank)
        for policy, column, place, mean_rank in zip(evaluation.policies, columns, places, mean_ranks, strict=True)
    ]


def _summary(key: tuple[str, str, str], column: FloatArray, place: int | None, mean_rank: float | None) -> Summary:
    trace, metric, policy = key
    n = len(column)
    low, median, high = np.quantile(column, [0.25, 0.5, 0.75]).tolist() if n else (math.nan,) * 3
    return Summary(
        trace=trace,
        metric=metric,
        policy=policy,
        unit=METRICS[metric].unit,
        windows=n,
        median=median,
        mean=float(column.mean()) if n else math.nan,
        lowest=float(column.min()) if n else math.nan,
        highest=float(column.max()) if n else math.nan,
        quartile_1=low if n > 1 else None,
        quartile_3=high if n > 1 else None,
        rank=place,
        mean_rank=mean_rank,
        best=place == 1,
    )


def worst_off(evaluation: Evaluation, trace: str) -> list[WorstOff]:
    """Return, for each policy, the job of the trace that waits longest over all its windows.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    trace : str
        Name of the trace.
    """
    rows = evaluation.rows(trace)
    found = []
    for column, policy in enumerate(evaluation.policies):
        at = rows[int(np.argmax(evaluation.longest_wait[rows, column]))]
        found.append(
            WorstOff(
                policy,
                evaluation.windows[at].number,
                int(evaluation.longest_wait_job[at, column]),
                float(evaluation.longest_wait[at, column]),
            )
        )
    return found
