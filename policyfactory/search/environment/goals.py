"""What a learner is after: one number of a schedule, by name or by a function of the user's.

A goal alone can be met in ways that nobody wants; what is looked at beside it is below.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.text import format_duration, number_text, parse_duration
from policyfactory.simulation.metrics import METRICS, measure
from policyfactory.simulation.schedule import Schedule
from policyfactory.workload.jobs import Workload


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """A number of a schedule that is to be small, or large.

    Parameters
    ----------
    name : str
        What it is called.
    function : callable
        From a Schedule of at least one job to a number.
    lower_is_better : bool
        Which way is good.
    unit : str
        Its unit ("s", "%", "1").
    description : str
        The definition in one line.
    of_users : bool
        Whether it needs to know whose each job is.
    """

    name: str
    function: Callable[[Schedule], float]
    lower_is_better: bool = True
    unit: str = "1"
    description: str = ""
    of_users: bool = False

    def value(self, schedule: Schedule) -> float:
        """Return the goal's value for a schedule.

        Raises
        ------
        EvaluationError
            If it is none, or not finite.
        """
        returned = self.function(schedule)
        try:
            value = float(returned)
        except (TypeError, ValueError):
            raise EvaluationError(
                f"goal {self.name} returned a {type(returned).__name__} for {schedule.workload.name}; a goal takes a "
                "Schedule and returns one number"
            ) from None
        if not math.isfinite(value):
            raise EvaluationError(
                f"goal {self.name} is {value} for {schedule.workload.name}; return a finite number for every schedule"
            )
        return value

    def cost(self, schedule: Schedule) -> float:
        """Return the number with the sign that makes less better; a reward is minus the cost."""
        value = self.value(schedule)
        return value if self.lower_is_better else -value


GoalLike: TypeAlias = str | Goal | Callable[[Schedule], float]


def _check_users(workload: Workload) -> None:
    if (workload.user >= 0).any():
        return
    others = ", ".join(name for name, goal in GOALS.items() if not goal.of_users)
    raise EvaluationError(
        f"{workload.name}: the log does not say whose its jobs are (user -1), and this goal is about users; choose "
        f"another goal ({others}) or give a log with users"
    )


def _metric(name: str) -> Goal:
    metric = METRICS[name]
    of_users = name.startswith("user_")

    def value(schedule: Schedule) -> float:
        if of_users:
            _check_users(schedule.workload)
        return metric.function(schedule)

    return Goal(name, value, bool(metric.lower_is_better), metric.unit, metric.description, of_users)


# utilisation_to_last_start is that of the RLScheduler paper, for mode paper: what comes later does not count.
_NAMES = (
    "mean_bsld", "mean_wait", "mean_turnaround", "utilisation", "mean_slowdown", "user_mean_bsld", "user_max_bsld",
    "utilisation_to_last_start",
)  # fmt: skip
GOALS: dict[str, Goal] = {name: _metric(name) for name in _NAMES}


def goal_of(goal: GoalLike) -> Goal:
    """Return the goal of a name, or a user's: a `Goal`, or a function of a Schedule whose number is to be small.

    Raises
    ------
    UsageError
        If there is no such goal.
    """
    if isinstance(goal, Goal):
        return goal
    if callable(goal):
        return Goal(getattr(goal, "__name__", type(goal).__name__), goal, description="a function of the user's")
    name = str(goal).strip().lower().replace("-", "_")
    if name not in GOALS:
        names = ", ".join(GOALS)
        raise UsageError(f"there is no goal {goal!r}; choose one of {names}, or give a function of a Schedule")
    return GOALS[name]


def check_goal(goal: Goal, workload: Workload) -> None:
    """Refuse a goal that the log cannot give, before anything is simulated.

    Raises
    ------
    EvaluationError
        If it is about users and the log names none.
    """
    if goal.of_users:
        _check_users(workload)


# What is looked at beside a goal --------------------------------------------------------------------------------------

# What is looked at beside a goal, so that it is not met by leaving the machine idle or some jobs waiting for ever.
#
# The mean bounded slowdown over a finite window is small where every small job runs at once: a formula that keeps the
# machine half empty for the next small job, and pushes the large ones to the end, has it smaller than any scheduler
# that does its work (docs/environment.md shows one). The guards are numbers of the same schedule, up to its last
# completion, that get worse then.


GUARDS = ("utilisation", "p99_wait", "max_wait", "area_weighted_wait")


@dataclasses.dataclass(frozen=True, slots=True)
class Band:
    """How much worse than a baseline's a guard may be.

    Parameters
    ----------
    guard : str
        A metric (`policyfactory.simulation.metrics.METRICS`) with a good direction.
    factor : float
        Times the baseline's value: the most that it may be where less is better, the least where more is.
    slack : float
        Is allowed besides, in the metric's unit: a baseline whose jobs hardly wait would allow nothing else.
    """

    guard: str
    factor: float
    slack: float = 0.0

    def __post_init__(self) -> None:
        if self.guard not in METRICS or METRICS[self.guard].lower_is_better is None:
            raise UsageError(f"there is no guard {self.guard!r}; those of every run are {', '.join(GUARDS)}")
        lower = METRICS[self.guard].lower_is_better
        wrong_side = self.factor < 1 if lower else self.factor > 1
        if not (math.isfinite(self.factor) and self.factor > 0 and self.slack >= 0) or wrong_side:
            expected = "at least 1" if lower else "more than 0 and at most 1"
            raise UsageError(
                f"band of {self.guard}: factor {self.factor}, slack {self.slack}; give a factor of {expected} and a "
                "slack from 0"
            )

    def bound(self, baseline: float) -> float:
        """Return the worst value that is inside the band."""
        slack = self.slack if METRICS[self.guard].lower_is_better else -self.slack
        return self.factor * baseline + slack


@dataclasses.dataclass(frozen=True, slots=True)
class EpisodeLimit:
    """The most that a guard may be, where less is better: some times a baseline's, or a number.

    Parameters
    ----------
    guard : str
        A metric in seconds.
    times : float or None
        Times the baseline's value.
    seconds : float or None
        In place of it, seconds.
    """

    guard: str
    times: float | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, option: str, guard: str, text: str) -> EpisodeLimit:
        """Return the limit that a text gives: ``1.1x``, or ``20h``.

        Raises
        ------
        UsageError
            If it is neither; ``option`` names where it was given.
        """
        number = text.strip().lower()
        try:
            if number.endswith("x"):
                times = float(number[:-1])
                if 0 < times <= 1e6:
                    return cls(guard, times)
            else:
                seconds = parse_duration(number, unit=True)
                if 0 < seconds < math.inf:
                    return cls(guard, None, float(seconds))
        except (ValueError, UsageError):
            pass
        raise UsageError(f"{option} {text[:60]!a}: give times the baseline's, as 1.1x, or a time, as 20h")

    @property
    def text(self) -> str:
        """The limit as it is given."""
        return format_duration(self.seconds or 0.0) if self.times is None else f"{self.times:g}x"

    def bound(self, baseline: float) -> float:
        """Return the worst value that is inside."""
        return baseline * self.times if self.times is not None else self.seconds or 0.0


Bound: TypeAlias = Band | EpisodeLimit


def limits_of(max_p99: str | None, max_longest: str | None, max_area: str | None) -> tuple[EpisodeLimit, ...]:
    """Return the limits that ``--max-p99``, ``--max-longest`` and ``--max-area`` give; None: none.

    Raises
    ------
    UsageError
        If one is neither times a baseline's nor a time.
    """
    given = (
        ("--max-p99", "p99_wait", max_p99),
        ("--max-longest", "max_wait", max_longest),
        ("--max-area", "area_weighted_wait", max_area),
    )
    return tuple(EpisodeLimit.of(option, guard, text) for option, guard, text in given if text is not None)


# Beside a baseline that somebody would run: 5 % of the utilisation, and half as long again for the waits.
BANDS = (
    Band("utilisation", 0.95),
    Band("p99_wait", 1.5, 3600.0),
    Band("max_wait", 1.5, 3600.0),
    Band("area_weighted_wait", 1.5, 3600.0),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Breach:
    """A guard that is outside its band.

    Parameters
    ----------
    guard : str
        Its name.
    value, baseline, bound : float
        What was measured, the baseline's value, the worst that is inside.
    """

    guard: str
    value: float
    baseline: float
    bound: float

    def __str__(self) -> str:
        metric = METRICS[self.guard]
        side, least = ("above", "most") if metric.lower_is_better else ("below", "least")
        value, baseline, bound = (_shown(number, metric.unit) for number in (self.value, self.baseline, self.bound))
        return f"{metric.title} is {value}, {side} the {least} allowed, {bound}; the baseline's is {baseline}"


def measure_guards(schedule: Schedule) -> dict[str, float]:
    """Return the guards of a schedule, by name."""
    return measure(schedule, GUARDS)


def judge_guards(
    measured: Mapping[str, float], baseline: Mapping[str, float], bands: Sequence[Bound] = BANDS
) -> tuple[Breach, ...]:
    """Return which guards are outside their bands; ``str`` of each says it in words. Empty: all is well.

    Parameters
    ----------
    measured, baseline : mapping
        The values of the guards, by name: `measure_guards` of a schedule, or means of them over windows.
    bands : sequence of Band or Limit
        How much worse than the baseline each may be.

    Raises
    ------
    UsageError
        If a guard with a band was not measured in both.
    """
    breaches = []
    for band in bands:
        for values, whose in ((measured, "the schedule"), (baseline, "the baseline")):
            if band.guard not in values:
                raise UsageError(f"guard {band.guard} was not measured of {whose}; measure_guards has all of them")
        value, reference = float(measured[band.guard]), float(baseline[band.guard])
        bound = band.bound(reference)
        inside = value <= bound if METRICS[band.guard].lower_is_better else value >= bound
        # What is no number is inside no band.
        if not inside:
            breaches.append(Breach(band.guard, value, reference, bound))
    return tuple(breaches)


def _shown(value: float, unit: str) -> str:
    if unit == "s" and math.isfinite(value):
        return format_duration(value)
    return f"{number_text(value)} {unit}".removesuffix(" 1")
