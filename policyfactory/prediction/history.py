"""What a site's scheduler has seen of its users' jobs, between two looks at the accounting.

The same numbers as `policyfactory.engine.past` has of a simulation, made of jobs that the accounting shows: ends are
noted once each, in their order; what waits and runs is that of the last look. Names are known by hashes only.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import heapq
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.past import (
    BURST,
    COUNT,
    ENDED,
    ENDED_LAST,
    FACTS,
    FEATURES,
    GROUPS,
    RUNNING,
    STARTED_LAST,
    SUBMITTED,
    UNKNOWN,
    WAITING,
    Forest,
    Past,
    describe,
    forest_sum,
    new_past,
)
from policyfactory.prediction.features import TAU_S
from policyfactory.prediction.training import Forests

MOST_JOBS = 60  # ended jobs of a user: as many as are looked at
BURST_S = 600  # as in `policyfactory.engine.past`, like the next one
_RENEWAL = 0.1

T = TypeVar("T")
# Kind, request (s), processors, executable; what a kind does not look at is 0 or "-".
GroupKey = tuple[int, int, int, str]
NO_NAME = "-"
_DIGITS = re.compile(r"[0-9]+")
_LONGEST_NAME = 100


def group_keys(request: int, processors: int, executable: str) -> tuple[GroupKey, ...]:
    """Return the groups of like jobs of one user that a job belongs to, by `GROUPS` of the engine."""
    return (
        (0, request, processors, executable),
        (1, 0, processors, NO_NAME),
        (2, request, 0, NO_NAME),
        (3, 0, 0, executable),
        (4, 0, 0, NO_NAME),
    )


def without_numbers(name: str) -> str:
    """Return the name of a job with one ``#`` for each number, at most 100 bytes of UTF-8."""
    cut = _DIGITS.sub("#", name).encode("utf-8", "surrogateescape")[:_LONGEST_NAME]
    return cut.decode("utf-8", "surrogateescape")


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much is kept; what has gone without a change for longest goes first.

    Parameters
    ----------
    users : int
        Users.
    user_groups : int
        Groups of like jobs of one user.
    groups : int
        Groups of users, and as many times ten of jobs that ask for the same.
    noted : int
        Ended jobs that are known by their numbers, so that none is noted twice.
    noted_s : int
        For how long they are (s): an end that the accounting shows later than that is not noted.

    Raises
    ------
    UsageError
        If a number is out of range.
    """

    users: int = 5_000
    user_groups: int = 200
    groups: int = 2_000
    noted: int = 200_000
    noted_s: int = 2 * 86_400

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not 1 <= value <= 1_000_000:
                raise UsageError(f"history: {field.name} is {value}; choose 1 to 1,000,000")


class Ended(NamedTuple):
    """A job that has ended: when (Unix s), request (s), processors, run time (s), status as in field 11 of SWF."""

    end: int
    request: int
    processors: int
    run: int
    status: int


class Started(NamedTuple):
    """The job that a user's last start was: when (Unix s), request (s), processors, whether it runs (0 or 1)."""

    start: int
    request: int
    processors: int
    running: int


@dataclasses.dataclass(slots=True)
class Means:
    """Means over a group's ended jobs, in which the newest has a tenth at least.

    Parameters
    ----------
    ln_run, shortness, share : float
        Of ln of the run time (s), 10 / max(run time, 10), run time over request (at most 1).
    count : int
        How many have ended.
    last : int
        End of the last, Unix s.
    """

    ln_run: float = 0.0
    shortness: float = 0.0
    share: float = 0.0
    count: int = 0
    last: int = 0

    def note(self, job: Ended) -> None:
        """Note the end of a job."""
        run = max(float(job.run), 1.0)
        self.count += 1
        self.last = job.end
        part = max(1.0 / self.count, _RENEWAL)
        self.ln_run += part * (math.log(run) - self.ln_run)
        self.shortness += part * (TAU_S / max(run, TAU_S) - self.shortness)
        self.share += part * (min(run / job.request, 1.0) - self.share)


@dataclasses.dataclass(slots=True)
class UserPast:
    """What one user did.

    Parameters
    ----------
    waiting, running : int
        Jobs that wait and run, at the last look.
    ended : int
        Jobs that have ended.
    submitted : int
        Last submission, Unix s; -1 for none.
    burst : int
        Submissions of the present burst before the last one.
    started : Started or None
        The last start.
    jobs : list of Ended
        The last ones, the newest last.
    groups : dict
        Means of groups of like jobs of this user.
    """

    waiting: int = 0
    running: int = 0
    ended: int = 0
    submitted: int = -1
    burst: int = 0
    started: Started | None = None
    jobs: list[Ended] = dataclasses.field(default_factory=list)
    groups: dict[GroupKey, Means] = dataclasses.field(default_factory=dict)

    @property
    def seen(self) -> int:
        """When something was last seen of the user, Unix s."""
        return max(self.submitted, self.jobs[-1].end if self.jobs else -1, self.started.start if self.started else -1)

    def note_end(self, job: Ended, executable: str = NO_NAME) -> None:
        """Note the end of a job of this user; of its executable the hash."""
        self.ended += 1
        self.jobs.append(job)
        del self.jobs[:-MOST_JOBS]
        for key in group_keys(job.request, job.processors, executable):
            self.groups.setdefault(key, Means()).note(job)

    def note_submission(self, when: int, tasks: int = 1) -> None:
        """Note that the user submitted as many jobs as ``tasks``."""
        again = self.submitted >= 0 and when - self.submitted < BURST_S
        self.burst = self.burst + tasks if again else tasks - 1
        self.submitted = when


class Asleep(NamedTuple):
    """What a file has of a user of whom nothing waits or runs, taken apart only when something happens.

    Parameters
    ----------
    seen : int
        When something was last seen of the user, Unix s.
    text : str
        As it is in the file.
    read : function of str to UserPast
        Takes the text apart; raises InputError where it is damaged.
    """

    seen: int
    text: str
    read: Callable[[str], UserPast]


@dataclasses.dataclass(slots=True)
class History:
    """What was seen of all users up to an instant.

    Parameters
    ----------
    instant : int
        Unix s; nothing that happened later is in it. -1: nothing was seen yet.
    users : dict of str to UserPast
        By the hash of the user's number; some may be asleep.
    groups, shapes : dict of str to Means
        By the hash of the group's number; by that of request and processors.
    noted : dict of str to int
        Job number and end of the jobs that ended last.
    floor : int
        Jobs that ended up to then, and are not among the noted, were noted or never will be.
    asleep : dict of str to Asleep
        The other users.
    names : bool
        Whether groups of like jobs are told apart by the names of jobs, too.
    """

    instant: int = -1
    users: dict[str, UserPast] = dataclasses.field(default_factory=dict)
    groups: dict[str, Means] = dataclasses.field(default_factory=dict)
    shapes: dict[str, Means] = dataclasses.field(default_factory=dict)
    noted: dict[str, int] = dataclasses.field(default_factory=dict)
    floor: int = -1
    asleep: dict[str, Asleep] = dataclasses.field(default_factory=dict)
    names: bool = False

    def user(self, name: str) -> UserPast | None:
        """Return what was seen of a user, None for a new one.

        Raises
        ------
        InputError
            If what the file has is damaged.
        """
        if name in self.asleep:
            sleeping = self.asleep.pop(name)
            self.users[name] = sleeping.read(sleeping.text)
        return self.users.get(name)

    def forget(self, limits: HistoryLimits) -> None:
        """Keep no more than the limits allow; what a prediction looks at is in `policyfactory.engine.past`."""
        both: dict[str, UserPast | Asleep] = _latest(
            {**self.users, **self.asleep}, limits.users, lambda user: user.seen
        )
        self.users = {name: user for name, user in both.items() if isinstance(user, UserPast)}
        self.asleep = {name: user for name, user in both.items() if isinstance(user, Asleep)}
        self.groups = _latest(self.groups, limits.groups, lambda means: means.last)
        self.shapes = _latest(self.shapes, 10 * limits.groups, lambda means: means.last)
        for user in self.users.values():
            user.groups = _latest(user.groups, limits.user_groups, lambda means: means.last)
        kept = _latest(self.noted, limits.noted, int)
        lost = max((end for name, end in self.noted.items() if name not in kept), default=-1)
        self.floor = max(self.floor, self.instant - limits.noted_s, lost)
        self.noted = {name: end for name, end in kept.items() if end > self.floor}


def _latest(table: dict[Any, T], most: int, when: Callable[[T], int]) -> dict[Any, T]:
    """Return the entries that changed last, in their order."""
    if len(table) <= most:
        return table
    names: Iterable[Any] = heapq.nlargest(most, table, key=lambda name: (when(table[name]), str(name)))
    kept = set(names)
    return {name: value for name, value in table.items() if name in kept}


# From a site's history to what is predicted of a job that is about to be submitted ------------------------------------

# As the engine does it in a run.


_LEAST = 1e-6  # as in `policyfactory.engine.predicted`


class Asked(NamedTuple):
    """What is known of a job at its submission.

    Parameters
    ----------
    user, group : int
        Numbers of its user and Unix group; -1 for an unknown group.
    p, q : int
        Request (s), processors.
    when : datetime
        Of the submission, on the clock of the site.
    name : str
        Its name; empty if it is not known.
    """

    user: int
    p: int
    q: int
    when: dt.datetime
    group: int = -1
    name: str = ""


def features_from(history: History, hashed: Callable[[str], str], job: Asked) -> FloatArray:
    """Return the features of a job; memory, queue and partition are unknown.

    Parameters
    ----------
    history : History
        What was seen of the users.
    hashed : function of str to str
        The hash of a name.
    job : Asked
        The job.

    Returns
    -------
    float64 array (FEATURES,)
        As of `policyfactory.engine.past.describe`.
    """
    user = history.user(hashed(f"u{job.user}")) or UserPast()
    # What the history has is not later than the submission, whatever the clocks say.
    now = max(int(job.when.timestamp()), history.instant, user.seen)
    executable = hashed(f"n{without_numbers(job.name)}") if history.names and job.name else NO_NAME
    groups = [user.groups.get(key) for key in group_keys(job.p, job.q, executable)]
    groups += [history.groups.get(hashed(f"g{job.group}")), history.shapes.get(hashed(f"s{job.p}/{job.q}"))]
    past, start = _as_past(user, groups, job, now)
    features = np.empty(FEATURES)
    describe(past, start, len(user.jobs) + 1, now, features)
    return features


def predictions_from(forests: Forests, features: FloatArray) -> FloatArray:
    """Return e, s, e90, user_waiting and user_running of a job: float64 array (5,).

    Parameters
    ----------
    forests : Forests
        A trained model; without trees for the ninth decile e90 is the request.
    features : float64 array (FEATURES,)
        Of the job.
    """
    request = math.exp(features[0])
    shortness, share = (math.exp(_sum(forest, features)) for forest in (forests.shortness, forests.share))
    tail = _sum(forests.tail, features) if len(forests.tail.roots) else 1.0
    present = features[FACTS + 13 : FACTS + 15]
    return np.array([_bounded(share) * request, _bounded(shortness), _bounded(tail) * request, *present])


def _sum(forest: Forest, features: FloatArray) -> float:
    return float(forest_sum(forest, features))


def _bounded(value: float) -> float:
    return min(max(value, _LEAST), 1.0)


def _as_past(user: UserPast, groups: list[Means | None], job: Asked, now: int) -> tuple[Past, Int64Array]:
    """Return the past of a run in which this user did what the history has, then this job; and the starts in it."""
    ended, last = user.jobs, user.started
    count = len(ended)
    started = (job.p, job.q) if last is None else (last.request, last.processors)
    asked = np.array(
        [*((past_job.request, past_job.processors) for past_job in ended), started, (job.p, job.q)], dtype=np.float64
    )
    facts = np.full((count + 2, FACTS), UNKNOWN)
    facts[:, :2] = np.log(asked)
    clock = job.when
    facts[-1, 5] = (3600 * clock.hour + 60 * clock.minute + clock.second) / 3600
    facts[-1, 6] = (clock.weekday() - 3) % 7  # from Thursday, as the first of January 1970 was
    kinds = np.full((count + 2, GROUPS), -1, dtype=np.int64)
    kinds[-1] = np.arange(GROUPS)
    past = new_past(np.zeros(count + 2, dtype=np.int64), facts, kinds, _outcome(ended), 1)
    for kind, means in enumerate(groups):
        if means is not None:
            past.by_group[kind, :COUNT] = means.ln_run, means.shortness, means.share
            past.by_group[kind, COUNT] = means.count
    past.end[:count] = [past_job.end for past_job in ended]
    past.end[count] = now + 1 if last is not None and last.running else now
    past.before[:count] = np.arange(count) - 1
    counts: Int64Array = past.by_user[0]
    counts[[WAITING, RUNNING, ENDED]] = user.waiting, user.running, user.ended
    counts[[SUBMITTED, BURST]] = user.submitted, user.burst
    counts[[STARTED_LAST, ENDED_LAST]] = -1 if last is None else count, count - 1
    start = np.full(count + 2, -1, dtype=np.int64)
    start[count] = now if last is None else last.start
    return past, start


def _outcome(ended: list[Ended]) -> FloatArray:
    """Return the outcomes of ended jobs, and two rows that nobody reads."""
    run = np.maximum(np.array([past_job.run for past_job in ended], dtype=np.float64), 1.0)
    outcome = np.zeros((len(ended) + 2, 4))
    rows = outcome[: len(ended)]
    rows[:, 0], rows[:, 1] = np.log(run), TAU_S / np.maximum(run, TAU_S)
    rows[:, 2] = np.minimum(run / np.array([past_job.request for past_job in ended], dtype=np.float64), 1.0)
    rows[:, 3] = [past_job.status for past_job in ended]
    return outcome
