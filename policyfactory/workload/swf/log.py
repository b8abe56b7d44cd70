"""A log as it was recorded: the header and the columns of the Standard Workload Format, nothing dropped yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from policyfactory.workload.attributes import Attributes
from policyfactory.workload.header import Header, parse_header, printable
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.extra import EXTRA_LABEL, extra_of, name_lines

__all__ = ["FIELDS", "FIELD_NAMES", "WHOLE_FIELDS", "SwfLog", "log_of_workload"]

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
        The fields behind the 18th that the header names (`policyfactory.workload.swf.extra`).
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

    def place(self, row: int) -> str:
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
