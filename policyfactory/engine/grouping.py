"""Sums of jobs by group: users, size classes, run-time classes, in one pass over a schedule."""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined, kernel

__all__ = ["group_sums"]


@kernel
def group_sums(
    code: Int64Array, groups: int, wait: Int64Array, run_time: Int64Array, processors: Int64Array, least: int
) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
    """Return the jobs of each group, and the sums of their work, waits and bounded slowdowns.

    Each sum goes from the first job to the last with Neumaier's correction (ZAMM 54, 1974), as in
    `policyfactory.engine.metrics.total`.

    Parameters
    ----------
    code : int64 array (n,)
        Group of each job, 0 to ``groups - 1``.
    groups : int
        How many there are.
    wait, run_time : int64 array (n,), ticks
        w and the actual p.
    processors : int64 array (n,)
        q.
    least : int
        tau of the bounded slowdown max((w + p) / max(p, tau), 1), in ticks, at least 1.

    Returns
    -------
    jobs : int64 array (groups,)
    work : float64 array (groups,), processors x ticks
        Sum of q p.
    waited : float64 array (groups,), ticks
        Sum of w.
    slowdown : float64 array (groups,)
        Sum of the bounded slowdowns.
    """
    jobs = np.zeros(groups, dtype=np.int64)
    work, work_rest = np.zeros(groups), np.zeros(groups)
    waited, waited_rest = np.zeros(groups), np.zeros(groups)
    slowdown, slowdown_rest = np.zeros(groups), np.zeros(groups)
    for i in range(len(code)):
        at = code[i]
        jobs[at] += 1
        _add(work, work_rest, at, float(processors[i]) * float(run_time[i]))
        _add(waited, waited_rest, at, float(wait[i]))
        _add(slowdown, slowdown_rest, at, max((wait[i] + run_time[i]) / max(run_time[i], least), 1.0))
    return jobs, work + work_rest, waited + waited_rest, slowdown + slowdown_rest


@inlined
def _add(sums: FloatArray, rests: FloatArray, at: int, value: float) -> None:
    before = sums[at]
    after = before + value
    if abs(before) >= abs(value):
        rests[at] += (before - after) + value
    else:
        rests[at] += (value - after) + before
    sums[at] = after
