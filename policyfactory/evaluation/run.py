"""Every contender on every case: the same jobs, the same rules, one long table of numbers.

All contenders see the same cases (common inputs), so that cases can be compared in pairs. A run of one contender on
one case shares nothing with the others that could change it; the table is the same, byte for byte, for any number of
workers.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import math
import re
import threading
import types
import typing
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from policyfactory.core.errors import EvaluationError, InputError, PolicyfactoryError, UsageError
from policyfactory.core.journal import Journal, claim, library_versions
from policyfactory.core.process import WorkCounter
from policyfactory.core.text import visible
from policyfactory.core.version import __version__
from policyfactory.engine.metrics import TAU
from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.logs import ReadLog
from policyfactory.evaluation.precision import Precision
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Notify, StopCheck, Workers
from policyfactory.policy.policy import Policy
from policyfactory.simulation.cases import Case, CaseFacts, facts_of
from policyfactory.simulation.metrics import LEAST_WEEKS, WeeklySums, check_metrics, measure, weekly_sums, weeks_in
from policyfactory.simulation.schedule import Schedule, measure_recorded, recorded_schedule
from policyfactory.simulation.tuning.tuner import Contender, check_contenders, run_contender
from policyfactory.statistics.evaluation import Evaluation, WeeklyValues
from policyfactory.workload.header import printable
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
            weekly={results[0].facts.log: weeks for results in table if (weeks := _weeks_of(results)) is not None},
            observed=[
                [[result.seen[number] for result in results] for results in table]
                for number in range(len(experiment.observers))
            ],
        )


def _weeks_of(row: Sequence[SimulationResult]) -> WeeklyValues | None:
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


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(_data(value), sort_keys=True).encode()).hexdigest()


def _data(value: Any) -> Any:
    """Return values of an experiment as JSON values; what they are of goes along."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value):
        fields = {field.name: _data(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {type(value).__name__: fields}
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
    weeks = weeks_in(round(facts.span_s)) if facts.kind == "log" else 0
    if sums is None:
        return weeks < LEAST_WEEKS
    return weeks >= LEAST_WEEKS and (len(sums.jobs), sums.values.shape, sums.weights.shape) == (
        weeks,
        (weeks, metrics),
        (weeks, metrics),
    )


# Work units: some of the contenders on one case -----------------------------------------------------------------------
# With many cases a unit is a case with all contenders; with few, the contenders of a case are shared out. Threads share
# the jobs of a case, which are made by the first of its units and dropped after the last, whatever their number;
# another process makes them itself and keeps those of one case.

_UNITS_A_WORKER = 8  # so that the last ones end at about the same time

# The row of a case, and the columns of the contenders that run on it, in the table of cases and contenders.
WorkUnit: TypeAlias = tuple[int, tuple[int, ...]]


class ScheduleSink(Protocol):
    """Where schedules go: they are put into bytes where they are made, and written where the results are."""

    def content(self, case: Case, schedule: Schedule) -> bytes:
        """Return what is kept of a schedule; called by the worker."""

    def write(self, case: Case, policy: str, content: bytes) -> None:
        """Keep it; called in the calling thread, in no particular order."""

    def has(self, case: Case, policy: str) -> bool:
        """Say whether it is kept, of a simulation that an earlier run has finished."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SimulationResult:
    """What is left of one simulation.

    Parameters
    ----------
    facts : CaseFacts
        The case.
    values : list of float
        The metrics.
    longest_wait : float, s
        The longest wait of any job.
    longest_wait_job : int
        Id of that job.
    waiting : int
        How many jobs wait longer than `TAU`.
    recorded : list of float or None
        The metrics of the recorded schedule, if that was asked for.
    seen : list
        What each analysis keeps.
    weeks : WeeklySums or None
        The metrics by week, of a whole log that lasts several.
    recorded_weeks : WeeklySums or None
        Those of the recorded schedule.
    """

    facts: CaseFacts
    values: list[float]
    longest_wait: float
    longest_wait_job: int
    waiting: int
    recorded: list[float] | None
    seen: list[Any]
    weeks: WeeklySums | None = None
    recorded_weeks: WeeklySums | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class FinishedSimulation:
    """One simulation that is done: the row of its case, the column of its contender, whose schedule it is, its result.

    ``result`` is None where it was made in another process, ``text`` where nobody asked for it: one of them is there.
    """

    row: int
    column: int
    policy: str
    result: SimulationResult | None
    text: bytes | None
    kept: bytes | None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """The jobs of a case, what is said of them, and the recorded schedule's metrics, if they are asked for."""

    workload: Workload
    facts: CaseFacts
    recorded: list[float] | None = None
    recorded_weeks: WeeklySums | None = None


class Shared:
    """What is the same for all work units, and the jobs of the cases that are at work.

    Parameters
    ----------
    experiment : Experiment
        What is simulated.
    counts : mapping of int to int
        How many units there are of each case, by its row.
    sink : ScheduleSink, optional
        Where the schedules go.
    in_text : bool
        Whether records are wanted as text too, for a journal.
    """

    def __init__(
        self, experiment: Experiment, counts: Mapping[int, int], sink: ScheduleSink | None = None, *, in_text: bool
    ) -> None:
        # The cases have their jobs; what draws more of them stays here, and so do the logs.
        self.experiment = dataclasses.replace(experiment, logs={}, more={})
        self.sink, self.in_text = sink, in_text
        self.elsewhere = False
        self._left = dict(counts)
        self._locks = {row: threading.Lock() for row in counts}
        self._prepared: dict[int, _Prepared] = {}

    def __getstate__(self) -> tuple[Experiment, ScheduleSink | None]:
        return self.experiment, self.sink

    def __setstate__(self, state: tuple[Experiment, ScheduleSink | None]) -> None:
        experiment, sink = state
        self.__init__(experiment, {}, sink, in_text=True)  # type: ignore[misc]
        self.elsewhere = True

    def prepared(self, row: int) -> _Prepared:
        """Return the jobs of a case and what is known of them."""
        if self.elsewhere:
            prepared = self._prepared.get(row)
            if prepared is None:
                prepared = self._make(self.experiment.cases[row])
                self._prepared = {row: prepared}
            return prepared
        with self._locks[row]:
            if row not in self._prepared:
                self._prepared[row] = self._make(self.experiment.cases[row])
            return self._prepared[row]

    def _make(self, case: Case) -> _Prepared:
        workload = case.make()
        if len(workload) <= case.lead_in:
            raise EvaluationError(
                f"{case.log}: {case.kind} {case.number} has no job"
                + (f" after the {case.lead_in:,} of the lead-in" if case.lead_in else "")
                + "; use a log with jobs, or longer windows"
            )
        measured = workload.select(slice(case.lead_in, None), rebase=True) if case.lead_in else workload
        facts = facts_of(case, measured)
        if not self.experiment.recorded:
            return _Prepared(workload, facts)
        schedule = recorded_schedule(workload, case.lead_in).after(case.lead_in)
        metrics = self.experiment.metrics
        return _Prepared(workload, facts, measure_recorded(schedule, metrics), _weekly(case, schedule, metrics))

    def drop(self, row: int) -> None:
        """Say that one unit of a case needs its jobs no more."""
        if self.elsewhere:
            return
        with self._locks[row]:
            self._left[row] -= 1
            if not self._left[row]:
                self._prepared.pop(row, None)


def work_units(missing: Mapping[int, Sequence[int]], contenders: Sequence[Contender], workers: int) -> list[WorkUnit]:
    """Return the work units: a case each if there are many cases, some of its contenders each if there are few.

    Parameters
    ----------
    missing : mapping of int to sequence of int
        Which contenders (columns) are to run on each case (row).
    contenders : sequence of Policy or Tuner
        All contenders.
    workers : int
        How many work side by side.
    """
    parts = -(-_UNITS_A_WORKER * workers // max(1, len(missing))) if workers > 1 else 1
    return [(row, share) for row, columns in missing.items() for share in _shares(contenders, columns, parts)]


def _shares(contenders: Sequence[Contender], columns: Sequence[int], parts: int) -> Iterator[tuple[int, ...]]:
    """Yield the columns in at most ``parts`` shares; tuners stay together, they share costs."""
    policies = [column for column in columns if isinstance(contenders[column], Policy)]
    tuners = [column for column in columns if column not in policies]
    if parts == 1 or not policies:
        yield tuple(columns)
        return
    if tuners:
        yield tuple(tuners)
    parts = min(parts, len(policies))
    yield from (tuple(policies[part::parts]) for part in range(parts))


def simulate_unit(shared: Shared, unit: WorkUnit, check_stop: StopCheck) -> list[FinishedSimulation]:
    """Run the contenders of a unit on its case."""
    row, columns = unit
    try:
        prepared = shared.prepared(row)
        scratch: dict[Any, Any] = {}
        finished = []
        for column in columns:
            check_stop()
            finished.append(_run(shared, prepared, row, column, scratch))
    finally:
        shared.drop(row)
    return finished


def _run(shared: Shared, prepared: _Prepared, row: int, column: int, scratch: dict[Any, Any]) -> FinishedSimulation:
    experiment = shared.experiment
    case = experiment.cases[row]
    schedule = run_contender(experiment.contenders[column], case, prepared.workload, experiment.rules, scratch)
    schedule = schedule.after(case.lead_in)
    kept = None if shared.sink is None else shared.sink.content(case, schedule)
    values = measure(schedule, experiment.metrics)
    # The schedule's own jobs: a simulator may have a finer clock than the log.
    jobs = schedule.workload
    wait = schedule.start - jobs.submit
    longest = int(np.argmax(wait))
    result = SimulationResult(
        facts=prepared.facts,
        values=[values[name] for name in experiment.metrics],
        longest_wait=float(wait[longest]) / jobs.ticks,
        longest_wait_job=int(jobs.job_id[longest]),
        waiting=int(np.count_nonzero(wait > TAU * jobs.ticks)),
        recorded=prepared.recorded,
        seen=[analysis.observe(case, schedule) for analysis in experiment.observers],
        weeks=_weekly(case, schedule, experiment.metrics),
        recorded_weeks=prepared.recorded_weeks,
    )
    text = encode(result) if shared.in_text else None
    return FinishedSimulation(row, column, schedule.policy_name, None if shared.elsewhere else result, text, kept)


def _weekly(case: Case, schedule: Schedule, metrics: Sequence[str]) -> WeeklySums | None:
    """Return the metrics by week of a whole log: windows and resampled logs are compared with each other instead."""
    return weekly_sums(schedule, metrics) if case.kind == "log" else None


# The record of a simulation as text, for the journal and from other processes -----------------------------------------

# One line of JSON. What is kept is declared where it is made: the fields of a record and their types, and the type that
# `observe` of an analysis returns. A record is read by that declaration, so that nothing else can be read.


_KINDS = re.compile(r"\|[biu]1|[<>][iuf][248]")  # types of arrays as numpy writes them; f1 does not exist
Order: TypeAlias = Literal["C", "F"]
_HUGE = 2**63  # whole numbers that go into no array
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError)


def encode(result: SimulationResult) -> bytes:
    """Return a record as text in one line; every number comes back bit by bit.

    Raises
    ------
    TypeError
        If an analysis keeps something that is no number, text, array of numbers, jobs of the case, tuple, list or
        class of these.
    """
    return json.dumps(_written(result, result.facts.jobs), separators=(",", ":")).encode("ascii")


def _written(value: Any, whole: int) -> Any:
    """Return what is written of a value; ``whole`` is the number of the case's jobs."""
    if isinstance(value, np.ndarray):
        order: Order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        content = base64.b64encode(value.tobytes(order)).decode("ascii")
        return [value.dtype.str, list(value.shape), order, content]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Workload):
        # A site leaves out jobs that do not fit it: which are left is said then.
        left = None if len(value) == whole else _written(value.job_id, whole)
        return [value.machine, value.ticks, value.sha256(), left]
    kind: Any = type(value)
    if columns := _columns(kind):
        return {name: _written(getattr(value, name), whole) for name in columns}
    if isinstance(value, list | tuple):
        return [_written(entry, whole) for entry in value]
    return value


@functools.cache
def _columns(kind: Hashable) -> Mapping[str, Any]:
    """Return the fields of a dataclass or a named tuple with their types; nothing of another type."""
    return typing.get_type_hints(kind) if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") else {}


def decode(text: bytes, analyses: Sequence[Analysis], jobs: Callable[[], Workload]) -> SimulationResult:
    """Return the record of a text of `encode`.

    Parameters
    ----------
    text : bytes
        The text.
    analyses : sequence of Analysis
        Those that looked at the schedule.
    jobs : callable
        Returns the jobs of the case.

    Raises
    ------
    InputError
        If it is no record, or not one of these analyses.
    """
    try:
        content = json.loads(text)
        seen = zip(content.pop("seen"), map(observed_type, map(type, analyses)), strict=True)
        kept = [_read(column, kind, jobs) for column, kind in seen]
        result: SimulationResult = _read({**content, "seen": []}, SimulationResult, jobs)
        return dataclasses.replace(result, seen=kept)
    except (*_UNREADABLE, PolicyfactoryError) as error:
        # What numpy says of a type has the type in it, as it was written.
        raise InputError(f"{text[:40]!r} is not the record of a simulation: {printable(str(error), 200)}") from None


@functools.cache
def observed_type(kind: type[Analysis]) -> Any:
    """Return the type of what an analysis keeps, as its ``observe`` declares it."""
    # These two are imported for the type checker only.
    return typing.get_type_hints(kind.observe, localns={"Case": object, "Schedule": object})["return"]


def _read(column: Any, kind: Any, jobs: Callable[[], Workload]) -> Any:
    """Return the value of a column of a declared type."""
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        if column is None and types.NoneType in of:
            return None
        (kind,) = (part for part in of if part is not types.NoneType)
        return _read(column, kind, jobs)
    if origin is np.ndarray:
        return _array(np.dtype(typing.get_args(of[1])[0]), *column)
    if origin in {list, tuple}:
        if not isinstance(column, list):
            raise ValueError(f"no list where {kind} is declared")
        kinds = of if origin is tuple and of[-1] is not Ellipsis else of[:1] * len(column)
        return origin(_read(entry, part, jobs) for entry, part in zip(column, kinds, strict=True))
    if kind is Workload:
        machine, ticks, digest, left = column
        workload = dataclasses.replace(jobs().in_ticks(ticks), machine=machine)
        if left is not None:
            workload = workload.select(np.isin(workload.job_id, _array(np.dtype(np.int64), *left)))
        if workload.sha256() != digest:
            raise ValueError("jobs of another case")
        return workload
    if columns := _columns(kind):
        if column.keys() != columns.keys():
            raise ValueError(f"other columns than {', '.join(columns)}")
        return kind(**{name: _read(column[name], part, jobs) for name, part in columns.items()})
    if origin is typing.Literal and column in of:
        return column
    # A float may be a whole number, a truth value is no number.
    if type(column) is not kind and not (kind is float and type(column) is int):
        raise ValueError(f"{type(column).__name__} where {kind} is declared")
    if type(column) is int and abs(column) >= _HUGE:
        raise ValueError("a number that goes into no array")
    return column


def _array(declared: np.dtype[Any], kind: str, shape: list[int], order: Order, data: str) -> NDArray[Any]:
    """Return an array of its own, checked before anything of its size is made."""
    # Checked as a text: numpy takes more than types for a type, and reads some of it as Python.
    if not _KINDS.fullmatch(kind) or np.dtype(kind) != declared or order not in {"C", "F"}:
        raise ValueError(f"no array of {declared}")
    content = base64.b64decode(data, validate=True)
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError("an array of no shape")
    if math.prod(shape) * declared.itemsize != len(content):
        raise ValueError("an array of another size")
    return np.ndarray(tuple(shape), declared, content, order=order).copy(order="K")
