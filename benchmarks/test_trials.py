"""Trials per second of processor time, on one core, against plain C (trials.c) compiled in the same run.

`pytest benchmarks/test_trials.py --benchmark-enable -s` prints the table; each comparison runs both programs by turns
and takes the best of several rounds, so that a busy machine slows both.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yardstick

from floors import promise, record
from policyfactory.core.random import generator
from policyfactory.engine.trials import Problem, add_blocks, add_orders, front_values, order_values, pose
from policyfactory.trials.run import estimate
from policyfactory.trials.table import ESTIMATORS

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))
PLACES = (137, 959, 1803, 2500, 3469, 4543, 6433, 6801, 7600, 8467)
MACHINE, STATE, QUEUE = 256, 16, 32
TRIALS = 64_000
ROUNDS = 7


@pytest.fixture(scope="module")
def tuples() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Ten tuples of the SC'17 artifact's workload: p, q, r of 48 jobs each."""
    path = SHARED / "traces" / "lublin_256.swf"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(";")]
    rows = np.array([[int(line[3]), int(line[4]), int(line[1])] for line in lines], dtype=np.int64)
    cuts = [rows[place : place + STATE + QUEUE].copy() for place in PLACES]
    return [(cut[:, 0].copy(), cut[:, 1].copy(), cut[:, 2] - cut[0, 2]) for cut in cuts]


@pytest.fixture(scope="module")
def plain_c() -> ctypes.CDLL:
    plain = yardstick.library()
    if plain is None:
        pytest.skip("no C compiler")
    return plain


def c_arguments(cut: tuple[np.ndarray, ...]) -> list[Any]:
    return [*(ctypes.c_void_p(column.ctypes.data) for column in cut), *map(ctypes.c_int64, (MACHINE, STATE, QUEUE))]


def race(name: str, ours: Callable[[], None], theirs: Callable[[], None], trials: int) -> None:
    """Record how many times faster ``ours`` is in CPU time, best of several rounds by turns."""
    best = [np.inf, np.inf]
    ours()
    for _ in range(ROUNDS):
        for side, work in enumerate((ours, theirs)):
            begin = time.process_time()
            work()
            best[side] = min(best[side], time.process_time() - begin)
    speeds = [trials / seconds / 1e6 for seconds in best]
    ratio = speeds[0] / speeds[1]
    record("trials", name, speeds[0], "M trials/CPU s", ratio=ratio, to="plain C")
    promise(f"{name}, times as fast as plain C,", ratio, least=1.0)


def test_trials_in_given_orders(tuples: list[Any], plain_c: ctypes.CDLL, benchmark: Any) -> None:
    orders = np.random.default_rng(1).permuted(np.tile(np.arange(QUEUE, dtype=np.uint8), (TRIALS, 1)), axis=1)
    problems = [pose(*cut, MACHINE, STATE, 10) for cut in tuples]
    ours, theirs = np.empty((2, len(tuples), TRIALS))

    def run() -> None:
        for problem, out in zip(problems, ours, strict=True):
            order_values(problem, orders, out)

    def run_c() -> None:
        data = ctypes.c_void_p(orders.ctypes.data)
        for cut, out in zip(tuples, theirs, strict=True):
            plain_c.order_values(*c_arguments(cut), data, ctypes.c_int64(TRIALS), ctypes.c_void_p(out.ctypes.data))

    run_c()
    run()
    np.testing.assert_array_equal(ours, theirs)
    if benchmark.enabled:
        race("given orders", run, run_c, ours.size)
    benchmark.pedantic(run, rounds=3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_trials_of_an_estimator(tuples: list[Any], plain_c: ctypes.CDLL, benchmark: Any, estimator: str) -> None:
    """Drawing the orders counts on both sides; plain C runs random orders, which is what the papers did."""
    problems = [pose(*cut, MACHINE, STATE, 10) for cut in tuples]
    seed = np.array([1, 2, 3, 4], dtype=np.uint32)

    def run() -> None:
        for problem in problems:
            if estimator == "paper":
                add_orders(problem, seed.astype(np.int64), TRIALS, np.zeros((QUEUE, 3)))
            else:
                add_blocks(problem, seed.astype(np.int64), TRIALS // (4 * QUEUE), np.zeros((QUEUE + 1, 3)))

    def run_c() -> None:
        for cut in tuples:
            sums = np.zeros((QUEUE, 3))
            data = ctypes.c_void_p(seed.ctypes.data)
            plain_c.random_trials(*c_arguments(cut), data, ctypes.c_int64(TRIALS), ctypes.c_void_p(sums.ctypes.data))
            assert sums[:, 0].sum() == TRIALS

    run()
    run_c()
    if benchmark.enabled:
        race(f"{estimator} estimator", run, run_c, len(tuples) * TRIALS)
    benchmark.pedantic(run, rounds=3)


def test_precision_per_second(tuples: list[Any], benchmark: Any) -> None:
    """Say what each step of the stratified estimator gains over plain strata, and both together over the paper's."""
    gains = []
    for number, cut in enumerate(tuples if benchmark.enabled else tuples[:3]):
        problem = pose(*cut, MACHINE, STATE, 10)
        gains.append(step_gains(problem, number))
    output = np.exp(np.log(gains).mean(axis=0))
    names = ("paper -> independent strata", "-> common orders", "-> and backwards", "-> and halves exchanged")
    print(f"\nvariance at equal trials, geometric mean over {len(gains)} tuples:")
    for name, gain in zip(names, output, strict=True):
        print(f"  {name}: {gain:.2f} times less")
    print(
        f"  all: {output.prod():.0f} times less (single tuples {np.prod(gains, axis=1).round().astype(int).tolist()})"
    )
    assert output[1] > 5
    assert output[2] > 1.2
    assert output.prod() > 100
    if benchmark.enabled:
        to = "uniform random orders (paper estimator)"
        record(
            "trials",
            "variance of a score, stratified, at equal trials",
            output.prod(),
            "ratio",
            ratio=output.prod(),
            to=to,
        )
    benchmark.pedantic(step_gains, (pose(*tuples[0], MACHINE, STATE, 10), 0), rounds=1)


def step_gains(problem: Problem, number: int) -> list[float]:
    """Return by how much each step lowers the mean variance of a score, at equal numbers of trials."""
    drawn = np.random.default_rng(number).permuted(np.tile(np.arange(QUEUE, dtype=np.uint8), (4000, 1)), axis=1)
    half = np.roll(drawn, QUEUE // 2, axis=1)
    runs = [np.empty(drawn.shape) for _ in range(4)]
    for orders, out in zip((drawn, drawn[:, ::-1], half, half[:, ::-1]), runs, strict=True):
        front_values(problem, np.ascontiguousarray(orders), out)
    mean = runs[0].mean(axis=0)
    score = mean / mean.sum()
    # Independent strata: the same trials, but the noise of different first jobs has nothing in common.
    noise = runs[0].var(axis=0, ddof=1)
    independent = ((1 - 2 * score) * noise + score**2 * noise.sum()).mean() / mean.sum() ** 2
    steps = [independent]
    for used in (1, 2, 4):
        block = sum(runs[:used]) / used
        steps.append(
            ((block - score * block.sum(axis=1, keepdims=True)) / mean.sum()).var(axis=0, ddof=1).mean() * used
        )
    paper = estimate(problem, "paper", 200_000, generator(1, number).integers(1, 2**32, size=4))
    steps = [(paper.stderr**2).mean() * paper.trials / QUEUE, *steps]
    return [before / after for before, after in itertools.pairwise(steps)]


def test_memory_at_100_000_tuples(tmp_path: Path, benchmark: Any) -> None:
    """The table is written as it grows: 100,000 tuples need hardly more memory than a hundred."""
    code = (
        "import sys; sys.argv = ['policyfactory', *sys.argv[1:]]\n"
        "from policyfactory.cli.main import build_app\n"
        "build_app()(standalone_mode=False)\n"
        # Not ru_maxrss: it begins with the peak of the process that started this one.
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    arguments = ["generate", "--tuples", "100000", "--trials", "256", "--output", str(tmp_path / "t.csv")]
    command = [sys.executable, "-c", code, *arguments]
    done = benchmark.pedantic(
        subprocess.run, (command,), {"capture_output": True, "text": True, "check": True}, rounds=1
    )
    peak = int(done.stdout.split()[-1]) / 1024
    if benchmark.enabled:
        record("peak memory", "generate, 100,000 tuples of 256 trials", peak * 1.048576, "MB", ceiling=400 * 1.048576)
