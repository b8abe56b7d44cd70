"""From a site's history to what is predicted of a job that is about to be submitted, as the engine does it in a run."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.engine.forest import Forest, forest_sum
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
    Past,
    describe,
    new_past,
)
from policyfactory.predict.features import TAU_S
from policyfactory.predict.history import NO_NAME, Ended, GroupKey, History, Means, UserPast
from policyfactory.predict.predictor import Forests

__all__ = ["Asked", "features_from", "predictions_from"]

_LEAST = 1e-6  # as in `policyfactory.engine.predicted`
_DIGITS = re.compile(r"[0-9]+")
_LONGEST_NAME = 100


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
    now = max(int(job.when.timestamp()), history.at, user.seen)
    executable = hashed(f"n{_DIGITS.sub('#', job.name)[:_LONGEST_NAME]}") if history.names and job.name else NO_NAME
    keys: tuple[GroupKey, ...] = (
        (0, job.p, job.q, executable),
        (1, 0, job.q, NO_NAME),
        (2, job.p, 0, NO_NAME),
        (3, 0, 0, executable),
        (4, 0, 0, NO_NAME),
    )
    groups = [user.groups.get(key) for key in keys]
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
    shortness, share = (math.exp(_sum(one, features)) for one in (forests.shortness, forests.share))
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
    asked = np.array([*((one.request, one.processors) for one in ended), started, (job.p, job.q)], dtype=np.float64)
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
    past.end[:count] = [one.end for one in ended]
    past.end[count] = now + 1 if last is not None and last.running else now
    past.before[:count] = np.arange(count) - 1
    own: Int64Array = past.by_user[0]
    own[[WAITING, RUNNING, ENDED]] = user.waiting, user.running, user.ended
    own[[SUBMITTED, BURST]] = user.submitted, user.burst
    own[[STARTED_LAST, ENDED_LAST]] = -1 if last is None else count, count - 1
    start = np.full(count + 2, -1, dtype=np.int64)
    start[count] = now if last is None else last.start
    return past, start


def _outcome(ended: list[Ended]) -> FloatArray:
    """Return the outcomes of ended jobs, and two rows that nobody reads."""
    run = np.maximum(np.array([one.run for one in ended], dtype=np.float64), 1.0)
    outcome = np.zeros((len(ended) + 2, 4))
    rows = outcome[: len(ended)]
    rows[:, 0], rows[:, 1] = np.log(run), TAU_S / np.maximum(run, TAU_S)
    rows[:, 2] = np.minimum(run / np.array([one.request for one in ended], dtype=np.float64), 1.0)
    rows[:, 3] = [one.status for one in ended]
    return outcome
