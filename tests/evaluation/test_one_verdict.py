"""A comparison is called better, worse or different only if it stands with all policies judged together, everywhere."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import conclude, schedule, workload

import policyfactory as pf
from daily_log import daily
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.experiment import Experiment, Outcome
from policyfactory.evaluation.options import ClaimTable
from policyfactory.evaluation.paper import claim_sections
from policyfactory.evaluation.results_folder import finding
from policyfactory.evaluation.standings import boards_of, forests_of, sections_of
from policyfactory.evaluation.words import closing_words
from policyfactory.report.sections import Cell, Section
from policyfactory.statistics.compare import compare, compare_recorded
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.summary import summarise, summarise_recorded

Make = Callable[..., Evaluation]
CALLED = {"better", "worse", "differs", "lower", "higher"}
# Six windows: B and D are lower, C is higher in each of them; alone that has p = 2 * 0.5**6 = 0.03, and of three 0.09.
BASE = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
COST = {"A": BASE, "B": [5.0] * 6, "C": [value + 3 for value in BASE], "D": [value - 2 for value in BASE]}


def outcome(evaluation: Evaluation) -> Outcome:
    evaluation = dataclasses.replace(evaluation, recorded=30.0 + np.arange(6.0)[:, None] * np.ones(2))
    experiment = Experiment("hand", (), evaluation.contenders, metrics=evaluation.metrics)
    rows, pairs = summarise(evaluation), compare(evaluation)
    found = Outcome(
        experiment,
        evaluation,
        tuple(rows),
        tuple(pairs),
        tuple(closing_words(evaluation, rows, pairs)),
        recorded_summaries=tuple(summarise_recorded(evaluation)),
        recorded_comparisons=tuple(compare_recorded(evaluation)),
    )
    return dataclasses.replace(found, sections=tuple(sections_of(found)))


def marks(sections: list[Section]) -> Iterator[str]:
    tables = itertools.chain.from_iterable(section.tables for section in sections)
    cells: Iterator[Cell] = (cell for table in tables for row in table.rows for cell in row)
    return (cell.mark for cell in cells)


def test_intervals_that_leave_out_zero_by_chance_are_drawn_and_not_called(by_hand: Make) -> None:
    found = outcome(by_hand({"log": {"cost": COST, "hue": COST}}))
    assert [row.interval is not None and not row.interval.covers(0.0) for row in found.comparisons] == [True] * 6
    boards = [board.table for board in (*boards_of(found), *forests_of(found))]
    claims = claim_sections(
        [ClaimTable(text="B and D are good", better=("B", "D"), than=("A", "C"), metric="cost")], [found]
    )
    sections = [*found.sections, *claims, Section("boards", "", tables=tuple(boards))]
    assert not CALLED & {*marks(sections)}
    assert {row["verdict"] for row in finding(found)["differences"]} == {"no difference"}
    assert {row["verdict"] for row in finding(found)["recorded"]["differences"]} == {"no difference"}
    words = " ".join((*found.words, *(text for section in sections for text in section.paragraphs)))
    assert not re.search("(?i)(?<!not )shown to be (better|worse)|is worse than", words)
    assert "among so many comparisons chance does as much (Holm), so no difference from A is shown" in words
    assert "Not shown in 1 of 1" in words
    # The same differences alone do stand.
    alone = outcome(by_hand({"log": {name: {key: COST[key] for key in "AB"} for name in ("cost", "hue")}}))
    assert [row.verdict for row in alone.comparisons] == ["better", "differs"]


JOBS = workload([(0, 30, 60, 1, 7), (10, 7200, 7200, 4, 9), (20, 30, 60, 1, 7)])


@pytest.mark.parametrize(
    "analysis",
    ["groups", "fairness", "starvation", "load", "premature", "delayed", "backfilled", "slowdown-classes"],
)
def test_every_analysis_judges_the_policies_together(analysis: str) -> None:
    options: dict[str, Any] = {"min_jobs": 1} if analysis == "groups" else {}
    made = make_analysis(analysis, **options)

    def case(number: int, names: str) -> list[Any]:
        less = {"A": 0, "B": 300, "C": 200, "D": 100}
        return [
            schedule(JOBS, [500 + number - less[name], 600 + number - less[name], 1500 - less[name]], name)
            for name in names
        ]

    together = conclude(made, [case(number, "ABCD") for number in range(6)])
    assert not CALLED & {*marks([together])}
    if analysis in {"groups", "fairness", "starvation"}:
        assert CALLED & {*marks([conclude(made, [case(number, "AB") for number in range(6)])])}


@pytest.mark.usefixtures("blank_pictures")
def test_no_file_calls_what_does_not_stand(tmp_path: Path) -> None:
    # Six cases and four comparisons: by medians nothing can stand, whatever the intervals are.
    result = pf.evaluate(daily(), "FCFS,SPF,SAF,LPF,LAF", windows="6x4d", metrics=["mean_bsld", "mean_wait"])
    assert any(row.by_chance for row in result.comparisons)
    folder = result.report(tmp_path / "out").parent
    tables = sorted((folder / "evaluation").rglob("*.csv"))
    assert len(tables) > 5
    for path in tables:
        cells = {cell for row in csv.reader(path.read_text().splitlines()) for cell in row}
        assert not CALLED & cells, path
    content = (folder / "evaluation.json").read_text()
    assert {row["verdict"] for row in json.loads(content)["experiments"]["evaluation"]["differences"]} == {
        "no difference"
    }
    page = (folder / "report.html").read_text()
    said = re.findall(r'class="mark (\w+)">', page.partition('class="reading"')[0])
    assert "same" in said
    assert not {"better", "worse"} & {*said}
    assert not re.search("(?i)(?<!not )shown to be (better|worse)", result.summary())
