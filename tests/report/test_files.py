"""Sections as files: CSV with intervals, SVG, names that stay in the folder."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import OutputError
from policyfactory.core.picture import new_figure
from policyfactory.report.files import Drawings, save_sections, table_csv
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.statistics.intervals import Interval
from refusals import refused

COLUMNS = (Column("policy"), Column("mean wait", "s"), Column("jobs"))
ROWS = (
    (Cell('F1, "mine"'), Cell(0.1 + 0.2, Interval(0.25, math.inf), "best"), Cell(3)),
    (Cell("x\u202ey"), Cell(np.float64(2.5), None, "worse"), Cell(np.int64(4))),  # type: ignore[arg-type]
    (Cell("SAF"), Cell(math.nan), Cell(None)),
)


def figure() -> Any:
    made = new_figure(3, 2)
    made.subplots().plot([1, 2])
    return made


def section(name: str = "medians", table: str = "values", picture: str = "boxes") -> Section:
    return Section(name, "Medians", (), (Table(table, "Values", COLUMNS, ROWS),), (Picture(picture, "Boxes", figure),))


def test_a_table_is_csv_with_units_intervals_and_marks_in_columns_of_their_own() -> None:
    rows = list(csv.reader(io.StringIO(table_csv(section().tables[0]))))
    assert rows == [
        ["policy", "mean wait (s)", "mean wait low (s)", "mean wait high (s)", "mean wait mark", "jobs"],
        ['F1, "mine"', "0.30000000000000004", "0.25", "inf", "best", "3"],
        ["x\\u202ey", "2.5", "", "", "worse", "4"],
        ["SAF", "", "", "", "", ""],
    ]


def test_a_folder_an_experiment_and_a_section(tmp_path: Path) -> None:
    kept = Drawings()
    saved = save_sections(tmp_path, "actual", [section(), section("ranks")], kept)
    assert [path.relative_to(tmp_path).as_posix() for path in saved] == [
        "actual/medians/values.csv", "actual/medians/boxes.svg", "actual/ranks/values.csv", "actual/ranks/boxes.svg",
    ]  # fmt: skip
    before = [path.read_bytes() for path in saved]
    assert before[1].startswith(b'<?xml version="1.0" encoding="utf-8"?>\n<svg xmlns="http://www.w3.org/2000/svg"')
    assert [path.read_bytes() for path in save_sections(tmp_path, "actual", [section(), section("ranks")])] == before
    assert save_sections(tmp_path, "", [section()])[0] == tmp_path / "medians" / "values.csv"


@pytest.mark.parametrize("name", ["", "..", "a/b", "../x", "/etc", ".hidden", "a\\b", "a\x00", "x" * 101, "a..b", "é"])
def test_a_name_that_is_no_file_name_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    tries = [("g", section(name)), ("g", section(table=name)), ("g", section(picture=name))]
    for group, made in tries + ([(name, section())] if name else []):
        refused(OutputError, "file", save_sections, tmp_path, group, [section("first"), made])
    assert not list(tmp_path.iterdir())


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    refused(OutputError, "values.csv two parts", save_sections, tmp_path, "g", [section(), section()])
