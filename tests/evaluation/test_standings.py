"""Values, differences, ranks and wins as sections; what an interval means, in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from policyfactory.core.text import counted, enumerated
from policyfactory.evaluation import standings
from policyfactory.evaluation.experiment import Experiment, Outcome
from policyfactory.evaluation.standings import sections_of
from policyfactory.evaluation.words import closing_words
from policyfactory.report.caveats import chance_in_words, intervals_in_words
from policyfactory.report.sections import Section, Table
from policyfactory.statistics.compare import Rank, compare, mean_ranks, wins
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.intervals import Interval, Statistic
from policyfactory.statistics.summary import summarise
from snapshots import snapshot

Make = Callable[..., Evaluation]

CLEAR = {"A": [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0], "B": [5.0, 6.0, 5.0, 6.0, 5.0, 6.0, 5.0]}


def outcome(evaluation: Evaluation, statistic: Statistic = "median") -> Outcome:
    experiment = Experiment("hand", (), evaluation.contenders, metrics=evaluation.metrics, statistic=statistic)
    rows, pairs = summarise(evaluation, statistic=statistic), compare(evaluation, statistic=statistic)
    words = tuple(closing_words(evaluation, rows, pairs))
    return Outcome(experiment, evaluation, tuple(rows), tuple(pairs), words)


def sections(evaluation: Evaluation, statistic: Statistic = "median") -> dict[str, Section]:
    return {section.name: section for section in sections_of(outcome(evaluation, statistic))}


def cells(table: Table, column: str) -> list[Any]:
    at = [entry.title for entry in table.columns].index(column)
    return [row[at].value for row in table.rows]


def marks(table: Table, column: str) -> list[str]:
    at = [entry.title for entry in table.columns].index(column)
    return [row[at].mark for row in table.rows]


def as_kind(evaluation: Evaluation, kind: Any) -> Evaluation:
    return dataclasses.replace(
        evaluation, cases=tuple(dataclasses.replace(case, kind=kind) for case in evaluation.cases)
    )


def test_the_sections_of_a_usual_evaluation(by_hand: Make) -> None:
    delay = {"A": [7200.0] * 7, "B": [60.0] * 7}
    busy = {"A": [50.0] * 7, "B": [52.0, 53.0, 54.0, 55.0, 56.0, 57.0, 58.0]}
    result = sections(by_hand({"log": {"cost": CLEAR, "delay": delay, "yield": busy}}))
    assert list(result) == ["in-short", "values", "differences", "ranks", "wins"]
    (values,) = result["values"].tables
    snapshot(values.title)
    assert cells(values, "policy") == ["A", "B"]
    assert cells(values, "cost") == [13.0, 5.0]
    assert marks(values, "cost") == ["", "best"]
    assert all(row[1].interval is not None for row in values.rows)
    cost, delays, gain = result["differences"].tables
    assert cells(cost, "difference") == [-7.0]  # of 5 5 7 7 9 9 11
    assert marks(cost, "difference") == ["better"]
    assert cells(cost, "better in") == ["7 of 7"]
    assert cells(cost, "Holm p") == [2 * 0.5**7]
    # A metric in seconds has one unit in all tables, chosen from the values; a difference of percentages has its own.
    assert [table.columns[2].shown for table in (values, values)] == ["h", "h"]
    assert delays.columns[1].shown == "h"
    assert delays.columns[1].unit == "s"
    assert gain.columns[1].unit == "percentage points"
    assert "change" not in [column.title for column in gain.columns]
    # Wins are counts: a word about the same two policies stands in one place.
    assert [[cell.mark for cell in row] for row in result["wins"].tables[0].rows] == [["", "", ""]] * 2


def test_a_single_case_has_differences_but_no_verdicts(by_hand: Make) -> None:
    result = sections(by_hand({"log": {"cost": {"A": [4.0], "B": [3.0]}, "hue": {"A": [1.0], "B": [2.0]}}}))
    assert list(result) == ["in-short", "values", "differences"]
    (table,) = result["differences"].tables
    assert cells(table, "cost") == [-1.0]
    assert cells(table, "hue") == [1.0]
    assert result["differences"].paragraphs == ()
    assert all(cell.interval is None and cell.mark in {"", "best"} for row in table.rows for cell in row)


def test_a_single_policy_is_compared_with_nobody(by_hand: Make) -> None:
    assert list(sections(by_hand({"log": {"cost": {"A": [4.0] * 6}}}))) == ["in-short", "values"]


def test_metrics_without_direction_have_neither_ranks_nor_wins(by_hand: Make) -> None:
    result = sections(by_hand({"log": {"hue": CLEAR}}))
    assert list(result) == ["in-short", "values", "differences"]
    assert marks(result["differences"].tables[0], "difference") == ["differs"]


def test_several_logs_are_reported_separately_and_together(by_hand: Make) -> None:
    other = {"A": [3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "B": [3.5, 4.5, 5.5, 6.5, 7.5, 8.5]}
    result = sections(by_hand({"One log": {"cost": CLEAR}, "one/LOG": {"cost": other}, "all logs": {"cost": other}}))
    for name in ("values", "ranks", "wins"):
        stems = [table.name for table in result[name].tables]
        assert len(set(stems)) == len(stems) == (3 if name == "values" else 4)
    (cost,) = result["differences"].tables
    assert cells(cost, "log") == ["One log", "one/LOG", "all logs"]
    # Three comparisons of six windows: 3 * 2 * 0.5**6 is not below 5 %, and 3 * 2 * 0.5**7 of the first is.
    assert marks(cost, "difference") == ["better", "no difference", "no difference"]
    # Mean places of A: 2 in the first log, 1 in the others, each log counting alike.
    assert cells(result["ranks"].tables[-1], "cost") == pytest.approx([4 / 3, 5 / 3])
    assert cells(result["wins"].tables[-1], "B") == [12, None]


def test_places_are_taken_once_a_log_and_metric(by_hand: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, tuple[str, ...]]] = []

    def counting(evaluation: Evaluation, metric: str, logs: Sequence[str], *, seed: int) -> list[Rank]:
        taken.append((metric, tuple(logs)))
        return mean_ranks(evaluation, metric, logs, seed=seed)

    monkeypatch.setattr(standings, "mean_ranks", counting)
    ranks = sections(by_hand({log: {"cost": CLEAR, "yield": CLEAR} for log in ("one", "two")}))["ranks"]
    assert len(ranks.pictures) == 1
    assert taken == [(metric, logs) for logs in (("one",), ("two",), ("one", "two")) for metric in ("cost", "yield")]


def test_missing_values_are_counted_and_said(by_hand: Make) -> None:
    broken = {**CLEAR, "C": [np.nan, np.nan, 1.0, 1.0, 1.0, 1.0, 1.0]}
    result = sections(by_hand({"log": {"cost": broken}}))
    snapshot(result["values"].tables[0].note)
    assert marks(result["differences"].tables[0], "difference") == ["better", ""]


@pytest.mark.parametrize(
    ("statistic", "title", "unit", "words"),
    [
        ("mean", "log: mean over 7 windows, with 95 % interval", "1", "it differs from A by -7.57 in the mean"),
        (
            "ratio",
            "log: mean over 7 windows, with 95 % interval",
            "%",
            "sum over all windows differs from that of A by",
        ),
    ],
)
def test_other_statistics_say_what_they_are(
    by_hand: Make, statistic: Statistic, title: str, unit: str, words: str
) -> None:
    result = sections(by_hand({"log": {"cost": CLEAR}}), statistic)
    assert result["values"].tables[0].title == title
    assert result["differences"].tables[0].columns[1].unit == unit
    assert words in " ".join(result["in-short"].paragraphs).lower().replace("a by", "A by")


# Ranks and wins. -----------------------------------------------------------------------------------------------------


def test_mean_places_have_intervals_inside_the_places(by_hand: Make) -> None:
    table = {"A": [4.0, 8.0, 2.0, 6.0, 10.0, 9.0], "B": [3.0, 9.0, 2.0, 5.0, 1.0, 2.0], "C": [20.0] * 6}
    result = {rank.policy: rank for rank in mean_ranks(by_hand({"log": {"cost": table}}), "cost", ["log"])}
    # Places of A by window: 2 1 1.5 2 2 2; of B: 1 2 1.5 1 1 1.
    assert result["A"].mean.value == pytest.approx(10.5 / 6)
    assert result["C"].mean.interval == Interval(3.0, 3.0)
    for policy in "AB":
        interval = result[policy].mean.interval
        assert interval is not None
        assert 1 <= interval.low < result[policy].mean.value < interval.high <= 3


def test_one_window_of_ten_that_differs_does_not_make_the_interval_of_a_place_endless(by_hand: Make) -> None:
    # Resamples without the tenth window have no spread at all.
    table = {"A": [4.0] * 10, "B": [1.0] * 9 + [5.0], "C": [3.0] * 10, "D": [2.0] * 10}
    result = {rank.policy: rank for rank in mean_ranks(by_hand({"log": {"cost": table}}), "cost", ["log"])}
    assert result["B"].mean.interval is not None
    assert result["B"].mean.interval.high < 2.5


def test_wins_mirror_each_other(by_hand: Make) -> None:
    rng = np.random.default_rng(4)
    table = {name: rng.lognormal(size=9).tolist() for name in "ABC"}
    table["C"][0], table["B"][1], table["B"][2] = np.nan, table["A"][1], np.inf
    result = wins(by_hand({"log": {"cost": table}}), "log", "cost")
    assert result.diagonal().tolist() == [0, 0, 0]
    # A draw and a case without a value of both count for neither.
    assert (result[0, 1] + result[1, 0], result[0, 2] + result[2, 0], result[1, 2] + result[2, 1]) == (7, 8, 7)
    turned = wins(by_hand({"log": {"yield": table}}), "log", "yield")
    assert turned.tolist() == result.T.tolist()


# In words. -----------------------------------------------------------------------------------------------------------


def test_the_words_say_of_what_an_interval_is_one(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": CLEAR}})
    (windows,) = intervals_in_words(evaluation)
    snapshot(windows, part="1")
    (resamples,) = intervals_in_words(as_kind(evaluation, "resample"))
    snapshot(resamples, part="2")
    few = by_hand({"few": {"cost": {"A": [1.0, 2.0]}}, "one": {"cost": {"A": [1.0]}}})
    snapshot(intervals_in_words(few), part="3")


def test_the_words_count_what_stands_of_many(by_hand: Make) -> None:
    table = {"A": [float(n) for n in range(10, 20)]} | {f"B{k}": [float(n) for n in range(1, 11)] for k in range(6)}
    rows = compare(by_hand({"log": {"cost": table}}))
    text = chance_in_words(rows, "cost")
    snapshot(text, chance_in_words(rows[:1], "cost"), part="1")
    # Six windows and six comparisons: nothing can stand, and the words say so.
    few = compare(by_hand({"log": {"cost": {name: values[:6] for name, values in table.items()}}}))
    snapshot(chance_in_words(few, "cost"), part="2")
    assert chance_in_words([], "cost") == ""


def test_small_words() -> None:
    assert [counted(n, "window") for n in (0, 1, 2)] == ["0 windows", "1 window", "2 windows"]
    assert [enumerated(names) for names in (["A"], ["A", "B"], ["A", "B", "C"])] == ["A", "A and B", "A, B and C"]
