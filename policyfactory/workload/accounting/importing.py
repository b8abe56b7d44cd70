"""From accounting logs to one log of the Standard Workload Format, with an account of every record."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.random import generator
from policyfactory.core.version import __version__
from policyfactory.workload.accounting.options import ImportRules, Labels
from policyfactory.workload.accounting.record import LimitKind, RecordBlock, Remark, State, coded
from policyfactory.workload.accounting.rules import (
    ImportedJobs,
    after_of,
    extra_of,
    jobs_of,
    lacking,
    lists_of,
    partition_limits,
    unrequested,
)
from policyfactory.workload.accounting.source import Source, detect, find_format
from policyfactory.workload.accounting.table import Column, ImportReport, StepCounter, TableBuilder
from policyfactory.workload.accounting.times import Clock, machine_zone, shown
from policyfactory.workload.header import ASSUMED_NOTE, NODES_NOTE, Header, dates_of, parse_header, printable
from policyfactory.workload.jobs import LARGEST_MACHINE
from policyfactory.workload.swf.log import EXTRA_LABEL, FIELDS, PARTITIONS_IN_QUEUE, SwfLog

# What to look at where sacct printed no job.
_NO_RECORDS = (
    "no job in it, so the query of sacct had no result; look at -S and -E (without -S it is today only), -a (without "
    "it only one's own jobs), and the rights of who asked: with PrivateData=jobs only operators see the jobs of others"
)


class LogFile(Protocol):
    """One input: its name, for messages, and its digest, once it has been read."""

    name: str

    @property
    def sha256(self) -> str:
        """SHA-256 in hexadecimal."""


@dataclasses.dataclass(frozen=True, slots=True)
class LogFormat:
    """A format that is not one of `FORMATS`.

    Parameters
    ----------
    name : str
        What ``--format`` calls it.
    open : callable
        Returns an input, and gives its records and what is to be said of what gives none.
    nothing : str
        What to look at where a log of it has no record.
    machine : (int, str), optional
        Size of the machine in the unit of the import, and where the number is from.
    """

    name: str
    open: Callable[[Path | str, Clock], tuple[LogFile, Iterator[RecordBlock | Remark]]]
    nothing: str
    machine: tuple[int, str] | None = None


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
    given = form if isinstance(form, LogFormat) else None
    wanted = find_format(form) if isinstance(form, str) else None
    clock = Clock(zone.clock)
    counter = StepCounter()
    builder = TableBuilder(counter)
    inputs = []
    for path in paths:
        if given is not None:
            file, items = given.open(path, clock)
            builder.add(items, file.name)
            inputs.append((file.name, given.name, file.sha256))
            continue
        source = Source(path)
        known = wanted or detect(source.head, source.name)
        text = getattr(source, known.takes)()
        builder.add(known.reader()(text, source.name, clock), source.name)
        inputs.append((source.name, known.name, source.sha256))
    if not len(builder) and not counter.steps():
        raise WorkloadError(f"{_names(inputs)}: {_NO_RECORDS if given is None else given.nothing}")
    dropped = sum(step.count for step in counter.steps() if step.action == "dropped")
    table = builder.table()
    records = int(table.tasks.sum()) + dropped
    try:
        jobs = jobs_of(table, rules, counter, zone.clock)
        machine, machine_source = _machine(
            jobs, rules.unit, processors, zone, counter, None if given is None else given.machine
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
        assumed=rules.assumed if (table.limit_kind[jobs.rows] == LimitKind.missing).any() else None,
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
        row = larger[0]
        counter.remark(table.remark("rules.larger", row, len(larger)), table.file(row))
    more = f"; the log has {jobs.peak:,} in use at once, first at {when}" if jobs.peak > given else ""
    return given, f"given by --processors{more}"


# Imported jobs as a log of the Standard Workload Format ---------------------------------------------------------------

# Numbers for names, a header that says how it was made.


# Field 11: 0 failed, 1 completed, 5 cancelled, -1 unknown.
_STATUS = {
    State.completed: 1, State.failed: 0, State.timeout: 0, State.node_fail: 0, State.requeued: 0, State.cancelled: 5,
}  # fmt: skip
# Below the user's seed: one stream for each column of names.
_STREAM = 77
_DIGITS = re.compile(r"\d+")


def swf_of(jobs: ImportedJobs, report: ImportReport, zone: dt.tzinfo, labels: Labels) -> SwfLog:
    """Return the jobs as a log with the recorded starts; time 0 is the first submission.

    Field 4 is the time a job ran without the time it was suspended, 5 the processors it had, 8 those it asked for,
    9 its limit, 17 the job that had to end first; 12 to 16 number users, groups (accounts where the log has no groups),
    job names, partitions and qualities of service by first appearance. Names that differ in their digits only have one
    number.

    Parameters
    ----------
    jobs : ImportedJobs
        What the rules left.
    report : ImportReport
        For the header.
    zone : tzinfo
        Zone of the dates in the header.
    labels : Labels
        What else the header says.
    """
    table, rows = jobs.table, jobs.rows
    count = len(rows)
    unknown = np.full(count, -1, dtype=np.int64)
    started = jobs.allocated[rows] > 0
    waited = table.end[rows] - table.submit[rows]
    gave_up = (table.state[rows] == State.cancelled) & (table.end[rows] > 0) & (waited >= 0)
    status = np.array([_STATUS.get(state, -1) for state in State])
    queue, queues = _numbered(table.partition[rows], table.names["partition"], labels, 0)
    names, executables = _without_digits(table.name[rows], table.names["name"])
    groups = table.group if (table.group[rows] > 0).any() else table.account
    user, users = _numbered(table.user[rows], table.names["user"], labels, 1)
    qos, qualities = _numbered(table.qos[rows], table.names["qos"], labels, 4)
    account, accounts = _numbered(table.account[rows], table.names["account"], labels, 5)
    extra = extra_of(jobs, report.begins, qos, account)
    named = {"Queue": queues, "QOS": qualities, "Account": accounts}
    if not labels.anonymous:
        lists, named["PartitionList"] = _numbered(lists_of(jobs), table.names["partitions"], labels, 6)
        extra |= {"partitions": lists} if named["PartitionList"] else {}
    if labels.users:
        named["User"] = _user_names(jobs, user, users)
    columns: dict[str, Any] = dict.fromkeys(FIELDS, unknown)
    columns |= {
        "job_id": np.arange(1, count + 1),
        "submit": table.submit[rows] - report.begins,
        # Of a job that was cancelled in the queue, until then, as logs of the archive have it.
        "wait": np.where(started, table.start[rows] - table.submit[rows], np.where(gave_up, waited, -1)),
        "run_time": np.where(started, table.elapsed[rows], -1),
        "allocated": np.where(started, jobs.allocated[rows], -1),
        "requested": np.where(jobs.requested[rows] > 0, jobs.requested[rows], -1),
        "requested_time": table.limit[rows],
        "status": status[table.state[rows]],
        "user": user,
        "group": _numbered(groups[rows], table.names["group"], labels, 2)[0],
        "executable": _numbered(names, executables, labels, 3)[0],
        "queue": queue,
        "partition": qos,
        "preceding": after_of(jobs),
    }
    return SwfLog(
        name="import",
        path="import",
        header=_header(report, zone, labels, named, tuple(extra)),
        line=np.arange(1, count + 1),
        extra=extra,
        **columns,
    )


def _user_names(jobs: ImportedJobs, user: Column, users: list[str]) -> list[str]:
    """Return the name of each number of a user, from 1, empty where unknown: some logs call users by numbers only."""
    names = ["" if user.isdigit() else user for user in users]
    found = jobs.table.user_name[jobs.rows]
    for number, code in np.unique(np.stack((user, found)), axis=1).T.tolist():
        if number > 0 and code > 0:
            names[number - 1] = jobs.table.names["user_name"][code]
    return names


def _without_digits(codes: Column, names: list[str]) -> tuple[Column, list[str]]:
    """Return names as numbers that do not tell ``run_17`` from ``run_18``; 0 is still no name."""
    alike, texts = coded(["", *(_DIGITS.sub("#", name) for name in names[1:])])
    return alike[codes], texts


def _numbered(codes: Column, names: list[str], labels: Labels, stream: int) -> tuple[Column, list[str]]:
    """Return names as numbers from 1, and the names in that order; no name is -1.

    They are numbered by first appearance, or in a random order for an anonymous log.
    """
    present, first = np.unique(codes, return_index=True)
    order = present[np.argsort(first)]
    order = order[order > 0]
    if labels.anonymous:
        order = generator(labels.seed, _STREAM, stream).permutation(order)
    numbers = np.full(int(present.max()) + 1 if len(present) else 1, -1, dtype=np.int64)
    numbers[order] = np.arange(1, len(order) + 1)
    shown = [] if labels.anonymous else [names[code] for code in order.tolist() if code < len(names)]
    return numbers[codes], shown


def _header(
    report: ImportReport, zone: dt.tzinfo, labels: Labels, named: dict[str, list[str]], extra: tuple[str, ...]
) -> Header:
    ends = {"StartTime": report.begins, "EndTime": report.ends}
    how = "workload import --anonymize" if labels.anonymous else labels.command
    lines = [
        "Version: 2.2",
        f"Computer: {printable(labels.computer or 'unknown', 200)}",
        f"Installation: {printable(labels.installation or 'unknown', 200)}",
        f"Conversion: policyfactory {__version__}, {printable(how, 600)}",
        f"MaxJobs: {report.jobs}",
        f"MaxRecords: {report.jobs}",
        f"UnixStartTime: {report.begins}",
        f"TimeZoneString: {printable(report.time_zone, 64)}",
        *(f"{label}: {date}" for label, date in dates_of(ends, zone).items()),
    ]
    nodes = report.machine if report.unit == "nodes" else labels.nodes
    if nodes is not None:
        lines.append(f"MaxNodes: {nodes}")
    lines += [f"MaxProcs: {report.machine}", f"MaxQueues: {len(report.partitions)}"]
    if any(partition.partition for partition in report.partitions):
        lines.append(f"Queues: {PARTITIONS_IN_QUEUE}")
    for label, names in named.items():
        lines += [f"{label}: {number} {printable(name, 100)}" for number, name in enumerate(names, start=1) if name]
    if extra:
        lines.append(f"{EXTRA_LABEL}: {' '.join(extra)}")
    lines += [f"Note: {note}" for note in _notes(report, labels)]
    return parse_header([f"; {line}" for line in lines])


def _notes(report: ImportReport, labels: Labels) -> Iterator[str]:
    yield f"MaxProcs: {report.machine_source}"
    if report.unit == "nodes":
        yield f"{NODES_NOTE}; a processor of this log is a whole node"
    if report.zone_needed:
        yield f"time zone: {report.time_zone_source}"
    else:
        yield "time zone: only that of the dates above; the times of the log were Unix seconds, which need none"
    yield "fields 2 and 3 are recorded; field 4 is without suspended time; field 9 is the limit, never the run time"
    if labels.anonymous:
        yield (
            "users, groups, accounts, job names, queues and partitions are numbered in a random order; times are as "
            "they were"
        )
    else:
        for number, (name, kind, digest) in enumerate(report.inputs, start=1):
            yield f"input {number}: {printable(Path(name).name, 100)}, {kind}, SHA-256 {digest}"
    yield "fields 14 and 16, where they are there, number job names (digits in them aside) and qualities of service"
    if report.assumed is not None:
        yield (
            f"{ASSUMED_NOTE.format(report.assumed)}, where the log has none: users asked for no time, so backfilling "
            "(EASY) on these jobs is an assumption"
        )
    yield from (printable(note, 400) for note in labels.notes)
    yield f"{report.records} records were read"
    for step in report.steps:
        yield f"{step.action}: {step.count}: {printable(step.what, 300)}"
