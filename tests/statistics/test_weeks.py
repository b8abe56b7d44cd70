"""Means over jobs with intervals over weeks: against a plain bootstrap of blocks, and at their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from policyfactory.core.text import DAY, WEEK
from policyfactory.statistics.evaluation import _draws, block_weeks, estimate_weekly, estimate_weekly_ratio
from policyfactory.statistics.intervals import LEAST_SPREAD, Interval
from support import some_by_day


def drawn_weeks(seed: int, weeks: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    jobs = random.integers(20, 200, weeks).astype(float)
    return random.lognormal(0, 0.7, weeks) * jobs - 1.2 * jobs, jobs


def plain_interval(sums: list[float], weights: list[float], block: int, seed: int) -> tuple[float, float]:
    """Return the interval by loops over weeks: blocks on a circle, a standard error for each resample of its own."""
    weeks = len(sums)
    value = sum(sums) / sum(weights)

    def of_block(first: int) -> tuple[float, float]:
        places = [(first + step) % weeks for step in range(block)]
        return sum(sums[at] - value * weights[at] for at in places), sum(weights[at] for at in places)

    blocks = weeks / block
    variance = sum(of_block(first)[0] ** 2 for first in range(weeks)) / weeks * blocks
    error = math.sqrt(variance * blocks / (blocks - 1)) / sum(weights)
    studentised = []
    for firsts in _draws(seed, weeks, block).tolist():
        parts = [of_block(first) for first in firsts]
        total = sum(weight for _, weight in parts)
        deviation = sum(rest for rest, _ in parts) / total
        square = sum((rest - deviation * weight) ** 2 for rest, weight in parts)
        own = math.sqrt(square * len(parts) / (len(parts) - 1)) / total
        studentised.append(deviation / max(own, LEAST_SPREAD * error))
    low, high = np.quantile(studentised, [0.025, 0.975])
    student = stats.t.ppf(0.975, blocks - 1)
    return value - error * max(high, student), value + error * max(-low, student)


@pytest.mark.parametrize(("weeks", "block"), some_by_day([(6, 1), (12, 2), (25, 3), (60, 1)], 3))
def test_the_interval_is_that_of_blocks_of_weeks(weeks: int, block: int) -> None:
    sums, jobs = drawn_weeks(weeks, weeks)
    estimate = estimate_weekly(sums, jobs, block, seed=3)
    assert estimate.value == pytest.approx(sums.sum() / jobs.sum())
    assert estimate.cases == weeks
    assert estimate.interval is not None
    expected = plain_interval(sums.tolist(), jobs.tolist(), block, 3)
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx(expected, rel=1e-9)


def test_a_row_of_like_weeks_is_less_certain_than_the_same_weeks_mixed() -> None:
    # Twelve good weeks and twelve bad ones: in this order they are two moods of the queue, not 24.
    sums, jobs = np.repeat([-1.0, 3.0], 12), np.ones(24)
    mixed = np.tile([-1.0, 3.0], 12)
    rows = estimate_weekly(sums, jobs, 4).interval
    apart = estimate_weekly(mixed, jobs, 4).interval
    assert rows is not None
    assert apart is not None
    assert rows.covers(0)
    assert not apart.covers(0)


def test_fewer_than_six_blocks_give_no_interval() -> None:
    sums, jobs = drawn_weeks(1, 17)
    for block in (3, None):
        estimate = estimate_weekly(sums, jobs, block)
        assert (estimate.interval, estimate.p) == (None, None)
        assert estimate.value == pytest.approx(sums.sum() / jobs.sum())
    assert estimate_weekly(sums, jobs, 2).interval is not None


def test_weeks_without_any_difference_have_an_interval_of_no_length() -> None:
    estimate = estimate_weekly(np.zeros(12), np.full(12, 5.0), 1)
    assert (estimate.value, estimate.interval, estimate.p) == (0.0, Interval(0.0, 0.0), 1.0)
    same = estimate_weekly(np.full(12, 10.0), np.full(12, 5.0), 1)
    assert (same.value, same.interval) == (2.0, Interval(2.0, 2.0))


def test_weeks_without_a_job_count_as_time_in_which_nothing_happened() -> None:
    sums, jobs = drawn_weeks(4, 20)
    sums[7], jobs[7] = 0.0, 0.0
    estimate = estimate_weekly(sums, jobs, 2)
    assert estimate.interval is not None
    assert estimate.interval.covers(estimate.value)
    assert math.isnan(estimate_weekly(np.zeros(8), np.zeros(8), 1).value)


def test_a_ratio_is_the_relative_difference_of_the_sums() -> None:
    sums, jobs = np.abs(drawn_weeks(5, 30)[0]) + 1, drawn_weeks(6, 30)[1]
    ratio = estimate_weekly_ratio(sums, jobs, 2, seed=1)
    assert ratio.value == pytest.approx(100 * (sums.sum() / jobs.sum() - 1))
    assert ratio.interval is not None
    assert ratio.interval.covers(ratio.value)
    worse = estimate_weekly_ratio(jobs * 1.5, jobs, 2).interval
    assert worse is not None
    assert (worse.low, worse.high) == pytest.approx((50, 50))


@pytest.mark.parametrize(
    ("memory", "block"), [(0.0, 1), (3 * DAY, 1), (3.5 * DAY, 1), (4 * DAY, 2), (2.2 * WEEK, 5), (math.inf, None)]
)
def test_a_block_is_twice_as_long_as_the_memory(memory: float, block: int | None) -> None:
    assert block_weeks(memory) == block
