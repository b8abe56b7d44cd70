"""A formula in the place of RLScheduler's agent: the job of the least value is chosen, of the queue or of those shown.

Equal values go by submit time, then job id. Jobs that are submitted at one instant are gone through for backfilling
in the order of the values that they had at the decision, as in the program, which sorts its one queue by the values.
Where only the jobs that are shown are seen, as its network sees them, the first shown of equal values is chosen, and
the queue stays as it is.
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
    SHOWN,
    Committed,
    Episode,
    begin,
    commit,
    one_of,
)
from policyfactory.engine.compat.rlscheduler_view import choose_shown
from policyfactory.engine.formula import evaluate

__all__ = ["play"]


@kernel
def play(
    jobs: Committed,
    episodes: Episode,
    first: Int64Array,
    machine: tuple[int, int],
    rules: tuple[bool, bool],
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
    rules : (bool, bool)
        Whether jobs may start while the chosen one is waited for; whether only the jobs shown are seen.
    codes, operands : arrays
        The program of `policyfactory.engine.formula`; not read where there are keys.
    keys : float64 array (n,)
        The value of each job of the log, if it does not change while the job waits; else empty.
    columns : float64 array (3, n)
        p, q and r of each job of the log.
    work : float64 array (6 + depth, at least the jobs of a window)
        Work space.
    """
    backfill, as_shown = rules
    for at in range(len(first)):
        episode = one_of(episodes, at)
        begin(jobs, episode, first[at], machine[0])
        over = False
        while not over:
            if as_shown:
                choose_shown(jobs, episode)
                seen, count = episode.shown, episode.state[SHOWN]
            else:
                _sort(jobs, episode)
                seen, count = episode.queue, episode.state[QUEUED]
            scores = work[0]
            if len(keys):
                for place in range(count):
                    scores[place] = keys[first[at] + seen[place]]
            else:
                _score(jobs, episode, seen[:count], machine, codes, operands, columns, work)
            if backfill and not as_shown:
                _group(jobs, episode, scores)
            job = seen[_least(scores, count)]
            place = 0
            while episode.queue[place] != job:
                place += 1
            over = commit(jobs, episode, place, backfill)


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
    seen: Int64Array,
    machine: tuple[int, int],
    codes: Int64Array,
    operands: FloatArray,
    columns: FloatArray,
    work: FloatArray,
) -> None:
    """Fill in the value of each job that is seen; NaN becomes inf (runs last)."""
    state, count = episode.state, len(seen)
    for place in range(count):
        job = state[FIRST] + seen[place]
        for column in range(3):
            work[1 + column, place] = columns[column, job]
        work[4, place] = state[NOW] - jobs.submit[job]
    nodes, processors = machine
    free = float(state[FREE] * processors // nodes)
    evaluate(codes, operands, work[1:5], count, float(processors), free, work[5:])
    for place in range(count):
        work[0, place] = np.inf if np.isnan(work[5, place]) else work[5, place]


@inlined
def _group(jobs: Committed, episode: Episode, scores: FloatArray) -> None:
    """Sort the jobs that were submitted at one instant by value."""
    first, queue = episode.state[FIRST], episode.queue
    for count in range(1, episode.state[QUEUED]):
        job, score, at = queue[count], scores[count], count
        submit = jobs.submit[first + job]
        while at > 0 and scores[at - 1] > score and jobs.submit[first + queue[at - 1]] == submit:
            queue[at], scores[at] = queue[at - 1], scores[at - 1]
            at -= 1
        queue[at], scores[at] = job, score


@inlined
def _least(scores: FloatArray, count: int) -> int:
    """Return the place of the least value, the first of equal ones."""
    best = 0
    for place in range(1, count):
        if scores[place] < scores[best]:
            best = place
    return best
