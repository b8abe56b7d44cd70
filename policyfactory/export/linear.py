"""Whether a formula is linear: what some schedulers can compute themselves, from numbers in their configuration."""

from __future__ import annotations

from fractions import Fraction

from policyfactory.core.errors import FormulaError
from policyfactory.policy.multiplied import multiply_out
from policyfactory.policy.nodes import Expression

__all__ = ["linear_coefficients", "slope"]


def slope(expression: Expression, name: str) -> float | None:
    """Return the constant by which ``expression`` grows with the variable; None where it is no constant.

    Parameters
    ----------
    expression : Expression
        Without named coefficients.
    name : {"p", "q", "r", "w", "m"}
        The variable; a formula without it has the slope 0.
    """
    if name not in expression.variables:
        return 0.0
    try:
        found = multiply_out(expression).with_variable(name)
        alone = ((name, Fraction(1)),)
        return None if set(found) - {alone} else float(found.get(alone, 0))
    except (FormulaError, OverflowError):
        return None


def linear_coefficients(expression: Expression) -> dict[str, float] | None:
    """Return the factors of p, q, r and w if ``expression`` is a sum of their multiples and a constant, else None.

    Parameters
    ----------
    expression : Expression
        Without m and without named coefficients.
    """
    if "m" in expression.variables:
        return None
    found = {}
    for name in "pqrw":
        factor = slope(expression, name)
        if factor is None:
            return None
        found[name] = factor
    return found
