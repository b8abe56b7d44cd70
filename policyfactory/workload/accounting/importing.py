"""From accounting logs to one log of the Standard Workload Format, with an account of every record."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.accounting.asked import lacking
from policyfactory.workload.accounting.detect import detect, find_format
from policyfactory.workload.accounting.limits import ImportRules, partition_limits, unrequested
from policyfactory.workload.accounting.record import Limit, Record, RecordBlock, Remark
from policyfactory.workload.accounting.report import ImportReport, StepCounter
from policyfactory.workload.accounting.rules import ImportedJobs, jobs_of
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.accounting.table import TableBuilder
from policyfactory.workload.accounting.times import Clock, machine_zone, shown
from policyfactory.workload.accounting.to_swf import Labels, swf_of
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import LARGEST_MACHINE
from policyfactory.workload.swf.log import SwfLog

__all__ = ["Imported", "LogFile", "LogFormat", "Zone", "import_logs"]

# What to look at where sacct printed no job.
_NO_RECORDS = (
    "no job in it, so the query of sacct had no result; look at -S and -E (without -S it is today only), -a (without "
    "it only one's own jobs), and the rights of who asked: with PrivateData=jobs only operators see the jobs of others"
)


class LogFile(Protocol):
    """One input, read by a format of its own."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def sha256(self) -> str:
        """Its digest, once it has been read."""

    def items(self) -> Iterator[Record | RecordBlock | Remark]:
        """Give its records, and what is to be said of what gives none."""


class LogFormat(Protocol):
    """A format that is not one of `FORMATS`."""

    @property
    def name(self) -> str:
        """What ``--format`` calls it."""

    @property
    def nothing(self) -> str:
        """What to look at where a log of it has no record."""

    @property
    def machine(self) -> tuple[int, str] | None:
        """Size of the machine in the unit of the import, where it is known, and where the number is from."""

    def open(self, path: Path | str, clock: Clock) -> LogFile:
        """Return an input."""


@dataclasses.dataclass(frozen=True, slots=True)
class Zone:
    """The time zone of the site.

    Parameters
    ----------
    clock : tzinfo
        The zone.
    name : str
        Its name.
    source : str
        Where it is from, in words.
    """

    clock: dt.tzinfo
    name: str
    source: str

    @classmethod
    def of_machine(cls) -> Zone:
        """Return this machine's zone."""
        clock, name = machine_zone()
        return cls(clock, name, "this machine's; --time-zone names another")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """What an import gives.

    Parameters
    ----------
    log : SwfLog
        The jobs.
    report : ImportReport
        What was done.
    job : tuple of str
        The number of each job of ``log`` as the site writes it.
    user, partition : tuple of str
        Its user's name or number, and its partition, as the site has them.
    """

    log: SwfLog
    report: ImportReport
    job: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()


def import_logs(
    paths: Sequence[Path | str],
    *,
    rules: ImportRules | None = None,
    labels: Labels | None = None,
    zone: Zone | None = None,
    form: str | LogFormat | None = None,
    processors: int | None = None,
) -> Imported:
    """Read accounting logs and return their jobs as one log.

    Parameters
    ----------
    paths : sequence of Path or str
        Files of one log, in any order, plain or packed with gzip; ``-`` is stdin. Where they overlap, each record
        counts once.
    rules : ImportRules, optional
        What to keep, drop and change.
    labels : Labels, optional
        What the header says.
    zone : Zone, optional
        Zone of times that have none (default: this machine's).
    form : str or LogFormat, optional
        Format of all files (default: what each file's beginning shows), one of `FORMATS` or another.
    processors : int, optional
        Processors (or nodes) of the machine; default: the most in use at once.

    Raises
    ------
    InputError
        If a file cannot be read.
    TraceFormatError
        If it is no accounting log that is known, or lacks what is needed.
    WorkloadError
        If no job is left.
    UsageError
        If an option is refused.
    """
    rules, labels, zone = rules or ImportRules(), labels or Labels(), zone or Zone.of_machine()
    if [str(path) for path in paths].count("-") > 1:
        raise UsageError("stdin (-) can be read once; name it once")
    own = form if form is not None and not isinstance(form, str) else None
    wanted = find_format(form) if isinstance(form, str) else None
    clock = Clock(zone.clock)
    counter = StepCounter()
    builder = TableBuilder(counter)
    inputs = []
    for path in paths:
        if own is not None:
            file = own.open(path, clock)
            builder.add(file.items(), file.name)
            inputs.append((file.name, own.name, file.sha256))
            continue
        source = Source(path)
        known = wanted or detect(source.head, source.name)
        text = getattr(source, known.takes)()
        builder.add(known.reader()(text, source.name, clock), source.name)
        inputs.append((source.name, known.name, source.sha256))
    if not len(builder) and not counter.steps():
        raise WorkloadError(f"{_names(inputs)}: {_NO_RECORDS if own is None else own.nothing}")
    dropped = sum(step.count for step in counter.steps() if step.action == "dropped")
    table = builder.table()
    records = int(table.tasks.sum()) + dropped
    try:
        jobs = jobs_of(table, rules, counter, zone.clock)
        machine, machine_source = _machine(
            jobs, rules.unit, processors, zone, counter, None if own is None else own.machine
        )
    except (UsageError, WorkloadError) as error:
        raise type(error)(f"{_names(inputs)}: {error}") from None
    started = jobs.allocated[jobs.rows] > 0
    ends = table.start[jobs.rows] + table.elapsed[jobs.rows]
    begins = int(table.submit[jobs.rows].min())
    report = ImportReport(
        inputs=tuple(inputs),
        time_zone=zone.name,
        time_zone_source=zone.source,
        zone_needed=clock.used,
        unit=rules.unit,
        machine=machine,
        machine_source=machine_source,
        peak=jobs.peak,
        peak_time=shown(jobs.peak_time, zone.clock),
        larger=0 if processors is None else int((jobs.allocated[jobs.rows] > machine).sum()),
        records=records,
        jobs=len(jobs.rows),
        begins=begins,
        ends=int(ends[started].max()) if started.any() else begins,
        steps=counter.steps(),
        partitions=partition_limits(table, jobs.rows, jobs.recorded_limit, rules.default_limit),
        unrequested=unrequested(table, jobs.rows[started], jobs.recorded_limit),
        assumed=rules.assumed if (table.limit_kind[jobs.rows] == Limit.missing).any() else None,
    )
    log = swf_of(jobs, report, zone.clock, labels)
    return Imported(
        log,
        dataclasses.replace(report, lacking=lacking(jobs, dict(log.extra), log.queue)),
        tuple(table.job[row] for row in jobs.rows.tolist()),
        *(
            tuple(table.names[name][code] for code in codes[jobs.rows].tolist())
            for name, codes in (("user", table.user), ("partition", table.partition))
        ),
    )


def _names(inputs: list[tuple[str, str, str]]) -> str:
    """Return the files that were read, for messages."""
    more = ", ..." if len(inputs) > 5 else ""
    return printable(", ".join(name for name, _, _ in inputs[:5]), 300) + more


def _machine(
    jobs: ImportedJobs,
    unit: str,
    given: int | None,
    zone: Zone,
    counter: StepCounter,
    known: tuple[int, str] | None,
) -> tuple[int, str]:
    """Return the size of the machine, and where the number is from."""
    when = shown(jobs.peak_time, zone.clock)
    option = "--processors" if unit == "cpus" else "--processors (here: nodes)"
    if given is None:
        if known is not None and known[0] >= jobs.peak:
            return known[0], f"{known[1]}; {option} says another"
        if jobs.peak < 1:
            raise UsageError(f"no job of the log ever ran, so the machine's size is not in it; give {option}")
        more = "" if known is None else f", and more than the {known[0]:,} of {known[1]}"
        return (
            jobs.peak,
            f"the most in use at once, first at {when}{more}: a lower bound; {option} says the true number",
        )
    if not 1 <= given <= LARGEST_MACHINE:
        raise UsageError(f"{option} {given}: a machine has from 1 to {LARGEST_MACHINE:,} processors")
    size = jobs.allocated[jobs.rows]
    larger = jobs.rows[size > given]
    if len(larger):
        table = jobs.table
        counter.add(
            "kept", "jobs larger than the machine", "is --processors right? workload clean drops them", len(larger),
            table.job[larger[0]], table.place(larger[0]),
        )  # fmt: skip
    more = f"; the log has {jobs.peak:,} in use at once, first at {when}" if jobs.peak > given else ""
    return given, f"given by --processors{more}"
