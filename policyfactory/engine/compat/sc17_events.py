"""The clock of the SC'17 programs: arrivals, completions and the delay of a dispatch, as SimGrid 3.13 times them.

Times are seconds, as doubles: a dispatch takes 2.61 ms, so starts are no whole numbers of anything, and whatever falls
within 1e-5 s after an instant happens at it. docs/sc17.md has the rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined

__all__ = [
    "ARRIVED", "DELAY", "FREE", "LATENCY", "PLACE", "RUNNING", "SORTED",
    "Sc17Jobs", "Sc17Space", "go_on_to", "new_space", "next_event", "put_running", "somebody_runs",
]  # fmt: skip


# A message of 1,000 bytes over two links of 100 us and 125 MB/s, in SimGrid's model LV08.
LATENCY = 13.01 * 2 * 100e-6
DELAY = LATENCY + 1000 / (0.97 * 125e6)
AT_ONCE = 1e-5

# The state of a run, an int64 array (5,): the job to be dispatched next, by its place in the queue; free processors;
# jobs whose submit time has come; up to which place the queue is sorted; length of the list of running jobs.
PLACE, FREE, ARRIVED, SORTED, RUNNING = range(5)


class Sc17Jobs(NamedTuple):
    """The jobs in the order of the log: what is given, and what becomes of them; arrays (n,).

    Parameters
    ----------
    submit, run_time : float64 array
        s; submit times are whole numbers, ascending.
    decide, request : float64 array
        s; the p of the policies, and the run time that backfilling reckons with.
    processors : int64 array
        q.
    start, end : float64 array
        s; NaN before.
    backfilled : bool array
        Whether it was brought to the front of the queue by backfilling.
    """

    submit: FloatArray
    run_time: FloatArray
    decide: FloatArray
    request: FloatArray
    processors: Int64Array
    start: FloatArray
    end: FloatArray
    backfilled: NDArray[np.bool_]


class Sc17Space(NamedTuple):
    """What a run works on.

    Parameters
    ----------
    state : int64 array (5,)
        See above.
    clock : float64 array (1,)
        This instant, s.
    due : float64 array (n,)
        When each running job is to end, s.
    heap : int64 array (n + 1,)
        Running jobs, the next to end first; element 0 counts them.
    running : int64 array (rows,)
        Running jobs by start + request; kept for backfilling only, else without rows.
    predicted : float64 array (rows,)
        Their start + request, s.
    queue : int64 array (n,)
        All jobs in the order in which they are dispatched; from ``PLACE`` on, the queue.
    """

    state: Int64Array
    clock: FloatArray
    due: FloatArray
    heap: Int64Array
    running: Int64Array
    predicted: FloatArray
    queue: Int64Array


def new_space(jobs: int, machine: int, *, backfill: bool) -> Sc17Space:
    """Return the space for a run of ``jobs`` jobs on an idle machine."""
    state = np.zeros(5, dtype=np.int64)
    state[FREE] = machine
    rows = min(jobs, machine) if backfill else 0
    heap, running = np.zeros(jobs + 1, dtype=np.int64), np.empty(rows, dtype=np.int64)
    return Sc17Space(state, np.zeros(1), np.empty(jobs), heap, running, np.empty(rows), np.arange(jobs))


@inlined
def somebody_runs(space: Sc17Space) -> bool:
    """Say whether a job is running."""
    return bool(space.heap[0] > 0)


@inlined
def next_event(jobs: Sc17Jobs, space: Sc17Space) -> None:
    """Go on to the instant at which a job arrives or ends next."""
    _settle(jobs, space, _next_instant(jobs, space))


@inlined
def go_on_to(jobs: Sc17Jobs, space: Sc17Space, instant: float) -> None:
    """Go on to ``instant``, through all that happens before it."""
    at = _next_instant(jobs, space)
    while at < instant:
        _settle(jobs, space, at)
        at = _next_instant(jobs, space)
    _settle(jobs, space, instant)


@inlined
def put_running(jobs: Sc17Jobs, space: Sc17Space, job: int) -> None:
    """Let ``job`` start now; its processors are taken already."""
    heap, due = space.heap, space.due
    now = space.clock[0]
    jobs.start[job] = now
    end = now + jobs.run_time[job]
    due[job] = end
    if len(space.running) > 0:
        _list(space, job, now + jobs.request[job])
    at = heap[0] + 1
    heap[0] = at
    while at > 1 and due[heap[at >> 1]] > end:
        heap[at] = heap[at >> 1]
        at >>= 1
    heap[at] = job
    # A run time of 0 is over already.
    _complete(jobs, space)


@inlined
def _next_instant(jobs: Sc17Jobs, space: Sc17Space) -> float:
    arrived = space.state[ARRIVED]
    instant = jobs.submit[arrived] if arrived < len(jobs.submit) else np.inf
    if space.heap[0] > 0:
        instant = min(instant, space.due[space.heap[1]])
    return instant


@inlined
def _settle(jobs: Sc17Jobs, space: Sc17Space, instant: float) -> None:
    """Let the clock be ``instant``, and let happen what happens then."""
    state = space.state
    space.clock[0] = instant
    while state[ARRIVED] < len(jobs.submit) and jobs.submit[state[ARRIVED]] <= instant:
        state[ARRIVED] += 1
    _complete(jobs, space)


@inlined
def _complete(jobs: Sc17Jobs, space: Sc17Space) -> None:
    """Free the processors of all jobs that end now, or so soon that it counts as now."""
    heap, now = space.heap, space.clock[0]
    while heap[0] > 0 and space.due[heap[1]] - now < AT_ONCE:
        job = heap[1]
        jobs.end[job] = now
        space.state[FREE] += jobs.processors[job]
        if len(space.running) > 0:
            _unlist(space, job, jobs.start[job] + jobs.request[job])
        _drop_first(space)


@inlined
def _list(space: Sc17Space, job: int, predicted: float) -> None:
    at = space.state[RUNNING]
    space.state[RUNNING] = at + 1
    while at > 0 and space.predicted[at - 1] > predicted:
        space.predicted[at] = space.predicted[at - 1]
        space.running[at] = space.running[at - 1]
        at -= 1
    space.predicted[at] = predicted
    space.running[at] = job


@inlined
def _unlist(space: Sc17Space, job: int, predicted: float) -> None:
    low, high = 0, space.state[RUNNING] - 1
    while low < high:
        middle = (low + high) >> 1
        if space.predicted[middle] < predicted:
            low = middle + 1
        else:
            high = middle
    while space.running[low] != job:
        low += 1
    space.state[RUNNING] -= 1
    for at in range(low, space.state[RUNNING]):
        space.predicted[at] = space.predicted[at + 1]
        space.running[at] = space.running[at + 1]


@inlined
def _drop_first(space: Sc17Space) -> None:
    heap, due = space.heap, space.due
    last = heap[0]
    heap[0] = last - 1
    job = heap[last]
    end = due[job]
    at, child = 1, 2
    while child < last:
        if child + 1 < last and due[heap[child + 1]] < due[heap[child]]:
            child += 1
        if due[heap[child]] >= end:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at
    heap[at] = job
