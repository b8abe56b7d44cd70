"""A formula multiplied out: a sum of terms with exact factors, found in bounded time whatever the formula is.

``2*(p + 1)*q - q`` is ``2*p*q + q``. What would need too many terms, as ``(p + q)**100``, and what is no product,
as ``log10(p)``, stands in the terms as it is written, like a variable of its own.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from policyfactory.core.errors import FormulaError
from policyfactory.policy.nodes import Binary, Call, Coefficient, Expression, Negative, Number, Variable

__all__ = ["Multiplied", "Term", "constant_value", "exact", "multiply_out"]

_MOST_TERMS = 200
_MOST_BITS = 4000  # of a factor
_LARGEST_POWER = 8  # of a sum

# Names and their exponents, by name; () is the term without any.
Term = tuple[tuple[str, Fraction], ...]
_Terms = dict[Term, Fraction]  # any() of it tells whether more than a constant is in it


@dataclasses.dataclass(frozen=True, slots=True)
class Multiplied:
    """A sum of terms.

    Parameters
    ----------
    terms : mapping of Term to Fraction
        What each term is multiplied by, never 0. A name is a variable, or a part of the formula as it is written.
    inside : mapping of str to frozenset of str
        The variables in each name.
    """

    terms: Mapping[Term, Fraction]
    inside: Mapping[str, frozenset[str]]

    def with_variable(self, name: str) -> dict[Term, Fraction]:
        """Return the terms in which the variable ``name`` stands."""
        return {
            term: factor for term, factor in self.terms.items() if any(name in self.inside[part] for part, _ in term)
        }


def multiply_out(expression: Expression) -> Multiplied:
    """Return ``expression`` as a sum of terms.

    Raises
    ------
    FormulaError
        If a constant part has no finite value or is too long to be exact.
    """
    walk = _Walk()
    return Multiplied(walk.terms(expression), walk.inside)


def exact(value: float) -> Fraction:
    """Return the number that the shortest text of ``value`` says.

    Raises
    ------
    FormulaError
        If it is not finite.
    """
    if not math.isfinite(value):
        raise FormulaError("a constant part of the formula has no finite value; write it without")
    return Fraction(decimal.Decimal(repr(value)))


def constant_value(function: str, values: list[float]) -> float:
    """Return a function of constants (``**`` is the power), NaN where it has no value."""
    table: dict[str, Any] = {
        **{name: getattr(math, name) for name in ("log10", "log2", "sqrt", "exp")},
        "ln": math.log,
        "abs": abs,
        "min": min,
        "max": max,
        "**": math.pow,
    }
    try:
        return float(table[function](*values))
    except (ValueError, OverflowError):
        return math.nan


class _Walk:
    def __init__(self) -> None:
        self.inside: dict[str, frozenset[str]] = {}

    def terms(self, node: Expression) -> _Terms:
        match node:
            case Number(value):
                return _without_zeros({(): exact(value)})
            case Variable(name) | Coefficient(name):
                self.inside[name] = frozenset({name})
                return {((name, Fraction(1)),): Fraction(1)}
            case Negative(part):
                return {term: -factor for term, factor in self.terms(part).items()}
            case Binary("+" | "-" as operator, left, right):
                total = self.terms(left)
                for term, factor in self.terms(right).items():
                    total[term] = total.get(term, Fraction(0)) + (factor if operator == "+" else -factor)
                return self.bounded(_without_zeros(total), node)
            case Binary("*", left, right):
                return self.product(self.terms(left), self.terms(right), node)
            case Binary("/", left, right):
                return self.product(self.terms(left), self.power(right, Fraction(-1)), node)
            case Binary("**", base, exponent):
                power = self.terms(exponent)
                return self.whole(node) if any(power) else self.power(base, power.get((), Fraction(0)), node)
            case Call("sqrt", (part,)):
                return self.power(part, Fraction(1, 2), node)
            case Call(function, arguments):
                parts = [self.terms(part) for part in arguments]
                if any(any(part) for part in parts):
                    return self.whole(node)
                values = [_float(part.get((), Fraction(0))) for part in parts]
                return _without_zeros({(): exact(constant_value(function, values))})
        raise TypeError(f"{type(node).__name__} is no part of a formula")

    def whole(self, node: Expression, exponent: Fraction = Fraction(1)) -> _Terms:
        """Return ``node`` to the power ``exponent`` as one term."""
        text = f"({node.text()})"
        self.inside[text] = node.variables | frozenset(node.coefficients)
        return {((text, exponent),): Fraction(1)}

    def bounded(self, terms: _Terms, node: Expression) -> _Terms:
        """Return ``terms``, or ``node`` as it is written where they are too many or their factors too long."""
        bits = max((max(f.numerator.bit_length(), f.denominator.bit_length()) for f in terms.values()), default=0)
        if len(terms) <= _MOST_TERMS and bits <= _MOST_BITS:
            return terms
        if not node.variables | frozenset(node.coefficients):
            raise FormulaError("a number of the formula is too long to be exact")
        return self.whole(node)

    def product(self, left: _Terms, right: _Terms, node: Expression) -> _Terms:
        if len(left) * len(right) > _MOST_TERMS:
            return self.whole(node)
        total: _Terms = {}
        for one, factor in left.items():
            for other, times in right.items():
                powers = dict(one)
                for name, exponent in other:
                    powers[name] = powers.get(name, Fraction(0)) + exponent
                term = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
                total[term] = total.get(term, Fraction(0)) + factor * times
        return self.bounded(_without_zeros(total), node)

    def power(self, base: Expression, exponent: Fraction, node: Expression | None = None) -> _Terms:
        """Return ``base`` to a constant power; ``node`` is the whole, None if ``base`` is a divisor."""
        terms = self.terms(base)
        if not any(terms):
            return self.constant(terms.get((), Fraction(0)), exponent)
        if exponent.denominator == 1 and len(terms) == 1:
            ((term, factor),) = terms.items()
            if abs(exponent) * max(factor.numerator.bit_length(), factor.denominator.bit_length()) <= _MOST_BITS:
                raised = tuple((name, power * exponent) for name, power in term) if exponent else ()
                return {raised: factor ** int(exponent)}
        if exponent.denominator == 1 and 0 < exponent <= _LARGEST_POWER and node is not None:
            result = terms
            for _ in range(int(exponent) - 1):
                result = self.product(result, terms, node)
            return result
        if len(terms) == 1 and list(terms.values()) == [1] and len(next(iter(terms))) == 1:
            ((name, inner),) = next(iter(terms))
            if inner == 1:
                return {((name, exponent),): Fraction(1)}
        return self.whole(base, exponent)

    @staticmethod
    def constant(base: Fraction, exponent: Fraction) -> _Terms:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if exponent.denominator == 1 and bits * abs(exponent) <= _MOST_BITS and (base or exponent >= 0):
            return _without_zeros({(): base ** int(exponent)})
        return _without_zeros({(): exact(constant_value("**", [_float(base), _float(exponent)]))})


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _without_zeros(terms: _Terms) -> _Terms:
    return {term: factor for term, factor in terms.items() if factor}
