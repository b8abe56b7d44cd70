"""A stretch of two schedules of the same jobs: what runs in it, on which processors, and whose waits differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.engine.binned import binned_integral
from policyfactory.simulate.gantt import Rectangles, rectangles_of
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from policyfactory.simulate.schedule import Schedule

__all__ = ["Excerpt", "KeptSchedule", "Why", "busiest", "excerpt_of", "keep", "worst"]

Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Why = Literal["busiest", "worst", "first"]

_STEPS = 8  # places of the busiest stretch that are tried, in each of its lengths


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class KeptSchedule:
    """One schedule in a few bytes a job.

    Parameters
    ----------
    jobs : Workload
        Its jobs; the policies of a case share them.
    start : int64 array (n,), ticks
        Start of each job.
    end : int64 array (n,), ticks, or None
        Its end; None where each job ran for its run time.
    backfilled : uint8 array
        Bits (`numpy.packbits`): whether it was backfilled.
    """

    jobs: Workload
    start: Int64Array
    end: Int64Array | None
    backfilled: NDArray[np.uint8]


def keep(schedule: Schedule) -> KeptSchedule:
    """Return what is kept of a schedule."""
    as_run = bool((schedule.end - schedule.start == schedule.workload.run_time).all())
    end = None if as_run else schedule.end.copy()
    return KeptSchedule(schedule.workload, schedule.start.copy(), end, np.packbits(schedule.backfilled))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """A stretch of one or two schedules of one case.

    Parameters
    ----------
    policies : tuple of str
        One or two.
    jobs : Workload
        All jobs of the case.
    first, last : int, ticks
        The stretch.
    why : {"busiest", "worst", "first"}
        How it was chosen.
    waits : list of float64 array (n,), s
        Wait of every job under each policy.
    backfilled : list of bool array (n,)
        Whether it was backfilled.
    drawn : list of Rectangles
        What runs in the stretch, under each policy.
    """

    policies: tuple[str, ...]
    jobs: Workload
    first: int
    last: int
    why: Why
    waits: list[FloatArray]
    backfilled: list[NDArray[np.bool_]]
    drawn: list[Rectangles]

    @property
    def change(self) -> FloatArray:
        """Wait of every job under the second policy minus that under the first, in s."""
        return self.waits[-1] - self.waits[0]

    @property
    def shown(self) -> Int64Array:
        """Rows of the jobs that run in the stretch under either policy."""
        return np.unique(np.concatenate([rectangles.row for rectangles in self.drawn]))

    @property
    def loser(self) -> int | None:
        """Row of the job of the stretch that loses most under the second policy; None if none does."""
        rows = self.shown
        if len(self.policies) < 2 or not len(rows) or self.change[rows].max() <= 0:
            return None
        return int(rows[np.argmax(self.change[rows])])

    def utilisation(self, k: int) -> float:
        """Return the share of the machine in use under policy k, in %."""
        return 100.0 * float(self.drawn[k].area.sum()) / (float(self.last - self.first) * self.jobs.machine)

    def moved(self, most: int) -> list[int]:
        """Return the rows of the jobs of the stretch that lose most, then of those that gain most."""
        rows = self.shown
        order = rows[np.argsort(-self.change[rows], kind="stable")]
        up = [int(row) for row in order[:most] if self.change[row] > 0]
        down = [int(row) for row in order[::-1][:most] if self.change[row] < 0]
        return up + down


def busiest(kept: KeptSchedule, length: int) -> tuple[int, int]:
    """Return the stretch of ``length`` ticks with the largest backlog; where nothing waits, with most work.

    Parameters
    ----------
    kept : KeptSchedule
        The schedule.
    length : int
        Ticks, at least 1.
    """
    jobs = kept.jobs
    origin, end = int(jobs.submit[0]), _ends(kept)
    span = max(int(end.max()) - origin, 1)
    if span <= length:
        return origin, origin + length
    width = max(length // _STEPS, 1, span // 100_000)
    grid = (origin, width, span // width + 1)
    amount = binned_integral(jobs.submit, kept.start, jobs.processors, *grid)
    if not amount.any():
        amount = binned_integral(kept.start, end, jobs.processors, *grid)
    together = np.convolve(amount, np.ones(max(length // width, 1)), "valid")
    begin = origin + width * int(np.argmax(together))
    return begin, begin + length


def worst(kept: Sequence[KeptSchedule], length: int) -> tuple[int, int]:
    """Return the wait of the job that loses most under the second policy, with a margin; at least ``length`` ticks.

    Parameters
    ----------
    kept : sequence of KeptSchedule
        The two schedules.
    length : int
        Ticks, at least 1.
    """
    job = int(np.argmax(kept[1].start - kept[0].start))
    begin, end = int(kept[0].start[job]), int(_ends(kept[1])[job])
    margin = max((end - begin) // 20, (length - (end - begin) + 1) // 2)
    begin = max(begin - margin, int(kept[0].jobs.submit[0]))
    return begin, max(end + margin, begin + length)


def _ends(kept: KeptSchedule) -> Int64Array:
    return kept.start + kept.jobs.run_time if kept.end is None else kept.end


def excerpt_of(policies: tuple[str, ...], kept: Sequence[KeptSchedule], stretch: tuple[int, int], why: Why) -> Excerpt:
    """Return the stretch of the schedules.

    Parameters
    ----------
    policies : tuple of str
        Their names.
    kept : sequence of KeptSchedule
        One schedule a policy.
    stretch : tuple of int, ticks
        From when to when.
    why : {"busiest", "worst", "first"}
        How it was chosen.
    """
    jobs = kept[0].jobs
    return Excerpt(
        policies,
        jobs,
        *stretch,
        why,
        [(one.start - jobs.submit) / jobs.ticks for one in kept],
        [np.unpackbits(one.backfilled, count=len(jobs)).astype(np.bool_) for one in kept],
        [rectangles_of(jobs, one.start, _ends(one), stretch) for one in kept],
    )
