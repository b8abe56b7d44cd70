"""A tuner: at the start of each period it chooses, from what it has seen, the policy that orders the queue.

Section 5 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering policies",
IEEE TPDS 29(10), 2018. What an article leaves open is decided, and said, in
`policyfactory.simulation.tuning.strategies`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.random import generator
from policyfactory.core.text import MINUTE, WEEK, format_duration
from policyfactory.engine.events import NEVER
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.simulation.cases import Case
from policyfactory.simulation.on_site import simulate_timetable
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulated
from policyfactory.simulation.switching import SwitchingSimulation, simulate_periods
from policyfactory.simulation.tuning.strategies import (
    EpsilonGreedy,
    Feedback,
    FollowTheLeader,
    LearningStrategy,
    Strategy,
    ThompsonSampling,
    Ucb,
    Uniform,
)
from policyfactory.site.fits import site_of
from policyfactory.workload.jobs import Workload

FEEDBACKS: tuple[Feedback, ...] = get_args(Feedback)

MAX_PERIODS = 200_000  # an hour each: 22 years
_PURPOSE = 43  # of the random streams; see core.random
_COIN, _PICK, _NOISE, _BELIEF = range(4)
_MOST_ARMS = 250
# What looks at a simulation while it runs.
_WATCHING = ("bandit", "thompson", "ucb")
_WORDS = {
    "simulate": "the least total wait of the past periods' jobs, simulated under every policy",
    "noisy": "the least total wait of the past periods' jobs, simulated under every policy, off by up to {noise:.0%}",
    "bandit": "the least mean wait seen so far, in {epsilon:.0%} of the periods any",
    "random": "any",
    "thompson": "Thompson sampling on the waits seen so far",
    "ucb": "the lower confidence bounds of the waits seen so far",
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TunedSchedule(Schedule):
    """A schedule, and which policy was in force when.

    Parameters
    ----------
    choices : int64 array (periods,)
        Which of ``arms`` each period had, from that of the first submission to that of the last.
    edges : int64 array (periods + 1,)
        Ticks; period t is from ``edges[t]`` to before ``edges[t + 1]``, the last one until all jobs have started.
    arms : tuple of str
        Names of the policies that were chosen from.
    """

    choices: NDArray[np.int64]
    edges: NDArray[np.int64]
    arms: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Tuner:
    """How the policy of the next period is chosen.

    Parameters
    ----------
    name : str
        What it is called in tables; as a policy's name.
    arms : tuple of Policy
        What is chosen from, with distinct names; the first is used until past periods favour another.
    feedback : str
        What is known of the past: ``simulate`` and ``noisy`` the simulated wait under every policy, ``bandit``,
        ``thompson`` and ``ucb`` the wait of the jobs that ended under the policy in force, ``random`` nothing.
    period_s : int
        Length of a period in seconds, at least 60.
    epsilon : float
        Probability with which ``bandit`` gives a period to a policy drawn at random, 0 to 1.
    discount : float
        Weight of a period relative to the next one, 0 (only the last one counts) to 1 (all count alike).
    noise : float
        ``noisy`` multiplies each cost by a number drawn uniformly from 1 - noise to 1 + noise; 0 to 1.

    Raises
    ------
    UsageError
        If a value is outside its range, two arms have one name, or one reads predictions.
    """

    name: str
    arms: tuple[Policy, ...]
    feedback: Feedback = "simulate"
    period_s: int = WEEK
    epsilon: float = 0.1
    discount: float = 1.0
    noise: float = 0.2

    def __post_init__(self) -> None:
        if not (0 < len(self.name) <= 100 and self.name.isprintable() and self.name.strip() == self.name):
            raise UsageError(
                f"the tuner name {self.name[:100]!r} cannot be used; "
                "give 1 to 100 printable characters without blanks around them"
            )
        if self.feedback not in FEEDBACKS:
            raise UsageError(f"{self.name}: feedback {self.feedback!r}; choose one of {', '.join(FEEDBACKS)}")
        if self.period_s < MINUTE:
            raise UsageError(
                f"{self.name}: a period of {self.period_s} s; give at least a minute, for example 1d or 1w"
            )
        for field in ("epsilon", "discount", "noise"):
            value = getattr(self, field)
            if not 0 <= value <= 1:
                raise UsageError(f"{self.name}: {field} is {value}; give a number of 0 to 1")
        if len(self.arms) > _MOST_ARMS:
            raise UsageError(f"{self.name}: chooses from {len(self.arms)} policies; give at most {_MOST_ARMS}")
        names = [arm.name.casefold() for arm in self.arms]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"{self.name}: chooses from {', '.join(names) or 'nothing'}; name each policy once")
        for arm in self.arms:
            if arm.needs_predictions:
                raise predictions_needed(arm, f"a tuner ({self.name})")

    def describe(self) -> str:
        """Return what it does in a sentence."""
        how = _WORDS[self.feedback].format(noise=self.noise, epsilon=self.epsilon)
        fade = "" if self.discount == 1 or self.feedback == "random" else f", each period weighing {self.discount:g} of"
        fade += " the next one" if fade else ""
        count = len(self.arms)
        return f"every {format_duration(self.period_s)} one of {count} policies: {how}{fade}"

    def check(self, rules: Rules) -> None:
        """Refuse rules under which it could not choose.

        Raises
        ------
        UsageError
            If it watches the run, which is not done under Slurm's rules.
        """
        if rules.backfill == "slurm" and self.feedback in _WATCHING:
            others = ", ".join(feedback for feedback in FEEDBACKS if feedback not in _WATCHING)
            raise UsageError(
                f"tuner {self.name} learns from a run while it goes on (feedback {self.feedback}), and under Slurm's "
                f"rules a run is not stopped for that: choose feedback {others}, or backfill easy without a site"
            )

    def run(
        self, workload: Workload, rules: Rules, *, seed: int, number: int, scratch: dict[Any, Any] | None = None
    ) -> TunedSchedule:
        """Return the schedule of ``workload``.

        Parameters
        ----------
        workload : Workload
            The jobs.
        rules : Rules
            The scheduler's rules, the same in all periods.
        seed, number : int
            Seed and number of the case: what is random depends on these alone, so that tuners are paired.
        scratch : dict, optional
            Shared by the contenders of one case: the simulations of the feedback are made once.

        Raises
        ------
        UsageError
            If policies cannot be switched under these rules, or there are too many periods.
        """
        self.check(rules)
        if rules.backfill == "slurm" and rules.site is None:
            # Of the whole log, so that its periods have one.
            rules = dataclasses.replace(rules, site=site_of(workload))
        edges = period_edges(workload, self.period_s)
        strategy = self._strategy(workload, rules, (seed, number), {} if scratch is None else scratch)
        if rules.backfill == "slurm":
            choices = _choose(strategy, len(edges) - 1)
            schedule = simulate_timetable(workload, self.arms, rules, choices, edges)
        else:
            simulation = SwitchingSimulation(workload, self.arms, rules)
            choices = _play(simulation, strategy, edges)
            schedule = simulation.schedule(self.name)
        fields = {field.name: getattr(schedule, field.name) for field in dataclasses.fields(Schedule)}
        fields["policy_name"] = self.name
        return TunedSchedule(**fields, choices=choices, edges=edges, arms=tuple(arm.name for arm in self.arms))

    def _strategy(self, workload: Workload, rules: Rules, stream: tuple[int, int], scratch: dict[Any, Any]) -> Strategy:
        def draw(kind: int) -> np.random.Generator:
            return generator(stream[0], _PURPOSE, stream[1], kind)

        match self.feedback:
            case "random":
                return Uniform(len(self.arms), draw(_PICK))
            case "bandit":
                return EpsilonGreedy(len(self.arms), self.epsilon, self.discount, draw(_COIN), draw(_PICK))
            case "thompson":
                return ThompsonSampling(len(self.arms), self.discount, draw(_BELIEF))
            case "ucb":
                return Ucb(len(self.arms), self.discount)
            case _:
                costs = period_costs(workload, self.arms, rules, self.period_s, scratch)
                if self.feedback == "noisy":
                    costs = costs * noise_factors(costs.shape, self.noise, draw(_NOISE))
                return FollowTheLeader(costs, self.discount)


def _choose(strategy: Strategy, periods: int) -> NDArray[np.int64]:
    """Return the choices of what needs no run to choose."""
    return np.array([strategy.choose(period) for period in range(periods)], dtype=np.int64)


def _play(simulation: SwitchingSimulation, strategy: Strategy, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Run all periods, the last one until every job has started; return the choices."""
    periods = len(edges) - 1
    if not isinstance(strategy, LearningStrategy):
        choices = _choose(strategy, periods)
        if periods:
            simulation.run_timetable(choices, edges)
        return choices
    ticks, submit = simulation.workload.ticks, simulation.workload.submit
    choices = np.empty(periods, dtype=np.int64)
    for period in range(periods):
        choices[period] = strategy.choose(period)
        last = period + 1 == periods
        simulation.run(int(choices[period]), NEVER if last else int(edges[period + 1]))
        rows = simulation.ended(int(edges[period]), int(edges[period + 1]))
        wait = int((simulation.start[rows] - submit[rows]).sum())
        strategy.learn(period, int(choices[period]), len(rows), wait / ticks)
    return choices


# Periods. -------------------------------------------------------------------------------------------------------------


def period_edges(workload: Workload, period_s: int) -> NDArray[np.int64]:
    """Return the ticks between which the periods lie, from the one of the first submission to that of the last.

    Periods are counted from the 0 of the workload's clock, so that the days and weeks of a log are those of its
    clock, not of its first job.

    Parameters
    ----------
    workload : Workload
        The jobs.
    period_s : int
        Length of a period in seconds.

    Returns
    -------
    int64 array (periods + 1,)
        Just [0] for a workload without a job.

    Raises
    ------
    UsageError
        If there would be more than `MAX_PERIODS`.
    """
    if not len(workload):
        return np.zeros(1, dtype=np.int64)
    length = period_s * workload.ticks
    first, last = int(workload.submit[0]) // length, int(workload.submit[-1]) // length + 1
    if last - first > MAX_PERIODS:
        raise UsageError(
            f"{workload.name}: {last - first:,} periods of {period_s:,} s; a tuner takes at most {MAX_PERIODS:,}, "
            "choose a longer period"
        )
    return np.arange(first, last + 1, dtype=np.int64) * length


def period_costs(
    workload: Workload, arms: tuple[Policy, ...], rules: Rules, period_s: int, scratch: dict[Any, Any]
) -> NDArray[np.float64]:
    """Return the cost of each policy in each period (equation 3): float64 array (periods, arms), seconds.

    The jobs submitted in the period are simulated alone, from an empty machine until all have started; the cost is
    their total wait. The same question is simulated once a case, whoever asks.

    Parameters
    ----------
    workload : Workload
        The jobs.
    arms : tuple of Policy
        The policies.
    rules : Rules
        The scheduler's rules.
    period_s : int
        Length of a period in seconds.
    scratch : dict
        Of the case: what was simulated already.
    """
    # A case has one site, which cannot be a key.
    key = ("period costs", period_s, dataclasses.replace(rules, site=None), arms)
    if key not in scratch:
        scratch[key] = simulate_periods(workload, arms, rules, period_edges(workload, period_s))
    costs: NDArray[np.float64] = scratch[key]
    return costs


def noise_factors(shape: tuple[int, ...], noise: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Return the factors of the costs (equation 6), uniform in [1 - noise, 1 + noise]: float64 array of ``shape``."""
    return 1.0 + noise * random.uniform(-1.0, 1.0, shape)


# What competes: a policy, or a tuner that chooses among policies as it goes. ------------------------------------------

Contender: TypeAlias = "Policy | Tuner"


def check_contenders(contenders: Sequence[Contender]) -> None:
    """Refuse no contender, and two of one name.

    Raises
    ------
    UsageError
        If there is none, or two names differ in nothing but upper and lower case.
    """
    if not contenders:
        raise UsageError("no policy was named; give for example --policies FCFS,SPF,SAF")
    seen: set[str] = set()
    for contender in contenders:
        if contender.name.casefold() in seen:
            raise UsageError(
                f"two policies are called {contender.name}; leave one out, or give one another name (the key name of "
                "its model file)"
            )
        seen.add(contender.name.casefold())


def run_contender(
    contender: Contender, case: Case, workload: Workload, rules: Rules, scratch: dict[Any, Any]
) -> Schedule:
    """Return the schedule of one case under one contender.

    Parameters
    ----------
    contender : Policy or Tuner
        What orders the queue.
    case : Case
        What is simulated; its rules, if it has any, come before ``rules``.
    workload : Workload
        Its jobs, as ``case.make()`` returns them.
    rules : Rules
        The rules of the experiment.
    scratch : dict
        Shared by the tuners of the case, which run one after the other: what one computed, the others reuse.
    """
    case_rules = case.rules or rules
    if isinstance(contender, Policy):
        # A log may have predictions, and one of its experiments decide by something else.
        prediction = case.prediction if case_rules.decide_by == "prediction" else None
        return simulated(workload, contender, case_rules, prediction)
    return contender.run(workload, case_rules, seed=case.seed, number=case.number, scratch=scratch)
