"""How slowdowns are distributed: shares of the jobs at 1, from 1 to 10, from 10 to 100, and from 100 on.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
figure 3. A mean slowdown is decided by a few jobs; the classes say how many are served at once and how many badly.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import plain_numbers
from policyfactory.core.text import enumerated, number_text
from policyfactory.evaluate.analyses.analysis import (
    Analysis,
    LogView,
    against,
    cell_of,
    count_cell,
    listed,
    marked_in_words,
    marks_of,
    mean_differences,
    policies_by_mark,
    policy_table,
    share_cell,
    share_of,
    value_text,
)
from policyfactory.evaluate.picture import box_rows, key_below, name_rows, panels_down, row_colours
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulate.metrics import job_values
from policyfactory.statistics.intervals import Estimate, estimate_ratio

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Backfilled", "SlowdownClasses"]

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

    def observe(self, case: Case, schedule: Schedule) -> Int64Array:
        """Return the number of jobs of each class: int64 array (classes,)."""
        slowdown = job_values(schedule, "bsld")
        below = [np.count_nonzero(slowdown <= 1.0), *(np.count_nonzero(slowdown < edge) for edge in self.edges)]
        edges = np.array([0, *below, len(slowdown)], dtype=np.int64)
        return np.asarray(edges[1:] - edges[:-1])

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the section: shares in %, their mean over cases, and what differs from the baseline."""
        logs = self.by_log(evaluation, seen, _SharesOfLog)
        picture = Picture(
            "slowdown-classes",
            "Shares of the jobs by bounded slowdown, a bar a policy, a panel a log",
            functools.partial(_draw, logs, self._labels()),
            "Mean over the cases. Bounded slowdown: max((wait + run)/max(run, 10 s), 1).",
        )
        words = tuple(_words(own, self._worst) for own in logs)
        return Section("slowdown-classes", "How slowdowns are distributed", words, (self._table(logs),), (picture,))

    def _labels(self) -> list[str]:
        texts = [f"{edge:,g}" for edge in self.edges]
        between = [f"{low} to {high}" for low, high in itertools.pairwise(["1", *texts])]
        return ["1 (at once)", *between, self._worst]

    @property
    def _worst(self) -> str:
        return f"{self.edges[-1]:,g} and more"

    def _table(self, logs: Sequence[_SharesOfLog]) -> Table:
        first, *others = self._labels()
        columns = [
            Column(first, "%", "did not wait, or so little that it does not count"),
            *(Column(label, "%", "the lower end belongs to the class") for label in others),
        ]

        return policy_table(
            "slowdown-classes",
            "Shares of the jobs by bounded slowdown",
            logs,
            {
                column: lambda own, place, at=at: share_cell(own.shares[:, place, at], own.marks[at][place])
                for at, column in enumerate(columns)
            },
            f"Means over the cases, with 95 % intervals.{against(logs[0].evaluation)}",
        )


class _SharesOfLog(LogView):
    """How the slowdowns of one log are distributed."""

    @functools.cached_property
    def shares(self) -> FloatArray:
        """Shares in %: float64 array (cases, policies, classes)."""
        counts = np.array(self.kept, dtype=np.float64)
        return np.asarray(100 * counts / counts.sum(axis=2, keepdims=True))

    @functools.cached_property
    def marks(self) -> list[list[str]]:
        """The verdicts on the share of each class under each policy."""
        # More jobs at once are better, fewer of the worst; what lies between depends on where they come from.
        classes = self.shares.shape[2]
        direction = {0: False, classes - 1: True}
        return [
            marks_of(mean_differences(shares), shares, self.drawn, lower_is_better=direction.get(at))
            for at, shares in enumerate(np.moveaxis(self.shares, 2, 0))
        ]


def _words(own: _SharesOfLog, worst: str) -> str:
    at_once, badly = own.shares[:, :, 0], own.shares[:, :, -1]
    text = (
        f"{own.titled}: under {own.baseline} {value_text(share_of(at_once[:, 0]), '%')} of the jobs have a slowdown of "
        f"1, and {value_text(share_of(badly[:, 0]), '%')} one of {worst}."
    )
    if len(own.policies) == 1:
        return text
    if share_of(at_once[:, 0]).interval is None:
        return f"{text} {_best(own.policies, badly.mean(axis=0), worst)} {own.few_cases}"
    last = own.shares.shape[2] - 1
    first = _against(own, 0, "served at once", ("more", "fewer"))
    return f"{text} {first} {_against(own, last, f'at {worst}', ('fewer', 'more'))}"


def _best(policies: Sequence[str], badly: FloatArray, worst: str) -> str:
    if badly.min() == badly.max():
        return f"The share of {worst} is the same under all policies."
    least = int(np.argmin(badly))
    return f"The smallest share of {worst} is that of {policies[least]}, {number_text(badly[least])} %."


def _against(own: _SharesOfLog, at: int, what: str, words: tuple[str, str]) -> str:
    """Say which policies have better or worse shares of class ``at`` than the baseline, in these words."""
    marked = policies_by_mark(own.policies, own.marks[at].__getitem__)
    means = dict(zip(own.policies, own.shares[:, :, at].mean(axis=0).tolist(), strict=True))
    parts = [
        f"{more} jobs are {what} under {_factors(means, own.baseline, marked[word])}"
        for word, more in zip(("better", "worse"), words, strict=True)
        if word in marked
    ]
    same = marked.get("no difference", [])
    if same:
        of = "in them" if parts else f"in the share of jobs {what}"
        parts.append(f"no difference {of} is shown for {enumerated(same)}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _factors(means: Mapping[str, float], baseline: str, policies: Sequence[str]) -> str:
    """Return the policies with how many times more or fewer jobs of the class they have than the baseline."""
    factors = []
    for policy in policies:
        low, high = sorted((means[policy], means[baseline]))
        factors.append(
            f"{policy} ({number_text(high / low)} times)" if low > 0 else f"{policy} ({means[policy]:.3g} %)"
        )
    return enumerated(factors)


def _draw(logs: Sequence[_SharesOfLog], names: Sequence[str]) -> Figure:
    policies = logs[0].policies
    figure, panels = panels_down([own.heading for own in logs], [0.3 * len(policies)] * len(logs))
    colours = _PLACES.get(len(names), tuple(range(len(names))))
    for axes, own in zip(panels, logs, strict=True):
        left = np.zeros(len(policies))
        for at, label in enumerate(names):
            share = own.shares[:, :, at].mean(axis=0)
            axes.barh(range(len(policies)), share, left=left, height=0.75, color=_COLOURS[colours[at]], label=label)
            ink = "white" if colours[at] >= _DARK else "black"
            for row in np.flatnonzero(share >= 5.0).tolist():
                axes.text(left[row] + share[row] / 2, row, f"{share[row]:.0f}", color=ink, **_CENTRED)
            left += share
        name_rows(axes, policies)
        axes.set_xlim(0, 100)
        axes.grid(visible=False)
    panels[-1].set_xlabel("share of the jobs (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=min(4, len(labels)), title="bounded slowdown", fontsize=9
    )
    return figure


# How many jobs jump the queue: jobs started by backfilling, a case and policy -----------------------------------------

# Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
# figure 4 and proposition 1: under SQF without a threshold no job is backfilled. The fewer there are, the more closely
# the machine follows the order that the policy promises.


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
            functools.partial(_draw_backfilled, logs),
            "A job is backfilled if Slurm's backfilling pass starts it."
            if evaluation.rules.backfill == "slurm"
            else "A job is backfilled if it starts while one ahead of it in the queue stays waiting.",
        )
        return Section(
            "backfilled", "Backfilled jobs", tuple(map(_words_backfilled, logs)), (_table(logs),), (picture,)
        )


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


def _words_backfilled(own: _BackfilledJobs) -> str:
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


def _draw_backfilled(logs: Sequence[_BackfilledJobs]) -> Figure:
    from matplotlib.ticker import MaxNLocator

    policies = logs[0].policies
    figure, panels = panels_down([own.heading for own in logs], [0.3 + 0.3 * len(policies)] * len(logs))
    for axes, own in zip(panels, logs, strict=True):
        box_rows(axes, list(own.counts.T), row_colours(policies))
        name_rows(axes, policies)
        axes.set_xlim(left=0 if own.counts.any() else None)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain_numbers(axes.xaxis)
        axes.set_xlabel("backfilled jobs of a case")
    key_below(figure, "box: the middle half of the cases; line: median; dot: a case; orange: the baseline")
    return figure
