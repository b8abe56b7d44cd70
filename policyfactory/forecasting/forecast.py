"""When the jobs of a queue will start: many futures of it, and what they say of each job."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure
from policyfactory.core.random import check_seed
from policyfactory.core.text import format_duration, parse_duration, shortened
from policyfactory.forecasting.futures import Draws, queues_of, rules_of, starts_of
from policyfactory.forecasting.record import WEEK, QueueStanding, standing_of
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.slurm.explanation import ExplainedJob, Wait, explain_queue
from policyfactory.simulation.slurm.queue import find_job, keeps_out
from policyfactory.site.file import read_site
from policyfactory.site.model import Site
from policyfactory.site.submission import NEW, others, submitted
from policyfactory.statistics.calibration import LEVELS, TRUSTED, Stretch
from policyfactory.workload.accounting.times import until_midnight
from policyfactory.workload.jobs import Workload, zone
from policyfactory.workload.snapshot import QueuedJob, Snapshot, read_snapshot, usual_account

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# What keeps a job from starting whatever ends.
_OUTSIDE = {"held", "never", "begin", "dependency", "reservation"}
WITHOUT = "arrivals", "cancellations", "followers"  # what can be left out
_HOUR, _LETTERS = 3600, 24  # letters of a job's name and user in the picture


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class JobForecast:
    """When a waiting job will start.

    Parameters
    ----------
    job : QueuedJob
    starts : float64 array (futures,), s
        From the snapshot on, in each future; the horizon where it is later.
    horizon : int, s
    waits : tuple of Wait
        What it waits for, the main reason first; empty under EASY.
    midnight : int, s
        Until the end of the day on the cluster's clock, from the snapshot on.
    runs : float64 array, s
        What like jobs ran, within its limit.
    drawn : float64 array (futures,), s
        Its starts before they are stretched, by which it is compared with alternatives.
    plan : int or None
        When it would start if all ran to their limits and nobody submitted any more (s from the snapshot on), which is
        what Slurm's backfilling pass plans; None: not known.
    """

    job: QueuedJob
    starts: FloatArray
    horizon: int
    midnight: int
    runs: FloatArray
    drawn: FloatArray
    waits: tuple[Wait, ...] = ()
    plan: int | None = None

    @property
    def outside(self) -> str:
        """Why it takes no part in the queue; empty if it does."""
        never = self.waits and self.waits[0].kind in _OUTSIDE and (self.starts >= self.horizon).all()
        return self.waits[0].text if never else ""

    @property
    def quantiles(self) -> FloatArray:
        """Starts at the levels 0.05, 0.25, 0.5, 0.75 and 0.95: float64 (5,), s; infinite beyond the horizon."""
        found = np.quantile(self.starts, LEVELS)
        return np.where(found >= self.horizon, np.inf, found)

    @property
    def median(self) -> float:
        """The time by which it starts in half of the futures, s; infinite beyond the horizon."""
        return float(self.quantiles[2])

    def chance(self, seconds: float) -> float:
        """Return the probability that it starts within some seconds, at most the horizon.

        Raises
        ------
        UsageError
            If they are beyond the horizon.
        """
        if seconds > self.horizon:
            raise UsageError(
                f"a start within {format_duration(seconds)} is beyond the horizon of {format_duration(self.horizon)}; "
                "give a longer one (--horizon, at most 7d)"
            )
        return float((self.starts <= seconds).mean() if seconds < self.horizon else (self.starts < self.horizon).mean())

    def as_dict(self, seconds: int | None = None) -> dict[str, Any]:
        """Return it as plain JSON values; times are seconds from the snapshot on, null beyond the horizon.

        ``seconds``: within which the chance of a start is told as well.
        """

        def levels(values: FloatArray) -> dict[str, float | None]:
            return {f"{level:g}": _plain(value) for level, value in zip(LEVELS, values.tolist(), strict=True)}

        return {
            "job": self.job.name,
            **{name: getattr(self.job, name) for name in ("user", "account", "qos", "submit")},
            "partition": ",".join(self.job.partitions),
            "outside": self.outside or None,
            "median": None if self.outside else _plain(self.median),
            "quantiles": None if self.outside else levels(self.quantiles),
            "within_hour": None if self.outside else self.chance(min(_HOUR, self.horizon)),
            "today": None if self.outside else self.chance(min(self.midnight, self.horizon)),
            "within_asked": None if self.outside or seconds is None else self.chance(seconds),
            "within_horizon": None if self.outside else self.chance(self.horizon),
            "plan": self.plan,
            "run": levels(np.quantile(self.runs, LEVELS)),
            "waits": [dataclasses.asdict(wait) for wait in self.waits],
        }


def _plain(value: float) -> float | None:
    return round(value) if np.isfinite(value) else None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """Something else that a user could submit, in the same futures.

    Parameters
    ----------
    words : str
        What is other: ``with 4 h instead of 12 h``.
    found : JobForecast
    asked : JobForecast
        Of the job as it was asked for.
    """

    words: str
    found: JobForecast
    asked: JobForecast

    @property
    def earlier(self) -> float:
        """By how much it starts earlier, s: the mean over futures; negative for later."""
        return float(np.mean(self._gain))

    @property
    def sure(self) -> float:
        """In which part of the futures it starts earlier; later, if it mostly does."""
        return float((self._gain < 0).mean() if self.earlier < 0 else (self._gain > 0).mean())

    @property
    def _gain(self) -> FloatArray:
        # Stretching moves each of them by its own futures, and what is equal would differ.
        return self.asked.drawn - self.found.drawn

    @property
    def killed(self) -> float:
        """Which part of the jobs like the one that was asked for ran longer than the limit of this one."""
        limit = self.found.job.limit
        return 0.0 if limit is None else float((self.asked.runs > limit).mean())

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        gain = {"earlier": round(self.earlier), "sure": self.sure, "killed": self.killed}
        return {"words": self.words, **self.found.as_dict(), **gain}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """When the waiting jobs of a queue will start.

    Parameters
    ----------
    snapshot : Snapshot
    site : Site or None
        None: EASY on the log's processors.
    draws : Draws
    stretch : Stretch
        By which earlier forecasts were mended.
    jobs : tuple of JobForecast
        In the order of the queue, then those that are not in it.
    assumed : tuple of str
        What was assumed, in sentences.
    alternatives : tuple of Alternative
        To the job that is to be submitted, if one was given.
    predictor : Predictor
        What predicted run times.
    zone : tzinfo
        Of dates.
    """

    snapshot: Snapshot
    site: Site | None
    draws: Draws
    stretch: Stretch
    jobs: tuple[JobForecast, ...]
    assumed: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    predictor: Predictor = dataclasses.field(default_factory=Predictor)
    zone: dt.tzinfo = dt.UTC

    def find(self, name: str) -> JobForecast:
        """Return the forecast of a waiting job as squeue calls it.

        Raises
        ------
        UsageError
            If there is no such job, or it runs.
        """
        job = find_job(self.snapshot, name)
        found = next((its for its in self.jobs if its.job is job), None)
        if found is None:
            runs = job.state == "running"
            why = "runs already" if runs else "is none of these: of another user, or of a partition that is left out"
            raise UsageError(f"job {job.name} {why}; squeue -t PENDING lists those that wait")
        return found

    def of_user(self, user: str) -> Forecast:
        """Return the forecasts of a user's own jobs, and nothing about others."""
        jobs = tuple(its for its in self.jobs if its.job.user == user)
        # What a job waits for may name other users and their jobs.
        kept = tuple(dataclasses.replace(its, waits=tuple(_alone(wait) for wait in its.waits)) for its in jobs)
        return dataclasses.replace(self, jobs=kept)

    def as_dict(self, seconds: int | None = None) -> dict[str, Any]:
        """Return it as plain JSON values; ``seconds`` as of `JobForecast.as_dict`."""
        return {
            "schema_version": 1,
            "site": None if self.site is None else self.site.name,
            "taken": self.snapshot.taken,
            "futures": self.draws.futures,
            "seed": self.draws.seed,
            "horizon": self.draws.horizon,
            "calibrated_on": self.stretch.instants,
            "jobs": [job.as_dict(seconds) for job in self.jobs],
            "alternatives": [its.as_dict() for its in self.alternatives],
            "assumed": list(self.assumed),
        }

    def frame(self) -> pd.DataFrame:
        """Return the jobs as a table, a row each; times in seconds from the snapshot on, missing beyond the horizon."""
        import pandas as pd

        rows = [job.as_dict() for job in self.jobs]
        for row in rows:
            row.update({f"q{level}": value for level, value in (row.pop("quantiles") or {}).items()})
            row.update({f"run_q{level}": value for level, value in row.pop("run").items()})
            row["waits"] = "; ".join(wait["text"] for wait in row["waits"])
        return pd.DataFrame(rows)

    @keeps_settings
    def plot(self, most: int = 40) -> Figure:
        """Return a picture of the queue: each job's intervals over time.

        Parameters
        ----------
        most : int
            Of how many jobs, the first ones.
        """
        jobs = [its for its in self.jobs if not its.outside][:most]
        figure = new_figure(7.0, 1.2 + 0.22 * max(len(jobs), 1))
        axis = figure.subplots()
        colour, hours = COLOURS[0], self.draws.horizon / _HOUR
        for row, its in enumerate(jobs):
            low, quarter, median, most, high = np.minimum(its.quantiles / _HOUR, hours).tolist()
            axis.plot([low, high], [row, row], color=colour, linewidth=1.2, alpha=0.6, solid_capstyle="butt")
            axis.plot([quarter, most], [row, row], color=colour, linewidth=5, solid_capstyle="butt")
            if median < hours:
                axis.plot([median], [row], color="white", marker="|", markersize=7, markeredgewidth=1.4)
        axis.set_yticks(range(len(jobs)), [f"{its.job.name} {its.job.user}"[:_LETTERS] for its in jobs])
        axis.set_ylim(len(jobs) - 0.4, -0.6)
        ends = [its.quantiles[4] / _HOUR for its in jobs]
        axis.set_xlim(0, min(1.05 * max(ends, default=hours), hours))
        axis.set_xlabel("hours after the queue was printed (thick: 50 % of the futures, thin: 90 %)")
        return figure


def _alone(wait: Wait) -> Wait:
    return Wait(wait.kind, wait.kind, f"it waits for: {wait.kind}") if wait.kind in {"limit", "dependency"} else wait


def forecast(
    snapshot: Snapshot | Path | str,
    site: Site | Path | str | None,
    log: Workload | Path | str,
    *,
    submit: str | None = None,
    user: str = "",
    futures: int = 200,
    seed: int = 1,
    horizon: str | float = "1d",
    without: Collection[str] = (),
    cancelled: Int64Array | None = None,
    stretch: Stretch | None = None,
    predictor: Predictor | None = None,
    workers: int | None = None,
    follow: Callable[[float], object] = lambda _: None,
) -> Forecast:
    """Say when the waiting jobs of a queue will start.

    Parameters
    ----------
    snapshot : Snapshot or path
        The queue, as squeue or scontrol printed it.
    site : Site, path of a site file, or None
        The cluster and its rules; None: EASY backfilling, first come, first served, on the log's processors.
    log : Workload or path of a log
        What ran on it up to then: run times are predicted from it, and arrivals drawn. What it has of later times is
        not looked at.
    submit : str, optional
        A job that is not there yet, in options of sbatch (``"-N 16 -t 12:00:00"``): it is forecast as ``new``, beside
        what else could be asked for.
    user : str
        Who submits it.
    futures : int
        How many are simulated.
    seed : int
        Of the draws; the same seed gives the same forecast.
    horizon : str or float
        How far, a duration (``"2d"``) or seconds, at most 7 days.
    without : collection of str
        What is not drawn: ``"arrivals"``, ``"cancellations"``, ``"followers"``.
    cancelled : int64 array (n,), optional
        If ``log`` is a workload: when each of its jobs was cancelled before it started, on its clock (s); -1 where it
        was not (`policyfactory.workload.clean.read_with_cancelled`, by which a path is read).
    stretch : Stretch, optional
        What earlier forecasts on this cluster taught about its intervals (`policyfactory.forecasting.backtest`).
    predictor : Predictor, optional
        What predicts run times, so that nothing is trained: ``Predictor(forests=load_forests("model.json"))``, or that
        of an earlier forecast. By default one is trained on the log's last jobs, in some seconds.
    workers : int, optional
        Threads (default: the cores); the result does not depend on them.
    follow : callable
        Is told the part of the log that was looked at, from 0 to 1.

    Raises
    ------
    UsageError
        If a number is out of range, the queue has no job, or the log is too short or does not say when jobs started.
    SiteError
        If the queue is of another cluster than the site.
    EvaluationError
        If the log's requests tell the run times that are to be predicted.

    Examples
    --------
    >>> import policyfactory as pf
    >>> found = pf.forecast("queue.json", "site.toml", "cluster.swf")  # doctest: +SKIP
    >>> found.find("4711").median  # doctest: +SKIP
    5400.0
    """
    from policyfactory.workload.clean import read_with_cancelled

    draws = draws_of(futures, seed, horizon, without)
    snapshot = snapshot if isinstance(snapshot, Snapshot) else read_snapshot(snapshot)
    site = site if isinstance(site, Site | None) else read_site(site)
    log, cancelled = (log, cancelled) if isinstance(log, Workload) else read_with_cancelled(log)
    rules = _Rules(site, log, cancelled, draws, stretch or Stretch(), workers)
    if submit is None:
        return rules.forecast(snapshot, predictor, follow)
    job = submitted(submit, snapshot, site, user, usual_account(snapshot, log, user))
    found = rules.forecast(_with(snapshot, job), predictor, follow)
    known = f"of account {job.account}" if job.account else "of no account, so that no limit of one holds it"
    more = () if site is None else (f"the new job is {known} (-A says another one)",)
    found = dataclasses.replace(found, assumed=(*found.assumed, *more))
    asked = found.find(NEW)
    alternatives = (
        Alternative(words, rules.forecast(_with(snapshot, other), found.predictor).find(NEW), asked)
        for words, other in others(job, site)
    )
    # What can never start is none.
    return dataclasses.replace(found, alternatives=tuple(its for its in alternatives if not its.found.outside))


def _with(snapshot: Snapshot, job: QueuedJob) -> Snapshot:
    return dataclasses.replace(snapshot, jobs=(*snapshot.jobs, job))


class _Rules(NamedTuple):
    """What makes forecasts of queues of one cluster."""

    site: Site | None
    log: Workload
    cancelled: Int64Array | None
    draws: Draws
    stretch: Stretch
    workers: int | None

    def forecast(
        self,
        snapshot: Snapshot,
        predictor: Predictor | None,
        follow: Callable[[float], object] = lambda _: None,
    ) -> Forecast:
        """Return the forecast of a queue."""
        clock = zone(self.log.time_zone)[0] or dt.UTC
        if not snapshot.of("waiting"):
            return Forecast(snapshot, self.site, self.draws, self.stretch, (), snapshot.assumed, zone=clock)
        standing, assumed = standing_of(snapshot, self.site, self.log, self.cancelled, predictor, follow)
        snapshot, draws = standing.snapshot, self.draws
        explained: Sequence[ExplainedJob] = ()
        if self.site is not None:
            explanation = explain_queue(snapshot, self.site)
            ours = [text for text in explanation.assumed if text not in explanation.of_terms]
            explained, assumed = explanation.jobs, [*ours, *assumed]
        drawn = starts_of(standing, queues_of(standing, self.site, draws.horizon), draws, self.workers)
        parts = [job.het for job in snapshot.of("waiting")]
        for number in {*parts} - {0}:
            together = [column for column, its in enumerate(parts) if its == number]
            drawn[:, together] = drawn[:, together].max(axis=1, keepdims=True)
        starts = self.stretch.apply(drawn, draws.horizon)
        assumed += self._doubts(standing)
        waiting = snapshot.of("waiting")
        column = {id(job): number for number, job in enumerate(waiting)}
        order: Iterable[tuple[QueuedJob, ExplainedJob | None]] = ((its.job, its) for its in explained)
        if self.site is None:
            order = ((job, None) for job in waiting)
        midnight = until_midnight(snapshot.taken, clock)

        def told(job: QueuedJob, its: ExplainedJob | None) -> JobForecast:
            number = column[id(job)]
            like = standing.like[standing.running + number]
            mine = job, starts[:, number], draws.horizon, midnight, like, drawn[:, number]
            if its is None:
                why = keeps_out(job, standing.record.jobs.machine)
                return JobForecast(*mine, (Wait("held", shortened(why, 24), why),) if why else ())
            return JobForecast(*mine, its.waits, None if its.start is None else max(its.start - snapshot.taken, 0))

        jobs = tuple(told(job, its) for job, its in order)
        predictor = predictor or Predictor(trainings=standing.record.trainings)
        return Forecast(
            *(snapshot, self.site, draws, self.stretch, jobs, tuple(assumed)), predictor=predictor, zone=clock
        )

    def _doubts(self, standing: QueueStanding) -> Iterator[str]:
        """Give what speaks against the arrivals and the intervals, in sentences."""
        if self.draws.arrivals != "none":
            weeks = standing.record.weeks(standing.now, self.draws.horizon)
            if not weeks:
                yield f"nobody submits anything: {self.log.name} is not a week longer than the horizon"
            elif weeks[0][0] > WEEK:
                before = format_duration(weeks[0][0])
                yield f"arrivals are drawn from weeks {before} before and more, where the log ends"
        stretch, rules = self.stretch, rules_of(self.site)
        # A site has a name of its own; next month's log may have another one than this month's.
        other_log = self.site is None and stretch.log != self.log.name
        if stretch.rules and (other_log or stretch.rules != rules):
            yield (
                f"the calibration is of {stretch.log} by the rules of {stretch.rules}, not of {self.log.name} by those "
                f"of {rules}: intervals may be wrong; make the backtest of this cluster"
            )
        if stretch.inside < TRUSTED:
            yield (
                f"not to be trusted: in the backtest the intervals of 90 % contained {100 * stretch.inside:.0f} % of "
                "the starts"
            )
        if not stretch.instants:
            yield (
                "intervals are not calibrated on this cluster, where they may be too narrow: make a backtest of its "
                "log (forecast LOG --backtest 200 --output DIR), and give it (--calibration DIR)"
            )


def draws_of(futures: int, seed: int, horizon: str | float, without: Collection[str] = ()) -> Draws:
    """Return what is drawn.

    Raises
    ------
    UsageError
        If a number is out of range.
    """
    if not 1 <= futures <= 10_000:
        raise UsageError(f"futures {futures}: expected 1 to 10,000")
    seconds = parse_duration(horizon) if isinstance(horizon, str) else horizon
    if not 600 <= seconds <= WEEK:
        raise UsageError(f"horizon {horizon}: expected 10 minutes to 7 days, as in 1d or 36h")
    if strange := {*without} - {*WITHOUT}:
        raise UsageError(f"without {min(strange)!r}: expected one of {', '.join(WITHOUT)}")
    left_out: dict[str, Any] = dict.fromkeys(without, "none")
    return Draws(futures, check_seed(seed), round(seconds), **left_out)
