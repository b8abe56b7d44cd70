"""Several records that are one job: the same record twice, earlier looks at a job, runs of a requeued job, het jobs."""

from __future__ import annotations

import numpy as np

from policyfactory.core.units import DAY, format_duration
from policyfactory.workload.accounting.record import State
from policyfactory.workload.accounting.table import RecordTable, Sieve

__all__ = ["merge_het", "settle_runs"]

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


def _distinct(sieve: Sieve, rows: list[int]) -> list[int]:
    """Return ``rows`` without those that are the same as one before."""
    first: dict[tuple[int, ...], int] = {}
    for row in rows:
        first.setdefault(tuple(int(getattr(sieve.table, column)[row]) for column in _SAME), row)
    left = list(first.values())
    why = "parts of a log overlap, or were given twice"
    sieve.drop(sorted({*rows} - {*left}), "records that are in the log twice", why, expected=True)
    return left


def _looks(sieve: Sieve, rows: list[int]) -> list[int]:
    """Return ``rows`` in order of time, without those that a later look at the same run makes old."""
    table = sieve.table
    over = [row for row in rows if table.state[row] not in _NOT_OVER]
    left = list({(int(table.submit[row]), int(table.start[row])): row for row in over}.values())
    why = "printed by sacct at another time; what comes last stands"
    sieve.drop(sorted({*over} - {*left}), "records of a run that a later record contradicts", why, expected=True)
    waiting = sorted({*rows} - {*over})
    if waiting:
        # A job is in one state: the look with the latest submission, started before waiting, last in the log.
        latest = max(waiting, key=lambda row: (table.submit[row], table.start[row], row))
        old = any(table.submit[row] >= table.submit[latest] and table.start[row] >= table.start[latest] for row in left)
        why = "printed while the job waited or ran; another record says how it went on"
        what = "records of a run whose end is in a later record"
        sieve.drop([row for row in waiting if row != latest or old], what, why, expected=True)
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
            for column in ("allocated", "allocated_nodes", "allocated_gpus"):
                getattr(table, column)[first] = getattr(table, column)[row]
        for column in ("elapsed", "suspended"):
            values = getattr(table, column)
            values[first] = values[first] + values[row] if min(values[first], values[row]) >= 0 else -1
        for column in ("end", "state", "limit", "limit_kind"):
            getattr(table, column)[first] = getattr(table, column)[row]
        why = "it is one job, and field 5 is the size that it had longest"
        sieve.count("merged", [row], "parts of jobs that changed their size while they ran, with the first part", why)
        sieve.alive[row] = False
    return left


def _chains(sieve: Sieve, rows: list[int]) -> list[list[int]]:
    """Return the rows of one id as jobs: after a wrap or a new data base an id comes again."""
    table = sieve.table
    chains: list[list[int]] = []
    what = f"jobs with an id that another user's job had, or one more than {format_duration(_ID_AGAIN)} before"
    why = "ids begin again after a wrap or with a new data base: each is a job"
    for row in rows:
        before = chains[-1][-1] if chains else row
        again = table.submit[row] - max(table.end[before], table.submit[before]) > _ID_AGAIN
        if chains and table.user[row] == table.user[before] and not again:
            chains[-1].append(row)
            continue
        if chains:
            sieve.counter.add("kept", what, why, 1, table.job[row], table.place(row))
        chains.append([row])
    return chains


def _requeued(sieve: Sieve, chain: list[int], mode: str) -> None:
    """Settle the runs of one job that went back to the queue."""
    table = sieve.table
    first, last = chain[0], chain[-1]
    if mode == "runs":
        sieve.counter.add(
            "kept", "runs of a job that went back to the queue: each is a job", "asked for with --requeued runs",
            len(chain), table.job[first], table.place(first),
        )  # fmt: skip
        return
    if mode == "drop":
        what = "runs of a job that went back to the queue"
        sieve.drop(chain, what, "--requeued drop", expected=True)
        return
    started = [row for row in chain if table.start[row] >= 0 and table.allocated[row] != 0]
    chosen = last
    if table.state[last] not in _NOT_OVER and started:
        chosen = started[-1]
    sieve.drop(
        [row for row in chain if row != chosen],
        "runs of a job that went back to the queue, before its last run",
        "the last run is what the user got, and it waited since the first submission",
        expected=True,
    )
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
                sieve.alive[others] = sieve.used[others] = False
                why = "they start together and are one job"
                sieve.count("merged", others, "components of a het job, with its first component", why)


def _merge(table: RecordTable, leader: int, rows: list[int]) -> None:
    """Give the row of the first component what all have together."""
    for column in ("requested", "allocated", "requested_nodes", "allocated_nodes", "memory", "gpus", "allocated_gpus"):
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
