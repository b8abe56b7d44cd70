"""A user's form multiplied out: which products of coefficients stand before which formulas of p, q and r.

``(c1*log10(p))*(c2*q) + c3*log10(r)`` has three coefficients but only two products of them, c1*c2 and c3. Where
every product can take any value whatever the others are, the form is linear in these effective coefficients and
can be solved exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from policyfactory.policy.expression import Binary, Call, Coefficient, Expression, Negative, Number

__all__ = ["Monomial", "are_free", "expand", "monomial_name", "nonlinear_names"]

# A product of coefficients with their whole exponents, by name; () is the part without a coefficient.
Monomial = tuple[tuple[str, int], ...]
Expanded = dict[Monomial, Expression]

_MOST_MONOMIALS = 60
_LARGEST_POWER = 8


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
        many products.
    """
    if not set(node.coefficients) - fixed:
        return {(): node}
    match node:
        case Coefficient(name):
            return {((name, 1),): Number(1.0)}
        case Negative(part):
            inner = expand(part, fixed)
            return None if inner is None else {key: _negative(value) for key, value in inner.items()}
        case Binary("**", base, Number(value)) if value == int(value) and 1 <= value <= _LARGEST_POWER:
            return _power(expand(base, fixed), int(value))
        case Binary("+" | "-" | "*" | "/" as operator, left, right):
            return _combine(operator, expand(left, fixed), expand(right, fixed))
        case Call() | Binary():
            return None
    return None


def are_free(monomials: list[Monomial]) -> bool:
    """Return whether the products can take any values independently of each other.

    Their sizes can if the matrix of exponents has full row rank; their signs can if it has so modulo 2.
    """
    names = sorted({name for monomial in monomials for name, _ in monomial})
    exponents = np.array([[dict(monomial).get(name, 0) for name in names] for monomial in monomials], dtype=np.int64)
    if len(monomials) > len(names):
        return False
    return _rank(exponents.tolist(), modulo=None) == len(monomials) == _rank((exponents % 2).tolist(), modulo=2)


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
    """Return a coefficient that stands where the form can not be multiplied out."""
    for node in form.walk():
        if expand(node, fixed) is None and all(expand(part, fixed) is not None for part in node.children):
            # The node itself is what can not be: an exponent or divisor to blame first, else what is inside.
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


def _combine(operator: str, left: Expanded | None, right: Expanded | None) -> Expanded | None:
    if left is None or right is None or len(left) * len(right) > _MOST_MONOMIALS:
        return None
    if operator in "+-":
        total = dict(left)
        for key, value in right.items():
            if key in total:
                total[key] = Binary(operator, total[key], value)
            else:
                total[key] = value if operator == "+" else _negative(value)
        return total
    if operator == "/" and len(right) != 1:
        return None
    total = {}
    for key_left, value_left in left.items():
        for key_right, value_right in right.items():
            key = _times(dict(key_left), dict(key_right), 1 if operator == "*" else -1)
            value = _joined(operator, value_left, value_right)
            total[key] = Binary("+", total[key], value) if key in total else value
    return total


def _power(base: Expanded | None, exponent: int) -> Expanded | None:
    result = base
    for _ in range(exponent - 1):
        result = _combine("*", result, base)
    return result


def _times(left: Mapping[str, int], right: Mapping[str, int], sign: int) -> Monomial:
    names = sorted({*left, *right})
    powers = ((name, left.get(name, 0) + sign * right.get(name, 0)) for name in names)
    return tuple((name, power) for name, power in powers if power)


def _joined(operator: str, left: Expression, right: Expression) -> Expression:
    one = Number(1.0)
    if right == one:
        return left
    if operator == "*" and left in (one, Negative(one)):
        return right if left == one else _negative(right)
    return Binary(operator, left, right)


def _rank(rows: list[list[int]], *, modulo: int | None) -> int:
    """Return the rank of a small matrix of whole numbers, over the rationals or modulo a prime."""
    matrix = [[Fraction(value) if modulo is None else Fraction(value % modulo) for value in row] for row in rows]
    rank = 0
    for column in range(len(matrix[0]) if matrix else 0):
        pivot = next((row for row in range(rank, len(matrix)) if matrix[row][column]), None)
        if pivot is None:
            continue
        matrix[rank], matrix[pivot] = matrix[pivot], matrix[rank]
        for row in range(rank + 1, len(matrix)):
            factor = matrix[row][column] / matrix[rank][column]
            matrix[row] = [
                value - factor * above if modulo is None else (value - factor * above) % modulo
                for value, above in zip(matrix[row], matrix[rank], strict=True)
            ]
        rank += 1
    return rank
