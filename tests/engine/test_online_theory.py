"""Queueing theory through the engine: jobs of one processor are an M/M/c, M/D/1 or priority M/G/1 queue."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
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


def run_queue(servers: int, submit: np.ndarray, service: np.ndarray, order: str) -> np.ndarray:
    ones, unknown = np.ones(len(submit), dtype=np.int64), np.full(len(submit), -1)
    ids = np.arange(len(submit))
    workload = Workload("a queue", servers, ids, submit, service, service, ones, unknown, unknown)
    return simulate(workload, resolve(order), Rules(backfill="none")).start - submit


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_mean_wait_of_md1(utilisation: float) -> None:
    # Pollaczek and Khinchine: Wq = rho / (2 (1 - rho)) service times. Intervals as above (2 cases: 1.2e-4).
    rng = np.random.default_rng([42, int(10 * utilisation)])
    service, n = 1_000_000, 5000
    means = []
    for _ in range(40):
        submit = np.cumsum(rng.exponential(service / utilisation, n)).astype(np.int64)
        waits = run_queue(1, submit, np.full(n, service), "FCFS")
        means.append(float(waits[1000:].mean()) / service)
    expected = utilisation / (2 * (1 - utilisation))
    t = (np.mean(means) - expected) / (np.std(means, ddof=1) / math.sqrt(len(means)))
    assert abs(t) < 4.5, (np.mean(means), expected)


def test_mean_waits_of_a_queue_with_priorities() -> None:
    # Cobham: jobs of three lengths, the shortest first, none interrupted. With s_k the load of the classes 1 to k and R
    # the mean rest of what is served, W_k = R / ((1 - s_(k-1)) (1 - s_k)). Within a class SPF is first come, first
    # served. Three values of |t| below 4.5: 1.8e-4. Under first come, first served all three would be R / (1 - s_3).
    lengths, shares, utilisation = np.array([1, 3, 10]) * 100_000, np.array([0.6, 0.3, 0.1]), 0.75
    rng = np.random.default_rng(43)
    n = 6000
    rate = utilisation / float(lengths @ shares)
    means = []
    for _ in range(40):
        submit = np.cumsum(rng.exponential(1 / rate, n)).astype(np.int64)
        kind = rng.choice(3, n, p=shares)
        waits = run_queue(1, submit, lengths[kind], "SPF")
        means.append([waits[1000:][kind[1000:] == one].mean() for one in range(3)])
    rest = rate * float((lengths**2) @ shares) / 2
    load = np.concatenate(([0.0], np.cumsum(rate * shares * lengths)))
    expected = rest / ((1 - load[:-1]) * (1 - load[1:]))
    t = (np.mean(means, axis=0) - expected) / (np.std(means, axis=0, ddof=1) / math.sqrt(len(means)))
    assert (np.abs(t) < 4.5).all(), (np.mean(means, axis=0), expected)
    # The last class waits long after the first: the order is by length indeed.
    assert expected[2] > 4 * expected[0]
