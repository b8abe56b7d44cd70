"""How wide the intervals of an evaluation are, relative to the baseline."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.statistics.compare import compare, compare_values
from policyfactory.statistics.intervals import Statistic
from policyfactory.statistics.means import estimate_value

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["HalfWidth", "half_widths"]


@dataclasses.dataclass(frozen=True, slots=True)
class HalfWidth:
    """Half the length of the interval of one difference.

    Parameters
    ----------
    log, metric, policy : str
        The policy that is compared with the baseline, and where.
    cases : int
        Cases that the interval is made of.
    half_width : float
        In the unit of the difference; infinite without an interval (fewer than ``MIN_CASES`` cases). Of drawn logs that
        of their mean, which more draws make smaller; the log's own variation, which the tables have, is not in it.
    relative : float
        Over the size of the baseline's value (its median or mean), 0.02 for 2 %; for a ratio, half the width itself as
        a share. Infinite if the baseline is 0 and the width is not.
    """

    log: str
    metric: str
    policy: str
    cases: int
    half_width: float
    relative: float


def half_widths(
    evaluation: Evaluation, *, metric: str | None = None, statistic: Statistic = "median", seed: int = 0
) -> list[HalfWidth]:
    """Return how wide the interval of each policy's difference from the baseline is, by log and policy.

    To reach ``--precision 2%``: add cases to the logs in which some ``relative`` is above 0.02. Intervals shrink about
    as 1 / sqrt(cases), so ``cases * (relative / 0.02)**2`` is about the number that it takes. Half-widths of different
    calls vary by some percent, those of the median by more: they follow single cases.

    Parameters
    ----------
    evaluation : Evaluation
        The values; of a single policy nothing is compared, and the list is empty.
    metric : str, optional
        One of its metrics; the first, which decides, if not given.
    statistic : {"median", "mean", "ratio"}
        What is said over all cases.
    seed : int
        Seed of the bootstrap.
    """
    chosen = evaluation.metrics[0] if metric is None else metric
    results = []
    for row in compare(evaluation, statistic=statistic, seed=seed, metrics=(chosen,)):
        interval, values = row.interval, evaluation.matrix(row.log, chosen)
        base = values[:, 0]
        if evaluation.drawn(row.log) is not None:
            # More draws do not make the log longer; they make their own mean more exact, and that is asked for.
            own = values[:, evaluation.policies.index(row.policy)]
            interval = compare_values(own, base, statistic=statistic, seed=seed).estimate.interval
        half = interval.half_width if interval else math.inf
        level = 100.0 if statistic == "ratio" else abs(estimate_value(statistic, base[np.isfinite(base)]).value)
        relative = half / level if level > 0 else 0.0 if half == 0 else math.inf
        results.append(HalfWidth(row.log, chosen, row.policy, row.cases, half, relative))
    return results
