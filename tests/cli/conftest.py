"""The command, for the tests of this folder."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import Run, runner
from policyfactory.core.process import SIGNALS


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Take back the signals that a command took: tests, and what they start, must see theirs."""
    before, hook = {number: signal.getsignal(number) for number in SIGNALS}, sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder for what the tests of a file make once, and copy before they change it."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Give ``run(*arguments, code=0, cwd=tmp_path)``."""
    return runner(tmp_path, monkeypatch, capfd)
