"""The learner ``ppo``, and its training of a network: rounds of rollouts and updates, each kept on disk.

Everything random is drawn from streams of the seed and the number of the round, and torch calculates in one thread by
deterministic algorithms: the same run gives the same numbers, whether or not it was interrupted.

What a round changes is worked out by proximal policy optimisation: J. Schulman and others, "Proximal policy
optimization algorithms", arXiv:1707.06347. Only jobs that could be chosen have a probability (masking). Gradients of
many decisions are summed over parts, so that memory stays small.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, ModelFileError, PolicyfactoryError, UsageError
from policyfactory.core.files import atomic_write, package_versions
from policyfactory.core.inputs import read_bytes
from policyfactory.core.options import Float32Array, FloatArray, Int64Array
from policyfactory.core.process import WorkCounter
from policyfactory.core.random import generator
from policyfactory.core.version import __version__
from policyfactory.engine.rollouts import RolloutChoices
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.search.environment.goals import GOALS
from policyfactory.search.learner import Candidate, Proposals, Task, provenance_of
from policyfactory.search.reinforce.networks import (
    KERNEL,
    device_of,
    layers_of,
    network_of,
    new_network,
    new_value_network,
    numbers_of,
    set_numbers,
    torch_module,
)
from policyfactory.search.reinforce.options import PpoOptions, Preset, ppo_options
from policyfactory.search.reinforce.rollouts import (
    ByLayers,
    Chooser,
    PaperWorld,
    RolloutRows,
    Rollouts,
    StandardWorld,
    World,
    check_view,
    filtered_starts,
    play,
)
from policyfactory.simulation.compat import CommittedLog

_PART = 2_500  # decisions of which the gradients are worked out together


class NotFiniteError(ArithmeticError):
    """NotFiniteError is raised when a loss is not finite."""


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkUpdate:
    """What the passes of a round did: the last loss, the mean KL divergence, the share that was clipped, the steps."""

    loss: float
    change: float
    clipped: float
    steps: int


class Decisions:
    """Decisions as ragged rows, on a device.

    Parameters
    ----------
    played : Rollouts
        With the decisions.
    device : torch device
        Where they are calculated with.
    """

    def __init__(self, played: Rollouts, device: Any) -> None:
        self._torch = torch_module()
        self._device = device
        self._rows: Float32Array = played.rows
        self._size: Int64Array = played.size
        self._first = np.cumsum(played.size) - played.size
        self.chosen, self.old = played.chosen, played.log_probability

    def __len__(self) -> int:
        return len(self._size)

    def pick(self, which: Int64Array) -> tuple[Any, Any]:
        """Return rows and sizes of some decisions as tensors."""
        size = self._size[which]
        before = np.cumsum(size) - size
        rows = np.repeat(self._first[which] - before, size) + np.arange(size.sum())
        return self.tensor(self._rows[rows]), self.tensor(size)

    def tensor(self, values: Any) -> Any:
        """Return an array as a tensor on the device."""
        return self._torch.from_numpy(np.ascontiguousarray(values)).to(self._device)


def improve(
    policy: Any,
    optimizer: Any,
    decisions: Decisions,
    advantages: FloatArray,
    *,
    passes: int,
    batch: int,
    clip: float,
    most_change: float,
    random: np.random.Generator,
) -> NetworkUpdate:
    """Make what went better than expected more likely.

    Parameters
    ----------
    policy, optimizer : torch module and optimiser
        The network and what changes it.
    decisions : Decisions
        What was decided.
    advantages : float64 array (d,)
        How much better it was than expected.
    passes, batch : int
        Passes over all of them, decisions of a step (0: all).
    clip, most_change : float
        As in `policyfactory.search.reinforce.options.PpoOptions`.
    random : numpy Generator
        Draws the order of a pass.

    Raises
    ------
    NotFiniteError
        If the loss is not finite; the network is as before that step.
    """
    steps, loss, change, clipped = 0, 0.0, 0.0, 0.0
    for _ in range(passes):
        order = np.arange(len(decisions)) if batch == 0 else random.permutation(len(decisions))
        for which in _split(order, batch or len(order)):
            optimizer.zero_grad()
            loss, change, clipped = 0.0, 0.0, 0.0
            for part in _split(which, _PART):
                sums = _surrogate(policy, decisions, part, advantages, clip)
                (sums[0] / len(which)).backward()
                means = [float(value.detach()) / len(which) for value in sums]
                loss, change, clipped = loss + means[0], change + means[1], clipped + means[2]
            if not math.isfinite(loss):
                raise NotFiniteError("the loss is not finite")
            if most_change and change > most_change:
                return NetworkUpdate(loss, change, clipped, steps)
            optimizer.step()
            steps += 1
    return NetworkUpdate(loss, change, clipped, steps)


def _surrogate(
    policy: Any, decisions: Decisions, which: Int64Array, advantages: FloatArray, clip: float
) -> tuple[Any, Any, Any]:
    """Return, summed over decisions, the loss, the change of the logarithm of the probability, and what was clipped."""
    torch = torch_module()
    rows, sizes = decisions.pick(which)
    logarithms = torch.log_softmax(policy(rows, sizes), dim=1)
    position = decisions.tensor(decisions.chosen[which])
    now = logarithms.gather(1, position[:, None])[:, 0]
    old = decisions.tensor(decisions.old[which].astype(np.float32))
    better = decisions.tensor(advantages[which].astype(np.float32))
    ratio = torch.exp(now - old)
    bounded = torch.clamp(ratio, 1 - clip, 1 + clip)
    gain = torch.minimum(ratio * better, bounded * better)
    return -gain.sum(), (old - now).detach().sum(), (ratio != bounded).detach().sum()


def values_of(network: Any, decisions: Decisions) -> FloatArray:
    """Return what a value network expects at each decision: float64 array (d,)."""
    torch = torch_module()
    with torch.no_grad():
        parts = [network(*decisions.pick(part)).cpu().numpy() for part in _split(np.arange(len(decisions)), _PART)]
    return np.concatenate(parts).astype(np.float64)


def fit_values(network: Any, optimizer: Any, decisions: Decisions, targets: FloatArray, passes: int) -> float:
    """Fit a value network to what came, with all decisions in each step; return the last mean square error.

    Raises
    ------
    NotFiniteError
        If the loss is not finite.
    """
    every, loss = np.arange(len(decisions)), 0.0
    for _ in range(passes):
        optimizer.zero_grad()
        loss = 0.0
        for part in _split(every, _PART):
            target = decisions.tensor(targets[part].astype(np.float32))
            squares = ((network(*decisions.pick(part)) - target) ** 2).sum() / len(every)
            squares.backward()
            loss += float(squares.detach())
        if not math.isfinite(loss):
            raise NotFiniteError("the loss of the value network is not finite")
        optimizer.step()
    return loss


def _split(values: Int64Array, size: int) -> Iterator[Int64Array]:
    for first in range(0, len(values), size):
        yield values[first : first + size]


# How much better a decision was than expected -------------------------------------------------------------------------

# By other rollouts of the same window, or by a value network.
#
# Costs are to be small; advantages are positive where a decision was better.


def costs_to_go(accrued: FloatArray, decisions: Int64Array, gamma: float) -> FloatArray:
    """Return what is still to come at each decision, discounted by ``gamma`` a decision: float64 array (b, t).

    Parameters
    ----------
    accrued : float64 array (b, t + 1)
        What had accrued before each decision, and after the last.
    decisions : int64 array (b,)
        How many each episode has; 0 is returned behind them.
    gamma : float
        Discount.
    """
    since = np.diff(accrued, axis=1)
    to_go = np.zeros((since.shape[0], since.shape[1] + 1))
    for step in range(since.shape[1] - 1, -1, -1):
        to_go[:, step] = since[:, step] + gamma * to_go[:, step + 1]
    costs = to_go[:, :-1]
    costs[np.arange(costs.shape[1]) >= decisions[:, None]] = 0.0
    return costs


def by_other_rollouts(played: Rollouts, rollouts: int, gamma: float) -> FloatArray:
    """Return the advantage of each decision that was kept over all rollouts of its window: float64 array (d,).

    Rollouts of a window are compared where the same number of jobs was started: with backfilling that is not the same
    number of decisions. Costs are relative to the mean cost of the window, as policies are compared.

    Parameters
    ----------
    played : Rollouts
        ``rollouts`` episodes of each window, one behind the other.
    rollouts : int
        How many there are of each.
    gamma : float
        Discount.
    """
    to_go = costs_to_go(played.accrued, played.decisions, gamma)
    expected = np.zeros_like(to_go)
    for first in range(0, len(to_go), rollouts):
        group = range(first, first + rollouts)
        for number in group:
            started = played.started[number, : played.decisions[number]]
            for other in group:
                count = played.decisions[other]
                reached = np.searchsorted(played.started[other, :count], started, side="right") - 1
                expected[number, : len(started)] += to_go[other, np.maximum(reached, 0)]
    expected /= rollouts
    advantage = (expected - to_go)[played.episode, played.step]
    # A window of long queues has a hundred times the bounded slowdown of others, and would be all that is learned from.
    weight = np.abs(played.costs.reshape(-1, rollouts).mean(axis=1))
    weight[weight == 0] = 1.0
    return np.asarray(advantage / weight[played.episode // rollouts])


def by_values(
    played: Rollouts, values: FloatArray, gamma: float, gae: float
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return generalised advantages, and what the values should have been: float64 arrays (d,).

    J. Schulman and others, "High-dimensional continuous control using generalized advantage estimation", ICLR 2016.

    Parameters
    ----------
    played : Rollouts
        All decisions are kept.
    values : float64 array (d,)
        What was expected at each, as a reward: minus a cost.
    gamma, gae : float
        Discount and lambda.
    """
    b, t = played.started.shape
    value = np.zeros((b, t + 1))
    value[played.episode, played.step] = values
    reward = -np.diff(played.accrued, axis=1)
    # What is counted at the beginning is nobody's doing; with a reward at the end there is none.
    advantage, following = np.zeros((b, t)), np.zeros(b)
    for step in range(t - 1, -1, -1):
        delta = reward[:, step] + gamma * value[:, step + 1] - value[:, step]
        following = np.where(step < played.decisions, delta + gamma * gae * following, 0.0)
        advantage[:, step] = following
    targets = -costs_to_go(played.accrued, played.decisions, gamma)
    return advantage[played.episode, played.step], targets[played.episode, played.step]


def normalised(advantages: FloatArray) -> FloatArray:
    """Return advantages of mean 0 and standard deviation 1."""
    return np.asarray((advantages - advantages.mean()) / (advantages.std() + 1e-8))


# A run: rounds of rollouts and updates --------------------------------------------------------------------------------

# The paper's figures 8 and 10 have these beside the network.
BESIDE = ("SJF", "F1")
_DRAWS, _CHOICES, _ORDER = 74, 75, 76  # purposes of random streams; see core.random


@dataclasses.dataclass(frozen=True, slots=True)
class TrainedNumbers:
    """What training has made.

    Parameters
    ----------
    iterations : tuple of int
        After how many rounds each candidate was taken.
    numbers : float32 array (candidates, parameters)
        Their parameters.
    history : tuple of mapping
        A row of each round.
    stopped : str
        Why it did not come to its end; empty if it did.
    """

    iterations: tuple[int, ...]
    numbers: Float32Array
    history: tuple[Mapping[str, Any], ...]
    stopped: str


@dataclasses.dataclass(frozen=True, slots=True)
class ByModule:
    """A network of the whole view, decided with by torch."""

    module: Any
    device: Any

    def choose(
        self, world: World, uniform: FloatArray, keep: NDArray[np.bool_], rows: RolloutRows, choices: RolloutChoices
    ) -> None:  # fmt: skip
        """Fill in the choices."""
        torch = torch_module()
        jobs, mask, going = world.episodes.jobs, world.episodes.mask, np.flatnonzero(~world.episodes.done)
        sizes, seen = mask[going].sum(axis=1), jobs[going][mask[going]]
        with torch.no_grad():
            outputs = self.module(torch.from_numpy(seen).to(self.device), torch.from_numpy(sizes).to(self.device))
            logarithms = torch.log_softmax(outputs.double(), dim=1).cpu().numpy()
        reached = np.exp(logarithms).cumsum(axis=1)
        drawn = np.minimum((reached <= uniform[going, None]).sum(axis=1), sizes - 1)
        position = np.where(uniform[going] < 0, logarithms.argmax(axis=1), drawn)
        choices.slot[:] = choices.position[:] = choices.size[:] = 0
        # Jobs are shown from the first slot on.
        choices.slot[going] = choices.position[going] = position
        choices.size[going] = sizes
        choices.log_probability[going] = logarithms[np.arange(len(going)), position]
        kept = jobs[keep][mask[keep]]
        rows.room_for(len(kept))[rows.count : rows.count + len(kept)] = kept
        rows.count += len(kept)


def chooser_of(numbers: Float32Array, name: str, world: World, device: str = "cpu") -> Chooser:
    """Return who decides by a network of these numbers."""
    if name == KERNEL:
        return ByLayers(layers_of(numbers, len(world.inputs)))
    check_view(world, f"network {name}", "network kernel")
    module = new_network(name, len(world.inputs), 0)
    set_numbers(module, numbers)
    return ByModule(module.to(device), device_of(device))


class AgentTraining:
    """A training run: rounds of rollouts and updates, resumable from a checkpoint.

    Parameters
    ----------
    world : World
        Where it learns; with room for the windows of a round, each as often as it is played.
    starts : int64 array
        Rows at which windows to learn from may begin.
    options : PpoOptions
        How.
    seed : int
        Of all random numbers.
    run : mapping
        What else determines the result (JSON values): a checkpoint of another run is refused.

    Raises
    ------
    UsageError
        If torch or the device is not there, or the network does not suit the world.
    """

    def __init__(
        self, world: World, starts: Int64Array, options: PpoOptions, seed: int, run: Mapping[str, Any]
    ) -> None:  # fmt: skip
        self._torch = torch_module()
        self.world, self.starts, self.options, self.seed = world, starts, options, seed
        if len(world) < options.windows * options.rollouts:
            raise UsageError(f"the world has room for {len(world)} episodes; give it windows x rollouts")
        if options.network != KERNEL:
            check_view(world, f"network {options.network}", "network kernel")
        if options.preset == "paper":
            check_view(world, "the value network of training paper", "--training ours")
        self.run = {
            **run,
            "seed": seed,
            "inputs": list(world.inputs),
            "options": dataclasses.asdict(options),
            "torch": str(self._torch.__version__),
        }
        self._device = device_of(options.device)
        inputs = len(world.inputs)
        self._policy = new_network(options.network, inputs, seed).to(self._device)
        self._optimizer = self._adam(self._policy, options.rate)
        self._value = new_value_network(inputs, seed).to(self._device) if options.preset == "paper" else None
        self._value_optimizer = None if self._value is None else self._adam(self._value, options.value_rate)
        self._filtered: Int64Array | None = None
        self.history: list[Mapping[str, Any]] = []
        self.taken: list[tuple[int, Float32Array]] = []

    def _adam(self, module: Any, rate: float) -> Any:
        return self._torch.optim.Adam(module.parameters(), lr=rate, foreach=False)

    def train(
        self,
        path: Path | None = None,
        counter: WorkCounter | None = None,
        say: Callable[[str], None] = lambda _sentence: None,
        filtered: Int64Array | None = None,
    ) -> TrainedNumbers:
        """Train to the end, from a checkpoint if there is one.

        Parameters
        ----------
        path : Path, optional
            The checkpoint, written after each round.
        counter : WorkCounter, optional
            Counts decisions, round by round.
        say : callable, optional
            Is told what is no result.
        filtered : int64 array, optional
            Starts of phase 1 (`policyfactory.search.reinforce.training`).

        Raises
        ------
        ModelFileError
            If the checkpoint is damaged, of another run or of another network.
        EvaluationError
            If the first rounds already give no finite loss.
        """
        counter, self._filtered = counter or WorkCounter(), filtered
        with _alone(self._torch):
            if path is not None and path.exists():
                self._restore(load_checkpoint(path), path)
                say(f"{len(self.history)} of {self.options.iterations} rounds were finished by an earlier run")
            counter.expect(self.options.iterations)
            for row in self.history:
                counter.done(int(row["round_decisions"]))
            stopped = ""
            while len(self.history) < self.options.iterations:
                try:
                    row = self._round(len(self.history))
                except NotFiniteError as error:
                    stopped = self._stop(error)
                    say(stopped)
                    break
                self.history.append(row)
                rounds = len(self.history)
                if rounds % self.options.checkpoint_every == 0 or rounds == self.options.iterations:
                    self.taken.append((rounds, numbers_of(self._policy)))
                if path is not None:
                    save_checkpoint(path, self.checkpoint())
                counter.done(int(row["round_decisions"]))
        iterations = tuple(iteration for iteration, _ in self.taken)
        return TrainedNumbers(iterations, np.stack([row for _, row in self.taken]), tuple(self.history), stopped)

    def _stop(self, error: NotFiniteError) -> str:
        """Return why training ends before its time.

        Raises
        ------
        EvaluationError
            If there is nothing to go back to.
        """
        where = f"round {len(self.history) + 1}: {error}"
        if not self.taken:
            raise EvaluationError(
                f"{where}, and no candidate was taken before; give a smaller learning rate, or look at the log's times"
            )
        return (
            f"{where}; training stopped with the last good checkpoint, of round {self.taken[-1][0]}; give a smaller "
            "learning rate to go further"
        )

    def _round(self, iteration: int) -> dict[str, Any]:
        """Play and learn from windows; return the row of the history."""
        options, random = self.options, generator(self.seed, _DRAWS, iteration)
        pool = self.starts if self._filtered is None or iteration >= options.filtered else self._filtered
        windows = pool[random.integers(0, len(pool), options.windows)]
        first = np.repeat(windows, options.rollouts)
        chooser: Chooser = ByModule(self._policy, self._device)
        if options.network == KERNEL:
            chooser = ByLayers(layers_of(numbers_of(self._policy), len(self.world.inputs)))
        most = len(first) * self.world.size
        share = 1.0 if options.decisions == 0 else min(1.0, options.decisions / most)
        played = play(self.world, first, chooser, generator(self.seed, _CHOICES, iteration), share=share)
        decided = int(played.decisions.sum())
        update, value_loss = self._learn(played, generator(self.seed, _ORDER, iteration), iteration)
        before = self.history[-1]["decisions"] if self.history else 0
        return {
            "round": iteration + 1,
            "decisions": before + decided,
            "round_decisions": decided,
            "learned_from": len(played),
            "cost": float(played.costs.mean()),
            **{name: float(self.world.costs_of(resolve(name), windows).mean()) for name in BESIDE},
            "loss": update.loss,
            "change": update.change,
            "clipped": update.clipped,
            "steps": update.steps,
            "value_loss": value_loss,
        }

    def _learn(
        self, played: Rollouts, random: np.random.Generator, iteration: int
    ) -> tuple[NetworkUpdate, float | None]:  # fmt: skip
        options, value_loss = self.options, None
        decisions = Decisions(played, self._device)
        done = iteration / max(options.iterations - 1, 1)
        for group in self._optimizer.param_groups:
            group["lr"] = options.rate + (options.last_rate - options.rate) * done
        if self._value is None:
            advantages, targets = by_other_rollouts(played, options.rollouts, options.gamma), None
        else:
            played = _at_the_end(played)
            values = values_of(self._value, decisions)
            advantages, targets = by_values(played, values, options.gamma, options.gae)
        before = numbers_of(self._policy)
        try:
            update = improve(
                self._policy,
                self._optimizer,
                decisions,
                normalised(advantages),
                passes=options.passes,
                batch=options.batch,
                clip=options.clip,
                most_change=options.most_change,
                random=random,
            )
            if targets is not None:
                value_loss = fit_values(self._value, self._value_optimizer, decisions, targets, options.passes)
            if not np.isfinite(numbers_of(self._policy)).all():
                raise NotFiniteError("a weight is not finite")
        except NotFiniteError:
            set_numbers(self._policy, before)
            raise
        return update, value_loss

    # The state ---------------------------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint:
        """Return where the run stands."""
        arrays: dict[str, NDArray[Any]] = {
            "taken_rounds": np.array([iteration for iteration, _ in self.taken], dtype=np.int64),
            "taken": np.array([numbers for _, numbers in self.taken], dtype=np.float32),
        }
        for name, module, optimizer in self._parts():
            arrays[name] = numbers_of(module)
            for key in ("exp_avg", "exp_avg_sq", "step"):
                parts = [optimizer.state[parameter][key].cpu().numpy().ravel() for parameter in module.parameters()]
                arrays[f"{name}_{key}"] = np.concatenate(parts)
        return Checkpoint(self.run, len(self.history), tuple(self.history), arrays)

    def _parts(self) -> Iterator[tuple[str, Any, Any]]:
        yield "policy", self._policy, self._optimizer
        if self._value is not None:
            yield "value", self._value, self._value_optimizer

    def _restore(self, found: Checkpoint, path: Path) -> None:
        differing = sorted(key for key in {*found.run, *self.run} if found.run.get(key) != self.run.get(key))
        if differing:
            raise ModelFileError(
                f"{path}: is the checkpoint of a run with other {', '.join(differing)}; give the same options to go on "
                "with it, --overwrite to drop it, or another --output"
            )
        rounds = found.arrays["taken_rounds"].tolist()
        self.taken = list(zip(rounds, found.arrays["taken"], strict=True))
        self.history = list(found.history)
        for name, module, optimizer in self._parts():
            self._restore_part(found.arrays, name, module, optimizer)

    def _restore_part(self, arrays: Mapping[str, NDArray[Any]], name: str, module: Any, optimizer: Any) -> None:
        torch, offset = self._torch, 0
        set_numbers(module, arrays[name])
        for number, parameter in enumerate(module.parameters()):
            end, shape = offset + parameter.numel(), parameter.shape
            moments = {
                key: torch.from_numpy(arrays[f"{name}_{key}"][offset:end].copy()).reshape(shape).to(self._device)
                for key in ("exp_avg", "exp_avg_sq")
            }
            step = torch.tensor(float(arrays[f"{name}_step"][number]), dtype=torch.float32)
            optimizer.state[parameter] = {"step": step, **moments}
            offset = end


def _at_the_end(played: Rollouts) -> Rollouts:
    """Return the rollouts with the whole goal as the cost of the last decision, as the paper rewards."""
    accrued = np.zeros_like(played.accrued)
    after = np.arange(accrued.shape[1]) >= played.decisions[:, None]
    accrued[after] = np.repeat(played.costs, after.sum(axis=1))
    return dataclasses.replace(played, accrued=accrued)


@contextlib.contextmanager
def _alone(torch: Any) -> Iterator[None]:
    """Let torch calculate in one thread and deterministically: sums in another order are other numbers."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)


# The state of a training run on disk ----------------------------------------------------------------------------------

# A plain npz file behind its SHA-256, from which the same command goes on to the same result.
#
# Nothing in it is run. The random numbers of a round are those of its seed and number, so there is no state of them to
# keep.


_SCHEMA = 2
_LARGEST = 1 << 28  # bytes of the file
_HEAD = "head"


@dataclasses.dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a run stands.

    Parameters
    ----------
    run : mapping
        The run (JSON values): what determines its result.
    iteration : int
        Rounds that are done.
    history : tuple of mapping
        A row of each.
    arrays : mapping of str to array
        Numbers of the networks, of their optimisers, and of the candidates.
    """

    run: Mapping[str, Any]
    iteration: int
    history: tuple[Mapping[str, Any], ...]
    arrays: Mapping[str, NDArray[Any]]


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, whole or not at all; the same state gives the same bytes.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    head = {
        "schema_version": _SCHEMA,
        "run": dict(checkpoint.run),
        "iteration": checkpoint.iteration,
        "history": [dict(row) for row in checkpoint.history],
    }
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    file = io.BytesIO()
    # np.savez writes the time of day into its file.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as parts:
        for name, array in {_HEAD: text, **checkpoint.arrays}.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.ascontiguousarray(array), allow_pickle=False)
            parts.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())
    data = file.getvalue()
    atomic_write(path, hashlib.sha256(data).digest() + data)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    InputError
        If there is no such file.
    ModelFileError
        If it is no checkpoint, is damaged, or of another schema.
    """
    content = read_bytes(path, limit=_LARGEST, replaceable=True)
    size = hashlib.sha256().digest_size
    digest, data = content[:size], content[size:]
    if content.startswith(b"PK\x03\x04") and zipfile.is_zipfile(io.BytesIO(content)):  # schema 1: the npz file alone
        raise _of_schema(path, 1)
    if hashlib.sha256(data).digest() != digest:
        raise ModelFileError(
            f"{path}: is no checkpoint of a training run, or damaged ({len(content):,} bytes); --overwrite drops it "
            "and begins anew, or name another --output"
        )
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(parts.read(name)), allow_pickle=False)
            for name in parts.namelist()
        }
    head = json.loads(arrays.pop(_HEAD).tobytes())
    if head["schema_version"] != _SCHEMA:
        raise _of_schema(path, head["schema_version"])
    return Checkpoint(head["run"], head["iteration"], tuple(head["history"]), arrays)


def _of_schema(path: Path, schema: int) -> ModelFileError:
    return ModelFileError(
        f"{path}: has checkpoint schema {schema}, policyfactory {__version__} reads {_SCHEMA}; use the version that "
        "wrote it, or begin anew with --overwrite"
    )


# The learner ppo. -----------------------------------------------------------------------------------------------------

# The kernel network, trained in the mode that it is judged in. Its checkpoints are the candidates: which is taken is
# decided on windows that it did not learn from.

# Raised whenever the same options would find other networks: a checkpoint of older code is not continued.
_METHOD = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Reinforcement:
    """Learns a network by proximal policy optimisation.

    Parameters
    ----------
    options : PpoOptions
        How the network is trained.
    """

    options: PpoOptions
    name: str = "ppo"

    @classmethod
    def of(cls, options: PpoOptions | Preset = "ours", **changes: Any) -> Reinforcement:
        """Return the learner of options, or of a way of training with ``changes``: ``of("paper", iterations=5)``.

        Raises
        ------
        UsageError
            If torch is not installed, an option is wrong, or the network is no policy.
        """
        torch_module()
        if not isinstance(options, PpoOptions):
            options = ppo_options(options, **changes)
        elif changes:
            options = dataclasses.replace(options, **changes)
        if options.network != KERNEL:
            raise UsageError(
                f"--network {options.network}: looks at 128 slots at once and is no order of jobs, so it cannot be "
                "taken as a policy; train the network kernel, or compare the others by "
                "policyfactory.search.reinforce.training"
            )
        return cls(options)

    def describe(self) -> dict[str, Any]:
        """Return what determines what it finds."""
        return {**dataclasses.asdict(self.options), "method": _METHOD, "torch": str(torch_module().__version__)}

    def learn(self, task: Task) -> Proposals:
        """Train the network."""
        starts, jobs = windows_to_learn_from(task)
        world = self._world(task, jobs)
        # As it is read again: tuples are lists.
        options = json.loads(json.dumps(dataclasses.asdict(task.options)))
        run = {"workload_sha256": task.workload.sha256(), "train": options, "method": _METHOD}
        training = AgentTraining(world, starts, self.options, task.options.seed, run)
        if task.journal is not None and task.overwrite and not _goes_on(training, task):
            task.journal.unlink(missing_ok=True)
        phase_one = None
        if self.options.filtered:
            phase_one = filtered_starts(world, starts, self.options.filtering)
            task.follower.message(
                f"phase 1 learns from {len(phase_one):,} of {len(starts):,} windows, by --filtering "
                f"{self.options.filtering}"
            )
        counter = task.follower.counter("rounds", "decisions")
        try:
            trained = training.train(task.journal, counter, task.follower.message, phase_one)
        except BaseException as stop:
            if task.journal is not None and task.journal.exists():
                task.follower.kept(stop, f"{len(training.history)} rounds of training", task.journal)
            raise
        return self._learned(task, world, trained)

    def _world(self, task: Task, jobs: int) -> World:
        episodes, goal = self.options.windows * self.options.rollouts, task.options.goal
        if task.options.mode == "paper":
            log = CommittedLog.of_workload(task.workload)
            return PaperWorld(log, jobs, episodes, backfill=task.options.backfill == "easy", goal=goal)
        return StandardWorld(task.workload, jobs, episodes, rules=task.options.rules, goal=goal)

    def _learned(self, task: Task, world: World, trained: TrainedNumbers) -> Proposals:
        candidates = []
        versions = {**package_versions(), "torch": str(torch_module().__version__)}
        provenance = provenance_of(task.workload, task.options.seed, versions=versions, settings=self.describe())
        for iteration, numbers in zip(trained.iterations, trained.numbers, strict=True):
            row = trained.history[iteration - 1]
            network = network_of(
                numbers,
                f"ppo-{iteration}",
                world.inputs,
                description=f"kernel network trained for {task.options.goal} by ppo, preset {self.options.preset}",
                source="policyfactory train",
                mode=world.mode,
                diagnostics={"rounds": iteration, "decisions": row["decisions"], "seed": task.options.seed},
                provenance=provenance,
            )
            origin = f"checkpoint after round {iteration}, {row['decisions']:,} decisions"
            candidates.append(Candidate(Policy.from_network(network), float(row["cost"]), origin=origin))
        goal = task.options.goal
        sign = 1 if GOALS[goal].lower_is_better else -1
        curves = {
            name: [(row["decisions"], sign * row[key]) for row in trained.history]
            for name, key in (("network", "cost"), *((beside, beside) for beside in BESIDE))
        }
        return Proposals(
            tuple(candidates),
            trained.history,
            curves,
            "decisions",
            axis=f"{goal} of the round's windows,\ndrawn choices",
            warnings=(trained.stopped,) if trained.stopped else (),
        )


def windows_to_learn_from(task: Task) -> tuple[Int64Array, int]:
    """Return where windows to learn from may begin, and how many jobs they have.

    Any window inside the first part of the log, or inside the windows that were given, is one.

    Raises
    ------
    EvaluationError
        If there is no such window.
    """
    size = task.options.window_jobs
    given = task.windows.training
    if task.windows.held_out:
        given = np.array([[0, len(task.workload) * task.options.parts[0] // 100]])
    parts = [np.arange(first, end - size + 1) for first, end in given.tolist()]
    starts = np.unique(np.concatenate(parts))
    if not len(starts):
        raise EvaluationError(
            f"{task.workload.name}: no window of {size} jobs is inside those to learn from; give a smaller "
            "--window-jobs"
        )
    return starts, size


def _goes_on(training: AgentTraining, task: Task) -> bool:
    """Say whether the checkpoint that lies there is of this run."""
    if task.journal is None or not task.journal.exists():
        return True
    try:
        return load_checkpoint(task.journal).run == training.run
    except PolicyfactoryError:
        return False
