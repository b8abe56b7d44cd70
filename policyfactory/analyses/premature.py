"""Jobs that end long before their request, and how much worse they fare than the others.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
tables III and IV: a job is premature if its requested time is at least 100 times its run time. Such jobs have huge
slowdowns whatever the policy, and a policy that sorts by requested times takes them for long ones.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policyfactory.analyses.analysis import Analysis
from policyfactory.analyses.estimates import marks_of, median_differences, median_of, share_of
from policyfactory.analyses.logs import LogView
from policyfactory.analyses.tables import median_cell, policy_table, share_cell
from policyfactory.analyses.wording import against, marked_in_words, value_text
from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import UsageError
from policyfactory.core.text import enumerated, number_text
from policyfactory.report.sections import Column, Section, Table
from policyfactory.simulate.metrics import job_values

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Premature"]


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
        If an option is not as it must be.
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
        logs = self.by_log(evaluation, seen, _PrematureOfLog)
        first = f"Premature are jobs that requested at least {self.ratio:,g} times their run time."
        return Section(
            "premature",
            "Jobs that end long before their request",
            (first, *map(_words, logs)),
            (self._shares(logs), self._ratios(logs)),
        )

    def _shares(self, logs: Sequence[_PrematureOfLog]) -> Table:
        columns = {
            Column("log"): lambda own: own.log,
            Column("premature jobs", "%", "of the jobs of run time above 0"): lambda own: share_cell(own.share),
        }
        if any(_SHARE in self.published.get(own.log, {}) for own in logs):
            published = Column("published", "1", self.source)
            columns[published] = lambda own: self.published.get(own.log, {}).get(_SHARE)
        note = "Mean over the cases, with 95 % intervals."
        return Table.of("premature-shares", "Premature jobs of each log", columns, zip(logs), note)

    def _ratios(self, logs: Sequence[_PrematureOfLog]) -> Table:
        what = "mean bounded slowdown of the premature jobs"
        columns: dict[Column, Callable[..., Any]] = {
            Column("ratio", "1", f"{what} over that of the others, in each case"): (
                lambda own, place: median_cell(own.ratio[:, place], own.mark(place))
            ),
            Column("premature", "1", what): lambda own, place: median_cell(own.sums[:, place, 2]),
            Column("others", "1", "mean bounded slowdown of the other jobs"): (
                lambda own, place: median_cell(own.sums[:, place, 3])
            ),
        }

        def published(own: LogView, place: int) -> float | None:
            return self.published.get(own.log, {}).get(own.policies[place])

        if any(published(own, place) is not None for own in logs for place in range(len(own.policies))):
            columns[Column("published", "1", self.source)] = published
        return policy_table(
            "premature-ratios",
            "Mean bounded slowdown of premature jobs over that of the others",
            logs,
            columns,
            f"Medians over the cases, with 95 % intervals.{against(logs[0].evaluation)}",
        )


class _PrematureOfLog(LogView):
    """The premature jobs of one log."""

    @functools.cached_property
    def sums(self) -> FloatArray:
        """What was kept: float64 array (cases, policies, 4)."""
        return np.array(self.kept, dtype=np.float64)

    @functools.cached_property
    def share(self) -> FloatArray:
        """The premature jobs of each case in %; they are the same under every policy."""
        premature, others = self.sums[:, 0, 0], self.sums[:, 0, 1]
        jobs = premature + others
        return np.asarray(100 * np.divide(premature, jobs, out=np.full(len(jobs), np.nan), where=jobs > 0))

    @functools.cached_property
    def ratio(self) -> FloatArray:
        """Ratio of the two mean slowdowns: float64 array (cases, policies), NaN without one of the two."""
        return np.asarray(self.sums[:, :, 2] / self.sums[:, :, 3])

    def mark(self, place: int) -> str:
        """Return whether the ratio is higher or lower than under the baseline."""
        return marks_of(median_differences(self.ratio), self.ratio, self.drawn, lower_is_better=None)[place]


def _words(own: _PrematureOfLog) -> str:
    ratio, base = own.ratio, own.baseline
    text = f"{own.titled}: {value_text(share_of(own.share), '%')} of the jobs are premature."
    first = median_of(ratio[:, 0])
    if not first.cases:
        return f"{text} Premature and other jobs cannot be compared: no case has both."
    text += f" Under {base} their mean slowdown is {value_text(first)} times that of the others."
    if len(own.policies) == 1:
        return text
    middles = {policy: number_text(median_of(ratio[:, at]).value) for at, policy in enumerate(own.policies)}
    if first.interval is None:
        rest = [f"{middles[policy]} under {policy}" for policy in own.policies[1:]]
        return f"{text} It is {enumerated(rest)}. {own.few_cases}"
    apart = {"higher": f"Farther apart than under {base}", "lower": f"Closer together than under {base}"}
    text += marked_in_words(own.policies, own.mark, apart, lambda policy: f"{policy} ({middles[policy]})")
    return text + marked_in_words(own.policies, own.mark, {"no difference": f"No difference is shown from {base}"})


def _is_published(values: object) -> bool:
    if not isinstance(values, Mapping):
        return False
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values.values())
