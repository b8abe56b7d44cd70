"""The values of all contenders on all cases: one long table of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError
from policyfactory.simulate.cases import CaseFacts
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import RECORDED
from policyfactory.simulate.tuning.tuner import Contender
from policyfactory.statistics.intervals import MIN_CASES
from policyfactory.statistics.weeks import block_weeks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluation", "WeeklyValues"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WeeklyValues:
    """The metrics of one log by week, as far as they are means over the jobs.

    Parameters
    ----------
    jobs : int64 array (weeks,)
        Jobs submitted in each week.
    values, weights : float64 array (n_contenders, weeks, n_metrics)
        Sums as in `policyfactory.simulate.metrics.WeeklySums`; NaN for another metric.
    memory_s : float
        How long the queue remembers under the baseline, in seconds; infinite if the log is too short to tell.
    recorded_values, recorded_weights : float64 array (weeks, n_metrics) or None
        Those of the recorded schedule, if it was measured.
    """

    jobs: Int64Array
    values: FloatArray
    weights: FloatArray
    memory_s: float
    recorded_values: FloatArray | None = None
    recorded_weights: FloatArray | None = None

    @property
    def block(self) -> int | None:
        """How many weeks are drawn together; None if nobody knows how long the queue remembers."""
        return block_weeks(self.memory_s)

    @property
    def enough(self) -> bool:
        """Whether there are blocks enough for an interval."""
        return self.block is not None and len(self.jobs) >= MIN_CASES * self.block


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The values of all contenders on all cases.

    Parameters
    ----------
    cases : tuple of CaseFacts (n_cases,)
        In the order of the logs and of their numbers.
    contenders : tuple of Policy or Tuner (n_contenders,)
        What orders the queue; the first is the baseline.
    metrics : tuple of str (n_metrics,)
        Names in `METRICS`.
    rules : Rules
        The rules of every simulation, but for what a case has of its own.
    values : float64 array (n_cases, n_contenders, n_metrics)
        In the units of the metrics.
    longest_wait : float64 array (n_cases, n_contenders), seconds
        The longest wait of any job.
    longest_wait_job : int64 array (n_cases, n_contenders)
        Id of the job that waited longest (the first of several).
    waiting : int64 array (n_cases, n_contenders)
        How many jobs wait longer than `policyfactory.simulate.metrics.TAU`.
    recorded : float64 array (n_cases, n_metrics) or None
        The metrics of the recorded schedules, if that was asked for; NaN where a record has no answer.
    weekly : mapping of str to WeeklyValues
        The metrics by week of the logs that are one case each and last several weeks.
    """

    cases: tuple[CaseFacts, ...]
    contenders: tuple[Contender, ...]
    metrics: tuple[str, ...]
    rules: Rules
    values: FloatArray
    longest_wait: FloatArray
    longest_wait_job: Int64Array
    waiting: Int64Array
    recorded: FloatArray | None = None
    weekly: Mapping[str, WeeklyValues] = dataclasses.field(default_factory=dict)

    @property
    def logs(self) -> tuple[str, ...]:
        """Names of the logs, in order."""
        return tuple(dict.fromkeys(case.log for case in self.cases))

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the contenders, in order."""
        return tuple(contender.name for contender in self.contenders)

    @property
    def baseline(self) -> str:
        """Name of the policy that the others are compared with: the first."""
        return self.policies[0]

    @property
    def jobs_simulated(self) -> int:
        """Jobs of all simulations together."""
        return sum(case.jobs for case in self.cases) * len(self.policies)

    def rows(self, log: str) -> NDArray[np.intp]:
        """Return the indices of a log's cases, of resampled logs with the same jobs only that of the first.

        A draw that was made before is no further evidence.
        """
        first: dict[object, int] = {}
        for at, case in enumerate(self.cases):
            if case.log == log:
                first.setdefault(case.sha256 if case.kind == "resample" else at, at)
        return np.array(list(first.values()), dtype=np.intp)

    def repeated(self, log: str) -> int:
        """Return how many resampled logs of a log have the jobs of an earlier one and are not counted."""
        return sum(case.log == log for case in self.cases) - len(self.rows(log))

    def drawn(self, log: str) -> float | None:
        """Return the widening (`estimate_drawn`) of the cases of a log that were drawn from it; None of others."""
        first = self.cases[int(self.rows(log)[0])]
        return first.widening if first.kind == "resample" else None

    def matrix(self, log: str, metric: str) -> FloatArray:
        """Return one metric on one log: float64 array (cases of the log, n_contenders)."""
        return self.values[self.rows(log), :, self.metrics.index(metric)]

    def recorded_values(self, log: str, metric: str) -> FloatArray:
        """Return one metric of the recorded schedules on one log: float64 array (cases of the log,).

        Raises
        ------
        EvaluationError
            If they were not measured.
        """
        if self.recorded is None:
            raise EvaluationError("the recorded schedules are not measured here; ask for them (recorded=True)")
        values: FloatArray = self.recorded[self.rows(log), self.metrics.index(metric)]
        return values

    def column(self, log: str, metric: str, policy: str) -> FloatArray:
        """Return one metric of one policy, or of the recorded schedules, on one log: float64 array (its cases,)."""
        if policy == RECORDED:
            return self.recorded_values(log, metric)
        return self.matrix(log, metric)[:, self.policies.index(policy)]

    def weekly_column(self, log: str, metric: str, policy: str) -> tuple[FloatArray, FloatArray] | None:
        """Return the weekly sums of a policy, or of the recorded schedule, and their weights: float64 arrays (weeks,).

        None for a log that has no weeks, and for a metric that is no mean over the jobs.
        """
        weeks = self.weekly.get(log)
        if weeks is None:
            return None
        at = self.metrics.index(metric)
        if policy == RECORDED:
            if weeks.recorded_values is None or weeks.recorded_weights is None:
                return None
            values, weights = weeks.recorded_values[:, at], weeks.recorded_weights[:, at]
        else:
            place = self.policies.index(policy)
            values, weights = weeks.values[place, :, at], weeks.weights[place, :, at]
        return None if np.isnan(values).any() else (values, weights)

    def weekly_matrix(self, log: str, metric: str) -> FloatArray | None:
        """Return one metric by week: float64 array (weeks with jobs, n_contenders); None as in `weekly_column`."""
        columns = [self.weekly_column(log, metric, policy) for policy in self.policies]
        if not columns or columns[0] is None:
            return None
        some = columns[0][1] > 0
        return np.column_stack([column[0][some] / column[1][some] for column in columns if column is not None])

    def frame(self) -> pd.DataFrame:
        """Return the long table: log, case, policy, metric, value (one row each)."""
        import pandas as pd

        shape = (len(self.policies), len(self.metrics))
        each = shape[0] * shape[1]
        return pd.DataFrame(
            {
                "log": np.repeat([case.log for case in self.cases], each),
                "case": np.repeat([case.number for case in self.cases], each),
                "policy": np.tile(np.repeat(self.policies, shape[1]), len(self.cases)),
                "metric": np.tile(self.metrics, len(self.cases) * shape[0]),
                "value": self.values.reshape(-1),
            }
        )

    def weekly_frame(self) -> pd.DataFrame:
        """Return the weeks of the whole logs: log, week (from 1), jobs, policy, metric, value (one row each).

        The metrics are those that are means over the jobs; a week without a job has no value.
        """
        import pandas as pd

        parts = []
        for log, weeks in self.weekly.items():
            kept = [at for at in range(len(self.metrics)) if not np.isnan(weeks.values[:, :, at]).any()]
            with np.errstate(invalid="ignore"):
                values = weeks.values[:, :, kept] / weeks.weights[:, :, kept]
            index = pd.MultiIndex.from_product(
                [self.policies, range(1, len(weeks.jobs) + 1), [self.metrics[at] for at in kept]],
                names=["policy", "week", "metric"],
            )
            frame = pd.DataFrame({"value": values.reshape(-1)}, index=index).reset_index()
            parts.append(frame.assign(log=log, jobs=weeks.jobs[frame["week"] - 1]))
        columns = ["log", "week", "jobs", "policy", "metric", "value"]
        return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)
