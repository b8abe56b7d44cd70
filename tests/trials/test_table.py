"""Score tables: what is written is read, what is malformed is named."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.ticker import LogFormatterSciNotation
from numpy.testing import assert_array_equal

from policyfactory.core.errors import InputError, ScoreTableError
from policyfactory.trials.table import (
    HEADER,
    GenerateOptions,
    ScoreTable,
    csv_number,
    read_score_table,
    write_score_table,
)
from refusals import refused

COLUMNS = ("p", "q", "r", "score", "stderr", "tuple_id")


def table_of(n: int = 6, **columns) -> ScoreTable:
    rng = np.random.default_rng(1)
    score = rng.random(n)
    values = {
        "p": rng.integers(1, 1000, n),
        "q": rng.integers(1, 64, n),
        "r": rng.integers(0, 9999, n) + 0.25,
        "score": score / np.bincount(np.arange(n) // 3, score)[np.arange(n) // 3],
        "stderr": rng.random(n) * 1e-5,
        "tuple_id": np.arange(n) // 3,
    }
    return ScoreTable(**{**values, **columns})


def test_a_table_reads_back_to_the_last_bit(tmp_path):
    table = table_of(stderr=[np.nan, 1e-300, 0.1, 1 / 3, 5e-324, 0.0])
    write_score_table(table, tmp_path / "t.csv")
    again = read_score_table(tmp_path / "t.csv")
    for column in COLUMNS:
        assert_array_equal(getattr(again, column), getattr(table, column))
    assert (again.name, len(again), again.tuples) == ("t", 6, 2)
    assert len(again.sha256) == 64
    write_score_table(again, tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()


def test_a_tuple_that_is_not_whole_is_named(tmp_path):
    for name, rows in (("cut", [0, 1, 2, 3, 4]), ("twice", [0, 1, 2, 3, 4, 5, 5])):
        write_score_table(table_of().select(rows), tmp_path / f"{name}.csv")
        refused(ScoreTableError, f"{name}.csv tuple 1", read_score_table, tmp_path / f"{name}.csv")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_in_full(value):
    assert float(csv_number(value)) == value


def test_the_published_table_is_read(shared):
    table = read_score_table(shared("oracles/sc17-score-distribution.csv"))
    assert (len(table), table.tuples) == (6912, 216)
    assert_array_equal(np.bincount(table.tuple_id), np.full(216, 32))
    sums = np.bincount(table.tuple_id, weights=table.score)
    assert np.abs(sums - 1).max() < 1e-9
    assert np.isnan(table.stderr).all()
    assert (table.p[0], table.q[0], table.r[0], table.score[0]) == (10, 4, 27541, 0.0269601427393)


def test_a_picture_says_from_when_the_submit_time_counts():
    labels = [axes.get_xlabel() for axes in table_of().plot().axes]
    assert labels == ["run time p (s)", "processors q", "submit time r\n(s since the tuple's first)"]


def test_columns_are_frozen_and_rows_can_be_selected():
    table = table_of()
    with pytest.raises(ValueError, match="read-only"):
        table.score[0] = 1.0
    part = table.select(table.tuple_id == 1, name="part")
    assert (len(part), part.tuples, part.name, part.sha256) == (3, 1, "part", "")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"q": [1, 2]}, "2 6 scores"),
        ({"score": [0, 0, 0, -0.1, 0, 0]}, "3 score -0.1 0 1"),
        ({"p": [1, 1, np.nan, 1, -1, 1]}, "2 p nan"),
        ({"q": [1, 0.5, 1, 1, 1, 1]}, "1 q 0.5 scores"),
        ({"stderr": [0, 0, 0, 0, 0, np.inf]}, "5 stderr inf"),
    ],
)
def test_a_table_in_memory_is_checked(columns, message):
    refused(ScoreTableError, message, table_of, **columns)


GOOD = f"{HEADER}\n1,2,3,0.5,0.1,0\n1,2,3,0.5,nan,0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv:1 scores"),
        (HEADER, "t.csv:2 scores header"),
        ("p,q,r,score\n1,2,3,1\n", "t.csv:1 p,q,r,score p,q,r,score,stderr,tuple"),
        (GOOD + "1,2,3,0.5,0.1\n", "t.csv:4 5 6"),
        (GOOD + "1,2,3,half,0.1,0\n", "t.csv:4 score half"),
        (GOOD + "1,2,3,0.5,0.1,0.5\n", "t.csv:4 tuple 0.5"),
        (GOOD + "\n1,2,3,0.5,0.1,0\n", "t.csv:4 1 6"),
        (GOOD + "1,0,3,0.5,0.1,0\n", "t.csv:4 q 0 1"),
        (GOOD + "1,2,3,7,0.1,0\n", "t.csv:4 score 7 0 1"),
        (GOOD + "1,2,3,0.5,0.1,99999999999999999999\n", "t.csv:4 tuple 1e+20"),
        ("1,2,3,0.5\n1,2,3,0.6\n", "t.csv:2 1 1.1"),
        ("1,2,3,0.5\n1,2,3,0.5\n1,2,3,0.4\n", "t.csv:3 0.4 tuple"),
        ("1,2,3\n", "t.csv:1 3 4"),
        ("\xff\xfe binary", "t.csv:1 columns 1"),
    ],
)
def test_a_malformed_table_names_file_and_line(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("latin-1"))
    refused(ScoreTableError, message, read_score_table, path)


def test_files_with_windows_line_ends_or_no_last_one_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert len(read_score_table(path)) == 2
    path.write_bytes(GOOD.rstrip().encode())
    assert len(read_score_table(path)) == 2


def test_no_file_and_a_folder_are_reported(tmp_path):
    refused(InputError, "none.csv no such file", read_score_table, tmp_path / "none.csv")
    refused(InputError, f"{tmp_path} directory", read_score_table, tmp_path)


def test_a_table_that_is_not_its_manifests_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GOOD)
    manifest = tmp_path / "t.manifest.json"
    manifest.write_text(json.dumps({"outputs": {"t.csv": "0" * 64}, "parameters": {}}))
    refused(ScoreTableError, "t.csv t.manifest.json describes 222800071ab6", read_score_table, path)
    manifest.write_text("[1]")
    refused(ScoreTableError, "t.manifest.json t.csv manifest", read_score_table, path)
    manifest.write_text(json.dumps({"outputs": {}, "parameters": {"origin": "by hand"}}))
    assert read_score_table(path).origin == "by hand"


def test_a_table_is_drawn_over_each_column():
    table = table_of(3000, tuple_id=np.arange(3000) // 3)
    figure = table.plot()
    assert figure.get_size_inches().tolist() == [10.0, 3.4]
    assert figure.get_suptitle() == "t: 3,000 jobs in 1,000 tuples".replace("t:", f"{table.name}:", 1)
    assert [axes.get_xlabel().split()[0] for axes in figure.axes] == ["run", "processors", "submit"]
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "log", "linear"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["score (lower runs first)", "", ""]
    first, *others = figure.axes
    assert all(first.get_shared_y_axes().joined(first, axes) for axes in others)
    for axes, column in zip(figure.axes, (table.p, table.q, table.r), strict=True):
        (line,) = axes.lines
        assert_array_equal(line.get_xdata(), column)
        assert_array_equal(line.get_ydata(), table.score)
        assert (line.get_marker(), line.get_markersize()) == (".", 2)
        assert axes.xaxis.get_major_formatter()(123456, 0) == "123,456"
        assert not isinstance(axes.xaxis.get_minor_formatter(), LogFormatterSciNotation)


def test_a_table_is_shown_in_a_notebook():
    shown = table_of(6, score=np.full(6, 0.5), stderr=[0.01, 0.01, 0.02, 0.02, 0.02, np.nan])._repr_html_()
    assert "<caption>ScoreTable " in shown
    assert "6 jobs in 2 tuples</caption>" in shown
    assert "<td align='left'>4 % of the score</td>" in shown
    assert "nan % of the score" in table_of(6, stderr=np.full(6, np.nan))._repr_html_()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.swf", "1,1,0,0.5\n"),
        ("a.SWF.gz", "1,1,0,0.5\n"),
        ("a.csv", "; MaxProcs: 4\n"),
        ("a.csv", " ".join(["1"] * 18) + "\n"),
    ],
)
def test_each_sign_of_a_log_is_enough(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    refused(ScoreTableError, "score table --output", read_score_table, tmp_path / name)


def test_without_options_they_are_those_of_the_shipped_table(root):
    made = json.loads((root / "training_data" / "lublin-256.manifest.json").read_text(encoding="utf-8"))["parameters"]
    options = dataclasses.asdict(GenerateOptions())
    assert {name: made[name] for name in options} == options
