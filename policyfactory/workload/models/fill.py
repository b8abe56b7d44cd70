"""Requested times for the jobs of a log that have none, from what the log itself says where it says something.

In this order: the nearest request of the same user, earlier or later; the most usual request of the same queue, which
stands for the queue's default; an estimate of the Tsafrir-Etsion-Feitelson model (`tsafrir_bins`). A job was not
stopped at a limit shorter than its run, so a request that the run exceeds is never taken.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import Int64Array
from policyfactory.core.text import HOUR
from policyfactory.workload.models.tsafrir import LEAST_JOBS, LEAST_MAX_ESTIMATE, chance, make_histogram
from policyfactory.workload.presets import ABSURD_REQUEST
from policyfactory.workload.swf.log import SwfLog

__all__ = ["FILL_SEED", "FilledRequests", "fill_requests"]

Mask = NDArray[np.bool_]

# One seed for all, so that every command that reads a log sees the same jobs.
FILL_SEED = 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class FilledRequests:
    """Requested times for jobs that have none.

    Parameters
    ----------
    requested_time : int64 array (n,)
        s, at least the run time; 0 where none was asked for.
    of_user, of_queue, of_model : bool array (n,)
        Where each is from.
    longest : int
        Longest estimate of the model, s.
    """

    requested_time: Int64Array
    of_user: Mask
    of_queue: Mask
    of_model: Mask
    longest: int


def fill_requests(log: SwfLog, missing: Mask, run_time: Int64Array) -> FilledRequests:
    """Return requested times for the jobs ``missing``; the same log gives the same.

    Parameters
    ----------
    log : SwfLog
        All lines: those that cannot be simulated still say what their users ask for.
    missing : bool array (n,)
        Jobs that need one.
    run_time : int64 array (n,)
        s, in whole seconds.
    """
    request = np.ceil(log.requested_time).astype(np.int64)
    known = (request > 0) & (request <= ABSURD_REQUEST) & (log.submit >= 0)
    filled = np.zeros(len(log), dtype=np.int64)
    masks = []
    left = missing.copy()
    for source in (_of_user(log, request, known, left), _of_queue(log, request, known, left)):
        taken = left & (source > 0) & (source >= run_time)
        filled[taken] = source[taken]
        left &= ~taken
        masks.append(taken)
    longest = _longest(log, request[known], run_time[left])
    filled[left] = _of_model(run_time[left], longest)
    return FilledRequests(filled, masks[0], masks[1], left, longest)


def _of_user(log: SwfLog, request: Int64Array, known: Mask, missing: Mask) -> Int64Array:
    """Return the request of the same user that was submitted nearest to each job, the earlier of two; 0 for none."""
    rows = np.flatnonzero((known | missing) & (log.user >= 0))
    rows = rows[np.lexsort((log.submit[rows], log.user[rows]))]
    place = np.arange(len(rows))
    asks = known[rows]
    before = np.maximum.accumulate(np.where(asks, place, -1))
    after = np.minimum.accumulate(np.where(asks, place, len(rows))[::-1])[::-1]
    distances = []
    for other in (before, after):
        at = rows[np.clip(other, 0, len(rows) - 1)] if len(rows) else rows
        same = (other >= 0) & (other < len(rows)) & (log.user[at] == log.user[rows])
        distances.append((at, np.where(same, np.abs(log.submit[at] - log.submit[rows]), np.inf)))
    (earlier, since), (later, until) = distances
    found = np.zeros(len(log), dtype=np.int64)
    nearest = np.where(since <= until, earlier, later)
    some = np.isfinite(np.minimum(since, until))
    found[rows[some]] = request[nearest[some]]
    return found


def _of_queue(log: SwfLog, request: Int64Array, known: Mask, missing: Mask) -> Int64Array:
    """Return the most usual request of each job's queue, the shortest of several; 0 for none."""
    found = np.zeros(len(log), dtype=np.int64)
    for queue in np.unique(log.queue[missing & (log.queue >= 0)]):
        values, jobs = np.unique(request[known & (log.queue == queue)], return_counts=True)
        if len(values):
            found[log.queue == queue] = values[np.argmax(jobs)]
    return found


def _longest(log: SwfLog, requests: Int64Array, run_time: Int64Array) -> int:
    """Return the longest estimate: the site's limit, the longest request, or what the longest run needs."""
    limit = log.header.positive("MaxRuntime")
    needed = -(-int(run_time.max(initial=0)) // HOUR) * HOUR
    longest = int(requests.max()) if len(requests) else needed
    return max(min(limit, ABSURD_REQUEST) if limit else longest, LEAST_MAX_ESTIMATE)


def _of_model(run_time: Int64Array, longest: int) -> Int64Array:
    """Draw an estimate of the model for each run time among those that are not shorter; the run itself beyond all."""
    if not len(run_time):
        return run_time
    luck = chance(FILL_SEED, "numpy")
    histogram = make_histogram(max(len(run_time), LEAST_JOBS), longest, (), luck)
    below = np.concatenate([[0], np.cumsum(histogram.jobs)])
    first = below[np.searchsorted(histogram.times, run_time)]
    drawn = first + luck.values(len(run_time)) % np.maximum(below[-1] - first, 1)
    at = np.minimum(np.searchsorted(below, drawn, side="right") - 1, len(histogram.times) - 1)
    estimates: Int64Array = np.maximum(histogram.times[at], np.maximum(run_time, 1))
    return estimates
