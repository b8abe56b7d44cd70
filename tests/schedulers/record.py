"""What a real slurmctld did with a workload: which job ran when and where, what started it, what it was worth.

Read from slurmctld.log (SlurmctldDebug=debug, LogTimeFormat=iso8601_ms, DebugFlags=Backfill,Priority,TraceJobs) and
from ``scontrol show job`` at the end. All times are milliseconds of the scheduler's clock, counted from the origin of
the workload's; the file is JSON, small and sorted, compressed.
"""

from __future__ import annotations

import calendar
import dataclasses
import gzip
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """A job as it is asked for; 0 and empty stand for what it does not say.

    Parameters
    ----------
    id : int
        Counted from 1 in the order of submission, as Slurm does.
    submit, run_time, limit : int
        Seconds; the limit in whole minutes.
    nodes, cores, memory, gpus : int
        In all, over the whole job; memory in MB. Of what is shared out to nodes, each gets the same.
    exclusive : bool
        Whether it wants its nodes for itself.
    eligible : int
        Seconds; from when it may start (``--begin``); 0: at once.
    partition : str
        Or several, ``batch,other``.
    dependency : str
        As sbatch takes it, ``afterok:3``; of a task ``aftercorr`` names another, and ``singleton:3`` the last of its
        user that runs one at a time, 0: it is the first.
    reservation : str
        The one that it asks for.
    array, array_limit : int
        The first task of the array that it is a task of, 0: of none; how many of the tasks may run at once, 0: all.
    """

    id: int
    submit: int
    run_time: int
    limit: int
    nodes: int = 0
    cores: int = 1
    memory: int = 0
    gpus: int = 0
    exclusive: bool = False
    partition: str = ""
    qos: str = ""
    account: str = ""
    user: str = "daemon"
    eligible: int = 0
    dependency: str = ""
    array: int = 0
    array_limit: int = 0
    reservation: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """From a start to an end; a job that was put back into the queue has several.

    Parameters
    ----------
    start, end : int
        Milliseconds.
    nodes : tuple of int
        Numbers of the nodes, from 0 in the order of the configuration.
    by : {"main", "backfill"}
        Which pass started it.
    ended : {"done", "requeued", "stopped", "cancelled"}
        Why it ended: the last two for another job; after the first of them it was put back into the queue.
    freed : tuple of int
        When its nodes had been cleaned up and were free for others, one after another, in milliseconds; the log does
        not say which was first.
    """

    start: int
    end: int
    nodes: tuple[int, ...]
    by: str
    ended: str = "done"
    freed: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Past:
    """What became of a job.

    Parameters
    ----------
    submit : int
        Milliseconds.
    eligible : int
        Whole seconds; since when it might start: of a job that was put back into the queue, some time after that.
    runs : tuple of Run
        In their order.
    site_factor : int
        What an exported policy gave it.
    priorities : tuple of (int, int)
        Since when (milliseconds) which priority, where it changed.
    """

    submit: int
    eligible: int
    runs: tuple[Run, ...]
    site_factor: int = 0
    priorities: tuple[tuple[int, int], ...] = ()

    @property
    def start(self) -> int:
        """When its last run began, in milliseconds."""
        return self.runs[-1].start


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """A workload and what a slurmctld made of it.

    Parameters
    ----------
    case : str
        Of `schedulers.replay_cases`.
    rate : int
        How many times faster than the real one its clock went.
    version : str
        Of Slurm.
    begin, origin : int
        Unix seconds on the scheduler's clock at which slurmctld started, and at which the workload's clock begins.
    jobs : tuple of Job
        By id.
    past : tuple of Past
        Of the jobs, in the same order.
    passes : mapping of str to tuple of int
        When the ``main`` and the ``backfill`` passes began, in milliseconds.
    events : tuple of (int, str)
        When what was done to the nodes: milliseconds, ``DOWN n1``.
    """

    case: str
    rate: int
    version: str
    begin: int
    origin: int
    jobs: tuple[Job, ...]
    past: tuple[Past, ...]
    passes: dict[str, tuple[int, ...]]
    events: tuple[tuple[int, str], ...] = ()

    def waits(self) -> list[float]:
        """Return the seconds that each job waited for its last start."""
        return [(past.start - past.submit) / 1000.0 for past in self.past]


def write_record(record: Record, path: Path) -> None:
    """Write a record; the same bytes for the same record."""
    data = {"schema": SCHEMA, **dataclasses.asdict(record)}
    fields = [field.name for field in dataclasses.fields(Job)]
    data["jobs"] = {name: [getattr(job, name) for job in record.jobs] for name in fields}
    data["past"] = [
        [
            past.submit,
            past.eligible,
            [_packed(run) for run in past.runs],
            past.site_factor,
            _steps([value for pair in past.priorities for value in pair]),
        ]
        for past in record.past
    ]
    data["passes"] = {name: _steps(times, 1) for name, times in record.passes.items()}
    text = json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read_record(path: Path) -> Record:
    """Return a record that `write_record` wrote."""
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    if data.pop("schema") != SCHEMA:
        raise ValueError(f"{path.name}: not a record of schema {SCHEMA}")
    columns = data.pop("jobs")
    jobs = tuple(Job(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
    past = tuple(
        Past(
            submit,
            eligible,
            tuple(map(_unpacked, runs)),
            factor,
            tuple(_pairs(_whole(steps))),
        )
        for submit, eligible, runs, factor, steps in data.pop("past")
    )
    passes = {name: tuple(_whole(times, 1)) for name, times in data.pop("passes").items()}
    events = tuple((when, what) for when, what in data.pop("events"))
    return Record(jobs=jobs, past=past, passes=passes, events=events, **data)


def _packed(run: Run) -> list[Any]:
    return [run.start, run.end, list(run.nodes), run.by, run.ended, [at - run.end for at in run.freed]]


def _unpacked(values: Sequence[Any]) -> Run:
    start, end, nodes, by, ended, after = values
    return Run(start, end, tuple(nodes), by, ended, tuple(end + one for one in after))


def _steps(values: Iterable[int], apart: int = 2) -> list[int]:
    """Return each value less the one ``apart`` before it: small numbers compress well."""
    values = list(values)
    return [value - (values[i - apart] if i >= apart else 0) for i, value in enumerate(values)]


def _whole(steps: Iterable[int], apart: int = 2) -> list[int]:
    """Return what `_steps` was made of."""
    result: list[int] = []
    for i, step in enumerate(steps):
        result.append(step + (result[i - apart] if i >= apart else 0))
    return result


def _pairs(values: list[int]) -> Iterator[tuple[int, int]]:
    return zip(values[::2], values[1::2], strict=True)


def expand(names: str) -> list[int]:
    """Return the numbers, from 0, of nodes that are called n1, n2 and so on: ``n[1-3,5]`` gives 0, 1, 2, 4."""
    result = []
    for part in names.replace("n", "").strip("[]").split(","):
        first, _, last = part.partition("-")
        result += range(int(first) - 1, int(last or first))
    return result


# What slurmctld says, and what it means.
_SAYS = (
    # Of every job 26.05 tells its SLUID, too.
    ("submit", re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+)(?: SLUID=\S+)? InitPrio=(\d+)")),
    ("factor", re.compile(r"Site priority is (-?\d+)")),
    ("priority", re.compile(r"Job (\d+) priority: .* = (-?[\d.]+)$")),
    ("main", re.compile(r"sched: Allocate JobId=(\d+) NodeList=(\S+)")),
    ("backfill", re.compile(r"_start_job: Started JobId=(\d+) in \S+ on (\S+)")),
    # 26.05 tells the same in three lines: which job, on which nodes, and that backfilling did it.
    ("chosen", re.compile(r"select_nodes: \[JobId=(\d+)\] change state: PENDING -> RUNNING")),
    ("laid out", re.compile(r"laying out the \d+ tasks on \d+ hosts (\S+) ")),
    ("backfilled", re.compile(r"_start_job: BACKFILL: Jobs backfilled since boot")),
    ("done", re.compile(r"_job_complete: JobId=(\d+) done")),
    ("requeued", re.compile(r"requeue (?:job )?JobId=(\d+) due to")),
    ("stopped", re.compile(r"preempted JobId=(\d+) has been requeued")),
    ("cancelled", re.compile(r"preempted JobId=(\d+) has been killed")),
    ("freed", re.compile(r"job_epilog_complete: enter JobId=(\d+)")),
    ("main pass", re.compile(r"sched: Running job scheduler")),
    ("backfill pass", re.compile(r"_attempt_backfill: beginning")),
)


def moment(line: str) -> int:
    """Return the milliseconds since 1970 at which a line was written; the log is in UTC."""
    whole, _, milliseconds = line[1:24].partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 1000 + int(milliseconds)


@dataclasses.dataclass
class _Found:
    """What a log says, as it is read."""

    submit: dict[int, int] = dataclasses.field(default_factory=dict)
    runs: dict[int, list[Run]] = dataclasses.field(default_factory=dict)
    factors: dict[int, int] = dataclasses.field(default_factory=dict)
    priorities: dict[int, list[tuple[int, int]]] = dataclasses.field(default_factory=dict)
    passes: dict[str, list[int]] = dataclasses.field(default_factory=lambda: {"main": [], "backfill": []})
    factor: int = 0
    chosen: int = 0
    laid_out: str = ""

    def take(self, kind: str, at: int, words: tuple[str, ...]) -> None:
        """Add one thing that was said."""
        job = int(words[0]) if words and kind not in {"factor", "laid out"} else 0
        runs = self.runs.setdefault(job, []) if job else []
        match kind:
            case "submit":
                self.submit[job] = at
                if not self.priorities.get(job):
                    self.priorities[job] = [(at, int(words[1]))]
            case "factor":
                # Of the job whose priority is told next.
                self.factor = int(words[0])
            case "priority":
                told = self.priorities.setdefault(job, [])
                self.factors[job] = self.factor
                value = max(int(float(words[1])), 1)
                if not told or told[-1][1] != value:
                    told.append((at, value))
            case "main" | "backfill":
                runs.append(Run(at, -1, tuple(expand(words[1])), kind))
            case "chosen":
                self.chosen = job
            case "laid out":
                self.laid_out = words[0]
            case "backfilled":
                runs = self.runs.setdefault(self.chosen, [])
                if self.chosen and (not runs or runs[-1].end >= 0):
                    runs.append(Run(at, -1, tuple(expand(self.laid_out)), "backfill"))
            case "done" | "requeued" | "stopped" | "cancelled":
                if runs and runs[-1].end < 0:
                    runs[-1] = dataclasses.replace(runs[-1], end=at, ended=kind)
            case "freed":
                self._free(runs, at)
            case _:
                self.passes[kind.removesuffix(" pass")].append(at)

    @staticmethod
    def _free(runs: list[Run], at: int) -> None:
        """Note that a node of a job's last run that has ended is free again."""
        for place in reversed(range(len(runs))):
            run = runs[place]
            if run.end >= 0:
                if len(run.freed) < len(run.nodes):
                    runs[place] = dataclasses.replace(run, freed=(*run.freed, max(at, run.end)))
                return


def _cleaned(run: Run) -> Run:
    """Let nodes of which the log does not say when they were free again, since they were down, be free at the end."""
    missing = len(run.nodes) - len(run.freed)
    return dataclasses.replace(run, freed=(run.end,) * missing + run.freed)


_ALONE = 1_000_000_000  # more, in numbers of tasks that have left their array
_JOB = re.compile(r"(JobId=|Job )(\d+)(?:_(\d+)\(\d+\))?")


def _renumbered(text: str, numbers: Mapping[str, int]) -> str:
    """Return the log with our numbers of the jobs, 0 for those that are not ours."""

    def number(found: re.Match[str]) -> str:
        kind, job, task = found.groups()
        return f"{kind}{numbers.get(job if task is None else f'{job}_{task}', 0)}"

    return _JOB.sub(number, text)


def read_log(
    text: str,
    eligible: Sequence[int],
    origin: int,
    numbers: Mapping[str, int] | None = None,
    left: Mapping[str, int] | None = None,
) -> tuple[tuple[Past, ...], dict[str, tuple[int, ...]]]:
    """Return what became of the jobs, and when the passes began, by slurmctld.log.

    Parameters
    ----------
    text : str
        The log.
    eligible : sequence of int
        Of the jobs from 1 on: whole seconds from the origin, which only Slurm's commands tell.
    origin : int
        Unix seconds of the scheduler's clock at which the workload's begins.
    numbers : mapping of str to int, optional
        Our numbers of the jobs by Slurm's, ``17``, and of the tasks of arrays, ``17_3``, where they are not the same.
        An array is submitted as its first task is.
    left : mapping of str to int, optional
        Our numbers of tasks by what Slurm calls them once they have left their array: since then they have priorities
        of their own.
    """
    found, count = _Found(), len(eligible)
    alone = {name: job + _ALONE for name, job in (left or {}).items()}
    for line in (_renumbered(text, {**(numbers or {}), **alone}) if numbers else text).splitlines():
        for kind, pattern in _SAYS:
            words = pattern.search(line)
            if words:
                found.take(kind, moment(line) - origin * 1000, words.groups())
                break
    told_of = dict(found.priorities)
    for name, job in (numbers or {}).items():
        first = (numbers or {})[name.partition("_")[0]]
        own = told_of.get(job + _ALONE, [])
        of_array = [told for told in told_of[first] if not own or told[0] < own[0][0]]
        found.submit[job], found.priorities[job] = found.submit[first], of_array + own
    missing = [job for job in range(1, count + 1) if not found.runs.get(job) or found.runs[job][-1].end < 0]
    if missing:
        raise RuntimeError(f"the log has no start and end of the jobs {missing}")
    past = tuple(
        Past(
            found.submit[job],
            since,
            tuple(map(_cleaned, found.runs[job])),
            found.factors.get(job + _ALONE, found.factors.get(job, 0)),
            tuple(found.priorities.get(job, [])),
        )
        for job, since in enumerate(eligible, start=1)
    )
    return past, {name: tuple(at for at in times if at >= 0) for name, times in found.passes.items()}
