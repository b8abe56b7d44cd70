"""Episodes over windows of a log: begun, decided job by job, and measured.

`Episodes` holds many of them side by side, on the arrays of `policyfactory.engine.episodes`; the Gymnasium environment
is one of them, the vector environment several, and a learner may use it as it is.

An episode is a window of consecutive jobs. Without a lead-in the machine is empty when the first is submitted. With
one, the jobs before the window have been scheduled by a policy until then, and those that run or wait are there; those
that wait are the agent's to start and are measured as the window's jobs are, from their own submission on. No job
comes after the window. The last decision is the last start, and what is measured goes on to the last completion: no
job can be pushed out of sight.
"""

from __future__ import annotations

import abc
import dataclasses
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.jit import read_only
from policyfactory.core.options import Float32Array, FloatArray, Int64Array
from policyfactory.core.picture import BLACK, BLUE, GREEN, VERMILION, keeps_settings, new_figure
from policyfactory.core.text import HOUR
from policyfactory.engine import episodes as kernels
from policyfactory.engine.compat import rlscheduler
from policyfactory.engine.compat.rlscheduler import VIEW
from policyfactory.engine.events import NOW, STARTED
from policyfactory.policy.network import STANDARD_INPUTS, Mode
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.search.environment.goals import Goal, GoalLike, check_goal, goal_of, measure_guards
from policyfactory.simulation.compat import CommittedLog
from policyfactory.simulation.metrics import Carried
from policyfactory.simulation.prepare import formula_of, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import RLSCHEDULER_JOBS

Reward = Literal["end", "interval"]
# What accrues while jobs wait, where a goal is its mean.
_ACCRUES = {
    "mean_wait": kernels.WAIT,
    "mean_turnaround": kernels.TURNAROUND,
    "mean_bsld": kernels.BSLD,
    "mean_slowdown": kernels.SLOWDOWN,
}
_NONE = np.empty(0, dtype=np.int64)
_RULES = Rules()


@dataclasses.dataclass(frozen=True, slots=True)
class EpisodeOptions:
    """What an episode is.

    Parameters
    ----------
    jobs : int
        Jobs of a window.
    goal : str, Goal or callable
        What is rewarded; see `policyfactory.search.environment.goals`.
    reward : {"end", "interval"}
        Minus the goal's cost after the last decision and 0 before; or after each decision minus what has accrued
        since the one before, for the goals that are a mean over the jobs of something that grows while they wait. Both
        add up to the same.
    lead_in : int
        So many jobs before the window are scheduled until it begins; 0: an empty machine.
    lead_in_policy : Policy, or name of one
        By which, under the same rules.
    starts : (int, int) or None
        The first and the last job, from 0, that a window may begin with; None: all that leave a whole window.
    running : int
        How many running jobs are shown.
    rules : Rules
        ``backfill`` "easy" or "none", ``decide_by`` "request" or "runtime", ``overrun``.

    Raises
    ------
    UsageError
        If a number is out of range, a rule is one that leaves the agent no order of its own, or the goal does not
        accrue.
    """

    jobs: int = 256
    goal: GoalLike = "mean_bsld"
    reward: Reward = "end"
    lead_in: int = 0
    lead_in_policy: PolicyLike = "FCFS"
    starts: tuple[int, int] | None = None
    running: int = 16
    rules: Rules = _RULES

    def __post_init__(self) -> None:
        for name, least in (("jobs", 1), ("lead_in", 0), ("running", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise UsageError(f"{name} is {value!r}; give a whole number from {least}")
        if self.reward not in {"end", "interval"}:
            raise UsageError(f"reward is {self.reward!r}; choose end or interval")
        goal = goal_of(self.goal)
        if self.reward == "interval" and goal.name not in _ACCRUES:
            raise UsageError(
                f"goal {goal.name} does not accrue while jobs wait; choose reward end, or one of the goals "
                f"{', '.join(_ACCRUES)}"
            )
        rules, plain = self.rules, _RULES
        refused = (
            ("backfill", rules.backfill not in {"easy", "none"}, "easy or none"),
            ("decide_by", rules.decide_by == "prediction", "request or runtime"),
            ("threshold", rules.threshold != plain.threshold, "left out: the agent decides who is next"),
            ("ties", rules.ties != plain.ties, "fifo: the slots are in submit order"),
            ("backfill_policy", rules.backfill_policy is not None, "left out: the agent decides who is backfilled"),
            ("compatibility", rules.compatibility != plain.compatibility, "none, or the environment of mode paper"),
        )
        for name, wrong, cure in refused:
            if wrong:
                raise UsageError(f"rule {name} is {getattr(rules, name)!r}; in an episode it must be {cure}")


class EpisodeGroup(abc.ABC):
    """Many episodes over windows of one log, side by side, whoever's rules they are played by.

    Parameters
    ----------
    workload : Workload
        The log.
    options : EpisodeOptions
        What an episode is.
    count : int
        How many stand side by side.

    Attributes
    ----------
    first, last : int
        The first and the last job that a window may begin with.
    slots : int
        Jobs that an agent sees at once, at most.
    jobs : float32 array (count, slots, inputs)
        What is seen of the job in each slot.
    done : bool array (count,)
        Which episodes are over.
    replaced : bool array (count,)
        Where the last choice was masked, and another was taken.

    Raises
    ------
    EvaluationError
        If the log cannot give the goal.
    """

    mode: Mode
    first: int
    last: int
    slots: int
    jobs: Float32Array
    done: NDArray[np.bool_]
    replaced: NDArray[np.bool_]

    def __init__(self, workload: Workload, options: EpisodeOptions, count: int) -> None:
        self.workload, self.options = workload, options
        self.goal: Goal = goal_of(options.goal)
        check_goal(self.goal, workload)
        self._ended: list[Schedule | None] = [None] * count

    def __len__(self) -> int:
        return len(self._ended)

    @abc.abstractmethod
    def begin(self, episode: int, first: int) -> None:
        """Begin an episode anew with the window whose first job is row ``first`` of the log (by submission, from 0).

        Raises
        ------
        UsageError
            If no whole window, lead-in included, begins there.
        """

    def begin_all(self, first: Int64Array) -> None:
        """Begin a window at each of these rows; where they are fewer than the episodes, the others are over."""
        self.done[:] = True
        for episode, row in enumerate(first.tolist()):
            self.begin(episode, row)

    @abc.abstractmethod
    def step(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take one decision in each episode that is not over.

        Parameters
        ----------
        actions : int array (count,)
            The slot that each chooses. In place of one that is masked the first that is not is taken.
        """

    @property
    @abc.abstractmethod
    def mask(self) -> NDArray[np.bool_]:
        """Which slots can be chosen: bool array (count, slots)."""

    @property
    @abc.abstractmethod
    def started(self) -> Int64Array:
        """How many jobs run or have run in each episode: int64 array (count,)."""

    @abc.abstractmethod
    def seen(self, episodes: int | slice) -> Any:
        """Return a copy of what an agent sees in one episode, or in several: an array, or arrays by name."""

    def reward(self, episode: int) -> float:
        """Return the reward of the last decision: 0, and after the last one minus the goal's cost."""
        return -self.goal.cost(self.schedule(episode)) if self.done[episode] else 0.0

    def rewards(self) -> NDArray[np.float64]:
        """Return the reward of the last decision in each: float64 array (count,)."""
        return np.array([self.reward(episode) for episode in range(len(self))])

    @abc.abstractmethod
    def times(self) -> NDArray[np.float64]:
        """Return the seconds since the beginning of each window: float64 array (count,)."""

    @abc.abstractmethod
    def window(self, episode: int) -> int:
        """Return the row of the log with which the window begins."""

    @abc.abstractmethod
    def scores(self, policy: PolicyLike, episode: int = 0) -> NDArray[np.float64]:
        """Return a policy's score of the job in each slot: float64 array (slots,), inf where it cannot be chosen.

        Who always takes the least plays the schedule that `policyfactory.simulate` gives for the policy by the same
        rules.

        Raises
        ------
        UsageError
            If the policy reads predictions.
        """

    @abc.abstractmethod
    def look(self, episode: int = 0) -> Look:
        """Return what is drawn of an episode."""

    def schedule(self, episode: int = 0) -> Schedule:
        """Return the schedule of an episode that is over: of all jobs that the agent started.

        Raises
        ------
        EvaluationError
            If it is not over.
        """
        if not self.done[episode]:
            raise EvaluationError(f"{self.workload.name}: the episode is not over; step until it is")
        schedule = self._ended[episode]
        if schedule is None:
            schedule = self._ended[episode] = self._measured(episode)
        return schedule

    @abc.abstractmethod
    def _measured(self, episode: int) -> Schedule:
        """Return the schedule of an episode that is over, made anew."""

    def outcome(self, episode: int = 0) -> dict[str, Any]:
        """Return what is said of an episode that is over: the goal's value, and the guards by name."""
        schedule = self.schedule(episode)
        return {"goal": self.goal.value(schedule), "guards": measure_guards(schedule)}


def scored(policy: PolicyLike) -> Policy:
    """Return a policy whose scores an episode can give.

    Raises
    ------
    UsageError
        If it reads predictions.
    """
    policy = resolve(policy)
    if policy.needs_predictions:
        raise predictions_needed(policy, "an episode of the environment")
    return policy


class Episodes(EpisodeGroup):
    """Episodes by the rules of this package's simulator.

    Parameters
    ----------
    workload : Workload
        The log.
    options : EpisodeOptions
        What an episode is.
    count : int
        How many stand side by side.

    Raises
    ------
    EvaluationError
        If a window is longer than the log, or the log cannot give the goal.
    UsageError
        If the starts are not inside the log.
    """

    mode: Mode = "standard"

    def __init__(self, workload: Workload, options: EpisodeOptions | None = None, count: int = 1) -> None:
        options = options or EpisodeOptions()
        super().__init__(workload, options, count)
        self.first, self.last = _starts(workload, options)
        prepared = prepare(workload, options.rules)
        self.workload = jobs = prepared.workload
        self.slots = options.jobs + options.lead_in
        facts = facts_of(jobs, prepared.estimate)
        self._log = kernels.Log(
            jobs.submit, read_only(prepared.run_time), read_only(prepared.estimate), jobs.processors, facts
        )
        cost = _ACCRUES[self.goal.name] if options.reward == "interval" else kernels.NO_COST
        self._setting = kernels.EpisodeSetting(jobs.machine, jobs.ticks, options.rules.backfill == "easy", cost)
        self._batch = kernels.new_batch(count, self.slots, jobs.machine)
        self.view: kernels.View = kernels.new_view(count, self.slots, options.running)
        self.jobs, self.done, self.replaced = self.view.jobs, self.view.done, self.view.replaced
        self._lead_in_policy = resolve(options.lead_in_policy)
        self._rows: list[Int64Array] = [_NONE] * count
        self._begun = np.zeros(count, dtype=np.int64)
        self._carried: list[Carried | None] = [None] * count

    def begin(self, episode: int, first: int) -> None:
        """Begin an episode anew; its lead-in is simulated."""
        first = int(first)
        if not self.options.lead_in <= first <= len(self.workload) - self.options.jobs:
            raise UsageError(
                f"start {first}: windows of {self.options.jobs} jobs of {self.workload.name} begin with job "
                f"{self.options.lead_in} to {len(self.workload) - self.options.jobs}; give one of these"
            )
        window = np.arange(first, first + self.options.jobs)
        now = int(self._log.submit[first])
        held, started, self._carried[episode] = _NONE, _NONE, None
        if self.options.lead_in:
            held, started, waits, self._carried[episode] = self._lead_in(first, now)
            window = np.concatenate([waits, window])
        rows = np.concatenate([held, window])
        kernels.begin(self._batch, self.view, self._setting, episode, self._log, rows, started, now)
        self._rows[episode], self._begun[episode], self._ended[episode] = rows, now, None

    def _lead_in(self, first: int, now: int) -> tuple[Int64Array, Int64Array, Int64Array, Carried]:
        """Return which jobs of the lead-in run, since when, which wait, and what runs beside the measured ones."""
        before = np.arange(first - self.options.lead_in, first)
        schedule = simulate(self.workload.select(before), self._lead_in_policy, self.options.rules)
        # Nothing that is submitted from now on changes what was started before.
        begun = schedule.start < now
        runs, waits = begun & (schedule.end >= now), before[~begun]
        zero = int(self._log.submit[waits[0]]) if len(waits) else now
        beside = begun & (schedule.end > zero)
        carried = Carried(
            np.maximum(schedule.start[beside] - zero, 0),
            schedule.end[beside] - zero,
            schedule.workload.processors[beside],
        )
        return before[runs], schedule.start[runs], waits, carried

    def begin_all(self, first: Int64Array) -> None:
        """Begin a window at each of these rows; of the other episodes no slot can be chosen."""
        self.mask[:] = False
        super().begin_all(first)

    def step(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take one decision in each episode that is not over; ``view`` says what is seen then."""
        kernels.step_all(self._batch, self.view, self._setting, np.ascontiguousarray(actions, dtype=np.int64))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which slots can be chosen: bool array (count, slots)."""
        return self.view.mask

    def seen(self, episodes: int | slice) -> dict[str, NDArray[np.float32]]:
        """Return the jobs in the slots, the machine, and the running jobs."""
        view = {"jobs": self.view.jobs, "machine": self.view.machine, "running": self.view.running}
        return {name: shown[episodes].copy() for name, shown in view.items()}

    def rewards(self) -> NDArray[np.float64]:
        """Return the reward of the last decision in each: float64 array (count,)."""
        if self.options.reward == "end":
            return super().rewards()
        state = self._batch.state
        rewards: NDArray[np.float64] = -self.view.cost[:, kernels.SINCE] / (
            state[:, kernels.COUNT] - state[:, kernels.HELD]
        )
        return rewards

    def reward(self, episode: int) -> float:
        """Return the reward of the last decision."""
        return super().reward(episode) if self.options.reward == "end" else float(self.rewards()[episode])

    def times(self) -> NDArray[np.float64]:
        """Return the seconds since the beginning of each window: float64 array (count,)."""
        return (self._batch.state[:, NOW] - self._begun) / self.workload.ticks

    def window(self, episode: int) -> int:
        """Return the row of the log with which the window begins."""
        return int(self._rows[episode][-self.options.jobs])

    @property
    def started(self) -> Int64Array:
        """How many jobs run or have run in each episode: int64 array (count,)."""
        return np.asarray(self._batch.state[:, STARTED], dtype=np.int64)

    def scores(self, policy: PolicyLike, episode: int = 0) -> NDArray[np.float64]:
        """Return a policy's score of the job in each slot."""
        policy, batch, mask = scored(policy), self._batch, self.mask[episode]
        state, waiting = batch.state[episode], batch.waiting[episode]
        jobs = waiting[1 : 1 + waiting[0]]
        values = np.full(self.slots, np.inf)
        rows, first = self._rows[episode], self._rows[episode][state[kernels.HELD]]
        if len(jobs):
            shown = self.workload.select(rows[jobs])
            oldest = policy.epoch.rule == "oldest-waiting"
            since = shown.submit[0] if oldest else self._log.submit[first]
            r = formula_of(shown, policy, np.full(len(jobs), since)).r
            p, w = batch.estimate[episode, jobs] / shown.ticks, (state[NOW] - shown.submit) / shown.ticks
            # Compiled kernels say nothing of 1/0 in a formula; with NUMBA_DISABLE_JIT numpy would.
            with np.errstate(all="ignore"):
                scores = policy.scores(p, shown.processors, r, w, shown.machine, float(state[kernels.FREE_THEN]))
            values[: len(jobs)] = scores
        # Least of all is what cannot be: a job that scores inf itself is still before none at all.
        values[mask] = np.minimum(values[mask], np.finfo(np.float64).max)
        values[~mask] = np.inf
        return values

    def _measured(self, episode: int) -> Schedule:
        batch, rows = self._batch, self._rows[episode]
        held = int(batch.state[episode, kernels.HELD])
        measured, zero = slice(held, len(rows)), int(self._log.submit[rows[held]])
        jobs = self.workload.select(rows[held:], name=f"{self.workload.name}[{self.window(episode)}]", rebase=True)
        start = batch.start[episode, measured] - zero
        end = start + batch.run_time[episode, measured]
        backfilled = batch.backfilled[episode, measured].copy()
        return Schedule(start, end, backfilled, jobs, "AGENT", self.options.rules, carried=self._carried[episode])

    def look(self, episode: int = 0) -> Look:
        """Return what is drawn of an episode."""
        batch, n = self._batch, int(self._batch.state[episode, kernels.COUNT])
        start, now, ticks = batch.start[episode, :n], int(batch.state[episode, NOW]), self.workload.ticks
        submit, estimate, processors = (
            column[episode, :n] for column in (batch.submit, batch.estimate, batch.processors)
        )
        runs = np.flatnonzero((start >= 0) & (start + batch.run_time[episode, :n] > now))
        waits = np.flatnonzero((start < 0) & (submit <= now))
        return Look(
            title=f"{self.workload.name}[{self.window(episode)}]",
            now=float(self.times()[episode]),
            machine=self.workload.machine,
            since=(now - start[runs]) / ticks,
            left=np.maximum(start[runs] + estimate[runs] - now, 0) / ticks,
            width=processors[runs],
            waited=(now - submit[waits]) / ticks,
            request=estimate[waits] / ticks,
            needs=processors[waits],
        )


def _starts(workload: Workload, options: EpisodeOptions) -> tuple[int, int]:
    """Return the first and the last job that a window may begin with."""
    least, most = options.lead_in, len(workload) - options.jobs
    if most < least:
        lead_in = f" behind a lead-in of {options.lead_in:,}" if options.lead_in else ""
        raise EvaluationError(
            f"{workload.name}: windows of {options.jobs:,} jobs{lead_in} asked for, the log has {len(workload):,}; ask "
            "for shorter ones or give a longer log"
        )
    first, last = (least, most) if options.starts is None else options.starts
    if not least <= first <= last <= most:
        raise UsageError(
            f"{workload.name}: starts from {first} to {last}; windows of {options.jobs:,} jobs begin with job {least} "
            f"to {most}; give a first and a last among these"
        )
    return int(first), int(last)


# What an agent sees ---------------------------------------------------------------------------------------------------

# The parts of it that do not change while a job waits; docs/environment.md has all columns.

# The columns of a waiting job, as formulas; the second to the fourth are facts of the job.
INPUTS = STANDARD_INPUTS


def facts_of(workload: Workload, estimate: Int64Array) -> NDArray[np.float32]:
    """Return what is shown of each job and does not change while it waits: float32 array (n, 3).

    Parameters
    ----------
    workload : Workload
        The jobs.
    estimate : int64 array (n,), ticks
        What the scheduler believes of their run times.
    """
    p, zero = estimate / workload.ticks, np.zeros(len(workload))
    columns = [
        Policy("INPUT", formula).scores(p, workload.processors, zero, m=workload.machine)
        for formula in INPUTS[1 : kernels.FACTS + 1]
    ]
    return np.column_stack(columns).astype(np.float32)


# The machine and the queue at a decision, as a picture ----------------------------------------------------------------


# More bars than these would be lines.
_MOST = 60


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What a picture of a machine and its queue shows.

    Parameters
    ----------
    title : str
        Of which log and window.
    now : float
        Seconds since the beginning of the window.
    machine : int
        Processors.
    since, left, width : arrays (k,)
        Of the running jobs: seconds since the start, requested seconds that are left, processors.
    waited, request, needs : arrays (n,)
        Of the waiting jobs in submit order: seconds waited, seconds requested, processors.
    """

    title: str
    now: float
    machine: int
    since: FloatArray
    left: FloatArray
    width: Int64Array
    waited: FloatArray
    request: FloatArray
    needs: Int64Array


@keeps_settings
def picture_of(look: Look) -> NDArray[np.uint8]:
    """Return a picture, uint8 array (400, 900, 3): the running jobs over time, and the queue beside them."""
    figure = new_figure(9.0, 4.0)
    figure.set_dpi(100)
    figure.suptitle(f"{look.title}, {look.now / HOUR:,.1f} h after its beginning")
    machine, queue = figure.subplots(1, 2)
    order = np.argsort(look.left, kind="stable")
    low = np.concatenate([[0], np.cumsum(look.width[order])])[:-1]
    span = (look.since + look.left)[order] / HOUR
    machine.barh(low, span, look.width[order], -look.since[order] / HOUR, align="edge", color=BLUE, edgecolor="white")
    machine.axvline(0.0, color=BLACK)
    machine.set(ylim=(0, look.machine), xlabel="hours from now", ylabel="processors", title=_running(look))
    rows = np.arange(min(len(look.request), _MOST))
    fits = look.needs[rows] <= look.machine - int(look.width.sum())
    colours: list[Any] = [GREEN if fitting else VERMILION for fitting in fits]
    queue.barh(rows, look.request[rows] / HOUR, 0.8, color=colours)
    if len(rows) <= 20:
        for row in rows.tolist():
            words = f" {look.needs[row]} for {look.request[row] / HOUR:.3g} h, waited {look.waited[row] / HOUR:.3g} h"
            queue.text(0.0, row, words, va="center", fontsize=7)
    queue.set(ylim=(max(len(rows), 8), -1), xlabel="requested hours", ylabel="place in the queue")
    queue.set(title=f"{len(look.request)} wait (green: fits now)", yticks=[])
    figure.canvas.draw()
    # The canvas is Agg's (new_figure); its own type does not say what it can.
    canvas: Any = figure.canvas
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[:, :, :3])


def _running(look: Look) -> str:
    return f"{len(look.width)} run, {look.machine - int(look.width.sum())} of {look.machine} processors free"


# Mode paper: the program of RLScheduler to the letter ----------------------------------------------------------------

# Its own view, rewards at the end, its own windows. A choice is committed: the clock goes on until the chosen job fits,
# and later arrivals cannot overtake it. 128 waiting jobs are shown at most. docs/rlscheduler.md has the rules, and what
# they cost.
#
# Of each are shown the seconds waited / 43,200, the requested seconds / longest run time of the log, the processors /
# those of the machine, memory, user, group and executable / largest of the log, and whether it fits now: all at most
# 1 - 1e-5, but 1 where the log says nothing.


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
                f"{self.log.name}: windows of {options.jobs} jobs asked for, at most {len(self.log):,} of the log fit"
            )
        self.batch = rlscheduler.new_episodes(count, options.jobs)
        self.first, self.last = self._starts()
        self.jobs = np.zeros((count, VIEW, rlscheduler.FEATURES), dtype=np.float32)
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
        return np.where(self.done, 0, self.batch.state[:, rlscheduler.SHOWN])

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which slots can be chosen: bool array (count, 128)."""
        mask: NDArray[np.bool_] = np.arange(VIEW) < self.shown[:, None]
        return mask

    @property
    def started(self) -> Int64Array:
        """How many jobs run or have run in each episode: int64 array (count,)."""
        return np.asarray(
            self.batch.state[:, rlscheduler.NEXT] - self.batch.state[:, rlscheduler.QUEUED], dtype=np.int64
        )

    @property
    def clock(self) -> Int64Array:
        """The instant of each episode on the clock of the log, s: int64 array (count,)."""
        return np.asarray(self.batch.state[:, rlscheduler.NOW], dtype=np.int64)

    def begin(self, episode: int, first: int) -> None:
        """Begin an episode anew on an empty machine."""
        most = len(self.log) - self.options.jobs
        if not 0 <= first <= most:
            raise UsageError(
                f"start {first}: windows of {self.options.jobs} jobs of {self.log.name} begin with job 0 to {most}; "
                "give one of these"
            )
        which = np.arange(len(self)) == episode
        rlscheduler.reset_all(self.log.jobs, self.batch, which, np.full(len(self), first), self.log.nodes, self.jobs)
        self.done[episode], self.replaced[episode], self._ended[episode] = False, False, None

    def step(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take one decision in each episode that is not over; in place of an empty slot the first is taken."""
        places = np.asarray(actions, dtype=np.int64)
        empty = (places < 0) | (places >= self.shown)
        np.copyto(self.replaced, empty, where=~self.done)
        backfill = self.options.rules.backfill == "easy"
        rlscheduler.step_all(self.log.jobs, self.batch, np.where(empty, 0, places), backfill, self.jobs, self.done)

    def seen(self, episodes: int | slice) -> Float32Array:
        """Return the numbers of all slots, one behind the other."""
        shown = self.jobs[episodes]
        return shown.reshape(*shown.shape[:-2], -1).copy()

    def times(self) -> NDArray[np.float64]:
        """Return the seconds since the beginning of each window: float64 array (count,)."""
        return (self.clock - self.log.jobs.submit[self.batch.state[:, rlscheduler.FIRST]]).astype(np.float64)

    def window(self, episode: int) -> int:
        """Return the row of the log with which the window begins."""
        return int(self.batch.state[episode, rlscheduler.FIRST])

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
        jobs, free = (
            self.log.jobs,
            int(self.batch.state[episode, rlscheduler.FREE]) * self.log.machine // self.log.nodes,
        )
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
            title=f"{self.log.name}[{first}]",
            now=float(self.times()[episode]),
            machine=self.log.machine,
            since=(now - start).astype(np.float64),
            left=np.maximum(start + jobs.request[runs] - now, 0).astype(np.float64),
            width=self.log.processors[runs],
            waited=waited,
            request=request,
            needs=self.log.processors[waits],
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
    for name, value, wrong, cure in (
        ("lead_in", options.lead_in, options.lead_in > 0, "0: its windows begin on an empty machine"),
        ("reward", options.reward, options.reward != "end", "end"),
        ("rule overrun", options.rules.overrun, options.rules.overrun != "run", "run"),
    ):
        if wrong:
            raise UsageError(f"{name} is {value!r}; in mode paper it must be {cure}")


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
        name=log.name,
        machine=log.machine,
        job_id=log.job_id[rows],
        submit=submit,
        run_time=jobs.run_time[rows],
        requested_time=request,
        processors=width,
        user=log.user[rows],
        start=unknown,
    )
