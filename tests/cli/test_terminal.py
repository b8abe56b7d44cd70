"""The tables of the terminal: the page's numbers, at any width."""

from __future__ import annotations

import os

import pytest
from rich.console import Console

from policyfactory.cli.screen import Screen
from policyfactory.learning.ranking import Step
from policyfactory.report import terminal
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.report.terminal import console, show_columns, show_section, show_sections, show_standings
from policyfactory.statistics.intervals import Interval

COLUMNS = (
    Column("policy"),
    Column("mean_wait", "s", shown="h"),
    Column("utilisation", "%"),
    Column("a longer heading", "1"),
)
ROWS = (
    (Cell("FCFS"), Cell(7200.0, Interval(3600.0, 10800.0)), Cell(70.0), Cell(1.0)),
    (
        Cell("[bold]\u202eSAF"),
        Cell(60.0, Interval(30.0, 90.0), "best"),
        Cell(-0.5, Interval(-1.0, 0.0), "no difference"),
        Cell(None),
    ),
)
TABLE = Table("t", "log: a table", COLUMNS, ROWS, "a note")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> object:
    def set_width(width: int) -> None:
        def narrow(*, stderr: bool = False) -> Console:
            return Console(stderr=stderr, highlight=False, emoji=False, width=width)

        monkeypatch.setattr(terminal, "console", narrow)

    return set_width


def test_numbers_have_the_unit_of_the_report(at, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    at(140)
    show_section(Section("values", "Values", ("A [red]paragraph[/].",), (TABLE,)))
    shown = capsys.readouterr().out
    assert "A [red]paragraph[/]." in shown
    assert "mean_wait (h)" in shown
    assert "2.00 [1.00, 3.00]" in shown
    assert "* 0.0167 [" in shown
    assert "-0.500 [-1.00, 0] no difference" in shown
    assert "[bold]\\u202eSAF" in shown
    assert shown.rstrip().endswith("* the best. a note")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_wide_table_is_broken_between_columns(width: int, at, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    at(width)
    show_section(Section("values", "Values", (), (TABLE,)))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    parts = sum("policy" in line for line in lines)
    assert parts == {40: 3, 60: 3, 80: 2, 120: 1}[width]
    assert sum("(continued)" in line for line in lines) == parts - 1


def test_what_names_the_rows_comes_again_in_each_part(at, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    at(38)
    columns = (Column("log"), Column("policy"), Column("one", "1"), Column("two", "1"), Column("three", "1"))
    rows = tuple((Cell("KTH"), Cell(name), *(Cell(123456.5),) * 3) for name in ("SAF", "SPF"))
    show_section(Section("differences", "", (), (Table("t", "title", columns, rows),)))
    shown = capsys.readouterr().out
    assert shown.count("KTH") == 4
    assert shown.count("SPF") == 2


def test_squares_of_many_policies_and_long_tables_are_left_to_the_files(at, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    at(100)
    names = [f"P{k}" for k in range(12)]
    square = Table(
        "w",
        "log: wins",
        (Column("policy"), *map(Column, names)),
        tuple((Cell(n), *map(Cell, range(12))) for n in names),
    )
    long = Table(
        "l", "log: long", (Column("policy"), Column("x", "1")), tuple((Cell(f"P{k}"), Cell(k)) for k in range(120))
    )
    show_section(Section("wins", "", (), (square, long)))
    shown = capsys.readouterr().out
    assert "log: wins: 12 x 12, too wide to read here; it is in the files" in shown
    assert "100 of 120 rows; the files have all." in shown
    assert "P99 " in shown
    assert "P100" not in shown


def test_standings_end_with_the_words_and_leave_ranks_to_the_page(at, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    at(100)
    result = [
        Section(name, "", (f"<{name}>",))
        for name in ("in-short", "values", "differences", "ranks", "wins", "published-2")
    ]
    show_standings(result)
    assert capsys.readouterr().out.split() == ["<values>", "<differences>", "<published-2>", "<in-short>"]
    show_sections(result, names=["wins"])
    assert capsys.readouterr().out.split() == ["<wins>"]


def test_one_bar_is_of_the_whole_run() -> None:
    screen = Screen()
    screen.begin(Step(2, 3, "second", ("fit", "x"), before=0.25, share=0.5))
    first, second = screen.counter("one"), screen.counter("two")
    bar = screen._bar
    assert bar is not None
    first.expect(4)
    assert bar.tasks[0].completed == 25
    for _ in range(2):
        first.done(1)
    assert bar.tasks[0].completed == 50
    second.expect(4)
    first.done(1)
    # Of what is expected now, 3 of 8 are done.
    assert bar.tasks[0].completed == round(100 * (0.25 + 0.5 * 3 / 8))
    assert bar.tasks[0].fields["left"] >= 0
    screen._stop()


@pytest.mark.parametrize(
    ("asked", "width"), [(None, 140), ("80", 80), ("60", 60), ("300", 300), ("0", 140), ("x", 140)]
)
def test_a_file_is_as_wide_as_columns_says_and_else_always_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: str | None, width: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    # The terminal that the command was typed in.
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((222, 50)))
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((222, 50)))
    if asked is not None:
        monkeypatch.setenv("COLUMNS", asked)
    assert console().width == width
    show_columns("wide", [["policy", "SAF"], *([f"metric {n}", "1.00"] for n in range(60))], 1)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert max(map(len, lines)) > min(width, 140) - 20
