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
from fractions import Fraction
from typing import Any

import numpy as np

from policyfactory.core.errors import FormulaError
from policyfactory.core.options import FloatArray
from policyfactory.policy.expression import (
    FUNCTIONS,
    MAX_EXPONENT,
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


def round_coefficients(expression: Expression, digits: int = SHOWN_DIGITS, *, exponents: bool = False) -> Expression:
    """Return ``expression`` with its numbers at ``digits`` significant digits; exponents only if asked for."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN)

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
    return sorted(term.args, key=_order_key) if term.is_Add else [term]


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


def _order_key(value: Sympy) -> tuple[int, int, str]:
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
        return _sum(sorted(value.args, key=_order_key))
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
    for factor in sorted(rest.args if rest.is_Mul else (rest,), key=_order_key):
        if factor.is_number:
            constant *= _double(factor)
        else:
            base, exponent = factor.as_base_exp()
            inverse = bool(exponent.is_Rational and exponent < 0)
            (below if inverse else above).append(_raised(base, -exponent if inverse else exponent))
    if abs(constant) != 1 or not above:
        above.insert(0, Number(abs(constant)))
    size = _chain(above)
    return constant < 0, Binary("/", size, _chain(below)) if below else size


def _chain(factors: list[Expression]) -> Expression:
    result = factors[0]
    for factor in factors[1:]:
        result = Binary("*", result, factor)
    return result


def _raised(base: Sympy, exponent: Sympy) -> Expression:
    if exponent.is_Rational and exponent > MAX_EXPONENT:
        raise FormulaError(f"an exponent of the formula is beyond {MAX_EXPONENT:g}")
    if exponent == 1:
        return from_sympy(base)
    if exponent.is_Rational and exponent.p == 1 and exponent.q == 2:
        return Call("sqrt", (from_sympy(base),))
    return Binary("**", from_sympy(base), from_sympy(exponent))


# A formula multiplied out ---------------------------------------------------------------------------------------------


_MOST_TERMS = 200


def multiply_out(expression: Expression) -> dict[Sympy, Fraction]:
    """Return ``expression`` as a sum: products of variables, and what each is multiplied by; 1 is the constant.

    ``2*(p + 1)*q - q`` is ``2*p*q + q``. A part that would need too many terms, as ``(p + q)**100``, is left as it is.

    Raises
    ------
    FormulaError
        If a constant part has no finite value or is too long to be exact, or a variable is an exponent of a constant.
    """
    import sympy

    parts = sympy.Add.make_args(to_sympy(expression))
    total = sympy.Add(*(sympy.expand(part) if _most_terms(part) <= _MOST_TERMS else part for part in parts))
    terms = (term.as_coeff_Mul() for term in sympy.Add.make_args(total))
    return {rest: Fraction(int(factor.p), int(factor.q)) for factor, rest in terms if factor}


def _most_terms(value: Sympy) -> int:
    """Return how many terms the expanded value or a part of it has at most; a bound of that where it is more."""
    counts = [_most_terms(part) for part in value.args]
    if value.is_Add:
        return sum(counts)
    if value.is_Mul:
        return min(math.prod(counts), _MOST_TERMS + 1)
    if value.is_Pow and value.exp.is_Rational:
        return int(min(counts[0] ** min(math.ceil(abs(value.exp)), _MOST_TERMS), _MOST_TERMS + 1))
    return max(counts, default=1)


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


# Whether two formulas sort jobs in the same order, tried on jobs as odd as they come ----------------------------------

# Algebra knows no largest number: ``((m + r)/m)**100`` and ``(r + m)**100`` are the same order, but in doubles the
# second overflows where the first does not, and jobs with one infinite score are sorted by submit time. So both are
# computed as a scheduler's formula is, for jobs from the smallest to larger than any, and compared: jobs whose scores
# are equal (both infinite, or without a value) in one of them must be so in the other, and no two may change places;
# differences within the rounding of doubles do not count.


# Seconds, processors and jobs. No two are in a simple ratio, so that no two jobs are equal by chance.
_VALUES = {
    "p": (1.0, 67.3, 3607.1, 87013.9, 2.617e6, 1.193e10),
    "q": (1.0, 3.0, 67.0, 20011.0, 1.1e7),
    "r": (0.0, 1.0, 991.7, 86413.3, 3.1e7, 1.9e9, 1.7e13),
    "w": (0.0, 1.0, 509.3, 70001.7, 2.9e6, 1.3e10),
    "e": (0.37, 53.9, 4019.3, 9.7e4, 2.3e9),
    "s": (1.0, 0.2239, 4.157e-3, 7.1e-9),
    "e90": (1.3, 8101.9, 3.7e5, 6.1e9),
    "user_waiting": (0.0, 1.0, 59.0),
    "user_running": (0.0, 1.0, 71.0),
    "n": (1.0, 7.0, 9203.0),
    "mem": (0.0, 1.0, 509.0, 4.1e6),
    "g": (0.0, 1.0, 83.0),
}
# Of more jobs than so many these are tried: with a prime step all are different, and of all kinds.
_MOST_JOBS, _STEP = 40_000, 1_000_003
_MACHINES = (1.0, 128.0, 1.3e7)
_FREE = (0.0, 1.0, 61.0, 17011.0, 9.7e6)
_ROUNDING = 1e-9
# Below it doubles lose digits.
_TINY = float(np.finfo(np.float64).tiny)


def same_order(first: Expression, second: Expression) -> bool:
    """Return whether two formulas sort in the same order.

    Parameters
    ----------
    first, second : Expression
        Without named coefficients.
    """
    names = first.variables | second.variables
    axes = [values if name in names else values[:1] for name, values in _VALUES.items()]
    jobs = _jobs(axes)
    machines = _MACHINES if "m" in names else _MACHINES[-1:]
    free = _FREE if "f" in names else _FREE[:1]
    sizes = [(m, f) for m in machines for f in free if f <= m]
    return all(_agree(_scores(first, jobs, *size), _scores(second, jobs, *size)) for size in sizes)


def _jobs(axes: list[tuple[float, ...]]) -> FloatArray:
    """Return the jobs that have one value of each axis, all of them or many: float64 array (axes, jobs)."""
    sizes = [len(axis) for axis in axes]
    count = math.prod(sizes)
    places = np.arange(count) if count <= _MOST_JOBS else np.arange(_MOST_JOBS) * _STEP % count
    return np.array([np.array(axis)[index] for axis, index in zip(axes, np.unravel_index(places, sizes), strict=True)])


def _scores(expression: Expression, jobs: FloatArray, machine: float, free: float) -> FloatArray:
    # The compiler is slow to load.
    from policyfactory.policy.compile import compile_expression

    scores = compile_expression(expression).values(jobs, machine, free)
    # As `Policy.scores` has it: what has no value runs last.
    scores[np.isnan(scores)] = np.inf
    scores[np.abs(scores) < _TINY] = 0.0
    return scores


def _agree(first: FloatArray, second: FloatArray) -> bool:
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    before, after = _steps(first), _steps(second)
    torn = (first[1:] == first[:-1]) & (after != 0)
    merged = (second[1:] == second[:-1]) & (before != 0)
    return not bool((torn | merged | ((before > 0) & (after < 0))).any())


def _steps(scores: FloatArray) -> FloatArray:
    """Return 1 or -1 where a score is larger or smaller than the one before, 0 where only rounding tells them apart."""
    size = np.maximum(np.abs(scores[1:]), np.abs(scores[:-1]))
    with np.errstate(invalid="ignore"):
        steps = np.where(scores[1:] == scores[:-1], 0.0, np.diff(scores))
    rounding = np.where(np.isfinite(size), _ROUNDING * size, 0.0)
    return np.where(np.abs(steps) > rounding, np.sign(steps), 0.0)
