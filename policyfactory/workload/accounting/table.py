"""The records of a log as columns of numbers: a million of them take no more than their digits."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.accounting.record import (
    LIMITS,
    NAMES,
    NUMBERS,
    STATES,
    Limit,
    Record,
    RecordBlock,
    Remark,
    State,
)
from policyfactory.workload.accounting.report import Tally
from policyfactory.workload.header import printable

__all__ = ["RecordTable", "TableBuilder"]

# A number above this counts nothing that a cluster has: it is taken as unknown.
_LARGEST = 1 << 40
_MOST_RECORDS = 50_000_000
# Records that wait to be put into columns.
_BLOCK = 1 << 13
_PARTS = re.compile(r"\d{1,15}", re.ASCII)

Column = NDArray[np.int64]


@dataclasses.dataclass(slots=True, eq=False)
class RecordTable:
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


class TableBuilder:
    """Collects what readers give.

    Parameters
    ----------
    tally : Tally
        Where the remarks of the readers are counted.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._columns: list[NDArray[np.int64]] = []
        self._names = {name: _Codes({"": 0}) for name in NAMES}
        self._first: dict[str, int] = {}
        self._job: list[str] = []
        self._again: dict[str, list[int]] = {}
        self._het: dict[str, list[int]] = {}
        self._files: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._job)

    def add(self, items: Iterable[Record | RecordBlock | Remark], path: str) -> None:
        """Add what a reader gives for one file.

        Raises
        ------
        WorkloadError
            If there are more than 50 million records.
        """
        self._files.append((len(self._job), path))
        waiting: list[Record] = []
        for item in items:
            if isinstance(item, Remark):
                self._tally.remark(item, path)
            elif isinstance(item, RecordBlock):
                self._add(item, path)
            else:
                waiting.append(item)
                if len(waiting) >= _BLOCK:
                    self._add(RecordBlock.of(waiting), path)
                    waiting = []
        self._add(RecordBlock.of(waiting), path)

    def _add(self, block: RecordBlock, path: str) -> None:
        begin = len(self._job)
        rows = range(begin, begin + len(block.job))
        if rows.stop > _MOST_RECORDS:
            raise WorkloadError(f"{path}: more than {_MOST_RECORDS:,} records in all; import fewer months at once")
        self._job += block.job
        firsts = list(map(self._first.setdefault, block.job, rows))
        if firsts != list(rows):
            for job, first, row in zip(block.job, firsts, rows, strict=True):
                if first != row:
                    self._again.setdefault(job, [first]).append(row)
        for place, group in block.groups.items():
            self._het.setdefault(group, []).append(begin + place)
        names = [self._coded(name, *codes) for name, codes in zip(NAMES, block.names, strict=True)]
        self._columns.append(np.concatenate([self._bounded(block, path), names]))

    def _coded(self, name: str, codes: Column, texts: list[str]) -> Column:
        """Return a block's names as the numbers of this table."""
        numbers = self._names[name]
        return np.array([numbers[text] for text in texts], dtype=np.int64)[codes]

    def _bounded(self, block: RecordBlock, path: str) -> NDArray[np.int64]:
        """Return the numbers of a block; what no cluster counts to is unknown, and counted."""
        numbers = block.numbers
        for row in np.flatnonzero((numbers > _LARGEST).any(axis=0)).tolist():
            what, why = "records with numbers beyond what a cluster counts to", "they are taken as unknown"
            self._tally.remark(Remark(int(numbers[0, row]), block.job[row], what, why, "changed"), path)
        return np.where((numbers < 0) | (numbers > _LARGEST), -1, numbers)

    def table(self) -> RecordTable:
        """Return the columns; nothing can be added afterwards."""
        empty = np.empty((len(NUMBERS) + len(NAMES), 0), dtype=np.int64)
        columns = np.concatenate([empty, *self._columns], axis=1)
        self._columns.clear()
        self._first.clear()
        return RecordTable(
            **dict(zip(NUMBERS + NAMES, columns, strict=True)),
            job=self._job,
            names={name: list(codes) for name, codes in self._names.items()},
            again=self._again,
            het=self._het,
            files=self._files,
        )
