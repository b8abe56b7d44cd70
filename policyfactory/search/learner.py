"""What a learner is given and what it returns, whatever it learns: formulas by search, networks by reinforcement."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from policyfactory.core.progress import WorkCounter
from policyfactory.parallel.workers import Workers
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import FittedNumber
from policyfactory.search.families import REFERENCES
from policyfactory.search.options import TrainOptions
from policyfactory.search.play import Played, played
from policyfactory.search.replicated import Honest, Part, replicated
from policyfactory.search.windows import STEPS, Windows
from policyfactory.workload.jobs import Workload

__all__ = ["Candidate", "Follower", "Learned", "Learner", "Task"]


class Follower:
    """Follows how far the work is; this one says nothing."""

    def counter(self, title: str, unit: str = "") -> WorkCounter:  # noqa: ARG002
        """Return a counter of work units; ``unit`` is that of the amounts."""
        return WorkCounter()

    def message(self, sentence: str) -> None:
        """Say something about the work that is no result."""

    def kept(self, stop: BaseException, what: str, partial: Path) -> None:
        """Say what is kept, in ``partial``, of work that does not come to its end."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be learned from what.

    Parameters
    ----------
    workload : Workload
        The log.
    windows : Windows
        Where its windows begin.
    options : TrainOptions
        Goal, rules and bands.
    workers : Workers
        Who does the work.
    journal : Path or None
        Where to keep what is finished, so that the same run goes on from there; None: nowhere.
    overwrite : bool
        Whether a journal of another run may be dropped.
    follower : Follower
        Who follows how far the work is.
    baseline : Policy
        What the goal and the guards are relative to.
    """

    workload: Workload
    windows: Windows
    options: TrainOptions
    workers: Workers
    journal: Path | None
    overwrite: bool
    follower: Follower
    baseline: Policy = REFERENCES["SAF"]

    def played(self, step: str, policies: Iterable[Policy] = ()) -> Played:
        """Return the windows or replicas of a step, ready to be played.

        Parameters
        ----------
        step : str
            As in `policyfactory.search.windows.STEPS`. Predictors learn once for each replica, but while the choice is
            judged, where they learn in each run itself.
        policies : iterable of Policy
            Who will play: the models that they need are made.
        """
        options = self.options
        if not options.replicas:
            return played(self.windows.cut(self.workload, step), options.rules)
        first, last = getattr(self.windows, step)[0].tolist()
        # Replicas of each part have random numbers of their own.
        seed = (options.seed + STEPS.index(step)) % 2**63
        judged = step == "judged"
        made = replicated(
            *(self.workload, Part(first, last), options.rules),
            count=options.replicas,
            seed=seed,
            loads=options.loads,
            halves=judged,
        )
        if judged:
            return Honest(made)
        made.teach(policies, self.workers, self.follower.message)
        return made


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """What a learner proposes.

    Parameters
    ----------
    policy : Policy
        The policy.
    training : float or None
        What the learner minimised, on the windows that it learned from; None of what was not learned.
    coefficients : tuple of FittedNumber
        The numbers of a formula.
    origin : str
        How the learner came to it, in words.
    out : str
        Why it is out: the guards that left their bands, in words; empty if it is not.
    """

    policy: Policy
    training: float | None
    coefficients: tuple[FittedNumber, ...] = ()
    origin: str = ""
    out: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Learned:
    """What a learner has found.

    Parameters
    ----------
    candidates : tuple of Candidate
        Its proposals.
    history : tuple of mapping
        One row of numbers and words a step, the same keys in all: what ``history.csv`` has.
    curves : mapping of str to sequence of (float, float)
        Name of a curve -> how much work was done, and how good the best was by then.
    work : str
        What the work is counted in.
    axis : str
        What the curves show; empty: the best inside the bands as log ratio to the baseline.
    warnings : tuple of str
        Why the candidates should not be trusted as they stand.
    """

    candidates: tuple[Candidate, ...]
    history: tuple[Mapping[str, Any], ...]
    curves: Mapping[str, Sequence[tuple[float, float]]]
    work: str
    axis: str = ""
    warnings: tuple[str, ...] = ()


class Learner(Protocol):
    """A way to learn."""

    @property
    def name(self) -> str:
        """What ``--learner`` calls it."""

    def describe(self) -> dict[str, Any]:
        """Return all options of its own that determine what it finds, as JSON values."""

    def learn(self, task: Task) -> Learned:
        """Learn from the windows for training."""
