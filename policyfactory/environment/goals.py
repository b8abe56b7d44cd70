"""What a learner is after: one number of a schedule, by name or by a function of the user's.

A goal alone can be met in ways that nobody wants: `policyfactory.environment.guards` has what is looked at beside it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TypeAlias

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.schedule import Schedule
from policyfactory.workload.jobs import Workload

__all__ = ["GOALS", "Goal", "GoalLike", "check_goal", "goal_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """A number of a schedule that is to be small, or large.

    Parameters
    ----------
    name : str
        What it is called.
    function : callable
        From a Schedule of at least one job to a number.
    lower_is_better : bool
        Which way is good.
    unit : str
        Its unit ("s", "%", "1").
    description : str
        The definition in one line.
    of_users : bool
        Whether it needs to know whose each job is.
    """

    name: str
    function: Callable[[Schedule], float]
    lower_is_better: bool = True
    unit: str = "1"
    description: str = ""
    of_users: bool = False

    def value(self, schedule: Schedule) -> float:
        """Return the number.

        Raises
        ------
        EvaluationError
            If it is none, or not finite.
        """
        made = self.function(schedule)
        try:
            value = float(made)
        except (TypeError, ValueError):
            raise EvaluationError(
                f"goal {self.name} returned a {type(made).__name__} for {schedule.workload.name}; a goal takes a "
                "Schedule and returns one number"
            ) from None
        if not math.isfinite(value):
            raise EvaluationError(
                f"goal {self.name} is {value} for {schedule.workload.name}; return a finite number for every schedule"
            )
        return value

    def cost(self, schedule: Schedule) -> float:
        """Return the number with the sign that makes less better; a reward is minus the cost."""
        value = self.value(schedule)
        return value if self.lower_is_better else -value


GoalLike: TypeAlias = str | Goal | Callable[[Schedule], float]


def _check_users(workload: Workload) -> None:
    if (workload.user >= 0).any():
        return
    others = ", ".join(name for name, goal in GOALS.items() if not goal.of_users)
    raise EvaluationError(
        f"{workload.name}: the log does not say whose its jobs are (user -1), and this goal is about users; choose "
        f"another goal ({others}) or give a log with users"
    )


def _metric(name: str) -> Goal:
    metric = METRICS[name]
    of_users = name.startswith("user_")

    def value(schedule: Schedule) -> float:
        if of_users:
            _check_users(schedule.workload)
        return metric.function(schedule)

    return Goal(name, value, bool(metric.lower_is_better), metric.unit, metric.description, of_users)


# utilisation_to_last_start is that of the RLScheduler paper, for mode paper: what comes later does not count.
_NAMES = (
    "mean_bsld", "mean_wait", "mean_turnaround", "utilisation", "mean_slowdown", "user_mean_bsld", "user_max_bsld",
    "utilisation_to_last_start",
)  # fmt: skip
GOALS: dict[str, Goal] = {name: _metric(name) for name in _NAMES}


def goal_of(goal: GoalLike) -> Goal:
    """Return the goal of a name, or a user's: a `Goal`, or a function of a Schedule whose number is to be small.

    Raises
    ------
    UsageError
        If there is no such goal.
    """
    if isinstance(goal, Goal):
        return goal
    if callable(goal):
        return Goal(getattr(goal, "__name__", type(goal).__name__), goal, description="a function of the user's")
    name = str(goal).strip().lower().replace("-", "_")
    if name not in GOALS:
        names = ", ".join(GOALS)
        raise UsageError(f"there is no goal {goal!r}; choose one of {names}, or give a function of a Schedule")
    return GOALS[name]


def check_goal(goal: Goal, workload: Workload) -> None:
    """Refuse a goal that the log cannot give, before anything is simulated.

    Raises
    ------
    EvaluationError
        If it is about users and the log names none.
    """
    if goal.of_users:
        _check_users(workload)
