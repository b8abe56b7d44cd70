"""Queueing theory through the engine: jobs of one processor, first come, first served, are an M/M/c queue."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policyfactory.evaluate.simulate import Rules, simulate
from policyfactory.policy.catalogue import resolve
from policyfactory.workload.jobs import Workload


def erlang_c(servers: int, load: float) -> float:
    """Return the probability that a job has to wait (load = arrival rate times mean service time)."""
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(load**k / math.factorial(k) for k in range(servers)) + last)


@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize(("servers", "utilisation"), [(1, 0.5), (4, 0.7), (16, 0.8)])
def test_mean_wait_of_mmc(servers: int, utilisation: float, backfill: str) -> None:
    # Wq = C(c, a) / (c mu - lambda). The estimate is the mean over 40 independent runs of 5,000 jobs, the first 1,000
    # left out; |t| with 39 degrees of freedom exceeds 4.5 with a chance of 6e-5 (6 cases: 4e-4). Seeded. A queue that
    # served one job too many or too few at a time would be off by 100 standard errors.
    rng = np.random.default_rng([41, servers])
    mean_service, n = 1_000_000, 5000
    means = []
    for _ in range(40):
        submit = np.cumsum(rng.exponential(mean_service / (servers * utilisation), n)).astype(np.int64)
        service = np.maximum(rng.exponential(mean_service, n).astype(np.int64), 1)
        unknown = np.full(n, -1)
        ones = np.ones(n, dtype=np.int64)
        workload = Workload("M/M/c", servers, np.arange(n), submit, service, service, ones, unknown, unknown)
        schedule = simulate(workload, resolve("FCFS"), Rules(backfill=backfill))
        means.append(float((schedule.start - submit)[1000:].mean()) / mean_service)
    expected = erlang_c(servers, servers * utilisation) / (servers * (1 - utilisation))
    t = (np.mean(means) - expected) / (np.std(means, ddof=1) / math.sqrt(len(means)))
    assert abs(t) < 4.5, (np.mean(means), expected)
