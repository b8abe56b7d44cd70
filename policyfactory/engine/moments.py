"""Many trials at once: random orders in, means and co-moments out; memory does not grow with the trials.

The kernels go on from the words and the sums that they are given, so that long runs can be cut into calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.jit import kernel
from policyfactory.engine.shuffle import shuffle
from policyfactory.engine.trials import Problem, front_values, order_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["VARIANTS", "add_block", "add_blocks", "add_orders", "turn"]

# Orders made of one drawn order.
VARIANTS = 4
# Blocks and orders drawn at a time: few enough to stay in the cache.
_BLOCKS = 32
_ORDERS = 512


@kernel
def turn(drawn: NDArray[np.uint8], orders: NDArray[np.uint8]) -> None:
    """Write the four orders made of each drawn one: as it is, with its halves exchanged, and both backwards.

    Parameters
    ----------
    drawn : uint8 array (b, n)
        Permutations.
    orders : uint8 array (4 b, n)
        Becomes the orders; those of ``drawn[i]`` are the rows from 4 i on.
    """
    n = drawn.shape[1]
    half = n // 2
    for i in range(len(drawn)):
        for s in range(n):
            job = drawn[i, s]
            exchanged = s + n - half if s < half else s - half
            orders[VARIANTS * i, s] = job
            orders[VARIANTS * i + 1, n - 1 - s] = job
            orders[VARIANTS * i + 2, exchanged] = job
            orders[VARIANTS * i + 3, n - 1 - exchanged] = job


@kernel
def add_block(values: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
    """Add one block to the running means and co-moments (Welford's update: no cancellation).

    Parameters
    ----------
    values : float64 array (4, n)
        Value of the trial in which j goes first, in each of the block's four orders.
    sums : float64 array (n + 1, 3)
        Row j: mean of the block means Y_j, sum of squares of Y_j around it, sum of products of Y_j and T around
        their means, with T the sum of Y_j over j. Row n: blocks so far, mean of T, sum of squares of T.
    """
    n = values.shape[1]
    sums[n, 0] += 1.0
    count = sums[n, 0]
    total = 0.0
    for j in range(n):
        for v in range(VARIANTS):
            total += values[v, j] / VARIANTS
    off_before = total - sums[n, 1]
    sums[n, 1] += off_before / count
    off_after = total - sums[n, 1]
    sums[n, 2] += off_before * off_after
    for j in range(n):
        value = 0.0
        for v in range(VARIANTS):
            value += values[v, j] / VARIANTS
        off = value - sums[j, 0]
        sums[j, 0] += off / count
        sums[j, 1] += off * (value - sums[j, 0])
        sums[j, 2] += off * off_after


@kernel
def add_blocks(problem: Problem, words: NDArray[np.int64], blocks: int, sums: NDArray[np.float64]) -> None:
    """Run ``blocks`` blocks of 4 n trials: four orders of one drawn order, each job of Q first in each of them.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    words : int64 array (4,)
        The random stream; moved on.
    blocks : int
        How many blocks.
    sums : float64 array (n + 1, 3)
        As in `add_block`.
    """
    n = len(problem.p)
    drawn = np.empty((_BLOCKS, n), dtype=np.uint8)
    orders = np.empty((VARIANTS * _BLOCKS, n), dtype=np.uint8)
    values = np.empty((VARIANTS * _BLOCKS, n), dtype=np.float64)
    for first in range(0, blocks, _BLOCKS):
        count = min(_BLOCKS, blocks - first)
        shuffle(words, drawn[:count])
        turn(drawn[:count], orders)
        front_values(problem, orders[: VARIANTS * count], values)
        for i in range(count):
            add_block(values[VARIANTS * i : VARIANTS * (i + 1)], sums)


@kernel
def add_orders(problem: Problem, words: NDArray[np.int64], trials: int, sums: NDArray[np.float64]) -> None:
    """Run ``trials`` trials in independent random orders.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    words : int64 array (4,)
        The random stream; moved on.
    trials : int
        How many trials.
    sums : float64 array (n, 3)
        Row j: number, sum of values, sum of squared values of the trials so far with j first.
    """
    orders = np.empty((_ORDERS, len(problem.p)), dtype=np.uint8)
    values = np.empty(_ORDERS, dtype=np.float64)
    for first in range(0, trials, _ORDERS):
        count = min(_ORDERS, trials - first)
        shuffle(words, orders[:count])
        order_values(problem, orders[:count], values)
        for i in range(count):
            j = orders[i, 0]
            sums[j, 0] += 1.0
            sums[j, 1] += values[i]
            sums[j, 2] += values[i] * values[i]
