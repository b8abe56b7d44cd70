"""When jobs come: hours of the day and of the week on the clock of the site."""

from __future__ import annotations

import dataclasses
import datetime as dt

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import WorkloadError
from policyfactory.core.units import DAY, HOUR, WEEK
from policyfactory.workload.moments import site_clock
from policyfactory.workload.swf.log import SwfLog

__all__ = ["LONGEST_SPAN", "Arrivals", "arrivals"]

# A log that lasts longer does not count in seconds; hours and weeks would say nothing.
LONGEST_SPAN = 200 * 366 * DAY

# The Unix clock began on a Thursday; weeks are counted from Monday.
_MONDAY = 4 * DAY


@dataclasses.dataclass(frozen=True, slots=True)
class Arrivals:
    """When the jobs of a log were submitted.

    Parameters
    ----------
    hour_of_week : int64 array (168,)
        Jobs submitted in each hour of the week, Monday 0 h first.
    hours_seen : int64 array (168,)
        How many of each of these hours the log lasts.
    per_week : int64 array (weeks,)
        Jobs of each week after the first job.
    clock : str
        Whose hours these are, in words.
    dated : bool
        Whether the log says when it was; if not, the days of the week are made up.
    """

    hour_of_week: NDArray[np.int64]
    hours_seen: NDArray[np.int64]
    per_week: NDArray[np.int64]
    clock: str
    dated: bool

    def rate(self, days: slice) -> NDArray[np.float64]:
        """Return the mean number of jobs an hour for each hour of the day, over some days (0 is Monday)."""
        jobs = self.hour_of_week.reshape(7, 24)[days].sum(axis=0)
        seen = self.hours_seen.reshape(7, 24)[days].sum(axis=0)
        return np.asarray(jobs / np.maximum(seen, 1), dtype=np.float64)


def arrivals(log: SwfLog) -> Arrivals:
    """Return when jobs come, by the clock of the site where the header has one.

    Raises
    ------
    WorkloadError
        If no job has a submit time, or they span more than `LONGEST_SPAN`.
    """
    submit = np.sort(np.floor(log.submit[log.submit >= 0]).astype(np.int64))
    if not len(submit) or submit[-1] > LONGEST_SPAN:
        raise WorkloadError(f"{log.name}: no submit times, or not in seconds; hours and weeks are unknown")
    clock, name = site_clock(log.header)
    unix = log.header.unix_start
    dated = unix is not None and unix <= LONGEST_SPAN
    if unix is None or not dated:
        local, words = submit + _MONDAY, "hours of the log's own clock; the header has no UnixStartTime"
    else:
        words = f"{name} time" if clock is not None else f"UTC, as {name}"
        local = _local(submit + unix, clock)
    hours = (local - _MONDAY) // HOUR
    after = submit - submit[0]
    seen = np.arange(hours[0], hours[-1] + 1)
    return Arrivals(
        hour_of_week=np.bincount(hours % 168, minlength=168),
        hours_seen=np.bincount(seen % 168, minlength=168),
        per_week=np.bincount(after // WEEK),
        clock=words,
        dated=dated,
    )


def _local(unix: NDArray[np.int64], clock: dt.tzinfo | None) -> NDArray[np.int64]:
    """Return Unix times moved by the site's difference from UTC, summer time included."""
    if clock is None:
        return unix
    # Clocks change at full quarters of an hour.
    quarters, which = np.unique(unix // 900, return_inverse=True)
    offsets = [dt.datetime.fromtimestamp(quarter * 900, clock).utcoffset() for quarter in quarters.tolist()]
    seconds = np.array([0 if offset is None else int(offset.total_seconds()) for offset in offsets], dtype=np.int64)
    return unix + seconds[which]
