"""Whoever waits for the compiler is told so, once, whatever the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from naive.logs import text_of
from policyfactory.cli.options import WORDS, note_compiling, noted
from policyfactory.core import jit
from policyfactory.core.process import announce


def test_each_note_is_made_once_and_the_right_one(capfd: pytest.CaptureFixture[str]) -> None:
    with noted():
        for module in ("policyfactory.engine.easy", "policyfactory.engine.trials", "policyfactory.engine.slurm.passes"):
            announce(module)
    assert capfd.readouterr().err.splitlines() == list(WORDS)
    announce("policyfactory.engine.easy")  # nobody listens any more
    with noted():
        announce("policyfactory.engine.slurm.numbers")
        announce("policyfactory.engine.slurm.passes")
    assert capfd.readouterr().err.splitlines() == [WORDS[1]]


def test_what_is_said_before_the_bar_is_not_said_again(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jit, "is_compiled", lambda _: False)
    with noted():
        note_compiling()
        announce("policyfactory.engine.slurm.passes")
        note_compiling()
    assert capfd.readouterr().err.splitlines() == [WORDS[1]]


@pytest.mark.slow
def test_a_command_says_it_on_a_new_machine_and_not_on_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(
        text_of([{"submit": 60 * n, "wait": 1, "run_time": 30, "requested_time": 60, "allocated": 2} for n in range(9)])
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "policyfactory", "workload", "show", "log.swf"]
    said = [
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert said[0].splitlines()[:1] == [WORDS[0]]
    assert WORDS[0] not in said[1]
