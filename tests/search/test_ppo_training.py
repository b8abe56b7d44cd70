"""Training: the same run gives the same bytes, interrupted or not; and what is damaged is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError, ModelFileError, OutputError, UsageError
from policyfactory.core.files import exclusive
from policyfactory.core.process import WorkCounter
from policyfactory.policy.store import load_model
from policyfactory.search.options import TrainOptions
from policyfactory.search.reinforce import training as checkpoint
from policyfactory.search.reinforce import training as module
from policyfactory.search.reinforce.options import PpoOptions
from policyfactory.search.reinforce.training import (
    AgentTraining,
    Reinforcement,
    TrainedNumbers,
    load_checkpoint,
)
from policyfactory.search.run import train
from small_training import JOBS, all_starts, few, small_log, small_world
from support import extra_module

torch = extra_module("torch", "rl")


def training(mode: str = "paper", options: PpoOptions | None = None, seed: int = 1) -> AgentTraining:
    options = options or few()
    world = small_world(mode, options.windows * options.rollouts)
    return AgentTraining(world, all_starts(), options, seed, {"log": "small"})


class Interrupted(WorkCounter):
    """Stops the run after some rounds."""

    def __init__(self, after: int) -> None:
        self.left = after

    def done(self, amount: int) -> None:
        assert amount > 0
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def same(one: TrainedNumbers, other: TrainedNumbers) -> bool:
    return one.iterations == other.iterations and one.history == other.history and np.array_equal(
        one.numbers, other.numbers
    )  # fmt: skip


PAPER = {"preset": "paper", "iterations": 3, "windows": 4, "passes": 2, "checkpoint_every": 2}


@pytest.mark.parametrize(
    ("mode", "changes"),
    [
        ("paper", {}),
        ("standard", {"checkpoint_every": 3}),
        ("paper", {**PAPER, "rollouts": 1, "decisions": 0, "batch": 0}),
        ("paper", {"network": "mlp-v2", "iterations": 3}),
    ],
)
def test_an_interrupted_run_goes_on_to_the_same_bytes(mode: str, changes: dict[str, Any], tmp_path: Path) -> None:
    options = few(**changes)
    whole = training(mode, options).train(tmp_path / "whole")
    assert len(whole.history) == options.iterations
    assert whole.iterations[-1] == options.iterations
    with pytest.raises(KeyboardInterrupt):
        training(mode, options).train(tmp_path / "parts", Interrupted(2))
    assert load_checkpoint(tmp_path / "parts").iteration == 2
    said: list[str] = []
    resumed = training(mode, options).train(tmp_path / "parts", say=said.append)
    assert said == [f"2 of {options.iterations} rounds were finished by an earlier run"]
    assert same(whole, resumed)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()
    # What is finished is not done again.
    assert same(training(mode, options).train(tmp_path / "parts"), whole)
    assert not same(training(mode, options, seed=2).train(), whole)


def test_the_history_of_a_run_that_went_on_is_that_of_one_that_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = TrainOptions(window_jobs=JOBS, choosing_windows=2, judged_windows=2, bands=())
    arguments = small_log(), Reinforcement.of(few(iterations=3)), options
    train(*arguments, output=tmp_path / "whole")
    step = AgentTraining._round

    def interrupted(self: AgentTraining, iteration: int) -> dict[str, Any]:
        if iteration == 2:
            raise KeyboardInterrupt
        return step(self, iteration)

    with monkeypatch.context() as changed:
        changed.setattr(AgentTraining, "_round", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(*arguments, output=tmp_path / "parts")
    train(*arguments, output=tmp_path / "parts")
    for name in ("history.csv", "report.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


@pytest.mark.slow
def test_after_kill_9_too(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "from test_ppo_training import training, WorkCounter\n"
        "class Killed(WorkCounter):\n"
        "    left = 2\n"
        "    def done(self, amount):\n"
        "        self.left -= 1\n"
        "        if not self.left: os.kill(os.getpid(), signal.SIGKILL)\n"
        "training().train(Path(sys.argv[1]), Killed())\n"
    )
    here = Path(__file__).parent
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "parts"), str(here), str(here.parent)],
        check=False,
        env={**os.environ},
    )
    assert killed.returncode == -signal.SIGKILL
    training().train(tmp_path / "whole")
    training().train(tmp_path / "parts")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["paper", "standard"])
def test_a_network_learns(mode: str) -> None:
    options = few(iterations=25, windows=6, rollouts=6, decisions=0, batch=100)
    history = training(mode, options).train().history

    def excess(rows: tuple[Any, ...]) -> float:
        return sum(row["cost"] for row in rows) / sum(row["SJF"] for row in rows) - 1

    # Choices at random are 15 to 30 % above SJF; what is learned is half as far from it or less.
    assert excess(history[:4]) > 0.1
    assert excess(history[-8:]) < 0.7 * excess(history[:4])


def test_what_cannot_be_gone_on_with_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "train.partial"
    with pytest.raises(KeyboardInterrupt):
        training().train(path, Interrupted(2))
    good = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"is the checkpoint of a run with other seed; give the same options"):
        training(seed=2).train(path)
    with pytest.raises(ModelFileError, match="other inputs"):
        training("standard").train(path)
    for damaged in (good[: len(good) // 2], good[:-30], b"PK\x03\x04", b"", b'{"kind": "policyfactory-network"}'):
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"is no checkpoint of a training run, or damaged \([\d,]+ bytes\)"):
            training().train(path)
    monkeypatch.setattr(checkpoint, "_SCHEMA", 3)
    path.write_bytes(good)
    with pytest.raises(ModelFileError, match=r"schema 2, .* reads 3; use the version that wrote it"):
        load_checkpoint(path)


def test_a_loss_that_is_not_finite_stops_with_the_last_good_checkpoint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = module.by_other_rollouts

    def spoiled(after: int) -> Any:
        count = [0]

        def advantages(*arguments: Any) -> Any:
            count[0] += 1
            made = real(*arguments)
            return made * np.nan if count[0] > after else made

        return advantages

    whole = training().train()
    monkeypatch.setattr(module, "by_other_rollouts", spoiled(2))
    said: list[str] = []
    stopped = training().train(tmp_path / "train.partial", say=said.append)
    assert stopped.stopped == said[-1]
    assert stopped.stopped == (
        "round 3: the loss is not finite; training stopped with the last good checkpoint, of round 2; give a smaller "
        "learning rate to go further"
    )
    assert stopped.iterations == (1, 2)
    assert np.array_equal(stopped.numbers, whole.numbers[:2])
    assert load_checkpoint(tmp_path / "train.partial").iteration == 2
    monkeypatch.setattr(module, "by_other_rollouts", spoiled(0))
    with pytest.raises(EvaluationError, match="round 1: the loss is not finite, and no candidate was taken before"):
        training().train()


def test_the_report_says_that_training_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real, rounds = module.by_other_rollouts, iter(range(9))
    monkeypatch.setattr(module, "by_other_rollouts", lambda *given: real(*given) * (np.nan if next(rounds) else 1.0))
    learner = Reinforcement.of("ours", iterations=3, windows=2, rollouts=2, checkpoint_every=1)
    options = TrainOptions(window_jobs=JOBS, choosing_windows=3, judged_windows=4, bands=())
    found = train(small_log(), learner, options, output=tmp_path / "found")
    said = "round 2: the loss is not finite; training stopped with the last good checkpoint, of round 1"
    assert found.warnings[0].startswith(said)
    assert json.loads((tmp_path / "found" / "report.json").read_text())["warnings"][0].startswith(said)
    assert load_model(tmp_path / "found" / "policy.json").policy.network == found.policy.network


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    learner = Reinforcement.of("ours", iterations=1, windows=2, rollouts=2)
    with exclusive(tmp_path / "policy.json"), pytest.raises(OutputError, match="another run"):
        train(small_log(), learner, TrainOptions(window_jobs=JOBS), output=tmp_path)


def test_what_does_not_suit_is_refused() -> None:
    with pytest.raises(UsageError, match="network mlp-v1 looks at the 128 slots of mode paper"):
        training("standard", few(network="mlp-v1"))
    with pytest.raises(
        UsageError, match="value network of training paper looks at the 128 slots of mode paper at once"
    ):
        training("standard", few(preset="paper"))
    with pytest.raises(UsageError, match="has room for 4 episodes"):
        AgentTraining(small_world("paper", 4), all_starts(), few(), 1, {})
