"""Refits on other sets of tuples: the machinery of bootstrap, hold-out and certainty.

The tuple is the unit, never the job: the scores of a tuple sum to 1. A set of tuples is a column of counts (how often
each tuple is in it), so a refit needs no rows: with an orthonormal basis of the weighted columns, each tuple has a
small Gram matrix, a replicate's is the sum of its tuples', and its coefficients follow from a small system. Only
mean absolute errors need the rows again; they are computed for blocks of rows and all replicates at once.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.fit.result import Fit
from policyfactory.fit.sample import Sample
from policyfactory.fit.wls import solve

__all__ = ["Refit", "refit"]

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
