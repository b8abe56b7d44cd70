"""CMA-ES over the coefficients of a form: one search, asked for candidates and told what they are worth.

N. Hansen and A. Ostermeier, "Completely derandomized self-adaptation in evolution strategies", Evolutionary Computation
9(2), 2001; by the package ``cma``. All random numbers are of our own streams: a search that is asked and told the same
again goes the same way, which is how an interrupted run goes on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator
from policyfactory.search.families import Family

__all__ = ["Evolution", "digits", "population"]

_PURPOSE = 72  # of the random stream; see core.random
_DIGITS = 4  # significant ones of a coefficient: more say nothing
# A search is over when what it tries differs by less than anybody would notice, in logarithms or ratios.
_TOLERANCE = 1e-4


def population(coefficients: int) -> int:
    """Return how many candidates are tried at a time, of a form with so many coefficients."""
    return 4 + int(3 * math.log(max(coefficients, 2)))


def digits(values: FloatArray) -> tuple[float, ...]:
    """Return the values with as many digits as are written."""
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values.tolist())


class Evolution:
    """One search.

    Parameters
    ----------
    family : Family
        The form, and from where it is searched.
    seed, path : int and tuple of int
        Of its random numbers; the last of the path is the number of the restart. The first search of a family begins
        at its start, the others near it.
    step : float
        The first step, in the family's scale.
    """

    def __init__(self, family: Family, seed: int, path: tuple[int, ...], step: float) -> None:
        import cma

        random = generator(seed, _PURPOSE, *path)
        scale = np.array(family.scale)
        start = np.array(family.start)
        if path[-1]:
            start = start + scale * step * random.standard_normal(len(start))
        options: dict[str, Any] = {
            "randn": lambda *shape: random.standard_normal(shape),
            "seed": math.nan,
            "popsize": population(len(start)),
            "CMA_stds": scale,
            "tolfun": _TOLERANCE,
            "tolfunhist": _TOLERANCE / 10,
            "tolx": _TOLERANCE,
            "verbose": -9,
            "verb_log": 0,
        }
        self._strategy: Any = cma.CMAEvolutionStrategy(start, step, options)

    @property
    def over(self) -> bool:
        """Whether it has come to an end by itself."""
        return bool(self._strategy.stop())

    @property
    def step(self) -> float:
        """The step now."""
        return float(self._strategy.sigma)

    @property
    def centre(self) -> FloatArray:
        """The values around which it looks now: what it believes to be best, without the luck of a single draw."""
        return np.array(self._strategy.mean, dtype=np.float64)

    def ask(self) -> list[FloatArray]:
        """Return the values of the next candidates."""
        return [np.array(one, dtype=np.float64) for one in self._strategy.ask()]

    def tell(self, asked: Sequence[FloatArray], objective: Sequence[float]) -> None:
        """Take what they are worth; less is better."""
        self._strategy.tell(list(asked), list(objective))
