"""The arena: replicas of a part of a log, ready to be played under any policy.

A replica has the jobs before the part ahead of it, as they were: the past that predictions are made from. Predictors
learn once for each replica, in a run by `TEACHER` (under EASY where the rules are Slurm's); what other policies are
tried on are the models of that run, from the same instants on. Models differ little with the order of a queue, and
training is what takes the time.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import FormulaError, PolicyfactoryError, UsageError
from policyfactory.core.jit import interruptible
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import shortened
from policyfactory.engine.easy import easy
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Notify, StopCheck, Workers
from policyfactory.policy.policy import Policy
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Predictor, Training
from policyfactory.search.families import PUBLISHED
from policyfactory.simulation.metrics import COSTS, measure
from policyfactory.simulation.predicted import Foreseen, run_predicted
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import run_prepared, simulate
from policyfactory.statistics.intervals import MIN_CASES
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import LOADS, Replicas, loads_of

_MOST = 1_000  # replicas

# What is asked of a policy at once; the first is what it is chosen by, the others what it costs.
AIMS = ("mean_bsld", *COSTS)
TEACHER = Policy("TEACHER", "-0.5*ln(s) + ln(e) + 0.3*ln(q)")


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A part of a log and the past ahead of it, by rows.

    Parameters
    ----------
    first, last : int
        The part's first row and the row after its last.
    past : int
        Most rows ahead of it that are simulated too and not measured.
    """

    first: int
    last: int
    past: int = 30_000

    def cut(self, workload: Workload) -> tuple[Workload, int]:
        """Return the part with its past, and how many jobs of it are past."""
        lead_in = min(self.first, self.past)
        return workload.select(slice(self.first - lead_in, self.last)), lead_in


class Replicated:
    """Replicas that are played again and again; a `policyfactory.search.learner.Played`.

    Parameters
    ----------
    replicas : sequence of Workload
        The jobs, the past ahead.
    lead_in : int
        Jobs of the past, which are not measured.
    rules : Rules
        The rules.
    predictor : PredictorOptions
        How predictors learn.
    whole : int, optional
        How many of them, the first ones, have all jobs; what follows are halves, which say how far to believe those.
        All, if not given.
    loads : sequence of float
        Of those, in units of the log's; empty: nobody asks.

    Attributes
    ----------
    learns : bool
        Whether predictors learn in each run that `schedules` gives, as at a site; False at first.
    prepared : list of Prepared
        The replicas, their jobs in the order of their submission.
    """

    def __init__(
        self,
        replicas: Sequence[Workload],
        lead_in: int,
        rules: Rules,
        predictor: PredictorOptions | None = None,
        whole: int | None = None,
        loads: Sequence[float] = (),
    ) -> None:
        self.lead_in, self.rules, self.learns, self.loads = lead_in, rules, False, tuple(loads)
        self.whole = len(replicas) if whole is None else whole
        self.options = predictor or PredictorOptions()
        # Slurm's own passes take jobs as they are; what is prepared for them is the engine's order alone.
        ordered = dataclasses.replace(rules, backfill="easy", site=None) if rules.backfill == "slurm" else rules
        self.prepared = [prepare(replica, ordered) for replica in replicas]
        self._taught: dict[tuple[int, bool], tuple[Training, ...]] = {}

    def under_slurm(self, rules: Rules) -> Replicated:
        """Return the same replicas under Slurm's rules, predicted by the same models."""
        others = copy.copy(self)
        others.rules = rules
        return others

    def __len__(self) -> int:
        return len(self.prepared)

    def schedules(self, policy: Policy) -> Iterator[Schedule]:
        """Give the schedule of each replica after its past."""
        for replica in range(len(self)):
            yield self.schedule(replica, policy, learns=self.learns)

    def schedule(self, replica: int, policy: Policy, *, learns: bool = False) -> Schedule:
        """Return the schedule of one replica after its past.

        Parameters
        ----------
        replica : int
            Which one, from 0.
        policy : Policy
            The policy.
        learns : bool
            The predictor learns in this very run, as it would at a site; else its models are those of `TEACHER`'s run.
        """
        prepared, predictor = self.prepared[replica], Predictor(self.options)
        if policy.needs_model and not learns:
            predictor = dataclasses.replace(predictor, trainings=self.taught(replica, tail="e90" in policy.variables))
        if self.rules.backfill == "slurm":
            return simulate(prepared.workload, policy, self.rules, predictor=predictor).after(self.lead_in)
        with np.errstate(all="ignore"):
            return self._schedule(prepared, policy, *run_prepared(prepared, policy, predictor))

    def given(self, prepared: Prepared, policy: Policy) -> Schedule:
        """Return the schedule of a replica whose predictions are known beforehand, after its past."""
        jobs, order, machine = prepared.sorted_jobs(policy), prepared.order(policy), prepared.workload.machine
        interruptible(easy, jobs, order, machine)
        return self._schedule(prepared, policy, jobs.start, jobs.backfilled)

    def foreseen(self, replica: int, policy: Policy) -> tuple[Prepared, Foreseen]:
        """Return a replica and what is predicted of its jobs, its past among them, by the models of the teacher."""
        prepared = self.prepared[replica]
        return prepared, run_predicted(prepared, policy, Predictor(self.options, trainings=self.taught(replica)))

    def _schedule(
        self, prepared: Prepared, policy: Policy, start: Int64Array, backfilled: NDArray[np.bool_]
    ) -> Schedule:
        # Replicas are in the engine's order: their jobs are numbered as they are submitted.
        end = start + prepared.run_time
        return Schedule(start, end, backfilled, prepared.workload, policy.name, prepared.rules).after(self.lead_in)

    def aims(
        self, replica: int, policy: Policy, aims: Sequence[str] = AIMS, *, learns: bool = False
    ) -> tuple[float, ...]:
        """Return metrics of one replica, in the order of ``aims``; the other parameters are those of `schedule`."""
        measured = measure(self.schedule(replica, policy, learns=learns), aims)
        return tuple(measured[name] for name in aims)

    def teach(self, policies: Iterable[Policy], workers: Workers | int = 1, notify: Notify = lambda _: None) -> None:
        """Have the models of all replicas that these policies need made, before anybody waits for them.

        Parameters
        ----------
        policies : iterable of Policy
            The policies.
        workers : Workers or int
            Who works; a number means so many threads.
        notify : callable
            Is told when a worker was lost.
        """
        tails = sorted({"e90" in policy.variables for policy in policies if policy.needs_model})
        units = [
            (replica, tail) for tail in tails for replica in range(len(self)) if (replica, tail) not in self._taught
        ]
        if units:
            self._taught |= dict(results(_taught, self, units, workers, notify=notify))

    def taught(self, replica: int, *, tail: bool = False) -> tuple[Training, ...]:
        """Return the models of the run that teaches for a replica; made once."""
        key = replica, tail
        if key not in self._taught:
            run = run_predicted(self.prepared[replica], TEACHER, Predictor(self.options), tail=tail)
            self._taught[key] = run.trainings
        return self._taught[key]


def _taught(
    arena: Replicated, unit: tuple[int, bool], go_on: StopCheck
) -> tuple[tuple[int, bool], tuple[Training, ...]]:
    go_on()
    return unit, arena.taught(unit[0], tail=unit[1])


def replicated(
    workload: Workload,
    part: Part,
    rules: Rules,
    *,
    count: int,
    seed: int = 0,
    loads: tuple[float, float] = LOADS,
    predictor: PredictorOptions | None = None,
    halves: bool = False,
) -> Replicated:
    """Return replicas of a part of a log, their loads spread evenly between bounds (in units of the log's).

    Parameters
    ----------
    workload : Workload
        The log.
    part : Part
        Which jobs of it.
    rules : Rules
        The rules.
    count : int
        How many replicas.
    seed : int
        Seed of the replicas.
    loads : tuple of float
        The lowest and the highest load.
    predictor : PredictorOptions, optional
        How predictors learn.
    halves : bool
        As many half replicas beside them (one more if their number is odd, and at least six), for a verdict.

    Raises
    ------
    WorkloadError
        If the part is shorter than two whole weeks.
    UsageError
        If a number is out of range.
    """
    if not 1 <= count <= _MOST:
        raise UsageError(f"{count} replicas; give 1 to {_MOST:,}")
    some, lead_in = part.cut(workload)
    replicas = Replicas(some, lead_in=lead_in, seed=seed)
    each = loads_of(count, loads)
    workloads = [replicas.sample(number, load) for number, load in enumerate(each, 1)]
    # Both of a pair have one load.
    pairs = loads_of(max(count + 1, MIN_CASES) // 2, loads) if halves else ()
    workloads += [replicas.half(2 * number + side, load) for number, load in enumerate(pairs) for side in (1, 2)]
    return Replicated(workloads, lead_in, rules, predictor, count, each)


def foretold(
    workload: Workload,
    part: Part,
    rules: Rules,
    *,
    count: int,
    seed: int = 0,
    predictor: PredictorOptions | None = None,
) -> tuple[Replicated, tuple[Prepared, ...]]:
    """Return replicas of a part of a log, and each with what was predicted of its jobs in the log as it was.

    So a predictor learns once, and no replica is predicted by what happens later in the log: for whoever simulates
    hundreds of formulas on them under EASY (`Replicated.given`). Parameters and errors are those of `replicated`.
    """
    arena = replicated(workload, part, rules, count=count, seed=seed, predictor=predictor)
    some, lead_in = part.cut(workload)
    prepared = prepare(some, rules)
    foreseen = run_predicted(prepared, TEACHER, Predictor(arena.options))
    predictions = np.array([prepared.in_rows(column) for column in foreseen.predictions])
    replicas = Replicas(some, lead_in=lead_in, seed=seed)
    rows = (replicas.rows(number, load) for number, load in enumerate(arena.loads, 1))
    return arena, tuple(
        dataclasses.replace(replica, predictions=predictions[:, those])
        for replica, those in zip(arena.prepared, rows, strict=True)
    )


# What policies do on replicas -----------------------------------------------------------------------------------------


class _AimsWork(NamedTuple):
    replicas: Replicated
    policies: tuple[Policy, ...]
    aims: tuple[str, ...]
    learns: bool


def _measure(work: _AimsWork, replica: int, go_on: StopCheck) -> tuple[int, FloatArray]:
    rows = []
    for policy in work.policies:
        go_on()
        rows.append(work.replicas.aims(replica, policy, work.aims, learns=work.learns))
    return replica, np.array(rows)


def values_of(
    replicas: Replicated,
    policies: Sequence[Policy],
    aims: Sequence[str] = AIMS,
    *,
    learns: bool = False,
    workers: Workers | int = 1,
    done: Callable[[int], None] = lambda _: None,
    notify: Notify = lambda _: None,
) -> FloatArray:
    """Return what was measured: float64 array (replicas, policies, aims).

    Parameters
    ----------
    replicas : Replicated
        The replicas.
    policies : sequence of Policy
        The policies.
    aims : sequence of str
        Metrics.
    learns : bool
        As of `Replicated.schedule`.
    workers : Workers or int
        Who works, a replica at a time.
    done, notify : callable
        Are told how many replicas more are done, and sentences about the workers.
    """
    values = np.empty((len(replicas), len(policies), len(aims)))
    work = _AimsWork(replicas, tuple(policies), tuple(aims), learns)
    for replica, rows in results(_measure, work, range(len(replicas)), workers, notify=notify):
        values[replica] = rows
        done(1)
    return values


# The published policy that is best on replicas ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best published policy on replicas.

    Parameters
    ----------
    policy : Policy
        It.
    values : float64 array (replicas, len(AIMS))
        Its aims.
    means : dict of str to float
        Of every published policy the mean bounded slowdown, as the geometric mean over the replicas.
    """

    policy: Policy
    values: FloatArray
    means: dict[str, float]


def best_published(
    arena: Replicated,
    workers: Workers | int = 1,
    *,
    among: Sequence[Policy] = PUBLISHED,
    notify: Notify = lambda _: None,
) -> Best:
    """Return the published policy with the least mean logarithm of the mean bounded slowdown over replicas.

    Parameters
    ----------
    arena : Replicated
        The replicas.
    workers : Workers or int
        Who works; a number means so many threads.
    among : sequence of Policy
        The policies; the first of equal ones is taken.
    notify : callable
        Is told when a worker was lost.
    """
    values = np.moveaxis(values_of(arena, among, workers=workers, notify=notify), 1, 0).copy()
    logs = [float(np.log(of_policy[:, 0]).mean()) for of_policy in values]
    best = int(np.argmin(logs))
    means = {policy.name: float(np.exp(value)) for policy, value in zip(among, logs, strict=True)}
    return Best(among[best], values[best], means)


# Candidates that others hand in ---------------------------------------------------------------------------------------

# Formulas as texts, which are read and never run, their faults as data.
#
# A line is a formula, or a JSON object with a ``formula`` and, if it is given one, a ``name``; what else the object has
# is ignored. Blank lines and lines that begin with # are skipped. Sizes are bounded, formulas are read by
# `policyfactory.policy.expression`, and one that cannot be used is no error of the others.


Given: TypeAlias = str | Mapping[str, Any] | Policy

MOST_CANDIDATES = 1_000
MOST_BYTES = 1 << 24
_LONGEST_LINE = 20_000  # characters
_LONGEST_ECHO, _LONGEST_ERROR = 200, 1_000  # characters of what was given, and of what is said of it
_SOURCE = "handed in to policyfactory judge"


@dataclasses.dataclass(frozen=True, slots=True)
class Submitted:
    """A candidate as it was read.

    Parameters
    ----------
    name : str
        Its name; ``candidate-N`` if it has none.
    text : str
        What was given, at most 200 characters of it.
    policy : Policy or None
        The policy; None if it cannot be used.
    error : str
        Why it cannot be used; empty if it can.
    """

    name: str
    text: str
    policy: Policy | None
    error: str = ""


def submitted(given: Iterable[Given]) -> tuple[Submitted, ...]:
    """Return the candidates of lines, JSON objects or policies; what cannot be read is kept with its error.

    Parameters
    ----------
    given : iterable of str, mapping or Policy
        Lines as of a file, mappings as of its JSON objects, or policies that are formulas.

    Raises
    ------
    UsageError
        If there is none, or more than `MOST_CANDIDATES`.
    """
    read: list[Submitted] = []
    for line in given:
        if isinstance(line, str) and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if len(read) == MOST_CANDIDATES:
            raise UsageError(f"more than {MOST_CANDIDATES:,} candidates; hand them in by several runs")
        read.append(_read(line, f"candidate-{len(read) + 1}"))
    if not read:
        raise UsageError("no candidate; give formulas, or a file with one a line: policyfactory judge LOG 'p*q'")
    return tuple(read)


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a file; bytes that are no UTF-8 become a sign that is in no formula."""
    return data.decode("utf-8", errors="replace").split("\n")


def _read(given: Given, default: str) -> Submitted:
    name, text = default, ""
    try:
        if isinstance(given, Policy):
            name, text = given.name, given.formula
            given.expression.text()
            return Submitted(name, text[:_LONGEST_ECHO], given)
        text = given if isinstance(given, str) else ""
        name, text = _named(given, default)
        policy = Policy(name, text.strip(), source=_SOURCE)
        _ = policy.program
    except (PolicyfactoryError, RecursionError) as error:
        return Submitted(shortened(name, 100), text.strip()[:_LONGEST_ECHO], None, _error_text(error)[:_LONGEST_ERROR])
    return Submitted(name, text.strip()[:_LONGEST_ECHO], policy)


def _error_text(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, FormulaError) and error.position is not None:
        return f"{error.reason} (at character {error.position + 1})"
    return " ".join(str(error).split()) if isinstance(error, PolicyfactoryError) else "it is nested too deeply"


def _named(given: str | Mapping[str, Any], default: str) -> tuple[str, str]:
    """Return name and formula of a line or of an object."""
    if isinstance(given, str):
        if len(given) > _LONGEST_LINE:
            raise UsageError(f"a line of {len(given):,} characters; at most {_LONGEST_LINE:,} are read")
        if not given.lstrip().startswith("{"):
            return default, given
    try:
        content: Mapping[str, Any] = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        raise UsageError('no JSON object; write {"name": "mine", "formula": "p*q"} in one line') from None
    name, formula = content.get("name", default), content.get("formula")
    if not isinstance(formula, str) or not isinstance(name, str):
        raise UsageError('"formula" and "name" are texts; write {"name": "mine", "formula": "p*q"}')
    return name, formula
