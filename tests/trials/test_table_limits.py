"""Score tables at the limits of what is accepted, each from both sides."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from policyfactory.core.errors import ScoreTableError
from policyfactory.trials.table import HEADER, ScoreTable, csv_number, csv_rows, parse_rows, read_score_table
from refusals import refused


def read(tmp_path, text: str) -> ScoreTable:
    (tmp_path / "t.csv").write_text(text, encoding="ascii")
    return read_score_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "line", ["0,1,0,0,0,0", "1e300,1,1e300,1,1e300,-3", "1,1,1,1.0000005,nan,9007199254740991", "0.5,1,0.5,0.5,0.5,7"]
)
def test_the_least_and_the_largest_values_are_read(tmp_path, line):
    *_, score, _, number = line.split(",")
    table = read(tmp_path, f"{HEADER}\n{line}\n1,1,1,{max(0, 1 - float(score))},0,{number}\n")
    assert [table.p[0], table.q[0], table.r[0], table.score[0]] == [float(cell) for cell in line.split(",")[:4]]
    assert table.tuple_id[0] == int(line.rpartition(",")[2])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-1e-9,1,0,0.5,0,0", "p -1e-09"),
        ("inf,1,0,0.5,0,0", "p inf"),
        ("1,0.999,0,0.5,0,0", "q 0.999"),
        ("1,inf,0,0.5,0,0", "q inf"),
        ("1,1,-1,0.5,0,0", "r -1"),
        ("1,1,inf,0.5,0,0", "r inf"),
        ("1,1,nan,0.5,0,0", "r nan"),
        ("1,1,0,1.000002,0,0", "score 1"),
        ("1,1,0,nan,0,0", "score nan"),
        ("1,1,0,0.5,-1e-9,0", "stderr -1e-09"),
        ("1,1,0,0.5,0,9007199254740992", "tuple 9.0072e+15"),
        ("1,1,0,0.5,0,-9007199254740992", "tuple -9.0072e+15"),
        ("1,1,0,0.5,0,1.5", "tuple 1.5"),
    ],
)
def test_values_beyond_are_refused(tmp_path, line, message):
    refused(ScoreTableError, f"t.csv:3 {message}", read, tmp_path, f"{HEADER}\n1,1,0,0.5,0,0\n{line}\n")


def test_the_first_faulty_line_is_named_whatever_its_column(tmp_path):
    refused(ScoreTableError, "t.csv:2 q 0", read, tmp_path, "1,1,0,0.5\n1,0,0,0.5\n-1,1,0,0.5\n")
    refused(ScoreTableError, "t.csv:1 r -3", read, tmp_path, "1,1,-3,0.5\n1,0,0,0.5\n")


@pytest.mark.parametrize("cell", ["1_0", "\uff11", "0x10", ""])
def test_only_plain_numbers_are_numbers(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"1,1,0,0.5\n{cell},1,0,0.5\n", encoding="utf-8")
    refused(ScoreTableError, "t.csv:2 p number", read_score_table, tmp_path / "t.csv")


def test_a_tuple_ends_where_its_scores_sum_to_1(tmp_path):
    # The first sums to 1 - 5e-7, the second to 1 + 5e-7, the third to 1 in three parts.
    rows = "".join(f"1,1,0,{score}\n" for score in (0.5, 0.4999995, 0.25, 0.7500005, 0.2, 0.3, 0.5))
    table = read(tmp_path, rows)
    assert table.tuple_id.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert np.isnan(table.stderr).all()
    assert "SC'17" in table.origin
    refused(ScoreTableError, "t.csv:4 3 1.1 1", read, tmp_path, "1,1,0,0.5\n1,1,0,0.5\n1,1,0,0.5\n1,1,0,0.6\n")
    message = refused(ScoreTableError, "t.csv:2 0.999998", read, tmp_path, "1,1,0,0.5\n1,1,0,0.499998\n")
    assert re.search(r"line 1\b", message)


def test_numbers_are_whole_where_a_double_counts():
    assert csv_number(3.0) == "3"
    assert csv_number(-3.0) == "-3"
    assert csv_number(0.1) == "0.1"
    assert csv_number(999999999999999.0) == "999999999999999"
    assert csv_number(1e15) == "1000000000000000.0"
    assert csv_number(-1e15) == "-1000000000000000.0"


def test_lines_of_a_tuple_are_read_back():
    text = csv_rows(([1, 2.5], [1, 2], [0, 7], [0.25, 0.75], [np.nan, 1e-9]), 12)
    assert text == "1,1,0,0.25,nan,12\n2.5,2,7,0.75,1e-09,12\n"
    table = parse_rows(text, name="rows", origin="here")
    assert (table.name, table.origin, table.sha256) == ("rows", "here", "")
    assert table.tuple_id.tolist() == [12, 12]
    assert table.p.tolist() == [1, 2.5]


def test_a_selection_keeps_the_name_and_loses_the_file(tmp_path):
    table = read(tmp_path, f"{HEADER}\n1,1,0,1,0,4\n2,1,0,1,0,9\n")
    assert (table.tuples, table.origin) == (2, "score table t.csv")
    part = table.select([1])
    assert (part.name, part.sha256, part.tuple_id.tolist()) == ("t", "", [9])


def test_a_line_of_ten_thousand_characters_is_read_and_no_longer_one(tmp_path):
    def line(characters: int) -> str:
        return "1,1,0,0.5".ljust(characters - 1, "0") + "\n"

    assert len(read(tmp_path, line(10_000) * 2)) == 2
    refused(ScoreTableError, "t.csv:2 10,001 4", read, tmp_path, "1,1,0,0.5\n" + line(10_001))
    # The long one is no fault where the fault is another.
    refused(ScoreTableError, "t.csv:2 3 4", read, tmp_path, line(10_000) + "1,1,0\n")


@pytest.mark.parametrize("rest", ["", "\n", "\n\n", "\n  \n"])
def test_a_header_alone_is_no_table(tmp_path, rest):
    refused(ScoreTableError, "t.csv:2 scores policyfactory", read, tmp_path, HEADER + rest)


def test_another_header_is_shown_as_far_as_sixty_characters(tmp_path):
    refused(ScoreTableError, f"t.csv:1 header {'x' * 60}", read, tmp_path, "x" * 70 + "\n1,1,0,0.5\n")


def test_a_sum_at_the_tolerance_itself(tmp_path):
    assert read(tmp_path, f"1,1,0,{1 + 1e-6!r}\n").tuples == 1
    refused(ScoreTableError, "t.csv:1 last tuple 1", read, tmp_path, f"1,1,0,{1 - 1e-6!r}\n")


def test_an_origin_is_taken_over_as_far_as_a_thousand_characters(tmp_path):
    for length, shown in ((1000, "o" * 1000), (1200, "o" * 1000)):
        manifest = {"outputs": {}, "parameters": {"origin": "o" * length}}
        (tmp_path / "t.manifest.json").write_text(json.dumps(manifest), encoding="ascii")
        assert read(tmp_path, f"{HEADER}\n1,1,0,1,0,0\n").origin.startswith(shown)
        assert "o" * 1001 not in read(tmp_path, f"{HEADER}\n1,1,0,1,0,0\n").origin
