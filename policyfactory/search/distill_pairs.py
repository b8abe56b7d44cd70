"""Pairs of jobs that waited together, in the order in which a network wants them; and how far a formula agrees."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.search.distill_queues import Queues

__all__ = ["Agreement", "Pairs", "agreement_of", "draw_pairs", "first_jobs"]

_PURPOSE = 75  # of the random stream; see core.random


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of rows of `Queues`; the network prefers the one, however little, to the other.

    Parameters
    ----------
    queues : Queues
        The queues.
    preference : float64 array (n,)
        What each job is worth to the network, lower runs first.
    ahead, behind : int64 array (k,)
        The rows of each pair; the first is the one that the network runs first.
    ties : int
        Pairs that were drawn and left out, as the network has the same value for both.
    """

    queues: Queues
    preference: FloatArray
    ahead: Int64Array
    behind: Int64Array
    ties: int

    def __len__(self) -> int:
        return len(self.ahead)

    @property
    def decision(self) -> Int64Array:
        """The decision that each pair is from: int64 array (k,)."""
        return self.queues.decision[self.ahead]

    def some(self, most: int) -> Pairs:
        """Return at most so many of them, evenly spread, with no other jobs than theirs."""
        taken = np.linspace(0, len(self) - 1, min(most, len(self))).astype(np.int64)
        ahead, behind = self.ahead[taken], self.behind[taken]
        rows, place = np.unique(np.concatenate([ahead, behind]), return_inverse=True)
        queues = self.queues.only(rows)
        return Pairs(queues, self.preference[rows], place[: len(ahead)], place[len(ahead) :], self.ties)


@dataclasses.dataclass(frozen=True, slots=True)
class Agreement:
    """How far a formula orders queues as the network does.

    Parameters
    ----------
    pairs : float
        Share of the pairs ordered alike; jobs of the same value stay in the order of the queue.
    tau : float
        Kendall's tau between the two orders, mean over decisions: 1 for the same, -1 for the reverse order.
    first : float
        Share of decisions in which both have the same job first.
    by_window : tuple of float
        Share of pairs, in each window that has any.
    """

    pairs: float
    tau: float
    first: float
    by_window: tuple[float, ...]


def draw_pairs(queues: Queues, preference: FloatArray, *, most: int, seed: int, step: int) -> Pairs:
    """Return pairs of each queue: all of them, or ``most`` that are drawn without replacement.

    Parameters
    ----------
    queues : Queues
        The queues.
    preference : float64 array (n,)
        What each job is worth to the network, lower runs first.
    most : int
        Pairs of one queue.
    seed, step : int
        Address of the random numbers.
    """
    random = generator(seed, _PURPOSE, step)
    edges = queues.edges
    one, other = [], []
    for first, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        jobs = end - first
        every = jobs * (jobs - 1) // 2
        numbers = np.arange(every) if every <= most else np.sort(random.choice(every, most, replace=False))
        # Pair number k is (i, j), i < j, where j is the largest with j (j - 1) / 2 <= k.
        j = ((1 + np.sqrt(1 + 8.0 * numbers)) // 2).astype(np.int64)
        one.append(first + numbers - j * (j - 1) // 2)
        other.append(first + j)
    left = np.concatenate(one).astype(np.int64) if one else np.empty(0, dtype=np.int64)
    right = np.concatenate(other).astype(np.int64) if other else np.empty(0, dtype=np.int64)
    untied = preference[left] != preference[right]
    ties = int((~untied).sum())
    left, right = left[untied], right[untied]
    turned = preference[left] > preference[right]
    return Pairs(queues, preference, np.where(turned, right, left), np.where(turned, left, right), ties)


def first_jobs(queues: Queues, values: FloatArray) -> Int64Array:
    """Return the row of the job that runs first in each queue: the least value, the first of equal ones."""
    order = np.lexsort((values, queues.decision))
    return order[queues.edges[:-1]].astype(np.int64)


def agreement_of(pairs: Pairs, values: FloatArray) -> Agreement:
    """Return how far values (lower runs first) order the pairs as the network does.

    Parameters
    ----------
    pairs : Pairs
        At least one.
    values : float64 array (n,)
        Of each row of the queues.
    """
    alike = _alike(pairs, values)
    of_decision = _shares(alike, pairs.decision)
    of_window = _shares(alike, pairs.queues.window[pairs.decision])
    same = first_jobs(pairs.queues, values) == first_jobs(pairs.queues, pairs.preference)
    return Agreement(
        float(alike.mean()), float((2 * of_decision - 1).mean()), float(same.mean()), tuple(of_window.tolist())
    )


def _alike(pairs: Pairs, values: FloatArray) -> NDArray[np.bool_]:
    ahead, behind = values[pairs.ahead], values[pairs.behind]
    alike: NDArray[np.bool_] = (ahead < behind) | ((ahead == behind) & (pairs.ahead < pairs.behind))
    return alike


def _shares(alike: NDArray[np.bool_], group: Int64Array) -> FloatArray:
    """Return the share of true ones in each group that has any."""
    counts = np.bincount(group)
    shares: FloatArray = (np.bincount(group, weights=alike) / np.maximum(counts, 1))[counts > 0]
    return shares
