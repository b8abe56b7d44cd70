"""A schedule: when each job of a workload ran, under which rules; its picture; and the one that the log recorded.

The recorded schedule, when each job of a log really started, is nobody's simulation. A log's scheduler knew priorities,
limits and reservations that are not in the log, lost processors for a while, and ran jobs that cleaning drops; so what
separates a replay from the record is not the policy alone (D. G. Feitelson, D. Tsafrir and D. Krakov, "Experience with
using the Parallel Workloads Archive", Journal of Parallel and Distributed Computing 74(10), 2014,
doi:10.1016/j.jpdc.2014.06.013).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError
from policyfactory.core.jit import interruptible
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure
from policyfactory.core.text import (
    DAY,
    HOUR,
    MINUTE,
    facts_html,
    facts_text,
    format_duration,
    number_text,
    parse_duration,
)
from policyfactory.engine.metrics import allocate
from policyfactory.simulation.metrics import METRICS, PREEMPTION_METRICS, Carried, Ran, StoppedRuns, job_values, measure
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import in_use

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SUMMARY = ("mean_wait", "max_wait", "mean_bsld", "median_bsld", "p95_bsld", "utilisation", "makespan", "backfilled")


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule(Ran):
    """When each job of a workload ran, under which policy and rules.

    Parameters
    ----------
    start, end : int64 array (n,)
        Start and end of each job on the workload's clock, in its ticks, in the order of the workload's rows.
    backfilled : bool array (n,)
        Whether the job was started while a job ahead of it in the queue stayed waiting.
    workload : Workload
        The jobs.
    policy_name : str
        The policy that ordered the queue.
    rules : Rules
        The rules it ran under, with the threshold that held (the policy's own where the rules had none).
    carried : Carried or None
        What was still running of a lead-in.
    stopped : StoppedRuns or None
        Of a site where running jobs are stopped for others. ``start`` and ``end`` of a job, its wait and its slowdown
        are those of its last run; one that was cancelled has ended then.
    left_out : str
        Which jobs of the log the workload has no more, since their partition is not one of the site; empty if none.
    """

    policy_name: str
    rules: Rules
    left_out: str = dataclasses.field(default="", kw_only=True)

    @property
    def wait(self) -> NDArray[np.float64]:
        """Seconds that each job waited."""
        return job_values(self, "wait")

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        """Bounded slowdown of each job."""
        return job_values(self, "bsld")

    def after(self, lead_in: int) -> Schedule:
        """Return the schedule without its first jobs, times counted from the first submission that is left.

        Parameters
        ----------
        lead_in : int
            How many, fewer than there are. Those that run on after them are `carried`.
        """
        if not lead_in:
            return self
        rows, zero = slice(lead_in, None), int(self.workload.submit[lead_in])
        start, end = self.start - zero, self.end - zero
        runs_on = np.flatnonzero(end[:lead_in] > 0)
        processors = self.workload.processors[runs_on]
        return dataclasses.replace(
            self,
            start=start[rows],
            end=end[rows],
            backfilled=self.backfilled[rows],
            workload=self.workload.select(rows, rebase=True),
            stopped=self.stopped and StoppedRuns(self.stopped.times[rows], self.stopped.node_seconds[rows]),
            carried=Carried(np.maximum(start[runs_on], 0), end[runs_on], processors),
        )

    def frame(self) -> pd.DataFrame:
        """Return one row a job: the workload's columns, start and end in seconds, wait, slowdown, backfilled.

        Where jobs are stopped for others, also how often it was, and the node seconds of those runs.
        """
        frame = self.workload.frame()
        ticks = self.workload.ticks
        start, end = (column if ticks == 1 else column / ticks for column in (self.start, self.end))
        if self.stopped is not None:
            frame = frame.assign(preempted=self.stopped.times, lost_node_seconds=self.stopped.node_seconds)
        return frame.assign(
            start=start, end=end, wait=self.wait, bounded_slowdown=self.bounded_slowdown, backfilled=self.backfilled
        )

    def summary(self) -> str:
        """Return the main metrics as text."""
        return facts_text(repr(self)[1:-1], self._facts())

    @keeps_settings
    def plot(self, start: str = "0s", length: str = "2d") -> Figure:
        """Return a Gantt chart of a stretch: processors over time, a colour for each of the largest users.

        Parameters
        ----------
        start : str
            When it begins, after the first submission: ``"30d"``.
        length : str
            How long it is.
        """
        return draw_schedule(self, start, length)

    def _facts(self) -> dict[str, str]:
        values = measure(self, _SUMMARY) if len(self) else {}
        facts = {name: _shown(value, METRICS[name].unit) for name, value in values.items()}
        if self.stopped is not None:
            facts["stopped for others"] = self.stopped.text
        return facts | ({"left out": self.left_out} if self.left_out else {})

    def __repr__(self) -> str:
        return f"<Schedule of {self.workload.name} under {self.policy_name}: {len(self):,} jobs>"

    def _repr_html_(self) -> str:
        return facts_html(repr(self)[1:-1], self._facts())


def _shown(value: float, unit: str) -> str:
    if unit == "s" and math.isfinite(value):
        seconds = f"{value:,.6g} s" if value < 1e5 else f"{value:,.0f} s"
        return seconds if value < MINUTE else f"{format_duration(value)} ({seconds})"
    return f"{number_text(value)} {unit}".removesuffix(" 1")


# Rectangles of processors and time, and their picture. ----------------------------------------------------------------

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
            f"{jobs.machine} processors are free; give the machine more processors, or starts that are possible on it"
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
    job = np.repeat(np.arange(len(rows)), count)
    # Intervals lie in the order of the starts; these are those of each row.
    block = np.repeat(begin_at, count) + np.arange(len(job)) - np.repeat(np.cumsum(count) - count, count)
    return Rectangles(rows[job], np.maximum(start[job], first), np.minimum(end[job], last), low[block], high[block])


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


def largest_users(user: Int64Array, area: FloatArray, most: int) -> list[int]:
    """Return the known users whose rectangles have the largest area, the largest first."""
    known, code = np.unique(user, return_inverse=True)
    largest = known[np.argsort(-np.bincount(code, area, len(known)), kind="stable")]
    return [int(number) for number in largest if number >= 0][:most]


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
    named = largest_users(user, drawn.area, _USERS)
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


# The recorded schedule. -----------------------------------------------------------------------------------------------

RECORDED = "recorded"
# A log does not say who was overtaken, and hardly ever what was stopped.
NOT_RECORDED = frozenset({"backfilled", *PREEMPTION_METRICS})


@dataclasses.dataclass(frozen=True, slots=True)
class Overuse:
    """How much more than the machine a schedule uses.

    Parameters
    ----------
    peak : int
        The most processors in use at once.
    over_s : float
        Seconds in which more processors are in use than the machine has.
    span_s : float
        Seconds from the first submission to the last end.
    """

    peak: int
    over_s: float
    span_s: float


def lacking_starts(workload: Workload, lead_in: int = 0) -> str:
    """Return what keeps the recorded schedule from being known, in words; empty if each job has its start.

    Parameters
    ----------
    workload : Workload
        The jobs.
    lead_in : int
        So many of them, the first ones, are not measured: they need no start.
    """
    lacking = workload.start < workload.submit
    lacking[:lead_in] = False
    if not lacking.any():
        return ""
    first = workload.job_id[int(np.argmax(lacking))]
    count, measured = int(np.count_nonzero(lacking)), len(workload) - lead_in
    return f"{count:,} of {measured:,} jobs {'has' if count == 1 else 'have'} no recorded start, first job {first}"


def recorded_schedule(workload: Workload, lead_in: int = 0) -> Schedule:
    """Return the recorded schedule.

    Parameters
    ----------
    workload : Workload
        Jobs with recorded starts (`Workload.start`).
    lead_in : int
        So many of them, the first ones, may lack a start: they are as if they had never run.

    Returns
    -------
    Schedule
        Of that workload; each job ends at its recorded start plus its run time. Whether a job was backfilled is not
        known, and said of none.

    Raises
    ------
    EvaluationError
        If a job has no recorded start.
    """
    lacking = lacking_starts(workload, lead_in)
    if lacking:
        raise EvaluationError(
            f"{workload.name}: {lacking}, so the recorded schedule is not known; leave it out (--no-recorded, "
            "recorded = false), or use windows of the log in which all jobs have one"
        )
    backfilled = np.zeros(len(workload), dtype=np.bool_)
    known = workload.start >= workload.submit
    start = np.where(known, workload.start, workload.submit)
    end = np.where(known, start + workload.run_time, start)
    return Schedule(start, end, backfilled, workload, policy_name=RECORDED, rules=Rules())


def measure_recorded(schedule: Schedule, metrics: Sequence[str]) -> list[float]:
    """Return the metrics of the recorded schedule, NaN where a record has no answer.

    Parameters
    ----------
    schedule : Schedule
        The recorded schedule of at least one job.
    metrics : sequence of str
        Names in `METRICS`.
    """
    values = measure(schedule, metrics)
    return [math.nan if name in NOT_RECORDED else values[name] for name in metrics]


def overuse_of(schedule: Schedule) -> Overuse:
    """Return how much more than the machine a schedule of at least one job uses: a record can, where it is wrong."""
    jobs = schedule.workload
    when, busy = in_use(schedule.start, schedule.end, jobs.processors)
    over = np.diff(when)[busy[:-1] > jobs.machine]
    span = int(schedule.end.max() - jobs.submit.min())
    return Overuse(int(busy.max(initial=0)), float(over.sum()) / jobs.ticks, float(span) / jobs.ticks)
