"""Accounting logs of OpenPBS, PBS Professional and TORQUE.

A line is ``MM/DD/YYYY HH:MM:SS;TYPE;ID;FIELDS``. The record of type E, written when a job ends, has nearly everything:
``ctime`` (created: the submit time), ``etime`` (could have run), ``start`` and ``end`` in Unix seconds, what was asked
for (``Resource_List``), where it ran (``exec_host``, ``exec_vnode``). The other types complete it: Q queued, S started,
R ran and went back to the queue, D deleted, A aborted by the server, z and r suspended and resumed, M moved to
another server.

Sources: ``src/include/acct.h`` and ``src/server/accounting.c`` of OpenPBS; the accounting records of the TORQUE 6.1
administrator's guide; exit codes: the job exit status tables of both.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import LimitKind, Record, Remark, State, array_size
from policyfactory.workload.accounting.times import Clock

_STAMP = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4}) ([0-9]{2}:[0-9]{2}:[0-9]{2})")
_TASK = re.compile(r"([^\[]*)\[([^\]]*)\](.*)")
_LONGEST_ID = 256
# Queued or running at once: each takes a kilobyte.
_MOST_OPEN = 300_000
# JOB_EXEC_KILL_WALLTIME of OpenPBS; TORQUE and older PBS end the job by a signal, as they do for qdel.
_KILLED_BY_WALLTIME = "-29"
# The sharing of Resource_List.place; what is not named there is the nodes' own default.
_PLACE = re.compile(r"(?:^|:)(exclhost|excl|shared)(?=:|$)")
_EXCLUSIVE = {"excl": 1, "exclhost": 1, "shared": 0}
_NO_PROJECT = "_pbs_project_default"


class _Event(NamedTuple):
    """A line of the log: the event of a job and its fields."""

    line: int
    stamp: str
    kind: str
    job: str
    text: str

    def remark(self, kind: str) -> Remark:
        """Return a remark on it."""
        return Remark(self.line, self.job, kind)


@dataclasses.dataclass(slots=True)
class _Open:
    """A job that has not ended yet, as far as the lines up to here say."""

    line: int
    queued: int | None = None  # first Q record, or that of the array
    request: str = ""  # fields of the last Q record; old servers write the queue only
    start_line: int = 0
    started: str | None = None  # fields of the last S record
    stopped: int | None = None  # D or A record
    aborted: bool = False
    paused: int | None = None  # z record without its r
    suspended: int | None = None  # None: no z record since the start
    tasks: int = 1
    begun: set[str] = dataclasses.field(default_factory=set)  # tasks of an array that have records of their own

    def begin(self, line: int, started: str | None) -> None:
        """Note that it began, or with None that it went back to the queue."""
        self.start_line, self.started, self.paused, self.suspended = line, started, None, None


def read(lines: Iterable[str], path: str, clock: Clock) -> Iterator[Record | Remark]:
    """Read an accounting log.

    A job that has not ended by the last line comes at the end, as running or pending: of a log in daily files the
    next file may have its end. Of a rerun only what its R or S record says is known.

    Parameters
    ----------
    lines : iterable of str
        Without their ends.
    path : str
        For messages.
    clock : Clock
        For the time at the beginning of each line, which matters for jobs that were deleted before they began, for
        suspended ones and for reruns; all other times are Unix seconds.

    Raises
    ------
    TraceFormatError
        If no line is a record of PBS.
    """
    log = _PbsLog(clock)
    records, lost = 0, ""
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        parts = line.split(";", 3)
        if len(parts) != 4 or len(parts[1]) != 1 or len(parts[2]) > _LONGEST_ID or not _STAMP.fullmatch(parts[0]):
            lost = lost or f":{number}"
            yield Remark(number, "", "pbs.damaged")
            continue
        records += 1
        yield from log.read(_Event(number, *parts))
        if log.unended > _MOST_OPEN:
            raise TraceFormatError(
                f"{path}:{number}: {log.unended:,} jobs up to here have not ended; is this the whole log? Give its "
                "files in the order of their days"
            )
    if not records:
        raise TraceFormatError(
            f"{path}{lost}: has no record of PBS; a line is 'MM/DD/YYYY HH:MM:SS;E;JOB;user=...', as in "
            "PBS_HOME/server_priv/accounting"
        )
    yield from log.unfinished()


class _PbsLog:
    """What is known of the jobs that have not ended yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, _Open] = {}

    @property
    def unended(self) -> int:
        """How many jobs have not ended yet."""
        return len(self._open)

    def read(self, event: _Event) -> Iterator[Record | Remark]:
        """Give what one line says."""
        match event.kind:
            case "E":
                yield from self._end(event)
            case "Q":
                self._queue(event)
            case "S" if "[]" in event.job:
                yield event.remark("pbs.array")
            case "S":
                # Only the last start counts: a job that could not begin is started again without an R record.
                self._entry(event).begin(event.line, event.text)
            case "R":
                yield from self._rerun(event)
            case "D" | "A":
                entry = self._entry(event)
                entry.stopped = self._seconds(event)
                entry.aborted = entry.aborted or event.kind == "A"
            case "M":
                self._open.pop(event.job, None)
                yield event.remark("pbs.moved")
            case "z" | "r":
                self._pause(event)
            case _:
                yield event.remark("pbs.other")

    def unfinished(self) -> Iterator[Record]:
        """Give the jobs that the log leaves waiting or running."""
        for job, entry in self._open.items():
            if entry.started is not None:
                record = _record(entry.start_line, job, fields_of(entry.started))
                record.state = State.failed if entry.aborted else State.running
                record.end = entry.stopped if entry.aborted else None
                yield record
            elif (tasks := entry.tasks - len(entry.begun)) > 0 and (entry.queued or entry.stopped):
                record = _record(entry.line, job, fields_of(entry.request))
                record.submit, record.start, record.end, record.tasks = entry.queued, None, entry.stopped, tasks
                record.state = State.pending if entry.stopped is None else State.cancelled
                yield record

    def _seconds(self, event: _Event) -> int | None:
        """Return the Unix time of a line; where an hour comes twice the first, None if there is no such date."""
        month, day, year, clock = _STAMP.fullmatch(event.stamp).groups()  # type: ignore[union-attr]
        try:
            return min(self._clock.read(f"{year}-{month:>02}-{day:>02}T{clock}"))
        except (ValueError, OverflowError, OSError):
            return None

    def _entry(self, event: _Event) -> _Open:
        entry = self._open.get(event.job)
        if entry is None:
            entry = self._open[event.job] = _Open(event.line)
            array = self._array_of(event.job)
            if array is not None:
                entry.queued, entry.request = array.queued, array.request
        return entry

    def _array_of(self, job: str) -> _Open | None:
        """Return the array that a task belongs to, and note that the task has begun or ended."""
        match = _TASK.fullmatch(job) if "[" in job else None
        array = self._open.get(f"{match[1]}[]{match[3]}") if match and match[2] else None
        if array is not None and match is not None:
            array.begun.add(match[2])
        return array

    def _queue(self, event: _Event) -> None:
        entry = self._entry(event)
        fields = fields_of(event.text)
        if entry.queued is None:
            entry.queued = whole(fields, "ctime") or self._seconds(event)
        entry.request = event.text
        if "array_indices" in fields:
            entry.tasks = array_size(fields["array_indices"]) or 1

    def _pause(self, event: _Event) -> None:
        entry, now = self._entry(event), self._seconds(event)
        if event.kind == "z":
            entry.suspended = entry.suspended or 0
            entry.paused = now if entry.paused is None else entry.paused
        else:
            if entry.paused is not None and now is not None:
                entry.suspended = (entry.suspended or 0) + max(now - entry.paused, 0)
            entry.paused = None

    def _rerun(self, event: _Event) -> Iterator[Record | Remark]:
        entry = self._open.get(event.job)
        fields = fields_of(event.text)
        if whole(fields, "start") is None:
            fields = {**fields_of(entry.started if entry and entry.started else ""), **fields}
        record = _record(event.line, event.job, fields)
        if record.start is None:
            yield event.remark("pbs.lost_rerun")
            return
        record.end = whole(fields, "end") or self._seconds(event)
        record.state = State.requeued
        yield from _elapse(record, entry)
        yield record
        if entry is None:
            entry = self._entry(event)
            entry.queued, entry.request = record.submit, event.text
        entry.begin(0, None)

    def _end(self, event: _Event) -> Iterator[Record | Remark]:
        entry = self._open.pop(event.job, None)
        if "[]" in event.job:
            yield event.remark("pbs.array")
            return
        if entry is None:
            self._array_of(event.job)
        fields = fields_of(event.text)
        record = _record(event.line, event.job, fields)
        if record.submit is None or "start" not in fields:
            yield event.remark("pbs.no_submit" if record.submit is None else "pbs.no_start")
            return
        record.end = whole(fields, "end") or self._seconds(event)
        if entry is not None and not record.after and " depend=" in f" {entry.request}":
            record.after = depends_on(fields_of(entry.request))
        if record.limit is None and "Resource_List.walltime" in fields:
            yield event.remark("pbs.bad_limit")
        yield from _elapse(record, entry)
        deleted = entry is not None and entry.stopped is not None
        record.state = _state(record, fields.get("Exit_status"), deleted=deleted)
        yield record


def _elapse(record: Record, entry: _Open | None) -> Iterator[Remark]:
    """Set the run time: from start to end, without the time suspended as far as the log has it."""
    if record.start is None or record.end is None:
        return
    record.elapsed = held = record.end - record.start
    if entry is not None and entry.suspended is not None:
        paused = entry.suspended + (0 if entry.paused is None else max(record.end - entry.paused, 0))
        if paused > held:
            yield Remark(record.line, record.job, "pbs.long_pause")
        else:
            record.suspended, record.elapsed = paused, held - paused


def _record(line: int, job: str, fields: dict[str, str]) -> Record:
    """Return what the fields say of a job that has started."""
    hosts, vnodes = fields.get("exec_host", ""), fields.get("exec_vnode", "")
    # What TORQUE writes behind a host is a slot, or in some versions how many: its own sum decides.
    slots = whole(fields, "total_execution_slots")
    allocated = slots or vnode_processors(vnodes) or (count_slots(hosts) if hosts else None)
    width = whole(fields, "Resource_List.mppwidth")
    if width is not None:
        # On a Cray exec_host is the login node.
        allocated = max(width, allocated or 0)
    limit = parse_walltime(fields.get("Resource_List.walltime", ""))
    project = fields.get("project", "")
    return Record(
        line,
        job,
        submit=whole(fields, "ctime") or whole(fields, "qtime"),
        eligible=whole(fields, "etime"),
        start=whole(fields, "start"),
        limit=limit or None,
        limit_kind=LimitKind.given if limit else LimitKind.missing,
        requested=requested_processors(fields),
        allocated=allocated,
        requested_nodes=whole(fields, "Resource_List.nodect"),
        allocated_nodes=hosts_of(hosts) if hosts else None,
        memory=asked_memory(fields),
        gpus=requested_gpus(fields),
        exclusive=_EXCLUSIVE.get(next(iter(_PLACE.findall(fields.get("Resource_List.place", ""))), "")),
        user=fields.get("user", ""),
        group=fields.get("group", ""),
        account=fields.get("account", "") or (project if project != _NO_PROJECT else ""),
        partition=fields.get("queue", ""),
        qos=fields.get("Resource_List.qos", ""),
        name=fields.get("jobname", ""),
        after=depends_on(fields),
    )


def _state(record: Record, status: str | None, *, deleted: bool) -> State:
    """Return how a job ended; a signal ends those that are deleted and those that reach their limit."""
    if status == "0":
        return State.completed
    if status is None:
        return State.cancelled if deleted else State.unknown
    if deleted:
        return State.cancelled
    if status == _KILLED_BY_WALLTIME:
        return State.timeout
    if record.limit is not None and record.elapsed is not None and record.elapsed >= record.limit:
        return State.timeout
    return State.failed


# The fields of a PBS accounting record --------------------------------------------------------------------------------

# How many processors and nodes, how long, and what was asked for.
#
# Sources: the accounting functions of OpenPBS (``src/server/accounting.c``: the order of the fields, which values are
# quoted) and the accounting chapters of the TORQUE administrator's guide; genuine records of OpenPBS, PBS Professional
# and TORQUE 2 to 6 were looked at.


# A value goes to the next blank, or to its closing quote. A job name is never quoted by the server, so a quote in
# it is a character like others and must not swallow what follows.
_FIELD = re.compile(r"""(?:^| )([A-Za-z_][\w.-]*)=((?<!jobname=)(?:"[^"]*"|'[^']*')(?= |$)|\S*)""")
# These stand before the job name, into which a user can write what looks like fields: the first one counts.
_BEFORE_NAME = ("user", "group", "account", "project")
_FIRST = 12
_WHOLE = re.compile(r"[0-9]{1,12}")
_VNODE_NCPUS = re.compile(r":ncpus=([0-9]{1,9})(?=[:+)]|$)")
_NCPUS = re.compile(r"(?:^|:)(?:ppn|ncpus)=([0-9]{1,9})(?=[:#]|$)")
_CPP = re.compile(r":cpp=([0-9]{1,9})(?=[:#]|$)")
_MOST = 10**9
_SIZE = re.compile(r"([0-9]{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)
_SIZE_STEPS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_WORD = 8  # bytes
_CHUNK_SIZE = re.compile(r":mem=([0-9]+[kmgtp]?[bw]?)(?=[:#]|$)", re.IGNORECASE)
_CHUNK_GPUS = re.compile(r":n?gpus=([0-9]{1,9})(?=[:#]|$)")
# Jobs that must have ended: not those that must have begun (after), nor those that wait for this one (before...).
_DEPENDENCY = re.compile(r"(?:^|,)after(?:ok|any|notok)((?::[^:,]{1,256})+)")


def fields_of(text: str) -> dict[str, str]:
    """Return the fields of a record, without quotes.

    Where a name comes twice the last value counts, but of user, group, account and project the first: a job name may
    hold blanks and equals signs, and it stands between these and the others.
    """
    pairs = _FIELD.findall(text)
    fields: dict[str, str] = dict(pairs)
    first = dict(reversed(pairs[:_FIRST]))
    for name in _BEFORE_NAME:
        if name in first:
            fields[name] = first[name]
    if '"' in text or "'" in text:
        for name, value in fields.items():
            if value[:1] in {'"', "'"} and len(value) > 1 and value[-1] == value[0]:
                fields[name] = value[1:-1]
    return fields


def whole(fields: dict[str, str], name: str) -> int | None:
    """Return a whole number of at most 12 digits; None for what is missing, is none, or is 0 (PBS's "not yet")."""
    text = fields.get(name)
    return (int(text) or None) if text is not None and _WHOLE.fullmatch(text) else None


def parse_walltime(text: str) -> int | None:
    """Return the seconds of ``SS``, ``MM:SS``, ``HH:MM:SS`` or ``DD:HH:MM:SS``; None if it is none of them.

    Hours may be more than 24, a fraction of a second is cut off.
    """
    parts = text.split(".", 1)[0].split(":")
    if len(parts) > 4 or not all(_WHOLE.fullmatch(part) for part in parts):
        return None
    seconds = 0
    for part, size in zip(reversed(parts), (1, 60, 3600, 86400), strict=False):
        seconds += int(part) * size
    return seconds if seconds < 10**12 else None


def count_slots(exec_host: str) -> int:
    """Return the processors of ``h1/0*4+h2/1`` (OpenPBS), ``h1/0+h1/1`` or ``h1/0-7,9`` (TORQUE)."""
    total = 0
    for part in exec_host.split("+"):
        _, slash, slots = part.rpartition("/")
        if not slash:
            total += 1
            continue
        _, star, times = slots.partition("*")
        if star:
            total += int(times) if _WHOLE.fullmatch(times) else 1
            continue
        total += sum(array_size(span) or 1 for span in slots.split(","))
    return min(total, _MOST)


def hosts_of(exec_host: str) -> int:
    """Return how many different hosts ``exec_host`` names."""
    return len({part.rpartition("/")[0] or part for part in exec_host.split("+")})


def requested_processors(fields: dict[str, str]) -> int | None:
    """Return the processors that a job asked for; None if its record does not say.

    OpenPBS adds up the chunks of ``select`` in ``ncpus``. TORQUE has ``nodes=N:ppn=M(+...)``, ``procs=N`` or, on a
    Cray, ``mppwidth=N``, and may set ``ncpus=1`` or ``nodes=1`` by default beside them: there the largest counts.
    """
    ncpus = whole(fields, "Resource_List.ncpus")
    select = fields.get("Resource_List.select")
    if select is not None:
        return ncpus or _chunks(select) or None
    nodes = fields.get("Resource_List.nodes")
    known = [
        ncpus or 0,
        whole(fields, "Resource_List.procs") or 0,
        whole(fields, "Resource_List.mppwidth") or 0,
        0 if nodes is None else _chunks(nodes),
    ]
    return min(max(known), _MOST) or None


def asked_memory(fields: dict[str, str]) -> int | None:
    """Return the MB that a job asked for in all, rounded up: ``mem``, or the sum over the chunks of ``select``."""
    total = _bytes(fields.get("Resource_List.mem", ""))
    if total is None:
        sizes = [
            (count, _bytes(match[1]))
            for count, chunk in _counted(fields.get("Resource_List.select", ""))
            if (match := _CHUNK_SIZE.search(chunk))
        ]
        known = [count * size for count, size in sizes if size is not None]
        total = sum(known) if known else None
    return None if total is None else min(-(-total // (1 << 20)), 10**12)


def _bytes(text: str) -> int | None:
    """Return the bytes of ``4gb``, ``1024mb``, ``100kw`` (words); None if it is none of these."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    unit = _WORD if match[3].lower() == "w" else 1
    return int(match[1]) * int(1024 ** _SIZE_STEPS[match[2].lower()]) * unit


def requested_gpus(fields: dict[str, str]) -> int | None:
    """Return the GPUs that a job asked for in all; None if its record has neither that nor chunks."""
    total = fields.get("Resource_List.ngpus", "")
    if _WHOLE.fullmatch(total):
        return int(total)
    text = fields.get("Resource_List.select") or fields.get("Resource_List.nodes")
    if text is None:
        return None
    found = ((count, _CHUNK_GPUS.search(chunk)) for count, chunk in _counted(text))
    return min(sum(count * int(match[1]) for count, match in found if match), _MOST)


def depends_on(fields: dict[str, str]) -> str:
    """Return the ids of the jobs that had to end first (``depend=afterok:17.host:18.host``), with ``:`` between."""
    lists = _DEPENDENCY.findall(fields.get("depend", ""))
    ids = [job.partition("@")[0] for text in lists for job in text[1:].split(":")]
    return ":".join(dict.fromkeys(ids))


def _counted(text: str) -> list[tuple[int, str]]:
    """Return how often each chunk of ``select`` or ``nodes`` is asked for, and the chunk."""
    chunks = []
    for chunk in text.split("+"):
        head = re.split(r"[:#]", chunk, maxsplit=1)[0]
        chunks.append(((int(head) if _WHOLE.fullmatch(head) else 0) or 1, chunk))
    return chunks


def _chunks(text: str) -> int:
    """Return the processors of ``2:ncpus=4:mem=1gb+1:ncpus=2`` (select) or ``4:ppn=16+node2#shared`` (nodes).

    A chunk without a count is one, one without processors has one.
    """
    total = 0
    for count, chunk in _counted(text):
        ncpus, cpp = _NCPUS.search(chunk), _CPP.search(chunk)
        total += count * (int(ncpus[1]) if ncpus else 1) * (int(cpp[1]) if cpp else 1)
    return min(total, _MOST)


def vnode_processors(exec_vnode: str) -> int:
    """Return the sum of ncpus in ``(v1:ncpus=4:mem=2kb)+(v2:ncpus=2+v3:ncpus=1)``."""
    return min(sum(map(int, _VNODE_NCPUS.findall(exec_vnode))), _MOST)
