"""A tuner: at the start of each period it chooses, from what it has seen, the policy that orders the queue.

Section 5 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering policies",
IEEE TPDS 29(10), 2018. What an article leaves open is decided, and said, in
`policyfactory.simulation.tuning.strategies`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.jit import interruptible, read_only
from policyfactory.core.options import Int64Array
from policyfactory.core.random import generator
from policyfactory.core.text import MINUTE, WEEK, format_duration
from policyfactory.engine.events import NEVER, NEXT, NOW, STARTED
from policyfactory.engine.switching import Arms, SwitchingState, new_run, run_timetable, total_waits
from policyfactory.policy.policy import Policy, asked_needed, predictions_needed
from policyfactory.simulation.cases import Case
from policyfactory.simulation.on_site import simulate_timetable
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate, simulated
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


# Runs in which the policy in force changes: step by step, by a timetable, or each period on its own -------------------
# A switch is no event: the next pass, at the next submission or completion, uses the new order.


class SwitchingSimulation:
    """A run in which the policy in force can be changed at any instant.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    policies : sequence of Policy
        Those that can be in force, static and time-dependent ones.
    rules : Rules, optional
        As for `policyfactory.simulation.simulate.simulate`; no conservative backfilling, not compatibility "sc17" or
        "rlscheduler". The threshold is that of the rules or, where they have none, of the policy in force.
    prediction, tie_rank : int64 array (n,), optional
        As for `policyfactory.simulation.simulate.simulate`.

    Raises
    ------
    UsageError
        If there is no policy, or a policy cannot be switched under these rules.
    EvaluationError
        As `policyfactory.simulation.simulate.simulate`.
    """

    def __init__(
        self,
        workload: Workload,
        policies: Sequence[Policy],
        rules: Rules | None = None,
        prediction: Int64Array | None = None,
        tie_rank: Int64Array | None = None,
    ) -> None:
        self.workload = workload
        self.policies = tuple(policies)
        self.rules = rules or Rules()
        if not self.policies:
            raise UsageError("a run needs a policy; give at least one")
        if not _can_switch(self.rules):
            raise UsageError(
                "policies are switched under backfill easy or none, compatibility none or ocst; not under backfill "
                f"{self.rules.backfill}, compatibility {self.rules.compatibility}"
            )
        _refuse_predictions(self.policies, self.rules)
        self._prepared = prepare(workload, self.rules, prediction, tie_rank)
        self._arms = _Arms(self._prepared, self.policies)
        self._order = self._prepared.order(self.policies[0])
        self.reset()

    def reset(self) -> None:
        """Go back to the empty machine before the first submission; what was learned of the policies is kept."""
        self._jobs = self._prepared.columns()
        self._run: SwitchingState = new_run(len(self._prepared), self.workload.machine, self._arms.arrays.depth)
        self._start = read_only(self._jobs.start)
        # Every job before this place ended before that instant.
        self._ended, self._ended_before = 0, 0

    @property
    def now(self) -> int:
        """The instant of the last event, in ticks."""
        return int(self._run.space.state[NOW])

    @property
    def finished(self) -> bool:
        """Whether every job was started."""
        return int(self._run.space.state[STARTED]) == len(self.workload)

    @property
    def start(self) -> Int64Array:
        """Start of each job in ticks, -1 before it, in the order of the workload's rows; read-only."""
        return self._prepared.in_rows(self._start)

    @property
    def end(self) -> Int64Array:
        """End of each job in ticks, known from its start on; -1 before that."""
        started = self._start >= 0
        return self._prepared.in_rows(np.where(started, self._start + self._prepared.run_time, -1))

    @property
    def backfilled(self) -> NDArray[np.bool_]:
        """Whether each job was started while one ahead of it in the queue stayed waiting."""
        return self._prepared.in_rows(self._jobs.backfilled.copy())

    def run(self, policy: int, until: int = NEVER) -> None:
        """Handle every event strictly before ``until`` (ticks) with ``policies[policy]`` in force.

        Raises
        ------
        UsageError
            If there is no such policy.
        """
        self._go(np.array([policy], dtype=np.int64), np.array([min(until, NEVER)], dtype=np.int64))

    def run_timetable(self, choices: ArrayLike, edges: ArrayLike) -> None:
        """Run to the end: each policy until the next one takes over, the last one to the end.

        Parameters
        ----------
        choices : array of int (periods,)
            Which policy is in force in each period.
        edges : array of int (periods + 1,), ticks
            Period i is from ``edges[i]`` to before ``edges[i + 1]``. What happens before the first edge belongs to the
            first period, what happens from the last edge on to the last period.

        Raises
        ------
        UsageError
            If there is no such policy, or the edges do not rise or do not fit the choices.
        """
        arms, ticks = np.array(choices, dtype=np.int64), np.asarray(edges, dtype=np.int64)
        if ticks.shape != (arms.size + 1,) or not arms.size or (np.diff(ticks) < 0).any():
            raise UsageError(f"{arms.size} choices and {ticks.size} edges; give ascending edges, one more than choices")
        self._go(arms, np.append(np.minimum(ticks[1:-1], NEVER), NEVER))

    def _go(self, arms: Int64Array, untils: Int64Array) -> None:
        for arm in set(arms.tolist()):
            if not 0 <= arm < len(self.policies):
                raise UsageError(f"there is no policy {arm}; give numbers from 0 to {len(self.policies) - 1}")
            self._arms.complete(arm)
        with np.errstate(all="ignore"):
            state = (self._jobs, self._run, self._arms.arrays)
            interruptible(run_timetable, *state, self._order, arms, untils, self.workload.machine)

    def ended(self, since: int, until: int) -> NDArray[np.intp]:
        """Return the rows of the jobs that ended from ``since`` to before ``until`` (ticks), in submit order.

        They are all known once the run went up to ``until``. Cheap where ``since`` rises from call to call: what ended
        before it is not looked at again.
        """
        if since < self._ended_before:
            self._ended = 0
        self._ended_before = since
        first, stop = self._ended, int(self._run.space.state[NEXT])
        start = self._start[first:stop]
        end = np.where(start >= 0, start + self._prepared.run_time[first:stop], NEVER)
        over = end < since
        self._ended = first + (int(np.argmin(over)) if not over.all() else len(over))
        places = first + np.flatnonzero(~over & (end < until))
        return places if self._prepared.rank is None else self._prepared.rank[places]

    def schedule(self, name: str) -> Schedule:
        """Return the schedule under the name of what made it.

        Raises
        ------
        UsageError
            If jobs still wait.
        """
        if not self.finished:
            raise UsageError(f"{name}: the run is not finished at {self.now}; run it on until every job was started")
        return Schedule(self.start.copy(), self.end, self.backfilled, self.workload, name, self.rules)


def _refuse_predictions(policies: Sequence[Policy], rules: Rules) -> None:
    for policy in (*policies, rules.backfill_policy):
        if policy is not None and policy.needs_predictions:
            raise predictions_needed(policy, "a run that goes from one policy to another")
        if policy is not None and policy.asked:
            raise asked_needed(policy, "a run that goes from one policy to another")
        if policy is not None and policy.backfill_formula:
            raise UsageError(
                f"policy {policy.name} has an order of its own for backfilling, which a run that goes from one policy "
                "to another has not; take it without, or give one order for all (--backfill-order)"
            )


def _can_switch(rules: Rules) -> bool:
    return rules.backfill in {"none", "easy"} and rules.compatibility in {"none", "ocst"}


class _Arms:
    """The policies as arrays of the engine; keys and r are filled in when a policy is first used."""

    def __init__(self, prepared: Prepared, policies: tuple[Policy, ...]) -> None:
        self._prepared = prepared
        backfill_policy = prepared.rules.backfill_policy
        self._policies = policies if backfill_policy is None else (*policies, backfill_policy)
        count, jobs = len(self._policies), len(prepared)
        programs = [policy.program for policy in self._policies]
        # Rows that are never filled in take no memory.
        self._keys = np.empty((count, jobs), dtype=np.int64)
        self._filled: set[tuple[int, bool]] = set()
        own_arm = np.arange(count) if backfill_policy is None else np.full(count, count - 1)
        self.arrays = Arms(
            keys=read_only(self._keys),
            is_sorted=np.array([prepared.is_sorted(policy) for policy in self._policies]),
            backfill_arm=own_arm.astype(np.int64),
            threshold=np.array([prepared.threshold(policy) for policy in self._policies], dtype=np.int64),
            programs=np.cumsum([0, *(len(program.codes) for program in programs)], dtype=np.int64),
            places=np.cumsum([0, *(len(program.operands) for program in programs)], dtype=np.int64),
            codes=np.concatenate([program.codes for program in programs]),
            operands=np.concatenate([program.operands for program in programs]),
            depth=max(program.depth for program in programs),
            r=np.empty((count, jobs)),
            from_oldest=np.array([policy.epoch.rule == "oldest-waiting" for policy in self._policies]),
        )

    def complete(self, arm: int) -> None:
        """Fill in what the policy ``arm`` and its order for backfilling need."""
        is_sorted = bool(self.arrays.is_sorted[arm])
        for row in (arm, int(self.arrays.backfill_arm[arm])):
            if (row, is_sorted) in self._filled:
                continue
            if is_sorted:
                self._keys[row] = self._prepared.keys(self._policies[row])
            else:
                self.arrays.r[row] = self._prepared.formula(self._policies[row]).r
            self._filled.add((row, is_sorted))


def simulate_periods(
    workload: Workload,
    policies: Sequence[Policy],
    rules: Rules | None,
    edges: ArrayLike,
    prediction: Int64Array | None = None,
    tie_rank: Int64Array | None = None,
) -> NDArray[np.float64]:
    """Return what each policy would have cost in each period: the full feedback of equation (3).

    The jobs that are submitted in a period are simulated alone, from an empty machine until all have started. As in a
    window, r counts from the first of them unless the policy says otherwise.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    policies : sequence of Policy
        The policies.
    rules : Rules, optional
        As for `policyfactory.simulation.simulate.simulate`.
    edges : array of int (periods + 1,), ticks, ascending
        Period i has the jobs submitted from ``edges[i]`` to before ``edges[i + 1]``.
    prediction, tie_rank : int64 array (n,), optional
        As for `policyfactory.simulation.simulate.simulate`.

    Returns
    -------
    float64 array (periods, policies)
        Total wait of the period's jobs, in seconds.

    Raises
    ------
    UsageError
        If the edges do not rise, a policy reads predictions, or an argument is given that is for other rules.
    EvaluationError
        As `policyfactory.simulation.simulate.simulate`.
    """
    rules = rules or Rules()
    rules.check_given(prediction=prediction, tie_rank=tie_rank)
    ticks = np.asarray(edges, dtype=np.int64)
    if ticks.ndim != 1 or not ticks.size or (np.diff(ticks) < 0).any():
        raise UsageError(f"the edges of the periods must rise: {ticks}")
    _refuse_predictions(policies, rules)
    if not _can_switch(rules):
        return _cut_and_simulate(workload, policies, rules, ticks, prediction)
    prepared = prepare(workload, rules, prediction, tie_rank)
    bounds = np.searchsorted(prepared.workload.submit, ticks).astype(np.int64)
    since = _first_submissions(prepared.workload.submit, bounds)
    depth = max((policy.program.depth for policy in (*policies, rules.backfill_policy) if policy), default=1)
    space = new_run(len(prepared), workload.machine, depth)
    costs = np.empty((len(ticks) - 1, len(policies)))
    with np.errstate(all="ignore"):
        for arm, policy in enumerate(policies):
            costs[:, arm] = _periods(prepared, policy, space, bounds, since)
    return costs / workload.ticks


def _first_submissions(submit: Int64Array, bounds: Int64Array) -> Int64Array:
    """Return for each job the submission of the first of its period."""
    since = np.empty(len(submit), dtype=np.int64)
    if len(submit):
        first = submit[np.minimum(bounds[:-1], len(submit) - 1)]
        since[: bounds[0]] = since[bounds[-1] :] = submit[0]
        since[bounds[0] : bounds[-1]] = np.repeat(first, np.diff(bounds))
    return since


def _periods(
    prepared: Prepared, policy: Policy, space: SwitchingState, bounds: Int64Array, since: Int64Array
) -> Int64Array:
    """Return the total waits (ticks) under one policy."""
    machine, order = prepared.workload.machine, prepared.order(policy)
    by_keys = prepared.is_sorted(policy)
    jobs = prepared.sorted_jobs(policy, since) if by_keys else prepared.columns()
    formulas = None if by_keys else prepared.formulas(policy, since)
    return interruptible(total_waits, jobs, space, formulas, order, bounds, machine)


def _cut_and_simulate(
    workload: Workload,
    policies: Sequence[Policy],
    rules: Rules,
    edges: Int64Array,
    prediction: Int64Array | None,
) -> NDArray[np.float64]:
    """Return the same period by period, for rules that have no kernel for it."""
    costs = np.zeros((len(edges) - 1, len(policies)))
    for period, bound in enumerate(itertools.pairwise(edges)):
        first, last = np.searchsorted(workload.submit, bound)
        if first == last:
            continue
        part = workload.select(slice(first, last))
        believed = None if prediction is None else prediction[first:last]
        for arm, policy in enumerate(policies):
            schedule = simulate(part, policy, rules, believed)
            costs[period, arm] = (schedule.start - schedule.workload.submit).sum() / schedule.workload.ticks
    return costs
