"""How many processors the machine of a log has: what its header says, or what the caller says where it says nothing."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.options import Int64Array, Mask
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import LARGEST_MACHINE, Requests, Workload
from policyfactory.workload.swf.log import EXTRA_FIELDS, EXTRA_LABEL, SwfLog, requests_of

# The option by which a size is used that contradicts the header.
FORCE = "--force-processors"


def size_of(log: SwfLog) -> NDArray[np.int64]:
    """Return each job's processors: allocated, else requested, else -1."""
    size = np.where(log.allocated > 0, log.allocated, log.requested)
    return np.where(size > 0, size, -1)


def known_machine(log: SwfLog, machine: int | None = None, *, force: bool = False) -> tuple[int, str] | None:
    """Return the processors of a log's machine and where the number is from; None if nobody says it.

    The header's MaxNodes is taken where it has no MaxProcs and no job is larger.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    machine : int, optional
        Processors as the caller has them.
    force : bool
        Use ``machine`` also where the header's MaxProcs is another number.

    Raises
    ------
    UsageError
        If a machine of less than one processor or of more than any is asked for, or one that contradicts the header
        and is not forced.
    """
    header = log.header
    if machine is None:
        if force:
            raise UsageError(f"{FORCE} belongs to a machine size; add --processors N")
        if header.processors is not None:
            return header.processors, "MaxProcs of the header"
        nodes = header.nodes
        if nodes is not None and _largest(log) <= nodes:
            return nodes, "MaxNodes of the header, which has no MaxProcs"
        return None
    if not 1 <= machine <= LARGEST_MACHINE:
        raise UsageError(f"--processors {machine}: a machine has from 1 to {LARGEST_MACHINE:,} processors")
    if header.processors in (None, machine):
        return machine, "as asked for"
    if not force:
        raise UsageError(_contradiction(log, machine, header.processors))
    return machine, f"as asked for, against MaxProcs {header.processors:,} of the header"


def machine_of(log: SwfLog, machine: int | None = None, *, force: bool = False) -> tuple[int, str]:
    """Return the processors of a log's machine and where the number is from; parameters are those of `known_machine`.

    Raises
    ------
    UsageError
        As `known_machine`.
    WorkloadError
        If neither the caller nor the header says it, or the header has more than any machine.
    """
    known = known_machine(log, machine, force=force)
    if known is not None:
        if known[0] > LARGEST_MACHINE:
            raise WorkloadError(
                f"{printable(log.path, 300)}: the header has a machine of {known[0]:,} processors; say how many it has "
                f"with --processors N {FORCE}, at most {LARGEST_MACHINE:,}"
            )
        return known
    largest = _largest(log)
    nodes = log.header.nodes
    size = f"MaxNodes {nodes:,} only, and jobs of {largest:,} processors" if nodes else log.header.no_processors
    raise WorkloadError(
        f"{printable(log.path, 300)}: the header has {size}, so that the machine is unknown; say how many processors "
        f"it has with --processors (the largest job has {largest:,})"
    )


def _largest(log: SwfLog) -> int:
    """Return the most processors that a job had or asked for."""
    return int(max(log.allocated.max(initial=0), log.requested.max(initial=0)))


def _contradiction(log: SwfLog, machine: int, processors: int) -> str:
    larger = int(np.count_nonzero(size_of(log) > machine))
    jobs = f", and {larger:,} of its {len(log):,} jobs are larger than {machine:,}" if larger else ""
    return (
        f"--processors {machine}: {printable(log.path, 300)} says MaxProcs {processors} in its header{jobs}; leave "
        f"--processors out, or add {FORCE} (force_processors in Python, force_machine in a protocol) to use "
        f"{machine} all the same"
    )


# What is assumed of jobs whose log does not say how many nodes --------------------------------------------------------

# What is assumed of jobs whose log does not say how many nodes, how much memory or how many GPUs they ask for.
#
# An assumption is a number, or the processors multiplied or divided: ``n=q/32``, ``mem=2000*q``, ``g=0``. It holds for
# the jobs of which the log says nothing; what the log says stays.


# The variables of formulas, and the columns of `Requests`.
COLUMN_OF = {"n": "nodes", "mem": "memory", "g": "gpus"}
_EXAMPLES = {"n": "n=q/32", "mem": "mem=2000*q", "g": "g=0"}
_TERM = re.compile(r"(?:(\d{1,9}(?:\.\d{1,6})?)\*)?(q)(?:/(\d{1,9}(?:\.\d{1,6})?))?|(\d{1,12})", re.ASCII)
_LARGEST = 1 << 40


@dataclasses.dataclass(frozen=True, slots=True)
class Assumption:
    """What is assumed of one variable.

    Parameters
    ----------
    name : str
        ``n``, ``mem`` or ``g``.
    text : str
        The number or the term, as it was written.
    """

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}={self.text}"

    @property
    def column(self) -> str:
        """The column of `Requests` that it fills."""
        return COLUMN_OF[self.name]

    def values(self, processors: Int64Array) -> Int64Array:
        """Return what is assumed of jobs, whole numbers, rounded up; of nodes at least 1."""
        times, q, parts, constant = _TERM.fullmatch(self.text).groups()  # type: ignore[union-attr]
        least = 1 if self.name == "n" else 0
        if q is None:
            return np.full(len(processors), max(int(constant), least), dtype=np.int64)
        exact = processors * float(times or 1) / float(parts or 1)
        whole: Int64Array = np.clip(np.ceil(exact - 1e-9), least, _LARGEST).astype(np.int64)
        return whole


def how_to_assume(name: str) -> str:
    """Return how to say what is assumed of one of n, mem and g, for messages."""
    example = _EXAMPLES[name]
    return (
        f"say what to assume of them: --assume {example} (where there is no such option: policyfactory workload clean "
        f"LOG --assume {example} --output FILLED.swf; in Python: policyfactory.read(LOG, assume={example!r}))"
    )


def parse_assumptions(text: str) -> tuple[Assumption, ...]:
    """Return the assumptions of ``mem=2000*q,g=0,n=q/32``.

    Raises
    ------
    UsageError
        If there is none, one cannot be read, or a variable comes twice.
    """
    form = "write for example n=q/32,mem=2000*q,g=0 (n nodes, mem MB in all, g GPUs in all; q: processors of the job)"
    assumptions: dict[str, Assumption] = {}
    for part in text.replace(" ", "").split(","):
        name, _, value = part.partition("=")
        match = _TERM.fullmatch(value)
        if name not in COLUMN_OF or match is None or (match[3] is not None and not float(match[3])):
            raise UsageError(f"the assumption {printable(part, 60)!r} cannot be read; {form}")
        if name in assumptions:
            raise UsageError(f"the assumptions {printable(text, 60)!r} have {name} twice; {form}")
        assumptions[name] = Assumption(name, value)
    return tuple(assumptions.values())


def assume(workload: Workload, text: str) -> Workload:
    """Return the jobs with assumptions where their log does not say what they ask for.

    Parameters
    ----------
    workload : Workload
        The jobs.
    text : str
        For example ``"mem=2000*q,g=0"``.

    Raises
    ------
    UsageError
        If it is no assumption.
    """
    requests = _filled(workload.requests or Requests.unknown(len(workload)), text, workload.processors)
    added = requests.assumed[0 if workload.requests is None else len(workload.requests.assumed) :]
    origin = "; ".join([workload.origin, *added])
    return dataclasses.replace(workload, requests=requests, origin=origin)


def assumed(workload: Workload, text: str | None) -> Workload:
    """Return the jobs as `assume` does; as they are, if nothing is assumed."""
    return workload if text is None else assume(workload, text)


def _filled(requests: Requests, text: str, processors: Int64Array) -> Requests:
    for assumption in parse_assumptions(text):
        column = getattr(requests, assumption.column)
        missing = column < 0
        if missing.any():
            some = f"{int(missing.sum()):,} of {len(missing):,} jobs"
            changes: dict[str, Any] = {
                assumption.column: np.where(missing, assumption.values(processors), column),
                "assumed": (*requests.assumed, f"assumed {assumption} for {some}, of which the log does not say it"),
            }
            requests = dataclasses.replace(requests, **changes)
    return requests


def assume_of_log(log: SwfLog, text: str) -> tuple[SwfLog, tuple[str, ...]]:
    """Return a log with assumptions in its further fields, and what was assumed, in words.

    Parameters
    ----------
    log : SwfLog
        Cleaned: field 8 has the processors of each job.
    text : str
        For example ``"mem=2000*q,g=0"``.

    Raises
    ------
    UsageError
        If it is no assumption.
    """
    names = ("requested_memory", "preceding", "user", "queue", "partition")
    columns = {name: np.ceil(column).astype(np.int64) for name, column in {
        **{name: getattr(log, name) for name in names}, **log.extra
    }.items()}  # fmt: skip
    known = requests_of(log.header, columns, processors=log.requested, submit=log.submit)
    filled = _filled(known or Requests.unknown(len(log)), text, log.requested)
    extra = dict(log.extra)
    for assumption in parse_assumptions(text):
        extra["memory_mb" if assumption.name == "mem" else assumption.column] = getattr(filled, assumption.column)
    # In the order in which the fields are described.
    extra = {name: extra[name] for name in EXTRA_FIELDS if name in extra}
    header = log.header.replace({EXTRA_LABEL: " ".join(extra)}, filled.assumed)
    return dataclasses.replace(log, header=header, extra=extra), filled.assumed


# Jobs that were written in parts --------------------------------------------------------------------------------------

# Status 2 (to be continued), 3 (last part, completed) and 4 (last part, failed).
#
# A log that records preemptions (header label Preemption) has for each such job either a line that sums it up, and
# then its parts (Double), or the parts only (Yes). For a workload a job counts once: the sum stays and its parts go;
# parts without a sum become one job that runs for the sum of their times.


_CONTINUED, _COMPLETED, _FAILED = 2, 3, 4


@dataclasses.dataclass(frozen=True, slots=True)
class JoinedParts:
    """A log whose parts are joined.

    Parameters
    ----------
    log : SwfLog
        As many lines as before; the first part of a job without a sum has the job's whole run time and its status.
    summed_up : bool array (n,)
        Parts of jobs that have a line of their own.
    merged : bool array (n,)
        First parts, which now stand for their whole job.
    merged_away : bool array (n,)
        Their later parts.
    """

    log: SwfLog
    summed_up: Mask
    merged: Mask
    merged_away: Mask


def join_parts(log: SwfLog) -> JoinedParts:
    """Return the log with one line to use for each job that was written in parts."""
    part = (log.status >= _CONTINUED) & (log.status <= _FAILED)
    none = np.zeros(len(log), dtype=np.bool_)
    if not part.any():
        return JoinedParts(log, none, none, none)
    summed_up = part & np.isin(log.job_id, log.job_id[~part])
    rows = np.flatnonzero(part & ~summed_up)
    _, first, job = np.unique(log.job_id[rows], return_index=True, return_inverse=True)
    run_time = log.run_time.copy()
    total = np.zeros(len(first), dtype=run_time.dtype)
    np.add.at(total, job, np.maximum(log.run_time[rows], 0))
    run_time[rows[first]] = total
    ends = np.full(len(first), -1, dtype=np.int64)
    ends[job[log.status[rows] == _COMPLETED]] = 1
    ends[job[log.status[rows] == _FAILED]] = 0
    status = log.status.copy()
    status[rows[first]] = ends
    merged, merged_away = none.copy(), none.copy()
    merged_away[rows] = True
    merged_away[rows[first]] = False
    merged[rows[first]] = True
    return JoinedParts(dataclasses.replace(log, run_time=run_time, status=status), summed_up, merged, merged_away)


def joined_log(log: SwfLog) -> SwfLog:
    """Return the log with one line for each job: parts (status 2, 3, 4) joined or left out."""
    joined = join_parts(log)
    away = joined.summed_up | joined.merged_away
    return joined.log.select(~away) if away.any() else joined.log
