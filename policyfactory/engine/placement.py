"""Nodes with several resources, and the jobs that are placed on them.

What a node has is packed into one integer: a field for each resource, processors lowest, and above each field a guard
bit that is 0. With the guards set, the difference of two such integers leaves every guard standing if and only if no
field was too small: one subtraction compares all resources of a node, and the loops over nodes become vector
instructions.

The reservation of the head of a queue is a time, not a set of nodes. A node is *useful* to the head if the head would
fit on it at that time, and *spared* by a job behind the head that leaves it as useful as it is. Such a job takes the
nodes that it spares first; of the others it may take as many as the head has useful ones beyond its need.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined

__all__ = [
    "NO_HEAD", "Ask", "Nodes", "choose_nodes", "count_fitting", "count_spared", "forget_refused", "give_back",
    "has_room", "is_refused", "may_fit", "new_nodes", "note_refused", "release_nodes", "take_nodes",
]  # fmt: skip


class Ask(NamedTuple):
    """What a job asks for on each of its nodes.

    Parameters
    ----------
    on_each : int
        Packed; at least one processor.
    whole : bool
        It takes all of a node, which must be idle.
    """

    on_each: int
    whole: bool


# Nobody to be minded; no job asks for nothing.
NO_HEAD = Ask(0, False)

# How many of the jobs that may not start are remembered; rows of the table of them.
_REMEMBERED = 8
_COUNT, _ON_EACH, _WHOLE = 0, 1, 2
_NEVER = 1 << 62


class Nodes(NamedTuple):
    """The nodes of a machine, in the order in which they are taken.

    Parameters
    ----------
    capacity, free, later : int64 array (N,)
        Packed: all that a node has, what is free now, what is free at the time of the reservation.
    at_least : int64 array (c + 1,)
        How many nodes have at least so many processors free; c is the most that a node has.
    tally : int64 array (2 c + 2,)
        Work space.
    refused : int64 array (3, 9)
        Some jobs that may not start before the reservation is made anew: number of nodes, what on each, whether whole.
        The first number of the last column says which entry is the next to be written over.
    placed : int32 array
        The nodes of all jobs, job after job.
    guard, mask : int
        The guard bits; the field of the processors.
    best_fit : bool
        Of the nodes on which a job fits, those with the fewest free processors are taken first.
    """

    capacity: Int64Array
    free: Int64Array
    later: Int64Array
    at_least: Int64Array
    tally: Int64Array
    refused: Int64Array
    placed: NDArray[np.int32]
    guard: int
    mask: int
    best_fit: bool


def new_nodes(capacity: Int64Array, guard: int, mask: int, placed: int, *, best_fit: bool) -> Nodes:
    """Return idle nodes; ``placed`` is the number of nodes of all jobs together, the rest is as in `Nodes`."""
    cores = capacity & mask
    most = int(cores.max(initial=0))
    at_least = np.array([np.count_nonzero(cores >= least) for least in range(most + 1)], dtype=np.int64)
    full, free, later = (np.array(capacity, dtype=np.int64) for _ in range(3))
    tally, refused = np.zeros(2 * most + 2, dtype=np.int64), np.zeros((3, _REMEMBERED + 1), dtype=np.int64)
    return Nodes(full, free, later, at_least, tally, refused, np.zeros(placed, dtype=np.int32), guard, mask, best_fit)


@inlined
def has_room(free: int, capacity: int, guard: int, ask: Ask) -> bool:
    """Say whether a node with so much free has what a job asks for."""
    # No short circuit: the loops over nodes are to become vector instructions.
    return bool(((((free | guard) - ask.on_each) & guard) == guard) & ((not ask.whole) | (free == capacity)))


@inlined
def _is_minded(head: Ask) -> bool:
    return bool(head.on_each != 0)


@inlined
def _spares(later: int, capacity: int, guard: int, ask: Ask, head: Ask) -> bool:
    """Say whether a job leaves a node, with so much free at the head's time, as useful to the head as it is."""
    taken = capacity if ask.whole else ask.on_each
    return bool((not has_room(later, capacity, guard, head)) | has_room(later - taken, capacity, guard, head))


@inlined
def may_fit(nodes: Nodes, ask: Ask, count: int) -> bool:
    """Say whether enough nodes have the processors for a job; if not, it does not fit."""
    return bool(nodes.at_least[ask.on_each & nodes.mask] >= count)


@inlined
def count_fitting(nodes: Nodes, ask: Ask) -> int:
    """Return on how many nodes a job fits now."""
    count = 0
    for node in range(len(nodes.free)):
        count += has_room(nodes.free[node], nodes.capacity[node], nodes.guard, ask)
    return count


@inlined
def count_spared(nodes: Nodes, ask: Ask, head: Ask) -> int:
    """Return on how many nodes a job fits now that it spares."""
    count = 0
    for node in range(len(nodes.free)):
        capacity = nodes.capacity[node]
        fits = has_room(nodes.free[node], capacity, nodes.guard, ask)
        count += fits & _spares(nodes.later[node], capacity, nodes.guard, ask, head)
    return count


@inlined
def forget_refused(nodes: Nodes) -> None:
    """Begin anew: the reservation is another, or something has become free."""
    for at in range(_REMEMBERED):
        nodes.refused[_COUNT, at] = _NEVER


@inlined
def note_refused(nodes: Nodes, ask: Ask, count: int) -> None:
    """Remember that a job which runs beyond the head's time may not start, because of the nodes."""
    at = nodes.refused[_COUNT, _REMEMBERED]
    nodes.refused[_COUNT, at] = count
    nodes.refused[_ON_EACH, at] = ask.on_each
    nodes.refused[_WHOLE, at] = ask.whole
    nodes.refused[_COUNT, _REMEMBERED] = (at + 1) % _REMEMBERED


@inlined
def is_refused(nodes: Nodes, ask: Ask, count: int) -> bool:
    """Say whether one that asks for no more was refused, in which case this one, running as long, would be."""
    for at in range(_REMEMBERED):
        if count < nodes.refused[_COUNT, at] or (nodes.refused[_WHOLE, at] and not ask.whole):
            continue
        if (((ask.on_each | nodes.guard) - nodes.refused[_ON_EACH, at]) & nodes.guard) == nodes.guard:
            return True
    return False


@inlined
def give_back(nodes: Nodes, first: int, last: int, ask: Ask, head: Ask) -> int:
    """Count what a job holds as free at the head's time; return how many more nodes are useful to the head.

    The job's nodes are written in ``placed`` from ``first`` up to ``last``, exclusive.
    """
    later, guard = nodes.later, nodes.guard
    more = 0
    for at in range(first, last):
        node = nodes.placed[at]
        capacity = nodes.capacity[node]
        more -= has_room(later[node], capacity, guard, head)
        later[node] += capacity if ask.whole else ask.on_each
        more += has_room(later[node], capacity, guard, head)
    return more


@inlined
def choose_nodes(nodes: Nodes, first: int, last: int, ask: Ask, head: Ask) -> None:
    """Write down the nodes of a job in ``placed``, from ``first`` up to ``last``, exclusive; it must fit on so many.

    ``head``: that of the queue if the job runs beyond its time, and then takes the nodes that it spares first; else
    `NO_HEAD`.
    """
    if _is_minded(head) or nodes.best_fit:
        _choose_by_level(nodes, first, last, ask, head)
        return
    at, node = first, 0
    while at < last:
        if has_room(nodes.free[node], nodes.capacity[node], nodes.guard, ask):
            nodes.placed[at] = node
            at += 1
        node += 1


@inlined
def _choose_by_level(nodes: Nodes, first: int, last: int, ask: Ask, head: Ask) -> None:
    """Take the nodes of the lowest levels, and of the highest of these the first ones."""
    tally = nodes.tally
    for level in range(len(tally)):
        tally[level] = 0
    for node in range(len(nodes.free)):
        if has_room(nodes.free[node], nodes.capacity[node], nodes.guard, ask):
            tally[_level(nodes, node, ask, head)] += 1
    highest, left = 0, last - first
    while tally[highest] < left:
        left -= tally[highest]
        highest += 1
    at, node = first, 0
    while at < last:
        if has_room(nodes.free[node], nodes.capacity[node], nodes.guard, ask):
            level = _level(nodes, node, ask, head)
            if level < highest or (level == highest and left > 0):
                left -= level == highest
                nodes.placed[at] = node
                at += 1
        node += 1


@inlined
def _level(nodes: Nodes, node: int, ask: Ask, head: Ask) -> int:
    """Return where a node stands: lower ones are taken first."""
    level = nodes.free[node] & nodes.mask if nodes.best_fit else 0
    if _is_minded(head) and not _spares(nodes.later[node], nodes.capacity[node], nodes.guard, ask, head):
        level += len(nodes.tally) >> 1
    return int(level)


@inlined
def take_nodes(nodes: Nodes, first: int, last: int, ask: Ask, head: Ask) -> tuple[int, int]:
    """Take what a job asks for from its nodes; return the processors, and how many nodes the head has lost."""
    free, later, mask = nodes.free, nodes.later, nodes.mask
    cores, lost, minded = 0, 0, _is_minded(head)
    # Most nodes of a job go from and to the same: their steps in the table are made together.
    low, high, alike = 0, 0, 0
    for at in range(first, last):
        node = nodes.placed[at]
        capacity = nodes.capacity[node]
        taken = capacity if ask.whole else ask.on_each
        if minded:
            lost += not _spares(later[node], capacity, nodes.guard, ask, head)
            later[node] -= taken
        before = free[node] & mask
        after = before - (taken & mask)
        free[node] -= taken
        if before != high or after != low:
            _step(nodes, low, high, -alike)
            low, high, alike = after, before, 0
        alike += 1
        cores += before - after
    _step(nodes, low, high, -alike)
    return cores, lost


@inlined
def release_nodes(nodes: Nodes, first: int, last: int, ask: Ask) -> int:
    """Free what a job holds on its nodes; return the processors."""
    free, mask = nodes.free, nodes.mask
    cores = 0
    low, high, alike = 0, 0, 0
    for at in range(first, last):
        node = nodes.placed[at]
        given = nodes.capacity[node] if ask.whole else ask.on_each
        before = free[node] & mask
        after = before + (given & mask)
        free[node] += given
        if after != high or before != low:
            _step(nodes, low, high, alike)
            low, high, alike = before, after, 0
        alike += 1
        cores += after - before
    _step(nodes, low, high, alike)
    return cores


@inlined
def _step(nodes: Nodes, low: int, high: int, count: int) -> None:
    """Let ``count`` more nodes have more than ``low`` and up to ``high`` processors free."""
    for least in range(low + 1, high + 1):
        nodes.at_least[least] += count
