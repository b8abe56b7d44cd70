"""Blocks of nodes that are alike: how the nodes are divided, what a split leaves as it is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from naive import slurm_kernels as plain
from policyfactory.engine.slurm.nodes import (
    BLOCKS,
    WORDS,
    Blocks,
    block_at,
    count_nodes,
    divide,
    mark_edges,
    new_blocks,
    pack,
    split_block,
    unpack,
)
from policyfactory.engine.slurm.plan import begin_plan, new_plan, reserve, split_in_plan


def some_blocks(rng: random.Random, nodes: int) -> Blocks:
    """Return blocks of some nodes, divided by what they have."""
    cores = np.sort([rng.choice((2, 4, 8)) for _ in range(nodes)])
    blocks = new_blocks(cores[np.newaxis])
    small = cores.astype(np.int32)
    divide(blocks, small, cores, small, np.ones(nodes, np.uint8), np.zeros(nodes, np.int32))
    return blocks


def in_bytes(bits: np.ndarray) -> np.ndarray:
    """Return a set of blocks as a mask."""
    return np.unpackbits(bits.view(np.uint8), bitorder="little")


def by_node(blocks: Blocks, column: np.ndarray) -> list[int]:
    """Return what is known by block of each node."""
    size = blocks.size[BLOCKS]
    return np.repeat(column[:size], blocks.nodes[:size]).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_nodes_are_divided_where_they_or_their_jobs_differ(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        nodes = rng.randint(1, 40)
        cores = np.array([rng.choice((4, 4, 4, 8)) for _ in range(nodes)], dtype=np.int32)
        up = np.array([rng.random() < 0.9 for _ in range(nodes)], dtype=np.uint8)
        completing = np.array([rng.random() < 0.1 for _ in range(nodes)], dtype=np.int32)
        weight = np.array([rng.choice((1, 1, 2)) for _ in range(nodes)], dtype=np.int64)
        columns = np.stack([cores, weight]).astype(np.int64)
        free, job = cores.copy(), np.full(nodes, -1)
        fast, by_plain = new_blocks(columns), new_blocks(columns)
        held = []
        for number in range(rng.randint(0, 5)):
            idle = np.flatnonzero(job < 0)
            taken = np.array(rng.sample(idle.tolist(), rng.randint(0, len(idle))), dtype=np.int64)
            taken = np.sort(taken) if rng.random() < 0.8 else taken
            part = np.array([rng.choice((1, 1, 2)) for _ in taken], dtype=np.int64)
            job[taken], free[taken] = number, cores[taken] - part
            held.append((taken, part))
            for blocks in (fast, by_plain):
                mark_edges(blocks, taken, part, 0, len(taken), 1)
        divide(fast, cores, weight, free, up, completing)
        plain.divide(by_plain, cores, weight, free, up, completing)
        assert fast.size.tolist() == by_plain.size.tolist()
        size = fast.size[BLOCKS]
        for column in ("first", "nodes", "cores", "weight", "free"):
            assert getattr(fast, column)[:size].tolist() == getattr(by_plain, column)[:size].tolist()
        assert fast.of[fast.first[:size]].tolist() == list(range(size))
        alike = (cores, weight, free, job, up, completing)
        for begin, count in zip(fast.first[:size], fast.nodes[:size], strict=True):
            assert all(len(set(column[begin : begin + count].tolist())) == 1 for column in alike)
        for taken, part in held:
            mark_edges(fast, taken, part, 0, len(taken), -1)
        assert fast.edge.tolist() == new_blocks(columns).edge.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_a_split_changes_nothing_that_is_known_of_a_node(seed: int) -> None:
    rng = random.Random(seed)
    nodes = 150  # more than two words of bits
    blocks, plan = some_blocks(rng, nodes), new_plan(5, nodes)
    for row in range(len(blocks.mask)):
        blocks.mask[row, : blocks.size[BLOCKS]] = [rng.random() < 0.5 for _ in range(blocks.size[BLOCKS])]
    for row in range(len(blocks.bits)):
        pack(blocks.eights[row], blocks.bits[row], int(blocks.size[WORDS]))
    begin_plan(plan, 0, 6000, 60, np.array([2**64 - 1], dtype=np.uint64), int(blocks.size[WORDS]))
    reserve(plan, blocks.bits[1], 600, 1200, 60)

    def known() -> list[list[int]]:
        masks, sets = (
            [by_node(blocks, mask) for mask in blocks.mask],
            [by_node(blocks, in_bytes(s)) for s in blocks.bits],
        )
        columns = (blocks.cores, blocks.weight, blocks.free)
        plans = (*plan.free[: plan.size[0]], *plan.rest[: plan.size[0]])
        return [*masks, *sets, *(by_node(blocks, c) for c in columns), *(by_node(blocks, in_bytes(s)) for s in plans)]

    before = known()
    while blocks.size[BLOCKS] < nodes:
        splits = [block for block in range(blocks.size[BLOCKS]) if blocks.nodes[block] > 1]
        block = rng.choice(splits)
        stay = rng.randrange(1, int(blocks.nodes[block]))
        split_in_plan(plan, block, int(blocks.size[BLOCKS]))
        split_block(blocks, block, stay)
        size = blocks.size[BLOCKS]
        assert blocks.nodes[block] == stay
        assert blocks.first[:size].tolist() == [0, *np.cumsum(blocks.nodes[: size - 1]).tolist()]
        assert [block_at(blocks, int(node)) for node in blocks.first[:size]] == list(range(size))
        assert [block_at(blocks, node) for node in range(nodes)] == by_node(blocks, np.arange(nodes))
        assert blocks.of[blocks.first[:size]].tolist() == list(range(size))
        assert known() == before
        assert count_nodes(blocks, blocks.mask[0]) == sum(before[0])
        assert not blocks.mask[:, size : 64 * blocks.size[WORDS]].any()
        assert plan.size[1] == blocks.size[WORDS] == -(-size // 64)


@pytest.mark.parametrize("words", [1, 2, 5])
def test_masks_become_sets_and_masks_again(words: int) -> None:
    rng = np.random.default_rng(words)
    for part in (0.0, 0.1, 0.5, 1.0):
        mask = (rng.random(64 * words) < part).astype(np.uint8)
        bits, again = np.zeros(words, np.uint64), np.full(64 * words, 7, np.uint8)
        pack(mask.view(np.uint64), bits, words)
        assert in_bytes(bits).tolist() == mask.tolist()
        unpack(bits.view(np.uint8), again.view(np.uint64), words)
        assert again.tolist() == mask.tolist()
