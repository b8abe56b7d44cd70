"""A mean over the jobs of one continuous schedule, with an interval over its weeks of submission.

Weeks are drawn in blocks, on a circle (D. N. Politis and J. P. Romano, "A circular block-resampling procedure for
stationary data", in Exploring the Limits of Bootstrap, 1992): within a block they stay as they followed each other, so
that what one week does to the next is in every draw. A block is twice as long as the queue remembers
(`policyfactory.simulate.metrics`), and at least a week. The statistic is a ratio of sums (of the jobs' values over the
jobs), its standard error that of the linearisation; an end of the interval is the farther one of the studentised
bootstrap's and of Student's with one degree of freedom less than there are blocks. docs/statistics.md has the coverage.

With fewer than six blocks there is no interval: such a schedule has seen its queue in one or two moods only.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.units import WEEK
from policyfactory.statistics.intervals import MIN_CASES, RESAMPLES, Estimate
from policyfactory.statistics.means import LEAST_SPREAD, ROUNDING, studentised

__all__ = ["block_weeks", "estimate_weekly", "estimate_weekly_ratio"]

_PURPOSE = 42  # of the random stream; see core.random
_MEMORIES = 2  # of the queue, in a block


def block_weeks(memory_s: float) -> int | None:
    """Return how many weeks a block has for a queue that remembers so long; None if nobody knows how long it does."""
    return max(1, math.ceil(_MEMORIES * memory_s / WEEK)) if math.isfinite(memory_s) else None


def estimate_weekly(sums: FloatArray, weights: FloatArray, block: int | None, *, seed: int = 0) -> Estimate:
    """Return the sum of the sums over that of the weights, with its interval.

    Parameters
    ----------
    sums, weights : float64 array (weeks,)
        Of each week, in order: of the jobs' weighted values (or differences of them), and of their weights.
    block : int or None
        Weeks in a block; None: no interval.
    seed : int
        Seed of the resampling; equal seeds, weeks and blocks draw the same weeks.

    Returns
    -------
    Estimate
        Its ``cases`` are the weeks.
    """
    weeks, total = len(sums), float(weights.sum())
    if not weeks or not total > 0 or not np.isfinite(sums).all():
        return Estimate(math.nan, None, None, weeks)
    value = float(sums.sum()) / total
    if block is None or weeks < MIN_CASES * block:
        return Estimate(value, None, None, weeks, None if block is None else MIN_CASES * block)
    residual = sums - value * weights
    deviation, errors, error = _resampled(residual, weights, block, seed)
    if error <= ROUNDING * max(abs(value), float(np.abs(sums).max()) / total):
        error = 0.0
    return studentised(value, error, deviation, np.maximum(errors, LEAST_SPREAD * error), (weeks / block - 1, weeks))


def estimate_weekly_ratio(policy: FloatArray, baseline: FloatArray, block: int | None, *, seed: int = 0) -> Estimate:
    """Return 100 (sum of the policy / sum of the baseline - 1), in %, with its interval.

    Parameters
    ----------
    policy, baseline : float64 array (weeks,)
        Sums of each week, in order.
    block, seed
        As in `estimate_weekly`.
    """
    return estimate_weekly(100 * (policy - baseline), baseline, block, seed=seed)


def _resampled(
    residual: FloatArray, weights: FloatArray, block: int, seed: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return, of resamples: deviation of the statistic, standard error; and the standard error of the sample."""
    weeks = len(residual)
    places = (np.arange(weeks)[:, None] + np.arange(block)) % weeks
    rest, weight = residual[places].sum(axis=1), weights[places].sum(axis=1)
    blocks = weeks / block
    total = float(weights.sum())
    error = math.sqrt(float(np.mean(rest**2)) * blocks * blocks / (blocks - 1)) / total
    drawn = _draws(seed, weeks, block)
    totals = weight[drawn].sum(axis=1)
    totals = np.where(totals > 0, totals, np.nan)
    deviation = rest[drawn].sum(axis=1) / totals
    # The residuals of a resample are of its own ratio.
    own = rest[drawn] - deviation[:, None] * weight[drawn]
    count = drawn.shape[1]
    errors = np.sqrt((own**2).sum(axis=1) * count / (count - 1)) / totals
    known = np.isfinite(deviation)
    return deviation[known], errors[known], error


@functools.lru_cache(maxsize=8)
def _draws(seed: int, weeks: int, block: int) -> NDArray[np.intp]:
    """Return the first weeks of the blocks of each resample: intp array (resamples, blocks)."""
    random = generator(seed, _PURPOSE, weeks, block)
    return random.integers(0, weeks, (RESAMPLES, math.ceil(weeks / block)), dtype=np.intp)
