"""Reading the output of ``sacct -P``: columns by their header, whichever were asked for, as far as they suffice.

The lines of a block that have as many fields as the header are cut into columns, and of each column a text is read
once however often it comes. A line with more fields has a delimiter in a free text: every way to give the surplus to
the free texts is tried; if just one of them makes times, numbers and states of the other columns, that is how the line
was written, and it is read without its free texts. Otherwise it is dropped and counted; columns are never shifted.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.cells import Rows
from policyfactory.workload.accounting.record import NAMES, NUMBERS, RecordBlock, Remark, State, coded
from policyfactory.workload.accounting.sacct_cells import TIMES, Parsed, odd_term, parse
from policyfactory.workload.accounting.sacct_columns import Columns
from policyfactory.workload.accounting.slurm import (
    HET_ID,
    depends_on,
    one_cluster,
)
from policyfactory.workload.accounting.times import Clock

__all__ = ["read"]

_Mask = NDArray[np.bool_]
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
        self._read = self._unread = 0

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
        remarks = self._join(lines, fields, whole, short, number)
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
        self._unread += sum(remark.kind in _UNREAD for remark in remarks)
        if self._unread > _MOST_UNREAD and 2 * self._unread > number + len(lines):
            raise TraceFormatError(
                f"{self._path}: {self._unread:,} of the first {number + len(lines) - 1:,} lines have not the columns "
                "of the header; is this the whole output of sacct -P? print it again"
            )
        texts = lines if whole.all() else list(itertools.compress(lines, whole.tolist()))
        self._read += len(texts)
        compiled = self._read > _FEW_LINES and len(columns.delimiter.encode()) == 1
        block = self._records(Rows.of_lines(columns, number + np.flatnonzero(whole), texts, compiled=compiled), remarks)
        yield from sorted(remarks, key=lambda remark: remark.line)
        if block.job:
            yield block

    def _join(self, lines: list[str], fields: Int64Array, whole: _Mask, short: list[int], number: int) -> list[Remark]:
        """Join the pieces of lines that a free text with a line break cut, and return what is said of short lines."""
        pieces_of: dict[int, list[int]] = {}
        joined: list[tuple[int, str]] = []
        known, free = {*short}, 0
        for place in short:
            pieces, count = [place], int(fields[place])
            after = range(place + 1, min(place + _MOST_PIECES, len(lines)))
            for at in itertools.takewhile(lambda at: fields[at] < self._columns.width, after):
                if count >= self._columns.width:
                    break
                pieces.append(at)
                count += int(fields[at]) - 1
            line = self._columns.joined([lines[at] for at in pieces]) if place >= free and len(pieces) > 1 else None
            if line is not None:
                joined.append((place, line))
                pieces_of[place], free = pieces, pieces[-1] + 1
        remarks = []
        for place, line in self._sensible(joined) if joined else ():
            known -= {*pieces_of[place]}
            whole[place], lines[place] = True, line
            remarks.append(Remark(number + place, self._columns.job(line), "sacct.joined"))
        return remarks + [Remark(number + at, self._columns.job(lines[at]), "sacct.cut_off") for at in sorted(known)]

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
            matches = ((place, HET_ID.fullmatch(name)) for place, name in enumerate(jobs))
            groups = {place: match[1] for place, match in matches if match}
        names = tuple(_after(rows) if name == "after" else rows.coded(name) for name in NAMES)
        return RecordBlock(numbers, names, jobs, groups)

    @staticmethod
    def _odd_cells(rows: Rows, parsed: Parsed) -> Iterator[Remark]:
        """Give what is to be said of cells that cannot be read: of lines without a time, and of what is unknown now."""
        jobs, lost = rows.texts("id"), parsed.lost.copy()
        said = [(name, parsed.odd[name] & ~parsed.lost, "sacct.odd_cell") for name in parsed.odd]
        for name in TIMES:
            if name in parsed.odd:
                said.append((name, parsed.odd[name] & lost, "sacct.unreadable"))
                lost &= ~parsed.odd[name]
        for name, which, kind in said:
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
