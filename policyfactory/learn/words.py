"""What was chosen, in words."""

from __future__ import annotations

from policyfactory.policy.policy import Policy
from policyfactory.policy.simplify import round_coefficients

__all__ = ["choice_in_words", "formula_in_words"]


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
