"""The plain twin of `policyfactory.engine.rollouts`: one job, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from naive.network import dense


def prefer(row: Sequence[float], layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the network's output for a job."""
    values = [float(value) for value in row]
    for place, (weights, biases) in enumerate(layers, start=1):
        values = dense(values, weights.tolist(), biases.tolist(), cut=place < len(layers))
    return values[0]


def choose(preferences: Sequence[float], uniform: float) -> tuple[int, float]:
    """Return the place that is chosen and the logarithm of its probability."""
    weights = [math.exp(value) for value in preferences]
    shares = [weight / sum(weights) for weight in weights]
    if uniform < 0:
        place = preferences.index(max(preferences))
    else:
        reached = np.cumsum(shares)
        place = next((at for at, share in enumerate(reached) if share > uniform), len(shares) - 1)
    return place, math.log(shares[place])


def bounded_slowdowns(submit: list[int], run: list[int], start: dict[int, int], now: int, entered: int) -> float:
    """Return the sum of the bounded slowdowns of the jobs that have entered, as if those that wait started now."""
    total = 0.0
    for job in range(entered):
        wait = start.get(job, now) - submit[job]
        total += max((wait + run[job]) / max(run[job], 10), 1.0)
    return total
