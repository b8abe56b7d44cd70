"""What determines the scores of jobs; each option once."""

from __future__ import annotations

import dataclasses
from typing import Literal

from policyfactory.core.errors import UsageError
from policyfactory.core.options import check_values, option
from policyfactory.core.random import check_seed

Estimator = Literal["stratified", "paper"]

ESTIMATORS: tuple[Estimator, ...] = ("stratified", "paper")
# An order holds job numbers in one byte; a state beyond this is no machine that anybody has.
MAX_QUEUE = 255
MAX_STATE = 10_000
_MAX_TRIALS = 10**12


@dataclasses.dataclass(frozen=True, slots=True)
class GenerateOptions:
    """What determines the scores, next to the workload.

    Parameters
    ----------
    tuples : int
        How many tuples.
    trials : int
        Trials of each, at least; ``stratified`` runs whole blocks of 4 ``queue_size``.
    state_size, queue_size : int
        Jobs in S and in Q.
    estimator : {"stratified", "paper"}
        See `policyfactory.trials.run`.
    seed : int
        Seed of places and orders.
    """

    tuples: int = option(441, "how many tuples to score", limits=(1, 10**7))
    trials: int = option(256_000, "trials (simulated orders) of each tuple")
    state_size: int = option(16, "jobs that fill the machine first (S)", limits=(0, MAX_STATE))
    queue_size: int = option(32, "jobs that queue (Q)", limits=(2, MAX_QUEUE))
    estimator: Estimator = option(
        "stratified", "stratified: every job first equally often, in common orders; paper: plain random orders"
    )
    seed: int = option(1, "seed of the tuples and of the orders")

    @property
    def trials_each(self) -> int:
        """Trials that are run of each tuple."""
        return trials_run(self.estimator, self.trials, self.queue_size)

    def check(self) -> None:
        """Check what can be checked without a workload.

        Raises
        ------
        UsageError
            If an option is out of range.
        """
        check_values(self)
        check_seed(self.seed)
        check_trials(self.trials, self.queue_size)


def check_trials(trials: int, queue_size: int) -> None:
    """Check that standard errors can be computed from ``trials`` trials.

    Raises
    ------
    UsageError
        If the trials do not make two blocks of the stratified estimator, or are too many to count.
    """
    from policyfactory.engine.trials import VARIANTS

    least = 2 * VARIANTS * queue_size
    if not least <= trials <= _MAX_TRIALS:
        raise UsageError(
            f"{trials} trials a tuple; a queue of {queue_size} jobs needs at least {least} (2 blocks of {least // 2}) "
            f"for its standard errors, and at most {_MAX_TRIALS:,} are run; the papers had 256000"
        )


def trials_run(estimator: Estimator, trials: int, queue_size: int) -> int:
    """Return how many trials are run a tuple: ``stratified`` runs whole blocks."""
    from policyfactory.engine.trials import VARIANTS

    block = VARIANTS * queue_size if estimator == "stratified" else 1
    return -(-trials // block) * block
