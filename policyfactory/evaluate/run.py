"""Every contender on every case: the same jobs, the same rules, one long table of numbers.

All contenders see the same cases (common inputs), so that cases can be compared in pairs. A run of one contender on
one case shares nothing with the others that could change it; the table is the same, byte for byte, for any number of
workers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from policyfactory.analyses.analysis import Analysis
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.progress import WorkCounter
from policyfactory.evaluate.codec import decode
from policyfactory.evaluate.options import DEFAULT_METRICS
from policyfactory.evaluate.resume import Finished
from policyfactory.evaluate.work import (
    FinishedSimulation,
    ScheduleSink,
    Shared,
    SimulationResult,
    UnitSettings,
    simulate_unit,
    work_units,
)
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.simulate.cases import Case, CaseFacts, case_of
from policyfactory.simulate.metrics import WeeklySums, check_metrics
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.tuning.tuner import Contender, check_contenders
from policyfactory.statistics.evaluation import Evaluation, WeeklyValues
from policyfactory.workload.jobs import Workload

__all__ = ["Observations", "join", "run_cases"]

_OF_A_CLUSTER = 32  # workers, so that units are small enough: how many there are nobody knows


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """What is looked at beyond the metrics.

    Parameters
    ----------
    analyses : tuple of Analysis
        Each sees every schedule once.
    seen : list of list of list
        ``seen[a][c][k]`` is what analysis a kept of case c and contender k; filled by `run_cases`.
    """

    analyses: tuple[Analysis, ...]
    seen: list[list[list[Any]]] = dataclasses.field(default_factory=list)


def run_cases(
    cases: Sequence[Case | Workload],
    contenders: Sequence[Contender],
    *,
    rules: Rules | None = None,
    metrics: Iterable[str] = DEFAULT_METRICS,
    workers: Workers | int = 1,
    observations: Observations | None = None,
    sink: ScheduleSink | None = None,
    counter: WorkCounter | None = None,
    recorded: bool = False,
    finished: Finished | None = None,
    notify: Notify = lambda _: None,
) -> Evaluation:
    """Simulate every contender on every case and measure the schedules.

    Parameters
    ----------
    cases : sequence of Case or Workload
        What to simulate; a bare workload is the one case of a log of its name.
    contenders : sequence of Policy or Tuner
        With distinct names; the first is the baseline.
    rules : Rules, optional
        The scheduler's rules (default: EASY, decisions by request).
    metrics : iterable of str
        Names in `METRICS`.
    workers : Workers or int
        Who simulates; a number means so many threads (the kernels hold no lock). The evaluation does not depend on it.
    observations : Observations, optional
        Analyses, and where what they saw is added, case by case.
    sink : ScheduleSink, optional
        Where the schedules go.
    counter : WorkCounter, optional
        Counts the simulations; the amount of each is the number of its jobs.
    recorded : bool
        Measure the recorded schedules, too; every job of every case needs a recorded start then.
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
    rules = rules or Rules()
    names = check_metrics(metrics)
    check_contenders(contenders)
    who = Workers.of(workers)
    chosen = _as_cases(cases)
    analyses = () if observations is None else observations.analyses
    table = _Table(chosen, (len(chosen), len(contenders)), len(names), len(analyses))
    if observations is not None:
        observations.seen.extend(table.seen)
    counter = counter or WorkCounter()
    counter.expect(len(chosen) * len(contenders))
    settings = UnitSettings(tuple(contenders), rules, names, analyses, sink, recorded, finished is not None)
    missing = _missing(table, settings, finished)
    counter.resumed(len(chosen) * len(contenders) - sum(map(len, missing.values())))
    units = work_units(missing, settings, who.count if who.scheduler is None else _OF_A_CLUSTER)
    shared = Shared(settings, chosen, Counter(at for at, _ in units))
    # Closed at once when this fails, not when nobody refers to it any more: the interpreter waits for busy workers.
    with contextlib.closing(results(simulate_unit, shared, units, who, notify=notify)) as finished_units:
        for done in itertools.chain.from_iterable(finished_units):
            counter.done(_take(table, done, sink, finished).jobs)
    return Evaluation(
        cases=tuple(table.facts[at] for at in range(len(chosen))),
        contenders=tuple(contenders),
        metrics=names,
        rules=rules,
        values=table.values,
        longest_wait=table.longest_wait,
        longest_wait_job=table.longest_wait_job,
        waiting=table.waiting,
        recorded=table.recorded if recorded else None,
        weekly=table.weekly(),
    )


def join(
    first: tuple[Evaluation, Observations], second: tuple[Evaluation, Observations]
) -> tuple[Evaluation, Observations]:
    """Return two evaluations of the same contenders on different cases as one, by log and number.

    Parameters
    ----------
    first, second : tuple of Evaluation and Observations
        Values and observations of each; the logs of the second are among those of the first.
    """
    both = (first[0], second[0])
    cases = [case for one in both for case in one.cases]
    logs = first[0].logs
    order = sorted(range(len(cases)), key=lambda at: (logs.index(cases[at].log), cases[at].number))
    observations = Observations(first[1].analyses)
    for a, b in zip(first[1].seen, second[1].seen, strict=True):
        rows = [*a, *b]
        observations.seen.append([rows[at] for at in order])
    records = [one.recorded for one in both if one.recorded is not None]
    evaluation = dataclasses.replace(
        first[0],
        cases=tuple(cases[at] for at in order),
        values=np.concatenate([one.values for one in both])[order],
        longest_wait=np.concatenate([one.longest_wait for one in both])[order],
        longest_wait_job=np.concatenate([one.longest_wait_job for one in both])[order],
        waiting=np.concatenate([one.waiting for one in both])[order],
        recorded=np.concatenate(records)[order] if len(records) == len(both) else None,
    )
    return evaluation, observations


class _Table:
    """The results, each in its place: ``shape`` is the number of cases and of contenders."""

    def __init__(self, cases: Sequence[Case], shape: tuple[int, int], metrics: int, analyses: int) -> None:
        self.cases = cases
        self.facts: dict[int, CaseFacts] = {}
        self.values = np.empty((*shape, metrics))
        self.longest_wait = np.empty(shape)
        self.longest_wait_job = np.empty(shape, dtype=np.int64)
        self.waiting = np.empty(shape, dtype=np.int64)
        self.recorded = np.full((len(cases), metrics), np.nan)
        self.weeks: list[list[WeeklySums | None]] = [[None] * shape[1] for _ in cases]
        self.recorded_weeks: list[WeeklySums | None] = [None] * len(cases)
        self.seen: list[list[list[Any]]] = [[[None] * shape[1] for _ in cases] for _ in range(analyses)]
        self._jobs: dict[int, Workload] = {}

    def add(self, at: int, place: int, result: SimulationResult) -> None:
        self.facts[at] = result.facts
        if result.recorded is not None:
            self.recorded[at] = result.recorded
        self.values[at, place] = result.values
        self.longest_wait[at, place] = result.longest_wait
        self.longest_wait_job[at, place] = result.longest_wait_job
        self.waiting[at, place] = result.waiting
        self.weeks[at][place] = result.weeks
        self.recorded_weeks[at] = result.recorded_weeks
        for rows, one in zip(self.seen, result.seen, strict=True):
            rows[at][place] = one

    def weekly(self) -> dict[str, WeeklyValues]:
        """Return the metrics by week of the logs that have them."""
        weekly = {}
        for case, own, record in zip(self.cases, self.weeks, self.recorded_weeks, strict=True):
            weeks = [one for one in own if one is not None]
            if len(weeks) == len(own):
                weekly[case.log] = WeeklyValues(
                    weeks[0].jobs,
                    np.array([one.values for one in weeks]),
                    np.array([one.weights for one in weeks]),
                    weeks[0].memory_s,
                    None if record is None else record.values,
                    None if record is None else record.weights,
                )
        return weekly

    def jobs_of(self, at: int) -> Workload:
        """Return the jobs of a case, made once: asked for only where an analysis keeps them."""
        if at not in self._jobs:
            self._jobs[at] = self.cases[at].measured()
        return self._jobs[at]


def _missing(table: _Table, settings: UnitSettings, finished: Finished | None) -> dict[int, list[int]]:
    """Take what an earlier run has finished; return which contenders are still to run on each case."""
    missing: dict[int, list[int]] = {}
    for at, case in enumerate(table.cases):
        for place, contender in enumerate(settings.contenders):
            result = None
            if finished is not None and (settings.sink is None or settings.sink.has(case, contender.name)):
                result = finished.take(case, place, settings, functools.partial(table.jobs_of, at))
            if result is None:
                missing.setdefault(at, []).append(place)
            else:
                table.add(at, place, result)
    return missing


def _take(table: _Table, done: FinishedSimulation, sink: ScheduleSink | None, finished: Finished | None) -> CaseFacts:
    """Put the result of a simulation into its place, and keep what is to be kept; return what was simulated."""
    case = table.cases[done.at]
    result = done.result
    if result is None:
        result = decode(done.text or b"", functools.partial(table.jobs_of, done.at))
    if sink is not None and done.kept is not None:
        sink.write(case, done.policy, done.kept)
    if finished is not None and done.text is not None:
        # Last: what is finished is finished with everything that is to be kept of it.
        finished.add(case, done.place, done.text)
    table.add(done.at, done.place, result)
    return result.facts


def _as_cases(cases: Sequence[Case | Workload]) -> list[Case]:
    chosen = [case if isinstance(case, Case) else case_of(case) for case in cases]
    if not chosen:
        raise EvaluationError("there is no case to simulate; give a log, or shorter windows")
    seen: set[tuple[str, int]] = set()
    for case in chosen:
        if (case.log, case.number) in seen:
            raise UsageError(f"two logs are called {case.log}; name each log once, or rename one file")
        seen.add((case.log, case.number))
    return chosen
