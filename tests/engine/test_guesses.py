"""Guesses of run times: known answers, and the plain twin on random jobs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from naive import guesses as naive
from policyfactory.engine.metrics import FADING, LAST_TWO, MEDIAN, NEAREST, NINTH, EndedJobs, guesses


def ended(jobs: list[naive.Job]) -> EndedJobs:
    columns = {
        field.name: np.array([getattr(job, field.name) for job in jobs]) for field in dataclasses.fields(jobs[0])
    }
    order = np.lexsort((np.arange(len(jobs)), columns["end"]))
    for name in ("request", "run", "processors"):
        columns[name] = columns[name].astype(np.float64)
    return EndedJobs(order=order, **columns)


def test_known_answers() -> None:
    # Requests of an hour; runs of 100, 200, 400 s end before the fourth comes, the fifth's user is new.
    jobs = [
        naive.Job(at, at + run, 0, 3600.0, run, 1.0) for at, run in ((0, 100), (200, 200), (500, 400), (1000, 7000))
    ]
    jobs.append(naive.Job(1000, 1500, 1, 600.0, 500.0, 2.0))
    made = guesses(ended(jobs), 2)
    assert made[:, 0].tolist() == [3600.0] * 5
    assert made[LAST_TWO].tolist() == [3600, 3600, 150, 300, 600]
    assert made[FADING, 3] == (150 + 400) / 2
    assert made[NEAREST, 3] == pytest.approx(700 / 3)
    assert made[MEDIAN, 3] == pytest.approx(200)
    assert made[NINTH, 3] == pytest.approx(400)
    assert made[:, 4].tolist() == [600.0] * 5


@pytest.mark.parametrize("seed", range(20))
def test_the_twin_guesses_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 300
    submit = np.sort(rng.integers(0, 3000, n))
    runs = rng.integers(1, [50, 900][seed % 2], n)
    requests = rng.choice([30.0, 60.0, 600.0, 777.0], n)
    jobs = [
        naive.Job(int(at), int(at + wait + run), int(user), float(request), float(run), float(width))
        for at, wait, run, user, request, width in zip(
            submit, rng.integers(0, 60, n), runs, rng.integers(-1, 3, n), requests, rng.integers(1, 5, n), strict=True
        )
    ]
    np.testing.assert_allclose(guesses(ended(jobs), 3).T, naive.guesses(jobs), rtol=1e-12)


def test_what_ends_later_is_not_looked_at() -> None:
    rng = np.random.default_rng(5)
    jobs = [
        naive.Job(10 * at, 10 * at + int(run), at % 3, 500.0, float(run), 1.0)
        for at, run in enumerate(rng.integers(1, 400, 200))
    ]
    before = guesses(ended(jobs), 3)
    now = jobs[120].submit
    changed = [
        job if job.end <= now else dataclasses.replace(job, end=job.end + 333, run=job.run + 333) for job in jobs
    ]
    np.testing.assert_array_equal(guesses(ended(changed), 3)[:, :121], before[:, :121])
