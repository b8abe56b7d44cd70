"""What each job of a workload asks for on a site, in Slurm's words: partition, limit, nodes, cores, memory, GPUs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError
from policyfactory.engine.slurm_demand import (
    CORE_MEMORY,
    MOST_NODES,
    NODE_CORES,
    NODE_GPUS,
    NODE_MEMORY,
    NODES,
    TOTAL_CORES,
    WHOLE,
)
from policyfactory.simulate.slurm.counters import Enforced
from policyfactory.simulate.slurm.machine import YEAR, counts_memory
from policyfactory.site.layout import Layout
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests

__all__ = ["Allowed", "allowed_to", "limits_of", "partitions_of", "requests_of"]

_MANY = 2**40
_MINUTE = 60


class Allowed(NamedTuple):
    """What its partition allows each job, where its QOS does not lift that.

    Parameters
    ----------
    least_nodes : int64 array (n,)
    most_nodes, longest : float64 array (n,)
        Nodes; seconds.
    """

    least_nodes: Int64Array
    most_nodes: FloatArray
    longest: FloatArray


def allowed_to(asked: Requests, site: Site, partition: Int64Array, rules: Enforced) -> Allowed:
    """Return what the partition of each job allows it."""

    def of_partition(name: str) -> FloatArray:
        return np.array([getattr(its, name) for its in site.partitions], dtype=np.float64)[partition]

    least, most, longest = (of_partition(name) for name in ("min_nodes", "max_nodes", "max_time"))
    if any(flag.startswith("Partition") for one in site.qos for flag in one.flags):
        # A job may have its QOS of its association.
        who = np.stack([asked.account, asked.user_name, asked.qos], axis=1)
        _, rows, kind = np.unique(who, axis=0, return_index=True, return_inverse=True)
        for flag, column, free in (
            ("PartitionMinNodes", least, 1.0),
            ("PartitionMaxNodes", most, math.inf),
            ("PartitionTimeLimit", longest, math.inf),
        ):
            lifted = np.array([rules.lifts(rules.known_of(asked, int(row))[1], flag) for row in rows], dtype=np.bool_)
            column[lifted[kind.reshape(-1)]] = free
    return Allowed(least.astype(np.int64), most, longest)


def partitions_of(workload: Workload, asked: Requests, site: Site) -> Int64Array:
    """Return the number of the site's partition of each job; the default one where the log names none."""
    place = {partition.name: number for number, partition in enumerate(site.partitions)}
    default = next((number for number, partition in enumerate(site.partitions) if partition.default), 0)
    names = asked.names.get("partition", ())
    named = np.array([*(place.get(name, -1) for name in names), default], dtype=np.int64)
    partition = named[asked.partition]
    if (partition < 0).any():
        row = int(np.argmax(partition < 0))
        raise EvaluationError(
            f"{workload.name}: job {workload.job_id[row]} asks for partition {names[asked.partition[row]]!a}, which "
            f"site {site.name} does not have (it has {', '.join(sorted(place))}); {int((partition < 0).sum()):,} of "
            f"{len(workload):,} jobs are so: is this log of another cluster? Add the partition to the site file, or "
            "choose the jobs of others (policyfactory workload clean --partition)"
        )
    return partition


def limits_of(workload: Workload, site: Site, partition: Int64Array) -> Int64Array:
    """Return the limit of each job in seconds: whole minutes, rounded up."""
    limit = workload.requested_time.astype(np.float64)
    for number, its in enumerate(site.partitions):
        mine = (partition == number) & (limit <= 0)
        limit[mine] = its.default_time if math.isfinite(its.default_time) else its.max_time
    return np.ceil(np.minimum(limit, YEAR) / _MINUTE).astype(np.int64) * _MINUTE


def requests_of(workload: Workload, asked: Requests, site: Site, layout: Layout, partition: Int64Array) -> Int64Array:
    """Return the engine's requests; what a log says of the whole job is spread evenly over its nodes."""
    given, cores = site.scheduling, workload.processors
    most_gpus = np.array([layout.gpus[row].max(initial=1) for row in layout.members])[partition]
    gpus = np.maximum(asked.gpus, 0)
    nodes = np.where((asked.nodes < 0) & (gpus > 0), -(-gpus // np.maximum(most_gpus, 1)), asked.nodes)
    known = nodes > 0
    # A job that says no number of nodes has those of its partition, whatever its QOS.
    least_nodes = np.array([its.min_nodes for its in site.partitions])[partition]
    most_nodes = np.array([min(its.max_nodes, _MANY) for its in site.partitions])[partition]
    request = np.zeros((len(workload), 8), dtype=np.int64)
    request[:, NODES] = np.where(known, nodes, least_nodes)
    request[:, MOST_NODES] = np.where(known, nodes, np.maximum(np.minimum(most_nodes, cores), request[:, NODES]))
    request[:, TOTAL_CORES] = np.where(known, np.maximum(cores, nodes), cores)
    request[:, NODE_GPUS] = np.where(known, -(-gpus // np.maximum(nodes, 1)), 0)
    exclusive = np.array([its.exclusive for its in site.partitions])[partition]
    whole = exclusive | (asked.exclusive == 1) | (given.select == "nodes")
    request[:, WHOLE] = whole
    # As with --ntasks-per-node; what cannot be spread evenly is asked for in all.
    even = known & ~whole & (cores % np.maximum(nodes, 1) == 0) & (cores >= nodes)
    even |= known & ~whole & (cores < nodes)
    request[:, NODE_CORES] = np.where(even, np.maximum(cores // np.maximum(nodes, 1), 1), 0)
    said = asked.memory >= 0
    of_node = np.where(known, -(-asked.memory // np.maximum(nodes, 1)), 0)
    of_core = np.where(known, 0, -(-asked.memory // cores))
    if given.default_memory_per_node:
        request[:, NODE_MEMORY] = np.where(said, of_node, given.default_memory_per_node)
        request[:, CORE_MEMORY] = np.where(said, of_core, 0)
    else:
        default = given.default_memory_per_core
        # Who asks for none gets all of a node; but a log that says no job's memory does not say that they ask for none.
        all_of_it = said.any() and not default and counts_memory(site, layout)
        request[:, NODE_MEMORY] = np.where(said, of_node, -1 if all_of_it else 0)
        request[:, CORE_MEMORY] = np.where(said, of_core, default)
    return request
