"""Pairs of jobs that waited together, in the order in which a network wants them; and how far a formula agrees."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.search.distill_queues import Queues
from policyfactory.statistics.means import estimate_ratio

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
    by_window : tuple of (int, int)
        Pairs ordered alike, and pairs, of each window that has any.
    """

    pairs: float
    tau: float
    first: float
    by_window: tuple[tuple[int, int], ...]

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the share of pairs, by the windows; None if they are too few."""
        alike, every = (np.array(column, dtype=np.float64) for column in zip(*self.by_window, strict=True))
        # The ratio of sums over the windows, in percent above 1: that of the pairs is its own baseline.
        interval = estimate_ratio(alike, every).interval
        return None if interval is None else (1 + interval.low / 100, min(1 + interval.high / 100, 1.0))


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
    counts = np.bincount(pairs.decision)
    shares = np.bincount(pairs.decision, weights=alike)[counts > 0] / counts[counts > 0]
    window = pairs.queues.window[pairs.decision]
    windows = zip(np.bincount(window, weights=alike).astype(int).tolist(), np.bincount(window).tolist(), strict=True)
    same = first_jobs(pairs.queues, values) == first_jobs(pairs.queues, pairs.preference)
    by_window = tuple((own, every) for own, every in windows if every)
    return Agreement(float(alike.mean()), float((2 * shares - 1).mean()), float(same.mean()), by_window)


def _alike(pairs: Pairs, values: FloatArray) -> NDArray[np.bool_]:
    ahead, behind = values[pairs.ahead], values[pairs.behind]
    alike: NDArray[np.bool_] = (ahead < behind) | ((ahead == behind) & (pairs.ahead < pairs.behind))
    return alike
