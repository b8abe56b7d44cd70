"""How good forecasts are: at many instants of a log's second half, beside what else could be told a user.

Each instant is one vote, however many jobs wait. Intervals over weeks are those of `policyfactory.statistics`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.core.text import DAY, plain
from policyfactory.forecasting.forecast import WITHOUT, draws_of
from policyfactory.forecasting.futures import Draws, queues_of, rules_of, starts_of
from policyfactory.forecasting.record import WEEK, JobRecord, Loop, loop_of
from policyfactory.prediction.training import quantile_model
from policyfactory.site.file import read_site
from policyfactory.site.model import Site
from policyfactory.statistics.calibration import LEVELS, PastForecast, Score, Stretch, pinball, score_of, stretch_of
from policyfactory.statistics.evaluation import estimate_weekly
from policyfactory.statistics.intervals import Estimate
from policyfactory.workload.jobs import Workload

_INSTANTS, _TRAINED = 48, 1_000  # purpose of the random stream; instants that boosting learns from
_BLOCK = 2  # weeks that are drawn together
_CANDIDATES = 10  # of which one instant is taken
_RECENT = 100  # earlier forecasts by which the next are stretched
OURS, RAW, PLAN, ALIKE, BOOSTING = "forecast", "not calibrated", "plan by limits", "waits of like jobs", "boosting"
NO_ARRIVALS, NO_CANCELLATIONS, NO_FOLLOWERS = (f"without {name}" for name in WITHOUT)
TRUE_ARRIVALS, TRUE_RUNS = "true arrivals", "true run times"
OTHERS = (PLAN, ALIKE, BOOSTING)
# Those below it have as many futures, which alone costs a part in fifty.
QUARTER = "a quarter of the futures"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What was told at one instant, and what came.

    Parameters
    ----------
    now : int
        Second of the log's clock.
    rows : int64 array (k,)
        The waiting jobs, in rows of the record.
    is_new : bool array (k,)
        Which of them are submitted at that instant.
    start : float64 array (k,), s
        When they started, from the instant on, at most the horizon.
    quantiles : mapping of str to float64 array (5, k), s
        By method, at `LEVELS`.
    cancelled : int
        How many more waited, and were cancelled before they started.
    """

    now: int
    rows: Int64Array
    is_new: NDArray[np.bool_]
    start: FloatArray
    quantiles: Mapping[str, FloatArray]
    cancelled: int = 0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """Forecasts of a log's instants and what came.

    Parameters
    ----------
    loop : Loop
    draws : Draws
    told : tuple of Told
        In the order of time; those of the second half.
    stretch : Stretch
        What the last of them teach, for forecasts after the log.
    """

    loop: Loop
    draws: Draws
    told: tuple[Told, ...]
    stretch: Stretch

    @property
    def methods(self) -> tuple[str, ...]:
        """What is compared: ours, other methods, and ours with less or more known."""
        return tuple(self.told[0].quantiles)

    @property
    def changed(self) -> tuple[str, ...]:
        """Those of the methods that are ours with less or more known, to be compared with `QUARTER`."""
        return self.methods[self.methods.index(QUARTER) + 1 :]

    def score(self, method: str, which: Callable[[Told], NDArray[np.bool_]] | None = None) -> Score:
        """Return how good a method is.

        Parameters
        ----------
        method : str
            One of `methods`.
        which : callable, optional
            Says which jobs of an instant count; without it those that waited before it.
        """
        chosen = ((told, (which or waited)(told)) for told in self.told)
        return score_of(
            [(told.quantiles[method][:, mine], told.start[mine]) for told, mine in chosen], self.draws.horizon
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain JSON values."""
        return {
            "schema_version": 1,
            "log": self.loop.record.jobs.name,
            "site": None if self.loop.site is None else self.loop.site.name,
            **dataclasses.asdict(self.draws),
            "recorded": self.loop.is_recorded,
            "cancelled": sum(told.cancelled for told in self.told),
            "methods": {name: plain(dataclasses.asdict(self.score(name))) for name in self.methods},
            "loss_over": {name: plain(dataclasses.asdict(self.loss_ratio(OURS, name))) for name in (*OTHERS, RAW)},
            "loss_over_quarter": {
                name: plain(dataclasses.asdict(self.loss_ratio(QUARTER, name))) for name in self.changed
            },
            "calibration": plain(dataclasses.asdict(self.stretch)),
            "assumed": list(self.loop.assumed),
        }

    def loss_ratio(self, method: str, other: str) -> Estimate:
        """Return the pinball loss of a method over that of another one, with its interval over weeks."""
        first = self.told[0].now if self.told else 0
        week = np.array([(told.now - first) // WEEK for told in self.told], dtype=np.int64)

        def by_week(name: str) -> FloatArray:
            losses = [pinball(told.quantiles[name], told.start)[waited(told)] for told in self.told]
            return np.bincount(week, [its.mean() if its.size else 0.0 for its in losses]).astype(np.float64)

        return estimate_weekly(by_week(method), by_week(other), _BLOCK)


def waited(told: Told) -> NDArray[np.bool_]:
    """Tell which jobs waited before the instant."""
    return ~told.is_new


def backtest(
    log: Workload | Path | str,
    site: Site | Path | str | None = None,
    instants: int = 200,
    *,
    futures: int = 200,
    seed: int = 1,
    horizon: str | float = "1d",
    cancelled: Int64Array | None = None,
    recorded: bool = False,
    workers: int | None = None,
    follow: Callable[[float], object] = lambda _: None,
) -> Backtest:
    """Forecast at instants of a log's second half, and compare with what came.

    Parameters
    ----------
    log : Workload or path of a log
    site : Site, path of a site file, or None
        The cluster and its rules; None: EASY, first come, first served, on the log's processors.
    instants : int
        How many; half as many in the quarter before, only for calibration.
    futures, seed, horizon, cancelled, workers
        As for `policyfactory.forecasting.forecast.forecast`.
    recorded : bool
        By the starts that the log records; else the log is simulated first, and its queues are those of the simulation.
    follow : callable
        Is told the part that is done, from 0 to 1.

    Raises
    ------
    UsageError
        If a number is out of range, the log is too short, or does not say when jobs started though that is asked for.
    EvaluationError
        If nobody waits, or requests tell the run times that are to be predicted.
    SiteError
        If the log is of another cluster than the site.
    """
    from policyfactory.workload.clean import read_with_cancelled

    draws = draws_of(futures, seed, horizon)
    if not 10 <= instants <= 10_000:
        raise UsageError(f"backtest {instants}: expected 10 to 10,000 instants")
    log, cancelled = (log, cancelled) if isinstance(log, Workload) else read_with_cancelled(log)
    site = site if isinstance(site, Site | None) else read_site(site)
    times = _times(log, draws.horizon)
    candidates = times.draw(instants * _CANDIDATES, seed, times.quarter, times.last)
    loop = loop_of(log, site, candidates, cancelled, is_recorded=recorded, follow=lambda part: follow(0.2 * part))
    chosen = _chosen(loop, candidates, instants, times)
    models = _boostings(loop, times, seed)
    told: list[Told] = []
    outcomes: list[tuple[int, PastForecast]] = []
    for number, now in enumerate(chosen):
        its = _tell(loop, now, draws, workers, models, outcomes)
        told.append(its)
        outcomes.append((now, (its.quantiles[RAW][:, waited(its)], its.start[waited(its)])))
        follow(0.2 + 0.8 * (number + 1) / len(chosen))
    last = _stretch(outcomes, int(loop.record.jobs.submit[-1]) + 2 * draws.horizon, draws.horizon)
    found = Backtest(loop, draws, tuple(its for its in told if its.now >= times.half), last)
    last = dataclasses.replace(last, log=log.name, rules=rules_of(site), inside=found.score(OURS).inside90)
    return dataclasses.replace(found, stretch=last)


class _Times(NamedTuple):
    """When a log's quarter and half are over, and the last instant before whose horizon it ends; its submissions."""

    quarter: int
    half: int
    last: int
    submit: Int64Array

    def draw(self, count: int, seed: int, first: int, last: int) -> Int64Array:
        """Return submissions after times that are drawn, ascending."""
        drawn = generator(seed, _INSTANTS, count).integers(first, last, size=count)
        return np.unique(self.submit[np.minimum(np.searchsorted(self.submit, drawn), len(self.submit) - 1)])


def _times(log: Workload, horizon: int) -> _Times:
    first, end = (int(log.submit[0]), int(log.submit[-1])) if len(log) else (0, 0)
    half = first + (end - first) // 2
    if end - horizon <= half + WEEK:
        raise UsageError(
            f"{log.name}: its second half is not a week longer than the horizon; give a longer log, or a shorter "
            "horizon"
        )
    return _Times(first + (end - first) // 4, half, end - horizon, log.submit)


def _chosen(loop: Loop, candidates: Int64Array, instants: int, times: _Times) -> list[int]:
    """Return instants at which a job has waited already: so many of the second half, half as many of the time before.

    Raises
    ------
    EvaluationError
        If there are none.
    """
    submit = loop.record.jobs.submit
    queued = [now for now in candidates.tolist() if (submit[loop.record.waiting(now)] < now).any()]
    parts = [now for now in queued if now < times.half], [now for now in queued if now >= times.half]
    if len(parts[1]) < 2:
        raise EvaluationError(
            f"{loop.record.jobs.name}: hardly a job waits in its second half; there is nothing to forecast"
        )
    found = []
    for part, count in zip(parts, (-(-instants // 2), instants), strict=True):
        found += (
            [part[number] for number in np.unique(np.linspace(0, len(part) - 1, count).astype(int))] if part else []
        )
    return found


def _boostings(loop: Loop, times: _Times, seed: int) -> list[tuple[int, Boosting]]:
    """Return models by the instants from which on they are in force: at the half, and half way from there."""
    first, horizon = int(times.submit[0]), int(times.submit[-1]) - times.last
    return [
        (since, Boosting(loop.record, times.draw(_TRAINED, seed, first, since - horizon).tolist(), horizon))
        for since in (times.half, (times.half + times.last) // 2)
    ]


def _tell(
    loop: Loop,
    now: int,
    draws: Draws,
    workers: int | None,
    models: Sequence[tuple[int, Boosting]],
    outcomes: Sequence[tuple[int, PastForecast]],
) -> Told:
    """Return what each method tells at an instant; before the first model only that of which others learn."""
    record, standing, horizon = loop.record, loop.standing(now), draws.horizon
    queues, rows = queues_of(standing, loop.site, horizon), standing.rows[standing.running :]
    starts = starts_of(standing, queues, draws, workers)

    few = dataclasses.replace(draws, futures=-(-draws.futures // 4))

    def by(**changes: Any) -> FloatArray:
        return np.quantile(starts_of(standing, queues, dataclasses.replace(few, **changes), workers), LEVELS, axis=0)

    quantiles = {RAW: np.quantile(starts, LEVELS, axis=0)}
    if models[0][0] <= now:
        stretch = _stretch(outcomes, now, horizon)
        model = next(model for since, model in reversed(models) if since <= now)
        quantiles = {
            OURS: np.quantile(stretch.apply(starts, horizon), LEVELS, axis=0),
            PLAN: by(run_times="limit", arrivals="none", cancellations="none"),
            ALIKE: waits_alike(record, rows, now, horizon),
            BOOSTING: model.quantiles(rows, now),
            **quantiles,
            QUARTER: by(),
            NO_ARRIVALS: by(arrivals="none"),
            NO_FOLLOWERS: by(followers="none"),
            **({NO_CANCELLATIONS: by(cancellations="none")} if record.has_cancelled else {}),
            TRUE_ARRIVALS: by(arrivals="true"),
            TRUE_RUNS: by(run_times="true"),
        }
    start = record.starts(rows, now, horizon)
    # Of a held job nothing is told.
    kept = ~np.isnan(start) & ~np.array([job.held for job in standing.snapshot.of("waiting")], dtype=bool)
    quantiles = {name: its[:, kept] for name, its in quantiles.items()}
    return Told(
        now, rows[kept], record.jobs.submit[rows[kept]] == now, start[kept], quantiles, int(np.isnan(start).sum())
    )


def _stretch(outcomes: Iterable[tuple[int, PastForecast]], now: int, horizon: int) -> Stretch:
    """Return what the last forecasts teach whose horizons are over."""
    return stretch_of([outcome for before, outcome in outcomes if before + horizon <= now][-_RECENT:], horizon)


# What forecasts are compared with -------------------------------------------------------------------------------------

# Waits of like jobs, and gradient boosting on what is known of the queue. The latter is what published work predicts
# waits with (a machine-learned model of queue length, work ahead, size, limit, user and hour), given as well how long
# the job has waited already, and asked for quantiles.


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
