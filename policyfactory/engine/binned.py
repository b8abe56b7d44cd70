"""Integrals over time in bins: what runs, or waits, in each hour of a schedule, without sorting it."""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import kernel

__all__ = ["binned_integral"]


@kernel
def binned_integral(
    begin: Int64Array, end: Int64Array, weight: Int64Array, origin: int, width: int, bins: int
) -> FloatArray:
    """Return, for each bin, the integral over time of the weights of the intervals that hold then.

    Bin k is [origin + k width, origin + (k + 1) width); what lies outside all bins is not counted. With starts, ends
    and processors it is the work done in a bin, with submissions and starts and processors the backlog, with weights
    of 1 the jobs that wait. Exact as long as the integrals are below 2**53 (the work of an interval that fills many
    bins is added once, so the time taken does not depend on their number).

    Parameters
    ----------
    begin, end : int64 array (n,), ticks
        Half-open intervals; one whose end is not after its begin counts for nothing.
    weight : int64 array (n,)
        At least 0.
    origin : int, ticks
        Where the first bin begins.
    width : int, ticks
        Of a bin, at least 1.
    bins : int
        How many.

    Returns
    -------
    float64 array (bins,), weight x ticks
    """
    partial = np.zeros(bins)
    # Rises and falls of the weight that holds for the whole of a bin.
    steps = np.zeros(bins + 1, dtype=np.int64)
    last = origin + width * bins
    for i in range(len(begin)):
        low, high = max(begin[i], origin), min(end[i], last)
        if high <= low:
            continue
        first, final = (low - origin) // width, (high - 1 - origin) // width
        # Processors times nanoseconds of a week do not fit into 64 bits.
        own = float(weight[i])
        if first == final:
            partial[first] += own * (high - low)
            continue
        partial[first] += own * (origin + (first + 1) * width - low)
        partial[final] += own * (high - origin - final * width)
        steps[first + 1] += weight[i]
        steps[final] -= weight[i]
    whole = 0
    for k in range(bins):
        whole += steps[k]
        partial[k] += float(whole) * width
    return partial
