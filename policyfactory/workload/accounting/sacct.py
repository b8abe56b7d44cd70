"""Reading the output of ``sacct -P``: columns by their header, whichever were asked for, as far as they suffice."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import re
from collections.abc import Iterable, Iterator
from operator import itemgetter

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.passed import Passed
from policyfactory.workload.accounting.recommended import RECOMMENDED
from policyfactory.workload.accounting.record import Limit, Record, State
from policyfactory.workload.accounting.slurm import (
    HET_ID,
    STEPS,
    WHY_STEPS,
    array_tasks,
    mark_asked,
    read_limit,
    state_of,
    tres,
)
from policyfactory.workload.accounting.times import Clock, duration, settle
from policyfactory.workload.header import printable

__all__ = ["Columns", "read"]

# Columns that hold what users write, in which a delimiter can stand (22.05.8: JobName and SubmitLine, seen).
_FREE = frozenset({
    "jobname", "submitline", "workdir", "comment", "admincomment", "systemcomment", "constraints", "container", "wckey",
    "reason", "stdin", "stdout", "stderr", "extra", "licenses",
})  # fmt: skip

# What is read of a line, in this order: the first of each list that the header has.
_WANTED: dict[str, tuple[str, ...]] = {
    "id": ("jobid", "jobidraw"),
    "state": ("state",),
    "submit": ("submit",),
    "eligible": ("eligible",),
    "start": ("start",),
    "end": ("end",),
    "elapsed_raw": ("elapsedraw",),
    "elapsed": ("elapsed",),
    "limit_raw": ("timelimitraw",),
    "limit": ("timelimit",),
    "requested": ("reqcpus",),
    "allocated": ("alloccpus", "ncpus"),
    "requested_nodes": ("reqnodes",),
    "allocated_nodes": ("allocnodes", "nnodes"),
    "allocated_tres": ("alloctres",),
    "requested_tres": ("reqtres",),
    "user": ("uid", "user"),
    "group": ("gid", "group"),
    "account": ("account",),
    "partition": ("partition",),
    "qos": ("qos",),
    "suspended": ("suspended",),
    "submit_line": ("submitline",),
    "cluster": ("cluster",),
}
# What there must be: one column of each list.
_NEEDED = (
    ("JobID", "JobIDRaw"), ("State",), ("Submit",), ("Start",), ("End", "ElapsedRaw", "Elapsed"),
    ("TimelimitRaw", "Timelimit"), ("AllocCPUS", "ReqCPUS", "NCPUS", "AllocTRES"),
)  # fmt: skip
_MOST_PLACEMENTS = 2000
_TERMS = {name: place for place, name in enumerate(_WANTED)}

_SHIFTED = "lines with more columns than the header: the delimiter stands in a job name or another free text"
_UNREADABLE = "lines with a time, number or word that is none"
_WHY_UNREADABLE = "damaged, or printed in a form that is not known; use SLURM_TIME_FORMAT=%s and --noconvert"


class _UnreadableError(ValueError):
    """A value that can not be what its column is for."""


class Columns:
    """Where a header line says that things are.

    Parameters
    ----------
    header : str
        The header line.
    place : str
        File and line, for messages.

    Raises
    ------
    TraceFormatError
        If a column that is needed is missing, or there are two of one name.
    """

    def __init__(self, header: str, place: str) -> None:
        self.delimiter = "\x1f" if "\x1f" in header else "|"
        self.names = header.strip(" ").split(self.delimiter)
        # With -p in place of -P every line ends with a delimiter.
        self.closed = self.names[-1] == ""
        if self.closed:
            self.names.pop()
        known = [name.casefold() for name in self.names]
        double = next((name for name in self.names if known.count(name.casefold()) > 1), None)
        if double is not None:
            raise TraceFormatError(f"{place}: two columns are called {printable(double, 40)}; ask for it once")
        missing = [" or ".join(names) for names in _NEEDED if not any(name.casefold() in known for name in names)]
        if missing:
            raise TraceFormatError(
                f"{place}: no column {', no column '.join(missing)} among {printable(', '.join(self.names), 600)}; "
                f"ask for it: {RECOMMENDED}"
            )
        self.width = len(known)
        # Behind the last column stands an empty one, for all that the header does not have.
        self.positions = [
            next((known.index(name) for name in names if name in known), self.width) for names in _WANTED.values()
        ]
        self.tells_allocation = self.positions[_TERMS["allocated_tres"]] < self.width
        self.free = [place for place, name in enumerate(known) if name in _FREE]
        self.pick = itemgetter(*self.positions)

    def placements(self, fields: list[str]) -> Iterator[list[str]]:
        """Give the ways to read a line with too many fields: the surplus belongs to the free texts."""
        surplus = len(fields) - self.width
        for cuts in itertools.islice(
            itertools.combinations_with_replacement(range(len(self.free)), surplus), _MOST_PLACEMENTS
        ):
            rows, at = [], 0
            for column in range(self.width):
                more = sum(1 for cut in cuts if self.free[cut] == column)
                rows.append(self.delimiter.join(fields[at : at + 1 + more]))
                at += 1 + more
            yield rows

    def too_many_placements(self, fields: list[str]) -> bool:
        """Tell whether there are more ways than can be tried."""
        ways = 1
        for number in range(1, len(fields) - self.width + 1):
            ways = ways * (len(self.free) + number - 1) // number
        return ways > _MOST_PLACEMENTS


@dataclasses.dataclass(slots=True)
class _File:
    """What is known while a file is read."""

    path: str
    clock: Clock
    columns: Columns
    cluster: str = ""
    zoneless: bool = False  # the times of the line that was read last
    local: int = 0
    first_local: tuple[int, str] = (0, "")

    def count_zone(self, record: Record) -> None:
        """Count a record, the last that was read, if its times depend on the zone."""
        if self.zoneless:
            if not self.local:
                self.first_local = (record.line, record.job)
            self.local += 1

    def record(self, fields: list[str], line: int) -> tuple[Record, str]:
        """Return the record of one line, and how its times were settled (empty: nothing to settle).

        Raises
        ------
        _UnreadableError
            If a value can not be what its column is for.
        """
        (
            job, state, submit, eligible, start, end, elapsed_raw, elapsed, limit_raw, limit, requested, allocated,
            requested_nodes, allocated_nodes, allocated_tres, requested_tres, user, group, account, partition, qos,
            suspended, submit_line, _,
        ) = self.columns.pick([*fields, ""])  # fmt: skip
        try:
            ran = int(elapsed_raw) if elapsed_raw else (duration(elapsed) if elapsed else None)
            rested = _suspended(suspended)
            read = self.clock.read
            came, began, ended = read(submit), read(start), read(end)
            chosen: list[int | None] = [
                came[0] if came else None, began[0] if began else None, ended[0] if ended else None,
            ]  # fmt: skip
            told = ""
            if len(came) == 2 or len(began) == 2 or len(ended) == 2:
                chosen, told = settle((came, began, ended), None if ran is None else ran + (rested or 0))
            could_run = came if eligible == submit else read(eligible)
            record = Record(
                line,
                job,
                chosen[0],
                could_run[0] if could_run else None,
                chosen[1],
                chosen[2],
                ran,
                rested,
                *read_limit(limit_raw, limit),
                _count(requested) if requested else tres(requested_tres, "cpu"),
                _count(allocated) if allocated else tres(allocated_tres, "cpu"),
                _count(requested_nodes) if requested_nodes else tres(requested_tres, "node"),
                _count(allocated_nodes) if allocated_nodes else tres(allocated_tres, "node"),
                state_of(state),
                user,
                group,
                account,
                partition,
                qos,
            )
        except ValueError:
            raise _UnreadableError from None
        self.zoneless = len(submit) == 19
        if record.state in {State.running, State.pending}:
            record.end = None
        if record.state is State.pending:
            record.start = None
        if not ran and (record.allocated_nodes == 0 or (self.columns.tells_allocation and not allocated_tres)):
            # A job cancelled in the queue shows AllocCPUS = ReqCPUS, though nothing was allocated (22.05.8, seen).
            record.allocated = 0
        if "+" in job and (het := HET_ID.fullmatch(job)):
            record.group_id = het.group(1)
        if "[" in job:
            record.tasks = array_tasks(job)
        if submit_line:
            mark_asked(record, submit_line)
        return record, told


def _count(text: str) -> int:
    """Return a count; sacct without --noconvert prints 2048 as 2K."""
    try:
        return int(text)
    except ValueError:
        return int(text.removesuffix("K")) * 1024


def _suspended(text: str) -> int | None:
    if not text:
        return None
    if text == "00:00:00":
        return 0
    seconds = duration(text)
    if seconds is None:
        raise ValueError(text)
    return seconds


def read(lines: Iterable[str], path: str, zone: dt.tzinfo | None) -> Iterator[Record | Passed]:
    """Give the records of ``sacct -P``.

    A line with more fields than the header has a delimiter in a free text. Every way to give the surplus fields to
    the free texts is tried; if just one of them makes times, numbers and states of the other columns, that is how
    the line was written. Otherwise it is dropped and counted; columns are never shifted.

    Parameters
    ----------
    lines : iterable of str
        The header line, then a line for each job, run or step.
    path : str
        The file, for messages.
    zone : tzinfo or None
        Zone of times without one (None: UTC).

    Raises
    ------
    TraceFormatError
        If the header lacks what is needed, or the lines are of several clusters.
    """
    numbered = enumerate(lines, start=1)
    number, header = next(((number, line) for number, line in numbered if line.strip()), (1, ""))
    file = _File(path, Clock(zone or dt.UTC), Columns(header, f"{path}:{number}"))
    cluster = file.columns.positions[_TERMS["cluster"]]
    job_at = file.columns.positions[0]
    first_name = header.partition(file.columns.delimiter)[0]
    for number, line in numbered:
        fields = line.split(file.columns.delimiter)
        if file.columns.closed and fields[-1] == "":
            fields.pop()
        if fields[0] == first_name and len(fields) > 1:
            # Dumps one after the other in one file: each has its header.
            file.columns = Columns(line, f"{path}:{number}")
            cluster, job_at = file.columns.positions[_TERMS["cluster"]], file.columns.positions[0]
        elif len(fields) == file.columns.width:
            if "." in fields[job_at]:
                yield Passed(number, fields[job_at], STEPS, WHY_STEPS, "skipped")
                continue
            if cluster < file.columns.width and fields[cluster] != file.cluster:
                _one_cluster(file, fields[cluster], number)
            try:
                record, told = file.record(fields, number)
            except _UnreadableError:
                yield Passed(number, fields[job_at], _UNREADABLE, _WHY_UNREADABLE)
                continue
            if told:
                yield _of_clock(record, told)
            file.count_zone(record)
            yield record
        elif line.strip():
            yield from _odd(file, fields, number)
    if file.local:
        why = "they are local times of --time-zone; SLURM_TIME_FORMAT=%s needs none"
        yield Passed(*file.first_local, "lines with times that have no zone", why, "kept", file.local)


def _of_clock(record: Record, told: str) -> Passed:
    what = {
        "settled": "times in the hour that comes twice when summer time ends, settled by the run time",
        "guessed": "times in the hour that comes twice when summer time ends, taken as the earlier",
        "never": "times that never were, in the hour that summer time leaves out",
    }
    why = {
        "settled": "End - Start is the run time and Submit is not after Start in one reading only",
        "guessed": "nothing in the line tells; an hour too early at most (SLURM_TIME_FORMAT=%s has no such hour)",
        "never": "is --time-zone the zone of the site? taken as on a clock that nobody put forward",
    }
    return Passed(record.line, record.job, what[told], why[told], "changed" if told != "settled" else "kept")


def _odd(file: _File, fields: list[str], number: int) -> Iterator[Record | Passed]:
    """Give what can be made of a line that has not as many fields as the header."""
    columns = file.columns
    job = fields[columns.positions[0]] if columns.positions[0] < len(fields) else ""
    if len(fields) < columns.width:
        yield Passed(
            number,
            job,
            "lines with fewer columns than the header",
            "cut off, or a line break stands in a job name or another free text",
        )
        return
    found: list[Record] = []
    if columns.free and not columns.too_many_placements(fields):
        for row in columns.placements(fields):
            record = _sensible(file, row, number)
            if record is not None and record not in found:
                found.append(record)
    if len(found) != 1:
        why = "it can be read in several ways" if found else "no reading makes sense"
        yield Passed(number, job, _SHIFTED, f"{why}; do not ask sacct for free texts, or add --delimiter=$'\\x1f'")
    elif "." in found[0].job:
        yield Passed(number, job, STEPS, WHY_STEPS, "skipped")
    else:
        why = "times, numbers and state fit in one way only"
        yield Passed(number, found[0].job, f"{_SHIFTED}; one reading makes sense", why, "changed")
        file.count_zone(found[0])
        yield found[0]


_ID = re.compile(r"\d+(?:[_+](?:\d+|\[[^\]]*\]))?(?:\.\w+)?", re.ASCII)


def _sensible(file: _File, row: list[str], number: int) -> Record | None:
    """Return the record of ``row`` if every column that is read holds what it is for.

    Whether the limit was asked for is left open: the submit line is one of the texts that may hold the surplus.
    """
    columns = file.columns
    values = dict(zip(_WANTED, columns.pick([*row, ""]), strict=True))
    step = "." in values["id"]
    whole = ("requested", "allocated", "requested_nodes", "allocated_nodes", "elapsed_raw")
    if not _ID.fullmatch(values["id"]) or any(values[name] and not values[name].isdigit() for name in whole):
        return None
    for name, column in (("user", "uid"), ("group", "gid")):
        position = columns.positions[_TERMS[name]]
        numbered = position < columns.width and columns.names[position].casefold() == column
        if numbered and not (values[name].isdigit() or (step and not values[name])):
            return None
    try:
        record, _ = file.record(row, number)
    except _UnreadableError:
        return None
    if record.limit_kind is Limit.asked:
        record.limit_kind = Limit.given
    return record if record.state is not State.unknown and record.submit is not None else None


def _one_cluster(file: _File, name: str, number: int) -> None:
    """Remember the cluster's name; a log of two can not become one workload."""
    if file.cluster and name and name != file.cluster:
        raise TraceFormatError(
            f"{file.path}:{number}: cluster {printable(name, 60)!r} after {printable(file.cluster, 60)!r}; a workload "
            "is of one machine: ask sacct for one cluster (-M NAME)"
        )
    file.cluster = name or file.cluster
