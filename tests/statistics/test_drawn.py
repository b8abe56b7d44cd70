"""Intervals from draws of a log have the log's own variation, however many draws there are."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest
from scipy import stats

from policyfactory.statistics.compare import compare_replicas
from policyfactory.statistics.intervals import (
    Estimate,
    Interval,
    estimate_drawn,
    estimate_halves,
    estimate_level,
    estimate_mean,
    freedom_of,
    logarithms,
)
from support import ROOT

STUDY: dict[str, Any] = runpy.run_path(str(ROOT / "evaluate" / "studies" / "null_logs.py"))


def test_an_interval_is_student_s_of_one_more_draw_and_not_of_their_mean() -> None:
    values = np.array([0.1, -0.2, 0.4, 0.3, 0.0, -0.1, 0.2])
    found = estimate_drawn(values, widening=1.1)
    half = stats.t.ppf(0.975, 6) * values.std(ddof=1) * np.sqrt(8 / 7) * 1.1
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0.1 - half, 0.1 + half))
    assert found.p == pytest.approx(2 * stats.t.sf(0.1 / (half / stats.t.ppf(0.975, 6)), 6))
    assert found.cases == 7


@pytest.mark.slow
def test_more_draws_make_no_narrower_interval() -> None:
    random = np.random.default_rng(1)
    many = random.normal(0.1, 1, 4_000)
    drawn = [estimate_drawn(many[:count]).interval for count in (100, 4_000)]
    assert all(one is not None and one.half_width == pytest.approx(1.96, rel=0.2) for one in drawn)
    mean = estimate_mean([many[:2_000]]).interval
    assert mean is not None
    assert mean.half_width < 0.05


@pytest.mark.parametrize("values", [[0.1] * 5, [0.1, 0.2, 0.3, 0.1, 0.2, np.inf]])
def test_few_draws_and_no_numbers_give_no_interval(values: list[float]) -> None:
    assert estimate_drawn(np.array(values)).interval is None


def test_equal_draws_give_a_point() -> None:
    assert estimate_drawn(np.zeros(8)) == Estimate(0.0, Interval(0.0, 0.0), 1.0, 8)
    assert estimate_drawn(np.full(8, 0.5)).p == 2.0**-7


def test_halves_of_a_sample_vary_as_the_sample_does() -> None:
    # The mean of 40 normal values has a standard deviation of 1 / sqrt(40); that of the square is known within 2 %.
    random, squares = np.random.default_rng(2), []
    for _ in range(300):
        sample = random.normal(size=40)
        halves = []
        for _ in range(10):
            order = random.permutation(40)
            halves += [sample[order[:20]].mean(), sample[order[20:]].mean()]
        found = estimate_halves(np.array([sample.mean()]), np.array(halves))
        assert found.interval is not None
        squares.append((found.interval.half_width / stats.t.ppf(0.975, 4)) ** 2 / 1.1)
    assert np.mean(squares) == pytest.approx(1 / 40, rel=0.06)
    assert [freedom_of(count) for count in (6, 8, 40)] == [3, 4, 4]


def test_the_value_is_of_whole_replicas_and_the_spread_of_halves() -> None:
    own, other = np.log([2.0] * 6 + [1, 4, 1, 4, 1, 4]), np.zeros(12)
    paired = compare_replicas(own, other, 6)
    assert paired.estimate.value == pytest.approx(np.log(2))
    assert paired.verdict == "no difference"
    assert compare_replicas(own - 9, other, 6).verdict == "better"
    assert (paired.wins, paired.losses) == (0, 6)


def test_a_level_stays_above_its_least() -> None:
    waits = np.array([0.0, 10, 300, 20, 0, 5_000, 7])
    found = estimate_level(Estimate(20.0, None, None, 7), waits, 0.0, 1.2)
    assert found.interval is not None
    assert 0 <= max(found.interval.low + 1, 0) <= 20 <= found.interval.high
    assert logarithms(np.array([1.0, np.e]), 1.0) == pytest.approx([0.0, 1.0])
    assert logarithms(np.array([0.0]), 0.0).tolist() == [0.0]


# Where no order can matter. -------------------------------------------------------------------------------------------


VERDICTS = "windows", "weeks", "resampled logs", "replicas", "judge"
CASES = [(verdict, kind) for verdict in VERDICTS for kind in ("noise", "habits")]
# By day the verdict that was false most often, and that of weeks.
DAILY = {("resampled logs", "noise"), ("windows", "habits"), ("weeks", "habits")}


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [pytest.param(*case, marks=[] if case in DAILY else [pytest.mark.slow]) for case in CASES],
)
def test_verdicts_on_logs_without_effect_are_as_rare_as_promised(verdict: str, kind: str) -> None:
    # With 5 % of false verdicts more than 5 of 24 are called with a probability of 0.3 % (binomial); before intervals
    # had the variation of the log, resampled logs and replicas called a third of them.
    found = STUDY["count"](verdict, kind, range(24))
    assert found.better + found.worse <= 5


@pytest.mark.parametrize("verdict", ["resampled logs", "replicas"])
def test_a_large_effect_is_found_nevertheless(verdict: str) -> None:
    found = STUDY["count"](verdict, "effect", range(12))
    assert found.worse == 0
    assert found.better >= 8
