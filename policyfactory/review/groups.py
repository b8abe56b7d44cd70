"""Who gained and who lost: users, sizes and partitions, in the matched weeks of both times."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.review.accounting import Accounting
from policyfactory.review.weeks import Weeks, difference_of
from policyfactory.simulate.metrics import job_values
from policyfactory.simulate.schedule import Schedule
from policyfactory.statistics.intervals import Estimate
from policyfactory.statistics.weeks import estimate_weekly

__all__ = ["Changed", "Period", "changes"]

_FEWEST = 30  # jobs of a group in each time
_MOST = 50  # groups of a kind
_SIZES = ((1, 1), (2, 8), (9, 64), (65, 512), (513, 1 << 40))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Period:
    """One of the two times.

    Parameters
    ----------
    accounting : Accounting
        Its jobs.
    schedule : Schedule
        As recorded.
    weeks : Weeks
        Its weeks.
    """

    accounting: Accounting
    schedule: Schedule
    weeks: Weeks


@dataclasses.dataclass(frozen=True, slots=True)
class Changed:
    """A group of jobs before and after.

    Parameters
    ----------
    kind, name : str
        What groups them (user, size, partition), and which.
    jobs : tuple of int
        How many it has in each time.
    wait, bsld : tuple of float
        Mean wait (s) and mean bounded slowdown of each time.
    of_wait, of_bsld : Estimate
        The differences, after minus before, with intervals.
    """

    kind: str
    name: str
    jobs: tuple[int, int]
    wait: tuple[float, float]
    bsld: tuple[float, float]
    of_wait: Estimate
    of_bsld: Estimate


def changes(before: Period, after: Period, pairs: Sequence[tuple[int, int]]) -> list[Changed]:
    """Return the groups that have jobs enough in the matched weeks of both times, the largest first.

    Parameters
    ----------
    before, after : Period
        The two times.
    pairs : sequence of (int, int)
        The matched weeks.
    """
    kept = [np.unique([pair[at] for pair in pairs]).astype(np.int64) for at in (0, 1)]
    blocks = [before.weeks.block, after.weeks.block]
    block = None if None in blocks else max(one for one in blocks if one is not None)
    found = []
    for kind in ("user", "processors", "partition"):
        names = [_names(period.accounting, kind) for period in (before, after)]
        inside = [np.isin(period.weeks.week, weeks) for period, weeks in zip((before, after), kept, strict=True)]
        counts = [
            dict(zip(*np.unique(own[rows], return_counts=True), strict=True))
            for own, rows in zip(names, inside, strict=True)
        ]
        common = [name for name in counts[0] if min(counts[0][name], counts[1].get(name, 0)) >= _FEWEST]
        common.sort(key=lambda name: (-counts[0][name] - counts[1][name], name))
        for name in common[:_MOST]:
            parts = [
                _part(period, own == name, rows, weeks, block)
                for period, own, rows, weeks in zip((before, after), names, inside, kept, strict=True)
            ]
            waits, bslds = ([part[at] for part in parts] for at in (0, 1))
            found.append(
                Changed(
                    kind,
                    str(name),
                    (int(counts[0][name]), int(counts[1][name])),
                    (waits[0].value, waits[1].value),
                    (bslds[0].value, bslds[1].value),
                    difference_of(waits[1], waits[0]),
                    difference_of(bslds[1], bslds[0]),
                )
            )
    return found


def _part(
    period: Period, own: NDArray[np.bool_], inside: NDArray[np.bool_], weeks: Int64Array, block: int | None
) -> tuple[Estimate, Estimate]:
    """Return mean wait and mean bounded slowdown of a group in some weeks."""
    rows = own & inside
    place = np.searchsorted(weeks, period.weeks.week[rows])
    jobs = np.bincount(place, minlength=len(weeks)).astype(np.float64)
    wait, bsld = (
        estimate_weekly(
            np.bincount(place, job_values(period.schedule, of)[rows], len(weeks)).astype(np.float64), jobs, block
        )
        for of in ("wait", "bsld")
    )
    return wait, bsld


def _names(accounting: Accounting, kind: str) -> NDArray[np.str_]:
    """Return the group of each job of the workload, by name."""
    jobs, rows = accounting.workload, accounting.rows
    if kind == "processors":
        names = [f"{low}" if low == high else f"{low} to {high}" for low, high in _SIZES[:-1]] + ["more than 512"]
        place = np.searchsorted([high for _, high in _SIZES], jobs.processors)
        return np.array(names)[place]
    texts, column = (
        (accounting.user, accounting.log.user) if kind == "user" else (accounting.partition, accounting.log.queue)
    )
    return np.array(texts)[rows] if texts else column[rows].astype(np.int64).astype(str)
