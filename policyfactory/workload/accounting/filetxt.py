"""Files of Slurm's plugin jobcomp/filetxt: a line for each run of a job, written when it ends.

``JobId=5 UserId=root(0) GroupId=root(0) Name=.. JobState=.. Partition=.. TimeLimit=.. StartTime=.. EndTime=..
NodeList=.. NodeCnt=.. ProcCnt=.. WorkDir=.. ... SubmitTime=.. EligibleTime=.. ...`` (Slurm 22.05.8, seen). Name and
WorkDir are free texts, in which blanks and what looks like fields can stand. Steps, jobs that wait or run, and the
time that a job was suspended are not in it; times are local, in whole seconds. Old versions wrote no submit time: their
files cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import NAMES, Record, Remark, State
from policyfactory.workload.accounting.sacct import read_limit, state_of, tres, tres_gpus, tres_memory
from policyfactory.workload.accounting.times import Clock, settle
from policyfactory.workload.header import printable

_HEAD = re.compile(
    r"JobId=(?P<id>[0-9]{1,10}) UserId=(?P<user>[^=]*?)(?:\([0-9]+\))? GroupId=(?P<group>[^=]*?)(?:\([0-9]+\))? Name="
)
# A name or a folder may hold all of this too: then nothing says which is Slurm's.
_MIDDLE = re.compile(
    r" JobState=(?P<state>\S+) Partition=(?P<partition>\S*) TimeLimit=(?P<limit>\S+) StartTime=(?P<start>\S+) "
    r"EndTime=(?P<end>\S+) NodeList=(?P<list>\S*) NodeCnt=(?P<nodes>[0-9]{1,9}) "
    r"ProcCnt=(?P<processors>[0-9]{1,9}) WorkDir="
)
_TRES = re.compile(r" (?:Tres|Gres)=(?P<tres>\S*) Account=(?P<account>[^=]*) QOS=(?P<qos>\S*) WcKey=")
_TAIL = re.compile(r" SubmitTime=(?P<submit>\S+)(?: EligibleTime=(?P<eligible>\S+))?")
_ARRAY = re.compile(r" ArrayJobId=([0-9]{1,10}) ArrayTaskId=([0-9]{1,10})(?= |$)")
_HET = re.compile(r" (?:Het|Pack)JobId=([0-9]{1,10}) (?:Het|Pack)JobOffset=([0-9]{1,9})(?= |$)")


class _AmbiguousError(ValueError):
    """A line that can be read in two ways."""


def read(lines: Iterable[str], path: str, clock: Clock) -> Iterator[Record | Remark]:
    """Read a file of jobcomp/filetxt.

    Parameters
    ----------
    lines : iterable of str
        Without their ends.
    path : str
        For messages.
    clock : Clock
        For its times.

    Raises
    ------
    TraceFormatError
        If no line is such a record.
    """
    records, number = 0, 0
    first: tuple[int, str] | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            items = _record(number, line, clock)
        except _AmbiguousError:
            yield Remark(number, "", "filetxt.ambiguous")
        except ValueError:
            first = first or (number, line)
            yield Remark(number, "", "filetxt.unreadable")
        else:
            records += 1
            yield from items
    if not records:
        line_number, shown = first or (number, "")
        raise TraceFormatError(
            f"{path}:{line_number}: {printable(shown, 80)!r} is no record of jobcomp/filetxt; it begins with JobId= "
            "and has SubmitTime=, which old versions of Slurm did not write"
        )


def _record(number: int, line: str, clock: Clock) -> list[Record | Remark]:
    """Return the record of a line, and what must be said about it.

    Raises
    ------
    _AmbiguousError
        If it can be read in two ways.
    ValueError
        If it is none, or one of its times or numbers cannot be read.
    """
    fields, rest = _fields(line)
    times = [clock.read(fields[name]) for name in ("submit", "start", "end")]
    (submit, start, end), how = settle(times, None)
    eligible = clock.read(fields.get("eligible") or "")
    processors, nodes = int(fields["processors"]), int(fields["nodes"])
    state = state_of(fields["state"])
    remarks: list[Record | Remark] = []
    if state is State.pending and processors:
        # This run ended and the job went back to the queue (22.05.8, seen).
        state = State.requeued
    elif state is State.running:
        state = State.resized
    if not processors:
        # Cancelled in the queue: StartTime is that of the end (22.05.8, seen).
        start = None
    limit, kind = read_limit(fields["limit"], "")
    names: dict[str, Any] = {name: fields.get(name, "") for name in NAMES if name != "partitions"}
    record = Record(
        number,
        fields["id"],
        submit,
        eligible[0] if eligible else None,
        start,
        end,
        elapsed=None if start is None or end is None else end - start,
        limit=limit,
        limit_kind=kind,
        requested=tres(fields.get("tres", ""), "cpu"),
        allocated=processors,
        requested_nodes=tres(fields.get("tres", ""), "node") if nodes and processors else None,
        allocated_nodes=nodes,
        memory=tres_memory(fields.get("tres", "")),
        gpus=tres_gpus(fields.get("tres", "")),
        state=state,
        **names,
    )
    if array := _ARRAY.search(rest):
        record.job = f"{array[1]}_{array[2]}"
    elif het := _HET.search(rest):
        record.job, record.group_id = f"{het[1]}+{het[2]}", het[1]
    if submit is None:
        raise ValueError("no submit time")
    if any(len(time) > 1 for time in times):
        remarks.append(Remark(number, record.job, f"filetxt.{how}"))
    return [record, *remarks]


def _fields(line: str) -> tuple[dict[str, str], str]:
    """Return the fields by name, and what stands behind the submit time."""
    head = _HEAD.match(line)
    # What stands before SubmitTime= can hold anything, what stands behind it only what Slurm writes.
    begin = line.rfind(" SubmitTime=")
    tail = _TAIL.match(line, begin) if begin >= 0 else None
    if head is None or tail is None:
        raise ValueError("no head or no tail")
    middles = list(_MIDDLE.finditer(line, head.end() - 1, tail.start()))
    if len(middles) > 1:
        raise _AmbiguousError
    if not middles:
        raise ValueError("no state")
    fields = {**head.groupdict(), **middles[0].groupdict(), **tail.groupdict(default="")}
    fields["name"] = line[head.end() : middles[0].start()]
    for more in _TRES.finditer(line, middles[0].end(), tail.start()):
        fields |= more.groupdict()
    return fields, line[tail.end() :]
