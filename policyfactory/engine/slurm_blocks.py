"""Blocks: nodes that follow each other and are alike, which passes under Slurm's rules look at as one.

A machine of thousands of nodes has a hundred jobs or two, most of them on nodes that follow each other: what nodes
have, what is taken of them and when it is free again differs between jobs, and hardly within one. So the passes walk
along blocks of nodes. What stays as it is from pass to pass is kept by node, and asked of the first one of a block;
what a pass makes itself is kept by block.

Where a loop takes its time, what it counts is unsigned: of other numbers it is asked each time whether they are less
than 0 and count from the end.

A block is split where a choice takes a part of it. Before the next pass that finds anything new, the nodes are divided
again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import Int32Array, Int64Array, UInt8Array, UInt64Array
from policyfactory.core.jit import inlined, kernel, step

__all__ = [
    "BLOCKS",
    "LISTED",
    "MEMBERS_OF",
    "WORD",
    "WORDS",
    "Blocks",
    "block_at",
    "count_nodes",
    "divide",
    "mark_edges",
    "move_on",
    "new_blocks",
    "pack",
    "split_block",
    "unpack",
]

# Places in `Blocks.size`: the blocks; the words of bits that a set of them takes; whether it is listed which nodes the
# running jobs give back (`Run.given`); the partition whose blocks are in the first mask and set, -1 for none.
BLOCKS, WORDS, LISTED, MEMBERS_OF = range(4)
_MASKS, _SETS = 4, 3
WORD = 64  # blocks in a word of bits
_BYTE = 8  # bits


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


@inlined
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
        for at in range(_BYTE):
            # Bits of neighbouring bytes come together: two, then four, then eight.
            byte = eights[_BYTE * word + at]
            byte = (byte | (byte >> np.uint64(7))) & np.uint64(0x0003000300030003)
            byte = (byte | (byte >> np.uint64(14))) & np.uint64(0x0000000F0000000F)
            byte = (byte | (byte >> np.uint64(28))) & np.uint64(0xFF)
            packed |= byte << np.uint64(_BYTE * at)
        bits[word] = packed


@inlined
def unpack(bytes_: UInt8Array, eights: UInt64Array, words: int) -> None:
    """Fill in a mask with the blocks of a set of so many words of bits, given as bytes: the reverse of `pack`."""
    for at in range(_BYTE * words):
        # Byte i keeps bit i, which is then moved to its top and from there to its bottom.
        spread = (np.uint64(bytes_[at]) * np.uint64(0x0101010101010101)) & np.uint64(0x8040201008040201)
        top = spread + np.uint64(0x7F7F7F7F7F7F7F7F)
        eights[at] = (top >> np.uint64(7)) & np.uint64(0x0101010101010101)


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
            for at in range(_BYTE):
                blocks.eights[row, _BYTE * words + at] = np.uint64(0)
        for row in range(_SETS):
            blocks.bits[row, words] = np.uint64(0)
        blocks.size[WORDS] += 1
    for column in (blocks.first, blocks.weight, blocks.soon):
        for at in range(size, block, -1):
            column[np.uint64(at)] = column[np.uint64(at - 1)]
    for small in (blocks.nodes, blocks.cores, blocks.free):
        for at in range(size, block, -1):
            small[np.uint64(at)] = small[np.uint64(at - 1)]
    for row in range(_MASKS):
        move_on(blocks.eights, row, block, size // _BYTE + 1, _BYTE)
    for row in range(_SETS):
        move_on(blocks.bits, row, block, blocks.size[WORDS], 1)
    blocks.first[block + 1] += nodes
    blocks.nodes[block + 1] -= nodes
    blocks.nodes[block] = nodes
    for at in range(block + 1, size + 1):
        blocks.of[np.uint64(blocks.first[np.uint64(at)])] = at
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
    for at in range(begin, end):
        if at == begin or nodes[at] != nodes[at - 1] + 1 or cores[at] != cores[at - 1]:
            blocks.edge[nodes[at]] += sign
            if at > begin:
                blocks.edge[nodes[at - 1] + 1] += sign
    if end > begin:
        blocks.edge[nodes[end - 1] + 1] += sign
