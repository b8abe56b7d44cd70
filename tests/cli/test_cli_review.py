"""The commands ``policyfactory shadow`` and ``policyfactory review``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from policyfactory.simulation.simulate import simulate
from policyfactory.workload.models.lublin import default_workload

BEGIN = 1_700_000_000
HEAD = "JobID|UID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|Partition"


def write(folder: Path) -> None:
    """Write accounting of a simulated machine with users that would steer a terminal, and a log of log-only lines."""
    jobs = default_workload().select(np.arange(400))
    start = simulate(jobs, "FCFS").start
    rows, lines = [HEAD], ["slurmctld: other\n"]
    for at in range(len(jobs)):
        submit, begin, run = BEGIN + int(jobs.submit[at]), BEGIN + int(start[at]), int(jobs.run_time[at])
        size, minutes = int(jobs.processors[at]), -(-int(jobs.requested_time[at]) // 60)
        rows.append(
            f"{at + 1}|{1000 + at % 5}|COMPLETED|{submit}|{begin}|{begin + run}|{run}|{minutes}|{size}|{size}|<b>"
        )
        lines.append(
            f"slurmctld: lua: policyfactory-shadow: policy=<script> at={submit} job={at + 1} user=1000 submit={submit} "
            f"time={60 * minutes} processors={size} score=1 number={-size * minutes} present=- us=2\n"
        )
    (folder / "sacct.txt").write_text("\n".join(rows) + "\n")
    (folder / "slurmctld.log").write_text("".join(lines))


def test_shadow_prints_and_writes_page_and_tables(run, tmp_path: Path) -> None:
    write(tmp_path)
    done = run("shadow", "slurmctld.log", "--accounting", "sacct.txt", "--output", "found")
    assert "Kendall's tau" in done.stdout
    page = (tmp_path / "found" / "report.html").read_text()
    assert "<script>" not in page.replace("<script>\n", "").split("</style>")[1].split("<script")[0]
    assert {file.name for file in (tmp_path / "found").rglob("*.csv")} >= {"orders.csv", "jobs.csv", "users.csv"}
    again = run("shadow", "slurmctld.log", "--accounting", "sacct.txt", "-o", "found", code=1)
    assert "exists; add --overwrite" in again.stderr
    assert again.stdout == ""  # before anything is computed
    assert "no line of a log-only export" in run("shadow", "sacct.txt", "--accounting", "sacct.txt", code=1).stderr


def test_review_prints_and_writes_page_and_tables(run, tmp_path: Path) -> None:
    write(tmp_path)
    later = (tmp_path / "sacct.txt").read_text().replace(f"|{BEGIN // 10**7}", f"|{BEGIN // 10**7 + 5}")
    (tmp_path / "after.txt").write_text(later)
    done = run("review", "--before", "sacct.txt", "--after", "after.txt", "--policy", "SAF", "-o", "found")
    assert "Cannot tell whether it helped" in done.stdout
    assert "too few" in done.stdout
    assert {file.name for file in (tmp_path / "found").rglob("*.csv")} >= {"weeks.csv", "ways.csv", "times.csv"}
    assert "Before and after" in (tmp_path / "found" / "report.html").read_text()
    again = run("review", "--before", "sacct.txt", "--after", "after.txt", "-o", "found", code=1)
    assert "exists; add --overwrite" in again.stderr
    assert again.stdout == ""
    wrong = run("review", "--before", "after.txt", "--after", "sacct.txt", code=1).stderr
    assert all(words in wrong for words in ("sacct.txt: ", " submitted before the last submission of after.txt at "))
