"""The lines of a block of ``sacct -P``, column by column from their bytes.

Most lines of a log are plain: as many fields as the header, times that mean one second, numbers that are digits. Of a
column with words each different text is looked at once. Every other line is read by the functions of
`policyfactory.workload.accounting.sacct`, one by one, and put in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.workload.accounting.block import NAMES, NUMBERS, Block
from policyfactory.workload.accounting.cells import NOT_DIGITS, cut, digits, marks, same
from policyfactory.workload.accounting.passed import Passed
from policyfactory.workload.accounting.record import Record, State
from policyfactory.workload.accounting.sacct import File, count_of, items_of, suspended_time
from policyfactory.workload.accounting.sacct_columns import TERMS
from policyfactory.workload.accounting.slurm import STEPS, WHY_STEPS, read_limit, state_of, tres
from policyfactory.workload.accounting.table import LIMITS, STATES
from policyfactory.workload.accounting.times import duration

__all__ = ["Readers", "block_of"]

# What a column has in place of a number: none, or one that only the slow way can tell.
_NONE, _SLOW = -1, NOT_DIGITS
_MOST_REMEMBERED = 1 << 16
_KINDS = len(LIMITS)
_STEP_MARK, _PART_MARKS = np.frombuffer(b".", dtype=np.uint8), np.frombuffer(b"+[", dtype=np.uint8)

_Int64Array = NDArray[np.int64]
_RUNNING, _PENDING = STATES[State.running], STATES[State.pending]


class _Memo(dict[Any, int]):
    """A function of texts, remembered: most columns have few different texts.

    Parameters
    ----------
    function : callable
        Gives a number from 0, or None; a ValueError or a negative number leaves the line to the slow way.
    """

    def __init__(self, function: Callable[[Any], int | None]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, text: Hashable) -> int:
        try:
            found = self._function(text)
        except ValueError:
            found = _SLOW
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        number = self[text] = _NONE if found is None else found if found >= 0 else _SLOW
        return number


class Readers:
    """How the texts of each column are read.

    Parameters
    ----------
    file : File
        Whose clock is asked.
    """

    def __init__(self, file: File) -> None:
        self.time = _Memo(lambda text: _one(file.clock.read(text)))
        self.elapsed = _Memo(lambda texts: int(texts[0]) if texts[0] else duration(texts[1]) if texts[1] else None)
        self.suspended = _Memo(suspended_time)
        self.limit = _Memo(lambda texts: _limit_number(*texts))
        self.state = _Memo(lambda text: STATES[state_of(text)])
        self.cpus = _Memo(lambda texts: count_of(texts[0]) if texts[0] else tres(texts[1], "cpu"))
        self.nodes = _Memo(lambda texts: count_of(texts[0]) if texts[0] else tres(texts[1], "node"))


def _one(times: tuple[int, ...]) -> int | None:
    """Return the time that a text means; two are settled the slow way."""
    if len(times) > 1:
        raise ValueError(times)
    return times[0] if times else None


def _limit_number(minutes: str, text: str) -> int:
    """Return a limit and its kind as one number."""
    seconds, kind = read_limit(minutes, text)
    return (_NONE if seconds is None else seconds) * _KINDS + _KINDS + LIMITS[kind]


class _Cells:
    """The plain lines of a block, column by column.

    Parameters
    ----------
    data : bytes
        The block.
    edges : int64 array (n, width + 1)
        Where the cells of its plain lines are.
    positions : list of int
        The column of each of `TERMS`; one behind the last stands for empty cells.
    """

    def __init__(self, data: bytes, edges: _Int64Array, positions: list[int]) -> None:
        self._data, self.edges, self._positions = data, edges, positions
        self._text = np.frombuffer(data, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.edges)

    def has(self, term: str) -> bool:
        """Tell whether the log has the column."""
        return bool(self._positions[TERMS[term]] < self.edges.shape[1] - 1)

    def text(self, row: int, term: str) -> str:
        """Return one cell."""
        at = self._positions[TERMS[term]]
        return self._data[self.edges[row, at] : self.edges[row, at + 1] - 1].decode()

    def texts(self, term: str) -> list[str]:
        """Return all cells of a column."""
        at = self._positions[TERMS[term]]
        begins, ends = self.edges[:, at].tolist(), (self.edges[:, at + 1] - 1).tolist()
        data = self._data
        if data.isascii():
            text = data.decode("ascii")
            return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return [data[begin:end].decode() for begin, end in zip(begins, ends, strict=True)]

    def lengths(self, term: str) -> _Int64Array:
        """Return the characters of each cell of a column of digits and ASCII words."""
        at = self._positions[TERMS[term]]
        return self.edges[:, at + 1] - 1 - self.edges[:, at]

    def marked(self, term: str, wanted: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which cells have one of the bytes."""
        return marks(self._text, self.edges, self._positions[TERMS[term]], wanted)

    def coded(self, term: str) -> tuple[_Int64Array, list[str]]:
        """Return a column as numbers of its different texts, and these."""
        codes = np.zeros(len(self), dtype=np.int64)
        if not self.has(term):
            return codes, [""]
        firsts = same(self._text, self.edges, self._positions[TERMS[term]], codes)
        return codes, [self.text(row, term) for row in firsts.tolist()]

    def whole(self, term: str) -> _Int64Array | None:
        """Return a column of digits; None if a cell is something else."""
        numbers = np.empty(len(self), dtype=np.int64)
        if not self.has(term) or digits(self._text, self.edges, self._positions[TERMS[term]], numbers):
            return None
        return numbers

    def read(self, reader: _Memo, term: str, other: str = "") -> _Int64Array:
        """Return what ``reader`` makes of each cell, or of the cells of two columns."""
        codes, texts = self.coded(term)
        if not other:
            return _taken([reader[text] for text in texts], codes)
        more, others = self.coded(other)
        pairs, codes = np.unique(codes * len(others) + more, return_inverse=True)
        values = [reader[texts[pair // len(others)], others[pair % len(others)]] for pair in pairs.tolist()]
        return _taken(values, codes.reshape(-1))

    def times(self, reader: _Memo, term: str) -> _Int64Array:
        """Return a column of times."""
        numbers = self.whole(term)
        return self.read(reader, term) if numbers is None or not numbers.all() else numbers

    def counts(self, reader: _Memo, term: str, other: str) -> _Int64Array:
        """Return a column of numbers, or what another column says of them."""
        numbers = self.whole(term)
        return self.read(reader, term, other) if numbers is None else numbers


def _taken(values: list[int], codes: _Int64Array) -> _Int64Array:
    """Return the value of each code."""
    numbers = np.array(values, dtype=np.int64)
    return numbers.take(codes)


def block_of(file: File, readers: Readers, text: str, number: int) -> list[Passed | Block] | None:
    """Return what some lines have; None if they must be read one by one. Nothing is counted then."""
    header = file.columns
    data = text.encode()
    first = f"{file.first_name}{header.delimiter}"
    if text.startswith(first) or f"\n{first}" in text:
        return None
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
    edges = np.empty((len(ends), header.width + 1), dtype=np.int64)
    counts = cut(np.frombuffer(data, dtype=np.uint8), ends, ord(header.delimiter), int(header.closed), edges)
    wide = counts == header.width
    if not wide.any():
        return None
    cells = _Cells(data, edges[wide], header.positions)
    steps = cells.marked("id", _STEP_MARK)
    plain = np.flatnonzero(wide)[~steps]
    if not len(plain):
        return None
    passed: list[Passed] = []
    if steps.any():
        # Without -X most lines are steps: they are counted together.
        at = int(np.argmax(steps))
        line = number + int(np.flatnonzero(wide)[at])
        passed.append(Passed(line, cells.text(at, "id"), STEPS, WHY_STEPS, "skipped", int(steps.sum())))
        cells = _Cells(data, edges[plain], header.positions)
    if cells.has("cluster") and cells.coded("cluster")[1] != [file.cluster]:
        return None
    try:
        found = _numbers(cells, readers, number + plain)
    except OverflowError:
        return None
    slow = (found == _SLOW).any(axis=0) | cells.marked("id", _PART_MARKS)
    if cells.has("submit_line"):
        slow |= cells.lengths("submit_line") > 0
    records: list[Record] = []
    begins = np.concatenate([[0], ends[:-1] + 1])
    for at in np.union1d(np.flatnonzero(~wide), plain[slow]).tolist():
        row = data[begins[at] : ends[at]].decode().removesuffix("\r")
        for item in items_of(file, number + at, row):
            if isinstance(item, Passed):
                passed.append(item)
            else:
                records.append(item)
    zoneless = ~slow & (cells.lengths("submit") == 19)
    if zoneless.any():
        at = int(np.argmax(zoneless))
        file.count_local(int(found[0, at]), cells.text(at, "id"), int(zoneless.sum()))
    _settle(found, cells, tells_allocation=header.tells_allocation)
    made = _joined(found, cells, ~slow, records)
    return [*sorted(passed, key=lambda item: item.line), *([made] if made.job else [])]


def _numbers(cells: _Cells, readers: Readers, lines: _Int64Array) -> _Int64Array:
    """Return the rows of `NUMBERS`; `_SLOW` in what only the slow way can read.

    Raises
    ------
    OverflowError
        If a number has no place in 64 bits.
    """
    limits = cells.read(readers.limit, "limit_raw", "limit")
    rows = {name: cells.times(readers.time, name) for name in ("submit", "eligible", "start", "end")}
    rows |= {
        "line": lines,
        "elapsed": cells.counts(readers.elapsed, "elapsed_raw", "elapsed"),
        "suspended": cells.read(readers.suspended, "suspended"),
        "limit": np.where(limits < 0, limits, limits // _KINDS - 1),
        "limit_kind": np.where(limits < 0, limits, limits % _KINDS),
        "requested": cells.counts(readers.cpus, "requested", "requested_tres"),
        "allocated": cells.counts(readers.cpus, "allocated", "allocated_tres"),
        "requested_nodes": cells.counts(readers.nodes, "requested_nodes", "requested_tres"),
        "allocated_nodes": cells.counts(readers.nodes, "allocated_nodes", "allocated_tres"),
        "tasks": np.ones(len(cells), dtype=np.int64),
        "state": cells.read(readers.state, "state"),
    }
    return np.array([rows[name] for name in NUMBERS])


def _settle(found: _Int64Array, cells: _Cells, *, tells_allocation: bool) -> None:
    """Take away what a line says of a run that is not over, or never was; as `File.record` does."""
    row = dict(zip(NUMBERS, found, strict=True))
    pending = row["state"] == _PENDING
    row["end"][pending | (row["state"] == _RUNNING)] = _NONE
    row["start"][pending] = _NONE
    nothing = row["allocated_nodes"] == 0
    if tells_allocation:
        nothing |= cells.lengths("allocated_tres") == 0
    row["allocated"][nothing & (row["elapsed"] <= 0)] = 0


def _joined(found: _Int64Array, cells: _Cells, plain: NDArray[np.bool_], slow: list[Record]) -> Block:
    """Return the plain lines and the records of the others as one block, in the order of the lines."""
    job = cells.texts("id")
    names = [cells.coded(name) for name in NAMES]
    if plain.all() and not slow:
        return Block(found, tuple(names), job)
    rows = [
        [
            record.line, record.submit, record.eligible, record.start, record.end, record.elapsed, record.suspended,
            record.limit, record.requested, record.allocated, record.requested_nodes, record.allocated_nodes,
            record.tasks, STATES[record.state], LIMITS[record.limit_kind],
        ]
        for record in slow
    ]  # fmt: skip
    own = np.array([[_kept(number) for number in row] for row in rows], dtype=np.int64).reshape(-1, len(NUMBERS)).T
    numbers = np.concatenate([found[:, plain], own], axis=1)
    order = np.argsort(numbers[0], kind="stable")
    kept = np.flatnonzero(plain).tolist()
    jobs = [*(job[row] for row in kept), *(record.job for record in slow)]
    columns = []
    for name, (codes, texts) in zip(NAMES, names, strict=True):
        more = np.arange(len(texts), len(texts) + len(slow))
        columns.append(
            (np.concatenate([codes[plain], more])[order], [*texts, *(getattr(record, name) for record in slow)])
        )
    place_of = np.argsort(order)
    groups = [
        (int(place_of[len(kept) + place]), record.group_id)
        for place, record in enumerate(slow)
        if record.group_id is not None
    ]
    return Block(numbers[:, order], tuple(columns), [jobs[at] for at in order.tolist()], tuple(groups))


def _kept(number: int | None) -> int:
    """Return what 64 bits can hold of a number: the table tells what is too large."""
    return _NONE if number is None else max(_NONE, min(number, 1 << 62))
