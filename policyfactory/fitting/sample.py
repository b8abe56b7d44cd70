"""The rows that a fit works on: one job each, grouped by tuple, with the weight p*q.

Rule for zeros: a row with p = 0 or r = 0 is left out of every fit, so that all formulas are judged on the same
rows. There log10 and 1/x are not finite, and p = 0 has the weight 0 anyway. What is left out is counted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import FitError
from policyfactory.core.options import FloatArray
from policyfactory.engine.waiting import evaluate
from policyfactory.policy.compile import compile_expression
from policyfactory.policy.expression import (
    ASKED,
    Binary,
    Call,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
    parse,
)
from policyfactory.trials.table import ScoreTable


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Jobs with their scores, sorted by tuple.

    Arrays are float64 of shape (n,) unless said otherwise.

    Parameters
    ----------
    p, q, r : array
        Seconds, processors, seconds since the start of the tuple; all above 0.
    score : array
        What a formula is fitted to (1).
    stderr : array
        Standard error of the score (1), NaN where unknown.
    weight : array
        p*q, which multiplies the residual (paper 004 equation 4, paper 002 equation 5), s processors.
    starts : int64 array (tuples,)
        First row of each tuple.
    tuple_of : int64 array
        Number of each row's tuple, 0 to tuples - 1.
    left_out : int
        Rows of the table with p = 0 or r = 0, in no fit.
    name, origin, sha256 : str
        What the table says about itself.
    """

    p: FloatArray
    q: FloatArray
    r: FloatArray
    score: FloatArray
    stderr: FloatArray
    weight: FloatArray
    starts: NDArray[np.int64]
    tuple_of: NDArray[np.int64]
    left_out: int
    name: str
    origin: str
    sha256: str

    def __len__(self) -> int:
        return len(self.p)

    @property
    def tuples(self) -> int:
        """Number of tuples."""
        return len(self.starts)

    @property
    def noise_mae(self) -> float | None:
        """MAE that a perfect formula would still show, from the scores' standard errors; None if unknown.

        The mean absolute value of a normal error is its standard deviation times sqrt(2/pi).
        """
        mean = float(self.stderr.mean())
        return None if math.isnan(mean) else math.sqrt(2 / math.pi) * mean

    @property
    def level_mae(self) -> float:
        """MAE of the trivial prediction: every job of a tuple of n has the score 1/n."""
        sizes = np.diff(np.append(self.starts, len(self)))
        return float(np.abs(self.score - 1.0 / sizes[self.tuple_of]).mean())

    @property
    def effective_tuples(self) -> float:
        """Number of tuples of equal weight that would determine a fit as well: (sum w)^2 / sum w^2.

        The weight w of a tuple is the sum of its rows' (p q)^2, which a few large jobs dominate.
        """
        weights = np.add.reduceat(self.weight**2, self.starts)
        return float(weights.sum() ** 2 / np.einsum("t,t", weights, weights))

    def values(self, formula: Expression | str) -> FloatArray:
        """Return the value of a formula of p, q and r for every row.

        Raises
        ------
        FitError
            If the formula has other variables (a score table knows neither waiting time nor machine).
        """
        expression = parse(formula) if isinstance(formula, str) else formula
        unknown = sorted(expression.variables - {"p", "q", "r"})
        if unknown:
            raise FitError(
                f"the formula {expression.text()} has {', '.join(unknown)}, which no score table has; use p, q and r"
            )
        program = compile_expression(expression)
        stack = np.empty((program.depth, len(self)))
        columns = np.array((self.p, self.q, self.r, self.r))
        evaluate(program.codes, program.operands, columns, len(self), 1.0, 0.0, stack)
        values: FloatArray = stack[0]
        return values

    def with_jobs(self, p: FloatArray, q: FloatArray, r: FloatArray) -> Sample:
        """Return a sample of other jobs, to evaluate formulas on; its scores are not theirs."""
        return dataclasses.replace(self, p=p, q=q, r=r)

    def first_tuples(self, count: int) -> Sample:
        """Return the sample of the first ``count`` tuples."""
        return self if count >= self.tuples else self.of_tuples(np.arange(self.tuples) < count)

    def of_tuples(self, chosen: NDArray[np.bool_]) -> Sample:
        """Return the sample of some tuples."""
        rows, sizes = chosen[self.tuple_of], np.bincount(self.tuple_of)[chosen]
        columns = {name: getattr(self, name)[rows] for name in ("p", "q", "r", "score", "stderr", "weight")}
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        return dataclasses.replace(self, starts=np.cumsum(sizes) - sizes, tuple_of=numbers, **columns)


def prepare(table: ScoreTable) -> Sample:
    """Return the rows of ``table`` that every formula can be fitted to.

    Raises
    ------
    FitError
        If fewer than two tuples are left, so that nothing can be said about certainty.
    """
    keep = np.flatnonzero((table.p > 0) & (table.r > 0))
    order = keep[np.argsort(table.tuple_id[keep], kind="stable")]
    _, starts, tuple_of = np.unique(table.tuple_id[order], return_index=True, return_inverse=True)
    if len(starts) < 2:
        raise FitError(
            f"{table.name}: {len(starts)} tuples with p and r above 0 in {len(table)} rows, expected at least 2 (some "
            "hundred for a result); generate more tuples (policyfactory generate --tuples)"
        )
    p, q, r = table.p[order], table.q[order], table.r[order]
    return Sample(
        p=p,
        q=q,
        r=r,
        score=table.score[order],
        stderr=table.stderr[order],
        weight=p * q,
        starts=starts.astype(np.int64),
        tuple_of=tuple_of.astype(np.int64),
        left_out=len(table) - len(order),
        name=table.name,
        origin=table.origin,
        sha256=table.sha256,
    )


# The unit of a term, from its formula: seconds and processors to some power, or unknown -------------------------------


# Exponents of seconds and of processors. A logarithm is taken of the number of seconds or processors, so it has
# no unit; a sum has one only if its parts agree.
Unit = tuple[Fraction, Fraction]

_PURE: Unit = (Fraction(0), Fraction(0))
_VARIABLES: dict[str, Unit] = {
    **dict.fromkeys(("p", "r", "e", "e90"), (Fraction(1), Fraction(0))),
    "q": (Fraction(0), Fraction(1)),
    **dict.fromkeys(("s", "user_waiting", "user_running", "n", "mem", "g"), _PURE),
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


# A user's form multiplied out -----------------------------------------------------------------------------------------

# Which products of coefficients stand before which formulas of p, q and r.
#
# ``(c1*log10(p))*(c2*q) + c3*log10(r)`` has three coefficients but only two products of them, c1*c2 and c3. Where
# every product can take any value whatever the others are, the form is linear in these effective coefficients and
# can be solved exactly.


# A product of coefficients with their whole exponents, by name; () is the part without a coefficient.
Monomial = tuple[tuple[str, int], ...]
Expanded = dict[Monomial, Expression]
# A formula and how many parts it has.
_Sized = dict[Monomial, tuple[Expression, int]]

_MOST_MONOMIALS = 60
_FREE = ("e", "s", *ASKED)
_LARGEST_POWER = 8
_LONGEST = 1000  # parts of a formula


def parse_form(text: str) -> Expression:
    """Return a form with named coefficients; ``e`` and ``s`` are such names, as no score table has predictions.

    Raises
    ------
    FormulaError
        If it cannot be read.
    """
    return parse(text, coefficients=True, free=_FREE)


def expand(node: Expression, fixed: frozenset[str] = frozenset()) -> Expanded | None:
    """Return ``node`` as a sum of products of coefficients times formulas without them.

    Parameters
    ----------
    node : Expression
        The form.
    fixed : frozenset of str
        Coefficients to treat as numbers.

    Returns
    -------
    dict of Monomial to Expression, or None
        None if a coefficient stands in a function, an exponent or a divisor that is a sum, or if there are too
        many products, or formulas too long.
    """
    expansion = _Expansion(fixed).of(node)
    return None if expansion is None else {key: value for key, (value, _) in expansion.items()}


class _Expansion:
    """What each part of a form becomes, found once.

    Parameters
    ----------
    fixed : frozenset of str
        Coefficients to treat as numbers.
    """

    def __init__(self, fixed: frozenset[str]) -> None:
        self._fixed = fixed
        self._sized: dict[int, tuple[bool, int]] = {}
        self._expansions: dict[int, _Sized | None] = {}

    def of(self, node: Expression) -> _Sized | None:
        """Return the expansion of ``node``, each formula with its number of parts; the form must outlive this."""
        key = id(node)
        if key not in self._expansions:
            self._expansions[key] = self._expanded(node)
        return self._expansions[key]

    def is_free(self, node: Expression) -> bool:
        """Return whether a coefficient that is not fixed stands in ``node``."""
        return self._size(node)[0]

    def _size(self, node: Expression) -> tuple[bool, int]:
        known = self._sized.get(id(node))
        if known is None:
            parts = [self._size(part) for part in node.children]
            free = isinstance(node, Coefficient) and node.name not in self._fixed
            known = (free or any(part[0] for part in parts), 1 + sum(part[1] for part in parts))
            self._sized[id(node)] = known
        return known

    def _expanded(self, node: Expression) -> _Sized | None:
        if not self.is_free(node):
            return {(): (node, self._size(node)[1])}
        match node:
            case Coefficient(name):
                return {((name, 1),): (Number(1.0), 1)}
            case Negative(part):
                inner = self.of(part)
                return None if inner is None else {key: (_negative(v), n + 1) for key, (v, n) in inner.items()}
            case Binary("**", base, Number(value)) if value == int(value) and 1 <= value <= _LARGEST_POWER:
                return _power_of_terms(self.of(base), int(value))
            case Binary("+" | "-" | "*" | "/" as operator, left, right):
                return _combine(operator, self.of(left), self.of(right))
        return None


def are_free(monomials: list[Monomial]) -> bool:
    """Return whether the products can take any values independently of each other.

    Their sizes can if the matrix of exponents has full row rank; their signs can if it has so modulo 2.
    """
    from sympy import GF, QQ, ZZ
    from sympy.polys.matrices import DomainMatrix

    names = sorted({name for monomial in monomials for name, _ in monomial})
    if not monomials:
        return True
    exponents = DomainMatrix.from_list([[dict(monomial).get(name, 0) for name in names] for monomial in monomials], ZZ)
    return all(exponents.convert_to(field).rank() == len(monomials) for field in (QQ, GF(2)))


def nonlinear_names(form: Expression) -> frozenset[str]:
    """Return a small set of coefficients without which the form is linear in the others."""
    fixed: frozenset[str] = frozenset()
    while True:
        expanded = expand(form, fixed)
        blocking = _blocking(form, fixed) if expanded is None else _shared(expanded)
        if not blocking:
            return fixed
        fixed |= {blocking}


def monomial_name(monomial: Monomial) -> str:
    """Return a name for the product, itself a valid coefficient name: ``c1``, ``c1_c2``, ``a_per_b``, ``a2``."""

    def joined(powers: list[tuple[str, int]]) -> str:
        return "_".join(name if exponent == 1 else f"{name}_{exponent}" for name, exponent in powers)

    above = [(name, exponent) for name, exponent in monomial if exponent > 0]
    below = [(name, -exponent) for name, exponent in monomial if exponent < 0]
    return joined(above) + (f"{'_' if above else ''}per_{joined(below)}" if below else "")


def _blocking(form: Expression, fixed: frozenset[str]) -> str | None:
    """Return a coefficient that stands where the form cannot be multiplied out."""
    expansion = _Expansion(fixed)
    for node in form.walk():
        if expansion.of(node) is None and all(expansion.of(part) is not None for part in node.children):
            # The node itself is what cannot be: an exponent or divisor to blame first, else what is inside.
            for part in reversed(node.children):
                free = [name for name in part.coefficients if name not in fixed]
                if free:
                    return free[0]
    return None


def _shared(expanded: Expanded) -> str | None:
    """Return the coefficient that stands in most of the products that are not a single first power."""
    products = [key for key in expanded if key and not (len(key) == 1 and key[0][1] == 1)]
    names = [name for key in products for name, _ in key]
    return max(sorted(set(names)), key=names.count) if names else None


def _negative(value: Expression) -> Expression:
    return value.part if isinstance(value, Negative) else Negative(value)


def _combine(operator: str, left: _Sized | None, right: _Sized | None) -> _Sized | None:
    if left is None or right is None or len(left) * len(right) > _MOST_MONOMIALS:
        return None
    total: _Sized
    if operator in "+-":
        total = dict(left)
        for key, (value, size) in right.items():
            if key in total:
                before, more = total[key]
                total[key] = Binary(operator, before, value), more + size + 1
            else:
                total[key] = (value, size) if operator == "+" else (_negative(value), size + 1)
    elif operator == "/" and len(right) != 1:
        return None
    else:
        total = {}
        for key_left, (value_left, size_left) in left.items():
            for key_right, (value_right, size_right) in right.items():
                key = _times(dict(key_left), dict(key_right), 1 if operator == "*" else -1)
                value, size = _joined_terms(operator, value_left, value_right), size_left + size_right + 1
                if key in total:
                    before, more = total[key]
                    value, size = Binary("+", before, value), more + size + 1
                total[key] = value, size
    return total if all(size <= _LONGEST for _, size in total.values()) else None


def _power_of_terms(base: _Sized | None, exponent: int) -> _Sized | None:
    result = base
    for _ in range(exponent - 1):
        result = _combine("*", result, base)
    return result


def _times(left: Mapping[str, int], right: Mapping[str, int], sign: int) -> Monomial:
    names = sorted({*left, *right})
    powers = ((name, left.get(name, 0) + sign * right.get(name, 0)) for name in names)
    return tuple((name, power) for name, power in powers if power)


def _joined_terms(operator: str, left: Expression, right: Expression) -> Expression:
    unit = Number(1.0)
    if right == unit:
        return left
    if operator == "*" and left in (unit, Negative(unit)):
        return right if left == unit else _negative(right)
    return Binary(operator, left, right)
