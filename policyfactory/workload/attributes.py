"""What a log says of its jobs besides times and processors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import UsageError, WorkloadError

__all__ = ["Attributes"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Columns of the Standard Workload Format that predictions look at; int64 arrays (n,), -1 where unknown.

    All but the status are known when a job is submitted.

    Parameters
    ----------
    requested_memory : array
        Field 10, KB per processor.
    group, executable, queue, partition : array
        Fields 13 to 16, numbers that stand for names.
    status : array
        Field 11: 0 failed, 1 completed, 5 cancelled. An outcome: nothing may look at it before the job has ended.

    Raises
    ------
    WorkloadError
        If the arrays have different shapes.
    """

    requested_memory: Int64Array
    group: Int64Array
    executable: Int64Array
    queue: Int64Array
    partition: Int64Array
    status: Int64Array

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            column = np.ascontiguousarray(getattr(self, field.name), dtype=np.int64).view()
            column.flags.writeable = False
            object.__setattr__(self, field.name, column)
        shapes = {getattr(self, field.name).shape for field in dataclasses.fields(self)}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise WorkloadError(f"attributes of shapes {', '.join(map(str, sorted(shapes)))}; each job has one of each")

    def __len__(self) -> int:
        return len(self.group)

    def select(self, rows: Any) -> Attributes:
        """Return those of some jobs: a slice, a mask or indices."""
        return Attributes(**{field.name: getattr(self, field.name)[rows] for field in dataclasses.fields(self)})

    def without(self, names: Iterable[str]) -> Attributes:
        """Return these attributes with some of them unknown.

        Raises
        ------
        UsageError
            If there is no such attribute, or it is the status.
        """
        known = [field.name for field in dataclasses.fields(self) if field.name != "status"]
        none = np.broadcast_to(np.int64(-1), len(self))
        for name in names:
            if name not in known:
                raise UsageError(f"there is no attribute {name!r} to leave out; choose of {', '.join(known)}")
        return dataclasses.replace(self, **dict.fromkeys(names, none))

    @classmethod
    def unknown(cls, jobs: int) -> Attributes:
        """Return those of ``jobs`` jobs of which nothing is known."""
        none = np.broadcast_to(np.int64(-1), jobs)
        return cls(**{field.name: none for field in dataclasses.fields(cls)})
