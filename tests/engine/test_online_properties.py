"""What must be true of every schedule, checked on the schedule alone, without the simulator's bookkeeping."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest

from naive.online_cases import FORMULAS, Shape, policy, random_rules, random_workload
from policyfactory.simulation.simulate import Rules, Schedule, simulate

# No job of no run time: then every pass of an instant sees the same completions.
SHAPE = Shape(jobs=50, machine=10, gap=5, longest=15)


def schedules(seed: int, count: int, rules: Rules | None = None, text: str | None = None) -> Iterator[Schedule]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        workload = random_workload(rng, SHAPE)
        workload = dataclasses.replace(workload, run_time=np.maximum(workload.run_time, 1))
        order = policy(text or str(rng.choice(list(FORMULAS))))
        chosen = rules or random_rules(rng, str(rng.choice(["none", "easy", "conservative"])))
        prediction = rng.integers(1, SHAPE.longest + 1, len(workload))
        yield simulate(workload, order, chosen, prediction)


def in_use(schedule: Schedule, instant: int) -> int:
    """Return the processors in use just after ``instant``."""
    runs = (schedule.start <= instant) & (instant < schedule.end)
    return int(schedule.workload.processors[runs].sum())


def test_never_above_the_machine_and_never_before_submission() -> None:
    for schedule in schedules(31, 300):
        assert (schedule.start >= schedule.workload.submit).all()
        for instant in np.unique(schedule.start):
            assert in_use(schedule, instant) <= schedule.workload.machine


def test_every_job_runs_its_run_time_or_to_its_request() -> None:
    for schedule in schedules(32, 100):
        expected = schedule.workload.run_time
        if schedule.rules.overrun == "kill":
            expected = np.minimum(expected, schedule.workload.requested_time)
        np.testing.assert_array_equal(schedule.end - schedule.start, expected)


def test_strict_order_starts_no_job_before_one_ahead() -> None:
    for schedule in schedules(33, 100, Rules(backfill="none"), "r"):
        by_submission = np.lexsort((schedule.workload.job_id, schedule.workload.submit))
        assert (np.diff(schedule.start[by_submission]) >= 0).all()
        assert not schedule.backfilled.any()


@pytest.mark.parametrize("text", ["r", "p*q", "-p"])
def test_no_job_could_have_started_earlier(text: str) -> None:
    # After each pass: the head does not fit, and any other that fits would end after the shadow time and needs more
    # than the extra processors. Reckoned from the starts alone.
    passes = 0
    for schedule in schedules(34, 150, Rules(), text):
        workload = schedule.workload
        p, q, r = workload.requested_time, workload.processors, workload.submit - workload.submit[0]
        order = np.lexsort((workload.job_id, workload.submit, policy(text).scores(p, q, r)))
        for now in np.unique(np.concatenate((workload.submit, schedule.end))):
            waiting = [j for j in order if workload.submit[j] <= now < schedule.start[j]]
            if not waiting:
                continue
            passes += 1
            free = workload.machine - in_use(schedule, now)
            head = waiting[0]
            assert q[head] > free
            shadow, extra = reservation(schedule, now, head)
            for j in waiting[1:]:
                assert q[j] > free or (now + p[j] > shadow and q[j] > extra)
    assert passes > 1000


def reservation(schedule: Schedule, now: int, head: int) -> tuple[int, int]:
    """Return shadow time and extra processors at ``now``, from the starts and the requests."""
    workload = schedule.workload
    runs = np.flatnonzero((schedule.start <= now) & (now < schedule.end))
    ends = np.maximum(schedule.start[runs] + workload.requested_time[runs], now)
    free = workload.machine - int(workload.processors[runs].sum())
    for shadow in np.unique(ends):
        available = free + int(workload.processors[runs][ends <= shadow].sum())
        if available >= workload.processors[head]:
            return int(shadow), available - int(workload.processors[head])
    raise AssertionError("the head fits when all have ended")


@pytest.mark.parametrize("threshold", [math.inf, 12.0])
def test_head_starts_by_its_first_reservation(threshold: float) -> None:
    # Exact run times. Under FCFS the head stays the head; with a threshold that holds for the oldest overdue job,
    # whatever the policy: nothing that is submitted later delays it any more.
    text = "r" if math.isinf(threshold) else "-p"
    promised = 0
    for schedule in schedules(35, 200, Rules(decide_by="runtime", threshold=threshold), text):
        workload = schedule.workload
        exact = dataclasses.replace(workload, requested_time=workload.run_time)
        believed = dataclasses.replace(schedule, workload=exact)
        oldest_first = np.lexsort((workload.job_id, workload.submit))
        seen = set()
        for now in np.unique(np.concatenate((workload.submit, schedule.end))):
            waiting = [j for j in oldest_first if workload.submit[j] <= now < schedule.start[j]]
            if not waiting or waiting[0] in seen:
                continue
            head = waiting[0]
            if math.isinf(threshold) or now - workload.submit[head] > threshold:
                seen.add(head)
                promised += 1
                assert schedule.start[head] <= reservation(believed, now, head)[0]
    assert promised > 300


def test_theta_keeps_its_promise_in_strict_order() -> None:
    # Once a job has waited longer than theta, no job that was submitted later starts before it.
    theta, overdue_jobs = 15, 0
    for schedule in schedules(36, 200, Rules(backfill="none", threshold=theta), "-p"):
        workload = schedule.workload
        for j in np.flatnonzero(schedule.start - workload.submit > theta):
            overdue_jobs += 1
            later = (workload.submit > workload.submit[j]) & (schedule.start > workload.submit[j] + theta)
            assert (schedule.start[later] >= schedule.start[j]).all()
    assert overdue_jobs > 300


def test_conservative_fcfs_keeps_the_first_plan_with_exact_times() -> None:
    # Nothing ends early and nothing is put ahead, so no job starts later than when it was planned at its submission:
    # leaving out all later jobs changes nothing.
    for schedule in schedules(37, 60, Rules(backfill="conservative", decide_by="runtime"), "r"):
        workload = schedule.workload
        for submitted in range(1, len(workload), 5):
            order = np.lexsort((workload.job_id, workload.submit))[:submitted]
            rows = np.sort(order)
            part = simulate(workload.select(rows), policy("r"), schedule.rules)
            np.testing.assert_array_equal(part.start, schedule.start[rows])


def test_scheduling_does_not_depend_on_the_unit_of_time() -> None:
    rng = np.random.default_rng(38)
    for _ in range(100):
        workload = random_workload(rng, SHAPE)
        times = {name: getattr(workload, name) * 1000 for name in ("submit", "run_time", "requested_time")}
        fine = dataclasses.replace(workload, ticks=1000, **times)
        rules = random_rules(rng, "easy")
        rules = dataclasses.replace(rules, decide_by="request")
        order = policy(str(rng.choice(list(FORMULAS))))
        np.testing.assert_array_equal(simulate(fine, order, rules).start, simulate(workload, order, rules).start * 1000)


def test_order_of_rows_at_one_instant_does_not_matter() -> None:
    rng = np.random.default_rng(39)
    for _ in range(60):
        workload = random_workload(rng, SHAPE)
        shuffled = np.lexsort((rng.random(len(workload)), workload.submit))
        for backfill in ("easy", "conservative"):
            rules = Rules(backfill=backfill)
            schedule = simulate(workload, policy("p*q"), rules)
            other = simulate(workload.select(shuffled), policy("p*q"), rules)
            np.testing.assert_array_equal(other.start, schedule.start[shuffled])
            np.testing.assert_array_equal(other.backfilled, schedule.backfilled[shuffled])
