"""Reading the output of ``sacct -P``: columns by their header, whichever were asked for, as far as they suffice.

The lines of a block that have as many fields as the header are cut into columns, and of each column a text is read
once however often it comes. A line with more fields has a delimiter in a free text: every way to give the surplus to
the free texts is tried; if just one of them makes times, numbers and states of the other columns, that is how the line
was written. Otherwise it is dropped and counted; columns are never shifted.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.cells import Rows, TextRows
from policyfactory.workload.accounting.record import LIMITS, NAMES, NUMBERS, STATES, Limit, RecordBlock, Remark, State
from policyfactory.workload.accounting.sacct_columns import Columns
from policyfactory.workload.accounting.slurm import (
    CELLS,
    CLOCK,
    CUT_OFF,
    HET_ID,
    LARGEST,
    MENDED,
    NO_FREE_TEXTS,
    SHIFTED,
    STEPS,
    WHAT_UNREADABLE,
    WHY_STEPS,
    ZONELESS,
    array_tasks,
    asked,
)
from policyfactory.workload.accounting.times import AMBIGUOUS, UNREADABLE, Clock, settle
from policyfactory.workload.header import printable

__all__ = ["read"]

_Int64Array = NDArray[np.int64]
_Mask = NDArray[np.bool_]

_NONE = -1
# Readings of lines with too many fields that are looked at together.
_MOST_READINGS = 10_000
_ZONELESS_LENGTH = 19
# A log of fewer lines is read in less time than the compiled kernels take to load.
_FEW_LINES = 10_000
_TIMES = ("submit", "start", "end")
_WHOLE = ("requested", "allocated", "requested_nodes", "allocated_nodes", "elapsed_raw")
_ID = re.compile(r"\d+(?:[_+](?:\d+|\[[^\]]*\]))?(?:\.\w+)?", re.ASCII)


@functools.lru_cache(maxsize=1 << 16)
def _value(kind: str, text: str) -> int:
    """Return the number that a cell holds, -1 if none, `UNREADABLE` if it cannot be what it is for."""
    try:
        number = CELLS[kind](text)
    except ValueError:
        return UNREADABLE
    return _NONE if number is None else max(_NONE, min(number, LARGEST + 1))


def _values(kind: str, codes: _Int64Array, texts: list[str]) -> _Int64Array:
    """Return the number that each of many cells holds; ``codes`` and ``texts`` are those of `Rows.coded`."""
    return np.array([_value(kind, text) for text in texts], dtype=np.int64)[codes]


@dataclasses.dataclass(slots=True, eq=False)
class _Parsed:
    """What the rows hold.

    Parameters
    ----------
    rows : Rows
        The rows.
    numbers : dict of str to int64 array (n,)
        The columns `NUMBERS`.
    readable : bool array (n,)
        Rows in which every value can be what its column is for.
    settled : list of (int, str)
        Rows whose times could mean two, and how that was settled.
    """

    rows: Rows
    numbers: dict[str, _Int64Array]
    readable: _Mask
    settled: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    def block(self, chosen: _Mask) -> RecordBlock:
        """Return the records of some rows."""
        rows = self.rows if chosen.all() else self.rows.where(chosen)
        numbers = np.array([self.numbers[name][chosen] for name in NUMBERS])
        job = rows.texts("id")
        groups = {}
        if "+" in "".join(job):
            matches = ((place, HET_ID.fullmatch(name)) for place, name in enumerate(job))
            groups = {place: match[1] for place, match in matches if match}
        return RecordBlock(numbers, tuple(rows.coded(name) for name in NAMES), job, groups)


def read(blocks: Iterable[list[str]], path: str, zone: dt.tzinfo | None) -> Iterator[RecordBlock | Remark]:
    """Give the records of ``sacct -P``.

    Parameters
    ----------
    blocks : iterable of list of str
        Lines without their ends: the header line, then a line for each job, run or step.
    path : str
        The file, for messages.
    zone : tzinfo or None
        Zone of times without one (None: UTC).

    Raises
    ------
    TraceFormatError
        If the header lacks what is needed, or the lines are of several clusters.
    """
    reader: _Reader | None = None
    number = 1
    for lines in blocks:
        begin = 0
        if reader is None:
            begin = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
            if begin < len(lines):
                reader = _Reader(path, zone, lines[begin], number + begin)
                begin += 1
        if reader is not None:
            yield from reader.block(lines[begin:], number + begin)
        number += len(lines)
    if reader is None:
        reader = _Reader(path, zone, "", 1)
    if reader.zoneless:
        yield Remark(*reader.first_zoneless, *ZONELESS, reader.zoneless)


class _Reader:
    """What is known while a file is read.

    Parameters
    ----------
    path : str
        The file, for messages.
    zone : tzinfo or None
        Zone of times without one.
    header : str
        Its header line.
    line : int
        Where it is.
    """

    def __init__(self, path: str, zone: dt.tzinfo | None, header: str, line: int) -> None:
        self.zoneless = 0
        self.first_zoneless = (0, "")
        self._path = path
        self._clock = Clock(zone or dt.UTC)
        self._columns = Columns(header, f"{path}:{line}")
        self._header_mark = f"{header.partition(self._columns.delimiter)[0]}{self._columns.delimiter}"
        self._cluster = ""
        self._read = 0

    def block(self, lines: list[str], number: int) -> Iterator[RecordBlock | Remark]:
        """Give what some lines hold, the first of which is line ``number`` of the file."""
        mark = self._header_mark
        # Dumps one after the other in one file: each has its header.
        headers = [place for place, line in enumerate(lines) if line.startswith(mark) and line != mark]
        begin = 0
        for header in headers:
            yield from self._under_one_header(lines[begin:header], number + begin)
            self._columns = Columns(lines[header], f"{self._path}:{number + header}")
            begin = header + 1
        yield from self._under_one_header(lines[begin:], number + begin)

    def _under_one_header(self, lines: list[str], number: int) -> Iterator[RecordBlock | Remark]:
        columns = self._columns
        delimiter, width = columns.delimiter, columns.width
        originals = lines
        if columns.closed:
            lines = [line.removesuffix(delimiter) for line in lines]
        fields = np.array([line.count(delimiter) for line in lines], dtype=np.int64) + 1
        whole = fields == width
        texts = lines if whole.all() else list(itertools.compress(lines, whole.tolist()))
        rows = self._rows_of(texts, number + np.flatnonzero(whole))
        others = [place for place in np.flatnonzero(~whole).tolist() if originals[place].strip()]
        odd = [(number + place, lines[place].split(delimiter)) for place in others]
        remarks: list[Remark] = []
        blocks: list[RecordBlock] = []
        for item in itertools.chain(self._whole(rows), self._odd(odd)):
            if isinstance(item, Remark):
                remarks.append(item)
            elif item.job:
                blocks.append(item)
        yield from sorted(remarks, key=lambda remark: remark.line)
        if blocks:
            yield blocks[0] if len(blocks) == 1 else RecordBlock.joined(blocks)

    def _rows_of(self, lines: list[str], numbers: _Int64Array) -> Rows:
        """Return the rows of lines with as many fields as the header."""
        columns = self._columns
        self._read += len(lines)
        if lines and self._read > _FEW_LINES:
            from policyfactory.workload.accounting.byte_cells import ByteRows

            return ByteRows.of_lines(columns, numbers, lines)
        fields = columns.delimiter.join(lines).split(columns.delimiter) if lines else []
        return TextRows(columns, numbers, [fields[place :: columns.width] for place in range(columns.width)])

    def _whole(self, rows: Rows) -> Iterator[RecordBlock | Remark]:
        """Give what the lines with as many fields as the header hold."""
        if "." in "".join(rows.texts("id")):
            steps = np.array(["." in job for job in rows.texts("id")], dtype=bool)
            # Without -X most lines are steps: they are counted together.
            first = int(np.argmax(steps))
            yield Remark(int(rows.lines[first]), rows.texts("id")[first], STEPS, WHY_STEPS, "skipped", int(steps.sum()))
            rows = rows.where(~steps)
        self._check_cluster(rows)
        parsed = self._parse(rows)
        texts = [(row, WHAT_UNREADABLE) for row in np.flatnonzero(~parsed.readable).tolist()]
        texts += [(row, CLOCK[how]) for row, how in parsed.settled]
        job = rows.texts("id") if texts else []
        for row, text in texts:
            yield Remark(int(rows.lines[row]), job[row], *text)
        self._count_zoneless(rows, parsed.readable)
        yield parsed.block(parsed.readable)

    def _check_cluster(self, rows: Rows) -> None:
        """Remember the cluster's name; a log of two cannot become one workload."""
        codes, names = rows.coded("cluster")
        for code, name in enumerate(names):
            if name and self._cluster and name != self._cluster:
                line = rows.lines[np.argmax(codes == code)]
                raise TraceFormatError(
                    f"{self._path}:{line}: cluster {printable(name, 60)!r} after {printable(self._cluster, 60)!r}; a "
                    "workload is of one machine: ask sacct for one cluster (-M NAME)"
                )
            self._cluster = name or self._cluster

    def _count_zoneless(self, rows: Rows, chosen: _Mask) -> None:
        """Count the records whose times depend on the zone."""
        if rows.numbers("submit") is not None:
            return
        local = chosen & np.array([len(text) == _ZONELESS_LENGTH for text in rows.texts("submit")], dtype=bool)
        if local.any():
            row = int(np.argmax(local))
            first = (int(rows.lines[row]), rows.texts("id")[row])
            if not self.zoneless or first[0] < self.first_zoneless[0]:
                self.first_zoneless = first
            self.zoneless += int(local.sum())

    def _parse(self, rows: Rows) -> _Parsed:
        """Read the cells of some rows."""
        numbers = {name: self._times(rows, name) for name in ("eligible", *_TIMES)}
        numbers |= {
            "line": rows.lines,
            "elapsed": self._elapsed(rows),
            "suspended": _values("suspended", *rows.coded("suspended")),
            "limit": self._first(rows, ("limit_raw", "limit_raw"), ("limit", "limit")),
            "limit_kind": self._first(rows, ("limit_raw", "limit_kind_raw"), ("limit", "limit_kind")),
            "requested": self._first(rows, ("requested", "count"), ("requested_tres", "cpus")),
            "allocated": self._first(rows, ("allocated", "count"), ("allocated_tres", "cpus")),
            "requested_nodes": self._first(rows, ("requested_nodes", "count"), ("requested_tres", "nodes")),
            "allocated_nodes": self._first(rows, ("allocated_nodes", "count"), ("allocated_tres", "nodes")),
            "tasks": np.ones(len(rows), dtype=np.int64),
            "state": _values("state", *rows.coded("state")),
        }
        readable = ~np.any([column == UNREADABLE for column in numbers.values()], axis=0)
        parsed = _Parsed(rows, numbers, readable)
        self._settle_times(parsed)
        self._settle_unfinished(parsed)
        self._settle_words(parsed)
        return parsed

    def _times(self, rows: Rows, term: str) -> _Int64Array:
        numbers = rows.numbers(term)
        return self._clock.column(rows.texts(term)) if numbers is None or not numbers.all() else numbers

    def _elapsed(self, rows: Rows) -> _Int64Array:
        numbers = rows.numbers("elapsed_raw")
        return self._first(rows, ("elapsed_raw", "elapsed_raw"), ("elapsed", "elapsed")) if numbers is None else numbers

    def _first(self, rows: Rows, first: tuple[str, str], other: tuple[str, str]) -> _Int64Array:
        """Return a column, or another one where it has nothing; both as (column, how its cells are read)."""
        (term, how), (other_term, other_how) = first, other
        codes, texts = rows.coded(term)
        numbers = _values(how, codes, texts)
        if "" in texts:
            empty = codes == texts.index("")
            numbers[empty] = _values(other_how, *rows.coded(other_term))[empty]
        return numbers

    def _settle_times(self, parsed: _Parsed) -> None:
        """Choose among times that can mean two, in the hour that comes twice when summer time ends."""
        rows, numbers = parsed.rows, parsed.numbers
        for row in np.flatnonzero(numbers["eligible"] == AMBIGUOUS).tolist():
            numbers["eligible"][row] = self._clock.read(rows.texts("eligible")[row])[0]
        ambiguous = np.any([numbers[name] == AMBIGUOUS for name in _TIMES], axis=0)
        texts = [rows.texts(name) for name in _TIMES] if ambiguous.any() else []
        for row in np.flatnonzero(ambiguous & parsed.readable).tolist():
            ran, rested = int(numbers["elapsed"][row]), int(numbers["suspended"][row])
            readings = [self._clock.read(column[row]) for column in texts]
            chosen, how = settle(readings, None if ran < 0 else ran + max(rested, 0))
            for name, time in zip(_TIMES, chosen, strict=True):
                numbers[name][row] = _NONE if time is None else time
            parsed.settled.append((row, how))

    @staticmethod
    def _settle_unfinished(parsed: _Parsed) -> None:
        """Take away what a line says of a run that is not over, or never was."""
        rows, numbers = parsed.rows, parsed.numbers
        pending = numbers["state"] == STATES[State.pending]
        numbers["end"][pending | (numbers["state"] == STATES[State.running])] = _NONE
        numbers["start"][pending] = _NONE
        nothing = numbers["allocated_nodes"] == 0
        if rows.has("allocated_tres"):
            codes, texts = rows.coded("allocated_tres")
            nothing |= np.array([not text for text in texts], dtype=bool)[codes]
        # A job cancelled in the queue shows AllocCPUS = ReqCPUS, though nothing was allocated (22.05.8, seen).
        numbers["allocated"][nothing & (numbers["elapsed"] <= 0)] = 0

    @staticmethod
    def _settle_words(parsed: _Parsed) -> None:
        """Take from the job id how many tasks wait, and from the submit line whether the limit was asked for."""
        rows, numbers = parsed.rows, parsed.numbers
        jobs = rows.texts("id")
        if "[" in "".join(jobs):
            numbers["tasks"] = np.array([array_tasks(job) if "[" in job else 1 for job in jobs], dtype=np.int64)
        if rows.has("submit_line"):
            lines = rows.texts("submit_line")
            for row in np.flatnonzero(numbers["limit_kind"] == LIMITS[Limit.given]).tolist():
                if numbers["limit"][row] in asked(lines[row]):
                    numbers["limit_kind"][row] = LIMITS[Limit.asked]

    def _odd(self, odd: list[tuple[int, list[str]]]) -> Iterator[RecordBlock | Remark]:
        """Give what can be made of lines, each with its number, that have not as many fields as the header."""
        waiting: list[tuple[int, str, list[list[str]]]] = []
        size = 0
        for number, fields in odd:
            place = self._columns.place["id"]
            job = fields[place] if place < len(fields) else ""
            if len(fields) < self._columns.width:
                yield Remark(number, job, *CUT_OFF)
                continue
            waiting.append((number, job, list(self._columns.placements(fields))))
            size += len(waiting[-1][2])
            if size >= _MOST_READINGS:
                yield from self._too_wide(waiting)
                waiting, size = [], 0
        if waiting:
            yield from self._too_wide(waiting)

    def _too_wide(self, lines: list[tuple[int, str, list[list[str]]]]) -> Iterator[RecordBlock | Remark]:
        """Give the one sensible reading of each line with too many fields; ``lines`` have (line, job, readings)."""
        readings = [(number, row) for number, _, rows in lines for row in rows]
        numbers = np.array([number for number, _ in readings], dtype=np.int64)
        cells: list[Sequence[str]] = [[row[place] for _, row in readings] for place in range(self._columns.width)]
        parsed = self._parse(TextRows(self._columns, numbers, cells))
        jobs = parsed.rows.texts("id")
        sensible: dict[int, dict[tuple[object, ...], int]] = {}
        kinds = parsed.numbers["limit_kind"]
        # The submit line is one of the texts that may hold the surplus: whether the limit was asked for is left open.
        kinds[kinds == LIMITS[Limit.asked]] = LIMITS[Limit.given]
        for row in np.flatnonzero(parsed.readable).tolist():
            values = {term: cells[place][row] for term, place in self._columns.place.items()}
            if self._is_sensible(parsed, row, values):
                content = (
                    *(int(parsed.numbers[name][row]) for name in NUMBERS),
                    *(values.get(name, "") for name in ("id", *NAMES)),
                )
                sensible.setdefault(int(numbers[row]), {}).setdefault(content, row)
        chosen = np.zeros(len(numbers), dtype=bool)
        for number, job, _ in lines:
            rows = list(sensible.get(number, {}).values())
            if len(rows) != 1:
                why = "it can be read in several ways" if rows else "no reading makes sense"
                yield Remark(number, job, SHIFTED, f"{why}; {NO_FREE_TEXTS}")
            elif "." in jobs[rows[0]]:
                yield Remark(number, job, STEPS, WHY_STEPS, "skipped")
            else:
                yield Remark(number, jobs[rows[0]], *MENDED)
                chosen[rows[0]] = True
        self._count_zoneless(parsed.rows, chosen)
        yield parsed.block(chosen)

    def _is_sensible(self, parsed: _Parsed, row: int, values: dict[str, str]) -> bool:
        """Tell whether every column that is read holds what it is for."""
        job = values["id"]
        if not _ID.fullmatch(job) or not all(values[name].isdigit() for name in _WHOLE if values.get(name)):
            return False
        for name, column in (("user", "uid"), ("group", "gid")):
            text = values.get(name, "")
            if self._columns.is_called(name, column) and not (text.isdigit() or ("." in job and not text)):
                return False
        return bool(parsed.numbers["state"][row] != STATES[State.unknown] and parsed.numbers["submit"][row] >= 0)
