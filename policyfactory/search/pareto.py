"""The Pareto front: of what was tried, what nothing else beats in the goal and in all that it costs at once.

By the replicas for choosing, which no candidate was learned on. The published policies beside compete too: a candidate
that one of them beats in everything is on no front.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.search.judging import Ranked
from policyfactory.search.play import MEASURED

__all__ = ["COSTS", "Member", "members_of", "non_dominated"]

COSTS = ("p99_wait", "max_wait", "area_weighted_wait")


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A policy on the replicas for choosing, relative to the baseline.

    Parameters
    ----------
    ranked : Ranked
        The policy, and what was measured.
    ratios : tuple of float
        Of the goal (the geometric mean over the replicas) and of each of `COSTS` (of the means); below 1 is better;
        NaN where the baseline's is 0.
    on_front : bool
        Whether nothing beats it in everything.
    """

    ranked: Ranked
    ratios: tuple[float, ...]
    on_front: bool

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.ranked.candidate.policy.name


def non_dominated(values: FloatArray) -> NDArray[np.bool_]:
    """Return which rows no other row beats: is nowhere above and somewhere below; of equal rows the first.

    Parameters
    ----------
    values : float64 array (n, k)
        Less is better; a row with a NaN is never one.
    """
    finite = np.array([bool(np.isfinite(row).all()) for row in values], dtype=np.bool_)
    kept = finite.copy()
    for at in np.flatnonzero(finite):
        below, less = (values <= values[at]).all(axis=1), (values < values[at]).any(axis=1)
        # One that is equal beats those behind it.
        beaten = finite & below & (less | (np.arange(len(values)) < at))
        kept[at] = not beaten.any()
    return kept


def members_of(ranked: Sequence[Ranked], baseline: str) -> tuple[Member, ...]:
    """Return all that was ranked with its ratios, in the same order, and what of it is on the front.

    Parameters
    ----------
    ranked : sequence of Ranked
        Candidates and policies beside, the best first.
    baseline : str
        Name of the published policy that ratios are to.
    """
    base = next(one for one in ranked if not one.learned and one.candidate.policy.name == baseline)
    places = [MEASURED.index(name) for name in COSTS]
    rows = [[one.gain, *(one.means[at] for at in places)] for one in ranked]
    front = non_dominated(np.array(rows))
    members = []
    for one, on_front in zip(ranked, front.tolist(), strict=True):
        costs = (one.means[at] / base.means[at] if base.means[at] else math.nan for at in places)
        members.append(Member(one, (math.exp(one.gain), *costs), on_front))
    return tuple(members)
