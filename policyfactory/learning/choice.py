"""The choice by replicas of the second quarter, and what replicas of the second half say of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import DAY, HOUR, WEEK
from policyfactory.learning.comparing import CLASSICAL, PUBLISHED, Rival, hours_text, whole_hours
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.parts import LogParts
from policyfactory.learning.ranking import PEERS, Ranking, logarithms, rank
from policyfactory.parallel.pool import batches, results
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.form import Form
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE, Model
from policyfactory.prediction.features import missing
from policyfactory.prediction.options import PredictorOptions
from policyfactory.search.environment.goals import EpisodeLimit
from policyfactory.search.families import Family
from policyfactory.search.formulas import Evolution, digits, distance_of, population
from policyfactory.search.replicated import AIMS, Part, Replicated, foretold, replicated, values_of
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.predicted import telling_requests
from policyfactory.simulation.prepare import Prepared
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import VERDICT_WEEKS

# E[p] over a power of E[10/p], the order that is best for jobs of one processor and known distributions, with the
# exponents of the shortness and of q softened: a small one errs least when long jobs are taken for short ones, 1 gains
# most when they are not; of q, 1 leaves the fewest jobs waiting long. The last two hold back users who run much, and
# let the later jobs of a burst, of which more is known, go first.
FORMULAS = {
    "E": "e",
    "E-S25-Q30": "ln(e) - 0.25*ln(s) + 0.3*ln(q)",
    "E-S50-Q30": "ln(e) - 0.5*ln(s) + 0.3*ln(q)",
    "E-S50-Q70": "ln(e) - 0.5*ln(s) + 0.7*ln(q)",
    "E-S50-Q100": "ln(e) - 0.5*ln(s) + ln(q)",
    "E-S100-Q30": "ln(e) - ln(s) + 0.3*ln(q)",
    "E-S100-Q100": "ln(e) - ln(s) + ln(q)",
    "E-WAITING": "ln(e) + 0.3*ln(p) - 0.4*ln(s) + 0.2*ln(q) - 0.4*ln(1 + user_waiting)",
    "E-USERS": "ln(e) - 0.5*ln(s) + 0.3*ln(q) - 0.4*ln(1 + user_waiting) + 0.3*ln(1 + user_running)",
}
# What needs no predictions: between the shortest job and the smallest area.
SOFTENED = {"P-Q20": "ln(p) + 0.2*ln(q)", "P-Q50": "ln(p) + 0.5*ln(q)"}
# What counts the user's jobs, for which no model is needed.
COUNTED = {"P-Q20-RUNNING": "ln(p) + 0.2*ln(q) + 0.3*ln(1 + user_running)"}
SEARCHED = "SEARCHED"  # what `searched` finds
# Orders in which jobs are tried for backfilling behind any queue: by request, by prediction, by how likely it is short.
ORDERS = {"P": "p", "E": "e", "S": "-ln(s)"}
_ABOUT = {
    **dict.fromkeys(FORMULAS, "e and s are predicted from what the user's jobs did before"),
    **dict.fromkeys(SOFTENED, "between SPF and SAF"),
    **dict.fromkeys(COUNTED, "between SPF and SAF; users who run much wait"),
}


def stock_rivals(formulas: Mapping[str, str], folder: str) -> list[Rival]:
    """Return formulas of ours as policies that compete; ``folder``: the folder that their files are written to."""
    return [
        Rival(Model(Policy(name, formula, description=_ABOUT[name])), f"{folder}/{name}.json")
        for name, formula in formulas.items()
    ]


def why_not(workload: Workload) -> str:
    """Return why nothing is predicted of the jobs of a log, or empty."""
    if telling := telling_requests(workload):
        return telling
    return why_not_counted(workload)


def why_not_counted(workload: Workload) -> str:
    """Return why no jobs of a user are counted, or empty."""
    if not (workload.user >= 0).any():
        return f"the log does not say whose jobs they are ({missing(workload)[0]})"
    return ""


# The choice by replicas of the second quarter -------------------------------------------------------------------------


# Of waits, as thresholds; and the share of its gain that a threshold must keep.
_QUANTILES = (0.9, 0.95, 0.99, 0.999, 1.0)
KEPT_GAIN = 0.9
# Published policies, others at a price that is allowed, and at any, that go from EASY to the rules that judge.
_FINALISTS, _AT_ANY_PRICE = 3, 2
_MANY = {*PUBLISHED, *FORMULAS, *SOFTENED, *COUNTED}
_SEEDS = {"choosing": 0, "test": 1}  # replicas of the two parts have random numbers of their own


@dataclasses.dataclass(frozen=True, slots=True)
class Tested:
    """The choice on replicas of the second half.

    Parameters
    ----------
    to_peers : tuple of Ranking
        The same values, as ratios to each of the policies that were the best published ones by the second quarter.
    to_baseline : Ranking or None
        As ratios to the baseline; None if there was no time for it.
    weeks : float
        How long the part lasts.
    """

    to_peers: tuple[Ranking, ...]
    to_baseline: Ranking | None
    weeks: float

    @property
    def to_peer(self) -> Ranking:
        """The ratios to the one that was the best."""
        return self.to_peers[0]


def aims_of(options: LearnOptions) -> tuple[str, ...]:
    """Return what is measured: the metric that chooses, then what it costs."""
    return tuple(dict.fromkeys((options.metric, *AIMS[1:])))


# How many replicas, and of how many jobs, the time that is given allows. That follows from these numbers and the log:
# the result is the same on any machine. CPU seconds of one of 2026 for a job under EASY, for one whose run time is
# predicted, for a training and each job of it, and under Slurm's rules for a job and for each that waits.
_EASY_S, _PREDICTED_S, _TRAINING_S, _TRAINED_S, _SLURM_S, _WAITING_S = 0.4e-6, 9e-6, 0.8, 40e-6, 8e-6, 1e-6
_PASS_S = 2.5e-6  # for each that waits, of a queue so long that passes look at nothing but that
_SHORT = "SAF"  # has about as short a queue as those that run under Slurm's rules, the best of all under EASY
_BASELINE_SHARE = 0.2  # of the time, for the baseline under Slurm's rules
_CORES = 2
_SHARE = 0.4  # of the time, for each of the two parts; the rest is the search
_FEWEST = {"choosing": 6, "test": 8}  # replicas
_MOST = 24
_PILOT = 5_000  # jobs that say how many wait
_PAST = 10_000  # jobs ahead of a part


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How many replicas, and of which jobs.

    Parameters
    ----------
    count : int
        Replicas.
    part : Part
        The rows of the log.
    words : str
        What part that is.
    seconds : float
        How long it takes on two cores, about; 0 if nobody asked.
    """

    count: int
    part: Part
    words: str
    seconds: float = 0.0


def size_of(parts: LogParts, part: str, *, predicted: bool, baseline: bool = True) -> Size:
    """Return the replicas of a part that the minutes of the options allow, or as many as the options say, of all jobs.

    More replicas are taken where there is time for more than the fewest of all jobs; the last jobs of the part where
    there is not, at least so many weeks as a verdict needs: more jobs tell more than more replicas of them.

    Parameters
    ----------
    parts : LogParts
        The log and its options.
    part : {"choosing", "test"}
        Which.
    predicted : bool
        Whether a policy that runs on them reads predictions.
    baseline : bool
        Whether there has to be time for the baseline too, on those of the second half under Slurm's rules.
    """
    options, (first, last) = parts.options, parts.edges
    testing = part == "test"
    low, high = (last, len(parts.workload)) if testing else (first, last)
    words = "the second half" if testing else "the second quarter"
    if options.replicas is not None:
        return Size(options.replicas, Part(low, high), words)
    submit, second = parts.workload.submit, parts.workload.ticks
    budget, fewest = _SHARE * 60.0 * options.minutes * _CORES, _FEWEST[part]
    if testing:
        of_policies = _test_seconds(parts, predicted=predicted, baseline=baseline)
    else:
        of_policies = _choice_seconds(parts, predicted=predicted)

    def cut(rows: int) -> tuple[Part, float]:
        """Return the last rows of the part with their past, and the CPU seconds of one replica of them."""
        past = min(high - rows, _PAST)
        weeks = float(submit[high - 1] - submit[high - rows]) / (WEEK * second)
        trainings = predicted * (1 + weeks * 7 / PredictorOptions().every_days)
        training = _TRAINING_S + min(past + rows / 2, PredictorOptions().window) * _TRAINED_S
        seconds = (past + rows) * of_policies + trainings * training
        # Half replicas have half the jobs.
        return Part(high - rows, high, past), seconds * (1.5 if testing else 1.0)

    rows = high - low
    some, seconds = cut(rows)
    if fewest * seconds <= budget:
        count = min(_MOST, int(budget / seconds))
        return Size(count, some, words, count * seconds / _CORES)
    least = high + 1 - int(np.searchsorted(submit, submit[high - 1] - VERDICT_WEEKS * WEEK * second, side="right"))
    while rows > least and fewest * seconds > budget:
        rows = max(least, int(rows * 0.9))
        some, seconds = cut(rows)
    return Size(fewest, some, f"the last {rows:,} jobs of {words}", fewest * seconds / _CORES)


def _choice_seconds(parts: LogParts, *, predicted: bool) -> float:
    """Return the CPU seconds for a job of all policies that compete, once each."""
    count = len(PUBLISHED) + len(SOFTENED) + len(CLASSICAL)
    # One more predicted one is what a search finds.
    screened = count * _EASY_S + (len(COUNTED) + predicted * (len(FORMULAS) + 1)) * _PREDICTED_S
    if not parts.options.judged_under_slurm:
        return screened
    # What has predictions gets no threshold, so that hardly ever all are tried of two policies.
    tried = len(_QUANTILES) + 1 if parts.options.chooses_threshold else 0
    each = _SLURM_S + _waiting(parts, _SHORT) * _WAITING_S
    if parts.options.under_slurm:  # the worst ones, too
        screened += count * (_SLURM_S + _waiting(parts, CLASSICAL[0]) * _WAITING_S)
    return screened + (2 * _FINALISTS + _AT_ANY_PRICE + tried) * each


def _test_seconds(parts: LogParts, *, predicted: bool, baseline: bool) -> float:
    """Return the CPU seconds for a job under all policies that are tested."""
    policies, foreseen = 1 + PEERS, predicted * _PREDICTED_S
    if not parts.options.judged_under_slurm:
        return (policies + 1) * _EASY_S + foreseen
    seconds = policies * (_SLURM_S + _waiting(parts, _SHORT) * _WAITING_S) + foreseen
    return seconds + baseline * (_SLURM_S + _waiting(parts, CLASSICAL[0]) * _PASS_S)


def _waiting(parts: LogParts, policy: str) -> float:
    """Return how many jobs wait under a policy when one is submitted, in the last jobs before the second half."""
    first, last = parts.edges
    rows = slice(max(first, last - _PILOT), last)
    return _queue_length(simulate(parts.workload.select(rows), policy, parts.judging))


def _queue_length(schedule: Schedule) -> float:
    submit = schedule.workload.submit
    return float(np.mean(np.arange(len(submit)) - np.searchsorted(np.sort(schedule.start), submit, side="right")))


def baseline_minutes(parts: LogParts, replicas: Replicated) -> float:
    """Return the minutes of two cores that the baseline takes on replicas under Slurm's rules, beyond what is allowed.

    Whoever sorts by the requested time has a short queue; first come, first served has a long one, and each pass looks
    at all of it. How long it is, EASY tells in no time. 0 where there is time for it, or it was said how many replicas
    there are to be.
    """
    if not parts.options.judged_under_slurm or parts.options.replicas is not None:
        return 0.0
    seconds = 0.0
    for prepared in replicas.prepared:
        waiting = _queue_length(simulate(prepared.workload, CLASSICAL[0], Rules()))
        seconds += len(prepared.workload) * (_SLURM_S + waiting * _PASS_S)
    allowed = _BASELINE_SHARE * 60.0 * parts.options.minutes * _CORES
    return seconds / _CORES / 60.0 if seconds > allowed else 0.0


def replicas_of(parts: LogParts, part: str, size: Size) -> Replicated | None:
    """Return the replicas of a part; None, and a sentence, if it is too short for any.

    Predictors are first trained when the part begins: what came before is the same in all replicas.
    """
    options, testing = parts.options, part == "test"
    rules = parts.judging if testing else parts.rules
    # Replicas take seeds below 2**63, and so does learn: twice a large one is beyond it.
    seed = (2 * options.seed + _SEEDS[part]) % 2**63
    submit, begin = parts.workload.submit, size.part.first
    past, predictor = min(begin, size.part.past), PredictorOptions()
    if past >= 2 * predictor.least:
        days = float(submit[begin] - submit[begin - past]) / (DAY * parts.workload.ticks)
        predictor = PredictorOptions(first_days=min(max(days, predictor.first_days), 3650.0))
    try:
        return replicated(
            parts.workload, size.part, rules, count=size.count, seed=seed, predictor=predictor, halves=testing
        )
    except WorkloadError as error:
        parts.steps.progress.message(f"no replicas: {error}")
        return None


def rank_on(parts: LogParts, replicas: Replicated, policies: Sequence[Policy], part: str) -> Ranking:
    """Return the ranking of policies, of which some are published, on replicas of a part."""
    options, values = parts.options, _values(parts, replicas, policies)
    names = [policy.name for policy in policies]
    published = [name for name in PUBLISHED if name in names]
    how: dict[str, Any] = {"limits": options.limits, "loads": replicas.loads, "searched": [SEARCHED]}
    ranking = rank(values, names, published, aims_of(options), **how)
    return dataclasses.replace(ranking, part=part)


def finalists(ranking: Ranking) -> list[str]:
    """Return the names of the best published policies, of the best others at a price that is allowed, and at any.

    The simulation of Slurm's rules takes a hundred times as long as that of EASY: only these run under them, and what a
    policy costs is another thing there.
    """
    published = ranking.best
    others = [row.name for row in ranking.rows if row.name not in PUBLISHED]
    allowed = [name for name in others if not ranking.row(name).out]
    return list(dict.fromkeys((*published[:_FINALISTS], *allowed[:_FINALISTS], *others[:_AT_ANY_PRICE])))


def _values(parts: LogParts, replicas: Replicated, policies: Sequence[Policy], *, learns: bool = False) -> FloatArray:
    counter = parts.steps.progress.counter("replicas")
    counter.expect(len(replicas))
    return values_of(
        *(replicas, policies, aims_of(parts.options)),
        learns=learns,
        workers=parts.steps.workers,
        done=counter.done,
        notify=parts.steps.progress.message,
    )


def tested_on(
    parts: LogParts, replicas: Replicated, policies: Sequence[Policy], peers: Sequence[str], size: Size
) -> Tested:
    """Return the policies, the first of which the baseline is if it takes part, on replicas of a part."""
    submit = parts.workload.submit[size.part.first : size.part.last]
    weeks = float(submit[-1] - submit[0]) / (WEEK * parts.workload.ticks)
    options, values = parts.options, _values(parts, replicas, policies, learns=True)
    names = [policy.name for policy in policies]
    how: dict[str, Any] = {"limits": options.limits, "whole": replicas.whole, "loads": replicas.loads}
    to = {
        name: dataclasses.replace(rank(values, names, [name], aims_of(options), **how), part=size.words)
        for name in dict.fromkeys((*peers, CLASSICAL[0]))
        if name in names
    }
    return Tested(tuple(to[name] for name in peers), to.get(CLASSICAL[0]), weeks)


def with_threshold(parts: LogParts, replicas: Replicated, rival: Rival, gain: float) -> tuple[Rival, tuple[str, ...]]:
    """Return the choice with the lowest threshold above the first that is not sure to keep its gain, and those tried.

    They are tried from the highest on: the lower they are, the nearer to first come, first served, the longer are
    queues and simulations. Those above its longest wait bind nothing, and are not tried.

    Parameters
    ----------
    parts : LogParts
        The log, its options, and who works.
    replicas : Replicated
        Of the second quarter.
    rival : Rival
        The choice.
    gain : float
        What it gains against the baseline, as a logarithm.
    """
    aims, tried, kept, policy = aims_of(parts.options)[:1], [], rival, rival.model.policy
    workers, notify = parts.steps.workers, parts.steps.progress.message
    found = dict(results(_waits, (replicas, policy, aims), range(len(replicas)), workers, notify=notify))
    unguarded = [[[found[replica][0]]] for replica in sorted(found)]
    waits = np.concatenate([each for _, each in found.values()])
    for candidate in reversed(guarded(rival, waits, parts.steps.path_of("thresholds"))):
        if candidate.model.policy.threshold >= waits.max(initial=0.0):
            continue
        tried.append(candidate.name)
        values = values_of(replicas, [candidate.model.policy], aims, workers=workers, notify=notify)
        # To the choice without a threshold: all ratios are then losses.
        names = (policy.name, candidate.name)
        ranking = rank(np.concatenate([unguarded, values], axis=1), names, names[:1], aims)
        if _loss(ranking, candidate.name) > (1 - KEPT_GAIN) * gain:
            break
        kept = candidate
    return kept, tuple(tried)


def _waits(
    work: tuple[Replicated, Policy, Sequence[str]], replica: int, go_on: StopCheck
) -> tuple[int, tuple[float, FloatArray]]:
    """Return what the first aim is in a replica under a policy, and how long each job waits (s)."""
    go_on()
    replicas, policy, aims = work
    schedule = replicas.schedule(replica, policy)
    return replica, (measure(schedule, aims)[aims[0]], schedule.wait)


def with_order(parts: LogParts, replicas: Replicated, policy: Policy, *, predicted: bool) -> Policy:
    """Return the policy with the order for backfilling that is shown to be better than the next; else as it is.

    Parameters
    ----------
    parts : LogParts
        The log, its options, and who works.
    replicas : Replicated
        Of the second quarter.
    policy : Policy
        The choice.
    predicted : bool
        Whether jobs can be predicted.
    """
    paired = [
        dataclasses.replace(policy, name=f"{policy.name}-BY-{name}", backfill_formula=formula)
        for name, formula in ORDERS.items()
        if predicted or name == "P"
    ]
    every, aims = [policy, *paired], aims_of(parts.options)
    values, names = _values(parts, replicas, every), [candidate.name for candidate in every]
    ranking = rank(values, names, [policy.name], aims, limits=parts.options.limits, searched=names[1:])
    parts.steps.progress.message(
        f"orders for backfilling: {', '.join(f'{row.name} {row.ratio_text}' for row in ranking.rows)}; "
        f"{ranking.chosen} is taken"
    )
    return every[names.index(ranking.chosen)]


def guarded(rival: Rival, waits: FloatArray, folder: str) -> list[Rival]:
    """Return a policy with each of the thresholds to try, which are quantiles of waits (s), from the lowest on.

    They are named by their thresholds; ``folder``: the folder that their files are written to.
    """
    policy = rival.model.policy
    hours = {whole_hours(float(np.quantile(waits, share)) / HOUR) for share in _QUANTILES} - {0}
    policies = [
        dataclasses.replace(policy, name=f"{policy.name}-{hours_text(count)}", threshold=float(count * HOUR))
        for count in sorted(hours)
    ]
    return [Rival(dataclasses.replace(rival.model, policy=each), f"{folder}/{each.name}.json") for each in policies]


def _loss(ranking: Ranking, name: str) -> float:
    """Return how much worse a policy may be, as a logarithm: by the interval, if there is one."""
    row = ranking.row(name)
    return math.log(row.ratios[0] if row.interval is None else row.interval[1])


@dataclasses.dataclass(frozen=True, slots=True)
class ByReplicas:
    """What replicas of the second quarter say.

    Parameters
    ----------
    rivals : tuple of Rival
        All policies that competed.
    screening : Ranking or None
        How they did under EASY, where the rules that judge are Slurm's.
    ranking : Ranking
        How they did under the rules that judge; where there was a screening, its best.
    winner : Rival
        The choice, with its threshold if one was chosen.
    published : Rival
        The best published policy in the same way: it stands in where the choice is not shown to be better.
    tried : tuple of str
        Names of the choice with the thresholds that were tried.
    """

    rivals: tuple[Rival, ...]
    screening: Ranking | None
    ranking: Ranking
    winner: Rival
    published: Rival
    tried: tuple[str, ...]

    @property
    def shown(self) -> list[Rival]:
        """What is shown on the quarter itself: the classical policies, what was fitted, and the choice.

        But for what reads predictions: a model learns in each run, for half a minute of a long log.
        """
        kept = {self.ranking.chosen, *self.ranking.best, *CLASSICAL}
        shown = [rival for rival in self.rivals if rival.name in kept or rival.name not in _MANY]
        return [rival for rival in shown if not rival.model.policy.needs_model]


# A formula of the log's own, by search --------------------------------------------------------------------------------
# The exponents of an index of predictions, by search on replicas of the second quarter. The replicas are others than
# those that choose, under EASY, and jobs are predicted as in the log as it was, so that a simulation takes half a
# microsecond a job. What is found is taken only if it is shown to be better than all others on the replicas that
# choose.

# With these exponents all stock formulas with predictions but for factors, from E to E-USERS.
_SEARCHED = "ln(e) + a*ln(s) + b*ln(q) + c*ln(p) + d*ln(1 + user_waiting) + k*ln(1 + user_running)"
_START = (-0.5, 0.3, 0.0, 0.0, 0.0)
_STEP = 0.2
_PULL = 2.0  # of the mean squared distance from the start, in units of a logarithm: stock exponents, unless others pay
_DEAR = 2.0  # what a unit of a logarithm beyond a limit costs
_WORST, _TINY = 1e6, 1e-9
_CANDIDATES = 240
_MOST_SEARCHED, _FEWEST_SEARCHED = 24, 4  # replicas
_JOB_S = 0.6e-6  # CPU seconds of a job that is simulated and measured, as measured on one machine of 2026
_SEARCH_SHARE = 0.1  # of the minutes, on two cores
_TRAININGS = 3  # of the log as it was
_SEED = 1 << 32  # between the seeds of these replicas and of those that choose


class _Searched(NamedTuple):
    arena: Replicated
    replicas: tuple[Prepared, ...]
    aims: tuple[str, ...]


def searched(parts: LogParts, size: Size) -> Policy | None:
    """Return what a search on replicas of the second quarter has found; None, and a sentence, if it is too short.

    Parameters
    ----------
    parts : LogParts
        The log, its options, and who works.
    size : Size
        Of the replicas that choose, and of which part they are.
    """
    options, progress = parts.options, parts.steps.progress
    submit, ticks = parts.workload.submit, parts.workload.ticks
    first, last, past = size.part.first, size.part.last, min(size.part.past, size.part.first)
    days = float(submit[last - 1] - submit[first]) / (DAY * ticks)
    if days * DAY < VERDICT_WEEKS * WEEK:
        progress.message(f"no search: {days / 7:.1f} weeks to search on, and {VERDICT_WEEKS} are the least")
        return None
    seconds = _CANDIDATES * _JOB_S * (past + last - first)
    count = int(120 * _SEARCH_SHARE * options.minutes / seconds)
    if count < _FEWEST_SEARCHED and options.replicas is None:
        progress.message(f"no search: --minutes {options.minutes:g} allow none of so many jobs")
        return None
    count, before = (
        min(max(count, _FEWEST_SEARCHED), _MOST_SEARCHED),
        float(submit[first] - submit[first - past]) / (DAY * ticks),
    )
    predictor = PredictorOptions(
        first_days=min(max(before, PredictorOptions().first_days), 3650.0), every_days=max(days / _TRAININGS, 1.0)
    )
    seed = (2 * options.seed + _SEED) % 2**63
    try:
        easy = Rules(threshold=parts.rules.threshold)
        arena, replicas = foretold(parts.workload, size.part, easy, count=count, seed=seed, predictor=predictor)
    except WorkloadError as error:
        progress.message(f"no search: {error}")
        return None
    return _found(parts, _Searched(arena, replicas, aims_of(options)))


def _found(parts: LogParts, shared: _Searched) -> Policy:
    family = Family(Form.of("index", _SEARCHED), _START, (1.0,) * len(_START), "the exponents of all that is predicted")
    counter = parts.steps.progress.counter("candidates", "candidates/s")
    generations = _CANDIDATES // population(len(_START))
    counter.expect(len(PUBLISHED) + generations * population(len(_START)))

    def named(name: str, values: FloatArray) -> Policy:
        fixed = dict(zip(family.form.names, digits(values), strict=True))
        return family.form.fixed(fixed, name, description="exponents by search on replicas of the second quarter")

    with batches(_measure, shared, parts.steps.workers, notify=parts.steps.progress.message) as compute:

        def values_of(policies: Sequence[Policy]) -> FloatArray:
            values = np.empty((len(policies), len(shared.replicas), len(shared.aims)))
            for number, found in compute(enumerate(policies)):
                values[number] = found
                counter.done(1)
            return values

        published = values_of([CATALOGUE[name] for name in PUBLISHED])
        base = published[int(np.argmin(logarithms(published, shared.aims)[..., 0].mean(axis=1)))]
        evolution = Evolution(family, parts.options.seed, (0, 0), _STEP)
        for _ in range(generations):
            asked = evolution.ask()
            values = values_of([named(f"{number}", point) for number, point in enumerate(asked)])
            losses = [_worth(found, base, shared.aims, parts.options.limits) for found in values]
            evolution.tell(
                asked, [loss + _PULL * distance_of(family, point) for loss, point in zip(losses, asked, strict=True)]
            )
            if evolution.over:
                break
    return named(SEARCHED, evolution.centre)


def _measure(shared: _Searched, unit: tuple[int, Policy], go_on: StopCheck) -> tuple[int, FloatArray]:
    rows = []
    with np.errstate(all="ignore"):
        for replica in shared.replicas:
            go_on()
            measured = measure(shared.arena.given(replica, unit[1]), shared.aims)
            rows.append([measured[name] for name in shared.aims])
    return unit[0], np.array(rows)


def _worth(values: FloatArray, base: FloatArray, aims: Sequence[str], limits: Sequence[EpisodeLimit]) -> float:
    """Return the mean logarithm of the first aim's ratio to the best published policy, and what is beyond limits."""
    ratios = (logarithms(values, aims) - logarithms(base, aims)).mean(axis=0)
    loss = float(ratios[0])
    for limit in limits:
        if limit.guard in aims:
            column = aims.index(limit.guard)
            found = math.exp(ratios[column]) if limit.times is not None else float(values[:, column].mean())
            loss += _DEAR * max(0.0, math.log(max(found, _TINY) / limit.bound(1.0)))
    return loss if math.isfinite(loss) else _WORST
