"""The records of a log as columns of numbers: a million of them take no more than their digits."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.text import DAY, HOUR, MINUTE, counted, format_duration
from policyfactory.workload.accounting.record import NAMES, NUMBERS, Record, RecordBlock, Remark
from policyfactory.workload.header import printable
from policyfactory.workload.presets import FEW_MISSING

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
        """Return the column of a field of the records, one value a job."""
        if name not in NUMBERS + NAMES:
            raise AttributeError(name)
        return self._columns[name]

    def __len__(self) -> int:
        return len(self.job)

    def file(self, row: int) -> str:
        """Return the file of a row."""
        return next(name for first, name in reversed(self._files) if first <= row)

    def location(self, row: int) -> str:
        """Return file and line of a row, for messages."""
        return f"{printable(self.file(row), 200)}:{self.line[row]}"

    def remark(self, kind: str, row: int, count: int, word: str = "") -> Remark:
        """Return a remark on a row that stands for several."""
        return Remark(int(self.line[row]), self.job[row], kind, count, word)

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
            keys = [(int(submit[i]), [int(part) for part in _PARTS.findall(self.job[rows[i]])[:4]]) for i in tied]
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
        for row, group in block.groups.items():
            self._het.setdefault(group, []).append(begin + row)
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

    def note(self, kind: str, rows: Mask | list[int], word: str = "") -> None:
        """Count rows, and take away those that are dropped or merged.

        Parameters
        ----------
        kind : str
            Section and name in ``remarks.toml``.
        rows : bool array (n,) or list of int
            Of a mask those rows that are left, or those of a list.
        word : str
            What the kind leaves open.
        """
        if not isinstance(rows, list):
            rows = np.flatnonzero(rows & self.alive).tolist()
        if rows:
            remark = self.table.remark(kind, rows[0], int(self.table.tasks[rows].sum()), word)
            self.counter.remark(remark, self.table.file(rows[0]))
            if remark.action in {"dropped", "merged"}:
                self.alive[rows] = False


# What an import did ---------------------------------------------------------------------------------------------------

# Every record is a job of the new log, or is counted with the rule that took it away.


# Above this share one limit of a partition looks like a default that nobody asked for.
SUSPECT_SHARE = 0.3
_FEWEST_JOBS = 10


@dataclasses.dataclass(slots=True)
class ImportStep:
    """One rule and what it met.

    Parameters
    ----------
    action : str
        ``"skipped"`` (lines that are no records of their own), ``"dropped"``, ``"merged"`` (became one with another
        record), ``"changed"`` or ``"kept"`` (noticed, nothing done).
    count : int
        How many records, or lines.
    what : str
        What they have, and what was done.
    why : str
        Why that is right, or why it matters.
    first_job : str
        Id of the first of them.
    place : str
        Its file and line.
    expected : bool
        What was dropped was not wanted, or its job is there by another record: nothing is lost.
    value : str
        Column and cell of the first of them, where it is about one.
    """

    action: str
    count: int
    what: str
    why: str
    first_job: str
    place: str
    expected: bool = False
    value: str = ""

    @property
    def first(self) -> str:
        """The first of them in words, without the file's folder."""
        value = f": {self.value}" if self.value else ""
        return f"job {self.first_job or '?'} ({self.place.rpartition('/')[2]}){value}"


class StepCounter:
    """Counts what readers and rules remark; steps stay in the order in which they were met first."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str], ImportStep] = {}

    def remark(self, remark: Remark, path: str) -> None:
        """Count what a reader or a rule remarks; of those of one kind the first is named."""
        if not remark.count:
            return
        key = remark.action, remark.what
        if key not in self._steps:
            value = f"{printable(remark.column, 40)} is {printable(remark.value, 60)!r}" if remark.value else ""
            job, location = printable(remark.job, 40), f"{printable(path, 200)}:{remark.line}"
            self._steps[key] = ImportStep(
                action=remark.action,
                count=0,
                what=remark.what,
                why=remark.why,
                first_job=job,
                place=location,
                expected=remark.expected,
                value=value,
            )
        self._steps[key].count += remark.count

    def steps(self) -> tuple[ImportStep, ...]:
        """Return the steps, those that took something away first."""
        order = ("skipped", "dropped", "merged", "changed", "kept")
        return tuple(sorted(self._steps.values(), key=lambda step: order.index(step.action)))


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionLimits:
    """What the jobs of one partition request.

    Parameters
    ----------
    partition : str
        Its name.
    jobs : int
        Jobs in it.
    limited : int
        Of these, jobs with a number as limit.
    asked : int
        Of these, jobs whose submit line shows that the limit was asked for.
    commonest : int or None
        The most frequent limit that the log does not show to be asked for, s.
    share : float
        Its share of all limits of the partition.
    default : int or None
        The default that was given, s.
    """

    partition: str
    jobs: int
    limited: int
    asked: int
    commonest: int | None
    share: float
    default: int | None

    def question(self) -> str | None:
        """Return the question that the numbers ask, or None."""
        if self.default is not None or self.commonest is None:
            return None
        if self.share <= SUSPECT_SHARE or self.limited < _FEWEST_JOBS:
            return None
        name = printable(self.partition, 60) or "(none)"
        return (
            f"partition {name}: {100 * self.share:.0f} % of the limits are {format_duration(self.commonest)}; is that "
            f"the partition's default, which nobody asked for (scontrol show partition: DefaultTime, or MaxTime)? Then "
            f"say --default-limit {name}={_option(self.commonest)}, and --defaults unknown if it should not count as a "
            "request"
        )


def _option(seconds: int) -> str:
    """Return a time as an option takes it, with nothing left out: ``1d2h30m``."""
    parts = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", 1)):
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


@dataclasses.dataclass(frozen=True, slots=True)
class ImportReport:
    """The account of an import.

    Parameters
    ----------
    inputs : tuple of (str, str, str)
        Name, format and SHA-256 of each input.
    time_zone : str
        Zone of times without one, and of dates.
    time_zone_source : str
        Where the zone is from.
    zone_needed : bool
        The log has times that can be read only with a zone.
    unit : str
        What fields 5 and 8 count: ``"cpus"`` or ``"nodes"``.
    machine : int
        Processors (or nodes) of the machine.
    machine_source : str
        Where that number is from.
    peak : int
        Most processors (or nodes) in use at once.
    peak_time : str
        When that was so first.
    larger : int
        Jobs larger than the machine.
    records : int
        Records read; the waiting rest of an array counts with its tasks.
    jobs : int
        Jobs in the new log.
    begins, ends : int
        Unix time of the first submission and of the last end.
    steps : tuple of ImportStep
        What the rules did.
    partitions : tuple of PartitionLimits
        The limits of each partition.
    unrequested : dict of str to int
        Jobs that ran and have no requested time in the new log, by what the old one says of it.
    assumed : int or None
        Requested time in seconds given to jobs of which the log says none; None: no job was given one.
    lacking : tuple of str
        What the old log does not have and what that costs, in sentences.
    """

    inputs: tuple[tuple[str, str, str], ...]
    time_zone: str
    time_zone_source: str
    zone_needed: bool
    unit: str
    machine: int
    machine_source: str
    peak: int
    peak_time: str
    larger: int
    records: int
    jobs: int
    begins: int
    ends: int
    steps: tuple[ImportStep, ...]
    partitions: tuple[PartitionLimits, ...]
    unrequested: dict[str, int]
    assumed: int | None = None
    lacking: tuple[str, ...] = ()

    def count(self, action: str) -> int:
        """Return the sum over all steps with ``action``."""
        return sum(step.count for step in self.steps if step.action == action)

    def rows(self) -> list[list[str]]:
        """Return the steps as cells of a table: action, what, why, first, count."""
        return [[step.action, step.what, step.why, step.first, f"{step.count:,}"] for step in self.steps]

    def partition_rows(self) -> list[list[str]]:
        """Return the partitions as cells of a table.

        Name, jobs, with a limit, asked for, commonest limit that is not known to be asked for, its share, default.
        Where no submit line shows that a limit was asked for, the log may have none.
        """
        tells = any(partition.asked for partition in self.partitions)
        return [
            [
                printable(partition.partition, 60) or "(none)",
                f"{partition.jobs:,}",
                f"{partition.limited:,}",
                f"{partition.asked:,}" if tells else "-",
                f"- ({'all asked for' if partition.asked else 'no limits'})"
                if partition.commonest is None
                else format_duration(partition.commonest),
                "-" if partition.commonest is None else f"{100 * partition.share:.1f}",
                "-" if partition.default is None else format_duration(partition.default),
            ]
            for partition in self.partitions
        ]

    def questions(self) -> list[str]:
        """Return what only the site can answer."""
        return [question for partition in self.partitions if (question := partition.question()) is not None]

    def warnings(self) -> list[str]:
        """Return what will stop or mislead the commands that take the new log, each with its cure."""
        texts = (self._assumption(), self._no_requests(), self._small_machine(), self._many_dropped())
        return [text for text in texts if text]

    def _assumption(self) -> str:
        if self.assumed is None:
            return ""
        return (
            f"requested times of {format_duration(self.assumed)} are assumed where the log has none: backfilling "
            "(EASY) plans by requested times, so what it does on this log is an assumption too; the header says so, "
            "and evaluate and learn count these requests as invented"
        )

    def _no_requests(self) -> str:
        count = sum(self.unrequested.values())
        if not count:
            return ""
        verb = "has" if count == 1 else "have"
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in self.unrequested.items())
        cures = {"UNLIMITED": "--unlimited 7d", "Partition_Limit": "--partition-limit PARTITION=1d"}
        named = [cure for kind, cure in cures.items() if kind in self.unrequested]
        now = f"Import again with {' and '.join(named)}, as the site has it, or say" if named else "Say"
        few = count < FEW_MISSING * self.jobs
        so = (
            f"learn and evaluate leave them out, as they are fewer than {FEW_MISSING:.0%}"
            if few
            else "learn and evaluate ask what to make of them"
        )
        return (
            f"{count:,} of {self.jobs:,} jobs {verb} no requested time ({kinds}): field 9 is -1, and {so}. {now} "
            "later, to each command that takes the log, --estimate-missing drop (without these jobs), model (a request "
            "of the same user, or a drawn one) or runtime (as if their users had known the run time)"
        )

    def _small_machine(self) -> str:
        if self.machine >= max(self.peak, 1) and not self.larger:
            return ""
        words = "nodes" if self.unit == "nodes" else "processors"
        jobs = {0: "no job is", 1: "1 job is"}.get(self.larger, f"{self.larger:,} jobs are")
        dropped = "; cleaning, as in learn and evaluate, will drop them" if self.larger else ""
        peak = f"the log has {self.peak:,} {words} in use at once, first at {self.peak_time}"
        return (
            f"--processors {self.machine} is less than the log shows: {peak}, and {jobs} larger than {self.machine:,}"
            f"{dropped}. Give the machine's true size, or leave the option out"
        )

    def _many_dropped(self) -> str:
        dropped = sum(step.count for step in self.steps if step.action == "dropped" and not step.expected)
        if dropped <= self.jobs:
            return ""
        return (
            f"the rules dropped {dropped:,} records and left {self.jobs:,} jobs: are they right for this log? The "
            "table says which of them dropped how many"
        )

    def totals(self) -> str:
        """Return the totals in words."""
        names = {"cpus": "processors", "nodes": "nodes"}
        zone = (
            f"times in {self.time_zone} ({self.time_zone_source})"
            if self.zone_needed
            else f"its times are Unix seconds; dates are in {self.time_zone} ({self.time_zone_source})"
        )
        return (
            f"{counted(self.records, 'record')} of {counted(len(self.inputs), 'file')}: {counted(self.jobs, 'job')}, "
            f"{self.count('dropped'):,} dropped, "
            f"{self.count('merged'):,} merged; machine of {self.machine:,} {names[self.unit]} ({self.machine_source}); "
            f"{format_duration(self.ends - self.begins)} from the first submission to the last end; {zone}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "schema_version": 1,
            **dataclasses.asdict(self),
            "inputs": [dict(zip(("name", "format", "sha256"), row, strict=True)) for row in self.inputs],
            "dropped": self.count("dropped"),
            "merged": self.count("merged"),
            "questions": self.questions(),
            "warnings": self.warnings(),
        }
