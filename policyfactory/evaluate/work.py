"""Work units: some of the contenders on one case.

With many cases a unit is a case with all contenders; with few, the contenders of a case are shared out. Threads share
the jobs of a case, which are made by the first of its units and dropped after the last, whatever their number; another
process makes them itself and keeps those of one case.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import json
import math
import re
import threading
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, InputError, PolicyfactoryError
from policyfactory.evaluate.analyses.analysis import Analysis
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.policy import Policy
from policyfactory.simulate.cases import Case, CaseFacts, facts_of
from policyfactory.simulate.metrics import TAU, WeeklySums, measure, weekly_sums
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule, measure_recorded, recorded_schedule
from policyfactory.simulate.tuning.tuner import Contender, run_contender
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import Workload

__all__ = [
    "RECORDS",
    "FinishedSimulation",
    "ScheduleSink",
    "Shared",
    "SimulationResult",
    "UnitSettings",
    "WorkUnit",
    "decode",
    "encode",
    "is_kept",
    "is_of",
    "simulate_unit",
    "work_units",
]

_UNITS_A_WORKER = 8  # so that the last ones end at about the same time

# The place of a case, and those of the contenders that run on it.
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
class UnitSettings:
    """What is the same for all work units; ``in_text``: results are wanted as text too, for a journal."""

    contenders: tuple[Contender, ...]
    rules: Rules
    metrics: tuple[str, ...]
    analyses: tuple[Analysis, ...]
    sink: ScheduleSink | None = None
    recorded: bool = False
    in_text: bool = False


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
    """One simulation that is done: the places of its case and contender, whose schedule it is, and its result.

    ``result`` is None where it was made in another process, ``text`` where nobody asked for it: one of them is there.
    """

    at: int
    place: int
    policy: str
    result: SimulationResult | None
    text: bytes | None
    kept: bytes | None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """The jobs of a case, what is said of them, and the recorded schedule's metrics, if they are asked for."""

    workload: Workload
    facts: CaseFacts
    recorded: list[float] | None = None
    recorded_weeks: WeeklySums | None = None


class Shared:
    """What is the same for all work units, and the jobs of the cases that are at work.

    Parameters
    ----------
    settings : UnitSettings
        What is done.
    cases : sequence of Case
        On what.
    counts : mapping of int to int
        How many units there are of each case, by its place.
    """

    def __init__(self, settings: UnitSettings, cases: Sequence[Case], counts: Mapping[int, int]) -> None:
        self.settings = settings
        self.cases = tuple(cases)
        self.elsewhere = False
        self._left = dict(counts)
        self._locks = {at: threading.Lock() for at in counts}
        self._made: dict[int, _Made] = {}

    def __getstate__(self) -> tuple[UnitSettings, tuple[Case, ...]]:
        return self.settings, self.cases

    def __setstate__(self, state: tuple[UnitSettings, tuple[Case, ...]]) -> None:
        self.__init__(*state, {})  # type: ignore[misc]
        self.elsewhere = True

    def take(self, at: int) -> _Made:
        """Return the jobs of a case and what is known of them."""
        if self.elsewhere:
            made = self._made.get(at)
            if made is None:
                made = self._make(self.cases[at])
                self._made = {at: made}
            return made
        with self._locks[at]:
            if at not in self._made:
                self._made[at] = self._make(self.cases[at])
            return self._made[at]

    def _make(self, case: Case) -> _Made:
        workload = case.make()
        if len(workload) <= case.lead_in:
            raise EvaluationError(
                f"{case.log}: {case.kind} {case.number} has no job"
                + (f" after the {case.lead_in:,} of the lead-in" if case.lead_in else "")
                + "; use a log with jobs, or longer windows"
            )
        measured = workload.select(slice(case.lead_in, None), rebase=True) if case.lead_in else workload
        facts = facts_of(case, measured)
        if not self.settings.recorded:
            return _Made(workload, facts)
        schedule = recorded_schedule(workload, case.lead_in).after(case.lead_in)
        metrics = self.settings.metrics
        return _Made(workload, facts, measure_recorded(schedule, metrics), _weekly(case, schedule, metrics))

    def drop(self, at: int) -> None:
        """Say that one unit of a case needs its jobs no more."""
        if self.elsewhere:
            return
        with self._locks[at]:
            self._left[at] -= 1
            if not self._left[at]:
                self._made.pop(at, None)


def work_units(missing: Mapping[int, Sequence[int]], settings: UnitSettings, workers: int) -> list[WorkUnit]:
    """Return the work units: a case each if there are many cases, some of its contenders each if there are few.

    Parameters
    ----------
    missing : mapping of int to sequence of int
        Which contenders are to run on each case, by their places.
    settings : UnitSettings
        What is done.
    workers : int
        How many work side by side.
    """
    parts = -(-_UNITS_A_WORKER * workers // max(1, len(missing))) if workers > 1 else 1
    return [(at, share) for at, places in missing.items() for share in _shares(settings.contenders, places, parts)]


def _shares(contenders: Sequence[Contender], places: Sequence[int], parts: int) -> Iterator[tuple[int, ...]]:
    """Yield the places in at most ``parts`` shares; tuners stay together, they share costs."""
    policies = [at for at in places if isinstance(contenders[at], Policy)]
    tuners = [at for at in places if at not in policies]
    if parts == 1 or not policies:
        yield tuple(places)
        return
    if tuners:
        yield tuple(tuners)
    parts = min(parts, len(policies))
    yield from (tuple(policies[part::parts]) for part in range(parts))


def simulate_unit(shared: Shared, unit: WorkUnit, check_stop: StopCheck) -> list[FinishedSimulation]:
    """Run the contenders of a unit on its case."""
    at, places = unit
    try:
        made = shared.take(at)
        scratch: dict[Any, Any] = {}
        finished = []
        for place in places:
            check_stop()
            finished.append(_run_one(shared, made, at, place, scratch))
    finally:
        shared.drop(at)
    return finished


def _run_one(shared: Shared, made: _Made, at: int, place: int, scratch: dict[Any, Any]) -> FinishedSimulation:
    settings, case = shared.settings, shared.cases[at]
    schedule = run_contender(settings.contenders[place], case, made.workload, settings.rules, scratch)
    schedule = schedule.after(case.lead_in)
    kept = None if settings.sink is None else settings.sink.content(case, schedule)
    values = measure(schedule, settings.metrics)
    # The schedule's own jobs: a simulator may have a finer clock than the log.
    jobs = schedule.workload
    wait = schedule.start - jobs.submit
    longest = int(np.argmax(wait))
    result = SimulationResult(
        made.facts,
        [values[name] for name in settings.metrics],
        float(wait[longest]) / jobs.ticks,
        int(jobs.job_id[longest]),
        int(np.count_nonzero(wait > TAU * jobs.ticks)),
        made.recorded,
        [analysis.observe(case, schedule) for analysis in settings.analyses],
        _weekly(case, schedule, settings.metrics),
        made.recorded_weeks,
    )
    text = encode(result, made.facts.sha256) if settings.in_text or shared.elsewhere else None
    return FinishedSimulation(at, place, schedule.policy_name, None if shared.elsewhere else result, text, kept)


def _weekly(case: Case, schedule: Schedule, metrics: Sequence[str]) -> WeeklySums | None:
    """Return the metrics by week of a whole log: windows and resampled logs are compared with each other instead."""
    return weekly_sums(schedule, metrics) if case.kind == "log" else None


# The result of a simulation as text, and back: for the journal, and from other processes ------------------------------

# JSON in which everything that JSON has no word for is an object of one key that says what it is: tuples, lists,
# mappings, arrays (type, shape, order, bytes), numbers of numpy, and the records that analyses keep, by the names of
# `RECORDS`. Every number comes back bit by bit, so that what is concluded from it is the same. Nothing but these can be
# read, and reading runs no code of the text's: a file may come from a stranger.


# Module below policyfactory/ and class; the fields are written by their order, so a change of them is another version.
RECORDS: dict[str, tuple[str, str]] = {
    "facts": ("simulate.cases", "CaseFacts"),
    "attributes": ("workload.jobs", "Attributes"),
    "requests": ("workload.jobs", "Requests"),
    "cleaning": ("workload.jobs", "CleaningReport"),
    "cleaning-step": ("workload.jobs", "CleaningStep"),
    "run": ("evaluate.work", "SimulationResult"),
    "weeks": ("simulate.metrics", "WeeklySums"),
    "overuse": ("simulate.schedule", "Overuse"),
    "replayed": ("evaluate.analyses.replay", "ReplayedCase"),
    "groups": ("evaluate.analyses.grouping", "GroupSums"),
    "waits": ("evaluate.analyses.starvation", "LongWaits"),
    "load": ("evaluate.analyses.load", "ObservedLoad"),
    "load-sums": ("evaluate.analyses.load", "LoadSums"),
    "load-course": ("evaluate.analyses.load", "LoadCourse"),
    "delayed": ("evaluate.analyses.delayed", "DelayedJobs"),
    "course": ("evaluate.analyses.improvement", "WaitCourse"),
    "schedule": ("evaluate.analyses.gantt", "KeptSchedule"),
}
_KINDS = "biuf"  # of the arrays: truth values, whole numbers, floats
_TYPE = re.compile(r"\|[biu]1|[<>][iuf][248]")  # as numpy writes them; f1 does not exist
_HUGE = 2**63  # whole numbers that go into no array
_NAMED = ("name", "unix_start", "time_zone", "origin")  # of jobs, what their digest does not have


def encode(value: Any, jobs_sha256: str = "") -> bytes:
    """Return ``value`` as text in one line.

    Parameters
    ----------
    value : object
        None, truth values, numbers, texts, tuples, lists, mappings, arrays of numbers, records of these (`RECORDS`).
    jobs_sha256 : str
        Digest of the case's jobs: a `Workload` in the value must be these, and is only mentioned.

    Raises
    ------
    TypeError
        If there is anything else in it; an analysis that keeps it needs a line in `RECORDS`.
    """
    return json.dumps(_encoded(value, jobs_sha256), separators=(",", ":")).encode("ascii")


def _encoded(value: Any, jobs: str) -> Any:
    kind = type(value)
    if value is None or kind in {bool, int, float, str}:
        return value
    if kind in {list, tuple}:
        return {kind.__name__: [_encoded(entry, jobs) for entry in value]}
    if kind is np.ndarray and value.dtype.kind in _KINDS:
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return {"array": [value.dtype.str, list(value.shape), order, _text(value.tobytes(order))]}
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return {"number": [value.dtype.str, _text(value.tobytes())]}
    if kind is Workload:
        if value.sha256() == jobs:
            return {"jobs": [getattr(value, name) for name in _NAMED]}
        return {"workload": [_encoded(getattr(value, field), "") for field in _fields(Workload)]}
    if isinstance(value, Mapping):
        return {"mapping": [_encoded(entry, jobs) for entry in value.items()]}
    name = _names().get(kind)
    if name is None:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be written to a journal of simulations")
    return {name: [_encoded(getattr(value, field), jobs) for field in _fields(kind)]}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or a named tuple, in order."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return names


@functools.cache
def _record(name: str) -> type:
    module, kind = RECORDS[name]
    record: type = getattr(import_module(f"policyfactory.{module}"), kind)
    return record


@functools.cache
def _names() -> dict[type, str]:
    return {_record(name): name for name in RECORDS}


def decode(text: bytes, jobs: Callable[[], Workload] | None = None) -> Any:
    """Return the value of a text of `encode`.

    Parameters
    ----------
    text : bytes
        The text.
    jobs : callable, optional
        Returns the jobs of the case, where the text mentions them.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return _value(json.loads(text), jobs)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError, PolicyfactoryError) as error:
        # What numpy says of a type has the type in it, as it was written.
        raise InputError(f"{text[:40]!r} is not the result of a simulation: {printable(str(error), 200)}") from None


def _value(content: Any, jobs: Callable[[], Workload] | None) -> Any:
    if not isinstance(content, dict):
        if isinstance(content, list):
            raise ValueError("a list without its kind")
        return content
    ((name, content),) = content.items()
    if not isinstance(content, list):
        raise ValueError(f"{name[:40]!r} without a list")
    if name == "array":
        return _array(*content)
    if name == "number":
        kind, data = content
        return _array(kind, [], "C", data)[()]
    if name == "jobs":
        if jobs is None or len(content) != len(_NAMED):
            raise ValueError("jobs of no case")
        return dataclasses.replace(jobs(), **dict(zip(_NAMED, content, strict=True)))
    values = [_value(entry, jobs) for entry in content]
    if name in {"list", "tuple"}:
        return values if name == "list" else tuple(values)
    if name == "mapping":
        return dict(values)
    made = Workload if name == "workload" else _record(name)
    if len(values) != len(_fields(made)):
        raise ValueError(f"{name[:40]!r} with {len(values)} fields")
    return made(*values)


def is_kept(value: Any, analysis: type) -> bool:
    """Say whether a value is of the type that ``observe`` of an analysis states that it returns, fields and all.

    Parameters
    ----------
    value : object
        What was read.
    analysis : type
        A class of `policyfactory.evaluate.analyses`.
    """
    return is_of(value, _observed(analysis))


@functools.cache
def _observed(analysis: type) -> Any:
    # These two are imported for the type checker only.
    names = {"Case": object, "Schedule": object}
    return typing.get_type_hints(analysis.observe, localns=names)["return"]  # type: ignore[attr-defined]


@functools.cache
def _types(kind: type) -> Mapping[str, Any]:
    """Return the types of the fields of a record."""
    return typing.get_type_hints(kind)


def is_of(value: Any, kind: Any) -> bool:
    """Say whether a value is of a type; lists, tuples, arrays and records with all that is in them.

    Parameters
    ----------
    value : object
        What was read.
    kind : type
        The type, as an annotation states it. A float may be a whole number, a truth value is no number.

    Raises
    ------
    TypeError
        If the type has no place in the result of a simulation.
    """
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if kind in {int, float}:
        if type(value) is int:
            return abs(value) < _HUGE
        return isinstance(value, np.integer if kind is int else float | np.integer | np.floating)
    if origin in {types.UnionType, typing.Union}:
        return any(is_of(value, one) for one in of)
    if origin is typing.Literal:
        return isinstance(value, str) and value in of
    if origin is np.ndarray:
        (number,) = typing.get_args(of[1])
        return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, number)
    if origin is list or (origin is tuple and of[-1] is Ellipsis):
        return isinstance(value, origin) and all(is_of(one, of[0]) for one in value)
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(of) and all(map(is_of, value, of))
    if not isinstance(kind, type):
        raise TypeError(f"{kind} has no place in the result of a simulation")
    if not isinstance(value, kind):
        return False
    # Jobs check themselves when they are made.
    if kind not in _names():
        return True
    return all(is_of(getattr(value, field), _types(kind)[field]) for field in _fields(kind))


def _array(kind: str, shape: list[int], order: Any, data: str) -> NDArray[Any]:
    """Return an array of its own, checked before anything of its size is made."""
    # Checked as a text: numpy takes more than types for a type, and reads some of it as Python.
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind) or order not in {"C", "F"}:
        raise ValueError("an array of no known type")
    dtype = np.dtype(kind)
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise ValueError("an array whose bytes cannot be read") from None
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError("an array of no shape")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError("an array of another size")
    return np.ndarray(tuple(shape), dtype, content, order=order).copy(order="K")
