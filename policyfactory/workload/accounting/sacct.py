"""Reading the output of ``sacct -P``: columns by their header, whichever were asked for, as far as they suffice."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Iterable, Iterator

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.passed import Passed
from policyfactory.workload.accounting.record import Limit, Record, State
from policyfactory.workload.accounting.sacct_columns import TERMS, WANTED, Columns
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
from policyfactory.workload.swf.header import printable

__all__ = ["File", "count_of", "items_of", "local_times", "open_file", "read", "suspended_time"]

_SHIFTED = "lines with more columns than the header: the delimiter stands in a job name or another free text"
_UNREADABLE = "lines with a time, number or word that is none"
_WHY_UNREADABLE = "damaged, or printed in a form that is not known; use SLURM_TIME_FORMAT=%s and --noconvert"


class _UnreadableError(ValueError):
    """A value that cannot be what its column is for."""


@dataclasses.dataclass(slots=True)
class File:
    """What is known while a file is read."""

    path: str
    clock: Clock
    columns: Columns
    first_name: str
    cluster: str = ""
    zoneless: bool = False  # the times of the line that was read last
    local: int = 0
    first_local: tuple[int, str] = (0, "")

    def count_zone(self, record: Record) -> None:
        """Count a record, the last that was read, if its times depend on the zone."""
        if self.zoneless:
            self.count_local(record.line, record.job, 1)

    def count_local(self, line: int, job: str, count: int) -> None:
        """Count records whose times depend on the zone; the first of them is ``job``."""
        if not self.local or line < self.first_local[0]:
            self.first_local = (line, job)
        self.local += count

    def record(self, fields: list[str], line: int) -> tuple[Record, str]:
        """Return the record of one line, and how its times were settled (empty: nothing to settle).

        Raises
        ------
        _UnreadableError
            If a value cannot be what its column is for.
        """
        (
            job, state, submit, eligible, start, end, elapsed_raw, elapsed, limit_raw, limit, requested, allocated,
            requested_nodes, allocated_nodes, allocated_tres, requested_tres, user, group, account, partition, qos,
            suspended, submit_line, _,
        ) = self.columns.pick([*fields, ""])  # fmt: skip
        try:
            ran = int(elapsed_raw) if elapsed_raw else (duration(elapsed) if elapsed else None)
            rested = suspended_time(suspended)
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
                count_of(requested) if requested else tres(requested_tres, "cpu"),
                count_of(allocated) if allocated else tres(allocated_tres, "cpu"),
                count_of(requested_nodes) if requested_nodes else tres(requested_tres, "node"),
                count_of(allocated_nodes) if allocated_nodes else tres(allocated_tres, "node"),
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
        if record.state is State.running or record.state is State.pending:
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


def count_of(text: str) -> int:
    """Return a count; sacct without --noconvert prints 2048 as 2K.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        return int(text)
    except ValueError:
        return int(text.removesuffix("K")) * 1024


def suspended_time(text: str) -> int | None:
    """Return the seconds of column Suspended; None if there is none.

    Raises
    ------
    ValueError
        If it is no time.
    """
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
    file = open_file(numbered, path, zone)
    for number, line in numbered:
        yield from items_of(file, number, line)
    yield from local_times(file)


def open_file(numbered: Iterator[tuple[int, str]], path: str, zone: dt.tzinfo | None) -> File:
    """Read the header line, the first that is not blank.

    Raises
    ------
    TraceFormatError
        If it lacks what is needed.
    """
    number, header = next(((number, line) for number, line in numbered if line.strip()), (1, ""))
    columns = Columns(header, f"{path}:{number}")
    return File(path, Clock(zone or dt.UTC), columns, header.partition(columns.delimiter)[0])


def items_of(file: File, number: int, line: str) -> Iterator[Record | Passed]:
    """Give what one line has.

    Raises
    ------
    TraceFormatError
        If it is a header that lacks what is needed, or of another cluster.
    """
    columns = file.columns
    fields = line.split(columns.delimiter)
    if columns.closed and fields[-1] == "":
        fields.pop()
    if len(fields) > 1 and fields[0] == file.first_name:
        # Dumps one after the other in one file: each has its header.
        file.columns = Columns(line, f"{file.path}:{number}")
    elif len(fields) == columns.width:
        if "." in fields[columns.job_at]:
            yield Passed(number, fields[columns.job_at], STEPS, WHY_STEPS, "skipped")
            return
        if columns.cluster_at < columns.width and fields[columns.cluster_at] != file.cluster:
            _one_cluster(file, fields[columns.cluster_at], number)
        try:
            record, told = file.record(fields, number)
        except _UnreadableError:
            yield Passed(number, fields[columns.job_at], _UNREADABLE, _WHY_UNREADABLE)
            return
        if told:
            yield _of_clock(record, told)
        file.count_zone(record)
        yield record
    elif line.strip():
        yield from _odd(file, fields, number)


def local_times(file: File) -> Iterator[Passed]:
    """Say, when all is read, how many lines had times that depend on the zone."""
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


def _odd(file: File, fields: list[str], number: int) -> Iterator[Record | Passed]:
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


def _sensible(file: File, row: list[str], number: int) -> Record | None:
    """Return the record of ``row`` if every column that is read holds what it is for.

    Whether the limit was asked for is left open: the submit line is one of the texts that may hold the surplus.
    """
    columns = file.columns
    values = dict(zip(WANTED, columns.pick([*row, ""]), strict=True))
    step = "." in values["id"]
    whole = ("requested", "allocated", "requested_nodes", "allocated_nodes", "elapsed_raw")
    if not _ID.fullmatch(values["id"]) or any(values[name] and not values[name].isdigit() for name in whole):
        return None
    for name, column in (("user", "uid"), ("group", "gid")):
        position = columns.positions[TERMS[name]]
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


def _one_cluster(file: File, name: str, number: int) -> None:
    """Remember the cluster's name; a log of two cannot become one workload."""
    if file.cluster and name and name != file.cluster:
        raise TraceFormatError(
            f"{file.path}:{number}: cluster {printable(name, 60)!r} after {printable(file.cluster, 60)!r}; a workload "
            "is of one machine: ask sacct for one cluster (-M NAME)"
        )
    file.cluster = name or file.cluster
