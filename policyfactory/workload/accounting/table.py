"""The records of a log as columns of numbers: a million of them take no more than their digits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.accounting.record import NAMES, NUMBERS, Record, RecordBlock, Remark
from policyfactory.workload.accounting.report import StepCounter
from policyfactory.workload.header import printable

__all__ = ["RecordTable", "Sieve", "TableBuilder"]

# A number above this counts nothing that a cluster has: it is taken as unknown.
_LARGEST = 1 << 40
_MOST_RECORDS = 50_000_000
# Records that wait to be put into columns.
_BLOCK = 1 << 13
_PARTS = re.compile(r"\d{1,15}", re.ASCII)

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]


class RecordTable:
    """Records as columns: int64 arrays of shape (n,), -1 where the log has no number.

    The columns are attributes, those of `NUMBERS` and `NAMES`; names are places in ``names``. The rules change them.

    Parameters
    ----------
    columns : int64 array (28, n)
        `NUMBERS`, then `NAMES`.
    job : list of str
        Ids as the site writes them.
    names : dict of str to list of str
        The names of each column that stands for names; place 0 is the empty name.
    het : dict of str to list of int
        Rows of the components of each het job.
    files : list of (int, str)
        First row and name of each file.
    """

    def __init__(
        self,
        columns: Column,
        job: list[str],
        names: dict[str, list[str]],
        het: dict[str, list[int]],
        files: list[tuple[int, str]],
    ) -> None:
        self._columns: dict[str, Column] = dict(zip(NUMBERS + NAMES, columns, strict=True))
        self.job, self.names, self.het, self._files = job, names, het, files

    def __getattr__(self, name: str) -> Column:
        """Return a column."""
        if name not in NUMBERS + NAMES:
            raise AttributeError(name)
        return self._columns[name]

    def __len__(self) -> int:
        return len(self.job)

    def place(self, row: int) -> str:
        """Return file and line of a row, for messages."""
        name = next(name for first, name in reversed(self._files) if first <= row)
        return f"{printable(name, 200)}:{self.line[row]}"

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

    def again(self) -> list[list[int]]:
        """Return the rows of each job that has more than one."""
        first = dict(zip(reversed(self.job), range(len(self) - 1, -1, -1), strict=True))
        rows: dict[str, list[int]] = {}
        if len(first) < len(self):
            for row, job in enumerate(self.job):
                if first[job] != row:
                    rows.setdefault(job, [first[job]]).append(row)
        return list(rows.values())

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


class TableBuilder:
    """Collects what readers give.

    Parameters
    ----------
    counter : StepCounter
        Where the remarks of the readers are counted.
    """

    def __init__(self, counter: StepCounter) -> None:
        self._counter = counter
        self._columns = [np.empty((len(NUMBERS + NAMES), 0), dtype=np.int64)]
        self._names = {name: {"": 0} for name in NAMES}
        self._job: list[str] = []
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
                self._counter.remark(item, path)
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
        self._job += block.job
        if len(self._job) > _MOST_RECORDS:
            raise WorkloadError(f"{path}: more than {_MOST_RECORDS:,} records in all; import fewer months at once")
        for place, group in block.groups.items():
            self._het.setdefault(group, []).append(begin + place)
        columns = [*self._bounded(block, path)]
        for known, (codes, texts) in zip(self._names.values(), block.names, strict=True):
            numbers = [known.setdefault(text, len(known)) for text in texts]
            columns.append(np.array(numbers, dtype=np.int64)[codes])
        self._columns.append(np.array(columns))

    def _bounded(self, block: RecordBlock, path: str) -> Column:
        """Return the numbers of a block; what no cluster counts to is unknown, and counted."""
        numbers = block.numbers
        for row in np.flatnonzero((numbers > _LARGEST).any(axis=0)).tolist():
            self._counter.remark(Remark(int(numbers[0, row]), block.job[row], "table.huge"), path)
        return np.where((numbers < 0) | (numbers > _LARGEST), -1, numbers)

    def table(self) -> RecordTable:
        """Return the columns; nothing can be added afterwards."""
        columns = np.concatenate(self._columns, axis=1)
        self._columns.clear()
        names = {name: list(known) for name, known in self._names.items()}
        return RecordTable(columns, self._job, names, self._het, self._files)


class Sieve:
    """Which records are left, and the count of what becomes of the others.

    Parameters
    ----------
    table : RecordTable
        The records.
    counter : StepCounter
        Where it is counted.
    """

    def __init__(self, table: RecordTable, counter: StepCounter) -> None:
        self.table, self.counter = table, counter
        # Rows that stand for a job, and those that say when the machine was used: also runs that were thrown away.
        self.alive, self.used = np.ones((2, len(table)), dtype=bool)

    def drop(self, rows: Mask | list[int], what: str, why: str, *, expected: bool = False) -> None:
        """Drop rows: those of a mask that are left, or those of a list."""
        self.alive[self.count("dropped", rows, what, why, expected=expected)] = False

    def count(self, action: str, rows: Mask | list[int], what: str, why: str, *, expected: bool = False) -> list[int]:
        """Count rows, those of a mask that are left or those of a list, and return them."""
        if not isinstance(rows, list):
            rows = np.flatnonzero(rows & self.alive).tolist()
        if rows:
            jobs = int(self.table.tasks[rows].sum())
            place = self.table.place(rows[0])
            self.counter.add(action, what, why, jobs, self.table.job[rows[0]], place, expected=expected)
        return rows
