"""The kernels of the online simulator against the plain simulator: the same starts on thousands of random workloads."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive.online
from naive.online_cases import (
    FORMULAS,
    NETWORKS,
    STATIC,
    TIMED,
    Extra,
    Shape,
    columns_of,
    plain_jobs,
    plain_rules,
    plain_schedule,
    policy,
    random_rules,
    random_workload,
    score_of,
)
from policyfactory.engine.easy import easy
from policyfactory.engine.events import NEVER
from policyfactory.policy.policy import Policy
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.jobs import Workload
from support import cases, examples

SHAPES = (
    Shape(),
    Shape(jobs=60, machine=5, gap=3),
    Shape(jobs=40, machine=16, gap=4, longest=30, overruns=False),
    Shape(jobs=25, machine=3, gap=2, longest=4, ticks=4),
)


def assert_same(workload: Workload, policy_: Policy, rules: Rules, prediction: np.ndarray | None = None) -> None:
    start, end, backfilled = plain_schedule(workload, policy_, rules, Extra(prediction))
    schedule = simulate(workload, policy_, rules, prediction)
    case = f"{policy_.formula} {rules}"
    np.testing.assert_array_equal(schedule.start, start, err_msg=case)
    np.testing.assert_array_equal(schedule.end, end, err_msg=case)
    np.testing.assert_array_equal(schedule.backfilled, backfilled, err_msg=case)


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("formulas", [STATIC, TIMED], ids=["static", "timed"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_workloads(shape: Shape, formulas: tuple[str, ...], backfill: str) -> None:
    rng = np.random.default_rng([21, SHAPES.index(shape), len(formulas), len(backfill)])
    for _ in cases(*{"none": (6, 60), "easy": (15, 250), "conservative": (6, 60)}[backfill]):
        workload = random_workload(rng, shape)
        rule = "oldest-waiting" if rng.random() < 0.2 else "window-start"
        prediction = rng.integers(0, shape.longest + 1, len(workload))
        assert_same(workload, policy(str(rng.choice(formulas)), rule), random_rules(rng, backfill), prediction)


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("network", NETWORKS, ids=lambda policy: policy.formula)
def test_networks(network: Policy, backfill: str) -> None:
    rng = np.random.default_rng([24, NETWORKS.index(network), len(backfill)])
    for _ in cases(5, 40):
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        workload = random_workload(rng, shape)
        prediction = rng.integers(0, shape.longest + 1, len(workload))
        rules = random_rules(rng, backfill)
        assert_same(workload, network, rules, prediction)
        if backfill == "easy":
            own = dataclasses.replace(rules, backfill_policy=network)
            assert_same(workload, policy(str(rng.choice(list(FORMULAS)))), own, prediction)


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_jobs_that_are_cancelled_while_they_wait(backfill: str) -> None:
    rng, count = np.random.default_rng([25, len(backfill)]), 0
    # With longer queues than the others, and without overruns, after which each pass reserves anew.
    shapes = (*SHAPES, *[Shape(jobs=40, machine=16, gap=3, longest=80, overruns=False)] * 4)
    for _ in cases(120, 800):
        workload, text = random_workload(rng, shapes[int(rng.integers(len(shapes)))]), str(rng.choice(STATIC))
        rules = dataclasses.replace(random_rules(rng, backfill), decide_by="request", backfill_policy=None)
        cancelled = workload.submit + rng.integers(0, 40, len(workload))
        # In half of the cases many at one instant.
        cancelled += -cancelled % int(rng.choice([1, 16]))
        cancelled = np.where(rng.random(len(workload)) < 0.4, cancelled, NEVER)
        prepared, asked = prepare(workload, rules), policy(text)
        jobs = prepared.columns(prepared.keys(asked))
        given = cancelled if prepared.rank is None else cancelled[prepared.rank]
        easy(jobs, prepared.order(asked), workload.machine, given)
        plain = plain_jobs(workload, rules)
        when = {job.id: int(at) for job, at in zip(plain, cancelled, strict=True) if at < NEVER}
        with np.errstate(all="ignore"):
            naive.online.easy_cancelled(
                *(plain, workload.machine, score_of(workload, asked), when),
                **plain_rules(rules),
                threshold=rules.threshold * workload.ticks,
            )
        start, _, backfilled = columns_of(plain)
        rows = np.arange(len(workload)) if prepared.rank is None else prepared.rank
        expected = np.where(start[rows] < 0, NEVER, start[rows])
        np.testing.assert_array_equal(jobs.start, expected, err_msg=f"{text} {rules}")
        np.testing.assert_array_equal(jobs.backfilled, backfilled[rows])
        count += int((start < 0).sum())
    assert count > 20, "hardly a job was cancelled"


def test_what_a_cancellation_lets_start() -> None:
    def starts(jobs: list[tuple[int, int, int]], cancelled: dict[int, int], text: str, **rules: Any) -> list[int]:
        submit, time, processors = np.array(jobs).T
        none = np.full(len(jobs), -1)
        workload = Workload("hand", 3, np.arange(len(jobs)), submit, time, time, processors, none, none)
        prepared, asked = prepare(workload, Rules(**rules)), policy(text)
        columns = prepared.columns(prepared.keys(asked))
        when = [cancelled.get(job, NEVER) for job in range(len(jobs))]
        easy(columns, prepared.order(asked), workload.machine, np.array(when))
        return columns.start.tolist()

    # Job 1 needs all, and keeps job 3, which is too long to go ahead of it, from starting; 2 went ahead. Of those that
    # are cancelled at 50 none starts for the sake of another.
    jobs = [(0, 100, 2), (1, 100, 3), (2, 10, 1), (3, 200, 1)]
    assert starts(jobs, {}, "p*0 + r") == [0, 100, 2, 200]
    assert starts(jobs, {1: 50}, "p*0 + r") == [0, NEVER, 2, 50]
    assert starts(jobs, {1: 50, 2: 50, 3: 50}, "p*0 + r") == [0, NEVER, 2, NEVER]
    # Of the next head two processors are reserved, so that job 3 may have the third.
    jobs = [(0, 100, 2), (1, 100, 3), (2, 50, 2), (3, 200, 1)]
    assert starts(jobs, {1: 50}, "p*0 + r") == [0, NEVER, 100, 50]
    # Job 1 runs when it would be cancelled: nothing happens then, and job 2, overdue since 31, waits for the next pass.
    jobs = [(0, 100, 1), (0, 20, 2), (1, 200, 2), (2, 5, 3)]
    assert starts(jobs, {1: 50}, "p", threshold=30) == starts(jobs, {}, "p", threshold=30) == [0, 0, 100, 300]
    assert starts(jobs, {3: 50}, "p", threshold=30) == [0, 0, 50, NEVER]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    machine = draw(st.integers(1, 6))
    jobs = draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(1, 8), st.integers(1, machine)),
            min_size=1,
            max_size=14,
        )
    )
    gap, run_time, request, width = np.array(jobs).T
    unknown = np.full(len(jobs), -1)
    return Workload("drawn", machine, np.arange(len(jobs)), np.cumsum(gap), run_time, request, width, unknown, unknown)


@examples(300)
@given(
    workloads(),
    st.sampled_from(sorted(FORMULAS)),
    st.sampled_from(["none", "easy", "conservative"]),
    st.sampled_from(["fifo", "lifo"]),
    st.sampled_from([0, 1, 4, 9, float("inf")]),
)
def test_drawn_workloads(workload: Workload, text: str, backfill: str, ties: str, threshold: float) -> None:
    assert_same(workload, policy(text), Rules(backfill=backfill, ties=ties, threshold=threshold))


@pytest.mark.parametrize("text", STATIC)
def test_static_and_timed_engines_agree(text: str) -> None:
    # r counted from the oldest waiting job, or 0*w added, sends a static order through the engine for timed ones.
    rng = np.random.default_rng(22)
    same = Policy(name="timed", formula=f"{text} + 0*w")
    assert not same.is_static
    for backfill in ("none", "easy"):
        for shape in SHAPES:
            workload = random_workload(rng, shape)
            rules = Rules(backfill=backfill, threshold=20, ties="lifo")
            fast, slow = simulate(workload, policy(text), rules), simulate(workload, same, rules)
            np.testing.assert_array_equal(fast.start, slow.start)
            np.testing.assert_array_equal(fast.backfilled, slow.backfilled)


def test_queue_longer_than_the_spare_room() -> None:
    # Hundreds of jobs wait at once, come at either end of the queue and leave from its middle.
    rng = np.random.default_rng(23)
    n = 600
    unknown = np.full(n, -1)
    workload = Workload(
        "burst", 9, np.arange(n), np.sort(rng.integers(0, 300, n)), rng.integers(0, 20, n), rng.integers(1, 20, n),
        rng.integers(1, 6, n), unknown, unknown,
    )  # fmt: skip
    for text in ("r", "-r", "p*q", "-p", "-(w + p)/p"):
        assert_same(workload, policy(text), Rules(threshold=500))
