"""A schedule by weeks, how long a queue remembers, and what a lead-in leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.text import DAY, HOUR, WEEK
from policyfactory.policy.store import resolve
from policyfactory.simulation.metrics import (
    METRICS,
    correlation_time,
    measure,
    memory_of,
    weekly_sums,
    weeks_in,
    weeks_of,
)
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.jobs import Workload

MEANS = [name for name, metric in METRICS.items() if metric.of_each is not None]


def random_log(seed: int, days: float, jobs: int = 400, machine: int = 8) -> Workload:
    drawn = np.random.default_rng(seed)
    run_time = drawn.integers(1, 9 * HOUR, jobs)
    return Workload(
        "random",
        machine,
        job_id=np.arange(1, jobs + 1),
        submit=np.sort(drawn.integers(0, int(days * DAY), jobs)),
        run_time=run_time,
        requested_time=run_time + drawn.integers(0, HOUR, jobs),
        processors=drawn.integers(1, machine + 1, jobs),
        user=np.zeros(jobs, dtype=np.int64),
        start=np.full(jobs, -1),
    )


def plain_weeks(submit: list[int]) -> list[int]:
    """Return the week of each job; half a week that is left over belongs to the week before."""
    weeks = [(second - submit[0]) // WEEK for second in submit]
    rest = submit[-1] - submit[0] - weeks[-1] * WEEK
    if weeks[-1] > 0 and rest < WEEK / 2:
        weeks = [min(week, weeks[-1] - 1) for week in weeks]
    return weeks


@given(st.lists(st.integers(0, 40 * DAY), min_size=1, max_size=30))
def test_weeks_count_from_the_first_job(submit: list[int]) -> None:
    submit = sorted(submit)
    weeks = weeks_of(np.array(submit), 1).tolist()
    assert weeks == plain_weeks(submit)
    assert weeks_of(1000 * np.array(submit), 1000).tolist() == weeks
    assert weeks_in(submit[-1] - submit[0]) == weeks[-1] + 1


def test_the_means_over_the_jobs_are_sums_over_the_weeks() -> None:
    schedule = simulate(random_log(1, 31), resolve("SAF"), Rules())
    sums = weekly_sums(schedule, list(METRICS))
    assert sums is not None
    week = plain_weeks(schedule.workload.submit.tolist())
    assert sums.jobs.tolist() == [week.count(number) for number in range(week[-1] + 1)]
    values = measure(schedule)
    for at, name in enumerate(METRICS):
        if name in MEANS:
            assert sums.values[:, at].sum() / sums.weights[:, at].sum() == pytest.approx(values[name], rel=1e-12)
        else:
            assert np.isnan(sums.values[:, at]).all()
    # One of them job by job.
    own = [0.0] * len(sums.jobs)
    for number, bsld in zip(week, schedule.bounded_slowdown.tolist(), strict=True):
        own[number] += bsld
    assert sums.values[:, list(METRICS).index("mean_bsld")].tolist() == pytest.approx(own)


def test_the_means_over_the_jobs_are_these() -> None:
    means = {name for name in METRICS if name.startswith("mean_")}
    assert means | {"area_weighted_response", "area_weighted_wait"} == set(MEANS)


def test_less_than_two_weeks_are_none() -> None:
    assert weekly_sums(simulate(random_log(2, 10), resolve("FCFS"), Rules()), ["mean_bsld"]) is None
    assert weekly_sums(simulate(random_log(2, 11), resolve("FCFS"), Rules()), ["mean_bsld"]) is not None


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_correlation_time_of_an_autoregressive_series(rho: float) -> None:
    drawn = np.random.default_rng(5).normal(size=200_000)
    series = np.empty_like(drawn)
    series[0] = drawn[0]
    for at in range(1, len(drawn)):
        series[at] = rho * series[at - 1] + drawn[at]
    # The sum of the powers of rho, both ways; the estimate of the longest has a relative error of about 3 %.
    assert correlation_time(series) == pytest.approx((1 + rho) / (1 - rho), rel=0.1)


def test_a_constant_has_no_correlation_and_a_ramp_tells_nothing() -> None:
    assert correlation_time(np.full(500, 7.0)) == 0
    assert correlation_time(np.array([1.0])) == 0
    assert correlation_time(np.tile([1.0, -1.0], 100)) == 0
    assert math.isinf(correlation_time(np.arange(500.0)))


def test_the_memory_is_that_of_the_number_of_waiting_jobs() -> None:
    schedule = simulate(random_log(3, 60, jobs=1500), resolve("FCFS"), Rules())
    submit, start = schedule.workload.submit.tolist(), schedule.start.tolist()
    hours = range(submit[0], submit[-1] + 1, HOUR)
    waiting = [sum(s <= hour < begin for s, begin in zip(submit, start, strict=True)) for hour in hours]
    assert max(waiting) > 1
    assert memory_of(schedule) == HOUR * correlation_time(np.array(waiting, dtype=float))


def test_what_a_lead_in_leaves_is_measured_as_it_ran() -> None:
    # One job of 100 s on 3 of 4 processors is the lead-in; the other two are submitted at 40 s and 60 s.
    workload = Workload(
        "three",
        4,
        job_id=np.array([1, 2, 3]),
        submit=np.array([0, 40, 60]),
        run_time=np.array([100, 50, 30]),
        requested_time=np.array([100, 50, 30]),
        processors=np.array([3, 4, 1]),
        user=np.array([1, 1, 1]),
        start=np.array([-1, -1, -1]),
        unix_start=1_000_000,
    )
    whole = simulate(workload, resolve("FCFS"), Rules())
    assert whole.start.tolist() == [0, 100, 60]
    schedule = whole.after(1)
    assert isinstance(schedule, Schedule)
    assert (schedule.start.tolist(), schedule.end.tolist()) == ([60, 20], [110, 50])
    assert (schedule.workload.submit.tolist(), schedule.workload.unix_start) == ([0, 20], 1_000_040)
    assert schedule.wait.tolist() == [60, 0]
    # From 40 s to 150 s: 3 processors for 60 s of the first job, 4 for 50 s, 1 for 30 s.
    assert measure(schedule, "utilisation")["utilisation"] == pytest.approx(100 * (180 + 200 + 30) / (4 * 110))
    square = (4**2 * 30 + 3**2 * 30 + 4**2 * 50) / 110
    expected = 100 * math.sqrt(square - ((180 + 200 + 30) / 110) ** 2) / 4
    assert measure(schedule, "throughput_sd")["throughput_sd"] == pytest.approx(expected)
    assert whole.after(0) is whole


def test_a_job_of_the_lead_in_counts_no_longer_than_the_makespan() -> None:
    long, short = np.array([1000, 10]), np.array([1, 1])
    workload = Workload(
        "two", 2, job_id=np.array([1, 2]), submit=np.array([0, 100]), run_time=long, requested_time=long,
        processors=short, user=short, start=-short,
    )  # fmt: skip
    schedule = simulate(workload, resolve("FCFS"), Rules()).after(1)
    assert measure(schedule, "utilisation")["utilisation"] == 100
