"""Blocks of nodes that are alike: how the nodes are divided, what a split leaves as it is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from naive import slurm_kernels as plain
from policyfactory.engine.slurm_blocks import (
    BLOCKS,
    WORDS,
    Blocks,
    block_at,
    count_nodes,
    divide,
    mark_edges,
    new_blocks,
    split_block,
)
from policyfactory.engine.slurm_plan import begin_plan, new_plan, reserve, split_in_plan


def some_blocks(rng: random.Random, nodes: int = 40) -> Blocks:
    """Return blocks of some nodes, divided by what they have."""
    cores = np.sort([rng.choice((2, 4, 8)) for _ in range(nodes)])
    blocks = new_blocks(cores[np.newaxis])
    small = cores.astype(np.int32)
    divide(blocks, small, small, np.ones(nodes, np.uint8), np.zeros(nodes, np.int64))
    return blocks


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
        completing = np.array([rng.random() < 0.1 for _ in range(nodes)], dtype=np.int64)
        free, job = cores.copy(), np.full(nodes, -1)
        fast, by_plain = new_blocks(cores[np.newaxis].astype(np.int64)), new_blocks(cores[np.newaxis].astype(np.int64))
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
        divide(fast, cores, free, up, completing)
        plain.divide(by_plain, cores, free, up, completing)
        assert fast.size.tolist() == by_plain.size.tolist()
        size = fast.size[BLOCKS]
        for column in ("first", "nodes", "cores", "free"):
            assert getattr(fast, column)[:size].tolist() == getattr(by_plain, column)[:size].tolist()
        assert fast.of[fast.first[:size]].tolist() == list(range(size))
        alike = (cores, free, job, up, completing)
        for begin, count in zip(fast.first[:size], fast.nodes[:size], strict=True):
            assert all(len(set(column[begin : begin + count].tolist())) == 1 for column in alike)
        for taken, part in held:
            mark_edges(fast, taken, part, 0, len(taken), -1)
        assert fast.edge.tolist() == new_blocks(cores[np.newaxis].astype(np.int64)).edge.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_a_split_changes_nothing_that_is_known_of_a_node(seed: int) -> None:
    rng = random.Random(seed)
    blocks, plan = some_blocks(rng), new_plan(5, 40)
    for row in range(5):
        blocks.mask[row, : blocks.size[BLOCKS]] = [rng.random() < 0.5 for _ in range(blocks.size[BLOCKS])]
    blocks.mask[4, :3] = 1
    begin_plan(plan, 0, 6000, 60, blocks.words[4], int(blocks.size[WORDS]))
    reserve(plan, blocks.words[1], 600, 1200, 60)
    while blocks.size[BLOCKS] < 40:
        masks = [by_node(blocks, mask) for mask in blocks.mask]
        cores = by_node(blocks, blocks.cores)
        planned = [by_node(blocks, record.view(np.uint8)) for record in plan.free[: plan.size[0]]]
        splits = [block for block in range(blocks.size[BLOCKS]) if blocks.nodes[block] > 1]
        block = rng.choice(splits)
        stay = rng.randrange(1, int(blocks.nodes[block]))
        split_in_plan(plan, block, int(blocks.size[BLOCKS]))
        split_block(blocks, block, stay)
        size = blocks.size[BLOCKS]
        assert blocks.nodes[block] == stay
        assert blocks.first[:size].tolist() == [0, *np.cumsum(blocks.nodes[: size - 1]).tolist()]
        assert [block_at(blocks, int(node)) for node in blocks.first[:size]] == list(range(size))
        assert blocks.of[blocks.first[:size]].tolist() == list(range(size))
        assert [by_node(blocks, mask) for mask in blocks.mask] == masks
        assert by_node(blocks, blocks.cores) == cores
        assert [by_node(blocks, record.view(np.uint8)) for record in plan.free[: plan.size[0]]] == planned
        assert count_nodes(blocks, blocks.mask[0]) == sum(masks[0])
        assert not blocks.mask[:, size : 8 * blocks.size[WORDS]].any()
        assert plan.size[1] == blocks.size[WORDS] == -(-size // 8)
