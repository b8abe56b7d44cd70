"""The queue of a Slurm cluster at one instant: what squeue or scontrol print of its running and waiting jobs.

Four forms are read and told apart by how they begin: ``squeue --json``, ``scontrol show job`` with and without ``-o``,
and lines of squeue whose columns have the names that Slurm gives them and end with ``|`` (`SQUEUE`, ``-o %all``).
Written for what 22.05.8, 24.11.5 and 26.05.5 print (parsers 0.0.38 to 0.0.45).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from policyfactory.core.errors import TraceFormatError, UsageError
from policyfactory.core.options import Int64Array
from policyfactory.core.text import DAY, counted
from policyfactory.workload.accounting.record import array_size
from policyfactory.workload.accounting.sacct import MB, gres_gpus
from policyfactory.workload.accounting.sacct_json import JsonText, jobs_in
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.accounting.times import Clock, duration, shown
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import COLUMNS, Attributes, Requests, Workload

_YEAR = 365 * DAY  # the limit of a job without any
_MINUTE = 60
_COLUMNS = (
    "JobID", "ArrayJobID", "ArrayTaskID", "UserName", "Account", "Partition", "QOS", "State", "Reason", "PriorityLong",
    "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "TimeLimit", "TimeUsed", "NumNodes", "NumCPUs",
    "tres-alloc", "Nice", "Dependency", "NodeList", "OverSubscribe", "Reservation",
)  # fmt: skip
SQUEUE = f"squeue -a -O '{','.join(f'{name}:|' for name in _COLUMNS)}'"
_CURE = "print it with squeue --json or scontrol -o show job (docs/site.md)"
_MOST_JOBS = 200_000
_MOST_TASKS = 4_000_001  # MaxArraySize
_MOST_TEXT = 1 << 29  # bytes that the texts of all jobs take, about
_TEXT = 50  # bytes of a text beside its characters
_LARGEST = 1 << 40  # of any quantity or time: beyond all machines and calendars
_LONGEST = 1 << 20  # characters of a list of nodes
_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "STAGE_OUT", "SIGNALING", "RESIZING"}
_WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_NONE = {"", "(null)", "N/A", "n/a", "None", "Unknown", "*"}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)", re.ASCII)
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_NODES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z_/:]{1,30})=")

State = Literal["running", "waiting"]


@dataclasses.dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that runs or waits, as Slurm describes it; times are Unix seconds.

    Parameters
    ----------
    name : str
        Its number as squeue writes it: ``17``, ``17_3``, ``17_[1-9%2]``.
    number : int
        Its number; that of an array's first record where tasks wait.
    state : {"running", "waiting"}
        Jobs that are being cleaned up or are suspended are running: they have their nodes.
    user, account, qos : str
        Empty where nothing is said.
    partitions : tuple of str
        Those that it asks for, or the one in which it runs.
    submit : int
    reason : str
        Why it waits, in Slurm's word.
    eligible, accrued, start : int or None
        When it could start at the earliest, since when its age counts, when it started, later by as long as it was
        suspended; None: not known.
    limit : int or None
        Seconds; None: no limit. That of a job that is being cleaned up is over.
    nodes, most_nodes : int
        Nodes that it asks for, or has, at least and at most; 0: not said.
    cores : int
        CPUs.
    memory : float or None
        MB, of the whole job.
    gpus : int
        Of the whole job.
    resources : mapping of str to float
        TRES that it asks for, memory in MB; empty: not said.
    priority : int or None
        As squeue has it; 0: held.
    nice : int
    dependency : str
        As Slurm writes it: ``afterok:12(unfulfilled)``.
    node_list : str
        Host list of its nodes; empty while it waits.
    node_cores : tuple of int
        Its CPUs on each of them; empty: not said.
    exclusive : bool
        Whether it takes whole nodes.
    reservation : str
        Empty: none.
    array, tasks, array_limit : int
        Number of its array, 0 for none; how many tasks it stands for; how many of them may run at once, 0: all.
    suspended : int or None
        Since when it is suspended, which is taken to end when the queue is printed.
    het : int
        Number of the heterogeneous job of which it is a part; 0: of none.
    only : str
        What else of a node it asks for, in words: ``nodes n1``, ``features gpu``; empty: nothing.
    """

    name: str
    number: int
    state: State
    user: str
    account: str
    qos: str
    partitions: tuple[str, ...]
    submit: int
    reason: str = ""
    eligible: int | None = None
    accrued: int | None = None
    start: int | None = None
    limit: int | None = None
    nodes: int = 0
    most_nodes: int = 0
    cores: int = 1
    memory: float | None = None
    gpus: int = 0
    resources: Mapping[str, float] = dataclasses.field(default_factory=dict)
    priority: int | None = None
    nice: int = 0
    dependency: str = ""
    node_list: str = ""
    node_cores: tuple[int, ...] = ()
    exclusive: bool = False
    reservation: str = ""
    array: int = 0
    tasks: int = 1
    array_limit: int = 0
    suspended: int | None = None
    het: int = 0
    only: str = ""

    @property
    def held(self) -> bool:
        """Whether it waits until its user or an administrator releases it."""
        return self.state == "waiting" and (self.priority == 0 or self.reason.startswith("JobHeld"))


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """The jobs of a cluster at one instant.

    Parameters
    ----------
    source : str
        The file.
    taken : int
        When (Unix seconds).
    jobs : tuple of QueuedJob
        In the order of the file.
    cluster, version : str
        As the file names them; empty where it does not.
    assumed : tuple of str
        What was taken without the file's saying so, and what was left out, in sentences.
    """

    source: str
    taken: int
    jobs: tuple[QueuedJob, ...]
    cluster: str = ""
    version: str = ""
    assumed: tuple[str, ...] = ()

    def of(self, state: State) -> tuple[QueuedJob, ...]:
        """Return the jobs that run, or those that wait."""
        return tuple(job for job in self.jobs if job.state == state)

    def frame(self) -> pd.DataFrame:
        """Return the jobs as a table, a row each."""
        names = [field.name for field in dataclasses.fields(QueuedJob)]
        return pd.DataFrame([dataclasses.asdict(job) for job in self.jobs], columns=names).convert_dtypes()


def read_snapshot(path: Path | str, clock: Clock | None = None, taken: int | None = None) -> Snapshot:
    """Read what squeue or scontrol printed of a queue.

    Parameters
    ----------
    path : Path or str
        The file, packed with gzip or not; ``-`` is stdin.
    clock : Clock, optional
        Reads times that are no Unix seconds; UTC if not given.
    taken : int, optional
        When it was printed (Unix seconds); if not given, it is found from the running jobs and what else the file says.

    Raises
    ------
    TraceFormatError
        If it is none of these forms, or a job in it cannot be read (names its place).
    InputError
        If it cannot be read.
    """
    source, clock = Source(path), clock or Clock()
    others: dict[str, Any] = {"meta": None, "last_update": None}
    jobs, over, latest, written = [], 0, 0, 0
    found, assumed = _reader(source, clock, others)
    for job, seen in found:
        latest = max(latest, seen)
        if job is None:
            over += 1
        else:
            jobs.append(job)
            written += _size(job)
        if len(jobs) + over > _MOST_JOBS:
            raise TraceFormatError(f"{source.name}: more than {_MOST_JOBS:,} jobs; print fewer (squeue --partition)")
        if written > _MOST_TEXT:
            raise TraceFormatError(
                f"{source.name}: the texts of its first {counted(len(jobs), 'job')} take more than {_MOST_TEXT:,} "
                "bytes; print fewer jobs (squeue --partition)"
            )
    # Since 26.05 NO stands beside all jobs that share no core.
    if others.get("alone"):
        jobs = [dataclasses.replace(job, exclusive=False) for job in jobs]
    updated = _number(others["last_update"]) or 0
    updated = updated if updated <= _LARGEST else 0
    if taken is not None and updated and abs(taken - updated) > _MINUTE:
        assumed.append(f"the file says that it was printed at {shown(updated, clock.zone)}, and --taken another time")
    if taken is None:
        taken = max(updated, latest)
        runs = any(job.state == "running" for job in jobs)
        if others["last_update"] is None and (source.head.lstrip().startswith("{") or not runs):
            assumed.append("the queue is of the last time that is said in it (another one: --taken)")
    # Limits count what jobs have run, without the time in which they were suspended.
    jobs = [
        job
        if job.start is None or job.suspended is None
        else dataclasses.replace(job, start=job.start + max(taken - job.suspended, 0))
        for job in jobs
    ]
    if stopped := sum(job.suspended is not None for job in jobs):
        assumed.append(f"{counted(stopped, 'suspended job')} taken to go on at once, on the nodes that they have")
    if jobs and not any(job.limit for job in jobs):
        usual = "that of its partition, or without a site a year"
        assumed.append(f"no job says its limit (squeue: TIME_LIMIT); each is taken to have {usual}")
    if over:
        assumed.append(f"{counted(over, 'job')} that ended {'is' if over == 1 else 'are'} left out")
    meta = _table(others["meta"])
    slurm = _table(meta.get("slurm") or meta.get("Slurm"))
    cluster, version = _text(slurm.get("cluster")), _text(slurm.get("release"))
    return Snapshot(printable(source.name, 200), taken, tuple(jobs), cluster, version, tuple(assumed))


def _reader(
    source: Source, clock: Clock, others: dict[str, Any]
) -> tuple[Iterator[tuple[QueuedJob | None, int]], list[str]]:
    """Return what reads the jobs of a file, by how it begins, and in sentences what it assumes."""
    head, name = source.head.lstrip(), source.name
    first = head.split("\n", 1)[0]
    if head.startswith("{"):
        listed = enumerate(jobs_in(JsonText(source.chunks(), name, "squeue --json"), others), 1)
        return (_of_json(job, f"{name}: job {position} of the list", clock) for position, job in listed), []
    if head.startswith("JobId="):
        return (_of_fields(fields, where, clock) for fields, where in _records(source)), []
    if {"STATE", "JOBID"} <= (columns := {cell.strip() for cell in first.split("|")}):
        lacking = {"TRES_ALLOC", "ACCRUE_TIME"} - columns
        remark = (
            "the lines do not say what memory and GPUs jobs ask for, or since when their age counts: -O, or --json, do"
        )
        rows = _rows(source, others)
        return (_of_fields(fields, where, clock) for fields, where in rows), [remark] if lacking else []
    raise TraceFormatError(
        f"{name}:1: {printable(first, 60)!r} does not begin what squeue or scontrol prints of a queue; {_CURE}"
    )


def _size(job: QueuedJob) -> int:
    """Return about how many bytes the texts and lists of a job take."""
    names = (job.name, job.user, job.account, job.qos, job.reservation, *job.partitions, *job.resources)
    texts = (*names, job.reason, job.dependency, job.node_list, job.only)
    return sum(len(text) + _TEXT for text in texts) + _TEXT * len(job.node_cores)


# One job --------------------------------------------------------------------------------------------------------------


def _number(value: Any) -> int | None:
    """Return a whole number, plain, wrapped or in text; None where there is none."""
    text = value if isinstance(value, str) else _plain(value)
    return int(text) if re.fullmatch(r"-?\d{1,15}", text, re.ASCII) else None


def _text(value: Any, most: int = 1000) -> str:
    text = value if isinstance(value, str) else ""
    return "" if text in _NONE else printable(text, most)


def _tres(text: str) -> dict[str, float]:
    """Return trackable resources, memory in MB, as ``cpu=4,mem=1.5G,node=2,gres/gpu=1`` has them."""
    found: dict[str, float] = {}
    for part in text.split(",")[:100]:
        name, _, value = part.partition("=")
        if match := _SIZE.fullmatch(value):
            scale = MB[match[2]] if name == "mem" else MB[match[2]] * (1024**2 if match[2] else 1)
            amount = float(match[1]) * scale
            if amount <= _LARGEST:
                found[name.lower()] = amount
    return found


def _gpus(tres: Mapping[str, float], *texts: tuple[str, int]) -> int:
    """Return the GPUs of a job: by its TRES, or by what it asks for of each of so many nodes."""
    if "gres/gpu" in tres:
        return int(tres["gres/gpu"])
    typed = sum(count for name, count in tres.items() if name.startswith("gres/gpu:"))
    each = ((gres_gpus(text[:500]) or 0) * many for text, many in texts)
    return min(int(typed) or sum(each), _LARGEST)


def _state_of(words: list[str]) -> State | None:
    """Return whether a job runs or waits; None if it has ended."""
    if any(word in _RUNNING for word in words):
        return "running"
    return "waiting" if any(word in _WAITING for word in words) else None


def _array(tasks: str, parent: int, number: int) -> tuple[str, int, int]:
    """Return the name of a job, how many tasks it stands for, and how many of these may run at once."""
    if not parent or not tasks:
        return str(number), 1, 0
    plain, _, limit = tasks.strip("[]").partition("%")
    most = int(limit) if _COUNT.fullmatch(limit) else 0
    if _COUNT.fullmatch(plain):
        return f"{parent}_{plain}", 1, most
    # Slurm cuts a long list off: what stands before that is counted.
    count = sum(map(array_size, plain.split(",")))
    return f"{parent}_[{printable(plain, 30)}{f'%{limit[:8]}' if limit else ''}]", min(max(count, 1), _MOST_TASKS), most


# ``squeue --json`` ----------------------------------------------------------------------------------------------------

# What scontrol calls it, by the keys of a job.
_KEYS = {
    "job_id": "JobId", "user_name": "UserId", "account": "Account", "qos": "QOS", "partition": "Partition",
    "state_reason": "Reason", "priority": "Priority", "nice": "Nice", "submit_time": "SubmitTime",
    "eligible_time": "EligibleTime", "accrue_time": "AccrueTime", "start_time": "StartTime",
    "last_sched_evaluation": "LastSchedEval", "time_limit": "TimeLimit", "cpus": "NumCPUs", "tres_req_str": "ReqTRES",
    "tres_alloc_str": "AllocTRES", "memory_per_node": "MinMemoryNode", "memory_per_cpu": "MinMemoryCPU",
    "tres_per_node": "TresPerNode", "tres_per_job": "TresPerJob", "tres_per_task": "TresPerTask", "tasks": "NumTasks",
    "dependency": "Dependency", "nodes": "NodeList",
    "resv_name": "Reservation", "array_job_id": "ArrayJobId", "array_max_tasks": "ArrayTaskThrottle",
    "het_job_id": "HetJobId", "suspend_time": "SuspendTime", "pre_sus_time": "SecsPreSuspend",
    "required_nodes": "ReqNodeList", "excluded_nodes": "ExcNodeList", "features": "Features", "licenses": "Licenses",
}  # fmt: skip


def _of_json(job: Any, where: str, clock: Clock) -> tuple[QueuedJob | None, int]:
    """Return a job, None if it has ended, and the latest time that is said of it."""
    job = _table(job)
    if "time" in job and "submit_time" not in job:
        raise TraceFormatError(f"{where}: is of sacct --json, which has jobs that ended; {_CURE}")
    fields = {name: _plain(job.get(key)) for key, name in _KEYS.items()}
    fields["JobState"] = _plain(job.get("job_state"))
    fields["NumNodes"] = "-".join(_plain(job.get(key)) or "0" for key in ("node_count", "max_nodes"))
    fields["ArrayTaskId"] = _plain(job.get("array_task_string")) or _plain(job.get("array_task_id"))
    # 26.05 says it only where it was asked for on the command line.
    alone = "none" in _plain(job.get("shared")).split(",") or "--exclusive" in _plain(job.get("submit_line")).split()
    fields["OverSubscribe"] = "NO" if alone else ""
    parts = _table(_table(job.get("job_resources")).get("nodes")).get("allocation")
    counts = [
        _number(_table(_table(part).get("cpus")).get("count")) for part in (parts if isinstance(parts, list) else ())
    ]
    cores = tuple(count for count in counts if count is not None and 0 <= count <= _LARGEST)
    return _of_fields(fields, where, clock, cores)


def _plain(value: Any) -> str:
    """Return a value as scontrol would write it: a wrapped number, a list of words; empty where there is none."""
    if isinstance(value, dict):
        value = None if value.get("infinite") or not value.get("set", True) else value.get("number")
    if isinstance(value, list):
        value = ",".join(word for word in value if isinstance(word, str))
    return str(value) if isinstance(value, str | int) else ""


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# Lines: ``scontrol show job`` and ``squeue -o`` -----------------------------------------------------------------------

# What a job may ask for that no rule of ours knows, by scontrol's words.
_ONLY = {"ReqNodeList": "nodes", "ExcNodeList": "other nodes than", "Features": "features", "Licenses": "licenses"}
# What scontrol calls it, by the headings of squeue.
_HEADINGS = {
    "USER": "UserId", "ACCOUNT": "Account", "PARTITION": "Partition", "QOS": "QOS", "STATE": "JobState",
    "REASON": "Reason", "PRIORITY": "Priority", "SUBMIT_TIME": "SubmitTime", "START_TIME": "StartTime",
    "TIME_LIMIT": "TimeLimit", "TIME": "RunTime", "NODES": "NumNodes", "CPUS": "NumCPUs", "TRES_ALLOC": "ReqTRES",
    "NICE": "Nice", "DEPENDENCY": "Dependency", "NODELIST": "NodeList", "OVER_SUBSCRIBE": "OverSubscribe",
    "RESERVATION": "Reservation", "TRES_PER_NODE": "TresPerNode", "ARRAY_JOB_ID": "ArrayJobId",
    "ARRAY_TASK_ID": "ArrayTaskId", "ELIGIBLE_TIME": "EligibleTime", "ACCRUE_TIME": "AccrueTime",
    "REQ_NODES": "ReqNodeList", "EXC_NODES": "ExcNodeList", "FEATURES": "Features", "LICENSES": "Licenses",
}  # fmt: skip


def _records(source: Source) -> Iterator[tuple[dict[str, str], str]]:
    """Give the fields of each record of scontrol; those of several lines end where the next begins."""
    lines, first = "", 1
    for number, line in enumerate(itertools.chain(source.lines(), ["JobId="]), 1):
        if line.startswith("JobId="):
            if lines:
                yield _fields(lines), f"{source.name}:{first}"
            lines, first = "", number
        if len(lines) > 1 << 20:
            raise TraceFormatError(f"{source.name}:{first}: a job of more than {1 << 20:,} characters; {_CURE}")
        lines += f"{line}\n" if line.strip() else ""


def _fields(text: str) -> dict[str, str]:
    """Return ``Key=value`` of a record; of a key that comes again (in a job's name or command) the first."""
    found: dict[str, str] = {}
    parts = list(_FIELD.finditer(text))
    ends = [*(part.start() for part in parts[1:]), len(text)]
    for part, end in zip(parts, ends, strict=True):
        found.setdefault(part[1], text[part.end() : end].strip())
    return found


def _rows(source: Source, others: dict[str, Any]) -> Iterator[tuple[dict[str, str], str]]:
    """Give the fields of each line of squeue by scontrol's names.

    Afterwards ``others["alone"]`` tells whether OverSubscribe is NO in all of them.
    """
    lines = ((number, line) for number, line in enumerate(source.lines(), 1) if line.strip())
    columns = [name.strip() for name in next(lines)[1].split("|")]
    for number, line in lines:
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != len(columns):
            raise TraceFormatError(
                f"{source.name}:{number}: {printable(line, 60)!r} has {len(cells)} cells, and there are {len(columns)} "
                f"columns (is there a | in the name of a job?); {_CURE}"
            )
        # Of two columns of a name the last has whole numbers (priority).
        pairs = dict(zip(columns, cells, strict=True))
        fields = {_HEADINGS[name]: value for name, value in pairs.items() if name in _HEADINGS}
        fields["JobId"] = pairs["JOBID"].split("_")[0].split("+")[0]
        others["alone"] = others.get("alone", True) and fields.get("OverSubscribe") == "NO"
        yield fields, f"{source.name}:{number}"


def _of_fields(
    fields: Mapping[str, str], where: str, clock: Clock, node_cores: tuple[int, ...] = ()
) -> tuple[QueuedJob | None, int]:
    """Return a job, None if it has ended, and the latest time that is said of it."""
    number = _number(fields.get("JobId"))
    if number is None or not fields.get("JobState"):
        raise TraceFormatError(f"{where}: a job without {'JobId' if number is None else 'JobState'}; {_CURE}")

    def time(name: str) -> int | None:
        text = fields.get(name, "")
        try:
            times = clock.read(text)
            if times and times[0] > _LARGEST:
                raise ValueError(text)
        except ValueError:
            raise TraceFormatError(
                f"{where}: {name}={printable(text, 40)!r} of job {number} is no time; set SLURM_TIME_FORMAT=%s and "
                f"{_CURE}"
            ) from None
        return times[0] if times else None

    def text(name: str) -> str:
        return _text(fields.get(name, ""))

    state, start, submit = _state_of(fields["JobState"].split(",")), time("StartTime"), time("SubmitTime")
    if state is None:
        return None, 0
    if submit is None:
        raise TraceFormatError(f"{where}: a job without SubmitTime; {_CURE}")
    seen = (start or submit) + (duration(text("RunTime")) or 0) if state == "running" else submit
    seen = max(seen, time("LastSchedEval") or 0)
    # When it was suspended or went on, and how long it had run until then.
    turn, ran = time("SuspendTime") if state == "running" else None, _number(fields.get("SecsPreSuspend")) or 0
    if start is not None and turn and 0 <= ran <= turn - start:
        start, seen = turn - ran, max(seen, turn)
    is_suspended = bool(turn) and "SUSPENDED" in fields["JobState"]
    only = (f"{what} {text(name)}" for name, what in _ONLY.items() if state == "waiting" and text(name))
    tres = _tres((text("AllocTRES") if state == "running" else "") or text("ReqTRES") or text("TRES"))
    match = _NODES.fullmatch(text("NumNodes"))
    nodes, most = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    nodes = int(tres.get("node", 0)) or nodes
    cores = max(min(_number(text("NumCPUs").split("-")[0]) or 0, _LARGEST), int(tres.get("cpu", 0)), 1)
    parent = _number(fields.get("ArrayJobId")) or 0
    name, count, limit = _array(text("ArrayTaskId"), parent, number)
    # In place of the word the description may stand: Nodes required for job are DOWN, DRAINED or reserved for ...
    given_reason = text("Reason").replace("_", " ")
    reason = (
        "Resources"
        if given_reason.startswith("Nodes required")
        else text("Reason").strip("()").split(" ")[0].strip(",")
    )
    eligible = time("EligibleTime")
    if eligible is None and state == "waiting" and reason == "BeginTime":
        eligible = start
    shared = text("OverSubscribe")
    # Since 26.05 Exclusive says so, and OverSubscribe=NO of every job that shares no core.
    exclusive = text("Exclusive").upper() == "NODE" or (shared in {"NO", "EXCLUSIVE"} and "Exclusive" not in fields)
    return QueuedJob(
        name=name,
        number=number,
        state=state,
        user=text("UserId").split("(")[0],
        account=text("Account"),
        qos=text("QOS"),
        partitions=tuple(filter(None, text("Partition").split(","))),
        submit=submit,
        reason=reason,
        eligible=eligible,
        accrued=time("AccrueTime") if "AccrueTime" in fields else eligible or submit,
        start=start if state == "running" else None,
        limit=1 if "COMPLETING" in fields["JobState"] else duration(text("TimeLimit")) or None,
        nodes=nodes,
        most_nodes=most,
        cores=cores,
        memory=tres["mem"] if "mem" in tres else _memory_of(fields, nodes, cores),
        gpus=_gpus(
            tres,
            (text("TresPerNode"), max(nodes, 1)),
            (text("TresPerJob"), 1),
            (text("TresPerTask"), min(max(_number(text("NumTasks")) or 1, 1), _MOST_TASKS)),
        ),
        resources=tres,
        priority=_number(fields.get("Priority")),
        nice=_number(fields.get("Nice")) or 0,
        dependency=text("Dependency"),
        node_list=_text(fields.get("NodeList"), _LONGEST) if state == "running" else "",
        node_cores=node_cores,
        exclusive=exclusive,
        reservation=text("Reservation"),
        array=parent if "ArrayTaskId" in fields and text("ArrayTaskId") else 0,
        tasks=count,
        array_limit=limit or min(max(_number(fields.get("ArrayTaskThrottle")) or 0, 0), _MOST_TASKS),
        suspended=turn if is_suspended else None,
        het=min(max(_number(fields.get("HetJobId")) or 0, 0), _LARGEST),
        only=", ".join(only),
    ), seen


def _memory_of(fields: Mapping[str, str], nodes: int, cores: int) -> float | None:
    """Return the MB of a job, which asks for them by core or by node."""
    for name, many in (("MinMemoryCPU", cores), ("MinMemoryNode", max(nodes, 1))):
        if match := _SIZE.fullmatch(fields.get(name, "")):
            amount = float(match[1]) * MB[match[2]] * many
            return amount if 0 < amount <= _LARGEST else None
    return None


# Jobs of a log as squeue would have shown them, and jobs of squeue in a log ------------------------------------------


def queued_job(
    log: Workload,
    row: int,
    partitions: Sequence[str],
    start: int | None = None,
    *,
    present: Collection[int] = (),
    shift: int = 0,
) -> QueuedJob:
    """Return a job of a log as squeue would have shown it.

    Parameters
    ----------
    log : Workload
        On a clock of seconds.
    row : int
    partitions : sequence of str
        Those of the cluster; a job that names none is of the first.
    start : int, optional
        Second of the clock at which it was started; without it it waits.
    present : collection of int
        Numbers of the jobs that run or wait: for the end of one of them it may wait.
    shift : int
        By how many seconds it is submitted later than the log says.
    """
    zero, asked, user = log.unix_start or 0, log.requests, int(log.user[row])

    def of(name: str) -> int:
        return -1 if asked is None else int(getattr(asked, name)[row])

    def name(column: str, key: str) -> str:
        number = of(column)
        return asked.names[key][number] if asked is not None and number >= 0 and key in asked.names else ""

    nodes = max(of("nodes"), 0)
    # Of several partitions, it is known in which it ran once it has started.
    several = name("partitions", "partitions") if start is None else ""
    return QueuedJob(
        name=str(log.job_id[row]),
        number=int(log.job_id[row]),
        state="waiting" if start is None else "running",
        user=name("user_name", "user") or (f"user {user}" if user >= 0 else ""),
        account=name("account", "account"),
        qos=name("qos", "qos"),
        partitions=tuple((several or name("partition", "partition") or partitions[0]).split(",")),
        submit=zero + int(log.submit[row]) + shift,
        eligible=None if of("eligible") < 0 else zero + of("eligible") + shift,
        start=None if start is None else zero + start,
        limit=int(log.requested_time[row]),
        nodes=nodes,
        most_nodes=nodes,
        cores=int(log.processors[row]),
        memory=None if of("memory") < 0 else float(of("memory")),
        gpus=max(of("gpus"), 0),
        exclusive=of("exclusive") == 1,
        dependency=f"afterany:{of('after')}" if of("after") in present else "",
        array=max(of("array"), 0),
        array_limit=max(of("array_limit"), 0),
    )


def queue_of(
    log: Workload, start: Int64Array, rows: tuple[Int64Array, Int64Array], now: int, partitions: Sequence[str]
) -> tuple[Snapshot, Int64Array]:
    """Return the queue at a second of a log's clock, and the row of each of its jobs, the running ones first.

    A job that is not eligible yet is held in it: whether its begin time would have been told, or it waited for another
    job or its user, a log does not say. The nodes of running jobs are not in a log.

    Parameters
    ----------
    log : Workload
        On a clock of seconds, its jobs as the site takes them.
    start : int64 array (n,), s
        When its jobs started.
    rows : tuple of two int64 arrays
        The running and the waiting jobs.
    now : int
    partitions : sequence of str
        Those of the site, the default one first.
    """
    running, waiting = rows
    both = np.concatenate([running, waiting])
    present, taken = {*log.job_id[both].tolist()}, (log.unix_start or 0) + now
    jobs = [queued_job(log, row, partitions, int(start[row]), present=present) for row in running.tolist()]
    for row in waiting.tolist():
        job = queued_job(log, row, partitions, present=present)
        if (job.eligible or 0) > taken:
            job = dataclasses.replace(job, eligible=None, priority=None if job.dependency else 0)
        jobs.append(job)
    return Snapshot(log.name, taken, tuple(jobs)), both


def with_queue(log: Workload, jobs: Sequence[QueuedJob], user: Int64Array, now: int) -> tuple[Workload, Int64Array]:
    """Return the jobs of a log and of a queue in the order of submission, and which of both each of them is.

    Parameters
    ----------
    log : Workload
        On a clock of seconds.
    jobs : sequence of QueuedJob
        A job without a limit has one of a year. The log's numbers of their partitions and QOS are found by names, those
        of groups by users; what else they ask for is not known.
    user : int64 array (k,)
        The log's numbers of their users.
    now : int
        Second of the log's clock at which the queue was printed.

    Returns
    -------
    Workload
    int64 array (n + k,)
        The row in the log; from n on the place in the queue.
    """
    count = len(jobs)
    unknown = np.full(count, -1)

    def column(name: str, values: Sequence[int] | Int64Array) -> Int64Array:
        return np.concatenate([getattr(log, name), np.asarray(values, dtype=np.int64)])[order]

    submit = np.array([min(max(job.submit - (log.unix_start or 0), 0), now) for job in jobs], dtype=np.int64)
    order = np.argsort(np.concatenate([log.submit, submit]), kind="stable")
    limit = [min(job.limit or _YEAR, _YEAR) for job in jobs]
    # What is larger than the machine cannot start, and is left out later.
    cores = [min(max(job.cores, 1), log.machine) for job in jobs]
    asked, attributes = log.requests, log.attributes
    if asked is not None:
        joined: dict[str, Any] = {name: np.concatenate([getattr(asked, name), unknown])[order] for name in COLUMNS}
        asked = dataclasses.replace(asked, **joined)
    if attributes is not None:
        found = {field.name: unknown for field in dataclasses.fields(Attributes)} | _attributes_of(log, jobs, user)
        attributes = Attributes(
            **{name: np.concatenate([getattr(attributes, name), values])[order] for name, values in found.items()}
        )
    last = int(log.job_id.max(initial=0))
    workload = Workload(
        *(log.name, log.machine, column("job_id", last + 1 + np.arange(count))),
        *(column("submit", submit), column("run_time", limit), column("requested_time", limit)),
        *(column("processors", cores), column("user", user), column("start", unknown)),
        unix_start=log.unix_start,
        time_zone=log.time_zone,
        cleaning=log.cleaning,
        attributes=attributes,
        requests=asked,
    )
    return workload, order


def _attributes_of(log: Workload, jobs: Sequence[QueuedJob], user: Int64Array) -> dict[str, Int64Array]:
    """Return the log's numbers of what a queue says of its jobs: as of the last job that had the same name."""
    if log.attributes is None:
        return {}
    asked, attributes = log.requests, log.attributes
    named = {
        "queue": ("partition", [next(iter(job.partitions), "") for job in jobs]),
        "partition": ("qos", [job.qos for job in jobs]),
    }
    found = {"group": _last(log.user, attributes.group, user.tolist())}
    for column, (key, names) in named.items():
        if asked is not None and key in asked.names:
            codes = {name: code for code, name in enumerate(asked.names[key])}
            keys = _first_partition(asked) if key == "partition" else asked.qos
            found[column] = _last(keys, getattr(attributes, column), [codes.get(name, -1) for name in names])
    return found


def _last(keys: Int64Array, values: Int64Array, wanted: Sequence[int]) -> Int64Array:
    last = dict(zip(keys.tolist(), values.tolist(), strict=True))
    return np.array([last.get(key, -1) if key >= 0 else -1 for key in wanted], dtype=np.int64)


def without_untold(log: Workload) -> Workload:
    """Return a log without the attributes that a queue does not tell in its words, so that nothing is learned of them.

    That are executables and the memory of a processor; partitions and QOS, if the log has no names for them. A job that
    may start in several partitions is of the first of them, not of that in which it ran.
    """
    if log.attributes is None:
        return log
    named = {} if log.requests is None else log.requests.names
    untold = ["executable", "requested_memory"]
    untold += [column for column, key in (("queue", "partition"), ("partition", "qos")) if key not in named]
    attributes = log.attributes.without(untold)
    if log.requests is not None and "queue" not in untold:
        queue = _last(log.requests.partition, attributes.queue, _first_partition(log.requests).tolist())
        listed = log.requests.partitions >= 0
        attributes = dataclasses.replace(attributes, queue=np.where(listed, queue, attributes.queue))
    return dataclasses.replace(log, attributes=attributes)


def _first_partition(asked: Requests) -> Int64Array:
    """Return the place in ``names["partition"]`` of the first partition that each job asks for; -1 for none."""
    codes = {name: code for code, name in enumerate(asked.names.get("partition", ()))}
    firsts = [codes.get(names.split(",")[0], -1) for names in asked.names.get("partitions", ())]
    found: Int64Array = np.array([*firsts, -1], dtype=np.int64)[asked.partitions]
    return np.where(asked.partitions >= 0, found, asked.partition)


def usual_account(snapshot: Snapshot, log: Workload, user: str) -> str:
    """Return the account of a user's last job in a queue, or else in a log; empty if neither says one."""
    mine = [job for job in snapshot.jobs if job.user == user and job.account]
    if mine:
        return max(mine, key=lambda job: job.submit).account
    asked, names = log.requests, {} if log.requests is None else log.requests.names
    if asked is None or user not in names.get("user", ()) or "account" not in names:
        return ""
    rows = np.flatnonzero((asked.user_name == names["user"].index(user)) & (asked.account >= 0))
    return names["account"][int(asked.account[rows[-1]])] if len(rows) else ""


def check_processors(snapshot: Snapshot, log: Workload) -> None:
    """Check that a queue can be of a log's machine.

    Raises
    ------
    UsageError
        If its running jobs have more processors, or no job asks for as few.
    """
    large = next((job for job in snapshot.jobs if job.cores > log.machine), None)
    if large is not None and (large.state == "running" or all(job.cores > log.machine for job in snapshot.jobs)):
        raise UsageError(
            f"{snapshot.source}: job {large.name} asks for {large.cores:,} processors, and {log.name} has "
            f"{log.machine:,}: is the queue of another cluster? give --processors, or the cluster's --site"
        )
    held = sum(job.cores for job in snapshot.of("running"))
    if held > log.machine:
        raise UsageError(
            f"{snapshot.source}: its running jobs have {held:,} processors, and {log.name} has {log.machine:,}: does "
            "squeue count threads, or is it another cluster? give --processors, or the cluster's --site"
        )


def users_in(log: Workload, jobs: Sequence[QueuedJob]) -> tuple[Int64Array, int]:
    """Return the log's numbers of the users of some jobs, and how many users it does not know.

    A user's name is what the log says, or, where that only has numbers, such a number.
    """
    numbers: dict[str, int] = {}
    names = {} if log.requests is None else log.requests.names
    if log.requests is not None and "user" in names:
        named = log.requests.user_name
        for index, name in enumerate(names["user"]):
            rows = np.flatnonzero((named == index) & (log.user >= 0))
            if len(rows):
                numbers[name] = int(log.user[rows[-1]])
    known = {*np.unique(log.user).tolist()}
    new, strange = max(known, default=0) + 1, 0
    found = []
    for job in jobs:
        number = job.user.removeprefix("user ")
        if job.user not in numbers:
            if number.isdecimal() and number.isascii() and len(number) < 10 and int(number) in known:
                numbers[job.user] = int(number)
            else:
                numbers[job.user] = new + strange if job.user else -1
                strange += bool(job.user)
        found.append(numbers[job.user])
    return np.array(found, dtype=np.int64), strange
