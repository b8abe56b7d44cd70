"""Whom a policy makes wait: the sizes of the jobs with the highest bounded slowdown of each case.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
figure 2. A policy that does not look at sizes can delay jobs of one processor, which fit almost everywhere.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import Analysis, whole_number
from policyfactory.analyses.estimates import by_log, mark_of, median_difference, median_of, policies_by_mark
from policyfactory.analyses.plots import colour_of, key_below, name_rows, panels_down
from policyfactory.analyses.tables import median_cell, policy_columns, policy_rows
from policyfactory.analyses.wording import against, cases_text, few_cases, listed
from policyfactory.core.picture import plain_numbers
from policyfactory.core.text import enumerated
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulate.metrics import job_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Delayed", "DelayedJobs"]

Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_MOST = 10_000
_FEW_POLICIES = 5


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class DelayedJobs:
    """What is kept of one schedule: sizes of the most delayed jobs, the least slowdown among them, a middling size."""

    processors: Int64Array
    least: float
    typical: float


@dataclasses.dataclass(frozen=True, slots=True)
class Delayed(Analysis):
    """The sizes of the jobs with the highest bounded slowdown.

    Parameters
    ----------
    count : int
        Jobs of each case that are looked at; jobs of slowdown 1 are not delayed and never among them.

    Raises
    ------
    UsageError
        If the count is no number of 1 to 10,000.
    """

    name: ClassVar[str] = "delayed"
    count: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", min(whole_number(self.name, "count", self.count, 1), _MOST))

    def observe(self, case: Case, schedule: Schedule) -> DelayedJobs:
        """Return the sizes of the most delayed jobs; of equal slowdowns the first submitted ones."""
        slowdown = job_values(schedule, "bsld")
        processors = schedule.workload.processors
        rows = np.flatnonzero(slowdown > 1.0)
        if len(rows) > self.count:
            # Without the many equal ones, which would take long to part.
            delayed = slowdown[rows]
            rows = rows[delayed >= np.partition(delayed, len(rows) - self.count)[-self.count]]
        rows = rows[np.argsort(-slowdown[rows], kind="stable")][: self.count]
        typical = _middle(processors)
        return DelayedJobs(processors[rows].copy(), float(slowdown[rows[-1]]) if len(rows) else np.nan, typical)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the section: the sizes of all cases together, and the middle of each case compared."""
        kept = {log: by_log(evaluation, seen, log) for log in evaluation.logs}
        title = f"Whom a policy delays: the sizes of the {self.count:,} jobs of highest slowdown"
        if self.count == 1:
            title = "Whom a policy delays: the size of the job of highest slowdown"
        return Section(
            "delayed",
            title,
            tuple(_words(evaluation, log, kept[log]) for log in evaluation.logs),
            (self._table(evaluation, kept),),
            (
                Picture(
                    "delayed",
                    f"Processors of the {self.count:,} most delayed jobs of each case, a row a policy, a panel a log",
                    lambda: _draw(evaluation, kept),
                    "Delayed most: highest bounded slowdown max((wait + run)/max(run, 10 s), 1).",
                ),
            ),
        )

    def _table(self, evaluation: Evaluation, kept: dict[str, list[list[DelayedJobs]]]) -> Table:
        def cells(log: str, place: int) -> tuple[Cell, ...]:
            middles = _middles(kept[log])
            pooled = np.concatenate([case[place].processors for case in kept[log]])
            low, high = np.quantile(pooled, [0.25, 0.75]).tolist() if len(pooled) else (None, None)
            middle = median_cell(middles[:, place], _mark(middles, place) if place else "")
            least = median_cell(np.array([case[place].least for case in kept[log]]))
            return Cell(low), middle, Cell(high), Cell(_one(pooled)), least

        return Table(
            "delayed",
            f"Processors of the {self.count:,} most delayed jobs of each case",
            policy_columns(
                evaluation.logs,
                Column("25 %", "processors", "a quarter of these jobs of all cases have no more"),
                Column("middle", "processors", "median of these jobs of a case, median over the cases"),
                Column("75 %", "processors", "a quarter of these jobs of all cases have no fewer"),
                Column("serial", "%", "of these jobs of all cases have one processor"),
                Column("slowdown from", "1", "lowest bounded slowdown among them, median over the cases"),
            ),
            policy_rows(evaluation.logs, evaluation.policies, cells),
            f"95 % intervals over the cases.{against(evaluation)}",
        )


def _middle(processors: Int64Array) -> float:
    """Return the (lower) median size, by counting where sizes are small numbers."""
    if not len(processors) or processors.max() > 1 << 20:
        middle = (len(processors) + 1) // 2 - 1
        return float(np.partition(processors, middle)[middle]) if len(processors) else 0.0
    return float(np.searchsorted(np.cumsum(np.bincount(processors)), (len(processors) + 1) // 2))


def _one(pooled: Int64Array) -> float | None:
    return 100 * float(np.mean(pooled == 1)) if len(pooled) else None


def _middles(kept: list[list[DelayedJobs]]) -> FloatArray:
    """Return the median size of the delayed jobs: float64 array (cases, policies), NaN where no job was delayed."""
    return np.array(
        [[np.median(one.processors) if len(one.processors) else np.nan for one in case] for case in kept],
        dtype=np.float64,
    )


def _words(evaluation: Evaluation, log: str, kept: list[list[DelayedJobs]]) -> str:
    middles = _middles(kept)
    where = f"{log} ({cases_text(evaluation, log)})"
    if not np.isfinite(middles).any():
        return f"{where}: no job is delayed under any policy."
    typical = float(np.median([case[0].typical for case in kept]))
    sizes = _sizes(evaluation, middles)
    text = f"{where}: the median size of the most delayed jobs is {sizes}; of all jobs it is {typical:g}."
    if len(evaluation.policies) == 1:
        return text
    if not any(_mark(middles, place) for place in range(1, len(evaluation.policies))):
        return f"{text} {few_cases(evaluation, log)}"
    marked = policies_by_mark(evaluation.policies, lambda place: _mark(middles, place))
    for word, what in (("higher", "Larger"), ("lower", "Smaller")):
        if word in marked:
            text += f" {what} jobs than under {evaluation.baseline} are delayed under {enumerated(marked[word])}."
    return text + listed(f"No difference in size from {evaluation.baseline}", marked.get("no difference", []))


def _mark(middles: FloatArray, place: int) -> str:
    return mark_of(median_difference(middles, place), lower_is_better=None)


def _sizes(evaluation: Evaluation, middles: FloatArray) -> str:
    """Return the middle size under each policy, or of many policies the baseline and the two extremes."""
    sizes = {
        policy: median_of(middles[:, place]).value
        for place, policy in enumerate(evaluation.policies)
        if np.isfinite(middles[:, place]).any()
    }
    shown = list(sizes)
    if len(shown) > _FEW_POLICIES:
        shown = list(dict.fromkeys([shown[0], min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)]))
    listing = enumerated(f"{sizes[policy]:,g} under {policy}" for policy in shown)
    return listing if len(shown) == len(sizes) else f"{listing}, the rest between"


def _draw(evaluation: Evaluation, kept: dict[str, list[list[DelayedJobs]]]) -> Figure:
    from matplotlib.ticker import LogLocator

    policies = evaluation.policies
    figure, panels = panels_down(len(evaluation.logs), 0.9 + 0.32 * len(policies))
    for axes, log in zip(panels, evaluation.logs, strict=True):
        for place in range(len(policies)):
            pooled = np.concatenate([case[place].processors for case in kept[log]])
            if not len(pooled):
                continue
            colour = colour_of(min(place, 1))
            ends = np.quantile(pooled, [0.05, 0.25, 0.5, 0.75, 0.95])
            axes.plot(ends[[0, 4]], [place, place], color=colour, linewidth=1.2)
            axes.barh(place, ends[3] - ends[1], left=ends[1], height=0.6, color="white", zorder=2)
            axes.barh(place, ends[3] - ends[1], left=ends[1], height=0.6, color=colour, alpha=0.4, zorder=2)
            axes.plot(ends[[2, 2]], [place - 0.3, place + 0.3], color="black", linewidth=1.8, zorder=3)
        typical = float(np.median([case[0].typical for case in kept[log]]))
        axes.axvline(typical, color="#7f7f7f", linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
        machine = max(evaluation.cases[row].machine for row in evaluation.rows(log).tolist())
        axes.set_xscale("log", base=2)
        axes.set_xlim(0.9, 1.1 * machine)
        axes.xaxis.set_major_locator(LogLocator(base=4 if machine < 5000 else 16))
        plain_numbers(axes.xaxis, minor=False)
        name_rows(axes, evaluation, log)
        axes.set_xlabel(f"processors of the job (the machine has {machine:,}), logarithmic")
    key_below(
        figure,
        "Box: middle half; line: median; whiskers: 5 to 95 %. Dashed: median of all jobs. Orange: the baseline.",
    )
    return figure
