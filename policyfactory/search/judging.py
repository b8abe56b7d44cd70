"""Which candidate is taken, by windows that the learner has not seen; and what it is worth on windows after those.

The choice looks at the windows for choosing only, the verdict at the judged ones only: what is taken because it was
lucky on the windows that it was taken by is found out on the others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import finite
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.expression import PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.report.verdict import Finding, Light, judge
from policyfactory.search.environment.goals import GUARDS, Bound, Breach, Goal, goal_of, judge_guards
from policyfactory.search.families import PUBLISHED, REFERENCES
from policyfactory.search.learner import MEASURED, Candidate, Counted, Played, Task, measured
from policyfactory.search.options import Objective
from policyfactory.search.replicated import AIMS, Best
from policyfactory.simulation.metrics import COSTS
from policyfactory.statistics.compare import Paired, compare_replicas, compare_values, verdict_of
from policyfactory.statistics.intervals import Estimate, Interval, Verdict, adjusted, freedom_of, level_of

# Of a goal that may be 0, the amount that is next to nothing, in its unit: a second, or a percent.
_NOTHING = {"s": 1.0, "%": 1.0}
# Beside these every choice is judged: what queues have without anybody's doing, and what is hard to beat.
_BESIDE = (CATALOGUE["FCFS"], *REFERENCES.values())


@dataclasses.dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate, or a policy beside, on the windows for choosing.

    Parameters
    ----------
    candidate : Candidate
        What it is.
    gain : float
        Logarithm of the ratio to the baseline's goal, mean over the windows; less is better.
    out : str
        The guards that left their bands here or while learning, in words; empty if none did.
    learned : bool
        Whether it may be chosen.
    means : tuple of float
        Mean over the windows of the goal and of each guard (`policyfactory.search.learner.MEASURED`).
    ratios : tuple of float
        On replicas the ratio to the baseline of the goal (the geometric mean over the replicas) and of each of `COSTS`
        (of the means); below 1 is better; NaN where the baseline's is 0. Empty on windows.
    on_front : bool
        Whether nothing beats it in everything; False on windows.
    """

    candidate: Candidate
    gain: float
    out: str
    learned: bool
    means: tuple[float, ...]
    ratios: tuple[float, ...] = ()
    on_front: bool = False

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.candidate.policy.name


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """Which candidate was chosen, and beside which others.

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
    ranked: tuple[RankedCandidate, ...]
    margin: Paired | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """A policy on the judged windows.

    Parameters
    ----------
    policy : Policy
        The policy.
    role : str
        ``choice``, ``runner-up`` or ``beside``; of a distillation also ``network``, ``static`` (the best key that never
        changes) and ``with f``.
    means : tuple of float
        Mean over the windows of the goal and of each guard (`policyfactory.search.learner.MEASURED`).
    margin : Paired or None
        The choice against it over all windows, as a ratio of sums in %, or in a typical replica; None for the choice.
    typical : Paired or None
        The choice against it in a typical window: the mean of the logarithms of the ratios, which no single window
        decides; None for the choice.
    out : str
        The guards that are outside the bands here, in words.
    network : Paired or None
        Of a distillation: it against the network, as a ratio of sums in %; None for the network.
    """

    policy: Policy
    role: str
    means: tuple[float, ...]
    margin: Paired | None
    typical: Paired | None = None
    out: str = ""
    network: Paired | None = None


def gain(values: FloatArray, baseline: FloatArray, goal: Goal, objective: Objective = "log-ratio") -> float:
    """Return how much worse (positive) or better (negative) the goal is than the baseline's, over all windows."""
    least = least_of(goal)
    changed, other = values + least, baseline + least
    if not goal.lower_is_better:
        changed, other = other, changed
    with np.errstate(all="ignore"):
        if objective == "mean":
            return float(changed.mean() / other.mean() - 1)
        return float(np.log(changed / other).mean())


def least_of(goal: Goal) -> float:
    """Return what is next to nothing of a goal that may be 0, so that it has a logarithm."""
    return _NOTHING.get(goal.unit, 0.0)


def breaches_of(values: FloatArray, baseline: FloatArray, bands: Sequence[Bound]) -> tuple[Breach, ...]:
    """Return the guards whose means over the windows are outside their bands."""
    means, other = (dict(zip(GUARDS, part[:, 1:].mean(axis=0).tolist(), strict=True)) for part in (values, baseline))
    return judge_guards(means, other, bands)


def margin_words(margin: Paired, name: str) -> str:
    """Return what a margin in percent says of a policy: ``better than SAF (-3.1 %, 95 % interval -5.0 to -1.2 %)``."""
    if not margin.wins + margin.losses:
        return f"that of {name}"
    words = {"better": "better than", "worse": "worse than", "differs": "other than"}
    interval = margin.estimate.interval
    more = "" if interval is None else f", 95 % interval {interval.low:+.1f} to {interval.high:+.1f} %"
    return f"{words.get(margin.verdict, 'not to be told from')} {name} ({margin.estimate.value:+.1f} %{more})"


def margin_json(margin: Paired) -> dict[str, Any]:
    """Return a margin in percent as JSON values."""
    interval = margin.estimate.interval
    return {
        "change_percent": margin.estimate.value,
        "interval": None if interval is None else [interval.low, interval.high],
        "verdict": margin.verdict,
        "wins": margin.wins,
        "losses": margin.losses,
    }


def choose(task: Task, candidates: Sequence[Candidate]) -> Chosen:
    """Return the candidate that is best on the windows for choosing, within the bands of the guards.

    Raises
    ------
    EvaluationError
        If no candidate kept within the bands.
    """
    options, goal = task.options, goal_of(task.options.goal)
    windows = task.played("choosing", [candidate.policy for candidate in candidates])
    beside = [Candidate(policy, None, origin="published") for policy in _beside(task)]
    every = [*candidates, *beside]
    values = _values(task, windows, [candidate.policy for candidate in every])
    baseline = values[[candidate.policy.name for candidate in every].index(task.baseline.name, len(candidates))]
    ranked = []
    for index, candidate in enumerate(every):
        here = "; ".join(map(str, breaches_of(values[index], baseline, options.guard_bands)))
        out = candidate.out or here if index < len(candidates) else ""
        worse, means = gain(values[index][:, 0], baseline[:, 0], goal), tuple(values[index].mean(axis=0).tolist())
        row = RankedCandidate(candidate, worse, out, index < len(candidates), means)
        ranked.append((row, values[index]))
    ranked.sort(key=lambda row: row[0].gain)
    inside = [row for row in ranked if row[0].learned and not row[0].out]
    if not inside:
        reasons = next((candidate.out for candidate, _ in ranked if candidate.learned), "")
        raise EvaluationError(
            f"{task.workload.name}: none of the {len(candidates)} candidates kept within the bands of the guards; of "
            f"the best, {reasons}; learn longer, by another learner or family, or give wider --bands (none: no "
            "bands) or limits"
        )
    (winner, best), *others = inside
    second, other = next((pair for pair in others if not np.array_equal(best, pair[1])), (None, best))
    margin = None if second is None else _margins(best, other, goal, options.seed)[1]
    runner_up = None if second is None else second.candidate
    rows = tuple(row for row, _ in ranked)
    return Chosen(
        winner.candidate, runner_up, with_front(rows, task.baseline.name) if options.replicas else rows, margin
    )


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
    for (policy, role), row in zip(named, values, strict=True):
        margin, typical = (None, None) if role == "choice" else _margins(values[0], row, goal, options.seed, whole)
        out = "; ".join(map(str, breaches_of(row[:whole], baseline[:whole], options.guard_bands)))
        standings.append(Standing(policy, role, tuple(row[:whole].mean(axis=0).tolist()), margin, typical, out))
    return tuple(standings)


def counted(standings: Sequence[Standing], baseline: str) -> list[tuple[Standing, Paired]]:
    """Return the policies that a choice is compared with, and how far it is from each.

    First come, first served is easy to beat: it counts where it is the baseline, or the choice is worse.

    Parameters
    ----------
    standings : sequence of Standing
        The choice first.
    baseline : str
        Name of the policy that ratios are to.
    """
    return [
        (standing, standing.margin)
        for standing in standings
        if standing.margin is not None
        and (standing.policy.name != "FCFS" or baseline == "FCFS" or standing.margin.verdict == "worse")
    ]


def light_of(standings: Sequence[Standing], baseline: str, *, held_out: bool) -> Light:
    """Return the light of a choice on the judged windows, by the rule of all verdicts.

    It is compared with each policy beside that is `counted`. Where it was learned on the same windows, or leaves the
    bands of the guards, nothing shows it to be better.

    Parameters
    ----------
    standings, baseline
        As of `counted`.
    held_out : bool
        Whether nothing was learned on the judged windows.
    """
    compared = counted(standings, baseline)
    beside = [[Finding(margin.verdict)] for standing, margin in compared if standing.role == "beside"]
    return judge(*beside, *([] if held_out and not standings[0].out else [[Finding("")]]))


def baseline_of(task: Task) -> Policy:
    """Return the published policy that is best on the training replicas: what anybody could run."""
    goal = goal_of(task.options.goal)
    values = _values(task, task.played("training"), PUBLISHED)
    gains = [gain(row[:, 0], values[0][:, 0], goal) for row in values]
    return PUBLISHED[int(np.argmin(gains))]


def _beside(task: Task) -> tuple[Policy, ...]:
    names = {policy.name for policy in _BESIDE}
    return _BESIDE if task.baseline.name in names else (*_BESIDE, task.baseline)


def _margins(
    first: FloatArray, second: FloatArray, goal: Goal, seed: int, whole: int | None = None
) -> tuple[Paired, Paired]:
    """Return how far one is from the other, over all windows in % and in a typical one as a logarithm.

    Of replicas (``whole``, and halves after them) both are the typical one, with the interval that the halves give.
    """
    direction = goal.lower_is_better
    with np.errstate(all="ignore"):
        logs = [np.log(values[:, 0] + least_of(goal)) for values in (first, second)]
    if whole is not None and whole < len(first):
        typical = compare_replicas(logs[0], logs[1], whole, lower_is_better=direction)
        return dataclasses.replace(typical, estimate=typical.estimate.mapped(percent)), typical
    sums = compare_values(first[:, 0], second[:, 0], lower_is_better=direction, statistic="ratio", seed=seed)
    return sums, compare_values(logs[0], logs[1], lower_is_better=direction, statistic="mean", seed=seed)


def percent(change: float) -> float:
    """Return a change of a logarithm in %."""
    return 100 * math.expm1(change) if change < 700 else math.inf


def _measure(shared: tuple[Played, str], unit: tuple[int, Policy], go_on: StopCheck) -> tuple[int, FloatArray]:
    go_on()
    windows, goal = shared
    return unit[0], measured(windows, unit[1], goal_of(goal))


def _values(task: Task, windows: Played, policies: Sequence[Policy]) -> list[FloatArray]:
    shared = windows, task.options.goal
    measured = dict(results(_measure, shared, enumerate(policies), task.workers, notify=task.follower.message))
    return [measured[number] for number in range(len(policies))]


# What an arena says of candidates -------------------------------------------------------------------------------------

# Ratios to the published policy, with intervals, as values and as JSON.


KIND = "judgement"
SCHEMA = 1


def ratios_of(values: FloatArray, baseline: FloatArray) -> dict[str, float | None]:
    """Return the ratio of each aim's mean over the replicas; None where the baseline's is 0.

    Parameters
    ----------
    values, baseline : float64 array (replicas, len(AIMS))
        The aims.
    """
    means, other = values.mean(axis=0).tolist(), baseline.mean(axis=0).tolist()
    ratios = {name: a / b if b else math.nan for name, a, b in zip(AIMS, means, other, strict=True)}
    return {name: value if math.isfinite(value) else None for name, value in ratios.items()}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HeldOutVerdict:
    """What a candidate is worth on the part of the log that is held out.

    Parameters
    ----------
    tried : int
        Candidates that were ever tried on the log; intervals are adjusted by it.
    error : str
        Why there is none; empty if there is one.
    estimate : Estimate or None
        Mean over the replicas of the logarithm of the ratio, with its interval at 95 %.
    values, baseline : float64 array (replicas, len(AIMS)) or None
        The aims of the candidate and of the baseline.
    weeks : Estimate or None
        The change in % over the weeks of the part itself; None where it has no two weeks.
    blocks : float
        How many blocks its weeks make.
    """

    tried: int
    error: str
    estimate: Estimate | None = None
    values: FloatArray | None = None
    baseline: FloatArray | None = None
    weeks: Estimate | None = None
    blocks: float = 0.0

    @property
    def interval(self) -> Interval | None:
        """The adjusted interval of the ratio over replicas; None with fewer than six."""
        estimate = self.estimate
        if estimate is None or estimate.interval is None:
            return None
        wide = adjusted(estimate.value, estimate.interval, freedom_of(estimate.cases), self.tried)
        return Interval(_exp(wide.low), _exp(wide.high))

    @property
    def weeks_interval(self) -> Interval | None:
        """The adjusted interval of the ratio over the weeks of the part itself; None where they are too few."""
        if self.weeks is None or self.weeks.interval is None:
            return None
        wide = adjusted(self.weeks.value, self.weeks.interval, self.blocks - 1, self.tried)
        return Interval(max(1 + wide.low / 100, 0.0), 1 + wide.high / 100)

    @property
    def verdict(self) -> Light:
        """By the rule of all verdicts: of the replicas, which the weeks can contradict, or show to be worse."""
        return judge([Finding(_word(self.interval)), Finding(_word(self.weeks_interval), needed=False)])

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        if self.error or self.estimate is None or self.values is None or self.baseline is None:
            return {"error": self.error}
        weeks = self.weeks
        return {
            "ratio": finite(_exp(self.estimate.value)),
            "interval": _ends(self.interval),
            "level": level_of(self.tried),
            "verdict": self.verdict,
            "aims": ratios_of(self.values, self.baseline),
            "weeks": {
                "ratio": None if weeks is None else finite(1 + weeks.value / 100),
                "interval": _ends(self.weeks_interval),
                "verdict": judge([Finding(_word(self.weeks_interval))]),
            },
            "error": None,
        }


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What a candidate is worth on the training replicas.

    Parameters
    ----------
    name : str
        Its name.
    text : str
        What was given, at most 200 characters of it.
    policy : Policy or None
        What was read; None if it could not be.
    error : str
        Why it has no score; empty if it has one.
    paired : Paired or None
        The logarithm of the ratio of its mean bounded slowdown to the baseline's, over the replicas.
    values, baseline : float64 array (replicas, len(AIMS)) or None
        The aims of the candidate and of the baseline.
    seconds : float
        How long it took.
    without_number : float
        Share of the jobs whose score at submission is no finite number.
    verdict : Verdict or None
        What is held out says, where it was asked.
    """

    name: str
    text: str
    policy: Policy | None
    error: str
    paired: Paired | None = None
    values: FloatArray | None = None
    baseline: FloatArray | None = None
    seconds: float = 0.0
    without_number: float = 0.0
    verdict: HeldOutVerdict | None = None

    @property
    def log_ratio(self) -> float:
        """Mean over the replicas of the logarithm of the ratio; less is better; infinite of one without a score."""
        if self.error or self.paired is None or not math.isfinite(self.paired.estimate.value):
            return math.inf
        return self.paired.estimate.value

    @property
    def ratio(self) -> float:
        """The ratio: the geometric mean over the replicas; less is better; infinite of one without a score."""
        return _exp(self.log_ratio)

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the ratio over the replicas; None with fewer than six, and without a score."""
        return None if self.error or self.paired is None else self.paired.estimate.mapped(_exp).interval

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        policy = self.policy
        content: dict[str, Any] = {"name": self.name, "given": self.text, "error": self.error or None}
        if policy is not None:
            content |= {
                "formula": policy.expression.text(),
                "static": policy.is_static,
                "reads_predictions": [name for name in PREDICTIONS if name in policy.variables],
                "seconds": round(self.seconds, 3),
            }
        if not self.error and self.values is not None and self.baseline is not None:
            content |= {
                "log_ratio": finite(self.log_ratio),
                "ratio": finite(self.ratio),
                "interval": _ends(self.interval),
                "aims": ratios_of(self.values, self.baseline),
                "without_number": self.without_number,
            }
        return content if self.verdict is None else {**content, "held_out": self.verdict.as_dict()}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What was said of candidates.

    Parameters
    ----------
    sha256, log : str
        Digest of the jobs, and the log's name.
    settings : mapping
        What the scores depend on.
    baseline : Best
        The published policy that ratios are to.
    candidates : tuple of Judged
        In the order in which they were given.
    counted : Counted
        What the ledger says of the log.
    held_out : bool
        Whether what is held out was asked.
    """

    sha256: str
    log: str
    settings: Mapping[str, Any]
    baseline: Best
    candidates: tuple[Judged, ...]
    counted: Counted
    held_out: bool

    @property
    def best(self) -> Judged:
        """The candidate with the least ratio on the training replicas; the first of equal ones."""
        return min(self.candidates, key=lambda candidate: candidate.log_ratio)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        means = np.array(self.baseline.values).mean(axis=0).tolist()
        return {
            "kind": KIND,
            "schema_version": SCHEMA,
            "log": {"name": self.log, "sha256": self.sha256},
            "settings": dict(self.settings),
            "baseline": {
                "policy": self.baseline.policy.name,
                "formula": self.baseline.policy.formula,
                "means": dict(zip(AIMS, means, strict=True)),
                "published": self.baseline.means,
            },
            "candidates": [candidate.as_dict() for candidate in self.candidates],
            "ledger": dataclasses.asdict(self.counted),
        }


def _word(interval: Interval | None) -> Verdict:
    """Return what the interval of a ratio says."""
    return verdict_of(None if interval is None else Interval(interval.low - 1, interval.high - 1))


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [finite(interval.low), finite(interval.high)]


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


# The Pareto front -----------------------------------------------------------------------------------------------------

# Of what was tried, what nothing else beats in the goal and in all that it costs at once.
#
# By the replicas for choosing, which no candidate was learned on. The published policies beside compete too: a
# candidate that one of them beats in everything is on no front.


def non_dominated(values: FloatArray) -> NDArray[np.bool_]:
    """Return which rows no other row beats: is nowhere above and somewhere below; of equal rows the first.

    Parameters
    ----------
    values : float64 array (n, k)
        Less is better; a row with a NaN is never one.
    """
    finite = np.array([bool(np.isfinite(row).all()) for row in values], dtype=np.bool_)
    kept = finite.copy()
    for row in np.flatnonzero(finite):
        below, less = (values <= values[row]).all(axis=1), (values < values[row]).any(axis=1)
        # One that is equal beats those behind it.
        beaten = finite & below & (less | (np.arange(len(values)) < row))
        kept[row] = not beaten.any()
    return kept


def with_front(ranked: Sequence[RankedCandidate], baseline: str) -> tuple[RankedCandidate, ...]:
    """Return all that was ranked with its ratios, in the same order, and what of it is on the front.

    Parameters
    ----------
    ranked : sequence of RankedCandidate
        Candidates and policies beside, the best first.
    baseline : str
        Name of the published policy that ratios are to.
    """
    base = next(candidate for candidate in ranked if not candidate.learned and candidate.name == baseline)
    places = [MEASURED.index(name) for name in COSTS]
    front = non_dominated(np.array([[row.gain, *(row.means[column] for column in places)] for row in ranked]))
    members = []
    for candidate, on_front in zip(ranked, front.tolist(), strict=True):
        costs = (candidate.means[column] / base.means[column] if base.means[column] else math.nan for column in places)
        members.append(dataclasses.replace(candidate, ratios=(math.exp(candidate.gain), *costs), on_front=on_front))
    return tuple(members)
