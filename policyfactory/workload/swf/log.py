"""A log as it was recorded: the header and the columns of the Standard Workload Format, nothing dropped yet."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import Int64Array
from policyfactory.workload.header import Header, parse_header, printable
from policyfactory.workload.jobs import NAMED, Attributes, Requests, Workload

Column = NDArray[Any]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """One log, line by line as in its file.

    Columns are read-only arrays of shape (n,), int64, or float64 where the file has decimals; -1 stands for
    unknown or not applicable. The number behind each name is the field's place in a line.

    Parameters
    ----------
    name : str
        What the log is called: the file's name without its suffix.
    path : str
        Where it was read from.
    header : Header
        What it says about itself.
    job_id : array
        1, job number.
    submit : array
        2, submit time, s of the log's clock.
    wait : array
        3, s from submit to start.
    run_time : array
        4, s from start to end.
    allocated : array
        5, processors the job had.
    cpu_time : array
        6, s of CPU time, mean over the processors.
    memory : array
        7, KB, mean per processor.
    requested : array
        8, processors the job asked for.
    requested_time : array
        9, s the job asked for.
    requested_memory : array
        10, KB per processor.
    status : array
        11: 0 failed, 1 completed, 5 cancelled, -1 unknown; 2, 3, 4 a part of a job.
    user, group, executable, queue, partition : array
        12 to 16, numbers that stand for names.
    preceding : array
        17, the job after whose end this one may start.
    think_time : array
        18, s between that end and this submission.
    line : array
        Each job's line in the file, from 1.
    sha256 : str
        Digest of the file as it lies on the disk.
    oddities : mapping of str to int
        What the reader skipped: comment lines between jobs, blank lines, line ends of other systems, fields without
        a name.
    extra : mapping of str to array (n,)
        The fields behind the 18th that the header names (`policyfactory.workload.swf.log`).
    """

    name: str
    path: str
    header: Header
    job_id: Annotated[Column, "job number"]
    submit: Annotated[Column, "submit time"]
    wait: Annotated[Column, "wait time"]
    run_time: Annotated[Column, "run time"]
    allocated: Annotated[Column, "allocated processors"]
    cpu_time: Annotated[Column, "average CPU time"]
    memory: Annotated[Column, "used memory"]
    requested: Annotated[Column, "requested processors"]
    requested_time: Annotated[Column, "requested time"]
    requested_memory: Annotated[Column, "requested memory"]
    status: Annotated[Column, "status"]
    user: Annotated[Column, "user"]
    group: Annotated[Column, "group"]
    executable: Annotated[Column, "executable"]
    queue: Annotated[Column, "queue"]
    partition: Annotated[Column, "partition"]
    preceding: Annotated[Column, "preceding job"]
    think_time: Annotated[Column, "think time"]
    line: NDArray[np.int64]
    sha256: str = ""
    oddities: Mapping[str, int] = dataclasses.field(default_factory=dict)
    extra: Mapping[str, Column] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for field in (*FIELDS, "line"):
            column = getattr(self, field).view()
            column.flags.writeable = False
            object.__setattr__(self, field, column)
        extra = {name: column.view() for name, column in self.extra.items()}
        for column in extra.values():
            column.flags.writeable = False
        object.__setattr__(self, "extra", extra)

    def without(self, names: Iterable[str]) -> SwfLog:
        """Return the log with some of the attributes of its jobs unknown.

        Raises
        ------
        UsageError
            If there is no such attribute.
        """
        Attributes.unknown(0).without(names := tuple(names))
        unknown: dict[str, Any] = dict.fromkeys(names, np.full(len(self), -1, dtype=np.int64))
        return dataclasses.replace(self, **unknown)

    def __len__(self) -> int:
        return len(self.job_id)

    def location(self, row: int) -> str:
        """Return where row ``row`` stands, for messages: ``log.swf:17``."""
        return f"{printable(self.path, 300)}:{self.line[row]}"

    def columns(self) -> dict[str, Column]:
        """Return the 18 columns by attribute name, in file order."""
        return {field: getattr(self, field) for field in FIELDS}

    def select(self, rows: Any) -> SwfLog:
        """Return the log with the lines ``rows`` only (slice, mask or indices)."""
        columns: dict[str, Any] = {field: getattr(self, field)[rows] for field in (*FIELDS, "line")}
        extra = {name: column[rows] for name, column in self.extra.items()}
        return dataclasses.replace(self, **columns, extra=extra)


# Attribute of SwfLog and name in messages, in the order of the file.
FIELD_NAMES: dict[str, str] = {
    field: hint.__metadata__[0]
    for field, hint in get_type_hints(SwfLog, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
FIELDS = tuple(FIELD_NAMES)
# Counts and identities; times and memory may have decimals.
WHOLE_FIELDS = frozenset(FIELDS) - {
    "submit", "wait", "run_time", "cpu_time", "memory", "requested_time", "requested_memory", "think_time",
}  # fmt: skip


def log_of_workload(workload: Workload) -> SwfLog:
    """Return a workload as a log: unknown fields are -1, allocated processors are the requested ones.

    The status is 1 (completed) where it is unknown, since readers of such files drop jobs of unknown status.
    """
    unknown = np.full(len(workload), -1, dtype=np.int64)
    known: dict[str, Any] = dict.fromkeys(FIELDS, unknown)
    known |= {
        "job_id": workload.job_id,
        "submit": workload.submit,
        "wait": np.where(workload.start >= 0, workload.start - workload.submit, -1),
        "run_time": workload.run_time,
        "allocated": workload.processors,
        "requested": workload.processors,
        "requested_time": workload.requested_time,
        "status": np.ones(len(workload), dtype=np.int64),
        "user": workload.user,
    }
    if workload.attributes is not None:
        known |= {field.name: getattr(workload.attributes, field.name) for field in dataclasses.fields(Attributes)}
        known["status"] = np.where(workload.attributes.status < 0, 1, workload.attributes.status)
    lines: list[str] = []
    extra: dict[str, Column] = {}
    requests = workload.requests
    if requests is not None:
        extra = extra_of(requests)
        lines, where = name_lines(requests, workload.attributes, workload.user)
        known["preceding"] = requests.after
        if not where and (requests.partition >= 0).any():
            known["partition"] = np.where(requests.partition >= 0, requests.partition + 1, -1)
    labels = {"Version": "2.2", "MaxJobs": str(len(workload)), "MaxRecords": str(len(workload))}
    if workload.unix_start is not None:
        labels["UnixStartTime"] = str(workload.unix_start)
    if workload.time_zone is not None:
        labels["TimeZoneString"] = workload.time_zone
    labels["MaxProcs"] = str(workload.machine)
    if extra:
        labels[EXTRA_LABEL] = " ".join(extra)
    notes = [workload.origin] if workload.origin else []
    if workload.ticks != 1:
        notes.append(f"times are in 1/{workload.ticks} s")
    return SwfLog(
        name=workload.name,
        path=workload.name,
        header=parse_header([f"; {line}" for line in lines]).replace(labels, tuple(notes)),
        line=np.arange(1, len(workload) + 1),
        sha256=workload.sha256(),
        extra=extra,
        **known,
    )


# Fields behind the 18th of a log --------------------------------------------------------------------------------------

# What jobs ask for besides, under the names that the header has for them.
#
# ``; ExtraFields: nodes memory_mb gpus`` names fields 19, 20 and 21 of every line. Programs that know 18 fields read
# such a file as before. Numbers of partitions, qualities of service, accounts and users have their names in the header,
# a line for each: ``; Partition: 3 batch``, ``; QOS: 1 normal``, ``; Account: 2 physics``, ``; User: 12 ann``. Lists of
# partitions in which a job may start do as well: ``; PartitionList: 1 fat,thin``.


EXTRA_LABEL = "ExtraFields"
# What is read of further fields, by name; whole numbers but for times, -1 for unknown.
EXTRA_FIELDS: dict[str, str] = {
    "nodes": "requested nodes",
    "memory_mb": "requested memory, MB over the whole job",
    "gpus": "requested GPUs, over the whole job",
    "exclusive": "whole nodes, 1: takes them, 0: shares them",
    "eligible": "time from which the job may start, s of the log's clock",
    "qos": "quality of service, a number",
    "account": "account, a number",
    "array": "job array with a limit, a number that its tasks share",
    "array_limit": "tasks of the array that may run at once",
    "allocated_nodes": "nodes that the job had, where requested nodes are not known",
    "partitions": "list of partitions in which the job may start, a number",
}
# More fields are no line of a log.
WIDEST = 64
# How the header says that field 15 has the scheduler's partitions.
PARTITIONS_IN_QUEUE = "partitions of the scheduler"
_LABELS = {
    "partition": "Partition",
    "qos": "QOS",
    "account": "Account",
    "user_name": "User",
    "partitions": "PartitionList",
}
_NAME_LINE = re.compile(r"(\d{1,18})[ \t]+(\S.*)", re.DOTALL)
_KB = 1024  # in a MB


def has_partitions_in_queue(header: Header) -> bool:
    """Tell whether the log says that field 15 has partitions: field 16 then has qualities of service."""
    return PARTITIONS_IN_QUEUE in header.values("Queues")


def named_fields(header: Header) -> tuple[str, ...]:
    """Return the names that the header gives to fields 19, 20, ..."""
    return tuple(" ".join(header.values(EXTRA_LABEL)).replace(",", " ").split())


def requests_of(
    header: Header,
    columns: Mapping[str, NDArray[Any]],
    *,
    processors: Int64Array,
    submit: Int64Array,
    shift: int = 0,
) -> Requests | None:
    """Return what the jobs of a log ask for, None if it does not say.

    Parameters
    ----------
    header : Header
        For the names.
    columns : mapping of str to array (n,)
        Whole columns of the log by name, those of `EXTRA_FIELDS` and of the 18 fields.
    processors : int64 array (n,)
        Of each job; field 10 is memory for one.
    submit : int64 array (n,)
        Submit times on the clock of the workload.
    shift : int
        Second of the log's clock that is 0 of the workload's.
    """
    unknown = np.full(len(submit), -1, dtype=np.int64)
    found: dict[str, Int64Array] = {name: columns.get(name, unknown) for name in EXTRA_FIELDS}
    memory = found.pop("memory_mb")
    per_processor = columns["requested_memory"]
    if per_processor.max(initial=-1) >= 0:
        of_all = np.where(per_processor >= 0, -(-per_processor * processors // _KB), -1)
        memory = np.where(memory >= 0, memory, of_all)
    found["memory"] = memory
    for name in ("nodes", "array_limit", "allocated_nodes"):
        if found[name] is not unknown:
            found[name] = np.where(found[name] > 0, found[name], -1)
    found["exclusive"] = np.minimum(found["exclusive"], 1)
    eligible = found["eligible"]
    if eligible is not unknown:
        # A job is not eligible before it is there.
        found["eligible"] = np.where(eligible >= 0, np.maximum(eligible - shift, submit), -1)
    preceding = columns["preceding"]
    found["after"] = np.where(preceding > 0, preceding, -1) if preceding.max(initial=-1) > 0 else unknown
    in_queue = has_partitions_in_queue(header) or not (columns["partition"] >= 0).any()
    found["partition"] = columns["queue" if in_queue else "partition"]
    names: dict[str, tuple[str, ...]] = {}
    for column, label in _LABELS.items():
        known = names_of(header, "Queue" if column == "partition" and in_queue else label)
        numbers = columns["user"] if column == "user_name" else found[column]
        if column == "user_name" and not known:
            numbers = unknown
        found[column], names[NAMED[column]] = (unknown, ()) if numbers is unknown else _places(numbers, known)
    found = {name: column if column is unknown else np.maximum(column, -1) for name, column in found.items()}
    if all(column is unknown or column.max(initial=-1) < 0 for column in found.values()):
        return None
    return Requests(**found, names={key: texts for key, texts in names.items() if texts})  # type: ignore[arg-type]


def names_of(header: Header, label: str) -> dict[int, str]:
    """Return the names of numbers: ``; Partition: 3 batch``; the first one counts."""
    matches = (_NAME_LINE.match(value.strip()) for value in header.values(label))
    known: dict[int, str] = {}
    for match in matches:
        if match is not None:
            known.setdefault(int(match[1]), printable(match[2], 200))
    return known


def _places(numbers: Int64Array, known: Mapping[int, str]) -> tuple[Int64Array, tuple[str, ...]]:
    """Return numbers as places among their names, and these; a number without a name is its digits."""
    most = int(numbers.max(initial=-1))
    if most < 0:
        return numbers, ()
    numbers = np.maximum(numbers, -1)
    if most <= len(numbers):
        # Small numbers, as nearly all logs have them, are counted: that is faster than sorting.
        present = np.flatnonzero(np.bincount(numbers + 1, minlength=2)[1:])
        place_of = np.full(most + 2, -1, dtype=np.int64)
        place_of[present + 1] = np.arange(len(present))
        places = place_of[numbers + 1]
    else:
        found, inverse = np.unique(numbers, return_inverse=True)
        absent = int(found[0] < 0)
        present, places = found[absent:], inverse.astype(np.int64) - absent
    texts: dict[str, None] = {}
    for number in present.tolist():
        name = known.get(number, str(number))
        texts[name if name not in texts else f"{name} ({number})"] = None
    return places, tuple(texts)


def extra_of(requests: Requests) -> dict[str, Int64Array]:
    """Return the further fields that say what the jobs ask for; numbers of names count from 1."""
    columns = {name: getattr(requests, name.removesuffix("_mb")) for name in EXTRA_FIELDS}
    for name in ("qos", "account", "partitions"):
        columns[name] = np.where(columns[name] >= 0, columns[name] + 1, -1)
    return {name: column for name, column in columns.items() if (column >= 0).any()}


def name_lines(requests: Requests, attributes: Attributes | None, user: Int64Array) -> tuple[list[str], str]:
    """Return the header's lines for names, and the field of the 18 that has the partition.

    Parameters
    ----------
    requests : Requests
        What the jobs ask for.
    attributes : Attributes or None
        What fields 15 and 16 have, if anything.
    user : int64 array (n,)
        Field 12.

    Returns
    -------
    list of str
        Lines as ``QOS: 1 normal``.
    str
        ``"partition"`` or ``"queue"``: the field whose numbers are the names' already; empty: none, so that field 16
        is to have the places among the names, from 1.
    """
    lines = []
    fields = () if attributes is None else (("partition", attributes.partition), ("queue", attributes.queue))
    where, numbers = next(
        ((name, found) for name, column in fields if (found := _numbers(requests.partition, column)) is not None),
        ("", {index: index + 1 for index in range(len(requests.names.get("partition", ())))}),
    )
    if where == "queue":
        lines.append(f"Queues: {PARTITIONS_IN_QUEUE}")
    label = "Queue" if where == "queue" else "Partition"
    lines += [f"{label}: {number} {requests.names['partition'][index]}" for index, number in numbers.items()]
    for column in ("qos", "account", "partitions"):
        names = requests.names.get(NAMED[column], ())
        lines += [f"{_LABELS[column]}: {index + 1} {name}" for index, name in enumerate(names)]
    users = _numbers(requests.user_name, user) or {}
    lines += [f"User: {number} {requests.names['user'][index]}" for index, number in users.items()]
    return [printable(line, 300) for line in lines], where


def _numbers(places: Int64Array, numbers: Int64Array) -> dict[int, int] | None:
    """Return the number of each place, None if that is no one-to-one relation or there are none."""
    known = places >= 0
    if not known.any() or not (known == (numbers >= 0)).all():
        return None
    pairs = np.unique(np.stack((places[known], numbers[known])), axis=1).tolist()
    relation = dict(zip(*pairs, strict=True))
    return relation if len(relation) == len(pairs[0]) == len(set(pairs[1])) else None
