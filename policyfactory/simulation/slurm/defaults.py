"""What Slurm gives a job that asks for no memory, or for GPUs and no cores: its partition's defaults, or the cluster's.

The rules are those of Slurm 22.05 to 26.05 (job_mgr.c, _validate_job_desc; select/cons_tres, _set_gpu_defaults).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import Int64Array
from policyfactory.site.model import Partition, Scheduling, Site


class JobDefaults(NamedTuple):
    """What each job (n,) is given if it does not ask; MB, cores; 0: nothing.

    Parameters
    ----------
    node_memory, core_memory, gpu_memory, gpu_cores : int64 array (n,)
        For each of its nodes, cores and GPUs.
    """

    node_memory: Int64Array
    core_memory: Int64Array
    gpu_memory: Int64Array
    gpu_cores: Int64Array


def defaults_of(site: Site, partition: Int64Array) -> JobDefaults:
    """Return the defaults of jobs by the numbers of their partitions (n,)."""
    rows = [_of_partition(its, site.scheduling) for its in site.partitions]
    return JobDefaults(*np.array(rows, dtype=np.int64).reshape(-1, 4)[partition].T)


def _of_partition(its: Partition, cluster: Scheduling) -> tuple[int, int, int, int]:
    # Memory of either kind that the partition has goes before both of the cluster's.
    of_memory = its if its.default_memory_per_node or its.default_memory_per_core else cluster
    node = of_memory.default_memory_per_node
    return (
        node,
        0 if node else of_memory.default_memory_per_core,
        its.default_memory_per_gpu or cluster.default_memory_per_gpu,
        its.default_cores_per_gpu or cluster.default_cores_per_gpu,
    )


def with_default_cores(
    cores: Int64Array,
    nodes: Int64Array,
    node_gpus: Int64Array,
    defaults: JobDefaults,
    ran: NDArray[np.bool_],
) -> Int64Array:
    """Return the cores of jobs, with those that GPUs bring to a job that asks for one of each node.

    Parameters
    ----------
    cores, nodes, node_gpus : int64 array (n,)
        As asked; GPUs of each node.
    defaults : JobDefaults
    ran : bool array (n,)
        Whether a log says when the job started: its cores are those that it got.
    """
    by_gpus = nodes * node_gpus * defaults.gpu_cores
    return np.where(~ran & (cores <= nodes) & (by_gpus > cores), by_gpus, cores)
