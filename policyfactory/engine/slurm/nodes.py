"""Which nodes Slurm gives a job: best fit among runs of consecutive nodes (select/cons_tres without a topology).

The rules are those of Slurm 22.05 and 24.11, found in their sources: of all runs of nodes that follow each other, can
be used and have one weight, the lightest and then the smallest that suffices is taken; if none does, the one with most
cores, and then the next, until there is enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, joined, kernel, step
from policyfactory.core.options import Int32Array, Int64Array, UInt8Array, UInt64Array
from policyfactory.engine.slurm.versions import OFFERS_TASKS, SKIPS_IDLE, TAKES_FIRST

# Columns of a run of blocks.
_FIRST, _LAST, _COUNT, _CORES, _WEIGHT = range(5)
_LOT = 16  # blocks that are looked at together, most of them in vain


@by_pointer
class NodeChoice(NamedTuple):
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
    weight : int64 array (N,)
        Weights of blocks for one job alone.
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
    weight: Int64Array
    bits: UInt64Array


def new_choice(nodes: int) -> NodeChoice:
    """Return space for choosing among ``nodes`` nodes."""
    return NodeChoice(
        np.zeros(1, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.empty(-(-nodes // _LOT) * _LOT, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int64),
        np.empty((nodes, 5), np.int64),
        np.empty(nodes, np.int64),
        np.zeros(-(-nodes // WORD), np.uint64),
    )


@kernel
def choose(
    request: Int64Array,
    has: Int64Array,
    used: Int64Array,
    blocks: Blocks,
    weights: Int64Array,
    allowed: UInt8Array,
    choice: NodeChoice,
    version: int,
) -> int:
    """Choose nodes for a job.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has, used : int64 array (N, 4)
        What each node has, and what is taken of it; the first ones of blocks are looked at.
    blocks : Blocks
    weights : int64 array (N,)
        Of each block: lighter ones are taken first.
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    choice : NodeChoice
        ``parts``, ``node``, ``many`` and ``cores`` are filled in.
    version : int
        Of Slurm; see `policyfactory.engine.slurm.versions`.

    Returns
    -------
    int
        How many nodes were chosen; 0 if there are not enough.
    """
    # On idle cores it can only fail where they may be spread in several ways.
    spread = request[WHOLE] == 0 and request[NODE_CORES] == 0 and request[TOTAL_CORES] > request[NODES]
    for idle in range(int(version < SKIPS_IDLE and spread), -1, -1):
        chosen = _choose_among(request, has, used, blocks, weights, allowed, choice, version, idle == 1)
        if chosen == 0:
            return 0
    return chosen


@joined
def _choose_among(
    request: Int64Array,
    has: Int64Array,
    used: Int64Array,
    blocks: Blocks,
    weights: Int64Array,
    allowed: UInt8Array,
    choice: NodeChoice,
    version: int,
    idle: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Choose nodes as if no core were in use (``idle``), or of the cores that are not."""
    usable, size, most, nodes, cores = choice.usable, choice.size, 0, 0, 0
    of_each = request[NODE_CORES] if version >= OFFERS_TASKS and request[NODE_GPUS] == 0 else 0
    for block in range(blocks.size[BLOCKS]):
        node, count = blocks.first[block], blocks.nodes[block]
        usable[block] = cores_for(request, has[node], used[node], idle) if allowed[block] else 0
        if usable[block] > 0 and of_each > 0:
            usable[block] = of_each
        nodes += count if usable[block] > 0 else 0
        size[block] = usable[block]
        if request[NODE_GPUS] > 0:
            size[block] += has[node, GPUS] - used[node, GPUS]
            # Of a node with GPUs the cores beyond its own are hidden from the job: such nodes all look alike.
            if usable[block] > 0 and request[NODE_CORES] > 0:
                usable[block] = request[NODE_CORES]
        most = max(most, size[block])
        cores += usable[block] * count
    return _choose_usable(request, blocks, weights, choice, version, nodes, cores, most)


@kernel
def choose_by_cores(
    request: Int64Array,
    blocks: Blocks,
    weights: Int64Array,
    free: Int32Array,
    allowed: UInt8Array,
    choice: NodeChoice,
    version: int,
) -> int:
    """Choose nodes for a job that asks for cores alone, as `choose` does.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job: no GPUs and no memory.
    blocks : Blocks
    weights : int64 array (N,)
        Of each block: lighter ones are taken first.
    free : int32 array (N,)
        Cores that are free on each node of a block; -1 where a job shares its node with nobody.
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    choice : NodeChoice
        ``parts``, ``node``, ``many`` and ``cores`` are filled in.
    version : int
        Of Slurm; see `policyfactory.engine.slurm.versions`.

    Returns
    -------
    int
        How many nodes were chosen; 0 if there are not enough.
    """
    least, whole = max(request[NODE_CORES], 1), request[WHOLE] == 1
    usable, size, cores, count, end = choice.usable, choice.size, blocks.cores, blocks.nodes, blocks.size[BLOCKS]
    spread = version < SKIPS_IDLE and not whole and request[NODE_CORES] == 0 and request[TOTAL_CORES] > request[NODES]
    # With as many nodes as cores it fails neither way if there are enough of both.
    for idle in range(int(spread and request[MOST_NODES] < request[TOTAL_CORES]), -1, -1):
        # Loops without branches inside: each is made of wide instructions.
        if idle:
            for block in range(end):
                usable[block] = cores[block] if allowed[block] != 0 and free[block] >= 0 else 0
        elif whole:
            for block in range(end):
                usable[block] = free[block] if allowed[block] != 0 and free[block] >= cores[block] else 0
        elif version >= OFFERS_TASKS and request[NODE_CORES] > 0:
            for block in range(end):
                usable[block] = least if allowed[block] != 0 and free[block] >= least else 0
        else:
            for block in range(end):
                usable[block] = free[block] if allowed[block] != 0 and free[block] >= least else 0
        nodes = total = most = 0
        for block in range(end):
            nodes += count[block] if usable[block] > 0 else 0
            total += np.int64(usable[block]) * count[block]
            most = max(most, usable[block])
            size[block] = usable[block]
        chosen = _choose_usable(request, blocks, weights, choice, version, nodes, total, most)
        if chosen == 0:
            return 0
    return chosen


@step
def _choose_usable(
    request: Int64Array,
    blocks: Blocks,
    weights: Int64Array,
    choice: NodeChoice,
    version: int,
    nodes: int,
    cores: int,
    most: int,
) -> int:
    """Choose among the usable nodes: so many, of so many cores, the largest of a size."""
    if version >= TAKES_FIRST and request[MOST_NODES] == 1:
        return _choose_first(request, blocks, weights, choice)
    usable, size, skipped = choice.usable, choice.size, choice.skipped
    if nodes < request[NODES] or cores < request[TOTAL_CORES]:
        return 0
    for block in range(blocks.size[BLOCKS]):
        skipped[block] = 0
    chosen, least, again = 0, 1, True
    while True:
        if again:
            chosen = _choose(request, blocks, weights, choice)
        if chosen > 0 or nodes <= request[NODES] or least >= most:
            return chosen
        # A greedy choice may use up the most nodes allowed on small ones: without the smallest it is made again.
        removed = 0
        for block in range(blocks.size[BLOCKS]):
            if usable[block] > 0 and size[block] <= least and nodes > request[NODES]:
                gone = min(blocks.nodes[block] - skipped[block], nodes - request[NODES])
                skipped[block] += gone
                if skipped[block] == blocks.nodes[block]:
                    usable[block] = 0
                nodes -= gone
                removed += gone
        again = removed > 0 or least == 1
        least += 1


@joined
def _choose_first(request: Int64Array, blocks: Blocks, weights: Int64Array, choice: NodeChoice) -> int:
    """Choose the first node of the lightest that suffices alone; return 0 if none does."""
    best, usable = -1, choice.usable
    for block in range(blocks.size[BLOCKS]):
        if usable[block] >= max(request[TOTAL_CORES], 1) and (best < 0 or weights[block] < weights[best]):
            best = block
    if best < 0:
        return 0
    cores = request[NODE_CORES] if request[NODE_CORES] > 0 else request[TOTAL_CORES]
    choice.node[0], choice.many[0], choice.parts[0] = blocks.first[best], 1, 1
    choice.cores[0] = usable[best] if request[WHOLE] == 1 else cores
    return 1


@joined
def _choose(request: Int64Array, blocks: Blocks, weights: Int64Array, choice: NodeChoice) -> int:
    """Choose among the usable nodes, whose cores stay as they are; return how many."""
    runs, usable, skipped, part = choice.runs, choice.usable, choice.skipped, -1
    count = _find_runs(blocks, weights, choice)
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
            for offset in range(many, here):
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
                    choice.node[part], choice.many[part] = blocks.first[block] + skipped[block] + offset, 0
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


@joined
def _find_runs(blocks: Blocks, weights: Int64Array, choice: NodeChoice) -> int:
    """Note the runs of usable nodes of one weight; return how many there are."""
    usable, skipped, runs = choice.usable, choice.skipped, choice.runs
    previous, weight, nodes, cores, count = -2, 0, 0, 0, -1
    lots = (blocks.size[BLOCKS] + _LOT - 1) // _LOT
    for block in range(blocks.size[BLOCKS], _LOT * lots):
        usable[block] = 0
    for lot in range(lots):
        some = np.int32(0)
        for offset in range(_LOT):
            some |= usable[_LOT * lot + offset]
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


@joined
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


@joined
def _single(usable: Int32Array, first: int, last: int, cores: int) -> int:
    """Return the block of a run that has the nodes with just enough cores; -1 if none has."""
    best = -1
    for block in range(first, last + 1):
        if usable[block] >= max(cores, 1) and (best < 0 or usable[block] < usable[best]):
            best = block
            if usable[best] == cores:
                break
    return best


# Blocks ---------------------------------------------------------------------------------------------------------------

# Nodes that follow each other and are alike, which passes under Slurm's rules look at as one.
#
# A machine of thousands of nodes has a hundred jobs or two, most of them on nodes that follow each other: what nodes
# have, what is taken of them and when it is free again differs between jobs, and hardly within one. So the passes walk
# along blocks of nodes. What stays as it is from pass to pass is kept by node, and asked of the first one of a block;
# what a pass makes itself is kept by block.
#
# Where a loop takes its time, what it counts is unsigned: of other numbers it is asked each time whether they are less
# than 0 and count from the end.
#
# A block is split where a choice takes a part of it. Before the next pass that finds anything new, the nodes are
# divided again.


# Places in `Blocks.size`: the blocks; the words of bits that a set of them takes; whether it is listed which nodes the
# running jobs give back (`RunState.given`); the partition whose blocks are in the first mask and set, -1 for none.
BLOCKS, WORDS, LISTED, MEMBERS_OF = range(4)
_MASKS, _SETS = 4, 3
WORD = 64  # blocks in a word of bits
_BYTE = 8  # bits


@by_pointer
class Blocks(NamedTuple):
    """N nodes in B blocks; arrays by block are as long as if each node were one.

    Parameters
    ----------
    size : int64 array (4,)
        See the names of its places.
    edge : int32 array (N + 1,)
        Why a block has to begin at a node: how many runs of a running job's nodes do, or have ended before it, and one
        more where the node itself is not as the one before it.
    begins : uint8 array (N,)
        1 for a node at which a block begins; 0 up to a whole word beyond the last node.
    eight_begins : uint64 array (N / 8,)
        The same, eight nodes in each.
    first : int64 array (N,)
        The first node of each block, ascending.
    nodes : int32 array (N,)
        Its nodes.
    of : int64 array (N,)
        The block that begins at a node; of other nodes one that once did, if any.
    weight : int64 array (N,)
        That of each of its nodes.
    cores, free : int32 array (N,)
        Of each node of a block: its cores; those that are free, -1 where a job shares its node with nobody.
    ahead : int32 array (N,)
        ``free`` as it will be.
    soon : int64 array (N,)
        When the first of the jobs on a block is believed to end (s).
    mask : uint8 array (4, N)
        1 for a block of a kind; 0 up to a whole word of bits beyond the last block.
    eights : uint64 array (4, N / 8)
        The same, eight blocks in each.
    bits : uint64 array (3, N / 64)
        Sets of blocks, a bit for each.
    bytes_ : uint8 array (3, N / 8)
        The same, byte by byte.
    """

    size: Int64Array
    edge: Int32Array
    begins: UInt8Array
    eight_begins: UInt64Array
    first: Int64Array
    nodes: Int32Array
    of: Int64Array
    weight: Int64Array
    cores: Int32Array
    free: Int32Array
    ahead: Int32Array
    soon: Int64Array
    mask: UInt8Array
    eights: UInt64Array
    bits: UInt64Array
    bytes_: UInt8Array


def new_blocks(columns: Int64Array) -> Blocks:
    """Return space for the blocks of N nodes.

    Parameters
    ----------
    columns : int64 array (C, N)
        What nodes have, and where they belong: a block has those that follow each other and agree in all of it.
    """
    nodes = columns.shape[1]
    edge = np.ones(nodes + 1, np.int32)
    edge[1:-1] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    words = -(-nodes // WORD)
    begins = np.zeros(-(-nodes // _BYTE) * _BYTE, np.uint8)
    mask, bits = np.zeros((_MASKS, words * WORD), np.uint8), np.zeros((_SETS, words), np.uint64)
    return Blocks(
        np.zeros(4, np.int64),
        edge,
        begins,
        begins.view(np.uint64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int64),
        mask,
        mask.view(np.uint64),
        bits,
        bits.view(np.uint8),
    )


@kernel
def divide(
    blocks: Blocks,
    cores: Int32Array,
    weight: Int64Array,
    free: Int32Array,
    up: UInt8Array,
    completing: Int32Array,
) -> None:
    """Divide the nodes into blocks.

    Parameters
    ----------
    blocks : Blocks
        Filled in by its ``edge``; masks and sets are not.
    cores : int32 array (N,)
        Of each node.
    weight : int64 array (N,)
        Of each node.
    free : int32 array (N,)
        Of each node, -1 where a job shares it with nobody.
    up : uint8 array (N,)
        1 for a node that takes jobs.
    completing : int32 array (N,)
        How many jobs have ended there and are being cleaned up.
    """
    begins, nodes, last = blocks.begins, len(free), 0
    # Without branches inside, the loop is made of wide instructions.
    for node in range(1, nodes):
        begins[node] = (blocks.edge[node] > 0) | (up[node] != up[node - 1]) | (completing[node] != completing[node - 1])
    begins[0] = 1
    for eight in range(len(blocks.eight_begins)):
        if blocks.eight_begins[eight] == 0:
            continue
        for node in range(_BYTE * eight, _BYTE * (eight + 1)):
            if begins[node] == 1:
                blocks.first[last], blocks.of[node], blocks.weight[last] = node, last, weight[node]
                blocks.cores[last], blocks.free[last] = cores[node], free[node]
                last += 1
    for block in range(last - 1):
        blocks.nodes[block] = blocks.first[block + 1] - blocks.first[block]
    blocks.nodes[last - 1] = nodes - blocks.first[last - 1]
    blocks.size[BLOCKS], blocks.size[WORDS], blocks.size[LISTED] = last, (last - 1) // WORD + 1, 0


@inlined
def count_nodes(blocks: Blocks, mask: UInt8Array) -> int:
    """Return how many nodes the blocks of a mask have."""
    count = np.int32(0)
    for block in range(blocks.size[BLOCKS]):
        count = np.int32(count + (blocks.nodes[block] if mask[block] != 0 else 0))
    return int(count)


@joined
def block_at(blocks: Blocks, node: int) -> int:
    """Return the block of a node."""
    first = blocks.of[node]
    if first < blocks.size[BLOCKS] and blocks.first[first] == node:
        return int(first)
    low, high = 0, blocks.size[BLOCKS]
    while high - low > 1:
        middle = (low + high) // 2
        if blocks.first[middle] <= node:
            low = middle
        else:
            high = middle
    return low


@inlined
def move_on(sets: UInt64Array, row: int, block: int, words: int, each: int) -> None:
    """Put a copy of a block behind it in one of some sets (k, words), so that those behind it move on by one.

    A block takes ``each`` bits of a word, the first one the lowest.
    """
    in_word, by, over = WORD // each, np.uint64(each), np.uint64(WORD - each)
    of, all_bits = block // in_word, np.uint64(0xFFFFFFFFFFFFFFFF)
    for word in range(words - 1, of, -1):
        here, before = np.uint64(word), np.uint64(word - 1)
        sets[row, here] = (sets[row, here] << by) | (sets[row, before] >> over)
    # The bits up to the block's stay where they are.
    stay = all_bits >> np.uint64(WORD - each - each * (block % in_word))
    sets[row, of] = (sets[row, of] & stay) | ((sets[row, of] << by) & ~stay)


@inlined
def pack(eights: UInt64Array, bits: UInt64Array, words: int) -> None:
    """Fill in a set of so many words of bits with the blocks of a mask, eight in each of its words."""
    for word in range(words):
        packed = np.uint64(0)
        for index in range(_BYTE):
            # Bits of neighbouring bytes come together: two, then four, then eight.
            byte = eights[_BYTE * word + index]
            byte = (byte | (byte >> np.uint64(7))) & np.uint64(0x0003000300030003)
            byte = (byte | (byte >> np.uint64(14))) & np.uint64(0x0000000F0000000F)
            byte = (byte | (byte >> np.uint64(28))) & np.uint64(0xFF)
            packed |= byte << np.uint64(_BYTE * index)
        bits[word] = packed


@joined
def unpack(bytes_: UInt8Array, eights: UInt64Array, words: int) -> None:
    """Fill in a mask with the blocks of a set of so many words of bits, given as bytes: the reverse of `pack`."""
    for index in range(_BYTE * words):
        # Byte i keeps bit i, which is then moved to its top and from there to its bottom.
        spread = (np.uint64(bytes_[index]) * np.uint64(0x0101010101010101)) & np.uint64(0x8040201008040201)
        top = spread + np.uint64(0x7F7F7F7F7F7F7F7F)
        eights[index] = (top >> np.uint64(7)) & np.uint64(0x0101010101010101)


@step
def split_block(blocks: Blocks, block: int, nodes: int) -> None:
    """Split a block in two.

    Parameters
    ----------
    blocks : Blocks
        Those behind it move on by one.
    block, nodes : int
        Its number; how many nodes stay in it.
    """
    size = blocks.size[BLOCKS]
    if size == blocks.size[WORDS] * WORD:
        words = blocks.size[WORDS]
        for row in range(_MASKS):
            for index in range(_BYTE):
                blocks.eights[row, _BYTE * words + index] = np.uint64(0)
        for row in range(_SETS):
            blocks.bits[row, words] = np.uint64(0)
        blocks.size[WORDS] += 1
    for column in (blocks.first, blocks.weight, blocks.soon):
        for later in range(size, block, -1):
            column[np.uint64(later)] = column[np.uint64(later - 1)]
    for small in (blocks.nodes, blocks.cores, blocks.free):
        for later in range(size, block, -1):
            small[np.uint64(later)] = small[np.uint64(later - 1)]
    for row in range(_MASKS):
        move_on(blocks.eights, row, block, size // _BYTE + 1, _BYTE)
    for row in range(_SETS):
        move_on(blocks.bits, row, block, blocks.size[WORDS], 1)
    blocks.first[block + 1] += nodes
    blocks.nodes[block + 1] -= nodes
    blocks.nodes[block] = nodes
    for later in range(block + 1, size + 1):
        blocks.of[np.uint64(blocks.first[np.uint64(later)])] = later
    blocks.size[BLOCKS] = size + 1


@step
def mark_edges(blocks: Blocks, nodes: Int64Array, cores: Int64Array, begin: int, end: int, sign: int) -> None:
    """Note where runs of a job's nodes begin and end, or forget it.

    Parameters
    ----------
    blocks : Blocks
        Its ``edge`` is changed.
    nodes, cores : int64 array
        The nodes of jobs, and the job's cores there.
    begin, end : int
        Where the job's are in these arrays.
    sign : int
        1: note, -1: forget.
    """
    for entry in range(begin, end):
        if entry == begin or nodes[entry] != nodes[entry - 1] + 1 or cores[entry] != cores[entry - 1]:
            blocks.edge[nodes[entry]] += sign
            if entry > begin:
                blocks.edge[nodes[entry - 1] + 1] += sign
    if end > begin:
        blocks.edge[nodes[end - 1] + 1] += sign


# What a job asks of its nodes under Slurm's rules ---------------------------------------------------------------------

# What a job asks of its nodes under Slurm's rules, and what it takes of them: columns, cores, MB, GPUs.


# Columns of a request: nodes at least and at most, cores in all, cores of each node where they are asked for by node (0
# where not); MB of each node (-1: all that it has), MB of each core; GPUs of each node; 1 if nodes are not shared.
NODES, MOST_NODES, TOTAL_CORES, NODE_CORES, NODE_MEMORY, CORE_MEMORY, NODE_GPUS, WHOLE = range(8)

# Columns of what nodes have, and of what is taken of them; in place of the weight, the jobs there.
CORES, MEMORY, GPUS, WEIGHT = range(4)
JOBS = WEIGHT
# As many jobs does one count for that shares its nodes with nobody.
ALONE = 2**20


@inlined
def cores_for(
    request: Int64Array,
    has: Int64Array,
    used: Int64Array,
    idle: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Return how many cores of a node a job could have; 0 if it cannot use the node.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has, used : int64 array (4,)
        Of the node.
    idle : bool
        Whether its cores are looked at as if none were in use.
    """
    free, memory = has[CORES] - (0 if idle else used[CORES]), has[MEMORY] - used[MEMORY]
    if (
        used[JOBS] >= ALONE
        or (request[WHOLE] == 1 and used[JOBS] > 0)
        or has[GPUS] - used[GPUS] < request[NODE_GPUS]
        or memory < request[NODE_MEMORY]
        or (request[NODE_MEMORY] < 0 and used[MEMORY] > 0)
    ):
        return 0
    if request[CORE_MEMORY] > 0:
        most = memory // request[CORE_MEMORY]
        if request[WHOLE] == 1 and most < free:
            return 0
        free = min(free, most)
    return free if free >= max(request[NODE_CORES], 1) else 0


@inlined
def asks_cores_alone(request: Int64Array) -> bool:
    """Tell whether a request (8,) is for nothing but cores."""
    return bool(request[NODE_GPUS] <= 0 and request[NODE_MEMORY] == 0 and request[CORE_MEMORY] <= 0)


@inlined
def taken_memory(request: Int64Array, has: Int64Array, cores: int) -> int:
    """Return how many MB of a node a job takes that has ``cores`` cores there.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has : int64 array (4,)
        Of the node.
    cores : int
        Of the node, for the job.
    """
    if request[NODE_MEMORY] < 0:
        return int(has[MEMORY])
    return int(request[NODE_MEMORY] if request[NODE_MEMORY] > 0 else request[CORE_MEMORY] * cores)


@inlined
def taken_gpus(request: Int64Array, has: Int64Array) -> int:
    """Return how many GPUs of a node a job takes, which are all if it takes the whole node.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has : int64 array (4,)
        Of the node.
    """
    return int(has[GPUS] if request[WHOLE] == 1 else request[NODE_GPUS])


@step
def count_usable(request: Int64Array, blocks: Blocks, allowed: UInt8Array) -> tuple[int, int]:
    """Return how many of the allowed nodes a request can have by their free cores, and how many cores those have."""
    cores, free, count = blocks.cores, blocks.free, blocks.nodes
    least, nodes, total = max(request[NODE_CORES], 1), 0, 0
    # Two loops without branches inside: each is made of wide instructions.
    if request[WHOLE] == 1:
        for block in range(blocks.size[BLOCKS]):
            usable = allowed[block] != 0 and free[block] >= cores[block]
            nodes += count[block] if usable else 0
            total += np.int64(free[block]) * count[block] if usable else 0
    else:
        for block in range(blocks.size[BLOCKS]):
            usable = allowed[block] != 0 and free[block] >= least
            nodes += count[block] if usable else 0
            total += np.int64(free[block]) * count[block] if usable else 0
    return nodes, total


@joined
def could_start(request: Int64Array, blocks: Blocks, allowed: UInt8Array, time: int) -> bool:
    """Tell whether a request could be met at a time if each job there ended with the first one of its block.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    blocks : Blocks
        What is given back is listed (`list_given`).
    allowed : uint8 array (N,)
        1 for the blocks to choose among.
    time : int
        Seconds.
    """
    cores, free, count, soon = blocks.cores, blocks.free, blocks.nodes, blocks.soon
    whole, least = request[WHOLE] == 1, max(request[NODE_CORES], 1)
    nodes = total = np.int32(0)
    for block in range(blocks.size[BLOCKS]):
        # Both are read before one is chosen, or they would be gathered one by one.
        all_of, now_free = cores[block], free[block]
        have = all_of if soon[block] <= time else now_free
        usable = allowed[block] != 0 and have >= (all_of if whole else least)
        nodes = np.int32(nodes + (count[block] if usable else 0))
        total = np.int32(total + (np.int32(have * count[block]) if usable else 0))
    return bool(nodes >= request[NODES] and total >= request[TOTAL_CORES])
