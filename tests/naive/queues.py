"""Queues of the planning kernels, written to be read: their order, and how small the jobs behind a place are."""

from __future__ import annotations

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import Jobs, Order

__all__ = ["queue_of", "smallest_behind"]


def queue_of(waiting: Int64Array, scores: FloatArray, overdue: int, order: Order) -> Int64Array:
    """Return the waiting jobs in the order of the queue."""
    jobs = waiting[1 : waiting[0] + 1].tolist()
    score = dict(zip(jobs, scores[1 : waiting[0] + 1].tolist(), strict=True))
    first, rest = jobs[:overdue], jobs[overdue:]
    if order.last_first:
        rest.reverse()
    return np.array([*first, *sorted(rest, key=score.__getitem__)], dtype=np.int64)


def smallest_behind(jobs: Jobs, queue: Int64Array) -> Int64Array:
    """Return, place by place, the processors of the smallest job from there to the end of the queue."""
    widths = [int(jobs.processors[job]) for job in queue]
    return np.array([min(widths[at:]) for at in range(len(widths))], dtype=np.int64)
