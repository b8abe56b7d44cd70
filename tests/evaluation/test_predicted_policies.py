"""A policy that reads predictions is evaluated as others are: each case is a run of its own, from nothing."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import policyfactory as pf
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.learning.choice import why_not
from policyfactory.parallel.workers import Workers
from policyfactory.policy.policy import Policy
from policyfactory.prediction import training
from policyfactory.review.shadow import judge_simulated
from policyfactory.workload.jobs import Attributes, Workload
from refusals import refusal, refused

INDEX = Policy("INDEX", "-ln(s) + ln(e) + 0.4*ln(q)")
WEEK = 7 * 86_400


@pytest.fixture(scope="module")
def log() -> Workload:
    """Give six weeks of users of whom half run for seconds and half for an hour, whatever they ask for."""
    rng = np.random.default_rng(1)
    n = 4200
    user = rng.integers(0, 12, n)
    run = np.where(user % 2 == 0, rng.integers(5, 60, n), rng.integers(3000, 9000, n))
    submit = np.sort(rng.integers(0, 6 * WEEK, n))
    request, none = rng.choice([3600, 7200, 14_400], n), np.full(n, -1)
    columns = (np.arange(1, n + 1), submit, np.minimum(run, request), request, rng.integers(1, 5, n))
    attributes = dataclasses.replace(Attributes.unknown(n), queue=user % 3, group=user // 4)
    return Workload("habits", 8, *columns, user, none, attributes=attributes)


def evaluated(log: Workload, workers: Workers | int = 1, **options: Any) -> pf.Result:
    return pf.evaluate(log, ["SPF", INDEX], metrics=["mean_bsld"], analyses=[], workers=workers, **options)


@pytest.mark.parametrize("options", [{"windows": "2x2w"}, {"resamples": 2, "length": "3w"}, {"lead_in": "4w"}], ids=min)
def test_the_result_does_not_depend_on_the_workers(log: Workload, options: dict[str, Any]) -> None:
    alone = evaluated(log, **options)
    values = alone.outcome.evaluation.values
    assert np.isfinite(values).all()
    # Half of each window is before the first training; the rest is enough to be better than by requests.
    assert values[:, 1].mean() < values[:, 0].mean()
    assert evaluated(log, 2, **options).outcome.evaluation.values.tobytes() == values.tobytes()


@pytest.mark.slow
def test_processes_give_the_same(log: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other processes train with as many trees as usual.
    monkeypatch.setattr(training, "_fitted", training._fitted.usual)
    alone, processes = (evaluated(log, workers, windows="2x2w") for workers in (1, Workers(2, "loky")))
    assert alone.outcome.evaluation.values.tobytes() == processes.outcome.evaluation.values.tobytes()


def test_a_case_is_a_run_of_its_own_and_a_lead_in_is_its_past(log: Workload) -> None:
    windows = evaluated(log, windows="2x2w")
    for case, value in zip(pf.cases_of(log, windows="2x2w"), windows.outcome.evaluation.values[:, 1, 0], strict=True):
        assert pf.measure(pf.simulate(case.make(), INDEX), ["mean_bsld"])["mean_bsld"] == value
    first = int(np.searchsorted(log.submit, 4 * WEEK))
    whole = pf.simulate(log, INDEX)
    behind = evaluated(log, lead_in="4w").outcome.evaluation.values[0, 1, 0]
    assert behind == pf.measure(whole.after(first), ["mean_bsld"])["mean_bsld"]


def test_a_review_simulates_with_predictions(log: Workload) -> None:
    judged = judge_simulated(log[:600], INDEX)
    assert {"INDEX, simulated", "FCFS, simulated"} <= set(judged.means)


@pytest.mark.parametrize("compatibility", ["ocst", "sc17", "rlscheduler"])
def test_rules_of_other_programs_are_refused(log: Workload, compatibility: str) -> None:
    with refusal(UsageError, f"INDEX e s {compatibility}"):
        evaluated(log[:200], compatibility=compatibility, backfill="none", workers=2)


def test_requests_that_are_run_times_are_refused(log: Workload) -> None:
    step = dataclasses.make_dataclass("Step", ["what", "jobs"])("no requested time, the run time taken", 7)
    filled = dataclasses.replace(log[:200], cleaning=dataclasses.replace(log.cleaning, steps=(step,)))
    refused(EvaluationError, "7 requested habits", pf.simulate, filled, INDEX)


def test_requests_that_were_raised_to_run_times_are_refused(log: Workload) -> None:
    # The request is what a job ran for where it ran longer: first of one job in fifty, then of one more.
    def raised(jobs: int) -> Workload:
        request, run_time = log.requested_time[:500].copy(), log.run_time[:500].copy()
        request[-jobs:] = run_time[-jobs:] = np.arange(7301, 7301 + jobs)
        return dataclasses.replace(log[:500], requested_time=request, run_time=run_time)

    pf.simulate(raised(10), INDEX)
    refused(EvaluationError, "11 500 requests habits", pf.simulate, raised(11), INDEX)
    assert why_not(raised(10)) == ""
    assert "11 of 500" in why_not(raised(11))
