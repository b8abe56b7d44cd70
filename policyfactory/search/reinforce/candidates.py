"""Which of a run's candidates is taken, by windows that it did not learn from; and what a network is worth on windows.

A candidate that looks best on the windows of its own round was lucky there: from one round to the next the mean of ten
windows moves by several per cent.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Float32Array, FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.search.reinforce.networks import KERNEL
from policyfactory.search.reinforce.rollouts import play
from policyfactory.search.reinforce.training import TrainedNumbers, chooser_of
from policyfactory.search.reinforce.worlds import World

__all__ = ["best_candidate", "drawn_costs", "first_costs"]

_PURPOSE = 77  # of the random stream; see core.random


def first_costs(world: World, starts: Int64Array, numbers: Float32Array, name: str = KERNEL) -> FloatArray:
    """Return the goal of each window where the most probable job is always taken.

    Parameters
    ----------
    world : World
        With room for all windows.
    starts : int64 array (k,)
        Their first jobs.
    numbers : float32 array
        Of the network.
    name : str
        Which network it is.
    """
    return play(world, starts, chooser_of(numbers, name, world)).costs


def drawn_costs(
    world: World, starts: Int64Array, numbers: Float32Array, seed: int, name: str = KERNEL
) -> FloatArray:  # fmt: skip
    """Return the goal of each window where jobs are drawn by their probabilities, as the paper's program tests."""
    return play(world, starts, chooser_of(numbers, name, world), generator(seed, _PURPOSE)).costs


def best_candidate(world: World, starts: Int64Array, trained: TrainedNumbers, name: str = KERNEL) -> int:
    """Return the place of the candidate of the least mean cost over windows for choosing; of equal ones the first."""
    means = [float(first_costs(world, starts, numbers, name).mean()) for numbers in trained.numbers]
    return int(np.argmin(means))
