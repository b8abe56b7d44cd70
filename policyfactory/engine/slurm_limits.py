"""What running jobs hold against the limits of QOS, associations and arrays.

The rules are those of acct_policy of Slurm 22.05, found in its source.
"""

from __future__ import annotations

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined, step
from policyfactory.engine.slurm_demand import taken_gpus, taken_memory
from policyfactory.engine.slurm_jobs import Jobs, Limits, Machine
from policyfactory.engine.slurm_nodes import Choice

__all__ = ["count_in_limits", "is_limited", "waits_for_array"]

# Columns of limits: running jobs, and nodes, cores, MB and GPUs that they hold.
_JOBS, _NODES, _CORES, _MEMORY, _GPUS = range(5)


@step
def is_limited(
    jobs: Jobs,
    limits: Limits,
    choice: Choice,
    job: int,
    nodes: int,
    cores: int,
    memory: int,
    gpus: int,
    placed: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> bool:
    """Tell whether a job would break a limit.

    Parameters
    ----------
    jobs : Jobs
    limits : Limits
    choice : Choice
        Its nodes, where they are chosen.
    job : int
        Its number.
    nodes, cores, memory, gpus : int
        What it would hold; 0 where that is not asked yet.
    placed : bool
        Whether its nodes are chosen: those that a group has already do not count once more.
    """
    most, held = limits.most, limits.held
    for at in range(jobs.counters_from[job], jobs.counters_from[job + 1]):
        row, limit = jobs.counters[at, 0], jobs.counters[at, 1]
        # A limit of the job alone, or one of a group that holds something.
        group = row >= 0
        more = nodes
        if placed and group and limits.row_of[row] >= 0:
            more = 0
            for part in range(choice.parts[0]):
                more += (limits.on[limits.row_of[row], choice.node[part]] == 0) * choice.many[part]
        if (
            group * held[row, _JOBS] + 1 > most[limit, _JOBS]
            or (more > 0 and group * held[row, _NODES] + more > most[limit, _NODES])
            or (cores > 0 and group * held[row, _CORES] + cores > most[limit, _CORES])
            or (memory > 0 and group * held[row, _MEMORY] + memory > most[limit, _MEMORY])
            or (gpus > 0 and group * held[row, _GPUS] + gpus > most[limit, _GPUS])
        ):
            return True
    return False


@inlined
def waits_for_array(jobs: Jobs, limits: Limits, job: int) -> bool:
    """Tell whether as many tasks of a job's array run as may: it then is not in the queue, nor kept room for."""
    if jobs.in_array[job] == 0:
        return False
    at = jobs.counters_from[job]
    return bool(limits.held[jobs.counters[at, 0], _JOBS] >= limits.most[jobs.counters[at, 1], _JOBS])


@step
def count_in_limits(
    jobs: Jobs, machine: Machine, limits: Limits, job: int, nodes: Int64Array, cores: Int64Array, sign: int
) -> None:
    """Count what a job holds in its limits (``sign`` 1), or count it no more (-1).

    Parameters
    ----------
    jobs : Jobs
    machine : Machine
    limits : Limits
        Changed.
    job : int
        Its number.
    nodes, cores : int64 array (k,)
        Its nodes, and its cores there.
    sign : int
    """
    request, all_cores, memory, gpus = jobs.request[job], 0, 0, 0
    for k in range(len(nodes)):
        all_cores += cores[k]
        memory += taken_memory(request, machine.has[nodes[k]], cores[k])
        gpus += taken_gpus(request, machine.has[nodes[k]])
    held = limits.held
    for at in range(jobs.counters_from[job], jobs.counters_from[job + 1]):
        row = jobs.counters[at, 0]
        if row < 0:
            continue
        held[row, _JOBS] += sign
        held[row, _CORES] += sign * all_cores
        held[row, _MEMORY] += sign * memory
        held[row, _GPUS] += sign * gpus
        if limits.row_of[row] >= 0:
            on = limits.on[limits.row_of[row]]
            for node in nodes:
                before = on[node] > 0
                on[node] += sign
                held[row, _NODES] += int(on[node] > 0) - int(before)
