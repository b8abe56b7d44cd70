"""From a score, a real number, to the whole number that a scheduler sorts by, and the range that it is spread over."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import ExportError

# Slurm's site_factor is a signed 32-bit number, and the sum with the other factors an unsigned one.
LARGEST = 2_000_000_000
# What site_factor can be: the numbers of jobs beyond their threshold are above those of a scale.
HIGHEST = 2**31 - 1
# More neighbours than this with one number for two scores: say so.
MOST_TIES = 0.01
_ROUNDING = 1e-14  # of a score
# Of the scores that lie beyond each end of the range.
_OUTER = 0.001


@dataclasses.dataclass(frozen=True, slots=True)
class PriorityScale:
    """A falling map from all real scores to 1 .. ``largest``: the LOWEST score gets the HIGHEST number.

    Three quarters of the numbers are spread evenly over ``low`` .. ``high``, where nearly all scores lie; the eighths
    beside them take what lies outside, ever more densely, so that nothing is cut off. No value (NaN) is 1: it
    runs last.

    Parameters
    ----------
    low, high : float
        Between these lie nearly all scores of the cluster.
    largest : int
        The highest number; 2 to 2,000,000,000.

    Raises
    ------
    ExportError
        If ``low`` is not below ``high``, one of them or their difference is not finite, or ``largest`` is outside its
        limits.
    """

    low: float
    high: float
    largest: int = LARGEST

    def __post_init__(self) -> None:
        if not 2 <= self.largest <= LARGEST:
            raise ExportError(f"whole numbers up to {self.largest:,} cannot order jobs; give 2 to {LARGEST:,}")
        # A range that is no number itself would make no number of every score.
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise ExportError(
                f"scores from {self.low:g} to {self.high:g} cannot be mapped to whole numbers; "
                "the jobs of the workload must differ in their scores"
            )

    def integers(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Return the whole number of every score, 1 to ``largest``; higher runs first.

        Parameters
        ----------
        scores : array (n,)
            Values of the policy; plus infinity and NaN run last, minus infinity runs first.
        """
        s = np.asarray(scores, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            u = (s - self.low) / (self.high - self.low)
            below = 0.125 / (1.0 - 6.0 * np.minimum(u, 0.0))
            above = 1.0 - 0.125 / (1.0 + 6.0 * (np.maximum(u, 1.0) - 1.0))
            y = np.where(u < 0.0, below, np.where(u > 1.0, above, 0.125 + 0.75 * u))
            numbers = np.floor(self.largest - y * (self.largest - 1.0))
        return np.where(np.isnan(numbers), 1.0, np.clip(numbers, 1.0, self.largest)).astype(np.int64)


def scale_of(scores: ArrayLike, *, largest: int = LARGEST) -> PriorityScale | None:
    """Return the map to whole numbers that suits scores; None if those that are finite are all the same.

    Three quarters of the numbers go to the scores between their 0.1 % and 99.9 % quantiles.

    Parameters
    ----------
    scores : array (n,)
        Values of the policy.
    largest : int
        The highest number.

    Raises
    ------
    ExportError
        If the range is none that a `PriorityScale` can have.
    """
    known = np.asarray(scores, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return None
    low, high = np.quantile(known, [_OUTER, 1.0 - _OUTER])
    if low == high:
        # Nearly all jobs are alike: the few others make the range.
        low, high = known.min(), known.max()
    return None if low == high else PriorityScale(float(low), float(high), largest)


def tie_share(scale: PriorityScale, scores: ArrayLike) -> float:
    """Return the share of neighbours in the order of finite scores that differ but get one whole number.

    Scores that differ by less than a formula's rounding (`_ROUNDING` of their size) are one: ``p*q`` of two jobs of
    equal area, summed as logarithms.

    Parameters
    ----------
    scale : PriorityScale
        The map.
    scores : array (n,)
        Values of the policy.

    Returns
    -------
    float
        0 to 1; 0 without two different scores.
    """
    known = np.asarray(scores, dtype=np.float64)
    distinct: NDArray[np.float64] = np.unique(known[np.isfinite(known)])
    apart = np.diff(distinct) > _ROUNDING * np.maximum(np.abs(distinct[1:]), np.abs(distinct[:-1]))
    if not apart.any():
        return 0.0
    return float((np.diff(scale.integers(distinct)) == 0)[apart].mean())
