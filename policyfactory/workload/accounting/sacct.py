"""Reading the output of ``sacct -P``: columns by their header, whichever were asked for, as far as they suffice.

The lines of a block that have as many fields as the header are cut into columns, and of each column a text is read
once however often it comes. A line with more fields has a delimiter in a free text: every way to give the surplus to
the free texts is tried; if just one of them makes times, numbers and states of the other columns, that is how the line
was written, and it is read without its free texts. Otherwise it is dropped and counted; columns are never shifted.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from policyfactory.core.errors import TraceFormatError
from policyfactory.core.options import FloatArray, Int64Array, Mask
from policyfactory.workload.accounting.record import (
    CORRESPONDING,
    NAMES,
    NUMBERS,
    SINGLE,
    LimitKind,
    Record,
    RecordBlock,
    Remark,
    State,
    array_size,
    coded,
)
from policyfactory.workload.accounting.sacct_columns import Columns, Rows
from policyfactory.workload.accounting.times import AMBIGUOUS, UNREADABLE, Clock, duration, settle_rows
from policyfactory.workload.header import printable

# Readings of lines with too many fields that are looked at together.
_MOST_READINGS = 10_000
_ZONELESS_LENGTH = 19
# Lines that are looked at as pieces of one.
_MOST_PIECES = 20
# A log of fewer lines is read in less time than the compiled kernels take to load.
_FEW_LINES = 10_000
# So many lines that are no jobs, and most of those read, are no output of sacct.
_MOST_UNREAD = 100_000
_UNREAD = frozenset({"sacct.cut_off", "sacct.ambiguous", "sacct.senseless"})
_WHOLE = ("requested", "allocated", "requested_nodes", "allocated_nodes", "elapsed_raw")
_ID = re.compile(r"\d+(?:[_+](?:\d+|\[[^\]]*\]))?(?:\.\w+)?", re.ASCII)


def read(blocks: Iterable[list[str]], path: str, clock: Clock) -> Iterator[RecordBlock | Remark]:
    """Give the records of ``sacct -P``.

    Parameters
    ----------
    blocks : iterable of list of str
        Lines without their ends: the header line, then a line for each job, run or step.
    path : str
        The file, for messages.
    clock : Clock
        For its times.

    Raises
    ------
    TraceFormatError
        If the header lacks what is needed, or the lines are of several clusters.
    """
    log = _SacctLog(path, clock)
    number = 1
    for lines in blocks:
        yield from log.block(lines, number)
        number += len(lines)
    if not log.mark:
        # Says what is missing.
        Columns("", f"{path}:1")
    if log.zoneless:
        yield Remark(*log.first_zoneless, "sacct.zoneless", log.zoneless)


def _from_submit_lines(rows: Rows, read: Callable[[str], str]) -> tuple[Int64Array, list[str]]:
    """Return what is read in the submit lines, as numbers of the different texts, and these."""
    codes, texts = rows.coded("submit_line")
    again, found = coded([read(text) for text in texts])
    return again[codes], found


class _SacctLog:
    """What is known while a file is read.

    Parameters
    ----------
    path : str
        The file, for messages.
    clock : Clock
        For its times.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self.zoneless = 0
        self.first_zoneless = (0, "")
        # How the first header begins, so that others are known by it; empty: it has not come yet.
        self.mark = ""
        self._columns: Columns
        self._path, self._clock = path, clock
        self._cluster = ""
        self._read = self._unread = 0

    def block(self, lines: list[str], number: int) -> Iterator[RecordBlock | Remark]:
        """Give what some lines hold, the first of which is line ``number`` of the file."""
        if not any(lines):  # empty lines without end are no work
            return
        begin = 0
        for index, line in enumerate(lines):
            # Dumps one after the other in one file: each has its header.
            if line.startswith(self.mark) and line != self.mark and line.strip():
                yield from self._under_one_header(lines[begin:index], number + begin)
                self._columns = Columns(line, f"{self._path}:{number + index}")
                self.mark = self.mark or line.partition(self._columns.delimiter)[0] + self._columns.delimiter
                begin = index + 1
        yield from self._under_one_header(lines[begin:], number + begin)

    def _under_one_header(self, lines: list[str], number: int) -> Iterator[RecordBlock | Remark]:
        if not self.mark or not lines:
            return
        columns = self._columns
        originals = lines
        if columns.closed:
            lines = [line.removesuffix(columns.delimiter) for line in lines]
        fields = np.array([line.count(columns.delimiter) for line in lines], dtype=np.int64) + 1
        whole = fields == columns.width
        odd = [index for index in np.flatnonzero(~whole).tolist() if originals[index].strip()]
        short = [index for index in odd if fields[index] < columns.width]
        remarks = self._join(lines, fields, whole, short, number)
        wide = [index for index in odd if fields[index] > columns.width]
        readings = self._readings(lines, wide)
        for index in wide:
            if len(readings[index]) == 1:
                whole[index], lines[index] = True, readings[index][0]
                job = columns.job(lines[index])
                remarks += [] if "." in job else [Remark(number + index, job, "sacct.mended")]
            else:
                kind = "sacct.ambiguous" if readings[index] else "sacct.senseless"
                remarks.append(Remark(number + index, columns.job(lines[index]), kind))
        self._unread += sum(remark.kind in _UNREAD for remark in remarks)
        if self._unread > _MOST_UNREAD and 2 * self._unread > number + len(lines):
            raise TraceFormatError(
                f"{self._path}: {self._unread:,} of the first {number + len(lines) - 1:,} lines have not the columns "
                "of the header; is this the whole output of sacct -P? print it again"
            )
        texts = lines if whole.all() else list(itertools.compress(lines, whole.tolist()))
        self._read += len(texts)
        compiled = self._read > _FEW_LINES and columns.delimiter.isascii()
        block = self._records(Rows.of_lines(columns, number + np.flatnonzero(whole), texts, compiled=compiled), remarks)
        yield from sorted(remarks, key=lambda remark: remark.line)
        if block.job:
            yield block

    def _join(self, lines: list[str], fields: Int64Array, whole: Mask, short: list[int], number: int) -> list[Remark]:
        """Join the pieces of lines that a free text with a line break cut, and return what is said of short lines."""
        pieces_of: dict[int, list[int]] = {}
        joined: list[tuple[int, str]] = []
        known, free = {*short}, 0
        for index in short:
            pieces, count = [index], int(fields[index])
            after = range(index + 1, min(index + _MOST_PIECES, len(lines)))
            for following in itertools.takewhile(lambda following: fields[following] < self._columns.width, after):
                if count >= self._columns.width:
                    break
                pieces.append(following)
                count += int(fields[following]) - 1
            line = (
                self._columns.joined([lines[piece] for piece in pieces]) if index >= free and len(pieces) > 1 else None
            )
            if line is not None:
                joined.append((index, line))
                pieces_of[index], free = pieces, pieces[-1] + 1
        remarks = []
        for index, line in self._sensible(joined) if joined else ():
            known -= {*pieces_of[index]}
            whole[index], lines[index] = True, line
            remarks.append(Remark(number + index, self._columns.job(line), "sacct.joined"))
        cut_off = [Remark(number + row, self._columns.job(lines[row]), "sacct.cut_off") for row in sorted(known)]
        return remarks + cut_off

    def _records(self, rows: Rows, remarks: list[Remark]) -> RecordBlock:
        """Return the records of lines with as many fields as the header, and add what must be said about them."""
        jobs = rows.texts("id")
        if "." in "".join(jobs):
            steps = np.array(["." in job for job in jobs], dtype=bool)
            # Without -X most lines are steps: they are counted together.
            first = int(np.argmax(steps))
            remarks.append(Remark(int(rows.lines[first]), jobs[first], "sacct.steps", int(steps.sum())))
            rows = rows.where(~steps)
            jobs = rows.texts("id")
        self._check_cluster(rows)
        parsed = parse(rows, self._clock)
        remarks += [Remark(int(rows.lines[row]), jobs[row], f"sacct.{kind}") for row, kind in parsed.settled]
        remarks += self._odd_cells(rows, parsed)
        readable = ~parsed.lost
        self._count_zoneless(rows, readable)
        rows = rows if readable.all() else rows.where(readable)
        numbers = np.array([parsed.numbers[name][readable] for name in NUMBERS])
        jobs = rows.texts("id")
        groups = {}
        if "+" in "".join(jobs):
            matches = ((row, HET_ID.fullmatch(name)) for row, name in enumerate(jobs))
            groups = {row: match[1] for row, match in matches if match}
        names = tuple(
            _from_submit_lines(rows, _IN_SUBMIT_LINE[name]) if name in _IN_SUBMIT_LINE else rows.coded(name)
            for name in NAMES
        )
        return RecordBlock(numbers, names, jobs, groups)

    @staticmethod
    def _odd_cells(rows: Rows, parsed: Parsed) -> Iterator[Remark]:
        """Give what is to be said of cells that cannot be read: of lines without a time, and of what is unknown now."""
        jobs, lost = rows.texts("id"), parsed.lost.copy()
        odd = [(name, parsed.odd[name] & ~parsed.lost, "sacct.odd_cell") for name in parsed.odd]
        for name in TIMES:
            if name in parsed.odd:
                odd.append((name, parsed.odd[name] & lost, "sacct.unreadable"))
                lost &= ~parsed.odd[name]
        for name, which, kind in odd:
            row = int(np.argmax(which))
            if which[row] and name != "limit_kind":
                term = odd_term(rows, name, row)
                value = rows.columns.name_of(term), rows.texts(term)[row]
                yield Remark(int(rows.lines[row]), jobs[row], kind, int(which.sum()), *value)

    def _check_cluster(self, rows: Rows) -> None:
        """Remember the cluster's name; a log of two cannot become one workload."""
        codes, names = rows.coded("cluster")
        for code, name in enumerate(names):
            if name != self._cluster:
                line = rows.lines[np.argmax(codes == code)]
                self._cluster = one_cluster(name, self._cluster, f"{self._path}:{line}")

    def _count_zoneless(self, rows: Rows, chosen: Mask) -> None:
        """Count the records whose times depend on the zone."""
        if rows.numbers("submit") is not None:
            return
        local = chosen & np.array([len(text) == _ZONELESS_LENGTH for text in rows.texts("submit")], dtype=bool)
        if local.any():
            row = int(np.argmax(local))
            if not self.zoneless:
                self.first_zoneless = (int(rows.lines[row]), rows.texts("id")[row])
            self.zoneless += int(local.sum())

    def _readings(self, lines: list[str], wide: list[int]) -> dict[int, list[str]]:
        """Return the readings of lines with too many fields that make sense, by their places, without free texts."""
        sensible: dict[int, list[str]] = {index: [] for index in wide}
        tried: list[tuple[int, str]] = []
        for index in wide:
            tried += [(index, reading) for reading in self._columns.placements(lines[index])]
            if len(tried) >= _MOST_READINGS or index == wide[-1]:
                for line, reading in self._sensible(tried):
                    sensible[line].append(reading)
                tried = []
        return sensible

    def _sensible(self, readings: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Give the readings in which every column that is read holds what it is for; of equal ones the first."""
        places = np.array([index for index, _ in readings], dtype=np.int64)
        rows = Rows.of_lines(self._columns, places, [text for _, text in readings], compiled=False)
        parsed = parse(rows, self._clock, strict=True)
        numbers, jobs = parsed.numbers, rows.texts("id")
        sensible = ~np.any([np.zeros(len(rows), dtype=bool), *parsed.odd.values()], axis=0)
        sensible &= (numbers["state"] != State.unknown) & (numbers["submit"] >= 0)
        checks = [[_ID.fullmatch(job) is not None for job in jobs]]
        checks += [[not text or text.isdigit() for text in rows.texts(name)] for name in _WHOLE]
        for name, column in (("user", "uid"), ("group", "gid")):
            if self._columns.is_called(name, column):
                pairs = zip(rows.texts(name), jobs, strict=True)
                checks.append([text.isdigit() or ("." in job and not text) for text, job in pairs])
        sensible &= np.all(checks, axis=0)
        contents = [*(numbers[name].tolist() for name in NUMBERS), jobs, *map(rows.texts, NAMES)]
        different: dict[tuple[object, ...], tuple[int, str]] = {}
        for row in np.flatnonzero(sensible).tolist():
            different.setdefault(tuple(column[row] for column in contents), readings[row])
        return iter(different.values())


# What Slurm's accounting says -----------------------------------------------------------------------------------------

# What Slurm's accounting says, whatever form it is printed in: states, limits, job ids, submit lines.


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
MB = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_EACH = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)([nc]?)", re.ASCII)
# A type may begin with a digit (2080ti, 1g.5gb); a name without a number is one.
_GRES_GPUS = re.compile(r"(?:gres[:/])?gpu(?:[:=][^,]*?)??(?:[:=](\d{1,9}))?", re.ASCII)
_PARTITIONS = re.compile(r"(?<!\S)(?:-p[ =]?|--partition[ =])([\w.-]{1,100}(?:,[\w.-]{1,100}){1,50})(?!\S)")
_EXCLUSIVE = re.compile(r"(?<!\S)--exclusive(?!\S)")
_DEPENDS = re.compile(r"(?<!\S)(?:-d[ =]?|--dependency[ =])((?:after|singleton)[\w:,?+]{0,2000})(?!\S)", re.ASCII)
_DEPENDENCY = re.compile(r"after(ok|any|notok|corr|burstbuffer)((?::\d{1,10}(?:_\d{1,10})?)+)", re.ASCII)


def state_of(text: str) -> State:
    """Return the state that ``text`` begins with (``CANCELLED by 1000``); a new word is unknown."""
    return _STATES.get(text.partition(" ")[0].rstrip("+"), State.unknown)


def one_cluster(name: str, before: str, location: str) -> str:
    """Return the name of the cluster that a log is of, when ``name`` comes after ``before``; either may be empty.

    Raises
    ------
    TraceFormatError
        If they are two: such a log cannot become one workload.
    """
    if name and before and name != before:
        raise TraceFormatError(
            f"{location}: cluster {printable(name, 60)!r} after {printable(before, 60)!r}; a workload is of one "
            "machine: ask sacct for one cluster (-M NAME)"
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
    number = float(f"{match[1]}.{match[2] or 0}") * MB[match[3]]
    return min(math.ceil(number), LARGEST + 1)


def tres_gpus(text: str) -> int | None:
    """Return the GPUs of ``cpu=64,gres/gpu=4,gres/gpu:a100=4``: the sum of all types; 0 where none is named."""
    if not text:
        return None
    counts = _GPUS.findall(text)
    # The count without a type is that of all types.
    untyped = [int(count) for kind, count in counts if not kind]
    return untyped[0] if untyped else sum(int(count) for _, count in counts)


def gres_gpus(text: str) -> int | None:
    """Return the GPUs of ``gpu:a100:2(IDX:0-1),hbm:0`` or ``gres/gpu:a100=2``: the sum; None where it is empty."""
    if not text:
        return None
    parts = re.sub(r"\([^()]{0,200}\)", "", text).split(",")
    return sum(int(match[1] or 1) for part in parts if (match := _GRES_GPUS.fullmatch(part)))


def depends_on(submit_line: str) -> str:
    """Return the ids of the jobs that have to end first, with ``:`` between (``--dependency=afterok:17:18_2``).

    ``aftercorr:17`` gives ``17_`` and `CORRESPONDING`: of a task, the same task of array 17. ``singleton`` is `SINGLE`.
    ``after:20+5`` waits until job 20 has begun, not ended, and is left out.
    """
    ids: list[str] = []
    for text in _DEPENDS.findall(submit_line):
        for part in re.split("[,?]", text):
            if part == SINGLE:
                ids.append(part)
            elif match := _DEPENDENCY.fullmatch(part):
                named = match[2][1:].split(":")
                corresponds = match[1] == "corr"
                ids += [f"{name}_{CORRESPONDING}" if corresponds and "_" not in name else name for name in named]
    return ":".join(dict.fromkeys(ids))


def asks_for_partitions(submit_line: str) -> str:
    """Return the partitions in which a job may start, where a submit line names several (``-p fat,thin``)."""
    found = _PARTITIONS.search(submit_line)
    return "" if found is None else found[1]


# Of `NAMES`, those that are read in the submit line.
_IN_SUBMIT_LINE = {"after": depends_on, "partitions": asks_for_partitions}


def asks_for_nodes(submit_line: str) -> int | None:
    """Return 1 if a submit line asks for whole nodes (``--exclusive``), None if it does not say."""
    return 1 if _EXCLUSIVE.search(submit_line) else None


def read_limit(minutes: str, text: str) -> tuple[int | None, LimitKind]:
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
            return None, LimitKind.missing
        if word.upper() == "UNLIMITED":
            return None, LimitKind.unlimited
        if word == "Partition_Limit":
            return None, LimitKind.partition
        seconds = duration(word) if not minutes else None
    if seconds is None:
        raise ValueError(minutes or text)
    # A limit of zero asks for none (man page of sbatch).
    return (seconds, LimitKind.given) if seconds else (None, LimitKind.unlimited)


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
    record.partitions = asks_for_partitions(submit_line)
    record.array_limit = record.array_limit or array_limit(submit_line)
    if record.limit_kind is LimitKind.given and record.limit in asked(submit_line):
        record.limit_kind = LimitKind.asked


# The cells of ``sacct -P`` as numbers ---------------------------------------------------------------------------------

# From the column that has something, of one cell once however often it comes.


_Reader = Callable[[str], int | None]

_NONE = -1
TIMES = ("submit", "start", "end")


def _count(text: str) -> int:
    """Return a count; sacct without --noconvert prints 2048 as 2K."""
    return int(text.removesuffix("K")) * 1024 if text.endswith("K") else int(text)


def _suspended(text: str) -> int | None:
    seconds = duration(text) if text else None
    if text and seconds is None:
        raise ValueError(text)
    return seconds


# How columns of the table are read: from a column of the log or, where that one is empty, cannot be read or does not
# have the resource, from the next. What reads a cell gives a number from 0 or None, or raises ValueError.
_SOURCES: dict[str, tuple[tuple[str, _Reader], ...]] = {
    "elapsed": (("elapsed_raw", int), ("elapsed", duration)),
    "suspended": (("suspended", _suspended),),
    "limit": (
        ("limit_raw", lambda text: read_limit(text, "")[0]),
        ("limit", lambda text: read_limit("", text)[0]),
    ),
    "limit_kind": (
        ("limit_raw", lambda text: read_limit(text, "")[1]),
        ("limit", lambda text: read_limit("", text)[1]),
    ),
    "requested": (("requested", _count), ("requested_tres", lambda text: tres(text, "cpu"))),
    "allocated": (("allocated", _count), ("allocated_tres", lambda text: tres(text, "cpu"))),
    "requested_nodes": (("requested_nodes", _count), ("requested_tres", lambda text: tres(text, "node"))),
    "allocated_nodes": (("allocated_nodes", _count), ("allocated_tres", lambda text: tres(text, "node"))),
    "memory": (("requested_tres", tres_memory),),
    "gpus": (("requested_tres", tres_gpus),),
    "allocated_gpus": (("allocated_tres", tres_gpus),),
    "allocated_memory": (("allocated_tres", tres_memory),),
    "node_gpus": (("requested_gres", gres_gpus),),
    "node_allocated_gpus": (("allocated_gres", gres_gpus),),
    "exclusive": (("submit_line", asks_for_nodes),),
    "array_limit": (("submit_line", array_limit),),
    "state": (("state", state_of),),
}


@functools.lru_cache(maxsize=1 << 16)
def _value(how: _Reader, text: str) -> int:
    """Return the number that a cell holds, -1 if none, `UNREADABLE` if it cannot be what it is for."""
    if not text and how in {int, _count}:
        return _NONE
    try:
        number = how(text)
    except ValueError:
        return UNREADABLE
    return _NONE if number is None else max(_NONE, min(number, LARGEST + 1))


def _column(rows: Rows, source: tuple[str, _Reader], *others: tuple[str, _Reader], strict: bool = False) -> Int64Array:
    """Return a column of numbers from the first of some sources that has something in a row; see `_SOURCES`.

    ``strict``: a cell that cannot be read stays so, whatever the next source has.
    """
    term, how = source
    if how is int and (whole := rows.numbers(term)) is not None:
        return whole
    codes, texts = rows.coded(term)
    numbers = np.array([_value(how, text) for text in texts], dtype=np.int64)[codes]
    if any(rows.has(name) for name, _ in others):
        gone = np.array([not text for text in texts], dtype=bool)[codes]
        gone |= (numbers == _NONE) & term.endswith("_tres")
        if not strict:
            gone |= numbers == UNREADABLE
        if gone.any():
            other = _column(rows, *others, strict=strict)
            # What no other has stays unreadable.
            numbers[gone] = np.where(other == _NONE, numbers, other)[gone]
    return numbers


class Parsed(NamedTuple):
    """The cells of some rows as numbers.

    Parameters
    ----------
    numbers : dict of str to int64 array (n,)
        The columns `NUMBERS`.
    odd : dict of str to bool array (n,)
        Of columns with cells that cannot be what they are for, the rows in which that is so.
    lost : bool array (n,)
        Rows whose submission, start or end cannot be read.
    settled : list of (int, str)
        Rows whose times could mean two, and how that was settled.
    """

    numbers: dict[str, Int64Array]
    odd: dict[str, Mask]
    lost: Mask
    settled: list[tuple[int, str]]


def parse(rows: Rows, clock: Clock, *, strict: bool = False) -> Parsed:
    """Read the cells of some rows."""
    numbers = {}
    for term in ("eligible", *TIMES):
        whole = rows.numbers(term)
        numbers[term] = clock.column(rows.texts(term)) if whole is None or not whole.all() else whole
    numbers |= {name: _column(rows, *sources, strict=strict) for name, sources in _SOURCES.items()}
    numbers |= {"line": rows.lines, "tasks": np.ones(len(rows), dtype=np.int64)}
    _of_each(rows, numbers)
    odd = {name: mask for name, column in numbers.items() if (mask := column == UNREADABLE).any()}
    none = np.zeros(len(rows), dtype=bool)
    lost = odd.get("submit", none) | odd.get("start", none) | (odd.get("end", none) & (numbers["elapsed"] < 0))
    for name, mask in odd.items():
        numbers[name][mask] = LimitKind.missing if name == "limit_kind" else _NONE
    settled = _settle_times(rows, numbers, ~lost, clock)
    _settle_unfinished(rows, numbers)
    _settle_words(rows, numbers)
    return Parsed(numbers, odd, lost, settled)


def odd_term(rows: Rows, name: str, row: int) -> str:
    """Return what is read in the column of the log whose cell in a row cannot be what it is for."""
    for term, how in _SOURCES.get(name, ()):
        if rows.has(term) and _value(how, rows.texts(term)[row]) == UNREADABLE:
            return term
    return "requested_memory" if name == "memory" else name


def _of_each(rows: Rows, numbers: dict[str, Int64Array]) -> None:
    """Fill in memory and GPUs that old logs have for each node or core (ReqMem, ReqGRES, AllocGRES)."""
    nodes = np.where(numbers["allocated_nodes"] > 0, numbers["allocated_nodes"], numbers["requested_nodes"])
    for name in ("gpus", "allocated_gpus"):
        of_node = numbers.pop(f"node_{name}")
        numbers[name] = np.where((numbers[name] <= 0) & (of_node >= 0) & (nodes > 0), of_node * nodes, numbers[name])
    known = (numbers["memory"] >= 0) | (numbers["allocated_memory"] >= 0)
    if not rows.has("requested_memory") or known.all():
        return
    cores = np.where(numbers["requested"] > 0, numbers["requested"], numbers["allocated"])
    megabytes = memory_of_jobs(*rows.coded("requested_memory"), nodes, cores)
    total = np.minimum(np.ceil(np.nan_to_num(megabytes, nan=_NONE)), LARGEST + 1).astype(np.int64)
    numbers["memory"] = np.where(known, numbers["memory"], total)


def memory_of_jobs(codes: Int64Array, texts: list[str], nodes: Int64Array, cores: Int64Array) -> FloatArray:
    """Return the MB of jobs by cells like those of ReqMem: NaN for none, `UNREADABLE`.

    Parameters
    ----------
    codes : int64 array (n,)
        The cells as numbers of the different texts.
    texts : list of str
        These.
    nodes, cores : int64 array (n,)
        What each job asks for, -1 where it is not known: the memory may be that of each.
    """
    each = [_memory(text) for text in texts]
    of = np.array([kind for _, kind in each], dtype=np.int64)[codes]
    of = np.where(of == 1, nodes, np.where(of == 2, cores, 1))
    megabytes = np.array([size for size, _ in each])[codes]
    known = np.where((of > 0) & (megabytes > 0), megabytes * of, np.nan)
    return np.where(megabytes == UNREADABLE, float(UNREADABLE), known)


def _memory(text: str) -> tuple[float, int]:
    """Return the MB of a cell of ReqMem, and of what: 0 the whole job, 1 each node (``4Gn``), 2 each core.

    0 MB stands for none, as for all that a node has.
    """
    match = _EACH.fullmatch(text)
    if match is None:
        return (float(UNREADABLE) if text else 0.0), 0
    return float(match[1]) * MB[match[2]], {"": 0, "n": 1, "c": 2}[match[3]]


def _settle_times(rows: Rows, numbers: dict[str, Int64Array], readable: Mask, clock: Clock) -> list[tuple[int, str]]:
    """Choose among times that can mean two, since summer time ends in between, and return where and how."""
    for row in np.flatnonzero(numbers["eligible"] == AMBIGUOUS).tolist():
        numbers["eligible"][row] = clock.read(rows.texts("eligible")[row])[0]
    ambiguous = readable & np.any([numbers[name] == AMBIGUOUS for name in TIMES], axis=0)
    ran, rested = numbers["elapsed"], np.maximum(numbers["suspended"], 0)
    columns = {name: numbers[name] for name in TIMES}
    return settle_rows(columns, rows.texts, np.where(ran < 0, -1, ran + rested), ambiguous, clock)


def _settle_unfinished(rows: Rows, numbers: dict[str, Int64Array]) -> None:
    """Take away what a line says of a run that is not over, or never was."""
    pending = numbers["state"] == State.pending
    numbers["end"][pending | (numbers["state"] == State.running)] = _NONE
    numbers["start"][pending] = _NONE
    # ReqNodes is a minimum, and only the nodes that a job had show whether it wanted more.
    numbers["requested_nodes"][numbers["allocated_nodes"] <= 0] = _NONE
    nothing = numbers["allocated_nodes"] == 0
    # The sibling of a federated job that ran elsewhere (REVOKED) can show the times of that run.
    numbers["allocated"][nothing & (numbers["state"] == State.cancelled)] = 0
    if rows.has("allocated_tres"):
        codes, texts = rows.coded("allocated_tres")
        nothing |= np.array([not text for text in texts], dtype=bool)[codes]
    # A job cancelled in the queue shows AllocCPUS = ReqCPUS, though nothing was allocated (22.05.8, seen).
    numbers["allocated"][nothing & (numbers["elapsed"] <= 0)] = 0


def _settle_words(rows: Rows, numbers: dict[str, Int64Array]) -> None:
    """Take from job ids how many tasks wait, and may run at once, and from submit lines which limits were asked for."""
    jobs = rows.texts("id")
    if "[" in "".join(jobs):
        numbers["tasks"] = np.array([array_tasks(job) for job in jobs], dtype=np.int64)
        limits = np.array([limit_in_id(job) or _NONE for job in jobs], dtype=np.int64)
        numbers["array_limit"] = np.where(limits > 0, limits, numbers["array_limit"])
    if rows.has("submit_line"):
        lines = rows.texts("submit_line")
        for row in np.flatnonzero(numbers["limit_kind"] == LimitKind.given).tolist():
            if numbers["limit"][row] in asked(lines[row]):
                numbers["limit_kind"][row] = LimitKind.asked
