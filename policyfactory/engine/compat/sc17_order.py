"""How the SC'17 programs order the first 32 jobs of the queue: see docs/sc17.md."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.compat.sc17_events import PLACE, SORTED, Sc17Jobs, Sc17Space
from policyfactory.engine.formula import evaluate
from policyfactory.engine.waiting import Formula

__all__ = [
    "AS_IT_IS", "BY_FORMULA", "BY_KEY", "EXCHANGE", "F1", "F2", "F3", "F4", "UNICEF", "VISIBLE", "WFP",
    "Sc17Order", "program_keys", "sort_visible",
]  # fmt: skip


# Jobs of the queue that the scheduler sees.
VISIBLE = 32

# Kinds of order.
AS_IT_IS, EXCHANGE, WFP, UNICEF, BY_KEY, BY_FORMULA = range(6)

# Functions of paper 004 with keys of the program's own.
F1, F2, F3, F4 = range(1, 5)


class Sc17Order(NamedTuple):
    """What decides between jobs.

    Parameters
    ----------
    kind : int
        One of the kinds above.
    key : float64 array (n,)
        The key of a job, lower first (``BY_KEY``); its p (``EXCHANGE``, ``WFP``); log2(q) p (``UNICEF``).
    formula : Formula
        Read by ``BY_FORMULA`` only.
    machine : float
        Processors of the machine, for formulas.
    backfill : bool
        Whether a job may go before the head of the queue.
    visible : int
        Jobs of the queue that are seen: 32 in the programs.
    keys : float64 array (visible,)
        Work space.
    work : float64 array (4 + depth, visible)
        Work space of formulas.
    """

    kind: int
    key: FloatArray
    formula: Formula
    machine: float
    backfill: bool
    visible: int
    keys: FloatArray
    work: FloatArray


@kernel
def program_keys(function: int, decide: FloatArray, processors: Int64Array, submit: FloatArray) -> FloatArray:
    """Return the keys of F1 to F4 as the program has them: coefficients not merged, r in seconds from the first job.

    Parameters
    ----------
    function : int
        ``F1`` to ``F4``.
    decide, submit : float64 array (n,)
        p and r, s.
    processors : int64 array (n,)
        q.
    """
    keys = np.empty(len(decide))
    for job in range(len(decide)):
        p, q = decide[job], float(processors[job])
        r = math.log10(submit[job]) if submit[job] > 0.0 else -np.inf
        if function == F4:
            keys[job] = (0.0056500287 * p) * (0.0000024814 * math.sqrt(q)) + 0.0074444355 * r
        elif function == F3:
            keys[job] = (-0.2188093701 * p) * (-0.0000000049 * q) + 0.0073580361 * r
        elif function == F2:
            keys[job] = (0.0000342717 * math.sqrt(p)) * (0.0076562110 * q) + 0.0067364626 * r
        else:
            size = math.log10(p) if p > 0.0 else -np.inf
            keys[job] = (-0.0155183403 * size) * (-0.0005149209 * q) + 0.0069596182 * r
    return keys


@inlined
def sort_visible(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Sort the first ``count`` jobs of the queue, at least 2; equal keys stay in the order in which they are."""
    if order.kind == BY_KEY:
        _insert_new(space, order, count)
    elif order.kind == EXCHANGE:
        _exchange(space, order, count)
    elif order.kind != AS_IT_IS:
        _find_keys(jobs, space, order, count)
        _insert_all(space, order.keys, count)


@inlined
def _insert_new(space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Sort where keys never change: only what has come since the last time is inserted."""
    queue, key, place = space.queue, order.key, space.state[PLACE]
    for at in range(max(space.state[SORTED], place), place + count):
        job = queue[at]
        own = key[job]
        to = at
        while to > place and key[queue[to - 1]] > own:
            queue[to] = queue[to - 1]
            to -= 1
        queue[to] = job
    space.state[SORTED] = place + count


@inlined
def _insert_all(space: Sc17Space, keys: FloatArray, count: int) -> None:
    queue, place = space.queue, space.state[PLACE]
    for at in range(1, count):
        own, job = keys[at], queue[place + at]
        to = at
        while to > 0 and keys[to - 1] > own:
            keys[to] = keys[to - 1]
            queue[place + to] = queue[place + to - 1]
            to -= 1
        keys[to] = own
        queue[place + to] = job


@inlined
def _exchange(space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Do what ``for a: for b: if key[a] < key[b]: swap`` does, which turns equal keys round at each call.

    Its first round leaves the largest key in front; round a then sends the job at place a through those before it,
    which are in order, and finds nothing larger behind. So each round may begin at the first larger key.
    """
    queue, keys, place = space.queue, order.keys, space.state[PLACE]
    for at in range(count):
        keys[at] = order.key[queue[place + at]]
    for b in range(1, count):
        if keys[0] < keys[b]:
            _swap(queue, keys, place, 0, b)
    for a in range(1, count):
        b = a
        while b > 0 and keys[b - 1] > keys[a]:
            b -= 1
        while b < a:
            if keys[a] < keys[b]:
                _swap(queue, keys, place, a, b)
            b += 1


@inlined
def _swap(queue: Int64Array, keys: FloatArray, place: int, a: int, b: int) -> None:
    keys[a], keys[b] = keys[b], keys[a]
    queue[place + a], queue[place + b] = queue[place + b], queue[place + a]


@inlined
def _find_keys(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, count: int) -> None:
    """Fill in the keys of the first ``count`` jobs at this second, lower first."""
    queue, keys, place = space.queue, order.keys, space.state[PLACE]
    now = math.floor(space.clock[0])
    if order.kind == BY_FORMULA:
        _evaluate(jobs, space, order, count, now)
        return
    for at in range(count):
        job = queue[place + at]
        age = now - jobs.submit[job]
        if order.kind == WFP:
            # The quotient has 24 bits and its square is exact, so the cube is rounded once; the C library's pow(x, 3)
            # is off by one in the last digit in a case of 800.
            ratio = float(np.float32(age) / np.float32(order.key[job]))
            key = -((ratio * ratio * ratio) * jobs.processors[job])
        else:
            key = -((age + 1e-20) / order.key[job])
        # 0/0: the program would never pick such a job; here it goes last.
        keys[at] = np.inf if math.isnan(key) else key


@kernel
def _evaluate(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, count: int, now: float) -> None:
    queue, work, place, formula = space.queue, order.work, space.state[PLACE], order.formula
    oldest = jobs.submit[queue[place]]
    for at in range(1, count):
        oldest = min(oldest, jobs.submit[queue[place + at]])
    for at in range(count):
        job = queue[place + at]
        work[0, at] = jobs.decide[job]
        work[1, at] = jobs.processors[job]
        work[2, at] = jobs.submit[job] - oldest if formula.from_oldest else formula.r[job]
        work[3, at] = now - jobs.submit[job]
    evaluate(
        formula.codes, formula.operands, work[:4], count, order.machine, 0.0, work[4:]
    )  # no formula with f comes here
    for at in range(count):
        order.keys[at] = np.inf if math.isnan(work[4, at]) else work[4, at]
