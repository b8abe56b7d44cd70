"""From records to jobs: what an import keeps, drops and changes, rule by rule, each counted."""

from __future__ import annotations

import dataclasses
import datetime as dt

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.workload.accounting.limits import ImportRules, settle_limits
from policyfactory.workload.accounting.record import State
from policyfactory.workload.accounting.report import StepCounter
from policyfactory.workload.accounting.runs import merge_het, settle_runs
from policyfactory.workload.accounting.table import Column, Mask, RecordTable, Sieve
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.header import printable

__all__ = ["STILL_WAIT", "ImportedJobs", "jobs_of"]

# How the steps end that drop what has not begun.
STILL_WAIT = "that wait at the end of the log"

# More are no log that anything could be done with.
_MOST_JOBS = 20_000_000
# After all times of a table.
_LATEST = 1 << 62


@dataclasses.dataclass(slots=True, eq=False)
class ImportedJobs:
    """What is left: rows of a table.

    Parameters
    ----------
    table : RecordTable
        The records, changed by the rules.
    rows : int64 array (n,)
        The rows that are jobs, by submit time, then job id.
    requested, allocated : int64 array (records,)
        Processors or nodes, as asked for, of each record.
    recorded_limit : int64 array (records,)
        Limits as the log has them.
    peak : int
        Most of them in use at once.
    peak_time : int
        Unix time at which that was so first.
    """

    table: RecordTable
    rows: Column
    requested: Column
    allocated: Column
    recorded_limit: Column
    peak: int
    peak_time: int


def jobs_of(table: RecordTable, rules: ImportRules, counter: StepCounter, clock: dt.tzinfo = dt.UTC) -> ImportedJobs:
    """Return the jobs that the records describe.

    Parameters
    ----------
    table : RecordTable
        The records; its columns are changed.
    rules : ImportRules
        What was asked for.
    counter : StepCounter
        Where every rule counts.
    clock : tzinfo
        Zone of times in messages.

    Raises
    ------
    UsageError
        If there is no such partition.
    WorkloadError
        If no job is left, or nodes are asked for and not in the log.
    """
    sieve = Sieve(table, counter)
    settle_runs(sieve, rules.requeued)
    merge_het(sieve)
    if rules.partitions:
        other = ~_in_partitions(table, rules.partitions)
        sieve.used &= ~other
        sieve.drop(other, "jobs of other partitions", "--partition", expected=True)
    sieve.drop(table.submit <= 0, "records without a submit time", "nobody can say when they came")
    submitted = table.submit[sieve.alive]
    outside = table.submit < (-1 if rules.begin is None else rules.begin)
    outside |= table.submit >= (_LATEST if rules.end is None else rules.end)
    sieve.drop(outside, "jobs submitted at another time", "--from, --to", expected=True)
    _not_over(sieve)
    _times(table)
    started = _started(sieve, keep=rules.keep_unstarted)
    _nodes(sieve)
    _gpus(table)
    requested, allocated = _sizes(sieve, rules.unit, started)
    _impossible(sieve, started)
    recorded_limit = table.limit.copy()
    settle_limits(sieve, rules)
    _notes(sieve, started, allocated, requested)
    rows = np.flatnonzero(sieve.alive)
    if not len(rows):
        raise WorkloadError(_nothing_left(len(table), counter, submitted, clock))
    sieve.count("kept", ~started, "jobs that never started, kept with -1", "--keep-unstarted")
    peak, peak_time = _peak(table, sieve.used, allocated)
    # The waiting rest of an array stands for its tasks.
    rows = table.in_order(rows)
    if len(rows) > _MOST_JOBS:
        raise WorkloadError(
            f"there are {len(rows):,} jobs, more than the {_MOST_JOBS:,} of a log; import a part of them (--from, "
            "--to, --partition)"
        )
    if (tasks := int(table.tasks[rows].sum())) > _MOST_JOBS:
        most = int(rows[np.argmax(table.tasks[rows])])
        raise WorkloadError(
            f"{table.place(most)}: with the tasks of arrays that never ran there are {tasks:,} jobs, more than the "
            f"{_MOST_JOBS:,} of a log; job {printable(table.job[most], 60)} alone has {table.tasks[most]:,}: leave out "
            "--keep-unstarted"
        )
    return ImportedJobs(
        table, np.repeat(rows, table.tasks[rows]), requested, allocated, recorded_limit, peak, peak_time
    )


def _in_partitions(table: RecordTable, partitions: tuple[str, ...]) -> Mask:
    """Return the rows in one of ``partitions``; a waiting job can name several, with commas between."""
    table.check_partitions(partitions, "--partition")
    names = table.names["partition"]
    wanted = [number for number, name in enumerate(names) if not set(name.split(",")).isdisjoint(partitions)]
    return np.isin(table.partition, wanted)


def _nothing_left(records: int, counter: StepCounter, submitted: Column, clock: dt.tzinfo) -> str:
    """Return why there is no job: what was dropped, and the time of the log where that matters."""
    steps = [step for step in counter.steps() if step.action == "dropped"]
    reasons = "; ".join(
        f"{step.what}: {step.count:,}{f', the first {step.first}' if step.value else ''}" for step in steps
    )
    text = f"no job is left of {records:,} records ({reasons or 'the log has none'})"
    if len(submitted) and any(step.why == "--from, --to" for step in steps):
        first, last = shown(int(submitted.min()), clock), shown(int(submitted.max()), clock)
        text += f"; its jobs were submitted from {first} to {last}"
    return text


def _not_over(sieve: Sieve) -> None:
    """Drop what has not ended: nobody knows for how long it will run."""
    table = sieve.table
    pending = table.state == State.pending
    sieve.drop(pending & (table.tasks > 1), f"tasks of arrays {STILL_WAIT}", "their run is to come")
    sieve.drop(pending, f"jobs {STILL_WAIT}", "their run is to come")
    # A part of a job whose next part is not in the log.
    running = (table.state == State.running) | (table.state == State.resized)
    running |= (table.state == State.unknown) & (table.end < 0) & (table.elapsed < 0)
    sieve.drop(running, "jobs that run, or are suspended, at the end of the log", "their run time is not known yet")


def _times(table: RecordTable) -> None:
    """Fill in a run time or an end that follows from the other times."""
    rested = np.maximum(table.suspended, 0)
    table.elapsed[:] = np.where(
        (table.elapsed < 0) & (table.start >= 0) & (table.end >= 0), table.end - table.start - rested, table.elapsed
    )
    table.end[:] = np.where(
        (table.end < 0) & (table.start >= 0) & (table.elapsed >= 0), table.start + table.elapsed + rested, table.end
    )


def _started(sieve: Sieve, *, keep: bool) -> Mask:
    """Return which jobs had the machine; drop the others unless they are to be kept."""
    table = sieve.table
    # A job cancelled in the queue can show Start = End = when it was cancelled (Slurm 22.05.8, seen).
    at_once = (table.elapsed <= 0) & (table.start == table.end) & (table.allocated_nodes < 0)
    never: Mask = (table.start < 0) | (table.allocated == 0) | ((table.state == State.cancelled) & at_once)
    if not keep:
        cancelled = table.state == State.cancelled
        why = "they never used the machine; --keep-unstarted keeps them"
        sieve.drop(never & cancelled, "jobs cancelled before they started", why)
        sieve.drop(never, "jobs that ended in another way before they started", why)
    return ~never


def _nodes(sieve: Sieve) -> None:
    """Keep a number of nodes only where it is what a job asked for: what a log has may be the least of them."""
    table = sieve.table
    least, had = table.requested_nodes, table.allocated_nodes
    # A job that had one node asked for no more.
    table.requested_nodes[(least <= 0) & (had == 1)] = 1
    more = (least > 0) & (had > least)
    sieve.count(
        "kept", more, "jobs that had more nodes than the least that they asked for: how many they wanted is not known",
        "ReqNodes is a minimum: 1 for sbatch -n 16, on however many nodes it runs",
    )  # fmt: skip
    table.requested_nodes[more] = -1


def _gpus(table: RecordTable) -> None:
    """Take the GPUs that jobs had for those that they asked for, where the log does not say these.

    Where some job asks for GPUs, the others ask for none, and those that they had came with a whole node.
    """
    unknown = table.gpus < 0 if (table.gpus > 0).any() else np.ones(len(table), dtype=bool)
    unknown &= table.allocated_gpus >= 0
    table.gpus[unknown] = table.allocated_gpus[unknown]


def _sizes(sieve: Sieve, unit: str, started: Mask) -> tuple[Column, Column]:
    """Return requested and allocated processors, or nodes; drop jobs without."""
    table = sieve.table
    requested, allocated = table.requested, table.allocated.copy()
    if unit == "nodes":
        requested, allocated = table.requested_nodes, table.allocated_nodes.copy()
        if not ((allocated[sieve.alive] > 0) | (requested[sieve.alive] > 0)).any() and sieve.alive.any():
            raise WorkloadError("--unit nodes: the log has no nodes; ask sacct for ReqNodes and AllocNodes")
    words = "nodes" if unit == "nodes" else "processors"
    unknown = started & (allocated <= 0)
    sieve.drop(unknown & (requested <= 0), f"jobs without a number of {words}", "they cannot be simulated")
    sieve.count(
        "changed", unknown, f"jobs whose allocated {words} the log does not say: taken as requested", "field 5 of SWF"
    )
    allocated[unknown] = requested[unknown]
    allocated[~started] = -1
    return requested, allocated


def _impossible(sieve: Sieve, started: Mask) -> None:
    """Drop jobs whose times cannot be."""
    table = sieve.table
    wrong = "a clock was wrong, or the record was written after a crash"
    sieve.drop(started & (table.start < table.submit), "jobs that started before they were submitted", wrong)
    sieve.drop(started & (table.end >= 0) & (table.end < table.start), "jobs that ended before they started", wrong)
    sieve.drop(started & (table.elapsed < 0), "jobs that ended, without a run time", "no end and no elapsed time")


def _notes(sieve: Sieve, started: Mask, allocated: Column, requested: Column) -> None:
    """Count what is kept as it is and should be known."""
    table = sieve.table
    rested = np.maximum(table.suspended, 0)
    sieve.count(
        "kept", started & (rested > 0), "jobs that were suspended: the run time is without that time",
        "a suspended job gives its processors back; its end in the new log is so much earlier",
    )  # fmt: skip
    sieve.count(
        "kept", started & (requested > 0) & (allocated > requested), "jobs that had more than they requested",
        "whole nodes (--exclusive) or whole cores: field 5 is what they had, field 8 what they requested",
    )  # fmt: skip
    sieve.count(
        "kept", started & (table.limit > 0) & (table.elapsed > table.limit), "jobs that ran beyond their limit",
        "sites have grace periods; workload clean --overrun says what becomes of them",
    )  # fmt: skip
    apart = np.abs(table.end - table.start - rested - table.elapsed) > 60
    sieve.count(
        "kept", started & (table.end >= 0) & apart, "jobs whose end is not where start and run time put it",
        "by more than a minute; the run time stands",
    )  # fmt: skip
    sieve.count(
        "kept", started & (table.eligible > table.submit), "jobs that could not have run at once",
        "a dependency, a hold, a begin time or an array's own limit: that time is in their recorded wait",
    )  # fmt: skip
    sieve.count("kept", started & (table.state == State.unknown), "jobs whose end has no known word", "status -1")


def _peak(table: RecordTable, used: Mask, allocated: Column) -> tuple[int, int]:
    """Return the most processors in use at once, and when first; an end frees them before a start of the same second.

    Jobs that still run count as well: they have their processors.
    """
    size = np.where(allocated > 0, allocated, 0)
    rows = np.flatnonzero(used & (table.start >= 0) & (size > 0))
    ends = table.end[rows]
    over = ends >= 0
    times = np.concatenate([table.start[rows], np.maximum(ends[over], table.start[rows][over])])
    change = np.concatenate([size[rows], -size[rows][over]])
    if not len(times):
        return 0, 0
    order = np.lexsort((change, times))
    level = np.cumsum(change[order])
    top = int(np.argmax(level))
    return int(level[top]), int(times[order][top])
