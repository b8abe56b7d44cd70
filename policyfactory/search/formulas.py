"""The learner ``search``: coefficients of formulas by CMA-ES, with the simulator in the loop.

Each candidate is simulated on all windows for training; only its coefficients differ from the last one's, so nothing
is parsed, compiled or prepared for it. What is finished is in a journal: an interrupted search is asked and told the
same again, and goes the same way on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from policyfactory.core.errors import PolicyfactoryError, UsageError
from policyfactory.core.journal import Journal, claim, library_versions
from policyfactory.core.options import FloatArray
from policyfactory.core.random import generator
from policyfactory.core.version import __version__
from policyfactory.parallel.pool import batches
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.expression import Binary, Coefficient
from policyfactory.policy.form import Form
from policyfactory.policy.policy import predictions_needed
from policyfactory.policy.store import FittedNumber
from policyfactory.search.environment.goals import Bound, Breach, goal_of
from policyfactory.search.families import Family, family_of
from policyfactory.search.judging import breaches_of, gain, non_dominated
from policyfactory.search.learner import MEASURED, Candidate, Played, Proposals, Task, measured, without_number
from policyfactory.search.options import Objective, SearchOptions, TrainOptions
from policyfactory.simulation.metrics import COSTS, METRICS

# Raised whenever the same options would find other formulas: a journal of older code is not continued.
_METHOD = 1
_LONGEST_TERM = 200
# Of the way from the start to what was found.
_PARTS = (1.0, 0.75, 0.5, 0.25)


class _Shared(NamedTuple):
    """What every worker needs to measure a candidate."""

    windows: Played
    forms: tuple[Form, ...]
    goal: str


class _Unit(NamedTuple):
    """One candidate: its place in the batch, its form and its coefficients."""

    number: int
    form: int
    values: tuple[float, ...]


def _measure(shared: _Shared, unit: _Unit, go_on: StopCheck) -> tuple[int, FloatArray]:
    go_on()
    policy = shared.forms[unit.form].with_values(unit.values)
    return unit.number, measured(shared.windows, policy, goal_of(shared.goal))


_Compute = Callable[[Iterable[_Unit]], Iterator[tuple[int, FloatArray]]]


@dataclasses.dataclass(frozen=True, slots=True)
class FormulaSearch:
    """Learns the coefficients of families of formulas by CMA-ES, with the simulator in the loop.

    Parameters
    ----------
    options : SearchOptions
        How coefficients are searched.
    families : tuple of Family
        What is searched.
    """

    options: SearchOptions
    families: tuple[Family, ...]
    name: str = "search"

    @classmethod
    def of(cls, options: SearchOptions) -> FormulaSearch:
        """Return the learner of these options.

        Raises
        ------
        UsageError, FormulaError
            As `family_of`.
        """
        start = dict(options.start)
        families = tuple(family_of(text, start) for text in dict.fromkeys(options.families))
        known = dict.fromkeys(name for family in families for name in family.form.names)
        if unknown := [name for name in start if name not in known]:
            raise UsageError(f"--start names {unknown[0]}; the coefficients to search are {', '.join(known)}")
        return cls(options, families)

    def describe(self) -> dict[str, Any]:
        """Return what determines the search."""
        import cma

        forms = {family.name: [family.form.text, list(family.start), list(family.scale)] for family in self.families}
        return {**dataclasses.asdict(self.options), "families": forms, "method": _METHOD, "cma": cma.__version__}

    def learn(self, task: Task) -> Proposals:
        """Search all families, as often as asked for.

        Raises
        ------
        UsageError
            If a family reads predictions, and the rules are those of another program; if it reads what the log does not
            say, or has a value for no job.
        """
        for family in self.families:
            first = family.form.with_values(family.start)
            if first.needs_predictions and task.options.mode == "paper":
                raise predictions_needed(first, "a simulation with compatibility rlscheduler")
            if without_number(task.workload, first) == 1:
                raise UsageError(
                    f"family {family.name}, {family.form.text[:_LONGEST_TERM]}: its score is a finite number for no "
                    "job with the coefficients that it begins with; change it so that it ranks jobs, or give --start"
                )
        windows = task.played("training", [family.form.with_values(family.start) for family in self.families])
        baseline = measured(windows, task.baseline, goal_of(task.options.goal))
        shared = _Shared(windows, tuple(family.form for family in self.families), task.options.goal)
        counter = task.follower.counter("candidates", "candidates/s")
        counter.expect(self.options.restarts * sum(self._tried(family) for family in self.families))
        history: list[dict[str, Any]] = []
        candidates: list[Candidate] = []
        with (
            self._journal(task) as journal,
            batches(_measure, shared, task.workers, notify=task.follower.message) as compute,
        ):
            for number, family in enumerate(self.families):
                for restart in range(self.options.restarts):
                    run = _Run(
                        family=family,
                        baseline=baseline,
                        task=task.options,
                        options=self.options,
                        number=number,
                        restart=restart,
                        journal=journal,
                        first=self._first(number, restart),
                        compute=compute,
                        done=counter.done,
                    )
                    run.search(self._batches(family), task.options.seed)
                    history += run.history
                    candidates += run.candidates()
        return Proposals(tuple(candidates), tuple(history), _curves(history), "candidates")

    def _batches(self, family: Family) -> int:
        return math.ceil(self.options.evaluations / population(len(family.start)))

    def _tried(self, family: Family) -> int:
        """Return how many candidates a search tries at most: its batches, and what it proposes at its end."""
        return self._batches(family) * population(len(family.start)) + 2 * len(_PARTS)

    def _first(self, number: int, restart: int) -> int:
        """Return the number of the first record of a search: one a batch, and one for its centre."""
        sizes = [self._batches(family) + 1 for family in self.families]
        return sum(sizes[:number]) * self.options.restarts + sizes[number] * restart

    @contextlib.contextmanager
    def _journal(self, task: Task) -> Iterator[Journal | None]:
        if task.journal is None:
            yield None
            return
        run = {
            "learner": self.name,
            "policyfactory": __version__,
            **library_versions(),
            "workload_sha256": task.workload.sha256(),
            "options": json.loads(json.dumps(dataclasses.asdict(task.options))),
            "search": json.loads(json.dumps(self.describe())),
        }
        claim(task.journal, run, "candidates", _difference, overwrite=task.overwrite)
        with Journal(task.journal, run, self._first(len(self.families) - 1, self.options.restarts)) as journal:
            if len(journal):
                batch = "batch" if len(journal) == 1 else "batches"
                task.follower.message(f"{len(journal):,} {batch} of candidates were finished by an earlier run")
            try:
                yield journal
            except BaseException as stop:
                if isinstance(stop, PolicyfactoryError) and not len(journal):
                    # It would only be in the way of the corrected command.
                    task.journal.unlink()
                else:
                    task.follower.kept(stop, f"{len(journal):,} batches of candidates", task.journal)
                raise


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class _Run:
    """One search of one family."""

    family: Family
    baseline: FloatArray
    task: TrainOptions
    options: SearchOptions
    number: int
    restart: int
    journal: Journal | None
    first: int
    compute: _Compute
    done: Callable[[int], None]
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    best: Tried | None = None
    front: list[Tried] = dataclasses.field(default_factory=list)
    last: list[Tried] = dataclasses.field(default_factory=list)

    def _worth(self, values: tuple[float, ...], result: FloatArray) -> Worth:
        """Make one number of what was measured."""
        return worth(
            result,
            self.baseline,
            self.task.goal,
            self.task.guard_bands,
            objective=self.options.objective,
            distance=self.options.pull * distance_of(self.family, np.array(values)),
        )

    def search(self, most: int, seed: int) -> None:
        """Search until it ends by itself, or after ``most`` batches."""
        evolution = Evolution(self.family, seed, (self.number, self.restart), self.options.step)
        for batch in range(most):
            asked = evolution.ask()
            # Rounded before it is simulated: what is judged is what is written.
            tried = self._try(batch, [digits(point) for point in asked])
            for candidate in tried:
                self._keep(candidate)
            evolution.tell(asked, [candidate.worth.objective for candidate in tried])
            self._note(batch, tried, evolution.step)
            if evolution.over:
                break
        proposed = self._proposed(evolution.centre)
        self.last = self._try(most, proposed)
        known = {candidate.values for candidate in self.last}
        self.last += [candidate for candidate in spread(self.front) if candidate.values not in known]
        # A search that ends early leaves the rest of the count behind.
        rest = (most - len(self.history)) * population(len(self.family.start))
        for _ in range(rest + 2 * len(_PARTS) - len(proposed)):
            self.done(0)

    def _proposed(self, centre: FloatArray) -> list[tuple[float, ...]]:
        """Return where the search stands at its end, and, for both it and the best, what is part of the way there.

        What a search finds fits the windows that it was found on too well. How much of the way from the start is worth
        going, the windows for choosing say.
        """
        best = centre if self.best is None else np.array(self.best.values)
        start = np.array(self.family.start)
        ways = [digits(start + part * (end - start)) for end in (best, centre) for part in _PARTS]
        return list(dict.fromkeys(ways))

    def candidates(self) -> list[Candidate]:
        """Return the best that was tried, where the search stood at its end, and what is part of the way there."""
        return [self._candidate(tried, number) for number, tried in enumerate(self.last, 1)]

    def _candidate(self, tried: Tried, number: int) -> Candidate:
        family = self.family
        name = f"{family.name}-{self.restart + 1}.{number}"
        form = family.form
        policy = form.fixed(
            dict(zip(form.names, tried.values, strict=True)),
            name,
            description=f"{family.words}; coefficients by search with the simulator in the loop",
            source="policyfactory train",
        )
        numbers = tuple(
            FittedNumber(name, term_of(form, name), value) for name, value in zip(form.names, tried.values, strict=True)
        )
        origin = f"{family.name}, search {self.restart + 1}, proposal {number}"
        return Candidate(policy, tried.worth.objective, numbers, origin, tried.worth.out)

    def _try(self, batch: int, values: list[tuple[float, ...]]) -> list[Tried]:
        """Return what candidates are worth: from the journal, or by simulation."""
        number = self.first + batch
        kept = None if self.journal is None else self.journal.read(number)
        if kept is not None:
            worths = decode(kept)
            if len(worths) == len(values):
                self._count(len(values))
                return [Tried(*pair) for pair in zip(values, worths, strict=True)]
        units = [_Unit(index, self.number, point) for index, point in enumerate(values)]
        worth_of: dict[int, Worth] = {}
        for index, result in self.compute(units):
            worth_of[index] = self._worth(values[index], result)
            self._count(1)
        worths = [worth_of[index] for index in range(len(values))]
        if self.journal is not None:
            self.journal.append(number, encode(worths))
        return [Tried(*pair) for pair in zip(values, worths, strict=True)]

    def _count(self, candidates: int) -> None:
        for _ in range(candidates):
            self.done(1)

    def _keep(self, tried: Tried) -> None:
        """Keep the best; on replicas also what nothing else beats in the goal and in all that it costs."""
        if self.task.replicas:
            self.front = front_with(self.front, tried)
        if self.best is None or tried.sort_key < self.best.sort_key:
            self.best = tried

    def _note(self, batch: int, tried: Sequence[Tried], step: float) -> None:
        best = self.best
        objective = [candidate.worth.objective for candidate in tried]
        self.history.append(
            {
                "family": self.family.name,
                "search": self.restart + 1,
                "batch": batch + 1,
                "candidates": (batch + 1) * len(tried),
                "best": None if best is None or best.worth.out else best.worth.gain,
                "least": min(objective),
                "median": float(np.median(objective)),
                "in_bands": sum(not candidate.worth.out for candidate in tried) / len(tried),
                "step": step,
            }
        )


def _curves(history: Sequence[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in history:
        if row["best"] is not None:
            curves.setdefault(f"{row['family']}, search {row['search']}", []).append((row["candidates"], row["best"]))
    return curves


def term_of(form: Form, name: str) -> str:
    """Return what a coefficient multiplies; of another, the whole form."""
    if name == form.threshold:
        return "log10(threshold)"
    for node in form.expression.walk():
        if isinstance(node, Binary) and node.operator == "*" and node.left == Coefficient(name):
            return node.right.text()[:_LONGEST_TERM]
    return form.text[:_LONGEST_TERM]


def _difference(there: Any, here: Any) -> str:
    """Return in words in what two runs differ."""
    words = []
    for key in sorted({*there, *here}):
        old, new = there.get(key), here.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            words += [f"{name} {old.get(name)}" for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
        elif old != new:
            words.append(f"other {key}")
    return ", ".join(words)[:300] or "other options"


# CMA-ES over the coefficients of a form -------------------------------------------------------------------------------

# One search, asked for candidates and told what they are worth.
#
# N. Hansen and A. Ostermeier, "Completely derandomized self-adaptation in evolution strategies", Evolutionary
# Computation 9(2), 2001; by the package ``cma``. All random numbers are of our own streams: a search that is asked and
# told the same again goes the same way, which is how an interrupted run goes on.


_PURPOSE = 72  # of the random stream; see core.random
_DIGITS = 4  # significant ones of a coefficient: more say nothing
# A search is over when what it tries differs by less than anybody would notice, in logarithms or ratios.
_TOLERANCE = 1e-4


def population(coefficients: int) -> int:
    """Return how many candidates are tried at a time, of a form with so many coefficients."""
    return 4 + int(3 * math.log(max(coefficients, 2)))


def digits(values: FloatArray) -> tuple[float, ...]:
    """Return the values with as many digits as are written."""
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values.tolist())


class Evolution:
    """A search by CMA-ES over the coefficients of one family.

    Parameters
    ----------
    family : Family
        The form, and from where it is searched.
    seed, path : int and tuple of int
        Of its random numbers; the last of the path is the number of the restart. The first search of a family begins
        at its start, the others near it.
    step : float
        The first step, in the family's scale.
    """

    def __init__(self, family: Family, seed: int, path: tuple[int, ...], step: float) -> None:
        import cma

        random = generator(seed, _PURPOSE, *path)
        scale = np.array(family.scale)
        start = np.array(family.start)
        if path[-1]:
            start = start + scale * step * random.standard_normal(len(start))
        options: dict[str, Any] = {
            "randn": lambda *shape: random.standard_normal(shape),
            "seed": math.nan,
            "popsize": population(len(start)),
            "CMA_stds": scale,
            "tolfun": _TOLERANCE,
            "tolfunhist": _TOLERANCE / 10,
            "tolx": _TOLERANCE,
            "verbose": -9,
            "verb_log": 0,
        }
        self._strategy: Any = cma.CMAEvolutionStrategy(start, step, options)

    @property
    def over(self) -> bool:
        """Whether it has come to an end by itself."""
        return bool(self._strategy.stop())

    @property
    def step(self) -> float:
        """The present step size (sigma), in the family's scale."""
        return float(self._strategy.sigma)

    @property
    def centre(self) -> FloatArray:
        """The values around which it looks now: what it believes to be best, without the luck of a single draw."""
        return np.array(self._strategy.mean, dtype=np.float64)

    def ask(self) -> list[FloatArray]:
        """Return the values of the next candidates."""
        return [np.array(point, dtype=np.float64) for point in self._strategy.ask()]

    def tell(self, asked: Sequence[FloatArray], objective: Sequence[float]) -> None:
        """Take what they are worth; less is better."""
        self._strategy.tell(list(asked), list(objective))


# What a formula is worth on the windows for training, in one number: less is better -----------------------------------

# The goal over all windows, relative to a baseline, plus what the distance from the start costs; and, for a formula
# that leaves the band of a guard, so much more that the search is led back. Such a formula is never a candidate.


# What one unit of a guard beyond its band, relative to the bound, costs; a ratio of e in the goal is 1.
_BEYOND = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Worth:
    """What a formula is worth.

    Parameters
    ----------
    objective : float
        What is minimised.
    gain : float
        The part of it that is the goal.
    means : tuple of float
        Mean over the windows of the goal and of each guard.
    out : str
        The guards that left their bands, in words; empty if none did.
    """

    objective: float
    gain: float
    means: tuple[float, ...]
    out: str


def worth(
    values: FloatArray,
    baseline: FloatArray,
    goal: str,
    bands: Sequence[Bound],
    *,
    objective: Objective = "log-ratio",
    distance: float = 0.0,
) -> Worth:
    """Return what was measured in one number.

    Parameters
    ----------
    values, baseline : float64 array (windows, 1 + guards)
        Goal and guards under the formula and under the baseline (`policyfactory.search.learner.measured`).
    goal : str
        Name of the goal.
    bands : sequence of Band or Limit
        How much worse the guards may be.
    objective : {"log-ratio", "mean"}
        As in `policyfactory.search.options.SearchOptions`.
    distance : float
        What the distance from the start costs.
    """
    value = gain(values[:, 0], baseline[:, 0], goal_of(goal), objective)
    breaches = breaches_of(values, baseline, bands)
    beyond = sum(_excess(breach) for breach in breaches)
    means = tuple(values.mean(axis=0).tolist())
    total = value + distance + _BEYOND * beyond
    return Worth(total if math.isfinite(total) else 1e6, value, means, "; ".join(map(str, breaches)))


def _excess(breach: Breach) -> float:
    lower = METRICS[breach.guard].lower_is_better
    worse, better = (breach.value, breach.bound) if lower else (breach.bound, breach.value)
    return (worse - better) / max(abs(better), 1e-9)


def distance_of(family: Family, values: FloatArray) -> float:
    """Return the mean square of how far values are from the family's start, in its scale."""
    away = (values - np.array(family.start)) / np.array(family.scale)
    return float((away**2).mean())


# What a search has tried ----------------------------------------------------------------------------------------------

# Its worth, its place, the front of it, and how it is kept in a journal.


_MOST_OF_FRONT = 12  # candidates of a search that are no proposals but on its front


@dataclasses.dataclass(slots=True)
class Tried:
    """A candidate that was tried: its coefficients and what they are worth."""

    values: tuple[float, ...]
    worth: Worth

    @property
    def costs(self) -> tuple[float, ...]:
        """The gain, and the means of what it costs."""
        return self.worth.gain, *(self.worth.means[MEASURED.index(name)] for name in COSTS)

    @property
    def sort_key(self) -> tuple[bool, float]:
        """What candidates are sorted by: one inside the bands before any outside."""
        return bool(self.worth.out), self.worth.objective


def front_with(front: Sequence[Tried], tried: Tried) -> list[Tried]:
    """Return what of a front and one more nothing else of them beats in the goal and in all that it costs."""
    every = [*front, tried]
    stay = non_dominated(np.array([candidate.costs for candidate in every])).tolist()
    return [candidate for candidate, stays in zip(every, stay, strict=True) if stays]


def spread(front: Sequence[Tried]) -> list[Tried]:
    """Return a few of a front, from its best in the goal to its cheapest."""
    ordered = sorted(front, key=lambda candidate: candidate.costs)
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), _MOST_OF_FRONT)).round().astype(int)
    return [ordered[row] for row in places.tolist()]


def encode(worths: Sequence[Worth]) -> bytes:
    """Return a record of a journal."""
    return json.dumps([[worth.objective, worth.gain, list(worth.means), worth.out] for worth in worths]).encode("ascii")


def decode(record: bytes) -> list[Worth]:
    """Return what a record says."""
    return [Worth(objective, gain, tuple(means), out) for objective, gain, means, out in json.loads(record)]
