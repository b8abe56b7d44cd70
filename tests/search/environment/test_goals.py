"""Goals on a schedule that is worked by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.search.environment.goals import GOALS, check_goal, goal_of
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import Rules
from policyfactory.workload.jobs import Workload
from refusals import refused

# 4 processors. bsld: A 1, B (10 + 20)/20 = 1.5, C 2/10 -> 1, D 28/10 = 2.8. User 7 has A and B, user 3 has C, nobody D.
#
#         submit  start  end   q  user   w + p   (w + p)/p
#      A     0      0     12   1   7      12        1
#      C     0      0      2   2   3       2        1
#      B     2     12     32   3   7      30        1.5
#      D    12     32     40   4  -1      28        3.5
EXPECTED = {
    "mean_bsld": 6.3 / 4,
    "mean_wait": 30 / 4,
    "mean_turnaround": 72 / 4,
    "utilisation": 100 * 108 / 160,
    "mean_slowdown": 7 / 4,
    "utilisation_to_last_start": 100 * 108 / (4 * 32),
    "user_mean_bsld": (1.25 + 1) / 2,
    "user_max_bsld": 1.25,
}


def by_hand() -> Schedule:
    submit, start, end = np.array([0, 0, 2, 12]), np.array([0, 0, 12, 32]), np.array([12, 2, 32, 40])
    width, user, unknown = np.array([1, 2, 3, 4]), np.array([7, 3, 7, -1]), np.full(4, -1)
    jobs = Workload("hand", 4, np.arange(4), submit, end - start, np.full(4, 99), width, user, unknown)
    return Schedule(start, end, np.zeros(4, dtype=bool), jobs, "any", Rules())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_goal_by_hand(name: str) -> None:
    goal = goal_of(name)
    assert goal.value(by_hand()) == pytest.approx(EXPECTED[name], rel=1e-14)
    assert goal.cost(by_hand()) == pytest.approx(EXPECTED[name] * (1 if goal.lower_is_better else -1), rel=1e-14)


def test_every_goal_is_tested_and_described() -> None:
    assert set(GOALS) == set(EXPECTED)
    for name, goal in GOALS.items():
        assert goal.name == name
        assert goal.description
        assert goal.unit in {"s", "1", "%"}
    assert [name for name, goal in GOALS.items() if not goal.lower_is_better] == [
        "utilisation",
        "utilisation_to_last_start",
    ]


def test_a_goal_of_the_users_own() -> None:
    def longest(schedule: Schedule) -> float:
        return schedule.wait.max()

    goal = goal_of(longest)
    assert (goal.name, goal.value(by_hand()), goal.cost(by_hand())) == ("longest", 20, 20)
    assert goal_of(goal) is goal
    assert dataclasses.replace(goal, lower_is_better=False).cost(by_hand()) == -20


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (math.nan, "own nan hand"),
        ("much", "own str hand"),
        (None, "own NoneType hand"),
    ],
)
def test_a_goal_that_gives_no_number(made: object, message: str) -> None:
    def own(schedule: Schedule) -> object:
        return made

    refused(EvaluationError, message, goal_of(own).value, by_hand())


def test_an_unknown_goal() -> None:
    refused(UsageError, "speed mean_bsld", goal_of, "speed")
    assert goal_of(" Mean-Wait").name == "mean_wait"


@pytest.mark.parametrize("name", ["user_mean_bsld", "user_max_bsld"])
def test_a_goal_about_users_of_a_log_without_any(name: str) -> None:
    schedule = by_hand()
    nobody = dataclasses.replace(schedule.workload, user=np.full(4, -1))
    check_goal(goal_of(name), schedule.workload)
    refused(EvaluationError, "whose choose -1 hand", check_goal, goal_of(name), nobody)
    refused(EvaluationError, "say whose -1 hand", goal_of(name).value, dataclasses.replace(schedule, workload=nobody))
    check_goal(goal_of("mean_bsld"), nobody)
