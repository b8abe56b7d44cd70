"""Whether a policy is better than the baseline, or whether it was the draw of the windows.

Every policy runs the same windows, so windows are compared in pairs: the difference of a window is the policy's
value minus the baseline's in that window. The window is the unit of resampling, never the job (jobs of one
window share its queue and are not independent).

The effect is the median of the paired differences, and its interval comes from a bootstrap over windows. The
plain percentile interval is too narrow for few windows (measured: it covers the truth in 88 % of the cases with 7
windows instead of 95 %), so its tail probability is made smaller, as T. Hesterberg proposes ("What teachers
should know about the bootstrap", The American Statistician 69(4), 2015, section 5.2, "expanded percentile":
``alpha' / 2 = Phi(-sqrt(n / (n - 1)) * t_{1 - alpha / 2, n - 1})``). With that correction 95 to 99 % are covered
from 6 windows on (measured with normal, lognormal and heavy-tailed differences). Below 6 windows no interval of a
median can have 95 %: even the whole range of 5 differences misses it in 2 * 0.5**5 = 6 % of the cases; none is given.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError
from policyfactory.core.random import generator

if TYPE_CHECKING:
    from policyfactory.evaluate.run import Evaluation

__all__ = [
    "LEVEL",
    "MIN_WINDOWS",
    "RESAMPLES",
    "Comparison",
    "Interval",
    "Verdict",
    "bootstrap_median",
    "compare",
    "compare_values",
]

LEVEL = 0.95
MIN_WINDOWS = 6
RESAMPLES = 9_999
_PURPOSE = 41  # of the random stream; see core.random

Verdict = Literal["better", "worse", "differs", "no difference", "too few windows"]
FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Parameters
    ----------
    low, high : float
        Its ends, in the unit of the values.
    """

    low: float
    high: float

    def covers(self, value: float) -> bool:
        """Return whether ``value`` lies in it, the ends included."""
        return self.low <= value <= self.high


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """One policy against the baseline in one metric on one trace.

    Parameters
    ----------
    trace, metric, policy, baseline : str
        What is compared.
    windows : int
        Windows in which both values are finite.
    difference : float
        Median over windows of (policy minus baseline), in the metric's unit; NaN without a window.
    interval : Interval or None
        95 % bootstrap interval of ``difference``; None with fewer than ``MIN_WINDOWS`` windows.
    relative : float or None
        Median over windows of (policy minus baseline) / |baseline|; None where a baseline is 0 or the metric is a
        percentage itself.
    wins, losses, draws : int
        Windows in which the policy is better than, worse than, equal to the baseline.
        A metric in which neither direction is better counts lower as a win.
    verdict : str
        ``better``, ``worse`` (``differs`` if the metric has no better direction), ``no difference`` if the
        interval covers zero, ``too few windows`` without an interval.
    """

    trace: str
    metric: str
    policy: str
    baseline: str
    windows: int
    difference: float
    interval: Interval | None
    relative: float | None
    wins: int
    losses: int
    draws: int
    verdict: Verdict


def _tail(level: float, n: int) -> float:
    from scipy import stats

    return float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1)))


def bootstrap_median(values: FloatArray, *, seed: int, level: float = LEVEL, resamples: int = RESAMPLES) -> Interval:
    """Return the bootstrap interval of the median of independent values (expanded percentile).

    Parameters
    ----------
    values : float64 array (n,)
        One value a window, finite, at least ``MIN_WINDOWS`` of them.
    seed : int
        Seed of the resampling; equal seeds and equal ``n`` resample the same windows.
    level : float
        Probability with which the interval shall cover the truth.
    resamples : int
        Number of bootstrap samples.

    Raises
    ------
    EvaluationError
        If there are fewer than ``MIN_WINDOWS`` values, or one is not finite.
    """
    n = len(values)
    if n < MIN_WINDOWS:
        raise EvaluationError(f"{n} windows can not give a 95 % interval of a median; use at least {MIN_WINDOWS}")
    if not np.isfinite(values).all():
        raise EvaluationError(
            f"{n - int(np.isfinite(values).sum())} of {n} values are not finite; leave those windows out"
        )
    drawn = generator(seed, _PURPOSE, n).integers(0, n, (resamples, n))
    medians = np.median(values[drawn], axis=1)
    tail = _tail(level, n)
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(float(low), float(high))


def compare_values(
    policy: FloatArray, baseline: FloatArray, *, lower_is_better: bool | None = True, seed: int = 0
) -> tuple[int, float, Interval | None, float | None, tuple[int, int, int], Verdict]:
    """Compare paired values of one metric.

    Parameters
    ----------
    policy, baseline : float64 array (n,)
        One value a window, in the same order of windows.
    lower_is_better : bool or None
        Direction of the metric; None if it has none.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    tuple
        windows, difference, interval, relative, (wins, losses, draws), verdict; see `Comparison`.

    Raises
    ------
    EvaluationError
        If the arrays differ in length: they are not pairs then.
    """
    if policy.shape != baseline.shape:
        raise EvaluationError(f"{policy.shape} and {baseline.shape} values are not pairs; run both on the same windows")
    both = np.isfinite(policy) & np.isfinite(baseline)
    policy, baseline = policy[both], baseline[both]
    differences = policy - baseline
    n = len(differences)
    if n == 0:
        return 0, math.nan, None, None, (0, 0, 0), "too few windows"
    relative = float(np.median(differences / np.abs(baseline))) if (baseline != 0).all() else None
    sign = -1 if lower_is_better is False else 1
    wins, losses = int((sign * differences < 0).sum()), int((sign * differences > 0).sum())
    interval = bootstrap_median(differences, seed=seed) if n >= MIN_WINDOWS else None
    counts = (wins, losses, n - wins - losses)
    return (
        n,
        float(np.median(differences)),
        interval,
        relative,
        counts,
        _verdict(interval, lower_is_better=lower_is_better),
    )


def _verdict(interval: Interval | None, *, lower_is_better: bool | None) -> Verdict:
    if interval is None:
        return "too few windows"
    if interval.covers(0.0):
        return "no difference"
    if lower_is_better is None:
        return "differs"
    return "better" if (interval.high < 0) == lower_is_better else "worse"


def compare(evaluation: Evaluation, *, baseline: str | None = None, seed: int = 0) -> list[Comparison]:
    """Return every policy's comparison with the baseline, by trace, metric and policy.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    baseline : str, optional
        Name of the policy to compare with; the first one if not given.
    seed : int
        Seed of the bootstrap.

    Raises
    ------
    EvaluationError
        If the baseline is not among the policies.
    """
    from policyfactory.evaluate.metrics import METRICS

    name = evaluation.policies[0] if baseline is None else baseline
    if name not in evaluation.policies:
        raise EvaluationError(f"baseline {name} was not evaluated; it is one of {', '.join(evaluation.policies)}")
    at = evaluation.policies.index(name)
    rows = []
    for trace in evaluation.traces:
        for metric in evaluation.metrics:
            values = evaluation.matrix(trace, metric)
            for column, policy in enumerate(evaluation.policies):
                if column == at:
                    continue
                n, difference, interval, relative, (wins, losses, draws), verdict = compare_values(
                    values[:, column],
                    values[:, at],
                    lower_is_better=METRICS[metric].lower_is_better,
                    seed=seed,
                )
                if METRICS[metric].unit == "%":
                    relative = None
                rows.append(
                    Comparison(
                        trace, metric, policy, name, n, difference, interval, relative, wins, losses, draws, verdict
                    )
                )
    return rows
