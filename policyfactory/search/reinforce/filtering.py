"""Trajectory filtering: the first rounds learn from windows that are neither trivial nor hopeless under SJF.

The SC'20 paper takes the windows whose value under SJF lies between the median and twice the mean of all; its program
has 10 and 150 instead. Phase 2 learns from all windows.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import EvaluationError
from policyfactory.policy.catalogue import resolve
from policyfactory.search.reinforce.options import Filtering
from policyfactory.search.reinforce.worlds import World

__all__ = ["filtered_starts"]

_OF_THE_CODE = (10.0, 150.0)
_AT_A_TIME = 512


def filtered_starts(world: World, starts: Int64Array, rule: Filtering) -> Int64Array:
    """Return the starts of phase 1.

    Parameters
    ----------
    world : World
        What plays SJF; its goal is to be small.
    starts : int64 array
        All of them.
    rule : {"none", "paper", "code"}
        As in `policyfactory.search.reinforce.options.PpoOptions`.

    Raises
    ------
    EvaluationError
        If no window is inside.
    """
    if rule == "none":
        return starts
    sjf = resolve("SJF")
    parts = [world.costs_of(sjf, starts[at : at + _AT_A_TIME]) for at in range(0, len(starts), _AT_A_TIME)]
    values = np.concatenate(parts)
    low, high = (float(np.median(values)), 2 * float(values.mean())) if rule == "paper" else _OF_THE_CODE
    # Both ends are outside, as in the program.
    inside = starts[(values > low) & (values < high)]
    if not len(inside):
        raise EvaluationError(
            f"filtering {rule}: none of {len(starts):,} windows has a value under SJF between {low:g} and {high:g}; "
            "choose another rule, or none"
        )
    return np.asarray(inside, dtype=np.int64)
