"""Backfilling as the SC'17 programs do it: one job is brought to the front at a time. See docs/sc17.md.

The programs look for the reservation of the head again and again through all running jobs: each round picks one of
those with the least rest of their request, in whole seconds, until enough processors are counted. Here the running
jobs are kept in the order of start + request, and the rounds are made among the few whose rest is that of the last
one picked; all with less are picked before, in whatever order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined
from policyfactory.engine.compat.sc17_events import FREE, PLACE, RUNNING, Sc17Jobs, Sc17Space

__all__ = ["Picks", "bring_forward", "new_picks"]

# The largest int of C.
_INT_MAX = 2147483647.0


class Picks(NamedTuple):
    """Work space: running jobs that may be picked, in the order of dispatch, and what is left of their requests, s."""

    job: Int64Array
    left: FloatArray


def new_picks(space: Sc17Space) -> Picks:
    """Return work space for a run."""
    rows = len(space.running)
    return Picks(np.empty(rows, dtype=np.int64), np.empty(rows))


@inlined
def bring_forward(jobs: Sc17Jobs, space: Sc17Space, picks: Picks, count: int) -> None:
    """Bring the first job to the front that may go before the head of the queue; one at most.

    Parameters
    ----------
    jobs, space
        The run.
    picks : Picks
        Work space.
    count : int
        Jobs of the queue that are seen.
    """
    queue, place, free = space.queue, space.state[PLACE], space.state[FREE]
    now = math.floor(space.clock[0])
    shadow, extra = 0.0, 0
    if jobs.processors[queue[place]] > free:
        if not _some_fits(jobs, space, count):
            return
        shadow, extra = _reservation(jobs, space, picks, now)
    elif now > 0:
        # A head that fits is reserved second 0, by which only jobs of no run time end, in that second itself.
        return
    for at in range(place + 1, place + count):
        job = queue[at]
        needed = jobs.processors[job]
        if needed <= free and (now + jobs.request[job] <= shadow or needed <= extra):
            jobs.backfilled[job] = True
            for to in range(at, place, -1):
                queue[to] = queue[to - 1]
            queue[place] = job
            return


@inlined
def _some_fits(jobs: Sc17Jobs, space: Sc17Space, count: int) -> bool:
    smallest, place = jobs.processors[space.queue[space.state[PLACE]]], space.state[PLACE]
    for at in range(place + 1, place + count):
        smallest = min(smallest, jobs.processors[space.queue[at]])
    return bool(smallest <= space.state[FREE])


@inlined
def _rest(jobs: Sc17Jobs, job: int, now: float) -> float:
    """Return what is left of the request of a running job, s: the time passed is kept in single precision."""
    return float(jobs.request[job] - float(np.float32(now - jobs.start[job])))


@inlined
def _reservation(jobs: Sc17Jobs, space: Sc17Space, picks: Picks, now: float) -> tuple[float, int]:
    """Return when the head can start, by the requests of the running jobs, and how many processors are left then.

    Rests differ from start + request - now by less than ``doubt``. If u is that of the first job, in the order of
    start + request, with which enough are free, the whole seconds of the last pick are between those of u - doubt
    and of u + doubt: no job with less than the former makes it enough, and those up to the latter do.
    """
    running, predicted, held = space.running, space.predicted, space.state[RUNNING]
    needed, doubt = jobs.processors[space.queue[space.state[PLACE]]], now * 6e-8 + 1e-6
    reached = space.state[FREE]
    last = 0
    while last < held and reached < needed:
        reached += _counted(jobs, running[last], predicted[last], now, doubt)
        last += 1
    if reached < needed:
        return -1.0, -1
    border = predicted[last - 1] - now
    from_, to = math.floor(border - doubt) - doubt, math.floor(border + doubt) + 1.0 + doubt
    first = last - 1
    while first > 0 and predicted[first - 1] - now >= from_:
        first -= 1
    while last < held and predicted[last] - now <= to:
        last += 1
    future = space.state[FREE]
    for at in range(first):
        future += _counted(jobs, running[at], predicted[at], now, doubt)
    return _pick(jobs, space, picks, (first, last), (now, future))


@inlined
def _counted(jobs: Sc17Jobs, job: int, predicted: float, now: float, doubt: float) -> int:
    """Return the processors of a running job; none if its rest is -1, the programs' mark of a job that has ended."""
    if abs(predicted - now + 1.0) <= doubt and _rest(jobs, job, now) == -1.0:
        return 0
    return int(jobs.processors[job])


@inlined
def _pick(
    jobs: Sc17Jobs, space: Sc17Space, picks: Picks, rows: tuple[int, int], counted: tuple[float, int]
) -> tuple[float, int]:
    """Pick running jobs of ``rows`` as the programs do, until the head fits; ``counted``: now, processors so far."""
    job, left, (first, last), (now, future) = picks.job, picks.left, rows, counted
    needed, count = jobs.processors[space.queue[space.state[PLACE]]], last - first
    for at in range(count):
        # In the order of dispatch, which is that of the starts.
        own, to = space.running[first + at], at
        while to > 0 and jobs.start[job[to - 1]] > jobs.start[own]:
            job[to] = job[to - 1]
            to -= 1
        job[to] = own
    for at in range(count):
        left[at] = _rest(jobs, job[at], now)
    while True:
        least, pick = _INT_MAX, -1
        for at in range(count):
            if left[at] < least and left[at] != -1.0:
                # Toward zero, as C does it.
                least, pick = float(int(left[at])), at
        left[pick] = _INT_MAX
        future += jobs.processors[job[pick]]
        if future >= needed:
            return now + least, future - needed
