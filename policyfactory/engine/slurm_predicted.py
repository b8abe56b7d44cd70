"""Predictions in a run under Slurm's rules: the run is followed, and its jobs are predicted as they are submitted.

The run stops where jobs are submitted and where priorities are calculated (`policyfactory.engine.slurm`); what was
started, has ended or was put back meanwhile is noted then, and nothing that comes later is looked at. Of jobs that were
started in one second the one that was submitted last counts as the last, as it does in the history of a site.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined, kernel, step
from policyfactory.engine.past import DESCRIBED, Past, note_end, note_return, note_start, take_changed
from policyfactory.engine.predicted import DUE, PERIOD, Foresight, foresee, foresee_submitted

__all__ = ["Followed", "follow_run", "foretell_submitted", "foretell_waiting", "new_followed"]


class Followed(NamedTuple):
    """A run of n jobs, in the order of their submission, and what was noted of it.

    Parameters
    ----------
    submit : int64 array (n,)
        When each is submitted (s).
    start, end : int64 array (n,)
        Those of `policyfactory.engine.slurm_state.Run`: -1 before a start, and again after a node has failed.
    noted : int64 array (n,)
        The starts that were noted; -1 before.
    open : int64 array (n,)
        The submitted jobs of which no end was noted.
    size : int64 array (1,)
        How many these are.
    news : int64 array (n,)
        Work space.
    """

    submit: Int64Array
    start: Int64Array
    end: Int64Array
    noted: Int64Array
    open: Int64Array
    size: Int64Array
    news: Int64Array


def new_followed(submit: Int64Array, start: Int64Array, end: Int64Array) -> Followed:
    """Return a run of which nothing was noted; parameters as of `Followed`."""
    n = len(submit)
    return Followed(
        *(submit, start, end),
        noted=np.full(n, -1, dtype=np.int64),
        open=np.zeros(n, dtype=np.int64),
        size=np.zeros(1, dtype=np.int64),
        news=np.zeros(n, dtype=np.int64),
    )


@kernel
def follow_run(followed: Followed, past: Past, until: int) -> None:
    """Note what has happened up to a second.

    Parameters
    ----------
    followed : Followed
    past : Past
    until : int
        Seconds; the run has come that far.
    """
    _follow(followed, past, until)


@step
def _follow(followed: Followed, past: Past, until: int) -> None:
    start, end, noted = followed.start, followed.end, followed.noted
    starts = 0
    for at in range(followed.size[0]):
        job = followed.open[at]
        if noted[job] >= 0 and start[job] != noted[job]:
            note_return(past, job)
            noted[job] = -1
        if noted[job] < 0 and 0 <= start[job] <= until:
            starts = _insert(followed.news, starts, start, job)
    for at in range(starts):
        job = followed.news[at]
        noted[job] = start[job]
        note_start(past, job, end[job])
    kept = ends = 0
    for at in range(followed.size[0]):
        job = followed.open[at]
        if noted[job] >= 0 and end[job] <= until:
            ends = _insert(followed.news, ends, end, job)
        else:
            followed.open[kept] = job
            kept += 1
    followed.size[0] = kept
    for at in range(ends):
        note_end(past, followed.news[at])


@inlined
def _insert(jobs: Int64Array, count: int, time: Int64Array, job: int) -> int:
    """Put a job into a list by its time, of one second by its number; return how many there are."""
    at = count
    while at > 0 and (time[jobs[at - 1]], jobs[at - 1]) > (time[job], job):
        jobs[at] = jobs[at - 1]
        at -= 1
    jobs[at] = job
    return count + 1


@step
def foretell_submitted(followed: Followed, past: Past, sight: Foresight, now: int) -> None:
    """Predict the jobs that are submitted now, one after the other.

    Parameters
    ----------
    followed : Followed
    past : Past
    sight : Foresight
        ``features`` and ``predictions`` are filled in.
    now : int
        Seconds.
    """
    _follow(followed, past, now)
    job = past.place[DESCRIBED]
    while job < len(followed.submit) and followed.submit[job] <= now:
        foresee_submitted(past, sight, followed.noted, job, now)
        followed.open[followed.size[0]] = job
        followed.size[0] += 1
        job += 1


@step
def foretell_waiting(followed: Followed, past: Past, sight: Foresight, now: int) -> int:
    """Predict anew, if it is time, the waiting jobs of users of whom a job has ended; return how many these are.

    Parameters
    ----------
    followed : Followed
    past : Past
    sight : Foresight
        ``renewed`` and ``predictions`` are filled in.
    now : int
        Seconds.
    """
    period = sight.renewal[PERIOD]
    if period == 0 or now < sight.renewal[DUE]:
        return 0
    sight.renewal[DUE] = (now // period + 1) * period
    _follow(followed, past, now)
    count = take_changed(past, sight.renewed)
    for at in range(count):
        foresee(past, sight, followed.noted, sight.renewed[at], now, sight.features[len(followed.submit)])
    return count
