"""Compare with what a user would take instead: the same log, the same machine, a process each.

    python3 -m venv ../accasim && ../accasim/bin/pip install accasim==1.1.3
    python benchmarks/peers/peers.py --accasim ../accasim/bin/python --output docs/data/performance-peers.csv

AccaSim is the one simulator of batch schedulers with backfilling that PyPI has as a finished program. It gets an
environment of its own, outside the checkout: it wants other versions of numpy. EASY, first come, first served; run
times are cut at the request and are at least 1 s, so every program has the same jobs. The third row is the plain
Python twin of the tests. CPU seconds are those of the simulation and of the whole process, by the fastest of some runs.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
# Benchmarks and tests are no packages: what follows is found in these folders (so the imports stand below, E402).
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]

from test_easy import LOGS, read  # noqa: E402 (the folder above is on the path now)

from policyfactory.core.files import atomic_write  # noqa: E402 (the folder above is on the path now)
from policyfactory.policy.store import resolve  # noqa: E402 (the folder above is on the path now)
from policyfactory.simulation.simulate import Rules, simulate  # noqa: E402 (the folder above is on the path now)
from policyfactory.workload.jobs import Workload  # noqa: E402 (the folder above is on the path now)

COLUMNS = (
    "log", "jobs", "program", "rounds", "simulation_cpu_s", "process_cpu_s", "peak_mb", "jobs_per_cpu_s",
    "other_starts", "mean_wait_s", "mean_bsld",
)  # fmt: skip

OURS = """
import json, sys, time
from pathlib import Path
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.policy.store import resolve
from policyfactory.workload.clean import read
workload = read(Path(sys.argv[1]), processors=int(sys.argv[2]))
begin = time.process_time()
schedule = simulate(workload, resolve("FCFS"), Rules())
told = {"simulation": time.process_time() - begin}
told["peak_kib"] = next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmHWM"))
Path(sys.argv[3]).write_text(json.dumps(told))
"""

TWIN = """
import json, sys, time
from pathlib import Path
sys.path[:0] = [sys.argv[4]]
from naive.online import Job, Online
from naive.orders import ORDERS
rows = [list(map(int, line.split())) for line in open(sys.argv[1]) if not line.startswith(";")]
jobs = [Job(row[0], row[1], row[3], row[8], row[7]) for row in rows]
begin = time.process_time()
Online(jobs, int(sys.argv[2]), ORDERS["fcfs"]).run()
told = {"simulation": time.process_time() - begin}
told["peak_kib"] = next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmHWM"))
Path(sys.argv[3]).write_text(json.dumps(told))
"""


def main(arguments: list[str] | None = None) -> None:
    """Run all programs on the logs and write one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--accasim", type=Path, required=True, help="the Python that has accasim 1.1.3")
    parser.add_argument("--logs", nargs="+", choices=[*LOGS], default=["KTH-SP2"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    rows = [row for name in given.logs for row in compare(name, given.accasim.absolute(), given.rounds)]
    text = io.StringIO()
    out = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    atomic_write(given.output, text.getvalue())
    print(text.getvalue())


def compare(name: str, accasim: Path, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each program on one log."""
    workload = read(name)
    starts = simulate(workload, resolve("FCFS"), Rules()).start
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        log, result = Path(folder) / "log.swf", Path(folder) / "result.json"
        log.write_text(swf(workload), encoding="ascii")
        common = [str(log), str(workload.machine), str(result)]
        programs = {
            "policyfactory": [sys.executable, "-c", OURS, *common],
            "plain Python twin": [sys.executable, "-c", TWIN, *common, str(ROOT / "tests")],
            "AccaSim 1.1.3": [str(accasim), "-W", "ignore", str(Path(__file__).with_name("accasim_easy.py")), *common],
        }
        for program, command in programs.items():
            runs = [measured(command, result) for _ in range(rounds)]
            output = starts
            if "files" in runs[0]:
                output = accasim_starts(Path(runs[0]["files"]["sched-"]), workload)
            least = min(run["simulation"] for run in runs)
            wait = output - workload.submit
            slowdown = np.maximum((wait + workload.run_time) / np.maximum(workload.run_time, 10), 1)
            rows.append(
                {
                    "log": name,
                    "jobs": len(workload),
                    "program": program,
                    "rounds": rounds,
                    "simulation_cpu_s": f"{least:.4g}",
                    "process_cpu_s": f"{min(run['process'] for run in runs):.4g}",
                    "peak_mb": f"{max(run['peak'] for run in runs) / 1e6:.0f}",
                    "jobs_per_cpu_s": f"{len(workload) / least:.4g}",
                    "other_starts": int((output != starts).sum()),
                    "mean_wait_s": f"{wait.mean():.3f}",
                    "mean_bsld": f"{slowdown.mean():.4f}",
                }
            )
    return rows


def swf(workload: Workload) -> str:
    """Return the jobs with one number of processors each, for programs that read field 5 or field 8."""
    columns = (workload.job_id, workload.submit, workload.run_time, workload.processors, workload.requested_time)
    lines = [f"; MaxProcs: {workload.machine}\n; MaxNodes: {workload.machine}\n"]
    for job, submit, run, q, request in zip(*(column.tolist() for column in columns), strict=True):
        lines.append(f"{job} {submit} -1 {run} {q} -1 -1 {q} {request} -1 1 1 1 -1 1 -1 -1 -1\n")
    return "".join(lines)


def measured(command: list[str], result: Path) -> dict[str, Any]:
    """Run a program; return CPU seconds of simulation and process, its largest memory, and what it says itself."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}:\n{said[-2000:]}")
    output: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    # ru_maxrss begins with that of the parent: a program that knows its own peak says it.
    peak = output.get("peak_kib", usage.ru_maxrss) * 1024
    return {**output, "process": usage.ru_utime + usage.ru_stime, "peak": peak}


def accasim_starts(path: Path, workload: Workload) -> np.ndarray:
    """Return the starts that AccaSim wrote, in the order of the workload's jobs."""
    places = {job: place for place, job in enumerate(workload.job_id.tolist())}
    starts = np.full(len(workload), -1, dtype=np.int64)
    for line in path.read_text(encoding="utf-8").splitlines():
        head, _, rest = line.partition("__")
        moment = rest.rpartition("__")[2].partition(";")[0]
        when = dt.datetime.strptime(moment, "%Y-%m-%d %H:%M:%S").replace(tzinfo=dt.UTC)
        starts[places[int(head.partition(";")[0])]] = int(when.timestamp())
    assert (starts >= 0).all(), "a job has no start"
    return starts


if __name__ == "__main__":
    main()
