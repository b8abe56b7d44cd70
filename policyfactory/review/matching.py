"""The logged lines of each job of the accounting."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import WorkloadError
from policyfactory.review.accounting import Accounting
from policyfactory.review.shadow_log import Logged, ShadowLog

__all__ = ["Matched", "match"]

_MOST_PAIRS = 20_000_000
# Rows of the accounting by user, submit time, limit and processors.
_Alike = dict[tuple[str, int, int, int], list[int]]
_CLOCK = (0, 1, -1)  # s: a script may look at its clock just before or after Slurm does


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Lines with their jobs.

    Parameters
    ----------
    lines : list of Logged
        Those of which the job is known; one for each job where a line is about several that are alike.
    rows : int64 array (lines,)
        The row of the accounting of each.
    without : int
        Lines of no job in the accounting.
    larger : int
        Jobs that were given more processors than a line of theirs counts.
    """

    lines: list[Logged]
    rows: Int64Array
    without: int
    larger: int = 0


def match(log: ShadowLog, accounting: Accounting) -> Matched:
    """Return the lines with the jobs that they are about.

    By the job's number, of an array by that of the array for tasks that have no line of their own. A line without a
    number is about all jobs of its user that were submitted at its time (give or take 1 s) with its limit and size:
    they have one score. The size is what was requested; where no such job is, what was allocated, as Slurm before 24.05
    records what is asked for by GPU.

    Raises
    ------
    WorkloadError
        If there are more than 20 million pairs of a line and a job, as of large arrays that are logged again and again.
    """
    swf = accounting.log
    begins = swf.header.unix_start or 0
    submit = (swf.submit + begins).astype(np.int64).tolist()
    allocated = swf.allocated.astype(np.int64)
    sizes = np.where(swf.requested > 0, swf.requested, allocated).astype(np.int64).tolist(), allocated.tolist()
    limit = swf.requested_time.astype(np.int64).tolist()
    by_id: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(accounting.job):
        by_id[job].append(row)
        if "_" in job:
            by_id[job.partition("_")[0]].append(row)
    users = accounting.user if all(user.isdigit() for user in accounting.user) else ()
    alike: tuple[_Alike, _Alike] = defaultdict(list), defaultdict(list)
    for known, size in zip(alike, sizes, strict=True):
        for row, (second, seconds, processors) in enumerate(zip(submit, limit, size, strict=True)):
            known[users[row] if users else "", second, seconds, processors].append(row)
    lines: list[Logged] = []
    rows: list[int] = []
    without = 0
    for line in log.lines:
        found = by_id.get(line.job, []) if line.job else _alike(alike, line, line.user if users else "")
        without += not found
        rows += found
        lines += [line] * len(found)
        if len(rows) > _MOST_PAIRS:
            raise WorkloadError(
                f"{log.path}: its lines are about more than {_MOST_PAIRS:,} jobs, the tasks of an array counted "
                "each time; give a shorter time of the log"
            )
    found_rows = np.array(rows, dtype=np.int64)
    counted = np.array([line.processors for line in lines], dtype=np.int64)
    larger = np.unique(found_rows[allocated[found_rows] > counted]).size
    return Matched(lines, found_rows, without, larger)


def _alike(alike: tuple[_Alike, _Alike], line: Logged, user: str) -> list[int]:
    keys = [(user, line.submit + off, line.time, line.processors) for off in _CLOCK]
    return next((found for known in alike for key in keys if (found := known.get(key))), [])
