"""A site in numbers: arrays of what each node has, and which nodes each partition has."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import SiteError
from policyfactory.site.hostlist import expand
from policyfactory.site.model import Partition, Site

__all__ = ["Layout", "lay_out", "node_numbers", "partition_nodes"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What each node has; node numbers are places in `Site.node_names`, partitions as in ``Site.partitions``.

    Parameters
    ----------
    names : tuple of str
        Of the nodes.
    cores, memory, gpus, weight : int64 array (nodes,)
        Processors, MB (0: not counted), GPUs, weight of each node.
    members : bool array (partitions, nodes)
        Which nodes each partition has.
    """

    names: tuple[str, ...]
    cores: Int64Array
    memory: Int64Array
    gpus: Int64Array
    weight: Int64Array
    members: NDArray[np.bool_]


def lay_out(site: Site) -> Layout:
    """Return the nodes of a site and of its partitions as arrays.

    Parameters
    ----------
    site : Site
        Whose host lists name nodes that it has.

    Raises
    ------
    SiteError
        If a partition names a node that the site does not have.
    """
    counts = [len(expand(group.names)) for group in site.nodes]

    def column(name: str) -> Int64Array:
        return np.repeat(np.array([getattr(group, name) for group in site.nodes], dtype=np.int64), counts)

    members = np.zeros((len(site.partitions), len(site.node_names)), dtype=np.bool_)
    first: dict[str, int] = {}  # of the partitions of each host list
    for row, partition in enumerate(site.partitions):
        if first.setdefault(partition.nodes, row) < row:
            members[row] = members[first[partition.nodes]]
        else:
            members[row, partition_nodes(site, partition)] = True
    return Layout(site.node_names, column("cores"), column("memory"), column("gpus"), column("weight"), members)


def partition_nodes(site: Site, partition: Partition) -> Int64Array:
    """Return the node numbers of a partition, in the order of the site's nodes.

    Raises
    ------
    SiteError
        If it names a node that the site does not have.
    """
    return node_numbers(site, partition.nodes, f"partition {partition.name!r}")


def node_numbers(site: Site, hosts: str, what: str = "the host list") -> Int64Array:
    """Return the node numbers of a host list, ascending; ``ALL`` stands for all nodes.

    Parameters
    ----------
    site : Site
        Whose nodes they are.
    hosts : str
        A host list.
    what : str
        Whose list it is, for messages.

    Raises
    ------
    SiteError
        If the site does not have a node of it.
    """
    names = site.node_names
    if hosts.upper() == "ALL":
        return np.arange(len(names), dtype=np.int64)
    wanted = expand(hosts)
    place = {name: number for number, name in enumerate(names)}
    missing = [name for name in wanted if name not in place]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise SiteError(f"{what} names node {missing[0]}{more}, which the site does not have; add it to the nodes")
    return np.sort(np.array([place[name] for name in wanted], dtype=np.int64))
