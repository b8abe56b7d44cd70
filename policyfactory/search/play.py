"""Windows that are played again and again: whatever does not depend on the policy is prepared once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.environment.goals import Goal
from policyfactory.environment.guards import GUARDS
from policyfactory.policy.policy import Policy
from policyfactory.simulate.metrics import measure
from policyfactory.simulate.prepare import prepare
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.simulate.simulate import run_prepared
from policyfactory.workload.jobs import Workload

__all__ = ["MEASURED", "Played", "measured", "played"]

# The columns of what is measured of a window: the goal, then the guards.
MEASURED = ("goal", *GUARDS)


class Played(Protocol):
    """Windows of a log, ready to be played under any policy."""

    def schedules(self, policy: Policy) -> Iterator[Schedule]:
        """Give the schedule of each window, in their order."""

    def __len__(self) -> int: ...


def measured(windows: Played, policy: Policy, goal: Goal) -> FloatArray:
    """Return goal and guards of each window under a policy: float64 array (windows, 1 + guards), as in `MEASURED`."""
    values = np.empty((len(windows), len(MEASURED)))
    for row, schedule in zip(values, windows.schedules(policy), strict=True):
        guards = measure(schedule, GUARDS)
        row[:] = [goal.value(schedule), *(guards[name] for name in GUARDS)]
    return values


def played(windows: list[Workload], rules: Rules) -> Played:
    """Return windows of one size, ready to be played by the rules.

    Raises
    ------
    EvaluationError
        If the rules refuse the jobs.
    """
    return _Committed(windows, rules) if rules.compatibility == "rlscheduler" else _Simulated(windows, rules)


class _Simulated:
    """By the rules of this simulator."""

    def __init__(self, windows: list[Workload], rules: Rules) -> None:
        self._prepared = [prepare(window, rules) for window in windows]

    def __len__(self) -> int:
        return len(self._prepared)

    def schedules(self, policy: Policy) -> Iterator[Schedule]:
        """Give the schedule of each window."""
        for one in self._prepared:
            with np.errstate(all="ignore"):
                start, backfilled = run_prepared(one, policy)
            yield Schedule(start, start + one.run_time, backfilled, one.workload, policy.name, one.rules)


class _Committed:
    """By the rules of RLScheduler's program, which commits itself to each choice."""

    def __init__(self, windows: list[Workload], rules: Rules) -> None:
        from policyfactory.simulate.compat import CommittedLog

        self._windows, self._rules = windows, rules
        self._logs = [CommittedLog.of_workload(window) for window in windows]

    def __len__(self) -> int:
        return len(self._windows)

    def schedules(self, policy: Policy) -> Iterator[Schedule]:
        """Give the schedule of each window."""
        from policyfactory.simulate.compat import starts_by_formula

        first = np.zeros(1, dtype=np.int64)
        for window, log in zip(self._windows, self._logs, strict=True):
            r = window.submit / window.ticks
            backfill = self._rules.backfill == "easy"
            start, backfilled = starts_by_formula(log, policy, first, len(window), backfill=backfill, r=r)
            start = start.ravel() * window.ticks
            yield Schedule(start, start + window.run_time, backfilled.ravel(), window, policy.name, self._rules)
