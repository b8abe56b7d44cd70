"""Sentences of a paper, made testable: which policies shall be better than which, judged pair by pair.

A claim **holds** on a log of an experiment if every pair is better; it **does not hold** if some pair is worse;
otherwise it is **not shown**. All pairs of the claim on the log are judged together (Holm).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted, enumerated
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.compare import Paired, compare_policies
from policyfactory.statistics.intervals import Statistic, difference_unit, judged_together

if TYPE_CHECKING:
    from policyfactory.evaluate.experiment import Experiment, Outcome
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Claim", "ClaimJudgement", "claim_sections", "judge"]

Holds = Literal["holds", "does not hold", "not shown", "too few cases"]


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper and the pairs of policies in which it can be seen.

    Parameters
    ----------
    text : str
        The sentence, in our own words.
    better, than : tuple of str
        Every policy of ``better`` shall be better than every one of ``than``.
    metric : str
        The metric that is meant; must be one of each experiment's.
    experiments : tuple of str
        Names of the experiments in which it is judged; empty: all.
    logs : tuple of str
        Logs on which it is judged; empty: all of the experiment's.

    Raises
    ------
    UsageError
        If there is no pair, or a policy shall be better than itself.
    """

    text: str
    better: tuple[str, ...]
    than: tuple[str, ...]
    metric: str
    experiments: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.better or not self.than:
            raise UsageError(f"claim {self.text!r}: name at least one policy in better and one in than")
        both = sorted(set(self.better) & set(self.than))
        if both:
            raise UsageError(f"claim {self.text!r}: {both[0]} is in better and in than; name it once")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs, (better, than)."""
        return [(one, other) for one in self.better for other in self.than]


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


def judge(claim: Claim, outcomes: Sequence[Outcome]) -> list[ClaimJudgement]:
    """Return whether a claim holds, on each log of each of its experiments.

    Parameters
    ----------
    claim : Claim
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


def _compared(claim: Claim, evaluation: Evaluation, log: str, experiment: Experiment) -> dict[tuple[str, str], Paired]:
    compared = functools.partial(
        compare_policies, evaluation, log, claim.metric, statistic=experiment.statistic, seed=experiment.seed
    )
    pairs = [compared(one, other) for one, other in claim.pairs]
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


def claim_sections(claims: Sequence[Claim], outcomes: Sequence[Outcome]) -> list[Section]:
    """Return which of the claims survive: an overview, then a section a claim with its pairs.

    Parameters
    ----------
    claims : sequence of Claim
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
        tables = tuple(_table(claim, row, at) for at, row in enumerate(judgements, 1))
        words = (_in_words(claim, judgements),)
        sections.append(Section(f"claim-{number}", f"{number}. {claim.text}", words, tables))
    return sections


def _overview(judged: Sequence[tuple[Claim, list[ClaimJudgement]]]) -> Section:
    places = dict.fromkeys((row.experiment, row.log) for _, judgements in judged for row in judgements)
    columns = {Column("experiment"): lambda experiment, _: experiment, Column("log"): lambda _, log: log}
    for number, (claim, judgements) in enumerate(judged, 1):
        own = {(row.experiment, row.log): row for row in judgements}
        columns[Column(f"claim {number}", "", claim.text)] = lambda *place, own=own: _short(own.get(place))
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


def _in_words(claim: Claim, judgements: list[ClaimJudgement]) -> str:
    parts = []
    for verdict in get_args(Holds):
        places = [f"{row.experiment}, {row.log}" for row in judgements if row.verdict == verdict]
        if places:
            parts.append(f"{verdict} in {len(places)} ({'; '.join(places)})")
    return (
        f"{enumerated(claim.better)} better than {enumerated(claim.than)} by {claim.metric}, "
        f"{counted(len(claim.pairs), 'pair')}: {'; '.join(parts)}."
    )


def _table(claim: Claim, row: ClaimJudgement, number: int) -> Table:
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
