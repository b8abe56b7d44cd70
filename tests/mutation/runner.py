"""Run the tests of a module on each of its mutants, each in a forked child that holds the mutant in memory only.

For each module a server is forked, in which pytest imports the package and collects the tests, once. For each mutant
it forks again. Where a function is changed, the child gives the function that everybody holds already the changed
code, and runs the tests. Where something else is changed (a constant of the module, a class), or functions are
compiled, the child is forked before pytest begins, and imports the changed module in place of the file.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import math
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import Phase, settings

from mutation.changes import InMemory, Target, change_in_place
from mutation.children import NOT_SET, Children, write_line
from mutation.operators import Mutant, mutants, mutated
from mutation.results import KILLED, OUT_OF_TIME, SURVIVED, Identity, Result

__all__ = ["PRELOADED", "RunnerError", "run_mutants"]

# Of the clean run's processor time; a child that still runs at many times this by the clock hangs without working.
PATIENCE, SPARE_SECONDS = 3, 2
CONTROL = -1
# Exit code: the change is not one of a function.
IMPOSSIBLE = 100
# What the package and the tests import; a fork then has it for nothing.
PRELOADED = (
    "numpy", "numba", "numba.extending", "llvmlite.ir", "scipy.optimize", "scipy.stats", "pandas", "sympy",
    "statsmodels.api", "joblib", "sklearn", "typer.testing", "rich.console", "matplotlib", "jinja2", "numpy.testing",
)  # fmt: skip


class RunnerError(Exception):
    """The clean source fails, or a target cannot be used."""


def _run_pytest(target: Target, finder: InMemory | None, plugin: object) -> int:
    """Run the tests of a target in this process, once."""
    if target.kernels and "numba" in sys.modules:
        import numba

        numba.config.DISABLE_JIT = not target.compiled
        os.environ["NUMBA_CACHE_DIR"] = os.environ["TMPDIR"]  # what a mutant was made of nobody else needs
    os.environ["POLICYFACTORY_MUTANTS"] = "1"  # more examples: tests/engine/test_small_workloads.py
    os.chdir(target.root)
    sys.path.insert(0, str(target.root))
    if finder is not None:
        sys.meta_path.insert(0, finder)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin"]
    # What is imported before the fork has no asserts of tests in it.
    options += ["-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *target.tests], plugins=[plugin]))


class _Watch:
    """A plugin of pytest: name the first test that fails, and let hypothesis not shrink what it finds."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.passed = 0
        self.times: dict[str, float] = {}

    def pytest_sessionstart(self) -> None:
        quick = settings(settings.default, phases=[Phase.explicit, Phase.generate], database=None, print_blob=False)
        settings.register_profile("mutants", quick)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.times[report.nodeid] = self.times.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            write_line(self.pipe, {"failed": report.nodeid})
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_sessionfinish(self) -> None:
        write_line(self.pipe, {"passed": self.passed, "times": self.times})


class _Server(_Watch):
    """Instead of running the tests once: run them in a fork for each mutant that changes a function only.

    The test that killed most in its time goes first. Those that cannot be changed in place are left to the parent.
    """

    def __init__(self, pipe: int, target: Target, source: tuple[ast.Module, list[Mutant]], run: _Run) -> None:
        super().__init__(pipe)
        self.target, self.run = target, run
        self.tree, self.mutants = source
        self.kills: Counter[str] = Counter()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.freeze()
        children = Children(os.environ["TMPDIR"])
        children.cpu_seconds = self.run.cpu_seconds

        def work(at: int, pipe: int) -> int:
            if at != CONTROL and not change_in_place(self.target, self.mutants[at], self.tree):
                return IMPOSSIBLE
            session.items.sort(key=lambda item: -(self.kills[item.nodeid] + 1) / (self.run.times[item.nodeid] + 0.005))
            self.pipe = pipe
            try:
                from _pytest.main import pytest_runtestloop

                pytest_runtestloop(session)
            except BaseException:  # noqa: BLE001 (as above)
                return 1
            return int(bool(session.testsfailed))

        # The first is no mutant: forked as the others are, it has to pass.
        waiting = [*range(len(self.mutants) - 1, -1, -1), CONTROL]
        try:
            while waiting or children.running:
                if time.monotonic() > self.run.deadline:
                    waiting.clear()
                while waiting and len(children.running) < self.run.workers:
                    at = waiting.pop()
                    children.start(at, lambda pipe, at=at: work(at, pipe))
                at, status, seconds, records, _ = children.next_to_end()
                by = next((record["failed"] for record in records if "failed" in record), "")
                self.kills[by] += 1
                write_line(self.pipe, {"at": at, "status": status, "seconds": seconds, "by": by})
        finally:
            children.stop()
        return True

    def pytest_sessionfinish(self) -> None:
        """The clean run has told how many pass."""


@dataclass
class _Run:
    """What the clean run has measured, and when no more mutants are begun."""

    workers: int
    cpu_seconds: int
    times: dict[str, float]
    deadline: float


def run_mutants(
    target: Target,
    chosen: Container[Identity],
    workers: int = 2,
    output: Callable[[Result], None] = lambda result: None,
    preloaded: Sequence[str] = PRELOADED,
    deadline: float = math.inf,
) -> float:
    """Run each chosen mutant; return the processor seconds of the clean run.

    After ``deadline`` (of `time.monotonic`) none is begun.
    """
    for library in preloaded:
        importlib.import_module(library)
    # What is there before the forks is not looked at again by each child's collections of garbage.
    gc.freeze()
    tree, actual = mutants(target.module, (target.root / target.module).read_text(encoding="utf-8"))
    known = {mutant.function.split(".")[0] for mutant in actual}
    for function in target.left_out:
        if function not in known:
            raise RunnerError(f"{target.module}: {function} is left out, but has no mutants")
    wanted = [mutant for mutant in actual if mutant.identity in chosen]
    done: set[int] = set()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        # Bytecode of the tests, with pytest's asserts, is kept there, not beside the sources.
        sys.pycache_prefix = f"{scratch}/bytecode"
        children = Children(scratch)
        try:
            children.start(NOT_SET, lambda pipe: _run_pytest(target, None, _Watch(pipe)))
            _, status, seconds, records, said = children.next_to_end()
            if status or not records or not records[-1].get("passed"):
                raise RunnerError(f"{target.module}: the tests fail without any change: {said.strip() or status}")
            run = _Run(workers, int(PATIENCE * seconds) + SPARE_SECONDS, records[-1]["times"], deadline)
            if not target.compiled:
                for at, result in _in_place(target, (tree, wanted), run, scratch):
                    done.add(at)
                    output(result)
            children.cpu_seconds = run.cpu_seconds
            waiting = [at for at in range(len(wanted)) if at not in done][::-1]
            for result in _imported(target, (tree, wanted), children, waiting, run):
                output(result)
        finally:
            children.stop()
    return seconds


def _in_place(
    target: Target, source: tuple[ast.Module, list[Mutant]], run: _Run, scratch: str
) -> Iterator[tuple[int, Result]]:
    """Run a server; give the results as they come."""
    server = Children(scratch)
    server.start(0, lambda pipe: _run_pytest(target, None, _Server(pipe, target, source, run)))
    child = server.running[0]
    os.set_blocking(child.pipe, True)
    try:
        with os.fdopen(os.dup(child.pipe), "r", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                if record["at"] == CONTROL:
                    if record["status"]:
                        raise RunnerError(f"{target.module}: the control, without a change, fails: {record['by']}")
                elif os.waitstatus_to_exitcode(record["status"]) != IMPOSSIBLE:
                    mutant = source[1][record["at"]]
                    yield record["at"], _result(mutant, record["status"], record["seconds"], record["by"])
        os.set_blocking(child.pipe, False)
        _, status, _, _, said = server.next_to_end()
        if status:
            raise RunnerError(f"{target.module}: the server ended: {said.strip() or status}")
    finally:
        server.stop()


def _imported(
    target: Target, source: tuple[ast.Module, list[Mutant]], children: Children, waiting: list[int], run: _Run
) -> Iterator[Result]:
    tree, wanted = source

    def work(at: int, pipe: int) -> int:
        with mutated(wanted[at]):
            finder = InMemory(target.name, target.root / target.module, tree)
        return _run_pytest(target, finder, _Watch(pipe))

    while waiting or children.running:
        if time.monotonic() > run.deadline:
            waiting.clear()
        while waiting and len(children.running) < run.workers:
            at = waiting.pop()
            children.start(at, lambda pipe, at=at: work(at, pipe))
        at, status, seconds, records, _ = children.next_to_end()
        by = next((record["failed"] for record in records if "failed" in record), "")
        yield _result(wanted[at], status, seconds, by)


def _result(mutant: Mutant, status: int, seconds: float, by: str) -> Result:
    fate = KILLED if status else SURVIVED
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGKILL}:
        fate = OUT_OF_TIME
    return Result(mutant, fate, by, seconds)
