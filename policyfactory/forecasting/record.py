"""What a log says of its jobs' starts and ends, and what would have been predicted of each when it was submitted."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY, counted
from policyfactory.engine.events import NEVER
from policyfactory.prediction.next_jobs import WINDOW, Followers, PastRuns
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Predictor, Training
from policyfactory.simulation.predicted import predict_record
from policyfactory.statistics.calibration import CancellationHazard
from policyfactory.workload.jobs import Workload
from policyfactory.workload.snapshot import Snapshot, queue_of

WEEK = 7 * DAY
LEAST = 500  # ended jobs without which nothing is forecast
MOST_WEEKS = 8  # the last ones, which are the recent load


@dataclasses.dataclass(frozen=True, eq=False)
class JobRecord:
    """Jobs and what came of them; arrays (n,) in the order of submission, on the clock of the workload.

    Parameters
    ----------
    jobs : Workload
        On a clock of seconds.
    start, end : int64 array (n,), s
        Starts, -1 where there was none, or it is not known, and ends, `NEVER` where they are not. The end of a job that
        never started is when it was cancelled.
    mean, shortness : float64 array (n,)
        e (s) and s as they would have been predicted when each job was submitted.
    by_end : int64 array (k,)
        The jobs that ran and ended, in the order of their ends.
    trainings : tuple of Training
        The models by which it was predicted.
    """

    jobs: Workload
    start: Int64Array
    end: Int64Array
    mean: FloatArray
    shortness: FloatArray
    by_end: Int64Array
    trainings: tuple[Training, ...] = ()

    def ended(self, now: int) -> Int64Array:
        """Return the jobs that had ended by a second of the clock, in the order of their ends."""
        return self.by_end[: np.searchsorted(self.end[self.by_end], now, side="right")]

    def past(self, now: int) -> PastRuns:
        """Return the run times by which those of other jobs are judged at a second of the clock."""
        last = self.ended(now)[-WINDOW:]
        run = np.maximum(self.end[last] - self.start[last], 1).astype(np.float64)
        return PastRuns(self.mean[last], self.shortness[last], run)

    def snapshot(self, now: int, partitions: Sequence[str] = ("all",)) -> tuple[Snapshot, Int64Array]:
        """Return the queue at a second of the clock, as `policyfactory.workload.snapshot.queue_of` shows it."""
        return queue_of(self.jobs, self.start, (self.running(now), self.waiting(now)), now, partitions)

    def running(self, now: int) -> Int64Array:
        """Return the jobs that run at a second of the clock, before the pass of that second."""
        return np.flatnonzero((self.start >= 0) & (self.start < now) & (self.end > now))

    def waiting(self, now: int) -> Int64Array:
        """Return the jobs that wait at a second of the clock, those that are submitted then included."""
        never = (self.start < 0) & (self.end > now)
        return np.flatnonzero((self.jobs.submit <= now) & ((self.start >= now) | never))

    @functools.cached_property
    def followers(self) -> Followers:
        """Which jobs were submitted when another one of the user had ended."""
        return Followers(self.jobs.user, self.jobs.submit, np.where(self.start >= 0, self.end, NEVER))

    @property
    def has_cancelled(self) -> bool:
        """Whether it has jobs that were cancelled before they started."""
        return bool(((self.start < 0) & (self.end < NEVER)).any())

    def starts(self, rows: Int64Array, now: int, horizon: int) -> FloatArray:
        """Return when waiting jobs started.

        Parameters
        ----------
        rows : int64 array (k,)
        now : int
            Second of the clock.
        horizon : int, s

        Returns
        -------
        float64 array (k,), s
            From then on, at most the horizon; NaN where one was cancelled before.
        """
        start, end = self.start[rows], self.end[rows]
        found = np.where(start < 0, float(horizon), np.minimum(start - float(now), horizon))
        return np.where((start < 0) & (end < now + horizon), np.nan, found)

    def patience(self, rows: Int64Array, now: int) -> Int64Array:
        """Return how long jobs waited that were cancelled by a second of the clock (s); `NEVER` of the others."""
        gave_up = (self.start[rows] < 0) & (self.end[rows] <= now)
        return np.where(gave_up, self.end[rows] - self.jobs.submit[rows], NEVER)

    def covered(self, now: int) -> int:
        """Return up to when it is known what happened by a second of the clock: a log may end before that."""
        ended = self.ended(now)
        return min(int(self.end[ended[-1]]), now) if len(ended) else now

    def hazard(self, now: int) -> CancellationHazard:
        """Return how likely jobs were cancelled that had waited, in the last weeks before a second of the clock."""
        submit = self.jobs.submit
        rows = np.arange(*np.searchsorted(submit, [self.covered(now) - MOST_WEEKS * WEEK, now], side="right"))
        left = np.where(self.start[rows] >= 0, self.start[rows], self.end[rows])
        gave_up = (self.start[rows] < 0) & (self.end[rows] <= now)
        return CancellationHazard(np.minimum(left, now) - submit[rows], gave_up)

    def weeks(self, now: int, horizon: int) -> list[tuple[int, Int64Array]]:
        """Return for each of the last weeks the jobs that were submitted in the same hours of the week.

        Parameters
        ----------
        now : int
            Second of the clock.
        horizon : int
            How many seconds, at most a week.

        Returns
        -------
        list of (int, int64 array)
            How many seconds ago a week was, and its jobs. Empty if the record has none.
        """
        submit = self.jobs.submit
        # The first of them that is over where the record ends.
        first = max(-(-(now + horizon - self.covered(now)) // WEEK), 1)
        shifts = [count * WEEK for count in range(first, first + MOST_WEEKS) if now - count * WEEK >= submit[0]]
        spans = (np.searchsorted(submit, [now - shift, now - shift + horizon], side="right") for shift in shifts)
        return [(shift, np.arange(*span)) for shift, span in zip(shifts, spans, strict=True)]

    def run_time(self, rows: Int64Array, now: int) -> Int64Array:
        """Return how long jobs ran; of those that had not ended by a second of the clock, their limits.

        One that was cancelled while it waited would have run as long as the log has it.
        """
        ran = np.where(self.start[rows] < 0, self.jobs.run_time[rows], self.end[rows] - self.start[rows])
        return np.where(self.end[rows] <= now, ran, self.jobs.requested_time[rows])


def record_of(
    jobs: Workload,
    start: Int64Array,
    end: Int64Array,
    since: int = 0,
    predictor: Predictor | None = None,
    follow: Callable[[float], object] = lambda _: None,
) -> JobRecord:
    """Return the record of jobs whose starts and ends are known.

    Parameters
    ----------
    jobs : Workload
        In the order of submission.
    start, end : int64 array (n,), s
        As of `JobRecord`.
    since : int
        Second of the clock from which on predictions are wanted: before, nothing is trained.
    predictor : Predictor, optional
        What predicts; by default one that is trained on what has ended, every month from ``since`` on.
    follow : callable
        Is told the part of the jobs that were predicted, from 0 to 1.

    Raises
    ------
    UsageError
        If the clock does not count seconds, or too few jobs have ended.
    EvaluationError
        If requests tell the run times that are to be predicted.
    """
    if jobs.ticks != 1:
        raise UsageError(f"{jobs.name}: its clock has {jobs.ticks:,} ticks in a second; a forecast needs seconds")
    by_end = np.argsort(end, kind="stable")
    by_end = by_end[: np.searchsorted(end[by_end], NEVER)]
    by_end = by_end[start[by_end] >= 0]
    if len(by_end) < LEAST:
        raise UsageError(
            f"{jobs.name}: {counted(len(by_end), 'job')} of it have ended, and a forecast learns from {LEAST:,} at "
            "least; give a longer log (policyfactory workload import of the accounting of some months)"
        )
    if predictor is None:
        days = (since - int(jobs.submit[0])) / DAY
        predictor = Predictor(PredictorOptions(first_days=min(max(days, PredictorOptions().first_days), 3650.0)))
    ended = np.where(start >= 0, end, NEVER)
    (mean, shortness), models = predict_record(jobs, start, ended, predictor, follow=follow)
    return JobRecord(jobs, start, end, mean, shortness, by_end=by_end, trainings=models)


def recorded(jobs: Workload, cancelled: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the starts and ends that a log says, as of `JobRecord`.

    Parameters
    ----------
    jobs : Workload
    cancelled : int64 array (n,), s
        As `policyfactory.workload.clean.read_with_cancelled` returns it.

    Raises
    ------
    UsageError
        If it says no starts of most jobs.
    """
    known = jobs.start >= 0
    if 2 * int((known | (cancelled >= 0)).sum()) < len(jobs):
        raise UsageError(
            f"{jobs.name}: it does not say when {int((~known).sum()):,} of {counted(len(jobs), 'job')} started; give a "
            "log with waits (field 3)"
        )
    return jobs.start, np.where(known, jobs.start + jobs.run_time, np.where(cancelled >= 0, cancelled, NEVER))
