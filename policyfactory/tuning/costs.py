"""What simulations tell of a past period: the wait of its jobs under every policy."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.simulate.switching import simulate_periods

if TYPE_CHECKING:
    from policyfactory.policy.policy import Policy
    from policyfactory.simulate.rules import Rules
    from policyfactory.workload.jobs import Workload

__all__ = ["MAX_PERIODS", "noise_factors", "period_costs", "period_edges"]

MAX_PERIODS = 200_000  # an hour each: 22 years


def period_edges(workload: Workload, period_s: int) -> NDArray[np.int64]:
    """Return the ticks between which the periods lie, from the one of the first submission to that of the last.

    Periods are counted from the 0 of the workload's clock, so that the days and weeks of a log are those of its
    clock, not of its first job.

    Parameters
    ----------
    workload : Workload
        The jobs.
    period_s : int
        Length of a period in seconds.

    Returns
    -------
    int64 array (periods + 1,)
        Just [0] for a workload without a job.

    Raises
    ------
    UsageError
        If there would be more than `MAX_PERIODS`.
    """
    if not len(workload):
        return np.zeros(1, dtype=np.int64)
    length = period_s * workload.ticks
    first, last = int(workload.submit[0]) // length, int(workload.submit[-1]) // length + 1
    if last - first > MAX_PERIODS:
        raise UsageError(
            f"{workload.name}: {last - first:,} periods of {period_s:,} s; a tuner takes at most {MAX_PERIODS:,}, "
            "choose a longer period"
        )
    return np.arange(first, last + 1, dtype=np.int64) * length


def period_costs(
    workload: Workload, arms: tuple[Policy, ...], rules: Rules, period_s: int, scratch: dict[Any, Any]
) -> NDArray[np.float64]:
    """Return the cost of each policy in each period (equation 3): float64 array (periods, arms), seconds.

    The jobs submitted in the period are simulated alone, from an empty machine until all have started; the cost is
    their total wait. The same question is simulated once a case, whoever asks.

    Parameters
    ----------
    workload : Workload
        The jobs.
    arms : tuple of Policy
        The policies.
    rules : Rules
        The scheduler's rules.
    period_s : int
        Length of a period in seconds.
    scratch : dict
        Of the case: what was simulated already.
    """
    key: Hashable = ("period costs", period_s, rules, arms)
    if key not in scratch:
        scratch[key] = simulate_periods(workload, arms, rules, period_edges(workload, period_s))
    found: NDArray[np.float64] = scratch[key]
    return found


def noise_factors(shape: tuple[int, ...], noise: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Return the factors of the costs (equation 6), uniform in [1 - noise, 1 + noise]: float64 array of ``shape``."""
    return 1.0 + noise * random.uniform(-1.0, 1.0, shape)
