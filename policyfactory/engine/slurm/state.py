"""The state of a run under Slurm's rules: what runs, what waits, what is taken of the nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, step
from policyfactory.core.options import FloatArray, Int32Array, Int64Array, UInt8Array
from policyfactory.engine.events import new_heap
from policyfactory.engine.slurm.jobs import SlurmJobs, SlurmLimits, SlurmMachine, SlurmSettings
from policyfactory.engine.slurm.nodes import BLOCKS, CORES, WEIGHT, Blocks, NodeChoice, divide, new_blocks, new_choice
from policyfactory.engine.slurm.plan import RECORDS, BackfillPlan, new_plan

# Places in `RunState.state`: the clock (s); jobs that wait, that run; places of the arena in use; jobs that were put
# into the queue for the first time; node events that have been; when something changed last that the backfilling pass
# looks at, and when that pass was; when the main pass was called by submissions, when it looked at the whole queue,
# and when priorities were calculated; whether a submission waits for the main pass, and whether it is to be made now;
# whether the last plan has nodes that are not wholly in use; when something happens, or happened last, that is not a
# pass; submitted jobs that are not ready; where the ring of leaving jobs begins, and its length. CANCELLATIONS counts
# those that have been.
#
# A pass that finds all as it was would do what it did before, and is left out. VERSION counts the changes of what
# passes look at; of the last pass over the whole queue and of the last plan it is noted which version they saw, and
# until when (s) no comparison with the clock comes out otherwise; and whether that pass left out jobs of a partition
# whose first job waits. HORIZON is that time for the pass that is being made. STOPPED tells whether the run has begun,
# and whether it was left at a calculation of priorities, at submissions, or paused for its caller to look at it.
# DIVIDED is the version for which the nodes were divided into blocks. UNSEEN counts the jobs that the next pass finds
# in the queue as none has found them yet.
(
    NOW, WAITING, RUNNING, HELD, READY, EVENTS, CHANGED, PASSED, MAIN, FULL, CALCULATED, PENDING, DUE, PLANNED, STIRRED,
    ASIDE, LEFT, LEAVING, VERSION, MAIN_VERSION, MAIN_UNTIL, MAIN_SKIPPED, PLAN_VERSION, PLAN_UNTIL, HORIZON, STOPPED,
    DIVIDED, UNSEEN, CANCELLATIONS,
) = range(29)  # fmt: skip
_PLACES = 29
# Values of STOPPED.
NOT_BEGUN, GOES_ON, AT_CALCULATION, AT_SUBMISSION, PAUSED = range(5)
# Columns of `RunState.rooms`.
FREE_NODES, IDLE_NODES, FREE_CORES = range(3)
# In `RunState.seen`: the job that this one waited for has ended, which the next pass finds.
RELEASED = 2


@by_pointer
class RunState(NamedTuple):
    """Where a run of n jobs on N nodes stands.

    Parameters
    ----------
    state : int64 array (29,)
        See the names of its places.
    start, end : int64 array (n,)
        Start of each job, -1 before; when it ends and its nodes are free.
    dependent, sibling : int64 array (n,)
        The first of the jobs that wait for the end of this one, and the next that waits for the same; -1 for none.
    by : int64 array (n,)
        1: started by the main pass, 2: by the backfilling pass.
    restarts : int64 array (n,)
        How often a node under it failed.
    priority : float64 array (n,)
        Whole numbers.
    seen_processors : int64 array (n,)
        What each had on the nodes that were last chosen for it, now or in a plan, in any partition; 0 before.
    seen : uint8 array (n,)
        1 for a job that was in the queue when a pass was made: its age counts from then on; 2 more: see `RELEASED`.
    ready, submit : int64 array (n,)
        As those of the jobs, later after a requeue.
    waiting : int64 array (n,)
        The queue, first job first.
    running : int64 array (n,)
        By believed end.
    heap : int64 array (2, n + 1)
        By end.
    held_from, held_count : int64 array (n,)
        Where in the arena the nodes of a running job are.
    held_node, held_cores : int64 array
        The arena.
    given : int64 array (n + 1, 3)
        Of the running jobs in the order of ``running``: where the parts begin that each gives back, until when it may
        run (s), and 1 if it shares its nodes with nobody; one more for the end of the parts.
    given_part : int64 array (C, 3)
        The first node of what was a block when they were listed; its nodes; the job's cores on each of them.
    used : int64 array (N, 4)
        Cores, MB, GPUs, jobs.
    completing : int32 array (N,)
        Jobs that have ended there and are being cleaned up.
    leaving : int64 array (C, 2)
        A ring: when the next of these is gone, and from which node.
    up : uint8 array (N,)
        1 for a node that takes jobs.
    nowhere : uint8 array (N,)
        0 for each node.
    blocks : Blocks
        Nodes that are alike.
    limits : SlurmLimits
    choice : NodeChoice
    free : int32 array (N,)
        Free cores; -1 where a job shares its node with nobody.
    scratch : int64 array (N, 4)
        ``used`` as it will be, of the first node of each block.
    plan : BackfillPlan
    tally : int64 array (5, T)
        What one backfilling pass counts, by partition, user and association.
    rooms : int64 array (P + 1, 3)
        Of the nodes that are up: those with free cores, those without jobs, and free cores; of each partition and,
        last, of all.
    needs : int64 array (n,)
        How many nodes of its partition each job gets if all are empty; -1 as long as nobody has asked.
    preemption : SlurmPreemption or None
        Of a site where running jobs are stopped for others (`policyfactory.engine.slurm.stopping`).
    """

    state: Int64Array
    start: Int64Array
    end: Int64Array
    dependent: Int64Array
    sibling: Int64Array
    by: Int64Array
    restarts: Int64Array
    priority: FloatArray
    seen_processors: Int64Array
    seen: UInt8Array
    ready: Int64Array
    submit: Int64Array
    waiting: Int64Array
    running: Int64Array
    heap: Int64Array
    held_from: Int64Array
    held_count: Int64Array
    held_node: Int64Array
    held_cores: Int64Array
    given: Int64Array
    given_part: Int64Array
    used: Int64Array
    completing: Int32Array
    leaving: Int64Array
    up: UInt8Array
    nowhere: UInt8Array
    blocks: Blocks
    limits: SlurmLimits
    choice: NodeChoice
    free: Int32Array
    scratch: Int64Array
    plan: BackfillPlan
    tally: Int64Array
    rooms: Int64Array
    needs: Int64Array
    preemption: Any = None


def new_run(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    most: FloatArray,
    counters: int,
    settings: SlurmSettings,
    preemption: Any = None,
) -> RunState:
    """Return a run that has not begun.

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    most : float64 array (L, 5)
        The limits.
    counters : int
        Of what is held together.
    settings : SlurmSettings
    preemption : SlurmPreemption, optional
        Of a site where running jobs are stopped for others.
    """
    n, nodes, parts = len(jobs.ready), len(machine.has), len(machine.tier)
    users, associations = int(jobs.user.max(initial=0)) + 1, int(jobs.association.max(initial=0)) + 1
    arena = 4 * int(machine.has[:, CORES].sum()) + 64
    whole = np.zeros(n, dtype=np.int64)
    return RunState(
        np.zeros(_PLACES, np.int64),
        np.full(n, -1),
        np.full(n, -1),
        np.full(n, -1),
        np.full(n, -1),
        whole.copy(),
        whole.copy(),
        np.zeros(n),
        whole.copy(),
        np.zeros(n, np.uint8),
        jobs.ready.copy(),
        jobs.submit[jobs.first],
        whole.copy(),
        whole.copy(),
        new_heap(4 * n + 64),
        whole.copy(),
        whole.copy(),
        np.empty(arena, np.int64),
        np.empty(arena, np.int64),
        np.zeros((n + 1, 3), np.int64),
        np.empty((arena, 3), np.int64),
        np.zeros((nodes, 4), np.int64),
        np.zeros(nodes, np.int32),
        np.zeros((int(machine.has[:, CORES].sum()) + 1, 2), np.int64),
        np.ones(nodes, np.uint8),
        np.zeros(nodes, np.uint8),
        new_blocks(np.concatenate([machine.has.T, machine.partition, machine.reserved])),
        _new_limits(jobs, most, counters, nodes),
        new_choice(nodes),
        machine.cores.copy(),
        np.zeros((nodes, 4), np.int64),
        new_plan(settings.most_tested, nodes),
        np.zeros((5, max(users * parts, associations, len(machine.reservation))), np.int64),
        _new_rooms(machine),
        np.full(n, -1),
        preemption,
    )


def _new_rooms(machine: SlurmMachine) -> Int64Array:
    """Return the rooms of an empty machine."""
    members = np.concatenate([machine.partition, np.ones((1, len(machine.has)), np.uint8)]).astype(np.int64)
    cores = machine.has[:, CORES]
    return np.stack([members @ (cores > 0).astype(np.int64), members.sum(axis=1), members @ cores], axis=1)


def _new_limits(jobs: SlurmJobs, most: FloatArray, counters: int, nodes: int) -> SlurmLimits:
    """Return limits against which nothing is held."""
    limited = np.isfinite(most[jobs.counters[:, 1], 1]) & (jobs.counters[:, 0] >= 0)
    rows = np.unique(jobs.counters[limited, 0])
    row_of = np.full(counters, -1)
    row_of[rows] = np.arange(len(rows))
    return SlurmLimits(most, np.zeros((counters, 5), np.int64), row_of, np.zeros((len(rows), nodes), np.int64))


@step
def divide_nodes(machine: SlurmMachine, run: RunState) -> None:
    """Divide the nodes into blocks if anything has changed."""
    state = run.state
    if state[DIVIDED] != state[VERSION] or run.blocks.size[BLOCKS] == 0:
        divide(run.blocks, machine.cores, machine.has[:, WEIGHT], run.free, run.up, run.completing)
        state[DIVIDED] = state[VERSION]
    run.plan.size[RECORDS] = 0


@step
def is_ahead(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, job: int, other: int) -> bool:
    """Tell whether a job stands before another: reservations, tiers, priorities, submission."""
    reserved, others = jobs.reservation[job] >= 0, jobs.reservation[other] >= 0
    if reserved != others:
        return bool(reserved)
    tier, others_tier = machine.tier[jobs.partition[job]], machine.tier[jobs.partition[other]]
    if tier != others_tier:
        return bool(tier > others_tier)
    if run.priority[job] != run.priority[other]:
        return bool(run.priority[job] > run.priority[other])
    if run.submit[job] != run.submit[other]:
        return bool(run.submit[job] < run.submit[other])
    return bool(jobs.number[job] < jobs.number[other])


@inlined
def believed_end(jobs: SlurmJobs, run: RunState, job: int, preemption: Any) -> int:
    """Return until when a running job may run: to its limit, or to the end of its grace time."""
    if preemption is not None:
        return int(min(run.start[job] + jobs.limit[job], preemption.until[job]))
    return int(run.start[job] + jobs.limit[job])


@inlined
def change_queue(run: RunState) -> None:
    """Note that something has changed, which is not the nodes: they stay divided as they are."""
    state = run.state
    if state[DIVIDED] == state[VERSION]:
        state[DIVIDED] += 1
    state[VERSION] += 1


@step
def enqueue(jobs: SlurmJobs, machine: SlurmMachine, run: RunState, job: int) -> None:
    """Put a job into its place in the queue."""
    low, high = 0, run.state[WAITING]
    while low < high:
        middle = (low + high) // 2
        if is_ahead(jobs, machine, run, run.waiting[middle], job):
            low = middle + 1
        else:
            high = middle
    for position in range(run.state[WAITING], low, -1):
        run.waiting[position] = run.waiting[position - 1]
    run.waiting[low] = job
    run.state[WAITING] += 1
    run.state[UNSEEN] += 1
    change_queue(run)


@inlined
def see_processors(jobs: SlurmJobs, run: RunState, settings: SlurmSettings, job: int, processors: int) -> None:
    """Note the processors on the nodes that were chosen for a job: its priority or limits may count them."""
    if settings.plan_all and run.seen_processors[jobs.first[job]] != processors:
        run.seen_processors[jobs.first[job]] = processors
        change_queue(run)


@step
def see_all(run: RunState) -> None:
    """Note that the waiting jobs are in the queue when a pass is made."""
    now = run.state[NOW]
    # A queue that runs away is passed over a million times.
    if run.state[UNSEEN] == 0:
        return
    run.state[UNSEEN] = 0
    for position in range(run.state[WAITING]):
        job = run.waiting[position]
        if run.seen[job] >= RELEASED:
            run.ready[job] = max(run.ready[job], now)
            run.seen[job] -= RELEASED
            run.state[UNSEEN] += 1
            change_queue(run)
        else:
            run.seen[job] = 1


@step
def close_queue(run: RunState) -> None:
    """Take jobs that run out of the queue, and those that were started and stopped for others in one pass."""
    to = 0
    for position in range(run.state[WAITING]):
        job = run.waiting[position]
        if run.start[job] < 0 and run.ready[job] <= run.state[NOW]:
            run.waiting[to] = job
            to += 1
    run.state[WAITING] = to
