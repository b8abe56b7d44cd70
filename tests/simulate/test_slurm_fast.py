"""The fast Slurm against the plain one: when each job starts and ends, by which pass, how often its nodes failed."""

from __future__ import annotations

import random

import pytest

from naive import slurm_kernels as plain
from naive.slurm_random import BEGIN, FEATURES, draw
from naive.slurm_workload import run_fast

# What looking for GPUs does to the weights of nodes is left out of the kernel.
SAME = [name for name in FEATURES if name != "gpus"]
SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_sites_are_scheduled_alike(seed: int) -> None:
    rng = random.Random(seed)
    features = [name for name in SAME if rng.random() < 0.5] or ["plan"]
    site, jobs = draw(seed, 40, *features)
    assert run_fast(site, jobs, begin=BEGIN, turnround=seed % 3) == plain.slurm(site, jobs, BEGIN, seed % 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_long_queue_is_scheduled_alike(seed: int) -> None:
    # The nodes of running jobs are moved together several times.
    site, jobs = draw(seed, 200, "cores", "partitions", "age", "outages")
    assert run_fast(site, jobs, begin=BEGIN) == plain.slurm(site, jobs, BEGIN, 0)
