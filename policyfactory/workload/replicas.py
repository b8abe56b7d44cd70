"""Replicas: a log with the weeks of its users moved against each other, its bursts jittered and its load scaled.

Nothing is chosen on a single run: one week may hold a third of a log's slowdown. A replica has each job of the log
once, which resampled weeks have not; so what a predictor learns of jobs that have ended it can not know of the same
jobs submitted again.

Each user's jobs move by a whole number of weeks, around the end of the log, so that the time of the week and nearly the
whole of a user's history stay. Jobs of unknown users move day by day. Jobs of one user less than ten minutes apart are
a burst, which then moves by at most the jitter. The load is scaled as is usual, by dividing all times between
submissions.

All replicas have the same jobs, so that what they have in common is no evidence: other users would bring other jobs.
How much that matters is seen on half replicas, which come in pairs. The users are dealt to two halves of about the same
work; each half has half the weeks, on which a user's weeks lie two by two, so that the load is that of the log. A
statistic of a random half deviates from that of the whole as much, on average, as the whole from the truth (P. J.
McCarthy, "Pseudo-replication: half samples", Review of the International Statistical Institute 37, 1969).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.random import check_seed, generator
from policyfactory.core.text import counted
from policyfactory.core.units import DAY, HOUR, WEEK, format_duration
from policyfactory.workload.jobs import Workload

__all__ = ["LOADS", "VERDICT_WEEKS", "Replicas", "loads_of", "weeks_to_import"]

LOADS = (0.8, 1.2)
# Whole weeks that a part of a log needs for a verdict on it: evaluate/studies/null_logs.py tried these.
VERDICT_WEEKS = 6
_PURPOSE, _DEALING = 1519, 1520  # our branches of the random streams
_BURST = 600  # s
_FEWEST_USERS = 12  # to be dealt whole: of fewer, the weeks of each are


def loads_of(count: int, loads: tuple[float, float] = LOADS) -> tuple[float, ...]:
    """Return the loads of replicas 1 to ``count``, in units of the log's: evenly between the bounds, in mixed order."""
    low, high = loads
    even = [low + (high - low) * (place + 0.5) / count for place in range(count)]
    # Neighbours in the order lie far apart, so that also a few of them span the bounds.
    return tuple(even[(place * _step(count)) % count] for place in range(count))


def _step(count: int) -> int:
    """Return about 0.618 of the count, without a common divisor."""
    step = max(1, round(0.618 * count))
    while np.gcd(step, count) > 1:
        step += 1
    return step


def weeks_to_import(weeks: int, part: str, times: int) -> str:
    """Return what to import where a part of a log has too few whole weeks for a verdict; empty if it has enough.

    Parameters
    ----------
    weeks : int
        Its whole weeks.
    part : str
        What it is called.
    times : int
        Of how many such parts the log consists.
    """
    if weeks >= VERDICT_WEEKS:
        return ""
    more = counted(times * (VERDICT_WEEKS - weeks), "more week")
    return f"import {more}: {part} has {counted(weeks, 'whole week')}, and {VERDICT_WEEKS} are needed"


class Replicas:
    """What the replicas of a log are made of.

    Parameters
    ----------
    workload : Workload
        The log.
    lead_in : int
        Jobs from its first on that stay as they are, ahead of each replica: its past.
    seed : int
        Seed of the random numbers.
    jitter : float
        Seconds by which a burst moves at most.

    Raises
    ------
    WorkloadError
        If less than two whole weeks are left after the lead-in.
    UsageError
        If the seed or the jitter is out of range.
    """

    def __init__(self, workload: Workload, *, lead_in: int = 0, seed: int = 0, jitter: float = HOUR) -> None:
        if not 0 <= jitter <= DAY:
            raise UsageError(f"a jitter of {jitter:g} s; give 0 to {DAY:,}")
        self.workload, self.lead_in, self.jitter = workload, lead_in, jitter
        self.seed = check_seed(seed)
        week = WEEK * workload.ticks
        submit = workload.submit[lead_in:]
        after = submit - submit[0] if len(submit) else submit
        self.weeks = int(after[-1] // week) if len(after) else 0
        if self.weeks < 2:
            span = format_duration(float(after[-1]) / workload.ticks) if len(after) else "no time"
            raise WorkloadError(
                f"{workload.name}: {len(after):,} jobs in {span} are less than two whole weeks, so that no users can "
                "be moved against each other; give a longer log"
            )
        self.jobs = int(np.searchsorted(after, self.weeks * week))
        self.left_out = len(after) - self.jobs
        self._after = after[: self.jobs]
        user = workload.user[lead_in : lead_in + self.jobs]
        # Days of unknown users are users of their own.
        owner = np.where(user >= 0, user, -2 - self._after // (DAY * workload.ticks))
        self._owner = np.unique(owner, return_inverse=True)[1]
        self._burst = self._bursts()

    def _bursts(self) -> Int64Array:
        """Return the number of each job's burst."""
        order = np.argsort(self._owner, kind="stable")
        gap = np.diff(self._after[order], prepend=0)
        is_first = gap >= _BURST * self.workload.ticks
        is_first |= np.diff(self._owner[order], prepend=-1) != 0
        burst = np.empty(self.jobs, dtype=np.int64)
        burst[order] = np.cumsum(is_first) - 1
        return burst

    def sample(self, number: int, load: float = 1.0) -> Workload:
        """Return a replica, its past ahead of it.

        Parameters
        ----------
        number : int
            Which one, from 1; each has random numbers of its own.
        load : float
            In units of the log's.

        Raises
        ------
        UsageError
            If the number or the load is out of range.
        """
        _check(number, load)
        random = generator(self.seed, _PURPOSE, number)
        name = f"replica {number}", f"replica {number}: users moved by whole weeks of {self.weeks}"
        return self._moved(np.arange(self.jobs), self.weeks, random, (load, load), name)

    def half(self, number: int, load: float = 1.0) -> Workload:
        """Return a replica of half the users, half as long, its past ahead of it.

        Parameters
        ----------
        number : int
            Which one, from 1; 1 and 2, 3 and 4, ... have each job once between them.
        load : float
            In units of the log's.

        Raises
        ------
        UsageError
            If the number or the load is out of range.
        """
        _check(number, load)
        weeks = self.weeks // 2
        rows = np.arange(np.searchsorted(self._after, 2 * weeks * WEEK * self.workload.ticks))
        unit = self._owner[rows]
        if int(self._owner.max()) + 1 < _FEWEST_USERS:
            unit = unit * self.weeks + self._after[rows] // (WEEK * self.workload.ticks)
        unit = np.unique(unit, return_inverse=True)[1]
        jobs = slice(self.lead_in, self.lead_in + len(rows))
        area = self.workload.run_time[jobs].astype(np.float64) * self.workload.processors[jobs]
        work = np.bincount(unit, area)
        # The two with most work to different halves, then the next two, ...
        order = np.argsort(-work, kind="stable")
        first = generator(self.seed, _DEALING, 0, (number + 1) // 2).integers(0, 2, (len(work) + 1) // 2)
        side = np.empty(len(work), dtype=np.int64)
        side[order] = (np.repeat(first, 2)[: len(work)] + np.arange(len(work))) % 2
        mine = side == number % 2
        share = 2 * float(work[mine].sum()) / max(float(work.sum()), 1.0)
        kept = rows[mine[unit]]
        if not len(kept) or not share > 0:
            raise WorkloadError(
                f"{self.workload.name}: its {len(rows):,} jobs cannot be dealt to two halves, since one user has them "
                "all in one week; give a longer log"
            )
        random = generator(self.seed, _DEALING, 1, number)
        name = f"half {number}", f"half replica {number}: half of the users, moved by whole weeks of {weeks}"
        return self._moved(kept, weeks, random, (load, load / share), name)

    def _moved(
        self,
        kept: Int64Array,
        weeks: int,
        random: np.random.Generator,
        scaled: tuple[float, float],
        named: tuple[str, str],
    ) -> Workload:
        """Return a replica of the jobs at some places after the past.

        Parameters
        ----------
        kept : int64 array (jobs,)
            The places.
        weeks : int
            How long it is.
        random : Generator
            Of the moves.
        scaled : tuple of float
            The load that it has, in units of the log's, and what the times are divided by for that.
        named : tuple of str
            What it is called, and how it was made.
        """
        log, ticks, (load, faster) = self.workload, self.workload.ticks, scaled
        span = weeks * WEEK * ticks
        moves = random.integers(0, weeks, int(self._owner.max()) + 1)
        moved = random.uniform(-self.jitter, self.jitter, int(self._burst.max()) + 1)
        jitter = np.rint(moved * ticks).astype(np.int64)
        at = self._after[kept] + moves[self._owner[kept]] * WEEK * ticks + jitter[self._burst[kept]]
        at = np.rint(at % span / faster).astype(np.int64)
        order = np.lexsort((kept, self._owner[kept], at))
        first = int(log.submit[self.lead_in])
        rows = np.concatenate((np.arange(self.lead_in), self.lead_in + kept[order]))
        submit = np.concatenate((log.submit[: self.lead_in], first + at[order]))
        columns = {name: getattr(log, name)[rows] for name in ("run_time", "requested_time", "processors", "user")}
        return dataclasses.replace(
            log,
            name=f"{log.name}[{named[0]}]",
            origin=(
                f"{log.origin}; {named[1]}, bursts by up to {format_duration(self.jitter)}, load x {load:.3g}, "
                f"seed {self.seed}"
            ),
            job_id=np.arange(1, len(rows) + 1),
            submit=submit,
            start=np.full(len(rows), -1),
            attributes=None if log.attributes is None else log.attributes.select(rows),
            requests=None if log.requests is None else log.requests.repeated(rows, submit - log.submit[rows]),
            **columns,
        )


def _check(number: int, load: float) -> None:
    if number < 1:
        raise UsageError(f"replica number {number}; they are numbered from 1")
    if not 0.1 <= load <= 10:
        raise UsageError(f"a load of {load:g} times the log's; give 0.1 to 10")
