"""What the schedulers of machines with several resources share: what jobs ask for, what is free, starts, reservations.

A job asks for some of each counter of the machine as a whole and, where the machine has nodes, for a number of nodes
and something on each of them (`policyfactory.engine.placement`). It fits if both do. A machine without nodes is a pool,
one without counters has nodes only, and licences are counters beside nodes.

Two facts on which `policyfactory.engine.easy` builds hold here as well. A job behind the head that may not start in a
pass may not until a job completes: what is free, and what is left over at the shadow time, only shrinks, and a start
that makes a node useless to the head, so that others may take it freely, takes one of the nodes that the head can
spare, so that nobody has gained. And no start behind the head moves its reservation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.jit import inlined
from policyfactory.engine.events import EXTRA, FREE, NEVER, NOW, SHADOW, STARTED, VALID, Jobs
from policyfactory.engine.placement import (
    NO_HEAD,
    Ask,
    Nodes,
    choose_nodes,
    count_fitting,
    count_spared,
    forget_refused,
    give_back,
    is_refused,
    may_fit,
    note_refused,
    release_nodes,
    take_nodes,
)
from policyfactory.engine.running import PREDICTED, WIDTH, next_end, pop_end, put_running, take_running
from policyfactory.engine.sliding import BOUNDS, HIGH, LOW

__all__ = [
    "Demand",
    "Machine",
    "ask_of",
    "complete_on",
    "fits_now",
    "is_hopeless",
    "leaves_the_head",
    "reserve_on",
    "start_behind",
    "start_on",
    "start_placed",
]


class Demand(NamedTuple):
    """What each job asks for.

    Parameters
    ----------
    counters : int64 array (n, R)
        Of each counter.
    nodes : int64 array (n,)
        Nodes; 0 where the machine has none.
    on_each : int64 array (n,)
        On each of them, packed.
    whole : bool array (n,)
        Whether it takes all of its nodes.
    first : int64 array (n,)
        From where on in ``Nodes.placed`` its nodes are written.
    """

    counters: Int64Array
    nodes: Int64Array
    on_each: Int64Array
    whole: NDArray[np.bool_]
    first: Int64Array


class Machine(NamedTuple):
    """What of the machine is free.

    Parameters
    ----------
    counters : int64 array (R,)
        Free now.
    extra : int64 array (R,)
        Free at the shadow time besides what the head takes.
    nodes : Nodes
        The nodes, if it has any.
    """

    counters: Int64Array
    extra: Int64Array
    nodes: Nodes


@inlined
def ask_of(demand: Demand, job: int) -> Ask:
    """Return what a job asks for on each of its nodes."""
    return Ask(demand.on_each[job], demand.whole[job])


@inlined
def fits_now(demand: Demand, machine: Machine, job: int) -> bool:
    """Say whether what is free now is enough for ``job``."""
    for at in range(len(machine.counters)):
        if demand.counters[job, at] > machine.counters[at]:
            return False
    count = demand.nodes[job]
    if count == 0:
        return True
    ask = ask_of(demand, job)
    return bool(may_fit(machine.nodes, ask, count) and count_fitting(machine.nodes, ask) >= count)


@inlined
def start_on(
    jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, heap: Int64Array, running: Int64Array, job: int
) -> None:
    """Start ``job``, which must fit, with no head ahead of it."""
    _start(jobs, demand, machine, state, heap, running, job, NO_HEAD)


@inlined
def start_behind(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    job: int,
    head: int,
) -> None:
    """Start ``job``, which must fit and leave ``head`` its reservation."""
    lasts = state[NOW] + jobs.estimate[job] > state[SHADOW]
    if lasts:
        for at in range(len(machine.extra)):
            machine.extra[at] -= demand.counters[job, at]
    jobs.backfilled[job] = True
    minded = ask_of(demand, head) if lasts else NO_HEAD
    _start(jobs, demand, machine, state, heap, running, job, minded)


@inlined
def _start(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    job: int,
    head: Ask,
) -> None:
    count, first = demand.nodes[job], demand.first[job]
    if count > 0:
        choose_nodes(machine.nodes, first, first + count, ask_of(demand, job), head)
    _hold(jobs, demand, machine, state, heap, running, job, head)


@inlined
def start_placed(
    jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, heap: Int64Array, running: Int64Array, job: int
) -> None:
    """Start ``job``, whose nodes are written down and which fits on them, with no head ahead of it."""
    _hold(jobs, demand, machine, state, heap, running, job, NO_HEAD)


@inlined
def _hold(
    jobs: Jobs,
    demand: Demand,
    machine: Machine,
    state: Int64Array,
    heap: Int64Array,
    running: Int64Array,
    job: int,
    head: Ask,
) -> None:
    for at in range(len(machine.counters)):
        machine.counters[at] -= demand.counters[job, at]
    cores, lost, count = jobs.processors[job], 0, demand.nodes[job]
    if count > 0:
        first, ask = demand.first[job], ask_of(demand, job)
        cores, lost = take_nodes(machine.nodes, first, first + count, ask, head)
    state[FREE] -= cores
    state[EXTRA] -= lost
    jobs.start[job] = state[NOW]
    end, predicted = state[NOW] + jobs.run_time[job], state[NOW] + jobs.estimate[job]
    # The table of running jobs has their numbers where others have processors.
    put_running(heap, running, end, job, predicted, job)
    state[STARTED] += 1


@inlined
def complete_on(
    jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, heap: Int64Array, running: Int64Array
) -> bool:
    """Free what every job holds that ends now; say whether there was one."""
    any_ended = False
    while next_end(heap, NEVER) <= state[NOW]:
        job = pop_end(heap)
        take_running(running, jobs.start[job] + jobs.estimate[job], job)
        for at in range(len(machine.counters)):
            machine.counters[at] += demand.counters[job, at]
        cores, count = jobs.processors[job], demand.nodes[job]
        if count > 0:
            first = demand.first[job]
            cores = release_nodes(machine.nodes, first, first + count, ask_of(demand, job))
        state[FREE] += cores
        any_ended = True
    return any_ended


@inlined
def reserve_on(demand: Demand, machine: Machine, state: Int64Array, running: Int64Array, head: int) -> None:
    """Reserve the earliest time at which ``head``, which does not fit now, fits by the running jobs' estimates.

    ``SHADOW`` is that time, ``EXTRA`` how many nodes are useful to the head then beyond its need.
    """
    nodes, extra, ask = machine.nodes, machine.extra, ask_of(demand, head)
    for at in range(len(extra)):
        extra[at] = machine.counters[at] - demand.counters[head, at]
    needed, useful = demand.nodes[head], 0
    if needed > 0:
        for node in range(len(nodes.free)):
            nodes.later[node] = nodes.free[node]
        useful = count_fitting(nodes, ask)
    at, high, shadow = running[BOUNDS, LOW], running[BOUNDS, HIGH], state[NOW]
    enough = False
    # All that are predicted to end by then count.
    while at < high and (not enough or running[PREDICTED, at] <= shadow):
        job = running[WIDTH, at]
        for counter in range(len(extra)):
            extra[counter] += demand.counters[job, counter]
        if needed > 0:
            first = demand.first[job]
            useful += give_back(nodes, first, first + demand.nodes[job], ask_of(demand, job), ask)
        if not enough:
            shadow = max(running[PREDICTED, at], shadow)
            enough = useful >= needed and _is_enough(extra)
        at += 1
    forget_refused(nodes)
    state[SHADOW] = shadow
    state[EXTRA] = useful - needed
    state[VALID] = 1


@inlined
def _is_enough(extra: Int64Array) -> bool:
    enough = True
    for at in range(len(extra)):
        enough &= extra[at] >= 0
    return bool(enough)


@inlined
def is_hopeless(jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, job: int) -> bool:
    """Say whether ``job`` is known to delay the head, without a look at the nodes; the reservation must be made."""
    if state[NOW] + jobs.estimate[job] <= state[SHADOW]:
        return False
    for at in range(len(machine.extra)):
        if demand.counters[job, at] > machine.extra[at]:
            return True
    count = demand.nodes[job]
    return bool(count > state[EXTRA] and is_refused(machine.nodes, ask_of(demand, job), count))


@inlined
def leaves_the_head(jobs: Jobs, demand: Demand, machine: Machine, state: Int64Array, job: int, head: int) -> bool:
    """Say whether ``job``, which fits now, can start so that ``head`` fits at the shadow time all the same."""
    if state[NOW] + jobs.estimate[job] <= state[SHADOW]:
        return True
    if is_hopeless(jobs, demand, machine, state, job):
        return False
    count, ask = demand.nodes[job], ask_of(demand, job)
    if count <= state[EXTRA] or count - count_spared(machine.nodes, ask, ask_of(demand, head)) <= state[EXTRA]:
        return True
    note_refused(machine.nodes, ask, count)
    return False
