"""How costs grow: with tuples, trials, the queue, the machine and the jobs. Curves, and their slopes beside theory.

    pytest benchmarks/test_scaling.py --benchmark-enable -s

CPU seconds, the best of some rounds; slopes of log over log by least squares. What is drawn for the online simulator
arrives by a Poisson process at a load of 0.8, with log-uniform run times from 30 s to 10 h and requests of up to five
times the run time. Jobs are at most a quarter of the machine wide where they grow in number, so that none starves and
the length of the queue does not depend on that number; one curve shows what happens else.

With POLICYFACTORY_BENCH_SMALL=1 each curve has its first three sizes only: a minute, to see that all of it runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floors import Curve, record, record_curve, slope_of
from policyfactory.engine.trials import Problem, add_blocks, add_orders, pose
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.trials.run import finished_tuples
from policyfactory.trials.table import GenerateOptions
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import generate_lublin

LOAD = 0.8
SMALL = os.environ.get("POLICYFACTORY_BENCH_SMALL") == "1"
ENOUGH = 2.0  # CPU seconds: what took as long is not repeated


def drawn(jobs: int, machine: int, *, widest: int = 0, seed: int = 1) -> Workload:
    """Return jobs of up to ``widest`` processors (default: the machine), powers of two, at a load of 0.8."""
    rng = np.random.default_rng(seed)
    run = np.exp(rng.uniform(np.log(30), np.log(36_000), jobs)).astype(np.int64)
    width = 2 ** rng.integers(0, int(np.log2(widest or machine)) + 1, jobs)
    gap = run.mean() * width.mean() / machine / LOAD
    submit = np.cumsum(rng.exponential(gap, jobs) if gap > 0 else np.zeros(jobs)).astype(np.int64)
    request = (run * rng.uniform(1, 5, jobs)).astype(np.int64)
    unknown = np.full(jobs, -1, dtype=np.int64)
    return Workload("drawn", machine, np.arange(1, jobs + 1), submit, run, request, width, unknown, unknown)


def posed(queue: int, machine: int, *, state: int = 16, widest: int = 0) -> Problem:
    """Return a tuple: the state and the queue arrive within an hour."""
    workload = drawn(state + queue, machine, widest=widest)
    submit = np.sort(np.random.default_rng(2).integers(0, 3600, state + queue))
    return pose(workload.run_time, workload.processors, submit, machine, state, 10)


def cpu_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the CPU time of the fastest of some calls, of fewer where one takes long."""
    times: list[float] = []
    while len(times) < rounds and sum(times) < ENOUGH:
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def trials(problem: Problem, count: int, estimator: str = "stratified") -> None:
    seed = np.array([1, 2, 3, 4], dtype=np.int64)
    queue = len(problem.p)
    if estimator == "paper":
        add_orders(problem, seed, count, np.zeros((queue, 3)))
    else:
        add_blocks(problem, seed, max(1, count // (4 * queue)), np.zeros((queue + 1, 3)))


def curve(
    benchmark: Any, figure: str, name: str, by: str, sizes: Sequence[float], work: Callable[[Any], object], **about: Any
) -> None:
    """Measure ``work`` at each size and keep the curve; where nobody measures, run the smallest once."""
    per = about.pop("per", lambda _: 1.0)
    prepared = about.pop("prepare", lambda size: size)
    work(prepared(sizes[0]))
    benchmark.pedantic(lambda: None, rounds=1)
    if not benchmark.enabled:
        return
    points = []
    if SMALL:
        sizes, about["begin"] = sizes[:3], 0.0
    for size in sizes:
        ready = prepared(size)
        spent = cpu_seconds(lambda ready=ready: work(ready))
        points.append((float(size), spent / per(size)))
    output = Curve(figure, name, by, points=tuple(points), **about)
    record_curve(output)
    slope, error = slope_of(output)
    theory = "no theory" if output.theory is None else f"theory {output.theory:g}"
    record("scaling, slopes", f"{name} by {by} ({theory})", slope, f"slope ±{error:.2f}")


def test_tuples(benchmark: Any) -> None:
    workload = generate_lublin(256, 20_000, seed=1)

    def run(tuples: int) -> None:
        options = GenerateOptions(tuples=int(tuples), trials=1024, estimator="stratified", seed=1)
        for _ in finished_tuples(workload, options, list(range(int(tuples)))):
            pass

    curve(
        benchmark, "generate", "tuples of 1,024 trials", "tuples", [10, 100, 1000, 10_000], run,
        unit="CPU s", theory=1.0, reason="each tuple is a piece of its own", begin=100,
    )  # fmt: skip


@pytest.mark.parametrize("estimator", ["stratified", "paper"])
def test_trials(benchmark: Any, estimator: str) -> None:
    problem = posed(32, 256)
    curve(
        benchmark, "generate", f"trials of one tuple, {estimator}", "trials", [10**k for k in range(3, 8)],
        lambda count: trials(problem, int(count), estimator),
        unit="CPU s", theory=1.0, reason="trials know nothing of each other", begin=10_000,
    )  # fmt: skip


@pytest.mark.parametrize("estimator", ["stratified", "paper"])
def test_queue(benchmark: Any, estimator: str) -> None:
    count = 65_536
    curve(
        benchmark, "queue", f"a trial, {estimator}", "jobs in the queue", [8, 16, 32, 64, 128],
        lambda problem: trials(problem, count, estimator),
        prepare=lambda queue: posed(queue, 256), per=lambda _: count / 1e6,
        unit="CPU us a trial", theory=1.0, begin=16,
        reason="a trial starts each job once, and merges it into a list of running jobs that the machine bounds",
    )  # fmt: skip


@pytest.mark.parametrize("widest", [0, 8])
def test_machine_of_trials(benchmark: Any, widest: int) -> None:
    count = 65_536
    curve(
        benchmark, "machine", f"a trial, jobs of {'up to 8' if widest else 'any number of'} processors", "processors",
        [16, 256, 4096, 65_536, 1_048_576], lambda problem: trials(problem, count),
        prepare=lambda machine: posed(32, machine, widest=widest), per=lambda _: count / 1e6,
        unit="CPU us", theory=None if widest else 0.0,
        reason="more run at once, until all 48 do and no one waits"
        if widest else "processors are counted, never listed; widths grow with the machine",
    )  # fmt: skip


@pytest.mark.parametrize("widest", [0, 8])
def test_machine_of_easy(benchmark: Any, widest: int) -> None:
    jobs = 100_000 if benchmark.enabled else 2000
    policy = resolve("FCFS")
    sizes = [16, 256, 4096, 65_536, 1_048_576] if widest == 0 else [16, 64, 256, 1024, 4096, 16_384]
    curve(
        benchmark, "machine", f"EASY FCFS a job, jobs of {'up to 8' if widest else 'any number of'} processors",
        "processors", sizes, lambda workload: simulate(workload, policy, Rules()),
        prepare=lambda machine: drawn(jobs, machine, widest=widest), per=lambda _: jobs / 1e6, unit="CPU us",
        theory=None if widest else 0.0,
        reason="as many more run at once: a heap of ends costs the logarithm, a sorted list of them moves memory"
        if widest else "widths grow with the machine, so as many run and wait as before",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "backfill", "largest"),
    [("FCFS", "easy", 7), ("SAF", "easy", 6), ("WFP3", "easy", 6), ("FCFS", "conservative", 6)],
)
def test_jobs(benchmark: Any, policy: str, backfill: str, largest: int) -> None:
    order, rules = resolve(policy), Rules(backfill=backfill)
    curve(
        benchmark, "jobs", f"{policy}, {backfill}", "jobs", [10**k for k in range(4, largest + 1)],
        lambda workload: simulate(workload, order, rules), prepare=lambda jobs: drawn(int(jobs), 256, widest=64),
        unit="CPU s", theory=1.0, begin=100_000 if largest > 6 else 0,
        reason="at a fixed load the queue and the running jobs do not grow",
    )  # fmt: skip


def test_jobs_that_starve(benchmark: Any) -> None:
    # 3 in 100 of the jobs have the whole machine to themselves or wait for ever: smaller jobs always come first.
    order = resolve("SAF")
    curve(
        benchmark, "jobs", "SAF, easy, widest jobs starve", "jobs", [10_000, 31_623, 100_000, 316_228],
        lambda workload: simulate(workload, order, Rules()), prepare=lambda jobs: drawn(int(jobs), 256),
        unit="CPU s", theory=2.0, begin=0 if SMALL else 30_000,
        reason="jobs as wide as the machine wait for ever: the queue grows with the log, all of it is looked through",
    )  # fmt: skip


def test_parsing(benchmark: Any) -> None:
    from policyfactory.workload.swf.files import format_swf, parse_swf

    curve(
        benchmark, "jobs", "reading SWF", "jobs", [10**k for k in range(4, 7)],
        lambda text: parse_swf(text, Path("drawn.swf")), prepare=lambda jobs: format_swf(drawn(int(jobs), 256)),
        unit="CPU s", theory=1.0, reason="each byte is looked at once", begin=100_000,
    )  # fmt: skip


PEAK = """
import json, sys
sys.path[:0] = [sys.argv[2]]
from test_scaling import drawn
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.policy.store import resolve
workload = drawn(int(sys.argv[1]), 256, widest=64)
simulate(workload, resolve('FCFS'), Rules())
status = open('/proc/self/status').read().splitlines()
print(json.dumps(next(int(line.split()[1]) for line in status if line.startswith('VmHWM'))))
"""


def test_memory_of_jobs(benchmark: Any) -> None:
    if not benchmark.enabled:
        pytest.skip("memory is measured in processes of their own")
    benchmark.pedantic(lambda: None, rounds=1)
    points = []
    for jobs in (10_000, 100_000, 1_000_000) if SMALL else (10_000, 100_000, 1_000_000, 10_000_000):
        command = [sys.executable, "-c", PEAK, str(jobs), str(Path(__file__).parent)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        points.append((float(jobs), json.loads(done.stdout) * 1024 / 1e6))
    (less, before), (most, peak) = points[-2:]
    record("peak memory", f"EASY FCFS of {most:,.0f} drawn jobs, drawing included", peak, "MB", ceiling=4000)
    grown = (peak - before) / (most - less) * 1e6
    record("peak memory", f"a million jobs more, from {less:,.0f} to {most:,.0f}", grown, "MB")
    output = Curve(
        "memory", "EASY FCFS, jobs drawn in memory", "jobs", "MB", tuple(points), 1.0,
        "some columns of eight bytes a job, once Python and numba (some 180 MB) are outgrown", begin=less,
    )  # fmt: skip
    record_curve(output)
