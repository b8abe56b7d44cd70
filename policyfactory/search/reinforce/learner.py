"""The learner ``ppo``: the kernel network, trained in the mode that it is judged in.

Its checkpoints are the candidates: which of them is taken is decided on windows that it did not learn from.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from policyfactory.core.errors import EvaluationError, PolicyfactoryError, UsageError
from policyfactory.core.files import package_versions
from policyfactory.core.options import Int64Array
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.search.environment.goals import GOALS
from policyfactory.search.learner import Candidate, Proposals, Task, provenance_of
from policyfactory.search.reinforce.networks import KERNEL, network_of, torch_module
from policyfactory.search.reinforce.options import Filtering, PpoOptions, Preset, ppo_options
from policyfactory.search.reinforce.rollouts import PaperWorld, StandardWorld, World
from policyfactory.search.reinforce.training import BESIDE, AgentTraining, TrainedNumbers, load_checkpoint
from policyfactory.simulation.compat import CommittedLog

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
        if self.options.filtering != "none" and self.options.filtered:
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
