"""The site that is assumed of a log where nobody has described one: its nodes are guessed from its jobs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.text import counted
from policyfactory.site.hostlist import expand
from policyfactory.site.model import NodeGroup, Partition, Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests

__all__ = ["as_assumed", "site_of"]

# Part of what is asked for that comes in whole nodes: KTH, HPC2N, SDSC-BLUE and Curie get the nodes that they had.
_NEARLY_ALL = 0.92
_LARGEST_NODE = 256
# Slurm's plans go node by node.
_MOST_NODES = 8192
_NAME = "assumed"


def site_of(workload: Workload) -> Site:
    """Return the site that is assumed of a log: one partition with the log's processors, and Slurm's defaults.

    Where of at least half of the jobs it is known how many nodes they ask for or had, nodes are as large as that needs
    them. Else a
    node has the largest number of processors, up to 256, that divides the machine and in whose multiples at least 92 %
    of all processors are asked for. Jobs get whole nodes where at least 92 % of them ask for such multiples. There are
    no more than 8,192 nodes, unless a job asks for more.

    Parameters
    ----------
    workload : Workload
        The whole log: its windows are assumed to be of one site.

    Returns
    -------
    Site
        ``assumed`` says in a sentence what it has.
    """
    requests = workload.requests or Requests.unknown(len(workload))
    said = np.where(requests.nodes > 0, requests.nodes, requests.allocated_nodes)
    named, least = said > 0, 1
    if 2 * int(named.sum()) >= max(len(workload), 1):
        cores = int((-(-workload.processors[named] // said[named])).max())
        least = max(int(requests.nodes.max()), 1)
        why = "as large as the nodes that jobs ask for or had must be"
    else:
        cores = _cores_of_a_node(workload)
        why = "nearly all processors are asked for in multiples of it" if cores > 1 else "jobs have no common size"
    if -(-workload.machine // cores) > _MOST_NODES:
        cores = -(-workload.machine // _MOST_NODES)
        why = f"so that there are at most {_MOST_NODES:,}"
    full, rest = divmod(workload.machine, cores)
    if least > 1 and (rest or full < least):
        # Jobs that ask for more nodes than the processors make get them.
        full, rest = max(full + (rest > 0), least), 0
    groups = [NodeGroup(f"n[1-{full}]" if full > 1 else "n1", cores)] if full else []
    groups += [NodeGroup(f"n{full + 1}", rest)] if rest else []
    whole = bool(cores > 1 and len(workload) and (workload.processors % cores == 0).mean() >= _NEARLY_ALL)
    last = f", and one of {rest}" if rest and full else ""
    size = counted(cores, "processor")
    nodes = f"{counted(full, 'node')} of {size}{last} ({why})" if full else f"one node of {counted(rest, 'processor')}"
    return Site(
        _NAME,
        tuple(groups),
        (Partition("all", default=True, exclusive=whole),),
        assumed=f"Nobody described the site: one partition of {nodes}, "
        f"{'given to jobs as a whole' if whole else 'shared by jobs'}, and Slurm's default settings are assumed.",
    )


def _cores_of_a_node(workload: Workload) -> int:
    asked: Int64Array = workload.processors
    total = int(asked.sum())
    for cores in range(min(_LARGEST_NODE, workload.machine), 1, -1):
        if workload.machine % cores == 0 and int(asked[asked % cores == 0].sum()) >= _NEARLY_ALL * max(total, 1):
            return cores
    return 1


def as_assumed(workload: Workload, site: Site) -> Workload:
    """Return a workload as its assumed site takes it: without what only a described one could have.

    Partition, QOS, account, memory and GPUs are left out, and nodes that are too many or too small for their job. What
    else is known stays: other nodes, whether they are shared, when a job may start.

    Parameters
    ----------
    workload : Workload
        The log, or jobs of it.
    site : Site
        Of `site_of`.
    """
    if workload.requests is None:
        return workload
    none, nodes = np.full(len(workload), -1, dtype=np.int64), workload.requests.nodes
    cores = site.nodes[0].cores
    many = sum(len(expand(group.names)) for group in site.nodes if group.cores == cores)
    left_out: dict[str, Any] = dict.fromkeys(("partition", "qos", "account", "memory", "gpus"), none)
    left_out["nodes"] = np.where((nodes <= many) & (nodes * cores >= workload.processors), nodes, -1)
    return dataclasses.replace(workload, requests=dataclasses.replace(workload.requests, **left_out))
