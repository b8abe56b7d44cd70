"""How many tuples it takes until the best form is certain.

The table's tuples stand for the workload. From them, sets of growing size are drawn with replacement, nested (the set
of 50 tuples contains that of 25), every candidate is refitted to each set and ranked by its mean absolute error there.
The share of the draws in which a form is first is the probability that a table of that size would have named it. Where
the table has at least 8 disjoint sets of a size, the same share is also counted over those: they are independent
tables, and a check on the draws.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.text import csv_text
from policyfactory.fit.resample import Refit, refit
from policyfactory.fit.result import Fit
from policyfactory.fit.sample import Sample

__all__ = ["CERTAIN", "Certainty", "certainty_csv", "ladder", "measure_certainty"]

CERTAIN = 0.95
_STREAM = 512  # purpose of this module's random numbers
_QUANTILES = (0.025, 0.5, 0.975)
_BOUNDS = ("low", "median", "high")
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
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        ["tuples", "form", "first", "first_disjoint", "mae_median", "ratio_low", "ratio_median", "ratio_high"]
    )
    for s, size in enumerate(certainty.sizes):
        for k, fit in enumerate(certainty.fits):
            disjoint = certainty.disjoint[k, s]
            numbers = [certainty.mae[k, s], *certainty.ratio[k, s]]
            shares = [f"{certainty.first[k, s]:.4g}", "" if np.isnan(disjoint) else f"{disjoint:.4g}"]
            writer.writerow([size, csv_text(fit.name), *shares, *(f"{number:.6g}" for number in numbers)])
    return file.getvalue()


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
    rng = generator(seed, _STREAM)
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
