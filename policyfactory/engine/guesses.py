"""Run times guessed from what the user's jobs did that have ended: simple rules, beside which a predictor is judged.

The mean of the last two is that of Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions
rather than user runtime estimates", IEEE TPDS 18(6), 2007, section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import kernel

__all__ = ["FADING", "GUESSES", "LAST_TWO", "MEDIAN", "NEAREST", "NINTH", "Ended", "guesses"]

# Rows of what `guesses` returns.
LAST_TWO, FADING, NEAREST, MEDIAN, NINTH = range(5)
GUESSES = 5

_REMEMBERED = 60  # of a user's ended jobs, the last ones: among them are neighbours and quantiles
_NEIGHBOURS = 5
_FADE = 0.5  # the share of the newest run time in the fading mean


class Ended(NamedTuple):
    """Jobs of a schedule that is complete, in submit order; nothing is read of one before its end.

    Parameters
    ----------
    submit, end : int64 array (n,), ticks
        Submissions and ends.
    order : int64 array (n,)
        The jobs in the order of their ends.
    user : int64 array (n,)
        From 0 without gaps; -1 if unknown.
    request, run : float64 array (n,), s
        Requests and run times, above 0.
    processors : float64 array (n,)
        Requested processors.
    """

    submit: Int64Array
    end: Int64Array
    order: Int64Array
    user: Int64Array
    request: FloatArray
    run: FloatArray
    processors: FloatArray


@kernel
def guesses(jobs: Ended, users: int) -> FloatArray:
    """Return what each rule takes each job's run time to be when it is submitted.

    Where nothing is known of the user, and for the mean of the last two where only one of its jobs has ended, that is
    the request; no guess is above it.

    Parameters
    ----------
    jobs : Ended
        The jobs.
    users : int
        How many users there are.

    Returns
    -------
    float64 array (5, n), s
        Mean of the user's last two; fading mean; mean of the five most like it (by ln request and ln processors,
        of equal ones the last) among the last 60; the request times the median, and times the ninth decile, of run
        time over request of the last 60.
    """
    n = len(jobs.submit)
    made = np.empty((GUESSES, n))
    before = np.full(n, -1, dtype=np.int64)
    last = np.full(users, -1, dtype=np.int64)
    fading = np.zeros(users)
    noted = 0
    for job in range(n):
        while noted < n and jobs.end[jobs.order[noted]] <= jobs.submit[job]:
            _note(jobs, jobs.order[noted], before, last, fading)
            noted += 1
        request, user = jobs.request[job], jobs.user[job]
        for rule in range(GUESSES):
            made[rule, job] = request
        if user >= 0 and last[user] >= 0:
            newest = last[user]
            made[FADING, job] = min(fading[user], request)
            if before[newest] >= 0:
                made[LAST_TWO, job] = min((jobs.run[newest] + jobs.run[before[newest]]) / 2.0, request)
            made[NEAREST, job] = min(_nearest(jobs, job, newest, before), request)
            shares = _shares(jobs, newest, before)
            made[MEDIAN, job] = request * _quantile(shares, 5)
            made[NINTH, job] = request * _quantile(shares, 9)
    return made


@kernel
def _note(jobs: Ended, job: int, before: Int64Array, last: Int64Array, fading: FloatArray) -> None:
    user = jobs.user[job]
    if user >= 0:
        run = jobs.run[job]
        fading[user] = run if last[user] < 0 else fading[user] + _FADE * (run - fading[user])
        before[job] = last[user]
        last[user] = job


@kernel
def _nearest(jobs: Ended, job: int, newest: int, before: Int64Array) -> float:
    far, runs, kept = np.empty(_NEIGHBOURS), np.empty(_NEIGHBOURS), 0
    other, count = newest, 0
    while other >= 0 and count < _REMEMBERED:
        distance = abs(np.log(jobs.request[other] / jobs.request[job]))
        distance += abs(np.log(jobs.processors[other] / jobs.processors[job]))
        if kept < _NEIGHBOURS or distance < far[kept - 1]:
            kept = min(kept + 1, _NEIGHBOURS)
            at = kept - 1
            while at > 0 and distance < far[at - 1]:
                far[at], runs[at] = far[at - 1], runs[at - 1]
                at -= 1
            far[at], runs[at] = distance, jobs.run[other]
        other = before[other]
        count += 1
    total = 0.0
    for at in range(kept):
        total += runs[at]
    return total / kept


@kernel
def _shares(jobs: Ended, newest: int, before: Int64Array) -> FloatArray:
    """Return run time over request, at most 1, of the user's last jobs, ascending."""
    shares = np.empty(_REMEMBERED)
    other, count = newest, 0
    while other >= 0 and count < _REMEMBERED:
        shares[count] = min(jobs.run[other] / jobs.request[other], 1.0)
        other = before[other]
        count += 1
    return np.sort(shares[:count])


@kernel
def _quantile(values: FloatArray, tenths: int) -> float:
    """Return the least of the values that so many tenths of them do not exceed."""
    return float(values[(len(values) * tenths + 9) // 10 - 1])
