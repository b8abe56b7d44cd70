"""A fitted formula: terms, coefficients, how well it fits, and its text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.fit.expand import parse_form
from policyfactory.fit.sample import Sample
from policyfactory.fit.units import coefficient_unit
from policyfactory.fit.wls import Solution, solve
from policyfactory.policy.expression import parse
from policyfactory.policy.nodes import Binary, Expression, Negative, Number, number, substitute

__all__ = ["Fit", "Term", "exact_fit", "sum_of_terms"]

EXACT = "exact: weighted linear least squares by scaled QR"


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """What one coefficient multiplies.

    Parameters
    ----------
    text : str
        Formula in p, q and r with numbers; ``1`` for the constant. For a coefficient that enters nonlinearly, where it
        stands.
    coefficient : str
        Name of the coefficient.
    unit : str
        Unit of the coefficient: that of a score (1) over that of the term; ``?`` where the formula mixes units.
    linear : bool
        Whether the formula is linear in the coefficient.
    """

    text: str
    coefficient: str
    unit: str
    linear: bool = True

    @classmethod
    def of(cls, text: str, coefficient: str) -> Term:
        """Return the term with its unit worked out."""
        return cls(text, coefficient, coefficient_unit(parse(text)))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A formula with its fitted coefficients.

    Parameters
    ----------
    name : str
        ``LIN``, ... for a polynomial, the user's name for a user's form, else the terms.
    family : str
        ``forms``, ``polynomials``, ``linear`` or ``user``.
    source : str
        The formula with the names of its coefficients.
    terms : tuple of Term
        One a coefficient.
    coefficients : float64 array (k,)
        In the terms' units; the formula's value is a score.
    mae : float
        Mean absolute error over the rows, not weighted (paper 004 equation 5, paper 002 equation 6); the rank.
    sse : float
        Weighted sum of squared residuals that was minimised, (s processors)^2.
    condition : float
        Condition number of the weighted columns after scaling.
    aliases : tuple of str
        Other ways in which the family writes the same function.
    method : str
        How the coefficients were found, and how sure the minimum is.
    converged : bool
        Whether the minimum is certain, or reached from more than one start.
    offset : str
        What the formula has beside its linear terms, with numbers: the part without a linear coefficient.
    """

    name: str
    family: str
    source: str
    terms: tuple[Term, ...]
    coefficients: FloatArray
    mae: float
    sse: float
    condition: float
    aliases: tuple[str, ...] = ()
    method: str = EXACT
    converged: bool = True
    offset: str = ""

    @property
    def is_linear(self) -> bool:
        """Whether every coefficient enters linearly."""
        return all(term.linear for term in self.terms)

    @property
    def expression(self) -> Expression:
        """The formula with its numbers; its value is a score."""
        linear = [(parse(term.text), c) for term, c in zip(self.terms, self.coefficients, strict=True) if term.linear]
        if not linear:
            return parse(self.offset)
        total = sum_of_terms(*zip(*linear, strict=True))
        return Binary("+", total, parse(self.offset)) if self.offset else total

    @property
    def base(self) -> int:
        """Position of the first term that varies from job to job; over its coefficient the others are compared."""
        return next(iter(self._varying), 0)

    @property
    def last(self) -> int:
        """Position of the last term that varies from job to job."""
        return next(reversed(self._varying), 0)

    @property
    def _varying(self) -> list[int]:
        return [place for place, term in enumerate(self.terms) if term.linear and parse(term.text).variables]

    @property
    def text(self) -> str:
        """The formula with its numbers as text; its value is a score."""
        return self.expression.text()

    @property
    def _values(self) -> dict[str, float]:
        return {term.coefficient: float(c) for term, c in zip(self.terms, self.coefficients, strict=True)}

    def design(self, sample: Sample) -> FloatArray:
        """Return the derivative of the formula by its coefficients, one column each, shape (n, k)."""
        columns = [
            sample.values(term.text) if term.linear else self._slope(sample, number)
            for number, term in enumerate(self.terms)
        ]
        return np.column_stack(columns)

    def _slope(self, sample: Sample, position: int) -> FloatArray:
        """Return the central difference of the formula by one coefficient."""
        source, values = parse_form(self.source), self._values
        name = self.terms[position].coefficient
        step = float(np.cbrt(np.finfo(np.float64).eps)) * max(abs(values[name]), 1e-3)
        above = sample.values(substitute(source, {**values, name: values[name] + step}))
        below = sample.values(substitute(source, {**values, name: values[name] - step}))
        slope: FloatArray = (above - below) / (2 * step)
        return slope

    def linear_target(self, sample: Sample) -> FloatArray:
        """Return what the design times the coefficients should be: the score, or its linearisation at the minimum."""
        if self.is_linear:
            return sample.score - sample.values(self.offset) if self.offset else sample.score
        residual = sample.score - sample.values(self.expression)
        target: FloatArray = residual + self.design(sample) @ self.coefficients
        return target


def sum_of_terms(terms: Sequence[Expression], coefficients: Sequence[float] | FloatArray) -> Expression:
    """Return ``c1*term1 + c2*term2 ...`` with minus signs where coefficients are negative."""
    total: Expression | None = None
    for term, value in zip(terms, coefficients, strict=True):
        if total is None:
            total = _times(float(value), term)
        else:
            total = Binary("-" if value < 0 else "+", total, _times(abs(float(value)), term))
    if total is None:
        raise ValueError("a formula has at least one term")
    return total


def _times(value: float, term: Expression) -> Expression:
    """Return ``value*term``, written ``value/x`` for the term 1/x and ``value`` for the term 1."""
    match term:
        case Number(value=1.0):
            return number(value)
        case Binary("/", Number(value=1.0), below):
            return Binary("/", number(value), below)
        case Binary("*" | "/" as operator, left, right) if not isinstance(left, Number | Negative):
            return Binary(operator, _times(value, left), right)
        case _:
            return Binary("*", number(value), term)


def exact_fit(
    sample: Sample,
    terms: tuple[Term, ...],
    design: FloatArray,
    *,
    name: str,
    family: str,
    aliases: tuple[str, ...] = (),
    offset: str = "",
) -> Fit:
    """Return the least-squares fit of a sum of terms.

    Raises
    ------
    FitError
        If the terms are not finite or not independent on these rows.
    """
    target = sample.score - sample.values(offset) if offset else sample.score
    solution: Solution = solve(design, target, sample.weight)
    written = [term.coefficient if term.text == "1" else f"{term.coefficient}*{_grouped(term.text)}" for term in terms]
    source = " + ".join(written + ([_grouped(offset)] if offset else []))
    return Fit(
        name=name,
        family=family,
        source=source,
        terms=terms,
        coefficients=solution.coefficients,
        mae=float(np.abs(np.einsum("ij,j->i", design, solution.coefficients) - target).mean()),
        sse=solution.sse,
        condition=solution.condition,
        aliases=aliases,
        offset=offset,
    )


def _grouped(text: str) -> str:
    expression = parse(text)
    is_sum = isinstance(expression, Negative) or (isinstance(expression, Binary) and expression.operator in "+-")
    return f"({text})" if is_sum else text
