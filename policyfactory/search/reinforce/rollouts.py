"""Windows played by a network: what was seen, chosen, and what it cost from decision to decision."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Float32Array, FloatArray, Int64Array
from policyfactory.engine.rollouts import Choices, Layers, choose_all, new_choices
from policyfactory.search.reinforce.worlds import World

__all__ = ["ByLayers", "Chooser", "Rollouts", "Rows", "play"]

_ARGMAX = -1.0


class Rows:
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
        self, world: World, uniform: FloatArray, keep: NDArray[np.bool_], rows: Rows, choices: Choices
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
        self, world: World, uniform: FloatArray, keep: NDArray[np.bool_], rows: Rows, choices: Choices
    ) -> None:  # fmt: skip
        """Fill in the choices."""
        room = rows.room_for(int(world.mask[keep].sum()))
        rows.count = choose_all(
            world.jobs, world.mask, world.over, self.layers, uniform, keep, room, rows.count, choices
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Rollouts:
    """What was played; b episodes, d decisions that were kept, t the most decisions of an episode.

    Parameters
    ----------
    rows : float32 array (., inputs)
        The jobs that could be chosen, decision after decision.
    size, place : int64 array (d,)
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
    place: Int64Array
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
    b = len(world)
    rows, choices = Rows(world.jobs.shape[2]), new_choices(b)
    parts: list[tuple[NDArray[np.int64], ...]] = []
    log_probability: list[FloatArray] = []
    accrued = [world.accrued() if world.accrues else np.zeros(b)]
    started: list[Int64Array] = []
    decisions = np.zeros(b, dtype=np.int64)
    argmax, none = np.full(b, _ARGMAX), np.zeros(b, dtype=np.bool_)
    step = 0
    while not world.over.all():
        going = ~world.over
        uniform = argmax if random is None else random.random(b)
        keep = none if share <= 0 or random is None else (random.random(b) < share) & going
        chooser.choose(world, uniform, keep, rows, choices)
        at = np.flatnonzero(keep)
        parts.append((choices.size[at], choices.place[at], at, np.full(len(at), step)))
        log_probability.append(choices.log_probability[at])
        started.append(world.started.copy())
        world.step(choices.slot)
        accrued.append(world.accrued() if world.accrues else accrued[0])
        decisions += going
        step += 1
    size, place, episode, when = (np.concatenate(part) for part in zip(*parts, strict=True))
    count = len(first)
    summed, costs = np.stack(accrued, axis=1)[:count], world.costs()
    if not world.accrues:
        # All at the end.
        summed[np.arange(step + 1) >= decisions[:count, None]] = np.repeat(costs, step + 1 - decisions[:count])
    return Rollouts(
        rows.kept,
        size,
        place,
        np.concatenate(log_probability),
        episode,
        when,
        summed,
        np.stack(started, axis=1)[:count],
        decisions[:count],
        costs,
    )
