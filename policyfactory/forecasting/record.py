"""What is known of a cluster up to an instant: the starts and ends of a log, what was predicted of them, the queue."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY, counted, format_duration
from policyfactory.engine.events import NEVER
from policyfactory.prediction.next_jobs import WINDOW, Followers, PastRuns
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Predictor, Training
from policyfactory.simulation.on_site import jobs_on_site
from policyfactory.simulation.predicted import predict_record
from policyfactory.simulation.simulate import FcfsEasy
from policyfactory.simulation.slurm.queue import MOST_TASKS, not_known, on_nodes, with_nodes
from policyfactory.simulation.slurm.run import HeldNodes, NodesSeen, run_slurm
from policyfactory.site.fits import partition_names
from policyfactory.site.model import Site
from policyfactory.statistics.calibration import CancellationHazard
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.jobs import Workload
from policyfactory.workload.snapshot import Snapshot, check_processors, queue_of, users_in, with_queue, without_untold

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


# Queues with what is known of their cluster up to then: one that Slurm printed, or those of a log's instants ----------


_WEEKS, _LEARNED = 9, 40_000  # jobs
_STALE = 30 * DAY  # between the last end of a log and the queue


@dataclasses.dataclass(frozen=True, eq=False)
class QueueStanding:
    """The queue of an instant and the record up to it.

    Parameters
    ----------
    snapshot : Snapshot
        The running jobs first, both these and the waiting ones in the order of submission.
    rows : int64 array (n,)
        The row of each of its jobs in the record.
    record : JobRecord
    now : int
        The instant, on the record's clock.
    """

    snapshot: Snapshot
    rows: Int64Array
    record: JobRecord
    now: int

    @property
    def running(self) -> int:
        """How many of the jobs run."""
        return len(self.snapshot.of("running"))

    @functools.cached_property
    def elapsed(self) -> Int64Array:
        """How long each job has run (s): int64 (n,)."""
        taken = self.snapshot.taken
        return np.array([max(taken - (taken if job.start is None else job.start), 0) for job in self.snapshot.jobs])

    @property
    def limit(self) -> Int64Array:
        """Of each job its limit, or more, if it has run longer: int64 (n,)."""
        given = self.record.jobs.requested_time[self.rows]
        return np.maximum(given, self.elapsed + 1)

    @functools.cached_property
    def tasks(self) -> Int64Array:
        """How many jobs each stands for: the tasks of an array that are simulated: int64 (n,)."""
        return np.array([min(job.tasks, MOST_TASKS) for job in self.snapshot.jobs], dtype=np.int64)

    @functools.cached_property
    def like(self) -> list[FloatArray]:
        """Of each job the run times of like ones, those that it may still have, ascending (s)."""
        past, record = self.record.past(self.now), self.record
        known = record.mean[self.rows], record.shortness[self.rows], self.limit, self.elapsed
        return [
            past.like(*map(float, (mean, shortness)), limit=float(limit), elapsed=float(elapsed))
            for mean, shortness, limit, elapsed in zip(*known, strict=True)
        ]


def standing_of(
    snapshot: Snapshot,
    site: Site | None,
    log: Workload,
    cancelled: Int64Array | None = None,
    predictor: Predictor | None = None,
    follow: Callable[[float], object] = lambda _: None,
) -> tuple[QueueStanding, list[str]]:
    """Return a queue with the record of its cluster up to then, and in sentences what was assumed.

    Parameters
    ----------
    snapshot, site, log, cancelled, follow
        As for `policyfactory.forecasting.forecast.forecast`, which raises the same errors.
    predictor : Predictor, optional
        As for `policyfactory.forecasting.record.record_of`.
    """
    if log.unix_start is None:
        raise UsageError(
            f"{log.name}: it does not say at what date its clock began, and the queue has dates; add UnixStartTime to "
            "its header (policyfactory workload import writes it)"
        )
    log, cancelled, assumed = _on(site, log, cancelled)
    zero, (start, end) = log.unix_start or 0, recorded(log, cancelled)
    now = snapshot.taken - zero
    is_past = end <= now
    # What is older than the weeks that arrivals are drawn from, and the jobs that are learned from, adds time only.
    is_past &= (log.submit > now - _WEEKS * 7 * DAY) | (np.cumsum(is_past) > is_past.sum() - _LEARNED)
    if int(is_past.sum()) < LEAST:
        raise UsageError(
            f"{log.name}: {counted(int(is_past.sum()), 'job')} of it had ended when the queue was printed "
            f"({shown(snapshot.taken, dt.UTC)}), and a forecast learns from {LEAST:,} at least; give a log of the "
            "months before, or, if that is not when it was printed, --taken"
        )
    if not (cancelled >= 0).any():
        assumed.append(
            f"nobody cancels a job that waits: {log.name} has none that was (workload import --keep-unstarted keeps "
            "them)"
        )
    if later := int((log.submit > now).sum()):
        assumed.append(f"{counted(later, 'job')} of {log.name} submitted after the queue was printed not looked at")
    silent = now - int(end[is_past].max(initial=0))
    if silent > _STALE:
        assumed.append(
            f"{log.name} ends {format_duration(silent)} before the queue was printed: users may have changed; give a "
            "newer one"
        )
    if site is None:
        assumed += _checked(snapshot, log)
    jobs = sorted(snapshot.jobs, key=lambda job: (job.state, job.submit, job.number, job.name))
    snapshot = dataclasses.replace(snapshot, jobs=tuple(jobs))
    past = log.select(is_past)
    user, strange = users_in(past, snapshot.jobs)
    if strange:
        named = log.requests is not None and "user" in log.requests.names
        cure = "" if named else " (workload import --user-names keeps their names)"
        assumed.append(
            f"{counted(strange, 'user')} of the queue not known from {log.name}{cure}: judged by all others' jobs"
        )
    workload, order = with_queue(past, snapshot.jobs, user, now)
    started = [-1 if job.start is None else min(job.start - zero, now - 1) for job in snapshot.jobs]
    start = np.concatenate([start[is_past], np.array(started, dtype=np.int64)])[order]
    end = np.concatenate([end[is_past], np.full(len(started), NEVER)])[order]
    # Only of the last jobs that ended, and of those that are there, is it asked what would have been predicted.
    last = np.argsort(end, kind="stable")[: int(is_past.sum())][-WINDOW:]
    since = int(workload.submit[last].min(initial=now))
    record = record_of(workload, start, end, since, predictor, follow)
    rows = np.argsort(order)[int(is_past.sum()) :]
    return QueueStanding(snapshot, rows, record, now), assumed


def _on(site: Site | None, log: Workload, cancelled: Int64Array | None) -> tuple[Workload, Int64Array, list[str]]:
    """Return the jobs as a site takes them, when they were cancelled, and in sentences what was left out."""
    cancelled = np.full(len(log), -1) if cancelled is None else cancelled
    log = without_untold(log)
    if site is None:
        return log, cancelled, []
    taken, assumed = jobs_on_site(log, site)
    return taken, cancelled[np.isin(log.job_id, taken.job_id)], assumed


def _checked(snapshot: Snapshot, log: Workload) -> list[str]:
    """Return what is assumed of a queue without a site, which is checked."""
    check_processors(snapshot, log)
    rules = "EASY backfilling, first come, first served, on the log's processors (--site: by the cluster's rules)"
    assumed = [*snapshot.assumed, rules, *not_known(snapshot.of("waiting"))]
    if not snapshot.of("running"):
        assumed.append("no job runs in the queue, so that all processors are taken for free; print it with all states")
    return assumed


# Queues of a log's instants: of the starts that it records, or of a simulation of its jobs ---------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """What happened, by the record of a log or in a simulation, with the rules by which it goes on.

    Parameters
    ----------
    record : JobRecord
    site : Site or None
        Under Slurm's rules; None: EASY, first come, first served.
    held : mapping of int to HeldNodes
        By the number of jobs that had been submitted: the nodes of the running ones. Empty: not known.
    assumed : tuple of str
        In sentences.
    is_recorded : bool
        By the record.
    """

    record: JobRecord
    site: Site | None
    held: Mapping[int, HeldNodes]
    assumed: tuple[str, ...]
    is_recorded: bool = False

    def standing(self, now: int) -> QueueStanding:
        """Return the queue at a second of the record's clock."""
        if self.site is None:
            return QueueStanding(*self.record.snapshot(now), self.record, now)
        snapshot, rows = self.record.snapshot(now, partition_names(self.site))
        held = self.held.get(int(np.searchsorted(self.record.jobs.submit, now, side="right")))
        if held is not None:
            snapshot = with_nodes(snapshot, self.site, rows, held)
        return QueueStanding(on_nodes(snapshot, self.site), rows, self.record, now)


def loop_of(
    workload: Workload,
    site: Site | None,
    instants: Int64Array,
    cancelled: Int64Array | None = None,
    *,
    is_recorded: bool,
    follow: Callable[[float], object] = lambda _: None,
) -> Loop:
    """Return what happened to the jobs of a log.

    Parameters
    ----------
    workload : Workload
    site : Site or None
        As of `Loop`.
    instants : int64 array
        Seconds of the workload's clock at which the nodes of the running jobs are wanted, ascending.
    cancelled
        As for `policyfactory.forecasting.forecast.forecast`.
    is_recorded : bool
        By the record; else the jobs are simulated.
    follow : callable
        As of `record_of`.

    Raises
    ------
    UsageError
        If the log does not say when jobs started, though that is asked for, or too few have ended.
    EvaluationError
        If requests tell the run times that are to be predicted.
    SiteError
        If the log is of another cluster than the site.
    """
    held = {}
    workload, cancelled, assumed = _on(site, workload, cancelled)
    if is_recorded:
        start, end = recorded(workload, cancelled)
        if site is not None:
            assumed.append("a log does not say on which nodes its jobs ran; they are put on the first free ones")
    elif site is None:
        # Only a site's rules know more of what jobs ask for.
        workload = dataclasses.replace(workload, requests=None)
        found = FcfsEasy(workload).starts(workload.run_time, np.where(cancelled >= 0, cancelled, NEVER))
        start = np.where(found < NEVER, found, -1)
        end = start + workload.run_time
    else:
        seen = NodesSeen(np.unique(np.searchsorted(workload.submit, instants, side="right")))
        run = run_slurm(workload, site, cancelled=cancelled, watch=seen)
        start, end, held = run.start, run.end, seen.seen
    end = np.where(start >= 0, end, np.where(cancelled >= 0, cancelled, NEVER))
    return Loop(record_of(workload, start, end, follow=follow), site, held, tuple(assumed), is_recorded)
