"""Sums over schedules: the same bits on every machine.

Sums of floating-point numbers go from the first to the last with Neumaier's correction, so neither the width of a
processor's vectors nor the number of threads can change a digit.
"""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import kernel

__all__ = ["busy_integrals", "slowdown", "total", "weighted_total"]


@kernel
def total(values: FloatArray) -> float:
    """Return the sum of ``values`` (Neumaier, ZAMM 54, 1974)."""
    result = 0.0
    correction = 0.0
    for value in values:
        sum_ = result + value
        if abs(result) >= abs(value):
            correction += (result - sum_) + value
        else:
            correction += (value - sum_) + result
        result = sum_
    return result + correction


@kernel
def weighted_total(values: Int64Array, first: Int64Array, second: Int64Array) -> float:
    """Return the sum of values * first * second; the products are rounded to double, the sum is corrected."""
    products = np.empty(len(values))
    for i in range(len(values)):
        products[i] = float(values[i]) * (float(first[i]) * float(second[i]))
    return total(products)


@kernel
def slowdown(wait: Int64Array, run_time: Int64Array, share: Int64Array, least: int) -> FloatArray:
    """Return max((w + p) / (share * max(p, least)), 1) of each job.

    DESIGN: with share 1 the bounded slowdown, with the job's processors that per processor; ``least`` is tau.

    Parameters
    ----------
    wait, run_time : int64 array (n,), ticks
        w and the actual p.
    share : int64 array (n,)
        1 or q.
    least : int
        Ticks, at least 1.
    """
    result = np.empty(len(wait))
    for i in range(len(wait)):
        result[i] = max((wait[i] + run_time[i]) / (share[i] * max(run_time[i], least)), 1.0)
    return result


@kernel
def busy_integrals(start: Int64Array, end: Int64Array, processors: Int64Array) -> tuple[float, float]:
    """Return the integrals over time of the processors in use, and of their square.

    Parameters
    ----------
    start, end : int64 array (n,), ticks
        When each job ran.
    processors : int64 array (n,)
        What it used.
    """
    by_start = np.argsort(start, kind="mergesort")
    by_end = np.argsort(end, kind="mergesort")
    n = len(start)
    linear, square = np.empty(2 * n), np.empty(2 * n)
    busy, now, started, ended = 0, 0, 0, 0
    for step in range(2 * n):
        # At one instant starts come first: a job of no run time has started before it ends, and the interval between
        # them has no length.
        ends = started == n or end[by_end[ended]] < start[by_start[started]]
        if ends:
            job = by_end[ended]
            ended += 1
        else:
            job = by_start[started]
            started += 1
        time = end[job] if ends else start[job]
        # Nothing is busy before the first, so it does not matter when that time began.
        linear[step] = busy * float(time - now)
        square[step] = busy * linear[step]
        now = time
        busy += -processors[job] if ends else processors[job]
    return total(linear), total(square)
