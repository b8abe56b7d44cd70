"""Forms that are not linear in their coefficients: variable projection, from many starts.

For given values of the nonlinear coefficients the others follow exactly by weighted linear least squares, so
scipy.optimize.least_squares searches over the nonlinear ones alone (Golub and Pereyra, SIAM J. Numer. Anal. 10,
1973). No method is sure to find the global minimum of such a problem: the search is started from many points, and
the result says how many of them ended where.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import FitError
from policyfactory.core.random import generator
from policyfactory.fit.expand import expand, parse_form
from policyfactory.fit.result import Fit, Term
from policyfactory.fit.sample import Sample
from policyfactory.fit.units import coefficient_unit
from policyfactory.policy.expression import parse
from policyfactory.policy.nodes import Expression, substitute
from policyfactory.workload.header import printable

__all__ = ["STARTS", "fit_nonlinear"]

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
    norm = np.linalg.norm(slopes, axis=0)
    condition = float(np.linalg.cond(slopes / np.where(norm > 0, norm, 1.0)))
    weighted = sample.weight * residual
    return dataclasses.replace(
        fit,
        mae=float(np.abs(residual).mean()),
        sse=float(np.einsum("i,i", weighted, weighted)),
        condition=min(condition, float(np.finfo(np.float64).max)),
    )
