"""Jobs that were written in parts: status 2 (to be continued), 3 (last part, completed) and 4 (last part, failed).

A log that records preemptions (header label Preemption) has for each such job either a line that sums it up, and
then its parts (Double), or the parts only (Yes). For a workload a job counts once: the sum stays and its parts go;
parts without a sum become one job that runs for the sum of their times.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.workload.swf.log import SwfLog

__all__ = ["JoinedParts", "join_parts"]

Mask = NDArray[np.bool_]

_CONTINUED, _COMPLETED, _FAILED = 2, 3, 4


@dataclasses.dataclass(frozen=True, slots=True)
class JoinedParts:
    """A log whose parts are joined.

    Parameters
    ----------
    log : SwfLog
        As many lines as before; the first part of a job without a sum has the job's whole run time and its status.
    summed_up : bool array (n,)
        Parts of jobs that have a line of their own.
    merged : bool array (n,)
        First parts, which now stand for their whole job.
    merged_away : bool array (n,)
        Their later parts.
    """

    log: SwfLog
    summed_up: Mask
    merged: Mask
    merged_away: Mask


def join_parts(log: SwfLog) -> JoinedParts:
    """Return the log with one line to use for each job that was written in parts."""
    part = (log.status >= _CONTINUED) & (log.status <= _FAILED)
    none = np.zeros(len(log), dtype=np.bool_)
    if not part.any():
        return JoinedParts(log, none, none, none)
    summed_up = part & np.isin(log.job_id, log.job_id[~part])
    rows = np.flatnonzero(part & ~summed_up)
    _, first, job = np.unique(log.job_id[rows], return_index=True, return_inverse=True)
    run_time = log.run_time.copy()
    total = np.zeros(len(first), dtype=run_time.dtype)
    np.add.at(total, job, np.maximum(log.run_time[rows], 0))
    run_time[rows[first]] = total
    ends = np.full(len(first), -1, dtype=np.int64)
    ends[job[log.status[rows] == _COMPLETED]] = 1
    ends[job[log.status[rows] == _FAILED]] = 0
    status = log.status.copy()
    status[rows[first]] = ends
    merged, merged_away = none.copy(), none.copy()
    merged_away[rows] = True
    merged_away[rows[first]] = False
    merged[rows[first]] = True
    return JoinedParts(dataclasses.replace(log, run_time=run_time, status=status), summed_up, merged, merged_away)
