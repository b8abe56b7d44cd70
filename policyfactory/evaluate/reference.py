"""Published values beside ours: the number, its interval, how far it is from the paper's, and whether it is met."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import counted
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.intervals import Estimate, Statistic, check_statistic, estimate_difference, estimate_value

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["PublishedValue", "Reference", "reference_section", "reference_values"]


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    """What a paper printed for an experiment: one number a log and policy.

    Parameters
    ----------
    source : str
        Where it is printed ("table 4").
    metric : str
        The metric, one of the experiment's.
    values : mapping of str to mapping of str to float
        Log, policy, number; in the metric's unit, or in % for the statistic ``ratio`` (-57 for 57 % less than the
        baseline).
    statistic : {"median", "mean", "ratio"}
        What the published number is; may differ from the experiment's own statistic.
    digits : int
        Decimals that the paper prints; negative for numbers rounded to tens (-1), hundreds (-2), ...
    drop : mapping of str to mapping of str to int
        Log, policy, how many of the policy's largest values the paper left out (0 where nothing is said).
    first : int or None
        Use only so many of the first cases of a log; None: all.
    cut : bool
        The paper cuts further decimals off, where others round.
    significant : int or None
        No number is printed with more significant figures than this, whatever ``digits`` says; None: no such bound.
    rounded_first : int or None
        The paper has rounded to so many decimals before it rounded to those that it prints; None: it rounded once.

    Raises
    ------
    UsageError
        If the statistic is unknown, ``first`` is below 1, or a ``drop`` is negative or given for a ratio.
    """

    source: str
    metric: str
    values: Mapping[str, Mapping[str, float]]
    statistic: Statistic = "median"
    digits: int = 2
    drop: Mapping[str, Mapping[str, int]] = dataclasses.field(default_factory=dict)
    first: int | None = None
    cut: bool = False
    significant: int | None = None
    rounded_first: int | None = None

    def __post_init__(self) -> None:
        check_statistic(self.statistic)
        if self.first is not None and self.first < 1:
            raise UsageError(f"reference {self.source}: first is {self.first}; give at least 1 case")
        for log, policies in self.drop.items():
            for policy, count in policies.items():
                if count < 0:
                    raise UsageError(f"reference {self.source}: drop of {log}, {policy} is {count}; give 0 or more")
                if count and self.statistic == "ratio":
                    raise UsageError(
                        f"reference {self.source}: drop of {log}, {policy} would leave cases without their pair; "
                        "a ratio needs all of them"
                    )


@dataclasses.dataclass(frozen=True, slots=True)
class PublishedValue:
    """One published number and ours.

    Parameters
    ----------
    log, policy : str
        Where.
    published : float
        The paper's number.
    ours : Estimate
        The same statistic of our values, with interval.
    met : bool
        Whether ours, rounded to the digits that the paper prints, is the paper's.
    """

    log: str
    policy: str
    published: float
    ours: Estimate
    met: bool

    @property
    def deviation(self) -> float | None:
        """Ours over the paper's, minus 1, in %; None if the paper's is 0."""
        return 100 * (self.ours.value / self.published - 1) if self.published else None

    @property
    def covered(self) -> bool:
        """Whether the paper's number lies in our interval."""
        return self.ours.interval is not None and self.ours.interval.covers(self.published)


def reference_values(evaluation: Evaluation, reference: Reference, *, seed: int = 0) -> list[PublishedValue]:
    """Return each published number with ours, by log and policy; those that were not evaluated are left out.

    Parameters
    ----------
    evaluation : Evaluation
        Our values.
    reference : Reference
        The published ones.
    seed : int
        Seed of the bootstrap.
    """
    pairs = []
    for log, policies in reference.values.items():
        if log not in evaluation.logs:
            continue
        values = evaluation.matrix(log, reference.metric)[: reference.first]
        for policy, published in policies.items():
            if policy not in evaluation.policies:
                continue
            column = values[:, evaluation.policies.index(policy)]
            ours = _ours(reference, column, values[:, 0], reference.drop.get(log, {}).get(policy, 0), seed)
            pairs.append(PublishedValue(log, policy, published, ours, _is_met(ours.value, published, reference)))
    return pairs


def _ours(reference: Reference, column: FloatArray, baseline: FloatArray, drop: int, seed: int) -> Estimate:
    if reference.statistic == "ratio":
        both = np.isfinite(column) & np.isfinite(baseline)
        return estimate_difference("ratio", column[both], baseline[both], seed=seed)
    kept = np.sort(column[np.isfinite(column)])
    metric = METRICS[reference.metric]
    estimate = estimate_value(reference.statistic, kept[: max(0, len(kept) - drop)], seed=seed)
    return estimate.within(metric.lowest, metric.highest)


def _is_met(value: float, published: float, reference: Reference) -> bool:
    """Return whether ``value`` is printed as ``published``; half a unit of the last digit may be rounded either way."""
    digits = reference.digits
    if reference.significant is not None and published:
        digits = min(digits, reference.significant - 1 - math.floor(math.log10(abs(published))))
    unit = 10.0**-digits
    if reference.rounded_first is not None and math.isfinite(value):
        value = round(value, reference.rounded_first)
    if reference.cut:
        return math.isfinite(value) and -1e-9 * unit <= (value - published) * math.copysign(1.0, published) < unit
    return math.isfinite(value) and abs(value - published) <= unit / 2 * (1 + 1e-9)


def reference_section(evaluation: Evaluation, reference: Reference, number: int, *, seed: int = 0) -> Section:
    """Return the section that shows published values beside ours.

    Parameters
    ----------
    evaluation, reference, seed
        As in `reference_values`.
    number : int
        Its number among the experiment's references, from 1.
    """
    pairs = reference_values(evaluation, reference, seed=seed)
    ratio = reference.statistic == "ratio"
    unit = "%" if ratio else METRICS[reference.metric].unit
    shown, decimals = "s" if unit == "s" else "", max(0, reference.digits)
    columns = {
        Column("log"): lambda row: row.log,
        Column("policy"): lambda row: row.policy,
        Column("published", unit, f"as printed in {reference.source}", shown, decimals): lambda row: row.published,
        Column("ours", unit, "the same statistic of our values, with its 95 % interval over cases", shown, decimals): (
            lambda row: Cell(row.ours.value, row.ours.interval)
        ),
        Column("deviation", "percentage points" if ratio else "%", "ours against the published number"): (
            lambda row: row.ours.value - row.published if ratio else row.deviation
        ),
        Column("to the digit", "", "whether ours, with as many decimals as the paper prints, is the printed number"): (
            lambda row: "met" if row.met else "not met"
        ),
    }
    title = f"{reference.metric}, {reference.source}: {'ratio of sums' if ratio else reference.statistic}"
    table = Table.of(f"published-{number}", title, columns, zip(pairs), _how(reference))
    name = "published" if number == 1 else f"published-{number}"
    return Section(name, f"Published values: {reference.source}", tuple(_in_words(pairs)), (table,))


def _in_words(pairs: list[PublishedValue]) -> list[str]:
    if not pairs:
        return ["None of the published values belongs to a log and policy that were evaluated."]
    met, certain = sum(row.met for row in pairs), [row for row in pairs if row.ours.interval]
    text = f"{met} of {counted(len(pairs), 'published value')} {'is' if met == 1 else 'are'} met to the printed digit."
    if certain:
        covered = sum(row.covered for row in certain)
        text += f" Our 95 % interval holds {covered} of {len(certain)}."
    return [text]


def _how(reference: Reference) -> str:
    parts = []
    if reference.cut:
        parts.append("The paper cuts further decimals off.")
    if reference.rounded_first is not None:
        parts.append(f"The paper rounded to {reference.rounded_first} decimals first, and then once more.")
    if reference.first is not None:
        parts.append(f"Of each log the first {counted(reference.first, 'case')}, as in the paper.")
    dropped = [
        f"{log}, {policy}: {count}" for log, row in reference.drop.items() for policy, count in row.items() if count
    ]
    if dropped:
        parts.append("Left out, as in the paper, so many of the largest values: " + "; ".join(dropped) + ".")
    return " ".join(parts)
