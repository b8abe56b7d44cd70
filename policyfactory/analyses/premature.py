"""Jobs that end long before their request, and how much worse they fare than the others.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
tables III and IV: a job is premature if its requested time is at least 100 times its run time. Such jobs have huge
slowdowns whatever the policy, and a policy that sorts by requested times takes them for long ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import Analysis
from policyfactory.analyses.estimates import by_log, mark_of, mean_of, median_difference, median_of, policies_by_mark
from policyfactory.analyses.tables import mean_cell, median_cell, policy_columns, policy_rows
from policyfactory.analyses.wording import against, cases_text, few_cases, listed, value_text
from policyfactory.core.errors import UsageError
from policyfactory.core.text import enumerated, number_text
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.simulate.metrics import job_values

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Premature"]

FloatArray = NDArray[np.float64]

_SHARE = "share"  # the key of a published percentage among those of the policies


@dataclasses.dataclass(frozen=True, slots=True)
class Premature(Analysis):
    """How many jobs end long before their request, and their mean bounded slowdown over that of the others.

    Jobs of run time 0 are neither: nothing can be said of their request.

    Parameters
    ----------
    ratio : float
        Requested time over run time from which a job is premature.
    published : mapping of str to mapping of str to float
        For each log the published percentage (key ``share``) and ratio of mean slowdowns (key: name of a policy).
    source : str
        Where these were published.

    Raises
    ------
    UsageError
        If an option cannot be meant.
    """

    name: ClassVar[str] = "premature"
    ratio: float = 100.0
    published: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        ratio = self.ratio
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 1 < ratio < np.inf:
            raise UsageError(f"analysis {self.name}: ratio is {ratio!r}; give a number above 1, for example 100")
        if not isinstance(self.published, Mapping) or not all(map(_is_published, self.published.values())):
            raise UsageError(
                f"analysis {self.name}: published is {self.published!r}; give numbers by log and policy, for example "
                "{ kth = { share = 12.4, FCFS = 8.69 } }"
            )

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse published values of policies that are not there.

        Raises
        ------
        UsageError
            If one is named.
        """
        for log, values in self.published.items():
            for key in values:
                if key != _SHARE and key not in policies:
                    raise UsageError(
                        f"analysis {self.name}: published.{log} has {key!r}; there are {_SHARE} and the policies "
                        f"{', '.join(policies)}"
                    )

    def observe(self, case: Case, schedule: Schedule) -> FloatArray:
        """Return jobs and mean bounded slowdown of the premature ones, then of the others."""
        run_time = schedule.workload.run_time
        premature = (schedule.workload.requested_time >= self.ratio * run_time) & (run_time > 0)
        slowdown = job_values(schedule, "bsld")
        counts = np.array([np.count_nonzero(premature), np.count_nonzero(run_time)], dtype=np.float64)
        counts[1] -= counts[0]
        # Jobs of run time 0 are rare; only where there are some do they have to be told apart.
        sums = np.bincount(np.where(run_time > 0, premature, 2), slowdown, minlength=3)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.array([counts[0], counts[1], sums[1] / counts[0], sums[0] / counts[1]])

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the section: shares by log, ratios by log and policy, beside what was published."""
        kept = {log: np.array(by_log(evaluation, seen, log), dtype=np.float64) for log in evaluation.logs}
        at_least = f"at least {self.ratio:,g} times their run time"
        return Section(
            "premature",
            "Jobs that end long before their request",
            (
                f"Premature are jobs that requested {at_least}.",
                *(self._words(evaluation, log, kept[log]) for log in evaluation.logs),
            ),
            (self._shares(evaluation, kept), self._ratios(evaluation, kept)),
        )

    def _shares(self, evaluation: Evaluation, kept: dict[str, FloatArray]) -> Table:
        has_published = any(_SHARE in self.published.get(log, {}) for log in evaluation.logs)
        rows = [
            (Cell(log), mean_cell(_share(kept[log])), *self._published_cell(has_published, log, _SHARE))
            for log in evaluation.logs
        ]
        columns = (Column("log"), Column("premature jobs", "%", "of the jobs of run time above 0"))
        return Table(
            "premature-shares",
            "Premature jobs of each log",
            (*columns, *self._published_column(has_published)),
            tuple(rows),
            "Mean over the cases, with 95 % intervals.",
        )

    def _ratios(self, evaluation: Evaluation, kept: dict[str, FloatArray]) -> Table:
        has_published = any(
            policy in self.published.get(log, {}) for log in evaluation.logs for policy in evaluation.policies
        )

        def cells(log: str, place: int) -> tuple[Cell, ...]:
            ratio = _ratio(kept[log])
            means = (median_cell(kept[log][:, place, 2]), median_cell(kept[log][:, place, 3]))
            published = self._published_cell(has_published, log, evaluation.policies[place])
            return (median_cell(ratio[:, place], _mark(ratio, place) if place else ""), *means, *published)

        columns = policy_columns(
            evaluation.logs,
            Column("ratio", "1", "mean bounded slowdown of the premature jobs over that of the others, in each case"),
            Column("premature", "1", "mean bounded slowdown of the premature jobs"),
            Column("others", "1", "mean bounded slowdown of the other jobs"),
        )
        return Table(
            "premature-ratios",
            "Mean bounded slowdown of premature jobs over that of the others",
            (*columns, *self._published_column(has_published)),
            policy_rows(evaluation.logs, evaluation.policies, cells),
            f"Medians over the cases, with 95 % intervals.{against(evaluation)}",
        )

    def _published_column(self, has_published: bool) -> tuple[Column, ...]:  # noqa: FBT001 (a column is there or not)
        return (Column("published", "1", self.source),) if has_published else ()

    def _published_cell(self, has_published: bool, log: str, key: str) -> tuple[Cell, ...]:  # noqa: FBT001 (as above)
        return (Cell(self.published.get(log, {}).get(key)),) if has_published else ()

    def _words(self, evaluation: Evaluation, log: str, kept: FloatArray) -> str:
        share, ratio = mean_of(_share(kept)), _ratio(kept)
        text = f"{log} ({cases_text(evaluation, log)}): {value_text(share, '%')} of the jobs are premature."
        own = median_of(ratio[:, 0])
        if not own.cases:
            return f"{text} Premature and other jobs cannot be compared: no case has both."
        base = evaluation.baseline
        text += f" Under {base} their mean slowdown is {value_text(own)} times that of the others."
        if len(evaluation.policies) == 1:
            return text
        if own.interval is None:
            rest = [
                f"{number_text(median_of(ratio[:, at]).value)} under {evaluation.policies[at]}"
                for at in range(1, ratio.shape[1])
            ]
            return f"{text} It is {enumerated(rest)}. {few_cases(evaluation, log)}"
        marked = policies_by_mark(evaluation.policies, lambda place: _mark(ratio, place))
        for word, what in (("higher", "Farther apart"), ("lower", "Closer together")):
            values = [
                f"{policy} ({number_text(median_of(ratio[:, evaluation.policies.index(policy)]).value)})"
                for policy in marked.get(word, [])
            ]
            text += listed(f"{what} than under {base}", values)
        return text + listed(f"No difference from {base}", marked.get("no difference", []))


def _mark(ratio: FloatArray, place: int) -> str:
    return mark_of(median_difference(ratio, place), lower_is_better=None)


def _is_published(values: object) -> bool:
    if not isinstance(values, Mapping):
        return False
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values.values())


def _share(kept: FloatArray) -> FloatArray:
    """Return the premature jobs of each case in %; they are the same under every policy."""
    jobs = kept[:, 0, 0] + kept[:, 0, 1]
    return np.asarray(100 * np.divide(kept[:, 0, 0], jobs, out=np.full(len(jobs), np.nan), where=jobs > 0))


def _ratio(kept: FloatArray) -> FloatArray:
    """Return the ratio of the two mean slowdowns: float64 array (cases, policies), NaN without one of the two."""
    return np.asarray(kept[:, :, 2] / kept[:, :, 3])
