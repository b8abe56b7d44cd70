"""How many jobs ask for which run time: the histogram of the Tsafrir-Etsion-Feitelson model.

D. Tsafrir, Y. Etsion, D. G. Feitelson, "Modeling user runtime estimates", Job Scheduling Strategies for Parallel
Processing (JSSPP) 2005, LNCS 3834, https://doi.org/10.1007/11605300_1, as the program does it that the Parallel
Workloads Archive distributes. About 20 round values, the head, are used by 89 % of the jobs, the longest
allowed one most of all; the tail has the other values.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed, generator
from policyfactory.core.units import HOUR, MINUTE
from policyfactory.workload.models.drand48 import GlibcRand, lrand48_values, random_shuffle, seed48
from policyfactory.workload.models.std_sort import largest_first
from policyfactory.workload.models.tsafrir_user import HEAD_PERCENT, UserBin, check_user_bins, merge_sizes, merge_times

__all__ = [
    "LEAST_JOBS",
    "LEAST_MAX_ESTIMATE",
    "Chance",
    "Histogram",
    "chance",
    "distinct_estimates",
    "head_sizes",
    "head_times",
    "make_histogram",
    "rank_head",
    "tail_times",
]

HEAD = 20
LEAST_JOBS = 227  # fewer have no tail
LEAST_MAX_ESTIMATE = 5701  # s; a shorter one has fewer than 20 multiples of 5 minutes
_PURPOSE = 1105  # our branch of the random streams

# Jobs and distinct estimates: linear between these points, constant after the last.
_DISTINCT = ((0, 0), (20, 10), (200, 20), (1000, 35), (10_000, 90), (70_000, 340), (250_000, 565))
JOINT = tuple(
    [m * MINUTE for m in (5, 10, 15, 20, 30)] + [h * HOUR for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)]
)  # in the heads of all four logs that the model was made from
_STEPS = tuple([h * HOUR for h in (200, 100, 50, 10, 5, 2, 1)] + [m * MINUTE for m in (20, 10, 5)])
# Popularity rank of the k-th head value (row 0: the longest) in the logs SDSC-106, CTC, KTH with 4 h, SDSC-BLUE.
_RANKS_SEEN = (
    (3, 1, 1, 1), (1, 3, 4, 6), (4, 4, 10, 5), (17, 2, 14, 3), (13, 12, 20, 7), (7, 9, 2, 2), (8, 8, 3, 18),
    (18, 18, 7, 19), (2, 6, 12, 4), (6, 7, 6, 11), (16, 11, 19, 20), (10, 20, 5, 9), (5, 16, 18, 10),
    (15, 5, 16, 14), (14, 14, 9, 13), (19, 13, 17, 16), (11, 10, 15, 15), (12, 15, 13, 17), (9, 17, 8, 8),
    (20, 19, 11, 12),
)  # fmt: skip
_LAST_SEEN = {rank: k for k, row in enumerate(_RANKS_SEEN) for rank in row}
_OFFSETS = (0, 30, -30, 20, -20, 10, -10)  # s; tried in turn where a tail value is taken already


class _OurChance:
    """Our own random numbers; equal run times stay in the order of the jobs."""

    def __init__(self, seed: int) -> None:
        self._generator = generator(seed, _PURPOSE)

    def shuffle(self, values: list[Any]) -> None:
        """Shuffle a list in place."""
        values[:] = [values[k] for k in self._generator.permutation(len(values))]

    def values(self, count: int) -> NDArray[np.int64]:
        """Return ``count`` uniform integers from 0, far larger than any length they are reduced to."""
        return self._generator.integers(0, 2**62, count)

    def longest_first(self, run_time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of ``run_time``, the longest first."""
        return np.argsort(-run_time, kind="stable")


class _LibraryChance:
    """The original's: lrand48 seeded, rand() never seeded; equal run times as its sort leaves them."""

    def __init__(self, seed: int) -> None:
        self._rand = GlibcRand(1)
        self._state = seed48(seed)

    def values(self, count: int) -> NDArray[np.int64]:
        return lrand48_values(self._state, count)

    def longest_first(self, run_time: NDArray[np.int64]) -> NDArray[np.int64]:
        return largest_first(np.ascontiguousarray(run_time, dtype=np.int64))

    def shuffle(self, values: list[Any]) -> None:
        random_shuffle(values, self._rand)


Chance = _OurChance | _LibraryChance


def chance(seed: int, stream: Literal["numpy", "drand48"]) -> Chance:
    """Return the random numbers of ``stream`` (our own, or those of the original program) for ``seed``.

    Raises
    ------
    UsageError
        If there is no such stream, or the seed is out of range.
    """
    if stream not in ("numpy", "drand48"):
        raise UsageError(f"unknown stream {stream!r}; numpy (ours) and drand48 (the original program's) are known")
    check_seed(seed)
    return _OurChance(seed) if stream == "numpy" else _LibraryChance(seed)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Jobs of each estimate.

    Parameters
    ----------
    times : int64 array (k,)
        Estimates, s, ascending.
    jobs : int64 array (k,)
        Jobs that use each, at least 1.
    """

    times: NDArray[np.int64]
    jobs: NDArray[np.int64]

    def share(self, most_popular: int) -> float:
        """Return the share of jobs that use one of the ``most_popular`` estimates."""
        return float(np.sort(self.jobs)[::-1][:most_popular].sum() / self.jobs.sum())


def make_histogram(jobs: int, max_estimate: int, user_bins: Sequence[UserBin], luck: Chance) -> Histogram:
    """Draw the estimates of ``jobs`` jobs.

    Parameters
    ----------
    jobs : int
        Number of jobs, at least 227.
    max_estimate : int
        Longest estimate that is allowed (Tmax), s, at least 5701.
    user_bins : sequence of (int, int)
        What is known of a site: up to 20 pairs of an estimate (s) and the jobs that use it.
    luck : Chance
        Random numbers; used up in the original program's order.

    Raises
    ------
    UsageError
        If a number is out of range.
    """
    if jobs < LEAST_JOBS:
        raise UsageError(f"{jobs} jobs are too few for the estimate model; it needs at least {LEAST_JOBS}")
    if max_estimate < LEAST_MAX_ESTIMATE:
        raise UsageError(
            f"a longest estimate of {max_estimate} s is too short for the model's 20 popular values; "
            f"give at least {LEAST_MAX_ESTIMATE} s (1h35m1s)"
        )
    given = check_user_bins(user_bins, jobs, max_estimate)
    times = merge_times(head_times(max_estimate), given, max_estimate, JOINT)
    sizes = merge_sizes(head_sizes(), given, jobs, max_estimate)
    fixed = {times.index(time): rank for rank, (_, time) in enumerate(sizes, 1) if time is not None}
    ranks = rank_head(fixed, luck)
    percent = {time: sizes[rank - 1][0] for time, rank in zip(times, ranks, strict=True)}
    percent.update(_draw_tail(jobs, max_estimate, set(times), luck))
    counts = {time: given.get(time, max(1, _round(percent[time] * (jobs / 100.0)))) for time in sorted(percent)}
    counts = {time: count for time, count in _settle(counts, jobs, given).items() if count}
    return Histogram(np.array(list(counts), dtype=np.int64), np.array(list(counts.values()), dtype=np.int64))


def distinct_estimates(jobs: int) -> int:
    """Return K, the number of distinct estimates that ``jobs`` jobs have."""
    for (low_jobs, low), (high_jobs, high) in itertools.pairwise(_DISTINCT):
        if jobs <= high_jobs:
            return low + _round((jobs - low_jobs) * ((high - low) / (high_jobs - low_jobs)))
    return _DISTINCT[-1][1]


def head_times(max_estimate: int) -> list[int]:
    """Return the 20 popular estimates in seconds: the longest first, the others ascending."""
    others = [time for time in JOINT if time < max_estimate]
    for step in _STEPS:
        for time in range(max_estimate // step * step, 0, -step):
            if len(others) == HEAD - 1:
                return [max_estimate, *sorted(others)]
            if time != max_estimate and time not in others:
                others.append(time)
    return [max_estimate, *sorted(others)]


def head_sizes() -> list[float]:
    """Return the percentage of jobs by popularity rank 1 to 20: an exponential, rank 1 what is left of 89 %."""
    rest = [14.0491 * math.exp(-0.177531 * rank) + 0.462513 for rank in range(2, HEAD + 1)]
    return [HEAD_PERCENT - sum(rest), *rest]


def rank_head(fixed: dict[int, int], luck: Chance) -> list[int]:
    """Return the popularity rank of each head value, drawn from the ranks it has in real logs.

    The longest estimate is the most popular; a rank that no log has later than here is given now; otherwise
    the better of two ranks drawn from those seen so far.

    Parameters
    ----------
    fixed : dict of int to int
        Ranks of values that the user gave: position in the head to rank.
    luck : Chance
        Random numbers.
    """
    ranks: list[int] = []
    pool: list[int] = []
    for k, row in enumerate(_RANKS_SEEN):
        taken = {*ranks, *fixed.values()}
        free = [rank for rank in range(1, HEAD + 1) if rank not in taken]
        pool += [rank for rank in row if rank not in taken]
        luck.shuffle(pool)
        due = [rank for rank in free if _LAST_SEEN[rank] <= k]
        if k in fixed:
            rank = fixed[k]
        elif k == 0 and 1 in free:
            rank = 1
        elif due:
            rank = due[0]
        elif pool:
            rank = min(pool[int(value) % len(pool)] for value in luck.values(2))
        else:
            # The user's values can use up every rank seen so far; the original fails then.
            rank = free[0]
        ranks.append(rank)
        pool = [other for other in pool if other != rank]
    return ranks


def tail_times(count: int, distinct: int, max_estimate: int, head: set[int]) -> list[int]:
    """Return up to ``count`` unpopular estimates (s, ascending); one that cannot be placed is left out.

    Parameters
    ----------
    count : int
        How many are wanted.
    distinct : int
        Distinct estimates altogether (K); sets the curvature.
    max_estimate : int
        Longest estimate, s.
    head : set of int
        Estimates that are taken.
    """
    a = 1.0 + 12.1039 * math.pow(distinct, -0.6026)
    times: set[int] = set()
    for i in range(1, count + 1):
        x = i / count
        time = 60 * _round((a - 1) * x / (a - x) * max_estimate / 60.0)
        free = [
            time + offset
            for offset in _OFFSETS
            if 0 < time + offset < max_estimate and time + offset not in times and time + offset not in head
        ]
        times.update(free[:1])
    return sorted(times)


def _draw_tail(jobs: int, max_estimate: int, head: set[int], luck: Chance) -> dict[int, float]:
    """Return time and percentage of the tail's values, matched at random."""
    distinct = distinct_estimates(jobs)
    times = tail_times(distinct - len(head), distinct, max_estimate, head)
    sizes = [795.6 * math.pow(rank, -2.267) for rank in range(HEAD + 1, HEAD + 1 + len(times))]
    scale = (100.0 - HEAD_PERCENT) / sum(sizes)
    sizes = [size * scale for size in sizes]
    luck.shuffle(times)
    luck.shuffle(sizes)
    return dict(zip(times, sizes, strict=True))


def _settle(counts: dict[int, int], jobs: int, given: dict[int, int]) -> dict[int, int]:
    """Return ``counts`` (by time, ascending) made to add up to ``jobs`` without touching the user's bins.

    The difference is spread in proportion, from the largest bin down; then by one job a bin, then by leaving
    one job in a bin, then none.
    """
    counts = dict(counts)
    difference = jobs - sum(counts.values())
    sign, left = (1 if difference > 0 else -1), abs(difference)
    movable = sum(count for time, count in counts.items() if time not in given)
    for attempt in range(4):
        factor = left / movable
        for time in sorted((t for t in counts if t not in given), key=lambda t: -counts[t]):
            have = counts[time]
            if left == 0 or have == 0:
                break
            change = (math.ceil(factor * have), 1, have - 1, have)[attempt]
            if sign < 0:
                change = min(change, have if attempt == 3 else have - 1)
            change = min(change, left)
            counts[time] += sign * change
            left -= change
    return counts


def _round(value: float) -> int:
    """Return the nearest integer to a number from 0, halves upwards as in C."""
    whole = math.floor(value)
    return whole + (value - whole >= 0.5)
