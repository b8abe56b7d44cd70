"""How a predictor learns and predicts."""

from __future__ import annotations

import dataclasses

from policyfactory.core.errors import UsageError
from policyfactory.core.options import check_values, option


@dataclasses.dataclass(frozen=True, slots=True)
class PredictorOptions:
    """How a predictor learns and predicts.

    Parameters
    ----------
    window : int
        Jobs that it is trained on: those that ended last.
    every_days : float
        Simulated days from one training to the next.
    first_days : float
        Simulated days before the first training; until there are enough jobs it is tried again after as many.
    least : int
        Ended jobs without which nothing is trained.
    trees : int
        Regression trees of each forest.
    leaves : int
        Leaves of a tree at most.
    renew_s : float
        Seconds after which predictions of waiting jobs are made anew, if a job of their user has ended meanwhile; 0:
        they are made once, at submission.

    Raises
    ------
    UsageError
        If a number is out of range.
    """

    window: int = option(30_000, "jobs that are trained on: those that ended last", limits=(100, 1_000_000))
    every_days: float = option(30.0, "simulated days from one training to the next", metavar="DAYS", limits=(0.1, 3650))
    first_days: float = option(7.0, "simulated days before the first training", metavar="DAYS", limits=(0.1, 3650))
    least: int = option(500, "ended jobs without which nothing is trained", limits=(50, 1_000_000))
    trees: int = option(80, "trees of each model", limits=(1, 2_000))
    leaves: int = option(15, "leaves of a tree at most", limits=(2, 255))
    renew_s: float = 300.0

    def __post_init__(self) -> None:
        check_values(self)
        if not 0 <= self.renew_s <= 86_400:
            raise UsageError(f"renew_s {self.renew_s}: expected 0 to 86,400 seconds")
