"""What a job asks of its nodes under Slurm's rules, and what it takes of them: columns, cores, MB, GPUs."""

from __future__ import annotations

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined

__all__ = [
    "ALONE", "CORES", "CORE_MEMORY", "GPUS", "JOBS", "MEMORY", "MOST_NODES", "NODES", "NODE_CORES", "NODE_GPUS",
    "NODE_MEMORY", "TOTAL_CORES", "WEIGHT", "WHOLE", "asks_cores_alone", "cores_for", "taken_gpus", "taken_memory",
]  # fmt: skip

# Columns of a request: nodes at least and at most, cores in all, cores of each node where they are asked for by node (0
# where not); MB of each node (-1: all that it has), MB of each core; GPUs of each node; 1 if nodes are not shared.
NODES, MOST_NODES, TOTAL_CORES, NODE_CORES, NODE_MEMORY, CORE_MEMORY, NODE_GPUS, WHOLE = range(8)

# Columns of what nodes have, and of what is taken of them; in place of the weight, the jobs there.
CORES, MEMORY, GPUS, WEIGHT = range(4)
JOBS = WEIGHT
# As many jobs does one count for that shares its nodes with nobody.
ALONE = 2**20


@inlined
def cores_for(
    request: Int64Array,
    has: Int64Array,
    used: Int64Array,
    idle: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> int:
    """Return how many cores of a node a job could have; 0 if it cannot use the node.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has, used : int64 array (4,)
        Of the node.
    idle : bool
        Whether its cores are looked at as if none were in use.
    """
    free, memory = has[CORES] - (0 if idle else used[CORES]), has[MEMORY] - used[MEMORY]
    if (
        used[JOBS] >= ALONE
        or (request[WHOLE] == 1 and used[JOBS] > 0)
        or has[GPUS] - used[GPUS] < request[NODE_GPUS]
        or memory < request[NODE_MEMORY]
        or (request[NODE_MEMORY] < 0 and used[MEMORY] > 0)
    ):
        return 0
    if request[CORE_MEMORY] > 0:
        most = memory // request[CORE_MEMORY]
        if request[WHOLE] == 1 and most < free:
            return 0
        free = min(free, most)
    return free if free >= max(request[NODE_CORES], 1) else 0


@inlined
def asks_cores_alone(request: Int64Array) -> bool:
    """Tell whether a request (8,) is for nothing but cores."""
    return bool(request[NODE_GPUS] <= 0 and request[NODE_MEMORY] == 0 and request[CORE_MEMORY] <= 0)


@inlined
def taken_memory(request: Int64Array, has: Int64Array, cores: int) -> int:
    """Return how many MB of a node a job takes that has ``cores`` cores there.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has : int64 array (4,)
        Of the node.
    cores : int
        Of the node, for the job.
    """
    if request[NODE_MEMORY] < 0:
        return int(has[MEMORY])
    return int(request[NODE_MEMORY] if request[NODE_MEMORY] > 0 else request[CORE_MEMORY] * cores)


@inlined
def taken_gpus(request: Int64Array, has: Int64Array) -> int:
    """Return how many GPUs of a node a job takes, which are all if it takes the whole node.

    Parameters
    ----------
    request : int64 array (8,)
        Of the job.
    has : int64 array (4,)
        Of the node.
    """
    return int(has[GPUS] if request[WHOLE] == 1 else request[NODE_GPUS])
