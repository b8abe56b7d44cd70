"""Whether a policy is better than the baseline, or whether it was the draw of the cases.

Every policy runs the same cases, so cases are compared in pairs: the difference of a case is the policy's value minus
the baseline's in that case. The difference over all cases is a median, a mean or a ratio of sums (`estimates`), with
a 95 % interval; a policy is called better or worse only if the interval does not cover zero.

Of many such verdicts some are wrong: where nothing differs, each is wrong in 5 % of the evaluations. So beside the
plain verdict there is the p-value after Holm ("A simple sequentially rejective multiple test procedure", Scandinavian
Journal of Statistics 6, 1979): of all verdicts on one metric (every policy on every log of an evaluation) that stand
with it below 5 %, the probability that any is wrong is at most 5 %.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import EvaluationError
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.recorded import RECORDED
from policyfactory.statistics.intervals import LEVEL, Estimate, Interval, Statistic
from policyfactory.statistics.means import difference_unit, estimate_difference, estimate_value

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = [
    "Comparison",
    "HalfWidth",
    "Paired",
    "Verdict",
    "by_chance",
    "compare",
    "compare_recorded",
    "compare_values",
    "half_widths",
    "holm",
    "verdict_of",
]

Verdict = Literal["better", "worse", "differs", "no difference", "too few cases"]


@dataclasses.dataclass(frozen=True, slots=True)
class Paired:
    """Two policies in one metric on the same cases.

    Parameters
    ----------
    estimate : Estimate
        Of the difference, over the cases in which both values are finite.
    relative : float or None
        The difference over the baseline: the median of the cases' relative changes, or the difference of the means
        over the baseline's mean; None where a baseline is 0 and for a ratio, which is relative itself.
    wins, losses, draws : int
        Cases in which the policy is better than, worse than, equal to the baseline.
        A metric in which neither direction is better counts lower as a win.
    verdict : str
        ``better``, ``worse`` (``differs`` if the metric has no better direction), ``no difference`` if the
        interval covers zero, ``too few cases`` without an interval.
    """

    estimate: Estimate
    relative: float | None
    wins: int
    losses: int
    draws: int
    verdict: Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """One policy against the baseline in one metric on one log.

    Parameters
    ----------
    log, metric, policy, baseline : str
        What is compared.
    statistic : str
        ``median``, ``mean`` or ``ratio``.
    unit : str
        Of ``difference``: the metric's; ``pp`` (percentage points) of a percentage; ``%`` of a ratio.
    cases : int
        Cases in which both values are finite.
    difference : float
        The statistic of (policy minus baseline); NaN without a case.
    interval : Interval or None
        95 % bootstrap interval of ``difference``; None with fewer than ``MIN_CASES`` cases.
    p : float or None
        The smallest error probability at which the interval would not cover 0.
    p_holm : float or None
        ``p`` adjusted for all comparisons of this metric in the evaluation.
    relative, wins, losses, draws, verdict
        As in `Paired`.
    """

    log: str
    metric: str
    policy: str
    baseline: str
    statistic: Statistic
    unit: str
    cases: int
    difference: float
    interval: Interval | None
    p: float | None
    p_holm: float | None
    relative: float | None
    wins: int
    losses: int
    draws: int
    verdict: Verdict

    @property
    def stands(self) -> bool:
        """Whether it differs also after Holm's adjustment."""
        return self.verdict in {"better", "worse", "differs"} and (self.p_holm or 0.0) < 1 - LEVEL


def compare_values(
    policy: FloatArray,
    baseline: FloatArray,
    *,
    lower_is_better: bool | None = True,
    statistic: Statistic = "median",
    seed: int = 0,
) -> Paired:
    """Compare paired values of one metric.

    Parameters
    ----------
    policy, baseline : float64 array (n,)
        One value a case, in the same order of cases; a case in which one of them is not finite is left out.
    lower_is_better : bool or None
        Direction of the metric; None if it has none.
    statistic : {"median", "mean", "ratio"}
        What is said over all cases.
    seed : int
        Seed of the bootstrap.

    Raises
    ------
    EvaluationError
        If the arrays differ in length: they are not pairs then.
    """
    if policy.shape != baseline.shape:
        raise EvaluationError(f"{policy.shape} and {baseline.shape} values are not pairs; run both on the same cases")
    both = np.isfinite(policy) & np.isfinite(baseline)
    policy, baseline = policy[both], baseline[both]
    differences = policy - baseline
    estimate = estimate_difference(statistic, policy, baseline, seed=seed)
    sign = -1 if lower_is_better is False else 1
    wins, losses = int((sign * differences < 0).sum()), int((sign * differences > 0).sum())
    return Paired(
        estimate,
        _relative(statistic, differences, baseline),
        wins,
        losses,
        len(differences) - wins - losses,
        verdict_of(estimate.interval, lower_is_better=lower_is_better),
    )


def _relative(statistic: Statistic, differences: FloatArray, baseline: FloatArray) -> float | None:
    if not len(baseline) or statistic == "ratio":
        return None
    if statistic == "mean":
        level = abs(float(baseline.mean()))
        return float(differences.mean()) / level if level else None
    return float(np.median(differences / np.abs(baseline))) if (baseline != 0).all() else None


def verdict_of(interval: Interval | None, *, lower_is_better: bool | None = True) -> Verdict:
    """Return what the interval of a difference (policy minus baseline) says."""
    if interval is None:
        return "too few cases"
    if interval.covers(0.0):
        return "no difference"
    if lower_is_better is None:
        return "differs"
    return "better" if (interval.high < 0) == lower_is_better else "worse"


def compare(
    evaluation: Evaluation,
    *,
    baseline: str | None = None,
    statistic: Statistic = "median",
    seed: int = 0,
    metrics: Sequence[str] | None = None,
) -> list[Comparison]:
    """Return every policy's comparison with the baseline, by log, metric and policy.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    baseline : str, optional
        Name of the policy to compare with; the first one if not given.
    statistic : {"median", "mean", "ratio"}
        What is said over all cases.
    seed : int
        Seed of the bootstrap.
    metrics : sequence of str, optional
        Only these of the metrics; all if not given.

    Raises
    ------
    EvaluationError
        If the baseline is not among the policies.
    """
    name = evaluation.policies[0] if baseline is None else baseline
    if name not in evaluation.policies:
        raise EvaluationError(f"baseline {name} was not evaluated; it is one of {', '.join(evaluation.policies)}")
    at = evaluation.policies.index(name)
    return _adjusted(
        [
            _comparison((log, metric, policy, name), column, evaluation.matrix(log, metric)[:, at], statistic, seed)
            for log in evaluation.logs
            for metric in metrics or evaluation.metrics
            for policy, column in zip(evaluation.policies, evaluation.matrix(log, metric).T, strict=True)
            if policy != name
        ]
    )


def compare_recorded(evaluation: Evaluation, *, statistic: Statistic = "median", seed: int = 0) -> list[Comparison]:
    """Return every policy's comparison with the recorded schedules; none if they were not measured.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    statistic : {"median", "mean", "ratio"}
        What is said over all cases.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    list of Comparison
        By log, metric and policy, the first of which has its own here; the baseline of each is ``recorded``.
    """
    return _adjusted(
        [
            _comparison(
                (log, metric, policy, RECORDED), column, evaluation.recorded_values(log, metric), statistic, seed
            )
            for log in (evaluation.logs if evaluation.recorded is not None else ())
            for metric in evaluation.metrics
            for policy, column in zip(evaluation.policies, evaluation.matrix(log, metric).T, strict=True)
        ]
    )


def _comparison(
    key: tuple[str, str, str, str], policy: FloatArray, baseline: FloatArray, statistic: Statistic, seed: int
) -> Comparison:
    metric = METRICS[key[1]]
    pair = compare_values(policy, baseline, lower_is_better=metric.lower_is_better, statistic=statistic, seed=seed)
    return Comparison(
        *key,
        statistic=statistic,
        unit=difference_unit(statistic, metric.unit),
        cases=pair.estimate.cases,
        difference=pair.estimate.value,
        interval=pair.estimate.interval,
        p=pair.estimate.p,
        p_holm=None,
        relative=None if metric.unit == "%" else pair.relative,
        wins=pair.wins,
        losses=pair.losses,
        draws=pair.draws,
        verdict=pair.verdict,
    )


# Many comparisons. ---------------------------------------------------------------------------------------------------


def _adjusted(rows: Sequence[Comparison]) -> list[Comparison]:
    results = list(rows)
    for metric in dict.fromkeys(row.metric for row in rows):
        places = [at for at, row in enumerate(rows) if row.metric == metric and row.p is not None]
        for at, p in zip(places, holm(rows[at].p or 0.0 for at in places), strict=True):
            results[at] = dataclasses.replace(rows[at], p_holm=p)
    return results


def holm(p_values: Iterable[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's procedure, in the order in which they were given."""
    # Not statsmodels' multipletests, which it equals: that collects garbage at each call, a tenth of a second here.
    given = np.array(list(p_values), dtype=np.float64)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return [float(p) for p in adjusted]


def by_chance(comparisons: Iterable[Comparison]) -> float:
    """Return how many of the comparisons with an interval would be called different, on average, if none differed."""
    return (1 - LEVEL) * sum(row.interval is not None for row in comparisons)


# How wide the intervals are. ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class HalfWidth:
    """Half the length of the interval of one difference.

    Parameters
    ----------
    log, metric, policy : str
        The policy that is compared with the baseline, and where.
    cases : int
        Cases that the interval is made of.
    half_width : float
        In the unit of the difference; infinite without an interval (fewer than ``MIN_CASES`` cases).
    relative : float
        Over the size of the baseline's value (its median or mean), 0.02 for 2 %; for a ratio, half the width itself as
        a share. Infinite if the baseline is 0 and the width is not.
    """

    log: str
    metric: str
    policy: str
    cases: int
    half_width: float
    relative: float


def half_widths(
    evaluation: Evaluation, *, metric: str | None = None, statistic: Statistic = "median", seed: int = 0
) -> list[HalfWidth]:
    """Return how wide the interval of each policy's difference from the baseline is, by log and policy.

    To reach ``--precision 2%``: add cases to the logs in which some ``relative`` is above 0.02. Intervals shrink about
    as 1 / sqrt(cases), so ``cases * (relative / 0.02)**2`` is about the number that it takes. Half-widths of different
    calls vary by some percent, those of the median by more: they follow single cases.

    Parameters
    ----------
    evaluation : Evaluation
        The values; of a single policy nothing is compared, and the list is empty.
    metric : str, optional
        One of its metrics; the first, which decides, if not given.
    statistic : {"median", "mean", "ratio"}
        What is said over all cases.
    seed : int
        Seed of the bootstrap.
    """
    chosen = evaluation.metrics[0] if metric is None else metric
    results = []
    for row in compare(evaluation, statistic=statistic, seed=seed, metrics=(chosen,)):
        half = row.interval.half_width if row.interval else math.inf
        base = evaluation.matrix(row.log, chosen)[:, 0]
        level = 100.0 if statistic == "ratio" else abs(estimate_value(statistic, base[np.isfinite(base)]).value)
        relative = half / level if level > 0 else 0.0 if half == 0 else math.inf
        results.append(HalfWidth(row.log, chosen, row.policy, row.cases, half, relative))
    return results
