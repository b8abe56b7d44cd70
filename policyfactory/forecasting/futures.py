"""Futures of a queue: run times and arrivals are drawn, and the rules of the site, or EASY, say who starts when.

A future draws the run times of the running and the waiting jobs from what like jobs ran (`PastRuns`), of a running one
given how long it has run; jobs of one user that ask for the same run alike. It draws which of the waiting jobs are
cancelled, and when (`JobRecord.hazard`). What is submitted until the horizon is what was in the same hours of one of
the last weeks, as it came, and was cancelled; but users who have a job that runs submit when it ends what they
submitted at the end of another one (`policyfactory.prediction.next_jobs`), and who had one then is not waited for.
Draws hang on the seed, the future and the job alone: an alternative sees the same futures.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.engine.events import NEVER
from policyfactory.forecasting.record import MOST_WEEKS, WEEK, QueueStanding
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import StopCheck
from policyfactory.simulation.simulate import FcfsEasy
from policyfactory.simulation.slurm.queue import keeps_out, place_queue, ready
from policyfactory.site.fits import partition_names
from policyfactory.site.model import Site
from policyfactory.statistics.calibration import starts_if_kept
from policyfactory.workload.jobs import Workload
from policyfactory.workload.snapshot import QueuedJob, queued_job

_RUNS, _ALIKE, _WEEKS, _PATIENCE, _OF_USER, _FOLLOWED = 45, 46, 47, 49, 50, 51  # purposes of random streams
# Of the normal scores of jobs of one user that ask for the same: 0.4 to 0.9 on three logs (docs/forecast.md).
_CORRELATION = 0.6
# Users cancel what they have together: of cancellations within a day 0.7 and 0.9 on two logs, which is as much.
_TOGETHER = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Draws:
    """What is drawn.

    Parameters
    ----------
    futures : int
        How many.
    seed : int
    horizon : int, s
        Up to when jobs are submitted, and starts are told; a week at most.
    run_times : {"drawn", "limit", "true"}
        Those of the jobs that run or wait; the true ones are for a backtest.
    arrivals : {"drawn", "none", "true"}
        What is submitted until the horizon.
    cancellations : {"drawn", "none"}
        Of waiting jobs; without them nothing is submitted that was cancelled before it started.
    followers : {"drawn", "none"}
        Of drawn arrivals, those that wait for the end of another job of the user.
    """

    futures: int = 200
    seed: int = 1
    horizon: int = 86_400
    run_times: Literal["drawn", "limit", "true"] = "drawn"
    arrivals: Literal["drawn", "none", "true"] = "drawn"
    cancellations: Literal["drawn", "none"] = "drawn"
    followers: Literal["drawn", "none"] = "drawn"


class ComingJobs(NamedTuple):
    """Jobs that are to come.

    Parameters
    ----------
    shift : int, s
        How much later than in the record.
    rows : int64 array (k,)
        In the record.
    leader : int64 array (k,)
        The running job, by its place in the queue, whose end each waits for; -1: it comes whatever ends.
    think : int64 array (k,), s
        How long after that end.
    """

    shift: int
    rows: Int64Array
    leader: Int64Array
    think: Int64Array

    def select(self, which: NDArray[np.bool_]) -> ComingJobs:
        """Return some of them."""
        return ComingJobs(self.shift, self.rows[which], self.leader[which], self.think[which])

    def submit(self, standing: QueueStanding, run_time: Int64Array) -> Int64Array:
        """Return when they are submitted, s from the instant on; ``run_time``: of the queue's tasks."""
        as_then = standing.record.jobs.submit[self.rows] + self.shift - standing.now
        first = (np.cumsum(standing.tasks) - standing.tasks)[: standing.running]
        left = run_time[first] - standing.elapsed[: standing.running]
        return np.where(self.leader < 0, as_then, np.append(left, 0)[self.leader] + self.think)


def as_recorded(rows: Int64Array, shift: int = 0) -> ComingJobs:
    """Return jobs that come as they did in the record, so many seconds later."""
    return ComingJobs(shift, rows, np.full(len(rows), -1), np.zeros(len(rows), dtype=np.int64))


# Given the run times (s) of the jobs that run or wait, those of an array's tasks beside each other, when the jobs are
# cancelled if they wait, and the number of the future: the starts of those that wait, the horizon or later where they
# are later, or there is none. Cancellations and starts are seconds from the instant on.
RunFuture = Callable[[Int64Array, Int64Array, int], Int64Array]
# Given the jobs that are to come.
Queues = Callable[[ComingJobs], RunFuture]


def starts_of(standing: QueueStanding, queues: Queues, draws: Draws, workers: int | None = None) -> FloatArray:
    """Return when the waiting jobs start in each future: float64 (futures, waiting), s from the instant on.

    Parameters
    ----------
    standing : QueueStanding
    queues : callable
        Of `queues_of`.
    draws : Draws
    workers : int, optional
        Threads (default: the cores); the result does not depend on them.
    """
    weeks, which = arrivals_of(standing, draws)
    runs, patience = _run_times(standing, draws), _patience(standing, draws)
    starts = np.empty((len(which), len(standing.rows) - standing.running))

    def run_week(_: None, week: int, check_stop: StopCheck) -> None:
        queue = queues(weeks[week])
        for future in np.flatnonzero(which == week).tolist():
            check_stop()
            starts[future] = queue(runs[future], patience[future], future)

    for _ in results(run_week, None, np.unique(which).tolist(), workers or len(os.sched_getaffinity(0))):
        pass
    return starts_if_kept(np.minimum(starts, draws.horizon), patience[: len(which), standing.running :], draws.horizon)


def arrivals_of(standing: QueueStanding, draws: Draws) -> tuple[list[ComingJobs], Int64Array]:
    """Return weeks, and which of them each future has."""
    record, now = standing.record, standing.now
    futures = 1 if draws.run_times != "drawn" and draws.arrivals != "drawn" else draws.futures
    weeks = []
    if draws.arrivals == "true":
        span = np.searchsorted(record.jobs.submit, [now, now + draws.horizon], side="right")
        weeks = [as_recorded(np.arange(*span))]
    elif draws.arrivals == "drawn":
        weeks = [as_recorded(rows, shift) for shift, rows in record.weeks(now, draws.horizon)]
        if draws.followers == "drawn":
            weeks = [_with_followers(standing, draws, week) for week in weeks]
    weeks = weeks or [as_recorded(np.zeros(0, dtype=np.int64))]
    if draws.cancellations == "none":
        weeks = [week.select(record.patience(week.rows, now) == NEVER) for week in weeks]
    return weeks, generator(draws.seed, _WEEKS).integers(len(weeks), size=futures)


def _with_followers(standing: QueueStanding, draws: Draws, week: ComingJobs) -> ComingJobs:
    """Return a week without what followed a job that ran at its instant, but with what may follow those that run."""
    record, followers, running = standing.record, standing.record.followers, standing.running
    until = record.covered(standing.now) - draws.horizon
    led, _ = followers.after(record.running(standing.now - week.shift), draws.horizon)
    week = week.select(~np.isin(week.rows, led))
    ran = standing.snapshot.of("running")
    chance = np.array([generator(draws.seed, _FOLLOWED, week.shift, job.number).random() for job in ran])
    like = followers.like(record.jobs.user[standing.rows[:running]], until - MOST_WEEKS * WEEK, until, chance)
    leader = np.flatnonzero(like >= 0)
    rows, which = followers.after(like[leader], draws.horizon)
    think = record.jobs.submit[rows] - record.end[like[leader]][which]
    its = (week.rows, rows), (week.leader, leader[which]), (week.think, think)
    return ComingJobs(week.shift, *map(np.concatenate, its))


def _run_times(standing: QueueStanding, draws: Draws) -> Int64Array:
    """Return the run times of the jobs that run or wait, each task's, in each future: int64 (futures, tasks), s."""
    elapsed, rows, record, tasks = standing.elapsed, standing.rows, standing.record, standing.tasks
    if draws.run_times != "drawn":
        given = standing.limit if draws.run_times == "limit" else record.run_time(rows, NEVER - 1)
        given = np.repeat(np.maximum(given, elapsed + 1), tasks)
        return np.broadcast_to(given, (draws.futures, len(given)))
    runs = [np.empty((0, draws.futures), dtype=np.int64)]
    common: dict[tuple[str, int, int], FloatArray] = {}
    for row, (job, like) in enumerate(zip(standing.snapshot.jobs, standing.like, strict=True)):
        group = (job.user, job.limit or 0, job.cores)
        if group not in common:
            common[group] = _normal(draws, _ALIKE, job.number)
        alone = generator(draws.seed, _RUNS, job.number).standard_normal((tasks[row], draws.futures))
        chance = ndtr(_mixed(common[group], alone, _CORRELATION))
        drawn = like[np.minimum((chance * len(like)).astype(np.int64), len(like) - 1)]
        runs.append(np.maximum(np.rint(drawn).astype(np.int64), elapsed[row] + 1))
    return np.ascontiguousarray(np.concatenate(runs).T)


def _patience(standing: QueueStanding, draws: Draws) -> Int64Array:
    """Return when the waiting jobs are cancelled in each future: int64 (futures, n), s from the instant on."""
    found = np.full((draws.futures, len(standing.rows)), NEVER)
    model = standing.record.hazard(standing.now)
    if draws.cancellations == "none" or not len(model.times):
        return found
    users, now = standing.record.jobs.user[standing.rows].tolist(), standing.snapshot.taken
    for column in range(standing.running, len(standing.rows)):
        job, user = standing.snapshot.jobs[column], users[column]
        score = _normal(draws, _PATIENCE, job.number)
        if user >= 0:
            score = _mixed(_normal(draws, _OF_USER, user), score, _TOGETHER)
        found[:, column] = model.draw(max(now - job.submit, 0), ndtr(score))
    return found


def _mixed(common: FloatArray, alone: FloatArray, correlation: float) -> FloatArray:
    return math.sqrt(correlation) * common + math.sqrt(1 - correlation) * alone


def _normal(draws: Draws, purpose: int, number: int) -> FloatArray:
    return generator(draws.seed, purpose, number).standard_normal(draws.futures)


# EASY on a machine of processors --------------------------------------------------------------------------------------


def easy_queue(standing: QueueStanding, horizon: int, arrivals: ComingJobs) -> RunFuture:
    """Return a queue under EASY, first come, first served, with jobs that are to come."""
    record = standing.record
    # Tasks of an array are as many jobs.
    jobs, of = record.jobs, np.repeat(np.arange(len(standing.rows)), standing.tasks)
    elapsed, n, firsts = standing.elapsed[of], len(of), np.cumsum(standing.tasks) - standing.tasks
    taken, never = standing.snapshot.taken, horizon + 1
    begins = ((job.eligible or taken) - taken for job in standing.snapshot.jobs)
    out = [never * bool(keeps_out(job, jobs.machine)) for job in standing.snapshot.jobs]
    now = np.clip(np.maximum(list(begins), out), 0, never).astype(np.int64)[of]
    rows = np.concatenate([standing.rows[of], arrivals.rows])
    limit = np.concatenate([standing.limit[of] - elapsed, jobs.requested_time[arrivals.rows]])
    run_later, patience_later = _later(standing, arrivals)

    def queue(run_time: Int64Array) -> tuple[FcfsEasy, Int64Array, Int64Array]:
        # Those that wait stand in the order of submission; who comes next comes a second later at the earliest.
        submit = np.concatenate([now, np.clip(arrivals.submit(standing, run_time) + 1, 1, never)])
        order, unknown = np.argsort(submit, kind="stable"), np.full(len(rows), -1)
        workload = Workload(
            *("the snapshot", jobs.machine, np.arange(1, len(rows) + 1), submit[order], limit[order], limit[order]),
            *(jobs.processors[rows[order]], unknown, unknown),
        )
        return FcfsEasy(workload), order, submit

    known = queue(standing.limit[of]) if (arrivals.leader < 0).all() else None

    def run(run_time: Int64Array, patience: Int64Array, _: int) -> Int64Array:
        left = run_time - elapsed
        fcfs, order, submit = known or queue(run_time)
        gone = np.concatenate([patience[of], np.where(patience_later < never, submit[n:] + patience_later, NEVER)])
        found = np.empty(len(rows), dtype=np.int64)
        found[order] = fcfs.starts(np.concatenate([left, run_later])[order], gone[order])
        return np.asarray(np.minimum.reduceat(found[:n], firsts)[standing.running :])

    return run


def _later(standing: QueueStanding, arrivals: ComingJobs) -> tuple[Int64Array, Int64Array]:
    """Return how long jobs run that are to come, and wait at most: as is known at the instant, unless by the truth."""
    until = standing.now if arrivals.shift else NEVER - 1
    return standing.record.run_time(arrivals.rows, until), standing.record.patience(arrivals.rows, until)


# Slurm on a site ------------------------------------------------------------------------------------------------------


def slurm_queue(standing: QueueStanding, site: Site, horizon: int, arrivals: ComingJobs) -> RunFuture:
    """Return a queue under Slurm's rules on a site, whose running jobs have nodes, with jobs that are to come."""
    partitions = partition_names(site)
    jobs, record, running = standing.snapshot.jobs, standing.record, standing.running
    taken, follows = standing.snapshot.taken, arrivals.leader >= 0
    # Where this job is submitted, which never starts, a run is over.
    last = QueuedJob(
        *("the horizon", _NUMBERS, "waiting", "", "", "", (partitions[0],)),
        submit=taken + horizon + 1,
        priority=0,
    )
    # Followers are ready at times of their own in each future.
    shifts = np.where(follows, standing.now + 1 - record.jobs.submit[arrivals.rows], arrivals.shift).tolist()
    moved = zip(arrivals.rows.tolist(), shifts, strict=True)
    shown = (queued_job(record.jobs, row, partitions, shift=shift) for row, shift in moved)
    later = [dataclasses.replace(job, number=number) for number, job in enumerate(shown, _NUMBERS + 1)]
    queue = place_queue(standing.snapshot, site, (*later, last))
    rows, start = queue.rows, ready(queue)
    # The jobs of the snapshot, of which some may be left out, and then those that come.
    numbers = {id(job): number for number, job in enumerate((*jobs, *later, last))}
    which = np.array([numbers[id(job)] for job in queue.jobs])[rows]
    # Each task has a run time of its own.
    tasks = np.append(standing.tasks, np.ones(len(later) + 1, dtype=np.int64))
    columns = (np.cumsum(tasks) - tasks)[which] + queue.task
    run_later, patience_later = (np.append(its, 1) for its in _later(standing, arrivals))
    patience_later[-1] = NEVER
    submits = np.array([taken] * len(jobs) + [job.submit for job in (*later, last)])

    def run(run_time: Int64Array, patience: Int64Array, number: int) -> Int64Array:
        # Nobody knows when the last pass was: futures have it at all times of its period (the golden section).
        since = int(0.618034 * number % 1.0 * (start.settings.interval + 1))
        waits, later_by = np.concatenate([patience, patience_later])[which], np.zeros(len(submits), dtype=np.int64)
        later_by[len(jobs) : -1] = np.where(follows, arrivals.submit(standing, run_time) - 1, 0)
        gone = np.where(waits < horizon, (submits + later_by)[which] + waits, -1)
        future = start.begin(np.concatenate([run_time, run_later])[columns], since, gone, later_by[which])
        future.run(len(rows))
        found = np.full(len(jobs) - running, horizon)
        for index, second in future.starts(queue).items():
            column = numbers[id(queue.jobs[index])] - running
            if column < len(found):
                found[column] = max(second - taken, 0)
        return found

    return run


def rules_of(site: Site | None) -> str:
    """Return by what rules a queue is simulated, in a word."""
    return "EASY" if site is None else site.name


def queues_of(standing: QueueStanding, site: Site | None, horizon: int) -> Queues:
    """Return what runs a queue: under Slurm's rules on a site, or under EASY."""
    make = functools.partial(easy_queue, standing, horizon)
    if site is not None:
        make = functools.partial(slurm_queue, standing, site, horizon)
    known: dict[tuple[int, bytes, bytes], RunFuture] = {}

    def queue(arrivals: ComingJobs) -> RunFuture:
        # A backtest asks for the same weeks again.
        week = arrivals.shift, arrivals.rows.tobytes(), arrivals.leader.tobytes()
        if week not in known:
            known[week] = make(arrivals)
        return known[week]

    return queue


_NUMBERS = 1 << 40  # beyond those of jobs
