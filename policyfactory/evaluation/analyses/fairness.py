"""How evenly a policy treats the users: what the worst-off of them get, and Jain's index over all of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.core.text import MINUTE, counted, number_text
from policyfactory.evaluation.analyses.analysis import (
    LogAnalysis,
    LogView,
    compared_columns,
    differences_in_words,
    estimate_of,
    pictures_by_log,
    policy_table,
    shared_unit,
    whole_number,
)
from policyfactory.evaluation.analyses.groups import GroupSums, sums_by_user, together
from policyfactory.evaluation.picture import Curve, Panel, draw_panels
from policyfactory.report.sections import Column, Section, Table, scaled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation


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


# What is said over the users' means: title, function, what it means.
_OVER_USERS: tuple[tuple[str, Callable[[FloatArray], Any], str], ...] = (
    ("worst user", np.max, "the largest of the users' means"),
    ("p95 user", lambda values: np.quantile(values, 0.95), "95 % of the users have a lower mean"),
    ("median user", np.median, "half of the users have a lower mean"),
)
_JAIN = (
    "Jain's index",
    jain_index,
    "of the users' mean bounded slowdowns: (sum x)^2 / (n sum x^2), 1 if all are equal",
)
# Field of GroupSums: unit, indices, name and title of the table.
_TABLES = {
    "wait": (
        "s",
        _OVER_USERS,
        ("wait", "Users' mean waits: the worst-off user, the 95 % quantile and the median over users"),
    ),
    "bsld": ("1", (*_OVER_USERS, _JAIN), ("slowdown", "Users' mean bounded slowdowns: the same, and Jain's index")),
}


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
        logs = [_users_of(view, self.min_jobs) for view in self.by_log(evaluation, seen, LogView)]
        named = [view for view in logs if view.count]
        pictures = pictures_by_log(
            "users",
            named,
            "how many users wait how long on average",
            _draw,
            "A curve further to the left is better for the users; where it reaches 100 % is the worst-off user. Each "
            "user's mean is over all cases.",
        )
        tables = tuple(_table(named, field) for field in _TABLES) if named else ()
        return Section("fairness", "Fairness over users", fairness_in_words(logs), tables, pictures)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class UsersOfLog(LogView):
    """The users of one log.

    Parameters
    ----------
    min_jobs : int
        Jobs that a user needs in a case.
    users : list of list of GroupSums [case][policy]
        Known users with enough jobs in the case.
    numbers : dict of (str, str) to float64 array (cases, policies)
        Each index over the users, by title and field; NaN where a case has no users.
    """

    min_jobs: int
    users: list[list[GroupSums]]
    numbers: dict[tuple[str, str], FloatArray]

    @property
    def count(self) -> int:
        """Known users with enough jobs in at least one case."""
        return len(np.unique(np.concatenate([case[0].key for case in self.users])))

    @property
    def jobs(self) -> int:
        """Jobs of all cases."""
        return sum(int(case[0].jobs.sum()) for case in self.kept)

    @property
    def unknown_jobs(self) -> int:
        """Jobs of unknown users, which belong to nobody here."""
        return self.jobs - sum(int(case[0].with_known_users().jobs.sum()) for case in self.kept)

    def overall(self, index: int) -> GroupSums:
        """Return every known user under one policy, all cases together."""
        return together([case[index] for case in self.kept]).with_known_users()


def _users_of(view: LogView, min_jobs: int) -> UsersOfLog:
    users = [[sums.with_known_users(min_jobs) for sums in case] for case in view.kept]
    numbers = {
        (title, field): np.array(
            [[function(sums.mean(field)) if len(sums.key) else math.nan for sums in case] for case in users],
            dtype=float,
        )
        for field, (_, indices, _) in _TABLES.items()
        for title, function, _ in indices
    }
    return UsersOfLog(view.evaluation, view.log, view.kept, min_jobs, users, numbers)


def _table(logs: Sequence[UsersOfLog], field: str) -> Table:
    unit, indices, (name, title) = _TABLES[field]
    every = [view.numbers[index, field] for view in logs for index, _, _ in indices]
    shown = shared_unit(estimate_of(column).value for values in every for column in values.T) if unit == "s" else ""
    columns: dict[Column, Callable[..., Any]] = {}
    for index, function, text in indices:
        columns |= compared_columns(
            Column(index, unit, text, shown),
            lambda view, index=index: view.numbers[index, field],  # type: ignore[misc]
            logs[0].baseline,
            lower_is_better=function is not jain_index,
        )
    return policy_table(name, title, logs, columns, "Each user counts once, whatever the number of jobs.")


def _draw(view: UsersOfLog) -> Figure:
    """Draw the share of the users whose mean wait over all cases is at most so long."""
    curves = []
    for index, policy in enumerate(view.policies):
        mean = np.sort(view.overall(index).mean("wait"))
        share = 100.0 * np.arange(1, len(mean) + 1) / len(mean)
        # The axis is logarithmic: whoever waits less than a minute is counted at its left end.
        curves.append(Curve(policy, np.maximum(mean, MINUTE), share))
    label = "mean wait of the user (below 1 minute: at the left end)"
    panel = Panel(f"{view.count:,} users", label, "users (%)", curves, durations=True, steps=True)
    return draw_panels([panel], height=3.4)


# In words. ------------------------------------------------------------------------------------------------------------


def fairness_in_words(logs: Sequence[UsersOfLog]) -> tuple[str, ...]:
    """Return a paragraph a log, and what the index does not say."""
    paragraphs = [f"{view.log}: {_log_in_words(view)}" if len(logs) > 1 else _log_in_words(view) for view in logs]
    if any(view.count > 1 for view in logs):
        paragraphs.append(
            "Jain's index is (sum of x) squared over n times the sum of x squared, x the mean bounded slowdown of each "
            "of the n users: 1 if all have the same, 1/n if one has it all. It says how unequal the users are, not how "
            "well they are served: a policy under which all wait equally long has 1, and it falls where most gain and "
            "a few do not. Nor does it see who it is that loses, or how large a user is; one huge slowdown decides it."
        )
    return tuple(paragraphs)


def _log_in_words(view: UsersOfLog) -> str:
    what, cases, base, unknown = view.noun, len(view.kept), view.baseline, view.unknown_jobs
    if unknown == view.jobs:
        return "the log does not say whose jobs they are, so nothing can be said about users."
    if not view.count:
        return f"no user has {counted(view.min_jobs, 'job')} in any {what}, so nothing is said about users."
    parts = [_who(view)]
    if unknown:
        parts.append(f"{counted(unknown, 'job')} of unknown users (of {view.jobs:,}) are left out.")
    if view.count == 1:
        return " ".join([*parts, "With one user there is nothing to be fair or unfair about."])
    worst, jain = view.numbers["worst user", "wait"], view.numbers["Jain's index", "bsld"]
    overall = view.overall(0)
    top = int(np.argmax(overall.mean("wait")))
    who = f"user {overall.key[top]} ({counted(int(overall.jobs[top]), 'job')})"
    longest = scaled(float(overall.mean("wait")[top]), "s")
    if cases > 1:
        middle = scaled(estimate_of(worst[:, 0]).value, "s")
        parts.append(
            f"Under {base} the worst-off user of a {what} waits {middle} on average (median over {what}s); over all of "
            f"them it is {who}, who waits {longest}."
        )
    else:
        parts.append(f"Under {base} the worst-off user is {who}, who waits {longest} on average.")
    parts.append(f"Jain's index is {number_text(estimate_of(jain[:, 0]).value)}.")
    text = " ".join(parts)
    if len(view.policies) > 1:
        name = "the wait of the worst-off user"
        text += differences_in_words(view, worst, (name, "s"), ("longer", "shorter"))
        text += differences_in_words(view, jain, ("Jain's index", "1"), ("higher", "lower"), lower_is_better=False)
        text += view.no_intervals
    return text


def _who(view: UsersOfLog) -> str:
    """Return how many users there are, in all and in a case."""
    cases, what = len(view.kept), view.noun
    counts = [len(case[0].key) for case in view.users]
    fewest, most = min(counts), max(counts)
    text = counted(view.count, "user")
    if cases > 1:
        each = f"in each of {cases} {what}s"
        text += f" {each}" if fewest == most else f" in {cases} {what}s, {fewest} to {most} of them in a {what}"
    return f"{text}{'' if view.min_jobs == 1 else f' with at least {view.min_jobs} jobs in it'}."
