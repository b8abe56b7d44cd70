"""Switching simulations worked by hand: when a new policy takes effect, what is known when, and what is refused."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.simulation.tuning.tuner import SwitchingSimulation, simulate_periods
from policyfactory.workload.jobs import Workload
from refusals import refused

FCFS, LCFS, SPF = resolve("FCFS"), resolve("LCFS"), resolve("SPF")


def queue_of(**columns: list[int]) -> Workload:
    """Return jobs for a machine of four; by default four jobs of the whole machine, the first of 10 s."""
    given = {
        "job_id": [1, 2, 3, 4],
        "submit": [0, 1, 2, 3],
        "run_time": [10, 9, 8, 7],
        "processors": [4, 4, 4, 4],
        **columns,
    }
    given.setdefault("requested_time", given["run_time"])
    unknown = np.full(len(given["job_id"]), -1)
    arrays = {name: np.array(values) for name, values in given.items()}
    return Workload("queue", 4, user=unknown, start=unknown, **arrays)


def test_an_event_at_the_switch_belongs_to_the_new_policy() -> None:
    # Job 1 ends at 10. A switch at 10 comes before that event, one at 11 after it.
    for switch, second in ((10, 3), (11, 1)):
        simulation = SwitchingSimulation(queue_of(), [FCFS, LCFS])
        simulation.run_timetable([0, 1], [0, switch, 100])
        assert simulation.start.tolist().index(10) == second


def test_a_switch_is_no_event() -> None:
    # Strict order: behind job 2, which needs all four, job 3 could run at once in another order; but nobody looks
    # between the events at 2 and at 10.
    jobs = queue_of(processors=[2, 4, 2, 2], submit=[0, 1, 2, 12], run_time=[10, 9, 3, 1])
    simulation = SwitchingSimulation(jobs, [FCFS, SPF], Rules(backfill="none"))
    simulation.run(0, 5)
    assert simulation.start.tolist() == [0, -1, -1, -1]
    simulation.run(1, 10)
    assert simulation.start.tolist() == [0, -1, -1, -1]
    assert simulation.now == 2
    simulation.run(1, 11)
    assert simulation.start.tolist() == [0, -1, 10, -1]


def test_what_is_known_on_the_way() -> None:
    simulation = SwitchingSimulation(queue_of(), [FCFS, LCFS])
    assert (simulation.now, simulation.finished) == (0, False)
    simulation.run(0, 12)
    assert simulation.start.tolist() == [0, 10, -1, -1]
    assert simulation.end.tolist() == [10, 19, -1, -1]
    assert simulation.ended(0, 10).tolist() == []
    assert simulation.ended(0, 12).tolist() == [0]
    refused(UsageError, "10 finished half", simulation.schedule, "half")
    with pytest.raises(ValueError, match="read-only"):
        simulation.start[0] = 1
    simulation.run(1)
    assert simulation.finished
    assert simulation.ended(12, 100).tolist() == [1, 2, 3]
    # Backwards again.
    assert simulation.ended(0, 20).tolist() == [0, 1]
    schedule = simulation.schedule("both")
    assert (schedule.policy_name, schedule.start.tolist()) == ("both", [0, 10, 26, 19])
    assert not schedule.backfilled.any()


def test_rows_are_those_of_the_workload() -> None:
    # The engine has jobs of one instant by job id.
    jobs = queue_of(job_id=[4, 3, 2, 1], submit=[0, 0, 0, 0])
    simulation = SwitchingSimulation(jobs, [FCFS])
    simulation.run(0, 8)
    assert simulation.start.tolist() == [-1, -1, 7, 0]
    assert simulation.ended(0, 8).tolist() == [3]
    simulation.run(0)
    np.testing.assert_array_equal(simulation.schedule("x").start, simulate(jobs, FCFS).start)
    np.testing.assert_array_equal(simulation.end, simulate(jobs, FCFS).end)


def test_each_policy_brings_its_own_threshold() -> None:
    # Job 2 is overdue under the patient order too, but only while the impatient one is in force it goes first.
    patient, impatient = LCFS, dataclasses.replace(LCFS, name="impatient", threshold=5.0)
    for arm, first in ((0, 3), (1, 1)):
        simulation = SwitchingSimulation(queue_of(), [patient, impatient])
        simulation.run(1, 9)
        simulation.run(arm)
        assert simulation.start.tolist().index(10) == first
    # That of the rules goes before.
    simulation = SwitchingSimulation(queue_of(), [patient, impatient], Rules(threshold=1000))
    simulation.run(1)
    assert simulation.start.tolist().index(10) == 3


def test_a_period_is_simulated_alone() -> None:
    jobs = queue_of(submit=[0, 5, 20, 21])
    # Job 2 waits for job 1; jobs 3 and 4 meet an empty machine.
    costs = simulate_periods(jobs, [FCFS, LCFS], None, [0, 20, 40])
    assert costs.tolist() == [[5, 5], [7, 7]]
    # Of jobs outside all periods nothing is known; a period without jobs costs nothing.
    assert simulate_periods(jobs, [FCFS], None, [5, 6, 7, 21]).tolist() == [[0], [0], [0]]
    assert simulate_periods(jobs, [FCFS], None, [7]).shape == (0, 1)
    tenths = dataclasses.replace(jobs, ticks=10)
    assert simulate_periods(tenths, [FCFS], None, [0, 20, 40]).tolist() == [[0.5], [0.7]]


def test_periods_under_rules_without_a_kernel_of_their_own() -> None:
    jobs = queue_of(submit=[0, 5, 20, 21])
    rules = Rules(backfill="conservative", decide_by="prediction")
    costs = simulate_periods(jobs, [FCFS, LCFS], rules, [0, 20, 40], jobs.run_time)
    assert costs.tolist() == [[5, 5], [7, 7]]


def test_r_counts_from_the_first_job_of_a_period() -> None:
    # -(r - 20)**2 ranks the jobs of the second period by their distance from 20 after its first job.
    odd = Policy(name="odd", formula="abs(r - 20)")
    jobs = queue_of(job_id=[1, 2, 3, 4, 5], submit=[0, 1, 100, 101, 119], run_time=[30] * 5, processors=[4] * 5)
    part = jobs.select(slice(2, 5))
    alone = simulate(part, odd).start - part.submit
    assert simulate_periods(jobs, [odd], None, [0, 100, 200])[1, 0] == alone.sum()


def test_an_empty_workload() -> None:
    none = queue_of(job_id=[], submit=[], run_time=[], processors=[])
    simulation = SwitchingSimulation(none, [FCFS, resolve("WFP3")])
    assert simulation.finished
    simulation.run(1, 100)
    assert len(simulation.schedule("none")) == 0
    assert simulate_periods(none, [FCFS, resolve("WFP3")], None, [0, 10]).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda jobs: SwitchingSimulation(jobs, []), UsageError, "least one"),
        (
            lambda jobs: SwitchingSimulation(jobs, [FCFS], Rules(backfill="conservative")),
            UsageError,
            "under backfill conservative",
        ),
        (lambda jobs: SwitchingSimulation(jobs, [FCFS], Rules(compatibility="sc17")), UsageError, "sc17 compatibility"),
        (lambda jobs: SwitchingSimulation(jobs, [FCFS]).run(1, 5), UsageError, "1 policy"),
        (lambda jobs: SwitchingSimulation(jobs, [FCFS]).run(-1, 5), UsageError, "-1 policy"),
        (lambda jobs: SwitchingSimulation(jobs, [FCFS]).run_timetable([0], [0, 1, 2]), UsageError, "1 3 choices"),
        (
            lambda jobs: SwitchingSimulation(jobs, [FCFS]).run_timetable([0, 0], [0, 2, 1]),
            UsageError,
            "ascending edges",
        ),
        (lambda jobs: simulate_periods(jobs, [FCFS], None, [3, 1]), UsageError, "rise"),
        (
            lambda jobs: SwitchingSimulation(jobs, [FCFS], Rules(decide_by="prediction")),
            EvaluationError,
            "decisions prediction need",
        ),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], words: str) -> None:
    refused(error, words, call, queue_of())


def test_an_infinite_threshold_is_none() -> None:
    simulation = SwitchingSimulation(queue_of(), [LCFS], Rules(compatibility="ocst", threshold=math.inf))
    simulation.run(0)
    assert simulation.start.tolist() == [0, 25, 17, 10]
