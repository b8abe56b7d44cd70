"""A machine with more than processors: memory, GPUs and licences, as a pool or on nodes."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import UsageError
from policyfactory.site.layout import lay_out
from policyfactory.site.model import NodeGroup, Partition, Site

__all__ = ["Licence", "Machine", "Placement"]

Placement = Literal["pool", "first", "best"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Licence:
    """A counter of the whole machine besides what nodes have.

    Parameters
    ----------
    name : str
        What it is called.
    count : int
        How many there are.
    asked : int64 array (n,)
        How many each job of the workload holds while it runs, in the order of its rows.
    """

    name: str
    count: int
    asked: Int64Array


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """What a machine has, and how jobs are placed on it.

    Memory and GPUs are counted if a node has some.

    Parameters
    ----------
    nodes : tuple of NodeGroup
        The nodes; the order of a group's names, and of the groups, is that in which nodes are taken, those of a lower
        weight before.
    placement : {"pool", "first", "best"}
        Where jobs run: nowhere in particular (what the nodes have is added up); on the first nodes that have what they
        ask for; on those of them with the fewest free processors, of equal ones the first.
    exclusive : bool
        All jobs take whole nodes. Otherwise only those do whose requests say so.
    licences : tuple of Licence
        Counters besides.

    Raises
    ------
    UsageError
        If it has no node, or a number or a word is none of those above.
    """

    nodes: tuple[NodeGroup, ...]
    placement: Placement = "first"
    exclusive: bool = False
    licences: tuple[Licence, ...] = ()

    def __post_init__(self) -> None:
        if self.placement not in get_args(Placement):
            raise UsageError(f"placement is {self.placement!r}; choose one of {', '.join(get_args(Placement))}")
        if self.exclusive and self.placement == "pool":
            raise UsageError("a pool has no nodes that a job could take whole; choose placement first or best")
        for licence in self.licences:
            if licence.count < 0:
                raise UsageError(f"{licence.count} licences of {licence.name!r}; give a number from 0")
        columns = self.columns()
        if not len(columns):
            raise UsageError("the machine has no node; give groups of nodes: NodeGroup('cn[001-100]', cores=64)")
        if (columns[:, 0] < 1).any() or (columns < 0).any():
            at = int(np.argmax((columns[:, 0] < 1) | (columns < 0).any(axis=1)))
            cores, memory, gpus = columns[at].tolist()
            raise UsageError(
                f"node {at + 1} of the machine has {cores} processors, {memory} MB and {gpus} GPUs; "
                "give at least 1 processor and nothing below 0"
            )

    @classmethod
    def of_site(cls, site: Site, partition: str | None = None, placement: Placement = "first") -> Machine:
        """Return the machine that a partition of a site is.

        Parameters
        ----------
        site : Site
            The site.
        partition : str, optional
            Whose nodes; by default the one partition that there is, or that is the site's default.
        placement : {"pool", "first", "best"}
            As for `Machine`.

        Raises
        ------
        UsageError
            If there is no such partition, or none is named and none is the default.
        SiteError
            If it names a node that the site does not have.
        """
        chosen = _partition(site, partition)
        layout = lay_out(site)
        members = np.flatnonzero(layout.members[site.partitions.index(chosen)])
        columns = (layout.cores, layout.memory, layout.gpus, layout.weight)
        groups = tuple(
            NodeGroup(layout.names[node], *(int(column[node]) for column in columns)) for node in members.tolist()
        )
        exclusive = placement != "pool" and (chosen.exclusive or site.scheduling.select == "nodes")
        return cls(groups, placement, exclusive)

    def columns(self) -> Int64Array:
        """Return processors, MB and GPUs of each node, in the order in which they are taken: int64 array (N, 3)."""
        # A site of one unnamed partition is all that `lay_out` needs.
        layout = lay_out(Site("", self.nodes, (Partition("all"),)))
        order = np.argsort(layout.weight, kind="stable")
        return np.stack([layout.cores, layout.memory, layout.gpus], axis=1)[order]


def _partition(site: Site, name: str | None) -> Partition:
    named = ", ".join(partition.name for partition in site.partitions)
    if name is None:
        found = [one for one in site.partitions if one.default] or list(site.partitions)
        if len(found) != 1:
            raise UsageError(f"site {site.name} has {len(found)} partitions; name one of {named}")
        return found[0]
    for partition in site.partitions:
        if partition.name == name:
            return partition
    raise UsageError(f"site {site.name} has no partition {name!r}; it has {named}")
