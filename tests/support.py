"""What many tests need: the checkout, the shared material, how many random cases, the run that a journal names."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
# Beside the checkout, or beside a folder that holds checkouts.
_PLACES = [parent / "shared" for parent in ROOT.parents if (parent / "shared" / "traces").is_dir()]
SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", _PLACES[0] if _PLACES else ROOT.parent / "shared"))

NIGHTLY = bool(os.environ.get("POLICYFACTORY_NIGHTLY"))

# Where shares of users or nodes that fail count, where running jobs are stopped for others and where predictions change
# while a simulation runs the kernel of Slurm's rules is another, which takes half a minute to compile: by night, and
# where Slurm's sources changed (make areas).
OTHER_KERNEL = pytest.mark.slow


def cases(daily: int, nightly: int) -> range:
    """Return numbers of random cases: as many as a change, or a night, has time for."""
    return range(nightly if NIGHTLY else daily)


def seeds(daily: int | Sequence[int], slow: int, nightly: int) -> list[Any]:
    """Return numbers of random cases: some for every change, more where `slow` tests run, all of them at night.

    Those for every change are the first, or those that are given for what they contain.
    """
    first = range(daily) if isinstance(daily, int) else daily
    return some_by_day([*first, *(seed for seed in cases(slow, nightly) if seed not in first)], len(first))


def some_by_day(values: Sequence[Any], daily: int) -> list[Any]:
    """Return the arguments of a test, all but the first few of them for the night."""
    rest = (value if isinstance(value, tuple) else (value,) for value in values[daily:])
    return [*values[:daily], *(pytest.param(*value, marks=pytest.mark.slow) for value in rest)]


def examples(number: int) -> settings:
    """Ask hypothesis for this number of examples; for every change (`quick`) for a quarter of them, or 25 if more."""
    quick = settings.default == settings.get_profile("quick")
    return settings(max_examples=min(number, max(25, number // 4)) if quick else number)


def shared_path(name: str) -> Path:
    """Return a file of the shared material; skip without it, except in CI, where it must be there."""
    path = SHARED / name
    if not path.exists():
        reason = f"{name} is not in {SHARED} (set POLICYFACTORY_SHARED to the folder with traces/ and oracles/)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def extra_module(name: str, extra: str) -> ModuleType:
    """Return a module of an extra; skip without it, except in CI, where it must be there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        reason = f"{name} is not installed: pip install 'policyfactory[{extra}]'"
        if os.environ.get("CI") == "true":
            raise RuntimeError(reason) from None
        pytest.skip(reason, allow_module_level=True)


def run_of(journal: Path) -> dict[str, Any]:
    """Return the run that the first line of a journal names."""
    first = journal.read_bytes().split(b"\n", 1)[0]
    run: dict[str, Any] = json.loads(first[first.index(b"{") :])
    return run
