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
from policyfactory.engine.compat.rlscheduler import FREE, VIEW
from policyfactory.policy.policy import predictions_needed
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.search.environment.episodes import EpisodeOptions, Look
from policyfactory.search.environment.goals import Goal, check_goal, goal_of, measure_guards
from policyfactory.simulate.compat import CommittedEpisodes, CommittedLog
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


class PaperEpisodes:
    """Many episodes as the program of RLScheduler plays them, side by side.

    Parameters
    ----------
    log : Workload, SwfLog or path of one
        Of a log in the Standard Workload Format everything is read as the program reads it; a Workload has neither
        memory nor groups nor executables.
    options : EpisodeOptions
        Without a lead-in, reward "end"; ``backfill`` "none" or "easy": the program's own.
    count : int
        How many stand side by side.

    Raises
    ------
    UsageError
        If an option is one that the program does not have, or the starts are not inside the log.
    EvaluationError
        If a window is longer than the log, or the log cannot give the goal.
    """

    def __init__(self, log: PaperLog, options: EpisodeOptions | None = None, count: int = 1) -> None:
        self.options = options = options or EpisodeOptions()
        _check(options)
        self.log = _committed(log, by_run_time=options.rules.decide_by == "runtime")
        self.goal: Goal = goal_of(options.goal)
        self.workload = _measured(self.log)
        check_goal(self.goal, self.workload)
        self._episodes = CommittedEpisodes(self.log, count, options.jobs, backfill=options.rules.backfill == "easy")
        self.slots = VIEW
        self.first, self.last = self._starts()
        self.replaced = np.zeros(count, dtype=np.bool_)
        self._ended: list[Schedule | None] = [None] * count

    def __len__(self) -> int:
        return len(self.replaced)

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
    def done(self) -> NDArray[np.bool_]:
        """Which episodes are over."""
        return self._episodes.over

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which slots can be chosen: bool array (count, 128)."""
        shown = np.where(self.done, 0, self._episodes.shown)
        mask: NDArray[np.bool_] = np.arange(VIEW) < shown[:, None]
        return mask

    @property
    def observation(self) -> NDArray[np.float32]:
        """What is seen: float32 array (count, 128, 8)."""
        return self._episodes.observation

    def begin(self, episode: int, first: int) -> None:
        """Begin an episode anew with the window whose first job is row ``first`` of the log.

        Raises
        ------
        UsageError
            If no whole window begins there.
        """
        most = len(self.log) - self.options.jobs
        if not 0 <= first <= most:
            raise UsageError(
                f"start {first}: windows of {self.options.jobs} jobs of {self.log.name} begin with job 0 to {most}; "
                "give one of these"
            )
        which = np.arange(len(self)) == episode
        self._episodes.reset(np.full(len(self), first), which)
        self.replaced[episode], self._ended[episode] = False, None

    def step(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take one decision in each episode that is not over; in place of an empty slot the first is taken."""
        shown, places = self._episodes.shown, np.asarray(actions, dtype=np.int64)
        empty = (places < 0) | (places >= shown)
        np.copyto(self.replaced, empty, where=~self.done)
        self._episodes.step(np.where(empty, 0, places))

    def reward(self, episode: int) -> float:
        """Return the reward of the last decision: 0, and after the last one minus the goal's cost."""
        return -self.goal.cost(self.schedule(episode)) if self.done[episode] else 0.0

    def rewards(self) -> NDArray[np.float64]:
        """Return the reward of the last decision in each: float64 array (count,)."""
        rewards = np.zeros(len(self))
        for at in np.flatnonzero(self.done).tolist():
            rewards[at] = self.reward(at)
        return rewards

    def times(self) -> NDArray[np.float64]:
        """Return the seconds since the beginning of each window: float64 array (count,)."""
        return (self._episodes.now - self.log.jobs.submit[self._episodes.first]).astype(np.float64)

    def window(self, episode: int) -> int:
        """Return the row of the log with which the window begins."""
        return int(self._episodes.first[episode])

    def now(self, episode: int) -> float:
        """Return the seconds since the beginning of the window."""
        return float(self.times()[episode])

    def scores(self, policy: PolicyLike, episode: int = 0) -> NDArray[np.float64]:
        """Return a policy's score of the job in each slot: float64 array (128,), inf where there is none.

        r is the time on the log's own clock, as in the program.

        Raises
        ------
        UsageError
            If the policy reads predictions.
        """
        policy, values = resolve(policy), np.full(VIEW, np.inf)
        if policy.needs_predictions:
            raise predictions_needed(policy, "an episode of the environment")
        rows, now = self._shown(episode), int(self._episodes.now[episode])
        if len(rows):
            jobs, takes = self.log.jobs, self.log.processors[rows]
            submit = jobs.submit[rows].astype(np.float64)
            free = int(self._episodes.episodes.state[episode, FREE]) * self.log.machine // self.log.nodes
            # Compiled kernels say nothing of 1/0 in a formula; with NUMBA_DISABLE_JIT numpy would.
            with np.errstate(all="ignore"):
                scores = policy.scores(jobs.request[rows], takes, submit, now - submit, self.log.machine, float(free))
            values[: len(rows)] = np.minimum(scores, np.finfo(np.float64).max)
        return values

    def _shown(self, episode: int) -> NDArray[np.int64]:
        if self.done[episode]:
            return np.empty(0, dtype=np.int64)
        places = self._episodes.jobs_shown[episode, : self._episodes.shown[episode]]
        return np.asarray(self._episodes.first[episode] + places, dtype=np.int64)

    def _running(self, episode: int) -> NDArray[np.int64]:
        start, first = self._episodes.start[episode], int(self._episodes.first[episode])
        end = start + self.log.jobs.run_time[first : first + self.options.jobs]
        return first + np.flatnonzero((start >= 0) & (end > self._episodes.now[episode]))

    def look(self, episode: int = 0) -> Look:
        """Return what is drawn of an episode: of the queue what is shown."""
        jobs, now, first = self.log.jobs, int(self._episodes.now[episode]), int(self._episodes.first[episode])
        runs, waits = self._running(episode), self._shown(episode)
        start = self._episodes.start[episode][runs - first]
        return Look(
            f"{self.log.name}[{first}]",
            self.now(episode),
            self.log.machine,
            (now - start).astype(np.float64),
            np.maximum(start + jobs.request[runs] - now, 0).astype(np.float64),
            self.log.processors[runs],
            (now - jobs.submit[waits]).astype(np.float64),
            jobs.request[waits].astype(np.float64),
            self.log.processors[waits],
        )

    def schedule(self, episode: int = 0) -> Schedule:
        """Return the schedule of an episode that is over.

        Raises
        ------
        EvaluationError
            If it is not over.
        """
        if not self.done[episode]:
            raise EvaluationError(f"{self.log.name}: the episode is not over; step until it is")
        ended = self._ended[episode]
        if ended is None:
            ended = self._ended[episode] = self._schedule(episode)
        return ended

    def _schedule(self, episode: int) -> Schedule:
        first = self.window(episode)
        rows = np.arange(first, first + self.options.jobs)
        order = np.argsort(self.log.jobs.submit[rows], kind="stable")
        window = _measured(self.log, rows[order])
        start = self._episodes.start[episode][order] - int(self.log.jobs.submit[rows[order[0]]])
        unknown = np.zeros(len(rows), dtype=np.bool_)
        rules = Rules(backfill=self.options.rules.backfill, compatibility="rlscheduler")
        return Schedule(start, start + window.run_time, unknown, window, "AGENT", rules)

    def outcome(self, episode: int = 0) -> dict[str, Any]:
        """Return what is said of an episode that is over: the goal's value, and the guards by name."""
        schedule = self.schedule(episode)
        return {"goal": self.goal.value(schedule), "guards": measure_guards(schedule)}


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
