"""Episodes in mode paper: the program of RLScheduler to the letter, with its view, rewards at the end and windows.

A choice is committed: the clock goes on until the chosen job fits, and later arrivals cannot overtake it. 128 waiting
jobs are shown at most. docs/rlscheduler.md has the rules, and what they cost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.compat.rlscheduler import (
    FEATURES,
    FIRST,
    FREE,
    NEXT,
    NOW,
    QUEUED,
    SHOWN,
    VIEW,
    new_episodes,
    reset_all,
    step_all,
)
from policyfactory.policy.network import Mode
from policyfactory.policy.store import PolicyLike
from policyfactory.search.environment.episodes import EpisodeGroup, EpisodeOptions, Look, scored
from policyfactory.simulate.compat import CommittedLog
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import RLSCHEDULER_JOBS

__all__ = ["COLUMNS", "PaperEpisodes", "PaperLog"]

# What is shown of a waiting job, each at most 1 - 1e-5, but 1 where the log says nothing.
COLUMNS = (
    "seconds waited / 43,200",
    "requested seconds / longest run time of the log",
    "processors / processors of the machine",
    "memory / largest of the log",
    "user / largest number",
    "group / largest number",
    "executable / largest number",
    "1 - 1e-5 if it fits now, else 1e-5",
)

PaperLog: TypeAlias = Workload | SwfLog | CommittedLog | Path | str


class PaperEpisodes(EpisodeGroup):
    """Episodes as the program of RLScheduler plays them.

    Parameters
    ----------
    log : Workload, SwfLog or path of one
        Of a log in the Standard Workload Format everything is read as the program reads it; a Workload has neither
        memory nor groups nor executables.
    options : EpisodeOptions
        Without a lead-in, reward "end"; ``backfill`` "none" or "easy": the program's own.
    count : int
        How many stand side by side.

    Attributes
    ----------
    batch : RLSchedulerEpisode
        Where they stand, for kernels.

    Raises
    ------
    UsageError
        If an option is one that the program does not have, or the starts are not inside the log.
    EvaluationError
        If a window is longer than the log, or the log cannot give the goal.
    """

    mode: Mode = "paper"
    slots = VIEW

    def __init__(self, log: PaperLog, options: EpisodeOptions | None = None, count: int = 1) -> None:
        options = options or EpisodeOptions()
        _check(options)
        self.log = _committed(log, by_run_time=options.rules.decide_by == "runtime")
        super().__init__(_measured(self.log), options, count)
        if options.jobs > len(self.log):
            raise EvaluationError(
                f"{self.log.name}: windows of {options.jobs} jobs asked for, the log has {len(self.log):,} jobs"
            )
        self.batch = new_episodes(count, options.jobs)
        self.first, self.last = self._starts()
        self.jobs = np.zeros((count, VIEW, FEATURES), dtype=np.float32)
        self.done, self.replaced = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)

    def _starts(self) -> tuple[int, int]:
        jobs, n = self.options.jobs, len(self.log)
        # The first ``jobs`` jobs begin no window in the program, and only 10,000 are used; of shorter logs all.
        first, last = jobs, min(n, RLSCHEDULER_JOBS) - jobs - 2
        if self.options.starts is not None:
            first, last = self.options.starts
        elif last < first:
            first, last = 0, n - jobs
        if not 0 <= first <= last <= n - jobs:
            raise UsageError(
                f"{self.log.name}: starts from {first} to {last}; windows of {jobs:,} jobs begin with job 0 to "
                f"{n - jobs}; give a first and a last among these"
            )
        return first, last

    @property
    def shown(self) -> Int64Array:
        """How many jobs are shown in each episode: int64 array (count,)."""
        return np.where(self.done, 0, self.batch.state[:, SHOWN])

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which slots can be chosen: bool array (count, 128)."""
        mask: NDArray[np.bool_] = np.arange(VIEW) < self.shown[:, None]
        return mask

    @property
    def started(self) -> Int64Array:
        """How many jobs run or have run in each episode: int64 array (count,)."""
        return np.asarray(self.batch.state[:, NEXT] - self.batch.state[:, QUEUED], dtype=np.int64)

    @property
    def clock(self) -> Int64Array:
        """The instant of each episode on the clock of the log, s: int64 array (count,)."""
        return np.asarray(self.batch.state[:, NOW], dtype=np.int64)

    def begin(self, episode: int, first: int) -> None:
        """Begin an episode anew on an empty machine."""
        most = len(self.log) - self.options.jobs
        if not 0 <= first <= most:
            raise UsageError(
                f"start {first}: windows of {self.options.jobs} jobs of {self.log.name} begin with job 0 to {most}; "
                "give one of these"
            )
        which = np.arange(len(self)) == episode
        reset_all(self.log.jobs, self.batch, which, np.full(len(self), first), self.log.nodes, self.jobs)
        self.done[episode], self.replaced[episode], self._ended[episode] = False, False, None

    def step(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take one decision in each episode that is not over; in place of an empty slot the first is taken."""
        places = np.asarray(actions, dtype=np.int64)
        empty = (places < 0) | (places >= self.shown)
        np.copyto(self.replaced, empty, where=~self.done)
        backfill = self.options.rules.backfill == "easy"
        step_all(self.log.jobs, self.batch, np.where(empty, 0, places), backfill, self.jobs, self.done)

    def times(self) -> NDArray[np.float64]:
        """Return the seconds since the beginning of each window: float64 array (count,)."""
        return (self.clock - self.log.jobs.submit[self.batch.state[:, FIRST]]).astype(np.float64)

    def window(self, episode: int) -> int:
        """Return the row of the log with which the window begins."""
        return int(self.batch.state[episode, FIRST])

    def queue(self, episode: int = 0) -> tuple[Int64Array, FloatArray, float]:
        """Return what is known of the jobs that are shown.

        Returns
        -------
        int64 array (k,)
            Their rows in the log.
        float64 array (3, k)
            Requested seconds, processors, seconds waited.
        float
            Free processors.
        """
        rows = self.window(episode) + self.batch.shown[episode, : self.shown[episode]]
        jobs, free = self.log.jobs, int(self.batch.state[episode, FREE]) * self.log.machine // self.log.nodes
        columns = (jobs.request[rows], self.log.processors[rows], self.clock[episode] - jobs.submit[rows])
        return rows, np.stack(columns).astype(np.float64), float(free)

    def scores(self, policy: PolicyLike, episode: int = 0) -> NDArray[np.float64]:
        """Return a policy's score of the job in each slot; r is the time on the log's own clock, as in the program."""
        policy, values = scored(policy), np.full(VIEW, np.inf)
        rows, (p, q, w), free = self.queue(episode)
        if len(rows):
            submit = self.log.jobs.submit[rows].astype(np.float64)
            # Compiled kernels say nothing of 1/0 in a formula; with NUMBA_DISABLE_JIT numpy would.
            with np.errstate(all="ignore"):
                scores = policy.scores(p, q, submit, w, self.log.machine, free)
            values[: len(rows)] = np.minimum(scores, np.finfo(np.float64).max)
        return values

    def look(self, episode: int = 0) -> Look:
        """Return what is drawn of an episode: of the queue what is shown."""
        jobs, first, now = self.log.jobs, self.window(episode), int(self.clock[episode])
        start = self.batch.start[episode]
        runs = np.flatnonzero((start >= 0) & (start + jobs.run_time[first : first + self.options.jobs] > now))
        start, runs = start[runs], first + runs
        waits, (request, _, waited), _ = self.queue(episode)
        return Look(
            f"{self.log.name}[{first}]",
            float(self.times()[episode]),
            self.log.machine,
            (now - start).astype(np.float64),
            np.maximum(start + jobs.request[runs] - now, 0).astype(np.float64),
            self.log.processors[runs],
            waited,
            request,
            self.log.processors[waits],
        )

    def _measured(self, episode: int) -> Schedule:
        first = self.window(episode)
        rows = np.arange(first, first + self.options.jobs)
        order = np.argsort(self.log.jobs.submit[rows], kind="stable")
        window = _measured(self.log, rows[order])
        start = self.batch.start[episode][order] - int(self.log.jobs.submit[rows[order[0]]])
        unknown = np.zeros(len(rows), dtype=np.bool_)
        rules = Rules(backfill=self.options.rules.backfill, compatibility="rlscheduler")
        return Schedule(start, start + window.run_time, unknown, window, "AGENT", rules)


def _check(options: EpisodeOptions) -> None:
    for name, wrong, cure in (
        ("lead_in", options.lead_in > 0, "0: its windows begin on an empty machine"),
        ("reward", options.reward != "end", "end"),
    ):
        if wrong:
            raise UsageError(f"{name} is {getattr(options, name)!r}; in mode paper it must be {cure}")
    if options.rules.overrun != "run":
        raise UsageError(f"rule overrun is {options.rules.overrun!r}; in mode paper it must be run")


def _committed(log: PaperLog, *, by_run_time: bool) -> CommittedLog:
    if isinstance(log, CommittedLog):
        return log
    if isinstance(log, Workload):
        return CommittedLog.of_workload(log, by_run_time=by_run_time)
    if by_run_time:
        raise UsageError("rule decide_by is 'runtime'; for a log read as RLScheduler's program reads it leave it out")
    return CommittedLog.of_swf(log if isinstance(log, SwfLog) else read_swf(log))


def _measured(log: CommittedLog, rows: NDArray[np.int64] | None = None) -> Workload:
    """Return jobs of the log by submit time, as the metrics take them."""
    jobs = log.jobs
    if rows is None:
        rows = np.argsort(jobs.submit, kind="stable")
    submit = jobs.submit[rows] - (int(jobs.submit[rows[0]]) if len(rows) else 0)
    request = np.maximum(jobs.request[rows], 1)
    unknown = np.full(len(rows), -1)
    width = np.clip(log.processors[rows], 1, log.machine)
    return Workload(
        log.name, log.machine, log.job_id[rows], submit, jobs.run_time[rows], request, width, log.user[rows], unknown
    )
