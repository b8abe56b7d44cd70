"""One table a log and metric, and the few rows that decide: who comes first, who is marked, what is left unsaid."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from daily_log import daily
from policyfactory.core.files import Manifest
from policyfactory.evaluation import standings
from policyfactory.evaluation.experiment import Experiment, Outcome
from policyfactory.evaluation.results_folder import page_of
from policyfactory.evaluation.standings import boards_of, forests_of, restated, sections_of
from policyfactory.evaluation.study import evaluate
from policyfactory.report.page import Page, render, view
from policyfactory.report.sections import Column, Section, Table
from policyfactory.report.verdict import UNTRUSTED, Verdict
from policyfactory.simulation.metrics import METRICS
from policyfactory.statistics.compare import compare, compare_recorded
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.summary import summarise, summarise_recorded

Make = Callable[..., Evaluation]
COST = {
    "A": [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0],
    "B": [5.0, 6.0, 5.0, 6.0, 5.0, 6.0, 5.0, 6.0, 5.0],
    "C": [6.0, 7.0, 6.0, 7.0, 6.0, 7.0, 6.0, 7.0, 6.0],
    "D": [9.0, 12.0, 11.0, 14.0, 13.0, 16.0, 15.0, 18.0, 17.0],
    "E": [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0],
}


def outcome(evaluation: Evaluation, chosen: str = "", record: list[float] | None = None) -> Outcome:
    if record is not None:
        columns = np.array(record)[:, None] * np.ones(len(evaluation.metrics))
        evaluation = dataclasses.replace(evaluation, recorded=columns)
    experiment = Experiment("hand", (), evaluation.contenders, metrics=evaluation.metrics)
    return Outcome(
        experiment,
        evaluation,
        tuple(summarise(evaluation)),
        tuple(compare(evaluation)),
        recorded_summaries=tuple(summarise_recorded(evaluation)),
        recorded_comparisons=tuple(compare_recorded(evaluation)),
        chosen=chosen,
    )


def roles(table: Table) -> list[tuple[object, str]]:
    return [(row[0].value, row[0].mark) for row in table.rows]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let five policies be so many that the head of the page shows a few."""
    monkeypatch.setattr(standings, "_WHOLE", 0)


def test_a_table_that_is_short_stands_in_full_at_the_head(by_hand: Make) -> None:
    found = outcome(by_hand({"log": {"cost": COST}}))
    assert roles(forests_of(found)[0].table) == roles(boards_of(found)[0].table)
    assert len(forests_of(found)[0].table.columns) == len(boards_of(found)[0].table.columns)


@pytest.mark.usefixtures("many")
def test_the_chosen_policy_comes_first_whoever_is_best(by_hand: Make) -> None:
    found = outcome(by_hand({"log": {"cost": COST}}), "C", [20.0] * 9)
    assert roles(forests_of(found)[0].table) == [
        ("C", "chosen"),
        ("A", "baseline"),
        ("recorded", "record"),
        ("B", "best value"),
    ]
    (one,) = boards_of(found)
    assert roles(one.table) == [
        ("C", "chosen"), ("A", "baseline"), ("recorded", "record"), ("B", "best value"), ("D", ""), ("E", ""),
    ]  # fmt: skip


@pytest.mark.usefixtures("many")
def test_without_a_choice_the_best_comes_first_and_a_chosen_baseline_is_the_baseline(by_hand: Make) -> None:
    evaluation = by_hand({"log": {"cost": COST}})
    assert roles(forests_of(outcome(evaluation))[0].table) == [
        ("B", "best value"),
        ("A", "baseline"),
        ("C", "next best"),
    ]
    assert roles(forests_of(outcome(evaluation, "A"))[0].table) == [("A", "baseline"), ("B", "best value")]
    assert forests_of(outcome(by_hand({"log": {"cost": {"A": COST["A"]}}}))) == ()


@pytest.mark.usefixtures("many")
def test_a_tie_has_no_winner(by_hand: Make) -> None:
    tied = outcome(by_hand({"log": {"cost": {"A": COST["A"], "E": COST["E"]}}}))
    assert roles(forests_of(tied)[0].table) == [("A", "baseline")]
    assert roles(boards_of(tied)[0].table) == [("A", "baseline"), ("E", "")]
    assert boards_of(tied)[0].table.note == "No difference is shown from A: E."
    assert {row[1].mark for row in boards_of(tied)[0].table.rows} == {""}
    values = next(section for section in sections_of(tied) if section.name == "values")
    assert {row[1].mark for row in values.tables[0].rows} == {""}


def test_the_choice_is_the_first_policy_of_the_front_tables(by_hand: Make) -> None:
    found = outcome(by_hand({"log": {"cost": COST}}), "C")
    columns = {
        Column("group"): lambda name: name, Column("share", "%"): lambda _: 50.0,
        Column("B", "s"): lambda _: 1.0, Column("C", "s"): lambda _: 2.0,
    }  # fmt: skip
    made = dataclasses.replace(Table.of("who", "who", columns, [("x",)]), front=True)
    (section,) = restated(dataclasses.replace(found, sections=(Section("groups", "Who", tables=(made,)),))).sections
    assert [column.title for column in section.tables[0].columns] == ["group", "share", "C", "B"]
    assert [cell.value for cell in section.tables[0].rows[0]] == ["x", 50.0, 2.0, 1.0]


def test_a_metric_without_a_direction_names_nobody(by_hand: Make) -> None:
    (one,) = boards_of(outcome(by_hand({"log": {"hue": COST}}), "C"))
    assert {mark for _, mark in roles(one.table)} == {"", "baseline"}


def test_the_record_is_as_far_from_the_baseline_as_that_is_from_it(by_hand: Make) -> None:
    found = outcome(by_hand({"log": {"cost": COST}}), record=[20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 27.0, 28.0, 29.0])
    table = boards_of(found)[0].table
    row = next(row for row in table.rows if row[0].value == "recorded")
    against = next(row for row in found.recorded_comparisons if row.policy == "A")
    assert row[table.bars].value == 10 == -against.difference
    assert row[table.bars].interval is not None
    assert against.interval is not None
    assert row[table.bars].interval.high == -against.interval.low
    # It is no contender: no word is said of it.
    assert row[table.bars].mark == ""


def test_what_does_not_differ_is_one_sentence(by_hand: Make) -> None:
    table = boards_of(outcome(by_hand({"log": {"cost": COST}})))[0].table
    assert table.note == "No difference is shown from A: D and E."


def test_points_and_intervals_lie_on_one_axis(by_hand: Make) -> None:
    shown = view(boards_of(outcome(by_hand({"log": {"cost": COST}})))[0].table, "", "", "B")
    assert shown.axis is not None
    places = {key: bar for key, bar in zip(shown.keys, shown.axis.bars, strict=True) if bar}
    assert places["B"].point < places["C"].point < shown.axis.zero
    assert all(bar.low is not None and bar.high is not None for bar in places.values())
    assert all((bar.low or 0) <= bar.point <= (bar.high or 0) for bar in places.values())
    assert shown.axis.ends.startswith("-")
    assert shown.axis.ends.endswith(" to +1.00")
    assert {key: bar.kind for key, bar in places.items()} == {"B": "better", "C": "better", "D": "same", "E": "same"}
    assert places["B"].label.endswith("better")
    wide = {**COST, "F": [9e6] * 9}
    bent = view(boards_of(outcome(by_hand({"log": {"cost": wide}})))[0].table, "", "").axis
    assert bent is not None
    assert bent.bent
    # One huge difference does not press the others onto zero.
    assert bent.zero - next(bar.point for bar in bent.bars if bar and bar.kind == "better") > 2


def test_metrics_have_words() -> None:
    assert METRICS["mean_bsld"].title == "mean bounded slowdown"
    assert METRICS["p95_wait"].title == "95 % quantile of the wait"
    assert METRICS["max_pp_bsld"].title == "largest bounded slowdown per processor"


def test_the_card_says_of_which_jobs_the_load_is_and_claims_no_users_for_requests(tmp_path: Path) -> None:
    path = tmp_path / "made.swf"
    lines = [f"{n} {n * 600} 0 {100 + n} 1 -1 -1 1 {1000 + n} -1 1 1 -1 -1 -1 -1 -1 -1" for n in range(1, 61)]
    path.write_text("; MaxProcs: 4\n; Note: requested times are those of a model\n" + "\n".join(lines) + "\n")
    study = evaluate(str(path), "FCFS,SPF", metrics="mean_wait", analyses=[], recorded=False)
    (card,) = page_of(study, Manifest("evaluation", "", 0), "").cards
    facts = dict(card.facts)
    assert facts["requests"] == "as in the log"
    assert facts["offered load"].endswith(", of the whole log")


def test_no_table_stands_twice_on_a_page() -> None:
    study = evaluate(daily(), "FCFS,SPF,SAF", metrics=["mean_bsld", "mean_wait"], analyses=[])
    page = page_of(study, Manifest("evaluation", "", 0), "")
    html = render(page)
    titles = re.findall(r"<h4 id=[^>]*>([^<]+)</h4>", html)
    boards = [title for title in titles if title.startswith("daily: mean ")]
    assert [title.partition(" (")[0] for title in boards] == ["daily: mean bounded slowdown", "daily: mean wait"]
    # On a phone the heading of a cell is before it, with its unit.
    assert 'data-label="change (%)"' in html


def test_on_a_page_that_is_not_to_be_trusted_nothing_has_the_colour_of_what_is() -> None:
    plain = Page("A title", verdict=Verdict("better", ("Why.",), heading="In simulation: shown to be better"))
    assert '<body class="untrusted">' not in render(plain)
    far = Verdict("unsound", ("Far.",), heading="For the site: not to be trusted here")
    both = dataclasses.replace(plain, verdict=dataclasses.replace(plain.verdict or far, site=far))
    html = render(both)
    assert '<body class="untrusted">' in html
    assert html.index("In simulation: shown to be better") < html.index("For the site: not to be trusted here")
    assert html.count('class="sign" aria-hidden="true"') == 2
    assert ".untrusted .mark:is(.best, .better, .worse) { color: var(--soft);" in html
    assert '<body class="untrusted">' in render(Page("A", verdict=Verdict("unsound", ("Far.",), heading=UNTRUSTED)))
