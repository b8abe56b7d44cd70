"""Blocks: nodes that follow each other and are alike, which passes under Slurm's rules look at as one.

A machine of thousands of nodes has a hundred jobs or two, most of them on nodes that follow each other: what nodes
have, what is taken of them and when it is free again differs between jobs, and hardly within one. So the passes walk
along blocks of nodes. What stays as it is from pass to pass is kept by node, and asked of the first one of a block;
what a pass makes itself is kept by block.

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
    "WORDS",
    "Blocks",
    "block_at",
    "count_nodes",
    "divide",
    "mark_edges",
    "move_on",
    "new_blocks",
    "split_block",
]

# Places in `Blocks.size`: the blocks; the words of eight that a mask of them takes; whether it is listed which nodes
# the running jobs give back (`Run.given_from`).
BLOCKS, WORDS, LISTED = range(3)
_MASKS = 5
_WORD = 8


class Blocks(NamedTuple):
    """N nodes in B blocks; arrays by block are as long as if each node were one.

    Parameters
    ----------
    size : int64 array (3,)
        See the names of its places.
    edge : int64 array (N + 1,)
        Why a block has to begin at a node: how many runs of a running job's nodes do, or have ended before it, and one
        more where the node itself is not as the one before it.
    first : int64 array (N,)
        The first node of each block, ascending.
    nodes : int32 array (N,)
        Its nodes.
    of : int64 array (N,)
        The block that begins at a node; of other nodes nothing is known.
    cores, free : int32 array (N,)
        Of each node of a block: its cores; those that are free, -1 where a job shares its node with nobody.
    ahead : int32 array (N,)
        ``free`` as it will be.
    soon : int64 array (N,)
        When the first of the jobs on a block is believed to end (s).
    mask : uint8 array (5, N)
        Blocks of different kinds; 0 up to a whole word beyond the last.
    words : uint64 array (5, N / 8)
        The same, eight blocks in each.
    """

    size: Int64Array
    edge: Int64Array
    first: Int64Array
    nodes: Int32Array
    of: Int64Array
    cores: Int32Array
    free: Int32Array
    ahead: Int32Array
    soon: Int64Array
    mask: UInt8Array
    words: UInt64Array


def new_blocks(columns: Int64Array) -> Blocks:
    """Return space for the blocks of N nodes.

    Parameters
    ----------
    columns : int64 array (C, N)
        What nodes have, and where they belong: a block has those that follow each other and agree in all of it.
    """
    nodes = columns.shape[1]
    edge = np.ones(nodes + 1, np.int64)
    edge[1:-1] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    mask = np.zeros((_MASKS, -(-nodes // _WORD) * _WORD), np.uint8)
    return Blocks(
        np.zeros(3, np.int64),
        edge,
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int64),
        mask,
        mask.view(np.uint64),
    )


@kernel
def divide(blocks: Blocks, cores: Int32Array, free: Int32Array, up: UInt8Array, completing: Int64Array) -> None:
    """Divide the nodes into blocks.

    Parameters
    ----------
    blocks : Blocks
        Filled in by its ``edge``; the masks are not.
    cores, free : int32 array (N,)
        Of each node.
    up : uint8 array (N,)
        1 for a node that takes jobs.
    completing : int64 array (N,)
        How many jobs have ended there and are being cleaned up.
    """
    last = -1
    for node in range(len(cores)):
        if last < 0 or blocks.edge[node] > 0 or up[node] != up[node - 1] or completing[node] != completing[node - 1]:
            last += 1
            blocks.first[last], blocks.nodes[last], blocks.of[node] = node, 0, last
            blocks.cores[last], blocks.free[last] = cores[node], free[node]
        blocks.nodes[last] += 1
    blocks.size[BLOCKS], blocks.size[WORDS], blocks.size[LISTED] = last + 1, (last + _WORD) // _WORD, 0


@inlined
def count_nodes(blocks: Blocks, mask: UInt8Array) -> int:
    """Return how many nodes the blocks of a mask have."""
    count = 0
    for block in range(blocks.size[BLOCKS]):
        count += blocks.nodes[block] if mask[block] != 0 else 0
    return count


@inlined
def block_at(blocks: Blocks, node: int) -> int:
    """Return the block of a node."""
    low, high = 0, blocks.size[BLOCKS]
    while high - low > 1:
        middle = (low + high) // 2
        if blocks.first[middle] <= node:
            low = middle
        else:
            high = middle
    return low


@inlined
def move_on(masks: UInt64Array, row: int, block: int, words: int) -> None:
    """Put a copy of a block behind it in one of some masks (k, N / 8), so that those behind it move on by one."""
    of, all_bits = block // _WORD, np.uint64(0xFFFFFFFFFFFFFFFF)
    for word in range(words - 1, of, -1):
        masks[row, word] = (masks[row, word] << np.uint64(8)) | (masks[row, word - 1] >> np.uint64(56))
    # The bytes up to the block's stay where they are; the lowest one is the first block.
    stay = all_bits >> np.uint64(56 - 8 * (block % _WORD))
    masks[row, of] = (masks[row, of] & stay) | ((masks[row, of] << np.uint64(8)) & ~stay)


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
    if size == blocks.size[WORDS] * _WORD:
        for row in range(_MASKS):
            blocks.words[row, blocks.size[WORDS]] = np.uint64(0)
        blocks.size[WORDS] += 1
    for at in range(size, block, -1):
        blocks.first[at], blocks.nodes[at] = blocks.first[at - 1], blocks.nodes[at - 1]
    for at in range(size, block, -1):
        blocks.cores[at], blocks.free[at] = blocks.cores[at - 1], blocks.free[at - 1]
        blocks.soon[at] = blocks.soon[at - 1]
    for row in range(_MASKS):
        move_on(blocks.words, row, block, blocks.size[WORDS])
    blocks.first[block + 1] += nodes
    blocks.nodes[block + 1] -= nodes
    blocks.nodes[block] = nodes
    for at in range(block + 1, size + 1):
        blocks.of[blocks.first[at]] = at
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
