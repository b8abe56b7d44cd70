"""From published tables of jobs to one log: the import of accounting logs, with a mapping as the format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from policyfactory.core.errors import UsageError
from policyfactory.workload.accounting.importing import Imported, Zone, import_logs
from policyfactory.workload.accounting.limits import ImportRules
from policyfactory.workload.accounting.record import RecordBlock, Remark
from policyfactory.workload.accounting.times import Clock, find_zone
from policyfactory.workload.accounting.to_swf import Labels
from policyfactory.workload.tables.mapping import TableMapping
from policyfactory.workload.tables.parts import TableFile
from policyfactory.workload.tables.reader import TableReader

__all__ = ["TableFormat", "import_tables", "zone_of"]


class TableFormat:
    """A mapping as a format of the import.

    Parameters
    ----------
    mapping : TableMapping
        What the columns mean.
    rules : ImportRules
        What is asked for: its period is applied while the tables are read.
    """

    nothing = "no row of it is a job; is it the table, and the whole of it?"

    def __init__(self, mapping: TableMapping, rules: ImportRules) -> None:
        self.mapping, self._rules = mapping, rules
        self.name = mapping.name
        self._reader: TableReader | None = None

    @property
    def machine(self) -> tuple[int, str] | None:
        """Size of the machine in the unit of the import, as the mapping says, and that it does."""
        known = self.mapping.machine
        if known.nodes is None or self._rules.partitions:
            return None
        cores = 1 if self._rules.unit == "nodes" else known.cores_per_node
        return None if cores is None else (known.nodes * cores, f"the whole machine, by the mapping {self.name}")

    def open(self, path: Path | str, clock: Clock) -> _Input:
        """Return an input."""
        if self._reader is None:
            # One for all inputs: ids that begin anew in each file are told apart.
            self._reader = TableReader(self.mapping, clock, self._rules.begin, self._rules.end)
        return _Input(TableFile(path, self.mapping), self._reader)


class _Input:
    """One input of the import."""

    def __init__(self, file: TableFile, reader: TableReader) -> None:
        self._file, self._reader = file, reader
        self.name = file.name

    @property
    def sha256(self) -> str:
        return self._file.sha256

    def items(self) -> Iterator[RecordBlock | Remark]:
        for table in self._file.tables():
            yield from self._reader.read(table)


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
    form = TableFormat(mapping, rules)
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
