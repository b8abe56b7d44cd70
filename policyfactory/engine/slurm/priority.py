"""Slurm's multifactor priority: what time and usage change, and Fair Tree.

The formulas are those of priority/multifactor of Slurm (versions.py), found in its source.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, kernel, step
from policyfactory.core.options import FloatArray, Int64Array, UInt8Array
from policyfactory.engine.slurm.jobs import SlurmJobs, SlurmMachine
from policyfactory.engine.slurm.nodes import taken_gpus, taken_memory
from policyfactory.engine.slurm.state import NOW, RELEASED, RUNNING, VERSION, WAITING, RunState, is_ahead

_LARGEST = 2.0**32 - 1


@by_pointer
class PriorityWeights(NamedTuple):
    """What time and usage count.

    Parameters
    ----------
    age, fair_share : float
        PriorityWeightAge, PriorityWeightFairshare.
    max_age : float
        Seconds after which age counts no more.
    decay : float
        What a second leaves of usage.
    tree : bool
        Fair Tree, or the rule before it.
    tail : bool
        Whether what a job used after the last calculation is counted at its end: where limits are enforced.
    from_submission : bool
        Whether age counts from submission (ACCRUE_ALWAYS), or from when a job may start.
    billing : float64 array (P, 4)
        What each processor, MB, node and GPU of a job counts in usage, by partition; NaN in the first: its processors.
    largest : int
        1: only the largest of them (MAX_TRES); 2: the largest of the first three, and GPUs (MAX_TRES_GRES); 0: all.
    """

    age: float
    fair_share: float
    max_age: float
    decay: float
    tree: bool
    tail: bool
    from_submission: bool
    billing: FloatArray
    largest: int


@by_pointer
class FairShares(NamedTuple):
    """A associations, accounts before what is below them; number 0 is root.

    Parameters
    ----------
    parent : int64 array (A,)
        -1 for root.
    is_user : uint8 array (A,)
        1 for a user, 0 for an account.
    share : float64 array (A,)
        Its part of what its siblings have together; NaN for a user that counts as its account does.
    children_from : int64 array (A + 1,)
        Where the children of each begin in ``children``.
    children : int64 array (A - 1,)
        Their order is changed.
    usage : float64 array (A,)
        Core seconds, or what is billed, decayed.
    factor : float64 array (A,)
        0 to 1, of users.
    level : float64 array (A,)
        Share over use, among siblings.
    """

    parent: Int64Array
    is_user: UInt8Array
    share: FloatArray
    children_from: Int64Array
    children: Int64Array
    usage: FloatArray
    factor: FloatArray
    level: FloatArray


@step
def new_priority(
    jobs: SlurmJobs, run: RunState, weights: PriorityWeights, shares: FairShares | None, job: int, time: int
) -> float:
    """Return the priority of a job at a time, a whole number.

    Parameters
    ----------
    jobs : SlurmJobs
    run : RunState
    weights : PriorityWeights
    shares : FairShares or None
    job, time : int
        Its number; seconds.
    """
    priority = jobs.fixed[job]
    if shares is not None:
        priority += weights.fair_share * shares.factor[jobs.association[job]]
    processors = run.seen_processors[jobs.first[job]]
    if processors > 0:
        priority += jobs.by_processor[job] * (processors - jobs.processors[job])
        share = jobs.even_share[job]
        beyond = max(processors, share) - max(jobs.processors[job], share)
        priority += jobs.by_processor_beyond_share[job] * beyond
    if run.seen[job] % RELEASED == 1:
        since = run.submit[job] if weights.from_submission else run.ready[job]
        priority += weights.age * min(max(time - since, 0) / weights.max_age, 1.0)
    return float(min(math.floor(max(priority, 1.0)), _LARGEST))


@step
def add_usage(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    weights: PriorityWeights,
    shares: FairShares | None,
    job: int,
    since: int,
) -> None:
    """Add what a job has used since a time to its association and all above, where that counts.

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    run : RunState
    weights : PriorityWeights
    shares : FairShares or None
        ``usage`` is changed.
    job, since : int
        Its number; seconds.
    """
    if shares is not None and weights.fair_share > 0:
        used = float(run.state[NOW] - max(run.start[job], since))
        cores = 0
        for entry in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
            cores += run.held_cores[entry]
        processors = cores * jobs.threads[job]
        billed = float(processors)
        if not math.isnan(weights.billing[jobs.partition[job], 0]):
            billed = _billed(jobs, machine, run, weights, job, processors)
        used *= weights.decay**used * billed * jobs.usage_factor[job]
        assoc = jobs.association[job]
        while assoc >= 0:
            shares.usage[assoc] += used
            assoc = shares.parent[assoc]


@step
def _billed(
    jobs: SlurmJobs, machine: SlurmMachine, run: RunState, weights: PriorityWeights, job: int, processors: int
) -> float:
    """Return what a running job counts in usage each second (assoc_mgr_tres_weighted)."""
    memory = gpus = 0
    for index in range(run.held_from[job], run.held_from[job] + run.held_count[job]):
        has = machine.has[run.held_node[index]]
        memory += taken_memory(jobs.request[job], has, run.held_cores[index])
        gpus += taken_gpus(jobs.request[job], has)
    weight, nodes = weights.billing[jobs.partition[job]], run.held_count[job]
    of_processors, of_memory = processors * weight[0], memory * weight[1]
    of_nodes, of_gpus = nodes * weight[2], gpus * weight[3]
    if weights.largest == 0:
        return float(of_processors + of_memory + of_nodes + of_gpus)
    largest = max(of_processors, of_memory, of_nodes, 0.0)
    return float(max(largest, of_gpus) if weights.largest == 1 else of_gpus + largest)


@kernel
def _calculate(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    weights: PriorityWeights,
    shares: FairShares | None,
    since: int,
) -> None:
    """Calculate usage, shares and the priority of every waiting job, and sort the queue.

    Parameters
    ----------
    jobs : SlurmJobs
    machine : SlurmMachine
    run : RunState
    weights : PriorityWeights
    shares : FairShares or None
    since : int
        When this was done last (s).
    """
    if shares is not None and weights.fair_share > 0:
        left = weights.decay ** float(run.state[NOW] - since)
        for assoc in range(len(shares.usage)):
            shares.usage[assoc] *= left
        for position in range(run.state[RUNNING]):
            add_usage(jobs, machine, run, weights, shares, run.running[position], since)
        if weights.tree:
            fair_tree(shares)
        else:
            no_fair_tree(shares)
    for position in range(run.state[WAITING]):
        job = run.waiting[position]
        run.priority[job] = new_priority(jobs, run, weights, shares, job, run.state[NOW])
    sort_queue(jobs, machine, run)


@step
def sort_queue(jobs: SlurmJobs, machine: SlurmMachine, run: RunState) -> None:
    """Sort the queue, which is nearly in order."""
    moved = False
    for index in range(1, run.state[WAITING]):
        job, position = run.waiting[index], index
        while position > 0 and is_ahead(jobs, machine, run, job, run.waiting[position - 1]):
            run.waiting[position] = run.waiting[position - 1]
            position -= 1
            moved = True
        run.waiting[position] = job
    run.state[VERSION] += moved


@kernel
def fair_tree(shares: FairShares) -> None:
    """Fill in the factors of users by Fair Tree: their rank in the tree, each level in the order of its levels.

    Parameters
    ----------
    shares : FairShares
        ``factor`` and ``level`` are filled in.
    """
    count = int(shares.is_user.sum())
    # From root down: the account, the next of its children, whether it was tied, and the level before.
    account = np.zeros(len(shares.parent) + 1, np.int64)
    next_child = np.zeros(len(shares.parent) + 1, np.int64)
    tied_from_above = np.zeros(len(shares.parent) + 1, np.uint8)
    before = np.full(len(shares.parent) + 1, -1.0)
    rank = untied = count
    depth = 0
    next_child[0] = shares.children_from[0]
    _sort_children(shares, 0)
    while depth >= 0:
        if next_child[depth] == shares.children_from[account[depth] + 1]:
            depth -= 1
            continue
        first = next_child[depth] == shares.children_from[account[depth]]
        child = shares.children[next_child[depth]]
        next_child[depth] += 1
        tied = (first and tied_from_above[depth] == 1) or before[depth] == shares.level[child]
        before[depth] = shares.level[child]
        if shares.is_user[child] == 1:
            if not tied:
                rank = untied
            shares.factor[child] = rank / count
            untied -= 1
        else:
            depth += 1
            account[depth], next_child[depth] = child, shares.children_from[child]
            tied_from_above[depth], before[depth] = tied, -1.0
            _sort_children(shares, child)


@inlined
def _sort_children(shares: FairShares, account: int) -> None:
    """Find the levels of the children of an account and sort them: highest first, users before accounts."""
    first, last = shares.children_from[account], shares.children_from[account + 1]
    total = shares.usage[account]
    for index in range(first, last):
        child = shares.children[index]
        use = shares.usage[child] / total if total > 0 else 0.0
        share = shares.share[child]
        if math.isnan(share) or (share > 0 and use == 0):
            shares.level[child] = math.inf
        else:
            shares.level[child] = share / use if share > 0 else 0.0
    for index in range(first + 1, last):
        child, position = shares.children[index], index
        while position > first:
            other = shares.children[position - 1]
            level, others = shares.level[child], shares.level[other]
            if others > level or (others == level and shares.is_user[other] >= shares.is_user[child]):
                break
            shares.children[position] = other
            position -= 1
        shares.children[position] = child


@kernel
def no_fair_tree(shares: FairShares) -> None:
    """Fill in the factors of users by the rule before Fair Tree, 2 ** -(effective usage / share of the cluster).

    Parameters
    ----------
    shares : FairShares
        ``factor`` is filled in.
    """
    n = len(shares.parent)
    whole, effective = np.ones(n), np.zeros(n)
    for assoc in range(1, n):
        above, share = shares.parent[assoc], shares.share[assoc]
        use = shares.usage[assoc] / shares.usage[0] if shares.usage[0] > 0 else 0.0
        if math.isnan(share):
            whole[assoc], effective[assoc] = whole[above], effective[above]
        else:
            whole[assoc] = whole[above] * share
            effective[assoc] = use if above == 0 else use + (effective[above] - use) * share
        shares.factor[assoc] = 2.0 ** -(effective[assoc] / whole[assoc]) if whole[assoc] > 0 else 0.0
