"""Work units: some of the contenders on one case; and the record that is left of each simulation.

With many cases a unit is a case with all contenders; with few, the contenders of a case are shared out. Threads share
the jobs of a case, which are made by the first of its units and dropped after the last, whatever their number; another
process makes them itself and keeps those of one case.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import math
import re
import threading
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, InputError, PolicyfactoryError
from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.evaluation.experiment import Experiment
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.policy import Policy
from policyfactory.simulation.cases import Case, CaseFacts, facts_of
from policyfactory.simulation.metrics import TAU, WeeklySums, measure, weekly_sums
from policyfactory.simulation.schedule import Schedule, measure_recorded, recorded_schedule
from policyfactory.simulation.tuning.tuner import Contender, run_contender
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import Workload

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
