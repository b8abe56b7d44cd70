"""What a run under Slurm's rules is given: the settings of the passes, the jobs, the machine, and the limits."""

from __future__ import annotations

from typing import NamedTuple

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, joined, step
from policyfactory.core.options import FloatArray, Int32Array, Int64Array, UInt8Array
from policyfactory.engine.slurm.nodes import NodeChoice, taken_gpus, taken_memory

# What `SlurmJobs.hopeless` says: nothing; that a job is never in the queue; that it is refused, which ends it for those
# after it; and three reasons for which one is in the queue and looked at in vain: a limit on it alone, a partition
# that does not let it in, limits that leave it too few nodes.
WELCOME, ABSENT, REFUSED, LIMITED, CLOSED, CONFINED = range(6)
# In `SlurmJobs.in_array`.
SEVERAL = 2
# When the rows of jobs behind their first ones are submitted (s).
NEVER = 2**61


@by_pointer
class SlurmSettings(NamedTuple):
    """What slurm.conf says of the passes; seconds and counts, 0 for a count without limit.

    Parameters
    ----------
    backfill : bool
        Whether there is a backfilling pass.
    queue_depth, partition_depth, most_starts, sched_interval, batch_delay : int
        Of the main pass.
    interval, window, resolution, most_tested, most_of_partition, most_of_user, most_of_user_partition, \
most_of_association, most_started, reserved_of_partition, least_age : int
        Of the backfilling pass.
    least_priority : float
        Below it nothing is reserved.
    overrun, kill_wait, turn_round : int
        How long a job may exceed its limit; how long one is believed to go on that should have ended; from a job's end
        until its nodes are free.
    origin : int
        When the scheduler was started: its passes, checks and calculations are counted from there.
    calculation : int
        From one calculation of priorities to the next; 0: never.
    requeue_delay : int
        From the end of a node to when its jobs may start again.
    version : int
        Whose rules hold: 2411 of Slurm 24.11; see `policyfactory.engine.slurm.versions`.
    plan_all : bool
        Whether the plan changes priorities or what is held against limits, so that it is made for all jobs even if none
        of them can start.
    stops : bool
        Whether the run stops before priorities are calculated while jobs wait, which are given new numbers then: by the
        kernel itself (`policyfactory.engine.slurm.numbers`), or by its caller, who changes ``fixed``.
    foretells : bool
        Whether it also stops before jobs are put into the queue, which the kernel predicts and numbers then.
    most_waiting, most_submitted : int
        It pauses where more jobs wait, or so many have been submitted; 0: it does not.
    """

    backfill: bool
    queue_depth: int
    partition_depth: int
    most_starts: int
    sched_interval: int
    batch_delay: int
    interval: int
    window: int
    resolution: int
    most_tested: int
    most_of_partition: int
    most_of_user: int
    most_of_user_partition: int
    most_of_association: int
    most_started: int
    reserved_of_partition: int
    least_age: int
    least_priority: float
    overrun: int
    kill_wait: int
    turn_round: int
    origin: int
    calculation: int
    requeue_delay: int
    version: int
    plan_all: bool
    stops: bool
    foretells: bool = False
    most_waiting: int = 0
    most_submitted: int = 0


@by_pointer
class SlurmJobs(NamedTuple):
    """n jobs in the order of submission.

    Parameters
    ----------
    ready : int64 array (n,)
        When each may start at the earliest (s), not before its submission.
    submit, number : int64 array (n,)
        When it was submitted (s), and its place among all by job number: these decide between equal priorities.
    after : int64 array (n,)
        The job that must have ended first; -1 for none.
    run_time, limit : int64 array (n,)
        Seconds.
    planned : int64 array (n,)
        Seconds that the backfilling plan counts: the limit, or that of the partition where a QOS lifts it.
    partition, user, association : int64 array (n,)
        Numbers from 0.
    reservation : int64 array (n,)
        The one that the job runs in; -1 for none.
    request : int64 array (n, 8)
        See `policyfactory.engine.slurm.nodes`.
    processors : int64 array (n,)
        What each asks for in all, as limits and priorities count them.
    threads : int64 array (n,)
        Processors of each core that it gets.
    counters_from : int64 array (n + 1,)
        Where the counters of each job begin in ``counters``.
    counters : int64 array (M, 2)
        Rows of `SlurmLimits.held` (-1: a limit of the job alone; see `PER_NODE`) and of `SlurmLimits.most`.
    in_array : uint8 array (n,)
        1 for a task of an array of which only so many may run at once: its first counter says how many do and may; 2
        more for a job of several partitions (`SEVERAL`).
    hopeless : uint8 array (n,)
        Whether it can never start, and why: see the names of these numbers.
    no_reserve : uint8 array (n,)
        1 if nothing is reserved for the job (QOS NoReserve).
    fixed : float64 array (n,)
        The part of the priority that time and usage do not change.
    by_processor : float64 array (n,)
        What each processor that it gets beyond what it asks for adds to the priority.
    by_processor_beyond_share : float64 array (n,)
        What each processor beyond ``even_share`` adds; 0 without SMALL_RELATIVE_TO_TIME.
    even_share : float64 array (n,)
        The processors that as many nodes of the cluster as the job asks for have on average.
    usage_factor : float64 array (n,)
        What a processor second, or a second of what is billed, counts in fair share.
    first, other : int64 array (n,)
        A job that may start in several partitions has a row for each, the first one among the other jobs and the rest
        behind them all, never submitted by themselves: the first row of each, and the next one; -1 for none.
    cancelled : int64 array (k, 2)
        Seconds, ascending, and a job (its first row), submitted before, that is cancelled then if it waits.
    """

    ready: Int64Array
    submit: Int64Array
    number: Int64Array
    after: Int64Array
    run_time: Int64Array
    limit: Int64Array
    planned: Int64Array
    partition: Int64Array
    user: Int64Array
    association: Int64Array
    reservation: Int64Array
    request: Int64Array
    processors: Int64Array
    threads: Int64Array
    counters_from: Int64Array
    counters: Int64Array
    in_array: UInt8Array
    hopeless: UInt8Array
    no_reserve: UInt8Array
    fixed: FloatArray
    by_processor: FloatArray
    by_processor_beyond_share: FloatArray
    even_share: FloatArray
    usage_factor: FloatArray
    first: Int64Array
    other: Int64Array
    cancelled: Int64Array


@by_pointer
class SlurmMachine(NamedTuple):
    """N nodes in P partitions, V reservations, E events.

    Parameters
    ----------
    has : int64 array (N, 4)
        Cores, MB, GPUs, weight. N is a multiple of eight: nodes without anything are added, which are in no partition.
    cores : int32 array (N,)
        Cores.
    partition : uint8 array (P, N)
        1 for a node of the partition.
    tier : int64 array (P,)
        PriorityTier.
    closed : uint8 array (P,)
        1 if no job is started there.
    reserved : uint8 array (V, N)
        1 for a node of the reservation.
    reservation : int64 array (V, 4)
        Its begin and end (s), since when it is known, its kind (`policyfactory.engine.slurm.holding`).
    event : int64 array (E, 2)
        Seconds, ascending; 0: up again, 1: down, 2: drained.
    of_event : uint8 array (E, N)
        1 for its nodes.
    """

    has: Int64Array
    cores: Int32Array
    partition: UInt8Array
    tier: Int64Array
    closed: UInt8Array
    reserved: UInt8Array
    reservation: Int64Array
    event: Int64Array
    of_event: UInt8Array


@by_pointer
class SlurmLimits(NamedTuple):
    """What running jobs hold together, and the most that they may.

    Parameters
    ----------
    most : float64 array (L, 5)
        Jobs, nodes, processors, MB, GPUs; infinite where there is none. Jobs of one association may have different
        limits on what they hold together: a limit of their QOS replaces the association's.
    held : int64 array (K, 5)
        By the running jobs; a node that several have is counted once.
    row_of : int64 array (K,)
        The row of ``on`` of each; -1 where nodes are not limited.
    on : int64 array (L, N)
        How many of the running jobs have each node.
    """

    most: FloatArray
    held: Int64Array
    row_of: Int64Array
    on: Int64Array


# What running jobs hold against the limits of QOS, associations and arrays --------------------------------------------

# The rules are those of acct_policy of Slurm (versions.py), found in its source.


# Columns of limits: running jobs, and nodes, processors, MB and GPUs that they hold.
_JOBS, _NODES, _PROCESSORS, _MEMORY, _GPUS = range(5)
# In the place of a row of `SlurmLimits.held`: what the job has of each of its nodes, in the mean, is limited.
PER_NODE = -2


@step
def is_limited(
    jobs: SlurmJobs,
    limits: SlurmLimits,
    choice: NodeChoice,
    job: int,
    nodes: int,
    processors: int,
    memory: int,
    gpus: int,
    placed: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> bool:
    """Tell whether a job would break a limit.

    Parameters
    ----------
    jobs : SlurmJobs
    limits : SlurmLimits
    choice : NodeChoice
        Its nodes, where they are chosen.
    job : int
        Its number.
    nodes, processors, memory, gpus : int
        What it would hold; 0 where that is not asked yet.
    placed : bool
        Whether its nodes are chosen: those that a group has already do not count once more.
    """
    most, held = limits.most, limits.held
    for counter in range(jobs.counters_from[job], jobs.counters_from[job + 1]):
        row, limit = jobs.counters[counter, 0], jobs.counters[counter, 1]
        if row == PER_NODE:
            if _exceeds_node(most[limit], nodes, processors, memory, gpus):
                return True
            continue
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
            or (processors > 0 and group * held[row, _PROCESSORS] + processors > most[limit, _PROCESSORS])
            or (memory > 0 and group * held[row, _MEMORY] + memory > most[limit, _MEMORY])
            or (gpus > 0 and group * held[row, _GPUS] + gpus > most[limit, _GPUS])
        ):
            return True
    return False


@joined
def _exceeds_node(most: FloatArray, nodes: int, processors: int, memory: int, gpus: int) -> bool:
    """Tell whether a job would have more of each node than it may (MaxTRESPerNode), as Slurm divides whole numbers."""
    return nodes > 0 and bool(
        processors // nodes > most[_PROCESSORS] or memory // nodes > most[_MEMORY] or gpus // nodes > most[_GPUS]
    )


@inlined
def is_task(jobs: SlurmJobs, job: int) -> bool:
    """Tell whether a job is a task of an array of which only so many may run at once."""
    return bool(jobs.in_array[job] % SEVERAL == 1)


@inlined
def is_passed_over(jobs: SlurmJobs, limits: SlurmLimits, start: Int64Array, job: int) -> bool:
    """Tell whether a job is not looked at, nor kept room for.

    In this pass it was started in another of its partitions, or as many tasks of its array run as may.
    """
    if jobs.in_array[job] >= SEVERAL and start[job] >= 0:
        return True
    return is_task(jobs, job) and free_tasks(jobs, limits, job) <= 0


@inlined
def array_of(jobs: SlurmJobs, job: int) -> int:
    """Return the counter of the array that a job is a task of, where only so many may run at once; -1: of none."""
    return int(jobs.counters[jobs.counters_from[job], 0]) if is_task(jobs, job) else -1


@inlined
def free_tasks(jobs: SlurmJobs, limits: SlurmLimits, job: int) -> float:
    """Return how many tasks of a job's array may run beside those that do."""
    counter = jobs.counters_from[job]
    return float(limits.most[jobs.counters[counter, 1], _JOBS] - limits.held[jobs.counters[counter, 0], _JOBS])


@joined
def count_in_limits(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    limits: SlurmLimits,
    job: int,
    nodes: Int64Array,
    cores: Int64Array,
    sign: int,
) -> None:
    """Count what a job holds in its limits (``sign`` 1), or count it no more (-1).

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    limits : SlurmLimits
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
    for counter in range(jobs.counters_from[job], jobs.counters_from[job + 1]):
        row = jobs.counters[counter, 0]
        if row < 0:
            continue
        held[row, _JOBS] += sign
        held[row, _PROCESSORS] += sign * all_cores * jobs.threads[job]
        held[row, _MEMORY] += sign * memory
        held[row, _GPUS] += sign * gpus
        if limits.row_of[row] >= 0:
            on = limits.on[limits.row_of[row]]
            for node in nodes:
                before = on[node] > 0
                on[node] += sign
                held[row, _NODES] += int(on[node] > 0) - int(before)
