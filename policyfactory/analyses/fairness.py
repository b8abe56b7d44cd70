"""How evenly a policy treats the users: what the worst-off of them get, and Jain's index over all of them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import LogAnalysis, whole_number
from policyfactory.analyses.estimates import median_of
from policyfactory.analyses.grouping import GroupSums, sums_by_user
from policyfactory.analyses.plots import Curve, Panel, draw_panels
from policyfactory.analyses.tables import (
    compared_cells,
    compared_columns,
    policy_columns,
    policy_rows,
    stem_by_log,
)
from policyfactory.analyses.user_means import UserMeans, users_of
from policyfactory.analyses.wording import differences_in_words, scaled, shared_unit
from policyfactory.core.text import counted, number_text
from policyfactory.core.units import MINUTE
from policyfactory.report.caveats import noun
from policyfactory.report.sections import Cell, Picture, Section, Table
from policyfactory.statistics.intervals import MIN_CASES

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

    @property
    def key(self) -> str:
        """What its values are kept under."""
        return f"{self.title} {self.field}"


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
class Fairness(LogAnalysis):
    """Per-user means of wait and bounded slowdown: the largest, the 95 % quantile, the median, and Jain's index.

    Parameters
    ----------
    min_jobs : int
        Users with fewer jobs in a case are left out of that case.

    Raises
    ------
    UsageError
        If ``min_jobs`` is no whole number of at least 1.
    """

    name: ClassVar[str] = "fairness"

    min_jobs: int = 1

    def __post_init__(self) -> None:
        whole_number(self.name, "min_jobs", self.min_jobs, 1)

    def observe(self, case: Case, schedule: Schedule) -> GroupSums:
        """Return the sums of each user."""
        return sums_by_user(schedule)

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the indices of every policy, the words, and the distribution of the users' mean waits."""
        logs = self.chosen_logs(evaluation)
        all_users = {log: users_of([seen[row] for row in evaluation.rows(log)], self.min_jobs) for log in logs}
        named = {log: users for log, users in all_users.items() if users.count}
        numbers = {
            log: {index.key: _values(users, index) for index in (*_WAIT, *_SLOWDOWN)} for log, users in named.items()
        }
        tables = [_table(evaluation, numbers, indices, *words) for indices, *words in _TABLES] if named else []
        pictures = [
            Picture(
                stem,
                f"{log}: how many users wait how long on average",
                functools.partial(_draw, named[log], evaluation.policies),
                "A curve further to the left is better for the users; where it reaches 100 % is the worst-off user. "
                "Each user's mean is over all cases.",
            )
            for log, stem in stem_by_log("users", list(named)).items()
        ]
        paragraphs = fairness_in_words(evaluation, all_users, numbers, self.min_jobs)
        return Section("fairness", "Fairness over users", paragraphs, tuple(tables), tuple(pictures))


def _values(users: UserMeans, index: _Index) -> FloatArray:
    """Return one number over the users: float64 array (cases, policies), NaN where a case has no users."""
    return np.array(
        [
            [index.function(getattr(policy, index.field)) if len(policy.user) else math.nan for policy in case]
            for case in users.cases
        ]
    )


def _table(
    evaluation: Evaluation, numbers: dict[str, dict[str, FloatArray]], indices: Sequence[_Index], name: str, title: str
) -> Table:
    logs = list(numbers)
    medians = [
        own[index.key][:, k] for own in numbers.values() for index in _WAIT for k in range(own[index.key].shape[1])
    ]
    unit = shared_unit(median_of(values).value for values in medians) if indices is _WAIT else ""
    columns = list(policy_columns(logs))
    for index in indices:
        columns += compared_columns(index.title, index.unit, index.help, evaluation.baseline, unit)

    def cells(log: str, k: int) -> list[Cell]:
        row: list[Cell] = []
        for index in indices:
            row += compared_cells(numbers[log][index.key], k, lower_is_better=index.lower_is_better)
        return row

    rows = policy_rows(logs, evaluation.policies, cells)
    return Table(name, title, tuple(columns), rows, "Each user counts once, whatever the number of jobs.")


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


# In words. ------------------------------------------------------------------------------------------------------------


_WORST, _JAIN = "worst user wait", "Jain's index bsld"


def fairness_in_words(
    evaluation: Evaluation,
    users: Mapping[str, UserMeans],
    numbers: Mapping[str, Mapping[str, FloatArray]],
    min_jobs: int,
) -> tuple[str, ...]:
    """Return a paragraph a log, and what the index does not say.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    users : mapping of str to UserMeans
        The users of each log.
    numbers : mapping of str to mapping of str to float64 array (cases, policies)
        The numbers of each log that has known users.
    min_jobs : int
        Jobs that a user needs in a case.
    """
    paragraphs = []
    for log, own in users.items():
        name = f"{log}: " if len(users) > 1 else ""
        text = (
            _log_in_words(evaluation, log, own, numbers[log], min_jobs)
            if log in numbers
            else _nobody(own, min_jobs, noun(evaluation, log))
        )
        paragraphs.append(name + text)
    if any(own.count > 1 for own in users.values()):
        paragraphs.append(
            "Jain's index is (sum of x) squared over n times the sum of x squared, x the mean bounded slowdown of each "
            "of the n users: 1 if all have the same, 1/n if one has it all. It says how unequal the users are, not how "
            "well they are served: a policy under which all wait equally long has 1, and it falls where most gain and "
            "a few do not. Nor does it see who it is that loses, or how large a user is; one huge slowdown decides it."
        )
    return tuple(paragraphs)


def _nobody(users: UserMeans, min_jobs: int, what: str) -> str:
    if users.unknown_jobs == users.jobs:
        return "the log does not say whose jobs they are, so nothing can be said about users."
    return f"no user has {counted(min_jobs, 'job')} in any {what}, so nothing is said about users."


def _log_in_words(
    evaluation: Evaluation, log: str, users: UserMeans, numbers: Mapping[str, FloatArray], min_jobs: int
) -> str:
    policies = evaluation.policies
    cases, what = len(users.cases), noun(evaluation, log)
    counts = sorted(len(case[0].user) for case in users.cases)
    who = counted(users.count, "user")
    if cases > 1:
        who += (
            f" in {cases} {what}s, {counts[0]} to {counts[-1]} of them in a {what}"
            if counts[0] < counts[-1]
            else f" in each of {cases} {what}s"
        )
    parts = [f"{who}{'' if min_jobs == 1 else f' with at least {min_jobs} jobs in it'}."]
    if users.unknown_jobs:
        parts.append(f"{counted(users.unknown_jobs, 'job')} of unknown users (of {users.jobs:,}) are left out.")
    if users.count == 1:
        parts.append("With one user there is nothing to be fair or unfair about.")
        return " ".join(parts)
    worst, jain = numbers[_WORST], numbers[_JAIN]
    overall = users.overall[0]
    top = int(np.argmax(overall.wait))
    who = f"user {overall.user[top]} ({counted(int(overall.jobs[top]), 'job')})"
    longest = scaled(float(overall.wait[top]), "s")
    if cases > 1:
        middle = scaled(median_of(worst[:, 0]).value, "s")
        parts.append(
            f"Under {policies[0]} the worst-off user of a {what} waits {middle} on average "
            f"(median over {what}s); over all of them it is {who}, who waits {longest}."
        )
    else:
        parts.append(f"Under {policies[0]} the worst-off user is {who}, who waits {longest} on average.")
    parts.append(f"Jain's index is {number_text(median_of(jain[:, 0]).value)}.")
    text = " ".join(parts)
    if len(policies) > 1:
        name = "the wait of the worst-off user"
        text += differences_in_words(policies, worst, (name, "s"), ("longer", "shorter"))
        text += differences_in_words(policies, jain, ("Jain's index", "1"), ("higher", "lower"), lower_is_better=False)
        if cases < MIN_CASES:
            text += f" No intervals: {counted(cases, what)}, {MIN_CASES} are needed."
    return text
