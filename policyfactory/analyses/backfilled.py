"""How many jobs jump the queue: jobs started by backfilling, a case and policy.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
figure 4 and proposition 1: under SQF without a threshold no job is backfilled. The fewer there are, the more closely
the machine follows the order that the policy promises.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policyfactory.analyses.analysis import Analysis
from policyfactory.analyses.estimates import marks_of, share_of
from policyfactory.analyses.logs import LogView
from policyfactory.analyses.plots import colour_of, key_below, name_rows, panels_down
from policyfactory.analyses.tables import cell_of, count_cell, policy_table, share_cell
from policyfactory.analyses.wording import listed, marked_in_words, value_text
from policyfactory.core.arrays import FloatArray
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
        if evaluation.rules.backfill == "none":
            return Section("backfilled", "Backfilled jobs", ("Backfilling is off: no job can be backfilled.",))
        logs = self.by_log(evaluation, seen, _BackfilledJobs)
        picture = Picture(
            "backfilled",
            "Backfilled jobs of each case, a row a policy, a panel a log",
            functools.partial(_draw, logs),
            "A job is backfilled if Slurm's backfilling pass starts it."
            if evaluation.rules.backfill == "slurm"
            else "A job is backfilled if it starts while one ahead of it in the queue stays waiting.",
        )
        return Section("backfilled", "Backfilled jobs", tuple(map(_words, logs)), (_table(logs),), (picture,))


class _BackfilledJobs(LogView):
    """The counts of one log."""

    @functools.cached_property
    def counts(self) -> FloatArray:
        """Backfilled jobs: float64 array (cases, policies)."""
        return self.values(lambda one: one[0])

    def share(self, place: int) -> FloatArray:
        """Return the backfilled jobs under one policy in % of all, a value a case."""
        return self.values(lambda one: 100 * one[0] / one[1])[:, place]

    @functools.cached_property
    def changes(self) -> list[Estimate]:
        """By how many % the backfilled jobs of all cases together differ from the baseline's, under each policy."""
        return [estimate_ratio(own, self.counts[:, 0]) for own in self.counts.T]

    def mark(self, place: int) -> str:
        """Return whether there are more or fewer than under the baseline."""
        return marks_of(self.changes, self.counts, self.drawn, lower_is_better=None)[place]


def _table(logs: Sequence[_BackfilledJobs]) -> Table:
    def change(own: _BackfilledJobs, place: int) -> Cell | None:
        known = place and np.isfinite(own.changes[place].value)
        return cell_of(own.changes[place], own.mark(place)) if known else None

    together = "backfilled jobs of all cases together, 100 (policy / baseline - 1)"
    columns = {
        Column("backfilled jobs", "jobs", "mean over the cases"): lambda own, place: count_cell(own.counts[:, place]),
        Column("of all jobs", "%", "mean over the cases of their share"): lambda own, place: share_cell(
            own.share(place)
        ),
        Column(f"against {logs[0].baseline}", "%", together): change,
    }
    note = (
        "95 % intervals over the cases. Neither more nor fewer is better: fewer means that the queue's order is kept."
    )
    return policy_table("backfilled", "Backfilled jobs", logs, columns, note)


def _words(own: _BackfilledJobs) -> str:
    base, policies, there = own.baseline, own.policies, [bool(counts.any()) for counts in own.counts.T]
    if not any(there):
        return f"{own.titled}: no job is backfilled under any policy."
    none = [policy for policy, some in zip(policies, there, strict=True) if not some]
    if not there[0]:
        some = [policy for policy in policies if policy not in none]
        return f"{own.titled}: under {base} no job is backfilled, but some are under {enumerated(some)}."
    share = share_of(own.share(0))
    text = f"{own.titled}: under {base} {value_text(share, '%')} of the jobs are backfilled."
    changes = dict(zip(policies, own.changes, strict=True))
    text += marked_in_words(
        policies,
        lambda place: own.mark(place) if there[place] else "none",
        {"lower": f"Fewer than under {base}", "higher": f"More than under {base}"},
        lambda policy: f"{policy} {value_text(changes[policy], '%', signed=True)}",
    )
    text += marked_in_words(policies, own.mark, {"no difference": f"No difference is shown from {base}"})
    text += listed("None at all", none)
    if len(policies) > 1 and share.interval is None:
        rest = [f"{policy} {changes[policy].value:+.0f} %" for policy in policies[1:] if policy not in none]
        text += f"{listed(f'Against {base}', rest)} {own.few_cases}"
    return text


def _draw(logs: Sequence[_BackfilledJobs]) -> Figure:
    from matplotlib.ticker import MaxNLocator

    policies = logs[0].policies
    figure, panels = panels_down(len(logs), 0.9 + 0.32 * len(policies))
    for axes, own in zip(panels, logs, strict=True):
        for place, values in enumerate(own.counts.T):
            colour = colour_of(min(place, 1))
            spread = np.zeros(len(values))
            if len(values) >= _BOX_FROM:
                low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
                axes.barh(place, high - low, left=low, height=0.6, color=colour, alpha=0.3)
                axes.plot([middle, middle], [place - 0.3, place + 0.3], color="black", linewidth=1.5)
                # Spread by a fixed pattern, so that equal data give equal pictures.
                spread = 0.18 * np.sin(2.4 * np.arange(len(values)))
            axes.scatter(values, place + spread, s=12, color=colour, linewidths=0, zorder=3)
        name_rows(axes, own)
        largest = max(float(own.counts.max()), 1.0)
        axes.set_xlim(-0.02 * largest, 1.04 * largest)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain_numbers(axes.xaxis)
        axes.set_xlabel("backfilled jobs of a case")
    with_box = any(len(own.kept) >= _BOX_FROM for own in logs)
    box = " Box: the middle half of the cases; line: median." if with_box else ""
    key_below(figure, f"Dot: a case.{box} Orange: the baseline.")
    return figure
