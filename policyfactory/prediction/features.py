"""From a workload to what predictions are made of: facts of each job, the groups that it belongs to, outcomes.

The features themselves are made by `policyfactory.engine.past` as the simulation goes on, from jobs that have ended,
run or wait in it.
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.engine.past import FACTS, FEATURES, GROUPS, usual_requests
from policyfactory.workload.jobs import Attributes, Workload, zone

FEATURE_SET = 1  # counted up when a feature changes: a model reads only those that it was trained on
TAU_S = 10.0
_TABLE = 1 << 20  # values below are numbered by a table, however few they are
_QUARTER = 900  # s: clocks change at full quarters of an hour

_FACTS = ("ln request", "ln processors", "memory", "queue", "partition", "hour", "weekday")
_RECENT = (
    *("ln last run", "ln run before", "ln run before that", "last status", "ln time since last end"),
    *("mean ln run of 20", "deviation of 20", "share of short of 20"),
)
_ALIKE = ("ln run of like jobs", "shortness of like jobs", "share of like jobs", "weight of like jobs", "most like")
_PRESENT = (
    *("waiting", "running", "ended", "ln time since last submission", "burst", "ln age of last start"),
    *("request of last start", "processors of last start", "request of last end"),
)
_GROUPS = (
    "user, request, processors, executable",
    "user, processors",
    "user, request",
    "user, executable",
    "user",
    "group",
    "request, processors",
)
_OUTCOMES = ("ln run", "shortness", "share", "number")
NAMES: tuple[str, ...] = (
    *(*_FACTS, *_RECENT, *_ALIKE, *_PRESENT),
    *(f"{outcome} by {group}" for group in _GROUPS for outcome in _OUTCOMES),
)
if (len(_FACTS), len(_GROUPS), len(NAMES)) != (FACTS, GROUPS, FEATURES):
    raise AssertionError("the names of the features are not those of policyfactory.engine.past")


class Known(NamedTuple):
    """What is given of n jobs; columns as of `policyfactory.engine.past.Past`.

    Parameters
    ----------
    user : int64 array (n,)
        From 0 without gaps; -1 if unknown.
    facts : float64 array (n, FACTS)
        Numbers that are known of a job by itself.
    groups : int64 array (n, GROUPS)
        The groups of like jobs; -1 for none.
    outcome : float64 array (n, 4)
        What is known of it when it has ended.
    """

    user: Int64Array
    facts: FloatArray
    groups: Int64Array
    outcome: FloatArray


def requests_of(workload: Workload) -> FloatArray:
    """Return the requests (s) as users write them: those that were raised to the run time are undone.

    A request that is unusual is replaced by the largest usual one below; see `policyfactory.engine.past`.
    """
    requests: FloatArray = _undone(workload) / workload.ticks
    return requests


def raised_requests(workload: Workload) -> NDArray[np.bool_]:
    """Return which requests tell the run time: bool array (n,).

    That are unusual ones that exceed it by less than a minute, above a usual one; and what equals it to the second.
    Under one that was raised lies a usual one, which is known; but that it was raised is known only afterwards.
    """
    beyond, minute = workload.requested_time - workload.run_time, 60 * workload.ticks
    raised: NDArray[np.bool_] = _undone(workload) != workload.requested_time
    told: NDArray[np.bool_] = (raised & (beyond >= 0) & (beyond < minute)) | workload.same_requests
    return told


def _undone(workload: Workload) -> Int64Array:
    values, which = np.unique(workload.requested_time, return_inverse=True)
    usual: Int64Array = usual_requests(workload.requested_time, which.astype(np.int64), values, 60 * workload.ticks)
    return usual


def known_of(workload: Workload) -> Known:
    """Return what is given of the jobs of a workload."""
    n = len(workload)
    attributes = workload.attributes or Attributes.unknown(n)
    # A raised request is of its own: to be alone in its group would tell that the job ran longer.
    wanted = _undone(workload)
    request, run = wanted / workload.ticks, np.maximum(workload.run_time / workload.ticks, 1.0)
    user = _numbered(workload.user)
    facts = np.empty((n, FACTS))
    facts[:, 0], facts[:, 1] = np.log(request), np.log(workload.processors)
    facts[:, 2], facts[:, 3], facts[:, 4] = attributes.requested_memory, attributes.queue, attributes.partition
    facts[:, 5], facts[:, 6] = _clock(workload)
    outcome = np.empty((n, 4))
    outcome[:, 0], outcome[:, 1] = np.log(run), TAU_S / np.maximum(run, TAU_S)
    outcome[:, 2], outcome[:, 3] = np.minimum(run / request, 1.0), attributes.status
    width, executable = workload.processors, attributes.executable
    kinds = (
        (user, wanted, width, executable),
        (user, width),
        (user, wanted),
        (user, executable),
        (user,),
        (np.maximum(attributes.group, -1),),
        (wanted, width),
    )
    return Known(user, facts, _grouped(kinds), outcome)


def missing(workload: Workload) -> tuple[str, ...]:
    """Return in words what predictions have to do without."""
    missed = []
    if not (workload.user >= 0).any():
        missed.append("users: nothing is left but requests, processors and what the groups of like jobs did")
    attributes = workload.attributes
    names = ("group", "executable", "queue", "requested_memory")
    absent = [name for name in names if attributes is None or not (getattr(attributes, name) >= 0).any()]
    if absent:
        missed.append(", ".join(name.replace("_", " ") for name in absent))
    return tuple(missed)


def _numbered(values: Int64Array) -> Int64Array:
    """Return numbers from 0 without gaps in the order of the values; -1 stays."""
    numbers = np.full(len(values), -1, dtype=np.int64)
    is_known = values >= 0
    numbers[is_known] = _dense(values[is_known])
    return numbers


def _dense(values: Int64Array) -> Int64Array:
    """Return what ``np.unique`` calls the inverse: which of the different values, in their order, each of them is."""
    least, largest = int(values.min(initial=0)), int(values.max(initial=0))
    if least < 0 or largest > _TABLE + 16 * len(values):
        return np.unique(values, return_inverse=True)[1]
    # Most are small: a table of those that occur takes a tenth of the time of sorting them.
    occurs = np.zeros(largest + 1, dtype=np.bool_)
    occurs[values] = True
    numbers: Int64Array = (np.cumsum(occurs, dtype=np.int64) - 1)[values]
    return numbers


def _grouped(kinds: tuple[tuple[Int64Array, ...], ...]) -> Int64Array:
    """Return the number of each job's group of each kind, numbered over all kinds; -1 if its first key is unknown."""
    groups = np.full((len(kinds[0][0]), len(kinds)), -1, dtype=np.int64)
    dense = {id(key): _dense(key - key.min(initial=0)) for keys in kinds for key in keys}
    first = 0
    for kind, keys in enumerate(kinds):
        rows = keys[0] >= 0
        if rows.any():
            which = dense[id(keys[0])][rows]
            for key in keys[1:]:
                # Pairs of two numbers from 0 are one number; they stay below the square of the number of jobs.
                numbers = dense[id(key)][rows]
                which = _dense(which * (int(numbers.max()) + 1) + numbers)
            which = _dense(which)
            groups[rows, kind] = which + first
            first += int(which.max()) + 1
    return groups


def local_seconds(workload: Workload) -> Int64Array:
    """Return the second of each submission since the Unix clock's 0, on the clock of the site if it is known.

    A log without a date has a clock of its own.
    """
    local = workload.submit // workload.ticks + (workload.unix_start or 0)
    clock = None if workload.unix_start is None else zone(workload.time_zone)[0]
    if clock is not None and len(local):
        quarters, which = np.unique(local // _QUARTER, return_inverse=True)
        offsets = [dt.datetime.fromtimestamp(int(quarter) * _QUARTER, clock).utcoffset() for quarter in quarters]
        local = local + np.array([0 if offset is None else int(offset.total_seconds()) for offset in offsets])[which]
    return local


def _clock(workload: Workload) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the hour of the day and the day of the week of each submission.

    A log without a date has weeks of its own.
    """
    local = local_seconds(workload)
    return local % 86_400 / 3600.0, ((local // 86_400) % 7).astype(np.float64)


# Predictions as they may be -------------------------------------------------------------------------------------------

# Predictions as they may be, where nothing was predicted yet: to learn the range of scores from.


_PURPOSE = 41


def possible_predictions(p: FloatArray) -> FloatArray:
    """Return e, s, e90, user_waiting, user_running as they may be of jobs that request ``p`` (s): float64 (5, n).

    Runs last from a thousandth of the request to all of it, as many within each factor of ten; the shortness is
    between that of a run of the mean and 1; users have from no job to some hundreds.
    """
    rng = generator(1, _PURPOSE, 1)
    e = np.maximum(p * 10.0 ** -(3.0 * rng.random(len(p))), 1.0)
    s = (10.0 / np.maximum(e, 10.0)) ** rng.random(len(p))
    users = [np.floor(np.exp(rng.random(len(p)) * 6.0)) - 1.0 for _ in range(2)]
    return np.stack([e, s, np.minimum(3.0 * e, p), *users])
