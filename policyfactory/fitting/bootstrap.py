"""How sure is the ranking? Bootstrap over tuples, and mean absolute errors on tuples that were held out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import FitError
from policyfactory.core.options import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.text import csv_text
from policyfactory.fitting.forms import fit_user_form
from policyfactory.fitting.regression import Fit, solve
from policyfactory.fitting.sample import Sample
from policyfactory.policy.expression import parse
from policyfactory.report.files import csv_of
from policyfactory.statistics.intervals import LEVEL

_STREAM = 511  # purpose of this module's random numbers


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ResampledFit:
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
        Mean absolute error on tuples that were not used for the fit (5 parts in turn); NaN with fewer than 5 tuples, or
        where a nonlinear form has no minimum on the others.
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
    candidates : tuple of ResampledFit
        In the order in which the fits were given.
    replicates, seed : int
        How many sets of tuples were drawn, from which seed.
    refused : dict of str to str
        The names of fits that cannot be refitted, and why: the linearisation of a nonlinear one may be dependent.
    """

    candidates: tuple[ResampledFit, ...]
    replicates: int
    seed: int
    refused: dict[str, str]


def interval(values: FloatArray) -> tuple[float, float]:
    """Return the central 95 % of the values (percentile interval)."""
    if not len(values):
        return (float("nan"), float("nan"))
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def draw_counts(tuples: int, replicates: int, seed: int) -> NDArray[np.int32]:
    """Return how often each tuple is in each replicate, shape (tuples, replicates): draws with replacement."""
    draws = generator(seed, _STREAM).integers(0, tuples, (replicates, tuples))
    return _counts(draws, tuples) if replicates else np.empty((tuples, 0), dtype=np.int32)


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
    refitted: list[ResampledFit] = []
    refused: dict[str, str] = {}
    for fit in fits:
        try:
            prepared = refit(fit, sample)
        except FitError as error:
            refused[fit.name] = str(error)
        else:
            solutions = prepared.solve(counts) if replicates else np.empty((len(fit.terms), 0))
            errors = prepared.absolute_errors(solutions, counts) if replicates else np.empty(0)
            unranked = np.empty(0, dtype=np.int64)
            held_out = _held_out(prepared, folds) if fit.is_linear else _searched_anew(fit, sample, folds, seed)
            refitted.append(ResampledFit(fit, prepared.coefficients(solutions), errors, unranked, held_out))
        advance()
    mae = np.array([item.mae for item in refitted]).reshape(len(refitted), replicates)
    ranks = np.argsort(np.argsort(mae, axis=0, kind="stable"), axis=0, kind="stable").astype(np.int64) + 1
    candidates = tuple(dataclasses.replace(item, rank=rank) for item, rank in zip(refitted, ranks, strict=True))
    return Bootstrap(candidates, replicates, seed, refused)


def _folds(sample: Sample) -> NDArray[np.int64]:
    """Return which tuples are held out in each of 5 parts, shape (tuples, parts)."""
    if sample.tuples < 5:
        return np.empty((sample.tuples, 0), dtype=np.int64)
    held = np.zeros((sample.tuples, 5), dtype=np.int64)
    sizes, rows = np.bincount(sample.tuple_of), np.zeros(5, dtype=np.int64)
    # The largest first, each to the part with the fewest rows: GroupKFold of scikit-learn, which takes long to import.
    for number in np.argsort(sizes, kind="stable")[::-1]:
        part = int(np.argmin(rows))
        rows[part] += sizes[number]
        held[number, part] = 1
    return held


def _held_out(prepared: Refit, held: NDArray[np.int64]) -> float:
    parts = held.shape[1]
    if not parts:
        return float("nan")
    errors = prepared.absolute_errors(prepared.solve(1 - held), held)
    sizes = np.diff(np.append(prepared.sample.starts, len(prepared.sample))) @ held
    return float(errors @ sizes / sizes.sum())


def _searched_anew(fit: Fit, sample: Sample, held: NDArray[np.int64], seed: int) -> float:
    """Return the same of a nonlinear form: the minimum of all tuples knows those that are held out."""
    errors = []
    for part in held.T == 1:
        test = sample.of_tuples(part)
        try:
            found = fit_user_form(sample.of_tuples(~part), fit.source, seed=seed)
        except FitError:
            return float("nan")
        errors.append(np.abs(test.values(found.expression) - test.score))
    return float(np.concatenate(errors).mean()) if errors else float("nan")


# Refits on other sets of tuples: the machinery of bootstrap, hold-out and certainty -----------------------------------

# The tuple is the unit, never the job: the scores of a tuple sum to 1. A set of tuples is a column of counts (how often
# each tuple is in it), so a refit needs no rows: with an orthonormal basis of the weighted columns, each tuple has a
# small Gram matrix, a replicate's is the sum of its tuples', and its coefficients follow from a small system. Only
# mean absolute errors need the rows again; they are computed for blocks of rows and all replicates at once.


_BLOCK = 1 << 16  # values in a block of rows x replicates: what stays in the processor's cache


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """A fit prepared for refitting on sets of tuples.

    Parameters
    ----------
    basis : float64 array (n, k)
        Unweighted rows of the orthonormal basis: basis @ g predicts ``target``.
    back : float64 array (k, k)
        Coefficients = back @ g.
    gram : float64 array (tuples, k, k)
        Weighted Gram matrix of the basis in each tuple; they sum to the unit matrix.
    right : float64 array (tuples, k)
        Weighted right-hand side in each tuple.
    target : float64 array (n,)
        What is predicted.
    sample : Sample
        The rows.
    """

    basis: FloatArray
    back: FloatArray
    gram: FloatArray
    right: FloatArray
    target: FloatArray
    sample: Sample

    def solve(self, counts: NDArray[np.integer]) -> FloatArray:
        """Return the solutions in the basis, shape (k, replicates), for counts of shape (tuples, replicates).

        A replicate whose tuples do not determine the coefficients gets the solution of least norm.
        """
        terms = self.right.shape[1]
        weights = counts.T.astype(np.float64)
        gram = np.tensordot(weights, self.gram, axes=1)
        right = weights @ self.right
        # A matrix that is singular but for rounding would be solved without a word, by coefficients of any size.
        sizes = np.linalg.eigvalsh(gram)
        weak = sizes[:, 0] <= sizes[:, -1] * terms * np.finfo(np.float64).eps
        sound = np.where(weak[:, None, None], np.eye(terms), gram)
        solution = np.linalg.solve(sound, right[:, :, None])[:, :, 0].astype(np.float64)
        for position in np.flatnonzero(weak):
            solution[position] = np.linalg.lstsq(gram[position], right[position], rcond=None)[0]
        return solution.T

    def coefficients(self, solutions: FloatArray) -> FloatArray:
        """Return the coefficients in the terms' units, shape (k, replicates)."""
        coefficients: FloatArray = self.back @ solutions
        return coefficients

    def absolute_errors(self, solutions: FloatArray, counts: NDArray[np.integer]) -> FloatArray:
        """Return the mean absolute error of each replicate's solution over the tuples counted, shape (replicates,)."""
        replicates = solutions.shape[1]
        used = np.flatnonzero(counts.any(axis=1))
        starts = self.sample.starts
        sizes = np.diff(np.append(starts, len(self.sample)))
        total = np.zeros(replicates)
        rows_a_block = max(1, _BLOCK // (replicates * int(sizes.max())))
        for begin in range(0, len(used), rows_a_block):
            block = used[begin : begin + rows_a_block]
            rows = _rows(starts[block], sizes[block])
            error = self.basis[rows] @ solutions
            error -= self.target[rows, None]
            np.abs(error, out=error)
            firsts = np.concatenate(([0], np.cumsum(sizes[block])[:-1]))
            total += np.einsum("tr,tr->r", np.add.reduceat(error, firsts, axis=0), counts[block])
        errors: FloatArray = total / (sizes @ counts)
        return errors


def refit(fit: Fit, sample: Sample) -> Refit:
    """Return ``fit`` prepared for refitting; a nonlinear one by its linearisation at the minimum."""
    design = fit.design(sample)
    target = fit.linear_target(sample)
    solution = solve(design, target, sample.weight)
    q = np.ascontiguousarray(solution.q)
    gram = _gram(q, sample)
    right = np.add.reduceat(q * (sample.weight * target)[:, None], sample.starts, axis=0)
    return Refit(
        basis=q / sample.weight[:, None],
        back=np.linalg.inv(solution.r) / solution.scale[:, None],
        gram=gram,
        right=right,
        target=target,
        sample=sample,
    )


def _gram(q: FloatArray, sample: Sample) -> FloatArray:
    """Return the Gram matrix of the rows of each tuple, shape (tuples, k, k); some tuples at a time, to save memory."""
    terms = q.shape[1]
    gram = np.empty((sample.tuples, terms, terms))
    ends = np.append(sample.starts[1:], len(q))
    longest = int((ends - sample.starts).max())
    block = max(1, _BLOCK // (longest * terms * terms))
    for begin in range(0, sample.tuples, block):
        starts = sample.starts[begin : begin + block]
        rows = q[starts[0] : ends[begin + len(starts) - 1]]
        products = np.einsum("ni,nj->nij", rows, rows)
        gram[begin : begin + block] = np.add.reduceat(products, starts - starts[0], axis=0)
    return gram


def _rows(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row numbers of some tuples, in order."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


# How many tuples it takes until the best form is certain --------------------------------------------------------------

# The table's tuples stand for the workload. From them, sets of growing size are drawn with replacement, nested (the set
# of 50 tuples contains that of 25), every candidate is refitted to each set and ranked by its mean absolute error
# there. The share of the draws in which a form is first is the probability that a table of that size would have named
# it. Where the table has at least 8 disjoint sets of a size, the same share is also counted over those: they are
# independent tables, and a check on the draws.


CERTAIN = 0.95
_CERTAINTY_STREAM = 512  # purpose of this module's random numbers
_QUANTILES = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
_SMALLEST = 25
_DISJOINT = 8


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Certainty:
    """What tables of growing size would have found.

    Parameters
    ----------
    fits : tuple of Fit
        The candidates, best first on all tuples.
    sizes : int64 array (s,)
        Numbers of tuples, growing.
    first : float64 array (fits, s)
        Share of the draws in which a fit is first.
    mae : float64 array (fits, s)
        Median of its mean absolute error over the draws.
    ratio : float64 array (fits, s, 3)
        2.5 %, 50 % and 97.5 % quantiles of the coefficient of its last varying term over the size of that of its first.
    disjoint : float64 array (fits, s)
        Share of the disjoint sets in which it is first, NaN where there are fewer than 8.
    replicates, seed : int
        Draws a size, and their seed.
    """

    fits: tuple[Fit, ...]
    sizes: NDArray[np.int64]
    first: FloatArray
    mae: FloatArray
    ratio: FloatArray
    disjoint: FloatArray
    replicates: int
    seed: int

    def certain_from(self) -> int | None:
        """Return the smallest size from which on the best fit is first in at least 95 % of the draws, None if never."""
        enough = self.first[0] >= CERTAIN
        for position, size in enumerate(self.sizes):
            if enough[position:].all():
                return int(size)
        return None


def certainty_csv(certainty: Certainty) -> str:
    """Return the numbers as CSV, one line a size and form; empty where there are too few disjoint tables."""
    rows: list[list[Any]] = [
        ["tuples", "form", "first", "first_disjoint", "mae_median", "ratio_low", "ratio_median", "ratio_high"]
    ]
    for s, size in enumerate(certainty.sizes):
        for k, fit in enumerate(certainty.fits):
            disjoint = certainty.disjoint[k, s]
            numbers = [certainty.mae[k, s], *certainty.ratio[k, s]]
            shares = [f"{certainty.first[k, s]:.4g}", "" if np.isnan(disjoint) else f"{disjoint:.4g}"]
            rows.append([size, csv_text(fit.name), *shares, *(f"{number:.6g}" for number in numbers)])
    return csv_of(rows)


def ladder(tuples: int) -> NDArray[np.int64]:
    """Return 25, 50, 100, ... and ``tuples`` itself."""
    sizes = [_SMALLEST * 2**step for step in range(40) if _SMALLEST * 2**step * 1.3 < tuples]
    return np.array([*sizes, tuples], dtype=np.int64)


def measure_certainty(
    fits: Sequence[Fit],
    sample: Sample,
    *,
    replicates: int,
    seed: int,
    advance: Callable[[], None] = lambda: None,
) -> Certainty:
    """Return how often each of ``fits`` is first on sets of tuples of growing size.

    Parameters
    ----------
    fits : sequence of Fit
        The candidates, best first.
    sample : Sample
        The rows.
    replicates : int
        Draws a size, at least 1.
    seed : int
        Of the draws.
    advance : callable
        Called after each fit.
    """
    sizes = ladder(sample.tuples)
    rng = generator(seed, _CERTAINTY_STREAM)
    draws = rng.integers(0, sample.tuples, (replicates, sample.tuples))
    shuffled = rng.permutation(sample.tuples)
    drawn = [_counts(draws[:, :size], sample.tuples) for size in sizes]
    apart = [_disjoint(shuffled, int(size)) for size in sizes]
    errors = np.empty((len(sizes), len(fits), replicates))
    errors_apart = [np.empty((len(fits), counts.shape[1])) for counts in apart]
    ratio = np.empty((len(fits), len(sizes), 3))
    for position, fit in enumerate(fits):
        prepared = refit(fit, sample)
        for step, counts in enumerate(drawn):
            errors[step, position], solutions = _errors(prepared, counts, int(sizes[step]))
            coefficients = prepared.coefficients(solutions)
            ratio[position, step] = np.quantile(coefficients[fit.last] / np.abs(coefficients[fit.base]), _QUANTILES)
            errors_apart[step][position] = _errors(prepared, apart[step], int(sizes[step]))[0]
        advance()
    return Certainty(
        fits=tuple(fits),
        sizes=sizes,
        first=np.stack([_share_first(error) for error in errors], axis=1),
        mae=np.median(errors, axis=2).T,
        ratio=ratio,
        disjoint=np.stack([_share_first(error) for error in errors_apart], axis=1),
        replicates=replicates,
        seed=seed,
    )


def _counts(draws: NDArray[np.int64], tuples: int) -> NDArray[np.int32]:
    counts = np.stack([np.bincount(row, minlength=tuples) for row in draws], axis=1)
    # Half the memory: there is one such table a size.
    return counts.astype(np.int32)


def _disjoint(shuffled: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """Return as many disjoint sets of ``size`` tuples as there are, none if fewer than 8."""
    sets = len(shuffled) // size
    counts = np.zeros((len(shuffled), sets if sets >= _DISJOINT else 0), dtype=np.int32)
    for position in range(counts.shape[1]):
        counts[shuffled[position * size : (position + 1) * size], position] = 1
    return counts


def _errors(prepared: Refit, counts: NDArray[np.int32], size: int) -> tuple[FloatArray, FloatArray]:
    """Return mean absolute errors (replicates,) and solutions; small sets in groups, so that few rows are touched."""
    solutions = prepared.solve(counts)
    replicates = counts.shape[1]
    group = max(1, min(replicates, len(counts) // (4 * size) if 4 * size < len(counts) else replicates))
    errors = [
        prepared.absolute_errors(solutions[:, begin : begin + group], counts[:, begin : begin + group])
        for begin in range(0, replicates, group)
    ]
    return np.concatenate(errors) if errors else np.empty(0), solutions


def _share_first(errors: FloatArray) -> FloatArray:
    """Return the share of the columns in which each row is smallest, NaN without columns."""
    fits, sets = errors.shape
    if not sets:
        return np.full(fits, np.nan)
    share: FloatArray = np.bincount(errors.argmin(axis=0), minlength=fits) / sets
    return share
