"""The records of a log as columns of numbers: a million of them take no more than their digits."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.accounting.block import NAMES, NUMBERS, Block
from policyfactory.workload.accounting.passed import Passed
from policyfactory.workload.accounting.record import Limit, Record, State
from policyfactory.workload.accounting.report import Tally
from policyfactory.workload.swf.header import printable

__all__ = ["LIMITS", "STATES", "Gathering", "Table"]

# A number above this counts nothing that a cluster has: it is taken as unknown.
_LARGEST = 1 << 40
_MOST_RECORDS = 50_000_000
_NUMBERS = NUMBERS + NAMES
# Numbers that wait to be put into columns: those of some thousand records.
_BLOCK = len(_NUMBERS) << 13
_PARTS = re.compile(r"\d{1,15}", re.ASCII)

STATES = {state: number for number, state in enumerate(State)}
LIMITS = {limit: number for number, limit in enumerate(Limit)}
# Enumerations hash slowly.
_STATE_NUMBERS = {state.value: number for state, number in STATES.items()}
_LIMIT_NUMBERS = {limit.value: number for limit, number in LIMITS.items()}

Column = NDArray[np.int64]


@dataclasses.dataclass(slots=True, eq=False)
class Table:
    """Records as columns: int64 arrays of shape (n,), -1 where the log has no number.

    The columns are those of `Record`; ``state`` and ``limit_kind`` are places in `State` and `Limit`, names are
    places in ``names``. The rules change the columns.

    Parameters
    ----------
    job : list of str
        Ids as the site writes them.
    names : dict of str to list of str
        The names of each column that stands for names; place 0 is the empty name.
    again : dict of str to list of int
        Rows of each job that has more than one.
    het : dict of str to list of int
        Rows of the components of each het job.
    files : list of (int, str)
        First row and name of each file.
    """

    line: Column
    submit: Column
    eligible: Column
    start: Column
    end: Column
    elapsed: Column
    suspended: Column
    limit: Column
    requested: Column
    allocated: Column
    requested_nodes: Column
    allocated_nodes: Column
    tasks: Column
    state: Column
    limit_kind: Column
    user: Column
    group: Column
    account: Column
    partition: Column
    qos: Column
    job: list[str]
    names: dict[str, list[str]]
    again: dict[str, list[int]]
    het: dict[str, list[int]]
    files: list[tuple[int, str]]

    def __len__(self) -> int:
        return len(self.job)

    def place(self, row: int) -> str:
        """Return file and line of a row, for messages."""
        name = next(name for first, name in reversed(self.files) if first <= row)
        return f"{printable(name, 200)}:{self.line[row]}"

    def is_state(self, *states: State) -> NDArray[np.bool_]:
        """Return which rows have one of ``states``."""
        return np.isin(self.state, [STATES[state] for state in states])

    def is_limit(self, kind: Limit) -> NDArray[np.bool_]:
        """Return which rows have this kind of limit."""
        return np.equal(self.limit_kind, LIMITS[kind])

    def check_partitions(self, partitions: Collection[str], option: str) -> None:
        """Refuse partitions that the log does not have; a waiting job can name several, with commas between.

        Raises
        ------
        UsageError
            If one is not there, with those there are.
        """
        names = self.names["partition"]
        known = {part for name in names for part in name.split(",") if part}
        unknown = [name for name in partitions if name not in known and name not in names]
        if unknown:
            raise UsageError(
                f"{option} {printable(unknown[0], 60)}: no job was in it; the log has "
                f"{printable(', '.join(sorted(known)[:50]), 600) or 'no names of partitions'}"
            )

    def in_order(self, rows: Column) -> Column:
        """Return ``rows`` by submit time, then by the numbers in the job ids (7 before 12, 12_2 before 12_10)."""
        rows = rows[np.argsort(self.submit[rows], kind="stable")]
        submit = self.submit[rows]
        # Only jobs of the same second need their ids taken apart.
        tied = np.flatnonzero(np.r_[False, submit[1:] == submit[:-1]] | np.r_[submit[1:] == submit[:-1], False])
        if len(tied):
            keys = [(int(submit[at]), [int(part) for part in _PARTS.findall(self.job[rows[at]])[:4]]) for at in tied]
            order = sorted(range(len(tied)), key=keys.__getitem__)
            rows[tied] = rows[tied[order]]
        return rows


class _Codes(dict[str, int]):
    """Names as numbers, in order of appearance."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


class Gathering:
    """Collects what readers give.

    Parameters
    ----------
    tally : Tally
        Where what was passed over is counted.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._blocks: list[NDArray[np.int64]] = []
        self._names = {name: _Codes({"": 0}) for name in NAMES}
        self._first: dict[str, int] = {}
        self._job: list[str] = []
        self._again: dict[str, list[int]] = {}
        self._het: dict[str, list[int]] = {}
        self._files: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._job)

    def add(self, items: Iterable[Record | Passed | Block], path: str) -> None:
        """Add what a reader gives for one file.

        Raises
        ------
        WorkloadError
            If there are more than 50 million records.
        """
        self._files.append((len(self._job), path))
        user, group, account, partition, qos = (self._names[name] for name in NAMES)
        first, jobs = self._first.setdefault, self._job
        numbers: list[int | None] = []
        for item in items:
            if isinstance(item, Passed):
                self._tally.passed(item, path)
                continue
            if isinstance(item, Block):
                self._add_numbers(numbers, path)
                numbers = []
                self._add_many(item, path)
                continue
            numbers += (
                item.line, item.submit, item.eligible, item.start, item.end, item.elapsed, item.suspended, item.limit,
                item.requested, item.allocated, item.requested_nodes, item.allocated_nodes, item.tasks,
                _STATE_NUMBERS[item.state._value_], _LIMIT_NUMBERS[item.limit_kind._value_],
                user[item.user], group[item.group], account[item.account], partition[item.partition], qos[item.qos],
            )  # fmt: skip
            row, job = len(jobs), item.job
            jobs.append(job)
            before = first(job, row)
            if before != row:
                self._again.setdefault(job, [before]).append(row)
            if item.group_id is not None:
                self._het.setdefault(item.group_id, []).append(row)
            if len(numbers) >= _BLOCK:
                self._add_numbers(numbers, path)
                numbers = []
        self._add_numbers(numbers, path)

    def _add_many(self, block: Block, path: str) -> None:
        """Add records that are columns already."""
        begin, count = len(self._job), len(block.job)
        names = [self._coded(name, *codes) for name, codes in zip(NAMES, block.names, strict=True)]
        self._job += block.job
        rows = range(begin, begin + count)
        firsts = list(map(self._first.setdefault, block.job, rows))
        if firsts != list(rows):
            for job, before, row in zip(block.job, firsts, rows, strict=True):
                if before != row:
                    self._again.setdefault(job, [before]).append(row)
        for place, group in block.groups:
            self._het.setdefault(group, []).append(begin + place)
        self._add_columns(np.concatenate([block.numbers, names]), path)

    def _coded(self, name: str, codes: Column, texts: list[str]) -> Column:
        """Return a block's names as the numbers of this table; new ones are numbered by appearance."""
        found, firsts = np.unique(codes, return_index=True)
        numbers = np.zeros(len(texts), dtype=np.int64)
        for code in found[np.argsort(firsts)].tolist():
            numbers[code] = self._names[name][texts[code]]
        return numbers[codes]

    def _add_numbers(self, numbers: list[int | None], path: str) -> None:
        """Keep the numbers of some records as columns."""
        known = [-1 if number is None else number for number in numbers]
        try:
            flat = np.array(known, dtype=np.int64)
        except OverflowError:
            flat = np.array([max(-1, min(number, _LARGEST + 1)) for number in known], dtype=np.int64)
        self._add_columns(flat.reshape(-1, len(_NUMBERS)).T, path)

    def _add_columns(self, block: NDArray[np.int64], path: str) -> None:
        """Keep columns; what no cluster counts to is unknown, and counted."""
        begin = len(self._job) - block.shape[1]
        if begin + block.shape[1] > _MOST_RECORDS:
            raise WorkloadError(f"{path}: more than {_MOST_RECORDS:,} records in all; import fewer months at once")
        for row in np.flatnonzero((block > _LARGEST).any(axis=0)).tolist():
            self._tally.passed(
                Passed(
                    int(block[0, row]),
                    self._job[begin + row],
                    "records with numbers beyond what a cluster counts to",
                    "they are taken as unknown",
                    "changed",
                ),
                path,
            )
        block[(block < 0) | (block > _LARGEST)] = -1
        self._blocks.append(block)

    def table(self) -> Table:
        """Return the columns; nothing can be added afterwards."""
        empty = np.empty((len(_NUMBERS), 0), dtype=np.int64)
        columns = np.concatenate([empty, *self._blocks], axis=1)
        self._blocks.clear()
        self._first.clear()
        return Table(
            **dict(zip(_NUMBERS, columns, strict=True)),
            job=self._job,
            names={name: list(codes) for name, codes in self._names.items()},
            again=self._again,
            het=self._het,
            files=self._files,
        )
