"""How much is saved as time passes: one contender on one log, over its cases."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

__all__ = ["Course", "Courses"]

FloatArray = NDArray[np.float64]
_LOW, _HIGH = 0.1, 0.9


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The total wait of one schedule as time passes.

    Parameters
    ----------
    bin_s : int
        Length of a bin in seconds, counted from the first submission.
    wait_s : float64 array (bins,), seconds
        Total wait of the jobs that ended before the end of each bin.
    """

    bin_s: int
    wait_s: FloatArray


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """All contenders on the cases of one log.

    Parameters
    ----------
    log : str
        The log.
    names : tuple of str
        The contenders; the first is the baseline.
    tuned : tuple of bool
        Which of them are tuners.
    bin_s : int
        Length of a bin in seconds.
    total_s : float64 array (cases, contenders), seconds
        Total wait.
    change : float64 array (cases, contenders, bins)
        Wait so far minus the baseline's, in % of the baseline's mean total; NaN if that is 0.
    mean : float64 array (contenders, bins)
        Mean of ``change`` over the cases; it ends at the ratio of the sums.
    """

    log: str
    names: tuple[str, ...]
    tuned: tuple[bool, ...]
    bin_s: int
    total_s: FloatArray
    change: FloatArray
    mean: FloatArray

    @property
    def has_ratio(self) -> bool:
        """Whether something is waited under the baseline: of nothing there is no percentage."""
        return bool(self.total_s[:, 0].any())

    def band(self, contender: int) -> tuple[FloatArray, FloatArray]:
        """Return the 10 and 90 % quantile of the cases, each (bins,)."""
        low, high = np.quantile(self.change[:, contender], [_LOW, _HIGH], axis=0)
        return low, high
