"""The report says what was found, for eyes and for Markdown, and the pictures have axes with units."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from policyfactory.core.picture import save_picture
from policyfactory.fitting import model as picture
from policyfactory.fitting.fits import Fits, fit, report_tables, sentences, to_markdown
from policyfactory.trials.table import ScoreTable


@pytest.fixture(scope="module")
def run(sc17_table: ScoreTable) -> Fits:
    families = ["forms", "polynomials", "linear", "power=a*p**b*q + c*log10(r)"]
    return fit(sc17_table, families, top=2, bootstrap=40, certainty=True)


def test_the_sentences_name_the_winner_and_its_certainty(run: Fits) -> None:
    text = " ".join(sentences(run))
    assert "6,912 jobs in 216 tuples" in text
    assert "576 forms are 400 different functions; 40 of them have no value" in text
    assert "Best by mean absolute error: QDR (8 terms), 0.0045329" in text
    assert "giving every job of a queue the same score: 0.0041639" in text
    assert "the 216 tuples count like 83 of equal weight" in text
    assert "the winner is not certain" in text


def test_the_ranking_has_the_best_and_everything_with_a_name(run: Fits) -> None:
    ranking = report_tables(run)[0]
    keys = [str(row[0].value) for row in ranking.rows]
    assert "log10(p)*q + 870.96*log10(r)" in keys
    assert "power: p**0.62464*q + 99340*log10(r)" in keys
    assert [row[1].value for row in ranking.rows[:10]] == list(range(1, 11))
    assert any(key.startswith("SEX") for key in keys)


def test_the_inflation_table_has_the_shape_of_the_papers(run: Fits) -> None:
    table = next(table for table in report_tables(run, wide=True) if table.title.endswith("of the polynomials"))
    rows = [[cell.value for cell in row] for row in table.rows]
    names = ("LIN", "QDR", "CUB", "QUA", "QUI", "SEX")
    assert [column.title for column in table.columns] == ["", "x", *names, *(f"VIF {name}" for name in names)]
    assert (rows[0][0], rows[0][2]) == ("theta0", "3.35e-2")
    assert [(row[1], row[8]) for row in rows[1:4]] == [("p", "1.3"), ("q", "1.3"), ("r", "1.2")]
    assert rows[4][2] == "-"
    assert len(rows) == 34 + 2


def test_on_the_terminal_it_comes_in_two(run: Fits) -> None:
    titles = [table.title for table in report_tables(run)]
    assert "Coefficients of the polynomials" in titles
    assert "Variance inflation factors (VIF) of the polynomials" in titles


def test_what_is_compared_stands_side_by_side(run: Fits) -> None:
    # Two tables of few columns: on a narrow terminal none of them is cut so that one column stands alone.
    values, ratios = report_tables(run)[1:3]
    assert [column.title for column in values.columns] == ["", "of", "value", "std error", "t", "unit"]
    assert [column.title for column in ratios.columns] == ["", "of", "over the first, 95 %", "VIF", "VIF weighted"]
    assert [row[:2] for row in values.rows] == [row[:2] for row in ratios.rows]


def test_every_row_has_a_cell_for_every_column(run: Fits) -> None:
    for table in (*report_tables(run), *report_tables(run, wide=True)):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.title


def test_markdown_is_whole_and_escaped(run: Fits) -> None:
    text = to_markdown(run, [("A picture", "figures/a.png")])
    assert text.startswith("# Fit of sc17-score-distribution\n")
    assert "log10(p)\\*q + 870.96\\*log10(r)" in text
    assert "![A picture](figures/a.png)" in text
    assert "## When not to trust these fits" in text
    assert "not monotone" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables
    assert all(line.endswith("|") for line in tables)


def test_a_table_name_from_a_stranger_cannot_write_markdown(made) -> None:  # type: ignore[no-untyped-def]
    import dataclasses

    table = dataclasses.replace(made(lambda p, q, r: 1e-6 * q + 0 * p, noise=1e-3), name="x|<b>![a](b)")
    text = to_markdown(fit(table, "linear", bootstrap=0))
    assert "<b>" not in text.replace("\\<b\\>", "")
    assert "![a]" not in text


def test_the_certainty_table_is_by_size(run: Fits) -> None:
    table = report_tables(run)[-1]
    disjoint = report_tables(run, wide=True)[-1]
    assert "(" in str(disjoint.rows[0][1].value)
    assert "(" not in str(table.rows[0][1].value)
    assert [column.title for column in table.columns] == ["tuples", "25", "50", "100", "216"]
    assert table.rows[0][0].value == run[0].name
    assert "reaches 95% at no size" in table.note


@pytest.mark.slow
def test_pictures_are_drawn_the_same_each_time(run: Fits, tmp_path: Path) -> None:
    sample, winner = run.sample, run.winner.fit
    polynomials = [item.fit for item in run.examined if item.fit.family == "polynomials"]
    assert run.certainty is not None
    certainty = run.certainty
    draw: dict[str, Callable[[], Figure]] = {
        "priority": lambda: picture.draw_priority(winner, sample),
        "polynomials": lambda: picture.draw_polynomials(polynomials, sample),
        "ranking": run.plot,
        "certainty": lambda: picture.draw_certainty(certainty),
    }
    for name, make in draw.items():
        first = save_picture(make(), tmp_path / f"{name}.png").read_bytes()
        assert first.startswith(b"\x89PNG")
        assert len(first) > 10_000
        assert save_picture(make(), tmp_path / f"{name}-2.png").read_bytes() == first


def test_axes_say_what_they_show_in_which_unit(run: Fits) -> None:
    figures = [picture.draw_priority(run.winner.fit, run.sample), run.plot()]
    seen = {label for figure in figures for axis in figure.axes for label in (axis.get_xlabel(), axis.get_ylabel())}
    assert {"run time p (s)", "processors q", "submit time r (h since the start)"} <= seen
    assert "mean absolute error of the score" in seen


def test_one_constant_column_can_be_drawn(made, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = made(lambda p, q, r: 1e-8 * p + 0.004 * p / p, noise=1e-4)
    import numpy as np

    narrow = ScoreTable(table.p, np.ones(len(table)), table.r, table.score, table.stderr, table.tuple_id)
    run = fit(narrow, "a*p + b*log10(r)", bootstrap=5)
    save_picture(picture.draw_priority(run.winner.fit, run.sample), tmp_path / "x.png")
    save_picture(run.plot(), tmp_path / "y.png")
