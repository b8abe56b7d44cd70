"""Runs in which the policy changes, against the plain simulator: thousands of random cases, timetables and steps."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.online import Entry, Job, easy_until, run_timetable, total_waits
from naive.online_cases import (
    FORMULAS,
    STATIC,
    TIMED,
    Extra,
    Shape,
    columns_of,
    own_order,
    plain_jobs,
    plain_rules,
    policy,
    random_rules,
    random_workload,
    score_of,
)
from policyfactory.engine.events import NEVER, Order, is_empty, new_jobs, new_state
from policyfactory.engine.switching import _part, _reset, new_run
from policyfactory.engine.switching import total_waits as fast_total_waits
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.simulation.tuning.tuner import SwitchingSimulation, simulate_periods
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from support import cases

SHAPES = (
    Shape(),
    Shape(jobs=60, machine=5, gap=3),
    Shape(jobs=90, machine=20, gap=2, longest=6),
    Shape(jobs=25, machine=3, gap=2, longest=4, ticks=4),
)
SWITCHED = {"static": STATIC, "timed": TIMED, "mixed": tuple(FORMULAS)}
WEEK = 7 * 86400


@dataclasses.dataclass(frozen=True)
class Case:
    """A workload, rules, and which policy is in force when."""

    workload: Workload
    policies: tuple[Policy, ...]
    rules: Rules
    choices: np.ndarray
    edges: np.ndarray
    extra: Extra


def random_case(rng: np.random.Generator, shape: Shape, formulas: tuple[str, ...]) -> Case:
    compatibility = "ocst" if rng.random() < 0.3 else "none"
    workload = random_workload(rng, dataclasses.replace(shape, overruns=compatibility == "none"))
    rules = random_rules(rng, "none" if rng.random() < 0.15 else "easy", compatibility)
    if compatibility == "none" and rng.random() < 0.5:
        # Then each policy has its own.
        rules = dataclasses.replace(rules, threshold=math.inf)
    own = (math.inf, 0.0, 3.0, 12.0)
    policies = tuple(
        dataclasses.replace(
            policy(str(text), "oldest-waiting" if rng.random() < 0.15 else "window-start"), threshold=rng.choice(own)
        )
        for text in rng.choice(formulas, rng.integers(1, 5))
    )
    periods = int(rng.integers(1, 9))
    latest = int(workload.submit[-1]) + 3 * shape.longest
    edges = np.sort(rng.integers(0, latest + 1, periods + 1))
    believed = np.maximum(rng.integers(0, shape.longest + 1, len(workload)), workload.run_time)
    tie_rank = rng.permutation(len(workload)) if compatibility == "ocst" and rng.random() < 0.5 else None
    choices = rng.integers(len(policies), size=periods)
    return Case(workload, policies, rules, choices, edges, Extra(believed, tie_rank))


def entry(case: Case, since: float, chosen: Policy) -> Entry:
    rules, workload = case.rules, case.workload
    threshold = chosen.threshold if math.isinf(rules.threshold) else rules.threshold
    own = own_order(chosen, rules)
    own_score = None if own is None else score_of(workload, own)
    return since, score_of(workload, chosen), threshold * workload.ticks, own_score


def plain(case: Case) -> list[Job]:
    begins = [-math.inf, *case.edges[1:-1].tolist()]
    timetable = [entry(case, since, case.policies[arm]) for since, arm in zip(begins, case.choices, strict=True)]
    jobs = plain_jobs(case.workload, case.rules, case.extra)
    with np.errstate(all="ignore"):
        run_timetable(jobs, case.workload.machine, timetable, **plain_rules(case.rules))
    return jobs


def simulation_of(case: Case) -> SwitchingSimulation:
    return SwitchingSimulation(case.workload, case.policies, case.rules, case.extra.prediction, case.extra.tie_rank)


def assert_same(case: Case) -> None:
    start, end, backfilled = columns_of(plain(case))
    simulation = simulation_of(case)
    simulation.run_timetable(case.choices, case.edges)
    words = f"{case.choices} {case.edges} {[p.formula for p in case.policies]} {case.rules}"
    np.testing.assert_array_equal(simulation.start, start, err_msg=words)
    np.testing.assert_array_equal(simulation.end, end, err_msg=words)
    np.testing.assert_array_equal(simulation.backfilled, backfilled, err_msg=words)


@pytest.mark.parametrize("formulas", SWITCHED.values(), ids=SWITCHED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_timetables(shape: Shape, formulas: tuple[str, ...]) -> None:
    rng = np.random.default_rng([51, SHAPES.index(shape), len(formulas)])
    for _ in cases(20, 120):
        assert_same(random_case(rng, shape, formulas))


@given(st.integers(0, 2**32), st.sampled_from(SHAPES), st.sampled_from(sorted(SWITCHED)))
def test_drawn_timetables(seed: int, shape: Shape, kind: str) -> None:
    assert_same(random_case(np.random.default_rng(seed), shape, SWITCHED[kind]))


def test_steps_are_the_timetable() -> None:
    rng = np.random.default_rng(52)
    for _ in cases(30, 150):
        case = random_case(rng, SHAPES[1], tuple(FORMULAS))
        whole, steps = simulation_of(case), simulation_of(case)
        whole.run_timetable(case.choices, case.edges)
        for arm, until in zip(case.choices, [*case.edges[1:-1].tolist(), 1 << 62], strict=True):
            # A stop at any instant changes nothing.
            steps.run(int(arm), int(steps.now + (min(until, 10**4) - steps.now) // 2))
            steps.run(int(arm), until)
        assert steps.finished
        np.testing.assert_array_equal(steps.start, whole.start)
        np.testing.assert_array_equal(steps.backfilled, whole.backfilled)
        # Once more from the beginning, in the same space.
        steps.reset()
        assert (steps.start == -1).all()
        assert not steps.finished
        steps.run_timetable(case.choices, case.edges)
        np.testing.assert_array_equal(steps.start, whole.start)


def test_one_policy_all_along_is_simulate() -> None:
    rng = np.random.default_rng(53)
    for _ in cases(30, 150):
        case = random_case(rng, SHAPES[0], tuple(FORMULAS))
        expected = simulate(case.workload, case.policies[0], case.rules, case.extra.prediction, case.extra.tie_rank)
        simulation = simulation_of(case)
        simulation.run_timetable(np.zeros_like(case.choices), case.edges)
        result = simulation.schedule("x")
        np.testing.assert_array_equal(result.start, expected.start)
        np.testing.assert_array_equal(result.end, expected.end)
        np.testing.assert_array_equal(result.backfilled, expected.backfilled)


@pytest.mark.parametrize("text", ["p*q", "-(w + p)/p"])
def test_nothing_from_the_stop_on_is_known(text: str) -> None:
    rng = np.random.default_rng(54)
    for _ in cases(20, 60):
        workload = random_workload(rng, SHAPES[1])
        until = int(rng.integers(0, workload.submit[-1] + 20))
        simulation = SwitchingSimulation(workload, [policy(text)])
        simulation.run(0, until)
        with np.errstate(all="ignore"):
            done = easy_until(plain_jobs(workload, Rules()), workload.machine, score_of(workload, policy(text)), until)
        starts = {job.id: job.start for job in done}
        expected = [starts.get(int(number), -1) for number in workload.job_id]
        assert simulation.start.tolist() == expected
        assert ((simulation.end >= 0) == (simulation.start >= 0)).all()
        assert simulation.now < until or not done


@pytest.mark.parametrize("formulas", [STATIC, TIMED], ids=["static", "timed"])
def test_periods_alone(formulas: tuple[str, ...]) -> None:
    rng = np.random.default_rng(55)
    for number in cases(24, 120):
        case = random_case(rng, SHAPES[number % 4], formulas)
        edges, workload = case.edges, case.workload
        extra = {"prediction": case.extra.prediction, "tie_rank": case.extra.tie_rank}
        costs = simulate_periods(workload, case.policies, case.rules, edges, **extra)
        assert costs.shape == (len(edges) - 1, len(case.policies))
        for arm, chosen in enumerate(case.policies):
            waits = plain_periods(case, chosen)
            assert (costs[:, arm] * workload.ticks).tolist() == waits, f"{chosen.formula} {case.rules}"


def test_a_period_begins_on_an_empty_machine_with_no_job_started() -> None:
    run = new_run(4, 5, 1)
    for column in (run.space.state, run.space.waiting, run.space.heap[0], run.space.running[0], run.sorted.queue[0]):
        column[:] = 3
    _reset(run, 5)
    assert run.space.state.tolist() == new_state(5).tolist()
    assert run.space.waiting[0] == run.space.heap[0, 0] == 0
    assert is_empty(run.space.running)
    assert is_empty(run.sorted.queue)
    jobs = new_jobs(*np.arange(16).reshape(4, 4), key=np.arange(4), backfill_key=np.arange(4))
    jobs.start[:], jobs.backfilled[:] = 7, True
    assert _part(jobs, 1, 3).submit.tolist() == [1, 2]
    # Of what an earlier run left, nothing counts; jobs of no period stay as they are.
    order = Order(NEVER, last_first=False, backfill=True, own_order=False)
    assert fast_total_waits(jobs, run, None, order, np.array([1, 3]), 50).tolist() == [0]
    assert jobs.start.tolist() == [7, 1, 2, 7]
    assert jobs.backfilled.tolist() == [True, False, False, True]
    # Of each period the last job has the better key, and both who wait are overdue: they go by their submissions.
    submit, ones = np.array([0, 1, 2, 100, 101, 102]), np.ones(6, dtype=np.int64)
    jobs = new_jobs(*(submit, 10 * ones, 10 * ones, ones), key=np.array([0, 9, 1, 0, 9, 1]), backfill_key=submit)
    jobs.start[:], jobs.backfilled[:] = 7, True
    order = Order(5, last_first=False, backfill=True, own_order=False)
    assert fast_total_waits(jobs, new_run(6, 1, 1), None, order, np.array([0, 3, 6]), 1).tolist() == [27, 27]
    assert jobs.start.tolist() == [0, 10, 20, 100, 110, 120]
    assert not jobs.backfilled.any()


def plain_periods(case: Case, chosen: Policy) -> list[int]:
    workload, edges = case.workload, case.edges
    submitted = [workload.submit[(workload.submit >= a) & (workload.submit < b)] for a, b in itertools.pairwise(edges)]
    # r counts from the first job of each period.
    since = [int(part.min()) if len(part) else 0 for part in submitted]
    _, _, threshold, own = entry(case, 0, chosen)
    waits = []
    for period, first in enumerate(since):
        if own is not None:
            own = score_of(workload, own_order(chosen, case.rules), first)
        with np.errstate(all="ignore"):
            jobs = plain_jobs(workload, case.rules, case.extra)
            rules = {**plain_rules(case.rules), "threshold": threshold, "backfill_score": own}
            score = score_of(workload, chosen, first)
            waits += total_waits(jobs, workload.machine, [score], edges[period : period + 2].tolist(), **rules)
    return waits


def test_weekly_switches_on_a_log(shared: Callable[[str], Path]) -> None:
    log = read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    arms = [resolve(name) for name in ("FCFS", "SPF", "SAF", "LEXP", "LAF", "WFP3")]
    rules = Rules(threshold=144000)
    edges = np.arange(0, int(log.submit[-1]) + WEEK, WEEK)
    choices = np.random.default_rng(56).integers(len(arms), size=len(edges) - 1)
    whole, steps = SwitchingSimulation(log, arms, rules), SwitchingSimulation(log, arms, rules)
    whole.run_timetable(choices, edges)
    ended = []
    for arm, since, until in zip(choices, edges, [*edges[1:-1].tolist(), 1 << 62], strict=False):
        steps.run(int(arm), int(until))
        ended.append(steps.ended(int(since), int(until)))
    np.testing.assert_array_equal(steps.start, whole.start)
    # What ended in a period is known after it: every job is counted once, and in the right one.
    assert sorted(np.concatenate(ended).tolist()) == list(range(len(log)))
    for rows, since, until in zip(ended[:-1], edges, edges[1:], strict=False):
        assert ((since <= whole.end[rows]) & (whole.end[rows] < until)).all()
    for arm, order in enumerate(arms):
        whole.reset()
        whole.run_timetable(np.full(len(choices), arm), edges)
        np.testing.assert_array_equal(whole.start, simulate(log, order, rules).start)
    costs = simulate_periods(log, arms, rules, edges)
    for period in (0, 7, len(choices) - 1):
        part = log.select((log.submit >= edges[period]) & (log.submit < edges[period + 1]))
        alone = [(simulate(part, order, rules).start - part.submit).sum() for order in arms]
        assert costs[period].tolist() == alone


def test_the_first_pass_of_a_new_order_is_made_in_full() -> None:
    # A has 2 of 3 processors until 10. First come, first served: B is reserved all at 10, C would outlast that.
    # Shortest first from 5 on: the next event is D's submission at 6, and C, the head now, fits.
    unknown = np.full(4, -1)
    submit, run_time, width = np.array([0, 1, 2, 6]), np.array([10, 30, 20, 50]), np.array([2, 3, 1, 3])
    workload = Workload("four", 3, np.arange(4), submit, run_time, run_time, width, unknown, unknown)
    simulation = SwitchingSimulation(workload, [policy("r"), policy("p")])
    simulation.run_timetable([0, 1], edges=[0, 5, 1000])
    assert simulation.start.tolist() == [0, 26, 6, 56]
