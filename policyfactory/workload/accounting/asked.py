"""What imported jobs asked for besides processors and time, as further fields of the new log, and what is lacking."""

from __future__ import annotations

import numpy as np

from policyfactory.workload.accounting.rules import ImportedJobs
from policyfactory.workload.accounting.table import Column

__all__ = ["LACKING", "after_of", "extra_of", "lacking"]

# What it costs that no record has a column: the further field, or field 17, and the words.
LACKING: dict[str, str] = {
    "nodes": "nodes asked for (sacct: ReqNodes and AllocNodes; PBS: nodect): formulas that read n need --assume n=..., "
    "and jobs that take whole nodes are simulated by their processors",
    "memory_mb": "memory (sacct: ReqTRES; PBS: mem or select): formulas that read mem need --assume mem=..., and the "
    "simulation shows no waits for memory",
    "gpus": "GPUs (sacct: gres/gpu in ReqTRES, which needs AccountingStorageTRES=gres/gpu; PBS: ngpus): if the cluster "
    "has none, --assume g=0 says so to formulas that read g",
    "eligible": "eligible times (sacct: Eligible; PBS: etime): waits for a begin time or a dependency count as waits "
    "for the machine",
    "partition": "partitions (sacct: Partition; PBS: queue): a site's partitions and their limits cannot be applied",
    "qos": "qualities of service (sacct: QOS): their priorities and limits cannot be applied",
    "user_name": "names of users (sacct: User): shares and limits that a site gives users by name cannot be applied; "
    "those of each user count by the user's number",
    "account": "accounts (sacct: Account; PBS: account or project): fair share cannot be computed by account",
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
    places = {parent: place for place, parent in enumerate(limits, start=1)}
    own = [parents[row][0] if parents[row][1] else "" for row in rows.tolist()]
    return (
        np.array([places.get(parent, -1) for parent in own], dtype=np.int64),
        np.array([limits.get(parent, -1) for parent in own], dtype=np.int64),
    )


def after_of(jobs: ImportedJobs) -> Column:
    """Return the number in the new log of the job that had to end first, -1 if there is none in it.

    Of several it is the one that ended last; of an array its task that ended last.
    """
    table, rows = jobs.table, jobs.rows
    after = np.full(len(rows), -1, dtype=np.int64)
    waiting = np.flatnonzero(table.after[rows] > 0)
    if not len(waiting):
        return after
    ends = np.where(table.end[rows] >= 0, table.end[rows], table.submit[rows])
    number: dict[str, int] = {}
    for place, row in enumerate(rows.tolist()):
        job = table.job[row]
        for name in {job, job.partition("_")[0]}:
            best = number.get(name)
            if best is None or ends[place] >= ends[best]:
                number[name] = place
    for place in waiting.tolist():
        ids = table.names["after"][table.after[rows[place]]].split(":")
        first = [number[name] for name in ids if name in number and number[name] != place]
        if first:
            after[place] = max(first, key=lambda one: int(ends[one])) + 1
    return after


def lacking(jobs: ImportedJobs, extra: dict[str, Column], partition: Column) -> tuple[str, ...]:
    """Return what no job of the log says, and what that costs, in words."""
    table = jobs.table
    named = (table.user_name[jobs.rows] > 0).any() or not all(name.isdigit() for name in table.names["user"][1:])
    known = {*extra, *(("partition",) if (partition >= 0).any() else ()), *(("user_name",) if named else ())}
    return tuple(f"the log has no {words}" for name, words in LACKING.items() if name not in known)
