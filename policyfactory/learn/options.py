"""What can be said of how a policy is learned."""

from __future__ import annotations

import dataclasses
from typing import Literal

from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed
from policyfactory.core.units import parse_duration

__all__ = ["LearnOptions"]

_METRICS = ("mean_bsld", "mean_wait", "p95_wait", "max_wait", "utilisation")


# Without slots, so that the class has the defaults: LearnOptions.tuples.
@dataclasses.dataclass(frozen=True)
class LearnOptions:
    """How a policy is learned, and by what it is chosen.

    Parameters
    ----------
    tuples, trials : int
        Tuples to score, and trials of each; at least 32 and 256.
    metric : str
        Metric whose lowest median chooses the policy.
    threshold : str
        Jobs that have waited longer go first: ``20h``; ``inf`` for never.
    windows : str or None
        How the jobs to choose by and to test on are cut, for example ``10x15d``; None: as they last.
    processors : int or None
        Processors of the machine, if the log does not say.
    estimate_missing : {"error", "runtime", "drop"}
        What to do with jobs without a requested time.
    preset : str
        Filter for the log.
    seed : int
        Seed of the tuples and of the orders.

    Raises
    ------
    UsageError
        If a value is outside its limits or unknown.
    """

    tuples: int = 1000
    trials: int = 16_000
    metric: str = "mean_bsld"
    threshold: str = "inf"
    windows: str | None = None
    processors: int | None = None
    estimate_missing: Literal["error", "runtime", "drop"] = "error"
    preset: str = "default"
    seed: int = 1

    def __post_init__(self) -> None:
        from policyfactory.simulate.metrics import METRICS
        from policyfactory.workload.windows import parse_windows

        if self.tuples < 32 or self.trials < 256:
            raise UsageError(f"{self.tuples} tuples of {self.trials} trials: give at least 32 tuples and 256 trials")
        check_seed(self.seed)
        parse_duration(self.threshold, unit=True)
        if self.metric not in METRICS:
            raise UsageError(f"--metric: unknown metric {self.metric!a}; choose from {', '.join(METRICS)}")
        if METRICS[self.metric].lower_is_better is None:
            raise UsageError(f"--metric {self.metric}: neither direction of it is better; choose another metric")
        if self.windows is not None:
            parse_windows(self.windows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """What is measured: the metric that chooses, then the usual ones."""
        return tuple(dict.fromkeys((self.metric, *_METRICS)))
