"""What jobs that have ended say of the next ones: how long they run, and what their users submit then.

The run time of a job is a distribution: what jobs did of which nearly the same had been predicted.

A prediction is two numbers, e and s. Of the jobs that ended last it is known which two they had at submission, and how
long they ran; what those nearest to a job ran in units of their e is its distribution in units of its own (an analog
ensemble, L. Delle Monache et al., Monthly Weather Review 141, 2013, doi:10.1175/MWR-D-12-00281.1). So it is calibrated
as far as the last jobs are like the next ones, whatever the errors of the predictor are.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.engine.events import NEVER

WINDOW, NEIGHBOURS = 4_000, 150  # of the last ended jobs, those that are looked at and that are taken
_MOST, _PURPOSE = 3_000, 44  # jobs that are asked for; purpose of the random stream
_LEAST = 1e-9  # of a spread, where all predictions are one


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PastRuns:
    """Jobs that have ended.

    Parameters
    ----------
    mean, shortness : float64 array (n,)
        e (s) and s as they were predicted at their submission.
    run : float64 array (n,), s
        How long they ran.
    """

    mean: FloatArray
    shortness: FloatArray
    run: FloatArray

    def like(self, mean: float, shortness: float, *, limit: float = math.inf, elapsed: float = 0.0) -> FloatArray:
        """Return the run times that the nearest jobs stand for, in ascending order: float64, at most `NEIGHBOURS`.

        Parameters
        ----------
        mean, shortness : float
            e (s) and s of the job.
        limit : float, s
            At which it is stopped.
        elapsed : float, s
            How long it has run: what is no longer says nothing. If nothing is longer, it is its limit, or for want of
            one what it has run.
        """
        scaled = self.run * (mean / self.mean)
        rows = np.flatnonzero(scaled > elapsed)
        if not len(rows):
            return np.array([limit if math.isfinite(limit) else elapsed])
        distance = np.zeros(len(rows))
        for column, value in ((self.mean, mean), (self.shortness, shortness)):
            logs = np.log(column)
            spread = max(float(logs.std()), _LEAST)
            distance += ((logs[rows] - math.log(value)) / spread) ** 2
        if len(rows) > NEIGHBOURS:
            # The newer of equally near ones: a stable sort from the last job on.
            order = np.argsort(distance[::-1], kind="stable")[:NEIGHBOURS]
            rows = rows[::-1][order]
        return np.sort(np.minimum(scaled[rows], limit))


def ranks(
    mean: FloatArray,
    shortness: FloatArray,
    run: FloatArray,
    times: tuple[Int64Array, Int64Array],
    rows: Int64Array,
    chance: FloatArray,
) -> FloatArray:
    """Return where the run times of jobs lie in their distributions: uniform in (0, 1), if these are right.

    The probability integral transform (A. P. Dawid, Journal of the Royal Statistical Society A 147, 1984).

    Parameters
    ----------
    mean, shortness, run : float64 array (n,)
        As of `PastRuns`, of all jobs.
    times : pair of int64 array (n,)
        When they were submitted, and when they ended.
    rows : int64 array (k,)
        The jobs that are asked for.
    chance : float64 array (k,)
        In [0, 1): where each is among equal run times.

    Returns
    -------
    float64 array (k,)
        NaN of a job before which no `NEIGHBOURS` had ended.
    """
    submit, end = times
    order = np.argsort(end, kind="stable")
    ended = np.searchsorted(end[order], submit[rows], side="right")
    found = np.full(len(rows), np.nan)
    for number, (row, count) in enumerate(zip(rows.tolist(), ended.tolist(), strict=True)):
        if count < NEIGHBOURS:
            continue
        last = order[max(count - WINDOW, 0) : count]
        like = PastRuns(mean[last], shortness[last], run[last]).like(float(mean[row]), float(shortness[row]))
        low, high = np.searchsorted(like, run[row], side="left"), np.searchsorted(like, run[row], side="right")
        found[number] = (low + chance[number] * (high - low + 1)) / (len(like) + 1)
    return found


def ranks_of_some(
    mean: FloatArray,
    shortness: FloatArray,
    run: FloatArray,
    times: tuple[Int64Array, Int64Array],
    is_asked: NDArray[np.bool_],
) -> FloatArray:
    """Return `ranks` of at most 3,000 of the jobs that are asked for, evenly spread; not of those without any.

    Parameters
    ----------
    mean, shortness, run, times
        As for `ranks`.
    is_asked : bool array (n,)
        Which jobs are asked for.
    """
    rows = np.flatnonzero(is_asked)
    rows = rows[:: max(-(-len(rows) // _MOST), 1)]
    chance = generator(0, _PURPOSE, len(rows)).random(len(rows))
    found = ranks(mean, shortness, run, times, rows, chance)
    return found[np.isfinite(found)]


# Jobs that users submit when one of theirs has ended: which followed which, and what may follow others ----------------


# Between an end and what the user submits next; later, it is another visit (N. Zakay and D. G. Feitelson, "On
# identifying user session boundaries in parallel workload logs", JSSPP 2012).
THINK_TIME = 20 * 60  # s
_LAST = 50  # ended jobs of a user, of which one is drawn


class Followers:
    """Which jobs were submitted when another one of the user had ended, at most `THINK_TIME` before.

    Parameters
    ----------
    user : int64 array (n,)
        -1: not known.
    submit, end : int64 array (n,), s
        In the order of submission; `NEVER` of jobs that did not run, or have not ended.

    Attributes
    ----------
    leader : int64 array (n,)
        The job that each followed, the last one to end; -1: none.
    """

    def __init__(self, user: Int64Array, submit: Int64Array, end: Int64Array) -> None:
        self._submit, self._end = submit, end
        ran = np.flatnonzero((user >= 0) & (end < NEVER))
        self._by_end = ran[np.argsort(end[ran], kind="stable")]
        self._ended = ran[np.lexsort((end[ran], user[ran]))]
        # Users one after the other on a clock.
        self._span = int(max(submit.max(initial=0), end[ran].max(initial=0))) + THINK_TIME + 1
        self._ends = user[self._ended] * self._span + end[self._ended]
        # A job whose end is the second of its submission follows nothing, itself in particular.
        before = np.searchsorted(self._ends, user * self._span + submit, side="left") - 1
        last = np.append(self._ended, -1)[before]
        follows = (last >= 0) & (user[last] == user) & (submit - end[last] <= THINK_TIME)
        self.leader = np.where(follows, last, -1)
        self._by_leader = np.argsort(self.leader, kind="stable")
        self._first = np.searchsorted(self.leader[self._by_leader], np.arange(len(submit) + 1))

    def after(self, jobs: Int64Array, seconds: int) -> tuple[Int64Array, Int64Array]:
        """Return what was submitted within some seconds of the ends of jobs, and follows them or what follows them.

        Parameters
        ----------
        jobs : int64 array (k,)
            That have ended.
        seconds : int

        Returns
        -------
        rows, which : int64 array (f,)
            The followers, and which of ``jobs`` each comes from; by the latter, and then in the order of submission.
        """
        until, rows, which = self._end[jobs] + seconds, jobs, np.arange(len(jobs))
        found = [(jobs[:0], which[:0])]
        while len(rows):
            count = self._first[rows + 1] - self._first[rows]
            nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            which, rows = np.repeat(which, count), self._by_leader[np.repeat(self._first[rows], count) + nth]
            soon = self._submit[rows] <= until[which]
            rows, which = rows[soon], which[soon]
            found.append((rows, which))
        rows, which = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((rows, which))
        return rows[order], which[order]

    def like(self, users: Int64Array, since: int, until: int, chance: FloatArray) -> Int64Array:
        """Return for each user one of the last jobs that ended after a second of the clock, up to another.

        Parameters
        ----------
        users : int64 array (k,)
            Who has no such job, or is not known, is taken for anybody.
        since, until : int, s
        chance : float64 array (k,)
            From 0 to 1: which of them.

        Returns
        -------
        int64 array (k,)
            -1 where there is none.
        """
        ends = max(since, -1), max(until, -1)
        first, last = (np.searchsorted(self._ends, users * self._span + end, side="right") for end in ends)
        low, high = np.searchsorted(self._end[self._by_end], ends, side="right")
        is_known = (users >= 0) & (first < last)
        first, last = np.where(is_known, [np.maximum(first, last - _LAST), last], [[low], [high]])
        row = np.minimum(first + (chance * (last - first)).astype(np.int64), last - 1)
        chosen = np.where(is_known, np.append(self._ended, -1)[row], np.append(self._by_end, -1)[row])
        return np.where(first < last, chosen, -1)
