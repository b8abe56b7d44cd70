"""The command, for the tests of this folder."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Give ``run(*arguments, code=0, cwd=tmp_path)``."""
    return runner(tmp_path, monkeypatch, capfd)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of what commands wrote for the first test of a file that asked for it."""
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture
def output_of(run: Run, outputs: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Path]:
    """Give ``output_of(name, *words)``: a copy of the file or folder of that name which the command writes.

    It is run once for the tests of a file, and once more for those with blank pictures.
    """
    folder = outputs / ("blank" if "blank_pictures" in request.fixturenames else "drawn")

    def copy(name: str, *words: object) -> Path:
        if not (folder / name).exists():
            folder.mkdir(exist_ok=True)
            run(*words, "--output", folder / name)
        copied = shutil.copytree if (folder / name).is_dir() else shutil.copy
        return Path(copied(folder / name, tmp_path / name))

    return copy
