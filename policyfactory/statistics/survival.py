"""Jobs that wait until they start or are cancelled: how likely the latter is, and when they had started otherwise.

Of a job that was cancelled nobody knows when it would have started, and of one that started when it would have been
cancelled: each ends the waiting that the other is counted in (competing risks, taken for independent of each other).
"""

from __future__ import annotations

from bisect import bisect_right, insort

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import NEVER

_GOLDEN = 0.618034


class CancellationHazard:
    """The hazard of being cancelled by the time waited (W. Nelson, Technometrics 14, 1972).

    Jobs that started, or wait still, count as long as they waited. All users are one: that one has cancelled more than
    others does not say that he will (docs/forecast.md).

    Parameters
    ----------
    waited : int64 array (n,), s
        How long jobs waited, up to now.
    gave_up : bool array (n,)
        Which of them were cancelled then.

    Attributes
    ----------
    times : int64 array (k,), s
        After which jobs were cancelled, ascending.
    """

    def __init__(self, waited: Int64Array, gave_up: NDArray[np.bool_]) -> None:
        self.times, counts = np.unique(waited[gave_up], return_counts=True)
        there = len(waited) - np.searchsorted(np.sort(waited), self.times)
        self._hazard = np.cumsum(counts / there)

    def draw(self, waited: int, chance: FloatArray) -> Int64Array:
        """Return for how long a job waits from then on until it is cancelled.

        Parameters
        ----------
        waited : int, s
        chance : float64 array (futures,)
            Uniform from 0 to 1.

        Returns
        -------
        int64 array (futures,), s
            At least 1; `policyfactory.engine.events.NEVER` where it is not cancelled as far as anybody has waited.
        """
        before = int(np.searchsorted(self.times, waited, side="right"))
        reached = (self._hazard[before - 1] if before else 0.0) - np.log1p(-chance)
        times = np.append(self.times, NEVER)[np.searchsorted(self._hazard, reached)]
        return np.where(times < NEVER, np.maximum(times - waited, 1), NEVER)


def starts_if_kept(starts: FloatArray, patience: Int64Array, horizon: float) -> FloatArray:
    """Return when jobs start that are not cancelled: where one was, as in the futures in which it starts later.

    Each takes the start of one of those, the one with most patience first (the redistribution to the right of B. Efron,
    5th Berkeley Symposium 4, 1967, which is the estimate of Kaplan and Meier).

    Parameters
    ----------
    starts : float64 array (futures, jobs), s
        At most the horizon.
    patience : int64 array (futures, jobs), s
        When it was cancelled if it waited still.
    horizon : float, s
    """
    kept = starts.copy()
    gone = (starts > patience) & (patience < horizon)
    for column in np.flatnonzero(gone.any(axis=0)).tolist():
        known = np.sort(starts[~gone[:, column], column]).tolist()
        futures = np.flatnonzero(gone[:, column])
        for future in futures[np.argsort(-patience[futures, column], kind="stable")].tolist():
            first = bisect_right(known, int(patience[future, column]))
            later = known[first + int(_GOLDEN * future % 1.0 * (len(known) - first))] if first < len(known) else horizon
            kept[future, column] = later
            insort(known, later)
    return kept
