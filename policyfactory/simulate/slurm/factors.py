"""The parts of a job's priority that its request and the site decide (priority/multifactor)."""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.engine.slurm_demand import CORE_MEMORY, NODE_GPUS, NODE_MEMORY, NODES, TOTAL_CORES
from policyfactory.site.layout import Layout
from policyfactory.site.model import Site

__all__ = ["by_core", "fixed_part"]

_MINUTE = 60
# Under priority/basic each job has a little less than the one before; that their order decides says the same.
_BASIC = 2.0**32 - 1


def fixed_part(
    site: Site,
    layout: Layout,
    partition: Int64Array,
    request: Int64Array,
    limit: Int64Array,
    qos: FloatArray,
    association: FloatArray,
    factor: Int64Array,
) -> FloatArray:
    """Return the part of the priority of each job that does not change.

    Parameters
    ----------
    site : Site
    layout : Layout
    partition : int64 array (n,)
        Numbers.
    request : int64 array (n, 8)
    limit : int64 array (n,)
        Seconds.
    qos : float64 array (n,)
        Priority of the QOS of each.
    association : float64 array (n,)
        Priority of the association of each.
    factor : int64 array (n,)
        site_factor.
    """
    given, flags = site.priority, {flag.upper() for flag in site.priority.flags}
    if given.kind != "multifactor":
        return np.full(len(request), _BASIC)
    nodes, cores = request[:, NODES].astype(np.float64), request[:, TOTAL_CORES].astype(np.float64)
    all_nodes, all_cores = len(layout.names), int(layout.cores.sum())
    size = (nodes / all_nodes + cores / all_cores) / 2
    if "SMALL_RELATIVE_TO_TIME" in flags:
        size = np.maximum(nodes * all_cores / all_nodes, cores) / (limit / _MINUTE) / all_cores
    if given.favor_small:
        size = 1 - size
    fixed: FloatArray = given.job_size * np.clip(size, 0.0, 1.0)
    factors = np.array([its.job_factor for its in site.partitions], dtype=np.float64)
    if not flags & {"NO_NORMAL_PART", "NO_NORMAL_ALL"}:
        factors /= max(factors.max(), 1.0)
    fixed += given.partition * factors[partition]
    most = max((one.priority for one in site.qos), default=0)
    fixed += given.qos * (qos if flags & {"NO_NORMAL_QOS", "NO_NORMAL_ALL"} else qos / max(most, 1))
    most = max((one.priority for one in site.associations), default=0)
    raw_association = flags & {"NO_NORMAL_ASSOC", "NO_NORMAL_ALL"}
    fixed += given.association * (association if raw_association else association / max(most, 1))
    raw = bool(flags & {"NO_NORMAL_TRES", "NO_NORMAL_ALL"})
    return fixed + _resources(site, layout, partition, request, raw=raw) + factor


def by_core(site: Site, layout: Layout, partition: Int64Array) -> FloatArray:
    """Return how much of the priority a core more gives: on its chosen nodes a job may have more than it asks for."""
    given, flags = site.priority, {flag.upper() for flag in site.priority.flags}
    if given.kind != "multifactor":
        return np.zeros(len(partition))
    size = 0.0 if "SMALL_RELATIVE_TO_TIME" in flags else given.job_size / (2 * int(layout.cores.sum()))
    weight = given.tres.get("cpu", 0.0)
    whole = np.maximum(layout.members @ layout.cores, 1)[partition].astype(np.float64)
    if flags & {"NO_NORMAL_TRES", "NO_NORMAL_ALL"}:
        whole[:] = 1.0
    each: FloatArray = (-size if given.favor_small else size) + weight / whole
    return each


def _resources(site: Site, layout: Layout, partition: Int64Array, request: Int64Array, *, raw: bool) -> FloatArray:
    """Return what PriorityWeightTRES gives each job."""
    nodes, cores = request[:, NODES], request[:, TOTAL_CORES]
    memory = np.where(request[:, NODE_MEMORY] > 0, request[:, NODE_MEMORY] * nodes, request[:, CORE_MEMORY] * cores)
    asked = {"cpu": cores, "mem": memory, "node": nodes, "gres/gpu": request[:, NODE_GPUS] * nodes}
    has = {
        "cpu": layout.members @ layout.cores,
        "mem": layout.members @ layout.memory,
        "node": layout.members.sum(axis=1),
        "gres/gpu": layout.members @ layout.gpus,
    }
    sum_ = np.zeros(len(request))
    for name, weight in site.priority.tres.items():
        if name in asked:
            whole = has[name][partition]
            sum_ += weight * (asked[name] if raw else np.where(whole > 0, asked[name] / np.maximum(whole, 1), 0.0))
    return sum_
