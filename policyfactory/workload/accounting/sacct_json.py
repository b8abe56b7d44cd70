"""Reading the output of ``sacct --json``: one job after the other, however long the list is.

Written for the plugin openapi/dbv0.0.38 of Slurm 22.05.8; numbers that later versions wrap as
``{"set": true, "infinite": false, "number": 5}`` and states in a list are understood too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import NAMES, LimitKind, Record, Remark, State
from policyfactory.workload.accounting.sacct import LARGEST, array_tasks, limit_in_id, mark_asked, one_cluster, state_of
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.header import printable

# A job with a hundred steps has some hundred thousand characters. Of values, the shortest take twenty times their text.
_LARGEST_VALUE = 24 << 20
# Of entries; while most can be read it does not matter how many cannot.
_MOST_UNREAD = 100_000
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_ERRORS = (TypeError, ValueError, LookupError, AttributeError)
_Value = TypeVar("_Value")


class JsonText:
    """A text that comes in chunks, of which the part that was read is forgotten.

    Parameters
    ----------
    chunks : iterable of str
        The text.
    path : str
        Its file, for messages.
    command : str
        What prints such a text.
    """

    def __init__(self, chunks: Iterable[str], path: str, command: str = "sacct --json") -> None:
        self._chunks = iter(chunks)
        self._path, self.command = path, command
        self._buffer = ""
        self._position = 0

    def _more(self) -> bool:
        """Fetch as much again as is there; return whether anything came."""
        wanted = max(1 << 16, len(self._buffer) - self._position)
        parts = [self._buffer[self._position :]]
        got = 0
        while got < wanted and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            got += len(chunk)
        self._buffer, self._position = "".join(parts), 0
        return got > 0

    def mark(self) -> str:
        """Return the next character that is no blank, without passing it; empty at the end."""
        while True:
            self._position = _BLANK.match(self._buffer, self._position).end()  # type: ignore[union-attr]
            if self._position < len(self._buffer):
                return self._buffer[self._position]
            if not self._more():
                return ""

    def expect(self, mark: str, where: str) -> None:
        """Pass the character ``mark``."""
        if self.mark() != mark:
            self.fail(where, f"{mark} expected")
        self._position += 1

    def value(self, where: str) -> Any:
        """Pass one whole value and return it."""
        self.mark()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._position)
            except json.JSONDecodeError as error:
                if len(self._buffer) - self._position > _LARGEST_VALUE:
                    self.fail(where, f"{error.msg}, or one value of more than {_LARGEST_VALUE:,} characters")
                if not self._more():
                    self.fail(where, error.msg)
            except (RecursionError, ValueError):
                self.fail(where, "nested too deep, or a number too long")
            else:
                # A number at the end of the buffer may go on in the next chunk.
                if end < len(self._buffer) or not self._more():
                    self._position = end
                    return value

    def fail(self, where: str, why: str) -> None:
        """Raise the error for what is no JSON."""
        rest = self._buffer[self._position : self._position + 60]
        raise TraceFormatError(
            f"{self._path}: {where}: {why}, found {printable(rest, 40)!r}; is this the whole output of "
            f"{self.command}? print it again"
        )


def _entries(text: JsonText, end: str, between: str) -> Iterator[int]:
    """Stand before each entry of a list or an object, and give its number; ``between`` is where its comma is."""
    number = 0
    while text.mark() != end:
        number += 1
        yield number
        if text.mark() != end:
            text.expect(",", between.format(number))
    text.expect(end, between)


def jobs_in(text: JsonText, others: dict[str, Any]) -> Iterator[Any]:
    """Give the values of the list ``jobs`` of the outermost object; those named in ``others`` are filled in."""
    text.expect("{", "begin")
    seen = False
    for _ in _entries(text, "}", "between entries"):
        name = text.value("name of an entry")
        text.expect(":", "entry")
        if name == "jobs" and text.mark() == "[":
            seen = True
            text.expect("[", "jobs")
            for number in _entries(text, "]", "after job {} of the list"):
                yield text.value(f"job {number} of the list")
        else:
            value = text.value("value of an entry")
            if name in others:
                others[name] = value
    if not seen:
        text.fail("end", f"no list called jobs; {text.command} prints one")


def read(chunks: Iterable[str], path: str, clock: Clock) -> Iterator[Record | Remark]:  # noqa: ARG001
    """Give the records of ``sacct --json``; steps are inside their jobs and are not looked at.

    Parameters
    ----------
    chunks : iterable of str
        The text in parts of any length, with its line ends.
    path : str
        The file, for messages.
    clock : Clock
        Not used: all times are Unix seconds.

    Raises
    ------
    TraceFormatError
        If it is no JSON, has no list of jobs, most of a hundred thousand cannot be read, or it has several clusters.
    """
    cluster, unread = "", 0
    for number, job in enumerate(jobs_in(JsonText(chunks, path), {}), start=1):
        if isinstance(job, dict) and "time" not in job and {"job_state", "submit_time"} <= {*job}:
            raise TraceFormatError(
                f"{path}: job {number} of the list has job_state and submit_time: this is the output of squeue --json "
                "or scontrol show job --json, which has no jobs that ended; give that of sacct --json"
            )
        odd: list[tuple[str, Any]] = []
        try:
            record = _record(job, number, odd)
            name = _text(job.get("cluster"))
        except _ERRORS:
            unread += 1
            if unread > _MOST_UNREAD and 2 * unread > number:
                raise TraceFormatError(
                    f"{path}: {unread:,} of the first {number:,} entries of the list cannot be read as jobs; is this "
                    "the whole output of sacct --json? print it again"
                ) from None
            yield Remark(number, "", "sacct-json.unreadable")
            continue
        cluster = one_cluster(name, cluster, f"{path}: job {number} of the list")
        yield from (Remark(number, record.job, "sacct-json.odd_cell", 1, *cell) for cell in odd)
        yield record


def _number(value: Any) -> int | None:
    """Return a whole number, plain or wrapped; None where there is none."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise ValueError(value)
    return value


def _time(value: Any) -> int | None:
    """Return a Unix time; 0 is none."""
    return _number(value) or None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _counted(name: str) -> Callable[[Any], int | None]:
    """Return what reads the count of a trackable resource in a list of them."""
    return lambda tres: next((_number(entry["count"]) for entry in tres if entry["type"] == name), None)


def _state(current: Any) -> State:
    """Return the state of a word or a list of words, of which later versions print flags behind the first.

    A run that went back to the queue is PENDING with REQUEUED, one that changed its size RUNNING with RESIZING.
    """
    states = [state_of(current)] if isinstance(current, str) else [state_of(_text(word)) for word in current]
    return next((state for state in states if state in {State.resized, State.requeued}), states[0])


def _gpus(resources: Any) -> int | None:
    """Return the GPUs in a list of trackable resources: that of all types, or the sum over them."""
    if not resources:
        return None
    found = [(tres["name"], _number(tres["count"]) or 0) for tres in resources if tres["type"] == "gres"]
    untyped = [count for name, count in found if name == "gpu"]
    return untyped[0] if untyped else sum(count for name, count in found if str(name).startswith("gpu:"))


# Of `NAMES`, those that are no entries of a job.
_ELSEWHERE = {"user_name", "after", "partitions"}


def _record(job: dict[str, Any], number: int, odd: list[tuple[str, Any]]) -> Record:
    """Return the record of one job, and note in ``odd`` what of it cannot be read and is taken as unknown.

    Raises
    ------
    TypeError, ValueError, LookupError, AttributeError
        If it is not formed as Slurm forms it.
    """

    def known(name: str, read: Callable[[Any], _Value | None], value: Any) -> _Value | None:
        """Return what an entry says that a job can do without; where it cannot be read, nothing, and note it."""
        try:
            return read(value)
        except _ERRORS:
            if name not in dict(odd):
                odd.append((name, json.dumps(value, default=str)[:200]))
            return None

    time, tres = job["time"], job.get("tres") or {}
    allocated, requested = tres.get("allocated") or (), tres.get("requested") or ()
    state = _state(job["state"]["current"])
    limit, kind = known("time.limit", _limit, time.get("limit")) or (None, LimitKind.missing)
    nodes = known("allocation_nodes", _number, job.get("allocation_nodes"))
    nodes = nodes if nodes is not None else known("tres.allocated", _counted("node"), allocated)
    cores = known("tres.allocated", _counted("cpu"), allocated)
    # Without an entry a job had none, unless the entry cannot be read.
    none = None if "tres.allocated" in dict(odd) else 0
    name, group_id = _identity(job)
    elapsed = known("time.elapsed", _number, time.get("elapsed"))
    end = _time(time["end"]) if elapsed is None else known("time.end", _time, time.get("end"))
    asked = known("required.CPUs", _number, (job.get("required") or {}).get("CPUs"))
    names: dict[str, Any] = {name: _text(job.get(name)) for name in NAMES if name not in _ELSEWHERE}
    record = Record(
        line=number,
        job=name,
        submit=_time(time["submission"]),
        eligible=known("time.eligible", _time, time.get("eligible")),
        start=None if state is State.pending else _time(time["start"]),
        end=None if state in {State.running, State.pending} else end,
        elapsed=elapsed,
        suspended=known("time.suspended", _number, time.get("suspended")),
        limit=limit,
        limit_kind=kind,
        requested=asked or known("tres.requested", _counted("cpu"), requested),
        allocated=cores or none,
        # A minimum: only the nodes that a job had show whether it wanted more.
        requested_nodes=known("tres.requested", _counted("node"), requested) if nodes else None,
        allocated_nodes=nodes or none,
        memory=known("tres.requested", _counted("mem"), requested),
        gpus=known("tres.requested", _gpus, requested),
        allocated_gpus=known("tres.allocated", _gpus, allocated),
        allocated_memory=known("tres.allocated", _counted("mem"), allocated),
        state=state,
        group_id=group_id,
        tasks=array_tasks(name),
        array_limit=known("array", _array_limit, job.get("array") or {}) or limit_in_id(name),
        **names,
    )
    record.user = record.user or _text((job.get("association") or {}).get("user"))
    if isinstance(job.get("submit_line"), str):
        mark_asked(record, job["submit_line"])
    return record


def _identity(job: dict[str, Any]) -> tuple[str, str | None]:
    """Return the id as the site writes it, and the id of the het job that it is a part of."""
    plain = _number(job["job_id"])
    if plain is None:
        raise ValueError("job_id")
    het, array = job.get("het") or {}, job.get("array") or {}
    leader, offset = _number(het.get("job_id")), _number(het.get("job_offset"))
    if leader and offset is not None:
        return f"{leader}+{offset}", str(leader)
    parent, task = _number(array.get("job_id")), _number(array.get("task_id"))
    if parent and task is not None:
        return f"{parent}_{task}", None
    rest = array.get("task")
    if parent and isinstance(rest, str) and rest:
        return f"{parent}_[{rest.strip('[]')}]", None
    return str(plain), None


def _array_limit(array: dict[str, Any]) -> int | None:
    """Return how many tasks of an array may run at once; only the record that began last has it (22.05.8, seen)."""
    found: Any = array
    for name in ("limits", "max", "running"):
        found = found.get(name) or {}
    return _number(found.get("tasks")) or None


def _limit(value: Any) -> tuple[int | None, LimitKind]:
    """Return the requested run time; null is no limit (22.05.8, seen)."""
    if value is None or (isinstance(value, dict) and value.get("infinite")):
        return None, LimitKind.unlimited
    minutes = _number(value)
    if minutes is None:
        # What sacct -P prints as Partition_Limit is not set.
        return None, LimitKind.partition if isinstance(value, dict) else LimitKind.missing
    return (minutes * 60, LimitKind.given) if minutes else (None, LimitKind.unlimited)
