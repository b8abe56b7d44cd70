"""Two orders of the same queue: the one in which jobs were started, and the one by the numbers that were logged."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.review.shadow_log import Logged

__all__ = ["Pairs", "compare_orders"]

_MOST_STARTS = 20_000
_MOST_LOOKS = 1_000_000_000
_CLOCK = 1  # s: a script may look at its clock just before or after Slurm does


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of jobs of which one started while the other waited.

    Parameters
    ----------
    starts, looked : int
        Starts beside which another job waited, of those that were looked at; and how many were looked at.
    passed : int
        Of these starts, those while a job waited that the numbers put before: they would differ.
    pairs, other : int
        Pairs, and those that the numbers have the other way round.
    by_submit : int
        Pairs in which the earlier submission started later: what is not in submit order today.
    prior, other_prior : int
        Pairs of which both priorities were logged, and those of them that the priorities have the other way round.
    up, down : int64 array (n,)
        Of each job: pairs in which it would go before the other and did not, and the reverse.
    beside : int64 array (n,)
        Of each job: its pairs.
    """

    starts: int
    looked: int
    passed: int
    pairs: int
    other: int
    by_submit: int
    prior: int
    other_prior: int
    up: Int64Array
    down: Int64Array
    beside: Int64Array

    @property
    def tau(self) -> float:
        """Kendall's tau of the two orders over these pairs: 1 the same, -1 the reverse; NaN without pairs."""
        return 1 - 2 * self.other / self.pairs if self.pairs else float("nan")


def compare_orders(submit: Int64Array, start: Int64Array, rows: Int64Array, lines: list[Logged]) -> Pairs:
    """Return how the order by the logged numbers differs from the order of the starts.

    At each start, the job that starts is compared with all that wait then, by the numbers that were the latest known
    at that time; of equal numbers the earlier submission goes first, as for the scheduler.

    Parameters
    ----------
    submit, start : int64 array (n,)
        Unix times of the jobs, s; start -1: never. In order of submission.
    rows : int64 array (lines,)
        The job of each line.
    lines : list of Logged
        In any order.
    """
    at = np.array([line.at for line in lines], dtype=np.int64)
    order = np.argsort(at, kind="stable")
    at, rows = at[order], rows[order]
    number, present = (np.array([getattr(line, name) for line in lines])[order] for name in ("number", "present"))
    known = np.full((2, len(submit)), np.nan)
    began = np.flatnonzero(start >= 0)
    began = began[np.argsort(start[began], kind="stable")]
    leaves = np.where(start < 0, submit, start)
    longest = int((leaves - submit).max(initial=0))
    first = np.searchsorted(submit, start[began] - longest)
    last = np.searchsorted(submit, start[began], "right")
    looks = np.cumsum(last - first)
    step = max(1, -(-len(began) // _MOST_STARTS), -(-int(looks[-1]) // _MOST_LOOKS)) if len(began) else 1
    counts = np.zeros(7, dtype=np.int64)
    up, down, beside = np.zeros((3, len(submit)), dtype=np.int64)
    seen = 0
    for place in range(0, len(began), step):
        job = int(began[place])
        now = int(start[job])
        until = int(np.searchsorted(at, now + _CLOCK, "right"))
        known[0, rows[seen:until]] = number[seen:until]
        known[1, rows[seen:until]] = present[seen:until]
        seen = until
        near = np.arange(first[place], last[place])
        waiting = near[(leaves[near] > now) & (near != job) & ~np.isnan(known[0, near])]
        if not len(waiting) or np.isnan(known[0, job]):
            continue
        other = _before(waiting, job, known[0])
        prior = ~np.isnan(known[1, waiting]) & ~np.isnan(known[1, job])
        counts += [
            1,
            bool(other.any()),
            len(waiting),
            int(other.sum()),
            int((waiting < job).sum()),
            int(prior.sum()),
            int((_before(waiting, job, known[1]) & prior).sum()),
        ]
        up[waiting[other]] += 1
        down[job] += int(other.sum())
        beside[waiting] += 1
        beside[job] += len(waiting)
    starts, passed, pairs, others, by_submit, priors, other_prior = counts.tolist()
    looked = -(-len(began) // step)
    return Pairs(starts, looked, passed, pairs, others, by_submit, priors, other_prior, up, down, beside)


def _before(jobs: Int64Array, job: int, value: FloatArray) -> NDArray[np.bool_]:
    """Return which jobs go before another one: by the higher value, then by submission, then by place."""
    return np.asarray((value[jobs] > value[job]) | ((value[jobs] == value[job]) & (jobs < job)))
