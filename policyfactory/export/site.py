"""What a cluster knows and a policy does not: its size, and which scores its jobs get."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sample", "Site"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Jobs like those that the policy will order in its life: the range of scores is learnt from them.

    Parameters
    ----------
    p : float64 array (n,)
        Requested run time, s.
    q : float64 array (n,)
        Requested processors.
    r : float64 array (n,)
        Submit time, s since the policy's epoch, spread over the policy's life.
    w : float64 array (n,)
        Time waited, s.
    origin : str
        Where the jobs are from, in words, with the digest of the workload.
    """

    p: FloatArray
    q: FloatArray
    r: FloatArray
    w: FloatArray
    origin: str

    def __len__(self) -> int:
        return len(self.p)


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """A cluster.

    Parameters
    ----------
    sample : Sample
        Jobs like its own.
    processors : int or None
        Its size, if told.
    """

    sample: Sample
    processors: int | None = None
