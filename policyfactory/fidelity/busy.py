"""What runs at each instant of a schedule, as a step function, exactly."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array

__all__ = ["Busy", "busy_of"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Busy:
    """Cores in use over time.

    Parameters
    ----------
    times : int64 array (k,), s
        Ascending, each once; nothing is in use before the first.
    cores : int64 array (k,)
        In use from each time on.
    """

    times: Int64Array
    cores: Int64Array

    @property
    def peak(self) -> int:
        """The most in use at once."""
        return int(self.cores.max(initial=0))

    def share_above(self, cores: float) -> float:
        """Return the share of the time from the first to the last change in which more than so many are in use."""
        lasts = np.diff(self.times)
        total = float(lasts.sum())
        return float(lasts[self.cores[:-1] > cores].sum()) / total if total else 0.0

    def time_at_most(self, cores: float, begin: int, end: int) -> int:
        """Return for how many seconds of [begin, end) at most so many are in use."""
        first, last = np.searchsorted(self.times, (begin, end), side="right").tolist()
        edges = np.concatenate([[begin], self.times[first:last], [end]])
        held = np.concatenate([[self.cores[first - 1] if first else 0], self.cores[first:last]])
        return int(np.diff(edges)[held <= cores].sum())

    def most_in(self, edges: Int64Array) -> FloatArray:
        """Return the most in use in each of the bins [edges[i], edges[i + 1])."""
        found = np.zeros(len(edges) - 1)
        for at, (begin, end) in enumerate(itertools.pairwise(edges.tolist())):
            first, last = np.searchsorted(self.times, (begin, end)).tolist()
            before = int(self.cores[first - 1]) if first else 0
            found[at] = max(before, int(self.cores[first:last].max(initial=0)))
        return found


def busy_of(start: Int64Array, end: Int64Array, cores: Int64Array) -> Busy:
    """Return the cores in use over time.

    Parameters
    ----------
    start, end : int64 array (n,), s
        Half-open: a job that ends makes room for one that starts at that instant.
    cores : int64 array (n,)
        Of each job.
    """
    times, at = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.bincount(at.reshape(-1), np.concatenate([cores, -cores]).astype(np.float64), len(times))
    return Busy(times.astype(np.int64), np.cumsum(change).astype(np.int64))
