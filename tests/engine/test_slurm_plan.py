"""The plan of Slurm's backfilling pass, beside the plain Slurm."""

from __future__ import annotations

import random

import numpy as np
import pytest

from naive import slurm_kernels as plain
from policyfactory.engine.slurm.plan import begin_plan, is_reserved, new_plan, reserve, usable_nodes


def some(rng: random.Random, nodes: int, part: float) -> np.ndarray:
    """Return a part of some nodes as a set, of 192 nodes in all."""
    mask = np.zeros(192, dtype=np.uint8)
    mask[:nodes] = [rng.random() < part for _ in range(nodes)]
    return np.packbits(mask, bitorder="little").view(np.uint64)


@pytest.mark.parametrize("resolution", [1, 60, 300])
def test_plans_are_equal_step_by_step(resolution: int) -> None:
    rng = random.Random(resolution)
    for _ in range(30):
        count, now, window = rng.choice((rng.randint(2, 20), rng.randint(60, 190))), 1000 + rng.randrange(600), 7200
        fast, by_plain = new_plan(60, 192), new_plan(60, 192)
        up = some(rng, count, 0.9)
        begin_plan(fast, now, window, resolution, up, len(up))
        plain.begin_plan(by_plain, now, window, resolution, up, len(up))
        for _ in range(12):
            allowed, taken = some(rng, count, 0.7), some(rng, count, 0.4)
            start = now + rng.randrange(8000)
            end = start + rng.choice((60, 600, 3600, 86400))
            nodes, by_plain_nodes = np.empty_like(allowed), np.empty_like(allowed)
            past_end = rng.random() < 0.5
            later = usable_nodes(fast, start, end, allowed, nodes, past_end)
            assert later == plain.usable_nodes(by_plain, start, end, allowed, by_plain_nodes, past_end)
            assert nodes.tolist() == by_plain_nodes.tolist()
            first, last = start // resolution * resolution, end // resolution * resolution
            assert is_reserved(fast, taken, first, last) == plain.is_reserved(by_plain, taken, first, last)
            reserve(fast, taken, first, last, resolution)
            plain.reserve(by_plain, taken, first, last, resolution)
            assert plain.rows(fast) == plain.rows(by_plain)
            assert fast.size[0] == by_plain.size[0]
