"""Reading accounting logs: MB/s and CPU seconds a million lines, against pandas on the same bytes in the same run.

    pytest benchmarks/test_import.py --benchmark-enable -s

The logs are drawn: 200,000 lines as ``sacct -P`` prints the recommended columns, with Unix seconds and with dates, and
100,000 end records of PBS. pandas reads the columns of sacct with its C engine and checks nothing; PBS it can only
split at the semicolons.
"""

from __future__ import annotations

import datetime as dt
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from floors import record
from policyfactory.workload.accounting.importing import Zone, import_logs
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED
from policyfactory.workload.swf.files import write_swf

ZONE = Zone(dt.UTC, "UTC", "told by the benchmark")
LINES = {"sacct": 200_000, "sacct with dates": 200_000, "pbs": 100_000}
GROUP = "import of accounting logs"


def drawn(lines: int) -> list[tuple[int, ...]]:
    """Return submit, start, end, run time, processors and user of each job."""
    rng = np.random.default_rng(1)
    submit = np.cumsum(rng.integers(0, 60, lines)) + 1_700_000_000
    start = submit + rng.integers(0, 5000, lines) * (rng.random(lines) < 0.7)
    run = rng.integers(1, 40_000, lines)
    columns = (submit, start, start + run, run, 2 ** rng.integers(0, 9, lines), rng.integers(1000, 1400, lines))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def sacct(lines: int, *, dates: bool = False) -> str:
    def moment(seconds: int) -> str:
        return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S") if dates else str(seconds)

    states = ("COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1000")
    text = [RECOMMENDED.rpartition(" ")[2].replace(",", "|")]
    for number, (submit, start, end, run, q, user) in enumerate(drawn(lines), start=1):
        came, nodes = moment(submit), max(1, q // 32)
        text.append(
            f"{number}|{number}|{user}|u{user}|{user % 20}|account{user % 37}|batch|normal|{states[number % 6]}|"
            f"{came}|{came}|{moment(start)}|{moment(end)}|{run}|{run // 60 + 30}|{q}|{q}|{nodes}|{nodes}|{nodes}|"
            f"billing={q},cpu={q},mem=1000M,node={nodes}|00:00:00|SchedMain,StartRecieved"
        )
    return "\n".join(text) + "\n"


def pbs(lines: int) -> str:
    text = []
    for number, (submit, start, end, run, q, user) in enumerate(drawn(lines), start=1):
        stamp = dt.datetime.fromtimestamp(end, dt.UTC).strftime("%m/%d/%Y %H:%M:%S")
        used = f"{run // 3600:02}:{run // 60 % 60:02}:{run % 60:02}"
        text.append(
            f"{stamp};E;{number}.server;user=u{user} group=g{user % 20} project=_pbs_project_default jobname=j "
            f"queue=batch ctime={submit} qtime={submit} etime={submit} start={start} exec_host=n{number % 97}/0*{q} "
            f"exec_vnode=(n{number % 97}:ncpus={q}) Resource_List.ncpus={q} Resource_List.nodect=1 "
            f"Resource_List.select=1:ncpus={q} Resource_List.walltime={run // 3600 + 1:02}:00:00 session=1 end={end} "
            f"Exit_status=0 resources_used.cput={used} resources_used.ncpus={q} resources_used.walltime={used} "
            "run_count=1"
        )
    return "\n".join(text) + "\n"


def cpu_seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the CPU time of the fastest of some calls, after one that is not counted."""
    work()
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.parametrize("form", LINES)
def test_importing(benchmark: Any, tmp_path: Path, form: str) -> None:
    lines = LINES[form] if benchmark.enabled else 200
    text = pbs(lines) if form == "pbs" else sacct(lines, dates=form != "sacct")
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="ascii")
    done = benchmark.pedantic(import_logs, ([path],), {"zone": ZONE}, rounds=1)
    assert len(done.log) == lines
    if not benchmark.enabled:
        write_swf(done.log, tmp_path / "log.swf")
        return
    separator = ";" if form == "pbs" else "|"
    ours = cpu_seconds(lambda: import_logs([path], zone=ZONE))
    head = {"header": None} if form == "pbs" else {}
    theirs = cpu_seconds(lambda: pd.read_csv(io.StringIO(text), sep=separator, **head))
    record(GROUP, f"{form}, text", len(text) / 1e6 / ours, "MB/CPU s", ratio=theirs / ours, to="pandas.read_csv")
    record(GROUP, f"{form}, a million lines", ours / lines * 1e6, "CPU s", ceiling=20 if form == "pbs" else 10)
    if form == "sacct":
        writing = cpu_seconds(lambda: write_swf(done.log, tmp_path / "log.swf"))
        record(GROUP, "writing the SWF file, a million lines", writing / lines * 1e6, "CPU s")
