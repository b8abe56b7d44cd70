"""How much better a decision was than expected: by other rollouts of the same window, or by a value network.

Costs are to be small; advantages are positive where a decision was better.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.search.reinforce.rollouts import Rollouts

__all__ = ["by_other_rollouts", "by_values", "costs_to_go", "normalised"]


def costs_to_go(accrued: FloatArray, decisions: Int64Array, gamma: float) -> FloatArray:
    """Return what is still to come at each decision, discounted by ``gamma`` a decision: float64 array (b, t).

    Parameters
    ----------
    accrued : float64 array (b, t + 1)
        What had accrued before each decision, and after the last.
    decisions : int64 array (b,)
        How many each episode has; 0 is returned behind them.
    gamma : float
        Discount.
    """
    since = np.diff(accrued, axis=1)
    to_go = np.zeros((since.shape[0], since.shape[1] + 1))
    for step in range(since.shape[1] - 1, -1, -1):
        to_go[:, step] = since[:, step] + gamma * to_go[:, step + 1]
    made = to_go[:, :-1]
    made[np.arange(made.shape[1]) >= decisions[:, None]] = 0.0
    return made


def by_other_rollouts(played: Rollouts, rollouts: int, gamma: float) -> FloatArray:
    """Return the advantage of each decision that was kept over all rollouts of its window: float64 array (d,).

    Rollouts of a window are compared where the same number of jobs was started: with backfilling that is not the same
    number of decisions. Costs are relative to the mean cost of the window, as policies are compared.

    Parameters
    ----------
    played : Rollouts
        ``rollouts`` episodes of each window, one behind the other.
    rollouts : int
        How many there are of each.
    gamma : float
        Discount.
    """
    to_go = costs_to_go(played.accrued, played.decisions, gamma)
    expected = np.zeros_like(to_go)
    for first in range(0, len(to_go), rollouts):
        group = range(first, first + rollouts)
        for one in group:
            started = played.started[one, : played.decisions[one]]
            for other in group:
                count = played.decisions[other]
                at = np.searchsorted(played.started[other, :count], started, side="right") - 1
                expected[one, : len(started)] += to_go[other, np.maximum(at, 0)]
    expected /= rollouts
    advantage = (expected - to_go)[played.episode, played.step]
    # A window of long queues has a hundred times the bounded slowdown of others, and would be all that is learned from.
    weight = np.abs(played.costs.reshape(-1, rollouts).mean(axis=1))
    weight[weight == 0] = 1.0
    return np.asarray(advantage / weight[played.episode // rollouts])


def by_values(
    played: Rollouts, values: FloatArray, gamma: float, gae: float
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return generalised advantages, and what the values should have been: float64 arrays (d,).

    J. Schulman and others, "High-dimensional continuous control using generalized advantage estimation", ICLR 2016.

    Parameters
    ----------
    played : Rollouts
        All decisions are kept.
    values : float64 array (d,)
        What was expected at each, as a reward: minus a cost.
    gamma, gae : float
        Discount and lambda.
    """
    b, t = played.started.shape
    value = np.zeros((b, t + 1))
    value[played.episode, played.step] = values
    reward = -np.diff(played.accrued, axis=1)
    # What is counted at the beginning is nobody's doing; with a reward at the end there is none.
    advantage, following = np.zeros((b, t)), np.zeros(b)
    for step in range(t - 1, -1, -1):
        delta = reward[:, step] + gamma * value[:, step + 1] - value[:, step]
        following = np.where(step < played.decisions, delta + gamma * gae * following, 0.0)
        advantage[:, step] = following
    targets = -costs_to_go(played.accrued, played.decisions, gamma)
    return advantage[played.episode, played.step], targets[played.episode, played.step]


def normalised(advantages: FloatArray) -> FloatArray:
    """Return advantages of mean 0 and standard deviation 1."""
    return np.asarray((advantages - advantages.mean()) / (advantages.std() + 1e-8))
