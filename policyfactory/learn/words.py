"""What learning has shown, in words: what was chosen, whether it is worth anything, how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence

from policyfactory.policy.policy import Policy
from policyfactory.policy.simplify import round_coefficients
from policyfactory.report.numbers import scale_for
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.summary import Summary

__all__ = ["choice_in_words", "formula_in_words", "record_in_words", "row_of", "verdict_in_words"]


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


def row_of(rows: Sequence[Comparison], chosen: str, metric: str) -> Comparison | None:
    """Return the comparison of the choice with the baseline; None where the choice is the baseline."""
    return next((row for row in rows if row.policy == chosen and row.metric == metric), None)


def verdict_in_words(chosen: str, baseline: str, rows: Sequence[Comparison], metric: str) -> str:
    """Return what the last quarter says about the choice.

    Parameters
    ----------
    chosen, baseline : str
        The policies.
    rows : sequence of Comparison
        Of the last quarter.
    metric : str
        By what was chosen.
    """
    if chosen == baseline:
        return f"Nothing was better than {baseline} there: leave the queue as it is."
    row = row_of(rows, chosen, metric)
    where = "On the last quarter, which had no part in the choice, it is"
    if row is None or row.verdict not in {"better", "worse"}:
        return (
            f"{where} not shown to be better than {baseline} in {metric}{_difference(row)}: there is no evidence yet "
            "for a change of the queue; import a longer time."
        )
    if row.verdict == "worse":
        return (
            f"{where} WORSE than {baseline} in {metric}{_difference(row)}: do not use it; what was learned does not "
            "hold for later jobs."
        )
    worse = [other for other in rows if other.policy == chosen and other.verdict == "worse"]
    prices = [f"{other.metric}{_difference(other)}" for other in worse]
    paid = f" It pays for that in {', '.join(prices)}." if prices else " No other metric shown there is worse."
    return f"{where} better than {baseline} in {metric}{_difference(row)}.{paid}"


def _difference(row: Comparison | None) -> str:
    """Return a difference with its interval, in brackets."""
    if row is None:
        return ""
    ends = [row.interval.low, row.interval.high] if row.interval else []
    scale = scale_for(row.unit, [row.difference, *ends])
    value, *interval = (scale.text(end, signed=True) for end in (row.difference, *ends))
    if not interval:
        return f" ({value}{scale.suffix}, one case, no interval)"
    better = f"better in {row.wins} of {row.cases} windows"
    return f" ({value}{scale.suffix}, 95 % interval {interval[0]} to {interval[1]}; {better})"


def record_in_words(recorded: Sequence[Summary], simulated: Sequence[Summary], baseline: str, metric: str) -> str:
    """Return how the simulated baseline compares with the recorded schedule; nothing without a record.

    Parameters
    ----------
    recorded, simulated : sequence of Summary
        Of the last quarter.
    baseline, metric : str
        With what is compared, and by what was chosen.
    """
    record = next((row for row in recorded if row.metric == metric), None)
    under = next((row for row in simulated if row.metric == metric and row.policy == baseline), None)
    if record is None or under is None:
        return ""
    scale = scale_for(record.unit, [record.value, under.value])
    was, is_now = (f"{scale.text(row.value)}{scale.suffix}" for row in (record, under))
    return (
        f"That is against a simulated {baseline}, not against your scheduler: as recorded, {metric} was {was}; under "
        f"the simulated {baseline} it is {is_now}. The further these two are apart, the more your scheduler does that "
        "the simulation leaves out (priorities, reservations, nodes that were down), and the less can be promised."
    )
