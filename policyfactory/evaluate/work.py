"""Work units: some of the contenders on one case.

With many cases a unit is a case with all contenders; with few, the contenders of a case are shared out. Threads share
the jobs of a case, which are made by the first of its units and dropped after the last, whatever their number; another
process makes them itself and keeps those of one case.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from policyfactory.analyses.analysis import Analysis
from policyfactory.core.errors import EvaluationError
from policyfactory.evaluate.codec import encode
from policyfactory.parallel.workers import StopCheck
from policyfactory.policy.policy import Policy
from policyfactory.simulate.cases import Case, CaseFacts, facts_of
from policyfactory.simulate.metrics import TAU, WeeklySums, measure, weekly_sums
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule, measure_recorded, recorded_schedule
from policyfactory.simulate.tuning.tuner import Contender, run_contender
from policyfactory.workload.jobs import Workload

__all__ = [
    "FinishedSimulation",
    "ScheduleSink",
    "Shared",
    "SimulationResult",
    "UnitSettings",
    "WorkUnit",
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
