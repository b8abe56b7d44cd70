"""Tasks that tests give to workers; other processes import this module by its name."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path
from typing import Any

from policyfactory.core.errors import FormulaError

__all__ = [
    "Shared",
    "count_calls",
    "fail",
    "fatal",
    "kill_once",
    "seen",
    "slow",
    "square",
    "unsendable",
    "wait",
    "whoami",
]


class Shared:
    """Shared data; each arrival in a process leaves a file."""

    def __init__(self, folder: Path, size: int = 0, seconds: float = 0.05) -> None:
        self.folder = folder
        self.data = bytes(size)
        self.seconds = seconds

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        (self.folder / f"arrived-{uuid.uuid4().hex}").touch()


def seen(folder: Path, name: str) -> int:
    """Return how many files begin so."""
    return len(list(folder.glob(f"{name}-*")))


def square(shared, unit, check_stop):
    check_stop()
    return shared + unit * unit


def whoami(shared, unit, check_stop):
    return unit, os.getpid()


def slow(shared, unit, check_stop):
    """Let the first unit be done only when another one's result has been taken; or after ten minutes."""
    for _ in range(60_000 if unit == 0 else 0):
        if (shared / "taken").exists():
            break
        time.sleep(0.01)
    return unit


def count_calls(shared, unit, check_stop):
    (shared / f"{unit}-{uuid.uuid4().hex}").touch()
    return unit


def wait(shared, unit, check_stop):
    """Take an hour, and say by whom it is done and when it is ended."""
    (shared / f"begun-{os.getpid()}").touch()
    try:
        for _ in range(360_000):
            check_stop()
            time.sleep(0.01)
    finally:
        (shared / f"ended-{os.getpid()}").touch()


def kill_once(shared, unit, check_stop):
    """Leave a file for each try; kill the worker in the first try of unit 5."""
    count_calls(shared.folder, unit, check_stop)
    if unit == 5 and seen(shared.folder, "5") == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(shared.seconds)
    return unit, len(shared.data)


def fatal(shared, unit, check_stop):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(shared, unit, check_stop):
    if unit == 3:
        raise shared
    return unit


class _UnsendableError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def unsendable(shared, unit, check_stop):
    raise _UnsendableError(1, 2)


ERROR = FormulaError("a formula ends too early", "p * ", 3)
