"""Requested times of the estimate model for a log, all its other fields untouched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import WorkloadError
from policyfactory.workload.models.tsafrir import Estimates
from policyfactory.workload.swf.log import SwfLog

__all__ = ["replace_requests", "usable_lines"]


def usable_lines(log: SwfLog) -> NDArray[np.bool_]:
    """Return which lines of a log are jobs that ran: a run time of at least 0, at least one processor."""
    return np.asarray((log.run_time >= 0) & ((log.allocated > 0) | (log.requested > 0)))


def replace_requests(
    log: SwfLog, draw: Callable[[NDArray[np.int64]], Estimates], note: Callable[[Estimates], str]
) -> tuple[SwfLog, Estimates]:
    """Return the usable lines of ``log`` with field 9 drawn anew and field 4 cut to the longest request.

    Parameters
    ----------
    log : SwfLog
        The log.
    draw : callable
        Gives the estimates of run times (int64 array (n,), s), for example `tsafrir.draw_estimates`.
    note : callable
        Says in one line, for the header, how they were made.

    Raises
    ------
    WorkloadError
        If no line is usable.
    """
    kept = log.select(usable_lines(log))
    if not len(kept):
        raise WorkloadError(
            f"{log.path}: none of the {len(log):,} jobs has a run time and processors; nothing to estimate"
        )
    # A run time with decimals must be covered as well.
    made = draw(np.ceil(kept.run_time).astype(np.int64))
    shortened = np.where(np.ceil(kept.run_time) > made.run_time, made.run_time, kept.run_time)
    counts = {"MaxJobs": str(len(kept)), "MaxRecords": str(len(kept))}
    dropped = len(log) - len(kept)
    notes = (note(made), *((f"{dropped} lines without run time or processors were dropped",) if dropped else ()))
    header = kept.header.replace(counts, notes)
    run_time = shortened.astype(kept.run_time.dtype)
    return dataclasses.replace(kept, requested_time=made.requested_time, run_time=run_time, header=header), made
