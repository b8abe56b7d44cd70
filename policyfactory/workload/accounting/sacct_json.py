"""Reading the output of ``sacct --json``: one job after the other, however long the list is.

Written for the plugin openapi/dbv0.0.38 of Slurm 22.05.8; numbers that later versions wrap as
``{"set": true, "infinite": false, "number": 5}`` and states in a list are understood too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import NAMES, Limit, Record, Remark, State
from policyfactory.workload.accounting.slurm import (
    LARGEST,
    array_tasks,
    limit_in_id,
    mark_asked,
    one_cluster,
    state_of,
)
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.header import printable

__all__ = ["read"]

# A job with a hundred steps has some hundred thousand characters. Of values, the shortest take twenty times their text.
_LARGEST_VALUE = 24 << 20
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _JsonText:
    """A text that comes in chunks, of which the part that was read is forgotten."""

    def __init__(self, chunks: Iterable[str], path: str) -> None:
        self._chunks = iter(chunks)
        self._path = path
        self._buffer = ""
        self._at = 0

    def _more(self) -> bool:
        """Fetch as much again as is there; return whether anything came."""
        wanted = max(1 << 16, len(self._buffer) - self._at)
        parts = [self._buffer[self._at :]]
        got = 0
        while got < wanted and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            got += len(chunk)
        self._buffer, self._at = "".join(parts), 0
        return got > 0

    def mark(self) -> str:
        """Return the next character that is no blank, without passing it; empty at the end."""
        while True:
            self._at = _BLANK.match(self._buffer, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def take(self, mark: str, where: str) -> None:
        """Pass the character ``mark``."""
        if self.mark() != mark:
            self.fail(where, f"{mark} expected")
        self._at += 1

    def value(self, where: str) -> Any:
        """Pass one whole value and return it."""
        self.mark()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if len(self._buffer) - self._at > _LARGEST_VALUE:
                    self.fail(where, f"{error.msg}, or one value of more than {_LARGEST_VALUE:,} characters")
                if not self._more():
                    self.fail(where, error.msg)
            except (RecursionError, ValueError):
                self.fail(where, "nested too deep, or a number too long")
            else:
                # A number at the end of the buffer may go on in the next chunk.
                if end < len(self._buffer) or not self._more():
                    self._at = end
                    return value

    def fail(self, where: str, why: str) -> None:
        """Raise the error for what is no JSON."""
        rest = self._buffer[self._at : self._at + 60]
        raise TraceFormatError(
            f"{self._path}: {where}: {why}, found {printable(rest, 40)!r}; is this the whole output of sacct --json? "
            "print it again"
        )


def _entries(text: _JsonText, end: str, between: str) -> Iterator[int]:
    """Stand before each entry of a list or an object, and give its number; ``between`` is where its comma is."""
    number = 0
    while text.mark() != end:
        number += 1
        yield number
        if text.mark() != end:
            text.take(",", between.format(number))
    text.take(end, between)


def _jobs(text: _JsonText) -> Iterator[Any]:
    """Give the values of the list ``jobs`` of the outermost object."""
    text.take("{", "begin")
    seen = False
    for _ in _entries(text, "}", "between entries"):
        name = text.value("name of an entry")
        text.take(":", "entry")
        if name == "jobs" and text.mark() == "[":
            seen = True
            text.take("[", "jobs")
            for number in _entries(text, "]", "after job {} of the list"):
                yield text.value(f"job {number} of the list")
        else:
            text.value("value of an entry")
    if not seen:
        text.fail("end", "no list called jobs; sacct --json prints one")


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
        If it is no JSON, has no list of jobs, or has several clusters.
    """
    cluster = ""
    for number, job in enumerate(_jobs(_JsonText(chunks, path)), start=1):
        try:
            record = _record(job, number)
            name = _text(job.get("cluster"))
        except (TypeError, ValueError, LookupError, AttributeError):
            yield Remark(number, "", "sacct-json.unreadable")
            continue
        cluster = one_cluster(name, cluster, f"{path}: job {number} of the list")
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


def _resource(resources: Any, name: str) -> int | None:
    """Return the count of a trackable resource in a list of them."""
    counts = (_number(resource["count"]) for resource in resources if resource["type"] == name)
    return next(counts, None)


def _gpus(resources: Any) -> int | None:
    """Return the GPUs in a list of trackable resources: that of all types, or the sum over them."""
    if not resources:
        return None
    found = [(one["name"], _number(one["count"]) or 0) for one in resources if one["type"] == "gres"]
    untyped = [count for name, count in found if name == "gpu"]
    return untyped[0] if untyped else sum(count for name, count in found if str(name).startswith("gpu:"))


def _record(job: dict[str, Any], number: int) -> Record:
    """Return the record of one job.

    Raises
    ------
    TypeError, ValueError, LookupError, AttributeError
        If it is not formed as Slurm forms it.
    """
    time, allocated = job["time"], job["tres"]["allocated"]
    current = job["state"]["current"]
    state = state_of(current if isinstance(current, str) else _text(current[0]))
    limit, kind = _limit(time["limit"])
    nodes = _number(job.get("allocation_nodes"))
    nodes = nodes if nodes is not None else _resource(allocated, "node") or 0
    name, group_id = _identity(job)
    requested = job["tres"]["requested"]
    names: dict[str, Any] = {name: _text(job.get(name)) for name in NAMES if name not in {"user_name", "after"}}
    record = Record(
        line=number,
        job=name,
        submit=_time(time["submission"]),
        eligible=_time(time.get("eligible")),
        start=None if state is State.pending else _time(time["start"]),
        end=None if state in {State.running, State.pending} else _time(time["end"]),
        elapsed=_number(time.get("elapsed")),
        suspended=_number(time.get("suspended")),
        limit=limit,
        limit_kind=kind,
        requested=_number((job.get("required") or {}).get("CPUs")) or _resource(requested, "cpu"),
        allocated=_resource(allocated, "cpu") or 0,
        # A minimum: only the nodes that a job had show whether it wanted more.
        requested_nodes=_resource(requested, "node") if nodes else None,
        allocated_nodes=nodes,
        memory=_resource(requested or allocated, "mem"),
        gpus=_gpus(requested or allocated),
        state=state,
        group_id=group_id,
        tasks=array_tasks(name),
        array_limit=_array_limit(job.get("array") or {}) or limit_in_id(name),
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


def _limit(value: Any) -> tuple[int | None, Limit]:
    """Return the requested run time; null is no limit (22.05.8, seen)."""
    if value is None or (isinstance(value, dict) and value.get("infinite")):
        return None, Limit.unlimited
    minutes = _number(value)
    if minutes is None:
        return None, Limit.missing
    return (minutes * 60, Limit.given) if minutes else (None, Limit.unlimited)
