"""How many jobs jump the queue: jobs started by backfilling, a case and policy.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
figure 4 and proposition 1: under SQF without a threshold no job is backfilled. The fewer there are, the more closely
the machine follows the order that the policy promises.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import Analysis
from policyfactory.analyses.estimates import by_log, mark_of, mean_of, policies_by_mark
from policyfactory.analyses.plots import colour_of, key_below, name_rows, panels_down
from policyfactory.analyses.tables import cell_of, mean_cell, policy_columns, policy_rows
from policyfactory.analyses.wording import cases_text, few_cases, listed, value_text
from policyfactory.core.picture import plain_numbers
from policyfactory.core.text import enumerated
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.statistics.intervals import Estimate
from policyfactory.statistics.means import estimate_ratio

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Backfilled"]

FloatArray = NDArray[np.float64]

_BOX_FROM = 5  # with fewer cases a box would say more than is known


@dataclasses.dataclass(frozen=True, slots=True)
class Backfilled(Analysis):
    """How many jobs were started while one ahead of them in the queue stayed waiting."""

    name: ClassVar[str] = "backfilled"

    def observe(self, case: Case, schedule: Schedule) -> tuple[int, int]:
        """Return the number of backfilled jobs, and of all."""
        return int(np.count_nonzero(schedule.backfilled)), len(schedule)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the section: counts, shares, and the change against the baseline."""
        counts = {log: np.array(by_log(evaluation, seen, log), dtype=np.float64) for log in evaluation.logs}
        if evaluation.rules.backfill == "none":
            return Section("backfilled", "Backfilled jobs", ("Backfilling is off: no job can be backfilled.",))
        return Section(
            "backfilled",
            "Backfilled jobs",
            tuple(_words(evaluation, log, counts[log]) for log in evaluation.logs),
            (_table(evaluation, counts),),
            (
                Picture(
                    "backfilled",
                    "Backfilled jobs of each case, a row a policy, a panel a log",
                    lambda: _draw(evaluation, counts),
                    "A job is backfilled if it starts while one ahead of it in the queue stays waiting.",
                ),
            ),
        )


def _change(counts: FloatArray, place: int) -> Estimate:
    """Return by how many % the backfilled jobs of all cases together differ from the baseline's."""
    return estimate_ratio(counts[:, place, 0], counts[:, 0, 0])


def _share(counts: FloatArray, place: int) -> FloatArray:
    return np.asarray(100 * counts[:, place, 0] / counts[:, place, 1])


def _table(evaluation: Evaluation, counts: dict[str, FloatArray]) -> Table:
    def cells(log: str, place: int) -> tuple[Cell, Cell, Cell]:
        own = counts[log]
        change = _change(own, place)
        against = cell_of(change, _mark(change)) if place and np.isfinite(change.value) else Cell(None)
        return mean_cell(own[:, place, 0]), mean_cell(_share(own, place)), against

    return Table(
        "backfilled",
        "Backfilled jobs",
        policy_columns(
            evaluation.logs,
            Column("backfilled jobs", "jobs", "mean over the cases"),
            Column("of all jobs", "%", "mean over the cases of their share"),
            Column(
                f"against {evaluation.baseline}",
                "%",
                "backfilled jobs of all cases together, 100 (policy / baseline - 1)",
            ),
        ),
        policy_rows(evaluation.logs, evaluation.policies, cells),
        "95 % intervals over the cases. Neither more nor fewer is better: fewer means that the queue's order is kept.",
    )


def _mark(change: Estimate) -> str:
    return mark_of(change, lower_is_better=None)


def _words(evaluation: Evaluation, log: str, counts: FloatArray) -> str:
    base = evaluation.baseline
    own, where = mean_of(_share(counts, 0)), f"{log} ({cases_text(evaluation, log)})"
    text = f"{where}: under {base} {value_text(own, '%')} of the jobs are backfilled."
    if not counts[:, :, 0].any():
        return f"{where}: no job is backfilled under any policy."
    policies = evaluation.policies
    changes = {policy: _change(counts, place) for place, policy in enumerate(policies) if place > 0}
    marked = policies_by_mark(policies, lambda place: _mark(changes[policies[place]]))
    none = [policy for place, policy in enumerate(policies) if not counts[:, place, 0].any()]
    if not counts[:, 0, 0].any():
        some = [policy for policy in changes if policy not in none]
        return f"{where}: under {base} no job is backfilled, but some are under {enumerated(some)}."
    for word, more in (("lower", "Fewer"), ("higher", "More")):
        some = [policy for policy in marked.get(word, []) if policy not in none]
        values = [f"{policy} {value_text(changes[policy], '%', signed=True)}" for policy in some]
        text += listed(f"{more} than under {base}", values)
    text += listed(f"No difference from {base}", marked.get("no difference", [])) + listed("None at all", none)
    if changes and own.interval is None:
        rest = [f"{policy} {change.value:+.0f} %" for policy, change in changes.items() if policy not in none]
        text += f"{listed(f'Against {base}', rest)} {few_cases(evaluation, log)}"
    return text


def _draw(evaluation: Evaluation, counts: dict[str, FloatArray]) -> Figure:
    from matplotlib.ticker import MaxNLocator

    policies = evaluation.policies
    figure, panels = panels_down(len(evaluation.logs), 0.9 + 0.32 * len(policies))
    for axes, log in zip(panels, evaluation.logs, strict=True):
        for place in range(len(policies)):
            values = counts[log][:, place, 0]
            colour = colour_of(min(place, 1))
            if len(values) >= _BOX_FROM:
                low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
                axes.barh(place, high - low, left=low, height=0.6, color=colour, alpha=0.3)
                axes.plot([middle, middle], [place - 0.3, place + 0.3], color="black", linewidth=1.5)
            # Spread by a fixed pattern, so that equal data give equal pictures.
            spread = 0.18 * np.sin(2.4 * np.arange(len(values))) if len(values) >= _BOX_FROM else np.zeros(len(values))
            axes.scatter(values, place + spread, s=12, color=colour, linewidths=0, zorder=3)
        name_rows(axes, evaluation, log)
        largest = float(counts[log][:, :, 0].max())
        axes.set_xlim(-0.02 * max(largest, 1.0), 1.04 * max(largest, 1.0))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain_numbers(axes.xaxis)
        axes.set_xlabel("backfilled jobs of a case")
    box = " Box: the middle half of the cases; line: median." if max(map(len, counts.values())) >= _BOX_FROM else ""
    key_below(figure, f"Dot: a case.{box} Orange: the baseline.")
    return figure
