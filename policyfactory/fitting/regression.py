"""Weighted linear least squares, solved exactly: minimise sum of [w (X c - y)]^2.

Each row is multiplied by its weight, each column divided by a power of two near its norm (which rounds nothing),
and the result is decomposed by Householder QR. Where conditioning costs digits, the solution is refined with
residuals in extended precision, by the augmented system of Bjorck (BIT 7, 1967, 257-278), which also repairs the
loss that a large residual causes. On a platform without an extended type the refinement gains less.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from policyfactory.core.errors import FitError
from policyfactory.core.options import FloatArray
from policyfactory.fitting.sample import Sample, coefficient_unit, parse_form
from policyfactory.policy.algebra import round_coefficients, shorter_formula
from policyfactory.policy.expression import Binary, Expression, Negative, Number, number, parse, substitute

_EPSILON = float(np.finfo(np.float64).eps)
_TARGET_ERROR = 1e-13  # relative error of the coefficients above which the solution is refined
_REFINEMENTS = 3


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The minimum and the factors it came from.

    Parameters
    ----------
    coefficients : float64 array (k,)
        The solution c.
    scale : float64 array (k,)
        What each weighted column was divided by.
    q : float64 array (n, k)
        Orthonormal basis of the weighted, scaled columns.
    r : float64 array (k, k)
        Upper triangle: weighted columns / scale = q r.
    sse : float
        Weighted sum of squared residuals.
    condition : float
        2-norm condition number of the weighted columns after scaling.
    """

    coefficients: FloatArray
    scale: FloatArray
    q: FloatArray
    r: FloatArray
    sse: float
    condition: float


def solve(design: FloatArray, target: FloatArray, weight: FloatArray | None = None) -> Solution:
    """Return the coefficients that minimise the weighted sum of squared residuals.

    Parameters
    ----------
    design : float64 array (n, k)
        One column a term.
    target : float64 array (n,)
        What the sum of the terms should be.
    weight : float64 array (n,), optional
        What multiplies a residual (inside the square); 1 if not given.

    Raises
    ------
    FitError
        If there are fewer rows than terms, a value is not finite, or the terms are linearly dependent.
    """
    rows, terms = design.shape
    if rows < terms:
        raise FitError(f"{rows} rows do not determine {terms} coefficients; generate more tuples")
    weighted = design if weight is None else design * weight[:, None]
    right = target if weight is None else target * weight
    scale = _power_of_two(np.sqrt(np.einsum("ij,ij->j", weighted, weighted)))
    matrix = weighted / scale
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        raise FitError("a term is not finite on some rows (log10, a division or a power of 0); use another form")
    q, r = np.linalg.qr(matrix)
    singular = np.linalg.svd(r, compute_uv=False)
    # What rounding makes of a zero, by any order of the sums (Golub and Van Loan 2013, section 5.4.1).
    zero = rows * _EPSILON
    if not singular[-1] > singular[0] * zero:
        raise FitError(
            f"the {terms} terms are linearly dependent on these rows (condition number above {1 / zero:.0e}); "
            "drop one of the terms"
        )
    condition = float(singular[0] / singular[-1])
    # einsum, not BLAS: threads that wait for each other cost more than products with so few columns.
    x = _back(r, np.einsum("ij,i->j", q, right))
    residual = right - np.einsum("ij,j->i", matrix, x)
    if _error_bound(condition, residual, matrix, x) > _TARGET_ERROR:
        x, residual = _refine(matrix, right, (q, r), x)
    return Solution(x / scale, scale, q, r, float(np.einsum("i,i", residual, residual)), condition)


def _power_of_two(norm: FloatArray) -> FloatArray:
    exponent = np.frexp(np.where((norm > 0) & np.isfinite(norm), norm, 1.0))[1]
    return np.ldexp(1.0, exponent)


def _back(r: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    from scipy.linalg import solve_triangular

    solution: FloatArray = solve_triangular(r, right, trans=1 if transposed else 0, check_finite=False)
    return solution


def _error_bound(condition: float, residual: FloatArray, matrix: FloatArray, x: FloatArray) -> float:
    """Return the first-order bound of the relative error of ``x`` (Bjorck 1996, section 1.4)."""
    size = float(np.sqrt(np.einsum("ij,ij", matrix, matrix) * np.einsum("i,i", x, x)))
    tangent = float(np.sqrt(np.einsum("i,i", residual, residual))) / size if size > 0 else 0.0
    return _EPSILON * (condition + condition**2 * tangent)


def _refine(
    matrix: FloatArray, right: FloatArray, factors: tuple[FloatArray, FloatArray], x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return solution and residual after steps on [I A; A' 0] [residual; x] = [right; 0]."""
    q, r = factors
    long_matrix, long_right = matrix.astype(np.longdouble), right.astype(np.longdouble)
    long_x = x.astype(np.longdouble)
    residual = long_right - long_matrix @ long_x
    for _ in range(_REFINEMENTS):
        upper = (long_right - residual - long_matrix @ long_x).astype(np.float64)
        lower = -(long_matrix.T @ residual).astype(np.float64)
        inner = _back(r, lower, transposed=True)
        outer = np.einsum("ij,i->j", q, upper)
        residual = residual + (upper - np.einsum("ij,j->i", q, outer - inner))
        long_x = long_x + _back(r, outer - inner)
    return long_x.astype(np.float64), residual.astype(np.float64)


# A fitted formula: terms, coefficients, how well it fits, and its text ------------------------------------------------


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
        return [number for number, term in enumerate(self.terms) if term.linear and parse(term.text).variables]

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
        with np.errstate(invalid="ignore"):  # where both are infinite
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


def sort_key(fit: Fit, *, digits: int | None = None) -> str:
    """Return the shortest formula that orders jobs as ``fit`` does; rounded for display if ``digits`` is given."""
    key = shorter_formula(fit.expression).expression
    return (key if digits is None else round_coefficients(key, digits, exponents=True)).text()


def shown_term(term: Term) -> str:
    """Return what a coefficient multiplies, its numbers rounded for display."""
    return round_coefficients(parse(term.text), exponents=True).text() if term.linear else term.text


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


# Standard errors, t values and variance inflation of a fit, by statsmodels --------------------------------------------

# Two standard errors are given. The classical one of weighted least squares, with weights (p q)^2, takes the rows as
# independent and their variances as known up to a factor; both are untrue here (the scores of a tuple sum to 1, and
# the weights say what matters, not how precise a score is). The one that is reported first is robust to both: it takes
# the tuple as the unit (cluster-robust sandwich).
#
# statsmodels gets the orthonormal basis of the weighted columns, not the columns: it inverts their Gram matrix, whose
# condition number is the square of theirs. That of a sextic is singular in double precision where its columns can still
# be told apart.


_SINGULAR = 1e30  # about the square of what double precision resolves: the columns depend on each other


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """What is known about the coefficients of one fit; arrays float64 (k,), in the order of its terms.

    Parameters
    ----------
    stderr : array
        Standard error with the tuple as the unit (cluster-robust), in the coefficient's unit.
    t : array
        Coefficient over ``stderr``.
    stderr_classical : array
        Standard error that weighted least squares gives for independent rows.
    vif : array
        Variance inflation factor as in tables 3 to 5 of paper 002, NaN for the constant; see `inflation`.
    vif_weighted : array
        The same of the rows multiplied by their weight p q, on which the solution depends; the constant included.
    """

    stderr: FloatArray
    t: FloatArray
    stderr_classical: FloatArray
    vif: FloatArray
    vif_weighted: FloatArray


def infer(fit: Fit, sample: Sample) -> Inference:
    """Return standard errors, t values and variance inflation of ``fit``.

    For a form that is nonlinear in coefficients these are of its linearisation at the minimum.
    """
    design = fit.design(sample)
    stderr, classical = _errors(design, fit.linear_target(sample), sample)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = fit.coefficients / stderr
    is_constant = np.array([term.text == "1" for term in fit.terms])
    vif = np.full(len(fit.terms), np.nan)
    vif[~is_constant] = inflation(design[:, ~is_constant])
    return Inference(
        stderr=stderr,
        t=t,
        stderr_classical=classical,
        vif=vif,
        vif_weighted=inflation(design * sample.weight[:, None]),
    )


def _errors(design: FloatArray, target: FloatArray, sample: Sample) -> tuple[FloatArray, FloatArray]:
    """Return the cluster-robust and the classical standard errors; infinite where the columns depend on each other."""
    from statsmodels.regression.linear_model import WLS

    try:
        solution = solve(design, target, sample.weight)
    except FitError:
        # Of the linearisation of a nonlinear form; the fit itself is a minimum, but no coefficient is determined.
        unknown = np.full(design.shape[1], np.inf)
        return unknown, unknown
    basis = solution.q / sample.weight[:, None]
    # Weights near 1: statsmodels works on what it is given.
    weights = (sample.weight / sample.weight.mean()) ** 2
    fitted = WLS(target, basis, weights=weights).fit(method="qr")
    robust = fitted.get_robustcov_results(cov_type="cluster", groups=sample.tuple_of)
    back = np.linalg.inv(solution.r) / solution.scale[:, None]
    stderr, classical = (
        np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", back, fit.cov_params(), back), 0.0)) for fit in (robust, fitted)
    )
    return stderr, classical


def inflation(columns: FloatArray) -> FloatArray:
    """Return the variance inflation factor of each column: 1 / (1 - R^2) of its regression on the others.

    R^2 is the uncentred one and there is no constant among the columns. This is what tables 3 to 5 of paper 002 show:
    on the SC'17 table it gives 1.31, 1.26, 1.18 for p, q, r of LIN where table 3 has 1.3, 1.3, 1.2; with a constant
    in the regressions they would be 1.07, 1.07, 1.00. It equals statsmodels' ``variance_inflation_factor`` of the same
    columns (from version 0.15 on with ``standardize=False``), from one QR decomposition instead of a regression each.

    Parameters
    ----------
    columns : float64 array (n, k)
        The terms; not all zero.

    Returns
    -------
    float64 array (k,)
        1 for a column orthogonal to the others, inf for one that depends on them.
    """
    if not columns.shape[1]:
        return np.empty(0)
    norms = np.linalg.norm(columns, axis=0)
    upper = np.linalg.qr(columns / np.where(norms > 0, norms, 1.0), mode="r")
    try:
        inverse = np.linalg.inv(upper)
    except np.linalg.LinAlgError:
        return np.full(columns.shape[1], np.inf)
    # The diagonal of the inverse Gram matrix of unit columns.
    factors: FloatArray = np.maximum(np.einsum("ij,ij->i", inverse, inverse), 1.0)
    return np.where(factors < _SINGULAR, factors, np.inf)
