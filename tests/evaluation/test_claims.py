"""Sentences of a paper: held, not held, not shown."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from policyfactory.evaluation.options import ClaimTable
from policyfactory.evaluation.paper import claim_sections, judge
from policyfactory.statistics.evaluation import Evaluation

Make = Callable[..., Evaluation]

BASE = np.arange(10.0, 20.0)
COST = {
    "A": BASE.tolist(),
    "SAME": (BASE + np.array([1.0, -1.0] * 5)).tolist(),
    "GOOD": (BASE - 5 - np.arange(10) / 10).tolist(),
    "BETTER": (BASE / 10).tolist(),
}


def outcome(evaluation: Evaluation, name: str = "first") -> Any:
    experiment = types.SimpleNamespace(name=name, statistic="median", seed=0)
    return types.SimpleNamespace(evaluation=evaluation, experiment=experiment)


def verdict(evaluation: Evaluation, better: str, than: str, metric: str = "cost") -> str:
    claim = ClaimTable(text="so it is", better=tuple(better.split()), than=tuple(than.split()), metric=metric)
    (result,) = judge(claim, [outcome(evaluation)])
    return result.verdict


def test_a_claim_holds_only_if_every_pair_does(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": COST}})
    assert verdict(evaluation, "GOOD BETTER", "A SAME") == "holds"
    assert verdict(evaluation, "GOOD SAME", "A") == "not shown"
    assert verdict(evaluation, "A", "GOOD BETTER") == "does not hold"
    assert verdict(evaluation, "GOOD", "A BETTER") == "does not hold"


def test_what_is_better_depends_on_the_metric(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"yield": COST, "hue": COST}})
    assert verdict(evaluation, "A", "GOOD BETTER", "yield") == "holds"
    assert verdict(evaluation, "GOOD", "A", "hue") == "not shown"


def test_few_cases_show_nothing(by_hand: Make) -> None:
    few = by_hand({"log": {"cost": {name: values[:5] for name, values in COST.items()}}})
    assert verdict(few, "GOOD", "A") == "too few cases"


def test_that_some_pair_of_many_is_worse_is_judged_for_all_of_them_together(by_hand: Make) -> None:
    # Six windows: the largest effect has p = 2 * 0.5**6, which is not below 5 % when two pairs are tried.
    six = by_hand({"log": {"cost": {name: values[:6] for name, values in COST.items()}}})
    assert verdict(six, "A", "GOOD") == "does not hold"
    assert verdict(six, "A", "GOOD BETTER") == "not shown"


def test_claims_are_judged_where_they_belong(by_hand: Make) -> None:
    two = outcome(by_hand({"one": {"cost": COST}, "two": {"cost": COST}}), "both")
    lacking = outcome(by_hand({"one": {"cost": {name: COST[name] for name in ("A", "GOOD")}}}), "lacking")
    claim = ClaimTable(text="t", better=("BETTER",), than=("A",), metric="cost")
    assert [(row.experiment, row.log) for row in judge(claim, [two, lacking])] == [("both", "one"), ("both", "two")]
    only = ClaimTable(text="t", better=("GOOD",), than=("A",), metric="cost", experiments=("lacking",), logs=("one",))
    assert [(row.experiment, row.log) for row in judge(only, [two, lacking])] == [("lacking", "one")]


def test_the_sections_answer_which_conclusions_survive(by_hand: Make) -> None:
    two = outcome(by_hand({"one": {"cost": COST}, "two": {"cost": COST}}))
    claims = [
        ClaimTable(text="good ones are good", better=("GOOD", "BETTER"), than=("A",), metric="cost"),
        ClaimTable(text="A is best", better=("A",), than=("GOOD",), metric="cost", logs=("two",)),
        ClaimTable(text="never run", better=("X",), than=("Y",), metric="cost"),
    ]
    overview, first, second = claim_sections(claims, [two])
    assert [section.name for section in (overview, first, second)] == ["claims", "claim-1", "claim-2"]
    table = overview.tables[0]
    assert [column.title for column in table.columns] == ["experiment", "log", "claim 1", "claim 2"]
    assert [[cell.value for cell in row] for row in table.rows] == [
        ["first", "one", "holds (2 of 2)", None],
        ["first", "two", "holds (2 of 2)", "does not hold (0 of 1)"],
    ]
    assert overview.paragraphs[1:] == (
        "Claim 1: good ones are good. Holds in 2 of 2.",
        "Claim 2: A is best. Does not hold in 1 of 1.",
    )
    assert first.paragraphs == ("GOOD and BETTER better than A by cost, 2 pairs: holds in 2 (first, one; first, two).",)
    pairs = first.tables[0]
    assert [(row[0].value, row[1].value, row[2].mark, row[3].value) for row in pairs.rows] == [
        ("GOOD", "A", "better", "10 of 10"),
        ("BETTER", "A", "better", "10 of 10"),
    ]
    assert all(row[2].interval is not None for row in pairs.rows)
    assert claim_sections([claims[2]], [two]) == []
