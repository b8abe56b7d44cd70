"""Cases: what is simulated on its own, the machine empty at its start. A window of a log, a resampled log, a log.

A case is made when it is run and forgotten afterwards, so that memory does not grow with their number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from policyfactory.evaluate.simulate import Rules

__all__ = ["Case", "Kind"]

Kind = Literal["log", "window", "resample"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One unit of comparison: all policies run it, and cases are what is resampled for intervals.

    Parameters
    ----------
    log : str
        Name of the log that it comes from.
    number : int
        Its place among the log's cases, from 1.
    kind : {"log", "window", "resample"}
        What it is.
    make : callable
        Returns its jobs, times counted from the first of them; the same at every call.
    rules : Rules or None
        The rules of this log where they differ from those of the experiment (a threshold that depends on the log).
    prediction : int64 array (n,) or None
        Predicted run time of each job, in ticks.
    seed : int
        Seed of what is random in a contender (tuners); equal for all contenders.
    """

    log: str
    number: int
    kind: Kind
    make: Callable[[], Workload]
    rules: Rules | None = None
    prediction: NDArray[np.int64] | None = None
    seed: int = 0
