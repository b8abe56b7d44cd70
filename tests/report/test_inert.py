"""Texts of strangers do nothing in a terminal or a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.table import Table as RichTable
from rich.text import Text

from commands import runner
from policyfactory.core.files import dump_json, dump_toml
from policyfactory.core.text import csv_text, json_text, markdown_text, visible
from policyfactory.report.files import table_csv
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.report.terminal import console, progress, show_table

# C1 controls, what turns the direction of the text, what takes no room, what is a new line to some.
HOSTILE = [0x7F, *range(0x80, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
HOSTILE += [0xFEFF, 0xE0041]
EVIL = "a" + "".join(map(chr, HOSTILE)) + "b"


def is_harmless(text: str) -> bool:
    return all(character.isprintable() or character in "\n\t" for character in text)


def test_json_hides_nothing_and_says_the_same():
    value = {EVIL: [EVIL, "é", 1.5], "\x1b]0;": "\r\n"}
    text = dump_json(value)
    assert is_harmless(text)
    assert json.loads(text) == value
    assert '"é"' in text
    assert json_text('"\u202e"') == r'"\u202e"'
    assert visible("a\ue000\U0001ffff\U0010ffff\u202e") == r"a\ue000\U0001ffff\U0010ffff\u202e"
    assert is_harmless(dump_toml({"name": EVIL}))
    assert is_harmless(markdown_text(EVIL))


def test_a_console_shows_what_hides(capsys):
    screen = console()
    screen.print(EVIL, markup=False)
    screen.print(Text(EVIL))
    table = RichTable(EVIL, title=EVIL)
    table.add_row(EVIL)
    table.add_row(Text(EVIL))
    screen.print(table)
    screen.print(f"\x1b]0;title\x07{EVIL}", style="cyan", markup=False, soft_wrap=True)
    show_table(EVIL, [EVIL], [[EVIL]], caption=EVIL)
    with progress() as bar:
        bar.add_task(EVIL)
        bar.console.print(EVIL, markup=False)
    out, err = capsys.readouterr()
    assert is_harmless(out)
    assert r"\u009b" in out
    assert is_harmless(err)
    assert r"\u202e" in err


@pytest.mark.parametrize(
    "name", ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", '=HYPERLINK("http://a")', "-e", "+x %", "=1"]
)
def test_a_text_that_a_spreadsheet_would_compute_is_a_text(name):
    assert csv_text(name) == f"'{name}"
    table = Table("t", "T", (Column(name), Column("x", "s")), ((Cell(name), Cell(-1.5, mark=name)),))
    heading, row = csv.reader(io.StringIO(table_csv(table)))
    assert heading[0] == f"'{name}"
    assert row == [f"'{name}", "-1.5", f"'{name}"]


@pytest.mark.parametrize("text", ["-1.5", "+32 %", "-0.3 %", "1e-7", "-1e-7", "-", "", "a=b", "p*q", "-1,234"])
def test_a_number_or_a_dash_stays_what_it_is(text):
    assert csv_text(text) == text


def test_names_in_the_long_tables_are_texts():
    from policyfactory.evaluation.results_folder import _long_csv

    text = _long_csv(("log", "case", "policy", "value"), {"-c": [("=a", 1, "@b", -1.5)]})
    assert text == "experiment,log,case,policy,value\n'-c,'=a,1,'@b,-1.5\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["evaluate", EVIL], 1),
        (["fit", "--" + EVIL], 2),
        (["policy", "show", EVIL], 2),
        ([EVIL], 2),
        (["--" + EVIL], 2),
    ],
)
def test_an_error_shows_what_hides(
    words: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    done = runner(tmp_path, monkeypatch, capfd)(*words, code=code)
    assert done.stderr
    assert is_harmless(done.stdout + done.stderr), done.stderr


def test_of_very_many_rows_the_first_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("many", ["a"], [[str(number)] for number in range(1_500)])
    printed = capsys.readouterr().out.split()
    assert printed.count("999") == 1
    assert "1000" not in printed
    assert " ".join(printed).endswith("and 500 more rows")
