"""Requested run times for jobs that have none: the estimates of the Tsafrir-Etsion-Feitelson model, given to jobs.

See `policyfactory.workload.models.tsafrir_bins` for the paper and for the histogram of estimates. The longest job draws
first, uniformly among the estimates that are at least its run time; nothing ties estimates to users or sizes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import WorkloadError
from policyfactory.core.interruptible import interruptible
from policyfactory.core.jit import kernel
from policyfactory.core.units import format_duration
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.tsafrir_bins import Chance, Histogram, chance, make_histogram
from policyfactory.workload.models.tsafrir_user import UserBin
from policyfactory.workload.swf.log import SwfLog

__all__ = [
    "Estimates",
    "Histogram",
    "UserBin",
    "assign",
    "draw_estimates",
    "replace_requests",
    "tsafrir_estimates",
    "usable_lines",
]


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
    """
    ticks = workload.ticks
    # The estimate is in whole seconds and must cover the run time.
    seconds = -(-workload.run_time // ticks)
    made = draw_estimates(seconds, max_estimate, seed=seed, user_bins=user_bins, stream=stream)
    cut = f", {made.cut} run times cut to it" if made.cut else ""
    return dataclasses.replace(
        workload,
        run_time=np.minimum(workload.run_time, max_estimate * ticks),
        requested_time=made.requested_time * ticks,
        origin=f"{workload.origin.removesuffix('; requested time = run time (the model has none)')}; requested time: "
        f"Tsafrir model, {made.how}, at most {format_duration(max_estimate)}{cut}",
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
    kept = log.select(usable_lines(log))
    if not len(kept):
        raise WorkloadError(
            f"{log.path}: none of the {len(log):,} jobs has a run time and processors; nothing to estimate"
        )
    # A run time with decimals must be covered as well.
    made = draw(np.ceil(kept.run_time).astype(np.int64))
    shortened = np.where(np.ceil(kept.run_time) > made.run_time, made.run_time, kept.run_time)
    counts = {"MaxJobs": str(len(kept)), "MaxRecords": str(len(kept))}
    dropped = len(log) - len(kept)
    left_out = (f"{dropped} lines without run time or processors were dropped",) if dropped else ()
    header = kept.header.replace(counts, (made.note, *left_out))
    run_time = shortened.astype(kept.run_time.dtype)
    return dataclasses.replace(kept, requested_time=made.requested_time, run_time=run_time, header=header), made
