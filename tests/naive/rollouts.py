"""The plain twin of `policyfactory.engine.rollouts`: one job, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from naive.network import dense


def prefer(row: Sequence[float], layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the network's output for a job."""
    values = [float(value) for value in row]
    for place, (weights, biases) in enumerate(layers, start=1):
        values = dense(values, weights.tolist(), biases.tolist(), cut=place < len(layers))
    return values[0]


def choose_all(
    jobs: np.ndarray, mask: np.ndarray, over: Sequence[bool], layers: list[tuple[np.ndarray, np.ndarray]],
    uniform: Sequence[float],
) -> list[tuple[int, int, int, float]]:  # fmt: skip
    """Return slot, place, number of jobs to choose from, and logarithm of the probability, of each episode."""
    choices = []
    for at in range(len(over)):
        if over[at]:
            choices.append((0, 0, 0, 0.0))
            continue
        slots = [slot for slot in range(len(mask[at])) if mask[at][slot]]
        preferences = [prefer(jobs[at][slot], layers) for slot in slots]
        weights = [math.exp(value) for value in preferences]
        shares = [weight / sum(weights) for weight in weights]
        if uniform[at] < 0:
            place = preferences.index(max(preferences))
        else:
            reached = np.cumsum(shares)
            place = next((here for here, share in enumerate(reached) if share > uniform[at]), len(shares) - 1)
        choices.append((slots[place], place, len(slots), math.log(shares[place])))
    return choices


def accrue_all(windows: list[dict[str, Any]]) -> list[float]:
    """Return the sum of the bounded slowdowns of the jobs that have entered, as if those that wait started now.

    A window has ``submit`` and ``run`` of its jobs, the ``start`` of those that are started, ``now``, and how many jobs
    have ``entered``.
    """
    totals = []
    for one in windows:
        total = 0.0
        for job in range(one["entered"]):
            wait = one["start"].get(job, one["now"]) - one["submit"][job]
            total += max((wait + one["run"][job]) / max(one["run"][job], 10), 1.0)
        totals.append(total)
    return totals
