"""Workers on this machine: the same results on threads and processes, and what a lost one costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import worker_tasks
from policyfactory.core.errors import (
    EvaluationError,
    FormulaError,
    UsageError,
    WorkersError,
)
from policyfactory.parallel.pool import batches, results
from policyfactory.parallel.workers import ThreadExecutor, Workers
from refusals import refusal, refused
from support import NIGHTLY, ROOT
from worker_tasks import Shared, seen

LOCAL = [Workers(1), Workers(2), Workers(1, "loky")]
LOCAL += [Workers(3), Workers(2, "loky")] if NIGHTLY else []


def alive(process: int) -> bool:
    """Say whether a process runs; one that has ended and was not asked for its end does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("workers", LOCAL, ids=str)
def test_results_are_the_same_whoever_works(workers):
    expected = [7 + number**2 for number in range(100)]
    assert sorted(results(worker_tasks.square, 7, range(100), workers)) == expected
    assert list(results(worker_tasks.square, 7, [], workers)) == []


@pytest.mark.parametrize("workers", [1, 2, Workers(2, "loky")], ids=str)
def test_batches_are_computed_one_after_another_by_the_same_workers(workers):
    with batches(worker_tasks.square, 10, workers) as compute:
        first = sorted(compute(range(5)))
        # What comes next depends on what was found.
        second = sorted(compute(first[-2:]))
        assert list(compute([])) == []
    assert (first, second) == ([10, 11, 14, 19, 26], [371, 686])
    with batches(worker_tasks.whoami, 0, Workers(2, "loky")) as compute:
        seen_first, seen_second = ({process for _, process in compute(range(20))} for _ in range(2))
    assert len(seen_first | seen_second) <= 2
    assert os.getpid() not in seen_first | seen_second


@pytest.mark.parametrize("workers", [Workers(2), *([Workers(2, "loky")] if NIGHTLY else [])], ids=str)
def test_what_is_finished_first_comes_first(tmp_path, workers):
    numbers = results(worker_tasks.slow, tmp_path, range(20), workers)
    first = next(numbers)
    (tmp_path / "taken").touch()
    assert first != 0
    assert sorted([first, *numbers]) == list(range(20))


def test_no_worker_runs_far_ahead_of_who_takes_the_results(tmp_path):
    numbers = results(worker_tasks.count_calls, tmp_path, range(10_000), Workers(2))
    next(numbers)
    time.sleep(0.5)
    begun = len(list(tmp_path.iterdir()))
    assert 4 <= begun <= 2 * 64 + 1
    assert len({next(numbers) for _ in range(200)}) == 200
    numbers.close()
    assert len(list(tmp_path.iterdir())) <= 201 + 2 * 64 + 1


@pytest.mark.parametrize("workers", LOCAL, ids=str)
@pytest.mark.parametrize("error", [worker_tasks.ERROR, ValueError("a defect")], ids=repr)
def test_what_a_task_raises_is_raised_here_as_itself(workers, error):
    with pytest.raises(type(error)) as raised:
        list(results(worker_tasks.fail, error, range(10), workers))
    assert str(raised.value) == str(error)
    if isinstance(error, FormulaError):
        assert (raised.value.reason, raised.value.text, raised.value.position) == (error.reason, error.text, 3)
    if workers.backend == "loky":
        assert "worker_tasks.py" in str(raised.value.__cause__)


def test_an_error_that_cannot_be_sent_is_reported_in_words():
    with refusal(WorkersError, "_UnsendableError 1 2", cure=False):
        list(results(worker_tasks.unsendable, None, [1], Workers(1, "loky")))


@pytest.mark.parametrize("workers", LOCAL, ids=str)
def test_an_error_in_making_the_work_units_is_raised(workers):
    def units():
        yield 1
        raise EvaluationError("no more")

    with pytest.raises(EvaluationError, match="no more"):
        list(results(worker_tasks.square, 0, units(), workers))


@pytest.mark.parametrize("workers", [Workers(2), Workers(2, "loky")], ids=str)
def test_work_that_nobody_waits_for_ends_at_once(tmp_path, workers):
    before = set(threading.enumerate())
    with pytest.raises(EvaluationError):
        # The units end with an error while the first two are at work.
        list(results(worker_tasks.wait, tmp_path, until(lambda: seen(tmp_path, "begun") > 0), workers))
    begun = [int(path.name.partition("-")[2]) for path in tmp_path.glob("begun-*")]
    assert begun
    # Threads of earlier tests may end meanwhile.
    assert set(threading.enumerate()) <= before
    assert not any(alive(process) for process in begun if process != os.getpid())


def until(true):
    """Give two units, and then wait before it fails."""
    yield from (1, 2)
    wait_until(true)
    raise EvaluationError("enough")


def test_a_killed_process_costs_its_work_unit_only(tmp_path):
    messages: list[str] = []
    shared = Shared(tmp_path)
    made = results(worker_tasks.kill_once, shared, range(12), Workers(2, "loky"), notify=messages.append)
    assert sorted(made) == [(number, 0) for number in range(12)]
    assert [seen(tmp_path, str(number)) for number in range(12)] == [1] * 5 + [2] + [1] * 6
    assert len(messages) == 1
    assert messages[0].startswith("worker process ")
    assert messages[0].endswith(" was lost (killed by signal 9); its work unit is computed again")
    # Two at the beginning, and the one that took the place of the lost one.
    assert seen(tmp_path, "arrived") == 3


def test_a_work_unit_that_kills_its_workers_is_named():
    messages: list[str] = []
    with refusal(WorkersError, "3 9 --backend"):
        list(results(worker_tasks.fatal, None, ["the one"], Workers(1, "loky"), notify=messages.append))
    assert len(messages) == 2


def test_shared_data_is_sent_once_to_each_process_however_large(tmp_path):
    shared = Shared(tmp_path, 50 * 2**20)
    (tmp_path / "5-before").touch()
    result = list(results(worker_tasks.kill_once, shared, range(40), Workers(2, "loky")))
    assert sorted(result) == [(number, 50 * 2**20) for number in range(40)]
    assert seen(tmp_path, "arrived") == 2


RUN = """
import sys
from pathlib import Path
import worker_tasks
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Workers
if __name__ == "__main__":
    list(results(worker_tasks.wait, Path(sys.argv[1]), range(9), Workers(2, "loky")))
"""


ENDS = [signal.SIGINT, signal.SIGKILL, *([signal.SIGTERM] if NIGHTLY else [])]


@pytest.mark.fault
@pytest.mark.parametrize("kind", ENDS, ids=lambda kind: kind.name)
def test_processes_end_with_the_run_and_say_nothing(tmp_path, kind):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN, str(tmp_path)],
        stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: seen(tmp_path, "begun") == 2)
    begun = [int(path.name.partition("-")[2]) for path in tmp_path.glob("begun-*")]
    # As a terminal or a batch system does: to all processes of the run. Kill -9 is for the main one.
    if kind == signal.SIGKILL:
        process.kill()
    else:
        os.killpg(process.pid, kind)
    _, messages = process.communicate(timeout=600)
    wait_until(lambda: not any(alive(number) for number in begun), 20)
    if kind == signal.SIGINT:
        # The main process' own, and nothing of any other.
        assert messages.count("Traceback") == 1
        assert messages.rstrip().endswith("KeyboardInterrupt")
    else:
        assert messages == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "0 1"),
        ((1, "forks"), "forks threading"),
        ((1, "loky", "tcp://a:1"), "tcp://a:1 scheduler"),
    ],
)
def test_workers_that_are_refused(arguments, message):
    refused(UsageError, message, Workers, *arguments)


@pytest.mark.parametrize("count", [10**5, 10**12, 10**18, 10**30, 10**5000], ids=[5, 12, 18, 30, 5000])
@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
def test_absurdly_many_workers_are_refused_before_any_begins(count: int, backend: Any) -> None:
    with refusal(UsageError, "workers backend") as caught:
        Workers(count, backend)
    assert len(str(caught.value)) < 300


def test_a_thread_that_cannot_begin_is_an_error_with_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", begin)
    executor = ThreadExecutor(lambda *_: None, None, 4)
    refused(WorkersError, "--workers fewer", executor.submit, 1)
