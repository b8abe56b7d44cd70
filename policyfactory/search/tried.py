"""What a search has tried: its worth, its place, the front of it, and how it is kept in a journal."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import numpy as np

from policyfactory.search.objective import Worth
from policyfactory.search.pareto import COSTS, non_dominated
from policyfactory.search.play import MEASURED

__all__ = ["Tried", "decode", "encode", "front_with", "spread"]

_MOST_OF_FRONT = 12  # candidates of a search that are no proposals but on its front


@dataclasses.dataclass(slots=True)
class Tried:
    """A candidate that was tried: its coefficients and what they are worth."""

    values: tuple[float, ...]
    worth: Worth

    @property
    def costs(self) -> tuple[float, ...]:
        """The gain, and the means of what it costs."""
        return self.worth.gain, *(self.worth.means[MEASURED.index(name)] for name in COSTS)

    @property
    def place(self) -> tuple[bool, float]:
        """What candidates are sorted by: one inside the bands before any outside."""
        return bool(self.worth.out), self.worth.objective


def front_with(front: Sequence[Tried], tried: Tried) -> list[Tried]:
    """Return what of a front and one more nothing else of them beats in the goal and in all that it costs."""
    every = [*front, tried]
    stay = non_dominated(np.array([one.costs for one in every])).tolist()
    return [one for one, stays in zip(every, stay, strict=True) if stays]


def spread(front: Sequence[Tried]) -> list[Tried]:
    """Return a few of a front, from its best in the goal to its cheapest."""
    ordered = sorted(front, key=lambda one: one.costs)
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), _MOST_OF_FRONT)).round().astype(int)
    return [ordered[at] for at in places.tolist()]


def encode(worths: Sequence[Worth]) -> bytes:
    """Return a record of a journal."""
    return json.dumps([[one.objective, one.gain, list(one.means), one.out] for one in worths]).encode("ascii")


def decode(record: bytes) -> list[Worth]:
    """Return what a record says."""
    return [Worth(objective, gain, tuple(means), out) for objective, gain, means, out in json.loads(record)]
