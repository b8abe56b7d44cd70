"""Medians, quartiles, ranks and closing words of small tables by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from policyfactory.core.text import DAY, HOUR, percent_change
from policyfactory.evaluation.words import closing_words, rules_in_words
from policyfactory.report.sections import scale_for, shown_units
from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.rules import Rules
from policyfactory.statistics.compare import compare, ranks
from policyfactory.statistics.evaluation import Evaluation, WeeklyValues
from policyfactory.statistics.intervals import Estimate, Interval
from policyfactory.statistics.summary import summarise, worst_off
from policyfactory.workload.sensitivity import Sensitivity, parse_estimates
from snapshots import snapshot

Make = Callable[..., Evaluation]

COST = {"A": [4.0, 8.0, 2.0, 6.0, 10.0], "B": [3.0, 9.0, 2.0, 5.0, 1.0], "C": [5.0, 5.0, 5.0, 5.0, 5.0]}


def words(evaluation: Evaluation) -> list[str]:
    return closing_words(evaluation, summarise(evaluation), compare(evaluation))


def test_the_lowest_value_alone_is_no_proof(by_hand: Make) -> None:
    base = [100.0, 120.0, 90.0, 110.0, 105.0, 95.0, 130.0, 115.0]
    near = [value / 2 + (3 if at % 2 else -2) for at, value in enumerate(base)]
    costs = {"BASE": base, "FIRST": [value / 2 for value in base], "NEAR": near, "FAR": [value * 0.8 for value in base]}
    (output,) = words(by_hand({"log": {"cost": costs}}))
    # NEAR is now above, now below FIRST; FAR is above it in every window, and nothing is said of it.
    snapshot(output)


def test_the_rules_say_what_was_changed_in_the_jobs() -> None:
    assert rules_in_words(Rules(), axes=Sensitivity()) == rules_in_words(Rules())
    snapshot(rules_in_words(Rules(), axes=Sensitivity(1.2, parse_estimates("exact"))))


def test_median_quartiles_and_ranks_by_hand(by_hand: Make) -> None:
    rows = {row.policy: row for row in summarise(by_hand({"log": {"cost": COST}}))}
    # A sorted 2 4 6 8 10: quartiles 4 and 8. B sorted 1 2 3 5 9. Ranks by window:
    #   4 3 5 -> 2 1 3;  8 9 5 -> 2 3 1;  2 2 5 -> 1.5 1.5 3;  6 5 5 -> 3 1.5 1.5;  10 1 5 -> 3 1 2
    a, b, c = rows["A"], rows["B"], rows["C"]
    assert (a.median, a.quartile_1, a.quartile_3, a.mean, a.lowest, a.highest) == (6.0, 4.0, 8.0, 6.0, 2.0, 10.0)
    assert (a.mean_rank, b.mean_rank, c.mean_rank) == pytest.approx((2.3, 1.6, 2.1))
    assert (a.rank, b.rank, c.rank) == (3, 1, 2)
    assert (a.best, b.best, c.best) == (False, True, False)
    assert (a.cases, a.unit, a.log, a.metric) == (5, "1", "log", "cost")


def test_higher_can_be_better_and_equal_medians_share_the_better_place(by_hand: Make) -> None:
    rows = summarise(by_hand({"log": {"yield": {"A": [70.0], "B": [80.0], "C": [80.0]}}}))
    assert [(row.rank, row.best, row.mean_rank) for row in rows] == [(3, False, 3.0), (1, True, 1.5), (1, True, 1.5)]


def test_one_window_has_no_spread(by_hand: Make) -> None:
    row = summarise(by_hand({"log": {"cost": {"A": [3.0]}}}))[0]
    assert (row.cases, row.median, row.quartile_1, row.quartile_3) == (1, 3.0, None, None)


def test_a_metric_without_a_direction_has_no_ranks(by_hand: Make) -> None:
    rows = summarise(by_hand({"log": {"hue": {"A": [3.0], "B": [4.0]}}}))
    assert [(row.rank, row.mean_rank, row.best) for row in rows] == [(None, None, False)] * 2


def test_windows_without_a_value_are_counted_out(by_hand: Make) -> None:
    table = {"A": [1.0, math.nan, 3.0], "B": [2.0, 5.0, 2.0], "C": [math.nan] * 3}
    a, b, c = summarise(by_hand({"log": {"cost": table}}))
    assert (a.cases, a.median, b.cases, b.median) == (2, 2.0, 3, 2.0)
    assert (c.cases, c.rank, c.best) == (0, None, False)
    assert math.isnan(c.median)


def test_ranks_of_rows() -> None:
    values = np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 1.0]])
    assert ranks(values).tolist() == [[3, 1, 2], [2.5, 2.5, 1]]
    assert ranks(values, lower_is_better=False).tolist() == [[1, 3, 2], [1.5, 1.5, 3]]


def test_the_worst_off_job_is_named_with_its_window(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": {"A": [1.0, 1.0], "B": [1.0, 1.0]}}}, {"log": {"A": [5, 9], "B": [7, 3]}})
    # Jobs are numbered 100.. row by row: window 1 has 100 (A) and 101 (B), window 2 has 102 and 103.
    assert [(row.policy, row.case, row.job_id, row.wait_s) for row in worst_off(evaluation, "log")] == [
        ("A", 2, 102, 9.0),
        ("B", 1, 101, 7.0),
    ]


@pytest.mark.parametrize(
    ("unit", "values", "label", "shown"),
    [
        ("s", [30.0, 299.0], "s", "299"),
        ("s", [30.0, 3600.0], "min", "60.0"),
        ("s", [3 * HOUR, 36 * HOUR], "h", "36.0"),
        ("s", [HOUR, 4 * DAY], "d", "4.00"),
        ("1", [1.0, 12345.6], "", "12,346"),
        ("%", [70.12], "%", "70.1"),
        ("1", [0.5, 0.0042], "", "0.00420"),
        ("1", [1256.0, 45.85], "", "45.9"),
        ("1", [50.0, 0.0421], "", "0.0421"),
        ("1", [50.0, -0.0001], "", "-0.000100"),
        ("1", [1e-6], "", "0.000001"),
        ("1", [-1e-7], "", "-1e-07"),
        ("s", [math.nan], "s", "-"),
    ],
)
def test_values_have_one_readable_unit(unit: str, values: list[float], label: str, shown: str) -> None:
    scale = scale_for(unit, values)
    assert (scale.label, scale.text(values[-1])) == (label, shown)


def test_a_difference_has_a_sign_unless_it_is_zero() -> None:
    scale = scale_for("1", [3.0])
    assert [scale.text(value, signed=True) for value in (3.0, -3.0, 0.0, -0.0)] == ["+3.00", "-3.00", "0", "0"]


def test_a_metric_has_one_unit_in_all_tables() -> None:
    units = shown_units({"wait": ("s", [300.0, 3 * HOUR]), "cost": ("1", [1e6])})
    assert units == {"wait": "h", "cost": ""}
    small = scale_for("s", [60.0], units["wait"])
    assert (small.label, small.text(60.0)) == ("h", "0.0167")
    assert scale_for("s", [5 * DAY], "s").text(5.0) == "5.00"


def test_a_relative_change_is_read_as_percent() -> None:
    shares = (0.321, -0.0031, -0.0001, 16.87, 0.0)
    assert [percent_change(share) for share in shares] == ["+32 %", "-0.3 %", "0 %", "+1,687 %", "0 %"]


B_MOSTLY = [20.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
DELAY = {"A": [60.0] * 8, "B": [90.0, 91.0, 92.0, 93.0, 94.0, 95.0, 92.0, 93.0], "C": [60.0] * 8}
WAITS = {"log": {"A": [3600.0] * 8, "B": [7200.0] * 8, "C": [60.0] * 8}}
# What was measured of each log (metric, policy, windows), and the longest waits.
WORDS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    # B wins, at the price of delay and of one job that waits twice as long; C shows no difference.
    "winner": (
        {"log": {"cost": {"A": [*range(10, 16), 12.5, 12.5], "B": [5.0] * 8,
                          "C": [9, 12, 11, 14, 13, 16, 12, 13]}, "delay": DELAY}},
        WAITS,
    ),
    "no-effect": ({"log": {"cost": {"A": [10, 11, 12, 13, 14, 15], "B": [9, 12, 10, 12, 13, 16]}}}, None),
    "all-the-same": ({"log": {"cost": {"A": [2.0] * 6, "B": [2.0] * 6}}}, None),
    # B is better in all windows but one, and so much worse in that one that the medians agree.
    "equal-medians": ({"log": {"cost": {"A": [*range(1, 12)], "B": B_MOSTLY}}}, None),
    "baseline-wins": ({"log": {"cost": {"A": [1.0] * 8, "B": [2.0, 3.0] * 4, "C": [1.0] * 7 + [1.5]}}}, None),
    "one-window": ({"log": {"cost": {"A": [2.0], "B": [1.0]}}}, None),
    "five-windows": ({"log": {"cost": {"A": [2.0] * 5, "B": [1.0] * 5}}}, None),
    "alone": ({"log": {"cost": {"A": [2.0]}}}, None),
    "no-direction": ({"log": {"hue": {"A": [2.0], "B": [1.0]}}}, None),
    "two-logs": ({"one": {"cost": {"A": [2.0], "B": [1.0]}}, "two": {"cost": {"A": [1.0], "B": [2.0]}}}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_the_words_name_the_winner_what_is_shown_and_what_it_costs(by_hand: Make, name: str) -> None:
    snapshot(*words(by_hand(*WORDS[name])))


def test_the_interval_of_a_value_ends_where_its_metric_does_and_that_of_a_difference_does_not(
    by_hand: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METRICS, "cost", dataclasses.replace(METRICS["cost"], lowest=1.0))
    # One bad case decides the mean: Student's interval begins below 1.
    costs = {"A": [2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 500.0, 1.0], "B": [1.0] * 8}
    evaluation = by_hand({"log": {"cost": costs}})
    a, b = summarise(evaluation, statistic="mean")
    assert a.interval is not None
    assert a.interval.low == 1.0 < a.value < a.interval.high
    assert b.interval == Interval(1.0, 1.0)
    (difference,) = compare(evaluation, statistic="mean")
    assert difference.interval is not None
    assert difference.interval.low < difference.difference < 0.0 < difference.interval.high


def test_the_interval_over_weeks_ends_where_the_metric_does(by_hand: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "cost", dataclasses.replace(METRICS["cost"], lowest=1.0))
    sums = np.array([10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 5000.0, 10.0])
    jobs = np.full(8, 10)
    weekly = WeeklyValues(jobs, sums.reshape(1, 8, 1), jobs.reshape(1, 8, 1).astype(np.float64), 0.0)
    evaluation = dataclasses.replace(by_hand({"log": {"cost": {"A": [63.375]}}}), weekly={"log": weekly})
    (row,) = summarise(evaluation)
    assert row.interval is not None
    assert (row.value, row.interval.low) == (63.375, 1.0)


def test_a_value_beyond_a_bound_stays_in_its_interval() -> None:
    # A record with more jobs at once than its machine has processors for.
    estimate = Estimate(104.0, Interval(101.0, 107.0), None, 9)
    assert estimate.within(0.0, 100.0).interval == Interval(101.0, 104.0)
    assert Estimate(3.0, None, None, 2).within(5.0, 9.0).interval is None
