"""What a job gets that does not ask for memory or cores, plainly.

Slurm 22.05 to 26.05: job_mgr.c, _validate_job_desc (memory; what the partition says goes first); select/cons_tres,
_set_gpu_defaults and gres_select_util.c (what each GPU brings).
"""

from __future__ import annotations

import dataclasses

from naive.slurm_jobs import Demand, Job
from policyfactory.site.model import Partition, Scheduling, Site

__all__ = ["has_default_memory", "with_defaults"]


def has_default_memory(site: Site) -> bool:
    """Return whether any job could get memory that it does not ask for."""
    return any(
        place.default_memory_per_node or place.default_memory_per_core or place.default_memory_per_gpu
        for place in (site.scheduling, *site.partitions)
    )


def with_defaults(demand: Demand, job: Job, partition: Partition, cluster: Scheduling, *, silent: bool) -> Demand:
    """Return a demand with what the job does not ask for; ``silent``: no job of the log says its memory."""
    for_each_gpu = partition.default_cores_per_gpu or cluster.default_cores_per_gpu
    # Who asks for cores is taken at his word: a job that ran has what the log says.
    if demand.gpus and for_each_gpu and not job.ran and job.cores <= demand.least:
        each = max(demand.gpus * for_each_gpu, 1)
        per_node = 0 if demand.whole else each
        demand = dataclasses.replace(demand, cores=each * demand.least, per_node=per_node)
    if job.memory >= 0:
        return demand
    each = partition.default_memory_per_gpu or cluster.default_memory_per_gpu
    if demand.gpus and each:
        return dataclasses.replace(demand, memory=each * demand.gpus, memory_per_core=0)
    says = partition if partition.default_memory_per_node or partition.default_memory_per_core else cluster
    if says.default_memory_per_node:
        return dataclasses.replace(demand, memory=says.default_memory_per_node, memory_per_core=0)
    if says.default_memory_per_core:
        return dataclasses.replace(demand, memory=0, memory_per_core=says.default_memory_per_core)
    return dataclasses.replace(demand, memory=0, memory_per_core=0, no_memory=silent)
