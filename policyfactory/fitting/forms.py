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
from numpy.typing import NDArray

from policyfactory.core.errors import FitError, UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.random import generator
from policyfactory.fitting.regression import Fit, Term, exact_fit
from policyfactory.fitting.sample import (
    Monomial,
    Sample,
    are_free,
    coefficient_unit,
    expand,
    monomial_name,
    nonlinear_names,
    parse_form,
)
from policyfactory.policy.expression import Expression, parse, substitute
from policyfactory.workload.header import printable

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


# The polynomials of paper 002 table 1 and the family's next two degrees -----------------------------------------------

# The polynomials of paper 002 table 1 and the family's next two degrees, and the small linear mixture.
#
# Degree d adds p^d, q^d, r^d and every p^i q^j with i + j = d and i, j >= 1; submit times never meet p or q, and the
# constant is a term. LIN, QDR, CUB and QUA are the table's; QUI (quintic) adds p^5, q^5, r^5, p^4 q, p^3 q^2,
# p^2 q^3, p q^4, and SEX (sextic) p^6, q^6, r^6, p^5 q, p^4 q^2, p^3 q^3, p^2 q^4, p q^5. The mixture MIX is the
# constant, p, q, p*q and r: the job features of Legrand et al. (IPDPS 2019) that a score table has.


POLYNOMIALS: dict[str, int] = {"LIN": 1, "QDR": 2, "CUB": 3, "QUA": 4, "QUI": 5, "SEX": 6}
MIXTURE = ("1", "p", "q", "r", "p*q")


def monomials(degree: int) -> tuple[str, ...]:
    """Return the terms of the polynomial of ``degree``, the constant first, in the order of paper 002 table 3."""
    texts = ["1", "p", "q", "r"]
    for d in range(2, degree + 1):
        texts += [f"{variable}**{d}" for variable in "pqr"]
        texts += [f"{_power('p', d - j)}*{_power('q', j)}" for j in range(1, d)]
    return tuple(texts)


def fit_all_polynomials(sample: Sample) -> tuple[list[Fit], dict[str, str]]:
    """Return those of LIN to SEX whose terms can be told apart on these rows, and why the others cannot be fitted.

    The columns of the largest are shared by all.
    """
    columns = _columns(sample, monomials(max(POLYNOMIALS.values())))
    fits: list[Fit] = []
    failures: dict[str, str] = {}
    for name, degree in POLYNOMIALS.items():
        texts = monomials(degree)
        try:
            fits.append(exact_fit(sample, _terms(texts), columns[:, : len(texts)], name=name, family="polynomials"))
        except FitError as error:
            failures[name] = str(error)
    return fits, failures


def fit_mixture(sample: Sample) -> Fit:
    """Return the linear mixture of p, q, r and p*q."""
    return exact_fit(sample, _terms(MIXTURE), _columns(sample, MIXTURE), name="MIX", family="linear")


def _terms(texts: tuple[str, ...]) -> tuple[Term, ...]:
    return tuple(Term.of(text, f"theta{number}") for number, text in enumerate(texts))


def _columns(sample: Sample, texts: tuple[str, ...]) -> NDArray[np.float64]:
    return np.column_stack([sample.values(text) for text in texts])


def _power(variable: str, exponent: int) -> str:
    return variable if exponent == 1 else f"{variable}**{exponent}"


# Forms that are not linear in their coefficients: variable projection, from many starts -------------------------------

# For given values of the nonlinear coefficients the others follow exactly by weighted linear least squares, so
# scipy.optimize.least_squares searches over the nonlinear ones alone (Golub and Pereyra, SIAM J. Numer. Anal. 10,
# 1973). No method is sure to find the global minimum of such a problem: the search is started from many points, and
# the result says how many of them ended where.


STARTS = 24
_STREAM = 510  # purpose of this module's random numbers
_SEARCH_TUPLES = 300  # the search over starts sees at most these; the best are polished on all
_POLISHED = 3
_SAME = 1e-6  # relative difference of two sums of squares that count as one minimum
_RAN_AWAY = 1e8


@dataclasses.dataclass(frozen=True, slots=True)
class _Minimum:
    values: tuple[float, ...]
    cost: float
    ended: bool


def fit_nonlinear(
    sample: Sample, text: str, nonlinear: frozenset[str], *, name: str, seed: int = 1, starts: int = STARTS
) -> Fit:
    """Return the least-squares fit of a form that is linear in all coefficients but ``nonlinear``.

    Raises
    ------
    FitError
        If no start leads to a finite minimum.
    """
    problem = _Problem(sample, text, nonlinear)
    search = (
        problem if sample.tuples <= _SEARCH_TUPLES else _Problem(sample.first_tuples(_SEARCH_TUPLES), text, nonlinear)
    )
    ends = [search.minimise(start) for start in _starts(len(problem.names), starts, seed)]
    minima = sorted((minimum for minimum in ends if np.isfinite(minimum.cost)), key=lambda minimum: minimum.cost)
    if not minima:
        raise FitError(
            f"{printable(text, 200)}: none of {starts} starts led to a finite sum of squares; check the domain of the "
            "form"
        )
    polished = [problem.minimise(np.array(minimum.values)) for minimum in _different(minima)[:_POLISHED]]
    best = min(polished, key=lambda minimum: minimum.cost)
    ended = [minimum for minimum in minima if minimum.ended]
    same = sum(minimum.cost <= minima[0].cost * (1 + _SAME) for minimum in ended)
    runaway = any(abs(value) > _RAN_AWAY for value in best.values)
    method = (
        f"nonlinear in {', '.join(problem.names)}: least squares from {starts} starts, {same} of them ended at the "
        f"best minimum, {len(ended) - same} at worse ones, {starts - len(ended)} at none"
    )
    if runaway:
        method += "; a coefficient ran to the edge, so the table does not determine it"
    return _fit(sample, problem, best, name=name, method=method, converged=best.ended and same > 1 and not runaway)


def _starts(dimensions: int, count: int, seed: int) -> list[FloatArray]:
    """Return starting points: exponents near 1 first, then random ones, small and of any size by turns."""
    rng = generator(seed, _STREAM)
    points = [np.full(dimensions, value) for value in (1.0, 0.5, -0.5)]
    while len(points) < count:
        if len(points) % 2:
            points.append(rng.uniform(-2, 2, dimensions))
        else:
            points.append(rng.choice((-1.0, 1.0), dimensions) * 10 ** rng.uniform(-6, 6, dimensions))
    return points[:count]


def _different(minima: list[_Minimum]) -> list[_Minimum]:
    """Return the best of each group of equal costs."""
    kept: list[_Minimum] = []
    for minimum in minima:
        if not kept or minimum.cost > kept[-1].cost * (1 + _SAME):
            kept.append(minimum)
    return kept


class _Problem:
    """The weighted residual as a function of the nonlinear coefficients alone."""

    def __init__(self, sample: Sample, text: str, nonlinear: frozenset[str]) -> None:
        form = parse_form(text)
        expanded = expand(form, nonlinear)
        if expanded is None:
            raise FitError(f"{printable(text, 200)}: cannot be multiplied out; write it as a sum of terms")
        self.text = text
        self.names = [name for name in form.coefficients if name in nonlinear]
        self.offset = expanded.pop((), None)
        self.linear: dict[str, Expression] = {key[0][0]: value for key, value in expanded.items()}
        self._sample = sample
        self._size = float(np.linalg.norm(sample.weight * sample.score))
        self.target = sample.weight * sample.score / self._size

    def columns(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weighted, scaled columns (n, linear) and what is left for them to explain (n,)."""
        known = dict(zip(self.names, map(float, values), strict=True))
        factor = self._sample.weight / self._size
        matrix = np.empty((len(self._sample), len(self.linear)), order="F")
        for position, term in enumerate(self.linear.values()):
            matrix[:, position] = self._sample.values(substitute(term, known)) * factor
        rest = self.target
        if self.offset is not None:
            rest = rest - self._sample.values(substitute(self.offset, known)) * factor
        return matrix, rest

    def solve_linear(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the linear coefficients that are best for ``values``, and the residual."""
        if not np.isfinite(values).all():
            return np.empty(0), np.full(len(self._sample), np.inf)
        with np.errstate(all="ignore"):
            matrix, rest = self.columns(values)
            if not matrix.shape[1]:
                return np.empty(0), rest
            norm = np.linalg.norm(matrix, axis=0)
            if not (np.isfinite(norm).all() and np.isfinite(rest).all() and (norm > 0).all()):
                return np.empty(0), np.full(len(self._sample), np.inf)
            try:
                solution = np.linalg.lstsq(matrix / norm, rest, rcond=None)[0] / norm
            except np.linalg.LinAlgError:
                return np.empty(0), np.full(len(self._sample), np.inf)
            return solution, rest - np.einsum("ij,j->i", matrix, solution)

    def minimise(self, start: FloatArray) -> _Minimum:
        """Return the minimum that least squares reaches from ``start``."""
        from scipy.optimize import least_squares

        def residual(values: FloatArray) -> FloatArray:
            residual = self.solve_linear(values)[1]
            # Finite, so that a step into a place without a value is refused as a bad one.
            return np.where(np.isfinite(residual), residual, 1e3)

        if not np.isfinite(self.solve_linear(start)[1]).all():
            return _Minimum(tuple(start), np.inf, ended=False)
        try:
            with np.errstate(all="ignore"):
                result = least_squares(
                    residual, start, jac="3-point", x_scale="jac", xtol=1e-12, ftol=1e-15, gtol=None, max_nfev=200
                )
        except (ValueError, np.linalg.LinAlgError):
            return _Minimum(tuple(start), np.inf, ended=False)
        cost = 2 * float(result.cost) * self._size**2
        return _Minimum(tuple(result.x), cost, ended=bool(result.status > 0))


def _fit(sample: Sample, problem: _Problem, best: _Minimum, *, name: str, method: str, converged: bool) -> Fit:
    values = np.array(best.values)
    solved = problem.solve_linear(values)[0]
    known = dict(zip(problem.names, best.values, strict=True))
    terms = [
        Term(text := substitute(term, known).text(), coefficient, coefficient_unit(parse(text)))
        for coefficient, term in problem.linear.items()
    ]
    terms += [Term(f"inside {problem.text}", coefficient, "?", linear=False) for coefficient in problem.names]
    fit = Fit(
        name=name,
        family="user",
        source=problem.text,
        terms=tuple(terms),
        coefficients=np.concatenate([solved, values]),
        mae=np.nan,
        sse=np.nan,
        condition=np.nan,
        method=method,
        converged=converged,
        offset="" if problem.offset is None else substitute(problem.offset, known).text(),
    )
    residual = sample.score - sample.values(fit.expression)
    slopes = fit.design(sample) * sample.weight[:, None]
    if not (np.isfinite(residual).all() and np.isfinite(slopes).all()):
        raise FitError(
            f"{printable(problem.text, 200)}: the best minimum lies at the edge of where the form has a value; use "
            "another form"
        )
    with np.errstate(over="ignore"):
        norm = np.linalg.norm(slopes, axis=0)
    condition = float(np.linalg.cond(slopes / np.where(norm > 0, norm, 1.0)))
    weighted = sample.weight * residual
    return dataclasses.replace(
        fit,
        mae=float(np.abs(residual).mean()),
        sse=float(np.einsum("i,i", weighted, weighted)),
        condition=min(condition, float(np.finfo(np.float64).max)),
    )


# A user's own form ----------------------------------------------------------------------------------------------------

# Any expression over p, q and r with named coefficients, such as ``a*p**b*q + c*log10(r)``.


_MOST_COEFFICIENTS = 40


def split_name(text: str, default: str) -> tuple[str, str]:
    """Return name and formula of ``NAME=FORMULA``; without a name, ``default``.

    Raises
    ------
    UsageError
        If the name cannot be the name of a policy.
    """
    name, sign, formula = text.partition("=")
    if not sign:
        return default, text.strip()
    name = name.strip()
    if not (0 < len(name) <= 40 and name.isprintable() and not set(name) & set("/\\|`<>")):
        raise UsageError(
            f"the name {name[:40]!r} of a form cannot be used; write NAME=FORMULA, a short name without / \\ |"
        )
    return name, formula.strip()


def fit_user_form(sample: Sample, text: str, *, name: str = "form", seed: int = 1, starts: int = STARTS) -> Fit:
    """Return the fit of one form: exact where it is linear in effective coefficients, else iterative."""
    form = parse_form(text)
    count = len(form.coefficients)
    if not 0 < count <= _MOST_COEFFICIENTS:
        raise FitError(
            f"{printable(text, 200)}: has {count} coefficients, expected 1 to {_MOST_COEFFICIENTS}; write for example "
            "a*log10(p)*q + b*log10(r), where a and b are found by the fit"
        )
    if not form.variables:
        raise FitError(f"{printable(text, 200)}: is the same for all jobs and ranks none; use p, q or r in it")
    unknown = sorted(form.variables - {"p", "q", "r"})
    if unknown:
        raise FitError(f"{printable(text, 200)}: has {', '.join(unknown)}, which no score table knows; use p, q and r")
    expanded = expand(form)
    if expanded is None or not are_free([key for key in expanded if key]):
        return fit_nonlinear(sample, text, nonlinear_names(form), name=name, seed=seed, starts=starts)
    return _fit_linear(sample, expanded, name)


def _fit_linear(sample: Sample, expanded: dict[Monomial, Expression], name: str) -> Fit:
    offset = expanded.pop((), None)
    terms = tuple(Term.of(value.text(), monomial_name(key)) for key, value in expanded.items())
    design = np.column_stack([sample.values(term.text) for term in terms])
    broken = int((~np.isfinite(design)).any(axis=1).sum())
    if broken:
        raise FitError(
            f"{name}: is not finite on {broken} of {len(sample)} rows (for example 1/log10(q) where q = 1); use a form "
            "that has a value for every job"
        )
    text = "" if offset is None else offset.text()
    return exact_fit(sample, terms, design, name=name, family="user", offset=text)
