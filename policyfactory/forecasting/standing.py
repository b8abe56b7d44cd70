"""Queues with what is known of their cluster up to then: one that Slurm printed, or those of a log's instants."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Mapping

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import Int64Array
from policyfactory.core.text import DAY, counted, format_duration
from policyfactory.engine.events import NEVER
from policyfactory.forecasting.futures import QueueStanding
from policyfactory.forecasting.record import LEAST, JobRecord, record_of, recorded
from policyfactory.prediction.next_jobs import WINDOW
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.on_site import jobs_on_site
from policyfactory.simulation.simulate import FcfsEasy
from policyfactory.simulation.slurm.queue import not_known, on_nodes, with_nodes
from policyfactory.simulation.slurm.run import HeldNodes, NodesSeen, run_slurm
from policyfactory.site.fits import partition_names
from policyfactory.site.model import Site
from policyfactory.workload.accounting.times import shown
from policyfactory.workload.jobs import Workload
from policyfactory.workload.snapshot import Snapshot, check_processors, users_in, with_queue, without_untold

_WEEKS, _LEARNED = 9, 40_000  # jobs
_STALE = 30 * DAY  # between the last end of a log and the queue


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
