"""The page "From your cluster to your formula in an afternoon", command by command, on a Slurm with accounting.

A small workload runs with time scaled down (a minute takes a second), its accounting is imported, a policy learned,
tested and exported, loaded back, and the next jobs start in the order of the formula.
"""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from policyfactory.policy.policy import Policy
from policyfactory.policy.store import load_model
from policyfactory.workload.swf.files import read_swf
from schedulers.processes import require, short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting
from slurm.orders import waiting as waiting_jobs
from support import ROOT

PAGE = ROOT / "docs" / "afternoon.md"
JOBS = 220
SCALE = 60


def commands() -> list[str]:
    """Return the page's commands in order."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    require("luac5.1")
    with contextlib.ExitStack() as stack:
        accounting = stack.enter_context(Accounting(stack.enter_context(short_directory())))
        folder = stack.enter_context(short_directory())
        yield stack.enter_context(Cluster(folder, nodes=8, lines=accounting.lines))


def run_a_small_workload(cluster: Cluster) -> dict[str, int]:
    """Run jobs of one to three seconds, whose limits in minutes grow with them; return their seconds."""
    drawn = random.Random(4)
    blocker = cluster.hold_all()
    jobs: dict[int, int] = {}
    for _ in range(JOBS):
        seconds = drawn.choice((1, 1, 1, 2, 3))
        minutes = seconds**3 * drawn.randint(1, 3)
        size = int(2 ** drawn.uniform(0, 4.2))
        jobs[cluster.submit(size, minutes, body=f"sleep {seconds}")] = seconds
    cluster.run("scancel", blocker)
    cluster.wait_starts([*jobs], 300)

    def recorded() -> bool:
        return cluster.run("sacct", "-a", "-X", "-n", "-P", "-o", "State").split().count("COMPLETED") >= JOBS

    wait_for("the jobs in the accounting", recorded, 60)
    return {str(job): seconds for job, seconds in jobs.items()}


def test_every_command_of_the_page_and_the_next_jobs_start_in_the_order_of_the_formula(
    cluster: Cluster, tmp_path: Path
) -> None:
    planned = run_a_small_workload(cluster)
    waiting: list[int] = []
    restarts = 0
    for command in commands():
        if "queue.csv" in command and not waiting:
            # A queue to look at.
            waiting = [cluster.hold_all(), *(cluster.submit(size, 5) for size in (9, 1, 20))]
        if command == "systemctl restart slurmctld":
            # What the service manager of a real machine does.
            cluster.restart()
            restarts += 1
            if restarts == 1:
                cluster.run("scancel", *waiting)
                run_a_few_jobs(cluster)
                waiting = [cluster.hold_all(), *(cluster.submit(size, 5) for size in (9, 1, 20))]
            continue
        done = _run(command, cluster, tmp_path)
        if command.endswith("> accounting.txt"):
            scale_back(tmp_path / "accounting.txt", planned)
        if command.endswith("> after.txt"):
            months_later(tmp_path / "after.txt")
        if command.startswith("policyfactory shadow"):
            assert "have a logged number" in done
        if command.startswith("policyfactory review"):
            assert "Cannot tell whether it helped" in done
            assert (tmp_path / "review" / "report.html").is_file()
        if command.startswith("policyfactory workload import"):
            assert len(read_swf(tmp_path / "cluster.swf")) >= JOBS
        if command.startswith("sprio -h"):
            assert not done
            assert all(site_factor(cluster, job) > 1 for job in waiting[1:])
            the_next_jobs_start_in_the_order_of_the_formula(cluster, tmp_path, waiting)
            waiting = [cluster.hold_all(), cluster.submit(3, 7)]
        if "--preview" in command:
            assert all(str(job) in done for job in waiting[1:])
    # The last commands went back: neither the job that waits nor a new one has a site factor.
    assert restarts == 3
    assert "JobSubmitPlugins=lua" not in cluster.configuration.read_text()
    assert site_factor(cluster, waiting[1]) == site_factor(cluster, cluster.submit(3, 7)) == 0


def run_a_few_jobs(cluster: Cluster) -> None:
    """Let some jobs wait and run while the script only logs: none gets a number, and none is last for it."""
    blocker = cluster.hold_all()
    jobs = [cluster.submit(size, 5, body="sleep 1") for size in (30, 2, 64, 7)]
    assert {site_factor(cluster, job) for job in jobs} == {0}
    cluster.run("scancel", blocker)
    cluster.wait_starts(jobs)

    def recorded() -> bool:
        # Asked for as on the page: a job is found by its number a while before it is found by its time.
        words = ("-a", "-X", "-D", "-n", "-P", "-S", "now-7days", "-E", "now", "-o", "JobID,State")
        done = {line.partition("|")[0] for line in cluster.run("sacct", *words).splitlines() if "|COMPLETED" in line}
        return done >= set(map(str, jobs))

    wait_for("the jobs in the accounting", recorded, 60)


def months_later(dump: Path) -> None:
    """Move the times of the second dump behind those of the first, which were stretched."""
    head, *rows = (line.split("|") for line in dump.read_text().splitlines())
    times = [head.index(name) for name in ("Submit", "Eligible", "Start", "End")]
    for row in rows:
        for at in times:
            if row[at].isdigit():
                row[at] = str(int(row[at]) + 60 * 86_400)
    dump.write_text("".join("|".join(row) + "\n" for row in [head, *rows]))


def site_factor(cluster: Cluster, job: int) -> int:
    return int(cluster.run("sprio", "-h", "-j", job, "-o", "%S"))


def scale_back(dump: Path, planned: Mapping[str, int]) -> None:
    """Make minutes again of the seconds that stood for them: slowdowns of jobs of a second would all be 1.

    Submit and run times are those that were planned, 26 jobs a minute: which policy is learned must not hang on
    how busy this machine was.
    """
    head, *rows = (line.split("|") for line in dump.read_text().splitlines())
    column = {name: head.index(name) for name in ("JobID", "Submit", "Eligible", "Start", "End", "ElapsedRaw")}
    first = min(int(row[column["Submit"]]) for row in rows)
    places = {job: place for place, job in enumerate(planned)}
    for row in rows:
        times = {name: first + SCALE * (int(row[at]) - first) for name, at in column.items() if row[at].isdigit()}
        elapsed = SCALE * int(row[column["ElapsedRaw"]])
        if row[column["JobID"]] in planned:
            elapsed = SCALE * planned[row[column["JobID"]]]
            times["Submit"] = times["Eligible"] = first + SCALE * places[row[column["JobID"]]] // 26
            times["Start"] = max(times["Start"], times["Submit"])
            times["End"] = times["Start"] + elapsed
        for name in ("Submit", "Eligible", "Start", "End"):
            if name in times:
                row[column[name]] = str(times[name])
        row[column["ElapsedRaw"]] = str(elapsed)
    dump.write_text("".join("|".join(row) + "\n" for row in [head, *rows]))


def _run(command: str, cluster: Cluster, folder: Path) -> str:
    """Run one line of the page as its reader would, in ``folder``."""
    environment = {**cluster.environment, "PATH": f"{Path(sys.executable).parent}:{cluster.environment['PATH']}"}
    line = command.replace("/etc/slurm", str(cluster.folder)).replace("/var/log/slurm", str(cluster.log))
    # An hour, against a command that hangs: learn compiles Slurm's rules, which are minutes of a processor's own time.
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def the_next_jobs_start_in_the_order_of_the_formula(cluster: Cluster, folder: Path, waiting: list[int]) -> None:
    policy = load_model(folder / "learned" / "policy.json").policy
    cluster.run("scancel", *waiting)
    wait_for("an empty machine", lambda: not cluster.run("squeue", "-h").strip())
    blocker = cluster.hold_all()
    drawn = random.Random(5)
    jobs = [cluster.submit(drawn.choice((33, 40, 64)), drawn.randint(1, 60), body="true") for _ in range(12)]
    expected = _by_formula(policy, cluster, jobs)
    assert expected != jobs, policy.formula
    output = policy.formula + "\n" + cluster.run("squeue", "-S", "-p,i", "-o", "%i %Q %l %C %V")
    cluster.run("scancel", blocker)
    assert cluster.wait_starts(jobs) == expected, output


def _by_formula(policy: Policy, cluster: Cluster, jobs: list[int]) -> list[int]:
    """Return the jobs as the formula orders them, by what Slurm shows of them."""
    queue = waiting_jobs(cluster, jobs)
    scores = policy.scores(queue.p, queue.q, queue.submit - (policy.epoch.unix_time or 0), m=float(cluster.total))
    return [jobs[i] for i in np.lexsort((jobs, queue.submit, scores))]
