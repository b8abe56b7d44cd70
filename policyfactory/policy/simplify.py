"""Shorter formulas that sort a queue in the same order.

The order does not change when a positive factor or an added constant is dropped, so a fitted
``8e-6*log10(p)*q + 0.007*log10(r) + 0.02`` becomes ``log10(p)*q + 870.96*log10(r)``, the way in which the papers
write their F1 to F4. The algebra is sympy's, on an expression built node by node from our tree (never from text),
with exact rational numbers. Of the domain (p >= 1, q >= 1, m >= 1, 0 < s <= 1, all others >= 0) only m > 0 is used, to
drop factors such as 1/m, which are the same for all jobs; f is so too at one pass, but may be 0.

What is kept: the order of any two jobs, up to the rounding of doubles. Where the algebra is right and the doubles are
not, as the shorter formula overflows or has a value where the original has none, the original is kept (`same_order`).
The work is bounded by the sizes of formula and numbers, not by time: the result is the same on every machine.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
from typing import Any, Literal

from policyfactory.core.errors import FormulaError
from policyfactory.policy.multiplied import constant_value, exact
from policyfactory.policy.nodes import (
    FUNCTIONS,
    OF_A_JOB,
    VARIABLES,
    Binary,
    Call,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
    number,
    opposite,
    rewritten,
)
from policyfactory.policy.same_order import same_order

__all__ = [
    "LARGEST",
    "SHOWN_DIGITS",
    "Shorter",
    "from_sympy",
    "round_coefficients",
    "shorter_formula",
    "simplify_order",
    "to_sympy",
]

LARGEST = 1000  # nodes; a longer formula is left as it is
SHOWN_DIGITS = 5  # of coefficients wherever they are shown; a model keeps them as they are
_MOST_BITS = 4_000  # of an exact number
_ROUNDS = 10

Sympy = Any  # sympy has no type information
_Terms = list[tuple[Sympy, Sympy]]  # coefficient that is the same for all jobs, and what it multiplies


@dataclasses.dataclass(frozen=True, slots=True)
class Shorter:
    """The shortest formula that was found.

    Parameters
    ----------
    expression : Expression
        It; the formula itself if there is none.
    why_not : str
        Why none was looked for or taken, in words; empty if it was.
    """

    expression: Expression
    why_not: str = ""


def shorter_formula(expression: Expression) -> Shorter:
    """Return a formula that ranks jobs as ``expression`` does and is not longer, or why there is none.

    Raises
    ------
    FormulaError
        If a named coefficient has no value.
    """
    if expression.coefficients:
        raise FormulaError(f"the coefficient {expression.coefficients[0]} has no value; fit it first")
    if expression.size > LARGEST:
        return Shorter(expression, f"not looked for: the formula has {expression.size:,} parts, more than {LARGEST:,}")
    try:
        shorter = _shorter(expression)
    except (FormulaError, RecursionError) as error:
        reason = str(error) if isinstance(error, FormulaError) else "it is nested too deeply"
        return Shorter(expression, f"not found: {reason}")
    if shorter.size >= expression.size:
        return Shorter(expression)
    if shorter.variables and not same_order(expression, shorter):
        return Shorter(expression, f"none: {shorter.text()} has another order where numbers are very large or small")
    return Shorter(shorter)


def simplify_order(
    expression: Expression, *, digits: int | None = None, rounding: Literal["nearest", "truncate"] = "nearest"
) -> Expression:
    """Return a formula that ranks jobs as ``expression`` does and is not longer.

    Parameters
    ----------
    expression : Expression
        Without named coefficients.
    digits : int or None
        Significant digits of the coefficients, for display only: rounding can change the order. None keeps them as
        exact as a double is.
    rounding : str
        ``"truncate"`` is what the SC'17 paper does: three digits so give its table 3 from its programs' numbers.

    Raises
    ------
    FormulaError
        If a named coefficient has no value.
    """
    shorter = shorter_formula(expression).expression
    return shorter if digits is None else round_coefficients(shorter, digits, rounding)


def round_coefficients(
    expression: Expression,
    digits: int = SHOWN_DIGITS,
    rounding: Literal["nearest", "truncate"] = "nearest",
    *,
    exponents: bool = False,
) -> Expression:
    """Return ``expression`` with its numbers at ``digits`` significant digits; exponents only if asked for."""
    if digits < 1:
        raise ValueError(f"at least one digit is needed, got {digits}")
    mode = decimal.ROUND_DOWN if rounding == "truncate" else decimal.ROUND_HALF_EVEN
    context = decimal.Context(prec=digits, rounding=mode)

    def rounded(node: Expression) -> Expression | None:
        match node:
            case Number(value):
                return Number(float(context.create_decimal(repr(value))))
            case Binary("**", base, exponent) if not exponents:
                return Binary("**", rewritten(base, rounded), exponent)
            case _:
                return None

    return rewritten(expression, rounded)


def _symbol(name: str) -> Sympy:
    import sympy

    # Without assumptions: with them sympy looks for the roots of nested sums, which can take for ever.
    return sympy.Symbol(name)


def _exact(value: float) -> Sympy:
    import sympy

    return sympy.Rational(exact(value))


def _checked(value: Sympy) -> Sympy:
    """Return ``value`` unless it holds an infinity or a number that is too long."""
    import sympy

    for part in value.as_coeff_Mul()[:1]:
        if part.is_Rational and max(int(part.p).bit_length(), int(part.q).bit_length()) > _MOST_BITS:
            raise FormulaError("a number of the formula is too long to be exact")
    # What it is made of was checked before: an infinity is it, or is one of its parts' parts at most.
    parts = {value, *value.args, *(inner for part in value.args for inner in part.args)}
    if parts & {sympy.zoo, sympy.nan, sympy.oo, -sympy.oo}:
        raise FormulaError("a constant part of the formula has no finite value; write it without")
    return value


def to_sympy(node: Expression) -> Sympy:
    """Return the formula as a sympy expression.

    Numbers are exact rationals of their decimal text; functions other than sqrt are undefined functions of the same
    name, so that sympy assumes nothing about them.

    Raises
    ------
    FormulaError
        If a constant part has no finite value, or is too long to be exact.
    """
    import sympy

    match node:
        case Number(value):
            return _exact(value)
        case Variable(name) | Coefficient(name):
            return _symbol(name)
        case Negative(part):
            return -to_sympy(part)
        case Binary("**", base, exponent):
            return _checked(_power(to_sympy(base), to_sympy(exponent)))
        case Binary(operator, left, right):
            a, b = to_sympy(left), to_sympy(right)
            return _checked({"+": a + b, "-": a - b, "*": a * b}[operator] if operator != "/" else a / b)
        case Call("sqrt", (part,)):
            return _checked(_power(to_sympy(part), sympy.Rational(1, 2)))
        case Call(function, arguments):
            parts = [to_sympy(part) for part in arguments]
            if all(part.is_number for part in parts):
                return _exact(constant_value(function, [float(part) for part in parts]))
            return sympy.Function(function)(*parts)
    raise TypeError(f"{type(node).__name__} is no part of a formula")


def _power(base: Sympy, exponent: Sympy) -> Sympy:
    """Return base**exponent; what sympy would compute exactly is bounded first."""
    if base.is_number and exponent.is_number and not exponent.is_Integer:
        return _exact(constant_value("**", [_double(base), _double(exponent)]))
    if exponent.is_Rational:
        factor, rest = base.as_coeff_Mul()
        if factor.is_Rational and not exponent.is_Integer and abs(factor) != 1:
            # Of a number under a root sympy would look for the prime factors.
            outside = _exact(constant_value("**", [_double(abs(factor)), _double(exponent)]))
            return outside * (rest if factor > 0 else -rest) ** exponent
        if factor.is_Rational:
            bits = max(int(factor.p).bit_length(), int(factor.q).bit_length())
            if bits * max(1, abs(exponent)) > _MOST_BITS:
                raise FormulaError("a number of the formula is too long to be exact")
    elif not exponent.is_Symbol and base.is_number:
        raise FormulaError("a constant to a variable power is left as it is")
    return base**exponent


def _shorter(expression: Expression) -> Expression:
    """Return the simplified formula.

    Raises
    ------
    FormulaError
        If a number is too long, or sympy's result is not in the grammar.
    """
    import sympy

    terms: _Terms = [_split(part) for term in _additive(expression, sympy.Integer(1)) for part in _parts(term)]
    for _ in range(_ROUNDS):
        terms = _without_constants(terms)
        opened = _opened(terms)
        if opened is None:
            break
        terms = opened
    return _sum([factor * rest for factor, rest in terms]) if terms else Number(0.0)


def _additive(node: Expression, factor: Sympy) -> list[Sympy]:
    """Return the terms of the formula in the order in which they are written, each times ``factor``."""
    match node:
        case Negative(part):
            return _additive(part, -factor)
        case Binary("+", left, right):
            return _additive(left, factor) + _additive(right, factor)
        case Binary("-", left, right):
            return _additive(left, factor) + _additive(right, -factor)
        case Binary("*", left, right) if not left.variables:
            return _additive(right, _checked(factor * to_sympy(left)))
        case Binary("*" | "/", left, right) if not right.variables:
            value = to_sympy(right)
            if value == 0:
                raise FormulaError("a division by zero is left as it is")
            return _additive(left, _checked(factor * value if node.operator == "*" else factor / value))
    return [_checked(factor * to_sympy(node))]


def _parts(term: Sympy) -> list[Sympy]:
    """Return the terms of a sympy sum, in an order that does not depend on the run."""
    return sorted(term.args, key=_place) if term.is_Add else [term]


def _split(term: Sympy) -> tuple[Sympy, Sympy]:
    """Return the factor of a term that is the same for all jobs, and the rest."""
    constant, rest = term.as_independent(*(_symbol(name) for name in OF_A_JOB), as_Add=False)
    return constant, rest


def _without_constants(terms: _Terms) -> _Terms:
    """Merge equal terms, drop those that are the same for all jobs, divide by the first coefficient's size."""
    merged: dict[Sympy, Sympy] = {}
    for constant, rest in terms:
        if not rest.is_number and rest != 1:
            merged[rest] = merged.get(rest, 0) + constant
    kept = [(constant, rest) for rest, constant in merged.items() if constant != 0]
    if not kept:
        return []
    first = kept[0][0]
    sign = _sign(first)
    return [(_checked(constant * sign / first), rest) for constant, rest in kept] if sign else kept


def _sign(constant: Sympy) -> int:
    """Return 1 or -1 for a number times powers of m, 0 where the sign would take more to find out."""
    number, rest = constant.as_coeff_Mul()
    bases = [factor.as_base_exp()[0] for factor in (rest.args if rest.is_Mul else (rest,))]
    if any(base != _symbol("m") and not base.is_Rational for base in bases) or any(base.is_negative for base in bases):
        return 0
    return 1 if number > 0 else -1


def _opened(terms: _Terms) -> _Terms | None:
    """Return the terms of a sum that is alone, once its factor is gone; else None."""
    if len(terms) != 1:
        return None
    factor, rest = terms[0]
    if not rest.is_Add or abs(factor) != 1:
        return None
    return [_split(factor * part) for part in _parts(rest)]


def _place(value: Sympy) -> tuple[int, int, str]:
    """Return where a factor or term stands: in the order of `VARIABLES`, constants last."""
    names = {symbol.name for symbol in value.free_symbols}
    positions = [position for position, name in enumerate(VARIABLES) if name in names]
    return (min(positions, default=len(VARIABLES)), len(names), str(value))


def from_sympy(value: Sympy) -> Expression:
    """Return a sympy expression of our vocabulary as a formula.

    Raises
    ------
    FormulaError
        If it has anything that the grammar has not, or a number outside its bounds.
    """
    if value.is_Symbol:
        return Variable(value.name) if value.name in VARIABLES else Coefficient(value.name)
    if value.is_number:
        return number(_double(value))
    if value.is_Add:
        return _sum(sorted(value.args, key=_place))
    if value.is_Mul or value.is_Pow:
        negative, part = _product(value)
        return Negative(part) if negative else part
    name = getattr(value.func, "__name__", "")
    if name in FUNCTIONS:
        return Call(name, tuple(from_sympy(part) for part in value.args))
    raise FormulaError(f"{name or value} is not in the grammar")


def _double(value: Sympy) -> float:
    try:
        result = int(value.p) / int(value.q) if value.is_Rational else float(value.evalf(30))
    except (OverflowError, TypeError):
        result = math.inf
    if not math.isfinite(result) or 0 < abs(result) < 1e-300 or abs(result) > 1e300:
        raise FormulaError("a number of the formula is outside 1e-300 to 1e300")
    return result


def _sum(terms: list[Sympy]) -> Expression:
    result: Expression | None = None
    for term in terms:
        negative, part = _product(term)
        if result is None:
            result = opposite(part) if negative else part
        else:
            result = Binary("-" if negative else "+", result, part)
    assert result is not None  # noqa: S101 (no caller gives an empty sum)
    return result


def _product(value: Sympy) -> tuple[bool, Expression]:
    """Return whether a term is negative, and its size as coefficient, factors, and divisors."""
    coefficient, rest = value.as_coeff_Mul()
    above: list[Expression] = []
    below: list[Expression] = []
    constant = _double(coefficient)
    for factor in sorted(rest.args if rest.is_Mul else (rest,), key=_place):
        if factor.is_number:
            constant *= _double(factor)
        else:
            base, exponent = factor.as_base_exp()
            inverse = bool(exponent.is_Rational and exponent < 0)
            (below if inverse else above).append(_raised(base, -exponent if inverse else exponent))
    if abs(constant) != 1 or not above:
        above.insert(0, Number(abs(constant)))
    return constant < 0, _quotient(_chain(above), below)


def _chain(factors: list[Expression]) -> Expression:
    result = factors[0]
    for factor in factors[1:]:
        result = Binary("*", result, factor)
    return result


def _quotient(above: Expression, below: list[Expression]) -> Expression:
    return Binary("/", above, _chain(below)) if below else above


def _raised(base: Sympy, exponent: Sympy) -> Expression:
    if exponent == 1:
        return from_sympy(base)
    if exponent.is_Rational and exponent.p == 1 and exponent.q == 2:
        return Call("sqrt", (from_sympy(base),))
    return Binary("**", from_sympy(base), from_sympy(exponent))
