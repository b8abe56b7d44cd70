"""Run the real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Old libraries deprecate each other: the run on the lowest versions sets this to "default".
WARNINGS = os.environ.get("POLICYFACTORY_WARNINGS", "error")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Give ``run(*arguments, code=0, cwd=tmp_path)``; a traceback is a failure whatever the exit code."""

    def call(
        *arguments: object, code: int = 0, cwd: Path = tmp_path, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", WARNINGS, "-m", "policyfactory", *map(str, arguments)]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)
        told = f"{command}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        assert "Traceback" not in done.stderr, told
        assert done.returncode == code, told
        return done

    return call
