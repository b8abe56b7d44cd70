"""Run times as distributions: the nearest of the last jobs, by a plain twin, and what they are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from policyfactory.prediction import next_jobs
from policyfactory.prediction.next_jobs import PastRuns, ranks


def plain_like(past: PastRuns, mean: float, shortness: float, limit: float, elapsed: float, most: int) -> list[float]:
    """Return the run times of the nearest jobs, the newest of equally near ones first, one by one."""
    rows = list(zip(past.mean.tolist(), past.shortness.tolist(), past.run.tolist(), strict=True))
    spreads = [max(np.log(column).std(), 1e-9) for column in (past.mean, past.shortness)]
    near = []
    for age, (e, s, its_run) in enumerate(reversed(rows)):
        run = its_run * (mean / e)
        if run > elapsed:
            far = (math.log(e / mean) / spreads[0]) ** 2 + (math.log(s / shortness) / spreads[1]) ** 2
            near.append((round(far, 9), age, run))
    if not near:
        return [limit if math.isfinite(limit) else elapsed]
    return sorted(min(run, limit) for _, _, run in sorted(near)[:most])


def some(random: np.random.Generator, jobs: int, *, alike: bool) -> PastRuns:
    # Few values, so that many are equally near.
    mean = random.choice([10.0, 60.0, 600.0], jobs) if alike else np.exp(random.normal(5, 2, jobs))
    shortness = random.choice([0.01, 0.5], jobs) if alike else random.uniform(0.001, 1.0, jobs)
    return PastRuns(mean, shortness, np.exp(random.normal(np.log(mean), 1.0)))


@pytest.mark.parametrize("seed", range(30))
def test_the_nearest_are_those_of_the_twin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    monkeypatch.setattr(next_jobs, "NEIGHBOURS", 7)
    past = some(random, int(random.integers(1, 60)), alike=seed % 2 == 0)
    for _ in range(5):
        mean, shortness = float(random.choice([10.0, 333.0])), float(random.choice([0.01, 0.3]))
        limit, elapsed = float(random.choice([math.inf, 400.0])), float(random.choice([0.0, 30.0, 1e9]))
        limit = max(limit, elapsed) if math.isfinite(limit) else limit
        expected = plain_like(past, mean, shortness, limit, elapsed, 7)
        assert past.like(mean, shortness, limit=limit, elapsed=elapsed).tolist() == pytest.approx(expected)


def test_where_no_job_ran_as_long_the_limit_is_all_that_is_known() -> None:
    past = PastRuns(np.array([5.0, 5.0]), np.array([0.5, 0.5]), np.array([5.0, 7.0]))
    assert past.like(5.0, 0.5, limit=3600.0, elapsed=7.0).tolist() == [3600.0]
    assert past.like(5.0, 0.5, elapsed=7.0).tolist() == [7.0]
    assert past.like(5.0, 0.5, limit=3600.0, elapsed=5.0).tolist() == [7.0]
    assert past.like(5.0, 0.5, limit=6.0).tolist() == [5.0, 6.0]
    nobody = PastRuns(*(np.empty(0),) * 3)
    assert nobody.like(5.0, 0.5, limit=60.0).tolist() == [60.0]


def column_of(jobs: int, error: float) -> tuple[Any, ...]:
    """Return predictions with an error that is not told, run times, and a time at which each job comes and ends."""
    random = np.random.default_rng(3)
    mean = np.exp(random.normal(6, 1.5, jobs))
    run = mean * np.exp(random.normal(0.7, error, jobs))
    submit = np.arange(jobs) * 100
    return mean, np.minimum(10 / mean, 1.0), run, (submit, submit + 50)


@pytest.mark.parametrize("error", [0.3, 1.0, 2.0])
def test_run_times_are_uniform_in_their_distributions_however_wrong_predictions_are(error: float) -> None:
    columns = column_of(3_000, error)
    places = ranks(*columns, np.arange(500, 3_000), np.random.default_rng(1).random(2_500))
    tenths = np.bincount((places * 10).astype(int), minlength=10)
    # Of 250 in each tenth four standard errors are 60.
    assert abs(tenths - 250).max() < 60


def test_nothing_is_seen_before_it_has_ended() -> None:
    mean, shortness, run, (submit, end) = column_of(600, 1.0)
    rows, chance = np.array([200, 300, 599]), np.array([0.5, 0.5, 0.5])
    before = ranks(mean, shortness, run, (submit, end), rows, chance)
    later = np.arange(600) >= 300
    changed = np.where(later, 1.0, run)
    changed[300] = run[300]
    after = ranks(mean, np.where(later & (np.arange(600) > 300), 1.0, shortness), changed, (submit, end), rows, chance)
    assert before[:2].tolist() == after[:2].tolist()
    assert before[2] != after[2]
    assert np.isnan(ranks(mean, shortness, run, (submit, end), np.array([10]), chance[:1]))[0]
