"""Which nodes Slurm's kernel chooses, beside the plain Slurm."""

from __future__ import annotations

import random

import numpy as np
import pytest

from naive import slurm_kernels as plain
from policyfactory.engine.slurm.nodes import ALONE, Blocks, choose, choose_by_cores, divide, new_blocks, new_choice


def draw(rng: random.Random) -> tuple[np.ndarray, np.ndarray, np.ndarray, Blocks, np.ndarray]:
    """Return a request, what nodes have, what is taken of them, their blocks, and in which of these to look."""
    count = rng.randint(1, 9)
    has = np.array(
        [
            [rng.choice((2, 4, 8)), rng.choice((1000, 2000)), rng.choice((0, 0, 2)), rng.choice((1, 1, 2))]
            for _ in range(count)
        ]
    )
    used = np.zeros((count, 4), dtype=np.int64)
    for node in range(count):
        kind = rng.choice(("free", "free", "shared", "whole"))
        if kind == "shared":
            cores = rng.randint(1, int(has[node, 0]))
            used[node] = cores, rng.choice((0, 100 * cores, 1000)), rng.randint(0, int(has[node, 2])), 1
        elif kind == "whole":
            used[node] = has[node, 0], has[node, 1], has[node, 2], ALONE
    # Of many nodes most are taken by a division, the others one by one.
    nodes = rng.randint(1, rng.choice((4, 60)))
    whole = int(rng.random() < 0.3)
    each = rng.choice((0, 0, 1, 2)) * (1 - whole)
    cores = each * nodes if each else rng.randint(nodes, 3 * nodes + 2)
    memory, core_memory = rng.choice(((0, 100), (500, 0), (-1, 0), (0, 400)))
    most = rng.choice((nodes, max(nodes, min(cores, 5)))) if not each else nodes
    gpus = rng.choice((0, 0, 0, 1, 2)) if each else 0
    request = np.array([nodes, most, cores, each, memory, core_memory, gpus, whole])
    alike = [rng.choice((1, 1, 2, 5, 40)) for _ in range(count)]
    has, used = np.repeat(has, alike, axis=0), np.repeat(used, alike, axis=0)
    blocks, cores = new_blocks(np.concatenate([has.T, used.T])), has[:, 0].astype(np.int32)
    free = np.where(used[:, 3] >= ALONE, -1, cores - used[:, 0]).astype(np.int32)
    divide(blocks, cores, has[:, 3], free, np.ones(len(has), np.uint8), np.zeros(len(has), np.int32))
    return request, has, used, blocks, np.array([rng.random() < 0.9 for _ in has], dtype=np.uint8)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_nodes_are_chosen(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(200):
        request, has, used, blocks, allowed = draw(rng)
        choice, by_plain = new_choice(len(has)), new_choice(len(has))
        weights, version = np.array([rng.choice((1, 1, 2)) for _ in has]), rng.choice((2205, 2411, 2605))
        chosen = choose(request, has, used, blocks, weights, allowed, choice, version)
        expected = plain.choose(request, has, used, blocks, weights, allowed, by_plain, version)
        assert chosen == expected, (request, has, used, allowed)
        assert not chosen or plain.parts(choice) == plain.parts(by_plain)
        found += chosen > 0
    assert 20 < found < 190


@pytest.mark.parametrize("seed", range(5))
def test_the_same_nodes_are_chosen_where_cores_alone_are_asked_for(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(200):
        request, has, used, blocks, allowed = draw(rng)
        request[4:7] = 0
        choice, by_plain = new_choice(len(has)), new_choice(len(has))
        weights, version = blocks.weight, rng.choice((2205, 2411, 2605))
        chosen = choose_by_cores(request, blocks, weights, blocks.free, allowed, choice, version)
        expected = plain.choose_by_cores(request, blocks, weights, blocks.free, allowed, by_plain, version)
        assert chosen == expected, (request, used, allowed)
        assert not chosen or plain.parts(choice) == plain.parts(by_plain)
        found += chosen > 0
    assert 20 < found < 190
