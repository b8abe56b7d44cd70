"""The long waits of one schedule, and those of a log's cases together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.analyses.logs import LogView
from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.units import format_duration

if TYPE_CHECKING:
    from policyfactory.simulate.schedule import Schedule

__all__ = ["LogWaits", "Waits", "waits_of"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """The long waits of one schedule.

    Parameters
    ----------
    jobs : int
        Jobs of the schedule.
    longest, p99 : float, s
        The longest wait, and the 99 % quantile (linear between two jobs, as the metric p99_wait).
    job_id, user, processors : int
        Of the job that waited longest (the first of several); user -1 if unknown.
    requested, run_time : float, s
        Of that job; the run time is what the machine executed.
    threshold : float, s
        What the schedule was made with; inf for none.
    overdue, from_head : int
        Jobs that waited longer than the threshold; those of them that were not backfilled.
    beyond : int64 array (lengths,)
        Jobs that waited longer than each of the lengths asked for.
    """

    jobs: int
    longest: float
    p99: float
    job_id: int
    user: int
    processors: int
    requested: float
    run_time: float
    threshold: float
    overdue: int
    from_head: int
    beyond: Int64Array


def waits_of(schedule: Schedule, lengths: Sequence[int]) -> Waits:
    """Return the long waits of a schedule of at least one job.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    lengths : sequence of int, s
        Waits; the jobs that waited longer than each are counted.
    """
    jobs = schedule.workload
    wait = schedule.start - jobs.submit
    n, ticks = len(wait), jobs.ticks
    at = int(np.argmax(wait))
    # Most jobs wait not at all or not long: those that did are few enough to be sorted.
    long = np.sort(wait[wait > 0])
    theta = schedule.rules.threshold
    # A whole number of ticks is longer than the threshold if and only if it is longer than its whole part.
    late = np.zeros(n, dtype=np.bool_) if math.isinf(theta) else wait > math.floor(theta * ticks)
    edges = np.array(lengths, dtype=np.int64) * ticks
    return Waits(
        jobs=n,
        longest=float(wait[at]) / ticks,
        p99=_quantile(long, n, 0.99) / ticks,
        job_id=int(jobs.job_id[at]),
        user=int(jobs.user[at]),
        processors=int(jobs.processors[at]),
        requested=float(jobs.requested_time[at]) / ticks,
        run_time=float(schedule.end[at] - schedule.start[at]) / ticks,
        threshold=theta,
        overdue=int(np.count_nonzero(late)),
        from_head=int(np.count_nonzero(late & ~schedule.backfilled)),
        beyond=len(long) - np.searchsorted(long, edges, side="right"),
    )


def _quantile(positive: Int64Array, n: int, level: float) -> float:
    """Return the quantile of ``n`` numbers, of which these, ascending, are not 0."""
    place = level * (n - 1)
    below = math.floor(place)
    zeros = n - len(positive)
    left, right = (float(positive[k - zeros]) if k >= zeros else 0.0 for k in (below, min(below + 1, n - 1)))
    return left + (right - left) * (place - below)


class LogWaits(LogView):
    """The waits of all cases of a log."""

    @property
    def jobs(self) -> int:
        """Jobs of all cases."""
        return sum(case[0].jobs for case in self.kept)

    def share(self, field: str) -> FloatArray:
        """Return one count as a share of the case's jobs in %: float64 array (cases, policies)."""
        return self.values(lambda waits: 100.0 * getattr(waits, field) / waits.jobs)

    def count(self, field: str, k: int) -> int:
        """Return one count of policy k, all cases together."""
        return sum(getattr(case[k], field) for case in self.kept)

    def beyond(self, at: int, k: int) -> int:
        """Return the jobs that waited longer than length ``at`` under policy k, all cases together."""
        return sum(int(case[k].beyond[at]) for case in self.kept)

    def beyond_share(self, at: int) -> FloatArray:
        """Return the share of a case's jobs that waited longer than length ``at``, in %: (cases, policies)."""
        return self.values(lambda waits: 100.0 * waits.beyond[at] / waits.jobs)

    def longest(self, k: int) -> tuple[int, Waits]:
        """Return the number of the case with the longest wait under policy k, and its waits."""
        row = int(np.argmax([case[k].longest for case in self.kept]))
        return self.number(row), self.kept[row][k]

    def threshold(self, k: int) -> float:
        """Return the lowest threshold that policy k had in a case, in seconds; inf for none."""
        return float(min(case[k].threshold for case in self.kept))

    def has_threshold(self, k: int) -> bool:
        """Return whether policy k had a threshold in any case."""
        return not math.isinf(self.threshold(k))

    def threshold_text(self, k: int) -> str:
        """Return the threshold of policy k in words."""
        if not self.has_threshold(k):
            return "none"
        several = len({case[k].threshold for case in self.kept}) > 1
        return f"{format_duration(self.threshold(k))}{' and more' if several else ''}"
