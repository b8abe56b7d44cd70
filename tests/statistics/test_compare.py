"""Paired differences and their intervals: by hand, against exact distributions, and invariants."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from policyfactory.core.errors import EvaluationError
from policyfactory.report.caveats import intervals_in_words
from policyfactory.statistics import intervals as means
from policyfactory.statistics.compare import compare, compare_values, half_widths
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.intervals import (
    MIN_CASES,
    Interval,
    Statistic,
    difference_unit,
    estimate_difference,
    estimate_mean,
    estimate_median,
    estimate_ratio,
    estimate_value,
    holm,
)
from refusals import refused

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
LOSSES = np.array([5.0, 4.0, 6.0, 3.0, 7.0, 2.0])
Make = Callable[..., Evaluation]


def test_the_draws_are_the_same_however_many_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    result = []
    for at_once in (1, 10**5, 10**9):
        monkeypatch.setattr(means, "_AT_ONCE", at_once)
        means._counts.cache_clear()
        result.append(means._counts(3, 0, 7))
    means._counts.cache_clear()
    assert (result[0].sum(axis=1) == 7).all()
    assert all((one == result[0]).all() for one in result)


def test_the_effect_is_the_median_of_the_pairs_and_not_the_difference_of_the_medians() -> None:
    policy = np.array([9.0, 1.0, 5.0, 2.0, 3.0, 4.0])
    baseline = np.array([10.0, 3.0, 4.0, 5.0, 9.0, 6.0])
    # Differences -1 -2 +1 -3 -6 -2: sorted -6 -3 -2 -2 -1 1, median -2; the medians are 3.5 and 5.5.
    # Relative: -1/10 -2/3 +1/4 -3/5 -6/9 -2/6: sorted -.667 -.667 -.6 -.333 -.1 .25, median -.4667.
    pair = compare_values(policy, baseline)
    assert (pair.estimate.cases, pair.estimate.value) == (6, -2.0)
    assert (pair.wins, pair.losses, pair.draws) == (5, 1, 0)
    assert pair.relative == pytest.approx(-(0.6 + 1 / 3) / 2)
    assert pair.estimate.interval is not None
    assert pair.estimate.interval.low <= -2.0 <= pair.estimate.interval.high
    assert pair.verdict == "no difference"


def test_mean_and_ratio_by_hand() -> None:
    policy = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 9.0])
    baseline = np.array([2.0, 4.0, 4.0, 6.0, 8.0, 8.0])
    # Sums 24 and 32: means 4 and 5.333, difference -1.333 (-25 %), ratio -25 %.
    mean = compare_values(policy, baseline, statistic="mean")
    assert mean.estimate.value == pytest.approx(-8 / 6)
    assert mean.relative == pytest.approx(-0.25)
    ratio = compare_values(policy, baseline, statistic="ratio")
    assert ratio.estimate.value == pytest.approx(-25.0)
    assert ratio.relative is None


def test_a_clear_effect_has_a_direction_and_the_direction_is_the_metrics() -> None:
    for statistic in STATISTICS:
        for lower_is_better, expected in ((True, "better"), (False, "worse"), (None, "differs")):
            pair = compare_values(10 - LOSSES, np.full(6, 10.0), lower_is_better=lower_is_better, statistic=statistic)
            assert pair.verdict == expected
    pair = compare_values(10 + LOSSES, np.full(6, 10.0), lower_is_better=False)
    assert (pair.wins, pair.losses, pair.draws, pair.verdict) == (6, 0, 0, "better")


@pytest.mark.parametrize("statistic", STATISTICS)
def test_equal_values_are_no_difference(statistic: Statistic) -> None:
    pair = compare_values(LOSSES, LOSSES, statistic=statistic)
    assert (pair.estimate.value, pair.wins, pair.losses, pair.draws) == (0.0, 0, 0, 6)
    assert pair.estimate.interval == Interval(0.0, 0.0)
    assert (pair.verdict, pair.estimate.p) == ("no difference", 1.0)


@pytest.mark.parametrize("cases", range(1, MIN_CASES))
def test_too_few_cases_give_no_interval_however_large_the_effect(cases: int) -> None:
    for statistic in STATISTICS:
        pair = compare_values(np.zeros(cases), np.full(cases, 1e6), statistic=statistic)
        assert (pair.estimate.cases, pair.estimate.interval, pair.estimate.p) == (cases, None, None)
        assert (pair.wins, pair.verdict) == (cases, "too few cases")


def test_cases_without_a_value_are_left_out_in_pairs_and_a_zero_baseline_has_no_ratio() -> None:
    policy = np.array([1.0, math.nan, 3.0, 4.0])
    baseline = np.array([2.0, 2.0, math.inf, 0.0])
    pair = compare_values(policy, baseline)
    assert (pair.estimate.cases, pair.estimate.value, pair.relative) == (2, 1.5, None)
    assert (pair.wins, pair.losses, pair.draws) == (1, 1, 0)
    for statistic in STATISTICS:
        nothing = compare_values(np.array([math.nan]), np.array([1.0]), statistic=statistic)
        assert nothing.estimate.cases == 0
        assert math.isnan(nothing.estimate.value)
        assert nothing.verdict == "too few cases"
    zero = estimate_ratio(LOSSES, np.zeros(6))
    assert math.isnan(zero.value)
    assert zero.interval is None
    # Half of the cases without a wait under the baseline: the sums still have a ratio.
    some = estimate_ratio(np.arange(12.0), np.array([0.0, 4.0] * 6))
    assert some.interval is not None
    assert np.isfinite([some.interval.low, some.interval.high]).all()


def test_values_that_are_no_pairs_are_refused() -> None:
    refused(EvaluationError, "pairs 6", compare_values, np.zeros(6), np.zeros(7))
    refused(EvaluationError, "finite 1", estimate_median, np.array([1.0, 2, 3, 4, 5, math.nan]))


# The intervals. ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], [1.0, 1.0, 4.0, 4.0, 4.0, 9.0], [-3.0, 1.0, 2.0, 2.5, 7.0, 8.0, 20.0]]
)
def test_the_median_has_the_interval_of_its_exact_bootstrap_distribution(values: list[float]) -> None:
    # All n**n resamples, each equally likely: the quantiles at Phi(-sqrt(n/(n-1)) * t(0.975, n-1 degrees)).
    n = len(values)
    medians = np.sort(np.median(np.array(list(itertools.product(values, repeat=n))), axis=1))
    tail = stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1))
    below = math.ceil(tail * len(medians)) - 1
    result = estimate_median(np.array(values)).interval
    assert result is not None
    assert [result.low, result.high] == [medians[below], medians[-1 - below]]


def test_many_cases_take_the_short_way_to_nearly_the_same_interval() -> None:
    values = np.random.default_rng(1).normal(size=402)
    few, many = estimate_median(values[:400]).interval, estimate_median(values).interval
    assert few is not None
    assert many is not None
    assert abs(few.low - many.low) < 0.05
    assert abs(few.high - many.high) < 0.05


def test_the_studentised_bootstrap_by_its_definition() -> None:
    # With 6 cases all 6**6 resamples can be made: theirs are the quantiles that the drawn ones estimate.
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 40.0])
    draws = np.array(list(itertools.product(values, repeat=6)))
    own = values.std()
    spread = np.maximum(draws.std(axis=1), 0.1 * own)
    t = (draws.mean(axis=1) - values.mean()) / spread
    low, high = np.quantile(t, [0.025, 0.975])
    student = stats.t.ppf(0.975, 5) / math.sqrt(5)
    result = estimate_mean([values], seed=2)
    assert result.interval is not None
    # 9,999 draws: the quantile of a long tail is known to some percent.
    assert result.interval.low == pytest.approx(values.mean() - own * max(high, student), rel=0.03)
    assert result.interval.high == pytest.approx(values.mean() + own * max(-low, student), rel=0.1)
    assert -low > student > high  # the tail is on the right, and Student's interval has the other end


def test_a_ratio_to_a_constant_is_a_mean() -> None:
    values = np.random.default_rng(3).lognormal(size=15)
    ratio = estimate_ratio(values, np.full(15, 4.0), seed=5)
    mean = estimate_mean([values], seed=5)
    assert ratio.interval is not None
    assert mean.interval is not None
    assert ratio.value == pytest.approx(100 * (mean.value / 4 - 1))
    # Values that are not negative sum to no less than 0, whatever Student's interval says of a mean.
    assert mean.interval.low < 0
    assert ratio.interval.low == -100.0
    assert ratio.interval.high == pytest.approx(100 * (mean.interval.high / 4 - 1))


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_interval_follows_the_data_and_the_seed(statistic: Statistic) -> None:
    rng = np.random.default_rng(5)
    policy, baseline = rng.lognormal(size=20), rng.lognormal(size=20)
    result = estimate_difference(statistic, policy, baseline, seed=1)
    assert result == estimate_difference(statistic, policy, baseline, seed=1)
    times = estimate_difference(statistic, 3 * policy, 3 * baseline, seed=1)
    factor = 1 if statistic == "ratio" else 3
    assert result.interval is not None
    assert times.interval is not None
    assert times.value == pytest.approx(factor * result.value)
    assert times.interval.low == pytest.approx(factor * result.interval.low)
    assert times.interval.half_width == pytest.approx(factor * result.interval.half_width)
    other = estimate_difference(statistic, policy, baseline, seed=2)
    assert (other == result) == (statistic == "median")  # whose distribution is exact


def test_a_ratio_is_no_surer_than_its_mean_difference() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        policy, baseline = rng.lognormal(sigma=1.5, size=(2, 8))
        ratio, mean = estimate_ratio(policy, baseline, seed=2), estimate_mean([policy - baseline], seed=2)
        assert ratio.p is not None
        assert mean.p is not None
        assert ratio.p >= mean.p  # as words of several policies go by it
        assert ratio.interval is not None
        assert mean.interval is not None
        assert ratio.interval.covers(0) or not mean.interval.covers(0)


@pytest.mark.slow
def test_p_and_interval_agree() -> None:
    rng = np.random.default_rng(8)
    agree = 0
    for at in range(300):
        policy, baseline = rng.lognormal(0.2 * (at % 4), 0.5, 12), rng.lognormal(0, 0.5, 12)
        for statistic in STATISTICS:
            result = estimate_difference(statistic, policy, baseline, seed=1)
            assert result.interval is not None
            assert result.p is not None
            agree += (result.p < 0.05) == (not result.interval.covers(0.0))
    # They may part where the end of an interval is at 0 to within a draw.
    assert agree >= 898


def test_p_of_a_median_knows_that_few_cases_prove_little() -> None:
    # Six cases of one sign are 2 * 0.5**6 likely if both signs are equally likely, however large they are.
    assert estimate_median(np.full(6, 1e9) + np.arange(6)).p == pytest.approx(2 * 0.5**6)
    assert estimate_mean([np.full(6, 3.0)]).p == pytest.approx(2 * 0.5**6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=25), st.sampled_from(["median", "mean"]))
def test_the_other_way_round_is_the_other_sign(values: list[float], statistic: Statistic) -> None:
    result = estimate_value(statistic, np.array(values), seed=4)
    other = estimate_value(statistic, -np.array(values), seed=4)
    assert result.interval is not None
    assert other.interval is not None
    assert other.value == pytest.approx(-result.value)
    size = max(map(abs, values)) or 1.0
    assert other.interval.low == pytest.approx(-result.interval.high, abs=1e-6 * size, rel=1e-6)
    assert other.interval.high == pytest.approx(-result.interval.low, abs=1e-6 * size, rel=1e-6)
    assert result.interval.low <= result.value + 1e-9 * size
    assert result.value <= result.interval.high + 1e-9 * size


@pytest.mark.parametrize("size", [4.5e-100, 1e-70, 1e69, 1e100])
def test_an_interval_has_the_scale_of_its_values(size: float) -> None:
    values = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    whole, scaled = (estimate_mean([values * factor], seed=4) for factor in (1.0, size))
    assert whole.interval is not None
    assert scaled.interval is not None
    assert scaled.interval.low == pytest.approx(whole.interval.low * size, rel=1e-6)
    assert scaled.interval.high == pytest.approx(whole.interval.high * size, rel=1e-6)
    assert scaled.p == pytest.approx(whole.p)


def test_strata_count_alike_and_are_drawn_apart() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(10, 1, 40), rng.normal(20, 1, 40)
    both = estimate_mean([first, second], seed=1)
    alone = estimate_mean([first], seed=1)
    assert both.value == pytest.approx((first.mean() + second.mean()) / 2)
    assert both.interval is not None
    assert alone.interval is not None
    # Independent halves: sqrt(2) narrower. Drawn with the same numbers they would be correlated by chance alone.
    error = math.sqrt(first.var() / 39 + second.var() / 39) / 2
    assert both.interval.half_width == pytest.approx(error * stats.t.ppf(0.975, 78), rel=0.05)
    assert estimate_mean([first, second[:3]], seed=1).interval is None


# Many comparisons. ---------------------------------------------------------------------------------------------------


def test_holm_is_the_textbooks() -> None:
    # Holm 1979: 0.01 * 4, then at least that: 0.013 * 3 -> 0.04, 0.02 * 2 -> 0.04, 0.9 * 1.
    assert holm([0.02, 0.01, 0.9, 0.013]) == pytest.approx([0.04, 0.04, 0.9, 0.04])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1.0, 1.0]


@pytest.mark.parametrize("size", [1, 2, 5, 12, 40])
def test_holm_is_that_of_statsmodels(size: int) -> None:
    from statsmodels.stats.multitest import multipletests

    p_values = np.random.default_rng(size).random(size).round(1)  # with ties
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist(), rel=1e-12)


def test_a_whole_evaluation_is_compared_with_its_first_policy(by_hand: Make) -> None:
    cost = {"A": [9.0] * 6, "B": [8.0, 7.0, 8.0, 8.5, 8.0, 1.0], "C": [9.0, 10.0, 9.0, 8.0, 9.0, 9.0]}
    gain = {"A": [50.0] * 6, "B": [60.0, 61.0, 62.0, 63.0, 64.0, 65.0], "C": [40.0, 41.0, 42.0, 43.0, 44.0, 45.0]}
    rows = compare(by_hand({"log": {"cost": cost, "yield": gain}}))
    assert [(row.metric, row.policy, row.baseline, row.verdict, row.unit) for row in rows] == [
        ("cost", "B", "A", "no difference", "1"),
        ("cost", "C", "A", "no difference", "1"),
        ("yield", "B", "A", "no difference", "pp"),
        ("yield", "C", "A", "no difference", "pp"),
    ]
    assert (rows[0].difference, rows[0].wins, rows[0].losses, rows[0].draws) == (-1.0, 6, 0, 0)
    assert (rows[1].wins, rows[1].losses, rows[1].draws) == (1, 1, 4)
    assert rows[2].relative is None
    # Two comparisons a metric: 2 * 0.03125 is not below 5 %, so what six windows show does not stand.
    assert [row.p_holm for row in rows] == [0.0625, 1.0, 0.0625, 0.0625]
    assert [row.by_chance for row in rows] == [True, False, True, True]
    alone = compare(by_hand({"log": {"cost": {name: cost[name] for name in "AB"}}}))
    assert [(row.verdict, row.by_chance) for row in alone] == [("better", False)]
    other = compare(by_hand({"log": {"cost": {name: cost[name] for name in "AB"}}}), baseline="B")
    assert [(row.policy, row.verdict) for row in other] == [("A", "worse")]
    refused(EvaluationError, "D A B", compare, by_hand({"log": {"cost": cost}}), baseline="D")


def test_all_logs_are_one_family_for_holm(by_hand: Make) -> None:
    cost = {"A": list(range(10, 20)), "B": list(range(1, 11))}
    one = compare(by_hand({"one": {"cost": cost}}))
    both = compare(by_hand({"one": {"cost": cost}, "two": {"cost": cost}}))
    assert one[0].p_holm == one[0].p
    assert both[0].p_holm == pytest.approx(2 * (one[0].p or 0))
    assert both[0].verdict == "better"


def test_half_widths_are_relative_to_the_baseline(by_hand: Make) -> None:
    values = {"A": [100.0] * 8, "B": [70.0, 80.0, 90.0, 100.0, 110.0, 120.0, 130.0, 140.0]}
    evaluation = by_hand({"log": {"cost": values}, "few": {"cost": {"A": [1.0], "B": [2.0]}}})
    interval = compare(evaluation)[0].interval
    assert interval is not None
    rows = half_widths(evaluation)
    assert rows == [("log", "B", pytest.approx(interval.half_width / 100)), ("few", "B", math.inf)]
    mean, ratio = half_widths(evaluation, statistic="mean")[0], half_widths(evaluation, statistic="ratio")[0]
    # The baseline is constant: a ratio is the mean over it.
    assert ratio[2] == pytest.approx(mean[2])
    zero = by_hand({"log": {"cost": {"A": [0.0] * 6, "B": [0.0] * 6, "C": [0.0, 1, 2, 3, 4, 5]}}})
    assert [width for _, _, width in half_widths(zero)] == [0.0, math.inf]
    assert half_widths(by_hand({"log": {"cost": {"A": [1.0] * 6}}})) == []


def test_units_of_differences() -> None:
    assert [difference_unit("median", unit) for unit in ("%", "s", "1")] == ["pp", "s", "1"]
    assert difference_unit("ratio", "s") == "%"


def test_a_log_that_is_drawn_again_is_no_further_evidence(by_hand: Callable[..., Evaluation]) -> None:
    table = {"log": {"cost": {"BASE": [5.0, 7.0] * 5, "OTHER": [4.0, 6.0] * 5}}}
    evaluation = by_hand(table)
    cases = tuple(
        dataclasses.replace(case, kind="resample", sha256=str(at % 2)) for at, case in enumerate(evaluation.cases)
    )
    (row,) = compare(dataclasses.replace(evaluation, cases=cases))
    assert (row.cases, row.wins, row.interval, row.verdict) == (2, 2, None, "too few cases")
    (said, few) = intervals_in_words(dataclasses.replace(evaluation, cases=cases))
    assert said.startswith("log: 8 of 10 resampled logs have the jobs of an earlier one, and count no further")
    assert few.startswith("log: fewer than 6 cases")
    # Windows are different times of a log, whatever their jobs.
    assert compare(evaluation)[0].verdict == "better"
