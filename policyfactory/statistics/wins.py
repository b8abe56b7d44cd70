"""Every policy against every other: in how many cases it is better, and whether that is more than the draw of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.compare import Paired, compare_values
from policyfactory.statistics.intervals import Statistic

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["wins"]


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
        ``found[a][b]`` compares policy a with policy b as its baseline; None on the diagonal.
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
