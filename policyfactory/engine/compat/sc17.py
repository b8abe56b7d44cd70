"""The scheduler of the programs of paper 004 (SC'17), with all that is particular to it.

Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation and machine learning", SC 2017,
run on SimGrid 3.13. Its rules are in docs/sc17.md: a window of 32 jobs, the first 16 jobs in the order of the log,
backfilling one job at a time, 2.61 ms for each dispatch. The twin in tests/naive/sc17.py follows them line by line.
"""

from __future__ import annotations

from policyfactory.core.jit import inlined, kernel
from policyfactory.engine.compat.sc17_backfill import Picks, bring_forward, new_picks
from policyfactory.engine.compat.sc17_events import (
    ARRIVED,
    DELAY,
    FREE,
    LATENCY,
    PLACE,
    Sc17Jobs,
    Sc17Space,
    go_on_to,
    new_space,
    next_event,
    put_running,
    somebody_runs,
)
from policyfactory.engine.compat.sc17_order import Sc17Order, sort_visible

__all__ = ["FIRST_JOBS", "sc17"]

# Jobs that go in the order of the log, and that no value counts.
FIRST_JOBS = 16


def sc17(jobs: Sc17Jobs, order: Sc17Order, machine: int) -> None:
    """Fill in the start and end of each job, and whether it was backfilled.

    Parameters
    ----------
    jobs : Sc17Jobs
        In the order of the log; ``start``, ``end`` and ``backfilled`` are filled in.
    order : Sc17Order
        What decides between jobs.
    machine : int
        Processors, at least those of any job.
    """
    space = new_space(len(jobs.submit), machine, backfill=order.backfill)
    _run(jobs, space, order, new_picks(space))


@kernel
def _run(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, picks: Picks) -> None:
    state = space.state
    for place in range(len(jobs.submit)):
        state[PLACE] = place
        _wait_for_head(jobs, space, order, picks)
        job = space.queue[place]
        state[FREE] -= jobs.processors[job]
        start = space.clock[0] + DELAY
        go_on_to(jobs, space, space.clock[0] + LATENCY)
        go_on_to(jobs, space, start)
        put_running(jobs, space, job)
    while somebody_runs(space):
        next_event(jobs, space)


@inlined
def _wait_for_head(jobs: Sc17Jobs, space: Sc17Space, order: Sc17Order, picks: Picks) -> None:
    """Go on until the job that is to be dispatched next has come and fits."""
    state, place = space.state, space.state[PLACE]
    while True:
        count = min(state[ARRIVED], place + order.visible) - place
        if place >= FIRST_JOBS and count > 1:
            sort_visible(jobs, space, order, count)
            if order.backfill:
                bring_forward(jobs, space, picks, count)
        job = space.queue[place]
        woken = False
        if state[ARRIVED] <= place:
            go_on_to(jobs, space, jobs.submit[job])
            # Several that arrive in the second that was waited for wake the dispatcher up at once.
            woken = state[ARRIVED] > place + 1
        if state[FREE] >= jobs.processors[job]:
            return
        if not woken:
            next_event(jobs, space)
