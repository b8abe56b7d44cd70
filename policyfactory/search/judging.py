"""Which candidate is taken, by windows that the learner has not seen; and what it is worth on windows after those.

The choice looks at the windows for choosing only, the verdict at the judged ones only: what is taken because it was
lucky on the windows that it was taken by is found out on the others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import EvaluationError
from policyfactory.environment.goals import Goal, goal_of
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.catalogue import CATALOGUE
from policyfactory.policy.policy import Policy
from policyfactory.search.families import REFERENCES
from policyfactory.search.learner import Candidate, Task
from policyfactory.search.objective import breaches_of, gain, least_of
from policyfactory.search.play import Played, measured
from policyfactory.search.published import PUBLISHED
from policyfactory.statistics.compare import Paired, compare_replicas, compare_values

__all__ = ["Chosen", "Ranked", "Standing", "baseline_of", "choose", "judge_choice"]

# Beside these every choice is judged: what queues have without anybody's doing, and what is hard to beat.
_BESIDE = (CATALOGUE["FCFS"], *REFERENCES.values())


@dataclasses.dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate, or a policy beside, on the windows for choosing.

    Parameters
    ----------
    candidate : Candidate
        What it is.
    value : float
        Mean of the goal.
    gain : float
        Logarithm of the ratio to the baseline's goal, mean over the windows; less is better.
    out : str
        The guards that left their bands here or while learning, in words; empty if none did.
    learned : bool
        Whether it may be chosen.
    means : tuple of float
        Mean over the windows of the goal and of each guard (`policyfactory.search.play.MEASURED`).
    """

    candidate: Candidate
    value: float
    gain: float
    out: str
    learned: bool
    means: tuple[float, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """The choice.

    Parameters
    ----------
    winner : Candidate
        The best on the windows for choosing of those that kept within all bands.
    runner_up : Candidate or None
        The second of them that does not make the same schedules.
    ranked : tuple of Ranked
        All, the best first.
    margin : Paired or None
        The winner against the runner-up on the windows for choosing: the mean of the logarithms of the ratios.
    """

    winner: Candidate
    runner_up: Candidate | None
    ranked: tuple[Ranked, ...]
    margin: Paired | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """A policy on the judged windows.

    Parameters
    ----------
    policy : Policy
        The policy.
    role : str
        ``choice``, ``runner-up`` or ``beside``.
    means : tuple of float
        Mean over the windows of the goal and of each guard (`policyfactory.search.play.MEASURED`).
    margin : Paired or None
        The choice against it over all windows, as a ratio of sums in %, or in a typical replica; None for the choice.
    typical : Paired or None
        The choice against it in a typical window: the mean of the logarithms of the ratios, which no single window
        decides; None for the choice.
    out : str
        The guards that are outside the bands here, in words.
    """

    policy: Policy
    role: str
    means: tuple[float, ...]
    margin: Paired | None
    typical: Paired | None
    out: str


def choose(task: Task, candidates: Sequence[Candidate]) -> Chosen:
    """Return the choice.

    Raises
    ------
    EvaluationError
        If no candidate kept within the bands.
    """
    options, goal = task.options, goal_of(task.options.goal)
    windows = task.played("choosing", [one.policy for one in candidates])
    beside = [Candidate(policy, None, origin="published") for policy in _beside(task)]
    every = [*candidates, *beside]
    values = _values(task, windows, [one.policy for one in every])
    baseline = values[[one.policy.name for one in every].index(task.baseline.name, len(candidates))]
    ranked = []
    for at, one in enumerate(every):
        here = "; ".join(map(str, breaches_of(values[at], baseline, options.guard_bands)))
        out = one.out or here if at < len(candidates) else ""
        means = tuple(values[at].mean(axis=0).tolist())
        row = Ranked(one, means[0], _gain(values[at], baseline, goal), out, at < len(candidates), means)
        ranked.append((row, values[at]))
    ranked.sort(key=lambda row: row[0].gain)
    inside = [row for row in ranked if row[0].learned and not row[0].out]
    if not inside:
        reasons = next((one.out for one, _ in ranked if one.learned), "")
        raise EvaluationError(
            f"{task.workload.name}: none of the {len(candidates)} candidates kept within the bands of the guards; of "
            f"the best, {reasons}; learn longer, by another learner or family, or give wider --bands (none: no "
            "bands) or limits"
        )
    (winner, own), *others = inside
    second, other = next((pair for pair in others if not np.array_equal(own, pair[1])), (None, own))
    margin = None if second is None else _margins(own, other, goal, options.seed)[1]
    runner_up = None if second is None else second.candidate
    return Chosen(winner.candidate, runner_up, tuple(row for row, _ in ranked), margin)


def judge_choice(task: Task, chosen: Chosen) -> tuple[Standing, ...]:
    """Return how the choice, the runner-up and the policies beside stand on the judged windows."""
    options, goal = task.options, goal_of(task.options.goal)
    windows = task.played("judged")
    named = [(chosen.winner.policy, "choice")]
    if chosen.runner_up is not None:
        named.append((chosen.runner_up.policy, "runner-up"))
    named += [(policy, "beside") for policy in _beside(task)]
    values = _values(task, windows, [policy for policy, _ in named])
    whole = options.replicas or len(windows)
    # Behind the choice and the runner-up, who may be called like it.
    ours = len(named) - len(_beside(task))
    baseline = values[[policy.name for policy, _ in named].index(task.baseline.name, ours)]
    standings = []
    for (policy, role), own in zip(named, values, strict=True):
        margin, typical = (None, None) if role == "choice" else _margins(values[0], own, goal, options.seed, whole)
        out = "; ".join(map(str, breaches_of(own[:whole], baseline[:whole], options.guard_bands)))
        standings.append(Standing(policy, role, tuple(own[:whole].mean(axis=0).tolist()), margin, typical, out))
    return tuple(standings)


def baseline_of(task: Task) -> Policy:
    """Return the published policy that is best on the training replicas: what anybody could run."""
    goal = goal_of(task.options.goal)
    values = _values(task, task.played("training"), PUBLISHED)
    gains = [_gain(one, values[0], goal) for one in values]
    return PUBLISHED[int(np.argmin(gains))]


def _beside(task: Task) -> tuple[Policy, ...]:
    names = {one.name for one in _BESIDE}
    return _BESIDE if task.baseline.name in names else (*_BESIDE, task.baseline)


def _gain(values: FloatArray, baseline: FloatArray, goal: Goal) -> float:
    return gain(values[:, 0], baseline[:, 0], goal, "log-ratio")


def _margins(
    own: FloatArray, other: FloatArray, goal: Goal, seed: int, whole: int | None = None
) -> tuple[Paired, Paired]:
    """Return how far one is from the other, over all windows in % and in a typical one as a logarithm.

    Of replicas (``whole``, and halves after them) both are the typical one, with the interval that the halves give.
    """
    direction = goal.lower_is_better
    with np.errstate(all="ignore"):
        logs = [np.log(values[:, 0] + least_of(goal)) for values in (own, other)]
    if whole is not None and whole < len(own):
        typical = compare_replicas(logs[0], logs[1], whole, lower_is_better=direction)
        return dataclasses.replace(typical, estimate=typical.estimate.mapped(_percent)), typical
    sums = compare_values(own[:, 0], other[:, 0], lower_is_better=direction, statistic="ratio", seed=seed)
    return sums, compare_values(logs[0], logs[1], lower_is_better=direction, statistic="mean", seed=seed)


def _percent(change: float) -> float:
    return 100 * math.expm1(change) if change < 700 else math.inf


def _measure(shared: tuple[Played, str], unit: tuple[int, Policy], go_on: StopCheck) -> tuple[int, FloatArray]:
    go_on()
    windows, goal = shared
    return unit[0], measured(windows, unit[1], goal_of(goal))


def _values(task: Task, windows: Played, policies: Sequence[Policy]) -> list[FloatArray]:
    shared = windows, task.options.goal
    made = dict(results(_measure, shared, enumerate(policies), task.workers, notify=task.follower.message))
    return [made[at] for at in range(len(policies))]
