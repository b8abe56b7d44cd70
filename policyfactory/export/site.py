"""What a cluster knows and a policy does not: its size, and which jobs it gets."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from policyfactory.export.scale import LARGEST

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


def _wide() -> Sample:
    # Imported here: most targets need no sample, and the model workload needs the compiler.
    from policyfactory.export.score_range import wide_sample

    return wide_sample()


@dataclasses.dataclass(frozen=True, eq=False)
class Site:
    """A cluster, and how the export was asked for.

    Parameters
    ----------
    draw : function that returns a Sample
        Jobs like its own; called once, by the targets that need them. Without it a model workload, spread over a year.
    processors : int or None
        Its size, if told.
    command : str
        The command line, for the header of the files; empty if there was none.
    model : str
        Where the policy is from, with the digest of its file; empty if it was made in the program.
    nodes : int or None
        Its nodes, if told.
    weight : int
        The largest whole number of a score, for targets that have whole numbers: how much the formula counts beside
        the scheduler's other factors; `learn_scale` takes it as ``largest``.
    """

    draw: Callable[[], Sample] = _wide
    processors: int | None = None
    command: str = ""
    model: str = ""
    nodes: int | None = None
    weight: int = LARGEST

    @classmethod
    def of(cls, sample: Sample, processors: int | None = None) -> Site:
        """Return a site with the given jobs."""
        return cls(lambda: sample, processors)

    @functools.cached_property
    def sample(self) -> Sample:
        """Jobs like the cluster's own."""
        return self.draw()
