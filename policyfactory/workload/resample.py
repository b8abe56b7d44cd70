"""Resampled logs: new weeks put together from the weeks of each user of a real log.

Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering policies", IEEE TPDS
29(10), 2018, section 6.1.3; Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY
backfilling", CCGrid 2019, algorithm 1. For every week of the new log and every user, one week of the old log is drawn
uniformly, and that user's jobs of that week are submitted again at the same second of the new week.

What the papers leave open is decided here. Weeks last 604,800 s and are counted from the first submission; the
week that the log ends in is no whole week and is left out, its jobs are counted. At least two whole weeks are needed:
from one, every draw is the same, and draws that cannot differ say nothing about chance. Jobs of unknown users (-1) are
those of one user. A job keeps its run time, request, processors and user; its recorded start belongs to
another schedule and is dropped. Jobs of one second are ordered by user, then as in the log.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.options import Int64Array
from policyfactory.core.random import check_seed, generator
from policyfactory.core.text import DAY, HOUR, WEEK, counted, format_duration, parse_duration
from policyfactory.workload.jobs import Workload

DrawFrom = Literal["log", "active"]

MAX_WEEKS = 5_200
_LEAST_WEEKS = 2  # from one, every draw is the same
MAX_JOBS = 20_000_000
_PURPOSE = 1107  # our branch of the random streams
_YEAR_WEEKS = 52
_YEARS = re.compile(r"(\d{1,4})y", re.IGNORECASE)
_SMALL_TABLE = 1 << 22  # entries of a table of users and weeks: 32 MB at most
_AT_ONCE = 1 << 20  # draws that are held at a time, whatever the length


@dataclasses.dataclass(frozen=True, slots=True)
class Resampling:
    """How long a resampled log is and from which weeks a user's are drawn.

    Parameters
    ----------
    weeks : int or None
        Its length; None: the whole weeks of the log.
    draw : {"log", "active"}
        From all weeks of the log, also those in which the user was absent: the expected number of jobs and the
        expected work of a week are those of the log. Or only from weeks in which the user submitted something:
        every user is there every week, and the load is higher.

    Raises
    ------
    UsageError
        If the number of weeks is outside 1 to `MAX_WEEKS`, or the draw is neither.
    """

    weeks: int | None = None
    draw: DrawFrom = "log"

    def __post_init__(self) -> None:
        if self.draw not in get_args(DrawFrom):
            raise UsageError(f"draw is {self.draw!r}; choose one of {', '.join(get_args(DrawFrom))}")
        if self.weeks is not None and not 1 <= self.weeks <= MAX_WEEKS:
            raise UsageError(f"{self.weeks:,} weeks; a resampled log has 1 to {MAX_WEEKS:,}")

    def __str__(self) -> str:
        length = "as long as the log" if self.weeks is None else f"{self.weeks} weeks"
        return length if self.draw == "log" else f"{length}, every user every week"


def parse_length(text: str) -> int | None:
    """Return the weeks of ``2y`` (104: a year has 52 here), ``104w``, ``728d``; None for ``log`` (as long as the log).

    Raises
    ------
    UsageError
        If it is none of these, no whole number of weeks, or too long.
    """
    clean = text.strip().lower()
    if clean == "log":
        return None
    years = _YEARS.fullmatch(clean)
    expected = "write for example 2y (104 weeks), 26w, or log (as long as the log)"
    try:
        seconds = int(years.group(1)) * _YEAR_WEEKS * WEEK if years else parse_duration(clean)
    except UsageError:
        raise UsageError(f"length {text!r} is no length of a resampled log; {expected}") from None
    if math.isinf(seconds) or seconds % WEEK or not seconds:
        raise UsageError(f"length {text!r} is no whole number of weeks; {expected}")
    return Resampling(int(seconds) // WEEK).weeks


def _whole_weeks(submit: Int64Array, ticks: int) -> tuple[Int64Array, int, int, str]:
    """Return times after the first, how many whole weeks and jobs in these there are, and in words how long all is."""
    if not len(submit):
        return submit, 0, 0, "no time"
    after = submit - submit[0]
    weeks = int(after[-1] // (WEEK * ticks))
    jobs = int(np.searchsorted(after, weeks * WEEK * ticks))
    return after, weeks, jobs, format_duration(float(after[-1]) / ticks)


class UserWeeks:
    """The weeks of each user of a log, prepared once for any number of resamples.

    Memory is that of the log's jobs; a resample adds its own jobs and a bounded buffer.

    Parameters
    ----------
    workload : Workload
        The log.

    Attributes
    ----------
    workload : Workload
        The log.
    weeks : int
        Its whole weeks.
    jobs : int
        Jobs of those weeks.
    left_out : int
        Jobs after the last whole week.
    users : int
        Users with a job in the whole weeks; all unknown ones are one.

    Raises
    ------
    WorkloadError
        If the log has less than two whole weeks.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        after, self.weeks, self.jobs, span = _whole_weeks(workload.submit, workload.ticks)
        if self.weeks < _LEAST_WEEKS:
            have, why = (
                ("only one whole week", "every week drawn from it would be the same")
                if self.weeks
                else ("no whole week", "there is nothing to draw from")
            )
            raise WorkloadError(
                f"{workload.name}: {len(workload):,} jobs in {span} are {have}, so that {why}; give a log of at least "
                "two whole weeks"
            )
        self.left_out = len(workload) - self.jobs
        which, offset = np.divmod(after[: self.jobs], WEEK * workload.ticks)
        ids, user = np.unique(np.maximum(workload.user[: self.jobs], -1), return_inverse=True)
        self.users = len(ids)
        # The jobs in the order that they have within any new week: by second of the week, user, place.
        self._order = np.lexsort((np.arange(self.jobs), user, offset))
        self._offset = offset[self._order]
        self._find_blocks(user * self.weeks + which)

    def _find_blocks(self, key: Int64Array) -> None:
        """Group the ranks by ``key`` (user x weeks + week); a block is what one user submits in one week."""
        order = np.argsort(key, kind="stable")
        self._rank = np.argsort(self._order)[order]
        self._key, self._start, self._size = np.unique(key[order], return_index=True, return_counts=True)
        self._user_first = np.searchsorted(self._key, np.arange(self.users + 1) * self.weeks)
        self._block_of: Int64Array | None = None
        if self.users * self.weeks <= _SMALL_TABLE:
            # The block of each user and week, -1 if there is none: found at once, where memory allows.
            self._block_of = np.full(self.users * self.weeks, -1)
            self._block_of[self._key] = np.arange(len(self._key))

    def expected_jobs(self, draw: DrawFrom = "log") -> float:
        """Return how many jobs a resampled week has on average."""
        return self.jobs / self.weeks if draw == "log" else self._expected(np.ones(self.jobs), draw)

    def expected_work(self, draw: DrawFrom = "log") -> float:
        """Return run time x processors (s) of a resampled week on average; over machine x week it is the load."""
        area = self.workload.run_time[self._order].astype(np.float64) * self.workload.processors[self._order]
        return self._expected(area, draw) / self.workload.ticks

    def _expected(self, amount: NDArray[np.float64], draw: DrawFrom) -> float:
        blocks = np.add.reduceat(amount[self._rank], self._start)
        users = np.add.reduceat(blocks, self._user_first[:-1])
        return float((users / (self.weeks if draw == "log" else np.diff(self._user_first))).sum())

    def sample(self, weeks: int | None = None, seed: int = 0, number: int = 1, draw: DrawFrom = "log") -> Workload:
        """Return resample ``number``; the first weeks of a longer one are those of a shorter one.

        Parameters
        ----------
        weeks : int, optional
            Its length; as many as the log has if not given.
        seed : int
            Seed of the random numbers.
        number : int
            Which of the resamples of that seed, from 1; each has random numbers of its own.
        draw : {"log", "active"}
            See `Resampling`.

        Returns
        -------
        Workload
            Times on the log's clock, counted from its first submission (week 0 begins there, so that the time of
            the week is kept); without any job if no user's drawn week has one.

        Raises
        ------
        UsageError
            If an argument is out of range, or the result would have more than `MAX_JOBS` jobs.
        WorkloadError
            If the draw is from active weeks, and no user has two of them: every draw would be the same.
        """
        length = Resampling(self.weeks if weeks is None else weeks, draw).weeks or self.weeks
        if number < 1:
            raise UsageError(f"resample number {number}; they are numbered from 1")
        if draw == "active" and int(np.diff(self._user_first).max()) < _LEAST_WEEKS:
            raise WorkloadError(
                f"{self.workload.name}: each of its {self.users:,} users has jobs in one week only, so that every "
                "draw from active weeks would be the same; draw from all weeks (draw log), or give a longer log"
            )
        expected = length * self.expected_jobs(draw)
        if expected > MAX_JOBS:
            raise UsageError(
                f"{self.workload.name}: {length:,} weeks would have about {expected:,.0f} jobs, more than the "
                f"{MAX_JOBS:,} that are made; ask for fewer weeks"
            )
        random = generator(check_seed(seed), _PURPOSE, number)
        ranks, counts = [], []
        for first in range(0, length, self._weeks_at_once):
            uniform = random.random((min(self._weeks_at_once, length - first), self.users))
            some, each = self._draw(uniform, draw)
            ranks.append(some)
            counts.append(each)
        which = "weeks" if draw == "log" else "weeks in which the user was there"
        recipe = (
            f"resampled: {length} weeks, for each of {self.users} users every week one of the log's {self.weeks} "
            f"{which}, seed {seed}, number {number}"
        )
        return self._workload(np.concatenate(ranks), np.concatenate(counts), f"{self.workload.name}[r{number}]", recipe)

    @property
    def _weeks_at_once(self) -> int:
        return max(1, _AT_ONCE // self.users)

    def _draw(self, uniform: NDArray[np.float64], draw: DrawFrom) -> tuple[Int64Array, Int64Array]:
        """Return the ranks of the jobs of some new weeks, week by week, and the number of jobs of each."""
        first = self._user_first[:-1]
        if draw == "active":
            block = first + (uniform * np.diff(self._user_first)).astype(np.int64)
            drawn = np.ones(block.shape, dtype=np.bool_)
        else:
            key = np.arange(self.users) * self.weeks + (uniform * self.weeks).astype(np.int64)
            block = self._blocks(key)
            drawn = block >= 0
        counts = np.where(drawn, self._size[block], 0).sum(axis=1)
        size, start = self._size[block[drawn]], self._start[block[drawn]]
        ends = np.cumsum(size)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - size, size)
        ranks = self._rank[np.repeat(start, size) + within]
        edges = np.concatenate([[0], np.cumsum(counts)]).tolist()
        for begin, end in itertools.pairwise(edges):
            ranks[begin:end].sort()
        return ranks, counts

    def _blocks(self, key: Int64Array) -> Int64Array:
        """Return the block of each user and week; -1 if the user submitted nothing in that week."""
        if self._block_of is not None:
            return self._block_of[key]
        block = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        return np.where(self._key[block] == key, block, -1)

    def _workload(self, ranks: Int64Array, counts: Int64Array, name: str, recipe: str) -> Workload:
        log, rows = self.workload, self._order[ranks]
        submit = self._offset[ranks] + np.repeat(np.arange(len(counts)) * WEEK * log.ticks, counts)
        # Week 0 begins where the log does, also where the clock began earlier.
        unix_start = None if log.unix_start is None else log.unix_start + int(log.submit[0]) // log.ticks
        user = np.maximum(log.user[rows], -1)
        return _again(log, rows, submit, name, f"{log.origin}; {recipe}", user=user, unix_start=unix_start)


def _again(log: Workload, rows: Int64Array, submit: Int64Array, name: str, origin: str, **changes: Any) -> Workload:
    """Return jobs of a log that are submitted again at other times."""
    columns = {column: getattr(log, column)[rows] for column in ("run_time", "requested_time", "processors", "user")}
    return dataclasses.replace(
        log,
        name=name,
        origin=origin,
        job_id=np.arange(1, len(rows) + 1),
        submit=submit,
        start=np.full(len(rows), -1),
        attributes=None if log.attributes is None else log.attributes.select(rows),
        requests=None if log.requests is None else log.requests.repeated(rows, submit - log.submit[rows]),
        **columns | changes,
    )


def resample(workload: Workload, *, weeks: int, seed: int, number: int = 1, draw: DrawFrom = "log") -> Workload:
    """Return one resampled log of ``workload``; for several of one log prepare a `UserWeeks` once.

    Parameters
    ----------
    workload : Workload
        The log.
    weeks : int
        Length of the result.
    seed, number, draw
        As for `UserWeeks.sample`.

    Raises
    ------
    UsageError
        If an argument is out of range.
    WorkloadError
        If the log has less than two whole weeks, or draws from active weeks could not differ.

    Examples
    --------
    >>> import policyfactory as pf
    >>> log = pf.generate_lublin(256, 5000, seed=1)
    >>> pf.resample(log, weeks=2, seed=1)
    <Workload lublin-256[r1]: 1,289 jobs on 256 processors>
    """
    return UserWeeks(workload).sample(weeks, seed, number, draw)


# Replicas -------------------------------------------------------------------------------------------------------------

# A log with the weeks of its users moved against each other, its bursts jittered and its load scaled.
#
# Nothing is chosen on a single run: one week may hold a third of a log's slowdown. A replica has each job of the log
# once, which resampled weeks have not; so what a predictor learns of jobs that have ended it can not know of the same
# jobs submitted again.
#
# Each user's jobs move by a whole number of weeks, around the end of the log, so that the time of the week and nearly
# the whole of a user's history stay. Jobs of unknown users move day by day. Jobs of one user less than ten minutes
# apart are a burst, which then moves by at most the jitter. The load is scaled as is usual, by dividing all times
# between submissions.
#
# All replicas have the same jobs, so that what they have in common is no evidence: other users would bring other jobs.
# How much that matters is seen on half replicas, which come in pairs. The users are dealt to two halves of about the
# same work; each half has half the weeks, on which a user's weeks lie two by two, so that the load is that of the log.
# A statistic of a random half deviates from that of the whole as much, on average, as the whole from the truth (P. J.
# McCarthy, "Pseudo-replication: half samples", Review of the International Statistical Institute 37, 1969).


LOADS = (0.8, 1.2)
# Whole weeks that a part of a log needs for a verdict on it: evaluate/studies/null_logs.py tried these.
VERDICT_WEEKS = 6
_REPLICAS_PURPOSE, _DEALING = 1519, 1520  # our branches of the random streams
_BURST = 600  # s
_FEWEST_USERS = 12  # to be dealt whole: of fewer, the weeks of each are


def loads_of(count: int, loads: tuple[float, float] = LOADS) -> tuple[float, ...]:
    """Return the loads of replicas 1 to ``count``, in units of the log's: evenly between the bounds, in mixed order."""
    low, high = loads
    even = [low + (high - low) * (number + 0.5) / count for number in range(count)]
    # Neighbours in the order lie far apart, so that also a few of them span the bounds.
    return tuple(even[(number * _step(count)) % count] for number in range(count))


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
        after, self.weeks, self.jobs, span = _whole_weeks(workload.submit[lead_in:], workload.ticks)
        if self.weeks < _LEAST_WEEKS:
            raise WorkloadError(
                f"{workload.name}: {len(after):,} jobs in {span} are less than two whole weeks, so that no users can "
                "be moved against each other; give a longer log"
            )
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
        name = f"replica {number}", f"replica {number}: users moved by whole weeks of {self.weeks}"
        return self._copied(*self._sampled(number, load), load, name)

    def rows(self, number: int, load: float = 1.0) -> Int64Array:
        """Return which row of the log each job of `sample` is; parameters and errors as there."""
        return self._sampled(number, load)[0]

    def _sampled(self, number: int, load: float) -> tuple[Int64Array, Int64Array]:
        _check(number, load)
        random = generator(self.seed, _REPLICAS_PURPOSE, number)
        return self._moved(np.arange(self.jobs), self.weeks, random, load)

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
        return self._copied(*self._moved(kept, weeks, random, load / share), load, name)

    def _moved(
        self, kept: Int64Array, weeks: int, random: np.random.Generator, faster: float
    ) -> tuple[Int64Array, Int64Array]:
        """Return the rows of a replica of the jobs at some places after the past, and when they are submitted.

        Parameters
        ----------
        kept : int64 array (jobs,)
            The places.
        weeks : int
            How long it is.
        random : Generator
            Of the moves.
        faster : float
            What the times are divided by.
        """
        log, ticks = self.workload, self.workload.ticks
        span = weeks * WEEK * ticks
        moves = random.integers(0, weeks, int(self._owner.max()) + 1)
        moved = random.uniform(-self.jitter, self.jitter, int(self._burst.max()) + 1)
        jitter = np.rint(moved * ticks).astype(np.int64)
        instant = self._after[kept] + moves[self._owner[kept]] * WEEK * ticks + jitter[self._burst[kept]]
        instant = np.rint(instant % span / faster).astype(np.int64)
        order = np.lexsort((kept, self._owner[kept], instant))
        first = int(log.submit[self.lead_in])
        rows = np.concatenate((np.arange(self.lead_in), self.lead_in + kept[order]))
        return rows, np.concatenate((log.submit[: self.lead_in], first + instant[order]))

    def _copied(self, rows: Int64Array, submit: Int64Array, load: float, named: tuple[str, str]) -> Workload:
        """Return jobs of the log, submitted at other times; ``named``: what it is called, and how it was made."""
        log = self.workload
        origin = (
            f"{log.origin}; {named[1]}, bursts by up to {format_duration(self.jitter)}, load x {load:.3g}, "
            f"seed {self.seed}"
        )
        return _again(log, rows, submit, f"{log.name}[{named[0]}]", origin)


def _check(number: int, load: float) -> None:
    if number < 1:
        raise UsageError(f"replica number {number}; they are numbered from 1")
    if not 0.1 <= load <= 10:
        raise UsageError(f"a load of {load:g} times the log's; give 0.1 to 10")
