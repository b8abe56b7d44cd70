"""The journal of a run of experiments: its finished simulations, from which an interrupted run resumes.

A record is one simulation: a contender on a case. Its number follows from the experiment, the log, the number of the
case and the place of the contender, so that neither workers nor batches of a precision change what belongs where.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import BaseModel

from policyfactory.core.errors import InputError
from policyfactory.core.journal import Journal, claim, library_versions
from policyfactory.core.text import visible
from policyfactory.core.version import __version__
from policyfactory.evaluate.codec import decode, is_kept, is_of
from policyfactory.evaluate.experiment import Experiment
from policyfactory.evaluate.logs import ReadLog
from policyfactory.evaluate.plan import Plan
from policyfactory.evaluate.precision import Precision
from policyfactory.evaluate.work import SimulationResult, UnitSettings
from policyfactory.simulate.cases import Case, CaseFacts
from policyfactory.simulate.metrics import LEAST_WEEKS, WeeklySums, weeks_in
from policyfactory.workload.jobs import Workload

__all__ = ["Finished", "SimulationJournal", "description"]

# Raised whenever the same experiment would give other records: a journal of older code is not continued.
_METHOD = 2
# What of a plan changes no simulation.
_WORDS_ONLY = frozenset({"name", "title", "references", "statistic"})
# What makes the cases; the rest of its table is in the experiment, as what it stands for.
_OF_CASES = ("windows", "lead_in", "resample", "skip", "load", "estimates", "recorded", "rules")
_KEYS = {
    "max_resamples": "--max-resamples",
    "method": "method",
    "policyfactory": "policyfactory version",
    "starts": "--starts",
}
# A schedule of so many jobs that an analysis keeps it in more bytes is made again after an interruption.
_LONGEST = 48_000_000


def description(plans: Iterable[Plan], logs: Mapping[str, ReadLog], precision: Precision | None) -> dict[str, Any]:
    """Return all that determines the simulations, as JSON values: runs with equal descriptions have equal records.

    Parameters
    ----------
    plans : iterable of Plan
        The experiments.
    logs : mapping of str to ReadLog
        Their logs.
    precision : Precision or None
        Only how many resampled logs there may be counts: which are made follows from the records.
    """
    return {
        "policyfactory": __version__,
        "method": _METHOD,
        **library_versions(),
        "logs": {
            name: _digest([log.source, sorted(log.hashes.values()), log.workload.sha256(), log.prediction])
            for name, log in logs.items()
        },
        "experiments": {
            plan.name: _digest([plan.logs, _without_words(plan), {key: getattr(plan.table, key) for key in _OF_CASES}])
            for plan in plans
        },
        "max_resamples": None if precision is None else precision.most,
    }


def _without_words(plan: Plan) -> dict[str, Any]:
    return {key: value for key, value in _fields(plan.experiment).items() if key not in _WORDS_ONLY}


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(_data(value), sort_keys=True).encode()).hexdigest()


def _data(value: Any) -> Any:
    """Return values of an experiment as JSON values; what they are of goes along."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value):
        return {type(value).__name__: _data(_fields(value))}
    if isinstance(value, BaseModel):
        return {type(value).__name__: _data(dict(value))}
    if isinstance(value, Mapping):
        return {str(key): _data(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return [value.dtype.str, hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, Sequence):
        return [_data(entry) for entry in value]
    raise TypeError(f"{type(value).__qualname__} has no place in the description of an experiment")


class SimulationJournal:
    """The journal of the finished simulations.

    Parameters
    ----------
    path : Path
        The file; made if there is none.
    run : mapping
        Of `description`, and what else must be equal, as JSON values.
    experiments : sequence of Experiment
        What is run.
    precision : Precision or None
        Whether there may be more cases.
    overwrite : bool
        Drop the file if it belongs to another run.

    Raises
    ------
    OutputError
        If the file belongs to another run, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        run: Mapping[str, Any],
        experiments: Sequence[Experiment],
        precision: Precision | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        claim(path, run, "simulations", _difference, overwrite=overwrite)
        self.path = path
        self._numbers: dict[str, tuple[dict[str, int], int]] = {}
        end = 0
        for experiment in experiments:
            first, end = _first_numbers(experiment, precision, end)
            self._numbers[experiment.name] = first, len(experiment.contenders)
        self.journal = Journal(path, run, end)
        self._resumed = len(self.journal)
        self.total = sum(len(one.cases) * len(one.contenders) for one in experiments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.journal.__exit__(*error)
        if not len(self.journal):
            self.path.unlink(missing_ok=True)  # what has nothing to go on from must not be in anybody's way

    def in_words(self) -> str:
        """Return what an earlier run has left; empty if there is nothing."""
        count = self._resumed
        of = f"{count:,} of {self.total:,}" if count <= self.total else f"{count:,}"
        return f"{of} simulations were finished by an earlier run" if count else ""

    def of(self, experiment: str) -> Finished:
        """Return the records of an experiment."""
        return Finished(self.journal, *self._numbers[experiment])


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return in words in what two runs differ."""
    differences = []
    for key in sorted({*there, *here}):
        old, new = there.get(key), here.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
            differences.append(f"other {key} ({', '.join(map(visible, names))})")
        else:
            differences.append(f"{_KEYS.get(key, visible(key))} {visible(str(old))} (now {new})")
    return " and ".join(differences) or "other options"


def _first_numbers(experiment: Experiment, precision: Precision | None, first: int) -> tuple[dict[str, int], int]:
    """Return the number of the first record of each log, from ``first`` on, and that after the last record."""
    numbers = {}
    for log in dict.fromkeys(case.log for case in experiment.cases):
        numbers[log] = first
        highest = max(case.number for case in experiment.cases if case.log == log)
        if precision is not None and log in experiment.more:
            highest = max(highest, precision.most)
        first += highest * len(experiment.contenders)
    return numbers, first


@dataclasses.dataclass(slots=True, eq=False)
class Finished:
    """The finished simulations of one experiment.

    Parameters
    ----------
    journal : Journal
        Where they are.
    first : mapping of str to int
        Number of the first record of each log; they go by the number of the case, then by the place of the contender.
    contenders : int
        How many there are.
    damaged : int
        Records that could not be read.
    """

    journal: Journal
    first: Mapping[str, int]
    contenders: int
    damaged: int = 0

    def _number(self, case: Case, place: int) -> int:
        return self.first[case.log] + (case.number - 1) * self.contenders + place

    def take(
        self, case: Case, place: int, settings: UnitSettings, jobs: Callable[[], Workload]
    ) -> SimulationResult | None:
        """Return the result of an earlier run; None if there is none, or it is damaged.

        Parameters
        ----------
        case : Case
            The case.
        place : int
            Of the contender.
        settings : UnitSettings
            What is asked for.
        jobs : callable
            Returns the jobs of the case.

        Raises
        ------
        OutputError
            If the record was changed since the file was opened.
        """
        text = self.journal.read(self._number(case, place))
        if text is None:
            return None
        try:
            result = decode(text, jobs)
        except InputError:
            result = None
        if isinstance(result, SimulationResult) and _belongs(result, case, settings):
            return result
        self.damaged += 1
        return None

    def add(self, case: Case, place: int, text: bytes) -> None:
        """Keep the result of a simulation.

        Raises
        ------
        OutputError
            If the disk does not take it.
        """
        if len(text) <= _LONGEST:
            self.journal.append(self._number(case, place), text)


def _belongs(result: SimulationResult, case: Case, settings: UnitSettings) -> bool:
    """Say whether a record is of this case, and has in it what is asked for, each of the type that it must be."""
    if not is_of(result, SimulationResult):
        return False
    facts, count = result.facts, len(settings.metrics)
    return (
        (facts.log, facts.number, facts.kind) == (case.log, case.number, case.kind)
        and len(result.values) == count
        and (result.recorded is not None) == settings.recorded
        and (result.recorded is None or len(result.recorded) == count)
        and _has_weeks(result.weeks, facts, count)
        and (result.recorded is None or _has_weeks(result.recorded_weeks, facts, count))
        and len(result.seen) == len(settings.analyses)
        and all(is_kept(one, type(analysis)) for one, analysis in zip(result.seen, settings.analyses, strict=True))
    )


def _has_weeks(sums: WeeklySums | None, facts: CaseFacts, metrics: int) -> bool:
    """Say whether the sums are those of the weeks that a case has."""
    weeks = weeks_in(round(facts.span_s), 1) if facts.kind == "log" else 0
    if sums is None:
        return weeks < LEAST_WEEKS
    return weeks >= LEAST_WEEKS and (len(sums.jobs), sums.values.shape, sums.weights.shape) == (
        weeks,
        (weeks, metrics),
        (weeks, metrics),
    )
