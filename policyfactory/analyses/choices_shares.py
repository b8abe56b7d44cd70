"""The shares of the policies that tuners chose, period by period."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY

if TYPE_CHECKING:
    pass

__all__ = ["Shares"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What one tuner chose on the cases of one log.

    Parameters
    ----------
    log, tuner : str
        Where, and who.
    arms : tuple of str
        The policies that it chose from.
    period_s : int
        Length of a period in seconds.
    choices : int64 array (cases, periods)
        Which of ``arms``; -1 where a case has ended.
    """

    log: str
    tuner: str
    arms: tuple[str, ...]
    period_s: int
    choices: NDArray[np.int64]

    def shares(self, first: float = 0.0, last: float = 1.0) -> FloatArray:
        """Return the share of each arm in a part of the time, in %: float64 array (arms,).

        Parameters
        ----------
        first, last : float
            Where the part begins and ends, as parts of the whole; it has one period at least.
        """
        periods = self.choices.shape[1]
        begin = min(int(first * periods), periods - 1)
        return self._of(begin, max(begin + 1, round(last * periods)))

    def _of(self, begin: int, end: int) -> FloatArray:
        part = self.choices[:, begin:end]
        counts = np.bincount(part[part >= 0], minlength=len(self.arms))
        return np.asarray(100 * counts / max(1, counts.sum()), dtype=np.float64)

    def over_time(self, most: int) -> tuple[FloatArray, FloatArray]:
        """Return the edges of at most ``most`` bins in days (bins + 1,), and the shares in each (bins, arms), in %."""
        periods = self.choices.shape[1]
        edges = np.unique(np.linspace(0, periods, min(periods, most) + 1).astype(np.int64))
        rows = [self._of(begin, end) for begin, end in itertools.pairwise(edges.tolist())]
        return edges * self.period_s / DAY, np.array(rows)

    @property
    def changes(self) -> float:
        """How many of the periods begin with a change of the policy, in %."""
        both = (self.choices[:, 1:] >= 0) & (self.choices[:, :-1] >= 0)
        changed = both & (self.choices[:, 1:] != self.choices[:, :-1])
        return 100 * float(changed.sum()) / max(1, int(both.sum()))
