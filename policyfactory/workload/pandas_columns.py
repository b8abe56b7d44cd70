"""Which column of a table of pandas is which field of a job."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.errors import WorkloadError

if TYPE_CHECKING:
    import pandas as pd

    from policyfactory.core.options import Int64Array

# The fields, with other names by which they are found where no column has their own: in any case, with _ or blanks.
_NAMES: dict[str, tuple[str, ...]] = {
    "submit": ("submit_time", "submitted", "arrival", "arrival_time"),
    "run_time": ("runtime", "elapsed", "duration"),
    "processors": ("procs", "cores", "cpus", "ncpus"),
    "requested_time": ("requested_run_time", "request", "estimate"),
    "job_id": ("jobid", "job_number"),
    "user": ("user_id", "uid"),
    "start": ("start_time", "started"),
}
_NEEDED = ("submit", "run_time", "processors")


def columns_of(frame: pd.DataFrame, name: str) -> dict[str, Int64Array]:
    """Return the columns of a table that are fields of jobs, whole numbers, in the order of its rows.

    Raises
    ------
    WorkloadError
        If one is missing or there twice, or has gaps.
    """
    columns: dict[str, Int64Array] = {}
    for field, others in _NAMES.items():
        column = _column_of(frame, name, field, others)
        if column is None:
            continue
        numbers = np.asarray(frame[column])
        if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
            raise WorkloadError(f"{name}: column {column} has {numbers.dtype} or gaps; give a number for each job")
        columns[field] = np.rint(numbers).astype(np.int64)
    if missing := [field for field in _NEEDED if field not in columns]:
        has = ", ".join(map(str, frame)) or "none"
        known = "; ".join(f"{field} (or {', '.join(others)})" for field, others in _NAMES.items())
        raise WorkloadError(
            f"{name}: the table has no column {' and no column '.join(missing)}; it has {has}. "
            f"{', '.join(_NEEDED)} are needed, others are read where they are there: {known}. Rename yours "
            "(frame.rename(columns={...}))"
        )
    return columns


def _column_of(frame: pd.DataFrame, name: str, field: str, others: tuple[str, ...]) -> Hashable | None:
    """Return the column of a field: the one of its own name, or the only one of another name; None if there is none."""
    if field in frame:
        return field
    found = [column for column in frame if "_".join(str(column).lower().replace("-", " ").split()) in {field, *others}]
    if len(found) > 1:
        raise WorkloadError(f"{name}: columns {' and '.join(map(str, found))} are both {field}; drop one of them")
    return found[0] if found else None
