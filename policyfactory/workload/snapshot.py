"""The queue of a Slurm cluster at one instant: what squeue or scontrol print of its running and waiting jobs.

Four forms are read and told apart by how they begin: ``squeue --json``, ``scontrol show job`` with and without ``-o``,
and the lines of ``squeue -o`` whose columns have the names that Slurm gives them (`SQUEUE_FORMAT`, ``%all``). Written
for what 22.05.8, 24.11.5 and 26.05.5 print (parsers 0.0.38 to 0.0.45).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from policyfactory.core.errors import TraceFormatError
from policyfactory.core.text import counted
from policyfactory.workload.accounting.sacct_json import JsonText, jobs_in
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.accounting.times import Clock, duration
from policyfactory.workload.header import printable

SQUEUE_FORMAT = "%i|%F|%K|%u|%a|%P|%q|%T|%r|%Q|%V|%S|%l|%M|%D|%C|%m|%y|%E|%N|%h|%v|%b"
_CURE = f"print it with: squeue --json, scontrol -o show job, or squeue -a -o '{SQUEUE_FORMAT}'"
_MOST_JOBS = 200_000
_MOST_TASKS = 4_000_001  # MaxArraySize
_LARGEST = 2**53
_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "STAGE_OUT", "SIGNALING", "RESIZING"}
_WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_NONE = {"", "(null)", "N/A", "n/a", "None", "Unknown", "*"}
_MB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)[BNCnc]?", re.ASCII)
_GPU = re.compile(r"(?:gres[:/])?gpu(?::[^,:=(]+)?[:=](\d{1,6})", re.ASCII)
_NODES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z_/:]{1,30})=")
_TASKS = re.compile(r"(\d{1,8})(?:-(\d{1,8}))?(?::(\d{1,8}))?", re.ASCII)

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
        When it could start at the earliest, since when its age counts, when it started; None: not known.
    limit : int or None
        Seconds; None: no limit.
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
        return pd.DataFrame([dataclasses.asdict(job) for job in self.jobs], columns=_COLUMNS)


_COLUMNS = [field.name for field in dataclasses.fields(QueuedJob)]


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
    head = source.head.lstrip()
    others: dict[str, Any] = {}
    if head.startswith("{"):
        text = JsonText(source.chunks(), source.name, "squeue --json")
        found = (
            _of_json(job, f"{source.name}: job {at} of the list") for at, job in enumerate(jobs_in(text, others), 1)
        )
    elif head.startswith("JobId="):
        found = (_of_fields(fields, place, clock) for fields, place in _records(source))
    elif "|" in (first := head.split("\n", 1)[0]) and "STATE" in first.upper() and "JOBID" in first.upper():
        found = (_of_fields(fields, place, clock) for fields, place in _rows(source))
    else:
        raise TraceFormatError(
            f"{source.name}:1: {printable(head.split(chr(10), 1)[0], 60)!r} does not begin what squeue or scontrol "
            f"prints of a queue; {_CURE}"
        )
    jobs, over, latest = [], 0, 0
    for job, seen in found:
        latest = max(latest, seen)
        over += job is None
        jobs += [] if job is None else [job]
        if len(jobs) + over > _MOST_JOBS:
            raise TraceFormatError(f"{source.name}: more than {_MOST_JOBS:,} jobs; {_CURE} for fewer (--partition)")
    return _snapshot(source.name, jobs, over, _moment(path, latest, others) if taken is None else (taken, ""), others)


def _snapshot(name: str, jobs: list[QueuedJob], over: int, moment: tuple[int, str], others: dict[str, Any]) -> Snapshot:
    meta = others.get("meta")
    parts: dict[str, Any] = meta if isinstance(meta, dict) else {}
    found = (parts[key] for key in ("slurm", "Slurm") if isinstance(parts.get(key), dict))
    slurm: dict[str, Any] = next(found, {})
    assumed = [moment[1]] if moment[1] else []
    if over:
        assumed.append(
            f"{counted(over, 'job')} of {printable(name, 80)} that ended {'is' if over == 1 else 'are'} left out"
        )
    return Snapshot(
        printable(name, 200),
        moment[0],
        tuple(jobs),
        _text(slurm.get("cluster")),
        _text(slurm.get("release")),
        tuple(assumed),
    )


def _moment(path: Path | str, latest: int, others: dict[str, Any]) -> tuple[int, str]:
    """Return when a snapshot was taken, and in a sentence if that was assumed."""
    said = _number(others.get("last_update"))
    if said:
        return max(said, latest), ""
    if not others:
        return latest, ""
    return latest, f"taken at the last time that {printable(str(path), 80)} has (say it with --taken)"


# One job --------------------------------------------------------------------------------------------------------------


def _number(value: Any) -> int | None:
    """Return a whole number, plain, wrapped or in text; None where there is none."""
    if isinstance(value, dict):
        value = None if value.get("infinite") or not value.get("set", True) else value.get("number")
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"-?\d{1,18}", value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST else None


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    return "" if text in _NONE else printable(text, 1000)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _tres(text: str) -> dict[str, float]:
    """Return trackable resources, memory in MB, as ``cpu=4,mem=1.5G,node=2,gres/gpu=1`` has them."""
    found: dict[str, float] = {}
    for part in text.split(",")[:100]:
        name, _, value = part.partition("=")
        if match := _SIZE.fullmatch(value):
            scale = _MB[match[2]] if name == "mem" else _MB[match[2]] * (1024**2 if match[2] else 1)
            found[name.lower()] = float(match[1]) * scale
    return found


def _gpus(tres: Mapping[str, float], *texts: tuple[str, int]) -> int:
    """Return the GPUs of a job: by its TRES, or by what it asks for of each of so many nodes."""
    if "gres/gpu" in tres:
        return int(tres["gres/gpu"])
    typed = sum(count for name, count in tres.items() if name.startswith("gres/gpu:"))
    return int(typed) or sum(int(match[1]) * many for text, many in texts for match in _GPU.finditer(text[:500]))


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
    if plain.isdigit():
        return f"{parent}_{plain}", 1, int(limit or 0) if limit.isdigit() else 0
    count = 0
    for part in plain.split(","):
        if match := _TASKS.fullmatch(part):
            first, last = int(match[1]), int(match[2] or match[1])
            count += max((last - first) // max(int(match[3] or 1), 1) + 1, 1)
    most = int(limit) if limit.isdigit() and len(limit) < 9 else 0
    return f"{parent}_[{printable(plain, 30)}{f'%{limit[:8]}' if limit else ''}]", min(max(count, 1), _MOST_TASKS), most


# ``squeue --json`` ----------------------------------------------------------------------------------------------------


def _of_json(job: Any, place: str) -> tuple[QueuedJob | None, int]:
    """Return a job, None if it has ended, and the latest time that is said of it."""
    if not isinstance(job, dict) or "job_state" not in job or _number(job.get("job_id")) is None:
        what = "has no job_id or job_state"
        if isinstance(job, dict) and "time" in job:
            what = "is of sacct --json, which has jobs that ended"
        raise TraceFormatError(f"{place}: {what}; {_CURE}")
    given = job["job_state"]
    state = _state_of([given] if isinstance(given, str) else [_text(word) for word in given or ()])

    def time(name: str) -> int | None:
        return _number(job.get(name)) or None

    number, submit, start = _number(job["job_id"]) or 0, time("submit_time"), time("start_time")
    if submit is None:
        raise TraceFormatError(f"{place}: job {number} has no submit_time; {_CURE}")
    seen = max(time("last_sched_evaluation") or 0, submit, (start or 0) if state == "running" else 0)
    if state is None:
        return None, 0
    tres = _tres(_text(job.get("tres_alloc_str")) if state == "running" else "") or _tres(
        _text(job.get("tres_req_str"))
    )
    parent, task = _number(job.get("array_job_id")) or 0, _number(job.get("array_task_id"))
    tasks = _text(job.get("array_task_string")) or ("" if task is None else str(task))
    name, count, limit = _array(tasks, parent, number)
    nodes = int(tres.get("node", 0)) or _number(job.get("node_count")) or 0
    cores = max(_number(job.get("cpus")) or 0, int(tres.get("cpu", 0)), 1)
    memory = _number(job.get("memory_per_node")), _number(job.get("memory_per_cpu"))
    shared = job.get("shared")
    minutes = _number(job.get("time_limit"))
    return QueuedJob(
        name,
        number,
        state,
        _text(job.get("user_name")),
        _text(job.get("account")),
        _text(job.get("qos")),
        _names(_text(job.get("partition"))),
        submit,
        reason=_text(job.get("state_reason")),
        eligible=time("eligible_time"),
        accrued=time("accrue_time"),
        start=start if state == "running" else None,
        limit=minutes * 60 if minutes else None,
        nodes=nodes,
        most_nodes=_number(job.get("max_nodes")) or 0,
        cores=cores,
        memory=tres.get("mem", _memory(memory[0], memory[1], nodes, cores)),
        gpus=_gpus(tres, (_text(job.get("tres_per_node")), max(nodes, 1)), (_text(job.get("tres_per_job")), 1)),
        resources=tres,
        priority=_number(job.get("priority")),
        nice=_number(job.get("nice")) or 0,
        dependency=_text(job.get("dependency")),
        node_list=_text(job.get("nodes")) if state == "running" else "",
        node_cores=_cores_by_node(job.get("job_resources")),
        exclusive="none" in ([shared] if isinstance(shared, str) else shared or ()),
        reservation=_text(job.get("resv_name")),
        array=parent,
        tasks=count,
        array_limit=limit or _number(job.get("array_max_tasks")) or 0,
    ), seen


def _memory(node: int | None, core: int | None, nodes: int, cores: int) -> float | None:
    if node:
        return float(node * max(nodes, 1))
    return float(core * cores) if core else None


def _cores_by_node(resources: Any) -> tuple[int, ...]:
    """Return the CPUs of a running job on each of its nodes, in the order of their list; empty if that is not said."""
    nodes = resources.get("nodes") if isinstance(resources, dict) else None
    parts = nodes.get("allocation") if isinstance(nodes, dict) else None
    counts = [_number((one.get("cpus") or {}).get("count")) for one in parts or () if isinstance(one, dict)]
    return tuple(count for count in counts if count is not None) if None not in counts else ()


# Lines: ``scontrol show job`` and ``squeue -o`` -----------------------------------------------------------------------

# What scontrol calls it, by the headings of squeue.
_HEADINGS = {
    "USER": "UserId", "ACCOUNT": "Account", "PARTITION": "Partition", "QOS": "QOS", "STATE": "JobState",
    "REASON": "Reason", "PRIORITY": "Priority", "SUBMIT_TIME": "SubmitTime", "START_TIME": "StartTime",
    "TIME_LIMIT": "TimeLimit", "TIME": "RunTime", "NODES": "NumNodes", "CPUS": "NumCPUs", "MIN_MEMORY": "MinMemory",
    "NICE": "Nice", "DEPENDENCY": "Dependency", "NODELIST": "NodeList", "OVER_SUBSCRIBE": "OverSubscribe",
    "RESERVATION": "Reservation", "TRES_PER_NODE": "TresPerNode", "ARRAY_JOB_ID": "ArrayJobId",
    "ARRAY_TASK_ID": "ArrayTaskId", "ELIGIBLE_TIME": "EligibleTime", "ACCRUE_TIME": "AccrueTime",
}  # fmt: skip


def _records(source: Source) -> Iterator[tuple[dict[str, str], str]]:
    """Give the fields of each record of scontrol; those of several lines end with a blank line or at the next job."""
    lines, first = "", 1
    for number, line in enumerate(itertools.chain(source.lines(), ["JobId="]), 1):
        if line.startswith("JobId=") and lines:
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


def _rows(source: Source) -> Iterator[tuple[dict[str, str], str]]:
    """Give the fields of each line of squeue by scontrol's names."""
    lines = source.lines()
    columns = [name.strip().upper() for name in next(lines).split("|")]
    for number, line in enumerate(lines, 2):
        cells = line.split("|")
        if line.strip() and len(cells) != len(columns):
            raise TraceFormatError(
                f"{source.name}:{number}: {printable(line, 60)!r} has {len(cells)} cells, and there are {len(columns)} "
                f"columns (a name of a job with a | in it?); {_CURE}"
            )
        if line.strip():
            # Of two columns of a name the last has whole numbers (priority).
            pairs = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
            fields = {_HEADINGS[name]: value for name, value in pairs.items() if name in _HEADINGS}
            number_of = pairs["JOBID"].split("_")[0].split("+")[0]
            yield {**fields, "JobId": number_of}, f"{source.name}:{number}"


def _of_fields(fields: Mapping[str, str], place: str, clock: Clock) -> tuple[QueuedJob | None, int]:
    """Return a job, None if it has ended, and the latest time that is said of it."""
    number = _number(fields.get("JobId"))
    if number is None or "JobState" not in fields or "SubmitTime" not in fields:
        lacking = next((name for name in ("JobState", "SubmitTime") if name not in fields), "number")
        raise TraceFormatError(f"{place}: a job without {lacking}; {_CURE}")

    def time(name: str) -> int | None:
        text = fields.get(name, "")
        try:
            times = clock.read(text)
        except ValueError:
            raise TraceFormatError(
                f"{place}: {name}={printable(text, 40)!r} of job {number} is no time; set SLURM_TIME_FORMAT=%s and "
                f"{_CURE}"
            ) from None
        return times[0] if times else None

    def text(name: str) -> str:
        return _text(fields.get(name, ""))

    state, start, submit = _state_of(fields["JobState"].split(",")), time("StartTime"), time("SubmitTime")
    if state is None:
        return None, 0
    if submit is None:
        raise TraceFormatError(f"{place}: job {number} has no SubmitTime; {_CURE}")
    seen = (start or submit) + (duration(text("RunTime")) or 0) if state == "running" else submit
    tres = _tres((text("AllocTRES") if state == "running" else "") or text("ReqTRES") or text("TRES"))
    match = _NODES.fullmatch(text("NumNodes"))
    nodes, most = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    nodes = int(tres.get("node", 0)) or nodes
    cores = max(_number(text("NumCPUs").split("-")[0]) or 0, int(tres.get("cpu", 0)), 1)
    parent = _number(fields.get("ArrayJobId")) or 0
    name, count, limit = _array(text("ArrayTaskId"), parent, number)
    reason = text("Reason").split(" ")[0].strip("()")
    eligible = time("EligibleTime")
    if eligible is None and state == "waiting" and reason == "BeginTime":
        eligible = start
    shared = text("OverSubscribe")
    # Since 26.05 Exclusive says so, and OverSubscribe=NO of every job that shares no core.
    exclusive = text("Exclusive").upper() == "NODE" or (shared in {"NO", "EXCLUSIVE"} and "Exclusive" not in fields)
    return QueuedJob(
        name,
        number,
        state,
        text("UserId").split("(")[0],
        text("Account"),
        text("QOS"),
        _names(text("Partition")),
        submit,
        reason=reason,
        eligible=eligible,
        accrued=time("AccrueTime") if "AccrueTime" in fields else eligible or submit,
        start=start if state == "running" else None,
        limit=duration(text("TimeLimit")) or None,
        nodes=nodes,
        most_nodes=most,
        cores=cores,
        memory=tres["mem"] if "mem" in tres else _memory_of(fields, nodes, cores),
        gpus=_gpus(tres, (text("TresPerNode"), max(nodes, 1)), (text("TresPerJob"), 1)),
        resources=tres,
        priority=_number(fields.get("Priority")),
        nice=_number(fields.get("Nice")) or 0,
        dependency=text("Dependency"),
        node_list=text("NodeList") if state == "running" else "",
        exclusive=exclusive,
        reservation=text("Reservation"),
        array=parent if "ArrayTaskId" in fields and text("ArrayTaskId") else 0,
        tasks=count,
        array_limit=limit or _number(fields.get("ArrayTaskThrottle")) or 0,
    ), seen


def _memory_of(fields: Mapping[str, str], nodes: int, cores: int) -> float | None:
    """Return the MB of a job: of each core (``10Mc`` of squeue), or of each node."""
    for name, many in (("MinMemoryCPU", cores), ("MinMemoryNode", nodes), ("MinMemory", nodes)):
        if match := _SIZE.fullmatch(fields.get(name, "")):
            each = float(match[1]) * _MB[match[2]]
            return each * (cores if fields[name].lower().endswith("c") else max(many, 1)) or None
    return None
