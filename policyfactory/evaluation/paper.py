"""What a paper says, beside ours: published values, and sentences made testable.

A published number is shown with ours, its interval, how far they are apart, and whether ours is met to the printed
digit. A claim says which policies shall be better than which, judged pair by pair: it **holds** on a log of an
experiment if every pair is better; it **does not hold** if some pair is worse; otherwise it is **not shown**. All pairs
of the claim on the log are judged together (Holm).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.core.text import counted, enumerated
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.simulation.metrics import METRICS
from policyfactory.statistics.compare import Paired, compare_policies
from policyfactory.statistics.intervals import (
    Estimate,
    Statistic,
    difference_unit,
    estimate_difference,
    estimate_value,
    judged_together,
)

if TYPE_CHECKING:
    from policyfactory.evaluation.experiment import Experiment, Outcome
    from policyfactory.evaluation.options import ClaimTable, ReferenceTable
    from policyfactory.statistics.evaluation import Evaluation


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


def reference_values(evaluation: Evaluation, reference: ReferenceTable, *, seed: int = 0) -> list[PublishedValue]:
    """Return each published number with ours, by log and policy; those that were not evaluated are left out.

    Parameters
    ----------
    evaluation : Evaluation
        Our values.
    reference : ReferenceTable
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


def _ours(reference: ReferenceTable, column: FloatArray, baseline: FloatArray, drop: int, seed: int) -> Estimate:
    if reference.statistic == "ratio":
        both = np.isfinite(column) & np.isfinite(baseline)
        return estimate_difference("ratio", column[both], baseline[both], seed=seed)
    kept = np.sort(column[np.isfinite(column)])
    metric = METRICS[reference.metric]
    estimate = estimate_value(reference.statistic, kept[: max(0, len(kept) - drop)], seed=seed)
    return estimate.within(metric.lowest, metric.highest)


def _is_met(value: float, published: float, reference: ReferenceTable) -> bool:
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


def reference_section(evaluation: Evaluation, reference: ReferenceTable, number: int, *, seed: int = 0) -> Section:
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


def _how(reference: ReferenceTable) -> str:
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


# Sentences of a paper -------------------------------------------------------------------------------------------------


Holds = Literal["holds", "does not hold", "not shown", "too few cases"]


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """A claim on one log of one experiment.

    Parameters
    ----------
    experiment, log : str
        Where.
    statistic : str
        The experiment's statistic.
    verdict : str
        ``holds``, ``does not hold``, ``not shown``, or ``too few cases`` if no pair has an interval.
    pairs : dict of (str, str) to Paired
        The comparison of each pair of the claim, judged together.
    """

    experiment: str
    log: str
    statistic: Statistic
    verdict: Holds
    pairs: Mapping[tuple[str, str], Paired]

    def count(self, verdict: str) -> int:
        """Return how many pairs have this verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs.values())


def judge(claim: ClaimTable, outcomes: Sequence[Outcome]) -> list[ClaimJudgement]:
    """Return whether a claim holds, on each log of each of its experiments.

    Parameters
    ----------
    claim : ClaimTable
        The claim; an experiment without one of its policies or its metric is left out.
    outcomes : sequence of Outcome
        All experiments of the protocol.
    """
    judgements = []
    for outcome in outcomes:
        evaluation, experiment = outcome.evaluation, outcome.experiment
        if claim.experiments and experiment.name not in claim.experiments:
            continue
        known = {*evaluation.policies} >= {*claim.better, *claim.than} and claim.metric in evaluation.metrics
        for log in evaluation.logs if known else ():
            if not claim.logs or log in claim.logs:
                pairs = _compared(claim, evaluation, log, experiment)
                judgements.append(ClaimJudgement(experiment.name, log, experiment.statistic, _verdict(pairs), pairs))
    return judgements


def _compared(
    claim: ClaimTable, evaluation: Evaluation, log: str, experiment: Experiment
) -> dict[tuple[str, str], Paired]:
    compared = functools.partial(
        compare_policies, evaluation, log, claim.metric, statistic=experiment.statistic, seed=experiment.seed
    )
    pairs = [compared(policy, other) for policy, other in claim.pairs]
    called = judged_together([pair.verdict for pair in pairs], [pair.estimate.p for pair in pairs])
    judged = [dataclasses.replace(pair, verdict=verdict) for pair, (verdict, _) in zip(pairs, called, strict=True)]
    return dict(zip(claim.pairs, judged, strict=True))


def _verdict(pairs: Mapping[tuple[str, str], Paired]) -> Holds:
    verdicts = {pair.verdict for pair in pairs.values()}
    if verdicts == {"too few cases"}:
        return "too few cases"
    if verdicts == {"better"}:
        return "holds"
    return "does not hold" if "worse" in verdicts else "not shown"


# In words and tables. ------------------------------------------------------------------------------------------------


def claim_sections(claims: Sequence[ClaimTable], outcomes: Sequence[Outcome]) -> list[Section]:
    """Return which of the claims survive: an overview, then a section a claim with its pairs.

    Parameters
    ----------
    claims : sequence of ClaimTable
        Of the protocol.
    outcomes : sequence of Outcome
        All its experiments.
    """
    judged = [(claim, judge(claim, outcomes)) for claim in claims]
    judged = [(claim, judgements) for claim, judgements in judged if judgements]
    if not judged:
        return []
    sections = [_overview(judged)]
    for number, (claim, judgements) in enumerate(judged, 1):
        tables = tuple(_pairs_table(claim, row, number) for number, row in enumerate(judgements, 1))
        words = (_claim_in_words(claim, judgements),)
        sections.append(Section(f"claim-{number}", f"{number}. {claim.text}", words, tables))
    return sections


def _overview(judged: Sequence[tuple[ClaimTable, list[ClaimJudgement]]]) -> Section:
    places = dict.fromkeys((row.experiment, row.log) for _, judgements in judged for row in judgements)
    columns = {Column("experiment"): lambda experiment, _: experiment, Column("log"): lambda _, log: log}
    for number, (claim, judgements) in enumerate(judged, 1):
        found = {(row.experiment, row.log): row for row in judgements}
        columns[Column(f"claim {number}", "", claim.text)] = lambda *where, found=found: _short(found.get(where))
    how = (
        "A claim holds where each of its pairs is better, and does not hold where some pair is worse, all its pairs "
        "judged together (Holm); elsewhere it is not shown, which is not the same as false."
    )
    texts = [
        f"Claim {number}: {claim.text}. {_totals(judgements)}" for number, (claim, judgements) in enumerate(judged, 1)
    ]
    note = "In brackets: pairs better, of all."
    table = Table.of("claims", "Claims by experiment and log", columns, places, note)
    return Section("claims", "Which conclusions survive", (how, *texts), (table,))


def _totals(judgements: Sequence[ClaimJudgement]) -> str:
    counts = {verdict: sum(row.verdict == verdict for row in judgements) for verdict in get_args(Holds)}
    totals = ", ".join(f"{verdict} in {count}" for verdict, count in counts.items() if count)
    return f"{totals[0].upper()}{totals[1:]} of {len(judgements)}."


def _short(row: ClaimJudgement | None) -> str | None:
    if row is None:
        return None
    if row.verdict == "too few cases":
        return row.verdict
    return f"{row.verdict} ({row.count('better')} of {len(row.pairs)})"


def _claim_in_words(claim: ClaimTable, judgements: list[ClaimJudgement]) -> str:
    parts = []
    for verdict in get_args(Holds):
        places = [f"{row.experiment}, {row.log}" for row in judgements if row.verdict == verdict]
        if places:
            parts.append(f"{verdict} in {len(places)} ({'; '.join(places)})")
    return (
        f"{enumerated(claim.better)} better than {enumerated(claim.than)} by {claim.metric}, "
        f"{counted(len(claim.pairs), 'pair')}: {'; '.join(parts)}."
    )


def _pairs_table(claim: ClaimTable, row: ClaimJudgement, number: int) -> Table:
    unit = difference_unit(row.statistic, METRICS[claim.metric].unit)
    columns = {
        Column("policy"): lambda names, _: names[0],
        Column("than"): lambda names, _: names[1],
        Column("difference", "percentage points" if unit == "pp" else unit, f"{row.statistic} of policy minus than"): (
            lambda _, pair: Cell(
                pair.estimate.value, pair.estimate.interval, pair.verdict if pair.estimate.interval else ""
            )
        ),
        Column("better in", "", "cases in which the policy is better, of all"): (
            lambda _, pair: f"{pair.wins} of {pair.estimate.cases}"
        ),
    }
    return Table.of(f"pairs-{number}", f"{row.experiment}, {row.log}: {row.verdict}", columns, row.pairs.items())
