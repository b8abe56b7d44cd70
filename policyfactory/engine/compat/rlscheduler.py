"""The clock of RLScheduler (Zhang et al., SC 2020): a chosen job is committed to, and everything waits for it.

One decision picks one job. If it fits it starts, and the next decision is asked for at the same instant while the
queue is not empty. If it does not fit, time goes on event by event until it does. An event is one arrival, if its
submission is not after the earliest completion, else one completion; jobs enter the queue with these events only. An
episode ends when the last job has started. The twin in tests/naive/rlscheduler.py says the same at length;
docs/rlscheduler.md says where this differs from the paper.

Backfilling, while a job is waited for: its shadow time is computed once, when the wait begins, from the requested
ends; before each event the queue is gone through in submit order, and every job that fits and would, by its request,
end before the shadow time is started. There are no extra processors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Float32Array, Int64Array
from policyfactory.core.jit import inlined, kernel

__all__ = [
    "ASKED", "FEATURES", "FIRST", "FREE", "NEXT", "NOW", "QUEUED", "RUNNING", "SHOWN", "VIEW", "Committed", "Episode",
    "begin", "commit", "new_episodes", "one_of",
]  # fmt: skip

# Jobs that are shown, numbers that are shown of each.
VIEW, FEATURES = 128, 8

# The state of an episode, an int64 array (8,): the instant; free nodes; the next job to arrive; jobs in the queue,
# running and shown; the place of the window's first job in the log; decisions made.
NOW, FREE, NEXT, QUEUED, RUNNING, SHOWN, FIRST, ASKED = range(8)


class Committed(NamedTuple):
    """The jobs of a log, by job id; arrays (n,), times in seconds.

    Parameters
    ----------
    submit, run_time, request, nodes : int64 array
        The machine executes the run time; the scheduler believes the request.
    features : float32 array (n, 6)
        What is shown of each job besides its wait and whether it fits: requested time, processors, memory, user,
        group, executable, as shares of the log's largest.
    by_request, by_size : int64 array
        Rank of each job by (request, submit), and by (processors, submit).
    """

    submit: Int64Array
    run_time: Int64Array
    request: Int64Array
    nodes: Int64Array
    features: Float32Array
    by_request: Int64Array
    by_size: Int64Array


class Episode(NamedTuple):
    """Windows of n jobs being played, or one of them (without the first axis); jobs are numbered within the window.

    Parameters
    ----------
    state : int64 array (k, 8)
        See `NOW` and the others.
    queue, running : int64 array (k, n)
        The queue in its own order; the running jobs by end, then in the order in which they complete.
    shown : int64 array (k, 128)
        The jobs that are shown.
    by_request, by_size : int64 array (k, n)
        The window's jobs in these orders.
    start : int64 array (k, n)
        Starts, -1 before.
    backfilled : bool array (k, n)
        Which jobs were started while another was waited for.
    work : int64 array (k, n)
        Work space.
    """

    state: Int64Array
    queue: Int64Array
    running: Int64Array
    shown: Int64Array
    by_request: Int64Array
    by_size: Int64Array
    start: Int64Array
    backfilled: NDArray[np.bool_]
    work: Int64Array


def new_episodes(episodes: int, jobs: int) -> Episode:
    """Return space for ``episodes`` windows of ``jobs`` jobs each."""
    queue, running, by_request, by_size, start, work = np.zeros((6, episodes, jobs), dtype=np.int64)
    state, shown = np.zeros((episodes, 8), dtype=np.int64), np.zeros((episodes, VIEW), dtype=np.int64)
    backfilled = np.zeros((episodes, jobs), dtype=np.bool_)
    return Episode(state, queue, running, shown, by_request, by_size, start, backfilled, work)


@kernel
def one_of(episodes: Episode, at: int) -> Episode:
    """Return the episode number ``at`` of several."""
    return Episode(
        episodes.state[at],
        episodes.queue[at],
        episodes.running[at],
        episodes.shown[at],
        episodes.by_request[at],
        episodes.by_size[at],
        episodes.start[at],
        episodes.backfilled[at],
        episodes.work[at],
    )


@kernel
def begin(jobs: Committed, episode: Episode, first: int, nodes: int) -> None:
    """Let the window that begins with job ``first`` of the log start over on an empty machine of ``nodes`` nodes."""
    state, n = episode.state, len(episode.start)
    state[NOW], state[FREE], state[NEXT] = jobs.submit[first], nodes, 1
    state[QUEUED], state[RUNNING], state[SHOWN], state[FIRST], state[ASKED] = 1, 0, 0, first, 0
    episode.queue[0] = 0
    episode.start[:] = -1
    episode.backfilled[:] = False
    episode.by_request[:] = np.argsort(jobs.by_request[first : first + n])
    episode.by_size[:] = np.argsort(jobs.by_size[first : first + n])


@inlined
def commit(jobs: Committed, episode: Episode, place: int, backfill: bool) -> bool:  # noqa: FBT001 (kernels have no keyword-only arguments)
    """Start the job at ``place`` of the queue as soon as it fits; say whether the episode is over.

    Parameters
    ----------
    jobs : Committed
        The log.
    episode : Episode
        One episode.
    place : int
        In the queue.
    backfill : bool
        Whether others may start while it is waited for.
    """
    state, first = episode.state, episode.state[FIRST]
    job = episode.queue[place]
    needed = jobs.nodes[first + job]
    if needed > state[FREE]:
        shadow = _shadow_time(jobs, episode, needed) if backfill else 0
        while needed > state[FREE]:
            if backfill:
                _start_before(jobs, episode, shadow)
            _next_event(jobs, episode)
    _start(jobs, episode, job)
    _leave(episode, job)
    state[ASKED] += 1
    while state[QUEUED] == 0:
        if state[NEXT] == len(episode.start):
            return True
        _next_event(jobs, episode)
    return False


@inlined
def _next_event(jobs: Committed, episode: Episode) -> None:
    """Let one job arrive, or one complete."""
    state, first, running = episode.state, episode.state[FIRST], episode.running
    end = 0
    if state[RUNNING] > 0:
        end = episode.start[running[0]] + jobs.run_time[first + running[0]]
    arrival = state[NEXT]
    if arrival < len(episode.start) and (state[RUNNING] == 0 or jobs.submit[first + arrival] <= end):
        state[NOW] = max(state[NOW], jobs.submit[first + arrival])
        episode.queue[state[QUEUED]] = arrival
        state[QUEUED] += 1
        state[NEXT] += 1
        return
    state[NOW] = max(state[NOW], end)
    state[FREE] += jobs.nodes[first + running[0]]
    state[RUNNING] -= 1
    for at in range(state[RUNNING]):
        running[at] = running[at + 1]


@inlined
def _start(jobs: Committed, episode: Episode, job: int) -> None:
    state, first, running = episode.state, episode.state[FIRST], episode.running
    episode.start[job] = state[NOW]
    state[FREE] -= jobs.nodes[first + job]
    end = state[NOW] + jobs.run_time[first + job]
    at = state[RUNNING]
    # Behind those that end at the same time.
    while at > 0 and episode.start[running[at - 1]] + jobs.run_time[first + running[at - 1]] > end:
        running[at] = running[at - 1]
        at -= 1
    running[at] = job
    state[RUNNING] += 1


@inlined
def _leave(episode: Episode, job: int) -> None:
    """Take a job out of the queue."""
    queue, at = episode.queue, 0
    while queue[at] != job:
        at += 1
    episode.state[QUEUED] -= 1
    for place in range(at, episode.state[QUEUED]):
        queue[place] = queue[place + 1]


@inlined
def _shadow_time(jobs: Committed, episode: Episode, needed: int) -> int:
    """Return when, by the requests, enough running jobs have ended; it may lie in the past."""
    state, first, running = episode.state, episode.state[FIRST], episode.running
    by_request = episode.work
    for count in range(state[RUNNING]):
        job, at = running[count], count
        end = episode.start[job] + jobs.request[first + job]
        while at > 0:
            other = by_request[at - 1]
            if episode.start[other] + jobs.request[first + other] <= end:
                break
            by_request[at] = other
            at -= 1
        by_request[at] = job
    free, shadow = state[FREE], state[NOW]
    for at in range(state[RUNNING]):
        job = by_request[at]
        free += jobs.nodes[first + job]
        shadow = episode.start[job] + jobs.request[first + job]
        if free >= needed:
            break
    # The program sorts its one list of running jobs: of those that end together, the first by request is first now.
    for count in range(1, state[RUNNING]):
        job, at = running[count], count
        end, requested = _ends(jobs, episode, job)
        while at > 0:
            other_end, other_requested = _ends(jobs, episode, running[at - 1])
            if other_end < end or other_requested <= requested:
                break
            running[at] = running[at - 1]
            at -= 1
        running[at] = job
    return int(shadow)


@inlined
def _ends(jobs: Committed, episode: Episode, job: int) -> tuple[int, int]:
    """Return when a running job ends, and when by its request."""
    start, at = episode.start[job], episode.state[FIRST] + job
    return int(start + jobs.run_time[at]), int(start + jobs.request[at])


@inlined
def _start_before(jobs: Committed, episode: Episode, shadow: int) -> None:
    """Start all jobs, in submit order, that fit now and by their request end before the shadow time."""
    state, first, queue = episode.state, episode.state[FIRST], episode.queue
    sort_by_submit(jobs, episode)
    kept = 0
    for at in range(state[QUEUED]):
        job = queue[at]
        if state[NOW] + jobs.request[first + job] < shadow and jobs.nodes[first + job] <= state[FREE]:
            _start(jobs, episode, job)
            episode.backfilled[job] = True
        else:
            queue[kept] = job
            kept += 1
    state[QUEUED] = kept


@inlined
def sort_by_submit(jobs: Committed, episode: Episode) -> None:
    """Sort the queue by submit time; equal ones stay as they are."""
    first, queue = episode.state[FIRST], episode.queue
    for count in range(1, episode.state[QUEUED]):
        job, at = queue[count], count
        submit = jobs.submit[first + job]
        while at > 0 and jobs.submit[first + queue[at - 1]] > submit:
            queue[at] = queue[at - 1]
            at -= 1
        queue[at] = job
