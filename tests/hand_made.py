"""Schedules written down job by job, and evaluations of them, for tests of what is told of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.policy.policy import Policy
from policyfactory.report.sections import Cell, Section, Table
from policyfactory.simulation.cases import Case, case_of, facts_of
from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.simulate import Rules, Schedule
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.workload.jobs import Workload

# submit, run time, requested time, processors, user.
Job = tuple[int, int, int, int, int]


def workload(jobs: Sequence[Job], machine: int = 4, ticks: int = 1, **more: Any) -> Workload:
    """Jobs 1, 2, ... in the order of their submission; times in seconds."""
    columns = [np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True)]
    submit, run, request, processors, user = columns
    numbers = np.arange(1, len(jobs) + 1)
    times = (submit * ticks, run * ticks, request * ticks)
    return Workload("log", machine, numbers, *times, processors, user, np.full(len(jobs), -1), ticks=ticks, **more)


def schedule(
    jobs: Workload,
    waits: Sequence[int],
    policy: str = "P",
    *,
    backfilled: Sequence[int] = (),
    rules: Rules | None = None,
) -> Schedule:
    """Each job starts when it has waited so many seconds; ``backfilled`` are rows."""
    start = jobs.submit + np.array(waits, dtype=np.int64) * jobs.ticks
    flags = np.isin(np.arange(len(jobs)), list(backfilled))
    return Schedule(start, start + jobs.run_time, flags, jobs, policy, rules or Rules())


def conclude(
    analysis: Analysis,
    schedules: Sequence[Sequence[Schedule]],
    logs: Sequence[str] = (),
    formulas: dict[str, str] | None = None,
) -> Section:
    """What an analysis says of ``schedules[case][policy]``, cases of one log unless ``logs`` says otherwise."""
    names = list(logs) or ["log"] * len(schedules)
    cases: list[Case] = []
    for row, name in zip(schedules, names, strict=True):
        number = 1 + sum(case.log == name for case in cases)
        cases.append(case_of(row[0].workload, number, log=name, kind="window"))
    policies = [one.policy_name for one in schedules[0]]
    analysis.check(cases, policies)
    values = np.array([[[METRICS["mean_wait"].function(one)] for one in row] for row in schedules])
    evaluation = Evaluation(
        cases=tuple(facts_of(case, case.make()) for case in cases),
        contenders=tuple(Policy(name, (formulas or {}).get(name, "p*q")) for name in policies),
        metrics=("mean_wait",),
        rules=Rules(),
        values=values,
        longest_wait=np.zeros(values.shape[:2]),
        longest_wait_job=np.zeros(values.shape[:2], dtype=np.int64),
        waiting=np.zeros(values.shape[:2], dtype=np.int64),
    )
    seen = [[analysis.observe(case, one) for one in row] for case, row in zip(cases, schedules, strict=True)]
    return analysis.conclude(evaluation, seen)


def table(section: Section, name: str) -> Table:
    """The table of that name."""
    return next(each for each in section.tables if each.name == name)


def cells(result: Table, **key: str) -> dict[str, Cell]:
    """The cells, by heading, of the first row whose texts are as in ``key`` (blanks for underscores in headings)."""
    headings = [column.title for column in result.columns]
    for row in result.rows:
        named = dict(zip(headings, row, strict=True))
        if all(named[heading.replace("_", " ")].value == value for heading, value in key.items()):
            return named
    raise AssertionError(f"no row with {key} in {[[cell.value for cell in row] for row in result.rows]}")
