"""Fairness in words: how the worst-off users fare, and how unequal the users are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.analyses.common import scaled, under_policies
from policyfactory.analyses.over_cases import told_difference
from policyfactory.analyses.user_means import Standing, UserMeans
from policyfactory.core.text import counted, number_text
from policyfactory.report.caveats import noun
from policyfactory.statistics.intervals import MIN_CASES

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["fairness_in_words"]

_WORST, _JAIN = "worst userwait", "Jain's indexbsld"


def fairness_in_words(
    evaluation: Evaluation,
    users: Mapping[str, UserMeans],
    found: Mapping[str, Mapping[str, Standing]],
    min_jobs: int,
) -> tuple[str, ...]:
    """Return a paragraph a log, and what the index does not say.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    users : mapping of str to UserMeans
        The users of each log.
    found : mapping of str to mapping of str to Standing
        The numbers of each log that has known users.
    min_jobs : int
        Jobs that a user needs in a case.
    """
    paragraphs = []
    for log, own in users.items():
        name = f"{log}: " if len(users) > 1 else ""
        text = (
            _of_log(evaluation, log, own, found[log], min_jobs)
            if log in found
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


def _of_log(evaluation: Evaluation, log: str, users: UserMeans, found: Mapping[str, Standing], min_jobs: int) -> str:
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
    worst, jain = found[_WORST], found[_JAIN]
    overall = users.overall[0]
    top = int(np.argmax(overall.wait))
    who = f"user {overall.user[top]} ({counted(int(overall.jobs[top]), 'job')})"
    longest = scaled(float(overall.wait[top]), "s")
    if cases > 1:
        parts.append(
            f"Under {policies[0]} the worst-off user of a {what} waits {scaled(worst.values[0].value, 's')} on average "
            f"(median over {what}s); over all of them it is {who}, who waits {longest}."
        )
    else:
        parts.append(f"Under {policies[0]} the worst-off user is {who}, who waits {longest} on average.")
    parts.append(f"Jain's index is {number_text(jain.values[0].value)}.")
    if len(policies) > 1:
        parts += [_against(policies, worst, "the worst-off user", "s", ("longer", "less"))]
        parts += [_against(policies, jain, "Jain's index", "1", ("higher", "lower"))]
        if cases < MIN_CASES:
            parts.append(f"No intervals: {counted(cases, what)}, {MIN_CASES} are needed.")
    return " ".join(parts)


def _against(policies: tuple[str, ...], standing: Standing, what: str, unit: str, words: tuple[str, str]) -> str:
    """Return the policies under which a number differs from the baseline's, and those under which it does not."""
    told, same = [], []
    for k, policy in enumerate(policies[1:], 1):
        difference, verdict = standing.differences[k], standing.verdict(k)
        if verdict == "no difference" or difference.value == 0:
            same.append(policy)
        elif np.isfinite(difference.value):
            told.append(f"{policy} {told_difference(difference, unit, words)}")
    verb = "waits" if unit == "s" else "is"
    parts = []
    if told:
        parts.append(f"{what[0].upper()}{what[1:]} {verb}, against {policies[0]}: {'; '.join(told)}.")
    if same:
        parts.append(f"No difference {'there' if told else f'of {what}'} {under_policies(same, len(policies) - 1)}.")
    return " ".join(parts)
