"""What a formula is worth on the windows for training, in one number: less is better.

The goal over all windows, relative to a baseline, plus what the distance from the start costs; and, for a formula that
leaves the band of a guard, so much more that the search is led back. Such a formula is never a candidate.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.environment.goals import Goal, goal_of
from policyfactory.environment.guards import GUARDS, Bound, Breach, judge
from policyfactory.search.families import Family
from policyfactory.search.options import Objective
from policyfactory.simulate.metrics import METRICS

__all__ = ["Worth", "breaches_of", "distance_of", "gain", "least_of", "worth"]

# What one unit of a guard beyond its band, relative to the bound, costs; a ratio of e in the goal is 1.
_BEYOND = 10.0
# Of a goal that may be 0, the amount that is next to nothing, in its unit: a second, or a percent.
_NOTHING = {"s": 1.0, "%": 1.0}


@dataclasses.dataclass(frozen=True, slots=True)
class Worth:
    """What a formula is worth.

    Parameters
    ----------
    objective : float
        What is minimised.
    gain : float
        The part of it that is the goal.
    means : tuple of float
        Mean over the windows of the goal and of each guard.
    out : str
        The guards that left their bands, in words; empty if none did.
    """

    objective: float
    gain: float
    means: tuple[float, ...]
    out: str


def worth(
    values: FloatArray,
    baseline: FloatArray,
    goal: str,
    bands: Sequence[Bound],
    *,
    objective: Objective = "log-ratio",
    distance: float = 0.0,
) -> Worth:
    """Return what was measured in one number.

    Parameters
    ----------
    values, baseline : float64 array (windows, 1 + guards)
        Goal and guards under the formula and under the baseline (`policyfactory.search.play.measured`).
    goal : str
        Name of the goal.
    bands : sequence of Band or Limit
        How much worse the guards may be.
    objective : {"log-ratio", "mean"}
        As in `policyfactory.search.options.SearchOptions`.
    distance : float
        What the distance from the start costs.
    """
    value = gain(values[:, 0], baseline[:, 0], goal_of(goal), objective)
    breaches = breaches_of(values, baseline, bands)
    beyond = sum(_excess(one) for one in breaches)
    means = tuple(values.mean(axis=0).tolist())
    total = value + distance + _BEYOND * beyond
    return Worth(total if math.isfinite(total) else 1e6, value, means, "; ".join(map(str, breaches)))


def gain(values: FloatArray, baseline: FloatArray, goal: Goal, objective: Objective) -> float:
    """Return how much worse (positive) or better (negative) the goal is than the baseline's, over all windows."""
    least = least_of(goal)
    own, other = values + least, baseline + least
    if not goal.lower_is_better:
        own, other = other, own
    with np.errstate(all="ignore"):
        if objective == "mean":
            return float(own.mean() / other.mean() - 1)
        return float(np.log(own / other).mean())


def least_of(goal: Goal) -> float:
    """Return what is next to nothing of a goal that may be 0, so that it has a logarithm."""
    return _NOTHING.get(goal.unit, 0.0)


def breaches_of(values: FloatArray, baseline: FloatArray, bands: Sequence[Bound]) -> tuple[Breach, ...]:
    """Return the guards whose means over the windows are outside their bands."""
    own, other = (dict(zip(GUARDS, part[:, 1:].mean(axis=0).tolist(), strict=True)) for part in (values, baseline))
    return judge(own, other, bands)


def _excess(breach: Breach) -> float:
    lower = METRICS[breach.guard].lower_is_better
    worse, better = (breach.value, breach.bound) if lower else (breach.bound, breach.value)
    return (worse - better) / max(abs(better), 1e-9)


def distance_of(family: Family, values: FloatArray) -> float:
    """Return the mean square of how far values are from the family's start, in its scale."""
    away = (values - np.array(family.start)) / np.array(family.scale)
    return float((away**2).mean())
