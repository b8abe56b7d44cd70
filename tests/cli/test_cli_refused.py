"""What is refused is refused before anything is simulated, and leaves no folder behind."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import policyfactory
from commands import Run
from naive.logs import text_of
from policyfactory.core.errors import PolicyfactoryError
from policyfactory.core.jit import interruptible
from policyfactory.parallel.pool import batches, results


@pytest.mark.parametrize(
    "words",
    [
        ("learn", "one.swf", "--output", "new/out"),
        ("predict", "one.swf", "--output", "new/out"),
        ("train", "one.swf", "--output", "new/out"),
        ("distill", "F1", "one.swf", "--output", "new/out"),
        ("evaluate", "one.swf", "--windows", "4x9d", "--output", "new/out"),
        ("workload", "resample", "one.swf", "--number", "2", "--output", "new/out"),
        ("workload", "window", "one.swf", "--windows", "4x9d", "--output", "new/out"),
    ],
    ids=" ".join,
)
def test_what_is_refused_leaves_no_folder(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "one.swf").write_text(text_of([{"submit": 1, "run_time": 30, "requested_time": 60, "allocated": 2}]))
    done = run(*words, code=1)
    assert "error: " in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.fixture
def no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every long kernel but those that read a log, and all work units, end the test."""

    def kernel(called: Any, *arguments: Any) -> Any:
        if called.__module__.endswith(".scan"):
            return interruptible(called, *arguments)
        pytest.fail(f"{called.__name__} was called")

    def work(function: Any, *_: Any, **__: Any) -> Any:
        pytest.fail(f"{function.__name__} was called")

    @contextlib.contextmanager
    def workers(function: Any, *_: Any, **__: Any) -> Iterator[Any]:
        work(function)
        yield

    instead = {"interruptible": (interruptible, kernel), "results": (results, work), "batches": (batches, workers)}
    for module in pkgutil.walk_packages(policyfactory.__path__, "policyfactory."):
        if module.name != "policyfactory.__main__":
            with contextlib.suppress(ImportError, PolicyfactoryError):  # of extras that are not installed
                importlib.import_module(module.name)
    for module in [one for name, one in sys.modules.items() if name.startswith("policyfactory.")]:
        for name, (bare, other) in instead.items():
            if getattr(module, name, None) is bare:
                monkeypatch.setattr(module, name, other)


def log_of(jobs: int, gap: int, **more: int) -> str:
    each = {"run_time": 30, "requested_time": 60, "allocated": 2, "user": 1, **more}
    return text_of([{"submit": gap * number, **each, "requested_time": 60 + number % 50} for number in range(jobs)])


SHORT = {"one.swf": log_of(1, 1), "few.swf": log_of(60, 9_000), "hour.swf": log_of(500, 7)}


@pytest.mark.usefixtures("no_simulation")
@pytest.mark.parametrize("log", SHORT)
@pytest.mark.parametrize(
    "words",
    [
        ("predict", "{}", "--output", "out"),
        ("predict", "{}", "--policy", "SAF", "--least", "5000"),
    ],
    ids=" ".join,
)
def test_a_log_that_is_too_short_is_refused_before_it_is_simulated(
    run: Run, tmp_path: Path, words: tuple[str, ...], log: str
) -> None:
    (tmp_path / log).write_text(SHORT[log])
    assert "error: " in run(*(word.format(log) for word in words), code=1).stderr


@pytest.mark.usefixtures("no_simulation")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("learn", "log.swf", "--windows", "4x30d"), "log-choosing: 4 x 30d asked for, the log has 0"),
        (("learn", "log.swf", "--windows", "2x3d", "--site", "s.toml"), "log-choosing: 2 x 3d asked for"),
        (("learn", "log.swf", "--site", "none.toml"), "none.toml: no such file"),
        (("evaluate", "log.swf", "--windows", "4x30d"), "4 x 30d asked for"),
        (("evaluate", "log.swf", "--formula", "X=f*q", "--backfill", "slurm"), "which Slurm tells no export"),
        (("train", "log.swf", "--windows", "4x30d"), "windows"),
        (("export", "SAF", "--workload", "log.swf", "--output", "there.lua"), "there.lua: exists; add --overwrite"),
        (("export", "SAF", "--workload", "log.swf", "--output", "folder"), "job_submit.lua: exists; add --overwrite"),
        (("export", "SAF", "--to", "pbs", "--workload", "log.swf", "--weight", "9"), "--weight: pbs makes no whole"),
    ],
    ids=str,
)
def test_what_can_be_known_before_is_refused_before_it_is_simulated(
    run: Run, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "log.swf").write_text(log_of(3000, 200, wait=1))
    (tmp_path / "s.toml").write_text('schema = 1\nnodes = [{names = "n1", cores = 8}]\npartitions = [{name = "a"}]\n')
    (tmp_path / "there.lua").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "job_submit.lua").write_text("")
    code = 2 if says.startswith("--") or "Slurm tells" in says else 1
    assert says in run(*words, code=code).stderr
