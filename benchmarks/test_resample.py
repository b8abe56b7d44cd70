"""Time a resampled job takes to make, against the time it takes to simulate, in the same run.

    pytest benchmarks/test_resample.py --benchmark-enable -s

Two years of each log, drawn with the weeks of all users; the simulation is EASY under FCFS of the very jobs.
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
from policyfactory.workload.resample import UserWeeks
from policyfactory.workload.sensitivity import Sensitivity, parse_estimates

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))

LOGS = ("KTH-SP2-1996-2.1-cln", "SDSC-BLUE-2000-4.2-cln", "CEA-Curie-2011-2.1-cln")
WEEKS = 104
LEAST = 3.4  # million jobs a CPU second: 0.3 us a job
FASTER = 2.0  # than one simulation; a case of a protocol has four to twelve


@pytest.fixture(scope="module", params=LOGS)
def history(request: Any) -> UserWeeks:
    path = SHARED / "traces" / f"{request.param}.swf.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return UserWeeks(read(path))


@pytest.mark.benchmark(group="resampling two years", timer=time.process_time)
def test_a_resample(benchmark: Any, history: UserWeeks) -> None:
    made = history.sample(WEEKS, seed=1)
    benchmark.pedantic(history.sample, (WEEKS, 1), rounds=9)
    if not benchmark.enabled:
        return
    own = benchmark.stats.stats.min / len(made)
    bare = simulated(made) / len(made)
    benchmark.extra_info["us a job"] = round(own * 1e6, 3)
    name = f"{history.workload.name}, two years"
    record("resampling", name, 1e-6 / own, "M jobs/CPU s", floor=LEAST)
    times = bare / own
    record(
        "resampling", f"{name}, beside", times, "ratio", floor=FASTER, ratio=times, to="one simulation of these jobs"
    )


@pytest.mark.benchmark(group="other load and requests", timer=time.process_time)
def test_the_axes(benchmark: Any, history: UserWeeks) -> None:
    made = history.sample(WEEKS, seed=1)
    axes = Sensitivity(1.1, parse_estimates("noisy:0.2"))
    benchmark.pedantic(lambda: axes.apply(made, seed=1), rounds=9)
    if benchmark.enabled:
        own = benchmark.stats.stats.min / len(made)
        record("resampling", f"{history.workload.name}, load and noise", 1e-6 / own, "M jobs/CPU s", floor=LEAST)


def simulated(workload: Any) -> float:
    """Return the CPU seconds of the fastest of three simulations."""
    policy, times = resolve("FCFS"), []
    for _ in range(4):
        begin = time.process_time()
        simulate(workload, policy, Rules())
        times.append(time.process_time() - begin)
    # The first compiles, or reads what was compiled.
    return min(times[1:])
