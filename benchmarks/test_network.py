"""Decisions per CPU second of a kernel network on whole logs under EASY, beside a formula with w in the same run.

    pytest benchmarks/test_network.py --benchmark-enable

The network is that of the SC'20 paper on the six standard inputs (6-32-16-8-1), of random weights: every job that waits
at a pass is scored by it, however long the queue. Each start of a job is a decision. The formula is the sum of the same
inputs, so that the difference is what the layers cost.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from test_easy import read

from floors import record
from naive.network import random_network
from policyfactory.policy.network import STANDARD_INPUTS
from policyfactory.policy.policy import Policy
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload

POLICIES = {
    "formula with w": Policy("INPUTS", " + ".join(f"({formula})" for formula in STANDARD_INPUTS)),
    **{
        f"network 6-32-16-8-1, seed {seed}": Policy.from_network(random_network(seed, (6, 32, 16, 8, 1)))
        for seed in (1, 2)
    },
}
# Decisions per CPU second that the fastest of the rounds has to reach.
FLOOR = 50_000.0


@pytest.fixture(scope="module", params=["KTH-SP2", "SDSC-BLUE"])
def workload(request: pytest.FixtureRequest) -> Workload:
    return read(str(request.param))


@pytest.mark.benchmark(group="kernel network on whole logs", timer=time.process_time)
@pytest.mark.parametrize("name", POLICIES)
def test_whole_log(benchmark: Any, workload: Workload, name: str) -> None:
    policy = POLICIES[name]
    if benchmark.enabled:
        simulate(workload.select(np.arange(100)), policy)
    benchmark.pedantic(simulate, (workload, policy), rounds=5)
    if benchmark.enabled:
        rate = len(workload) / benchmark.stats.stats.min
        benchmark.extra_info["decisions per CPU second"] = round(rate)
        floor = FLOOR / 1e6 if workload.name == "KTH-SP2" and policy.network is not None else None
        record("networks", f"{workload.name}, {name}", rate / 1e6, "M decisions/CPU s", floor=floor)
