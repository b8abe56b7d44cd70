"""Conservative backfilling on machines of several resources: a reservation for every queued job, planned at each pass.

The rule is that of `policyfactory.engine.conservative`. Each reservation is made at the earliest time at which the job
has its counters, and enough nodes that have what it asks for, for its whole estimate; the nodes are those that it fits
on all that time, taken as they are packed at its beginning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import Int64Array, UInt8Array
from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.conservative import queue_of, smallest_behind
from policyfactory.engine.events import FREE, NOW, OVERDUE, SMALLEST, STARTED, Jobs, Order, advance
from policyfactory.engine.placement import Nodes, has_room
from policyfactory.engine.resources import Demand, Machine, ask_of, complete_on, start_placed
from policyfactory.engine.running import PREDICTED, WIDTH
from policyfactory.engine.sliding import BOUNDS, HIGH, LOW
from policyfactory.engine.waiting import (
    Formula,
    Space,
    close_gaps,
    count_overdue,
    new_space,
    score_waiting,
    submit_all,
)

__all__ = ["conservative_on", "resources_conservative"]


class _Plan(NamedTuple):
    """What is free over time, in steps: each lasts to the next one, the last for ever.

    Parameters
    ----------
    time : int64 array (S,)
        When each begins; the first is now.
    counters : int64 array (S, R)
        Free of each counter.
    free : int64 array (S, N)
        Free on each node, packed.
    usable : uint8 array (N,)
        Work space: the nodes on which a job fits in all steps that were looked at.
    """

    time: Int64Array
    counters: Int64Array
    free: Int64Array
    usable: UInt8Array


def resources_conservative(
    jobs: Jobs, scored: Jobs, demand: Demand, machine: Machine, formula: Formula, order: Order, processors: int
) -> None:
    """Fill in the start of each job, whether it was started ahead of one that stayed waiting, and its nodes.

    Parameters
    ----------
    jobs, scored, demand, machine, order, processors
        As for `policyfactory.engine.resources_timed.resources_timed`.
    formula : Formula
        The order of the queue.
    """
    space = new_space(len(jobs.submit), processors, formula.depth)
    conservative_on(jobs, scored, demand, machine, space, formula, order, processors)


@kernel
def conservative_on(
    jobs: Jobs,
    scored: Jobs,
    demand: Demand,
    machine: Machine,
    space: Space,
    formula: Formula,
    order: Order,
    processors: int,
) -> None:
    """Run until all jobs are started.

    Parameters
    ----------
    jobs, scored, demand, machine, formula, order, processors
        As for `resources_conservative`.
    space : Space
        Where the run stands.
    """
    state, heap, running, waiting, all_scores, work = space
    scores = all_scores[0]
    while state[STARTED] < len(jobs.submit) and advance(jobs, state, heap):
        complete_on(jobs, demand, machine, state, heap, running)
        submit_all(jobs, state, waiting)
        if state[FREE] < state[SMALLEST]:
            continue
        score_waiting(scored, state, waiting, formula, (order.ticks, processors), work, scores)
        count_overdue(jobs, state, waiting, order.threshold)
        queue = queue_of(waiting, scores, state[OVERDUE], order)
        steps = running[BOUNDS, HIGH] - running[BOUNDS, LOW] + len(queue) + 2
        plan = _Plan(
            np.empty(steps, np.int64),
            np.empty((steps, len(machine.counters)), np.int64),
            np.empty((steps, len(machine.nodes.free)), np.int64),
            np.empty(len(machine.nodes.free), np.uint8),
        )
        _make(jobs, demand, machine, state, heap, running, queue, smallest_behind(jobs, queue), plan)
        close_gaps(jobs, state, waiting)


@inlined
def _make(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    queue: Int64Array,
    smallest: Int64Array,
    plan: _Plan,
) -> None:
    """Make the reservations in order and start the jobs whose reservation begins now."""
    steps = _begin(demand, machine, state, running, plan)
    stayed = False
    for at in range(len(queue)):
        # What is reserved does not begin now: what has started is all that is gone.
        if state[FREE] < smallest[at]:
            return
        job = queue[at]
        length = max(jobs.estimate[job], 1)
        first, last = _earliest(demand, machine.nodes, plan, steps, job, length)
        begin = plan.time[first]
        _choose(demand, machine.nodes, plan, first, job)
        steps = _take(demand, machine.nodes, plan, steps, first, last, begin + length, job)
        if begin > state[NOW]:
            stayed = True
            continue
        start_placed(jobs, demand, machine, state, heap, running, job)
        jobs.backfilled[job] = stayed


@inlined
def _begin(demand: Demand, machine: Machine, state: Int64Array, running: Int64Array, plan: _Plan) -> int:
    """Fill in what is free by the estimates of the running jobs; return the number of steps.

    A job that has outlived its estimate counts as ending at the next tick.
    """
    nodes, last = machine.nodes, 0
    plan.time[0] = state[NOW]
    for counter in range(len(machine.counters)):
        plan.counters[0, counter] = machine.counters[counter]
    for node in range(len(nodes.free)):
        plan.free[0, node] = nodes.free[node]
    for at in range(running[BOUNDS, LOW], running[BOUNDS, HIGH]):
        job, end = running[WIDTH, at], max(running[PREDICTED, at], state[NOW] + 1)
        if end > plan.time[last]:
            _copy(plan, last, last + 1)
            last += 1
            plan.time[last] = end
        _change(demand, nodes, plan, last, job, 1)
    return last + 1


@inlined
def _copy(plan: _Plan, source: int, to: int) -> None:
    plan.time[to] = plan.time[source]
    for counter in range(plan.counters.shape[1]):
        plan.counters[to, counter] = plan.counters[source, counter]
    for node in range(plan.free.shape[1]):
        plan.free[to, node] = plan.free[source, node]


@inlined
def _change(demand: Demand, nodes: Nodes, plan: _Plan, step: int, job: int, sign: int) -> None:
    """Give back what a job holds in a step (``sign`` 1), or take it (-1)."""
    for counter in range(plan.counters.shape[1]):
        plan.counters[step, counter] += sign * demand.counters[job, counter]
    first = demand.first[job]
    for at in range(first, first + demand.nodes[job]):
        node = nodes.placed[at]
        plan.free[step, node] += sign * (nodes.capacity[node] if demand.whole[job] else demand.on_each[job])


@inlined
def _earliest(demand: Demand, nodes: Nodes, plan: _Plan, steps: int, job: int, length: int) -> tuple[int, int]:
    """Return the first and the last step of the earliest place for a job; `_Plan.usable` says on which nodes."""
    ask, count = ask_of(demand, job), demand.nodes[job]
    first = last = 0
    plan.usable[:] = 1
    while True:
        enough = True
        for counter in range(plan.counters.shape[1]):
            enough &= demand.counters[job, counter] <= plan.counters[last, counter]
        if not enough:
            first = last = last + 1
            plan.usable[:] = 1
            continue
        left = 0
        for node in range(len(plan.usable)):
            plan.usable[node] &= has_room(plan.free[last, node], nodes.capacity[node], nodes.guard, ask)
            left += plan.usable[node]
        if left < count:
            # Others may be free from the next step on.
            first += 1
            last = first
            plan.usable[:] = 1
        elif last + 1 == steps or plan.time[last + 1] >= plan.time[first] + length:
            return first, last
        else:
            last += 1


@inlined
def _choose(demand: Demand, nodes: Nodes, plan: _Plan, first: int, job: int) -> None:
    """Write down the nodes of a job: of those that it may use the first ones, or those with the fewest processors."""
    to, end = demand.first[job], demand.first[job] + demand.nodes[job]
    level = 0
    while to < end:
        for node in range(len(plan.usable)):
            chosen = to < end and plan.usable[node] == 1
            if chosen and (not nodes.best_fit or (plan.free[first, node] & nodes.mask) == level):
                nodes.placed[to] = node
                to += 1
        level += 1


@inlined
def _take(demand: Demand, nodes: Nodes, plan: _Plan, steps: int, first: int, last: int, end: int, job: int) -> int:
    """Take what a job asks for from step ``first`` to time ``end``, in step ``last``; return the number of steps."""
    if last + 1 == steps or plan.time[last + 1] > end:
        for at in range(steps, last, -1):
            _copy(plan, at - 1, at)
        plan.time[last + 1] = end
        steps += 1
    for at in range(first, last + 1):
        _change(demand, nodes, plan, at, job, -1)
    return steps
