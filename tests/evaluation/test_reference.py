"""Published values beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.options import ReferenceTable
from policyfactory.evaluation.paper import reference_section, reference_values
from policyfactory.evaluation.study import conclude
from policyfactory.statistics.evaluation import Evaluation
from snapshots import snapshot

Make = Callable[..., Evaluation]

COST = {"A": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], "B": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 9.0]}


def published_in(source: str, values: dict[str, dict[str, float]], **how: Any) -> ReferenceTable:
    return ReferenceTable(source=source, metric="cost", values=values, **how)


def test_median_mean_and_ratio_by_hand(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": COST}})
    cases: list[tuple[Any, float, int, float]] = [
        ("median", 8.004, 2, 8.0),
        ("mean", 18.14, 2, 127 / 7),
        # Sums 21 and 127: 21/127 - 1 = -83.46 %.
        ("ratio", -83.0, 0, 100 * (21 / 127 - 1)),
    ]
    for statistic, published, digits, ours in cases:
        policy = "B" if statistic == "ratio" else "A"
        reference = published_in("table 1", {"log": {policy: published}}, statistic=statistic, digits=digits)
        (row,) = reference_values(evaluation, reference)
        assert row.ours.value == pytest.approx(ours)
        assert row.met
        assert row.ours.interval is not None


def test_met_means_to_the_digit_that_is_printed(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": COST}})

    def met(published: float, digits: int) -> bool:
        return reference_values(evaluation, published_in("t", {"log": {"A": published}}, digits=digits))[0].met

    assert met(8.0, 9)
    assert met(8.005, 2)  # half a unit may have been rounded either way
    assert not met(8.006, 2)
    assert not met(7.9, 1)
    assert met(10.0, -1)


def test_the_paper_may_have_cut_decimals_off(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": {"A": [7.899] * 7}}})

    def met(published: float, digits: int) -> bool:
        reference = published_in("t", {"log": {"A": published}}, digits=digits, cut=True)
        return reference_values(evaluation, reference)[0].met

    assert met(7.8, 1)
    assert met(7.899, 3)
    assert not met(7.9, 1)
    assert not met(7.7, 1)
    reference = published_in("t", {"log": {"A": 7.8}}, digits=1, cut=True)
    snapshot(reference_section(evaluation, reference, 1).tables[0].note)


def test_the_paper_may_have_left_out_the_largest_and_used_the_first(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": COST}})
    drop = {"log": {"A": 2}}
    (row,) = reference_values(evaluation, published_in("t", {"log": {"A": 4.0}}, drop=drop))
    assert (row.ours.value, row.met, row.deviation) == (4.0, True, 0.0)
    (row,) = reference_values(evaluation, published_in("t", {"log": {"A": 3.0}}, first=4))
    assert (row.ours.value, row.met, row.ours.interval) == (3.0, True, None)
    (row,) = reference_values(evaluation, published_in("t", {"log": {"A": 2.0}}, drop=drop, first=5))
    assert row.ours.value == 2.0
    section = reference_section(evaluation, published_in("t", {"log": {"A": 2.0}}, drop=drop, first=5), 1)
    snapshot(section.tables[0].note)


def test_the_section_counts_what_is_met_and_what_the_interval_holds(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": COST}})
    reference = published_in("table 4", {"log": {"A": 8.0, "B": 500.0}, "elsewhere": {"A": 1.0}})
    experiment = Experiment("tables", (), evaluation.contenders, references=(reference,))
    section = conclude(experiment, evaluation).sections[-1]
    assert section.name == "published"
    snapshot(section.paragraphs)
    rows = [[cell.value for cell in row] for row in section.tables[0].rows]
    assert rows[0] == ["log", "A", 8.0, 8.0, 0.0, "met"]
    assert rows[1] == ["log", "B", 500.0, 2.0, pytest.approx(-99.6), "not met"]
    assert section.tables[0].columns[3].decimals == 2


def test_published_values_of_nothing_that_was_run_are_said_to_be_so(by_hand: Make) -> None:
    section = reference_section(by_hand({"log": {"cost": COST}}), published_in("t", {"other": {"A": 1.0}}), 2)
    assert section.name == "published-2"
    snapshot(section.paragraphs[0])


def test_the_paper_may_print_so_many_significant_figures_and_round_twice(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": {"A": [397.2482] * 7, "B": [26630.895] * 7}}})

    def met(policy: str, published: float, **how: int) -> bool:
        reference = published_in("t", {"log": {policy: published}}, **how)
        return reference_values(evaluation, reference)[0].met

    assert met("B", 26631, digits=2, significant=5)
    assert not met("B", 26631, digits=2)
    assert not met("B", 26630, digits=2, significant=5)
    assert met("A", 397.25, digits=2, significant=5)
    assert met("A", 397.3, digits=1, rounded_first=2)
    assert not met("A", 397.3, digits=1)
    assert met("A", 397.2, digits=1)
