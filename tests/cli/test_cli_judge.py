"""The command ``policyfactory judge``."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from habits import users_with_habits, write_log

FEW = ("--replicas", 2)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.swf", users_with_habits(3, jobs=1_500, days=84))


def test_formulas_from_anywhere_have_scores_as_json(run, log: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "more.jsonl").write_text('{"name": "area", "formula": "p*q"}\n# a comment\nopen("x")\n')
    done = run("judge", "log.swf", "p/q", "--candidates", "more.jsonl", *FEW)
    found = json.loads(done.stdout)
    assert [(one["name"], one["error"] is None) for one in found["candidates"]] == [
        ("candidate-1", True), ("area", True), ("candidate-3", False),
    ]  # fmt: skip
    assert found["candidates"][1]["ratio"] > 0
    assert found["ledger"] == {"held_out": 0, "tried": 2}
    assert (tmp_path / "judge-ledger.json").exists()
    # From standard input, into a file, with what is held out; the scores are the same.
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"p*q\n")))
    words = ("judge", "log.swf", "--candidates", "-", *FEW, "--held-out", "--output", "said.json")
    done = run(*words, "--ledger", "judge-ledger.json", "--", "-p")
    assert "said.json: 2 candidates against" in done.stderr
    assert "4 candidates so far on this log" in done.stderr
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["candidates"][1]["ratio"] == found["candidates"][1]["ratio"]
    # Of two replicas there is no interval.
    assert said["candidates"][0]["held_out"]["verdict"] == "cannot tell"
    assert "said.json: exists; add --overwrite" in run("judge", "log.swf", "p", "--output", "said.json", code=1).stderr
    assert json.loads((tmp_path / "judge-ledger.json").read_text())["logs"][said["log"]["sha256"]]["held_out"] == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "no candidate; give formulas"),
        (("p", "--replicas", 0), 2, "--replicas 0"),
        (("p", "--part", 95), 2, "--part 95"),
        (("p", "--loads", "1"), 2, "write two numbers"),
        (("p", "--backfill", "some"), 2, "'some' is not one of"),
        (("p", "--backfill", "slurm"), 2, "with policyfactory evaluate --backfill slurm"),
        (("p", "--time-limit", "inf"), 2, "--time-limit inf"),
        (("p", "--candidates", "none.txt"), 1, "none.txt: no such file"),
        (("p", "--ledger", "no/ledger.json"), 1, "no/ledger.json"),
        (("p", "--ledger", "log.swf"), 2, "log.swf: is an input of this command"),
        (("p", "--output", "log.swf", "--overwrite"), 2, "log.swf: is an input of this command"),
    ],
)
def test_what_cannot_be_is_said(run, log: Path, tmp_path: Path, words, code: int, said: str) -> None:
    before = log.read_bytes()
    assert said in run("judge", "log.swf", *words, code=code).stderr
    assert log.read_bytes() == before
    assert not (tmp_path / "judge-ledger.json").exists()
