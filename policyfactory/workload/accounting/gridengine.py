"""Accounting files of Grid Engine (``$SGE_ROOT/$SGE_CELL/common/accounting``): a line for each run of a job.

The fields are those of the manual page accounting(5), in its order, with colons between them; later versions have more
behind. Times are Unix seconds, in Univa Grid Engine milliseconds. What a job asked for is in the field ``category``:
its options of qsub. Only the first host of a parallel job is named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import LimitKind, Record, Remark, State
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.header import printable

# Places of the fields.
_QUEUE, _HOST, _GROUP, _OWNER, _NAME, _JOB, _ACCOUNT = range(7)
_SUBMIT, _START, _END, _FAILED, _EXIT, _WALLCLOCK = range(8, 14)
_PROJECT, _DEPARTMENT, _PE, _SLOTS, _TASK = range(31, 36)
_CATEGORY = 39
_FEWEST = 36
# Milliseconds since 1970 are more than this, seconds less for 3,000 years.
_MILLISECONDS = 10**11
_LARGEST = 10**12

_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_REAL = re.compile(r"\d{1,12}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_LIST = re.compile(r"(?:^| )-l ([^ ]+)")
_TIME = re.compile(r"(?:(\d{0,9}):)?(?:(\d{0,5}):)?(\d{1,12})(?:\.\d{1,9})?", re.ASCII)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgGtT]?)", re.ASCII)
_BYTES = {"": 1, "k": 1000, "K": 1 << 10, "m": 10**6, "M": 1 << 20, "g": 10**9, "G": 1 << 30, "t": 10**12, "T": 1 << 40}
_LIMITS = ("h_rt", "s_rt")
_NOBODY = {"NONE", "", "defaultdepartment"}
# Requested for each slot.
_MEMORY = ("h_vmem", "m_mem_free", "s_vmem", "mem_free", "virtual_free", "h_rss", "s_rss")
_GPUS = ("gpu", "gpus", "ngpus", "num_gpu", "cuda")
# sge_status(5): the job was started again, or is to be.
_AGAIN = {24, 25}
# What is behind the category: seconds of input and output, and the task of a parallel job.
_BEHIND = re.compile(r":\d{1,15}\.\d{1,9}:([^:]*)", re.ASCII)


def is_record(line: str) -> bool:
    """Tell whether a line is a record of such a file."""
    fields = line.split(":")
    numbers = (_JOB, _SUBMIT, _START, _END)
    return len(fields) >= _FEWEST and all(_WHOLE.fullmatch(fields[column]) for column in numbers)


def read(lines: Iterable[str], path: str, clock: Clock) -> Iterator[Record | Remark]:  # noqa: ARG001
    """Read an accounting file.

    Parameters
    ----------
    lines : iterable of str
        Without their ends.
    path : str
        For messages.
    clock : Clock
        Not used: all times are Unix times.

    Raises
    ------
    TraceFormatError
        If no line is such a record.
    """
    records, lost = 0, (1, "")
    for number, line in enumerate(lines, 1):
        # Comments, and what qacct passes over.
        if line.startswith("#") or len(line) < 2:
            continue
        fields = _fields(line)
        if fields is None:
            lost = lost if lost[1] else (number, line)
            yield Remark(number, "", "gridengine.damaged")
            continue
        records += 1
        options, behind = _split(fields)
        if behind not in {"", "NONE"}:
            yield Remark(number, fields[_JOB], "gridengine.task")
        else:
            yield _record(number, fields, _asked(options))
    if not records:
        raise TraceFormatError(
            f"{path}:{lost[0]}: {printable(lost[1], 80)!r} is no record of Grid Engine's accounting(5), whose lines "
            f"have {_FEWEST} fields or more with colons between them: give $SGE_ROOT/$SGE_CELL/common/accounting"
        )


def _fields(line: str) -> list[str] | None:
    """Return the fields of a line, None if it is no record; a job name can hold colons, which add fields."""
    if is_record(line):
        return line.split(":")
    fields = line.split(":")
    for surplus in range(1, min(len(fields) - _FEWEST, 20) + 1):
        name = ":".join(fields[_NAME : _NAME + surplus + 1])
        joined = [*fields[:_NAME], name, *fields[_NAME + surplus + 1 :]]
        if is_record(":".join(["x" if column == _NAME else field for column, field in enumerate(joined)])):
            return joined
    return None


def _split(fields: list[str]) -> tuple[str, str]:
    """Return the category, in which times can have colons, and which task of a parallel job the record is of."""
    rest = ":".join(fields[_CATEGORY:])
    match = _BEHIND.search(rest)
    return (rest, "") if match is None else (rest[: match.start()], match[1])


def _record(number: int, fields: list[str], asked: dict[str, str]) -> Record:
    submit, start, end = (_seconds(fields[column]) for column in (_SUBMIT, _START, _END))
    slots = int(fields[_SLOTS]) if _WHOLE.fullmatch(fields[_SLOTS]) else None
    parallel = fields[_PE] not in {"NONE", ""}
    task = int(fields[_TASK]) if _WHOLE.fullmatch(fields[_TASK]) else 0
    limit = next((seconds for name in _LIMITS if (seconds := _duration(asked.get(name, "")))), None)
    unlimited = asked.get("h_rt", "").upper() == "INFINITY"
    memory = next((size for name in _MEMORY if (size := _megabytes(asked.get(name, ""))) is not None), None)
    gpus = next((int(asked[name]) for name in _GPUS if _WHOLE.fullmatch(asked.get(name, ""))), None)
    cores = max(slots or 1, 1)
    failed = int(fields[_FAILED]) if _WHOLE.fullmatch(fields[_FAILED]) else 0
    return Record(
        number,
        f"{fields[_JOB]}_{task}" if task else fields[_JOB],
        submit=submit,
        start=start,
        end=end,
        elapsed=_elapsed(fields[_WALLCLOCK], start, end),
        limit=limit,
        limit_kind=LimitKind.asked if limit else LimitKind.unlimited if unlimited else LimitKind.missing,
        requested=cores,
        allocated=cores if start is not None else 0,
        # A job of no parallel environment is on one host; of others only the first is named.
        requested_nodes=None if parallel else 1,
        allocated_nodes=None if parallel else 1,
        memory=None if memory is None else min(math.ceil(memory * cores), _LARGEST),
        gpus=gpus,
        exclusive=1 if asked.get("exclusive", "").lower() in {"1", "true"} else None,
        state=_state(failed, fields[_EXIT], limit, start, end),
        user=fields[_OWNER],
        group=fields[_GROUP],
        account=next((name for name in (fields[_PROJECT], fields[_DEPARTMENT]) if name not in _NOBODY), ""),
        partition=fields[_QUEUE],
        name=fields[_NAME],
    )


def _seconds(text: str) -> int | None:
    """Return a Unix time; 0 is none."""
    time = int(text)
    return (time // 1000 if time > _MILLISECONDS else time) or None


def _elapsed(text: str, start: int | None, end: int | None) -> int | None:
    """Return the run time: that of the record where it has one, which for failed starts is 0."""
    if start is None or end is None:
        return None
    return end - start if not _REAL.fullmatch(text) or float(text) <= 0 else min(round(float(text)), _LARGEST)


def _asked(category: str) -> dict[str, str]:
    """Return what ``-l`` of a category asks for; an entry without a value is true."""
    pairs = [entry.partition("=") for part in _LIST.findall(category) for entry in part.split(",")]
    # Of the hard requests, which come first, and the soft ones.
    return {name: value if mark else "1" for name, mark, value in reversed(pairs)}


def _duration(text: str) -> int | None:
    """Return the seconds of ``36000`` or ``10:00:00``; None for INFINITY and what is no time."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    # With one colon it is minutes and seconds.
    hours, minutes = (match[1], match[2]) if match[2] is not None else (None, match[1])
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(match[3])


def _megabytes(text: str) -> float | None:
    match = _SIZE.fullmatch(text)
    return None if match is None else float(match[1]) * _BYTES[match[2]] / (1 << 20)


def _state(failed: int, status: str, limit: int | None, start: int | None, end: int | None) -> State:
    """Return how a run ended; a signal ends those that are deleted and those that reach their limit."""
    if failed in _AGAIN:
        return State.requeued
    if start is not None and end is not None and limit and failed == 100 and end - start >= limit:
        return State.timeout
    if failed == 100:
        return State.cancelled
    return State.completed if failed == 0 and status == "0" else State.failed
