"""The unit of a term, from its formula: seconds and processors to some power, or unknown."""

from __future__ import annotations

from fractions import Fraction

from policyfactory.policy.nodes import Binary, Call, Coefficient, Expression, Negative, Number, Variable

__all__ = ["coefficient_unit", "unit_text"]

# Exponents of seconds and of processors. A logarithm is taken of the number of seconds or processors, so it has
# no unit; a sum has one only if its parts agree.
Unit = tuple[Fraction, Fraction]

_PURE: Unit = (Fraction(0), Fraction(0))
_VARIABLES: dict[str, Unit] = {
    "p": (Fraction(1), Fraction(0)),
    "r": (Fraction(1), Fraction(0)),
    "q": (Fraction(0), Fraction(1)),
    "e": (Fraction(1), Fraction(0)),
    "e90": (Fraction(1), Fraction(0)),
    "s": _PURE,
    "user_waiting": _PURE,
    "user_running": _PURE,
    "n": _PURE,
    "mem": _PURE,
    "g": _PURE,
}


def coefficient_unit(term: Expression) -> str:
    """Return the unit of what multiplies ``term`` in a formula whose value is a score (1), ``?`` if it has none.

    Examples
    --------
    >>> from policyfactory.policy.expression import parse
    >>> coefficient_unit(parse("p**2*q"))
    '1/(s^2 processors)'
    """
    unit = _unit(term)
    return "?" if unit is None else unit_text(-unit[0], -unit[1])


def unit_text(seconds: Fraction, processors: Fraction) -> str:
    """Return for example ``s^0.5``, ``1/(s processors)``, ``processors/s``, or ``1``."""
    powers = ((seconds, "s"), (processors, "processors"))
    above = [_power(name, exponent) for exponent, name in powers if exponent > 0]
    below = [_power(name, -exponent) for exponent, name in powers if exponent < 0]
    numerator = " ".join(above) or "1"
    if not below:
        return numerator
    return f"{numerator}/{below[0]}" if len(below) == 1 else f"{numerator}/({' '.join(below)})"


def _power(name: str, exponent: Fraction) -> str:
    return name if exponent == 1 else f"{name}^{float(exponent):g}"


def _unit(node: Expression) -> Unit | None:
    match node:
        case Number() | Coefficient():
            return _PURE
        case Variable(name):
            return _VARIABLES.get(name)
        case Negative(part):
            return _unit(part)
        case Binary("**", base, exponent):
            return _power_unit(base, exponent)
        case Binary(operator, left, right):
            return _joined(operator, _unit(left), _unit(right))
        case Call(function, arguments):
            return _call_unit(function, [_unit(part) for part in arguments])
    return None


def _joined(operator: str, left: Unit | None, right: Unit | None) -> Unit | None:
    if left is None or right is None:
        return None
    if operator in "+-":
        return left if left == right else None
    sign = 1 if operator == "*" else -1
    return (left[0] + sign * right[0], left[1] + sign * right[1])


def _power_unit(base: Expression, exponent: Expression) -> Unit | None:
    unit = _unit(base)
    sign = 1
    while isinstance(exponent, Negative):
        exponent, sign = exponent.part, -sign
    if unit is None or unit == _PURE:
        return unit
    if not isinstance(exponent, Number):
        return None
    power = sign * Fraction(exponent.value).limit_denominator(1000)
    return (unit[0] * power, unit[1] * power)


def _call_unit(function: str, units: list[Unit | None]) -> Unit | None:
    if function in {"log10", "log2", "ln", "exp"}:
        return _PURE
    first = units[0]
    if any(unit != first for unit in units):
        return None
    if function == "sqrt" and first is not None:
        return (first[0] / 2, first[1] / 2)
    return first
