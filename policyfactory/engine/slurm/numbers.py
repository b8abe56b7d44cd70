"""The numbers, ``site_factor``, that jobs get as a run under Slurm's rules goes on, as an export gives them.

A formula with predictions is worked out when jobs are submitted, and for those that are predicted anew when priorities
are calculated; one with the wait, or with a threshold, for all waiting jobs when priorities are calculated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, joined, kernel, step
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.past import DESCRIBED, Past, note_end, note_return, note_start, take_changed
from policyfactory.engine.predicted import DUE, PERIOD, Foresight, foresee, foresee_submitted
from policyfactory.engine.slurm.jobs import SlurmJobs
from policyfactory.engine.slurm.state import AT_CALCULATION, AT_SUBMISSION, NOW, STOPPED, WAITING, RunState
from policyfactory.engine.waiting import ASKED, COLUMNS, PREDICTIONS, evaluate

# Of `Numbering.columns`.
ROWS = COLUMNS + PREDICTIONS + ASKED
_W = 3


@by_pointer
class Numbering(NamedTuple):
    """What makes numbers of n jobs, in the order of their submission.

    Parameters
    ----------
    codes : int64 array (k,)
        The formula (`policyfactory.engine.waiting.evaluate`).
    operands : float64 array (at least k,)
        Of its instructions.
    columns : float64 array (ROWS, n)
        p, q, r, a row for w, the five predictions, n, mem, g; of those that the formula does not read, anything.
    work : float64 array (ROWS + depth of the formula, n)
        Work space.
    processors : float
        Of the machine.
    low, high, largest : float
        As of `policyfactory.policy.scale.PriorityScale`.
    highest : float
        The most that a number can be: those of jobs beyond the threshold are above ``largest``.
    threshold : int
        Seconds.
    changes : bool
        Whether numbers change with the wait.
    others : float64 array (n,)
        The parts of the jobs' priorities that nothing changes, without their numbers.
    """

    codes: Int64Array
    operands: FloatArray
    columns: FloatArray
    work: FloatArray
    processors: float
    low: float
    high: float
    largest: float
    highest: float
    threshold: int
    changes: bool
    others: FloatArray


def no_numbering() -> Numbering:
    """Return what leaves the numbers of a run as they are."""
    none, rows = np.zeros(0), np.zeros((ROWS, 0))
    return Numbering(np.zeros(0, np.int64), none, rows, rows, 0.0, 0.0, 0.0, 0.0, 0.0, 0, False, none)


@joined
def renumber(jobs: SlurmJobs, run: RunState, numbering: Numbering, predictions: LivePredictions | None) -> None:
    """Give the jobs their numbers that are submitted now, or wait.

    Parameters
    ----------
    jobs : SlurmJobs
        ``fixed`` is changed.
    run : RunState
        Which stands where jobs are submitted, or priorities calculated.
    numbering : Numbering
    predictions : LivePredictions or None
        Of this run; None where nothing is predicted.
    """
    now = run.state[NOW]
    if predictions is not None:
        # Those that are not ready are predicted anew as well.
        count = _foretell(predictions, run.state[STOPPED] == AT_SUBMISSION, now)
        _number(jobs, numbering, predictions.sight.renewed, count, now)
    if run.state[STOPPED] == AT_CALCULATION and numbering.changes:
        _number(jobs, numbering, run.waiting, run.state[WAITING], now)


@step
def _number(jobs: SlurmJobs, numbering: Numbering, which: Int64Array, count: int, now: int) -> None:
    """Give the first ``count`` jobs of a list their numbers, as the formula has them now."""
    work, columns = numbering.work, numbering.columns
    for index in range(count):
        job = jobs.first[which[index]]
        for row in range(ROWS):
            work[row, index] = columns[row, job]
        work[_W, index] = float(now - jobs.submit[job])
    evaluate(numbering.codes, numbering.operands, work, count, numbering.processors, numbering.processors, work[ROWS:])
    for index in range(count):
        job, waited = which[index], now - jobs.submit[jobs.first[which[index]]]
        number = _whole(numbering, work[ROWS, index])
        if waited > numbering.threshold:
            # Overdue: above all others, in the order of submission.
            number = min(numbering.largest + waited, numbering.highest)
        while job >= 0:
            jobs.fixed[job] = numbering.others[job] + number
            job = jobs.other[job]


@inlined
def _whole(numbering: Numbering, score: float) -> float:
    """Return the number of a score, as `policyfactory.policy.scale.PriorityScale` has it."""
    if math.isnan(score):
        return 1.0
    part = (score - numbering.low) / (numbering.high - numbering.low)
    if part < 0.0:
        fraction = 0.125 / (1.0 - 6.0 * part)
    elif part > 1.0:
        fraction = 1.0 - 0.125 / (1.0 + 6.0 * (part - 1.0))
    else:
        fraction = 0.125 + 0.75 * part
    return min(max(math.floor(numbering.largest - fraction * (numbering.largest - 1.0)), 1.0), numbering.largest)


# Predictions in a run under Slurm's rules -----------------------------------------------------------------------------

# The run is followed, and its jobs are predicted as they are submitted.
#
# The run stops where jobs are submitted and where priorities are calculated (`policyfactory.engine.slurm.passes`);
# what was started, has ended or was put back meanwhile is noted then, and nothing that comes later is looked at. Of
# jobs that were started in one second the one that was submitted last counts as the last, as it does in the history of
# a site.


@by_pointer
class Followed(NamedTuple):
    """A run of n jobs, in the order of their submission, and what was noted of it.

    Parameters
    ----------
    submit : int64 array (n,)
        When each is submitted (s).
    start, end : int64 array (n,)
        Those of `policyfactory.engine.slurm.state.RunState`: -1 before a start, and again after a node has failed.
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


@by_pointer
class LivePredictions(NamedTuple):
    """What predicts the jobs of a run from what has happened in it.

    Parameters
    ----------
    followed : Followed
        Of this run.
    past : Past
    sight : Foresight
        Its predictions are rows of ``Numbering.columns``.
    """

    followed: Followed
    past: Past
    sight: Foresight


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


@kernel
def foresee_record(followed: Followed, past: Past, sight: Foresight, until: int) -> None:
    """Predict the jobs of a run that is known already, each from what had happened when it was submitted.

    Parameters
    ----------
    followed : Followed
        With all its starts and ends; `NEVER` for an end that is not known, -1 for a start.
    past : Past
    sight : Foresight
    until : int
        Seconds; jobs that are submitted from then on are left.
    """
    job = past.progress[DESCRIBED]
    while job < len(followed.submit) and followed.submit[job] < until:
        _foretell_submitted(followed, past, sight, followed.submit[job])
        job = past.progress[DESCRIBED]
    _follow(followed, past, until - 1)


@step
def _follow(followed: Followed, past: Past, until: int) -> None:
    start, end, noted = followed.start, followed.end, followed.noted
    starts = 0
    for index in range(followed.size[0]):
        job = followed.open[index]
        if noted[job] >= 0 and start[job] != noted[job]:
            note_return(past, job)
            noted[job] = -1
        if noted[job] < 0 and 0 <= start[job] <= until:
            starts = _insert(followed.news, starts, start, job)
    for index in range(starts):
        job = followed.news[index]
        noted[job] = start[job]
        note_start(past, job, end[job])
    kept = ends = 0
    for index in range(followed.size[0]):
        job = followed.open[index]
        if noted[job] >= 0 and end[job] <= until:
            ends = _insert(followed.news, ends, end, job)
        else:
            followed.open[kept] = job
            kept += 1
    followed.size[0] = kept
    for index in range(ends):
        # One that was stopped for others ends sooner than was noted at its start.
        past.end[followed.news[index]] = end[followed.news[index]]
        note_end(past, followed.news[index])


@inlined
def _insert(jobs: Int64Array, count: int, time: Int64Array, job: int) -> int:
    """Put a job into a list by its time, of one second by its number; return how many there are."""
    position = count
    while position > 0 and (time[jobs[position - 1]], jobs[position - 1]) > (time[job], job):
        jobs[position] = jobs[position - 1]
        position -= 1
    jobs[position] = job
    return count + 1


@step
def _foretell(
    predictions: LivePredictions,
    submitted: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
    now: int,
) -> int:
    """Predict jobs; list them in ``sight.renewed`` and return how many these are."""
    followed, past, sight = predictions.followed, predictions.past, predictions.sight
    if not submitted:
        return _foretell_waiting(followed, past, sight, now)
    first = past.progress[DESCRIBED]
    _foretell_submitted(followed, past, sight, now)
    for job in range(first, past.progress[DESCRIBED]):
        sight.renewed[job - first] = job
    return int(past.progress[DESCRIBED] - first)


@joined
def _foretell_submitted(followed: Followed, past: Past, sight: Foresight, now: int) -> None:
    """Predict the jobs that are submitted now, one after the other."""
    _follow(followed, past, now)
    job = past.progress[DESCRIBED]
    while job < len(followed.submit) and followed.submit[job] <= now:
        foresee_submitted(past, sight, followed.noted, job, now)
        followed.open[followed.size[0]] = job
        followed.size[0] += 1
        job += 1


@joined
def _foretell_waiting(followed: Followed, past: Past, sight: Foresight, now: int) -> int:
    """Predict anew, if it is time, the waiting jobs of users of whom a job has ended; return how many these are."""
    period = sight.renewal[PERIOD]
    if period == 0 or now < sight.renewal[DUE]:
        return 0
    sight.renewal[DUE] = (now // period + 1) * period
    _follow(followed, past, now)
    count = take_changed(past, sight.renewed)
    for index in range(count):
        foresee(past, sight, followed.noted, sight.renewed[index], now, sight.features[len(followed.submit)])
    return count
