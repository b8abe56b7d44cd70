"""Kernels are compiled by one process; others, then and later, read its code, as long as it would be the same."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from copies import run_code
from policyfactory.core import jit
from policyfactory.core.jit import Kernel, kernel, step
from support import ROOT, cases

KERNELS = """
from typing import NamedTuple
from policyfactory.core.jit import kernel

HALF = 0.5


class Pair(NamedTuple):
    first: float
    second: float


@kernel
def inner(n):
    \"\"\"Return a sum.\"\"\"
    total = 0.0
    for k in range(n):
        total += k**HALF
    return total

@kernel
def outer(n):
    return inner(n) + inner(n + 1)

@kernel
def second_of(pair):
    return pair.second
"""

READY = """
import sys
import mykernels
print("ready", flush=True)
sys.stdin.readline()
"""
USE = """
import mykernels
mykernels.outer(10)
for one in (mykernels.outer, mykernels.inner):
    print(sum(one.dispatcher.stats.cache_hits.values()), sum(one.dispatcher.stats.cache_misses.values()))
"""


class Pair(NamedTuple):
    first: int
    second: int | None


def environment(folder: Path) -> dict[str, str]:
    # The search path is kept as tests have it: where the project is not installed it is found by its folder.
    places = os.pathsep.join([str(folder), str(ROOT)])
    # Files of one length are written within a second: kept bytecode would be that of the one before.
    more = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **more}


def begin(folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", READY + USE]
    return subprocess.Popen(words, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def compiled(folder: Path, text: str, **other: str) -> list[bool]:
    """Tell whether a process has to compile ``outer`` and ``inner``."""
    folder.mkdir(exist_ok=True)
    (folder / "mykernels.py").write_text(text)
    words = run_code(USE, folder, environment(folder) | other, [folder]).stdout.split()
    return [word == "1" for word in (words[1], words[3])]


def test_processes_at_once_compile_each_kernel_once(tmp_path: Path) -> None:
    (tmp_path / "mykernels.py").write_text(KERNELS)
    users = [begin(tmp_path) for _ in cases(2, 3)]
    for user in users:
        assert user.stdout is not None
        assert user.stdout.readline() == "ready\n"
    result = [user.communicate("go\n")[0].split() for user in users]
    assert all(user.returncode == 0 for user in users)
    # The others had the outer one from the disk and never asked for the inner one.
    assert sorted(map(tuple, result)) == [("0", "1", "0", "1"), *[("1", "0", "0", "0")] * (len(users) - 1)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name the folder in which the kernels are kept, as a variable of the environment."""
    folder = tmp_path_factory.mktemp("kept")
    cache = {"NUMBA_CACHE_DIR": str(folder / "cache")}
    assert compiled(folder, KERNELS, **cache) == [True, True]
    return cache


def test_what_would_be_the_same_is_not_made_again(tmp_path: Path, cache: dict[str, str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert compiled(one, KERNELS, **cache) == [False, False]
    assert compiled(other, KERNELS, **cache) == [False, False]
    comments = KERNELS.replace('"""Return a sum."""', '"""Add\n\n    roots."""\n    # From nothing.')
    assert comments != KERNELS
    assert compiled(other, comments, **cache) == [False, False]


@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        ("total = 0.0", "total = 1.0", [True, True]),  # outer calls it
        ("HALF = 0.5", "HALF = 0.25", [True, True]),
        ("inner(n + 1)", "inner(n + 2)", [True, False]),
        # Numba takes two such tuples for one type: their fields have the same types.
        ("first: float\n    second", "second: float\n    first", [True, True]),
    ],
)
def test_what_would_be_another_is_made_anew(
    tmp_path: Path, cache: dict[str, str], old: str, new: str, made: list[bool]
) -> None:
    assert old in KERNELS
    assert compiled(tmp_path, KERNELS.replace(old, new), **cache) == made


def test_a_class_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    use = "import mykernels\nprint(mykernels.second_of(mykernels.{}(4.0, 5.0)))"
    for name in ("Pair", "Two"):
        (tmp_path / "mykernels.py").write_text(KERNELS.replace("Pair", name))
        done = run_code(use.format(name), tmp_path, environment(tmp_path), [tmp_path])
        assert (done.returncode, done.stdout.strip()) == (0, "5.0"), done.stderr


def forget(function: object) -> None:
    """Let a kernel count as not compiled, whatever an earlier run of this test did."""
    lock = lock_of(function)
    for mark in lock.parent.glob(f"{lock.stem}-*.made"):
        mark.unlink()


def lock_of(function: object) -> Path:
    """Return the file that who compiles a kernel has locked."""
    assert isinstance(function, Kernel)
    folder = jit._folder()
    assert folder is not None
    return folder / f"{function._name}.lock"


def test_a_kernel_that_cannot_be_compiled_keeps_nobody_waiting() -> None:
    @kernel
    def odd(n: int) -> int:
        return n.no_such_thing  # type: ignore[attr-defined]

    with pytest.raises(TypingError):
        odd(1)
    with lock_of(odd).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_who_waits_too_long_compiles_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(jit, "_PATIENCE", 0.1)
    monkeypatch.setattr(jit.time, "sleep", waits.append)

    @kernel
    def slow(n: int) -> int:
        return n + 1

    forget(slow)
    with lock_of(slow).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert slow(1) == 2
    assert waits


def test_where_the_disk_is_full_kernels_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: jit.Locator) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jit.Locator, "ensure_cache_path", refuse)

    @kernel
    def plain(n: int) -> int:
        return n + 2

    @kernel
    def twice(n: int) -> int:
        return plain(n) + plain(n)

    for one in (plain, twice):
        forget(one)
    assert twice(1) == 6


def test_without_any_folder_for_its_code_a_kernel_works(tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # root can write everywhere, but not below a file
    for _ in range(2):  # the second finds nothing that the first kept
        assert compiled(tmp_path, KERNELS, NUMBA_CACHE_DIR=str(tmp_path / "file")) == [True, True]


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


def test_a_kernel_that_a_step_calls_makes_arrays() -> None:
    # The caller in which it is compiled must not decide how: steps count no references, and can have no array made.
    @kernel
    def total(n: int) -> float:
        return np.empty(n).size + float(np.arange(n).sum())

    @step
    def twice(n: int) -> float:
        return 2 * total(n)

    @kernel
    def all_of_it(n: int) -> float:
        return twice(n)

    assert all_of_it(4) == 20


def test_a_kernel_is_compiled_once_for_each_kind_of_arguments() -> None:
    @kernel
    def some(n: int, beside: int | None) -> int:
        return n if beside is None else n + beside

    forget(some)
    marks: list[int] = []
    for arguments in ((1, None), (1, 2), (3, None)):
        some._prepared.clear()  # type: ignore[attr-defined]  # as in another process
        assert some(*arguments) == arguments[0] + (arguments[1] or 0)
        lock = lock_of(some)
        marks.append(len(list(lock.parent.glob(f"{lock.stem}-*.made"))))
    assert marks == [1, 2, 2]


@pytest.mark.parametrize("part", [None, 2])
def test_each_variant_of_a_kernel_is_compiled_by_one_process(monkeypatch: pytest.MonkeyPatch, part: int | None) -> None:
    locked: list[str] = []

    @contextlib.contextmanager
    def alone(lock: Path) -> Iterator[None]:
        locked.append(lock.name)
        yield

    monkeypatch.setattr(jit, "_alone", alone)

    @kernel
    def plus(n: int, more: int | None) -> int:
        return n if more is None else n + more

    @kernel
    def variable(pair: Pair, beside: int | None) -> int:
        return plus(plus(pair.first, pair.second), beside)

    forget(variable)
    # All in one process: of what is compiled second and third it waits for others as well.
    for beside in (None, 3, None, 4):
        for second in (part, None, part):
            assert variable(Pair(1, second), beside) == 1 + (second or 0) + (beside or 0)
    assert locked == [lock_of(variable).name] * (2 if part is None else 4)


def test_it_can_be_asked_whether_a_kernel_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "mykernels.py").write_text(KERNELS)
    use = (
        "import mykernels; from policyfactory.core.jit import is_compiled as asked\n"
        "print(asked(mykernels.outer)); mykernels.outer(3); print(asked(mykernels.outer))"
    )
    said = [run_code(use, tmp_path, environment(tmp_path), [tmp_path]).stdout.split() for _ in range(2)]
    assert said == [["False", "True"], ["True", "True"]]


@pytest.mark.parametrize("kept", [True, False])
def test_who_listens_is_told_of_the_kernel_that_is_called_and_not_of_its_parts(tmp_path: Path, *, kept: bool) -> None:
    (tmp_path / "mykernels.py").write_text(KERNELS.replace("outer", "slurm_outer"))
    use = (
        "import warnings\nwarnings.simplefilter('ignore')\n"
        "from policyfactory.core.process import announced\n"
        "import mykernels\nsaid = []\n"
        "with announced(said.append):\n    mykernels.slurm_outer(3)\n    mykernels.slurm_outer(4)\nprint(said)"
    )
    more = environment(tmp_path)
    if not kept:
        # A folder that others can write to is not read: each process compiles, and says so each time.
        (tmp_path / "cache" / "kernels").mkdir(parents=True)
        (tmp_path / "cache" / "kernels").chmod(0o777)
    said = [run_code(use, tmp_path, more, [tmp_path]).stdout for _ in range(2)]
    assert said == ["['mykernels']\n", "[]\n" if kept else "['mykernels']\n"]


def test_all_kernels_are_made_where_compiling_is_announced() -> None:
    made = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "policyfactory").rglob("*.py")
        if re.search(r"\b(njit|numba\.jit|vectorize|guvectorize)\b", path.read_text(encoding="utf-8"))
    ]
    assert made == ["policyfactory/core/jit.py"]
