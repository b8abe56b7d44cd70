"""What RLScheduler shows of the queue: 128 jobs at most, eight numbers each; and a step of many episodes at once.

Up to 128 waiting jobs are shown in submit order. Of more, the jobs of the least request and of the fewest processors
are shown in turn until there are 128, and the queue stays in the order of processors, which later ties of submit time
show. A place without a job is 0, six times 1, and 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Float32Array, Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.compat.rlscheduler import (
    FEATURES,
    FIRST,
    FREE,
    NEXT,
    NOW,
    QUEUED,
    SHOWN,
    VIEW,
    Committed,
    Episode,
    begin,
    commit,
    one_of,
    sort_by_submit,
)

__all__ = ["LONGEST_WAIT", "NEARLY_ONE", "choose_shown", "reset_all", "show", "step_all"]

# Waits are shown as shares of twelve hours, and no share is more than this.
LONGEST_WAIT, NEARLY_ONE = 43200.0, 1.0 - 1e-5


@kernel
def reset_all(
    jobs: Committed,
    episodes: Episode,
    which: NDArray[np.bool_],
    first: Int64Array,
    nodes: int,
    observation: Float32Array,
) -> None:
    """Let episodes begin, and show their queues.

    Parameters
    ----------
    jobs : Committed
        The log.
    episodes : Episode
        Where k windows are played.
    which : bool array (k,)
        Which of them begin.
    first : int64 array (k,)
        The first job of each window.
    nodes : int
        Nodes of the machine.
    observation : float32 array (k, 128, 8)
        What is shown.
    """
    for at in range(len(first)):
        if which[at]:
            episode = one_of(episodes, at)
            begin(jobs, episode, first[at], nodes)
            show(jobs, episode, observation[at])


@kernel
def step_all(
    jobs: Committed,
    episodes: Episode,
    action: Int64Array,
    backfill: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
    observation: Float32Array,
    over: NDArray[np.bool_],
) -> None:
    """Make one decision in each episode that is not over, and show the queue after it.

    Parameters
    ----------
    jobs : Committed
        The log.
    episodes : Episode
        Where k windows are played.
    action : int64 array (k,)
        The place of the chosen job among those shown.
    backfill : bool
        Whether jobs may start while the chosen one is waited for.
    observation : float32 array (k, 128, 8)
        What is shown afterwards; all 0 in an episode that is over.
    over : bool array (k,)
        Which episodes are over.
    """
    for at in range(len(action)):
        if over[at]:
            continue
        episode = one_of(episodes, at)
        job, place = episode.shown[action[at]], 0
        while episode.queue[place] != job:
            place += 1
        over[at] = commit(jobs, episode, place, backfill)
        if over[at]:
            episode.state[SHOWN] = 0
            observation[at] = 0.0
        else:
            show(jobs, episode, observation[at])


@kernel
def show(jobs: Committed, episode: Episode, observation: Float32Array) -> None:
    """Fill in the jobs that are shown, and what is shown of them: float32 array (128, 8)."""
    choose_shown(jobs, episode)
    state, first = episode.state, episode.state[FIRST]
    for place in range(state[SHOWN]):
        job = first + episode.shown[place]
        row = observation[place]
        row[0] = min((state[NOW] - jobs.submit[job]) / LONGEST_WAIT, NEARLY_ONE)
        for at in range(FEATURES - 2):
            row[1 + at] = jobs.features[job, at]
        row[FEATURES - 1] = NEARLY_ONE if jobs.nodes[job] <= state[FREE] else 1e-5
    for place in range(state[SHOWN], VIEW):
        row = observation[place]
        row[0] = row[FEATURES - 1] = 0.0
        for at in range(1, FEATURES - 1):
            row[at] = 1.0


@inlined
def choose_shown(jobs: Committed, episode: Episode) -> None:
    """Fill in the jobs that are shown."""
    state, queue, shown = episode.state, episode.queue, episode.shown
    if state[QUEUED] <= VIEW:
        sort_by_submit(jobs, episode)
        state[SHOWN] = state[QUEUED]
        for at in range(state[SHOWN]):
            shown[at] = queue[at]
        return
    waiting = 0
    for job in episode.by_size:
        if job < state[NEXT] and episode.start[job] < 0:
            queue[waiting] = job
            waiting += 1
    taken = episode.work
    taken[:] = 0
    count, short, small = 0, -1, 0
    while count < VIEW:
        short = _next_waiting(episode, short)
        count = _take(episode.by_request[short], taken, shown, count)
        count = _take(queue[small], taken, shown, count)
        small += 1
    state[SHOWN] = VIEW


@inlined
def _next_waiting(episode: Episode, at: int) -> int:
    """Return the next place behind ``at`` in the order of requests whose job waits."""
    at += 1
    job = episode.by_request[at]
    while job >= episode.state[NEXT] or episode.start[job] >= 0:
        at += 1
        job = episode.by_request[at]
    return at


@inlined
def _take(job: int, taken: Int64Array, shown: Int64Array, count: int) -> int:
    """Show a job that is not shown yet, while there is room; return how many are shown."""
    if taken[job] == 1 or count == VIEW:
        return count
    taken[job] = 1
    shown[count] = job
    return count + 1
