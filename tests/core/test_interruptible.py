"""A signal ends a command while one simulation runs that would take many minutes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from policyfactory.core import process as signals
from policyfactory.core.jit import interruptible, kernel
from support import ROOT

JOBS = 200_000  # a queue of them, in an order that is another at each instant: a quarter of an hour
LIMIT = 120  # seconds

# The command, with a word when a simulation begins.
COMMAND = """
import sys
from pathlib import Path
from policyfactory.cli.main import run
from policyfactory.simulation import simulate
kernel = simulate.easy_timed
def begun(*arguments):
    Path("begun").touch()
    kernel(*arguments)
simulate.easy_timed = begun
run()
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("log") / "big.swf"
    jobs = (
        f"{job} {job // 50} -1 {100 + job % 977} {1 + job % 3} -1 -1 -1 {200 + job % 1999} -1 1 1 1 1 1 1 -1 -1"
        for job in range(JOBS)
    )
    path.write_text("\n".join(["; MaxProcs: 64", "; UnixStartTime: 0", *jobs, ""]))
    return path


WAYS = [
    ("SIGINT", 1, "threading"),
    *(
        pytest.param(*way, marks=pytest.mark.slow)
        for way in [("SIGTERM", 1, "threading"), ("SIGHUP", 2, "threading"), ("SIGTERM", 1, "dask")]
    ),
]


@pytest.mark.parametrize(("name", "workers", "backend"), WAYS)
def test_a_signal_is_answered_within_a_long_simulation(tmp_path, log, name, workers, backend):
    words = ["evaluate", log, "--formula", "X=p/(w+1)**1.5", "--policies", "X", "--output", "results"]
    words += ["--workers", workers, "--backend", backend]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, words)], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    try:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.Signals[name])
        _, messages = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 128 + signal.Signals[name], messages
    assert messages.rstrip().splitlines()[-1].startswith(f"error: stopped by {name}: ")
    assert "Traceback" not in messages
    # Nothing is left: no lock, no temporary file, no folder of Dask.
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["begun"]
    assert {path.name for path in tmp_path.iterdir()} <= {"begun", "results"}


@kernel
def twice(values):
    if len(values) == 0:
        raise ValueError("none")
    return values + values


@pytest.fixture
def installed():
    before, hook = {number: signal.getsignal(number) for number in signals.SIGNALS}, sys.unraisablehook
    signals.install()
    yield
    signals.ignore()
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_a_kernel_returns_and_raises_is_the_same(installed):
    values = np.arange(5.0)
    for _ in range(3):
        assert interruptible(twice, values).tolist() == [0, 2, 4, 6, 8]
        with pytest.raises(ValueError, match="none"):
            interruptible(twice, values[:0])
