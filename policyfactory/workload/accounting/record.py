"""One record of an accounting log, whatever the scheduler: what the readers give and the rules take."""

from __future__ import annotations

import dataclasses
import enum

__all__ = ["Limit", "Record", "State"]


class State(enum.Enum):
    """How a run of a job ended, or that it has not."""

    completed = "completed"
    failed = "failed"  # exit code, out of memory, boot failure
    timeout = "timeout"
    node_fail = "node_fail"
    cancelled = "cancelled"
    requeued = "requeued"  # this run ended and the job went back to the queue: another record follows
    running = "running"  # also suspended: started, not over
    pending = "pending"
    unknown = "unknown"


class Limit(enum.Enum):
    """What the log says about the requested run time."""

    given = "given"  # a number: asked for by the user, or the partition's default; the log seldom tells which
    asked = "asked"  # a number that the user asked for: the log shows it (the submit line has --time)
    default = "default"  # a number that nobody asked for: the log shows it
    unlimited = "unlimited"
    partition = "partition"  # the partition's limit, whose number the record does not have
    missing = "missing"


@dataclasses.dataclass(slots=True)
class Record:
    """One run of a job; a requeued job has several.

    Times are Unix seconds, None where the log has none; counts are None where the log has none.

    Parameters
    ----------
    line : int
        Line of the file (from 1), or place of the job in a JSON list (from 1), for messages.
    job : str
        The job's id as the site writes it: ``1234``, ``11_3`` (array task), ``17+1`` (component of a het job),
        ``407.host``.
    group_id : str or None
        Id shared by the parts of one job that start together (het job); None: the record stands for itself.
    tasks : int
        How many jobs the record stands for: 1, or the tasks of an array that have not begun yet.
    submit, eligible, start, end : int or None
        When it was submitted, could have run at the earliest, began, ended.
    elapsed : int or None
        Seconds it ran, without the time it was suspended.
    suspended : int or None
        Seconds it was suspended.
    limit : int or None
        Requested run time, s; None if ``limit_kind`` has no number.
    limit_kind : Limit
        What the log says about it.
    requested : int or None
        Processors asked for.
    allocated : int or None
        Processors it had; 0 or None if it never had any.
    requested_nodes, allocated_nodes : int or None
        Nodes likewise.
    state : State
        How the run ended.
    user, group, account, partition, qos : str
        Names or numbers as in the log; empty if it has none.
    """

    line: int
    job: str
    submit: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    elapsed: int | None = None
    suspended: int | None = None
    limit: int | None = None
    limit_kind: Limit = Limit.missing
    requested: int | None = None
    allocated: int | None = None
    requested_nodes: int | None = None
    allocated_nodes: int | None = None
    state: State = State.unknown
    user: str = ""
    group: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    group_id: str | None = None
    tasks: int = 1
