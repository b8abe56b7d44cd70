"""What jobs ask for besides processors and time, as formulas read it: n, mem and g."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted
from policyfactory.workload.assume import COLUMN_OF, how_to_assume

if TYPE_CHECKING:
    from policyfactory.policy.policy import Policy
    from policyfactory.workload.jobs import Workload

__all__ = ["asked_of"]


def asked_of(workload: Workload, policy: Policy, rows: slice | Int64Array = slice(None)) -> FloatArray | None:
    """Return n, mem (MB) and g of some jobs, None if the policy reads none of them.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policy : Policy
        Whose formula reads them.
    rows : slice or int64 array
        Which jobs.

    Returns
    -------
    float64 array (3, jobs) or None
        NaN in a row that the policy does not read.

    Raises
    ------
    UsageError
        If the log does not say it of every job.
    """
    if not policy.asked:
        return None
    known = np.full((len(COLUMN_OF), len(workload.submit[rows])), np.nan)
    for place, (name, column) in enumerate(COLUMN_OF.items()):
        if name in policy.asked:
            values = None if workload.requests is None else getattr(workload.requests, column)
            missing = len(workload) if values is None else int(np.count_nonzero(values < 0))
            if values is None or missing:
                raise UsageError(
                    f"{workload.name}: policy {policy.name} reads {name}, the requested {column}, which the log does "
                    f"not say of {missing:,} of {counted(len(workload), 'job')}; {how_to_assume(name)}, or take a "
                    f"policy without {name}"
                )
            known[place] = values[rows]
    return known
