"""The jobs that wait now, as a scheduler lists them: what a preview reorders."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY

__all__ = ["UNLIMITED_S", "Queue"]

# Stands for the requested time of a job without a limit: what Slurm itself plans such a job with.
UNLIMITED_S = 365 * DAY


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """Waiting jobs.

    Parameters
    ----------
    job : tuple of str
        Ids as the site writes them.
    user : tuple of str
        Names, empty where unknown.
    p : int64 array (n,)
        Requested run time, s.
    q : int64 array (n,)
        Requested processors.
    submit : int64 array (n,)
        Submit time, Unix s.
    priority : float64 array (n,) or None
        What the scheduler sorts by today, HIGHER first; None: submit order.
    now : int
        Unix time at which the queue is looked at.
    """

    job: tuple[str, ...]
    user: tuple[str, ...]
    p: NDArray[np.int64]
    q: NDArray[np.int64]
    submit: NDArray[np.int64]
    priority: NDArray[np.float64] | None
    now: int

    def __len__(self) -> int:
        return len(self.job)
