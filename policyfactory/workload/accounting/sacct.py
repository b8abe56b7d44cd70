"""Reading the output of ``sacct -P``: columns by their header, whichever were asked for, as far as they suffice.

The lines of a block that have as many fields as the header are cut into columns, and of each column a text is read
once however often it comes. A line with more fields has a delimiter in a free text: every way to give the surplus to
the free texts is tried; if just one of them makes times, numbers and states of the other columns, that is how the line
was written, and it is read without its free texts. Otherwise it is dropped and counted; columns are never shifted.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.workload.accounting.cells import Rows
from policyfactory.workload.accounting.record import NAMES, NUMBERS, Limit, RecordBlock, Remark, State, coded
from policyfactory.workload.accounting.sacct_columns import Columns
from policyfactory.workload.accounting.slurm import (
    HET_ID,
    LARGEST,
    array_limit,
    array_tasks,
    asked,
    asks_for_nodes,
    depends_on,
    limit_in_id,
    one_cluster,
    read_limit,
    state_of,
    tres,
    tres_gpus,
    tres_memory,
)
from policyfactory.workload.accounting.times import AMBIGUOUS, UNREADABLE, Clock, duration, settle

__all__ = ["read"]

_Mask = NDArray[np.bool_]
_Reader = Callable[[str], int | None]

_NONE = -1
# Readings of lines with too many fields that are looked at together.
_MOST_READINGS = 10_000
_ZONELESS_LENGTH = 19
# A log of fewer lines is read in less time than the compiled kernels take to load.
_FEW_LINES = 10_000
_TIMES = ("submit", "start", "end")
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
    log = _Log(path, clock)
    number = 1
    for lines in blocks:
        yield from log.block(lines, number)
        number += len(lines)
    if not log.mark:
        # Says what is missing.
        Columns("", f"{path}:1")
    if log.zoneless:
        yield Remark(*log.first_zoneless, "sacct.zoneless", log.zoneless)


def _count(text: str) -> int:
    """Return a count; sacct without --noconvert prints 2048 as 2K."""
    return int(text.removesuffix("K")) * 1024 if text.endswith("K") else int(text)


def _suspended(text: str) -> int | None:
    seconds = duration(text) if text else None
    if text and seconds is None:
        raise ValueError(text)
    return seconds


# How columns of the table are read: from a column of the log or, where that one is empty, from the next. What reads a
# cell gives a number from 0 or None, or raises ValueError.
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
    "memory": (("requested_tres", tres_memory), ("allocated_tres", tres_memory)),
    "gpus": (("requested_tres", tres_gpus), ("allocated_tres", tres_gpus)),
    "exclusive": (("submit_line", asks_for_nodes),),
    "array_limit": (("submit_line", array_limit),),
    "state": (("state", state_of),),
}


@functools.lru_cache(maxsize=1 << 16)
def _value(how: _Reader, text: str) -> int:
    """Return the number that a cell holds, -1 if none, `UNREADABLE` if it cannot be what it is for."""
    try:
        number = how(text)
    except ValueError:
        return UNREADABLE
    return _NONE if number is None else max(_NONE, min(number, LARGEST + 1))


def _column(rows: Rows, source: tuple[str, _Reader], *others: tuple[str, _Reader]) -> Int64Array:
    """Return a column of numbers from the first of some sources that has something in a row."""
    term, how = source
    if how is int and (whole := rows.numbers(term)) is not None:
        return whole
    codes, texts = rows.coded(term)
    numbers = np.array([_value(how, text) for text in texts], dtype=np.int64)[codes]
    if others and "" in texts:
        empty = codes == texts.index("")
        numbers[empty] = _column(rows, *others)[empty]
    return numbers


def _parse(rows: Rows, clock: Clock) -> tuple[dict[str, Int64Array], _Mask, list[tuple[int, str]]]:
    """Read the cells of some rows.

    Returns
    -------
    dict of str to int64 array (n,)
        The columns `NUMBERS`.
    bool array (n,)
        Rows in which every value can be what its column is for.
    list of (int, str)
        Rows whose times could mean two, and how that was settled.
    """
    numbers = {}
    for term in ("eligible", *_TIMES):
        whole = rows.numbers(term)
        numbers[term] = clock.column(rows.texts(term)) if whole is None or not whole.all() else whole
    numbers |= {name: _column(rows, *sources) for name, sources in _SOURCES.items()}
    numbers |= {"line": rows.lines, "tasks": np.ones(len(rows), dtype=np.int64)}
    readable = ~np.any([column == UNREADABLE for column in numbers.values()], axis=0)
    settled = _settle_times(rows, numbers, readable, clock)
    _settle_unfinished(rows, numbers)
    _settle_words(rows, numbers)
    return numbers, readable, settled


def _settle_times(rows: Rows, numbers: dict[str, Int64Array], readable: _Mask, clock: Clock) -> list[tuple[int, str]]:
    """Choose among times that can mean two, since summer time ends in between, and return where and how."""
    for row in np.flatnonzero(numbers["eligible"] == AMBIGUOUS).tolist():
        numbers["eligible"][row] = clock.read(rows.texts("eligible")[row])[0]
    settled = []
    ambiguous = readable & np.any([numbers[name] == AMBIGUOUS for name in _TIMES], axis=0)
    for row in np.flatnonzero(ambiguous).tolist():
        ran, rested = int(numbers["elapsed"][row]), int(numbers["suspended"][row])
        readings = [clock.read(rows.texts(name)[row]) for name in _TIMES]
        chosen, how = settle(readings, None if ran < 0 else ran + max(rested, 0))
        for name, time in zip(_TIMES, chosen, strict=True):
            numbers[name][row] = _NONE if time is None else time
        settled.append((row, how))
    return settled


def _settle_unfinished(rows: Rows, numbers: dict[str, Int64Array]) -> None:
    """Take away what a line says of a run that is not over, or never was."""
    pending = numbers["state"] == State.pending
    numbers["end"][pending | (numbers["state"] == State.running)] = _NONE
    numbers["start"][pending] = _NONE
    # ReqNodes is a minimum, and only the nodes that a job had show whether it wanted more.
    numbers["requested_nodes"][numbers["allocated_nodes"] <= 0] = _NONE
    nothing = numbers["allocated_nodes"] == 0
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
        for row in np.flatnonzero(numbers["limit_kind"] == Limit.given).tolist():
            if numbers["limit"][row] in asked(lines[row]):
                numbers["limit_kind"][row] = Limit.asked


def _after(rows: Rows) -> tuple[Int64Array, list[str]]:
    """Return the ids of the jobs that had to end first, as numbers of the different texts, and these."""
    codes, texts = rows.coded("submit_line")
    again, ids = coded([depends_on(text) for text in texts])
    return again[codes], ids


class _Log:
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
        self._read = 0

    def block(self, lines: list[str], number: int) -> Iterator[RecordBlock | Remark]:
        """Give what some lines hold, the first of which is line ``number`` of the file."""
        begin = 0
        for place, line in enumerate(lines):
            # Dumps one after the other in one file: each has its header.
            if line.startswith(self.mark) and line != self.mark and line.strip():
                yield from self._under_one_header(lines[begin:place], number + begin)
                self._columns = Columns(line, f"{self._path}:{number + place}")
                self.mark = self.mark or line.partition(self._columns.delimiter)[0] + self._columns.delimiter
                begin = place + 1
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
        odd = [place for place in np.flatnonzero(~whole).tolist() if originals[place].strip()]
        short = [place for place in odd if fields[place] < columns.width]
        remarks = [Remark(number + place, columns.job(lines[place]), "sacct.cut_off") for place in short]
        wide = [place for place in odd if fields[place] > columns.width]
        readings = self._readings(lines, wide)
        for place in wide:
            if len(readings[place]) == 1:
                whole[place], lines[place] = True, readings[place][0]
                job = columns.job(lines[place])
                remarks += [] if "." in job else [Remark(number + place, job, "sacct.mended")]
            else:
                kind = "sacct.ambiguous" if readings[place] else "sacct.senseless"
                remarks.append(Remark(number + place, columns.job(lines[place]), kind))
        texts = lines if whole.all() else list(itertools.compress(lines, whole.tolist()))
        self._read += len(texts)
        compiled = self._read > _FEW_LINES
        block = self._records(Rows.of_lines(columns, number + np.flatnonzero(whole), texts, compiled=compiled), remarks)
        yield from sorted(remarks, key=lambda remark: remark.line)
        if block.job:
            yield block

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
        columns, readable, settled = _parse(rows, self._clock)
        odd = [(row, "unreadable") for row in np.flatnonzero(~readable).tolist()]
        odd += settled
        remarks += [Remark(int(rows.lines[row]), jobs[row], f"sacct.{kind}") for row, kind in odd]
        self._count_zoneless(rows, readable)
        rows = rows if readable.all() else rows.where(readable)
        numbers = np.array([columns[name][readable] for name in NUMBERS])
        jobs = rows.texts("id")
        groups = {}
        if "+" in "".join(jobs):
            matches = ((place, HET_ID.fullmatch(name)) for place, name in enumerate(jobs))
            groups = {place: match[1] for place, match in matches if match}
        names = tuple(_after(rows) if name == "after" else rows.coded(name) for name in NAMES)
        return RecordBlock(numbers, names, jobs, groups)

    def _check_cluster(self, rows: Rows) -> None:
        """Remember the cluster's name; a log of two cannot become one workload."""
        codes, names = rows.coded("cluster")
        for code, name in enumerate(names):
            if name != self._cluster:
                line = rows.lines[np.argmax(codes == code)]
                self._cluster = one_cluster(name, self._cluster, f"{self._path}:{line}")

    def _count_zoneless(self, rows: Rows, chosen: _Mask) -> None:
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
        sensible: dict[int, list[str]] = {place: [] for place in wide}
        tried: list[tuple[int, str]] = []
        for place in wide:
            tried += [(place, reading) for reading in self._columns.placements(lines[place])]
            if len(tried) >= _MOST_READINGS or place == wide[-1]:
                for line, reading in self._sensible(tried):
                    sensible[line].append(reading)
                tried = []
        return sensible

    def _sensible(self, readings: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Give the readings in which every column that is read holds what it is for; of equal ones the first."""
        places = np.array([place for place, _ in readings], dtype=np.int64)
        rows = Rows.of_lines(self._columns, places, [text for _, text in readings], compiled=False)
        numbers, sensible, _ = _parse(rows, self._clock)
        jobs = rows.texts("id")
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
