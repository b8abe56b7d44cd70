"""The 576 forms of paper 004 section 3.3: ((c1 a(p)) op1 (c2 b(q))) op2 (c3 c(r)), grouped to the left.

a, b, c are among id, log10, sqrt and inv (1/x), op1 and op2 among +, * and /. Multiplied out, the three
coefficients merge into one to three effective ones in which every form is linear, so each is solved exactly:

    op1, op2        terms                     effective coefficients
    +  +            a(p), b(q), c(r)          c1, c2, c3
    * or /,  +      a(p) op1 b(q), c(r)       c1 op1 c2, c3
    +, * or /       a(p) op2 c(r), b(q) op2 c(r)     c1 op2 c3, c2 op2 c3
    * or /, * or /  a(p) op1 b(q) op2 c(r)    c1 op1 c2 op2 c3

Dividing by 1/x is multiplying by x: the 576 are 400 different functions, and each is reported once, with the
other ways to write it as aliases. A form that divides by log10(q) has no value for a job of one processor
(log10(1) = 0): a form that is not finite on every row is not ranked but counted and named.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import FitError
from policyfactory.fit.result import Fit, Term, exact_fit
from policyfactory.fit.sample import Sample

__all__ = ["FormsResult", "distinct_forms", "fit_all_forms", "product_text"]

# A factor of a term: variable, function, and whether it stands below the fraction line.
Factor = tuple[str, str, bool]
Product = tuple[Factor, ...]

_FUNCTIONS = ("id", "log10", "sqrt", "inv")
_OPERATORS = ("+", "*", "/")


@dataclasses.dataclass(frozen=True, slots=True)
class FormsResult:
    """Every different function of the family.

    Parameters
    ----------
    fits : tuple of Fit
        By mean absolute error, best first.
    undefined : tuple of str
        Functions that are not finite on every row, so that they can order no queue.
    forms : int
        Ways to write all of them (576).
    """

    fits: tuple[Fit, ...]
    undefined: tuple[str, ...]
    forms: int


def fit_all_forms(sample: Sample) -> FormsResult:
    """Return the fits of all forms, and which have no value on some rows."""
    columns = _Columns(sample)
    fits: list[Fit] = []
    undefined: list[str] = []
    forms = distinct_forms()
    for products, aliases in forms.items():
        texts = [product_text(product) for product in products]
        name = " + ".join(texts)
        design = columns.design(products)
        if not np.isfinite(design).all():
            undefined.append(name)
            continue
        terms = tuple(Term.of(text, f"k{number}") for number, text in enumerate(texts, start=1))
        try:
            fits.append(exact_fit(sample, terms, design, name=name, family="forms", aliases=aliases))
        except FitError:
            # On such rows two terms are the same, for example q and sqrt(q) where every job has one processor.
            undefined.append(name)
    # Equal errors (possible on tiny tables only) go by name, so that the order never depends on rounding alone.
    fits.sort(key=lambda fit: (fit.mae, fit.name))
    return FormsResult(tuple(fits), tuple(undefined), sum(map(len, forms.values())))


def distinct_forms() -> dict[tuple[Product, ...], tuple[str, ...]]:
    """Return every different function (its terms as products of factors) with the ways to write it."""
    ways_of: dict[tuple[Product, ...], list[str]] = {}
    for a, op1, b, op2, c in itertools.product(_FUNCTIONS, _OPERATORS, _FUNCTIONS, _OPERATORS, _FUNCTIONS):
        p, q, r = _factor("p", a), _factor("q", b), _factor("r", c)
        terms: tuple[Product, ...]
        if op1 == "+" and op2 == "+":
            terms = ((p,), (q,), (r,))
        elif op2 == "+":
            terms = ((p, _join(op1, q)), (r,))
        elif op1 == "+":
            terms = ((p, _join(op2, r)), (q, _join(op2, r)))
        else:
            terms = ((p, _join(op1, q), _join(op2, r)),)
        written = f"(c1*{a}(p) {op1} c2*{b}(q)) {op2} c3*{c}(r)"
        ways_of.setdefault(terms, []).append(written)
    return {terms: tuple(ways) for terms, ways in ways_of.items()}


def _factor(variable: str, function: str) -> Factor:
    return (variable, "id", True) if function == "inv" else (variable, function, False)


def _join(operator: str, factor: Factor) -> Factor:
    variable, function, below = factor
    return (variable, function, below != (operator == "/"))


def product_text(product: Product, names: Mapping[str, str] | None = None) -> str:
    """Return a product as a formula; ``names``: what stands in the place of a variable, for example ``w + 10`` of r."""
    above = [_call(factor, names) for factor in product if not factor[2]]
    below = [_call(factor, names) for factor in product if factor[2]]
    text = "*".join(above) or "1"
    if not below:
        return text
    return f"{text}/{below[0]}" if len(below) == 1 else f"{text}/({'*'.join(below)})"


def _call(factor: Factor, names: Mapping[str, str] | None = None) -> str:
    variable, function, _ = factor
    inner = (names or {}).get(variable, variable)
    if function == "id":
        return inner if inner.isidentifier() else f"({inner})"
    return f"{function}({inner})"


class _Columns:
    """Columns of the terms; factors and the products over p and q are computed once and shared by all forms."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._known: dict[Product, FloatArray] = {}

    def design(self, products: tuple[Product, ...]) -> FloatArray:
        """Return the columns of one form, shape (n, k)."""
        design = np.empty((len(self._sample), len(products)), order="F")
        for number, product in enumerate(products):
            design[:, number] = self._product(product)
        return design

    def _product(self, product: Product) -> FloatArray:
        known = self._known.get(product)
        if known is not None:
            return known
        if len(product) == 1:
            column = self._factor(product[0])
        else:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                last = self._factor((*product[-1][:2], False))
                column = self._product(product[:-1]) / last if product[-1][2] else self._product(product[:-1]) * last
        if len(product) < 3:
            self._known[product] = column
        return column

    def _factor(self, factor: Factor) -> FloatArray:
        variable, function, below = factor
        known = self._known.get((factor,))
        if known is None:
            values = self._sample.values(_call((variable, function, False)))
            with np.errstate(divide="ignore"):
                known = 1.0 / values if below else values
            self._known[(factor,)] = known
        return known
