"""Which nodes Slurm gives a job: best fit among runs of consecutive nodes (select/cons_tres without a topology).

The rules are those of Slurm 22.05, found in its source: of all runs of nodes that follow each other, can be used and
have one weight, the lightest and then the smallest that suffices is taken; if none does, the one with most cores, and
then the next, until there is enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import Int32Array, Int64Array, UInt8Array, UInt64Array
from policyfactory.core.jit import inlined, kernel, step
from policyfactory.engine.slurm_blocks import BLOCKS, WORD, Blocks
from policyfactory.engine.slurm_demand import (
    GPUS,
    MOST_NODES,
    NODE_CORES,
    NODE_GPUS,
    NODES,
    TOTAL_CORES,
    WHOLE,
    cores_for,
)

__all__ = ["Choice", "choose", "choose_by_cores", "new_choice"]

# Columns of a run of blocks.
_FIRST, _LAST, _COUNT, _CORES, _WEIGHT = range(5)
_LOT = 16  # blocks that are looked at together, most of them in vain


class Choice(NamedTuple):
    """Nodes that were chosen, and space for choosing among N nodes.

    Parameters
    ----------
    parts : int64 array (1,)
        How many parts of blocks were chosen.
    node, many, cores : int64 array (N,)
        Of each part, in the order in which they were taken: its first node, its nodes, the cores of each.
    usable : int32 array (N,)
        Cores that the job could have of each node of a block; as long as a multiple of sixteen.
    size : int32 array (N,)
        By which the smallest nodes are found: these cores, and free GPUs where the job asks for some.
    skipped : int64 array (N,)
        How many nodes of a block, its first ones, are not to be used.
    runs : int64 array (N, 5)
        Runs of consecutive blocks.
    bits : uint64 array (N / 64,)
        The set of the blocks of chosen nodes.
    """

    parts: Int64Array
    node: Int64Array
    many: Int64Array
    cores: Int64Array
    usable: Int32Array
    size: Int32Array
    skipped: Int64Array
    runs: Int64Array
    bits: UInt64Array


def new_choice(nodes: int) -> Choice:
    """Return space for choosing among ``nodes`` nodes."""
    return Choice(
        np.zeros(1, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(-(-nodes // _LOT) * _LOT, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int64),
        np.empty((nodes, 5), np.int64),
        np.zeros(-(-nodes // WORD), np.uint64),
    )


@kernel
def choose(
    request: Int64Array, has: Int64Array, used: Int64Array, blocks: Blocks, allowed: UInt8Array, choice: Choice
) -> int:
    """Choose nodes for a job.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has, used : int64 array (N, 4)
        What each node has, and what is taken of it; the first ones of blocks are looked at.
    blocks : Blocks
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    choice : Choice
        ``parts``, ``node``, ``many`` and ``cores`` are filled in.

    Returns
    -------
    int
        How many nodes were chosen; 0 if there are not enough.
    """
    # It is first tried as if no core were in use; that can only fail where cores may be spread in several ways.
    if (
        request[WHOLE] == 0
        and request[NODE_CORES] == 0
        and request[TOTAL_CORES] > request[NODES]
        and _choose_among(request, has, used, blocks, allowed, choice, True) == 0
    ):
        return 0
    return _choose_among(request, has, used, blocks, allowed, choice, False)


@step
def _choose_among(
    request: Int64Array,
    has: Int64Array,
    used: Int64Array,
    blocks: Blocks,
    allowed: UInt8Array,
    choice: Choice,
    idle: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Choose nodes as if no core were in use (``idle``), or of the cores that are not."""
    usable, size, most, nodes, cores = choice.usable, choice.size, 0, 0, 0
    for block in range(blocks.size[BLOCKS]):
        node, count = blocks.first[block], blocks.nodes[block]
        usable[block] = cores_for(request, has[node], used[node], idle) if allowed[block] else 0
        nodes += count if usable[block] > 0 else 0
        size[block] = usable[block]
        if request[NODE_GPUS] > 0:
            size[block] += has[node, GPUS] - used[node, GPUS]
            # Of a node with GPUs the cores beyond its own are hidden from the job: such nodes all look alike.
            if usable[block] > 0 and request[NODE_CORES] > 0:
                usable[block] = request[NODE_CORES]
        most = max(most, size[block])
        cores += usable[block] * count
    return _choose_usable(request, blocks, choice, nodes, cores, most)


@kernel
def choose_by_cores(request: Int64Array, blocks: Blocks, free: Int32Array, allowed: UInt8Array, choice: Choice) -> int:
    """Choose nodes for a job that asks for cores alone, as `choose` does.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job: no GPUs and no memory.
    blocks : Blocks
    free : int32 array (N,)
        Cores that are free on each node of a block; -1 where a job shares its node with nobody.
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    choice : Choice
        ``parts``, ``node``, ``many`` and ``cores`` are filled in.

    Returns
    -------
    int
        How many nodes were chosen; 0 if there are not enough.
    """
    least, whole = max(request[NODE_CORES], 1), request[WHOLE] == 1
    usable, size, cores, count, end = choice.usable, choice.size, blocks.cores, blocks.nodes, blocks.size[BLOCKS]
    spread = not whole and request[NODE_CORES] == 0 and request[TOTAL_CORES] > request[NODES]
    # With as many nodes as cores it fails neither way if there are enough of both.
    for idle in range(int(spread and request[MOST_NODES] < request[TOTAL_CORES]), -1, -1):
        # Loops without branches inside: each is made of wide instructions.
        if idle:
            for block in range(end):
                usable[block] = cores[block] if allowed[block] != 0 and free[block] >= 0 else 0
        elif whole:
            for block in range(end):
                usable[block] = free[block] if allowed[block] != 0 and free[block] >= cores[block] else 0
        else:
            for block in range(end):
                usable[block] = free[block] if allowed[block] != 0 and free[block] >= least else 0
        nodes = total = most = 0
        for block in range(end):
            nodes += count[block] if usable[block] > 0 else 0
            total += np.int64(usable[block]) * count[block]
            most = max(most, usable[block])
            size[block] = usable[block]
        chosen = _choose_usable(request, blocks, choice, nodes, total, most)
        if chosen == 0:
            return 0
    return chosen


@step
def _choose_usable(request: Int64Array, blocks: Blocks, choice: Choice, nodes: int, cores: int, most: int) -> int:
    """Choose among the usable nodes: so many, of so many cores, the largest of a size."""
    usable, size, skipped = choice.usable, choice.size, choice.skipped
    if nodes < request[NODES] or cores < request[TOTAL_CORES]:
        return 0
    for block in range(blocks.size[BLOCKS]):
        skipped[block] = 0
    chosen = _take(request, blocks, choice)
    # A greedy choice may use up the most nodes allowed on small ones: without the smallest it is made again.
    least = 1
    while chosen == 0 and nodes > request[NODES] and least < most:
        removed = 0
        for block in range(blocks.size[BLOCKS]):
            if usable[block] > 0 and size[block] <= least and nodes > request[NODES]:
                gone = min(blocks.nodes[block] - skipped[block], nodes - request[NODES])
                skipped[block] += gone
                if skipped[block] == blocks.nodes[block]:
                    usable[block] = 0
                nodes -= gone
                removed += gone
        if removed > 0 or least == 1:
            chosen = _take(request, blocks, choice)
        least += 1
    return chosen


@step
def _take(request: Int64Array, blocks: Blocks, choice: Choice) -> int:
    """Choose among the usable nodes, whose cores stay as they are; return how many."""
    runs, usable, skipped, part = choice.runs, choice.usable, choice.skipped, -1
    count = _find_runs(blocks, choice)
    chosen, left_nodes, left_cores = 0, request[NODES], request[TOTAL_CORES]
    while chosen < request[MOST_NODES]:
        best = _best(runs, count, left_nodes, left_cores)
        if best < 0:
            return 0
        first, last = runs[best, _FIRST], runs[best, _LAST]
        single = _single(usable, first, last, left_cores) if left_nodes <= 1 else -1
        if single >= 0:
            first = last = single
        for block in range(first, last + 1):
            here = 1 if single >= 0 else blocks.nodes[block] - skipped[block]
            given, many = -1, _wholly(request, here, usable[block], chosen, left_nodes, left_cores)
            if many > 0:
                part, given = part + 1, usable[block]
                choice.node[part], choice.many[part] = blocks.first[block] + skipped[block], many
                choice.cores[part] = request[NODE_CORES] if request[NODE_CORES] > 0 else given
                chosen, left_nodes, left_cores = chosen + many, left_nodes - many, left_cores - many * given
            for at in range(many, here):
                most, cores = request[MOST_NODES] - chosen, usable[block]
                if most == 0 or (left_nodes <= 0 and left_cores <= 0):
                    break
                if cores == 0 or (most == 1 and cores < left_cores):
                    break
                if request[WHOLE] == 0:
                    # At least one core is left for each node that is still to come.
                    cores = min(cores, max(left_cores - max(left_nodes - 1, 0), request[NODE_CORES], 1))
                if cores != given:
                    part, given = part + 1, cores
                    choice.node[part], choice.many[part] = blocks.first[block] + skipped[block] + at, 0
                    choice.cores[part] = request[NODE_CORES] if request[NODE_CORES] > 0 else cores
                choice.many[part] += 1
                chosen += 1
                left_nodes -= 1
                left_cores -= cores
        if left_nodes <= 0 and left_cores <= 0:
            choice.parts[0] = part + 1
            return chosen
        runs[best, _COUNT] = 0
    return 0


@inlined
def _wholly(request: Int64Array, here: int, cores: int, chosen: int, left_nodes: int, left_cores: int) -> int:
    """Return how many of some nodes are taken with all their usable cores, as far as that is told by a division."""
    if cores == 0:
        return 0
    most = min(here, request[MOST_NODES] - chosen - 1)
    if request[WHOLE] == 1:
        return int(max(min(most, max(left_nodes, (left_cores + cores - 1) // cores)), 0))
    # A core is left for each node that is still to come.
    beyond = left_cores - max(left_nodes, 0)
    if beyond < 0:
        return 0
    return int(max(min(most, left_cores // cores, beyond // (cores - 1) if cores > 1 else most), 0))


@inlined
def _find_runs(blocks: Blocks, choice: Choice) -> int:
    """Note the runs of usable nodes of one weight; return how many there are."""
    usable, skipped, runs, weights = choice.usable, choice.skipped, choice.runs, blocks.weight
    previous, weight, nodes, cores, count = -2, 0, 0, 0, -1
    lots = (blocks.size[BLOCKS] + _LOT - 1) // _LOT
    for block in range(blocks.size[BLOCKS], _LOT * lots):
        usable[block] = 0
    for lot in range(lots):
        some = np.int32(0)
        for at in range(_LOT):
            some |= usable[_LOT * lot + at]
        if some == 0:
            continue
        for block in range(_LOT * lot, _LOT * (lot + 1)):
            if usable[block] == 0:
                continue
            if previous != block - 1 or skipped[block] > 0 or weight != weights[block]:
                if count >= 0:
                    runs[count, _COUNT], runs[count, _CORES], runs[count, _LAST] = nodes, cores, previous
                count += 1
                weight, nodes, cores = weights[block], 0, 0
                runs[count, _FIRST], runs[count, _WEIGHT] = block, weight
            here, previous = blocks.nodes[block] - skipped[block], block
            nodes += here
            cores += usable[block] * here
    if count >= 0:
        runs[count, _COUNT], runs[count, _CORES], runs[count, _LAST] = nodes, cores, previous
    return count + 1


@inlined
def _best(runs: Int64Array, count: int, nodes: int, cores: int) -> int:
    """Return the run to take nodes from; -1 if none is left."""
    best, best_suffices = -1, False
    for run in range(count):
        if runs[run, _COUNT] == 0:
            continue
        suffices = runs[run, _CORES] >= cores and runs[run, _COUNT] >= nodes
        if best < 0 or runs[run, _WEIGHT] < runs[best, _WEIGHT]:
            best, best_suffices = run, suffices
        elif runs[run, _WEIGHT] == runs[best, _WEIGHT]:
            smaller, larger = runs[run, _CORES] < runs[best, _CORES], runs[run, _CORES] > runs[best, _CORES]
            if (suffices and (not best_suffices or smaller)) or (not suffices and larger):
                best, best_suffices = run, suffices
    return best


@inlined
def _single(usable: Int32Array, first: int, last: int, cores: int) -> int:
    """Return the block of a run that has the nodes with just enough cores; -1 if none has."""
    best = -1
    for block in range(first, last + 1):
        if usable[block] >= max(cores, 1) and (best < 0 or usable[block] < usable[best]):
            best = block
            if usable[best] == cores:
                break
    return best
