"""Pieces of work: some of the contenders on one case.

With many cases a piece is a case with all contenders; with few, the contenders of a case are shared out. The jobs of a
case are made by the first of its pieces and dropped after the last, whatever their number.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.errors import EvaluationError
from policyfactory.evaluate.cases import Case, CaseFacts, facts_of
from policyfactory.evaluate.contenders import Contender, run_contender
from policyfactory.evaluate.metrics import measure
from policyfactory.evaluate.recorded import measure_recorded
from policyfactory.evaluate.rules import Rules
from policyfactory.evaluate.schedule import Schedule
from policyfactory.policy.policy import Policy
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from policyfactory.evaluate.analyses.base import Analysis

__all__ = ["Done", "Job", "Keep", "Run", "pieces"]

Keep = Callable[[Case, Schedule], None]

_PIECES_A_WORKER = 8  # so that the last ones end at about the same time


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What is the same for all pieces."""

    contenders: tuple[Contender, ...]
    rules: Rules
    metrics: tuple[str, ...]
    analyses: tuple[Analysis, ...]
    keep: Keep | None
    recorded: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What is left of one simulation."""

    values: list[float]
    longest_wait: float
    longest_wait_job: int
    seen: list[Any]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What a piece of work found: the case's place, its facts, and a run for each of its contenders' places.

    ``recorded`` has the metrics of the schedule as it was, if that was asked for.
    """

    at: int
    facts: CaseFacts
    runs: dict[int, Run]
    recorded: list[float] | None


class _Jobs:
    """The jobs of a case, made by the first piece that needs them and dropped after the last."""

    def __init__(self, case: Case, pieces: int, recorded: Sequence[str] | None) -> None:
        self.case = case
        self._pieces = pieces
        self._recorded = recorded
        self._lock = threading.Lock()
        self._made: tuple[Workload, CaseFacts, list[float] | None] | None = None

    def take(self) -> tuple[Workload, CaseFacts, list[float] | None]:
        """Return the jobs, their facts, and the metrics asked for of the schedule as it was."""
        with self._lock:
            if self._made is None:
                workload = self.case.make()
                if not len(workload):
                    raise EvaluationError(
                        f"{self.case.log}: {self.case.kind} {self.case.number} has no job; "
                        "use a log with jobs, or longer windows"
                    )
                recorded = None if self._recorded is None else measure_recorded(workload, self._recorded)
                self._made = workload, facts_of(self.case, workload), recorded
            return self._made

    def drop(self) -> None:
        """Say that one piece is done with them."""
        with self._lock:
            self._pieces -= 1
            if not self._pieces:
                self._made = None


def pieces(cases: Sequence[Case], job: Job, workers: int) -> Iterator[Callable[[threading.Event], Done]]:
    """Yield the pieces of work: a case each if there are many cases, some of its contenders each if there are few."""
    shares = _shares(job.contenders, -(-_PIECES_A_WORKER * workers // len(cases)) if workers > 1 else 1)
    for at, case in enumerate(cases):
        jobs = _Jobs(case, len(shares), job.metrics if job.recorded else None)
        for places in shares:
            yield functools.partial(_do, at, jobs, places, job)


def _shares(contenders: Sequence[Contender], parts: int) -> list[list[int]]:
    """Return the places of the contenders in at most ``parts`` shares; tuners stay together, they share costs."""
    policies = [at for at, one in enumerate(contenders) if isinstance(one, Policy)]
    tuners = [at for at in range(len(contenders)) if at not in policies]
    if parts == 1 or not policies:
        return [list(range(len(contenders)))]
    parts = min(parts, len(policies))
    shares = [policies[part::parts] for part in range(parts)]
    return [tuners, *shares] if tuners else shares


def _do(at: int, jobs: _Jobs, places: Sequence[int], job: Job, stopped: threading.Event) -> Done:
    workload, facts, recorded = jobs.take()
    scratch: dict[Any, Any] = {}
    runs = {}
    for place in places:
        if stopped.is_set():
            break
        runs[place] = _run_one(jobs.case, workload, job, job.contenders[place], scratch)
    jobs.drop()
    return Done(at, facts, runs, recorded)


def _run_one(case: Case, workload: Workload, job: Job, contender: Contender, scratch: dict[Any, Any]) -> Run:
    schedule = run_contender(contender, case, workload, job.rules, scratch)
    if job.keep is not None:
        job.keep(case, schedule)
    values = measure(schedule, job.metrics)
    # The schedule's own jobs: a simulator may have a finer clock than the log.
    jobs = schedule.workload
    wait = schedule.start - jobs.submit
    longest = int(np.argmax(wait))
    return Run(
        [values[name] for name in job.metrics],
        float(wait[longest]) / jobs.ticks,
        int(jobs.job_id[longest]),
        [analysis.observe(case, schedule) for analysis in job.analyses],
    )
