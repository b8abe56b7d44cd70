"""Jobs per CPU second of the online simulator under EASY, against the plain simulator in the same run.

    pytest benchmarks/test_easy.py --benchmark-enable

Logs as the other programs had them: run times cut at the request, jobs of no processors dropped, at least 1 s. The
time is that of ``simulate``: from a Workload and a Policy to the starts of all jobs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floors import record
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))

LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln", 100),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln", 1152),
    "CEA-Curie": ("CEA-Curie-2011-2.1-cln", 93312),
}
STATIC = ("FCFS", "SPF", "SAF", "SQF", "F1", "LPF", "LAF")
TIMED = ("WFP3", "UNICEF", "LEXP", "SEXP")

# Jobs per CPU second that the fastest of the rounds has to reach.
FLOORS = {("SDSC-BLUE", "static"): 4e6, ("CEA-Curie", "static"): 2.5e6, "timed": 0.3e6}


def read(name: str) -> Workload:
    file, machine = LOGS[name]
    path = SHARED / "traces" / f"{file}.swf.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    log = read_swf(path)
    width = np.where(log.requested > 0, log.requested, log.allocated)
    request = np.where(log.requested_time > 0, log.requested_time, log.run_time)
    run_time = np.maximum(np.minimum(log.run_time, request), 1)
    kept = (width > 0) & (width <= machine) & (log.allocated <= machine) & (log.run_time >= 0) & (log.submit >= 0)
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((log.job_id[rows], log.submit[rows]))]
    columns = (log.job_id, log.submit, run_time, np.maximum(request, 1), width)
    unknown = np.full(len(rows), -1)
    return Workload(name, machine, *(column[rows] for column in columns), unknown, unknown)


@pytest.fixture(scope="module")
def logs() -> dict[str, Workload]:
    return {name: read(name) for name in LOGS}


def run(benchmark: Any, workload: Workload, name: str, rules: Rules, floor: float | None, kind: str) -> None:
    policy = resolve(name)
    if benchmark.enabled:
        simulate(workload, policy, rules)
    benchmark.pedantic(simulate, (workload, policy, rules), rounds=15)
    if benchmark.enabled:
        rate = len(workload) / benchmark.stats.stats.min
        benchmark.extra_info["jobs per CPU second"] = round(rate)
        least = None if floor is None else floor / 1e6
        record(f"simulator, {kind}", f"{workload.name}, {name}", rate / 1e6, "M jobs/CPU s", floor=least)


@pytest.mark.benchmark(group="EASY, static policies", timer=time.process_time)
@pytest.mark.parametrize("policy", STATIC)
@pytest.mark.parametrize("log", LOGS)
def test_static(benchmark: Any, logs: dict[str, Workload], log: str, policy: str) -> None:
    run(benchmark, logs[log], policy, Rules(), FLOORS.get((log, "static"), 1e6), "EASY, static policies")


@pytest.mark.benchmark(group="EASY, static policies, threshold 20 h", timer=time.process_time)
@pytest.mark.parametrize("log", LOGS)
def test_threshold(benchmark: Any, logs: dict[str, Workload], log: str) -> None:
    run(
        benchmark, logs[log], "SAF", Rules(threshold=72000), FLOORS.get((log, "static"), 1e6), "EASY, threshold of 20 h"
    )


@pytest.mark.benchmark(group="EASY, time-dependent policies", timer=time.process_time)
@pytest.mark.parametrize("policy", TIMED)
@pytest.mark.parametrize("log", LOGS)
def test_timed(benchmark: Any, logs: dict[str, Workload], log: str, policy: str) -> None:
    run(benchmark, logs[log], policy, Rules(), FLOORS["timed"], "EASY, time-dependent policies")


@pytest.mark.benchmark(group="conservative", timer=time.process_time)
@pytest.mark.parametrize("log", ["KTH-SP2", "SDSC-BLUE"])
def test_conservative(benchmark: Any, logs: dict[str, Workload], log: str) -> None:
    run(benchmark, logs[log], "FCFS", Rules(backfill="conservative"), None, "conservative backfilling")


@pytest.mark.benchmark(group="EASY, KTH-SP2, FCFS, plain Python", timer=time.process_time)
def test_plain_python(benchmark: Any, logs: dict[str, Workload]) -> None:
    from naive.online import Job, Online
    from naive.orders import ORDERS

    workload = logs["KTH-SP2"]
    rows = (workload.job_id, workload.submit, workload.run_time, workload.requested_time, workload.processors)

    def plain() -> None:
        jobs = [Job(*map(int, row)) for row in zip(*rows, strict=True)]
        Online(jobs, workload.machine, ORDERS["fcfs"]).run()

    benchmark.pedantic(plain, rounds=1)
    if benchmark.enabled:
        plainly = benchmark.stats.stats.min
        begin = time.process_time()
        simulate(workload, resolve("FCFS"), Rules())
        times = plainly / (time.process_time() - begin)
        rate = len(workload) / plainly / 1e6
        record("simulator, plain Python twin", "KTH-SP2, FCFS", rate, "M jobs/CPU s")
        record(
            "simulator, plain Python twin",
            "KTH-SP2, FCFS, compiled",
            times * rate,
            "M jobs/CPU s",
            ratio=times,
            to="the twin",
        )
