"""A user's form multiplied out: which products of coefficients stand before which formulas of p, q and r.

``(c1*log10(p))*(c2*q) + c3*log10(r)`` has three coefficients but only two products of them, c1*c2 and c3. Where
every product can take any value whatever the others are, the form is linear in these effective coefficients and
can be solved exactly.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyfactory.policy.expression import parse
from policyfactory.policy.nodes import ASKED, Binary, Coefficient, Expression, Negative, Number

__all__ = ["Monomial", "are_free", "expand", "monomial_name", "nonlinear_names", "parse_form"]

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
                return _power(self.of(base), int(value))
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
                value, size = _joined(operator, value_left, value_right), size_left + size_right + 1
                if key in total:
                    before, more = total[key]
                    value, size = Binary("+", before, value), more + size + 1
                total[key] = value, size
    return total if all(size <= _LONGEST for _, size in total.values()) else None


def _power(base: _Sized | None, exponent: int) -> _Sized | None:
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
