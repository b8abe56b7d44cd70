"""Requested times as users write them, where a log has some that were raised to the run time."""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import kernel

__all__ = ["USUAL_FROM", "usual_requests"]

USUAL_FROM = 10  # jobs that asked for exactly that, from which on a request is a usual one


@kernel
def usual_requests(requests: Int64Array, which: Int64Array, values: Int64Array, minute: int) -> Int64Array:
    """Return for each job its own request if it is a usual one, else the largest usual one below, if there is any.

    A request is usual if it is a whole number of minutes, or if at least `USUAL_FROM` jobs before asked for exactly
    that. Nothing but requests of the same and of earlier jobs is looked at.

    Parameters
    ----------
    requests : int64 array (n,), ticks
        In submit order.
    which : int64 array (n,)
        Where each of them is among the values.
    values : int64 array (k,), ticks
        The different requests, ascending.
    minute : int
        Ticks of a minute.
    """
    usual, count = np.empty(len(values), dtype=np.int64), 0
    seen = np.zeros(len(values), dtype=np.int64)
    made = requests.copy()
    for job in range(len(requests)):
        value = requests[job]
        if value % minute != 0 and seen[which[job]] < USUAL_FROM:
            at = np.searchsorted(usual[:count], value, side="right")
            if at > 0:
                made[job] = usual[at - 1]
        seen[which[job]] += 1
        if seen[which[job]] == USUAL_FROM:
            at = np.searchsorted(usual[:count], value)
            for place in range(count, at, -1):
                usual[place] = usual[place - 1]
            usual[at] = value
            count += 1
    return made
