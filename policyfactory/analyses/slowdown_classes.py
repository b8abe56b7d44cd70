"""How slowdowns are distributed: shares of the jobs at 1, from 1 to 10, from 10 to 100, and from 100 on.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
figure 3. A mean slowdown is decided by a few jobs; the classes say how many are served at once and how many badly.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import Analysis
from policyfactory.analyses.estimates import by_log, mark_of, mean_difference, mean_of, policies_by_mark
from policyfactory.analyses.plots import name_rows, panels_down
from policyfactory.analyses.tables import mean_cell, policy_columns, policy_rows
from policyfactory.analyses.wording import against, cases_text, few_cases, value_text
from policyfactory.core.errors import UsageError
from policyfactory.core.text import enumerated, number_text
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulate.metrics import job_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["SlowdownClasses"]

FloatArray = NDArray[np.float64]

_MOST_EDGES = 6
# From served at once to served badly; the numbers on the dark ones are white.
_COLOURS = ("#56B4E9", "#C6E3F3", "#F0E442", "#E69F00", "#D55E00", "#8C3B00", "#4D1F00", "#000000")
_DARK = 5
_CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
_PLACES = {3: (0, 2, 4), 4: (0, 2, 3, 4)}  # which colours a few classes have


@dataclasses.dataclass(frozen=True, slots=True)
class SlowdownClasses(Analysis):
    """How the bounded slowdowns of the jobs are distributed.

    Parameters
    ----------
    edges : tuple of float
        Where classes end, above 1, ascending; the class of those that did not wait comes first.

    Raises
    ------
    UsageError
        If the edges are not such numbers.
    """

    name: ClassVar[str] = "slowdown-classes"
    edges: tuple[float, ...] = (10.0, 100.0)

    def __post_init__(self) -> None:
        try:
            edges = tuple(float(edge) for edge in self.edges)
        except (TypeError, ValueError):
            edges = ()
        rising = all(low < high for low, high in itertools.pairwise((1.0, *edges)))
        if not 1 <= len(edges) <= _MOST_EDGES or not rising or not np.isfinite(edges).all():
            raise UsageError(
                f"analysis {self.name}: edges is {self.edges!r}; give 1 to {_MOST_EDGES} ascending numbers above 1, "
                "for example [10, 100]"
            )
        object.__setattr__(self, "edges", edges)

    def observe(self, case: Case, schedule: Schedule) -> NDArray[np.int64]:
        """Return the number of jobs of each class: int64 array (classes,)."""
        slowdown = job_values(schedule, "bsld")
        below = [np.count_nonzero(slowdown <= 1.0), *(np.count_nonzero(slowdown < edge) for edge in self.edges)]
        edges = np.array([0, *below, len(slowdown)], dtype=np.int64)
        return np.asarray(edges[1:] - edges[:-1])

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the section: shares in %, their mean over cases, and what differs from the baseline."""
        shares = {log: _shares(by_log(evaluation, seen, log)) for log in evaluation.logs}
        return Section(
            "slowdown-classes",
            "How slowdowns are distributed",
            tuple(self._words(evaluation, log, shares[log]) for log in evaluation.logs),
            (self._table(evaluation, shares),),
            (
                Picture(
                    "slowdown-classes",
                    "Shares of the jobs by bounded slowdown, a bar a policy, a panel a log",
                    lambda: self._draw(evaluation, shares),
                    "Mean over the cases. Bounded slowdown: max((wait + run)/max(run, 10 s), 1).",
                ),
            ),
        )

    def _labels(self) -> list[str]:
        texts = [f"{edge:,g}" for edge in self.edges]
        between = [f"{low} to {high}" for low, high in itertools.pairwise(["1", *texts])]
        return ["1 (at once)", *between, self._worst]

    @property
    def _worst(self) -> str:
        return f"{self.edges[-1]:,g} and more"

    def _table(self, evaluation: Evaluation, shares: dict[str, FloatArray]) -> Table:
        first, *rest = self._labels()
        columns = (
            Column(first, "%", "did not wait, or so little that it does not count"),
            *(Column(label, "%", "the lower end belongs to the class") for label in rest),
        )

        def cells(log: str, place: int) -> list[Cell]:
            own = shares[log]
            return [mean_cell(own[:, place, at], self._mark(own, place, at)) for at in range(len(columns))]

        return Table(
            "slowdown-classes",
            "Shares of the jobs by bounded slowdown",
            policy_columns(evaluation.logs, *columns),
            policy_rows(evaluation.logs, evaluation.policies, cells),
            f"Means over the cases, with 95 % intervals.{against(evaluation)}",
        )

    def _mark(self, shares: FloatArray, place: int, at: int) -> str:
        if place == 0:
            return ""
        # More jobs at once are better, fewer of the worst; what lies between depends on where they come from.
        direction = {0: False, len(self.edges) + 1: True}.get(at)
        return mark_of(mean_difference(shares[:, :, at], place), lower_is_better=direction)

    def _words(self, evaluation: Evaluation, log: str, shares: FloatArray) -> str:
        base, worst = evaluation.baseline, len(self.edges) + 1
        text = (
            f"{log} ({cases_text(evaluation, log)}): under {base} {value_text(mean_of(shares[:, 0, 0]), '%')} of the "
            f"jobs have a slowdown of 1, and {value_text(mean_of(shares[:, 0, worst]), '%')} one of {self._worst}."
        )
        if len(evaluation.policies) == 1:
            return text
        if mean_of(shares[:, 0, 0]).interval is None:
            return f"{text} {self._best(evaluation, shares)} {few_cases(evaluation, log)}"
        return f"{text} {self._against(evaluation, shares, 0)} {self._against(evaluation, shares, worst)}"

    def _best(self, evaluation: Evaluation, shares: FloatArray) -> str:
        badly = shares[:, :, -1].mean(axis=0)
        if badly.min() == badly.max():
            return f"The share of {self._worst} is the same under all policies."
        least = int(np.argmin(badly))
        value = number_text(badly[least])
        return f"The smallest share of {self._worst} is that of {evaluation.policies[least]}, {value} %."

    def _against(self, evaluation: Evaluation, shares: FloatArray, at: int) -> str:
        """Say which policies have more or fewer jobs in the first or the last class than the baseline."""
        marked = policies_by_mark(evaluation.policies, lambda place: self._mark(shares, place, at))
        what = "served at once" if at == 0 else f"at {self._worst}"
        parts = []
        for word, more in (("better", "more" if at == 0 else "fewer"), ("worse", "fewer" if at == 0 else "more")):
            if word in marked:
                parts.append(f"{more} jobs are {what} under {self._factors(evaluation, shares, at, marked[word])}")
        same = marked.get("no difference", [])
        if same:
            parts.append(f"no difference in them is shown for {enumerated(same)}" if parts else _nothing(what, same))
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}." if text else ""

    def _factors(self, evaluation: Evaluation, shares: FloatArray, at: int, policies: list[str]) -> str:
        """Return the policies with how many times more or fewer jobs of the class they have than the baseline."""
        base = shares[:, 0, at].mean()
        factors = []
        for policy in policies:
            own = shares[:, evaluation.policies.index(policy), at].mean()
            factor = max(own, base) / min(own, base) if min(own, base) > 0 else np.inf
            factors.append(
                f"{policy} ({number_text(factor)} times)" if np.isfinite(factor) else f"{policy} ({own:.3g} %)"
            )
        return enumerated(factors)

    def _draw(self, evaluation: Evaluation, shares: dict[str, FloatArray]) -> Figure:
        policies = evaluation.policies
        figure, panels = panels_down(len(evaluation.logs), 0.8 + 0.3 * len(policies))
        classes = len(self.edges) + 2
        colours = _PLACES.get(classes, tuple(range(classes)))
        for axes, log in zip(panels, evaluation.logs, strict=True):
            left = np.zeros(len(policies))
            for at, label in enumerate(self._labels()):
                share = shares[log][:, :, at].mean(axis=0)
                axes.barh(range(len(policies)), share, left=left, height=0.75, color=_COLOURS[colours[at]], label=label)
                ink = "white" if colours[at] >= _DARK else "black"
                for row in np.flatnonzero(share >= 5.0).tolist():
                    axes.text(left[row] + share[row] / 2, row, f"{share[row]:.0f}", color=ink, **_CENTRED)
                left += share
            name_rows(axes, evaluation, log)
            axes.set_xlim(0, 100)
            axes.grid(visible=False)
        panels[-1].set_xlabel("share of the jobs (%)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper center", ncols=min(4, len(labels)), title="bounded slowdown", fontsize=9
        )
        return figure


def _shares(rows: list[list[Any]]) -> FloatArray:
    """Return the shares in %: float64 array (cases, policies, classes)."""
    counts = np.array(rows, dtype=np.float64)
    return np.asarray(100 * counts / counts.sum(axis=2, keepdims=True))


def _nothing(what: str, policies: list[str]) -> str:
    return f"no difference in the share of jobs {what} is shown for {enumerated(policies)}"
