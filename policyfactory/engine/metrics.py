"""Sums over schedules: the same bits on every machine.

Sums of floating-point numbers go from the first to the last with Neumaier's correction, so neither the width of a
processor's vectors nor the number of threads can change a digit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.jit import inlined, joined, kernel, read_only
from policyfactory.core.options import FloatArray, Int64Array

TAU = 10  # s, the bound of bounded slowdown: shorter run times count as this long


@kernel
def total(values: FloatArray) -> float:
    """Return the sum of ``values`` (Neumaier, ZAMM 54, 1974)."""
    result = 0.0
    correction = 0.0
    for value in values:
        sum_ = result + value
        if abs(result) >= abs(value):
            correction += (result - sum_) + value
        else:
            correction += (value - sum_) + result
        result = sum_
    return result + correction


@kernel
def weighted_total(values: Int64Array, first: Int64Array, second: Int64Array) -> float:
    """Return the sum of values * first * second; the products are rounded to double, the sum is corrected."""
    products = np.empty(len(values))
    for i in range(len(values)):
        products[i] = float(values[i]) * (float(first[i]) * float(second[i]))
    return total(products)


@kernel
def slowdown(wait: Int64Array, run_time: Int64Array, share: Int64Array, least: int) -> FloatArray:
    """Return max((w + p) / (share * max(p, least)), 1) of each job.

    DESIGN: with share 1 the bounded slowdown, with the job's processors that per processor; ``least`` is tau.

    Parameters
    ----------
    wait, run_time : int64 array (n,), ticks
        w and the actual p.
    share : int64 array (n,)
        1 or q.
    least : int
        Ticks, at least 1.
    """
    result = np.empty(len(wait))
    for i in range(len(wait)):
        result[i] = max((wait[i] + run_time[i]) / (share[i] * max(run_time[i], least)), 1.0)
    return result


@kernel
def busy_integrals(start: Int64Array, end: Int64Array, processors: Int64Array) -> tuple[float, float]:
    """Return the integrals over time of the processors in use, and of their square.

    Parameters
    ----------
    start, end : int64 array (n,), ticks
        When each job ran.
    processors : int64 array (n,)
        What it used.
    """
    by_start = np.argsort(start, kind="mergesort")
    by_end = np.argsort(end, kind="mergesort")
    n = len(start)
    linear, square = np.empty(2 * n), np.empty(2 * n)
    busy, now, started, ended = 0, 0, 0, 0
    for step in range(2 * n):
        # At one instant starts come first: a job of no run time has started before it ends, and the interval between
        # them has no length.
        ends = started == n or end[by_end[ended]] < start[by_start[started]]
        if ends:
            job = by_end[ended]
            ended += 1
        else:
            job = by_start[started]
            started += 1
        time = end[job] if ends else start[job]
        # Nothing is busy before the first, so it does not matter when that time began.
        linear[step] = busy * float(time - now)
        square[step] = busy * linear[step]
        now = time
        busy += -processors[job] if ends else processors[job]
    return total(linear), total(square)


# Integrals over time in bins ------------------------------------------------------------------------------------------

# What runs, or waits, in each hour of a schedule, without sorting it.


def binned_integral(
    begin: Int64Array, end: Int64Array, weight: Int64Array, origin: int, width: int, bins: int
) -> FloatArray:
    """Return, for each bin, the integral over time of the weights of the intervals that hold then.

    Bin k is [origin + k width, origin + (k + 1) width); what lies outside all bins is not counted. With starts, ends
    and processors it is the work done in a bin, with submissions and starts and processors the backlog, with weights
    of 1 the jobs that wait. Exact as long as the integrals are below 2**53 (the work of an interval that fills many
    bins is added once, so the time taken does not depend on their number).

    Parameters
    ----------
    begin, end : int64 array (n,), ticks
        Half-open intervals; one whose end is not after its begin counts for nothing.
    weight : int64 array (n,)
        At least 0.
    origin : int, ticks
        Where the first bin begins.
    width : int, ticks
        Of a bin, at least 1.
    bins : int
        How many.

    Returns
    -------
    float64 array (bins,), weight x ticks
    """
    low, high = np.maximum(begin, origin), np.minimum(end, origin + width * bins)
    kept = high > low
    low, high, weight = low[kept], high[kept], weight[kept]
    first, final = (low - origin) // width, (high - 1 - origin) // width
    is_long = first < final
    # Processors times nanoseconds of a week do not fit into 64 bits.
    height = weight.astype(np.float64)
    at_first = height * (np.where(is_long, origin + (first + 1) * width, high) - low)
    at_final = height * np.where(is_long, high - origin - final * width, 0)
    bin_, amount = np.column_stack((first, final)).ravel(), np.column_stack((at_first, at_final)).ravel()
    partial = np.bincount(bin_, amount, minlength=bins)
    # Rises and falls of the weight that holds for the whole of a bin.
    steps = np.zeros(bins + 1, dtype=np.int64)
    np.add.at(steps, first[is_long] + 1, weight[is_long])
    np.subtract.at(steps, final[is_long], weight[is_long])
    whole: FloatArray = partial + np.cumsum(steps[:bins]).astype(np.float64) * width
    return whole


# Sums of jobs by group: users, size classes, run-time classes, in one pass over a schedule ----------------------------


def group_sums(
    code: Int64Array, groups: int, wait: Int64Array, run_time: Int64Array, processors: Int64Array, least: int
) -> tuple[Int64Array, FloatArray, FloatArray, FloatArray]:
    """Return the jobs of each group, and the sums of their work, waits and bounded slowdowns.

    Each sum goes from the first job to the last with Neumaier's correction (ZAMM 54, 1974), as in
    `policyfactory.engine.metrics.total`.

    Parameters
    ----------
    code : int64 array (n,)
        Group of each job, 0 to ``groups - 1``.
    groups : int
        How many there are.
    wait, run_time : int64 array (n,), ticks
        w and the actual p.
    processors : int64 array (n,)
        q.
    least : int
        tau of the bounded slowdown max((w + p) / max(p, tau), 1), in ticks, at least 1.

    Returns
    -------
    jobs : int64 array (groups,)
    work : float64 array (groups,), processors x ticks
        Sum of q p.
    waited : float64 array (groups,), ticks
        Sum of w.
    slowdown : float64 array (groups,)
        Sum of the bounded slowdowns.
    """
    jobs, sums, rests = np.zeros(groups, dtype=np.int64), np.zeros((3, groups)), np.zeros((3, groups))
    code, wait, run_time, processors = map(read_only, (code, wait, run_time, processors))
    _sum_by_group(code, wait, run_time, processors, least, jobs, sums, rests)
    work, waited, slowdown = sums + rests
    return jobs, work, waited, slowdown


@kernel
def _sum_by_group(
    code: Int64Array,
    wait: Int64Array,
    run_time: Int64Array,
    processors: Int64Array,
    least: int,
    jobs: Int64Array,
    sums: FloatArray,
    rests: FloatArray,
) -> None:
    """Add the jobs to ``jobs``, their work, waits and slowdowns to the rows of ``sums``; ``rests`` are corrections."""
    for i in range(len(code)):
        group = code[i]
        jobs[group] += 1
        work = float(processors[i]) * float(run_time[i])
        slowdown = max((wait[i] + run_time[i]) / max(run_time[i], least), 1.0)
        for row in range(3):
            _add(sums[row], rests[row], group, work if row == 0 else float(wait[i]) if row == 1 else slowdown)


@inlined
def _add(sums: FloatArray, rests: FloatArray, index: int, value: float) -> None:
    before = sums[index]
    after = before + value
    if abs(before) >= abs(value):
        rests[index] += (before - after) + value
    else:
        rests[index] += (value - after) + before
    sums[index] = after


# Run times guessed from what the user's jobs did that have ended ------------------------------------------------------

# Simple rules, beside which a predictor is judged.
#
# The mean of the last two is that of Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions
# rather than user runtime estimates", IEEE TPDS 18(6), 2007, section 3.


# Rows of what `guesses` returns.
LAST_TWO, FADING, NEAREST, MEDIAN, NINTH = range(5)
GUESSES = 5

_REMEMBERED = 60  # of a user's ended jobs, the last ones: among them are neighbours and quantiles
_NEIGHBOURS = 5
_FADE = 0.5  # the share of the newest run time in the fading mean


class EndedJobs(NamedTuple):
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
def guesses(jobs: EndedJobs, users: int) -> FloatArray:
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
    guessed = np.empty((GUESSES, n))
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
            guessed[rule, job] = request
        if user >= 0 and last[user] >= 0:
            newest = last[user]
            guessed[FADING, job] = min(fading[user], request)
            if before[newest] >= 0:
                guessed[LAST_TWO, job] = min((jobs.run[newest] + jobs.run[before[newest]]) / 2.0, request)
            guessed[NEAREST, job] = min(_nearest(jobs, job, newest, before), request)
            shares = _shares(jobs, newest, before)
            guessed[MEDIAN, job] = request * _quantile(shares, 5)
            guessed[NINTH, job] = request * _quantile(shares, 9)
    return guessed


@kernel
def _note(jobs: EndedJobs, job: int, before: Int64Array, last: Int64Array, fading: FloatArray) -> None:
    user = jobs.user[job]
    if user >= 0:
        run = jobs.run[job]
        fading[user] = run if last[user] < 0 else fading[user] + _FADE * (run - fading[user])
        before[job] = last[user]
        last[user] = job


@kernel
def _nearest(jobs: EndedJobs, job: int, newest: int, before: Int64Array) -> float:
    far, runs, kept = np.empty(_NEIGHBOURS), np.empty(_NEIGHBOURS), 0
    other, count = newest, 0
    while other >= 0 and count < _REMEMBERED:
        distance = abs(np.log(jobs.request[other] / jobs.request[job]))
        distance += abs(np.log(jobs.processors[other] / jobs.processors[job]))
        if kept < _NEIGHBOURS or distance < far[kept - 1]:
            kept = min(kept + 1, _NEIGHBOURS)
            position = kept - 1
            while position > 0 and distance < far[position - 1]:
                far[position], runs[position] = far[position - 1], runs[position - 1]
                position -= 1
            far[position], runs[position] = distance, jobs.run[other]
        other = before[other]
        count += 1
    total = 0.0
    for position in range(kept):
        total += runs[position]
    return total / kept


@kernel
def _shares(jobs: EndedJobs, newest: int, before: Int64Array) -> FloatArray:
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


# Which processors a job runs on ---------------------------------------------------------------------------------------

# An assignment of processor numbers to a schedule that only counts them.
#
# A schedule that never uses more than m processors can always be given numbers 0 to m - 1 in the order of the starts,
# since any free processor serves. Processors are kept as sorted intervals, so the work depends on the number of holes
# and not on the size of the machine. A job gets the lowest hole that takes it whole, else the lowest free processors.
# Times are half open: what ends at t is free for what starts at t.


@kernel
def allocate(
    start: Int64Array,
    end: Int64Array,
    processors: Int64Array,
    machine: int,
    by_start: Int64Array,
    by_end: Int64Array,
) -> tuple[int, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return the processor intervals of each job.

    Parameters
    ----------
    start, end : int64 array (n,), ticks
        When each job runs; a job with ``end == start`` holds no processor for any time.
    processors : int64 array (n,)
        How many it needs.
    machine : int
        Processors of the machine.
    by_start, by_end : int64 array (n,)
        Rows sorted by start and by end (stable).

    Returns
    -------
    failed : int
        -1, or the row of the first job for which not enough processors are free: the input is no schedule.
    first, stop : int64 array (n,)
        Row i has the intervals ``first[i]`` to ``stop[i] - 1``.
    low, high : int64 array (total,)
        First and last processor of each interval, ascending within a job.
    """
    n = len(start)
    first = np.zeros(n, dtype=np.int64)
    stop = np.zeros(n, dtype=np.int64)
    low = np.empty(2 * n + 8, dtype=np.int64)
    high = np.empty(2 * n + 8, dtype=np.int64)
    free_low = np.empty(64, dtype=np.int64)
    free_high = np.empty(64, dtype=np.int64)
    free_low[0] = 0
    free_high[0] = machine - 1
    holes = 1
    used = 0
    ended = 0
    for k in range(n):
        job = by_start[k]
        while ended < n and end[by_end[ended]] <= start[job]:
            done = by_end[ended]
            ended += 1
            if end[done] > start[done]:
                for i in range(first[done], stop[done]):
                    if holes == len(free_low):
                        free_low = _grown(free_low)
                        free_high = _grown(free_high)
                    holes = _release(free_low, free_high, holes, low[i], high[i])
        first[job] = used
        while used + holes + 1 > len(low):
            low = _grown(low)
            high = _grown(high)
        lasting = end[job] > start[job]
        taken, holes = _claim(free_low, free_high, holes, processors[job], low[used:], high[used:], lasting)
        if taken < 0:
            if lasting:
                return job, first, stop, low[:used], high[:used]
            # It holds them for no time at all, so any will do.
            taken = 1
            low[used] = 0
            high[used] = processors[job] - 1
        used += taken
        stop[job] = used
    return -1, first, stop, low[:used], high[:used]


@kernel
def _grown(array: Int64Array) -> Int64Array:
    larger = np.empty(2 * len(array), dtype=np.int64)
    # One by one: the assignment of a part is compiled with the texts of all that can be wrong with it.
    for index in range(len(array)):
        larger[index] = array[index]
    return larger


@joined
def _claim(
    free_low: Int64Array,
    free_high: Int64Array,
    holes: int,
    wanted: int,
    low: Int64Array,
    high: Int64Array,
    remove: bool,  # noqa: FBT001 (kernels have no keyword-only arguments)
) -> tuple[int, int]:
    """Write the intervals of ``wanted`` processors; return how many (-1: not enough) and the holes left."""
    free = 0
    for i in range(holes):
        size = free_high[i] - free_low[i] + 1
        if size >= wanted:
            low[0] = free_low[i]
            high[0] = free_low[i] + wanted - 1
            if remove:
                free_low[i] += wanted
                if size == wanted:
                    for j in range(i, holes - 1):
                        free_low[j] = free_low[j + 1]
                        free_high[j] = free_high[j + 1]
                    holes -= 1
            return 1, holes
        free += size
    if free < wanted:
        return -1, holes
    taken = 0
    rest = wanted
    while rest > 0:
        size = free_high[taken] - free_low[taken] + 1
        low[taken] = free_low[taken]
        high[taken] = free_low[taken] + min(size, rest) - 1
        rest -= min(size, rest)
        taken += 1
    if remove:
        # Whole holes go; the last one may keep its upper part.
        gone = taken
        if high[taken - 1] < free_high[taken - 1]:
            free_low[taken - 1] = high[taken - 1] + 1
            gone = taken - 1
        for j in range(gone, holes):
            free_low[j - gone] = free_low[j]
            free_high[j - gone] = free_high[j]
        holes -= gone
    return taken, holes


@joined
def _release(free_low: Int64Array, free_high: Int64Array, holes: int, low: int, high: int) -> int:
    """Put an interval back, joined with its neighbours; return the number of holes."""
    hole, end = 0, holes
    while hole < end:
        middle = (hole + end) // 2
        if free_low[middle] < low:
            hole = middle + 1
        else:
            end = middle
    joins_left = hole > 0 and free_high[hole - 1] == low - 1
    joins_right = hole < holes and free_low[hole] == high + 1
    if joins_left and joins_right:
        free_high[hole - 1] = free_high[hole]
        for j in range(hole, holes - 1):
            free_low[j] = free_low[j + 1]
            free_high[j] = free_high[j + 1]
        return holes - 1
    if joins_left:
        free_high[hole - 1] = high
        return holes
    if joins_right:
        free_low[hole] = low
        return holes
    for j in range(holes, hole, -1):
        free_low[j] = free_low[j - 1]
        free_high[j] = free_high[j - 1]
    free_low[hole] = low
    free_high[hole] = high
    return holes + 1
