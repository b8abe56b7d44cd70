"""Whether a policy is better than the baseline, or whether it was the draw of the cases.

Every policy runs the same cases, so cases are compared in pairs: the difference of a case is the policy's value minus
the baseline's in that case. The difference over all cases is a median, a mean or a ratio of sums (`estimates`), with
a 95 % interval.

Each interval has its 95 % for itself: where nothing differs, one of twenty leaves out zero. So intervals are drawn and
not called. A policy is called better or worse only if its p-value is below 5 % also after Holm ("A simple sequentially
rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979), judged together with all others of the
metric (every policy on every log of an evaluation): the probability that any of these words is wrong is at most 5 %.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from policyfactory.core.errors import EvaluationError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.schedule import RECORDED
from policyfactory.statistics.evaluation import Evaluation, estimate_weekly, estimate_weekly_ratio
from policyfactory.statistics.intervals import (
    Estimate,
    Interval,
    RowStatistic,
    Statistic,
    Verdict,
    difference_unit,
    estimate_difference,
    estimate_drawn,
    estimate_halves,
    estimate_mean,
    estimate_value,
    judged_together,
    logarithms,
)

_HUGE = 700.0  # the exponential of more is no number


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
        Judged alone: ``better``, ``worse`` (``differs`` if the metric has no better direction), ``no difference`` if
        the interval covers zero, ``too few cases`` without an interval. Of several see `judged_together`.
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
        ``median``, ``mean`` or ``ratio`` over the cases; ``weeks``: of one case, over all its jobs.
    unit : str
        Of ``difference``: the metric's; ``pp`` (percentage points) of a percentage; ``%`` of a ratio.
    cases : int
        Cases in which both values are finite; of ``weeks``, the weeks with jobs.
    difference : float
        The statistic of (policy minus baseline); NaN without a case.
    interval : Interval or None
        95 % bootstrap interval of ``difference``; None with fewer than ``MIN_CASES`` cases.
    p : float or None
        The smallest error probability at which the interval would not cover 0.
    p_holm : float or None
        ``p`` adjusted for all comparisons of this metric in the evaluation.
    relative, wins, losses, draws
        As in `Paired`.
    verdict : str
        As in `Paired`, but judged together with all others of this metric: ``no difference`` also where the interval
        leaves out zero and ``p_holm`` is 5 % or more.
    """

    log: str
    metric: str
    policy: str
    baseline: str
    statistic: RowStatistic
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
    def by_chance(self) -> bool:
        """Whether the interval leaves out zero, and among so many comparisons one does so by chance."""
        return self.verdict == "no difference" and self.interval is not None and not self.interval.covers(0.0)


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
    relative = _relative(statistic, differences, baseline)
    return _paired(estimate, relative, differences, lower_is_better=lower_is_better)


def compare_replicas(
    policy: FloatArray, baseline: FloatArray, whole: int, *, lower_is_better: bool | None = True
) -> Paired:
    """Compare a metric on the same replicas of a part of a log: the mean of the differences of its logarithms.

    Parameters
    ----------
    policy, baseline : float64 array (n,)
        Logarithms of the metric, on whole replicas and then on half ones.
    whole : int
        How many of them are whole. The estimate is theirs, the interval that of the halves (`estimate_halves`).
    lower_is_better : bool or None
        Direction of the metric.
    """
    with np.errstate(invalid="ignore"):
        differences = policy - baseline
    estimate = estimate_halves(differences[:whole], differences[whole:])
    return _paired(estimate, None, differences[:whole], lower_is_better=lower_is_better)


def _paired(
    estimate: Estimate, relative: float | None, differences: FloatArray, *, lower_is_better: bool | None
) -> Paired:
    sign = -1 if lower_is_better is False else 1
    wins, losses = int((sign * differences < 0).sum()), int((sign * differences > 0).sum())
    verdict = verdict_of(estimate.interval, lower_is_better=lower_is_better)
    return Paired(estimate, relative, wins, losses, len(differences) - wins - losses, verdict)


def compare_policies(
    evaluation: Evaluation,
    log: str,
    metric: str,
    policy: str,
    baseline: str,
    *,
    statistic: Statistic = "median",
    seed: int = 0,
) -> Paired:
    """Compare two policies, or one with the recorded schedule, in one metric on one log.

    Over its cases; or, if the log is one case with weeks and the metric a mean over the jobs, over its weeks.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    log, metric, policy, baseline : str
        What is compared; a policy or the baseline may be ``recorded``.
    statistic : {"median", "mean", "ratio"}
        What is said over all cases; of weeks, a ratio or else the difference of the means over the jobs.
    seed : int
        Seed of the bootstrap.
    """
    direction = METRICS[metric].lower_is_better
    policy_weeks = evaluation.weekly_column(log, metric, policy)
    base = evaluation.weekly_column(log, metric, baseline)
    if policy_weeks is None or base is None:
        columns = evaluation.column(log, metric, policy), evaluation.column(log, metric, baseline)
        paired = compare_values(*columns, lower_is_better=direction, statistic=statistic, seed=seed)
        widening = evaluation.drawn(log)
        return paired if widening is None else _drawn(paired, columns, metric, (statistic, widening))
    (values, weights), (level, shared) = policy_weeks, base
    # A job that is killed has another area under another policy: both are means over their own weights.
    total, others = float(shared.sum()), float(weights.sum())
    values = values * (total / others) if others else values
    block = evaluation.weekly[log].block
    some = shared > 0
    differences = values[some] / shared[some] - level[some] / shared[some]
    if statistic == "ratio":
        ratio = estimate_weekly_ratio(values, level, block, seed=seed)
        return _paired(ratio, None, differences, lower_is_better=direction)
    estimate = estimate_weekly(values - level, shared, block, seed=seed)
    mean = float(level.sum()) / total if total else 0.0
    relative = estimate.value / abs(mean) if mean else None
    return _paired(estimate, relative, differences, lower_is_better=direction)


def _drawn(paired: Paired, columns: tuple[FloatArray, FloatArray], metric: str, how: tuple[Statistic, float]) -> Paired:
    """Return the same with the interval of the log's own variation.

    A difference of two policies varies with the load that a draw has, their ratio little. So the interval is that of
    the logarithm of the ratio, and is then shown as the difference that it makes from the baseline's value.
    """
    (statistic, widening), (policy, baseline), known = how, columns, METRICS[metric]
    both = np.isfinite(policy) & np.isfinite(baseline)
    base = baseline[both]
    ratio = logarithms(policy[both], known.lowest) - logarithms(base, known.lowest)
    estimate, value = estimate_drawn(ratio, widening=widening), paired.estimate.value
    if estimate.interval is None:
        interval = None
    else:
        middle = float(np.median(base) if statistic == "median" else base.mean()) + (known.lowest <= 0)
        level = 100.0 if statistic == "ratio" else middle
        low, high = (level * math.expm1(min(end, _HUGE)) for end in (estimate.interval.low, estimate.interval.high))
        # The statistic is another one than the mean of the logarithms; near nothing they may differ in sign.
        interval = Interval(min(low, value), max(high, value))
    verdict = verdict_of(interval, lower_is_better=known.lower_is_better)
    drawn = dataclasses.replace(paired.estimate, interval=interval, p=estimate.p)
    return dataclasses.replace(paired, estimate=drawn, verdict=verdict)


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

    Examples
    --------
    >>> import policyfactory as pf
    >>> tested = pf.evaluate(pf.generate_lublin(256, 500, seed=1), ["FCFS", "SAF"])
    >>> [one.policy for one in pf.compare(tested.outcome.evaluation, metrics=["mean_bsld"])]
    ['SAF']
    """
    name = evaluation.policies[0] if baseline is None else baseline
    if name not in evaluation.policies:
        raise EvaluationError(f"baseline {name} was not evaluated; it is one of {', '.join(evaluation.policies)}")
    return _adjusted(
        [
            _comparison(evaluation, (log, metric, policy, name), statistic, seed)
            for log in evaluation.logs
            for metric in metrics or evaluation.metrics
            for policy in evaluation.policies
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
            _comparison(evaluation, (log, metric, policy, RECORDED), statistic, seed)
            for log in (evaluation.logs if evaluation.recorded is not None else ())
            for metric in evaluation.metrics
            for policy in evaluation.policies
        ]
    )


def _comparison(evaluation: Evaluation, key: tuple[str, str, str, str], statistic: Statistic, seed: int) -> Comparison:
    metric = METRICS[key[1]]
    pair = compare_policies(evaluation, *key, statistic=statistic, seed=seed)
    over_weeks = statistic != "ratio" and evaluation.weekly_column(*key[:3]) is not None
    return Comparison(
        *key,
        statistic="weeks" if over_weeks else statistic,
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
        places = [index for index, row in enumerate(rows) if row.metric == metric]
        together = judged_together([rows[index].verdict for index in places], [rows[index].p for index in places])
        for index, (verdict, p) in zip(places, together, strict=True):
            results[index] = dataclasses.replace(rows[index], verdict=verdict, p_holm=p)
    return results


# Places of the policies in the cases, and in how many cases each is better than each other ----------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Rank:
    """A policy's mean place, 1 is the best.

    Parameters
    ----------
    policy : str
        The policy.
    mean : Estimate
        Its mean place, with interval.
    """

    policy: str
    mean: Estimate


def ranks(values: FloatArray, *, lower_is_better: bool = True) -> FloatArray:
    """Return the place of each value in its row, from 1; equal values share the mean place.

    Parameters
    ----------
    values : float64 array (n_cases, n_policies)
        Values to be ranked along the second axis.
    lower_is_better : bool
        Whether the lowest value is first.

    Returns
    -------
    float64 array (n_cases, n_policies)
    """
    # As `scipy.stats.rankdata` does it, whose import takes longer than a small evaluation.
    placed = np.empty(values.shape)
    for row, row_values in zip(placed, values if lower_is_better else -values, strict=True):
        ordered = np.sort(row_values[~np.isnan(row_values)])
        row[:] = (np.searchsorted(ordered, row_values, "left") + np.searchsorted(ordered, row_values, "right") + 1) / 2
        row[np.isnan(row_values)] = np.nan
    return placed


def mean_ranks(evaluation: Evaluation, metric: str, logs: Sequence[str], *, seed: int = 0) -> list[Rank]:
    """Return the mean place of each policy over the cases of one or several logs.

    The policies are ranked in each case in which all have a value; equal values share the mean place. Over several logs
    the result is the mean of the logs' mean places, every log counting alike, and the cases are drawn within their
    log (stratified): the interval is about other cases of these logs, not about other logs.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    metric : str
        One of its metrics.
    logs : sequence of str
        The strata; those without a complete case are left out.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    list of Rank
        In the order of the policies; empty if the metric has no better direction or there is no complete case.
    """
    direction = METRICS[metric].lower_is_better
    if direction is None:
        return []
    strata = []
    for log in logs:
        values = evaluation.matrix(log, metric)
        complete = values[np.isfinite(values).all(axis=1)]
        if len(complete):
            strata.append(ranks(complete, lower_is_better=direction))
    if not strata:
        return []
    last = float(len(evaluation.policies))
    return [
        Rank(policy, estimate_mean([places[:, index] for places in strata], seed=seed, places=True).within(1.0, last))
        for index, policy in enumerate(evaluation.policies)
    ]


def wins(evaluation: Evaluation, log: str, metric: str) -> Int64Array:
    """Return in how many cases of a log each policy is better than each other; equal values count for neither.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    log, metric : str
        What to compare; of a metric without a better direction the lower value wins.

    Returns
    -------
    int64 array (policies, policies)
        Of the row's policy against the column's.
    """
    values = evaluation.matrix(log, metric)
    if METRICS[metric].lower_is_better is False:
        values = -values
    finite = np.isfinite(values)
    lower = (values[:, :, None] < values[:, None, :]) & finite[:, :, None] & finite[:, None, :]
    counts: Int64Array = lower.sum(axis=0)
    return counts


# How wide the intervals of an evaluation are, relative to the baseline ------------------------------------------------


def half_widths(
    evaluation: Evaluation, *, statistic: Statistic = "median", seed: int = 0
) -> list[tuple[str, str, float]]:
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
    results = []
    for row in compare(evaluation, statistic=statistic, seed=seed, metrics=evaluation.metrics[:1]):
        interval, values = row.interval, evaluation.matrix(row.log, row.metric)
        base = values[:, 0]
        if evaluation.drawn(row.log) is not None:
            # More draws do not make the log longer; they make their own mean more exact, and that is asked for.
            policy_values = values[:, evaluation.policies.index(row.policy)]
            interval = compare_values(policy_values, base, statistic=statistic, seed=seed).estimate.interval
        half = interval.half_width if interval else math.inf
        level = 100.0 if statistic == "ratio" else abs(estimate_value(statistic, base[np.isfinite(base)]).value)
        relative = half / level if level > 0 else 0.0 if half == 0 else math.inf
        results.append((row.log, row.policy, relative))
    return results
