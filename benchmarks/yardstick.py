"""How fast the machine is at this moment: the random trials of trials.c, a loop in plain C that nobody changes.

Speeds of this project divided by it can be compared between machines, and between busy and quiet hours of one.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["library", "measure"]

_STATE, _QUEUE, _MACHINE, _TRIALS = 16, 32, 256, 20_000


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return trials.c as a library; None without a C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "trials.so"
        source = Path(__file__).with_name("trials.c")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", made, source], check=True)
        return ctypes.CDLL(str(made))


@functools.cache
def _jobs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    n = _STATE + _QUEUE
    run_time, width = (10 ** rng.uniform(0, 5, n)).astype(np.int64), (2 ** rng.integers(0, 8, n)).astype(np.int64)
    return run_time, width, np.cumsum(rng.integers(0, 600, n))


def measure(rounds: int = 3) -> float:
    """Return million trials a CPU second, the best of some rounds of a few milliseconds; 0 without a C compiler."""
    plain = library()
    if plain is None:
        return 0.0
    seed, best = np.array([1, 2, 3, 4], dtype=np.uint32), np.inf
    columns: list[Any] = [ctypes.c_void_p(column.ctypes.data) for column in _jobs()]
    sizes = map(ctypes.c_int64, (_MACHINE, _STATE, _QUEUE))
    arguments = [*columns, *sizes, ctypes.c_void_p(seed.ctypes.data), ctypes.c_int64(_TRIALS)]
    for _ in range(rounds):
        sums = np.zeros((_QUEUE, 3))
        begin = time.process_time()
        plain.random_trials(*arguments, ctypes.c_void_p(sums.ctypes.data))
        best = min(best, time.process_time() - begin)
    return _TRIALS / best / 1e6
