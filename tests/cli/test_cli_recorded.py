"""``policyfactory evaluate`` with the recorded schedule: shown, left out, asked for in vain."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from policyfactory.cli import main

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SHORT = ["--policies", "FCFS,SAF", "--metric", "mean_wait,max_wait"]


def swf(folder: Path, waits: Sequence[int]) -> Path:
    """A log of jobs of two of four processors and 100 s, one every 30 s."""
    path = folder / "mine.swf"
    rows = [f"{k} {30 * k} {wait} 100 2 -1 -1 2 120 -1 1 1 1 -1 -1 -1 -1 -1\n" for k, wait in enumerate(waits, 1)]
    path.write_text("; MaxProcs: 4\n" + "".join(rows))
    return path


def test_a_log_with_starts_shows_the_recorded_schedule(run: Run, tmp_path: Path) -> None:
    # What the machine did: two at a time, in the order of submission; the last was held for an hour.
    done = run("evaluate", swf(tmp_path, [0, 0, 40, 40, 80, 3680]), *SHORT, "--analyses", "none", "--output", "out")
    lines = done.stdout.splitlines()
    values = next(line for line in lines if line.split()[:1] == ["recorded"])
    assert "*" not in values
    assert "recorded: the same jobs as the log recorded them; it is no contender." in " ".join(done.stdout.split())
    output = " ".join(done.stdout.split())
    assert "mine: by mean_wait the replay under FCFS is within 600 s of the record" in output
    assert "Kolmogorov-Smirnov distance of 0.167 from those of the record" in output
    folder = tmp_path / "out" / "evaluation"
    assert (folder / "recorded" / "differences.csv").read_text().splitlines()[1] == "FCFS,-600.0,-3600.0"
    assert (folder / "replay" / "distances.csv").read_text().splitlines()[3].startswith("recorded,,40.0,")
    assert (folder / "replay" / "waits.svg").stat().st_size > 1000
    assert 'recorded = "if-known"' in (tmp_path / "out" / "protocol.toml").read_text()
    assert "How far the replays are from the record" in (tmp_path / "out" / "report.html").read_text()
    result: dict[str, Any] = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    own = result["experiments"]["evaluation"]
    assert [row["value"] for row in own["recorded"]["summary"]] == [640, 3680]
    assert {row["policy"] for row in own["summary"]} == {"FCFS", "SAF"}
    assert "recorded" not in (tmp_path / "out" / "results.csv").read_text()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Give ``here(*arguments, code=0)``: the command in this process; returns what it prints on both streams."""

    def call(*arguments: object, code: int = 0) -> Any:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["policyfactory", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main.run()
        output = capsys.readouterr()
        assert (end.value.code or 0) == code, output.err
        return output

    return call


def test_it_can_be_left_out_and_changes_nothing_else(here: Callable[..., Any], tmp_path: Path) -> None:
    log = swf(tmp_path, [0, 0, 40, 40, 80, 3680])
    shown, left = (
        json.loads(here("evaluate", log, *SHORT, "--json", flag).out)["experiments"]["evaluation"]
        for flag in ("--recorded", "--no-recorded")
    )
    assert shown.pop("recorded")["replay"]["tables"]["distances"][-1]["policy"] == "recorded"
    # What it is worth for the site is the one thing that only a record tells.
    assert shown["verdict"].pop("site")["light"] == "unsound"
    assert left["verdict"].pop("site") is None
    assert shown == left


def test_what_is_asked_for_and_not_known_is_refused(here: Callable[..., Any], tmp_path: Path) -> None:
    output = here("evaluate", swf(tmp_path, [0, -1, 40]), *SHORT, "--recorded", code=2)
    assert (
        "the recorded schedule cannot be shown: mine: 1 of 3 jobs has no recorded start, first job 2; leave it out "
        "(--no-recorded, recorded = false)"
    ) in output.err
    assert output.out == ""


@pytest.mark.parametrize("flag", ["--recorded", "--no-recorded"])
def test_a_protocol_says_it_itself(flag: str, here: Callable[..., Any], root: Path) -> None:
    output = here("evaluate", root / "evaluate" / "ccgrid19.toml", flag, code=2)
    assert "--recorded: the protocol says this" in output.err
