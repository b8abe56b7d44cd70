"""How far predicted run times are from actual ones, as the field measures it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray

__all__ = ["SHORT_S", "Measures", "area_under_curve", "is_longer", "measures_of"]

SHORT_S = 60.0  # a job below is called short


@dataclasses.dataclass(frozen=True, slots=True)
class Measures:
    """How far predictions are from run times; NaN where there is nothing to measure.

    Parameters
    ----------
    jobs : int
        Jobs that were predicted.
    absolute_s : float
        Mean absolute error, s.
    absolute_ln : float
        Mean absolute error of the natural logarithm, both times taken as 1 s at least.
    median_ratio : float
        Median of predicted over actual.
    under : float
        Share of the jobs that ran longer than predicted.
    auc : float
        Probability that of a job below a minute and a longer one the former is called the shorter.
    """

    jobs: int
    absolute_s: float
    absolute_ln: float
    median_ratio: float
    under: float
    auc: float


def measures_of(predicted: FloatArray, run: FloatArray, length: FloatArray) -> Measures:
    """Return the measures of some jobs.

    Parameters
    ----------
    predicted, run : float64 array (n,), s
        Predicted and actual run times.
    length : float64 array (n,)
        Orders the jobs, those first that are taken to be the shortest.
    """
    if not len(run):
        return Measures(0, *[math.nan] * 5)
    actual = np.maximum(run, 1.0)
    return Measures(
        jobs=len(run),
        absolute_s=float(np.abs(predicted - run).mean()),
        absolute_ln=float(np.abs(np.log(np.maximum(predicted, 1.0) / actual)).mean()),
        median_ratio=float(np.median(predicted / actual)),
        under=float(is_longer(run, predicted).mean()),
        auc=area_under_curve(length, run < SHORT_S),
    )


def is_longer(run: FloatArray, predicted: FloatArray) -> NDArray[np.bool_]:
    """Tell which jobs ran longer than predicted: bool array (n,), of times in s.

    Predictions are made by way of logarithms: a request may come back less by its last bits.
    """
    longer: NDArray[np.bool_] = run > predicted * (1.0 + 1e-9)
    return longer


def area_under_curve(values: FloatArray, is_short: NDArray[np.bool_]) -> float:
    """Return the probability that a short job's value is below that of another one, ties counting half.

    Parameters
    ----------
    values : float64 array (n,)
        What orders the jobs.
    is_short : bool array (n,)
        Which are short; NaN is returned where all are, or none.
    """
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    # The mean rank, from 1, of jobs with one value.
    rank = (np.cumsum(counts) - (counts - 1) / 2.0)[which]
    short = int(is_short.sum())
    others = len(values) - short
    if not short or not others:
        return math.nan
    above = rank[~is_short].sum() - others * (others + 1) / 2.0
    return float(above / (short * others))
