"""What forecasts are compared with: waits of like jobs, and gradient boosting on what is known of the queue.

The latter is what published work predicts waits with (a machine-learned model of queue length, work ahead, size, limit,
user and hour), given as well how long the job has waited already, and asked for quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY
from policyfactory.forecasting.record import JobRecord
from policyfactory.prediction.training import quantile_model
from policyfactory.statistics.calibration import LEVELS

_STARTED, _NEIGHBOURS = 4_000, 150  # the last started jobs that are looked at, and those that are taken
_USER = 5  # of a user, the last starts
_TREES = 150  # of a quantile


def waits_alike(record: JobRecord, rows: Int64Array, now: int, horizon: int) -> FloatArray:
    """Return quantiles of the waits of like jobs that started last, given how long each job has waited.

    Parameters
    ----------
    record : JobRecord
    rows : int64 array (k,)
        Jobs that wait.
    now : int
        Second of the record's clock.
    horizon : int, s

    Returns
    -------
    float64 array (5, k), s
        From then on, at `LEVELS`, at most the horizon.
    """
    jobs, start = record.jobs, record.start
    before = np.flatnonzero((start >= 0) & (start < now) & (jobs.submit >= now - 180 * DAY))
    before = before[np.argsort(start[before], kind="stable")][-_STARTED:]
    size, limit = np.log(jobs.processors), np.log(jobs.requested_time)
    wait, found = (start - jobs.submit)[before], np.empty((len(LEVELS), len(rows)))
    for column, row in enumerate(rows.tolist()):
        waited = now - jobs.submit[row]
        longer = np.flatnonzero(wait >= waited)
        if not len(longer):
            found[:, column] = horizon
            continue
        which = before[longer]
        far = np.abs(size[which] - size[row]) + np.abs(limit[which] - limit[row])
        near = np.argsort(far[::-1], kind="stable")[:_NEIGHBOURS]
        found[:, column] = np.quantile((wait[longer][::-1][near] - waited).astype(np.float64), LEVELS)
    return np.minimum(found, horizon)


def features_of(record: JobRecord, rows: Int64Array, now: int) -> FloatArray:
    """Return what is known of waiting jobs and their queue: float64 (k, 15); parameters as of `waits_alike`."""
    jobs, waiting, running = record.jobs, record.waiting(now), record.running(now)
    asked = jobs.processors * jobs.requested_time / jobs.machine
    ahead = np.cumsum(asked[waiting])
    left = np.maximum(record.start[running] + jobs.requested_time[running] - now, 0)
    load = float((left * jobs.processors[running]).sum()) / jobs.machine
    free = jobs.machine - int(jobs.processors[running].sum())
    position = np.searchsorted(waiting, rows)
    users = jobs.user[rows]
    hour = ((jobs.unix_start or 0) + now) / 3600
    same = np.array([int((jobs.user[waiting] == user).sum()) for user in users])
    common = [len(waiting), float(ahead[-1]) if len(waiting) else 0.0, len(running), load, free, hour % 24, hour % 168]
    return np.column_stack(
        [
            np.broadcast_to(np.array(common, dtype=np.float64), (len(rows), len(common))),
            np.log(jobs.processors[rows]),
            np.log(jobs.requested_time[rows]),
            now - jobs.submit[rows],
            position,
            ahead[position] - asked[rows],
            jobs.processors[rows] - free,
            same,
            _last_waits(record, users, now),
        ]
    )


def _last_waits(record: JobRecord, users: Int64Array, now: int) -> FloatArray:
    """Return the mean of the last waits of users, s; -1 where none is known."""
    recent = np.flatnonzero((record.start >= 0) & (record.start < now) & (record.jobs.submit >= now - 60 * DAY))
    recent = recent[np.argsort(record.start[recent], kind="stable")]
    waits: dict[int, float] = {}
    for user in {*users.tolist()}:
        mine = recent[record.jobs.user[recent] == user][-_USER:]
        waits[user] = float((record.start - record.jobs.submit)[mine].mean()) if len(mine) else -1.0
    return np.array([waits[user] for user in users.tolist()])


class Boosting:
    """Gradient boosting of quantiles, trained on the queues of earlier instants.

    Parameters
    ----------
    record : JobRecord
    instants : sequence of int
        Seconds of the record's clock, whose horizons are over when it is asked.
    horizon : int, s
    """

    def __init__(self, record: JobRecord, instants: Sequence[int], horizon: int) -> None:
        self._record, self._horizon = record, horizon
        features, starts = [], []
        for now in instants:
            rows = record.waiting(now)
            rows = rows[~np.isnan(record.starts(rows, now, horizon))]
            if len(rows):
                features.append(features_of(record, rows, now))
                starts.append(record.starts(rows, now, horizon))
        self._models = [
            quantile_model(np.concatenate(features), np.concatenate(starts), level, _TREES) for level in LEVELS
        ]

    def quantiles(self, rows: Int64Array, now: int) -> FloatArray:
        """Return the starts of waiting jobs at `LEVELS`: float64 (5, k), s from the instant on."""
        features = features_of(self._record, rows, now)
        found = np.array([model(features) for model in self._models])
        return np.clip(np.maximum.accumulate(found, axis=0), 0.0, self._horizon)
