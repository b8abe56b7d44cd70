"""The fit that is asked for before a simulation of a site is trusted, stated once."""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.units import MINUTE

__all__ = [
    "ALIKE",
    "BINS",
    "DISTANCE",
    "FEWEST_WAITING",
    "LEAD_IN",
    "LEAST_JOBS",
    "LONGER",
    "MOST_NEVER",
    "MOST_OTHERWISE",
    "ORDER",
    "PLACES",
    "RUNAWAY",
    "SECONDS",
    "SHARE",
    "UTILISATION",
    "close",
]

DISTANCE = 0.2  # Kolmogorov-Smirnov, of the waits
SHARE = 0.25  # of the recorded median, or 90th percentile
SECONDS = 5 * MINUTE  # by which these may always differ
PLACES = 0.04  # or the simulated value is a quantile of the record so near by
ORDER = 0.5  # rank correlation of the waits, job by job
FEWEST_WAITING = 0.01  # of the jobs wait longer than `ALIKE`: of fewer the order says nothing
UTILISATION = 5.0  # points of the site's cores, mean over time
ALIKE = MINUTE  # s; shorter waits are alike: they are the scheduler's rhythm, which no record gives
LEAST_JOBS = 100  # of a group that is judged
MOST_OTHERWISE = 0.1  # of the judged jobs may be in partitions, or in QOS, that are far
MOST_NEVER = 0.05  # of the jobs may never start on the site
LEAD_IN = 0.1  # of the jobs fill the machine, which is empty at first, and are not compared
LONGER = 2, 20  # times the record's longest queue, and jobs more: what holds a queue so long is asked
RUNAWAY = 10, 1_000  # the same: where a queue is so long, the replay is stopped
BINS = 100  # of the time, at most, unless they were longer than a day


def close(quantile: float, observed: Int64Array, simulated: Int64Array) -> bool:
    """Say whether a quantile of simulated waits (s) is near enough to the recorded one.

    It is where their difference is small, or where the record has the simulated value as a quantile close by: of waits
    that are either short or long, a middle value says little.

    Parameters
    ----------
    quantile : float
        0.5 is the median.
    observed, simulated : int64 array (n,), n >= 1, s
        The waits.
    """
    was, now = float(np.quantile(observed, quantile)), float(np.quantile(simulated, quantile))
    if abs(now - was) <= max(SECONDS, SHARE * was):
        return True
    low, high = np.quantile(observed, (quantile - PLACES, quantile + PLACES))
    return bool(low <= now <= high)
