"""Predictions as they may be, where nothing was predicted yet: to learn the range of scores from."""

from __future__ import annotations

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.random import generator

__all__ = ["possible_predictions"]

_PURPOSE = 41


def possible_predictions(p: FloatArray) -> FloatArray:
    """Return e, s, e90, user_waiting, user_running as they may be of jobs that request ``p`` (s): float64 (5, n).

    Runs last from a thousandth of the request to all of it, as many within each factor of ten; the shortness is
    between that of a run of the mean and 1; users have from no job to some hundreds.
    """
    rng = generator(1, _PURPOSE, 1)
    e = np.maximum(p * 10.0 ** -(3.0 * rng.random(len(p))), 1.0)
    s = (10.0 / np.maximum(e, 10.0)) ** rng.random(len(p))
    users = [np.floor(np.exp(rng.random(len(p)) * 6.0)) - 1.0 for _ in range(2)]
    return np.stack([e, s, np.minimum(3.0 * e, p), *users])
