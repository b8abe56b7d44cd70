"""Rows of a table as records of jobs, by a mapping; the rules of the import see no difference to accounting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.errors import TraceFormatError, UsageError
from policyfactory.core.options import Int64Array, Mask
from policyfactory.workload.accounting.importing import Imported, LogFormat, Zone, import_logs
from policyfactory.workload.accounting.options import ImportRules, Labels
from policyfactory.workload.accounting.record import NAMES, NUMBERS, LimitKind, RecordBlock, Remark, State
from policyfactory.workload.accounting.sacct import state_of
from policyfactory.workload.accounting.times import AMBIGUOUS, UNREADABLE, Clock, find_zone, settle_rows
from policyfactory.workload.header import printable
from policyfactory.workload.tables.cells import (
    LONGEST,
    UNLIMITED,
    Cells,
    Times,
    read_counts,
    read_durations,
    read_memory,
    read_names,
    read_times,
)
from policyfactory.workload.tables.mapping import COUNTS, DURATIONS, TIMES, Filter, MappedColumn, TableMapping
from policyfactory.workload.tables.parts import ParquetTable, TableFile, TextTable

# A deadline later than this after the start is none, but a date of another kind.
_LONGEST_LIMIT = 400 * 86400


@dataclasses.dataclass(frozen=True)
class FilteredRemark(Remark):
    """Rows that a filter of the mapping leaves out.

    Parameters
    ----------
    filtered : Filter
        The filter; the other parameters are those of `Remark`.
    """

    filtered: Filter = dataclasses.field(kw_only=True)

    @property
    def what(self) -> str:
        """Which rows are left out, by the filter's column and words."""
        cells = printable(", ".join(self.filtered.keep or self.filtered.drop), 80)
        return f"rows whose {printable(self.filtered.column, 60)} is {'not ' if self.filtered.keep else ''}{cells}"

    @property
    def why(self) -> str:
        """The reason that the mapping gives for the filter."""
        return printable(self.filtered.why, 200) or "the mapping leaves them out"


@dataclasses.dataclass(slots=True)
class TableReader:
    """Reads tables by a mapping.

    Parameters
    ----------
    mapping : TableMapping
        What their columns mean.
    clock : Clock
        For times without a zone.
    begin, end : int or None
        Rows submitted before ``begin`` or from ``end`` on, Unix seconds, are counted and left out: so a part of a large
        data set takes no more memory than its jobs.
    """

    mapping: TableMapping
    clock: Clock
    begin: int | None = None
    end: int | None = None
    _seen: dict[str, int] = dataclasses.field(default_factory=dict)

    def read(self, table: TextTable | ParquetTable) -> Iterator[RecordBlock | Remark]:
        """Give the records of a table.

        Raises
        ------
        TraceFormatError
            If a column is missing, or of another type than the mapping says, or no row can be read.
        """
        fields = self._chosen(table)
        filters = [rule.column for rule in self.mapping.filters]
        wanted = list(dict.fromkeys([column.name for column in fields.values()] + filters))
        records, unread = 0, ""
        for item in table.blocks(wanted):
            if isinstance(item, Remark):
                yield item
                continue
            lines, columns = item
            block = _Block(self, fields, lines, dict(zip(wanted, columns, strict=True)), table)
            block.read()
            unread = unread or block.fault
            records += int((~block.unreadable).sum())
            if not records and unread:
                break
            yield from block.given()
        if unread and not records:
            raise TraceFormatError(f"{table.source}{unread}; say how it is written in a --mapping of your own")

    def _chosen(self, table: TextTable | ParquetTable) -> dict[str, MappedColumn]:
        """Return the column of each field: of several the first that the table has."""
        chosen = {}
        for field, columns in self.mapping.fields.items():
            there = [column for column in columns if column.name in table.names]
            # None of them: the first, which the message names.
            chosen[field] = (there or list(columns))[0]
        return chosen

    def number(self, job: str) -> str:
        """Return an id of which there is no other yet; the first row with an id keeps it."""
        again = self._seen.get(job, 0)
        self._seen[job] = again + 1
        return job if not again else f"{job}:{again}"


class _Block:
    """Some thousand rows of a table on their way to records."""

    def __init__(
        self,
        reader: TableReader,
        fields: Mapping[str, MappedColumn],
        lines: Int64Array,
        cells: Mapping[str, Cells],
        table: TextTable | ParquetTable,
    ) -> None:
        self._reader, self._fields, self._lines, self._cells = reader, fields, lines, cells
        self._origin, self._mapping = table.origin, reader.mapping
        self._remarks: list[Remark] = []
        self._numbers: dict[str, Int64Array] = {}
        self._names: dict[str, tuple[Int64Array, list[str]]] = {}
        self.unreadable: Mask = np.zeros(len(lines), dtype=bool)
        # Where the first cell stands that cannot be read, and what it is.
        self.fault = ""

    def read(self) -> None:
        """Turn the cells into numbers and names; what cannot be read is marked, and remarked."""
        numbers = self._numbers
        times = {
            name: read_times(self._cells[column.name], column, self._reader.clock, self._origin)
            for name, column in self._of(TIMES)
        }
        for name, column in self._of(DURATIONS):
            if column.unit == "deadline":
                times[name] = read_times(
                    self._cells[column.name], MappedColumn(column.name, "date", column.none), self._reader.clock, 0
                )
            else:
                numbers[name] = read_durations(self._cells[column.name], column)
        for name, column in self._of(COUNTS):
            if name != "memory":
                absent = 0 if name == "gpus" else -1
                numbers[name] = read_counts(self._cells[column.name], column, absent=absent)
        if "memory" in self._fields:
            column = self._fields["memory"]
            nodes, cores = (
                np.where(
                    self._number(f"requested{of}") > 0, self._number(f"requested{of}"), self._number(f"allocated{of}")
                )
                for of in ("_nodes", "")
            )
            numbers["memory"] = read_memory(self._cells[column.name], column, nodes, cores)
        self._refuse({**numbers, **{name: time.values for name, time in times.items()}})
        self._settle(times)
        self._limits(times.get("limit"))
        for name in NAMES:
            if name in self._fields:
                column = self._fields[name]
                codes, names, cut = read_names(self._cells[column.name], column)
                self._names[name] = codes, names
                self._remark("tables.cut", cut)

    def _of(self, names: tuple[str, ...]) -> Iterator[tuple[str, MappedColumn]]:
        return ((name, self._fields[name]) for name in names if name in self._fields)

    def _number(self, name: str) -> Int64Array:
        known = self._numbers.get(name)
        return np.full(len(self._lines), -1, dtype=np.int64) if known is None else known

    def _remark(self, kind: str, rows: Mask | int) -> None:
        """Note rows, those of a mask or so many, with the line of the first."""
        count = rows if isinstance(rows, int) else int(rows.sum())
        if count:
            row = 0 if isinstance(rows, int) else int(np.argmax(rows))
            self._remarks.append(Remark(int(self._lines[row]), "", kind, count))

    def _refuse(self, columns: Mapping[str, Int64Array]) -> None:
        """Note the rows with a cell that cannot be read."""
        for name, values in columns.items():
            wrong = values == UNREADABLE
            if not wrong.any():
                continue
            column = self._fields[name]
            kind = (
                "time" if name in TIMES or column.unit == "deadline" else "duration" if name in DURATIONS else "count"
            )
            if not self.fault:
                row = int(np.argmax(wrong))
                text = printable(self._cells[column.name].texts()[row], 60)
                unit = f" in {column.unit}" if column.unit and kind != "count" else ""
                expected = {"time": "a time", "duration": "a duration", "count": "a number"}[kind]
                what = f"{printable(column.name, 60)} is {text!r}, {expected}{unit} is expected ({name})"
                self.fault = f":{self._lines[row]}: {what}"
            self._remark(f"tables.{kind}", wrong & ~self.unreadable)
            self.unreadable |= wrong

    def _settle(self, times: Mapping[str, Times]) -> None:
        """Put the times among the numbers; of times that can mean two, one is chosen."""
        columns = {name: column.values.copy() for name, column in times.items()}
        none = np.zeros(len(self._lines), dtype=bool)
        double = np.any([none, *(column == AMBIGUOUS for column in columns.values())], axis=0) & ~self.unreadable
        ran, rested = self._number("run_time"), np.maximum(self._number("suspended"), 0)
        held = np.where(ran < 0, -1, ran + rested)
        settled = settle_rows(columns, lambda name: times[name].texts, held, double, self._reader.clock)
        for kind in ("settled", "guessed", "never"):
            rows = none.copy()
            rows[[row for row, how in settled if how == kind]] = True
            self._remark(f"tables.{kind}", rows)
        self._numbers |= {name: np.maximum(column, -1) for name, column in columns.items()}
        if "wait" in self._numbers and "start" not in times:
            wait, submit = self._numbers["wait"], self._numbers["submit"]
            self._numbers["start"] = np.where((wait >= 0) & (submit >= 0), submit + wait, -1)

    def _limits(self, deadline: Times | None) -> None:
        """Put the limits, and what the table says about them, among the numbers."""
        limit = self._number("limit")
        if deadline is not None:
            start = self._number("start")
            given = (limit >= 0) & (start >= 0)
            apart = limit - start
            sensible = given & (apart > 0) & (apart <= _LONGEST_LIMIT)
            self._remark("tables.deadline", given & ~sensible & ~self.unreadable)
            limit = np.where(sensible, apart, -1)
        kind = np.full(len(limit), LimitKind.missing, dtype=np.int64)
        kind[limit > 0] = LimitKind.given
        kind[limit == UNLIMITED] = LimitKind.unlimited
        self._numbers["limit"], self._numbers["limit_kind"] = np.where(limit > 0, limit, -1), kind

    def given(self) -> Iterator[RecordBlock | Remark]:
        """Give the records that are wanted, and what is to be said of the others."""
        yield from self._remarks
        good = ~self.unreadable
        for rule in self._mapping.filters:
            codes, texts = self._cells[rule.column].coded()
            named = np.array([text.strip() in (rule.keep or rule.drop) for text in texts], dtype=bool)[codes]
            out = good & (~named if rule.keep else named)
            if out.any():
                yield FilteredRemark(
                    int(self._lines[np.argmax(out)]), "", "tables.filtered", int(out.sum()), filtered=rule
                )
            good &= ~out
        submit, begin, end = self._numbers["submit"], self._reader.begin, self._reader.end
        outside = np.zeros(len(submit), dtype=bool)
        if begin is not None:
            outside |= submit < begin
        if end is not None:
            outside |= submit >= end
        outside &= good & (submit > 0)
        if outside.any():
            yield Remark(int(self._lines[np.argmax(outside)]), "", "tables.outside", int(outside.sum()))
        yield self._records(np.flatnonzero(good & ~outside))

    def _records(self, rows: Int64Array) -> RecordBlock:
        known: dict[str, Any] = {
            **self._numbers,
            "line": self._lines,
            "tasks": np.ones(len(self._lines), dtype=np.int64),
        }
        known["elapsed"] = known.pop("run_time", None)
        known["state"] = self._states()
        if not self._mapping.machine.shared:
            known.setdefault("exclusive", np.ones(len(self._lines), dtype=np.int64))
        none = np.full(len(self._lines), -1, dtype=np.int64)
        numbers = [np.maximum(none if known.get(name) is None else known[name], -1)[rows] for name in NUMBERS]
        names = []
        for name in NAMES:
            codes, texts = self._names.get(name, (np.zeros(len(self._lines), dtype=np.int64), [""]))
            names.append((codes[rows], texts))
        return RecordBlock(np.array(numbers, dtype=np.int64), tuple(names), self._jobs(rows))

    def _states(self) -> Int64Array:
        if "state" not in self._fields:
            return np.full(len(self._lines), State.unknown, dtype=np.int64)
        codes, texts = self._cells[self._fields["state"].name].coded()
        words = self._mapping.states
        if not words:
            return np.array([state_of(text.strip().upper()) for text in texts], dtype=np.int64)[codes]
        meaning = [words.get(text.strip(), words.get("*", "unknown")) for text in texts]
        return np.array([State[state] for state in meaning], dtype=np.int64)[codes]

    def _jobs(self, rows: Int64Array) -> list[str]:
        """Return the ids of rows; a row without one is called by its line."""
        if "job" in self._fields:
            column = self._fields["job"]
            if column.none or column.after or column.before:
                codes, names, _ = read_names(self._cells[column.name], column)
                jobs = [names[code] for code in codes[rows].tolist()]
            else:
                # Nearly all differ: numbers of the different ones would be no help.
                texts = self._cells[column.name].texts()
                jobs = [texts[row].strip()[:LONGEST] for row in rows.tolist()]
        else:
            jobs = [""] * len(rows)
        jobs = [job or f"row {line}" for job, line in zip(jobs, self._lines[rows].tolist(), strict=True)]
        if self._mapping.repeated == "jobs":
            jobs = [self._reader.number(job) for job in jobs]
        return jobs


# From published tables of jobs to one log -----------------------------------------------------------------------------

# The import of accounting logs, with a mapping as the format.


def _format(mapping: TableMapping, rules: ImportRules) -> LogFormat:
    """Return a mapping as a format of the import; the period of the rules is applied while the tables are read."""
    known, cores = mapping.machine, 1 if rules.unit == "nodes" else mapping.machine.cores_per_node
    machine = None
    if known.nodes is not None and cores is not None and not rules.partitions:
        machine = known.nodes * cores, f"the whole machine, by the mapping {mapping.name}"
    # One for all inputs: ids that begin anew in each file are told apart.
    reader = TableReader(mapping, Clock(), rules.begin, rules.end)

    def opened(path: Path | str, clock: Clock) -> tuple[TableFile, Iterator[RecordBlock | Remark]]:
        reader.clock, file = clock, TableFile(path, mapping)
        return file, (item for table in file.tables() for item in reader.read(table))

    nothing = "no row of it is a job; is it the table, and the whole of it?"
    return LogFormat(mapping.name, opened, nothing, machine)


def zone_of(mapping: TableMapping) -> Zone:
    """Return the zone that a mapping names.

    Raises
    ------
    UsageError
        If this computer knows none of that name.
    """
    return Zone(find_zone(mapping.zone), mapping.zone, f"by the mapping {mapping.name}; --time-zone names another")


def import_tables(
    paths: Sequence[Path | str],
    mapping: TableMapping,
    *,
    rules: ImportRules | None = None,
    labels: Labels | None = None,
    zone: Zone | None = None,
    processors: int | None = None,
    without_limits: bool = False,
) -> Imported:
    """Read tables of jobs and return their jobs as one log.

    Parameters
    ----------
    paths : sequence of Path or str
        Parquet, text, or archives of them; parts of one data set in any order.
    mapping : TableMapping
        What their columns mean.
    rules : ImportRules, optional
        What to keep, drop and change; default: all jobs in the unit of the mapping.
    labels : Labels, optional
        What the header says; the machine and the source are the mapping's where they are not given.
    zone : Zone, optional
        Zone of times that have none (default: that of the mapping).
    processors : int, optional
        Processors (or nodes) of the machine; default: what the mapping says, or the most in use at once.
    without_limits : bool
        A table without requested times is wanted, and so they stay unknown, or are what ``rules.assumed`` says.

    Raises
    ------
    UsageError
        If the table has no requested times and nothing was said about that, or an option is refused.
    InputError
        If a file cannot be read.
    TraceFormatError
        If a column is missing, or of another type than the mapping says.
    WorkloadError
        If no job is left.
    """
    rules = rules or ImportRules(unit=mapping.unit)
    labels = labels or Labels()
    if not (mapping.limited or without_limits or rules.assumed is not None):
        raise UsageError(
            f"tables of {mapping.name} have no requested times, by which backfilling (EASY) plans: what it does "
            "on them is an assumption; say which, --assume-limit 24h, or --assume-limit unknown and later "
            "--estimate-missing"
        )
    zone = zone or zone_of(mapping)
    form = _format(mapping, rules)
    labels = labels if labels.anonymous else _labelled(labels, mapping)
    return import_logs(paths, rules=rules, labels=labels, zone=zone, form=form, processors=processors)


def _labelled(labels: Labels, mapping: TableMapping) -> Labels:
    """Return labels that say what the mapping knows of the machine and of the data set."""
    machine = mapping.machine
    about = {
        "data set:": mapping.title,
        "described at": mapping.page,
        "licence:": mapping.licence,
        "cite": mapping.cite,
    }
    return dataclasses.replace(
        labels,
        computer=labels.computer or machine.computer,
        installation=labels.installation or machine.installation,
        nodes=labels.nodes or machine.nodes,
        notes=(*labels.notes, *(f"{what} {text}" for what, text in about.items() if text)),
    )
