"""Windows per CPU second of the SC'17 mode, against the plain twin in the same run.

    pytest benchmarks/test_sc17.py --benchmark-enable

The first 10 windows of SDSC-BLUE, as in the paper. The original (SimGrid 3.13, a process each) takes about 1 CPU second
a window.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from floors import record
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import cut

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))
POLICIES = ("FCFS", "SPF", "WFP3", "UNICEF", "F1")
# Windows per CPU second that the fastest of the rounds has to reach.
FLOOR = 300.0


@pytest.fixture(scope="module")
def windows() -> list[Workload]:
    path = SHARED / "traces" / "SDSC-BLUE-2000-4.2-cln.swf.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return cut(read(path, preset="sc17", processors=1152), "sc17:10x15d")


@pytest.mark.benchmark(group="SC'17 mode, SDSC-BLUE", timer=time.process_time)
@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("name", POLICIES)
def test_kernel(benchmark: Any, windows: list[Workload], name: str, backfill: str) -> None:
    policy, rules = resolve(name), Rules(backfill=backfill, compatibility="sc17")

    def run() -> None:
        for window in windows:
            simulate(window, policy, rules)

    run()
    benchmark.pedantic(run, rounds=5)
    if benchmark.enabled:
        rate = len(windows) / benchmark.stats.stats.min
        benchmark.extra_info["windows per CPU second"] = round(rate)
        what = f"{name}, {'backfilling' if backfill == 'easy' else 'no backfilling'}"
        record("simulator, rules of SC'17", what, rate, "windows/CPU s", floor=FLOOR)


@pytest.mark.benchmark(group="SC'17 mode, SDSC-BLUE, plain Python", timer=time.process_time)
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_plain_python(benchmark: Any, windows: list[Workload], backfill: str) -> None:
    from naive.sc17 import Job, sc17

    window = windows[1]
    columns = (window.submit, window.run_time, window.requested_time, window.processors)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))

    def run() -> None:
        jobs = [Job(submit, float(run), float(request), float(request), q) for submit, run, request, q in rows]
        sc17(jobs, window.machine, "WFP3", backfill == "easy")

    benchmark.pedantic(run, rounds=1)
    if benchmark.enabled:
        what = f"WFP3, backfill {backfill}, the plain Python twin"
        record("simulator, rules of SC'17", what, 1 / benchmark.stats.stats.min, "windows/CPU s")
