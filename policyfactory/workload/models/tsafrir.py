"""Requested run times for jobs that have none: the estimates of the Tsafrir-Etsion-Feitelson model, given to jobs.

See `policyfactory.workload.models.tsafrir` for the paper and for the histogram of estimates. The longest job draws
first, uniformly among the estimates that are at least its run time; nothing ties estimates to users or sizes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.jit import interruptible, kernel
from policyfactory.core.options import Int64Array
from policyfactory.core.random import check_seed, generator
from policyfactory.core.text import HOUR, MINUTE, format_duration
from policyfactory.workload.jobs import Workload
from policyfactory.workload.machine import joined_log
from policyfactory.workload.models.drand48 import GlibcRand, largest_first, lrand48_values, random_shuffle, seed48
from policyfactory.workload.presets import ABSURD_REQUEST
from policyfactory.workload.swf.log import SwfLog

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
    """How many jobs use each estimate.

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


# Requested run times for jobs that have none --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """What the model gave to n jobs.

    Parameters
    ----------
    requested_time : int64 array (n,)
        Estimate of each job, s, at least its run time.
    run_time : int64 array (n,)
        Run times, s, those above the longest estimate cut to it.
    cut : int
        Jobs whose run time was cut.
    histogram : Histogram
        Jobs of each estimate.
    max_estimate : int
        Longest estimate that was allowed, s.
    how : str
        Stream and seed, in words.
    """

    requested_time: Int64Array
    run_time: Int64Array
    cut: int
    histogram: Histogram
    max_estimate: int
    how: str

    @property
    def note(self) -> str:
        """How the requested times were made, in one line."""
        return (
            f"requested times: Tsafrir-Etsion-Feitelson model, {self.how}, {len(self.histogram.times)} values, "
            f"at most {format_duration(self.max_estimate)}; {self.cut} longer run times were cut to that"
        )


def tsafrir_estimates(
    workload: Workload,
    *,
    max_estimate: int,
    seed: int,
    user_bins: Sequence[UserBin] = (),
    stream: Literal["numpy", "drand48"] = "numpy",
) -> Workload:
    """Return ``workload`` with requested times of the model; its ``origin`` says how many run times were cut.

    Parameters
    ----------
    workload : Workload
        Jobs; their requested times are replaced.
    max_estimate : int
        Longest estimate that is allowed, s, at least 5701.
    seed : int
        Seed of the random numbers.
    user_bins : sequence of (int, int)
        Estimates (s) and jobs that are known to use them.
    stream : {"numpy", "drand48"}
        Our random numbers, or those of the original program.

    Raises
    ------
    UsageError
        If an argument is out of range, or there are fewer than 227 jobs.
    WorkloadError
        If the jobs run so long that the estimates cannot cover them.

    Examples
    --------
    >>> import policyfactory as pf
    >>> log = pf.generate_lublin(256, 500, seed=1)
    >>> asked = pf.tsafrir_estimates(log, max_estimate=86_400, seed=1)
    >>> bool((asked.requested_time >= asked.run_time).all())
    True
    """
    ticks = workload.ticks
    # The estimate is in whole seconds and must cover the run time.
    seconds = -(-workload.run_time // ticks)
    estimates = draw_estimates(seconds, max_estimate, seed=seed, user_bins=user_bins, stream=stream)
    cut = f", {estimates.cut} run times cut to it" if estimates.cut else ""
    return dataclasses.replace(
        workload,
        run_time=np.minimum(workload.run_time, max_estimate * ticks),
        requested_time=estimates.requested_time * ticks,
        origin=f"{workload.origin.removesuffix('; requested time = run time (the model has none)')}; requested time: "
        f"Tsafrir model, {estimates.how}, at most {format_duration(max_estimate)}{cut}",
    )


def draw_estimates(
    run_time: Int64Array,
    max_estimate: int,
    *,
    seed: int,
    user_bins: Sequence[UserBin] = (),
    stream: Literal["numpy", "drand48"] = "numpy",
) -> Estimates:
    """Draw an estimate for each run time.

    Parameters
    ----------
    run_time : int64 array (n,)
        s, at least 227 of them.
    max_estimate : int
        Longest estimate, s, at least 5701.
    seed : int
        Seed of the random numbers.
    user_bins : sequence of (int, int)
        Estimates (s) and jobs that are known to use them.
    stream : {"numpy", "drand48"}
        Our random numbers, or those of the original program.

    Raises
    ------
    UsageError
        If an argument is out of range.
    WorkloadError
        If the run times are too long for the estimates.
    """
    luck = chance(seed, stream)
    histogram = make_histogram(len(run_time), max_estimate, user_bins, luck)
    held = np.minimum(run_time, max_estimate)
    cut = int((run_time > max_estimate).sum())
    return Estimates(_give(held, histogram, luck), held, cut, histogram, max_estimate, f"{stream} stream, seed {seed}")


def _give(run_time: Int64Array, histogram: Histogram, luck: Chance) -> Int64Array:
    order = luck.longest_first(run_time)
    longest_first = run_time[order]
    estimates = np.repeat(histogram.times, histogram.jobs)[::-1].copy()
    short = np.flatnonzero(longest_first > estimates)
    if len(short):
        longest = int(histogram.times[-1])
        raise WorkloadError(
            f"{short[0] + 1} jobs run at least {longest_first[short[0]]} s, but only {short[0]} of the {len(run_time)} "
            f"estimates are that long (the longest allowed is {longest} s); allow longer ones (--max-estimate), or "
            f"say how many jobs ask for the longest (--bin {longest}=JOBS)"
        )
    requested = np.empty(len(run_time), dtype=np.int64)
    requested[order] = interruptible(assign, longest_first, estimates, luck.values(len(run_time)))
    return requested


@kernel
def assign(run_time: Int64Array, estimates: Int64Array, draws: Int64Array) -> Int64Array:
    """Return an estimate for each job, uniformly among those left that are at least its run time.

    Parameters
    ----------
    run_time : int64 array (n,)
        Longest first.
    estimates : int64 array (n,)
        Longest first, the k-th at least the k-th run time; changed.
    draws : int64 array (n,)
        Uniform integers from 0.
    """
    n = len(run_time)
    given = np.empty(n, dtype=np.int64)
    last = 0
    for j in range(n):
        while last < n - 1 and run_time[j] <= estimates[last + 1]:
            last += 1
        k = j + draws[j] % (last - j + 1)
        given[j] = estimates[k]
        estimates[k] = estimates[j]
    return given


def usable_lines(log: SwfLog) -> NDArray[np.bool_]:
    """Return which lines of a log are jobs that ran: a run time of at least 0, at least one processor."""
    return np.asarray((log.run_time >= 0) & ((log.allocated > 0) | (log.requested > 0)))


def replace_requests(log: SwfLog, draw: Callable[[NDArray[np.int64]], Estimates]) -> tuple[SwfLog, Estimates]:
    """Return the usable lines of ``log`` with field 9 drawn anew and field 4 cut to the longest request.

    A job that is written in parts is one line, with one request.

    Parameters
    ----------
    log : SwfLog
        The log.
    draw : callable
        Gives the estimates of run times (int64 array (n,), s), for example `draw_estimates`.

    Raises
    ------
    WorkloadError
        If no line is usable.
    """
    log = joined_log(log)
    kept = log.select(usable_lines(log))
    if not len(kept):
        raise WorkloadError(
            f"{log.path}: none of the {len(log):,} jobs has a run time and processors; give a log of jobs that ran"
        )
    # A run time with decimals must be covered as well.
    drawn = draw(np.ceil(kept.run_time).astype(np.int64))
    shortened = np.where(np.ceil(kept.run_time) > drawn.run_time, drawn.run_time, kept.run_time)
    counts = {"MaxJobs": str(len(kept)), "MaxRecords": str(len(kept))}
    dropped = len(log) - len(kept)
    left_out = (f"{dropped} lines without run time or processors were dropped",) if dropped else ()
    header = kept.header.replace(counts, (drawn.note, *left_out))
    run_time = shortened.astype(kept.run_time.dtype)
    return dataclasses.replace(kept, requested_time=drawn.requested_time, run_time=run_time, header=header), drawn


# What a site knows of its users' estimates, worked into the defaults of the estimate model ----------------------------

# A pair (estimate, jobs) takes the place of the nearest popular estimate and of the nearest popularity; the rest is
# scaled so that the head keeps its 89 %.


UserBin = tuple[int, int]
HEAD_PERCENT = 89.0
_MAX_BINS = 20


def check_user_bins(user_bins: Sequence[UserBin], jobs: int, max_estimate: int) -> dict[int, int]:
    """Return jobs by estimate.

    Parameters
    ----------
    user_bins : sequence of (int, int)
        Estimate (s) and jobs.
    jobs : int
        Jobs altogether.
    max_estimate : int
        Longest estimate, s.

    Raises
    ------
    UsageError
        If a pair is out of range or comes twice, or if there are too many of them.
    """
    given: dict[int, int] = {}
    for time, count in user_bins:
        if not 1 <= time <= max_estimate:
            raise UsageError(f"user bin {time}={count}: give an estimate of 1 to {max_estimate} s (the longest)")
        if not 1 <= count <= jobs:
            raise UsageError(f"user bin {time}={count}: give 1 to {jobs} jobs (as many as there are)")
        if time in given:
            raise UsageError(f"user bin {time} s is given twice ({given[time]} and {count} jobs); give it once")
        given[time] = count
    allowed = _MAX_BINS - (max_estimate not in given)
    if len(given) > allowed:
        raise UsageError(
            f"{len(given)} user bins; the head has 20 values, one of them {max_estimate} s: give at most {allowed}"
        )
    if sum(given.values()) > jobs:
        raise UsageError(
            f"the user bins have {sum(given.values())} jobs together, more than the {jobs} of the workload; give fewer"
        )
    return given


def merge_times(head: list[int], given: dict[int, int], max_estimate: int, joint: Collection[int]) -> list[int]:
    """Return the popular estimates with the user's among them.

    A new estimate replaces the nearest one: round values first, then those of ``joint``; never the longest one.
    Differs from the original, which can replace an estimate that the user gave by another one.

    Parameters
    ----------
    head : list of int
        The 20 default estimates, s, the longest first.
    given : dict of int to int
        Jobs by estimate (s).
    max_estimate : int
        Longest estimate, s.
    joint : collection of int
        Estimates that all logs share, s.
    """
    new = [time for time in given if time not in head]
    replaced: dict[int, int] = {}
    for group in (set(head) - set(joint), set(joint) & set(head)):
        old = group - {max_estimate} - set(given)
        for _, time, default in sorted((abs(time - default), time, default) for time in new for default in old):
            if time not in replaced.values() and default not in replaced:
                replaced[default] = time
    return [max_estimate, *sorted(replaced.get(time, time) for time in head[1:])]


def merge_sizes(
    sizes: list[float], given: dict[int, int], jobs: int, max_estimate: int
) -> list[tuple[float, int | None]]:
    """Return percentage and, if the user gave it, estimate of each popularity rank.

    The largest bin chooses first and takes the place of the nearest size; rank 1 is kept for the longest
    estimate. The other sizes are scaled to fill the head up to 89 %, or are 0 if the user's reach that far.

    Parameters
    ----------
    sizes : list of float
        The 20 default percentages, descending.
    given : dict of int to int
        Jobs by estimate (s).
    jobs : int
        Jobs altogether.
    max_estimate : int
        Longest estimate, s.
    """
    if not given:
        return [(size, None) for size in sizes]
    percent = {time: 100.0 * count / jobs for time, count in given.items()}
    defaults = list(sizes)
    if max_estimate in given:
        scale = (HEAD_PERCENT - percent[max_estimate]) / sum(sizes[1:])
        defaults = sorted([percent[max_estimate], *(size * scale for size in sizes[1:])], reverse=True)
    owner: dict[int, int] = {}
    for time in sorted(given, key=lambda t: -given[t]):
        free = [k for k in range(len(defaults)) if k not in owner and (k > 0 or time == max_estimate)]
        owner[min(free, key=lambda k: abs(percent[time] - defaults[k]))] = time
    rest = sum(size for k, size in enumerate(defaults) if k not in owner)
    known = sum(percent[time] for time in owner.values())
    scale = (HEAD_PERCENT - known) / rest if known < HEAD_PERCENT and rest else 0.0
    merged = [(percent[owner[k]], owner[k]) if k in owner else (size * scale, None) for k, size in enumerate(defaults)]
    return [merged[0], *sorted(merged[1:], key=lambda pair: -pair[0])]


# Requested times for the jobs of a log that have none, from what the log itself says where it says something ----------


# In this order: the nearest request of the same user, earlier or later; the most usual request of the same queue, which
# stands for the queue's default; an estimate of the model. A job was not stopped at a limit shorter than its run, so a
# request that the run exceeds is never taken.


Mask = NDArray[np.bool_]

# One seed for all, so that every command that reads a log sees the same jobs.
FILL_SEED = 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class FilledRequests:
    """Requested times for jobs that have none.

    Parameters
    ----------
    requested_time : int64 array (n,)
        s, at least the run time; 0 where none was asked for.
    of_user, of_queue, of_model : bool array (n,)
        Where each is from.
    longest : int
        Longest estimate of the model, s.
    """

    requested_time: Int64Array
    of_user: Mask
    of_queue: Mask
    of_model: Mask
    longest: int


def fill_requests(log: SwfLog, missing: Mask, run_time: Int64Array) -> FilledRequests:
    """Return requested times for the jobs ``missing``; the same log gives the same.

    Parameters
    ----------
    log : SwfLog
        All lines: those that cannot be simulated still say what their users ask for.
    missing : bool array (n,)
        Jobs that need one.
    run_time : int64 array (n,)
        s, in whole seconds.
    """
    request = np.ceil(log.requested_time).astype(np.int64)
    known = (request > 0) & (request <= ABSURD_REQUEST) & (log.submit >= 0)
    filled = np.zeros(len(log), dtype=np.int64)
    masks = []
    left = missing.copy()
    for source in (_of_user(log, request, known, left), _of_queue(log, request, known, left)):
        taken = left & (source > 0) & (source >= run_time)
        filled[taken] = source[taken]
        left &= ~taken
        masks.append(taken)
    longest = _longest(log, request[known], run_time[left])
    filled[left] = _drawn_of(run_time[left], longest)
    return FilledRequests(filled, masks[0], masks[1], left, longest)


def _of_user(log: SwfLog, request: Int64Array, known: Mask, missing: Mask) -> Int64Array:
    """Return the request of the same user that was submitted nearest to each job, the earlier of two; 0 for none."""
    rows = np.flatnonzero((known | missing) & (log.user >= 0))
    rows = rows[np.lexsort((log.submit[rows], log.user[rows]))]
    position = np.arange(len(rows))
    asks = known[rows]
    before = np.maximum.accumulate(np.where(asks, position, -1))
    after = np.minimum.accumulate(np.where(asks, position, len(rows))[::-1])[::-1]
    distances = []
    for other in (before, after):
        neighbour = rows[np.clip(other, 0, len(rows) - 1)] if len(rows) else rows
        same = (other >= 0) & (other < len(rows)) & (log.user[neighbour] == log.user[rows])
        distances.append((neighbour, np.where(same, np.abs(log.submit[neighbour] - log.submit[rows]), np.inf)))
    (earlier, since), (later, until) = distances
    found = np.zeros(len(log), dtype=np.int64)
    nearest = np.where(since <= until, earlier, later)
    some = np.isfinite(np.minimum(since, until))
    found[rows[some]] = request[nearest[some]]
    return found


def _of_queue(log: SwfLog, request: Int64Array, known: Mask, missing: Mask) -> Int64Array:
    """Return the most usual request of each job's queue, the shortest of several; 0 for none."""
    found = np.zeros(len(log), dtype=np.int64)
    for queue in np.unique(log.queue[missing & (log.queue >= 0)]):
        values, jobs = np.unique(request[known & (log.queue == queue)], return_counts=True)
        if len(values):
            found[log.queue == queue] = values[np.argmax(jobs)]
    return found


def _longest(log: SwfLog, requests: Int64Array, run_time: Int64Array) -> int:
    """Return the longest estimate: the site's limit, the longest request, or what the longest run needs."""
    limit = log.header.positive("MaxRuntime")
    needed = -(-int(run_time.max(initial=0)) // HOUR) * HOUR
    longest = int(requests.max()) if len(requests) else needed
    return max(min(limit, ABSURD_REQUEST) if limit else longest, LEAST_MAX_ESTIMATE)


def _drawn_of(run_time: Int64Array, longest: int) -> Int64Array:
    """Draw an estimate of the model for each run time among those that are not shorter; the run itself beyond all."""
    if not len(run_time):
        return run_time
    luck = chance(FILL_SEED, "numpy")
    histogram = make_histogram(max(len(run_time), LEAST_JOBS), longest, (), luck)
    below = np.concatenate([[0], np.cumsum(histogram.jobs)])
    first = below[np.searchsorted(histogram.times, run_time)]
    drawn = first + luck.values(len(run_time)) % np.maximum(below[-1] - first, 1)
    chosen = np.minimum(np.searchsorted(below, drawn, side="right") - 1, len(histogram.times) - 1)
    estimates: Int64Array = np.maximum(histogram.times[chosen], np.maximum(run_time, 1))
    return estimates
