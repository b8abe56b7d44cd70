"""The command, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Run, runner


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Give ``run(*arguments, code=0, cwd=tmp_path)``."""
    return runner(tmp_path, monkeypatch, capfd)
