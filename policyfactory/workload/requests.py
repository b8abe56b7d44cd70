"""What jobs ask for besides processors and time: nodes, memory, GPUs, and the queue, QOS and account they name."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import WorkloadError

__all__ = ["COLUMNS", "NAMED", "Requests"]

# Columns whose numbers are places in a tuple of names, and the key of that tuple.
NAMED = {"partition": "partition", "qos": "qos", "account": "account", "user_name": "user"}
# What the 18 fields of a plain log say, which its digest has never had.
_PLAIN = ("partition", "memory")
_LATER = ("array", "array_limit", "allocated_nodes")
_NONE = np.empty(0, dtype=np.int64)  # stands for a column that was not given


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """What each job asks for; read-only int64 arrays (n,), -1 where the log does not say.

    Parameters
    ----------
    nodes : array
        Nodes, at least 1.
    memory : array
        Memory in MB, over the whole job.
    gpus : array
        GPUs, over the whole job.
    exclusive : array
        1 if it takes whole nodes, 0 if it shares them.
    eligible : array
        Time on the workload's clock from which it may start (a begin time, a dependency that was met).
    after : array
        Number of the job that must have ended first; one that the workload does not have has ended already.
    partition, qos, account, user_name : array
        Places in ``names["partition"]``, ``names["qos"]``, ``names["account"]`` and ``names["user"]``.
    array, array_limit : array
        A number that the tasks of one job array share, and how many of them may run at once, at least 1; both -1 where
        no limit is known.
    allocated_nodes : array
        Nodes that it had, at least 1, where ``nodes`` is not known: they show how large nodes are.
    names : mapping of str to tuple of str
        The names; a key may be absent where nothing is named.
    assumed : tuple of str
        What was filled in without the log's saying so, in words.

    Raises
    ------
    WorkloadError
        If the arrays have different shapes, or a number is no such request.
    """

    nodes: Int64Array
    memory: Int64Array
    gpus: Int64Array
    exclusive: Int64Array
    eligible: Int64Array
    after: Int64Array
    partition: Int64Array
    qos: Int64Array
    account: Int64Array
    user_name: Int64Array
    array: Int64Array = dataclasses.field(default_factory=lambda: _NONE)
    array_limit: Int64Array = dataclasses.field(default_factory=lambda: _NONE)
    allocated_nodes: Int64Array = dataclasses.field(default_factory=lambda: _NONE)
    names: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _LATER:
            if getattr(self, name) is _NONE:
                object.__setattr__(self, name, np.full(np.shape(self.nodes), -1, dtype=np.int64))
        for name in COLUMNS:
            column = np.ascontiguousarray(getattr(self, name), dtype=np.int64).view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        shapes = {getattr(self, name).shape for name in COLUMNS}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise WorkloadError(f"requests of shapes {', '.join(map(str, sorted(shapes)))}; each job has one of each")
        if unknown := set(self.names) - set(NAMED.values()):
            raise WorkloadError(f"names of {min(unknown)!a}; requests have names of {', '.join(NAMED.values())}")
        names = {key: tuple(names) for key, names in self.names.items()}
        for key, known in names.items():
            if not all(isinstance(name, str) for name in known):
                raise WorkloadError(f"the requests' names of {key} are not all texts")
        object.__setattr__(self, "names", MappingProxyType(names))
        for name in COLUMNS:
            self._check(name)

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only also where another process is given it.
        columns = (getattr(self, name) for name in COLUMNS)
        return Requests, (*columns, dict(self.names), self.assumed)

    def _check(self, name: str) -> None:
        column = getattr(self, name)
        # Most logs say nothing of most columns: two passes tell that nothing is wrong.
        least, greatest = int(column.min(initial=-1)), int(column.max(initial=-1))
        if least >= -1 and greatest < 0:
            return
        most = 1 if name == "exclusive" else None
        expected = "0, 1 or -1 (not known)" if name == "exclusive" else "at least 0, or -1 (not known)"
        if name in NAMED:
            most = len(self.names.get(NAMED[name], ())) - 1
            expected = f"the place of one of {most + 1} names, or -1 (not known)"
        wrong = column < -1
        if name in {"nodes", "array_limit", "allocated_nodes"}:
            wrong |= column == 0
            expected = "at least 1, or -1 (not known)"
        if most is not None and greatest > most:
            wrong |= column > most
        if wrong.any():
            at = int(np.argmax(wrong))
            raise WorkloadError(
                f"the requests' {name} of the job at place {at} is {column[at]}, expected {expected} "
                f"({int(wrong.sum()):,} such jobs)"
            )

    def __len__(self) -> int:
        return len(self.nodes)

    @classmethod
    def unknown(cls, jobs: int) -> Requests:
        """Return those of ``jobs`` jobs of which nothing is known."""
        none = np.broadcast_to(np.int64(-1), jobs)
        columns: dict[str, Any] = dict.fromkeys(COLUMNS, none)
        return cls(**columns)

    def select(self, rows: Any) -> Requests:
        """Return those of some jobs: a slice, a mask or indices."""
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def shifted(self, by: Int64Array | int) -> Requests:
        """Return the same requests on a clock that began earlier: times are ``by`` ticks larger, at least 0.

        Parameters
        ----------
        by : int64 array (n,) or int
            How much later each job is submitted, or all are; may be negative.
        """
        moved = np.where(self.eligible >= 0, np.maximum(self.eligible + by, 0), -1)
        return dataclasses.replace(self, eligible=moved)

    def in_ticks(self, factor: int) -> Requests:
        """Return the same requests on a clock with ``factor`` times as many ticks."""
        return dataclasses.replace(self, eligible=np.where(self.eligible >= 0, self.eligible * factor, -1))

    def repeated(self, rows: Any, by: Int64Array) -> Requests:
        """Return the requests of jobs that are submitted again at other times, in another order.

        Each job keeps its delay from its submission to its eligible time. No job waits for another one, and none is a
        task of an array: the numbers are new, and a job can be there more than once, or without the others.

        Parameters
        ----------
        rows : indices
            Which jobs.
        by : int64 array (m,)
            How much later each of them is submitted; may be negative.
        """
        chosen = self.select(rows)
        none = np.full(len(chosen), -1)
        return dataclasses.replace(chosen.shifted(by), after=none, array=none, array_limit=none)

    def known(self, name: str) -> int:
        """Return for how many jobs the column ``name`` has a value."""
        return int(np.count_nonzero(getattr(self, name) >= 0))

    def name_of(self, column: str, row: int) -> str | None:
        """Return the name that the job ``row`` has in ``column`` (one of `NAMED`), None if the log does not say."""
        place = int(getattr(self, column)[row])
        return None if place < 0 else self.names[NAMED[column]][place]

    def identity(self) -> bytes:
        """Return a digest for the identity of the input; nothing where only fields of a plain log are known."""
        if not self.assumed and not any(self.known(name) for name in COLUMNS if name not in _PLAIN):
            return b""
        digest = hashlib.sha256(repr((sorted(self.names.items()), self.assumed)).encode())
        for name in COLUMNS:
            # The identity of a log without arrays is what it was before there were such columns.
            if name not in _LATER or self.known(name):
                digest.update(getattr(self, name).tobytes())
        return digest.digest()


COLUMNS = tuple(field.name for field in dataclasses.fields(Requests) if field.name not in {"names", "assumed"})
