"""What every scheduler of the online simulator shares: the jobs, the clock, starts and completions.

At one instant all completions come first, then all submissions, then one scheduling pass. Times are whole ticks, so
"at one instant" is exact. A job of no run time completes at the instant of its start and brings one more pass then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import inlined
from policyfactory.engine.running import next_end, pop_end, put_running, reserve, take_running

__all__ = [
    "EXTRA", "FREE", "NEVER", "NEXT", "NOW", "OVERDUE", "SHADOW", "SMALLEST", "STARTED", "VALID",
    "Jobs", "advance", "backfill", "complete", "may_backfill", "new_jobs", "new_state", "reserve_for", "start_job",
]  # fmt: skip

Int64Array = NDArray[np.int64]

# Later than any instant, larger than any job, longer than any threshold.
NEVER = 1 << 62

# The state of a run, an int64 array (9,): the instant; free processors; jobs started; the next job to be submitted;
# how many jobs, by submit time, have passed the threshold; a lower bound of the processors of every waiting job;
# shadow time and extra processors of the head's reservation, and whether they still hold.
NOW, FREE, STARTED, NEXT, OVERDUE, SMALLEST, SHADOW, EXTRA, VALID = range(9)


class Jobs(NamedTuple):
    """The jobs by submit time, then job id: what is given, and what becomes of them; arrays (n,), times in ticks.

    Parameters
    ----------
    submit, run_time, estimate, processors : int64 array
        The run time is what the machine executes, the estimate what the scheduler believes.
    key, backfill_key : int64 array
        `policyfactory.engine.sliding.sort_keys` of the queue's order and of that for backfilling; empty if not used.
    start : int64 array
        The start, -1 before it.
    backfilled : bool array
        Whether it was started while a job ahead of it in the queue stayed waiting.
    """

    submit: Int64Array
    run_time: Int64Array
    estimate: Int64Array
    processors: Int64Array
    key: Int64Array
    backfill_key: Int64Array
    start: Int64Array
    backfilled: NDArray[np.bool_]


def new_jobs(*columns: Int64Array, key: Int64Array | None = None, backfill_key: Int64Array | None = None) -> Jobs:
    """Return ``Jobs`` of submit, run_time, estimate, processors, none of them started yet."""
    n = len(columns[0])
    none = np.empty(0, dtype=np.int64)
    given = (*columns, none if key is None else key, none if backfill_key is None else backfill_key)
    submit, run_time, estimate, processors, first, second = map(_read_only, given)
    start, backfilled = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    return Jobs(submit, run_time, estimate, processors, first, second, start, backfilled)


def _read_only(column: Int64Array) -> Int64Array:
    # All alike: an array that can be written is another type to numba, and the kernels would be compiled once more.
    view = np.ascontiguousarray(column, dtype=np.int64).view()
    view.flags.writeable = False
    return view


def new_state(processors: int) -> Int64Array:
    """Return the state of an idle machine before the first submission."""
    state = np.zeros(9, dtype=np.int64)
    state[FREE] = processors
    state[SMALLEST] = NEVER
    return state


@inlined
def advance(jobs: Jobs, state: Int64Array, heap: Int64Array) -> None:
    """Go on to the instant at which something happens next."""
    submission = NEVER
    if state[NEXT] < len(jobs.submit):
        submission = jobs.submit[state[NEXT]]
    state[NOW] = next_end(heap, submission)


@inlined
def start_job(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, job: int) -> None:
    """Start ``job`` now; it must fit."""
    now, processors = state[NOW], jobs.processors[job]
    jobs.start[job] = now
    state[FREE] -= processors
    state[STARTED] += 1
    put_running(heap, running, now + jobs.run_time[job], job, now + jobs.estimate[job], processors)


@inlined
def complete(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array) -> bool:
    """Free the processors of every job that ends now; say whether there was one."""
    any_ended = False
    while next_end(heap, NEVER) <= state[NOW]:
        job = pop_end(heap)
        state[FREE] += jobs.processors[job]
        take_running(running, jobs.start[job] + jobs.estimate[job], jobs.processors[job])
        any_ended = True
    return any_ended


@inlined
def reserve_for(jobs: Jobs, state: Int64Array, running: Int64Array, job: int) -> None:
    """Reserve processors for ``job``, which does not fit now, at the earliest time by the running jobs' estimates."""
    shadow, extra = reserve(running, state[NOW], state[FREE], jobs.processors[job])
    state[SHADOW] = shadow
    state[EXTRA] = extra
    state[VALID] = 1


@inlined
def may_backfill(jobs: Jobs, state: Int64Array, job: int) -> bool:
    """Say whether ``job``, which fits now, leaves the reservation as it is."""
    return bool(jobs.processors[job] <= state[EXTRA] or state[NOW] + jobs.estimate[job] <= state[SHADOW])


@inlined
def backfill(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, job: int) -> None:
    """Start ``job`` behind the head."""
    if state[NOW] + jobs.estimate[job] > state[SHADOW]:
        state[EXTRA] -= jobs.processors[job]
    jobs.backfilled[job] = True
    start_job(jobs, state, heap, running, job)
