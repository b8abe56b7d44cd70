"""Several records that are one job: the same record twice, earlier looks at a job, runs of a requeued job, het jobs."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY, format_duration
from policyfactory.workload.accounting.record import STATES, State
from policyfactory.workload.accounting.report import Tally
from policyfactory.workload.accounting.table import RecordTable

__all__ = ["Runs", "merge_het", "settle_runs"]

# After this long an id that comes again is that of another job: a requeue follows the end of a run within minutes.
_ID_AGAIN = 30 * DAY
_NOT_OVER = (STATES[State.running], STATES[State.pending])
_SAME = (
    "submit", "start", "end", "elapsed", "limit", "requested", "allocated", "allocated_nodes", "state", "partition",
)  # fmt: skip


@dataclasses.dataclass(slots=True)
class Runs:
    """Which rows are left.

    Parameters
    ----------
    alive : bool array (n,)
        Rows that stand for a job.
    used : bool array (n,)
        Rows that say when the machine was used: also runs that were thrown away.
    """

    alive: NDArray[np.bool_]
    used: NDArray[np.bool_]


def settle_runs(table: RecordTable, mode: str, tally: Tally) -> Runs:
    """Make one job of the records with one id.

    Parameters
    ----------
    table : RecordTable
        All records; the rows that stay for requeued jobs are changed.
    mode : str
        What becomes of a job that ran several times: ``"last"`` (the last run counts, from the first submission),
        ``"runs"`` (each run is a job), ``"drop"``.
    tally : Tally
        Where it is counted.
    """
    alive = np.ones(len(table), dtype=bool)
    chains: list[list[int]] = []
    for rows in table.again.values():
        left = _looks(table, _distinct(table, rows, alive, tally), alive, tally)
        chains += _chains(table, left, tally)
    used = alive.copy()
    for chain in chains:
        if len(chain) > 1:
            _requeued(table, chain, mode, alive, tally)
    return Runs(alive, used)


def _drop(
    table: RecordTable, rows: list[int], alive: NDArray[np.bool_], tally: Tally, what: str, why: str, *, expected: bool
) -> None:
    alive[rows] = False
    if rows:
        count = int(table.tasks[rows].sum())
        tally.add("dropped", what, why, count, table.job[rows[0]], table.place(rows[0]), expected=expected)


def _distinct(table: RecordTable, rows: list[int], alive: NDArray[np.bool_], tally: Tally) -> list[int]:
    """Return ``rows`` without those that are the same as one before."""
    seen = set()
    left: list[int] = []
    double: list[int] = []
    for row in rows:
        signature = tuple(int(getattr(table, column)[row]) for column in _SAME)
        (double if signature in seen else left).append(row)
        seen.add(signature)
    why = "parts of a log overlap, or were given twice"
    _drop(table, double, alive, tally, "records that are in the log twice", why, expected=True)
    return left


def _looks(table: RecordTable, rows: list[int], alive: NDArray[np.bool_], tally: Tally) -> list[int]:
    """Return ``rows`` in order of time, without those that a later look at the same run makes old."""
    over = [row for row in rows if table.state[row] not in _NOT_OVER]
    ended: dict[tuple[int, int], int] = {(int(table.submit[row]), int(table.start[row])): row for row in over}
    replaced = [row for row in over if ended[int(table.submit[row]), int(table.start[row])] != row]
    why = "printed by sacct at another time; what comes last stands"
    what = "records of a run that a later record contradicts"
    _drop(table, replaced, alive, tally, what, why, expected=True)
    left = list(ended.values())
    open_rows = [row for row in rows if table.state[row] in _NOT_OVER]
    if open_rows:
        # A job is in one state: the look with the latest submission, started before waiting, last in the log.
        latest = max(open_rows, key=lambda row: (table.submit[row], table.start[row], row))
        old = any(table.submit[row] >= table.submit[latest] and table.start[row] >= table.start[latest] for row in left)
        stale = [row for row in open_rows if row != latest or old]
        why = "printed while the job waited or ran; another record says how it went on"
        what = "records of a run whose end is in a later record"
        _drop(table, stale, alive, tally, what, why, expected=True)
        if not old:
            left.append(latest)
    return sorted(left, key=lambda row: (table.submit[row], table.start[row] < 0, table.start[row], row))


def _chains(table: RecordTable, rows: list[int], tally: Tally) -> list[list[int]]:
    """Return the rows of one id as jobs: after a wrap or a new data base an id comes again."""
    chains: list[list[int]] = []
    for row in rows:
        before = chains[-1][-1] if chains else -1
        if not chains or (
            table.user[row] != table.user[before]
            or table.submit[row] - max(table.end[before], table.submit[before]) > _ID_AGAIN
        ):
            chains.append([row])
        else:
            chains[-1].append(row)
    for chain in chains[1:]:
        what = f"jobs with an id that another user's job had, or one more than {format_duration(_ID_AGAIN)} before"
        why = "ids begin again after a wrap or with a new data base: each is a job"
        tally.add("kept", what, why, 1, table.job[chain[0]], table.place(chain[0]))
    return chains


def _requeued(table: RecordTable, chain: list[int], mode: str, alive: NDArray[np.bool_], tally: Tally) -> None:
    """Settle the runs of one job that went back to the queue."""
    first, last = chain[0], chain[-1]
    if mode == "runs":
        tally.add(
            "kept", "runs of a job that went back to the queue: each is a job", "asked for with --requeued runs",
            len(chain), table.job[first], table.place(first),
        )  # fmt: skip
        return
    if mode == "drop":
        what = "runs of a job that went back to the queue"
        _drop(table, chain, alive, tally, what, "--requeued drop", expected=True)
        return
    started = [row for row in chain if table.start[row] >= 0 and table.allocated[row] != 0]
    chosen = last
    if table.state[last] not in _NOT_OVER and started:
        chosen = started[-1]
    rest = [row for row in chain if row != chosen]
    _drop(
        table, rest, alive, tally,
        "runs of a job that went back to the queue, before its last run",
        "the last run is what the user got, and it waited since the first submission",
        expected=True,
    )  # fmt: skip
    table.submit[chosen] = table.submit[first]
    table.eligible[chosen] = table.eligible[first]
    if chosen != last:
        # Cancelled while it waited to run again.
        table.state[chosen] = table.state[last]


def merge_het(table: RecordTable, runs: Runs, tally: Tally) -> None:
    """Make one job of the components of a het job: they start together, on the sum of their processors.

    Parameters
    ----------
    table : RecordTable
        The first component's row is changed.
    runs : Runs
        Changed.
    tally : Tally
        Where it is counted.
    """
    for rows in table.het.values():
        parts: dict[tuple[int, int], list[int]] = {}
        for row in rows:
            if runs.alive[row]:
                parts.setdefault((int(table.submit[row]), int(table.start[row])), []).append(row)
        for group in parts.values():
            if len(group) > 1:
                _merge(table, group, runs, tally)


def _merge(table: RecordTable, rows: list[int], runs: Runs, tally: Tally) -> None:
    leader, others = rows[0], rows[1:]
    for column in ("requested", "allocated", "requested_nodes", "allocated_nodes"):
        values = getattr(table, column)
        values[leader] = -1 if (values[rows] < 0).any() else values[rows].sum()
    for column in ("end", "elapsed", "suspended"):
        values = getattr(table, column)
        values[leader] = values[rows].max()
    kinds = table.limit_kind[rows]
    if (kinds == kinds[0]).all() or (table.limit[rows] >= 0).all():
        table.limit[leader] = table.limit[rows].max()
        table.limit_kind[leader] = kinds[int(np.argmax(table.limit[rows]))]
    else:
        # One component without a number: the whole has none.
        vague = rows[int(np.argmax(table.limit[rows] < 0))]
        table.limit[leader], table.limit_kind[leader] = -1, table.limit_kind[vague]
    worst = [State.running, State.pending, State.node_fail, State.timeout, State.failed, State.cancelled]
    states = set(table.state[rows].tolist())
    table.state[leader] = next((STATES[state] for state in worst if STATES[state] in states), table.state[leader])
    if table.state[leader] in _NOT_OVER:
        table.end[leader] = -1
    runs.alive[others] = False
    # The first component has all processors now.
    runs.used[others] = False
    tally.add(
        "merged", "components of a het job, with its first component", "they start together and are one job",
        int(table.tasks[others].sum()), table.job[others[0]], table.place(others[0]),
    )  # fmt: skip
