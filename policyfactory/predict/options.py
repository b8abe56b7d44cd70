"""How a predictor learns and predicts."""

from __future__ import annotations

import dataclasses

from policyfactory.core.errors import UsageError

__all__ = ["PredictorOptions"]


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

    window: int = 30_000
    every_days: float = 30.0
    first_days: float = 7.0
    least: int = 500
    trees: int = 80
    leaves: int = 15
    renew_s: float = 300.0

    def __post_init__(self) -> None:
        ranges = {
            "window": (100, 1_000_000),
            "every_days": (0.1, 3650),
            "first_days": (0.1, 3650),
            "least": (50, 1_000_000),
            "trees": (1, 2_000),
            "leaves": (2, 255),
            "renew_s": (0, 86_400),
        }
        for name, (least, greatest) in ranges.items():
            value = getattr(self, name)
            if not least <= value <= greatest:
                raise UsageError(f"predictor: {name} is {value}; choose {least:,} to {greatest:,}")
