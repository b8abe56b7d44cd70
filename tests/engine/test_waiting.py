"""The scores of waiting jobs at a pass, against the plain simulator's."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from naive.online import Job, score_waiting
from naive.online_cases import FORMULAS, policy
from policyfactory.engine import waiting as engine
from policyfactory.engine.events import FREE, NOW, new_jobs, new_state


@pytest.mark.parametrize("from_oldest", [False, True])
@pytest.mark.parametrize("text", FORMULAS)
def test_score_waiting(text: str, from_oldest: bool) -> None:
    rng = np.random.default_rng(71)
    program, ticks, now, free, n = policy(text).program, 4, 400, 5, 60
    submit = np.sort(rng.integers(0, 400, n))
    estimate, width = rng.integers(0, 50, n), rng.integers(1, 9, n)
    rows = np.flatnonzero(rng.random(n) < 0.5)
    formula = engine.Formula(
        program.codes,
        program.operands,
        program.depth,
        (submit - 100) / ticks,
        from_oldest,
        np.empty((5, 0)),
        np.empty((3, 0)),
    )
    listed = np.concatenate(([len(rows)], rows, np.zeros(n - len(rows), dtype=np.int64)))
    scores = np.full(n + 1, 7.5)
    with np.errstate(all="ignore"):
        jobs = new_jobs(submit, estimate, estimate, width)
        work = np.empty((12 + program.depth, n))
        state = new_state(8)
        state[NOW], state[FREE] = now, free
        engine.score_waiting(jobs, state, listed, formula, (ticks, 8), work, scores)

        def plain(job: Job, instant: int, oldest: int, free: int) -> float:
            r = (job.submit - (oldest if from_oldest else 100)) / ticks
            p, w = job.estimate / ticks, (instant - job.submit) / ticks
            return float(FORMULAS[text](*(np.float64(value) for value in (p, job.processors, r, w, free))))

        plain_jobs = [Job(int(j), int(submit[j]), 1, int(estimate[j]), int(width[j])) for j in rows]
        assert scores[1 : len(rows) + 1].tolist() == score_waiting(plain_jobs, now, free, plain)
    assert (scores[len(rows) + 1 :] == 7.5).all()


@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("-ln(s) + ln(e) + 0.4*ln(q)", lambda q, w, e, s, *_: -math.log(s) + math.log(e) + 0.4 * math.log(q)),
        ("e90*q - 2*w + user_waiting - 3*user_running", lambda q, w, e, s, e90, u, v: e90 * q - 2 * w + u - 3 * v),
        ("ln(s - 0.5)", lambda q, w, e, s, *_: math.log(s - 0.5) if s > 0.5 else math.inf),
    ],
)
def test_each_waiting_job_is_scored_by_its_own_predictions(text: str, plain: Callable[..., float], n: int) -> None:
    rng = np.random.default_rng(72)
    program, ticks, now = policy(text).program, 4, 400
    submit = np.sort(rng.integers(0, 400, n))
    width = rng.integers(1, 9, n)
    predictions = np.array(
        [rng.uniform(1, 50, n), rng.uniform(0.01, 1, n), rng.uniform(1, 90, n), *rng.integers(0, 5, (2, n))]
    )
    rows = rng.permutation(n)[:25]
    given = (program.codes, program.operands, program.depth, submit / ticks, False, predictions, np.empty((3, 0)))
    scores, state = np.empty(n + 1), new_state(8)
    state[NOW] = now
    listed = np.concatenate(([len(rows)], np.sort(rows), np.zeros(n - len(rows), dtype=np.int64)))
    with np.errstate(all="ignore"):
        jobs, work = new_jobs(submit, width, width, width), np.empty((12 + program.depth, n))
        engine.score_waiting(jobs, state, listed, engine.Formula(*given), (ticks, 8), work, scores)
    expected = [plain(width[j], (now - submit[j]) / ticks, *predictions[:, j]) for j in np.sort(rows).tolist()]
    assert scores[1 : len(rows) + 1].tolist() == expected
