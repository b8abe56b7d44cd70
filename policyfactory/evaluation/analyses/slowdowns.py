"""Slowdowns of single jobs: their classes, whom a policy delays, who jumps the queue, and who ends long before asked.

Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019. A mean
slowdown is decided by a few jobs; the classes (figure 3: at 1, from 1 to 10, from 10 to 100, from 100 on) say how many
are served at once and how many badly.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import plain_numbers
from policyfactory.core.text import enumerated, number_text
from policyfactory.evaluation.analyses.analysis import (
    Analysis,
    LogView,
    against,
    cell_of,
    differences_of,
    estimate_cell,
    estimate_of,
    marked_in_words,
    marks_of,
    policy_table,
    value_text,
    whole_number,
)
from policyfactory.evaluation.picture import box_rows, draw_box, key_below, name_rows, panels_down, row_colours
from policyfactory.report.caveats import listed
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulation.metrics import job_values
from policyfactory.statistics.intervals import Estimate, estimate_ratio

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation


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
        words = tuple(_words(view, self._worst) for view in logs)
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
                column: lambda view, index, number=number: estimate_cell(
                    view.shares[:, index, number], "share", view.marks[number][index]
                )
                for number, column in enumerate(columns)
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
            marks_of(differences_of(shares, "mean"), shares, self.drawn, lower_is_better=direction.get(number))
            for number, shares in enumerate(np.moveaxis(self.shares, 2, 0))
        ]


def _words(view: _SharesOfLog, worst: str) -> str:
    badly = view.shares[:, :, -1]
    at_once, served_badly = (estimate_of(view.shares[:, 0, number], "share") for number in (0, -1))
    text = (
        f"{view.titled}: under {view.baseline} {value_text(at_once, '%')} of the jobs have a slowdown of 1, and "
        f"{value_text(served_badly, '%')} one of {worst}."
    )
    if len(view.policies) == 1:
        return text
    if at_once.interval is None:
        return f"{text} {_best(view.policies, badly.mean(axis=0), worst)}{view.no_intervals}"
    last = view.shares.shape[2] - 1
    first = _against(view, 0, "served at once", ("More", "Fewer"))
    return f"{text}{first}{_against(view, last, f'at {worst}', ('Fewer', 'More'))}"


def _best(policies: Sequence[str], badly: FloatArray, worst: str) -> str:
    if badly.min() == badly.max():
        return f"The share of {worst} is the same under all policies."
    least = int(np.argmin(badly))
    return f"The smallest share of {worst} is that of {policies[least]}, {number_text(badly[least])} %."


def _against(view: _SharesOfLog, number: int, what: str, words: tuple[str, str]) -> str:
    """Say which policies have better or worse shares of class ``number`` than the baseline, in these words."""
    base, means = view.baseline, dict(zip(view.policies, view.shares[:, :, number].mean(axis=0).tolist(), strict=True))
    phrases = {
        mark: f"{more} jobs than under {base} are {what}" for mark, more in zip(("better", "worse"), words, strict=True)
    }

    def named(policy: str) -> str:
        low, high = sorted((means[policy], means[base]))
        return f"{policy} ({number_text(high / low)} times)" if low > 0 else f"{policy} ({means[policy]:.3g} %)"

    return marked_in_words(view.policies, view.marks[number].__getitem__, phrases, named, f"the share of jobs {what}")


def _draw(logs: Sequence[_SharesOfLog], names: Sequence[str]) -> Figure:
    policies = logs[0].policies
    figure, panels = panels_down([view.heading for view in logs], [0.3 * len(policies)] * len(logs))
    colours = _PLACES.get(len(names), tuple(range(len(names))))
    for axes, view in zip(panels, logs, strict=True):
        left = np.zeros(len(policies))
        for number, label in enumerate(names):
            share = view.shares[:, :, number].mean(axis=0)
            axes.barh(range(len(policies)), share, left=left, height=0.75, color=_COLOURS[colours[number]], label=label)
            ink = "white" if colours[number] >= _DARK else "black"
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
        return self.values(lambda kept: kept[0])

    def share(self, index: int) -> FloatArray:
        """Return the backfilled jobs under one policy in % of all, a value a case."""
        return self.values(lambda kept: 100 * kept[0] / kept[1])[:, index]

    @functools.cached_property
    def changes(self) -> list[Estimate]:
        """By how many % the backfilled jobs of all cases together differ from the baseline's, under each policy."""
        return [estimate_ratio(counts, self.counts[:, 0]) for counts in self.counts.T]

    def mark(self, index: int) -> str:
        """Return whether there are more or fewer than under the baseline."""
        return marks_of(self.changes, self.counts, self.drawn, lower_is_better=None)[index]


def _table(logs: Sequence[_BackfilledJobs]) -> Table:
    def change(view: _BackfilledJobs, index: int) -> Cell | None:
        known = index and np.isfinite(view.changes[index].value)
        return cell_of(view.changes[index], view.mark(index)) if known else None

    together = "backfilled jobs of all cases together, 100 (policy / baseline - 1)"
    columns = {
        Column("backfilled jobs", "jobs", "mean over the cases"): lambda view, index: estimate_cell(
            view.counts[:, index], "count"
        ),
        Column("of all jobs", "%", "mean over the cases of their share"): lambda view, index: estimate_cell(
            view.share(index), "share"
        ),
        Column(f"against {logs[0].baseline}", "%", together): change,
    }
    note = (
        "95 % intervals over the cases. Neither more nor fewer is better: fewer means that the queue's order is kept."
    )
    return policy_table("backfilled", "Backfilled jobs", logs, columns, note)


def _words_backfilled(view: _BackfilledJobs) -> str:
    base, policies, there = view.baseline, view.policies, [bool(counts.any()) for counts in view.counts.T]
    if not any(there):
        return f"{view.titled}: no job is backfilled under any policy."
    none = [policy for policy, some in zip(policies, there, strict=True) if not some]
    if not there[0]:
        some = [policy for policy in policies if policy not in none]
        return f"{view.titled}: under {base} no job is backfilled, but some are under {enumerated(some)}."
    share = estimate_of(view.share(0), "share")
    text = f"{view.titled}: under {base} {value_text(share, '%')} of the jobs are backfilled."
    changes = dict(zip(policies, view.changes, strict=True))
    text += marked_in_words(
        policies,
        lambda index: view.mark(index) if there[index] else "none",
        {"lower": f"Fewer than under {base}", "higher": f"More than under {base}"},
        lambda policy: f"{policy} {value_text(changes[policy], '%', signed=True)}",
    )
    text += listed("None at all", none)
    if len(policies) > 1 and share.interval is None:
        rest = [f"{policy} {changes[policy].value:+.0f} %" for policy in policies[1:] if policy not in none]
        text += f"{listed(f'Against {base}', rest)}{view.no_intervals}"
    return text


def _draw_backfilled(logs: Sequence[_BackfilledJobs]) -> Figure:
    from matplotlib.ticker import MaxNLocator

    policies = logs[0].policies
    figure, panels = panels_down([view.heading for view in logs], [0.3 + 0.3 * len(policies)] * len(logs))
    for axes, view in zip(panels, logs, strict=True):
        box_rows(axes, list(view.counts.T), row_colours(policies))
        name_rows(axes, policies)
        axes.set_xlim(left=0 if view.counts.any() else None)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain_numbers(axes.xaxis)
        axes.set_xlabel("backfilled jobs of a case")
    key_below(figure, "box: the middle half of the cases; line: median; dot: a case; orange: the baseline")
    return figure


# Whom a policy makes wait: the sizes of the jobs with the highest bounded slowdown of each case -----------------------

# Figure 2: a policy that does not look at sizes can delay jobs of one processor, which fit almost everywhere.


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
        logs = self.by_log(evaluation, seen, _DelayedOfLog)
        most = f"the {self.count:,} most delayed jobs of each case"
        what = "size of the job" if self.count == 1 else f"sizes of the {self.count:,} jobs"
        picture = Picture(
            "delayed",
            f"Processors of {most}, a row a policy, a panel a log",
            functools.partial(_draw_delayed, logs),
            "Delayed most: highest bounded slowdown max((wait + run)/max(run, 10 s), 1).",
        )
        note = f"95 % intervals over the cases.{against(evaluation)}"
        table = policy_table("delayed", f"Processors of {most}", logs, _COLUMNS, note)
        title = f"Whom a policy delays: the {what} of highest slowdown"
        return Section("delayed", title, tuple(map(_words_delayed, logs)), (table,), (picture,))


def _middle(processors: Int64Array) -> float:
    """Return the (lower) median size, by counting where sizes are small numbers."""
    if not len(processors) or processors.max() > 1 << 20:
        middle = (len(processors) + 1) // 2 - 1
        return float(np.partition(processors, middle)[middle]) if len(processors) else 0.0
    return float(np.searchsorted(np.cumsum(np.bincount(processors)), (len(processors) + 1) // 2))


class _DelayedOfLog(LogView):
    """The delayed jobs of one log."""

    @functools.cached_property
    def middles(self) -> FloatArray:
        """Median size of the delayed jobs: float64 array (cases, policies), NaN where no job was delayed."""
        return self.values(lambda kept: np.median(kept.processors) if len(kept.processors) else np.nan)

    @functools.cached_property
    def typical(self) -> float:
        """Size of a middling job, delayed or not."""
        return float(np.median([case[0].typical for case in self.kept]))

    def pooled(self, index: int) -> Int64Array:
        """Return the sizes of the jobs that one policy delays, all cases together."""
        return np.concatenate([case[index].processors for case in self.kept])

    def mark(self, index: int) -> str:
        """Return whether larger or smaller jobs are delayed than under the baseline."""
        return marks_of(differences_of(self.middles), self.middles, self.drawn, lower_is_better=None)[index]


def _pooled(get: Callable[[Int64Array], Any]) -> Callable[[_DelayedOfLog, int], float | None]:
    """Return what makes a number of the sizes that a policy delays; nothing where it delays none."""
    return lambda view, index: float(get(sizes)) if len(sizes := view.pooled(index)) else None


_COLUMNS = {
    Column("25 %", "processors", "a quarter of these jobs of all cases have no more"): _pooled(
        lambda sizes: np.quantile(sizes, 0.25)
    ),
    Column("middle", "processors", "median of these jobs of a case, median over the cases"): (
        lambda view, index: estimate_cell(view.middles[:, index], mark=view.mark(index))
    ),
    Column("75 %", "processors", "a quarter of these jobs of all cases have no fewer"): _pooled(
        lambda sizes: np.quantile(sizes, 0.75)
    ),
    Column("serial", "%", "of these jobs of all cases have one processor"): _pooled(
        lambda sizes: 100 * np.mean(sizes == 1)
    ),
    Column("slowdown from", "1", "lowest bounded slowdown among them, median over the cases"): (
        lambda view, index: estimate_cell(view.values("least")[:, index])
    ),
}


def _words_delayed(view: _DelayedOfLog) -> str:
    middles, base = view.middles, view.baseline
    if not np.isfinite(middles).any():
        return f"{view.titled}: no job is delayed under any policy."
    text = (
        f"{view.titled}: the median size of the most delayed jobs is {_sizes(view.policies, middles)}; of all jobs it "
        f"is {view.typical:g}."
    )
    if len(view.policies) == 1:
        return text
    if not any(view.mark(index) for index in range(1, len(view.policies))):
        return f"{text}{view.no_intervals}"
    phrases = {"higher": f"Larger than under {base}", "lower": f"Smaller than under {base}"}
    return text + marked_in_words(view.policies, view.mark, phrases, what="size")


def _sizes(policies: Sequence[str], middles: FloatArray) -> str:
    """Return the middle size under each policy, or of many policies the baseline and the two extremes."""
    sizes = {
        policy: estimate_of(middles[:, index]).value
        for index, policy in enumerate(policies)
        if np.isfinite(middles[:, index]).any()
    }
    shown = list(sizes)
    if len(shown) > _FEW_POLICIES:
        shown = list(dict.fromkeys([shown[0], min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)]))
    listing = enumerated(f"{sizes[policy]:,g} under {policy}" for policy in shown)
    return listing if len(shown) == len(sizes) else f"{listing}, the rest between"


def _draw_delayed(logs: Sequence[_DelayedOfLog]) -> Figure:
    from matplotlib.ticker import LogLocator

    policies = logs[0].policies
    figure, panels = panels_down([view.heading for view in logs], [0.3 + 0.3 * len(policies)] * len(logs))
    for axes, view in zip(panels, logs, strict=True):
        for index, colour in enumerate(row_colours(policies)):
            if len(pooled := view.pooled(index)):
                draw_box(axes, index, np.quantile(pooled, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist(), colour)
        axes.axvline(view.typical, color="#7f7f7f", linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
        machine = view.machine
        axes.set_xscale("log", base=2)
        axes.set_xlim(0.9, 1.1 * machine)
        axes.xaxis.set_major_locator(LogLocator(base=4 if machine < 5000 else 16))
        plain_numbers(axes.xaxis, minor=False)
        name_rows(axes, policies)
        axes.set_xlabel(f"processors of the job (the machine has {machine:,}), logarithmic")
    key = "box: middle half; line: median; whiskers: 5 to 95 %; dashed: median of all jobs; orange: the baseline"
    key_below(figure, key)
    return figure


# Jobs that end long before their request, and how much worse they fare than the others --------------------------------

# Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling", CCGrid 2019,
# tables III and IV: a job is premature if its requested time is at least 100 times its run time. Such jobs have huge
# slowdowns whatever the policy, and a policy that sorts by requested times takes them for long ones.


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
            (first, *map(_words_premature, logs)),
            (self._shares(logs), self._ratios(logs)),
        )

    def _shares(self, logs: Sequence[_PrematureOfLog]) -> Table:
        columns = {
            Column("log"): lambda view: view.log,
            Column("premature jobs", "%", "of the jobs of run time above 0"): lambda view: estimate_cell(
                view.share, "share"
            ),
        }
        if any(_SHARE in self.published.get(view.log, {}) for view in logs):
            published = Column("published", "1", self.source)
            columns[published] = lambda view: self.published.get(view.log, {}).get(_SHARE)
        note = "Mean over the cases, with 95 % intervals."
        return Table.of("premature-shares", "Premature jobs of each log", columns, zip(logs), note)

    def _ratios(self, logs: Sequence[_PrematureOfLog]) -> Table:
        what = "mean bounded slowdown of the premature jobs"
        columns: dict[Column, Callable[..., Any]] = {
            Column("ratio", "1", f"{what} over that of the others, in each case"): (
                lambda view, index: estimate_cell(view.ratio[:, index], mark=view.mark(index))
            ),
            Column("premature", "1", what): lambda view, index: estimate_cell(view.sums[:, index, 2]),
            Column("others", "1", "mean bounded slowdown of the other jobs"): (
                lambda view, index: estimate_cell(view.sums[:, index, 3])
            ),
        }

        def published(view: LogView, index: int) -> float | None:
            return self.published.get(view.log, {}).get(view.policies[index])

        if any(published(view, index) is not None for view in logs for index in range(len(view.policies))):
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

    def mark(self, index: int) -> str:
        """Return whether the ratio is higher or lower than under the baseline."""
        return marks_of(differences_of(self.ratio), self.ratio, self.drawn, lower_is_better=None)[index]


def _words_premature(view: _PrematureOfLog) -> str:
    ratio, base = view.ratio, view.baseline
    text = f"{view.titled}: {value_text(estimate_of(view.share, 'share'), '%')} of the jobs are premature."
    first = estimate_of(ratio[:, 0])
    if not first.cases:
        return f"{text} Premature and other jobs cannot be compared: no case has both."
    text += f" Under {base} their mean slowdown is {value_text(first)} times that of the others."
    if len(view.policies) == 1:
        return text
    middles = {policy: number_text(estimate_of(ratio[:, index]).value) for index, policy in enumerate(view.policies)}
    if first.interval is None:
        rest = [f"{middles[policy]} under {policy}" for policy in view.policies[1:]]
        return f"{text} It is {enumerated(rest)}.{view.no_intervals}"
    apart = {"higher": f"Farther apart than under {base}", "lower": f"Closer together than under {base}"}
    return text + marked_in_words(view.policies, view.mark, apart, lambda policy: f"{policy} ({middles[policy]})")


def _is_published(values: object) -> bool:
    if not isinstance(values, Mapping):
        return False
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values.values())
