"""SIGINT, SIGTERM and SIGHUP at any moment: one message, the exit code of the signal, and nobody left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from faults.processes import EVALUATE, Nursery, Run, hidden, is_stopping, results, wait_until
from support import NIGHTLY

NAMES = ("SIGTERM", "SIGINT", "SIGHUP")
GENERATE = ("--tuples", "2000", "--trials", "25600", "--workers", "2", "--output", "t.csv")
NOISE = ("Traceback", "Exception ignored", "Warning", "KeyboardInterrupt", "Aborted", "leaked", "resource_tracker")


def must_have_stopped(run: Run, name: str) -> None:
    """Check what a run says and returns that was stopped by a signal."""
    code = run.end(60)
    report = f"{run.words}: exit code {code}\n{run.stderr[-4000:]}"
    assert code == 128 + signal.Signals[name], report
    lines = run.stderr.strip().splitlines()
    assert lines[-1].startswith(f"error: stopped by {name}: "), report
    assert not [noise for noise in NOISE if noise in run.stderr], report


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_is_stopped_says_what_is_kept_and_goes_on(
    nursery: Nursery, tmp_path: Path, log: Path, name: str
) -> None:
    run = nursery.start(tmp_path, "generate", log, *GENERATE)
    partial = tmp_path / "t.csv.partial"
    wait_until(lambda: partial.exists() and partial.read_bytes().count(b"\n") > 3, "no tuple was finished")
    run.kill(signal.Signals[name])
    must_have_stopped(run, name)
    kept = partial.read_bytes().count(b"\n") - 1
    assert f"{kept:,} of 2,000 tuples are kept in t.csv.partial; the same command goes on from there" in run.stderr
    assert hidden(tmp_path) == ["t.csv.partial"]
    again = nursery.start(tmp_path, "generate", log, *GENERATE)
    wait_until(lambda: partial.read_bytes().count(b"\n") > kept + 1, "did not go on")
    again.kill(signal.SIGTERM)
    must_have_stopped(again, "SIGTERM")


LONG: dict[str, tuple[str, ...]] = {
    "generate": ("generate", "LOG", *GENERATE),
    "fit": ("fit", "SCORES", "--family", "all", "--bootstrap", "20000", "--output", "f.json"),
    "evaluate": ((*EVALUATE[:-2], "50x10jobs", "--output", "e")),
    "tune": (
        "tune",
        "LOG",
        "--estimate-missing",
        "runtime",
        "--period",
        "1d",
        "--feedback",
        "simulate,bandit",
        "--output",
        "u",
    ),
    "learn": ("learn", "LOG", "--estimate-missing", "runtime", "--tuples", "500", "--trials", "25600", "--output", "l"),
    "demo": ("demo", "--output", "d"),
    "show": ("workload", "show", "LOG", "--output", "pictures"),
    "lublin": ("workload", "lublin", "--jobs", "100000", "--output", "m.swf"),
    "export": ("export", "F1", "--to", "slurm-site-factor-lua", "--epoch", "2020-01-01", "--output", "x"),
}
# A moment of each in every run of the tests, many in the nightly ones.
MOMENTS = 30 if NIGHTLY else 1


@pytest.fixture(scope="module")
def scores(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory, log: Path) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    nursery.start(folder, "generate", log, "--tuples", "64", "--trials", "256", "--output", "t.csv").must_end()
    return folder / "t.csv"


@pytest.mark.parametrize("command", LONG)
def test_every_command_ends_cleanly_at_any_moment(
    nursery: Nursery, tmp_path: Path, log: Path, scores: Path, command: str
) -> None:
    drawn = random.Random(command)
    places = {"LOG": str(log), "SCORES": str(scores)}
    words = [places.get(word, word) for word in LONG[command]]
    stopped = 0
    for number in range(MOMENTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        name = drawn.choice(NAMES)
        run = nursery.start(folder, *words)
        wait_until(lambda run=run: is_stopping(run.pid) or not run.running(), "has no handler", pause=0.0005)
        time.sleep(drawn.uniform(0, 0.4))
        if not run.running():
            run.must_end()
            continue
        run.kill(signal.Signals[name])
        if run.end() == 0:
            # Its work was done already.
            run.must_end()
            continue
        must_have_stopped(run, name)
        stopped += 1
        assert [one for one in hidden(folder) if not one.endswith(".partial")] == []
    assert stopped or MOMENTS == 1


def test_signals_while_the_package_is_imported(nursery: Nursery, tmp_path: Path, log: Path) -> None:
    """Python ends a process that met a plain KeyboardInterrupt in an ``exec``, which imports use, by the signal."""
    drawn = random.Random(1)
    met: Counter[int] = Counter()
    for _ in range(200 if NIGHTLY else 4):
        name = drawn.choice(NAMES[:2])
        run = nursery.fresh(
            tmp_path, "generate", log, "--tuples", "2", "--trials", "256", "--output", "t.csv", "--overwrite"
        )
        wait_until(lambda run=run: is_stopping(run.pid) or not run.running(), "has no handler", pause=0.0005)
        time.sleep(drawn.uniform(0, 1.0))
        if run.running():
            os.kill(run.pid, signal.Signals[name])
        met[run.end()] += 1
        if run.end():
            must_have_stopped(run, name)
        else:
            run.must_end()
    assert set(met) <= {0, 130, 143}


def test_a_process_without_a_terminal_is_not_hung_up(tmp_path: Path, nursery: Nursery, log: Path) -> None:
    """What nohup protects stays protected."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = nursery.fresh(tmp_path, "generate", log, "--tuples", "2", "--trials", "256", "--output", "t.csv")
    finally:
        signal.signal(signal.SIGHUP, before)
    wait_until(lambda: is_stopping(run.pid), "has no handler", pause=0.0005)
    run.kill(signal.SIGHUP)
    run.must_end()
    assert set(results(tmp_path)) == {"t.csv", "t.manifest.json"} - {"t.manifest.json"}


def test_a_stop_that_is_lost_in_a_callback_is_raised_again(tmp_path: Path) -> None:
    """Python can only report an exception of a finaliser; the run would go on."""

    code = (
        "import os, signal, time\n"
        "from policyfactory.core import process\n"
        "class Lost:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        for _ in range(1000): pass\n"
        "process.install()\n"
        "try:\n"
        "    lost = Lost(); del lost\n"
        "    time.sleep(600)\n"
        "except KeyboardInterrupt as stop:\n"
        "    print(stop, stop.exit_code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert (done.stdout, done.stderr) == ("stopped by SIGTERM 143\n", "")


def test_an_error_that_comes_of_a_stop_is_the_stop() -> None:
    """Python 3.11 makes a RuntimeError of what is raised while a class is made, pydantic one without a cause."""
    code = (
        "import os, signal\n"
        "from policyfactory.cli import main\n"
        "def build(name):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
        "    raise ValueError('of a library')\n"
        "main.build_command = build\n"
        "main.run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 143, done.stderr
    assert done.stderr.startswith("error: stopped by SIGTERM")


@pytest.mark.parametrize(("patience", "code"), [(3600.0, None), (0.0, 143)])
def test_who_does_not_want_to_wait_is_not_kept(patience: float, code: int | None) -> None:
    """A second signal that comes with the first, as one of each from a terminal and a shell, is no impatience."""

    program = (
        "import time\n"
        "from policyfactory.core import process\n"
        f"process._PATIENCE = {patience}\n"
        "process.install()\n"
        "try:\n"
        "    print('ready', flush=True); time.sleep(60)\n"
        "finally:\n"
        "    print('in order', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"in order\n"
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(120 if code else 1) == code
    except subprocess.TimeoutExpired:
        assert code is None, "the second signal came with the first, and there is something to put in order"
        process.kill()
        process.wait()
    process.stdout.close()
