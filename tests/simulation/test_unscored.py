"""Jobs without a score: counted and said, and no order at all where no job has one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import policyfactory as pf
from daily_log import daily
from policyfactory.core.errors import EvaluationError
from policyfactory.simulation.prepare import unscored
from refusals import refused


def some(job: Any) -> Any:
    return np.where(job.p < 3600, np.nan, job.p)


def jobs() -> Any:
    log = daily(4)
    odd = np.arange(len(log)) % 3 == 0
    return dataclasses.replace(log, requested_time=np.where(odd, 600, np.maximum(log.requested_time, 7200)))


def nothing(job: Any) -> Any:
    return np.full(job.p.shape, np.nan)


@pytest.mark.parametrize("formula", ["sqrt(p - 3600)", "ln(p - 3600)", "(p - 600)/(p - 600)"])
def test_an_evaluation_counts_the_jobs_without_a_score(formula: str) -> None:
    log = jobs()
    count = int((log.requested_time == 600).sum())
    found = pf.evaluate(log, ["FCFS", pf.Policy("ODD", formula)], metrics=["mean_wait"], analyses=[])
    (said,) = found.outcome.experiment.unscored[log.name]
    assert said.startswith(f"policy ODD has no score (NaN) for {count:,} of {len(log):,} jobs of {log.name}")
    assert said in found.summary()
    assert said in " ".join(next(one for one in found.outcome.sections if one.name == "values").paragraphs)


def test_a_job_that_loses_its_score_while_it_waits_counts() -> None:
    log = jobs()
    short = int((log.requested_time < 86_400).sum())
    assert f"for {short:,} of {len(log):,} jobs" in unscored(log, pf.Policy("LATE", "p*sqrt(p - w)"))
    assert unscored(jobs(), pf.Policy("FINE", "p / (1 + w)")) == ""
    # log10(0) is a score: the first of all.
    assert unscored(jobs(), pf.Policy("FIRST", "log10(r)")) == ""
    assert unscored(jobs(), pf.Policy("PREDICTS", "-ln(s) + ln(e) + 0.4*ln(q) + ln(user_waiting)")) == ""


def test_a_function_that_returns_nan_is_warned_of() -> None:
    policy = pf.Policy.from_function(some, "SOME")
    with pytest.warns(UserWarning, match=r"policy SOME has no score \(NaN\) for .* its function returns NaN"):
        schedule = pf.simulate(jobs(), policy)
    assert (schedule.start >= 0).all()
    found = pf.evaluate(jobs(), ["FCFS", policy], metrics=["mean_wait"], analyses=[])
    assert "policy SOME has no score (NaN)" in found.summary()


@pytest.mark.parametrize(
    "made",
    [
        lambda: pf.Policy("NONE", "sqrt(0 - p)"),
        lambda: pf.Policy("NONE", "ln(0 - q) + w"),
        lambda: pf.Policy.from_function(nothing, "NONE"),
    ],
)
def test_a_policy_without_any_score_is_an_error(made: Callable[[], pf.Policy]) -> None:
    refused(
        EvaluationError, "NONE NaN 392 1", pf.evaluate, jobs(), ["FCFS", made()], metrics=["mean_wait"], analyses=[]
    )


def test_a_simulation_by_a_function_without_any_score_is_an_error() -> None:
    refused(EvaluationError, "NaN function 392 NONE", pf.simulate, jobs(), pf.Policy.from_function(nothing, "NONE"))
