"""The plan of Slurm's backfilling pass: which nodes are free of reservations, from one time to the next.

The records follow each other in time and cover the window from the pass on. The rules are those of Slurm 22.05 and
24.11 (sched/backfill), found in their sources; also that a record is split where a reservation begins before it is
looked at whether that is needed.

Sets of nodes are sets of blocks, a bit for each (see `policyfactory.engine.slurm.nodes`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, joined, kernel, step
from policyfactory.core.options import Int64Array, UInt64Array
from policyfactory.engine.slurm.nodes import WORD, move_on

# Columns of a record; the first record is number 0, and no other is followed by it.
BEGIN, END, NEXT = range(3)
# Places in `BackfillPlan.size`: the records in use, the words of each that count, the last record; one that begins
# where a job is to be tried again, and when that is.
RECORDS, _WORDS, _LAST, _AGAIN, _AGAIN_AT = range(5)


@by_pointer
class BackfillPlan(NamedTuple):
    """The plan of one pass over B blocks of N nodes.

    Parameters
    ----------
    record : int64 array (k, 3)
        Begin, end (s), the record that follows (0: none).
    free : uint64 array (k, N / 64)
        The blocks that are not reserved.
    rest : uint64 array (k, N / 64)
        Those that are not reserved from this record on.
    size : int64 array (5,)
        See the names of its places.
    """

    record: Int64Array
    free: UInt64Array
    rest: UInt64Array
    size: Int64Array


def new_plan(records: int, nodes: int) -> BackfillPlan:
    """Return space for a plan of at most ``records`` reservations of ``nodes`` nodes."""
    free = np.zeros((records + 3, -(-nodes // WORD)), np.uint64)
    return BackfillPlan(np.empty((records + 3, 3), np.int64), free, np.zeros_like(free), np.zeros(5, np.int64))


@kernel
def begin_plan(plan: BackfillPlan, now: int, window: int, resolution: int, up: UInt64Array, words: int) -> None:
    """Begin a plan without reservations.

    Parameters
    ----------
    plan : BackfillPlan
        What it holds is forgotten.
    now, window, resolution : int
        Seconds.
    up : uint64 array (N / 64,)
        The blocks that are there.
    words : int
        Those of ``up`` that count.
    """
    plan.record[0, BEGIN] = now // resolution * resolution
    plan.record[0, END] = (now + window) // resolution * resolution
    plan.record[0, NEXT] = 0
    for word in range(words):
        plan.free[0, word] = plan.rest[0, word] = up[word]
    plan.size[RECORDS], plan.size[_WORDS], plan.size[_LAST] = 1, words, 0
    plan.size[_AGAIN] = 0


@kernel
def usable_nodes(
    plan: BackfillPlan,
    start: int,
    end: int,
    allowed: UInt64Array,
    nodes: UInt64Array,
    past_end: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Fill in which of the allowed blocks are free of reservations from ``start`` to ``end``.

    Parameters
    ----------
    plan : BackfillPlan
        Of this pass.
    start, end : int
        Seconds.
    allowed : uint64 array (N / 64,)
        The blocks that the job may use.
    nodes : uint64 array (N / 64,)
        Filled in.
    past_end : bool
        Whether to try again after a record that begins after the end, where no other block is free before.

    Returns
    -------
    int
        When to try again: the end of the first record after which there are other blocks; 0 if there is none.
    """
    record, free, words = plan.record, plan.free, plan.size[_WORDS]
    later, first = 0, -1
    current = plan.size[_AGAIN] if plan.size[_AGAIN_AT] == start else 0
    to_the_end = reaches_end(plan, end)
    for word in range(words):
        nodes[word] = allowed[word]
    while True:
        following = record[current, NEXT]
        if first < 0 and record[current, END] > start:
            first = current
        if record[current, END] > start and following != 0 and later == 0:
            # All blocks are looked at: without a way out the loop is made of wide instructions.
            others = np.uint64(0)
            for word in range(words):
                others |= allowed[word] & free[following, word] & ~(nodes[word] & free[current, word])
            if others != 0:
                later = record[current, END]
                plan.size[_AGAIN], plan.size[_AGAIN_AT] = following, later
        if later > 0 and to_the_end:
            for word in range(words):
                nodes[word] = allowed[word] & plan.rest[first, word]
            return later
        if record[current, END] > start:
            if record[current, BEGIN] > end:
                if past_end and later == 0 and following != 0 and record[following, NEXT] != 0:
                    later = record[following, END]
                break
            for word in range(words):
                nodes[word] &= free[current, word]
        current = following
        if current == 0:
            break
    return later


@inlined
def reaches_end(plan: BackfillPlan, time: int) -> bool:
    """Tell whether a job that runs until a time meets the last record of the plan."""
    return bool(time >= plan.record[plan.size[_LAST], BEGIN])


@kernel
def is_reserved(plan: BackfillPlan, taken: UInt64Array, start: int, end: int) -> bool:
    """Tell whether one of some blocks is reserved at a time from ``start`` to before ``end``.

    Parameters
    ----------
    plan : BackfillPlan
        Of this pass.
    taken : uint64 array (N / 64,)
        The blocks.
    start, end : int
        Seconds.
    """
    current, words = 0, plan.size[_WORDS]
    while True:
        if plan.record[current, END] > start and plan.record[current, BEGIN] < end:
            reserved = np.uint64(0)
            for word in range(words):
                reserved |= taken[word] & ~plan.free[current, word]
            if reserved != 0:
                return True
        current = plan.record[current, NEXT]
        if current == 0:
            return False


@kernel
def reserve(plan: BackfillPlan, taken: UInt64Array, start: int, end: int, resolution: int) -> None:
    """Reserve blocks.

    Parameters
    ----------
    plan : BackfillPlan
        With room for two more records.
    taken : uint64 array (N / 64,)
        The blocks.
    start, end : int
        Seconds, multiples of ``resolution``; at least one ``resolution`` is reserved.
    resolution : int
        Seconds.
    """
    record, free, words = plan.record, plan.free, plan.size[_WORDS]
    plan.size[_AGAIN] = 0
    start = max(start, record[0, BEGIN])
    end = max(end, start + resolution)
    before, after, current, last = 0, -1, 0, -1
    while record[current, END] < start:
        before = current
        current = record[current, NEXT]
        if current == 0:
            return
    if record[current, END] > start:
        _split(plan, current, start)
    current = record[current, NEXT]
    while current != 0:
        if end < record[current, END]:
            _split(plan, current, end)
        for word in range(words):
            free[current, word] &= ~taken[word]
        last = current
        if end == record[current, END]:
            if record[current, NEXT] != 0:
                after = record[current, NEXT]
            break
        current = record[current, NEXT]
    current = 0 if last >= 0 else -1
    while current >= 0:
        for word in range(words):
            plan.rest[current, word] &= ~taken[word]
        current = record[current, NEXT] if current != last else -1
    _join(plan, before, after)


@step
def _split(plan: BackfillPlan, current: int, time: int) -> None:
    """Split a record in two at a time within it, or at its begin."""
    record, new = plan.record, plan.size[RECORDS]
    record[new, BEGIN], record[new, END], record[new, NEXT] = time, record[current, END], record[current, NEXT]
    for word in range(plan.size[_WORDS]):
        plan.free[new, word], plan.rest[new, word] = plan.free[current, word], plan.rest[current, word]
    record[current, END], record[current, NEXT] = time, new
    if plan.size[_LAST] == current:
        plan.size[_LAST] = new
    plan.size[RECORDS] += 1


@joined
def _join(plan: BackfillPlan, before: int, after: int) -> None:
    """Join the first record from ``before`` on that is equal to the one that follows it; stop at ``after``."""
    record, current = plan.record, before
    while current != after:
        following = record[current, NEXT]
        if following == 0:
            return
        different = np.uint64(0)
        for word in range(plan.size[_WORDS]):
            different |= plan.free[current, word] ^ plan.free[following, word]
        if different == 0:
            record[current, END], record[current, NEXT] = record[following, END], record[following, NEXT]
            if plan.size[_LAST] == following:
                plan.size[_LAST] = current
            return
        current = following


@step
def split_in_plan(plan: BackfillPlan, block: int, blocks: int) -> None:
    """Split a block in two in all records, as `slurm_blocks.split_block` does; there are ``blocks`` before that."""
    if blocks == plan.size[_WORDS] * WORD:
        for record in range(plan.size[RECORDS]):
            plan.free[record, plan.size[_WORDS]] = plan.rest[record, plan.size[_WORDS]] = np.uint64(0)
        plan.size[_WORDS] += 1
    for record in range(plan.size[RECORDS]):
        move_on(plan.free, record, block, plan.size[_WORDS], 1)
        move_on(plan.rest, record, block, plan.size[_WORDS], 1)
