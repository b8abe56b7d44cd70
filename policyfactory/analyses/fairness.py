"""How evenly a policy treats the users: what the worst-off of them get, and Jain's index over all of them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.common import (
    check_place,
    chosen_logs,
    log_cells,
    log_columns,
    shared_unit,
    stem_by_log,
    whole_number,
)
from policyfactory.analyses.curves import Curve, Panel, draw_panels
from policyfactory.analyses.fairness_words import fairness_in_words
from policyfactory.analyses.grouping import GroupSums, sums_by_user
from policyfactory.analyses.over_cases import cell_of, median_of
from policyfactory.analyses.user_means import Standing, UserMeans, users_of
from policyfactory.core.units import MINUTE
from policyfactory.report.sections import Cell, Column, Picture, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Fairness", "jain_index"]

FloatArray = NDArray[np.float64]


def jain_index(values: FloatArray) -> float:
    """Return Jain's index of fairness, (sum x)**2 / (n sum x**2): 1 if all are equal, 1/n if one has everything.

    R. Jain, D. Chiu and W. Hawe, "A quantitative measure of fairness and discrimination for resource allocation in
    shared computer systems", DEC Research Report TR-301, 1984.

    Parameters
    ----------
    values : float64 array (n,), n >= 1
        At least 0; if all are 0 they are equal, and the index is 1.
    """
    largest = float(values.max())
    if largest == 0:
        return 1.0
    # Shares of the largest cannot overflow; rounding shall not leave [1/n, 1].
    shares = values / largest
    index = float(shares.sum()) ** 2 / (len(shares) * float((shares**2).sum()))
    return min(max(index, 1 / len(shares)), 1.0)


def _largest(values: FloatArray) -> float:
    return float(values.max())


def _p95(values: FloatArray) -> float:
    return float(np.quantile(values, 0.95))


def _middle(values: FloatArray) -> float:
    return float(np.median(values))


@dataclasses.dataclass(frozen=True, slots=True)
class _Index:
    """One number over the users' means of a case."""

    title: str
    unit: str
    field: str  # of GroupSums
    function: Callable[[FloatArray], float]
    lower_is_better: bool = True
    help: str = ""


_OVER_USERS = (
    ("worst user", _largest, "the largest of the users' means"),
    ("p95 user", _p95, "95 % of the users have a lower mean"),
    ("median user", _middle, "half of the users have a lower mean"),
)
_WAIT = tuple(_Index(title, "s", "wait", function, help=text) for title, function, text in _OVER_USERS)
_SLOWDOWN = (
    *(_Index(title, "1", "bsld", function, help=text) for title, function, text in _OVER_USERS),
    _Index(
        "Jain's index",
        "1",
        "bsld",
        jain_index,
        lower_is_better=False,
        help="of the users' mean bounded slowdowns: (sum x)^2 / (n sum x^2), 1 if all are equal",
    ),
)
_TABLES = (
    (_WAIT, "wait", "Users' mean waits: the worst-off user, the 95 % quantile and the median over users"),
    (_SLOWDOWN, "slowdown", "Users' mean bounded slowdowns: the same, and Jain's index"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Fairness(Analysis):
    """Per-user means of wait and bounded slowdown: the largest, the 95 % quantile, the median, and Jain's index.

    Parameters
    ----------
    min_jobs : int
        Users with fewer jobs in a case are left out of that case.
    log : str
        The log to look at; empty: each.

    Raises
    ------
    UsageError
        If ``min_jobs`` is no whole number of at least 1.
    """

    name: ClassVar[str] = "fairness"

    min_jobs: int = 1
    log: str = ""

    def __post_init__(self) -> None:
        whole_number(self.name, "min_jobs", self.min_jobs, 1)

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse a log that there is not."""
        check_place(cases, self.name, self.log)

    def observe(self, case: Case, schedule: Schedule) -> GroupSums:
        """Return the sums of each user."""
        return sums_by_user(schedule)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the indices of every policy, the words, and the distribution of the users' mean waits."""
        logs = chosen_logs(evaluation, self.name, self.log)
        all_users = {log: users_of([seen[row] for row in evaluation.rows(log)], self.min_jobs) for log in logs}
        named = {log: users for log, users in all_users.items() if users.count}
        found = {
            log: {index.title + index.field: _standing(users, index) for index in (*_WAIT, *_SLOWDOWN)}
            for log, users in named.items()
        }
        tables = [_table(evaluation, found, indices, *words) for indices, *words in _TABLES] if named else []
        pictures = [
            Picture(
                stem,
                f"{log}: how many users wait how long on average",
                functools.partial(_draw, named[log], evaluation.policies),
                "A curve further to the left is better for the users; where it reaches 100 % is the worst-off user. "
                "Each user's mean is over all cases.",
            )
            for log, stem in (stem_by_log("users", list(named)) if named else {}).items()
        ]
        told = fairness_in_words(evaluation, all_users, found, self.min_jobs)
        return Section("fairness", "Fairness over users", told, tuple(tables), tuple(pictures))


def _standing(users: UserMeans, index: _Index) -> Standing:
    values = np.array(
        [
            [index.function(getattr(policy, index.field)) if len(policy.user) else math.nan for policy in case]
            for case in users.cases
        ]
    )
    differences = values - values[:, :1]
    return Standing(
        [median_of(column) for column in values.T],
        [median_of(column) for column in differences.T],
        lower_is_better=index.lower_is_better,
    )


def _table(
    evaluation: Evaluation, found: dict[str, dict[str, Standing]], indices: Sequence[_Index], name: str, title: str
) -> Table:
    logs = list(found)
    columns = [*log_columns(logs), Column("policy")]
    waits = [each.value for own in found.values() for index in _WAIT for each in own[index.title + index.field].values]
    unit = shared_unit(waits) if indices is _WAIT else ""
    for index in indices:
        words = f"{index.help}; median over cases"
        minus = f"from {evaluation.baseline}; median over cases, paired"
        columns.append(Column(index.title, index.unit, words, shown=unit))
        columns.append(Column(f"{index.title}, difference", index.unit, minus, shown=unit))
    rows = []
    for log in logs:
        for k, policy in enumerate(evaluation.policies):
            cells = [*log_cells(logs, log), Cell(policy)]
            for index in indices:
                standing = found[log][index.title + index.field]
                cells.append(cell_of(standing.values[k]))
                cells.append(Cell(None) if k == 0 else cell_of(standing.differences[k], standing.verdict(k)))
            rows.append(tuple(cells))
    return Table(name, title, tuple(columns), tuple(rows), "Each user counts once, whatever the number of jobs.")


def _draw(users: UserMeans, policies: Sequence[str]) -> Figure:
    """Draw the share of the users whose mean wait over all cases is at most so long."""
    curves = []
    for k, policy in enumerate(policies):
        mean = np.sort(users.overall[k].wait)
        share = 100.0 * np.arange(1, len(mean) + 1) / len(mean)
        # The axis is logarithmic: whoever waits less than a minute is counted at its left end.
        curves.append(Curve(policy, np.maximum(mean, MINUTE), share))
    panel = Panel(
        f"{users.count:,} users", "mean wait of the user (below 1 minute: at the left end)", "users (%)", curves,
        durations=True, steps=True,
    )  # fmt: skip
    return draw_panels([panel], height=3.4)
