"""The kernels of rollouts against their twins; and that what accrues adds up to the goal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from naive import rollouts as twin
from policyfactory.engine.compat.rlscheduler import NEXT
from policyfactory.engine.rollouts import Accrual, Layers, accrue_all, choose_all, new_choices
from policyfactory.search.environment.episodes import EpisodeOptions, PaperEpisodes
from policyfactory.simulation.compat import CommittedLog
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload


def random_layers(random: np.random.Generator, widths: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (random.normal(0, 1, (before, after)).astype(np.float32), random.normal(0, 0.5, after).astype(np.float32))
        for before, after in itertools.pairwise(widths)
    ]


def of_kernel(layers: list[tuple[np.ndarray, np.ndarray]]) -> Layers:
    widths = [layers[0][0].shape[0], *(weights.shape[1] for weights, _ in layers)]
    numbers = np.concatenate([part.ravel() for layer in layers for part in layer])
    return Layers(np.array(widths), numbers)


@pytest.mark.parametrize("widths", [(6, 1), (6, 5, 1), (6, 3, 7, 1), (6, 32, 16, 8, 1)])
@pytest.mark.parametrize("seed", range(8))
def test_choices_are_those_of_the_twin(seed: int, widths: tuple[int, ...]) -> None:
    random = np.random.default_rng(seed)
    b, slots = 9, 17
    layers = random_layers(random, widths)
    jobs = random.normal(0, 1, (b, slots, 6)).astype(np.float32)
    mask = random.random((b, slots)) < 0.5
    mask[:, seed % slots] = True
    over = random.random(b) < 0.2
    uniform = np.where(random.random(b) < 0.3, -1.0, random.random(b))
    keep = random.random(b) < 0.5
    rows, choices = np.zeros((3 + b * slots, 6), dtype=np.float32), new_choices(b)
    kept = choose_all(jobs, mask, over, of_kernel(layers), uniform, keep, rows, 3, choices)
    for at, (slot, place, size, log_probability) in enumerate(twin.choose_all(jobs, mask, over, layers, uniform)):
        assert (choices.slot[at], choices.position[at], choices.size[at]) == (slot, place, size)
        assert choices.log_probability[at] == pytest.approx(log_probability, abs=1e-4)
    expected = [row for at in np.flatnonzero(keep & ~over) for row in jobs[at, mask[at]]]
    assert kept == 3 + len(expected)
    assert np.array_equal(rows[3:kept], np.array(expected).reshape(-1, 6))


def test_equal_jobs_go_by_slot_and_draws_follow_the_softmax() -> None:
    # Two equal jobs, and one that is exp(1) times as likely: 1/(2 + e), 1/(2 + e), e/(2 + e).
    layers = of_kernel([(np.array([[1.0]], dtype=np.float32), np.zeros(1, dtype=np.float32))])
    b = 20_000
    jobs = np.broadcast_to(np.array([[0.0], [0.0], [1.0], [9.0]], dtype=np.float32), (b, 4, 1)).copy()
    mask = np.broadcast_to([True, True, True, False], (b, 4)).copy()
    no, choices, rows = np.zeros(b, dtype=bool), new_choices(b), np.empty((0, 1), dtype=np.float32)
    choose_all(jobs, mask, no, layers, np.random.default_rng(1).random(b), no, rows, 0, choices)
    shares = np.bincount(choices.slot, minlength=4) / b
    expected = np.array([1, 1, np.e, 0]) / (2 + np.e)
    # Four standard errors: chance of a false alarm under 1 in 5,000.
    assert (np.abs(shares - expected) <= 4 * np.sqrt(expected * (1 - expected) / b)).all()
    assert np.allclose(choices.log_probability, np.log(expected[choices.slot]), atol=1e-6)
    jobs[:, 2] = 0.0
    choose_all(jobs, mask, no, layers, np.full(b, -1.0), no, rows, 0, choices)
    assert not choices.slot.any()


def small_log(seed: int, n: int = 80) -> CommittedLog:
    random = np.random.default_rng(seed)
    run_time = random.integers(1, 60, n)
    workload = Workload(
        name="small",
        machine=16,
        job_id=np.arange(1, n + 1),
        submit=np.cumsum(random.integers(0, 9, n)),
        run_time=run_time,
        requested_time=run_time,
        processors=random.integers(1, 17, n),
        user=np.full(n, -1),
        start=np.full(n, -1),
    )
    return CommittedLog.of_workload(workload)


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_accrues_is_that_of_the_twin_and_ends_as_the_windows_sum(seed: int, backfill: bool) -> None:
    log, first = small_log(seed), np.array([0, 13, 20])
    rules = Rules(backfill="easy" if backfill else "none")
    episodes = PaperEpisodes(log, EpisodeOptions(60, rules=rules), 3)
    episodes.begin_all(first)
    accrual = Accrual(
        log.jobs.run_time.astype(float), np.maximum(log.jobs.run_time, 10).astype(float), np.ones((3, 60)), 1.0, 0.0
    )
    random, total, before = np.random.default_rng(seed), np.zeros(3), np.zeros(3)
    while not episodes.done.all():
        accrue_all(log.jobs, episodes.batch, accrual, total)
        windows = [
            {
                "submit": log.jobs.submit[one : one + 60].tolist(),
                "run": log.jobs.run_time[one : one + 60].tolist(),
                "start": {job: int(start) for job, start in enumerate(episodes.batch.start[at]) if start >= 0},
                "now": int(episodes.clock[at]),
                "entered": int(episodes.batch.state[at, NEXT]),
            }
            for at, one in enumerate(first)
        ]
        assert total == pytest.approx(twin.accrue_all(windows), rel=1e-12)
        assert (total >= before).all()
        before[:] = total
        episodes.step(random.integers(0, np.maximum(episodes.shown, 1)))
    accrue_all(log.jobs, episodes.batch, accrual, total)
    rows = first[:, None] + np.arange(60)
    wait, run = episodes.batch.start - log.jobs.submit[rows], log.jobs.run_time[rows]
    assert total == pytest.approx(np.maximum((wait + run) / np.maximum(run, 10), 1).sum(axis=1), rel=1e-12)
    by_clock = accrual._replace(weight=np.zeros((3, 60)), elapsed=1.0)
    accrue_all(log.jobs, episodes.batch, by_clock, total)
    assert (total == episodes.batch.start.max(axis=1) - log.jobs.submit[first]).all()
