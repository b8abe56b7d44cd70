"""Coefficients that put pairs of jobs in a given order: logistic regression on the differences of their terms.

An order is all that a queue takes from a formula, and all that it takes from a network, whose outputs have no unit
and could be squeezed or stretched without changing a schedule. So every pair counts alike, however far apart the
network has its two jobs, and the loss is a smooth stand-in for what is reported: the share of pairs ordered alike.
For the same reason a pair's differences may be scaled as is convenient. The terms are brought to one scale, then each
pair to the length 1: no pair of a huge job and a tiny one decides alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray

__all__ = ["fit_order", "search_order"]

_STEEP = 4.0  # of the loss
_EVALUATIONS = 600


def fit_order(differences: FloatArray, pull: float) -> FloatArray | None:
    """Return the factors of terms whose sum is smaller for the job ahead than for the one behind.

    Parameters
    ----------
    differences : float64 array (k, terms)
        Of each pair: terms of the job behind less those of the job ahead.
    pull : float
        Weight of the squared length of the factors, above 0: the optimum is unique then.

    Returns
    -------
    float64 array (terms,) or None
        None if no term ever differs, or one has no value.
    """
    from scipy.optimize import minimize

    if not np.isfinite(differences).all():
        return None
    scale = np.abs(differences).mean(axis=0)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return None
    rows = differences / scale
    lengths = np.sqrt((rows**2).sum(axis=1))
    rows = rows[lengths > 0] / lengths[lengths > 0, None]

    def loss(factors: FloatArray) -> tuple[float, FloatArray]:
        margins = rows @ factors
        slope = -0.5 * (1 - np.tanh(margins / 2))  # of log(1 + exp(-margin))
        value = np.logaddexp(0, -margins).mean() + pull * (factors @ factors)
        return float(value), rows.T @ slope / len(rows) + 2 * pull * factors

    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B")
    factors: FloatArray = found.x / scale
    return factors if factors.any() and np.isfinite(factors).all() else None


def search_order(
    difference: Callable[[FloatArray], FloatArray], start: Sequence[float], pull: float
) -> tuple[FloatArray, float]:
    """Return coefficients of a formula that is not linear in them, and 1, or -1 if it is to be turned round.

    Parameters
    ----------
    difference : callable
        From coefficients to a float64 array (k,): the formula of the job behind less that of the job ahead.
    start : sequence of float
        Where the search begins (Nelder and Mead's method).
    pull : float
        Weight of the squared distance from there.
    """
    from scipy.optimize import minimize

    first = np.array(start, dtype=np.float64)

    def loss(values: FloatArray, sign: float) -> float:
        given = difference(values)
        size = np.median(np.abs(given))
        if not np.isfinite(given).all() or size == 0:
            return 1e6
        # Nearly the side alone: of what is far apart it does not count how far.
        margins = sign * _STEEP * given / (np.abs(given) + size)
        return float(np.logaddexp(0, -margins).mean() + pull * ((values - first) ** 2).sum())

    # The start itself may say nothing: where all coefficients are 0 a user's formula often is the same for all jobs.
    simplex = np.vstack([first, *(first + 0.5 * row for row in np.eye(len(first)))])
    runs = [
        (minimize(loss, first, (sign,), "Nelder-Mead",
                  options={"maxfev": _EVALUATIONS, "initial_simplex": simplex}), sign)
        for sign in (1.0, -1.0)
    ]  # fmt: skip
    best, sign = min(runs, key=lambda one: float(one[0].fun))
    return np.array(best.x), sign
