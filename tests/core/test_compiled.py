"""Kernels are compiled by one process; the others that need them at the same time wait for it and read its code."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numba.core.errors import TypingError

from policyfactory.core.jit import SharedCache, kernel, step
from support import ROOT

KERNELS = """
from policyfactory.core.jit import kernel

@kernel
def inner(n):
    total = 0.0
    for k in range(n):
        total += k ** 0.5
    return total

@kernel
def outer(n):
    return inner(n) + inner(n + 1)
"""

USE = """
import sys, time
import mykernels
print("ready", flush=True)
sys.stdin.readline()
mykernels.outer(10)
for one in (mykernels.outer, mykernels.inner):
    print(sum(one.stats.cache_hits.values()), sum(one.stats.cache_misses.values()))
"""


def environment(folder: Path) -> dict[str, str]:
    # The search path is kept as tests have it: where the project is not installed it is found by its folder.
    places = os.pathsep.join([str(folder), str(ROOT)])
    return {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": places}


def begin(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", USE],
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_three_processes_at_once_compile_each_kernel_once(tmp_path: Path) -> None:
    (tmp_path / "mykernels.py").write_text(KERNELS)
    users = [begin(tmp_path) for _ in range(3)]
    for user in users:
        assert user.stdout is not None
        assert user.stdout.readline() == "ready\n"
    result = [user.communicate("go\n")[0].split() for user in users]
    assert all(user.returncode == 0 for user in users)
    # Two of them had the outer one from the disk and never asked for the inner one.
    assert sorted(map(tuple, result)) == [("0", "1", "0", "1"), ("1", "0", "0", "0"), ("1", "0", "0", "0")]


def test_code_of_an_older_version_with_a_class_that_is_gone_is_made_anew(tmp_path: Path) -> None:
    old = "from typing import NamedTuple\n" + KERNELS
    use = "import mykernels\nprint(mykernels.inner(mykernels.{}(4)))"
    classes = "\nclass {}(NamedTuple):\n    n: int\n"
    kernels = old.replace("total = 0.0", "total = 0.0\n    n = n.n")
    for name in ("Before", "After"):
        (tmp_path / "mykernels.py").write_text(kernels + classes.format(name))
        command = [sys.executable, "-c", use.format(name)]
        done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "4.146264369941973"), done.stderr


def test_a_kernel_that_cannot_be_compiled_keeps_nobody_waiting() -> None:
    @kernel
    def odd(n: int) -> int:
        return n.no_such_thing  # type: ignore[attr-defined]

    cache = odd._cache
    assert isinstance(cache, SharedCache)
    with pytest.raises(TypingError):
        odd(1)
    (lock,) = Path(cache.cache_path).glob(f"{cache._impl.filename_base}.lock")
    with lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.unlink()


def test_who_waits_too_long_compiles_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyfactory.core.jit._PATIENCE", 0.1)

    @kernel
    def slow(n: int) -> int:
        return n + 1

    cache = slow._cache
    cache._impl.locator.ensure_cache_path()
    cache.flush()  # of what an earlier run of this test left
    lock = Path(cache.cache_path) / f"{cache._impl.filename_base}.lock"
    with lock.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        begin = time.monotonic()
        assert slow(1) == 2
    assert time.monotonic() - begin >= 0.1
    lock.unlink()


def test_where_nothing_can_be_written_kernels_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def plain(n: int) -> int:
        return n + 2

    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    plain._cache._impl.locator.ensure_cache_path()
    plain._cache.flush()  # of what an earlier run of this test left
    monkeypatch.setattr(plain._cache._impl.locator, "ensure_cache_path", refuse)
    assert plain(1) == 3


def test_without_any_folder_for_its_code_a_kernel_works(tmp_path: Path) -> None:
    (tmp_path / "mykernels.py").write_text(KERNELS)
    # Numba looks beside the source, then in the home folder: here both cannot be written, also by root.
    code = """
from numba.core import caching
for locator in caching.CacheImpl._locator_classes:
    locator.ensure_cache_path = lambda self: (_ for _ in ()).throw(OSError(30, "Read-only file system"))
import mykernels
print(mykernels.outer(10) > 0)
"""
    places = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def test_a_change_anywhere_in_the_engine_makes_new_machine_code(tmp_path: Path) -> None:
    # Kernels are compiled into each other: numba alone would go on with what it made of an older callee.
    (tmp_path / "mykernels.py").write_text(KERNELS)
    misses = []
    for size in (1, 1, 2):
        code = f"from policyfactory.core import jit; jit._sources = lambda: (('easy.py', 0.0, {size}),)\n{USE}"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(tmp_path),
            input="go\n",
            capture_output=True,
            text=True,
            check=True,
        )
        misses.append(done.stdout.split()[2])
    assert misses == ["1", "0", "1"]


def test_a_step_can_be_called_by_python_too() -> None:
    @step
    def square(n: int) -> int:
        return n * n

    @kernel
    def both(n: int) -> int:
        return square(n) + square(n + 1)

    # Before and after its code for kernels is there, of which Python must never be told.
    assert square(3) == 9
    assert both(3) == 25
    assert (square(4), square(n=5), square(1.5)) == (16, 25, 2.25)


def test_it_can_be_asked_whether_a_kernel_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "mykernels.py").write_text(KERNELS)
    use = (
        "import mykernels; from policyfactory.core.jit import is_compiled as asked\n"
        "print(asked(mykernels.outer)); mykernels.outer(3); print(asked(mykernels.outer))"
    )
    command, more = [sys.executable, "-c", use], {"env": environment(tmp_path), "capture_output": True, "text": True}
    said = [subprocess.run(command, check=False, **more).stdout.split() for _ in range(2)]  # type: ignore[call-overload]
    assert said == [["False", "True"], ["True", "True"]]


@pytest.mark.parametrize("kept", [True, False])
def test_who_listens_is_told_of_the_kernel_that_is_called_and_not_of_its_parts(tmp_path: Path, *, kept: bool) -> None:
    (tmp_path / "mykernels.py").write_text(KERNELS.replace("outer", "slurm_outer"))
    use = (
        "from policyfactory.core.compiling import announced\n"
        "import mykernels\nsaid = []\n"
        "with announced(said.append):\n    mykernels.slurm_outer(3)\n    mykernels.slurm_outer(4)\nprint(said)"
    )
    more = environment(tmp_path)
    if not kept:
        # A folder that others can write to is not read: each process compiles, and says so each time.
        (tmp_path / "cache").mkdir(mode=0o777)
        (tmp_path / "cache").chmod(0o777)
    command = [sys.executable, "-W", "ignore", "-c", use]
    said = [subprocess.run(command, env=more, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said == ["['mykernels']\n", "[]\n" if kept else "['mykernels']\n"]


def test_all_kernels_are_made_where_compiling_is_announced() -> None:
    made = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "policyfactory").rglob("*.py")
        if re.search(r"\b(njit|numba\.jit|vectorize|guvectorize)\b", path.read_text(encoding="utf-8"))
    ]
    assert made == ["policyfactory/core/jit.py"]
