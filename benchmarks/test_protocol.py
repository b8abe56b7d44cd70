"""A protocol from end to end: share of the CPU time that the kernels have, two workers against one, memory.

    pytest benchmarks/test_protocol.py --benchmark-enable -s

Resampled logs of two years of KTH-SP2 and SDSC-BLUE, eight static policies under EASY with a threshold, two metrics:
read, drawn, simulated, measured and compared. The kernel's own time is taken inside the same run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from floors import hold, record
from policyfactory.evaluation.protocol import Protocol, protocol_of
from policyfactory.evaluation.results_folder import Result
from policyfactory.evaluation.study import RunSettings, read_logs, run_protocol
from policyfactory.simulation import simulate

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))

LOGS = {"kth": "KTH-SP2-1996-2.1-cln.swf.gz", "sdsc-blue": "SDSC-BLUE-2000-4.2-cln.swf.gz"}
POLICIES = ["FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "SAF", "LAF"]
SHARE = 0.5  # of the CPU time of the whole that the kernel has: half of its speed from end to end
TWO = 1.9  # times as fast with two workers
GROWTH = 30e6  # bytes that 40 more resampled logs may add to the peak: less than three of them


def protocol(count: int, logs: dict[str, str] = LOGS, length: str = "2y") -> Protocol:
    for file in logs.values():
        if not (SHARED / "traces" / file).exists():
            pytest.skip(f"{file} is not there")
    experiment = {
        "name": "easy",
        "resample": {"count": count, "length": length},
        "policies": POLICIES,
        "metrics": ["mean_bsld", "mean_wait"],
        "statistic": "ratio",
        "rules": {"threshold": "40h"},
    }
    sources = {name: {"file": file} for name, file in logs.items()}
    return protocol_of({"schema_version": 1, "name": "speed", "logs": sources, "experiments": [experiment]})


def run(count: int, workers: int) -> Result:
    what = protocol(count)
    return run_protocol(what, read_logs(what, [SHARED / "traces"]), RunSettings(workers))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the CPU seconds of each call of the kernel."""
    spent: list[float] = []
    bare: Callable[..., Any] = simulate.easy

    def timed(*arguments: Any) -> Any:
        begin = time.thread_time()
        result = bare(*arguments)
        spent.append(time.thread_time() - begin)
        return result

    monkeypatch.setattr(simulate, "easy", timed)
    return spent


@pytest.mark.benchmark(group="a protocol from end to end", timer=time.process_time)
def test_half_of_the_time_is_the_kernels(benchmark: Any, kernel: list[float]) -> None:
    count = 12 if benchmark.enabled else 1
    run(1, 1)  # compiles
    kernel.clear()
    study = benchmark.pedantic(run, (count, 1), rounds=1)
    if not benchmark.enabled:
        return
    whole = benchmark.stats.stats.min
    benchmark.extra_info["jobs per CPU second"] = round(study.jobs_simulated / whole)
    rate = study.jobs_simulated / whole / 1e6
    record("a protocol from end to end", f"{study.jobs_simulated:,} jobs", rate, "M jobs/CPU s")
    hold("kernel's share of the CPU time", sum(kernel) / whole, least=SHARE, group="a protocol from end to end")


@pytest.mark.benchmark(group="a protocol from end to end", timer=time.perf_counter)
def test_two_workers_are_nearly_twice_as_fast(benchmark: Any) -> None:
    # As many resampled logs as the article has; what follows the simulations (0.3 s of bootstraps) is not shared out.
    # CI has no time for that many and no quiet machine: it runs the benchmark and prints.
    count = 1 if not benchmark.enabled else 16 if os.environ.get("CI") == "true" else 60
    what = protocol(count)
    logs = read_logs(what, [SHARED / "traces"])
    run_protocol(protocol(2), logs, RunSettings(1)) if benchmark.enabled else None  # compiles
    begin = time.perf_counter()
    one = run_protocol(what, logs, RunSettings(1))
    alone = time.perf_counter() - begin
    two = benchmark.pedantic(run_protocol, (what, logs, RunSettings(2)), rounds=1)
    assert one.outcomes[0].evaluation.values.tobytes() == two.outcomes[0].evaluation.values.tobytes()
    if benchmark.enabled and len(os.sched_getaffinity(0)) > 1:
        times = alone / benchmark.stats.stats.min
        hold("two workers (wall clock)", times, least=TWO, group="a protocol from end to end", to="one worker")


@pytest.mark.benchmark(group="a protocol from end to end")
def test_memory_is_flat_in_the_number_of_resamples(benchmark: Any) -> None:
    if not benchmark.enabled:
        protocol(1)
        return
    code = "import test_protocol as t, sys; t.run(int(sys.argv[1]), 2); print(t.peak())"
    peaks = []
    for count in (4, 44):
        command = [sys.executable, "-c", code, str(count)]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.splitlines()[-1]))
    benchmark.pedantic(lambda: None, rounds=1)
    record("peak memory", "a protocol, two workers, 4 resampled logs a log", peaks[0] / 1e6, "MB")
    grown = peaks[1] - peaks[0]
    record("peak memory", "a protocol, more for 44 resampled logs a log", grown / 1e6, "MB", ceiling=GROWTH / 1e6)


def peak() -> int:
    """Return the largest memory of this process so far, in bytes; ru_maxrss would begin with that of the parent."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024
