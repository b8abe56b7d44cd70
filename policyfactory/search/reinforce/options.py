"""What can be said of how a network is trained, and the two presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from policyfactory.core.errors import UsageError
from policyfactory.search.reinforce.networks import KERNEL, NETWORKS

Preset: TypeAlias = Literal["ours", "paper"]
Filtering: TypeAlias = Literal["none", "paper", "code"]


# Without slots, so that the class has the defaults.
@dataclasses.dataclass(frozen=True)
class PpoOptions:
    """How a network is trained by proximal policy optimisation.

    Parameters
    ----------
    preset : {"ours", "paper"}
        What the other values begin from (`ppo_options`): ``ours`` has what accrues from decision to decision as cost,
        and other rollouts of the same window as the baseline; ``paper`` a reward at the end and a value network.
    network : str
        One of table IV (`policyfactory.search.reinforce.networks.NETWORKS`).
    iterations : int
        Rounds of rollouts and updates (the paper's epochs).
    windows, rollouts : int
        Windows of a round, and how often each is played.
    decisions : int
        About so many of a round are learned from, drawn at random; 0: all.
    passes, batch : int
        Passes over them, and decisions of one step; 0: all in one.
    rate, last_rate, value_rate : float
        Learning rate (Adam) at the beginning and, changing linearly, at the end; that of the value network.
    gamma, gae : float
        Discount of a decision; lambda of the paper's advantages.
    clip, most_change : float
        PPO's clip; the mean KL divergence at which a round's passes stop (0: never).
    filtering : {"none", "paper", "code"}
        Windows of the first ``filtered`` rounds: all; those on which SJF gives between the median and twice the mean
        (the paper's rule); or between 10 and 150 (its program's).
    filtered : int
        Rounds of phase 1; the others take all windows.
    checkpoint_every : int
        Rounds between two candidates.
    device : {"cpu", "cuda"}
        What calculates the updates.

    Raises
    ------
    UsageError
        If a value is outside its limits.
    """

    preset: Preset = "ours"
    network: str = KERNEL
    iterations: int = 40
    windows: int = 16
    rollouts: int = 8
    decisions: int = 20_000
    passes: int = 4
    batch: int = 1_000
    rate: float = 2e-3
    last_rate: float = 2e-4
    value_rate: float = 1e-3
    gamma: float = 0.98
    gae: float = 0.97
    clip: float = 0.2
    most_change: float = 0.0
    filtering: Filtering = "none"
    filtered: int = 0
    checkpoint_every: int = 2
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.preset not in get_args(Preset):
            raise UsageError(f"--training {self.preset!r}: choose one of {', '.join(get_args(Preset))}")
        if self.network not in NETWORKS:
            raise UsageError(f"--network {self.network!r}: choose one of {', '.join(NETWORKS)}")
        if self.filtering not in get_args(Filtering):
            raise UsageError(f"--filtering {self.filtering!r}: choose one of {', '.join(get_args(Filtering))}")
        whole = {"iterations": 1, "windows": 1, "rollouts": 1, "decisions": 0, "passes": 1, "batch": 0}
        whole |= {"filtered": 0, "checkpoint_every": 1}
        for name, least in whole.items():
            if not least <= getattr(self, name) <= 10**6:
                raise UsageError(f"ppo: {name} is {getattr(self, name)}; give a whole number from {least} to 1,000,000")
        for name, most in {"rate": 1.0, "last_rate": 1.0, "value_rate": 1.0, "gamma": 1.0, "clip": 1.0}.items():
            if not 0 < getattr(self, name) <= most:
                raise UsageError(f"ppo: {name} is {getattr(self, name)}; give a number above 0, at most {most:g}")
        if not (0 <= self.gae <= 1 and self.most_change >= 0):
            raise UsageError(f"ppo: gae {self.gae}, most_change {self.most_change}; give 0 to 1, and a number from 0")
        if (self.filtering == "none") != (self.filtered == 0):
            raise UsageError(
                f"ppo: filtering {self.filtering} of {self.filtered} rounds does nothing; give --filtering paper or "
                "code with --set filtered=N, or neither"
            )
        if self.preset == "ours" and self.rollouts < 2:
            raise UsageError(
                f"ppo: training ours compares rollouts of the same window, and rollouts is {self.rollouts}; give 2 or "
                "more"
            )


PRESETS: dict[Preset, dict[str, Any]] = {
    "ours": {},
    # 100 trajectories of 256 jobs; up to 80 steps of Adam on all of them. README and section 3 of the paper's program;
    # the paper itself says 1e-3 for both rates.
    "paper": {
        "iterations": 100,
        "windows": 100,
        "rollouts": 1,
        "decisions": 0,
        "passes": 80,
        "batch": 0,
        "rate": 3e-4,
        "last_rate": 3e-4,
        "gamma": 1.0,
        "most_change": 0.015,
        "checkpoint_every": 10,
    },
}


def ppo_options(preset: Preset = "ours", **changes: Any) -> PpoOptions:
    """Return the options of a preset, with changes.

    Raises
    ------
    UsageError
        As `PpoOptions`, and if there is no such preset.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    return PpoOptions(**{"preset": preset, **PRESETS.get(preset, {}), **given})


def changes_of(texts: Sequence[str]) -> dict[str, Any]:
    """Return the options that texts give: ``rate=0.001``.

    Raises
    ------
    UsageError
        If there is no such option, or the value is not of its kind.
    """
    kinds: dict[str, Any] = {
        field.name: type(field.default) for field in dataclasses.fields(PpoOptions) if field.name != "preset"
    }
    changes: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in kinds:
            raise UsageError(f"--set {text[:60]!a}: write NAME=VALUE; the names are {', '.join(kinds)}")
        try:
            changes[name] = kinds[name](value.strip())
        except ValueError:
            kind = "a whole number" if kinds[name] is int else "a number"
            raise UsageError(f"--set {text[:60]!a}: {name} is {kind}") from None
    return changes
