"""Standard errors, t values and variance inflation of a fit, by statsmodels.

Two standard errors are given. The classical one of weighted least squares, with weights (p q)^2, takes the rows as
independent and their variances as known up to a factor; both are untrue here (the scores of a tuple sum to 1, and
the weights say what matters, not how precise a score is). The one that is reported first is robust to both: it takes
the tuple as the unit (cluster-robust sandwich).

statsmodels gets the orthonormal basis of the weighted columns, not the columns: it inverts their Gram matrix, whose
condition number is the square of theirs. That of a sextic is singular in double precision where its columns can still
be told apart.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import FitError
from policyfactory.fit.result import Fit
from policyfactory.fit.sample import Sample
from policyfactory.fit.wls import solve

__all__ = ["Inference", "infer", "inflation"]

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
    import statsmodels.api as sm

    try:
        solution = solve(design, target, sample.weight)
    except FitError:
        # Of the linearisation of a nonlinear form; the fit itself is a minimum, but no coefficient is determined.
        unknown = np.full(design.shape[1], np.inf)
        return unknown, unknown
    basis = solution.q / sample.weight[:, None]
    # Weights near 1: statsmodels works on what it is given.
    weights = (sample.weight / sample.weight.mean()) ** 2
    fitted = sm.WLS(target, basis, weights=weights).fit(method="qr")
    robust = fitted.get_robustcov_results(cov_type="cluster", groups=sample.tuple_of)
    back = np.linalg.inv(solution.r) / solution.scale[:, None]
    stderr, classical = (
        np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", back, one.cov_params(), back), 0.0)) for one in (robust, fitted)
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
