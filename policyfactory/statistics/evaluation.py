"""The values of all contenders on all cases: one long table of numbers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError
from policyfactory.simulate.cases import CaseFacts
from policyfactory.simulate.rules import Rules
from policyfactory.tuning.contenders import Contender

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluation"]


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
    recorded : float64 array (n_cases, n_metrics) or None
        The metrics of the recorded schedules, if that was asked for; NaN where a record has no answer.
    """

    cases: tuple[CaseFacts, ...]
    contenders: tuple[Contender, ...]
    metrics: tuple[str, ...]
    rules: Rules
    values: FloatArray
    longest_wait: FloatArray
    longest_wait_job: Int64Array
    recorded: FloatArray | None = None

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
        """Return the indices of a log's cases."""
        return np.array([at for at, case in enumerate(self.cases) if case.log == log], dtype=np.intp)

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
