"""From QOS, associations and arrays to the engine's counters: what a job is counted in, the most that each may hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.site.model import Association, Limits, Partition, Qos, Site
from policyfactory.workload.requests import Requests

__all__ = ["Counters", "Enforced", "array_line"]

# Columns of the engine's limits after the first one, running jobs.
_HELD = ("nodes", "cores", "memory", "gpus")
_NONE = (math.inf,) * 5
_ALONE = ("job",)  # nothing is held together: a limit of one job

# What is held together, and the most of it: (kind of counter, of what), limits.
_Line = tuple[tuple[str, ...], tuple[float, ...]]


class Enforced:
    """What a site keeps users to.

    A limit that the first QOS sets replaces that of the second and of the associations: the partition's QOS comes
    first, unless the job's own has the flag OverPartQOS.

    Parameters
    ----------
    site : Site
    """

    def __init__(self, site: Site) -> None:
        self.on = "limits" in site.enforced
        self.known_only = self.on or bool({"associations", "qos", "safe"} & set(site.enforced))
        self.qos = {one.name: one for one in site.qos}
        self.associations = {(one.account, one.user): one for one in site.associations}

    def chain(self, account: str, user: str) -> list[Association]:
        """Return the association of a user and the accounts above it, root last; empty if there is none."""
        found: list[Association] = []
        one = self.associations.get((account, user))
        while one is not None and one not in found:
            found.append(one)
            above = (one.account, "") if one.user else (one.parent or "root", "")
            one = None if (one.account, one.user) == ("root", "") else self.associations.get(above)
        return found

    def qos_of(self, named: str, chain: list[Association]) -> str:
        """Return the QOS of a job: the one it names, the nearest default, or normal; empty if there is no such."""
        name = next((name for name in (named, *(one.default_qos for one in chain)) if name), "normal")
        return name if name in self.qos else ""

    def known_of(self, asked: Requests, row: int) -> tuple[list[Association], str]:
        """Return the chain of associations of a job and its QOS."""
        chain = self.chain(asked.name_of("account", row) or "", asked.name_of("user_name", row) or "")
        return chain, self.qos_of(asked.name_of("qos", row) or "", chain)

    def lifts(self, name: str, flag: str) -> bool:
        """Tell whether a job's own QOS lifts a limit of its partition (``PartitionTimeLimit`` and the like)."""
        return name in self.qos and flag in self.qos[name].flags

    def both(self, partition: Partition, name: str) -> list[Qos]:
        """Return the QOS that limit a job, the one whose word counts first."""
        own, its = self.qos.get(name), self.qos.get(partition.qos)
        both = [own, its] if own is not None and "OverPartQOS" in own.flags else [its, own]
        return [one for at, one in enumerate(both) if one is not None and one not in both[:at]]

    def longest(self, partition: Partition, name: str, chain: list[Association]) -> float:
        """Return the seconds that a job may ask for (MaxWall)."""
        if not self.on:
            return math.inf
        given = [one.max_wall for one in self.both(partition, name)] + [one.max_wall for one in chain]
        return next((wall for wall in given if not math.isinf(wall)), math.inf)

    def most_nodes(self, partition: Partition, name: str, chain: list[Association]) -> float:
        """Return the most nodes that the limits leave a job; the first account that lowers it ends the search."""
        if not self.on:
            return math.inf

        def of_qos(kind: str) -> float:
            given = (float(getattr(one, kind).nodes) for one in self.both(partition, name))
            return next((nodes for nodes in given if not math.isinf(nodes)), math.inf)

        alone, together = min(map(of_qos, ("per_account", "per_job", "per_user"))), of_qos("total")
        most = min(alone, together)
        for at, one in enumerate(chain):
            lower = math.isinf(together) and one.total.nodes < most
            if lower:
                most = one.total.nodes
            if at == 0 and math.isinf(alone):
                most = min(most, self._inherited(chain, "per_job", "nodes"))
            if lower:
                break
        return float(most)

    def lines(
        self, partition: Partition, name: str, chain: list[Association], account: str, user: str
    ) -> Iterator[_Line]:
        """Give the counters of a job with their limits; of one whose user is not known (empty) no other job counts."""
        if not self.on:
            return
        said: set[tuple[str, str]] = set()
        for one in self.both(partition, name):
            new: set[tuple[str, str]] = set()
            for kind, of in (
                ("total", ("qos", one.name)),
                ("per_account", ("qos account", one.name, account)),
                ("per_user", ("qos user", one.name, user)),
                ("per_job", _ALONE),
            ):
                limits = getattr(one, kind)
                yield (of if user or kind != "per_user" else _ALONE), _most(limits, kind, said)
                new |= {(kind, what) for what in ("jobs", *_HELD) if not math.isinf(getattr(limits, what))}
            said |= new
        for association in chain:
            yield ("association", association.account, association.user), _most(association.total, "total", said)
        if chain:
            leaf = chain[0]
            own = self._inherited(chain, "own", "jobs")
            if user and not said & {("per_account", "jobs"), ("per_user", "jobs")}:
                yield ("association", leaf.account, leaf.user or f"number {user}"), (own, *_NONE[1:])
            per_job = Limits(**{what: self._inherited(chain, "per_job", what) for what in _HELD})
            yield _ALONE, _most(per_job, "per_job", said)

    @staticmethod
    def _inherited(chain: list[Association], kind: str, what: str) -> float:
        """Return the limit of the nearest association that has one."""
        given = (float(getattr(getattr(one, kind), what)) for one in chain)
        return next((value for value in given if not math.isinf(value)), math.inf)


def _most(limits: Limits, kind: str, said: set[tuple[str, str]]) -> tuple[float, ...]:
    return tuple(math.inf if (kind, what) in said else float(getattr(limits, what)) for what in ("jobs", *_HELD))


def array_line(array: int, limit: int) -> _Line:
    """Return the counter of an array of which so many tasks may run at once."""
    return ("array", str(array)), (float(limit), *_NONE[1:])


class Counters:
    """The counters of all jobs, as they are met."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[_Line, ...], int] = {}
        self._of: list[int] = []

    def add(self, lines: Iterable[_Line]) -> None:
        """Add a job with its counters, in their order. It is counted once in each; the smallest of the limits holds."""
        merged: dict[tuple[str, ...], tuple[float, ...]] = {}
        for of, most in lines:
            merged[of] = tuple(map(min, merged.get(of, _NONE), most))
        self._of.append(self._kinds.setdefault(tuple(merged.items()), len(self._kinds)))

    def arrays(self) -> tuple[Int64Array, Int64Array, FloatArray, tuple[tuple[str, ...], ...]]:
        """Return where the counters of each job begin, the counters with the rows of their limits, the limits.

        Last, what each row of the counters is. What nobody is limited in is not counted.
        """
        limited = {of for lines in self._kinds for of, most in lines if most != _NONE} - {_ALONE}
        held = tuple(sorted(limited))
        row = {of: number for number, of in enumerate(held)}
        limits: dict[tuple[float, ...], int] = {_NONE: 0}
        pairs = [
            [
                (row.get(of, -1), limits.setdefault(most, len(limits)))
                for of, most in lines
                if of in limited or (of == _ALONE and most != _NONE)
            ]
            for lines in self._kinds
        ]
        begins = np.zeros(len(self._of) + 1, dtype=np.int64)
        np.cumsum([len(pairs[kind]) for kind in self._of], out=begins[1:])
        flat = [pair for kind in self._of for pair in pairs[kind]]
        most = np.array(list(limits), dtype=np.float64)
        return begins, np.array(flat, dtype=np.int64).reshape(-1, 2), most, held
