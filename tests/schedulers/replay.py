"""A workload on a real slurmctld whose clock runs 60 to 300 times too fast, in minutes: libfaketime.

Only slurmctld has the false clock. The nodes are real slurmd and the jobs real ones, which sleep that much shorter;
what decides which job starts when is Slurm, as it was built. A job needs a few real milliseconds to start and to end,
which are a second or some on the false clock: run times are taken from the record, not from what was asked for.
"""

from __future__ import annotations

import calendar
import contextlib
import dataclasses
import heapq
import json
import math
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from policyfactory.site.model import Qos, Site
from schedulers.processes import require_root, short_directory, wait_for
from schedulers.record import Job, Past, Record, read_log
from schedulers.replay_site import (
    accounting_commands,
    count_nodes,
    gres,
    needs_accounting,
    node_lines,
    partition_line,
    reservation_words,
    settings,
)
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), Path("libfaketimeMT.so.1"))
# The first moment of the false clock: a Monday.
BEGIN, BEGIN_TEXT = 1_772_409_600, "2026-03-02 00:00:00"
# Real time is no measure of what hangs while the clock of slurmctld runs ahead.
_PATIENCE = (
    "SlurmdTimeout=0", "SlurmctldTimeout=600", "MessageTimeout=100", "BatchStartTimeout=6000",
    "UnkillableStepTimeout=6000", "MinJobAge=10000000", "LogTimeFormat=iso8601_ms", "SlurmctldDebug=debug",
    "DebugFlags=Backfill,Priority,TraceJobs", "SlurmdDebug=error", "ReturnToService=0",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """What is replayed.

    Parameters
    ----------
    name : str
        A file's.
    site : Site
        Nodes are called ``n1`` and so on; its reservations and outages count their seconds from the workload's origin.
    jobs : tuple of Job
        In the order of their submission.
    lua : str
        job_submit.lua; empty: none.
    waiting : tuple of Job
        Others that a limit of each node keeps waiting for ever: they are no part of the record.
    per_cent : tuple of Qos
        What the accounting has in place of the site's QOS of these names: limits as per cent, with the flag Relative.
    """

    name: str
    site: Site
    jobs: tuple[Job, ...]
    lua: str = ""
    waiting: tuple[Job, ...] = ()
    per_cent: tuple[Qos, ...] = ()


def require_faketime() -> None:
    """Skip where libfaketime is absent; fail in CI, where it is installed."""
    if not LIBRARY.exists():
        reason = f"{LIBRARY.name} not installed (.ci/install names the Debian package)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


class FastCluster(Cluster):
    """A cluster of a site whose controller's clock begins at `BEGIN` and runs ``rate`` times too fast."""

    def __init__(self, folder: Path, site: Site, rate: int, *, lua: str = "", more: Sequence[str] = ()) -> None:
        require_faketime()
        self.site, self.rate, self.began = site, rate, math.nan
        lines = [*settings(site), *_PATIENCE, *more]
        files = {"gres.conf": gres(site, folder)} if any(group.gpus for group in site.nodes) else {}
        if lua:
            lines.append("JobSubmitPlugins=lua")
            files["job_submit.lua"] = lua
        nodes = sum(map(count_nodes, site.nodes))
        super().__init__(folder, nodes=nodes, lines=lines, files=files, partitions=())
        kept = [line for line in self.configuration.read_text().splitlines() if not line.startswith("NodeName=")]
        kept += node_lines(site, self.port)
        kept += [partition_line(partition, f"n[1-{nodes}]") for partition in site.partitions]
        self.configuration.write_text("\n".join(kept) + "\n")
        self.environment["TZ"] = "UTC"
        # Jobs run as several users, who read their scripts here.
        for place in (folder, *(entry for entry in folder.iterdir() if entry.is_dir())):
            place.chmod(0o755)

    def _start_controller(self) -> None:
        real = self.daemons.environment
        false = {"LD_PRELOAD": str(LIBRARY), "FAKETIME": f"@{BEGIN_TEXT} x{self.rate}", "TZ": "UTC"}
        self.daemons.environment = real | false
        self.began = time.monotonic()
        super()._start_controller()
        self.daemons.environment = real

    def clock(self) -> float:
        """Return the Unix seconds that slurmctld believes it is."""
        return BEGIN + self.rate * (time.monotonic() - self.began)

    def sleep_until(self, moment: float) -> None:
        """Wait until the clock of slurmctld shows ``moment`` (Unix seconds)."""
        time.sleep(max((moment - self.clock()) / self.rate, 0.0))


def replay(case: Case, rate: int = 100, *, seconds: float = 900.0) -> Record:
    """Let a real slurmctld schedule a workload; return what it did.

    Parameters
    ----------
    case : Case
        Site and jobs.
    rate : int
        How many times too fast the clock goes: the higher, the more a job's start and end take on it.
    seconds : float
        Real time after the last submission within which all jobs must have ended.
    """
    require_root()
    with contextlib.ExitStack() as stack:
        # On a disk each save of the state can take seconds of this clock.
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else "/tmp"
        more = [f"StateSaveLocation={stack.enter_context(short_directory(memory))}"]
        if needs_accounting(case.site):
            accounting = stack.enter_context(Accounting(stack.enter_context(short_directory())))
            _fill(accounting, case)
            more += accounting.lines
        cluster = FastCluster(stack.enter_context(short_directory()), case.site, rate, lua=case.lua, more=more)
        stack.enter_context(cluster)
        version = cluster.run("scontrol", "--version").split()[-1]
        # Everything is up, and the origin is some seconds ahead for the first submission to be in time.
        origin = math.ceil(cluster.clock() + 0.5 * rate)
        numbers: dict[str, int] = {}
        events = list(_submit_all(cluster, case, origin, numbers))
        count = len(case.jobs)
        wait_for("the end of all jobs", lambda: _ended(cluster) >= count, seconds, pause=1.0)
        shown = cluster.show_all()
        others = [shown.pop(job) for job, told in list(shown.items()) if _name(told) not in numbers]
        blocked = [job for job in others if job["JobState"] == "PENDING" and job["Reason"].endswith("PerNode")]
        if not len(blocked) == len(others) == len(case.waiting):
            raise RuntimeError(f"{case.name}: jobs that should wait for ever do not: {others}")
        told = {numbers[_name(job)]: job for job in shown.values()}
        left = {
            job["JobId"]: numbers[_name(job)]
            for job in shown.values()
            if job.get("ArrayJobId", job["JobId"]) != job["JobId"]
        }
        eligible = [_moment(told[job.id]["EligibleTime"]) - origin for job in case.jobs]
        text = (cluster.log / "slurmctld.log").read_text(errors="replace")
        past, passes = read_log(text, eligible, origin, numbers, left)
        pairs = zip(case.jobs, past, strict=True)
        past = tuple(_exactly(job, one, _moment(told[job.id]["StartTime"]) - origin) for job, one in pairs)
    return Record(case.name, rate, version, BEGIN, origin, case.jobs, past, passes, tuple(events))


def _fill(accounting: Accounting, case: Case) -> None:
    told = {qos.name: qos for qos in (*case.site.qos, *case.per_cent)}
    for command in accounting_commands(dataclasses.replace(case.site, qos=tuple(told.values()))):
        words = ["sacctmgr", "-i", "-Q", *command]
        done = subprocess.run(words, env=accounting.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")


def _ended(cluster: FastCluster) -> int:
    """Return how many jobs have ended for good."""
    states = dict(line.split() for line in cluster.run("squeue", "-h", "-t", "all", "-o", "%A %T").splitlines())
    for job, state in states.items():
        if state in {"FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}:
            raise RuntimeError(f"job {job} of the replay ended as {state}")
    return sum(state in {"COMPLETED", "PREEMPTED"} for state in states.values())


def _exactly(job: Job, past: Past, second: int) -> Past:
    """Let the last run begin in the second that Slurm counts from: its line in the log can be a moment later.

    Of a task Slurm tells since when its array was below its limit; it may be looked at since it is submitted or begins,
    or since it may start again.
    """
    last = past.runs[-1]
    run = dataclasses.replace(last, start=min(last.start, second * 1000 + 999))
    eligible = past.eligible
    if job.array and not job.dependency and len(past.runs) == 1:
        eligible = max(past.submit // 1000, job.eligible)
    return dataclasses.replace(past, runs=(*past.runs[:-1], run), eligible=eligible)


def _name(told: Mapping[str, str]) -> str:
    """Return what Slurm calls a job: its number, or its array's and that of the task."""
    return f"{told['ArrayJobId']}_{told['ArrayTaskId']}" if "ArrayJobId" in told else told["JobId"]


def _submit_all(cluster: FastCluster, case: Case, origin: int, numbers: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Submit jobs, make reservations and take nodes down, each in its time; give what was done to nodes, and when.

    Into ``numbers`` go the jobs by what Slurm calls them.
    """
    work: list[tuple[float, int, str, Any]] = [
        (job.submit, 2, "job", job) for job in (*case.jobs, *case.waiting) if job.array in {0, job.id}
    ]
    work += [(max(one.known, 0.0), 0, "reservation", one) for one in case.site.reservations]
    for outage in case.site.outages:
        work.append((outage.start, 1, "DRAIN" if outage.drained else "DOWN", outage.nodes))
        work.append((outage.end, 1, "RESUME", outage.nodes))
    order = [(when, rank, number, what, about) for number, (when, rank, what, about) in enumerate(work)]
    heapq.heapify(order)
    while order:
        when, _, _, what, about = heapq.heappop(order)
        cluster.sleep_until(origin + when)
        if what == "job" and not about.id:
            _submit(cluster, [about], origin, numbers)
        elif what == "job":
            tasks = [job for job in case.jobs if job.id == about.id or (about.array and job.array == about.id)]
            numbers |= _submit(cluster, tasks, origin, numbers)
        elif what == "reservation":
            times = (_text(origin + about.start), _text(origin + about.end))
            cluster.run("scontrol", *reservation_words(about, *times))
        else:
            yield int(cluster.clock() * 1000) - origin * 1000, f"{what} {about}"
            cluster.run("scontrol", "update", f"nodename={about}", f"state={what}", "reason=replay")


def _text(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))


def _moment(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def _submit(cluster: FastCluster, tasks: Sequence[Job], origin: int, numbers: Mapping[str, int]) -> dict[str, int]:
    """Submit a job, or the tasks of an array; return what Slurm calls them."""
    name_of = {number: name for name, number in numbers.items()}
    kind, _, before = tasks[0].dependency.partition(":")
    first = tasks[0]
    if kind == "singleton":
        first = dataclasses.replace(first, dependency=kind)
    elif before:
        # Of arrays each as a whole is named: aftercorr is of their tasks.
        name = name_of[int(before)].partition("_")[0] if kind == "aftercorr" else name_of[int(before)]
        first = dataclasses.replace(first, dependency=f"{kind}:{name}")
    words = submission(first, cluster.rate, origin)
    if first.array:
        lengths = " ".join(f"{job.run_time / cluster.rate:.4f}" for job in tasks)
        limit = f"%{first.array_limit}" if first.array_limit else ""
        script = f"set -- {lengths}; shift $SLURM_ARRAY_TASK_ID; exec sleep $1"
        words = [*words[:-1], script, f"--array=0-{len(tasks) - 1}{limit}"]
    name = cluster.run("sbatch", *words).strip()
    return {name: first.id} | {f"{name}_{task}": job.id for task, job in enumerate(tasks) if first.array}


def submission(job: Job, rate: int, origin: int) -> list[str]:
    """Return the arguments of sbatch for a job whose script sleeps its run time on a clock ``rate`` times too fast."""
    words = ["--parsable", "-o", "/dev/null", f"--uid={job.user}", "-t", str(math.ceil(job.limit / 60))]
    if job.nodes:
        words += ["-N", str(job.nodes), f"--ntasks-per-node={job.cores // job.nodes}"]
    else:
        words += ["-n", str(job.cores)]
    if job.memory:
        words.append(f"--mem={job.memory // job.nodes}M" if job.nodes else f"--mem-per-cpu={job.memory // job.cores}M")
    if job.gpus:
        words.append(f"--gres=gpu:{job.gpus // max(job.nodes, 1)}")
    if job.exclusive:
        words.append("--exclusive")
    if job.eligible > job.submit:
        words.append(f"--begin={_text(origin + job.eligible)}")
    if job.dependency:
        words.append(f"--dependency={job.dependency}")
    if job.dependency == "singleton":
        words.append("--job-name=single")
    words += [
        f"--{name}={value}"
        for name, value in (
            ("partition", job.partition),
            ("qos", job.qos),
            ("account", job.account),
            ("reservation", job.reservation),
        )
        if value
    ]
    return [*words, "--wrap", f"exec sleep {job.run_time / rate:.4f}"]


def describe(record: Record) -> str:
    """Return a line about a record."""
    waits = record.waits()
    started = [run.by for past in record.past for run in past.runs]
    return json.dumps(
        {
            "case": record.case,
            "jobs": len(record.jobs),
            "mean wait": round(sum(waits) / len(waits)),
            "hours": round(max(past.runs[-1].end for past in record.past) / 3.6e6, 1),
            "backfilled": started.count("backfill"),
        }
    )
