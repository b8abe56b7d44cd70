"""What Slurm's accounting says, whatever form it is printed in: states, limits, job ids, submit lines."""

from __future__ import annotations

import math
import re

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import Limit, Record, State, array_size
from policyfactory.workload.accounting.times import duration
from policyfactory.workload.header import printable

__all__ = [
    "HET_ID",
    "LARGEST",
    "array_limit",
    "array_tasks",
    "asked",
    "asks_for_nodes",
    "depends_on",
    "gres_gpus",
    "limit_in_id",
    "mark_asked",
    "memory_of_each",
    "one_cluster",
    "read_limit",
    "state_of",
    "tres",
    "tres_gpus",
    "tres_memory",
]

# A number above this is none that a cluster has: seconds, processors, minutes.
LARGEST = 1 << 40

# Het job 17 has the components 17+0, 17+1 (22.05.8, seen).
HET_ID = re.compile(r"(\d+)\+\d+", re.ASCII)

# JOB STATE CODES of the man page of sacct, 22.05.8, and the names that later versions print. A preempted job is
# cancelled or goes back to the queue; if it does, another record follows.
_WORDS = {
    State.completed: "COMPLETED",
    State.failed: "BOOT_FAIL FAILED LAUNCH_FAILED OUT_OF_MEMORY RECONFIG_FAIL",
    State.timeout: "TIMEOUT",
    State.node_fail: "NODE_FAIL",
    State.cancelled: "CANCELLED DEADLINE PREEMPTED REVOKED",
    State.requeued: "REQUEUED REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT",
    State.running: "COMPLETING CONFIGURING POWER_UP_NODE RUNNING SIGNALING STAGE_OUT STOPPED SUSPENDED",
    State.pending: "PENDING RESV_DEL_HOLD",
    State.resized: "RESIZING",
}
_STATES = {word: state for state, words in _WORDS.items() for word in words.split()}
_TASKS = re.compile(r"\d{1,10}_\[([\d,\-:]{1,4000})(?:\.\.\.)?(?:%(\d{1,9}))?\]", re.ASCII)
_ARRAY = re.compile(r"(?<!\S)(?:-a[ =]?|--array[ =])[\d,:-]{1,4000}%(\d{1,9})(?!\S)", re.ASCII)
_ASKED = re.compile(r"(?<!\S)(?:(?:-t|--time)\s+|--time=|-t)(?=(\S+))")
_TRES = re.compile(r"(?:^|,)(\w+)=(\d{1,12})(?=,|$)", re.ASCII)
_MEMORY = re.compile(r"(?:^|,)mem=(\d{1,15})(?:\.(\d{1,6}))?([KMGTP]?)(?=,|$)", re.ASCII)
_GPUS = re.compile(r"(?:^|,)gres/gpu(:[^=,]{1,80})?=(\d{1,9})(?=,|$)", re.ASCII)
_MB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_EACH = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)([nc]?)", re.ASCII)
_GRES_GPUS = re.compile(r"(?:gres[:/])?gpu(?::[A-Za-z_][^:]{0,80})?(?::(\d{1,9}))?", re.ASCII)
_EXCLUSIVE = re.compile(r"(?<!\S)--exclusive(?!\S)")
_DEPENDS = re.compile(r"(?<!\S)(?:-d[ =]?|--dependency[ =])(after[\w:,?+]{1,2000})(?!\S)", re.ASCII)
_DEPENDENCY = re.compile(r"after(?:ok|any|notok|corr|burstbuffer)((?::\d{1,10}(?:_\d{1,10})?)+)", re.ASCII)


def state_of(text: str) -> State:
    """Return the state that ``text`` begins with (``CANCELLED by 1000``); a new word is unknown."""
    return _STATES.get(text.partition(" ")[0].rstrip("+"), State.unknown)


def one_cluster(name: str, before: str, place: str) -> str:
    """Return the name of the cluster that a log is of, when ``name`` comes after ``before``; either may be empty.

    Raises
    ------
    TraceFormatError
        If they are two: such a log cannot become one workload.
    """
    if name and before and name != before:
        raise TraceFormatError(
            f"{place}: cluster {printable(name, 60)!r} after {printable(before, 60)!r}; a workload is of one machine: "
            "ask sacct for one cluster (-M NAME)"
        )
    return name or before


def array_tasks(job: str) -> int:
    """Return how many tasks the pending rest of an array has (``57_[0-20%3]``: 21); 1 for any other id."""
    match = _TASKS.fullmatch(job)
    return (array_size(match[1]) or 1) if match else 1


def array_limit(submit_line: str) -> int | None:
    """Return how many tasks of an array may run at once by its submit line (``--array=0-99%10``); None: any number.

    Arguments of the job script can look the same: only the tasks of an array have a limit.
    """
    found = _ARRAY.search(submit_line)
    return None if found is None else int(found[1]) or None


def limit_in_id(job: str) -> int | None:
    """Return how many tasks of the pending rest of an array may run at once (``57_[0-20%3]``: 3); None: any number."""
    match = _TASKS.fullmatch(job)
    return None if match is None or match[2] is None else int(match[2]) or None


def tres(text: str, name: str) -> int | None:
    """Return the number of one trackable resource (``cpu``, ``node``) in ``billing=64,cpu=64,node=4``."""
    return next((int(number) for resource, number in _TRES.findall(text) if resource == name), None)


def tres_memory(text: str) -> int | None:
    """Return the MB of ``billing=64,cpu=64,mem=1.50T,node=4``, rounded up; None if there is no memory in it."""
    match = _MEMORY.search(text)
    if match is None:
        return None
    number = float(f"{match[1]}.{match[2] or 0}") * _MB[match[3]]
    return min(math.ceil(number), LARGEST + 1)


def tres_gpus(text: str) -> int | None:
    """Return the GPUs of ``cpu=64,gres/gpu=4,gres/gpu:a100=4``: the sum of all types; 0 where none is named."""
    if not text:
        return None
    counts = _GPUS.findall(text)
    # The count without a type is that of all types.
    untyped = [int(count) for kind, count in counts if not kind]
    return untyped[0] if untyped else sum(int(count) for _, count in counts)


def memory_of_each(text: str) -> tuple[float, int]:
    """Return the MB of column ReqMem and of what they are: 0 the whole job, 1 each node (``4Gn``), 2 each core.

    Raises
    ------
    ValueError
        If it is none.
    """
    match = _EACH.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return float(match[1]) * _MB[match[2]], {"": 0, "n": 1, "c": 2}[match[3]]


def gres_gpus(text: str) -> int | None:
    """Return the GPUs on each node of ``gpu:a100:2(IDX:0-1),hbm:0``: the sum; None where the text is empty."""
    if not text:
        return None
    parts = re.sub(r"\([^()]{0,200}\)", "", text).split(",")
    return sum(int(match[1] or 1) for part in parts if (match := _GRES_GPUS.fullmatch(part)))


def depends_on(submit_line: str) -> str:
    """Return the ids of the jobs that have to end first, with ``:`` between (``--dependency=afterok:17:18_2``).

    ``after:20+5`` waits until job 20 has begun, not ended, and is left out; ``singleton`` names no job.
    """
    ids: list[str] = []
    for text in _DEPENDS.findall(submit_line):
        for part in re.split("[,?]", text):
            match = _DEPENDENCY.fullmatch(part)
            ids += [] if match is None else match[1][1:].split(":")
    return ":".join(dict.fromkeys(ids))


def asks_for_nodes(submit_line: str) -> int | None:
    """Return 1 if a submit line asks for whole nodes (``--exclusive``), None if it does not say."""
    return 1 if _EXCLUSIVE.search(submit_line) else None


def read_limit(minutes: str, text: str) -> tuple[int | None, Limit]:
    """Return the requested run time in seconds and what the log says about it.

    Parameters
    ----------
    minutes : str
        Column TimelimitRaw: minutes, or a word.
    text : str
        Column Timelimit: a duration, or the same words.

    Raises
    ------
    ValueError
        If it is neither a time nor a word that is known.
    """
    if minutes.isdigit():
        seconds: int | None = int(minutes) * 60
    else:
        word = minutes or text
        if not word or word in {"INVALID", "NOT_SET", "None", "N/A"}:
            return None, Limit.missing
        if word.upper() == "UNLIMITED":
            return None, Limit.unlimited
        if word == "Partition_Limit":
            return None, Limit.partition
        seconds = duration(word) if not minutes else None
    if seconds is None:
        raise ValueError(minutes or text)
    # A limit of zero asks for none (man page of sbatch).
    return (seconds, Limit.given) if seconds else (None, Limit.unlimited)


def asked(submit_line: str) -> set[int]:
    """Return the run times in seconds that a submit line asks for, in whole minutes as Slurm keeps them.

    ``-t 90``, ``-t90``, ``--time 1:30:00``, ``--time=1-0``. Words of the job script's own arguments can look the
    same: the caller compares with the limit that the job had.
    """
    times = (duration(text) for text in _ASKED.findall(submit_line))
    return {-(-seconds // 60) * 60 for seconds in times if seconds is not None}


def mark_asked(record: Record, submit_line: str) -> None:
    """Note what the submit line shows: that the limit was asked for, whole nodes, jobs that had to end first."""
    record.exclusive, record.after = asks_for_nodes(submit_line), depends_on(submit_line)
    record.array_limit = record.array_limit or array_limit(submit_line)
    if record.limit_kind is Limit.given and record.limit in asked(submit_line):
        record.limit_kind = Limit.asked
