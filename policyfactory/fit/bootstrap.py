"""How sure is the ranking? Bootstrap over tuples, and mean absolute errors on tuples that were held out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator
from policyfactory.fit.resample import Refit, refit
from policyfactory.fit.result import Fit
from policyfactory.fit.sample import Sample
from policyfactory.policy.expression import parse

__all__ = ["Bootstrap", "Candidate", "bootstrap", "draw_counts", "interval"]

_STREAM = 511  # purpose of this module's random numbers
LEVEL = 0.95


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One fit under resampling of tuples.

    Parameters
    ----------
    fit : Fit
        The fit to all tuples.
    coefficients : float64 array (k, replicates)
        Its coefficients in each replicate.
    mae : float64 array (replicates,)
        Its mean absolute error in each replicate, on the replicate's own tuples.
    rank : int64 array (replicates,)
        Its rank by mean absolute error among the candidates, from 1.
    held_out : float
        Mean absolute error on tuples that were not used for the fit (5 parts in turn); NaN with fewer than 5 tuples.
    """

    fit: Fit
    coefficients: FloatArray
    mae: FloatArray
    rank: NDArray[np.int64]
    held_out: float

    @property
    def first(self) -> float:
        """Share of the replicates in which it is first."""
        return float(np.mean(self.rank == 1)) if len(self.rank) else float("nan")

    def other_sign(self) -> dict[str, float]:
        """Return the share of the replicates in which a coefficient has the other sign, for those of linear terms.

        The sign of the constant is left out: it cannot change the order of a queue.
        """
        if not self.coefficients.shape[1]:
            return {}
        share = np.mean(np.sign(self.coefficients) != np.sign(self.fit.coefficients)[:, None], axis=1)
        return {
            f"{term.coefficient} ({term.text})": float(value)
            for term, value in zip(self.fit.terms, share, strict=True)
            if term.linear and parse(term.text).variables
        }

    def ratios(self) -> FloatArray:
        """Return each coefficient over the size of the first varying term's, shape (k, replicates).

        Only these ratios change the order of a queue.
        """
        size = np.abs(self.coefficients[self.fit.base])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: FloatArray = self.coefficients / size
        return ratios


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """All candidates under the same resamplings.

    Parameters
    ----------
    candidates : tuple of Candidate
        In the order in which the fits were given.
    replicates, seed : int
        How many sets of tuples were drawn, from which seed.
    """

    candidates: tuple[Candidate, ...]
    replicates: int
    seed: int

    def of(self, fit: Fit) -> Candidate | None:
        """Return the candidate of a fit, None if it was not resampled."""
        return next((candidate for candidate in self.candidates if candidate.fit is fit), None)


def interval(values: FloatArray) -> tuple[float, float]:
    """Return the central 95 % of the values (percentile interval)."""
    if not len(values):
        return (float("nan"), float("nan"))
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def draw_counts(tuples: int, replicates: int, seed: int) -> NDArray[np.int64]:
    """Return how often each tuple is in each replicate, shape (tuples, replicates): draws with replacement."""
    rng = generator(seed, _STREAM)
    counts = np.empty((replicates, tuples), dtype=np.int64)
    for row in counts:
        row[:] = np.bincount(rng.integers(0, tuples, tuples), minlength=tuples)
    return np.ascontiguousarray(counts.T)


def bootstrap(
    fits: Sequence[Fit],
    sample: Sample,
    *,
    replicates: int,
    seed: int,
    advance: Callable[[], None] = lambda: None,
) -> Bootstrap:
    """Return ranks and coefficients of ``fits`` on ``replicates`` sets of tuples drawn with replacement.

    Each replicate refits every candidate to the drawn tuples and ranks them by their mean absolute error there, as the
    table itself was. A form that is nonlinear in coefficients is refitted by its linearisation at the minimum.

    Parameters
    ----------
    fits : sequence of Fit
        The candidates: the best few, as errors have to be computed row by row.
    sample : Sample
        The rows.
    replicates : int
        0 or more; 0 leaves only the held-out errors.
    seed : int
        Of the draws.
    advance : callable
        Called after each fit.
    """
    counts = draw_counts(sample.tuples, replicates, seed)
    folds = _folds(sample)
    coefficients, errors, held_out = [], np.empty((len(fits), replicates)), []
    for position, fit in enumerate(fits):
        prepared = refit(fit, sample)
        solutions = prepared.solve(counts) if replicates else np.empty((len(fit.terms), 0))
        coefficients.append(prepared.coefficients(solutions))
        if replicates:
            errors[position] = prepared.absolute_errors(solutions, counts)
        held_out.append(_held_out(prepared, folds))
        advance()
    ranks = np.argsort(np.argsort(errors, axis=0, kind="stable"), axis=0, kind="stable") + 1
    candidates = tuple(
        Candidate(fit, coefficients[k], errors[k], ranks[k].astype(np.int64), held_out[k]) for k, fit in enumerate(fits)
    )
    return Bootstrap(candidates, replicates, seed)


def _folds(sample: Sample) -> NDArray[np.int64]:
    """Return which tuples are held out in each of 5 parts, shape (tuples, parts)."""
    from sklearn.model_selection import GroupKFold

    if sample.tuples < 5:
        return np.empty((sample.tuples, 0), dtype=np.int64)
    held = np.zeros((sample.tuples, 5), dtype=np.int64)
    for part, (_, rows) in enumerate(GroupKFold(5).split(sample.score, groups=sample.tuple_of)):
        held[sample.tuple_of[rows], part] = 1
    return held


def _held_out(prepared: Refit, held: NDArray[np.int64]) -> float:
    parts = held.shape[1]
    if not parts:
        return float("nan")
    errors = prepared.absolute_errors(prepared.solve(1 - held), held)
    sizes = np.diff(np.append(prepared.sample.starts, len(prepared.sample))) @ held
    return float(errors @ sizes / sizes.sum())
