"""Conservative backfilling: a reservation for every queued job, planned anew at each pass.

The principle is that of Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime estimates
in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001: a job may move ahead only if no job before it in
the queue has to wait longer for it. Here the queue is in the policy's order, and all reservations are made again at
each pass, in that order, each at the earliest time at which the job fits for its whole estimate beside the running
jobs and the reservations before it. The jobs whose reservation begins now are started.

Differs from: the paper keeps first come, first served, and lets a reservation only move ahead when a job ends early,
so none is ever later than what was promised at submission. Where the order changes as jobs come that promise
cannot be kept. Under first come, first served with exact estimates the two are the same.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.jit import inlined, joined, kernel
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import (
    BOUNDS,
    FREE,
    HIGH,
    LOW,
    NOW,
    OVERDUE,
    PREDICTED,
    SMALLEST,
    STARTED,
    WIDTH,
    Jobs,
    Order,
    advance,
    complete,
    start_queued,
)
from policyfactory.engine.waiting import (
    Formula,
    Space,
    close_gaps,
    count_overdue,
    new_space,
    score_waiting,
    submit_all,
)

# Rows of the profile: from ``TIME[i]`` to ``TIME[i + 1]``, or for ever, ``LEFT[i]`` processors are free.
TIME, LEFT = 0, 1


def conservative(jobs: Jobs, formula: Formula, order: Order, processors: int) -> None:
    """Fill in the start of each job, and whether it was started ahead of one that stayed waiting.

    Parameters
    ----------
    jobs : Jobs
        Without keys; ``start`` and ``backfilled`` are filled in.
    formula : Formula
        The order of the queue.
    order : Order
        The rest of the order; what is said of backfilling in it is not read.
    processors : int
        Processors of the machine, at least those of any job.
    """
    n = len(jobs.submit)
    space, profile = new_space(n, processors, formula.depth), new_profile(n, processors)
    conservative_until(jobs, space, profile, formula, order, processors)


def new_profile(jobs: int, processors: int) -> Int64Array:
    """Return the work space for the free processors over time."""
    # The step that begins now, and one for the end of each running or planned job.
    return np.empty((2, jobs + min(jobs, processors) + 2), dtype=np.int64)


@kernel
def conservative_until(
    jobs: Jobs, space: Space, profile: Int64Array, formula: Formula, order: Order, processors: int
) -> None:
    """Go on with a run until all jobs are started, or up to the last instant before ``state[UNTIL]``.

    Parameters
    ----------
    jobs : Jobs
        Without keys; ``start`` and ``backfilled`` are filled in.
    space : Space
        Where the run stands.
    profile : int64 array
        Of `new_profile`.
    formula, order, processors
        As for `conservative`.
    """
    state, heap, running, waiting = space.state, space.heap, space.running, space.waiting
    scores = space.scores[0]
    while state[STARTED] < len(jobs.submit) and advance(jobs, state, heap):
        complete(jobs, state, heap, running)
        submit_all(jobs, state, waiting)
        if state[FREE] < state[SMALLEST]:
            continue
        score_waiting(jobs, state, waiting, formula, (order.ticks, processors), space.work, scores)
        count_overdue(jobs, state, waiting, order.threshold)
        queue = queue_of(waiting, scores, state[OVERDUE], order)
        _plan(jobs, state, heap, running, queue, smallest_behind(jobs, queue), profile)
        close_gaps(jobs, state, waiting)


@kernel
def queue_of(waiting: Int64Array, scores: FloatArray, overdue: int, order: Order) -> Int64Array:
    """Return the waiting jobs in the order of the queue.

    Parameters
    ----------
    waiting : int64 array (n + 1,)
        How many there are, and these in the order of their arrival.
    scores : float64 array (n + 1,)
        Of each of them, behind one place that is not used; a lower one goes first.
    overdue : int
        How many of them go before all others, in the order of their arrival.
    order : Order
        Whether of equal scores the last one goes first.
    """
    count = waiting[0]
    queue, rest = np.empty(count, dtype=np.int64), np.empty(count - overdue)
    for position in range(overdue):
        queue[position] = waiting[position + 1]
    for position in range(len(rest)):
        rest[position] = scores[count - position if order.last_first else overdue + 1 + position]
    for position, first in enumerate(np.argsort(rest, kind="mergesort")):
        queue[overdue + position] = waiting[count - first if order.last_first else overdue + 1 + first]
    return queue


@kernel
def smallest_behind(jobs: Jobs, queue: Int64Array) -> Int64Array:
    """Return, place by place, the processors of the smallest job from there to the end of the queue.

    Parameters
    ----------
    jobs : Jobs
    queue : int64 array (n,)
        Numbers of jobs.
    """
    smallest = np.empty(len(queue), dtype=np.int64)
    width = jobs.processors
    least = width[queue[-1]]
    for position in range(len(queue) - 1, -1, -1):
        least = min(least, width[queue[position]])
        smallest[position] = least
    return smallest


@joined
def _plan(
    jobs: Jobs,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    queue: Int64Array,
    smallest: Int64Array,
    profile: Int64Array,
) -> None:
    """Make the reservations in order and start the jobs whose reservation begins now."""
    steps = _profile_of_running(state, running, profile)
    stayed = False
    for position in range(len(queue)):
        if profile[LEFT, 0] < smallest[position]:
            # Whatever is reserved from here on, nothing more can start now.
            return
        job = queue[position]
        # A job that is believed to take no time needs its processors at one instant all the same.
        length = max(jobs.estimate[job], 1)
        first, last = _earliest(profile, steps, jobs.processors[job], length)
        begin = profile[TIME, first]
        steps = _reserve(profile, steps, first, last, begin + length, jobs.processors[job])
        if begin > state[NOW]:
            stayed = True
            continue
        start_queued(jobs, state, heap, running, job)
        jobs.backfilled[job] = stayed


@joined
def _profile_of_running(state: Int64Array, running: Int64Array, profile: Int64Array) -> int:
    """Fill in the free processors by the estimates of the running jobs; return the number of steps.

    A job that has outlived its estimate counts as ending at the next tick: at this one it holds its processors.
    """
    profile[TIME, 0] = state[NOW]
    profile[LEFT, 0] = state[FREE]
    last = 0
    for column in range(running[BOUNDS, LOW], running[BOUNDS, HIGH]):
        end = max(running[PREDICTED, column], state[NOW] + 1)
        if end > profile[TIME, last]:
            last += 1
            profile[TIME, last] = end
            profile[LEFT, last] = profile[LEFT, last - 1]
        profile[LEFT, last] += running[WIDTH, column]
    return last + 1


@inlined
def _earliest(profile: Int64Array, steps: int, processors: int, length: int) -> tuple[int, int]:
    """Return the first and the last step of the earliest place for a job."""
    first = 0
    last = 0
    while True:
        if profile[LEFT, last] < processors:
            first = last + 1
        elif last + 1 == steps or profile[TIME, last + 1] >= profile[TIME, first] + length:
            return first, last
        last += 1


@inlined
def _reserve(profile: Int64Array, steps: int, first: int, last: int, end: int, processors: int) -> int:
    """Take processors from step ``first`` to time ``end``, which lies in step ``last``; return the number of steps."""
    if last + 1 == steps or profile[TIME, last + 1] > end:
        for row in range(2):
            for step in range(steps, last + 1, -1):
                profile[row, step] = profile[row, step - 1]
        profile[TIME, last + 1] = end
        profile[LEFT, last + 1] = profile[LEFT, last]
        steps += 1
    for step in range(first, last + 1):
        profile[LEFT, step] -= processors
    return steps
