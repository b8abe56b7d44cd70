"""Run a command of the package in this process: its start would take more time than most of what tests ask of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.cli.main import run as command
from policyfactory.cli.options import WORDS
from policyfactory.core.process import SIGNALS

__all__ = ["Run", "runner"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def runner(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return ``run(*arguments, code=0, cwd=folder)``; an exception that nobody caught is a failure."""

    def run(*arguments: object, code: int = 0, cwd: Path = folder) -> subprocess.CompletedProcess[str]:
        words = ["policyfactory", *map(str, arguments)]
        capfd.readouterr()
        with monkeypatch.context() as changed:
            changed.chdir(cwd)
            changed.setattr(sys, "argv", words)
            ended = _ended()
        out, err = capfd.readouterr()
        # Whether this machine has compiled the kernels before is none of a test's business.
        err = "".join(line for line in err.splitlines(keepends=True) if line.rstrip("\n") not in WORDS)
        output = f"{words}\n--- stdout\n{out}\n--- stderr\n{err}"
        assert "Traceback" not in err, output
        assert ended == code, output
        return subprocess.CompletedProcess(words, ended, out, err)

    return run


def _ended() -> int:
    """Run the command that ``sys.argv`` has; return its exit code."""
    # The command takes the signals for the rest of its process, which here has more to do.
    before, hook = {number: signal.getsignal(number) for number in SIGNALS}, sys.unraisablehook
    try:
        command()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
