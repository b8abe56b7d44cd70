"""A formula of the log's own: the exponents of an index of predictions, by search on replicas of the second quarter.

The replicas are others than those that choose, under EASY, and jobs are predicted as in the log as it was, so that a
simulation takes half a microsecond a job. What is found is taken only if it is shown to be better than all others on
the replicas that choose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import DAY, WEEK
from policyfactory.learning.choice import SEARCHED, Size, aims_of
from policyfactory.learning.comparing import PUBLISHED
from policyfactory.learning.parts import LogParts
from policyfactory.learning.ranking import logarithms
from policyfactory.parallel.pool import batches
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.form import Form
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.prediction.options import PredictorOptions
from policyfactory.search.environment.goals import EpisodeLimit
from policyfactory.search.families import Family
from policyfactory.search.formulas import Evolution, digits, distance_of, population
from policyfactory.search.replicated import Replicated, foretold
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.prepare import Prepared
from policyfactory.simulation.rules import Rules
from policyfactory.workload.resample import VERDICT_WEEKS

# With these exponents all stock formulas with predictions but for factors, from E to E-USERS.
_INDEX = "ln(e) + a*ln(s) + b*ln(q) + c*ln(p) + d*ln(1 + user_waiting) + k*ln(1 + user_running)"
_START = (-0.5, 0.3, 0.0, 0.0, 0.0)
_STEP = 0.2
_PULL = 2.0  # of the mean squared distance from the start, in units of a logarithm: stock exponents, unless others pay
_DEAR = 2.0  # what a unit of a logarithm beyond a limit costs
_WORST, _TINY = 1e6, 1e-9
_CANDIDATES = 240
_MOST, _FEWEST = 24, 4  # replicas
_JOB_S = 0.6e-6  # CPU seconds of a job that is simulated and measured, as measured on one machine of 2026
_SHARE = 0.1  # of the minutes, on two cores
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
    count = int(120 * _SHARE * options.minutes / seconds)
    if count < _FEWEST and options.replicas is None:
        progress.message(f"no search: --minutes {options.minutes:g} allow none of so many jobs")
        return None
    count, before = min(max(count, _FEWEST), _MOST), float(submit[first] - submit[first - past]) / (DAY * ticks)
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
    family = Family(Form.of("index", _INDEX), _START, (1.0,) * len(_START), "the exponents of all that is predicted")
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
            losses = [_loss(found, base, shared.aims, parts.options.limits) for found in values]
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


def _loss(values: FloatArray, base: FloatArray, aims: Sequence[str], limits: Sequence[EpisodeLimit]) -> float:
    """Return the mean logarithm of the first aim's ratio to the best published policy, and what is beyond limits."""
    ratios = (logarithms(values, aims) - logarithms(base, aims)).mean(axis=0)
    loss = float(ratios[0])
    for limit in limits:
        if limit.guard in aims:
            column = aims.index(limit.guard)
            found = math.exp(ratios[column]) if limit.times is not None else float(values[:, column].mean())
            loss += _DEAR * max(0.0, math.log(max(found, _TINY) / limit.bound(1.0)))
    return loss if math.isfinite(loss) else _WORST
