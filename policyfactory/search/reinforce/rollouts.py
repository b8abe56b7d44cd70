"""Windows played by a network: what was seen, chosen, and what it cost from decision to decision; the first of them."""

from __future__ import annotations

import abc
import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.options import Float32Array, FloatArray, Int64Array
from policyfactory.engine.episodes import TOTAL
from policyfactory.engine.metrics import TAU
from policyfactory.engine.rollouts import Accrual, Layers, RolloutChoices, accrue_all, choose_all, new_choices
from policyfactory.policy.network import paper_inputs
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.search.environment.episodes import (
    INPUTS,
    EpisodeGroup,
    EpisodeOptions,
    Episodes,
    PaperEpisodes,
    Reward,
)
from policyfactory.search.environment.goals import GOALS
from policyfactory.search.reinforce.options import Filtering
from policyfactory.simulation.compat import CommittedLog, starts_by_formula
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload

_ARGMAX = -1.0


class RolloutRows:
    """Rows that are kept; room is doubled as needed.

    Parameters
    ----------
    inputs : int
        Numbers of a row.
    """

    def __init__(self, inputs: int) -> None:
        self.all = np.empty((1 << 12, inputs), dtype=np.float32)
        self.count = 0

    def room_for(self, more: int) -> Float32Array:
        """Return the rows with room for so many more."""
        if self.count + more > len(self.all):
            grown = np.empty((max(2 * len(self.all), self.count + more), self.all.shape[1]), dtype=np.float32)
            grown[: self.count] = self.all[: self.count]
            self.all = grown
        return self.all

    @property
    def kept(self) -> Float32Array:
        """The rows: float32 array (count, inputs)."""
        return self.all[: self.count]


class Chooser(Protocol):
    """Chooses a job in each episode."""

    def choose(
        self, world: World, uniform: FloatArray, keep: NDArray[np.bool_], rows: RolloutRows, choices: RolloutChoices
    ) -> None:  # fmt: skip
        """Fill in the choices (`policyfactory.engine.rollouts.choose_all`)."""


@dataclasses.dataclass(frozen=True, slots=True)
class ByLayers:
    """A network that scores each job by itself.

    Parameters
    ----------
    layers : Layers
        Its numbers.
    """

    layers: Layers

    def choose(
        self, world: World, uniform: FloatArray, keep: NDArray[np.bool_], rows: RolloutRows, choices: RolloutChoices
    ) -> None:  # fmt: skip
        """Fill in the choices."""
        seen = world.episodes
        mask = seen.mask
        room = rows.room_for(int(mask[keep].sum()))
        rows.count = choose_all(seen.jobs, mask, seen.done, self.layers, uniform, keep, room, rows.count, choices)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Rollouts:
    """What was played; b episodes, d decisions that were kept, t the most decisions of an episode.

    Parameters
    ----------
    rows : float32 array (., inputs)
        The jobs that could be chosen, decision after decision.
    size, chosen : int64 array (d,)
        How many there were, and which of them was chosen.
    log_probability : float64 array (d,)
        Of the choice when it was made.
    episode, step : int64 array (d,)
        Where each decision was made.
    accrued : float64 array (b, t + 1)
        What had accrued of the goal before each decision, and after the last.
    started : int64 array (b, t)
        How many jobs were started before each decision.
    decisions : int64 array (b,)
        How many there were in each episode.
    costs : float64 array (b,)
        The goal of each; less is better.
    """

    rows: Float32Array
    size: Int64Array
    chosen: Int64Array
    log_probability: FloatArray
    episode: Int64Array
    step: Int64Array
    accrued: FloatArray
    started: Int64Array
    decisions: Int64Array
    costs: FloatArray

    def __len__(self) -> int:
        return len(self.size)


def play(
    world: World,
    first: Int64Array,
    chooser: Chooser,
    random: np.random.Generator | None = None,
    *,
    share: float = 0.0,
) -> Rollouts:
    """Play a window from each of these rows of the log to its end.

    Parameters
    ----------
    world : World
        With room for as many episodes.
    first : int64 array (b,)
        First job of each window.
    chooser : Chooser
        Who decides.
    random : numpy Generator, optional
        Draws the choices; without it the largest preference is taken.
    share : float
        Of the decisions, which are kept for learning; 0 to 1.
    """
    world.begin(first)
    b, episodes = len(world), world.episodes
    rows, choices = RolloutRows(episodes.jobs.shape[2]), new_choices(b)
    parts: list[tuple[NDArray[np.int64], ...]] = []
    log_probability: list[FloatArray] = []
    accrued = [world.accrued() if world.accrues else np.zeros(b)]
    started: list[Int64Array] = []
    decisions = np.zeros(b, dtype=np.int64)
    argmax, none = np.full(b, _ARGMAX), np.zeros(b, dtype=np.bool_)
    step = 0
    while not episodes.done.all():
        going = ~episodes.done
        uniform = argmax if random is None else random.random(b)
        keep = none if share <= 0 or random is None else (random.random(b) < share) & going
        chooser.choose(world, uniform, keep, rows, choices)
        kept = np.flatnonzero(keep)
        parts.append((choices.size[kept], choices.position[kept], kept, np.full(len(kept), step)))
        log_probability.append(choices.log_probability[kept])
        started.append(episodes.started.copy())
        episodes.step(choices.slot)
        accrued.append(world.accrued() if world.accrues else accrued[0])
        decisions += going
        step += 1
    size, chosen, episode, when = (np.concatenate(part) for part in zip(*parts, strict=True))
    count = len(first)
    summed, costs = np.stack(accrued, axis=1)[:count], world.costs()
    if not world.accrues:
        # All at the end.
        summed[np.arange(step + 1) >= decisions[:count, None]] = np.repeat(costs, step + 1 - decisions[:count])
    return Rollouts(
        rows=rows.kept,
        size=size,
        chosen=chosen,
        log_probability=np.concatenate(log_probability),
        episode=episode,
        step=when,
        accrued=summed,
        started=np.stack(started, axis=1)[:count],
        decisions=decisions[:count],
        costs=costs,
    )


# What a network learns in ---------------------------------------------------------------------------------------------

# Windows of a log, played side by side, decision by decision, and what they have cost.
#
# `PaperWorld` is the program of the SC'20 paper, `StandardWorld` this package's simulator (EASY, or strict order). Both
# show the jobs that can be chosen as rows of the network's inputs, and what has accrued of the goal: its differences
# between decisions add up to the goal.

# Goals that are a mean of something that grows while jobs wait.
_MEANS = ("mean_bsld", "mean_wait", "mean_turnaround", "mean_slowdown")
_UTILISATION = ("utilisation", "utilisation_to_last_start")


class World(abc.ABC):
    """Windows of a log, played side by side.

    Parameters
    ----------
    episodes : EpisodeGroup
        What is played.
    inputs : tuple of str
        Formulas of what is seen of a job.
    accrues : bool
        Whether the goal grows bit by bit; else all of it is known at the end only.
    """

    def __init__(self, episodes: EpisodeGroup, inputs: tuple[str, ...], *, accrues: bool) -> None:
        self.episodes, self.inputs, self.accrues = episodes, inputs, accrues
        self.mode, self.size = episodes.mode, episodes.options.jobs
        self._first: Int64Array = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.episodes)

    def begin(self, first: Int64Array) -> None:
        """Begin a window at each of these rows of the log; fewer than there is room for leave the others over."""
        self._first = first
        self.episodes.begin_all(first)

    @abc.abstractmethod
    def accrued(self) -> FloatArray:
        """Return what has accrued of the goal in each, if it accrues."""

    @abc.abstractmethod
    def costs(self) -> FloatArray:
        """Return the goal of each window, all of which are over; less is better."""

    @abc.abstractmethod
    def costs_of(self, policy: Policy, first: Int64Array) -> FloatArray:
        """Return the goal of windows under a policy; less is better."""


class PaperWorld(World):
    """The program of the SC'20 paper.

    Parameters
    ----------
    log : CommittedLog
        The log.
    jobs : int
        Jobs of a window.
    episodes : int
        How many are played side by side.
    backfill : bool
        Whether jobs may start while a chosen one is waited for.
    goal : str
        Its name (`policyfactory.search.environment.goals`).

    Raises
    ------
    EvaluationError
        If a window is longer than the log, or the goal is about users and the log names none.
    """

    episodes: PaperEpisodes

    def __init__(
        self, log: CommittedLog, jobs: int, episodes: int, *, backfill: bool = False, goal: str = "mean_bsld"
    ) -> None:
        rules = Rules(backfill="easy" if backfill else "none")
        played = PaperEpisodes(log, EpisodeOptions(jobs, goal, rules=rules), episodes)
        super().__init__(played, paper_inputs(log.longest_run), accrues=goal != "user_max_bsld")
        self.log, self.backfill, self.goal = log, backfill, goal
        self._accrual = _accrual(log, goal, np.zeros((episodes, jobs)))
        self._total = np.zeros(episodes)

    def begin(self, first: Int64Array) -> None:
        """Begin windows."""
        super().begin(first)
        self._accrual.weight[: len(first)] = self._weights(first)

    def _weights(self, first: Int64Array) -> FloatArray:
        """Return the weight of each job of windows, so that the weighted sum is the goal: float64 array (k, jobs)."""
        if self.goal in _UTILISATION:
            return np.zeros((len(first), self.size))
        if not GOALS[self.goal].of_users:
            return np.full((len(first), self.size), 1.0 / self.size)
        weights = np.zeros((len(first), self.size))
        for row, begin in zip(weights, first.tolist(), strict=True):
            user = self.log.user[begin : begin + self.size]
            known, number, count = np.unique(user, return_inverse=True, return_counts=True)
            each = np.where(known >= 0, 1.0 / count / max(int((known >= 0).sum()), 1), 0.0)
            row[:] = each[number]
        return weights

    def accrued(self) -> FloatArray:
        """Return what has accrued."""
        accrue_all(self.log.jobs, self.episodes.batch, self._accrual, self._total)
        return self._total.copy()

    def costs(self) -> FloatArray:
        """Return the goal of each window."""
        return self._costs(self._first, self.episodes.batch.start[: len(self._first)])

    def _costs(self, first: Int64Array, start: Int64Array) -> FloatArray:
        rows = first[:, None] + np.arange(self.size)
        jobs = self.log.jobs
        waited, ran = start - jobs.submit[rows], jobs.run_time[rows]
        if self.goal in _UTILISATION:
            until = start if self.goal == "utilisation_to_last_start" else start + ran
            elapsed = np.maximum(until.max(axis=1) - jobs.submit[first], 1)
            work = (ran * self.log.processors[rows]).sum(axis=1)
            return np.asarray(-100.0 * work / (elapsed * self.log.machine))
        each = np.maximum(
            (waited + self._accrual.base[rows]) / self._accrual.divisor[rows], self._accrual.least
        )  # fmt: skip
        if self.goal == "user_max_bsld":
            user = self.log.user[rows]
            worst = [
                max(row[whose == who].mean() for who in np.unique(whose[whose >= 0]))
                for row, whose in zip(each, user, strict=True)
                if (whose >= 0).any()
            ]
            if len(worst) < len(each):
                raise EvaluationError(f"{self.log.name}: a window has no job of a known user; choose another goal")
            return np.array(worst)
        return np.asarray((each * self._weights(first)).sum(axis=1))

    def costs_of(self, policy: Policy, first: Int64Array) -> FloatArray:
        """Return the goal of windows under a formula, which sees the whole queue."""
        r = self.log.jobs.submit.astype(np.float64)
        start, _ = starts_by_formula(self.log, policy, first, self.size, backfill=self.backfill, r=r)
        return self._costs(first, start)


def _accrual(log: CommittedLog, goal: str, weight: FloatArray) -> Accrual:
    ran = log.jobs.run_time.astype(np.float64)
    if goal == "mean_wait":
        return Accrual(np.zeros_like(ran), np.ones_like(ran), weight, 0.0, 0.0)
    if goal == "mean_turnaround":
        return Accrual(ran, np.ones_like(ran), weight, 0.0, 0.0)
    if goal == "mean_slowdown":
        return Accrual(ran, np.maximum(ran, 1.0), weight, 1.0, 0.0)
    # The utilisation of a window depends on nothing but its length: the clock, in percent of a day.
    elapsed = 100.0 / 86400.0 if goal in _UTILISATION else 0.0
    return Accrual(ran, np.maximum(ran, float(TAU)), weight, 1.0, elapsed)


class StandardWorld(World):
    """The simulator of this package, which decides at every event.

    Parameters
    ----------
    workload : Workload
        The log.
    jobs : int
        Jobs of a window.
    episodes : int
        How many are played side by side.
    rules : Rules
        Backfilling "easy" or "none".
    goal : str
        Its name.

    Raises
    ------
    EvaluationError, UsageError
        As `policyfactory.search.environment.episodes.Episodes`.
    """

    episodes: Episodes

    def __init__(
        self, workload: Workload, jobs: int, episodes: int, *, rules: Rules | None = None, goal: str = "mean_bsld"
    ) -> None:
        accrues = goal in _MEANS
        reward: Reward = "interval" if accrues else "end"
        options = EpisodeOptions(jobs, goal, reward, running=0, rules=rules or Rules())
        super().__init__(Episodes(workload, options, episodes), INPUTS, accrues=accrues)

    def accrued(self) -> FloatArray:
        """Return what has accrued."""
        return np.asarray(self.episodes.view.cost[:, TOTAL] / self.size)

    def costs(self) -> FloatArray:
        """Return the goal of each window."""
        played = self.episodes
        return np.array([played.goal.cost(played.schedule(episode)) for episode in range(len(self._first))])

    def costs_of(self, policy: Policy, first: Int64Array) -> FloatArray:
        """Return the goal of windows under a policy."""
        values, log = [], self.episodes.workload
        for row in first.tolist():
            window = log.select(slice(row, row + self.size), name=f"{log.name}[{row}]", rebase=True)
            values.append(self.episodes.goal.cost(simulate(window, policy, self.episodes.options.rules)))
        return np.array(values)


def check_view(world: World, what: str, other: str) -> None:
    """Refuse what looks at RLScheduler's view in another world; ``other`` is what to use there.

    Raises
    ------
    UsageError
        If there is no such view.
    """
    if world.mode != "paper":
        raise UsageError(f"{what} looks at the 128 slots of mode paper at once; use --mode paper, or {other}")


# Trajectory filtering -------------------------------------------------------------------------------------------------

# The first rounds learn from windows that are neither trivial nor hopeless under SJF.
#
# The SC'20 paper takes the windows whose value under SJF lies between the median and twice the mean of all; its program
# has 10 and 150 instead. Phase 2 learns from all windows.

_OF_THE_CODE = (10.0, 150.0)
_AT_A_TIME = 512


def filtered_starts(world: World, starts: Int64Array, rule: Filtering) -> Int64Array:
    """Return the starts of phase 1.

    Parameters
    ----------
    world : World
        What plays SJF; its goal is to be small.
    starts : int64 array
        All of them.
    rule : {"none", "paper", "code"}
        As in `policyfactory.search.reinforce.options.PpoOptions`.

    Raises
    ------
    EvaluationError
        If no window is inside.
    """
    if rule == "none":
        return starts
    sjf = resolve("SJF")
    parts = [world.costs_of(sjf, starts[first : first + _AT_A_TIME]) for first in range(0, len(starts), _AT_A_TIME)]
    values = np.concatenate(parts)
    low, high = (float(np.median(values)), 2 * float(values.mean())) if rule == "paper" else _OF_THE_CODE
    # Both ends are outside, as in the program.
    inside = starts[(values > low) & (values < high)]
    if not len(inside):
        raise EvaluationError(
            f"filtering {rule}: none of {len(starts):,} windows has a value under SJF between {low:g} and {high:g}; "
            "choose another rule, or none"
        )
    return np.asarray(inside, dtype=np.int64)
