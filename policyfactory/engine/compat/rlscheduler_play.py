"""A formula in the place of RLScheduler's agent: it sees the whole queue, and the job of the least value is chosen.

Equal values go by submit time, then job id. Jobs that are submitted at one instant are gone through for backfilling
in the order of the values that they had at the decision, as in the program, which sorts its one queue by the values.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.compat.rlscheduler import (
    FIRST,
    FREE,
    NOW,
    QUEUED,
    Committed,
    Episode,
    begin,
    commit,
    one_of,
)
from policyfactory.engine.formula import evaluate

__all__ = ["play"]


@kernel
def play(
    jobs: Committed,
    episodes: Episode,
    first: Int64Array,
    machine: tuple[int, int],
    backfill: bool,  # noqa: FBT001
    codes: Int64Array,
    operands: FloatArray,
    keys: FloatArray,
    columns: FloatArray,
    work: FloatArray,
) -> None:
    """Play windows by a formula.

    Parameters
    ----------
    jobs : Committed
        The log.
    episodes : Episode
        Space for k windows; `Episode.start` has the starts afterwards.
    first : int64 array (k,)
        The first job of each window.
    machine : (int, int)
        Nodes and processors of the machine.
    backfill : bool
        Whether jobs may start while the chosen one is waited for.
    codes, operands : arrays
        The program of `policyfactory.engine.formula`; not read where there are keys.
    keys : float64 array (n,)
        The value of each job of the log, if it does not change while the job waits; else empty.
    columns : float64 array (3, n)
        p, q and r of each job of the log.
    work : float64 array (6 + depth, at least the jobs of a window)
        Work space.
    """
    for at in range(len(first)):
        episode = one_of(episodes, at)
        begin(jobs, episode, first[at], machine[0])
        over = False
        while not over:
            _sort(jobs, episode)
            scores = work[0]
            if len(keys):
                for place in range(episode.state[QUEUED]):
                    scores[place] = keys[first[at] + episode.queue[place]]
            else:
                _score(jobs, episode, machine, codes, operands, columns, work)
            over = commit(jobs, episode, _least(jobs, episode, scores, backfill), backfill)


@inlined
def _sort(jobs: Committed, episode: Episode) -> None:
    """Sort the queue by submit time, then by number."""
    first, queue = episode.state[FIRST], episode.queue
    for count in range(1, episode.state[QUEUED]):
        job, at = queue[count], count
        submit = jobs.submit[first + job]
        while at > 0:
            before = jobs.submit[first + queue[at - 1]]
            if before < submit or (before == submit and queue[at - 1] < job):
                break
            queue[at] = queue[at - 1]
            at -= 1
        queue[at] = job


@kernel
def _score(
    jobs: Committed,
    episode: Episode,
    machine: tuple[int, int],
    codes: Int64Array,
    operands: FloatArray,
    columns: FloatArray,
    work: FloatArray,
) -> None:
    """Fill in the value of each job of the queue; NaN becomes inf (runs last)."""
    state, count = episode.state, episode.state[QUEUED]
    for place in range(count):
        job = state[FIRST] + episode.queue[place]
        for column in range(3):
            work[1 + column, place] = columns[column, job]
        work[4, place] = state[NOW] - jobs.submit[job]
    nodes, processors = machine
    free = float(state[FREE] * processors // nodes)
    p, q, r, w = work[1, :count], work[2, :count], work[3, :count], work[4, :count]
    evaluate(codes, operands, p, q, r, w, float(processors), free, work[5:])
    for place in range(count):
        work[0, place] = np.inf if np.isnan(work[5, place]) else work[5, place]


@inlined
def _least(jobs: Committed, episode: Episode, scores: FloatArray, backfill: bool) -> int:  # noqa: FBT001
    """Return the place of the job of the least value; for backfilling, sort those of one instant by value."""
    first, queue = episode.state[FIRST], episode.queue
    best = 0
    for count in range(1, episode.state[QUEUED]):
        at = count
        if backfill:
            job, score = queue[count], scores[count]
            submit = jobs.submit[first + job]
            while at > 0 and scores[at - 1] > score and jobs.submit[first + queue[at - 1]] == submit:
                queue[at], scores[at] = queue[at - 1], scores[at - 1]
                at -= 1
            queue[at], scores[at] = job, score
    for place in range(1, episode.state[QUEUED]):
        if scores[place] < scores[best]:
            best = place
    return best
