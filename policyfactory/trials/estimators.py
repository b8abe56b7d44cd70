"""Scores from trials: what is estimated, how, and how sure it is.

The score of job j of a tuple (S, Q), |Q| = n, is ``mean_j / (mean_1 + ... + mean_n)``: mean_k is the mean, over all
orders of Q that begin with k, of the average bounded slowdown of Q. (Equation 3 of paper 004,
doi:10.1145/3126908.3126955, in the limit of many trials: a random order begins with each job equally often.)
Two estimators have this limit.

paper
    Uniformly random orders; sum of the values of the trials that j began, over the sum of all. Most of its error is
    the chance of how often each job was first.

stratified
    Every job goes first in the same number of trials, and all jobs see the same orders of the others. A block is
    one drawn order of Q, uniformly random, from which three more are made: its halves exchanged, and both backwards;
    in each of the four, every job in turn is moved to the front: 4 n trials.

    It estimates the same scores. Moving j to the front leaves the others in the order that they had, and in a uniformly
    random order of Q the others are in uniformly random order. Exchanging the halves and going backwards are fixed
    permutations of the places, and a uniformly random order stays one under these. So each of the four trials of a
    block in which j goes first has an order that is uniformly distributed over those that begin with j, and the
    block's mean Y_j has the expectation mean_j exactly, however the trials of a block depend on each other. Blocks are
    independent, so the means over blocks converge to mean_j and their ratio to the score.

    It does so with far less noise. What one order of the others costs, it costs nearly the same whoever goes
    first: this part of Y_j is common to all jobs and leaves their ratio unchanged. Backwards, everybody who was ahead
    of a job is behind it, so that whatever is a sum over pairs "i ahead of j" cancels in a block; the exchange of
    halves does the same for what depends on the distance from the middle. docs/scores.md has the gains measured.

Both are ratios of means over independent units (trials; blocks), whose standard error is that of the mean of
``Y_j - score_j T`` over the units, divided by the mean of their total T (the delta method).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import UsageError
from policyfactory.engine.moments import VARIANTS, add_blocks, add_orders
from policyfactory.engine.trials import Problem

__all__ = ["ESTIMATORS", "Estimator", "Scores", "check_trials", "estimate", "trials_run"]

Estimator = Literal["stratified", "paper"]

ESTIMATORS: tuple[Estimator, ...] = ("stratified", "paper")
_MAX_TRIALS = 10**12
# A kernel call is this long, then the caller is asked whether to go on: some hundredths of a second.
_TRIALS_A_CALL = 1 << 19


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of the jobs of one tuple.

    Parameters
    ----------
    score, stderr : float64 array (n,)
        Score of each job of Q, and its standard error.
    trials : int
        How many trials were run.
    """

    score: FloatArray
    stderr: FloatArray
    trials: int


def check_trials(trials: int, queue_size: int) -> None:
    """Check that standard errors can be computed from ``trials`` trials.

    Raises
    ------
    UsageError
        If the trials do not make two blocks of the stratified estimator, or are too many to count.
    """
    least = 2 * VARIANTS * queue_size
    if not least <= trials <= _MAX_TRIALS:
        raise UsageError(
            f"{trials} trials a tuple; a queue of {queue_size} jobs needs at least {least} (2 blocks of {least // 2}) "
            f"for its standard errors, and at most {_MAX_TRIALS:,} are run; the papers had 256000"
        )


def trials_run(estimator: Estimator, trials: int, queue_size: int) -> int:
    """Return how many trials are run a tuple: ``stratified`` runs whole blocks."""
    block = VARIANTS * queue_size if estimator == "stratified" else 1
    return -(-trials // block) * block


def estimate(
    problem: Problem,
    estimator: Estimator,
    trials: int,
    words: NDArray[np.int64],
    *,
    go_on: Callable[[], None] = lambda: None,
) -> Scores:
    """Return the scores of one tuple.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    estimator : {"stratified", "paper"}
        See the module.
    trials : int
        How many trials at least.
    words : int64 array (4,)
        Seed of the orders, from `core.random`.
    go_on : callable
        Called several times a second; an exception of its ends the work.
    """
    words = words.astype(np.int64)
    total = trials_run(estimator, trials, len(problem.p))
    if estimator == "paper":
        sums = np.zeros((len(problem.p), 3))
        for part in _parts(total, _TRIALS_A_CALL):
            go_on()
            add_orders(problem, words, part, sums)
        return _paper_scores(sums, total)
    block = VARIANTS * len(problem.p)
    sums = np.zeros((len(problem.p) + 1, 3))
    for part in _parts(total // block, _TRIALS_A_CALL // block):
        go_on()
        add_blocks(problem, words, part, sums)
    return _stratified_scores(sums, total)


def _parts(total: int, size: int) -> list[int]:
    whole, rest = divmod(total, size)
    return [size] * whole + [rest] * (rest > 0)


def _paper_scores(sums: FloatArray, trials: int) -> Scores:
    """Units are trials: Y_j is the trial's value if j was first, else 0; T is the value."""
    _, total, squares = sums.T
    score = total / total.sum()
    spread = (1.0 - 2.0 * score) * squares + score**2 * squares.sum()
    return _with_error(score, spread, trials, total.sum() / trials, trials)


def _stratified_scores(sums: FloatArray, trials: int) -> Scores:
    """Units are blocks: Y_j is the mean value of the block's trials with j first, T their sum over j."""
    mean, squares, products = sums[:-1].T
    blocks, _, total_squares = sums[-1]
    score = mean / mean.sum()
    spread = squares - 2.0 * score * products + score**2 * total_squares
    return _with_error(score, spread, int(blocks), mean.sum(), trials)


def _with_error(score: FloatArray, spread: FloatArray, units: int, mean_total: float, trials: int) -> Scores:
    """Return scores with standard errors; ``spread`` is the sum over units of (Y_j - score_j T)**2."""
    # Where all orders are alike the sum is 0, and rounding may leave it just below.
    stderr = np.sqrt(np.maximum(spread, 0.0) / (units * (units - 1.0))) / mean_total
    return Scores(score, stderr, trials)
