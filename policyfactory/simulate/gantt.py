"""A schedule as rectangles of processors and time, and their picture."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError
from policyfactory.core.interruptible import interruptible
from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.units import DAY, HOUR, parse_duration
from policyfactory.engine.allocation import allocate
from policyfactory.simulate.metrics import Ran
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Rectangles", "draw_rectangles", "draw_schedule", "processors_of", "rectangles_of"]

_MOST = 20_000  # rectangles in a picture
_OTHERS = "#c8c8c8"
_USERS = 6


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Rectangles:
    """What is drawn of one schedule.

    Parameters
    ----------
    row : int64 array (rectangles,)
        The job of each, as a row of the workload; a job on scattered processors has several.
    begin, end : int64 array (rectangles,), ticks
        When, within the stretch.
    low, high : int64 array (rectangles,)
        First and last processor.
    """

    row: Int64Array
    begin: Int64Array
    end: Int64Array
    low: Int64Array
    high: Int64Array

    @property
    def area(self) -> FloatArray:
        """Processors x ticks of each."""
        return (self.end - self.begin) * (self.high - self.low + 1.0)

    def largest(self, most: int) -> Rectangles:
        """Return the ``most`` largest, in their order."""
        if len(self.row) <= most:
            return self
        chosen = np.sort(np.argsort(-self.area, kind="stable")[:most])
        return Rectangles(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


def processors_of(
    jobs: Workload, start: Int64Array, end: Int64Array, rows: Int64Array | None = None
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return one valid choice of processors, the lowest free ones: intervals, and which of them each job has.

    Parameters
    ----------
    jobs : Workload
        The jobs.
    start, end : int64 array (n,), ticks
        When each runs.
    rows : int64 array, optional
        Look at these jobs alone.

    Returns
    -------
    first, stop, low, high : int64 arrays
        Job k has the intervals ``first[k]`` to ``stop[k] - 1``; first and last processor of each interval.

    Raises
    ------
    EvaluationError
        If more processors are used at some instant than the machine has.
    """
    rows = np.arange(len(jobs)) if rows is None else rows
    start, end, processors = start[rows], end[rows], jobs.processors[rows]
    failed, *intervals = interruptible(
        allocate, start, end, processors, jobs.machine, np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
    )
    if failed >= 0:
        raise EvaluationError(
            f"{jobs.name}: job {jobs.job_id[rows[failed]]} starts when fewer than its {processors[failed]} of "
            f"{jobs.machine} processors are free; this is no schedule of that machine"
        )
    first, stop, low, high = intervals
    return first, stop, low, high


def rectangles_of(jobs: Workload, starts: Int64Array, ends: Int64Array, stretch: tuple[int, int]) -> Rectangles:
    """Return what runs in the stretch; its processors are assigned to these jobs alone, so that they lie together.

    Raises
    ------
    EvaluationError
        If more processors are used than the machine has.
    """
    first, last = stretch
    rows = np.flatnonzero((starts < last) & (ends > first) & (ends > starts))
    start, end = starts[rows], ends[rows]
    begin_at, end_at, low, high = processors_of(jobs, starts, ends, rows)
    count = end_at - begin_at
    own = np.repeat(np.arange(len(rows)), count)
    # Intervals lie in the order of the starts; these are those of each row.
    place = np.repeat(begin_at, count) + np.arange(len(own)) - np.repeat(np.cumsum(count) - count, count)
    return Rectangles(rows[own], np.maximum(start[own], first), np.minimum(end[own], last), low[place], high[place])


def draw_rectangles(axes: Axes, corners: list[FloatArray], colour: str, hatch: str = "") -> None:
    """Draw many rectangles (left, right, low, high) of one look as one path: small in the file, and quick to show."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    left, right, low, high = corners
    n = len(left)
    if not n:
        return
    points = np.empty((n, 5, 2))
    points[:, :, 0] = np.stack([left, right, right, left, left], axis=1)
    points[:, :, 1] = np.stack([low, low, high, high, low], axis=1)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], n)
    patch = PathPatch(Path(points.reshape(-1, 2), codes), facecolor=colour, edgecolor="white", linewidth=0.5)
    if hatch:
        patch.set_hatch(hatch)
    axes.add_patch(patch)


def draw_schedule(schedule: Ran, start: str, length: str) -> Figure:
    """Draw a stretch of a schedule; a colour for each of the users with most work in it, hatched where backfilled.

    Parameters
    ----------
    schedule : Schedule
        At least one job.
    start, length : str
        When the stretch begins, after the first submission, and how long it is: durations.
    """
    jobs = schedule.workload
    if not len(jobs):
        raise EvaluationError(f"{jobs.name}: no job to draw; give a log or a window with jobs")
    origin, end = int(jobs.submit[0]), int(schedule.end.max())
    first = origin + round(parse_duration(start) * jobs.ticks)
    last = round(min(float(end), first + parse_duration(length) * jobs.ticks))
    if last <= first:
        raise EvaluationError(f"{jobs.name}: nothing runs from {start} on; choose an earlier start, or a longer length")
    drawn = rectangles_of(jobs, schedule.start, schedule.end, (first, last)).largest(_MOST)
    unit, scale = ("d", DAY) if last - first >= 2 * DAY * jobs.ticks else ("h", HOUR)
    divisor = float(scale * jobs.ticks)
    user = jobs.user[drawn.row]
    known, code = np.unique(user, return_inverse=True)
    largest = known[np.argsort(-np.bincount(code, drawn.area, len(known)), kind="stable")]
    named = [int(number) for number in largest if number >= 0][:_USERS]
    figure = new_figure(8.0, 4.0)
    axes = figure.subplots()
    sides: list[Any] = [(drawn.begin - origin) / divisor, (drawn.end - origin) / divisor, drawn.low, drawn.high + 1.0]
    looks = [(_OTHERS, "others", ~np.isin(user, named))]
    looks += [(colour, f"user {number}", user == number) for colour, number in zip(COLOURS, named, strict=False)]
    backfilled = schedule.backfilled[drawn.row]
    for colour, label, mask in looks:
        draw_rectangles(axes, [side[mask & ~backfilled] for side in sides], colour)
        draw_rectangles(axes, [side[mask & backfilled] for side in sides], colour, "/////")
        axes.bar(0, 0, color=colour, label=label)
    axes.bar(0, 0, color="#888888", hatch="/////", edgecolor="white", label="backfilled")
    axes.set(xlabel=f"time since the first submission ({unit})", ylabel="processor", ylim=(0, jobs.machine))
    axes.set_xlim((first - origin) / divisor, (last - origin) / divisor)
    used = 100.0 * float(drawn.area.sum()) / (float(last - first) * jobs.machine)
    axes.set_title(f"{jobs.name}: {used:.0f} % in use", loc="left", fontsize=10)
    axes.grid(visible=False)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8.5)
    return figure
