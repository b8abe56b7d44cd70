"""A run that is killed goes on, in a process of its own, and two runs in one folder are refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WORDS = ("--window-jobs", "150", "--training-windows", "20", "--judged-windows", "4", "--family", "linear")
SHORT = (*WORDS, "--restarts", "1", "--evaluations", "120", "--bands", "none", "--workers", "1")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "policyfactory", *words]


@pytest.mark.slow
def test_a_killed_run_ends_as_one_that_was_not(tmp_path: Path) -> None:
    lublin = ("workload", "lublin", "--processors", "64", "--jobs", "1500", "--estimates", "tsafrir")
    subprocess.run(command(*lublin, "--output", "log.swf"), cwd=tmp_path, check=True, capture_output=True)
    train = ("train", "log.swf", *SHORT, "--output")
    subprocess.run(command(*train, "whole"), cwd=tmp_path, check=True, capture_output=True)
    killed = subprocess.Popen(command(*train, "cut"), cwd=tmp_path, stderr=subprocess.DEVNULL)
    journal = tmp_path / "cut" / "train.partial"
    end = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 4):
        assert killed.poll() is None, "it ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.002)
    second = subprocess.run(command(*train, "cut"), cwd=tmp_path, capture_output=True, text=True, check=False)
    if killed.poll() is None:
        assert second.returncode == 1
        # It may have written its result and not be gone yet.
        assert "another run" in second.stderr or "policy.json: exists" in second.stderr
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() in {-signal.SIGKILL, 0}
    if journal.exists():
        again = subprocess.run(command(*train, "cut"), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        assert "were finished by an earlier run" in again.stderr
    for name in ("history.csv", "learning.png"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    texts = [(tmp_path / folder / "policy.json").read_text().replace("--output cut", "--output whole")
             for folder in ("cut", "whole")]  # fmt: skip
    assert texts[0] == texts[1]
