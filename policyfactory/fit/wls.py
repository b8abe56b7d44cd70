"""Weighted linear least squares, solved exactly: minimise sum of [w (X c - y)]^2.

Each row is multiplied by its weight, each column divided by a power of two near its norm (which rounds nothing),
and the result is decomposed by Householder QR. Where conditioning costs digits, the solution is refined with
residuals in extended precision, by the augmented system of Bjorck (BIT 7, 1967, 257-278), which also repairs the
loss that a large residual causes. On a platform without an extended type the refinement gains less.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import FitError

__all__ = ["Solution", "solve"]

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
