"""Decisions of a network in many episodes at once, each job scored by itself; and what waiting has cost so far.

A network here is dense layers, ReLU between them, one output: the preference for a job. Only the jobs that can be
chosen are looked at. A choice is drawn from the softmax of their preferences by a uniform number that is drawn outside,
or it is the first of the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import inlined, kernel
from policyfactory.core.options import Float32Array, FloatArray, Int64Array
from policyfactory.engine.compat.rlscheduler import FIRST, NEXT, NOW, Committed, RLSchedulerEpisode, one_of


class Layers(NamedTuple):
    """The numbers of a network.

    Parameters
    ----------
    widths : int64 array (layers + 1,)
        Inputs, and outputs of each layer; the last is 1.
    numbers : float32 array
        Layer by layer the weights (inputs, outputs), then the biases.
    """

    widths: Int64Array
    numbers: Float32Array


class RolloutChoices(NamedTuple):
    """What was chosen in b episodes; arrays (b,).

    Parameters
    ----------
    slot : int64 array
        The slot of the chosen job.
    position : int64 array
        Its position among those that could be chosen.
    size : int64 array
        How many could be chosen.
    log_probability : float64 array
        Of the choice, under the softmax.
    """

    slot: Int64Array
    position: Int64Array
    size: Int64Array
    log_probability: FloatArray


class Accrual(NamedTuple):
    """What each job of a log costs after w seconds of waiting: weight max((w + base) / divisor, least).

    Parameters
    ----------
    base, divisor : float64 array (n,)
        Seconds; of each job of the log.
    weight : float64 array (b, jobs of a window)
        Of each job of each window.
    least : float
        The least that a job costs.
    elapsed : float
        What a second of the clock costs beside.
    """

    base: FloatArray
    divisor: FloatArray
    weight: FloatArray
    least: float
    elapsed: float


def new_choices(episodes: int) -> RolloutChoices:
    """Return space for one choice in each of so many episodes."""
    slot, position, size = np.zeros((3, episodes), dtype=np.int64)
    return RolloutChoices(slot, position, size, np.zeros(episodes))


@kernel
def choose_all(
    jobs: Float32Array,
    mask: NDArray[np.bool_],
    over: NDArray[np.bool_],
    layers: Layers,
    uniform: FloatArray,
    keep: NDArray[np.bool_],
    rows: Float32Array,
    kept: int,
    choices: RolloutChoices,
) -> int:
    """Choose a job in each episode that is not over; return how many rows are kept then.

    Parameters
    ----------
    jobs : float32 array (b, slots, inputs)
        What is seen of the job in each slot.
    mask : bool array (b, slots)
        Which can be chosen; one at least, where an episode is not over.
    over : bool array (b,)
        Which episodes are over; their choice is slot 0.
    layers : Layers
        The network.
    uniform : float64 array (b,)
        From 0 to below 1; below 0: the largest preference is taken, the first of equal ones.
    keep : bool array (b,)
        Of which episodes what was seen of the jobs is kept, for learning.
    rows : float32 array (at least kept + b slots, inputs)
        Where it is kept, job after job.
    kept : int
        How many rows are kept already.
    choices : Choices
        What was chosen.
    """
    slots = mask.shape[1]
    widest = layers.widths.max()
    activation, sums = np.empty(widest, dtype=np.float32), np.empty(widest, dtype=np.float32)
    preference, slot_of = np.empty(slots, dtype=np.float64), np.empty(slots, dtype=np.int64)
    for episode in range(len(over)):
        choices.slot[episode] = choices.position[episode] = choices.size[episode] = 0
        choices.log_probability[episode] = 0.0
        if over[episode]:
            continue
        size = 0
        for slot in range(slots):
            if not mask[episode, slot]:
                continue
            if keep[episode]:
                for feature in range(jobs.shape[2]):
                    rows[kept, feature] = jobs[episode, slot, feature]
                kept += 1
            preference[size] = _prefer(jobs, episode, slot, layers, activation, sums)
            slot_of[size] = slot
            size += 1
        position = _choose(preference, size, uniform[episode], choices.log_probability, episode)
        choices.slot[episode], choices.position[episode], choices.size[episode] = slot_of[position], position, size
    return kept


@inlined
def _prefer(
    jobs: Float32Array, episode: int, slot: int, layers: Layers, activation: Float32Array, sums: Float32Array
) -> float:
    """Return the network's output for the job in a slot."""
    widths, numbers = layers.widths, layers.numbers
    for unit in range(widths[0]):
        activation[unit] = jobs[episode, slot, unit]
    first, last = 0, len(widths) - 2
    for layer in range(last + 1):
        inputs, outputs = widths[layer], widths[layer + 1]
        biases = first + inputs * outputs
        for to in range(outputs):
            sums[to] = numbers[biases + to]
        for unit in range(inputs):
            value = activation[unit]
            # Half of what comes out of a ReLU is 0.
            if value != 0.0:
                row = first + unit * outputs
                for to in range(outputs):
                    sums[to] += value * numbers[row + to]
        for to in range(outputs):
            activation[to] = sums[to] if layer == last or sums[to] > 0.0 else np.float32(0.0)
        first = biases + outputs
    return float(activation[0])


@inlined
def _choose(preference: FloatArray, size: int, uniform: float, log_probability: FloatArray, episode: int) -> int:
    """Return the place that is chosen, and note the logarithm of its probability."""
    best = 0
    for position in range(1, size):
        if preference[position] > preference[best]:
            best = position
    most, total = preference[best], 0.0
    for position in range(size):
        total += np.exp(preference[position] - most)
    chosen = best
    if uniform >= 0.0:
        # Where rounding leaves the sum below the bound the last is taken.
        chosen, reached, bound = size - 1, 0.0, uniform * total
        for position in range(size):
            reached += np.exp(preference[position] - most)
            if reached > bound:
                chosen = position
                break
    log_probability[episode] = preference[chosen] - most - np.log(total)
    return chosen


@kernel
def accrue_all(jobs: Committed, episodes: RLSchedulerEpisode, accrual: Accrual, total: FloatArray) -> None:
    """Fill in what the jobs of each window of RLScheduler's program have cost until now.

    A job costs from when it enters the queue until it is started, so that between two decisions exactly that accrues
    by which the jobs' goal grows: the differences add up to the goal's sum over the window. With bounded slowdown a
    job costs 1 as it enters, then 1 / max(p, 10) for each second that it waits beyond 10 - p.

    Parameters
    ----------
    jobs : Committed
        The log.
    episodes : Episode
        The windows.
    accrual : Accrual
        What a job costs.
    total : float64 array (b,)
        What has accrued.
    """
    for number in range(len(total)):
        episode = one_of(episodes, number)
        first, now = episode.state[FIRST], episode.state[NOW]
        begin = jobs.submit[first]
        summed, last = 0.0, begin
        for job in range(episode.state[NEXT]):
            start = episode.start[job]
            until = now if start < 0 else start
            last = max(last, until)
            cost = (until - jobs.submit[first + job] + accrual.base[first + job]) / accrual.divisor[first + job]
            summed += accrual.weight[number, job] * max(cost, accrual.least)
        total[number] = summed + accrual.elapsed * (last - begin)
