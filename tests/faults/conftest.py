"""Fixtures of the faults: a place from which commands are started, a short log."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.processes import Nursery


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Give what starts commands; it ends with the session."""
    with Nursery(tmp_path_factory.mktemp("commands")) as started:
        yield started


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a log of some hundred jobs, on a machine that is busy enough for queues."""
    path = tmp_path_factory.mktemp("log") / "log.swf"
    path.write_text(swf(600), encoding="ascii")
    return path


def swf(jobs: int) -> str:
    """Return a log of that many jobs."""
    drawn = random.Random(5)
    lines = ["; MaxProcs: 64", "; UnixStartTime: 1000000000"]
    submit = 0
    for number in range(1, jobs + 1):
        submit += drawn.randrange(1, 300)
        run_time, size = drawn.randrange(1, 3000), drawn.choice((1, 2, 4, 8, 16, 32))
        fields = [number, submit, -1, run_time, size, -1, -1, size, 2 * run_time, -1, 1, number % 7 + 1]
        lines.append(" ".join(map(str, fields + [-1] * 6)))
    return "\n".join(lines) + "\n"
