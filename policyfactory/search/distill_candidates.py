"""Formulas that may stand in for a network: published ones, the forms of the SC'17 paper, and the searched families.

The forms are those of `policyfactory.fit.forms`, in p and q, and with a wait in the place of r: w + 10, which has a
logarithm and a reciprocal for a job that has just come too. All of them, and all stock families but one, are linear
in their coefficients once the order alone counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.fit.forms import Product, distinct_forms, product_text
from policyfactory.policy.catalogue import CATALOGUE
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import FittedNumber
from policyfactory.search.distill_order import fit_order, search_order
from policyfactory.search.distill_pairs import Pairs, agreement_of
from policyfactory.search.families import REFERENCES, Family
from policyfactory.search.formulas import term_of

__all__ = ["KINDS", "PULLS", "Fitted", "family_formulas", "form_formulas", "kind_of", "published_formulas"]

# What a formula asks of a scheduler, the least first: a key that never changes, the wait, the free processors.
KINDS = ("static", "w", "f")
PULLS = (1e-2, 1e-4, 1e-6)
_FORM_PULL = 1e-4
_SEARCHED_PAIRS = 4000  # of a family that is not linear
_KEPT_FORMS = 5  # of each kind
_WAIT = {"r": "w + 10"}  # in the place of what a network does not know
_SOURCE = "policyfactory distill"


@dataclasses.dataclass(frozen=True, slots=True)
class Fitted:
    """A formula, fitted to an order.

    Parameters
    ----------
    policy : Policy
        The formula with its numbers.
    origin : str
        ``published``, ``form``, or the name of a family.
    coefficients : tuple of FittedNumber
        Its numbers; empty for a formula that has none.
    pull : float or None
        Weight of the squared length of the factors; None where nothing was fitted.
    """

    policy: Policy
    origin: str
    coefficients: tuple[FittedNumber, ...] = ()
    pull: float | None = None

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        return kind_of(self.policy)


def kind_of(policy: Policy) -> str:
    """Return what a policy asks of a scheduler."""
    return "f" if "f" in policy.variables else "w" if "w" in policy.variables else "static"


def published_formulas() -> list[Fitted]:
    """Return the catalogue's formulas in p, q, w and m, first come first served and its reverse, and p*sqrt(q)."""
    known = {**CATALOGUE, **REFERENCES}
    of_arrival = {"r", "-r"}
    fits = [one for one in known.values() if one.formula in of_arrival or "r" not in one.variables]
    return [Fitted(one, "published") for one in fits]


# Forms ---------------------------------------------------------------------------------------------------------------


def form_formulas(pairs: Pairs) -> list[Fitted]:
    """Return the forms that order most pairs as the network does, the best five without a wait and with one."""
    kept: list[Fitted] = []
    for number, products in enumerate(_designs()):
        # Of forms that agree equally, as p*q and -1/(p*q) do, the shortest.
        of_share: dict[float, Fitted] = {}
        for one in sorted(_fit_forms(pairs, products), key=lambda one: (len(one.policy.formula), one.policy.formula)):
            of_share.setdefault(agreement_of(pairs, pairs.queues.scores(one.policy)).pairs, one)
        ranked = [of_share[share] for share in sorted(of_share, reverse=True)]
        prefix = "FORM" if number == 0 else "FORM-W"
        for place, one in enumerate(ranked[:_KEPT_FORMS], start=1):
            named = dataclasses.replace(one.policy, name=f"{prefix}-{place}")
            kept.append(dataclasses.replace(one, policy=named))
    return kept


def _designs() -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the terms of all forms in p and q, and of all in p, q and a wait."""
    every = distinct_forms()
    without = {tuple(part for part in map(_without_r, products) if part) for products in every}
    texts = [
        [tuple(product_text(one, _WAIT) for one in products) for products in some] for some in (sorted(without), every)
    ]
    return texts[0], texts[1]


def _without_r(product: Product) -> Product:
    return tuple(factor for factor in product if factor[0] != "r")


def _fit_forms(pairs: Pairs, designs: Sequence[tuple[str, ...]]) -> Iterator[Fitted]:
    known: dict[str, FloatArray] = {}

    def difference(term: str) -> FloatArray:
        if term not in known:
            known[term] = _difference(pairs, Policy("term", term))
        return known[term]

    for terms in designs:
        factors = fit_order(np.stack([difference(term) for term in terms], axis=1), _FORM_PULL)
        if factors is None:
            continue
        numbers = [_rounded(value / abs(factors[0])) for value in factors] if factors[0] else []
        if not numbers or not np.isfinite(numbers).all():
            continue
        text = " + ".join(_times(number, term) for number, term in zip(numbers, terms, strict=True))
        fitted = tuple(
            FittedNumber(f"k{place}", term, number)
            for place, (number, term) in enumerate(zip(numbers, terms, strict=True), start=1)
        )
        policy = Policy("form", text.replace("+ -", "- "), "a form of the SC'17 paper", _SOURCE)
        yield Fitted(policy, "form", fitted, _FORM_PULL)


def _times(number: float, term: str) -> str:
    if abs(number) == 1:
        return term if number > 0 else f"-{term}"
    return f"{number:.6g}{term[1:]}" if term.startswith("1/") else f"{number:.6g}*{term}"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _difference(pairs: Pairs, policy: Policy) -> FloatArray:
    values = pairs.queues.scores(policy)
    with np.errstate(invalid="ignore"):
        return values[pairs.behind] - values[pairs.ahead]


# Families ------------------------------------------------------------------------------------------------------------


def family_formulas(family: Family, pairs: Pairs) -> list[Fitted]:
    """Return a family's formulas that fit the pairs, one for each of `PULLS`; none if it has no value for some job."""
    design = _linear(family, pairs)
    if design is None:
        return _searched(family, pairs)
    base, terms = design
    columns = np.column_stack([base, terms]) if base.any() else terms
    # A coefficient of what is the same for all jobs changes no order: it keeps the value that the family gives it.
    live = np.abs(columns).sum(axis=0) > 0
    made = []
    for pull in PULLS:
        some = fit_order(columns[:, live], pull) if live.any() else None
        if some is None:
            continue
        factors = np.zeros(len(live))
        factors[live] = some
        if base.any():
            if factors[0] == 0:
                continue
            values, sign = factors[1:] / factors[0], 1.0 if factors[0] > 0 else -1.0
        else:
            values, sign = factors, 1.0
        values = np.where(live[-len(values) :], values, family.start)
        if np.isfinite(values).all():
            made.append(_fixed(family, values, sign, pull))
    return made


def _fixed(family: Family, values: FloatArray, sign: float, pull: float) -> Fitted:
    form = family.form
    numbers = {name: _rounded(value) for name, value in zip(form.names, values.tolist(), strict=True)}
    policy = form.fixed(numbers, form.name, description=family.words, source=_SOURCE)
    if sign < 0:
        policy = dataclasses.replace(policy, formula=f"-({policy.formula})")
    fitted = tuple(FittedNumber(name, term_of(form, name), value) for name, value in numbers.items())
    return Fitted(policy, form.name, fitted, pull)


def _linear(family: Family, pairs: Pairs) -> tuple[FloatArray, FloatArray] | None:
    """Return the differences of what has no coefficient and of each term, None if the form is not linear in them."""
    form = family.form
    count = len(form.names)
    base = _difference(pairs, form.with_values(np.zeros(count)))
    units = np.stack([_difference(pairs, form.with_values(row)) for row in np.eye(count)], axis=1)
    tried = np.linspace(0.7, 1.9, count)
    given = _difference(pairs, form.with_values(tried))
    if not all(np.isfinite(one).all() for one in (base, units, given)):
        return None
    terms = units - base[:, None]
    expected = base + terms @ tried
    return (base, terms) if np.allclose(given, expected, rtol=1e-6, atol=1e-9 * np.abs(terms).max(initial=1)) else None


def _searched(family: Family, pairs: Pairs) -> list[Fitted]:
    some = pairs.some(_SEARCHED_PAIRS)

    def difference(values: FloatArray) -> FloatArray:
        return _difference(some, family.form.with_values(values))

    values, sign = search_order(difference, family.start, PULLS[1])
    given = difference(values)
    if not (np.isfinite(given).all() and given.any()):
        return []
    return [_fixed(family, values, sign, PULLS[1])]
