"""From records to jobs: what an import keeps, drops and changes, rule by rule, each counted."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.core.text import DAY, counted, format_duration
from policyfactory.workload.accounting.options import ImportRules
from policyfactory.workload.accounting.record import CORRESPONDING, SINGLE, LimitKind, State, array_ranges
from policyfactory.workload.accounting.table import Column, Mask, PartitionLimits, RecordTable, Sieve, StepCounter
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.header import printable
from policyfactory.workload.windows import in_use

# How the steps end that drop what has not begun.
STILL_WAIT = "that wait at the end of the log"

# More are no log that anything could be done with.
_MOST_JOBS = 20_000_000
# What tasks that never ran cost is bounded by the records: so many are taken of any log, or so many of each record.
_FEW_TASKS, _TASKS_EACH = 1_000_000, 20
_LONGEST_TASK = 12  # digits of the number of a task
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
    _settle_rests(sieve)
    merge_het(sieve)
    if rules.partitions:
        other = ~_in_partitions(table, rules.partitions)
        sieve.used &= ~other
        sieve.note("rules.partition", other)
    sieve.note("rules.no_submit", table.submit <= 0)
    submitted = table.submit[sieve.alive]
    outside = table.submit < (-1 if rules.begin is None else rules.begin)
    outside |= table.submit >= (_LATEST if rules.end is None else rules.end)
    sieve.note("rules.period", outside)
    _not_over(sieve)
    _times(table)
    started = _started(sieve, keep=rules.keep_unstarted)
    _nodes(sieve)
    _as_had(sieve)
    requested, allocated = _sizes(sieve, rules.unit, started)
    _impossible(sieve, started)
    recorded_limit = table.limit.copy()
    settle_limits(sieve, rules)
    _notes(sieve, started, allocated, requested)
    rows = np.flatnonzero(sieve.alive)
    if not len(rows):
        raise WorkloadError(_nothing_left(len(table), counter, submitted, clock))
    sieve.note("rules.unstarted", ~started)
    peak, peak_time = _peak(table, sieve.used, allocated)
    # The waiting rest of an array stands for its tasks.
    rows = table.in_order(rows)
    if len(rows) > _MOST_JOBS:
        raise WorkloadError(
            f"there are {len(rows):,} jobs, more than the {_MOST_JOBS:,} of a log; import a part of them (--from, "
            "--to, --partition)"
        )
    tasks = table.tasks[rows]
    bound = max(_FEW_TASKS, min(_TASKS_EACH * len(rows), _MOST_JOBS))
    if (total := int(tasks.sum())) > bound:
        most = int(rows[np.argmax(tasks)])
        raise WorkloadError(
            f"{table.location(most)}: with the tasks of arrays that never ran there are {total:,} jobs, more than the "
            f"{bound:,} of a log of so many records; job {printable(table.job[most], 60)} alone has "
            f"{tasks.max():,}: leave out --keep-unstarted, or its line"
        )
    return ImportedJobs(
        table=table,
        rows=np.repeat(rows, tasks),
        requested=requested,
        allocated=allocated,
        recorded_limit=recorded_limit,
        peak=peak,
        peak_time=peak_time,
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
        return f"{text}; its jobs were submitted from {first} to {last}"
    return f"{text}; is it the whole log?"


def _not_over(sieve: Sieve) -> None:
    """Drop what has not ended: nobody knows for how long it will run."""
    table = sieve.table
    pending = table.state == State.pending
    sieve.note("rules.tasks_wait", pending & (table.tasks > 1))
    sieve.note("rules.waits", pending)
    # A part of a job whose next part is not in the log.
    running = (table.state == State.running) | (table.state == State.resized)
    running |= (table.state == State.unknown) & (table.end < 0) & (table.elapsed < 0)
    sieve.note("rules.runs", running)


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
        sieve.note("rules.cancelled", never & (table.state == State.cancelled))
        sieve.note("rules.never_started", never)
    return ~never


def _nodes(sieve: Sieve) -> None:
    """Keep a number of nodes only where it is what a job asked for: what a log has may be the least of them."""
    table = sieve.table
    least, had = table.requested_nodes, table.allocated_nodes
    # A job that had one node asked for no more.
    table.requested_nodes[(least <= 0) & (had == 1)] = 1
    more = (least > 0) & (had > least)
    sieve.note("rules.more_nodes", more)
    table.requested_nodes[more] = -1


def _as_had(sieve: Sieve) -> None:
    """Take the memory and the GPUs that jobs had for those that they asked for, where the log does not say these.

    Where some job asks for GPUs, the others ask for none, and those that they had came with a whole node.
    """
    table = sieve.table
    no_gpus = table.gpus < 0 if (table.gpus > 0).any() else np.ones(len(table), dtype=bool)
    for name, words, unknown in (("memory", "memory", table.memory < 0), ("gpus", "GPUs", no_gpus)):
        asked, had = getattr(table, name), getattr(table, f"allocated_{name}")
        taken = unknown & (had >= 0)
        asked[taken] = had[taken]
        sieve.note("rules.as_had", taken & (had > 0), words)


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
    sieve.note("rules.no_size", unknown & (requested <= 0), words)
    sieve.note("rules.as_requested", unknown, words)
    allocated[unknown] = requested[unknown]
    allocated[~started] = -1
    return requested, allocated


def _impossible(sieve: Sieve, started: Mask) -> None:
    """Drop jobs whose times cannot be."""
    table = sieve.table
    sieve.note("rules.early_start", started & (table.start < table.submit))
    sieve.note("rules.early_end", started & (table.end >= 0) & (table.end < table.start))
    sieve.note("rules.no_run_time", started & (table.elapsed < 0))


def _notes(sieve: Sieve, started: Mask, allocated: Column, requested: Column) -> None:
    """Count what is kept as it is and should be known."""
    table = sieve.table
    rested = np.maximum(table.suspended, 0)
    sieve.note("rules.suspended", started & (rested > 0))
    sieve.note("rules.more_than_asked", started & (requested > 0) & (allocated > requested))
    sieve.note("rules.overrun", started & (table.limit > 0) & (table.elapsed > table.limit))
    apart = np.abs(table.end - table.start - rested - table.elapsed) > 60
    sieve.note("rules.end_apart", started & (table.end >= 0) & apart)
    sieve.note("rules.eligible", started & (table.eligible > table.submit))
    sieve.note("rules.no_word", started & (table.state == State.unknown))
    sieve.note("rules.goes_on", started & (table.state == State.requeued))


def _peak(table: RecordTable, used: Mask, allocated: Column) -> tuple[int, int]:
    """Return the most processors in use at once, and when first; an end frees them before a start of the same second.

    Jobs that still run count as well: they have their processors.
    """
    rows = np.flatnonzero(used & (table.start >= 0) & (allocated > 0))
    if not len(rows):
        return 0, 0
    start, end = table.start[rows], table.end[rows]
    times, level = in_use(start, np.where(end >= 0, np.maximum(end, start), _LATEST), allocated[rows])
    top = int(np.argmax(level))
    return int(level[top]), int(times[top])


# Several records that are one job -------------------------------------------------------------------------------------

# The same record twice, earlier looks at a job, runs of a requeued job, het jobs.


# After this long an id that comes again is that of another job: a requeue follows the end of a run within minutes.
_ID_AGAIN = 30 * DAY
_NOT_OVER = (State.running, State.pending)
_SAME = (
    "submit", "start", "end", "elapsed", "limit", "requested", "allocated", "allocated_nodes", "state", "partition",
)  # fmt: skip


def settle_runs(sieve: Sieve, mode: str) -> None:
    """Make one job of the records with one id.

    Parameters
    ----------
    sieve : Sieve
        All records; the rows that stay for requeued jobs are changed.
    mode : str
        What becomes of a job that ran several times: ``"last"`` (the last run counts, from the first submission),
        ``"runs"`` (each run is a job), ``"drop"``.
    """
    chains: list[list[int]] = []
    for rows in sieve.table.again():
        chains += _chains(sieve, _resized(sieve, _looks(sieve, _distinct(sieve, rows))))
    sieve.used = sieve.alive.copy()
    for chain in chains:
        if len(chain) > 1:
            _requeued(sieve, chain, mode)


def _settle_rests(sieve: Sieve) -> None:
    """Take from the waiting rests of arrays (``57_[0-20]``) the tasks that a later look has by themselves."""
    table = sieve.table
    rests: dict[str, list[int]] = {}
    for row in np.flatnonzero((table.state == State.pending) & sieve.alive).tolist():
        array, rest, _ = table.job[row].partition("_[")
        if rest:
            rests.setdefault(array, []).append(row)
    if not rests:
        return
    apart: dict[str, list[tuple[int, int]]] = {}
    for row, job in enumerate(table.job):
        array, _, task = job.partition("_")
        if array in rests and task.isdecimal() and len(task) <= _LONGEST_TASK:
            apart.setdefault(array, []).append((int(task), int(table.submit[row])))
    for array, rows in rests.items():
        # The last look at an array has the fewest of its tasks.
        last: dict[int, int] = {}
        for row in sorted(rows, key=lambda row: -table.tasks[row]):
            last[int(table.submit[row])] = row
        sieve.note("rules.earlier_look", sorted({*rows} - {*last.values()}))
        for submit, row in last.items():
            indices = table.job[row].partition("_[")[2].rstrip("]").partition("%")[0].removesuffix("...")
            tasks = np.unique([task for task, second in apart.get(array, ()) if second >= submit])
            begun = np.zeros(len(tasks), dtype=bool)
            for some in array_ranges(indices):
                begun |= (tasks >= some.start) & (tasks < some.stop) & ((tasks - some.start) % some.step == 0)
            if (count := int(begun.sum())) >= table.tasks[row]:
                sieve.note("rules.earlier_look", [row])
            elif count:
                sieve.counter.remark(table.remark("rules.earlier_look", row, count, ""), table.file(row))
                table.tasks[row] -= count


def _distinct(sieve: Sieve, rows: list[int]) -> list[int]:
    """Return ``rows`` without those that are the same as one before."""
    first: dict[tuple[int, ...], int] = {}
    for row in rows:
        first.setdefault(tuple(int(getattr(sieve.table, column)[row]) for column in _SAME), row)
    left = list(first.values())
    sieve.note("rules.twice", sorted({*rows} - {*left}))
    return left


def _looks(sieve: Sieve, rows: list[int]) -> list[int]:
    """Return ``rows`` in order of time, without those that a later look at the same run makes old."""
    table = sieve.table
    over = [row for row in rows if table.state[row] not in _NOT_OVER]
    left = list({(int(table.submit[row]), int(table.start[row])): row for row in over}.values())
    sieve.note("rules.contradicted", sorted({*over} - {*left}))
    waiting = sorted({*rows} - {*over})
    if waiting:
        # A job is in one state: the look with the latest submission, started before waiting, last in the log.
        latest = max(waiting, key=lambda row: (table.submit[row], table.start[row], row))
        old = any(table.submit[row] >= table.submit[latest] and table.start[row] >= table.start[latest] for row in left)
        sieve.note("rules.earlier_look", [row for row in waiting if row != latest or old])
        left += [] if old else [latest]
    return sorted(left, key=lambda row: (table.submit[row], table.start[row] < 0, table.start[row], row))


def _resized(sieve: Sieve, rows: list[int]) -> list[int]:
    """Return ``rows`` with one for the parts of a run that changed its size: from the first start to the last end.

    It has the processors and nodes that it had longest.
    """
    table, left, longest = sieve.table, list[int](), 0
    for row in rows:
        if not left or table.state[left[-1]] != State.resized:
            left.append(row)
            longest = int(table.elapsed[row])
            continue
        first = left[-1]
        if table.elapsed[row] > longest:
            longest = int(table.elapsed[row])
            for column in ("allocated", "allocated_nodes", "allocated_gpus", "allocated_memory"):
                getattr(table, column)[first] = getattr(table, column)[row]
        for column in ("elapsed", "suspended"):
            values = getattr(table, column)
            values[first] = values[first] + values[row] if min(values[first], values[row]) >= 0 else -1
        for column in ("end", "state", "limit", "limit_kind"):
            getattr(table, column)[first] = getattr(table, column)[row]
        sieve.note("rules.resized", [row])
    return left


def _chains(sieve: Sieve, rows: list[int]) -> list[list[int]]:
    """Return the rows of one id as jobs: after a wrap or a new data base an id comes again."""
    table = sieve.table
    chains: list[list[int]] = []
    for row in rows:
        before = chains[-1][-1] if chains else row
        again = table.submit[row] - max(table.end[before], table.submit[before]) > _ID_AGAIN
        if chains and table.user[row] == table.user[before] and not again:
            chains[-1].append(row)
            continue
        if chains:
            sieve.note("rules.id_again", [row], format_duration(_ID_AGAIN))
        chains.append([row])
    return chains


def _requeued(sieve: Sieve, chain: list[int], mode: str) -> None:
    """Settle the runs of one job that went back to the queue."""
    table = sieve.table
    first, last = chain[0], chain[-1]
    if mode != "last":
        sieve.note("rules.each_run" if mode == "runs" else "rules.requeued", chain)
        return
    started = [row for row in chain if table.start[row] >= 0 and table.allocated[row] != 0]
    chosen = last
    if table.state[last] not in _NOT_OVER and started:
        chosen = started[-1]
    sieve.note("rules.last_run", [row for row in chain if row != chosen])
    table.submit[chosen] = table.submit[first]
    table.eligible[chosen] = table.eligible[first]
    if chosen != last:
        # Cancelled while it waited to run again.
        table.state[chosen] = table.state[last]


def merge_het(sieve: Sieve) -> None:
    """Make one job of the components of a het job, its first: they start together, on the sum of their processors."""
    table = sieve.table
    for rows in table.het.values():
        parts: dict[tuple[int, int], list[int]] = {}
        for row in rows:
            if sieve.alive[row]:
                parts.setdefault((int(table.submit[row]), int(table.start[row])), []).append(row)
        for leader, *others in parts.values():
            if others:
                _merge(table, leader, [leader, *others])
                # The first component has all processors now.
                sieve.used[others] = False
                sieve.note("rules.het", others)


def _merge(table: RecordTable, leader: int, rows: list[int]) -> None:
    """Give the row of the first component what all have together."""
    sizes = ("requested", "allocated", "requested_nodes", "allocated_nodes")
    for column in (*sizes, "memory", "gpus", "allocated_gpus", "allocated_memory"):
        values = getattr(table, column)
        values[leader] = -1 if (values[rows] < 0).any() else values[rows].sum()
    for column in ("end", "elapsed", "suspended", "exclusive"):
        values = getattr(table, column)
        values[leader] = values[rows].max()
    kinds = table.limit_kind[rows]
    if (kinds == kinds[0]).all() or (table.limit[rows] >= 0).all():
        longest = rows[int(np.argmax(table.limit[rows]))]
        table.limit[leader], table.limit_kind[leader] = table.limit[longest], table.limit_kind[longest]
    else:
        # One component without a number: the whole has none.
        vague = rows[int(np.argmax(table.limit[rows] < 0))]
        table.limit[leader], table.limit_kind[leader] = -1, table.limit_kind[vague]
    worst = [State.running, State.pending, State.node_fail, State.timeout, State.failed, State.cancelled]
    table.state[leader] = next((state for state in worst if state in table.state[rows]), table.state[leader])
    if table.state[leader] in _NOT_OVER:
        table.end[leader] = -1


# What a limit in an accounting log says about what the user asked for -------------------------------------------------


def settle_limits(sieve: Sieve, rules: ImportRules) -> None:
    """Give a number to the limits that have none, where one was given, and take away what nobody asked for.

    Parameters
    ----------
    sieve : Sieve
        The column ``limit`` of its table is changed.
    rules : ImportRules
        What was asked for.

    Raises
    ------
    UsageError
        If a limit was given for a partition that the log does not have.
    """
    table, kind = sieve.table, sieve.table.limit_kind
    table.check_partitions(rules.partition_limit, "--partition-limit")
    table.check_partitions(rules.default_limit, "--default-limit")
    unlimited, missing = kind == LimitKind.unlimited, kind == LimitKind.missing
    limits = _by_partition(table, rules.partition_limit)
    of_partition = kind == LimitKind.partition
    known = of_partition & (limits >= 0)
    if rules.unlimited is None:
        sieve.note("rules.unlimited", unlimited)
    else:
        sieve.note("rules.unlimited_given", unlimited, f"{rules.unlimited}")
        table.limit[unlimited & sieve.alive] = rules.unlimited
    sieve.note("rules.partition_limit_given", known)
    table.limit[known] = limits[known]
    sieve.note("rules.partition_limit", of_partition & ~known)
    if rules.assumed is None:
        sieve.note("rules.no_limit", missing)
    else:
        sieve.note("rules.assumed", missing, f"{rules.assumed}")
        table.limit[missing & sieve.alive] = rules.assumed
    sieve.note("rules.asked", kind == LimitKind.asked)
    defaults = _by_partition(table, rules.default_limit)
    perhaps = (kind == LimitKind.given) & (table.limit >= 0) & (table.limit == defaults)
    if rules.defaults == "unknown":
        sieve.note("rules.default_unknown", perhaps)
        table.limit[perhaps] = -1
    else:
        sieve.note("rules.default_keep", perhaps)


def _by_partition(table: RecordTable, limits: Mapping[str, int]) -> Column:
    """Return the limit given for each row's partition, -1 where none was."""
    names = table.names["partition"]
    return np.array([limits.get(name, -1) for name in names], dtype=np.int64)[table.partition]


def partition_limits(
    table: RecordTable, rows: Column, limit: Column, defaults: Mapping[str, int]
) -> tuple[PartitionLimits, ...]:
    """Return what the jobs of each partition request, largest partition first.

    Parameters
    ----------
    table : RecordTable
        The records.
    rows : int64 array (n,)
        The jobs.
    limit : int64 array (records,)
        Limits as the log has them, before a rule took any away.
    defaults : mapping of str to int
        Defaults that were given.
    """
    partitions = []
    for number, name in enumerate(table.names["partition"]):
        mine = rows[table.partition[rows] == number]
        if not len(mine):
            continue
        asked = table.limit_kind[mine] == LimitKind.asked
        limited = limit[mine] >= 0
        values, counts = np.unique(limit[mine][limited & ~asked], return_counts=True)
        most = int(np.argmax(counts)) if len(counts) else -1
        partitions.append(
            PartitionLimits(
                partition=name,
                jobs=len(mine),
                limited=int(limited.sum()),
                asked=int((asked & limited).sum()),
                commonest=int(values[most]) if most >= 0 else None,
                share=float(counts[most] / limited.sum()) if most >= 0 else 0.0,
                default=defaults.get(name),
            )
        )
    return tuple(sorted(partitions, key=lambda partition: (-partition.jobs, partition.partition)))


def unrequested(table: RecordTable, rows: Column, limit: Column) -> dict[str, int]:
    """Return how many jobs have no requested time, by what the log says of it.

    Parameters
    ----------
    table : RecordTable
        The records, after the rules.
    rows : int64 array (n,)
        The jobs.
    limit : int64 array (records,)
        Limits as the log has them, before a rule took any away.
    """
    rows = rows[table.limit[rows] < 0]
    known, kind = limit[rows] >= 0, table.limit_kind[rows]
    kinds = {
        "UNLIMITED": ~known & (kind == LimitKind.unlimited),
        "Partition_Limit": ~known & (kind == LimitKind.partition),
        "made unknown by --defaults unknown": known,
    }
    counts = {name: int(mask.sum()) for name, mask in kinds.items()}
    counts["without one in the log"] = len(rows) - sum(counts.values())
    return {name: count for name, count in counts.items() if count}


# What imported jobs asked for besides processors and time -------------------------------------------------------------

# What imported jobs asked for besides processors and time, as further fields of the new log, and what is lacking.


# What it costs that no record has a column: the further field, or field 17, and the words.
LACKING: dict[str, str] = {
    "nodes": "nodes asked for (sacct: ReqNodes and AllocNodes; PBS: nodect; Grid Engine: none): formulas that read n "
    "need --assume n=..., and jobs that take whole nodes are simulated by their processors",
    "memory_mb": "memory (sacct: ReqTRES; PBS: mem or select; Grid Engine: -l h_vmem): formulas that read mem need "
    "--assume mem=..., and the simulation shows no waits for memory",
    "gpus": "GPUs (sacct: gres/gpu in ReqTRES, which needs AccountingStorageTRES=gres/gpu; PBS: ngpus; Grid Engine: "
    "-l gpu): if the cluster has none, --assume g=0 says so to formulas that read g",
    "eligible": "eligible times (sacct: Eligible; PBS: etime; Grid Engine: none): waits for a begin time or a "
    "dependency count as waits for the machine",
    "partition": "partitions (sacct: Partition; PBS: queue): a site's partitions and their limits cannot be applied",
    "qos": "qualities of service (sacct: QOS): their priorities and limits cannot be applied",
    "user_name": "names of users (sacct: User): shares and limits that a site gives users by name cannot be applied; "
    "those of each user count by the user's number",
    "account": "accounts (sacct: Account; PBS: account or project; Grid Engine: project): fair share cannot be "
    "computed by account",
}


def extra_of(jobs: ImportedJobs, begins: int, qos: Column, account: Column) -> dict[str, Column]:
    """Return the further fields of the new log that any job has a value for.

    Parameters
    ----------
    jobs : ImportedJobs
        What the rules left.
    begins : int
        Unix time of the new log's second 0.
    qos, account : int64 array (n,)
        Numbers of the quality of service and account of each job, -1 for none.
    """
    table, rows = jobs.table, jobs.rows
    asked, had = table.requested_nodes[rows], table.allocated_nodes[rows]
    # Where nobody asks for a GPU the log may not count them at all.
    gpus = table.gpus[rows]
    # Not before its submission, nor after its start: a requeued job has become eligible again.
    latest = np.where(table.start[rows] >= 0, table.start[rows], np.iinfo(np.int64).max)
    eligible = np.minimum(np.maximum(table.eligible[rows], table.submit[rows]), latest) - begins
    columns = {
        "nodes": np.where(asked > 0, asked, -1),
        "memory_mb": table.memory[rows],
        "gpus": gpus if (gpus > 0).any() else np.full(len(rows), -1, dtype=np.int64),
        "exclusive": table.exclusive[rows],
        "eligible": np.where(table.eligible[rows] > 0, eligible, -1),
        "qos": qos,
        "account": account,
    }
    columns["array"], columns["array_limit"] = _arrays(jobs)
    columns["allocated_nodes"] = np.where((asked <= 0) & (had > 0), had, -1)
    return {name: column for name, column in columns.items() if (column >= 0).any()}


def _arrays(jobs: ImportedJobs) -> tuple[Column, Column]:
    """Return the number of the array of each job and its limit of tasks at once, of arrays of which one is known."""
    table, rows = jobs.table, jobs.rows
    none = np.full(len(rows), -1, dtype=np.int64)
    if not (table.array_limit > 0).any():
        return none, none
    parents = [table.job[row].partition("_") for row in range(len(table))]
    limits: dict[str, int] = {}
    # A limit that was changed is in the record that was written last.
    for row in np.flatnonzero(table.array_limit > 0).tolist():
        if parents[row][1]:
            limits[parents[row][0]] = int(table.array_limit[row])
    places = {parent: number for number, parent in enumerate(limits, start=1)}
    parent_of = [parents[row][0] if parents[row][1] else "" for row in rows.tolist()]
    return (
        np.array([places.get(parent, -1) for parent in parent_of], dtype=np.int64),
        np.array([limits.get(parent, -1) for parent in parent_of], dtype=np.int64),
    )


def after_of(jobs: ImportedJobs) -> Column:
    """Return the number in the new log of the job that had to end first, -1 if there is none in it.

    Of several it is the one that ended last; of an array its task that ended last, or the corresponding one; of the
    earlier jobs of the same user and name the one that ended last.
    """
    table, rows = jobs.table, jobs.rows
    after = np.full(len(rows), -1, dtype=np.int64)
    waiting = np.flatnonzero(table.after[rows] > 0)
    if not len(waiting):
        return after
    ends = np.where(table.end[rows] >= 0, table.end[rows], table.submit[rows])
    number: dict[str, int] = {}
    last: dict[tuple[int, int], int] = {}  # of each user's jobs of a name, the one that ended last
    single: dict[int, int] = {}
    for row_number, row in enumerate(rows.tolist()):
        job = table.job[row]
        for name in {job, job.partition("_")[0]}:
            best = number.get(name)
            if best is None or ends[row_number] >= ends[best]:
                number[name] = row_number
        who = int(table.user[row]), int(table.name[row])
        earlier = last.get(who, row_number)
        single[row_number] = earlier
        last[who] = row_number if ends[row_number] >= ends[earlier] else earlier
    for row_number in waiting.tolist():
        row = rows[row_number]
        ids = table.names["after"][table.after[row]].split(":")
        first = [number[name] for name in _meant(ids, table.job[row], number)]
        if SINGLE in ids and table.name[row] > 0 and table.user[row] > 0:
            first.append(single[row_number])
        first = [other for other in first if other != row_number]
        if first:
            after[row_number] = max(first, key=lambda name: int(ends[name])) + 1
    return after


def _meant(ids: list[str], job: str, known: Mapping[str, int]) -> Iterator[str]:
    """Give the jobs that are known of those that one waits for; a task of its corresponding one, if that is there."""
    task = job.partition("_")[2]
    for name in ids:
        array, _, which = name.partition("_")
        choices = (f"{array}_{task}", array) if which == CORRESPONDING else (name,)
        yield from [choice for choice in choices if choice in known][:1]


def lists_of(jobs: ImportedJobs) -> Column:
    """Return which list of partitions each job asked for, 0 for none, or one without the partition that it was in.

    Arguments of the job script can look the same, and a job can be moved.
    """
    table, rows = jobs.table, jobs.rows
    lists, partition = table.partitions[rows], table.partition[rows]
    if not (lists > 0).any():
        return lists
    several = [frozenset(text.split(",")) for text in table.names["partitions"]]
    names = table.names["partition"]
    known = [chosen > 0 and names[number] in several[chosen] for chosen, number in zip(lists, partition, strict=True)]
    return np.where(known, lists, 0)


def lacking(jobs: ImportedJobs, extra: dict[str, Column], partition: Column) -> tuple[str, ...]:
    """Return what no job of the log says, and what that costs, in words."""
    table = jobs.table
    named = (table.user_name[jobs.rows] > 0).any() or not all(name.isdigit() for name in table.names["user"][1:])
    known = {*extra, *(("partition",) if (partition >= 0).any() else ()), *(("user_name",) if named else ())}
    words = [words for name, words in LACKING.items() if name not in known]
    if "partitions" not in extra and (several := int((lists_of(jobs) > 0).sum())):
        words.append(
            f"lists of partitions (--anonymize leaves out those of {counted(several, 'job')}): each job waits for the "
            "one in which it was"
        )
    return tuple(f"the log has no {what}" for what in words)
