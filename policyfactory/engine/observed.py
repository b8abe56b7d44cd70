"""Where episodes stand, and what is seen of them.

An episode is a run of which somebody else decides job by job (`policyfactory.engine.episodes`). Many of them stand
side by side in arrays with one more axis. What is shown of the jobs is that of the beginning of a pass; within the pass
only the mask and the machine's row change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined
from policyfactory.engine.events import EXTRA, FREE, NOW, PASS, SHADOW, Jobs, may_backfill
from policyfactory.engine.running import PREDICTED, WIDTH
from policyfactory.engine.sliding import BOUNDS, HIGH, LOW

__all__ = [
    "BACKFILL", "BSLD", "COUNT", "FACTS", "FEATURES", "FREE_THEN", "FRESH", "HEAD", "HELD", "JOB", "MACHINE", "NO_COST",
    "OVER", "PASSED", "PHASE", "REPORTED", "RUNNING", "SETTLED", "SHOWN", "SINCE", "SLOWDOWN", "TOTAL", "TURNAROUND",
    "WAIT", "Batch", "Episode", "Log", "Setting", "View", "new_batch", "new_view", "show",
]  # fmt: skip

# Behind the entries of `policyfactory.engine.events` in the state: what is asked for; how many jobs there are, how many
# of them ran at the beginning; how many slots show a job; whether they show this pass; how many processors were free
# when it began.
PHASE, COUNT, HELD, SHOWN, FRESH, FREE_THEN = range(PASS + 1, PASS + 7)
HEAD, BACKFILL, PASSED, OVER = range(4)
# What accrues while a job waits.
NO_COST, WAIT, TURNAROUND, BSLD, SLOWDOWN = range(5)
# Columns: what a log has of a job; what is shown of a waiting job, of the machine, of a running job.
FACTS, FEATURES, MACHINE, RUNNING = 3, 6, 6, 3
# Columns of the costs.
SINCE, TOTAL, SETTLED, REPORTED = range(4)
# Row of the table of running jobs, below the predicted end and the processors.
JOB = 3


class Log(NamedTuple):
    """The jobs that episodes are cut from, by submit time, then job id.

    Parameters
    ----------
    submit, run_time, estimate, processors : int64 array (n,), ticks, processors
        As in `policyfactory.engine.events.Jobs`.
    facts : float32 array (n, 3)
        What is shown of a job and does not change: columns 1 to 3 of what is shown.
    """

    submit: Int64Array
    run_time: Int64Array
    estimate: Int64Array
    processors: Int64Array
    facts: NDArray[np.float32]


class Setting(NamedTuple):
    """What holds for all episodes.

    Parameters
    ----------
    machine : int
        Processors.
    ticks : int
        Ticks in a second.
    backfill : bool
        False: strict order; a head that does not fit ends the pass.
    cost : int
        What accrues: ``NO_COST``, ``WAIT``, ``TURNAROUND``, ``BSLD`` or ``SLOWDOWN``.
    """

    machine: int
    ticks: int
    backfill: bool
    cost: int


class Batch(NamedTuple):
    """Where b episodes of at most n jobs stand; arrays (b, ...), of jobs (b, n)."""

    submit: Int64Array
    run_time: Int64Array
    estimate: Int64Array
    processors: Int64Array
    facts: NDArray[np.float32]
    start: Int64Array
    backfilled: NDArray[np.bool_]
    state: Int64Array
    heap: Int64Array
    running: Int64Array
    waiting: Int64Array
    none: Int64Array


class View(NamedTuple):
    """What is seen of b episodes.

    Parameters
    ----------
    jobs : float32 array (b, slots, 6)
        Waiting jobs in submit order: log10(w + 10) - 1, the three facts, whether it fits, free share; then zeros.
    machine : float32 array (b, 6)
        Free share now; log10(1 + waiting jobs); log10(1 + running jobs); 1 behind a head with a reservation, and then
        the share of extra processors and log10(seconds to the shadow time + 10) - 1.
    running : float32 array (b, rows, 3)
        Running jobs by predicted end: log10(seconds to it + 10) - 1, log10(seconds run + 10) - 1, share; then zeros.
    mask : bool array (b, slots)
        Which can be chosen.
    cost : float64 array (b, 4)
        What has accrued, summed over the jobs: since the last decision (the first: since the beginning); in all; by
        the jobs that were started; and what was in all at the last decision.
    done : bool array (b,)
        Whether the episode is over.
    replaced : bool array (b,)
        Whether the last choice was masked, and the first that can be chosen was taken.
    """

    jobs: NDArray[np.float32]
    machine: NDArray[np.float32]
    running: NDArray[np.float32]
    mask: NDArray[np.bool_]
    cost: FloatArray
    done: NDArray[np.bool_]
    replaced: NDArray[np.bool_]


class Episode(NamedTuple):
    """Where one stands, and what is seen of it: rows of a batch and a view.

    Made once a step and handed on to inlined functions: a call would pass, and count, every array.
    """

    jobs: Jobs
    facts: NDArray[np.float32]
    state: Int64Array
    heap: Int64Array
    running: Int64Array
    waiting: Int64Array
    shown: NDArray[np.float32]
    machine: NDArray[np.float32]
    rows: NDArray[np.float32]
    mask: NDArray[np.bool_]
    cost: FloatArray


def new_batch(episodes: int, jobs: int, machine: int) -> Batch:
    """Return the space for episodes of at most ``jobs`` jobs each, those that run at the beginning included."""
    rows, of_jobs = min(jobs, machine), (episodes, jobs)
    return Batch(
        submit=np.zeros(of_jobs, dtype=np.int64),
        run_time=np.zeros(of_jobs, dtype=np.int64),
        estimate=np.zeros(of_jobs, dtype=np.int64),
        processors=np.zeros(of_jobs, dtype=np.int64),
        facts=np.zeros((*of_jobs, FACTS), dtype=np.float32),
        start=np.zeros(of_jobs, dtype=np.int64),
        backfilled=np.zeros(of_jobs, dtype=np.bool_),
        state=np.zeros((episodes, FREE_THEN + 1), dtype=np.int64),
        heap=np.zeros((episodes, 2, rows + 1), dtype=np.int64),
        # As new_table of `policyfactory.engine.sliding` makes one.
        running=np.zeros((episodes, JOB + 1, 2 * rows + 64), dtype=np.int64),
        waiting=np.zeros((episodes, jobs + 1), dtype=np.int64),
        none=np.empty(0, dtype=np.int64),
    )


def new_view(episodes: int, slots: int, rows: int) -> View:
    """Return the space for what is seen of episodes: ``slots`` waiting and ``rows`` running jobs."""
    return View(
        jobs=np.zeros((episodes, slots, FEATURES), dtype=np.float32),
        machine=np.zeros((episodes, MACHINE), dtype=np.float32),
        running=np.zeros((episodes, rows, RUNNING), dtype=np.float32),
        mask=np.zeros((episodes, slots), dtype=np.bool_),
        cost=np.zeros((episodes, REPORTED + 1)),
        done=np.zeros(episodes, dtype=np.bool_),
        replaced=np.zeros(episodes, dtype=np.bool_),
    )


@inlined
def _log(passed: int, setting: Setting) -> float:
    return math.log10(passed / setting.ticks + 10.0) - 1.0


@inlined
def show(one: Episode, setting: Setting) -> None:
    """Fill in what is seen: the mask and the machine's row, and at the beginning of a pass the jobs."""
    jobs, state, waiting, mask, row = one.jobs, one.state, one.waiting, one.mask, one.machine
    if state[FRESH] == 0:
        _show_jobs(one, setting)
        state[FRESH] = 1
    backfills, left = state[PHASE] == BACKFILL, 0
    for at in range(waiting[0]):
        job = waiting[at + 1]
        waits = jobs.start[job] < 0
        left += waits
        mask[at] = waits and (not backfills or (jobs.processors[job] <= state[FREE] and may_backfill(jobs, state, job)))
    row[0] = state[FREE] / setting.machine
    row[1] = math.log10(1.0 + left)
    row[2] = math.log10(1.0 + one.heap[0, 0])
    row[3] = 1.0 if backfills else 0.0
    row[4] = state[EXTRA] / setting.machine if backfills else 0.0
    row[5] = _log(state[SHADOW] - state[NOW], setting) if backfills else 0.0


@inlined
def _show_jobs(one: Episode, setting: Setting) -> None:
    """Fill in the waiting jobs and those that run."""
    jobs, state, waiting, running, shown, rows = one.jobs, one.state, one.waiting, one.running, one.shown, one.rows
    free, count, now = state[FREE], waiting[0], state[NOW]
    for at in range(count):
        job = waiting[at + 1]
        shown[at, 0] = _log(now - jobs.submit[job], setting)
        for column in range(FACTS):
            shown[at, column + 1] = one.facts[job, column]
        shown[at, 4] = 1.0 if jobs.processors[job] <= free else 0.0
        shown[at, 5] = free / setting.machine
    for at in range(count, state[SHOWN]):
        one.mask[at] = False
        for column in range(FEATURES):
            shown[at, column] = 0.0
    state[SHOWN], state[FREE_THEN] = count, free
    low = running[BOUNDS, LOW]
    for row in range(len(rows)):
        at = low + row
        if at < running[BOUNDS, HIGH]:
            rows[row, 0] = _log(max(running[PREDICTED, at] - now, 0), setting)
            rows[row, 1] = _log(now - jobs.start[running[JOB, at]], setting)
            rows[row, 2] = running[WIDTH, at] / setting.machine
        else:
            for column in range(RUNNING):
                rows[row, column] = 0.0
