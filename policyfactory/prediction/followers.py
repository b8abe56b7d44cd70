"""Jobs that users submit when one of theirs has ended: which followed which, and what may follow others."""

from __future__ import annotations

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import NEVER

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
