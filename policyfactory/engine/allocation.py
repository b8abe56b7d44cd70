"""Which processors a job runs on: an assignment of processor numbers to a schedule that only counts them.

A schedule that never uses more than m processors can always be given numbers 0 to m - 1 in the order of the starts,
since any free processor serves. Processors are kept as sorted intervals, so the work depends on the number of holes
and not on the size of the machine. A job gets the lowest hole that takes it whole, else the lowest free processors.
Times are half open: what ends at t is free for what starts at t.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import kernel

__all__ = ["allocate"]


@kernel
def allocate(
    start: Int64Array,
    end: Int64Array,
    processors: Int64Array,
    machine: int,
    by_start: Int64Array,
    by_end: Int64Array,
) -> tuple[int, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return the processor intervals of each job.

    Parameters
    ----------
    start, end : int64 array (n,), ticks
        When each job runs; a job with ``end == start`` holds no processor for any time.
    processors : int64 array (n,)
        How many it needs.
    machine : int
        Processors of the machine.
    by_start, by_end : int64 array (n,)
        Rows sorted by start and by end (stable).

    Returns
    -------
    failed : int
        -1, or the row of the first job for which not enough processors are free: the input is no schedule.
    first, stop : int64 array (n,)
        Row i has the intervals ``first[i]`` to ``stop[i] - 1``.
    low, high : int64 array (total,)
        First and last processor of each interval, ascending within a job.
    """
    n = len(start)
    first = np.zeros(n, dtype=np.int64)
    stop = np.zeros(n, dtype=np.int64)
    low = np.empty(2 * n + 8, dtype=np.int64)
    high = np.empty(2 * n + 8, dtype=np.int64)
    free_low = np.empty(64, dtype=np.int64)
    free_high = np.empty(64, dtype=np.int64)
    free_low[0] = 0
    free_high[0] = machine - 1
    holes = 1
    used = 0
    ended = 0
    for k in range(n):
        job = by_start[k]
        while ended < n and end[by_end[ended]] <= start[job]:
            done = by_end[ended]
            ended += 1
            if end[done] > start[done]:
                for i in range(first[done], stop[done]):
                    if holes == len(free_low):
                        free_low = _grown(free_low)
                        free_high = _grown(free_high)
                    holes = _release(free_low, free_high, holes, low[i], high[i])
        first[job] = used
        while used + holes + 1 > len(low):
            low = _grown(low)
            high = _grown(high)
        lasting = end[job] > start[job]
        taken, holes = _take(free_low, free_high, holes, processors[job], low[used:], high[used:], lasting)
        if taken < 0:
            if lasting:
                return job, first, stop, low[:used], high[:used]
            # It holds them for no time at all, so any will do.
            taken = 1
            low[used] = 0
            high[used] = processors[job] - 1
        used += taken
        stop[job] = used
    return -1, first, stop, low[:used], high[:used]


@kernel
def _grown(array: Int64Array) -> Int64Array:
    larger = np.empty(2 * len(array), dtype=np.int64)
    larger[: len(array)] = array
    return larger


@kernel
def _take(
    free_low: Int64Array,
    free_high: Int64Array,
    holes: int,
    wanted: int,
    low: Int64Array,
    high: Int64Array,
    remove: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> tuple[int, int]:
    """Write the intervals of ``wanted`` processors; return how many (-1: not enough) and the holes left."""
    free = 0
    for i in range(holes):
        size = free_high[i] - free_low[i] + 1
        if size >= wanted:
            low[0] = free_low[i]
            high[0] = free_low[i] + wanted - 1
            if remove:
                free_low[i] += wanted
                if size == wanted:
                    for j in range(i, holes - 1):
                        free_low[j] = free_low[j + 1]
                        free_high[j] = free_high[j + 1]
                    holes -= 1
            return 1, holes
        free += size
    if free < wanted:
        return -1, holes
    taken = 0
    rest = wanted
    while rest > 0:
        size = free_high[taken] - free_low[taken] + 1
        low[taken] = free_low[taken]
        high[taken] = free_low[taken] + min(size, rest) - 1
        rest -= min(size, rest)
        taken += 1
    if remove:
        # Whole holes go; the last one may keep its upper part.
        gone = taken
        if high[taken - 1] < free_high[taken - 1]:
            free_low[taken - 1] = high[taken - 1] + 1
            gone = taken - 1
        for j in range(gone, holes):
            free_low[j - gone] = free_low[j]
            free_high[j - gone] = free_high[j]
        holes -= gone
    return taken, holes


@kernel
def _release(free_low: Int64Array, free_high: Int64Array, holes: int, low: int, high: int) -> int:
    """Put an interval back, joined with its neighbours; return the number of holes."""
    at = np.searchsorted(free_low[:holes], low)
    joins_left = at > 0 and free_high[at - 1] == low - 1
    joins_right = at < holes and free_low[at] == high + 1
    if joins_left and joins_right:
        free_high[at - 1] = free_high[at]
        for j in range(at, holes - 1):
            free_low[j] = free_low[j + 1]
            free_high[j] = free_high[j + 1]
        return holes - 1
    if joins_left:
        free_high[at - 1] = high
        return holes
    if joins_right:
        free_low[at] = low
        return holes
    for j in range(holes, at, -1):
        free_low[j] = free_low[j - 1]
        free_high[j] = free_high[j - 1]
    free_low[at] = low
    free_high[at] = high
    return holes + 1
