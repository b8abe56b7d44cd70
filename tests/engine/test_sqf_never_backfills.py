"""Proposition 1 of Carastan-Santos et al., CCGrid 2019: under SQF without a threshold no job is backfilled.

The head of the queue does not fit, and no job behind it is smaller. A job of equal size does not fit either, so that
ties of sizes are no exception, whichever tie goes first. With a threshold the order is another one: large jobs that
waited too long come first, and smaller ones are started around them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.online_cases import Shape, random_workload
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

SQF = resolve("SQF")
SHAPE = Shape(jobs=40, machine=9, gap=4, longest=15)


@pytest.fixture(scope="module")
def kth(shared: Callable[[str], Path]) -> Workload:
    return read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))


@given(
    st.integers(0, 2**32),
    st.sampled_from(["fifo", "lifo"]),
    st.sampled_from(["request", "runtime"]),
    st.sampled_from(["run", "kill"]),
    st.sampled_from([None, "SPF", "SQF", "LPF"]),
)
def test_proposition_1(seed: int, ties: str, decide_by: str, overrun: str, order: str | None) -> None:
    workload = random_workload(np.random.default_rng(seed), SHAPE)
    shared_rules = {"ties": ties, "decide_by": decide_by, "overrun": overrun}
    own = None if order is None else resolve(order)
    easy = simulate(workload, SQF, Rules(backfill_policy=own, **shared_rules))  # type: ignore[arg-type]
    strict = simulate(workload, SQF, Rules(backfill="none", **shared_rules))  # type: ignore[arg-type]
    assert not easy.backfilled.any()
    np.testing.assert_array_equal(easy.start, strict.start)


def test_the_random_workloads_do_give_backfilling_a_chance() -> None:
    # Otherwise the test above could not fail.
    counts = [
        int(simulate(random_workload(np.random.default_rng(seed), SHAPE), resolve("FCFS")).backfilled.sum())
        for seed in range(50)
    ]
    assert sum(counts) > 50


def test_proposition_1_on_kth(kth: Workload) -> None:
    easy = simulate(kth, SQF)
    assert not easy.backfilled.any()
    np.testing.assert_array_equal(easy.start, simulate(kth, SQF, Rules(backfill="none")).start)
    assert simulate(kth, resolve("FCFS")).backfilled.sum() > 10_000


def test_with_a_threshold_sqf_does_backfill_on_kth(kth: Workload) -> None:
    # Three times the longest request, 7.5 days: the threshold of the paper's experiments.
    threshold = 3 * int(kth.requested_time.max())
    assert threshold == 648_000
    scheduled = simulate(kth, SQF, Rules(threshold=threshold))
    share = scheduled.backfilled.mean()
    assert 0.02 < share < 0.1
    # Around jobs that are over the threshold, which the order of sizes would have kept waiting.
    assert (scheduled.start - kth.submit).max() > threshold
