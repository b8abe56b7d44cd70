"""The weights of Slurm's priority/multifactor that come nearest to the order of a policy.

Near is: as few pairs of waiting jobs as possible the other way round (Kendall's tau). That is what an administrator
sees, and no outlier of a score can spoil it, as it would least squares. The search takes every sign and size of up to
three factors, and as few of them as reach the best order to a hundredth.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.units import DAY
from policyfactory.export.sample import Sample
from policyfactory.export.slurm.factors import TERMS, Machine, Weights, make_weights, terms
from policyfactory.policy.policy import Policy

__all__ = ["Distance", "Waiting", "distance", "fit_weights", "waiting_jobs"]

Gains = tuple[float, float, float]

# Where the sample has no waits: jobs that wait were submitted within this time, s.
_USUAL_WAIT = 2 * DAY
_SEARCH_JOBS = 250
_TEST_JOBS = 1_000
_PURPOSE = 43
_SIMPLER = 0.01  # of tau that one factor less may cost


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """Jobs that wait at one instant, and their scores.

    Parameters
    ----------
    p, q, w : float64 array (n,)
        Requested time (s), processors, time waited (s).
    scores : float64 array (n,)
        Of the policy; LOWER first.
    """

    p: FloatArray
    q: FloatArray
    w: FloatArray
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.p)


@dataclasses.dataclass(frozen=True, slots=True)
class Distance:
    """How far an order is from the policy's, in pairs of jobs that the policy tells apart.

    Parameters
    ----------
    pairs : int
        How many there are.
    inverted : float
        Share that is the other way round.
    tied : float
        Share that is not told apart: submit time decides.
    """

    pairs: int
    inverted: float
    tied: float

    @property
    def tau(self) -> float:
        """Kendall's rank correlation of the pairs: 1 the same order, 0 none, -1 the opposite."""
        return 1.0 - 2.0 * self.inverted - self.tied


def waiting_jobs(policy: Policy, sample: Sample, processors: int, jobs: int = _TEST_JOBS, *, draw: int = 0) -> Waiting:
    """Return jobs as they would wait at one instant of the policy's life.

    A job that waits long is seen waiting more often, and at any point of its wait. The sample has even parts w of waits
    W: rows drawn with the weight w are jobs with the weight W, and w times a number that is 1 in half of the cases, and
    else even over 0 to 1, is even over W. Where the sample has no waits, ages are even over two days.

    Parameters
    ----------
    policy : Policy
    sample : Sample
    processors : int
        Of the machine.
    jobs : int
        How many.
    draw : int
        Number of the draw, from 0.
    """
    rng = generator(1, _PURPOSE, draw)
    total = float(sample.w.sum())
    rows = rng.choice(len(sample), jobs, p=sample.w / total if total else None)
    part = rng.random(jobs)
    w = np.floor(sample.w[rows] * np.where(rng.random(jobs) < 0.5, 1.0, part) if total else _USUAL_WAIT * part)
    oldest = float(w.max())
    now = oldest if policy.epoch.rule == "oldest-waiting" else max(float(np.median(sample.r)), oldest)
    p, q = sample.p[rows], np.minimum(sample.q[rows], processors)
    return Waiting(p, q, w, policy.scores(p, q, np.maximum(now - w, 1.0), w, processors))


def _distinguished(scores: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs with different scores, the first to run first."""
    first, second = np.triu_indices(len(scores), 1)
    lower = scores[first] < scores[second]
    kept = lower | (scores[first] > scores[second])
    return np.where(lower, first, second)[kept], np.where(lower, second, first)[kept]


def distance(waiting: Waiting, priorities: FloatArray) -> Distance:
    """Return how far the order by ``priorities`` (HIGHER first) is from that of the scores."""
    first, second = _distinguished(waiting.scores)
    if not len(first):
        return Distance(0, 0.0, 0.0)
    ahead = priorities[first] - priorities[second]
    return Distance(len(first), float((ahead < 0).mean()), float((ahead == 0).mean()))


def fit_weights(policy: Policy, sample: Sample, machine: Machine) -> tuple[Weights, Distance] | None:
    """Return the weights that come nearest to the policy, and how far they are, on jobs that they were not fitted to.

    Parameters
    ----------
    policy : Policy
    sample : Sample
    machine : Machine
        Without its nodes the size factor is left out.

    Returns
    -------
    Weights and Distance, or None where the policy gives all of these jobs one score.
    """
    gains = _best_gains(waiting_jobs(policy, sample, machine.processors, _SEARCH_JOBS), machine)
    if gains is None:
        return None
    weights = make_weights(gains, machine)
    test = waiting_jobs(policy, sample, machine.processors, draw=1)
    return weights, distance(test, weights.priorities(test.p, test.q, test.w))


def _best_gains(waiting: Waiting, machine: Machine) -> Gains | None:
    columns = terms(waiting.p, waiting.q, waiting.w, machine)
    spread = columns.std(axis=0)
    first, second = _distinguished(waiting.scores)
    usable = [at for at in range(len(TERMS)) if spread[at] > 0 and (TERMS[at] != "size" or machine.nodes)]
    if not len(first) or not usable:
        return None
    spread[spread == 0] = 1.0
    ahead = (columns[first] - columns[second]) / spread

    def tau(gains: FloatArray) -> float:
        return float(np.sign(ahead @ gains).mean())

    best: tuple[float, FloatArray] | None = None
    for count in range(1, len(usable) + 1):
        for chosen in itertools.combinations(usable, count):
            reached, gains = _search(tau, chosen)
            if best is None or reached > best[0] + _SIMPLER * (count > np.count_nonzero(best[1])):
                best = reached, gains
    assert best is not None  # noqa: S101 (there is a usable term)
    age, processor, size = best[1] / spread
    return float(age), float(processor), float(size)


def _search(tau: Callable[[FloatArray], float], chosen: tuple[int, ...]) -> tuple[float, FloatArray]:
    """Return the best order that the ``chosen`` terms make, and their factors; a grid of sizes, then finer steps."""
    best = -np.inf, np.zeros(len(TERMS))
    # Only the ratios count, so the first has the size 1. The age weight of Slurm has no sign.
    signs = itertools.product(*((1.0,) if at == 0 else (1.0, -1.0) for at in chosen))
    sizes = list(itertools.product((1.0,), *[10.0 ** np.arange(-4.0, 4.1, 0.5)] * (len(chosen) - 1)))
    for sign, size in itertools.product(signs, sizes):
        gains = np.zeros(len(TERMS))
        gains[list(chosen)] = np.multiply(sign, size)
        best = max(best, (tau(gains), gains), key=lambda reached: reached[0])
    for step in (1.6, 1.3, 1.15, 1.07, 1.03, 1.01):
        for at, factor in itertools.product(chosen[1:], (step, 1.0 / step)):
            gains = best[1].copy()
            gains[at] *= factor
            best = max(best, (tau(gains), gains), key=lambda reached: reached[0])
    return best
