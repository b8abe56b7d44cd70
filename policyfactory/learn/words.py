"""What was chosen, and single results of it, in words."""

from __future__ import annotations

from policyfactory.policy.policy import Policy
from policyfactory.policy.simplify import round_coefficients
from policyfactory.report.numbers import scale_for
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.summary import Summary

__all__ = ["choice_in_words", "difference_in_words", "formula_in_words", "value_in_words"]


def formula_in_words(policy: Policy) -> str:
    """Return the sort key, its coefficients rounded as everywhere."""
    return round_coefficients(policy.expression).text()


def choice_in_words(policy: Policy, candidates: int, *, published: bool) -> str:
    """Return what was chosen, among how many, and its sort key.

    Parameters
    ----------
    policy : Policy
        The choice.
    candidates : int
        How many policies competed.
    published : bool
        Whether it is one of the classical policies.
    """
    origin = (
        "It is a published policy: no formula learned from this log was better there."
        if published
        else "It was learned from the first half."
    )
    return (
        f"{policy.name} was the best of {candidates} policies on the third quarter of the jobs. {origin} It sorts the "
        f"queue by {formula_in_words(policy)}, the lower value first."
    )


def difference_in_words(row: Comparison) -> str:
    """Return a difference with its interval, in brackets, behind a blank; nothing of no case."""
    if not row.cases:
        return ""
    ends = [row.interval.low, row.interval.high] if row.interval else []
    scale = scale_for(row.unit, [row.difference, *ends])
    value, *interval = (scale.text(end, signed=True) for end in (row.difference, *ends))
    if not interval:
        return f" ({value}{scale.suffix}, no interval)"
    units = "weeks" if row.statistic == "weeks" else "windows"
    better = f"better in {row.wins} of {row.cases} {units}"
    return f" ({value}{scale.suffix}, 95 % interval {interval[0]} to {interval[1]}; {better})"


def value_in_words(row: Summary) -> str:
    """Return a value with its unit."""
    scale = scale_for(row.unit, [row.value])
    return f"{scale.text(row.value)}{scale.suffix}"
