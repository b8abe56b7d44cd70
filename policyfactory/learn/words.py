"""What was chosen, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyfactory.core.units import format_duration
from policyfactory.policy.policy import Policy
from policyfactory.policy.simplify import round_coefficients

if TYPE_CHECKING:
    from policyfactory.learn.ranking import Ranking
    from policyfactory.simulate.rules import Rules
    from policyfactory.workload.jobs import Workload

__all__ = [
    "choice_in_words",
    "formula_in_words",
    "hours_text",
    "judging_in_words",
    "limits_in_words",
    "replicas_in_words",
    "threshold_in_words",
    "unknown_in_words",
    "whole_hours",
]


def formula_in_words(policy: Policy) -> str:
    """Return the sort key, its coefficients rounded as everywhere."""
    return round_coefficients(policy.expression).text()


def whole_hours(hours: float) -> int:
    """Return the hours of a threshold, rounded up; from three days on to whole days."""
    return math.ceil(hours) if hours <= 72 else 24 * math.ceil(hours / 24)


def hours_text(count: int) -> str:
    """Return what a threshold of so many hours is called in the name of a policy."""
    return f"{count // 24}d" if count > 72 else f"{count}h"


def limits_in_words(policy: Policy) -> tuple[str, ...]:
    """Return what most routes into a scheduler cannot express of a policy."""
    parts = [
        *(["its threshold"] if math.isfinite(policy.threshold) else []),
        *([] if policy.is_static else ["what changes while a job waits"]),
    ]
    if not parts:
        return ()
    what = " and ".join(parts)
    return (
        (
            f"Of the routes into Slurm only the plugin in C (slurm-site-factor-c) can express {what}: by another one "
            "the queue differs from the one measured here."
        ),
    )


def judging_in_words(rules: Rules, judging: Rules) -> tuple[str, ...]:
    """Return under which rules a choice was judged, if they are not those under which it was made."""
    if rules.backfill == judging.backfill:
        return ()
    return (
        (
            "the choice was made under EASY, the literature's scheduler, and judged on the second half under Slurm's "
            "own rules, on a site that is assumed of the log; the report has the same under EASY (all under EASY: "
            "--backfill easy)"
        ),
    )


def threshold_in_words(policy: Policy, tried: Sequence[str]) -> str:
    """Return from which wait on a job goes first, and why; nothing if the user said it.

    Parameters
    ----------
    policy : Policy
        The choice.
    tried : sequence of str
        Names of the choice with the thresholds that were tried on the second quarter.
    """
    if not tried or policy.threshold == float("inf"):
        return ""
    return (
        f"Jobs that have waited {format_duration(policy.threshold)} go first: the lowest threshold of {len(tried)} "
        "with which nine tenths of its gain are sure to be kept there."
    )


def choice_in_words(policy: Policy, candidates: int, *, published: bool, tie: bool = False) -> str:
    """Return what was chosen, among how many, and its sort key.

    Parameters
    ----------
    policy : Policy
        The choice.
    candidates : int
        How many policies competed.
    published : bool
        Whether it is one of the classical policies.
    tie : bool
        Whether all policies did the same.
    """
    if tie:
        return (
            f"All {candidates} policies did the same on the second quarter of the jobs, so that none of them was "
            f"chosen: {policy.name} stands for all."
        )
    origin = (
        "It is a published policy: no formula learned from this log was better there."
        if published
        else "It was learned from the first quarter."
    )
    return (
        f"{policy.name} was the best of {candidates} policies on the second quarter of the jobs. {origin} It sorts the "
        f"queue by {formula_in_words(policy)}, the lower value first."
    )


def replicas_in_words(policy: Policy, ranking: Ranking, *, published: bool) -> str:
    """Return what was chosen by replicas, among how many, and its sort key.

    Parameters
    ----------
    policy : Policy
        The choice.
    ranking : Ranking
        How the policies did.
    published : bool
        Whether it is one of the classical policies.
    """
    where = (
        f"on {ranking.replicas} replicas of the second quarter (users' weeks moved, loads of 0.8 to 1.2 of the log's)"
    )
    key = f"It sorts the queue by {formula_in_words(policy)}, the lower value first."
    if published:
        return (
            f"{policy.name} was the best published policy {where}, and none of the other {len(ranking.rows) - 1} was "
            f"clearly ahead of it there at a bearable price. {key}"
        )
    row = ranking.row(ranking.chosen)
    said = (
        f"{policy.name} was the best of {len(ranking.rows)} policies {where}: {ranking.aims[0]} is "
        f"{row.ratios[0]:.2f} times that of {ranking.peer}, the best published one."
    )
    if ranking.runner_up and ranking.margin is not None and ranking.margin.verdict != "better":
        said += f" {ranking.runner_up} cannot be told from it."
    return f"{said} {key}"


# What the script of slurm-site-factor-lua does not know when a job is submitted.
_UNKNOWN = ("requested_memory", "executable", "partition")


def unknown_in_words(workload: Workload) -> tuple[str, ...]:
    """Return what predictions looked at that a scheduler may not know at submission; nothing if it knows all."""
    attributes = workload.attributes
    if attributes is None:
        return ()
    read = [name for name in _UNKNOWN if (getattr(attributes, name) >= 0).any()]
    if not read:
        return ()
    words = " and ".join(name.replace("_", " ") for name in read)
    options = " ".join(f"--leave-out {name}" for name in read)
    what = f"The predictions look at {words}, which the script for Slurm does not know when a job is submitted"
    return (f"{what}: for Slurm learn with {options}.",)
