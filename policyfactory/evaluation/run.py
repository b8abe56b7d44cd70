"""Every contender on every case: the same jobs, the same rules, one long table of numbers.

All contenders see the same cases (common inputs), so that cases can be compared in pairs. A run of one contender on
one case shares nothing with the others that could change it; the table is the same, byte for byte, for any number of
workers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from policyfactory.core.errors import EvaluationError, InputError, UsageError
from policyfactory.core.journal import Journal, claim, library_versions
from policyfactory.core.process import WorkCounter
from policyfactory.core.text import visible
from policyfactory.core.version import __version__
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.logs import ReadLog
from policyfactory.evaluation.precision import Precision
from policyfactory.evaluation.work import (
    FinishedSimulation,
    ScheduleSink,
    Shared,
    SimulationResult,
    decode,
    simulate_unit,
    work_units,
)
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.simulation.cases import Case, CaseFacts
from policyfactory.simulation.metrics import LEAST_WEEKS, WeeklySums, check_metrics, weeks_in
from policyfactory.simulation.tuning.tuner import check_contenders
from policyfactory.statistics.evaluation import Evaluation, WeeklyValues
from policyfactory.workload.jobs import Workload

_OF_A_CLUSTER = 32  # workers, so that units are small enough: how many there are nobody knows


def run_cases(
    experiment: Experiment,
    *,
    workers: Workers | int = 1,
    sink: ScheduleSink | None = None,
    counter: WorkCounter | None = None,
    finished: Finished | None = None,
    notify: Notify = lambda _: None,
) -> Evaluation:
    """Simulate every contender of an experiment on each of its cases, measure the schedules and look at them.

    Parameters
    ----------
    experiment : Experiment
        With its cases; the recorded schedules are measured too if it shows them.
    workers : Workers or int
        Who simulates; a number means so many threads (the kernels hold no lock). The evaluation does not depend on it.
    sink : ScheduleSink, optional
        Where the schedules go.
    counter : WorkCounter, optional
        Counts the simulations; the amount of each is the number of its jobs.
    finished : Finished, optional
        What an earlier run has finished, and where what is finished now is kept.
    notify : callable
        Called with a sentence when a worker was lost.

    Raises
    ------
    UsageError
        If there is no contender, two have one name, a metric is unknown, or ``workers`` is below 1.
    EvaluationError
        If there is no case, one has no job, or a job has no recorded start and needs one.
    WorkersError
        If the workers are lost for good.
    OutputError
        If what is finished cannot be kept.
    """
    experiment = dataclasses.replace(experiment, metrics=check_metrics(experiment.metrics))
    contenders, cases = experiment.contenders, experiment.cases
    check_contenders(contenders)
    who = Workers.of(workers)
    _check_cases(cases)
    table = _Table(experiment, sink, finished)
    counter = counter or WorkCounter()
    counter.expect(len(cases) * len(contenders))
    missing = table.missing()
    counter.resumed(len(cases) * len(contenders) - sum(map(len, missing.values())))
    units = work_units(missing, contenders, who.count if who.scheduler is None else _OF_A_CLUSTER)
    shared = Shared(experiment, Counter(row for row, _ in units), sink, in_text=finished is not None)
    # Closed at once when this fails, not when nobody refers to it any more: the interpreter waits for busy workers.
    with contextlib.closing(results(simulate_unit, shared, units, who, notify=notify)) as finished_units:
        for done in itertools.chain.from_iterable(finished_units):
            counter.done(table.add(done).jobs)
    return table.evaluation()


def join(first: Evaluation, second: Evaluation) -> Evaluation:
    """Return two evaluations of the same contenders on different cases as one, by log and number.

    Parameters
    ----------
    first, second : Evaluation
        The logs of the second are among those of the first.
    """
    both = (first, second)
    cases = [case for evaluation in both for case in evaluation.cases]
    order = sorted(range(len(cases)), key=lambda row: (first.logs.index(cases[row].log), cases[row].number))

    def joined(*parts: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate(parts)[order]

    records = [evaluation.recorded for evaluation in both if evaluation.recorded is not None]
    return dataclasses.replace(
        first,
        cases=tuple(cases[row] for row in order),
        values=joined(first.values, second.values),
        longest_wait=joined(first.longest_wait, second.longest_wait),
        longest_wait_job=joined(first.longest_wait_job, second.longest_wait_job),
        waiting=joined(first.waiting, second.waiting),
        recorded=joined(*records) if len(records) == len(both) else None,
        observed=[
            [rows[row] for row in order]
            for rows in ([*a, *b] for a, b in zip(first.observed, second.observed, strict=True))
        ],
    )


class _Table:
    """The results of an experiment: what an earlier run has finished, and what is simulated now."""

    def __init__(self, experiment: Experiment, sink: ScheduleSink | None, finished: Finished | None) -> None:
        self.experiment, self.sink, self.finished = experiment, sink, finished
        self.found: dict[tuple[int, int], SimulationResult] = {}
        # Made once: asked for only where an analysis keeps them.
        self.jobs_of = functools.cache(lambda row: experiment.cases[row].measured())

    def missing(self) -> dict[int, list[int]]:
        """Take what an earlier run has finished; return which contenders are still to run on each case."""
        experiment = self.experiment
        missing: dict[int, list[int]] = {}
        for row, case in enumerate(experiment.cases):
            jobs = functools.partial(self.jobs_of, row)
            for column, contender in enumerate(experiment.contenders):
                result = None
                if self.finished is not None and (self.sink is None or self.sink.has(case, contender.name)):
                    result = self.finished.result_of(case, column, experiment, jobs)
                if result is None:
                    missing.setdefault(row, []).append(column)
                else:
                    self.found[row, column] = result
        return missing

    def add(self, done: FinishedSimulation) -> CaseFacts:
        """Keep the result of a simulation, and what is to be kept beside it; return what was simulated."""
        case, result = self.experiment.cases[done.row], done.result
        if result is None:
            jobs = functools.partial(self.jobs_of, done.row)
            result = decode(done.text or b"", self.experiment.observers, jobs)
        if self.sink is not None and done.kept is not None:
            self.sink.write(case, done.policy, done.kept)
        if self.finished is not None and done.text is not None:
            # Last: what is finished is finished with everything that is to be kept of it.
            self.finished.add(case, done.column, done.text)
        self.found[done.row, done.column] = result
        return result.facts

    def evaluation(self) -> Evaluation:
        """Return all of them."""
        experiment = self.experiment
        columns = range(len(experiment.contenders))
        table = [[self.found[row, column] for column in columns] for row in range(len(experiment.cases))]

        def numbers(name: str, dtype: type = np.float64) -> NDArray[Any]:
            return np.array([[getattr(result, name) for result in results] for results in table], dtype=dtype)

        recorded = (
            np.array([results[0].recorded for results in table], dtype=np.float64) if experiment.recorded else None
        )
        return Evaluation(
            cases=tuple(results[0].facts for results in table),
            contenders=experiment.contenders,
            metrics=experiment.metrics,
            rules=experiment.rules,
            values=numbers("values"),
            longest_wait=numbers("longest_wait"),
            longest_wait_job=numbers("longest_wait_job", np.int64),
            waiting=numbers("waiting", np.int64),
            recorded=recorded,
            weekly={results[0].facts.log: weeks for results in table if (weeks := _weekly(results)) is not None},
            observed=[
                [[result.seen[number] for result in results] for results in table]
                for number in range(len(experiment.observers))
            ],
        )


def _weekly(row: Sequence[SimulationResult]) -> WeeklyValues | None:
    """Return the metrics by week of a log that has them."""
    weeks = [result.weeks for result in row if result.weeks is not None]
    record = row[0].recorded_weeks
    if len(weeks) < len(row):
        return None
    return WeeklyValues(
        weeks[0].jobs,
        np.array([result.values for result in weeks]),
        np.array([result.weights for result in weeks]),
        weeks[0].memory_s,
        None if record is None else record.values,
        None if record is None else record.weights,
    )


def _check_cases(cases: Sequence[Case]) -> None:
    if not cases:
        raise EvaluationError("there is no case to simulate; give a log, or shorter windows")
    twice = [log for (log, _), count in Counter((case.log, case.number) for case in cases).items() if count > 1]
    if twice:
        raise UsageError(f"two logs are called {twice[0]}; name each log once, or rename one file")


# The journal of a run of experiments ----------------------------------------------------------------------------------

# Its finished simulations, from which an interrupted run resumes.
#
# A record is one simulation: a contender on a case. Its number follows from the experiment, the log, the number of the
# case and the place of the contender, so that neither workers nor batches of a precision change what belongs where.


# Raised whenever the same experiment would give other records: a journal of older code is not continued.
_METHOD = 3
# What of an experiment decides how its cases are simulated, and what of its table makes them.
_OF_SIMULATIONS = ("log_names", "contenders", "rules", "metrics", "analyses", "seed")
_OF_CASES = ("windows", "lead_in", "resample", "skip", "load", "estimates", "recorded", "rules")
_KEYS = {
    "max_resamples": "--max-resamples",
    "method": "method",
    "policyfactory": "policyfactory version",
    "starts": "--starts",
}
# A schedule of so many jobs that an analysis keeps it in more bytes is made again after an interruption.
_LONGEST = 48_000_000


def description(
    experiments: Iterable[Experiment], logs: Mapping[str, ReadLog], precision: Precision | None
) -> dict[str, Any]:
    """Return all that determines the simulations, as JSON values: runs with equal descriptions have equal records.

    Parameters
    ----------
    experiments : iterable of Experiment
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
            experiment.name: _digest(
                [getattr(experiment, key) for key in _OF_SIMULATIONS]
                + [getattr(experiment.table, key) for key in _OF_CASES]
            )
            for experiment in experiments
        },
        "max_resamples": None if precision is None else precision.most,
    }


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
        self.total = sum(len(experiment.cases) * len(experiment.contenders) for experiment in experiments)

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

    def _number(self, case: Case, column: int) -> int:
        return self.first[case.log] + (case.number - 1) * self.contenders + column

    def result_of(
        self, case: Case, column: int, experiment: Experiment, jobs: Callable[[], Workload]
    ) -> SimulationResult | None:
        """Return the result of an earlier run; None if there is none, or it is damaged.

        Parameters
        ----------
        case : Case
            The case.
        column : int
            Of the contender.
        experiment : Experiment
            What is asked for.
        jobs : callable
            Returns the jobs of the case.

        Raises
        ------
        OutputError
            If the record was changed since the file was opened.
        """
        text = self.journal.read(self._number(case, column))
        if text is None:
            return None
        with contextlib.suppress(InputError):
            result = decode(text, experiment.observers, jobs)
            if _belongs(result, case, experiment):
                return result
        self.damaged += 1
        return None

    def add(self, case: Case, column: int, text: bytes) -> None:
        """Keep the result of a simulation.

        Raises
        ------
        OutputError
            If the disk does not take it.
        """
        if len(text) <= _LONGEST:
            self.journal.append(self._number(case, column), text)


def _belongs(result: SimulationResult, case: Case, experiment: Experiment) -> bool:
    """Say whether a record is of this case, and has in it what is asked for."""
    facts, count = result.facts, len(experiment.metrics)
    return (
        (facts.log, facts.number, facts.kind) == (case.log, case.number, case.kind)
        and len(result.values) == count
        and (result.recorded is not None) == experiment.recorded
        and (result.recorded is None or len(result.recorded) == count)
        and _has_weeks(result.weeks, facts, count)
        and (result.recorded is None or _has_weeks(result.recorded_weeks, facts, count))
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
