"""Trials: average bounded slowdown of a queue that is started in a given order after a given state.

The rule (docs/scores.md; Carastan-Santos and de Camargo, SC 2017, section 3.2): a job starts at the earliest
time that is not before the previous start, not before its own submission, and at which its processors are free;
strict order, no backfilling. So the machine needs no event queue, only the jobs that still run, latest end first,
with the processors that are in use until each of these ends: ``held[k]`` is the sum over the jobs that end at
``ends[k]`` or later. A job of q processors on a machine of m can start at the latest ``ends[k]`` with
``held[k] > m - q``, or before that if there is none.

Sixteen trials run side by side (``engine.lanes``), without a branch that depends on their values: a started job is
merged into the list in one pass, which also finds the start of the next one. Jobs that have ended stay in the
list as long as another lane needs the row; they change nothing, because their end is not after the clock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel
from policyfactory.engine.lanes import LANES, Lanes, any_lane, as_float, fill, larger, load, smaller, store, where

__all__ = ["Problem", "front_values", "occupy", "order_values", "pose"]

IntArray = NDArray[np.int32] | NDArray[np.int64]

# Rows of the list are added and dropped four at a time: fewer turns for the processor to guess.
_STEP = 4
_LATEST = {np.dtype(np.int32): 2**31 - 1, np.dtype(np.int64): 2**63 - 1}


class Problem(NamedTuple):
    """A tuple (S, Q) as arrays: the jobs of Q, and the machine after the last job of S has started.

    All integer arrays have the same type, int32 where no time can exceed it.

    Parameters
    ----------
    p, q, r : int array (n,)
        Run time (ticks), processors, submit time (ticks) of the jobs of Q.
    ends, held : int array (k,)
        Ends of the running jobs of S (ticks), latest first, and the processors in use until then.
    limits : int array (4,)
        Start of the last job of S (ticks), processors of the machine, the shortest run time that the bounded
        slowdown divides by (tau, ticks), a time later than any end (ticks).
    """

    p: IntArray
    q: IntArray
    r: IntArray
    ends: IntArray
    held: IntArray
    limits: IntArray


@kernel
def occupy(
    p: NDArray[np.int64], q: NDArray[np.int64], r: NDArray[np.int64], machine: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Start the jobs of S one after the other on an empty machine.

    Parameters
    ----------
    p, q, r : int64 array (n,)
        Run time (ticks), processors (at most ``machine``), submit time (ticks), in the order of starting.
    machine : int
        Processors of the machine.

    Returns
    -------
    ends, held : int64 array (k,)
        As in `Problem`.
    clock : int
        When the last job started (ticks), 0 without jobs.
    """
    ends = np.zeros(len(p), dtype=np.int64)
    procs = np.zeros(len(p), dtype=np.int64)
    running = 0
    clock = 0
    free = machine
    for j in range(len(p)):
        clock = max(clock, r[j])
        while running > 0 and (ends[running - 1] <= clock or free < q[j]):
            running -= 1
            clock = max(clock, ends[running])
            free += procs[running]
        at = running
        while at > 0 and ends[at - 1] < clock + p[j]:
            ends[at] = ends[at - 1]
            procs[at] = procs[at - 1]
            at -= 1
        ends[at] = clock + p[j]
        procs[at] = q[j]
        free -= q[j]
        running += 1
    while running > 0 and ends[running - 1] <= clock:
        running -= 1
    return ends[:running], np.cumsum(procs[:running]), clock


def pose(
    p: NDArray[np.int64], q: NDArray[np.int64], r: NDArray[np.int64], machine: int, state_size: int, tau: int
) -> Problem:
    """Return the problem of a tuple: the first ``state_size`` jobs are S, the others Q.

    Parameters
    ----------
    p, q, r : int64 array (n,)
        Run time (ticks), processors (at most ``machine``), submit time (ticks) in submit order.
    machine, state_size, tau : int
        Processors of the machine, size of S, shortest run time of the bounded slowdown (ticks).
    """
    s = state_size
    ends, held, clock = occupy(p[:s], q[:s], r[:s], machine)
    bound = max(int(clock), int(r.max()), tau) + int(p.sum())
    kind = np.dtype(np.int32 if max(bound, 2 * machine) < 2**31 - 1 else np.int64)
    return Problem(
        p=p[s:].astype(kind),
        q=q[s:].astype(kind),
        r=r[s:].astype(kind),
        ends=ends.astype(kind),
        held=held.astype(kind),
        limits=np.array([clock, machine, tau, _LATEST[kind]], dtype=kind),
    )


@kernel
def _list_rows(problem: Problem) -> int:
    """Return the rows that one list needs: all jobs, a sentinel in front, and the rows added ahead of need."""
    return len(problem.ends) + len(problem.p) + 1 + 2 * _STEP


@kernel
def _draw_up(problem: Problem, lists: IntArray) -> None:
    """Write two lists of the jobs of S to ``lists``: the one that trials change, and the one they begin with.

    A list is the rows of ends, then the rows of processors held, each row one number a lane.
    """
    height = _list_rows(problem) * LANES
    for start in (0, 2 * height):
        for row in range(_list_rows(problem)):
            end = problem.ends[row - 1] if 0 < row <= len(problem.ends) else lists.dtype.type(-1)
            held = problem.held[row - 1] if 0 < row <= len(problem.ends) else lists.dtype.type(0)
            store(lists, start + row * LANES, fill(lists, end))
            store(lists, start + height + row * LANES, fill(lists, held))
        store(lists, start, fill(lists, problem.limits[3]))


@kernel
def _merge(lists: IntArray, source: int, height: int, rows: int, end: Lanes, procs: Lanes, room: Lanes) -> Lanes:
    """Enter a job that ends at ``end`` into the list; return when no more than ``room`` processors are in use.

    The list is read at ``source`` and written at 0. Sorted by end, a row is either kept or takes over the row in
    front of it, and every row behind the new one holds its processors too.
    """
    front_end = load(lists, source)
    front_held = load(lists, source + height)
    free_at = front_held
    for row in range(1, rows + 1, _STEP):
        for k in range(row, row + _STEP):
            old_end = load(lists, source + k * LANES)
            old_held = load(lists, source + height + k * LANES)
            new_end = larger(old_end, smaller(front_end, end))
            new_held = where(end > old_end, front_held + procs, old_held)
            store(lists, k * LANES, new_end)
            store(lists, height + k * LANES, new_held)
            free_at = where(new_held > room, larger(free_at, new_end), free_at)
            front_end = old_end
            front_held = old_held
    return free_at


@kernel
def _resize(lists: IntArray, rows: int, clock: Lanes) -> int:
    """Return how many rows the next pass needs: all that still run in some lane, and one more."""
    if any_lane(load(lists, rows * LANES) > clock):
        for k in range(rows + 1, rows + _STEP + 1):
            store(lists, k * LANES, fill(lists, lists.dtype.type(-1)))
        return rows + _STEP
    if rows > _STEP and not any_lane(load(lists, (rows - _STEP) * LANES) > clock):
        return rows - _STEP
    return rows


@kernel
def _first_rows(problem: Problem) -> int:
    """Return the rows of the first pass, a multiple of the step that leaves room for one job."""
    return (len(problem.ends) + _STEP) // _STEP * _STEP


@kernel
def _first_start(problem: Problem, lists: IntArray, q: Lanes, r: Lanes) -> Lanes:
    """Return when jobs of ``q`` processors submitted at ``r`` start as the first of the queue."""
    height = _list_rows(problem) * LANES
    room = fill(lists, problem.limits[1]) - q
    start = larger(r, fill(lists, problem.limits[0]))
    for k in range(1, len(problem.ends) + 1):
        held = load(lists, 3 * height + k * LANES)
        start = where(held > room, larger(start, load(lists, 2 * height + k * LANES)), start)
    return start


@kernel
def _slowdown(total: NDArray[np.float64], response: Lanes, p: Lanes, tau: Lanes) -> Lanes:
    """Return the bounded slowdown of jobs of run time ``p`` that end ``response`` after their submission."""
    return larger(as_float(response) / as_float(larger(p, tau)), fill(total, 1.0))


@kernel
def front_values(problem: Problem, orders: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
    """Let every job of Q in turn go first, the others in each given order: n trials an order.

    The lanes are the jobs that go first. They share the order of the others, so that all lanes start one of only
    two jobs at a time: the one at place i of the order, or, where the lane's own first job was taken from a
    place up to i, the one behind it.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    orders : uint8 array (b, n)
        Permutations of 0 to n - 1.
    out : float64 array (b, n)
        ``out[i, j]`` becomes the average bounded slowdown of Q if j goes first and the others follow in the order
        ``orders[i]``.
    """
    n = len(problem.p)
    lists = np.empty(4 * _list_rows(problem) * LANES, dtype=problem.p.dtype)
    _draw_up(problem, lists)
    # Lanes beyond the last job repeat job 0 and are not read.
    padded = (n + LANES - 1) // LANES * LANES
    jobs = np.zeros((3, padded), dtype=problem.p.dtype)
    for j in range(padded):
        k = j if j < n else 0
        jobs[0, j], jobs[1, j], jobs[2, j] = problem.p[k], problem.q[k], problem.r[k]
    place = np.zeros(padded, dtype=problem.p.dtype)
    total = np.empty(LANES, dtype=np.float64)
    for i in range(len(orders)):
        for s in range(n):
            place[orders[i, s]] = s
        for first in range(0, n, LANES):
            _front_group(problem, lists, jobs, (orders[i], place, total), first)
            for lane in range(min(LANES, n - first)):
                out[i, first + lane] = total[lane] / n


@kernel
def _front_group(
    problem: Problem,
    lists: IntArray,
    jobs: IntArray,
    ordered: tuple[NDArray[np.uint8], IntArray, NDArray[np.float64]],
    first: int,
) -> None:
    """Run the trials whose first jobs are ``first`` to ``first + 15``; leave the sums of slowdowns in ``total``."""
    order, place, total = ordered
    height = _list_rows(problem) * LANES
    machine = fill(lists, problem.limits[1])
    tau = fill(lists, problem.limits[2])
    rows = _first_rows(problem)
    source = 2 * height
    at = load(place, first)
    procs = load(jobs[1], first)
    submit = load(jobs[2], first)
    start = _first_start(problem, lists, procs, submit)
    end = start + load(jobs[0], first)
    value = _slowdown(total, end - submit, end - start, tau)
    for s in range(len(order) - 1):
        a = order[s]
        b = order[s + 1]
        ahead = at > fill(place, place.dtype.type(s))
        new_procs = where(ahead, fill(lists, problem.q[a]), fill(lists, problem.q[b]))
        free_at = _merge(lists, source, height, rows, end, procs, machine - new_procs)
        source = 0
        procs = new_procs
        submit = where(ahead, fill(lists, problem.r[a]), fill(lists, problem.r[b]))
        start = larger(larger(start, submit), free_at)
        end = start + where(ahead, fill(lists, problem.p[a]), fill(lists, problem.p[b]))
        value = value + _slowdown(total, end - submit, end - start, tau)
        rows = _resize(lists, rows, start)
    store(total, 0, value)


@kernel
def order_values(problem: Problem, orders: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
    """Run one trial for each given order; the lanes are sixteen orders.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    orders : uint8 array (b, n)
        Permutations of 0 to n - 1; ``orders[i, k]`` is the job of Q that starts k-th.
    out : float64 array (b,)
        Becomes the average bounded slowdown of Q in each order.
    """
    n = len(problem.p)
    lists = np.empty(4 * _list_rows(problem) * LANES, dtype=problem.p.dtype)
    _draw_up(problem, lists)
    jobs = np.empty((3, n * LANES), dtype=problem.p.dtype)
    total = np.empty(LANES, dtype=np.float64)
    for first in range(0, len(orders), LANES):
        for lane in range(LANES):
            # Lanes beyond the last order repeat it and are not read.
            row = orders[min(first + lane, len(orders) - 1)]
            for s in range(n):
                j = row[s]
                at = s * LANES + lane
                jobs[0, at], jobs[1, at], jobs[2, at] = problem.p[j], problem.q[j], problem.r[j]
        _order_group(problem, lists, jobs, total)
        for lane in range(min(LANES, len(orders) - first)):
            out[first + lane] = total[lane] / n


@kernel
def _order_group(problem: Problem, lists: IntArray, jobs: IntArray, total: NDArray[np.float64]) -> None:
    """Run 16 trials whose jobs lie in ``jobs`` (p, q, r), a lane each; leave the sums of slowdowns in ``total``."""
    height = _list_rows(problem) * LANES
    machine = fill(lists, problem.limits[1])
    tau = fill(lists, problem.limits[2])
    rows = _first_rows(problem)
    source = 2 * height
    p, q, r = jobs[0], jobs[1], jobs[2]
    procs = load(q, 0)
    submit = load(r, 0)
    start = _first_start(problem, lists, procs, submit)
    end = start + load(p, 0)
    value = _slowdown(total, end - submit, end - start, tau)
    for s in range(LANES, len(p), LANES):
        new_procs = load(q, s)
        free_at = _merge(lists, source, height, rows, end, procs, machine - new_procs)
        source = 0
        procs = new_procs
        submit = load(r, s)
        start = larger(larger(start, submit), free_at)
        end = start + load(p, s)
        value = value + _slowdown(total, end - submit, end - start, tau)
        rows = _resize(lists, rows, start)
    store(total, 0, value)
