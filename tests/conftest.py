"""Fixtures that every test may use."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from evaluations import by_hand, toys  # noqa: F401 (fixtures)
from support import NIGHTLY, ROOT, shared_path

# Until all tests are collected (`pytest_collection_finish`): what is imported and collected stays, and was searched
# for garbage over and over, for a third of the time.
gc.disable()

# As the command does (cli/main.py): threads of BLAS on small matrices would only wait for each other.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Commands that tests start write to pipes, whose width is the command's own choice; the workers of pytest-xdist have
# that of a terminal.
os.environ.pop("COLUMNS", None)

# What started this process may ignore or block signals: nohup SIGHUP, a shell SIGINT for what runs in the background, a
# supervisor others. Commands that tests start must not inherit that. A handler protects this process just as well, and
# is no longer there in a program that it starts.
_IGNORED = "POLICYFACTORY_IGNORED_SIGNALS"  # for the workers of pytest-xdist, which are such programs
_inherited = set(filter(None, os.environ.get(_IGNORED, "").split(",")))
for _signal in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    if signal.getsignal(_signal) is signal.SIG_IGN or _signal.name in _inherited:
        signal.signal(_signal, lambda *_: None)
        _inherited.add(_signal.name)
os.environ[_IGNORED] = ",".join(sorted(_inherited))
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the exit code of a child would be lost
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())

# The same examples in every run, so that a change is judged by what it changed. `make test` takes the first few of them
# (--hypothesis-profile quick), `make nightly` looks for new ones: 2,000 of each of the 52 tests that give no number of
# their own take 310 s of one core.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("nightly", deadline=None, max_examples=2000)
settings.load_profile("nightly" if NIGHTLY else "fixed")

# Of what is drawn without hypothesis (tests/engine/test_small_workloads.py). In the environment, for pytest's workers.
if NIGHTLY:
    os.environ.setdefault("POLICYFACTORY_SEED", str(secrets.randbits(32)))


def pytest_report_header() -> list[str]:
    """Tell the seed of the night."""
    return [f"POLICYFACTORY_SEED={os.environ['POLICYFACTORY_SEED']}"] if "POLICYFACTORY_SEED" in os.environ else []


def pytest_configure(config: pytest.Config) -> None:
    """Let each worker of pytest-xdist collect other folders first: it rewrites their tests and reads the others'."""
    worker = getattr(config, "workerinput", None)
    if worker is not None and config.args == ["tests"]:
        folders = sorted(str(path) for path in (ROOT / "tests").iterdir() if path.name[:1] not in "._")
        first = int(worker["workerid"][2:]) * len(folders) // worker["workercount"]
        config.args[:] = folders[first:] + folders[:first]


# Which marker every test of a folder has.
_FOLDERS = {"slurm": "slurm", "gridengine": "slurm", "oar": "slurm", "faults": "fault"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by folder, and put those first that wait for a real Slurm: others use the processor meanwhile.

    In all workers they have one order.
    """
    for item in items:
        for folder in item.path.parent.parts[len(ROOT.parts) :]:
            if folder in _FOLDERS:
                item.add_marker(_FOLDERS[folder])
    items.sort(key=lambda item: (item.get_closest_marker("slurm") is None, item.path))


def pytest_collection_finish() -> None:
    """Look for garbage less often, and not among what all tests need: it took a tenth of their time."""
    gc.set_threshold(20_000)
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Give the path of shared material, for example ``shared("traces/lublin_256.swf")``."""
    return shared_path


@pytest.fixture
def blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of reports and fits empty, in tests of what stands beside them: most of a report's time."""
    monkeypatch.setattr("policyfactory.report.files.Drawings._parts", lambda *_: ('viewBox="0 0 1 1"', "<g/>"))
    monkeypatch.setattr("policyfactory.fitting.fits.keeps_settings", lambda draw: lambda: None)
    monkeypatch.setattr("policyfactory.fitting.fits.save_picture", lambda figure, path, **_: path.write_bytes(b""))


# What predictors were trained to, by what they were trained on.
_TRAINED: dict[tuple[object, ...], Any] = {}


@pytest.fixture(scope="module", autouse=True)
def few_trees(request: pytest.FixtureRequest) -> Iterator[None]:
    """Train predictors and baselines with few trees, in tests of what is done with whatever is predicted.

    Who asks for a number of trees gets it. Those that were trained on the same jobs before are taken as they are;
    tests/prediction has what training gives, as do the examples and the pages, which run in processes of their own.
    """
    if request.path.is_relative_to(ROOT / "tests" / "prediction"):
        yield
        return
    from policyfactory.prediction import training

    fitted = training._fitted

    def smaller(features: Any, outcome: Any, options: Any, *, quantile: bool) -> Any:
        key = (
            features.shape,
            hashlib.sha256(features).digest(),
            hashlib.sha256(outcome.copy()).digest(),
            options,
            quantile,
        )
        if key not in _TRAINED:
            usual = options.trees == training.PredictorOptions().trees
            few = dataclasses.replace(options, trees=10) if usual else options
            _TRAINED[key] = fitted(features, outcome, few, quantile=quantile)
        return _TRAINED[key]

    smaller.usual = fitted
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(training, "_fitted", smaller)
        changed.setattr("policyfactory.forecasting.backtest._TREES", 10)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """Give the project's top folder."""
    return ROOT
