"""The learner ``ppo``: the kernel network, trained in the mode that it is judged in.

Its checkpoints are the candidates: which of them is taken is decided on windows that it did not learn from.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.artefact import command_line, package_versions
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.environment.goals import GOALS
from policyfactory.policy.policy import Policy
from policyfactory.search.learner import Candidate, Learned, Task
from policyfactory.search.reinforce.filtering import filtered_starts
from policyfactory.search.reinforce.networks import KERNEL, network_of, torch_module
from policyfactory.search.reinforce.options import PpoOptions, Preset, ppo_options
from policyfactory.search.reinforce.training import BESIDE, TrainedNumbers, Training
from policyfactory.search.reinforce.worlds import PaperWorld, StandardWorld, World
from policyfactory.simulate.compat import CommittedLog

__all__ = ["Reinforcement"]

# Raised whenever the same options would find other networks: a checkpoint of older code is not continued.
_METHOD = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Reinforcement:
    """The learner.

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

    def learn(self, task: Task) -> Learned:
        """Train the network."""
        starts, jobs = windows_to_learn_from(task)
        world = self._world(task, jobs)
        run = {
            "workload_sha256": task.workload.sha256(),
            "train": dataclasses.asdict(task.options),
            "method": _METHOD,
        }
        training = Training(world, starts, self.options, task.options.seed, _json(run))
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
            made = training.train(task.journal, counter, task.follower.message, phase_one)
        except BaseException as stop:
            if task.journal is not None and task.journal.exists():
                task.follower.kept(stop, f"{len(training.history)} rounds of training", task.journal)
            raise
        return self._learned(task, world, made)

    def _world(self, task: Task, jobs: int) -> World:
        episodes, goal = self.options.windows * self.options.rollouts, task.options.goal
        if task.options.mode == "paper":
            log = CommittedLog.of_workload(task.workload)
            return PaperWorld(log, jobs, episodes, backfill=task.options.backfill == "easy", goal=goal)
        return StandardWorld(task.workload, jobs, episodes, rules=task.options.rules, goal=goal)

    def _learned(self, task: Task, world: World, made: TrainedNumbers) -> Learned:
        candidates = []
        provenance = {
            "command": command_line(),
            "seed": task.options.seed,
            "workload": task.workload.name,
            "workload_sha256": task.workload.sha256(),
            "versions": {**package_versions(), "torch": str(torch_module().__version__)},
            "settings": self.describe(),
        }
        for iteration, numbers in zip(made.iterations, made.numbers, strict=True):
            row = made.history[iteration - 1]
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
            name: [(row["decisions"], sign * row[key]) for row in made.history]
            for name, key in (("network", "cost"), *((beside, beside) for beside in BESIDE))
        }
        return Learned(
            tuple(candidates),
            made.history,
            curves,
            "decisions",
            axis=f"{goal} of the round's windows,\ndrawn choices",
            warnings=(made.stopped,) if made.stopped else (),
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


def _goes_on(training: Training, task: Task) -> bool:
    """Say whether the checkpoint that lies there is of this run."""
    from policyfactory.core.errors import PolicyfactoryError
    from policyfactory.search.reinforce.checkpoint import load_checkpoint

    if task.journal is None or not task.journal.exists():
        return True
    try:
        return load_checkpoint(task.journal).run == training.run
    except PolicyfactoryError:
        return False


def _json(value: Any) -> Any:
    import json

    return json.loads(json.dumps(value))
