"""A schedule: when each job of a workload ran, under which rules."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.simulate.rules import Rules
from policyfactory.workload.jobs import Workload

__all__ = ["Schedule"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """When each job of a workload ran.

    Parameters
    ----------
    start, end : int64 array (n,)
        Start and end of each job on the workload's clock, in its ticks, in the order of the workload's rows.
    backfilled : bool array (n,)
        Whether the job was started while a job ahead of it in the queue stayed waiting.
    workload : Workload
        The jobs.
    policy_name : str
        The policy that ordered the queue.
    rules : Rules
        The rules it ran under, with the threshold that held (the policy's own where the rules had none).
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    backfilled: NDArray[np.bool_]
    workload: Workload
    policy_name: str
    rules: Rules

    def __len__(self) -> int:
        return len(self.start)
