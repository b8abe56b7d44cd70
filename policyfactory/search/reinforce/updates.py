"""Proximal policy optimisation: what a round of decisions changes in the networks.

J. Schulman and others, "Proximal policy optimization algorithms", arXiv:1707.06347. Only jobs that could be chosen have
a probability (masking). Gradients of many decisions are summed over parts, so that memory stays small.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from policyfactory.core.options import Float32Array, FloatArray, Int64Array
from policyfactory.search.reinforce.networks import torch_module
from policyfactory.search.reinforce.rollouts import Rollouts

__all__ = [
    "Decisions",
    "NetworkUpdate",
    "NotFiniteError",
    "by_other_rollouts",
    "by_values",
    "costs_to_go",
    "fit_values",
    "improve",
    "normalised",
    "values_of",
]

_PART = 2_500  # decisions of which the gradients are worked out together


class NotFiniteError(ArithmeticError):
    """NotFiniteError is raised when a loss is not finite."""


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkUpdate:
    """What the passes of a round did: the last loss, the mean KL divergence, the share that was clipped, the steps."""

    loss: float
    change: float
    clipped: float
    steps: int


class Decisions:
    """Decisions as ragged rows, on a device.

    Parameters
    ----------
    played : Rollouts
        With the decisions.
    device : torch device
        Where they are calculated with.
    """

    def __init__(self, played: Rollouts, device: Any) -> None:
        self._torch = torch_module()
        self._device = device
        self._rows: Float32Array = played.rows
        self._size: Int64Array = played.size
        self._first = np.cumsum(played.size) - played.size
        self.place, self.old = played.place, played.log_probability

    def __len__(self) -> int:
        return len(self._size)

    def take(self, which: Int64Array) -> tuple[Any, Any]:
        """Return rows and sizes of some decisions as tensors."""
        size = self._size[which]
        before = np.cumsum(size) - size
        rows = np.repeat(self._first[which] - before, size) + np.arange(size.sum())
        return self.tensor(self._rows[rows]), self.tensor(size)

    def tensor(self, values: Any) -> Any:
        """Return an array as a tensor on the device."""
        return self._torch.from_numpy(np.ascontiguousarray(values)).to(self._device)


def improve(
    policy: Any,
    optimizer: Any,
    decisions: Decisions,
    advantages: FloatArray,
    *,
    passes: int,
    batch: int,
    clip: float,
    most_change: float,
    random: np.random.Generator,
) -> NetworkUpdate:
    """Make what went better than expected more likely.

    Parameters
    ----------
    policy, optimizer : torch module and optimiser
        The network and what changes it.
    decisions : Decisions
        What was decided.
    advantages : float64 array (d,)
        How much better it was than expected.
    passes, batch : int
        Passes over all of them, decisions of a step (0: all).
    clip, most_change : float
        As in `policyfactory.search.reinforce.options.PpoOptions`.
    random : numpy Generator
        Draws the order of a pass.

    Raises
    ------
    NotFiniteError
        If the loss is not finite; the network is as before that step.
    """
    steps, loss, change, clipped = 0, 0.0, 0.0, 0.0
    for _ in range(passes):
        order = np.arange(len(decisions)) if batch == 0 else random.permutation(len(decisions))
        for which in _split(order, batch or len(order)):
            optimizer.zero_grad()
            loss, change, clipped = 0.0, 0.0, 0.0
            for part in _split(which, _PART):
                sums = _surrogate(policy, decisions, part, advantages, clip)
                (sums[0] / len(which)).backward()
                one, two, three = (float(value.detach()) / len(which) for value in sums)
                loss, change, clipped = loss + one, change + two, clipped + three
            if not math.isfinite(loss):
                raise NotFiniteError("the loss is not finite")
            if most_change and change > most_change:
                return NetworkUpdate(loss, change, clipped, steps)
            optimizer.step()
            steps += 1
    return NetworkUpdate(loss, change, clipped, steps)


def _surrogate(
    policy: Any, decisions: Decisions, which: Int64Array, advantages: FloatArray, clip: float
) -> tuple[Any, Any, Any]:
    """Return, summed over decisions, the loss, the change of the logarithm of the probability, and what was clipped."""
    torch = torch_module()
    rows, sizes = decisions.take(which)
    logarithms = torch.log_softmax(policy(rows, sizes), dim=1)
    place = decisions.tensor(decisions.place[which])
    now = logarithms.gather(1, place[:, None])[:, 0]
    old = decisions.tensor(decisions.old[which].astype(np.float32))
    better = decisions.tensor(advantages[which].astype(np.float32))
    ratio = torch.exp(now - old)
    bounded = torch.clamp(ratio, 1 - clip, 1 + clip)
    gain = torch.minimum(ratio * better, bounded * better)
    return -gain.sum(), (old - now).detach().sum(), (ratio != bounded).detach().sum()


def values_of(network: Any, decisions: Decisions) -> FloatArray:
    """Return what a value network expects at each decision: float64 array (d,)."""
    torch = torch_module()
    with torch.no_grad():
        parts = [network(*decisions.take(part)).cpu().numpy() for part in _split(np.arange(len(decisions)), _PART)]
    return np.concatenate(parts).astype(np.float64)


def fit_values(network: Any, optimizer: Any, decisions: Decisions, targets: FloatArray, passes: int) -> float:
    """Fit a value network to what came, with all decisions in each step; return the last mean square error.

    Raises
    ------
    NotFiniteError
        If the loss is not finite.
    """
    every, loss = np.arange(len(decisions)), 0.0
    for _ in range(passes):
        optimizer.zero_grad()
        loss = 0.0
        for part in _split(every, _PART):
            target = decisions.tensor(targets[part].astype(np.float32))
            squares = ((network(*decisions.take(part)) - target) ** 2).sum() / len(every)
            squares.backward()
            loss += float(squares.detach())
        if not math.isfinite(loss):
            raise NotFiniteError("the loss of the value network is not finite")
        optimizer.step()
    return loss


def _split(values: Int64Array, size: int) -> Iterator[Int64Array]:
    for first in range(0, len(values), size):
        yield values[first : first + size]


# How much better a decision was than expected -------------------------------------------------------------------------

# By other rollouts of the same window, or by a value network.
#
# Costs are to be small; advantages are positive where a decision was better.


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
