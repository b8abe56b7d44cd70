"""Jobs of the queues of a schedule, and a network explained over them."""

from __future__ import annotations

import numpy as np
import pytest

from naive.network import random_network
from policyfactory.core.errors import UsageError
from policyfactory.policy.policy import Policy
from policyfactory.simulation.explained import explain_network, queued_jobs
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from refusals import refused
from snapshots import snapshot


def four_jobs(ticks: int = 1) -> Workload:
    """A machine of four: the first job takes it all for 10 s, three wait for it."""
    columns = [[0, 1, 2, 3], [10, 5, 6, 7], [10, 8, 8, 8], [4, 2, 2, 4]]
    submit, run_time, request, width = (np.array(column) for column in columns)
    unknown = np.full(4, -1)
    times = (column * ticks for column in (submit, run_time, request))
    return Workload("four", 4, np.arange(1, 5), *times, width, unknown, unknown, ticks=ticks)


@pytest.mark.parametrize("ticks", [1, 1000])
def test_who_waits_and_what_is_free(ticks: int) -> None:
    schedule = simulate(four_jobs(ticks), "FCFS", backfill="none")
    assert (schedule.start // ticks).tolist() == [0, 10, 10, 16]
    jobs = queued_jobs(schedule)
    # At 0 the first alone; at 10, when its processors are free again, the other three; at 16 the last.
    assert jobs.w.tolist() == [0, 9, 8, 7, 13]
    assert jobs.q.tolist() == [4, 2, 2, 4, 4]
    assert jobs.p.tolist() == [10, 8, 8, 8, 8]
    assert jobs.f.tolist() == [4, 4, 4, 4, 4]
    snapshot(jobs.about)
    assert queued_jobs(schedule, instants=2, each=1).w.tolist() == [0, 13]


def test_free_processors_beside_running_jobs() -> None:
    schedule = simulate(four_jobs(), "FCFS", backfill="none")
    shifted = four_jobs().select(np.array([1, 2]))
    assert queued_jobs(simulate(shifted, "FCFS")).f.tolist() == [4, 2]
    assert len(queued_jobs(schedule)) == 5


def test_a_network_over_a_log() -> None:
    policy = Policy.from_network(random_network(1))
    effects = explain_network(policy, four_jobs())
    snapshot(effects.jobs.about, explain_network(policy).jobs.about)
    refused(UsageError, "SAF network --job", explain_network, "SAF")
    nobody = four_jobs().select(np.array([], dtype=np.intp))
    refused(UsageError, "job 0", explain_network, policy, nobody)
