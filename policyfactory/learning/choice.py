"""The choice by replicas of the second quarter, and what replicas of the second half say of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import HOUR
from policyfactory.learning.comparing import CLASSICAL, PUBLISHED, Rival, hours_text, whole_hours
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.parts import LogParts
from policyfactory.learning.ranking import Ranking, expected_ratio, rank, values_of
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.prediction.features import missing
from policyfactory.search.replicated import AIMS, Part, Replicated, replicated
from policyfactory.simulation.predicted import telling_requests
from policyfactory.workload.jobs import Workload

# E[p] over a power of E[10/p], the order that is best for jobs of one processor and known distributions, with the
# exponents of the shortness and of q softened: a small one errs least when long jobs are taken for short ones, 1 gains
# most when they are not. The last two also hold back users who run much and let the later jobs of a burst, of which
# more is known, go first.
FORMULAS = {
    "E": "e",
    "E-S20": "ln(e) - 0.2*ln(s)",
    "E-S25-Q30": "ln(e) - 0.25*ln(s) + 0.3*ln(q)",
    "E-S50-Q30": "ln(e) - 0.5*ln(s) + 0.3*ln(q)",
    "E-S50-Q70": "ln(e) - 0.5*ln(s) + 0.7*ln(q)",
    "E-S100-Q30": "ln(e) - ln(s) + 0.3*ln(q)",
    "PE-S50-Q60": "ln(p) + ln(e) - 0.5*ln(s) + 0.6*ln(q)",
    "E-WAITING": "ln(e) + 0.3*ln(p) - 0.4*ln(s) + 0.2*ln(q) - 0.4*ln(1 + user_waiting)",
    "E-USERS": "ln(e) - 0.5*ln(s) + 0.3*ln(q) - 0.4*ln(1 + user_waiting) + 0.3*ln(1 + user_running)",
}
# What needs no predictions: between the shortest job and the smallest area.
SOFTENED = {"P-Q20": "ln(p) + 0.2*ln(q)", "P-Q50": "ln(p) + 0.5*ln(q)"}
_WHAT = "e and s are predicted from what the user's jobs did before"
_SOFT = "between SPF and SAF"


def softened_rivals(folder: str) -> list[Rival]:
    """Return the formulas of p and q between the published ones; ``folder`` as for `predicted_rivals`."""
    return _rivals(SOFTENED, folder, _SOFT)


def predicted_rivals(folder: str) -> list[Rival]:
    """Return the formulas with predictions; ``folder``: the folder that their files are written to."""
    return _rivals(FORMULAS, folder, _WHAT)


def _rivals(formulas: dict[str, str], folder: str, what: str) -> list[Rival]:
    return [
        Rival(Model(Policy(name, formula, description=what)), f"{folder}/{name}.json")
        for name, formula in formulas.items()
    ]


def why_not(workload: Workload) -> str:
    """Return why nothing is predicted of the jobs of a log, or empty."""
    if telling := telling_requests(workload):
        return telling
    if not (workload.user >= 0).any():
        return f"the log does not say whose jobs they are ({missing(workload)[0]})"
    return ""


# The choice by replicas of the second quarter -------------------------------------------------------------------------


# Of the waits under the chosen formula, as thresholds: the last one changes nothing there, and bounds what comes later;
# and the share of its gain that a threshold must keep.
_QUANTILES = (0.9, 0.95, 0.99, 0.999, 1.0)
KEPT_GAIN = 0.9
_MANY = {*PUBLISHED, *FORMULAS, *SOFTENED}
_SEEDS = {"choosing": 0, "test": 1}  # replicas of the two parts have random numbers of their own


@dataclasses.dataclass(frozen=True, slots=True)
class Tested:
    """The choice on replicas of the second half.

    Parameters
    ----------
    to_peer, to_baseline : Ranking
        The same values, as ratios to the policy that was the best published one by the second quarter, and to the
        baseline.
    """

    to_peer: Ranking
    to_baseline: Ranking


def aims_of(options: LearnOptions) -> tuple[str, ...]:
    """Return what is measured: the metric that chooses, then what it costs."""
    return tuple(dict.fromkeys((options.metric, *AIMS[1:])))


def replicas_of(parts: LogParts, part: str) -> Replicated | None:
    """Return the replicas of a part; None, and a sentence, if it is too short for any."""
    options, (first, last) = parts.options, parts.edges
    testing = part == "test"
    rows = Part(last, len(parts.workload)) if testing else Part(first, last)
    rules = parts.judging if testing else parts.rules
    # Replicas take seeds below 2**63, and so does learn: twice a large one is beyond it.
    seed = (2 * options.seed + _SEEDS[part]) % 2**63
    try:
        return replicated(parts.workload, rows, rules, count=options.replicas, seed=seed, halves=testing)
    except WorkloadError as error:
        parts.steps.progress.message(f"no replicas: {error}")
        return None


def rank_on(parts: LogParts, replicas: Replicated, policies: Sequence[Policy], published: Sequence[str]) -> Ranking:
    """Return the ranking of policies, of which some are published."""
    options, values = parts.options, _values(parts, replicas, policies)
    asked = [policy.name for policy in policies], published, aims_of(options)
    expected = expected_ratio(values, *asked, limits=options.limits)
    return dataclasses.replace(rank(values, *asked, limits=options.limits), expected=expected)


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


def tested_on(parts: LogParts, replicas: Replicated, policies: Sequence[Policy], peer: str) -> Tested:
    """Return the policies, the baseline first, on replicas of the second half."""
    options, values = parts.options, _values(parts, replicas, policies, learns=True)
    names = [policy.name for policy in policies]
    to = (
        rank(values, names, [name], aims_of(options), limits=options.limits, whole=replicas.whole)
        for name in (peer, names[0])
    )
    return Tested(*to)


def with_threshold(
    parts: LogParts, replicas: Replicated, policy: Policy, baseline: Policy
) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy with the lowest threshold that is sure to keep its gain, and the names of those tried.

    Parameters
    ----------
    parts : LogParts
        The log, its options, and who works.
    replicas : Replicated
        Of the second quarter.
    policy, baseline : Policy
        The choice, and what it gains against.
    """
    waits = np.concatenate([schedule.wait for schedule in replicas.schedules(policy)])
    tried = guarded(policy, waits)
    if not tried:
        return policy, ()
    policies, aims = (policy, *tried, baseline), aims_of(parts.options)[:1]
    notify = parts.steps.progress.message
    values = values_of(replicas, policies, aims, workers=parts.steps.workers, notify=notify)
    # To the choice without a threshold: all ratios are then losses.
    ranking = rank(values, [candidate.name for candidate in policies], [policy.name], aims)
    most = (1 - KEPT_GAIN) * abs(math.log(ranking.row(baseline.name).ratios[0]))
    kept = [candidate for candidate in tried if _loss(ranking, candidate.name) <= most]
    return (kept or [policy])[0], tuple(candidate.name for candidate in tried)


def guarded(policy: Policy, waits: FloatArray) -> list[Policy]:
    """Return a policy with each of the thresholds of `threshold_hours`, named by them."""
    return [
        dataclasses.replace(policy, name=f"{policy.name}-{hours_text(count)}", threshold=float(count * HOUR))
        for count in threshold_hours(waits)
    ]


def threshold_hours(waits: FloatArray) -> list[int]:
    """Return the thresholds to try (h), quantiles of waits (s)."""
    return sorted({whole_hours(float(np.quantile(waits, share)) / HOUR) for share in _QUANTILES} - {0})


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
    ranking : Ranking
        How they did.
    winner : Rival
        The choice, with its threshold if one was chosen.
    tried : tuple of str
        Names of the choice with the thresholds that were tried.
    """

    rivals: tuple[Rival, ...]
    ranking: Ranking
    winner: Rival
    tried: tuple[str, ...]

    @property
    def shown(self) -> list[Rival]:
        """What is shown on the quarter itself: the classical policies, what was fitted, and the choice."""
        kept = {self.ranking.chosen, self.ranking.peer, *CLASSICAL}
        return [rival for rival in self.rivals if rival.name in kept or rival.name not in _MANY]
