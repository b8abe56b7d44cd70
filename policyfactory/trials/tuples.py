"""Tuples: which jobs fill the machine, and which ones queue."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import WorkloadError
from policyfactory.core.random import generator
from policyfactory.engine.trials import Problem, pose
from policyfactory.workload.jobs import Workload

__all__ = ["MAX_QUEUE", "MAX_STATE", "TAU", "Tuple", "count_places", "cut_tuple", "draw_places"]

# Seconds below which a run time counts as this long in the bounded slowdown (docs/architecture.md).
TAU = 10
# An order holds job numbers in one byte; a state beyond this is no machine that anybody has.
MAX_QUEUE = 255
MAX_STATE = 10_000
_PLACES = 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tuple:
    """A tuple (S, Q): consecutive jobs of a workload, times counted from the first of them.

    Parameters
    ----------
    p, q, r : float64 array (n,)
        Run time (s), processors, submit time (s) of the jobs of Q.
    problem : Problem
        The same in ticks, with the machine after S, for the kernels.
    """

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    r: NDArray[np.float64]
    problem: Problem


def count_places(workload: Workload, state_size: int, queue_size: int) -> int:
    """Return from how many places of the workload a tuple can be cut.

    Raises
    ------
    WorkloadError
        If the workload is shorter than a tuple.
    """
    size = state_size + queue_size
    if len(workload) < size:
        raise WorkloadError(
            f"{workload.name}: a tuple needs {state_size} + {queue_size} = {size} consecutive jobs, the workload has "
            f"{len(workload)}; use a longer log, or a smaller --state-size or --queue-size"
        )
    return len(workload) - size + 1


def draw_places(places: int, tuples: int, seed: int) -> NDArray[np.int64]:
    """Return the first job of each tuple: random, no place twice before every place was used once.

    The places of fewer tuples are the first of those of more.

    Parameters
    ----------
    places : int
        From how many places of the workload a tuple can be cut.
    tuples : int
        How many tuples.
    seed : int
        The user's seed.

    Returns
    -------
    int64 array (tuples,)
        Row of the workload at which each tuple begins.
    """
    rounds = -(-tuples // places)
    drawn = [generator(seed, _PLACES, number).permutation(places) for number in range(rounds)]
    return np.concatenate(drawn)[:tuples].astype(np.int64)


def cut_tuple(workload: Workload, place: int, state_size: int, queue_size: int) -> Tuple:
    """Return the tuple that begins at row ``place``: S, then Q, in submit order."""
    rows = slice(place, place + state_size + queue_size)
    p, q = workload.run_time[rows], workload.processors[rows]
    r = workload.submit[rows] - workload.submit[place]
    problem = pose(p, q, r, workload.machine, state_size, TAU * workload.ticks)
    queue = slice(state_size, None)
    return Tuple(p[queue] / workload.ticks, q[queue].astype(np.float64), r[queue] / workload.ticks, problem)
