"""The order of the running jobs in ocst, the simulator of IEEE TPDS 29(10), 2018, where it decides a reservation.

ocst keeps the running jobs in a list, and for a reservation takes them by predicted end, equal ones in the list's
order, until the head fits. What else ends at that instant is not counted: its extra processors are fewer than ours,
and which of the jobs that end together are counted hangs on the list. The list has the jobs of the last pass first;
of one pass those that were backfilled, in the order of their starts, then the others, the last started first.
While a pass still runs, and nothing is backfilled yet, its own jobs are in the order of their starts.

Here the list is the table of `policyfactory.engine.running` with equal predicted ends in that order. It has to tell
jobs apart, so below the processors, from bit 32 on, stands the job. Jobs do not outlive their estimates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.running import PREDICTED, WIDTH
from policyfactory.engine.sliding import BOUNDS, HIGH, LOW, insert_gap, lower_bound

__all__ = ["WIDEST", "place_of_instant", "put_listed", "reserve_listed", "tagged"]

_BITS = 32
# The most processors that a machine may have.
WIDEST = (1 << _BITS) - 1


@inlined
def tagged(processors: int, job: int) -> int:
    """Return the entry of ``job`` in the table."""
    return processors | (job << _BITS)


@inlined
def place_of_instant(submit: Int64Array, job: int) -> int:
    """Return the number that ``job`` would have if the jobs of its instant were numbered from the last."""
    first, last = job, job
    while first > 0 and submit[first - 1] == submit[job]:
        first -= 1
    while last + 1 < len(submit) and submit[last + 1] == submit[job]:
        last += 1
    return first + last - job


@kernel
def _put(
    running: Int64Array,
    sequence: Int64Array,
    backfilled: NDArray[np.bool_],
    first: int,
    job: int,
    predicted: int,
    processors: int,
) -> None:
    at = lower_bound(running, predicted)
    if backfilled[job]:
        while at < running[BOUNDS, HIGH] and running[PREDICTED, at] == predicted:
            other = running[WIDTH, at] >> _BITS
            if not backfilled[other] or sequence[other] < first:
                break
            at += 1
    at = insert_gap(running, 2, at)
    running[PREDICTED, at] = predicted
    running[WIDTH, at] = tagged(processors, job)


@inlined
def put_listed(
    running: Int64Array,
    sequence: Int64Array,
    backfilled: NDArray[np.bool_],
    first: int,
    job: int,
    predicted: int,
    processors: int,
) -> None:
    """Add ``job``, whose sequence is set, to the table; those from sequence ``first`` on are of this pass."""
    # A call: the code would be there once more for each place at which a job is started, and slow down our own rules.
    _put(running, sequence, backfilled, first, job, predicted, processors)


@kernel
def _reserve(running: Int64Array, sequence: Int64Array, first: int, free: int, needed: int) -> tuple[int, int, int]:
    low, high = running[BOUNDS, LOW], running[BOUNDS, HIGH]
    at = low
    available = free + (running[WIDTH, at] & WIDEST)
    while available < needed:
        at += 1
        available += running[WIDTH, at] & WIDEST
    shadow = running[PREDICTED, at]
    # Column ``at`` is one of those that end together; are the first of them jobs of this pass?
    together = lower_bound(running, shadow)
    stop = together
    while stop < high and running[PREDICTED, stop] == shadow and sequence[running[WIDTH, stop] >> _BITS] >= first:
        stop += 1
    if stop - together < 2:
        return shadow, available - needed, 0
    for column in range(together, at + 1):
        available -= running[WIDTH, column] & WIDEST
    step = stop - 1
    while available < needed:
        available += running[WIDTH, step] & WIDEST
        # From the last to the first of this pass, then on behind them.
        step = stop if step == together else (step - 1 if step < stop else step + 1)
    return shadow, available - needed, 1


@inlined
def reserve_listed(
    running: Int64Array, sequence: Int64Array, first: int, free: int, needed: int
) -> tuple[int, int, int]:
    """Return the shadow time of a job that does not fit now, the extra processors, 1 if both hold for this pass only.

    The sequence of this pass's jobs is ``first`` or more; none of them was backfilled.
    """
    return _reserve(running, sequence, first, free, needed)
