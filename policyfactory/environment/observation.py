"""What an agent sees, in words and bounds; the parts of it that do not change while a job waits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.engine.observed import FACTS
from policyfactory.policy.network import STANDARD_INPUTS
from policyfactory.policy.policy import Policy
from policyfactory.workload.jobs import Workload

__all__ = ["INPUTS", "MACHINE", "RUNNING", "facts_of"]

# The columns of a waiting job, as formulas; the second to the fourth are facts of the job.
INPUTS = STANDARD_INPUTS
# The columns of the machine and of a running job, in words.
MACHINE = (
    "share of the processors that are free now",
    "log10(1 + jobs that wait)",
    "log10(1 + jobs that run)",
    "1 once a job that does not fit has been chosen and has its reservation, else 0",
    "then the extra processors, as a share of all",
    "then log10(seconds to the shadow time + 10) - 1",
)
RUNNING = (
    "log10(requested seconds that are left + 10) - 1",
    "log10(seconds since its start + 10) - 1",
    "its processors, as a share of all",
)


def facts_of(workload: Workload, estimate: Int64Array) -> NDArray[np.float32]:
    """Return what is shown of each job and does not change while it waits: float32 array (n, 3).

    Parameters
    ----------
    workload : Workload
        The jobs.
    estimate : int64 array (n,), ticks
        What the scheduler believes of their run times.
    """
    p, zero = estimate / workload.ticks, np.zeros(len(workload))
    columns = [
        Policy("INPUT", formula).scores(p, workload.processors, zero, m=workload.machine)
        for formula in INPUTS[1 : FACTS + 1]
    ]
    return np.column_stack(columns).astype(np.float32)
