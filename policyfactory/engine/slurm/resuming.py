"""A run under Slurm's rules that begins in the midst: some jobs run already, others wait."""

from __future__ import annotations

from policyfactory.core.jit import kernel
from policyfactory.core.options import Int64Array
from policyfactory.engine.slurm.holding import part_blocks, start_job
from policyfactory.engine.slurm.jobs import SlurmJobs, SlurmMachine, SlurmSettings
from policyfactory.engine.slurm.passes import _change_nodes, _submit
from policyfactory.engine.slurm.priority import FairShares, PriorityWeights, new_priority, sort_queue
from policyfactory.engine.slurm.state import (
    CALCULATED,
    CHANGED,
    FULL,
    GOES_ON,
    MAIN,
    NOW,
    PASSED,
    PENDING,
    READY,
    STOPPED,
    UNSEEN,
    WAITING,
    RunState,
    divide_nodes,
)


@kernel
def resume(
    jobs: SlurmJobs,
    machine: SlurmMachine,
    run: RunState,
    settings: SlurmSettings,
    weights: PriorityWeights,
    shares: FairShares | None,
    start: Int64Array,
    parts_from: Int64Array,
    node: Int64Array,
    cores: Int64Array,
) -> None:
    """Let the first jobs run that started before ``settings.origin``, and put those into the queue that wait then.

    Nodes that went by then are away. The age of those in the queue counts; the main pass is made at once, others and
    calculations of priorities are counted from the origin. Call `policyfactory.engine.slurm.passes.slurm` to go on.

    Parameters
    ----------
    jobs : SlurmJobs
        The running ones first.
    machine : SlurmMachine
    run : RunState
        As `new_run` gives it.
    settings : SlurmSettings
    weights : PriorityWeights
    shares : FairShares or None
    start : int64 array (k,)
        When each of the running ones started (s). They end after the origin by their run times, or are killed then.
    parts_from : int64 array (k + 1,)
        Where the nodes of each begin in ``node``.
    node, cores : int64 array (C,)
        Nodes, and the job's cores there.
    """
    state, choice = run.state, run.choice
    for job in range(len(start)):
        state[NOW] = start[job]
        divide_nodes(machine, run)
        first, count = parts_from[job], parts_from[job + 1] - parts_from[job]
        for part in range(count):
            choice.node[part], choice.many[part], choice.cores[part] = node[first + part], 1, cores[first + part]
        choice.parts[0] = count
        part_blocks(run.plan, run.blocks, choice)
        start_job(jobs, machine, run, settings, job, count, 0)
    state[NOW] = state[PASSED] = state[MAIN] = state[FULL] = state[CALCULATED] = settings.origin
    state[CHANGED] = settings.origin
    state[READY], state[STOPPED] = len(start), GOES_ON
    _change_nodes(jobs, machine, run, settings, weights, shares)
    _submit(jobs, machine, run, settings, weights, shares)
    for position in range(state[WAITING]):
        job = run.waiting[position]
        run.seen[job] = 1
        run.priority[job] = new_priority(jobs, run, weights, shares, job, settings.origin)
    sort_queue(jobs, machine, run)
    state[UNSEEN] = 0
    # What was submitted last may not have been looked at.
    state[PENDING], state[MAIN] = 1, settings.origin - settings.batch_delay
