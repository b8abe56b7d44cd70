"""The values of all contenders on all cases: one long table of numbers."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.core.text import WEEK
from policyfactory.simulation.cases import CaseFacts
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import RECORDED
from policyfactory.simulation.tuning.tuner import Contender
from policyfactory.statistics.intervals import LEAST_SPREAD, MIN_CASES, RESAMPLES, ROUNDING, Estimate, studentised

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WeeklyValues:
    """The metrics of one log by week, as far as they are means over the jobs.

    Parameters
    ----------
    jobs : int64 array (weeks,)
        Jobs submitted in each week.
    values, weights : float64 array (n_contenders, weeks, n_metrics)
        Sums as in `policyfactory.simulation.metrics.WeeklySums`; NaN for another metric.
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
        How many jobs wait longer than `policyfactory.simulation.metrics.TAU`.
    recorded : float64 array (n_cases, n_metrics) or None
        The metrics of the recorded schedules, if that was asked for; NaN where a record has no answer.
    weekly : mapping of str to WeeklyValues
        The metrics by week of the logs that are one case each and last several weeks.
    observed : sequence of list of list
        ``observed[a][c][k]`` is what analysis a of the experiment kept of case c and contender k.
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
    observed: Sequence[list[list[Any]]] = ()

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
        for index, case in enumerate(self.cases):
            if case.log == log:
                first.setdefault(case.sha256 if case.kind == "resample" else index, index)
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

    def column(self, log: str, metric: str, policy: str) -> FloatArray:
        """Return one metric of one policy, or of the recorded schedules, on one log: float64 array (its cases,).

        Raises
        ------
        EvaluationError
            If the recorded schedules were not measured.
        """
        if policy != RECORDED:
            return self.matrix(log, metric)[:, self.policies.index(policy)]
        if self.recorded is None:
            raise EvaluationError("the recorded schedules are not measured here; ask for them (recorded=True)")
        values: FloatArray = self.recorded[self.rows(log), self.metrics.index(metric)]
        return values

    def weekly_column(self, log: str, metric: str, policy: str) -> tuple[FloatArray, FloatArray] | None:
        """Return the weekly sums of a policy, or of the recorded schedule, and their weights: float64 arrays (weeks,).

        None for a log that has no weeks, and for a metric that is no mean over the jobs.
        """
        weeks = self.weekly.get(log)
        if weeks is None:
            return None
        metric_index = self.metrics.index(metric)
        if policy == RECORDED:
            if weeks.recorded_values is None or weeks.recorded_weights is None:
                return None
            values, weights = weeks.recorded_values[:, metric_index], weeks.recorded_weights[:, metric_index]
        else:
            policy_index = self.policies.index(policy)
            values, weights = weeks.values[policy_index, :, metric_index], weeks.weights[policy_index, :, metric_index]
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

        return pd.DataFrame(self.long_rows(), columns=["log", "case", "policy", "metric", "value"])

    def long_rows(self) -> Iterator[tuple[str, int, str, str, float]]:
        """Yield the rows of the long table."""
        policies = self.policies
        for (case, policy, metric), value in np.ndenumerate(self.values):
            about = self.cases[case]
            yield about.log, about.number, policies[policy], self.metrics[metric], float(value)

    def weekly_rows(self) -> Iterator[tuple[str, int, int, str, str, float]]:
        """Yield the weeks of the whole logs: log, week (from 1), jobs, policy, metric, value.

        The metrics are those that are means over the jobs; the value of a week without a job is NaN.
        """
        policies = self.policies
        for log, weeks in self.weekly.items():
            kept = [index for index in range(len(self.metrics)) if not np.isnan(weeks.values[:, :, index]).any()]
            with np.errstate(invalid="ignore"):
                values = weeks.values[:, :, kept] / weeks.weights[:, :, kept]
            for (policy, week, metric), value in np.ndenumerate(values):
                name = self.metrics[kept[metric]]
                yield log, week + 1, int(weeks.jobs[week]), policies[policy], name, float(value)


# A mean over the jobs of one continuous schedule ----------------------------------------------------------------------

# A mean over the jobs of one continuous schedule, with an interval over its weeks of submission.
#
# Weeks are drawn in blocks, on a circle (D. N. Politis and J. P. Romano, "A circular block-resampling procedure for
# stationary data", in Exploring the Limits of Bootstrap, 1992): within a block they stay as they followed each other,
# so that what one week does to the next is in every draw. A block is twice as long as the queue remembers
# (`policyfactory.simulation.metrics`), and at least a week. The statistic is a ratio of sums (of the jobs' values over
# the jobs), its standard error that of the linearisation; an end of the interval is the farther one of the studentised
# bootstrap's and of Student's with one degree of freedom less than there are blocks. docs/statistics.md has the
# coverage.
#
# With fewer than six blocks there is no interval: such a schedule has seen its queue in one or two moods only.


_PURPOSE = 42  # of the random stream; see core.random
_MEMORIES = 2  # of the queue, in a block


def block_weeks(memory_s: float) -> int | None:
    """Return how many weeks a block has for a queue that remembers so long; None if nobody knows how long it does."""
    return max(1, math.ceil(_MEMORIES * memory_s / WEEK)) if math.isfinite(memory_s) else None


def estimate_weekly(sums: FloatArray, weights: FloatArray, block: int | None, *, seed: int = 0) -> Estimate:
    """Return the sum of the sums over that of the weights, with its interval.

    Parameters
    ----------
    sums, weights : float64 array (weeks,)
        Of each week, in order: of the jobs' weighted values (or differences of them), and of their weights.
    block : int or None
        Weeks in a block; None: no interval.
    seed : int
        Seed of the resampling; equal seeds, weeks and blocks draw the same weeks.

    Returns
    -------
    Estimate
        Its ``cases`` are the weeks.
    """
    weeks, total = len(sums), float(weights.sum())
    if not weeks or not total > 0 or not np.isfinite(sums).all():
        return Estimate(math.nan, None, None, weeks)
    value = float(sums.sum()) / total
    if block is None or weeks < MIN_CASES * block:
        return Estimate(value, None, None, weeks, None if block is None else MIN_CASES * block)
    residual = sums - value * weights
    deviation, errors, error = _resampled(residual, weights, block, seed)
    if error <= ROUNDING * max(abs(value), float(np.abs(sums).max()) / total):
        error = 0.0
    return studentised(value, error, deviation, np.maximum(errors, LEAST_SPREAD * error), (weeks / block - 1, weeks))


def estimate_weekly_ratio(policy: FloatArray, baseline: FloatArray, block: int | None, *, seed: int = 0) -> Estimate:
    """Return 100 (sum of the policy / sum of the baseline - 1), in %, with its interval.

    Parameters
    ----------
    policy, baseline : float64 array (weeks,)
        Sums of each week, in order.
    block, seed
        As in `estimate_weekly`.
    """
    return estimate_weekly(100 * (policy - baseline), baseline, block, seed=seed)


def _resampled(
    residual: FloatArray, weights: FloatArray, block: int, seed: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return, of resamples: deviation of the statistic, standard error; and the standard error of the sample."""
    weeks = len(residual)
    places = (np.arange(weeks)[:, None] + np.arange(block)) % weeks
    rest, weight = residual[places].sum(axis=1), weights[places].sum(axis=1)
    blocks = weeks / block
    total = float(weights.sum())
    error = math.sqrt(float(np.mean(rest**2)) * blocks * blocks / (blocks - 1)) / total
    drawn = _draws(seed, weeks, block)
    totals = weight[drawn].sum(axis=1)
    totals = np.where(totals > 0, totals, np.nan)
    deviation = rest[drawn].sum(axis=1) / totals
    # The residuals of a resample are of its own ratio.
    residuals = rest[drawn] - deviation[:, None] * weight[drawn]
    count = drawn.shape[1]
    errors = np.sqrt((residuals**2).sum(axis=1) * count / (count - 1)) / totals
    known = np.isfinite(deviation)
    return deviation[known], errors[known], error


@functools.lru_cache(maxsize=8)
def _draws(seed: int, weeks: int, block: int) -> NDArray[np.intp]:
    """Return the first weeks of the blocks of each resample: intp array (resamples, blocks)."""
    random = generator(seed, _PURPOSE, weeks, block)
    return random.integers(0, weeks, (RESAMPLES, math.ceil(weeks / block)), dtype=np.intp)
