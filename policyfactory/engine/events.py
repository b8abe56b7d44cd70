"""What every scheduler of the online simulator shares: the jobs, the clock, starts and completions.

At one instant all completions come first, then all submissions, then one scheduling pass. Times are whole ticks, so
"at one instant" is exact. A job of no run time completes at the instant of its start and brings one more pass then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined
from policyfactory.engine.ocst import put_listed, reserve_listed, tagged
from policyfactory.engine.running import next_end, pop_end, push_end, put_running, reserve, take_running

__all__ = [
    "EXTRA", "FREE", "NEVER", "NEXT", "NOW", "ONCE", "OVERDUE", "SHADOW", "SMALLEST", "STARTED", "UNTIL", "VALID",
    "Jobs", "Order", "advance", "backfill", "complete", "is_listed", "may_backfill", "new_jobs", "new_state",
    "reserve_for", "start_job",
]  # fmt: skip


# Later than any instant, larger than any job, longer than any threshold.
NEVER = 1 << 62

# The state of a run, an int64 array (11,): the instant; free processors; jobs started; the next job to be submitted;
# how many jobs, by submit time, have passed the threshold; a lower bound of the processors of every waiting job;
# shadow time and extra processors of the head's reservation, and whether they still hold (1; ONCE: for this pass
# only, and the next must be made in full); the instant before which the run stops; how many jobs were started before
# this pass.
NOW, FREE, STARTED, NEXT, OVERDUE, SMALLEST, SHADOW, EXTRA, VALID, UNTIL, PASS = range(11)
ONCE = 2


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
    sequence : int64 array
        How many were started before it. Empty but where the rules of `policyfactory.engine.ocst` are in force.
    started : int64 array
        The jobs in the order of their starts, as far as the run has come. Empty where nobody asks.
    """

    submit: Int64Array
    run_time: Int64Array
    estimate: Int64Array
    processors: Int64Array
    key: Int64Array
    backfill_key: Int64Array
    start: Int64Array
    backfilled: NDArray[np.bool_]
    sequence: Int64Array
    started: Int64Array


class Order(NamedTuple):
    """What decides between jobs besides their keys, or scores.

    Parameters
    ----------
    threshold : int
        Ticks; a job that has waited longer goes before all that have not, in submit order.
    last_first : bool
        Equal keys: the last submitted first.
    backfill : bool
        False: strict order.
    own_order : bool
        Candidates for backfilling are tried by a key or formula of their own, not in the queue's order.
    same_formula : bool
        That formula is the queue's: jobs that have waited longer than the threshold are not tried first. Read where
        scores change with time.
    ticks : int
        Ticks in a second; read there too.
    """

    threshold: int
    last_first: bool
    backfill: bool
    own_order: bool
    same_formula: bool = False
    ticks: int = 1


def new_jobs(
    *columns: Int64Array,
    key: Int64Array | None = None,
    backfill_key: Int64Array | None = None,
    listed: bool = False,
    noted: bool = False,
) -> Jobs:
    """Return ``Jobs`` of submit, run_time, estimate, processors, none of them started yet.

    ``listed``: with the rules of `policyfactory.engine.ocst`; ``noted``: the order of the starts is written down.
    """
    n = len(columns[0])
    none = np.empty(0, dtype=np.int64)
    given = (*columns, none if key is None else key, none if backfill_key is None else backfill_key)
    submit, run_time, estimate, processors, first, second = map(_read_only, given)
    start, backfilled = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    sequence = np.zeros(n if listed else 0, dtype=np.int64)
    started = np.zeros(n if noted else 0, dtype=np.int64)
    return Jobs(submit, run_time, estimate, processors, first, second, start, backfilled, sequence, started)


def _read_only(column: Int64Array) -> Int64Array:
    # All alike: an array that can be written is another type to numba, and the kernels would be compiled once more.
    view = np.ascontiguousarray(column, dtype=np.int64).view()
    view.flags.writeable = False
    return view


def new_state(processors: int) -> Int64Array:
    """Return the state of an idle machine before the first submission."""
    state = np.zeros(PASS + 1, dtype=np.int64)
    state[FREE] = processors
    state[SMALLEST] = state[UNTIL] = NEVER
    return state


@inlined
def is_listed(jobs: Jobs) -> bool:
    """Say whether the rules of `policyfactory.engine.ocst` are in force."""
    return len(jobs.sequence) > 0


@inlined
def advance(jobs: Jobs, state: Int64Array, heap: Int64Array) -> bool:
    """Go on to the instant at which something happens next, unless that is not before ``UNTIL``; say whether it is."""
    submission = NEVER
    if state[NEXT] < len(jobs.submit):
        submission = jobs.submit[state[NEXT]]
    instant = next_end(heap, submission)
    if instant >= state[UNTIL]:
        return False
    state[NOW] = instant
    state[PASS] = state[STARTED]
    return True


@inlined
def start_job(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array, job: int) -> None:
    """Start ``job`` now; it must fit."""
    now, processors = state[NOW], jobs.processors[job]
    jobs.start[job] = now
    state[FREE] -= processors
    if is_listed(jobs):
        jobs.sequence[job] = state[STARTED]
        push_end(heap, now + jobs.run_time[job], job)
        put_listed(running, jobs.sequence, jobs.backfilled, state[PASS], job, now + jobs.estimate[job], processors)
    else:
        put_running(heap, running, now + jobs.run_time[job], job, now + jobs.estimate[job], processors)
    if len(jobs.started) > 0:
        jobs.started[state[STARTED]] = job
    state[STARTED] += 1


@inlined
def complete(jobs: Jobs, state: Int64Array, heap: Int64Array, running: Int64Array) -> bool:
    """Free the processors of every job that ends now; say whether there was one."""
    any_ended = False
    while next_end(heap, NEVER) <= state[NOW]:
        job = pop_end(heap)
        processors = jobs.processors[job]
        state[FREE] += processors
        if is_listed(jobs):
            processors = tagged(processors, job)
        take_running(running, jobs.start[job] + jobs.estimate[job], processors)
        any_ended = True
    return any_ended


@inlined
def reserve_for(jobs: Jobs, state: Int64Array, running: Int64Array, job: int) -> None:
    """Reserve processors for ``job``, which does not fit now, at the earliest time by the running jobs' estimates."""
    if is_listed(jobs):
        shadow, extra, once = reserve_listed(running, jobs.sequence, state[PASS], state[FREE], jobs.processors[job])
        state[VALID] = ONCE if once else 1
    else:
        shadow, extra = reserve(running, state[NOW], state[FREE], jobs.processors[job])
        state[VALID] = 1
    state[SHADOW] = shadow
    state[EXTRA] = extra


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
