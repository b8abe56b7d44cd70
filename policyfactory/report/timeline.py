"""Schedules for the page to draw: what runs when on which processors, small enough to stand inside it.

The columns are whole seconds and counts, 32 bits each; differences of neighbours where they are sorted. Bytes of equal
weight stand together and are compressed (zlib), since most of them are zero. The script of the page turns them back.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.simulation.schedule import rectangles_of
from policyfactory.workload.jobs import Workload

MOST_JOBS = 100_000  # of one schedule; more are cut around the stretch that matters
_MOST_STARTS = 50_000  # of all schedules together: beyond, the last ones are left out


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Schedules of the same jobs, by policy; the page shows two of them, one above the other.

    Parameters
    ----------
    title : str
        What it shows.
    pack : callable
        Returns the text of `packed`.
    note : str
        What must be known to read it.
    """

    title: str
    pack: Callable[[], str]
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One schedule.

    Parameters
    ----------
    policy : str
        Its policy.
    start, end : int64 array (n,), ticks
        When each job runs.
    """

    policy: str
    start: Int64Array
    end: Int64Array


def packed(jobs: Workload, schedules: Sequence[Drawn], first: int, last: int) -> str:
    """Return schedules as text (JSON): sizes and names, and the columns in base64; nothing if they last for ages.

    Parameters
    ----------
    jobs : Workload
        Their jobs.
    schedules : sequence of Drawn
        At least one; the first two are kept whatever their size.
    first, last : int, ticks
        The stretch that is shown first; with more than `MOST_JOBS` jobs it is in the middle of what is kept.
    """
    middle = int(np.searchsorted(jobs.submit, (first + last) // 2))
    begin = max(0, min(middle - MOST_JOBS // 2, len(jobs) - MOST_JOBS))
    rows = slice(begin, begin + MOST_JOBS)
    kept = jobs.select(rows)
    origin = int(kept.submit[0])
    fit = max(2, _MOST_STARTS // len(kept))

    def seconds(ticks: Int64Array) -> Int64Array:
        return np.rint((ticks - origin) / jobs.ticks).astype(np.int64)

    columns = [np.diff(seconds(kept.submit), prepend=0), kept.processors, np.diff(kept.job_id, prepend=0)]
    counts = []
    for schedule in schedules[:fit]:
        start, end = schedule.start[rows], schedule.end[rows]
        drawn = rectangles_of(kept, start, end, (origin, int(end.max()) + 1))
        rectangles = np.diff(drawn.row, prepend=0), drawn.low, drawn.high - drawn.low
        columns += [seconds(start) - seconds(kept.submit), seconds(end) - seconds(start), *rectangles]
        counts.append(len(drawn.row))
    if any(int(np.abs(column).max(initial=0)) >= 2**31 for column in columns):
        return ""
    head = {
        "jobs": len(kept),
        "of": len(jobs),
        "machine": jobs.machine,
        "unix": None if jobs.unix_start is None else jobs.unix_start + origin // jobs.ticks,
        "view": [float(x) for x in _seconds(np.array([first, last]), origin, jobs.ticks)],
        "policies": [schedule.policy for schedule in schedules[:fit]],
        "rectangles": counts,
        "data": base64.b64encode(_bytes(columns)).decode(),
    }
    return json.dumps(head, ensure_ascii=True)


def _seconds(ticks: Int64Array, origin: int, per_second: int) -> FloatArray:
    return np.maximum(0.0, (ticks - origin) / per_second)


def _bytes(columns: Sequence[Int64Array]) -> bytes:
    """Return the columns, their bytes in planes of equal weight, compressed."""
    # Level and strategy are fixed: equal schedules are equal bytes.
    planes = [column.astype("<i4").view(np.uint8).reshape(-1, 4).T.tobytes() for column in columns]
    return zlib.compress(b"".join(planes), 9)
