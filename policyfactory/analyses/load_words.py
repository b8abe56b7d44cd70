"""The load in words: what was offered, what was done, and what waited."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.common import place_of, under_policies
from policyfactory.analyses.course import LoadSums
from policyfactory.analyses.over_cases import mark_of, median_difference, median_of, told_difference
from policyfactory.core.text import counted, number_text
from policyfactory.report.caveats import noun
from policyfactory.statistics.intervals import MIN_CASES

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["LoadOfLog", "load_in_words"]

FloatArray = NDArray[np.float64]

_FULL = 95.0  # % of offered load from which the queue grows for most of the time, whatever the policy


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LoadOfLog:
    """The loads of all cases of a log.

    Parameters
    ----------
    cases : list of list of LoadSums [case][policy]
        What was seen.
    """

    cases: list[list[LoadSums]]

    def values(self, field: str) -> FloatArray:
        """Return one field: float64 array (cases, policies)."""
        return np.array([[getattr(sums, field) for sums in case] for case in self.cases], dtype=np.float64)

    @property
    def weeks(self) -> int:
        """Whole weeks of the longest case."""
        return max(len(case[0].weeks) for case in self.cases)

    def week(self, week: int) -> FloatArray:
        """Return the utilisation of one week: float64 array (cases, policies), NaN where a case is shorter."""
        return np.array(
            [[sums.weeks[week] if week < len(sums.weeks) else np.nan for sums in case] for case in self.cases]
        )


def load_in_words(evaluation: Evaluation, found: Mapping[str, LoadOfLog]) -> tuple[str, ...]:
    """Return a paragraph a log.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    found : mapping of str to LoadOfLog
        The loads of each log.
    """
    return tuple((f"{log}: " if len(found) > 1 else "") + _of_log(evaluation, log, own) for log, own in found.items())


def _of_log(evaluation: Evaluation, log: str, own: LoadOfLog) -> str:
    policies, what = evaluation.policies, noun(evaluation, log)
    median = f" (medians over {what}s)" if len(own.cases) > 1 else ""
    offered, utilisation, backlog, waiting = (
        median_of(own.values(field)[:, 0]).value for field in ("offered", "utilisation", "backlog", "waiting")
    )
    if not np.isfinite(offered):
        return "All jobs come at one instant, so there is no load over time to speak of."
    text = (
        f"From the first to the last submission {offered:.1f} % of the machine's capacity is submitted and under "
        f"{policies[0]} {utilisation:.1f} % is done{median}; {number_text(waiting)} jobs wait on average, which "
        f"request {number_text(backlog)} times the machine."
    )
    if len(own.cases) > 1:
        most = int(np.argmax(own.values("backlog")[:, 0]))
        number = evaluation.cases[int(evaluation.rows(log)[most])].number
        largest = number_text(float(own.values("backlog")[most, 0]))
        text += f" Most waits in {place_of(evaluation, log, number)}: {largest} times the machine."
    if offered >= _FULL:
        text += " That is so much that the queue hardly empties, and the order of the queue matters most."
    if len(policies) > 1:
        text += _compared(own, policies, what)
    if not own.weeks:
        text += f" No {what} is a whole week long, so there is no utilisation by week."
    return text


def _compared(own: LoadOfLog, policies: tuple[str, ...], what: str) -> str:
    told = [
        _told(own, policies, "utilisation", "utilisation", ("points higher", "points lower"), lower_is_better=False)
    ]
    told.append(
        _told(own, policies, "backlog", "the backlog", ("machines more", "machines less"), lower_is_better=True)
    )
    if len(own.cases) < MIN_CASES:
        told.append(f" No intervals: {counted(len(own.cases), what)}, {MIN_CASES} are needed.")
    return "".join(told)


def _told(
    own: LoadOfLog, policies: tuple[str, ...], field: str, what: str, words: tuple[str, str], *, lower_is_better: bool
) -> str:
    values = own.values(field)
    differs, same = [], []
    for k, policy in enumerate(policies[1:], 1):
        difference = median_difference(values, k)
        if mark_of(difference, lower_is_better=lower_is_better) == "no difference" or difference.value == 0:
            same.append(policy)
        else:
            differs.append(f"{policy} {told_difference(difference, '1', words)}")
    text = f" {what[0].upper()}{what[1:]}, against {policies[0]}: {'; '.join(differs)}." if differs else ""
    if same:
        text += f" No difference in {what} {under_policies(same, len(policies) - 1)}."
    return text
