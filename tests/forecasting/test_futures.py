"""Futures: with the truth in them they are what happened; nothing later is looked at; draws are the same for all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from forecasting.queues_of import SITE, busy, loop

from policyfactory.forecasting.futures import Draws, QueueStanding, queues_of, starts_of
from policyfactory.forecasting.record import record_of
from policyfactory.forecasting.standing import Loop, loop_of
from policyfactory.policy.store import resolve
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.predicted import predict_record, run_predicted
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.slurm.queue import on_nodes
from policyfactory.site.model import NodeGroup, Site
from policyfactory.workload.snapshot import QueuedJob, Snapshot

TRUTH = Draws(futures=1, run_times="true", arrivals="true")
DAY = 86_400


def starts(found: Loop, standing: QueueStanding, draws: Draws, workers: int = 1) -> np.ndarray:
    return starts_of(standing, queues_of(standing, found.site, draws.horizon), draws, workers)


def happened(standing: QueueStanding) -> np.ndarray:
    rows = standing.rows[standing.running :]
    return np.minimum(standing.record.start[rows] - standing.now, DAY)


def test_with_true_run_times_and_arrivals_easy_gives_what_happened() -> None:
    found, instants = loop()
    assert len(instants) > 10
    for now in instants:
        standing = found.standing(now)
        np.testing.assert_array_equal(starts(found, standing, TRUTH)[0], happened(standing))


def test_with_the_truth_slurm_gives_what_happened_but_for_the_clocks_of_its_passes() -> None:
    found, instants = loop(SITE)
    away = []
    for now in instants:
        standing = found.standing(now)
        away += np.abs(starts(found, standing, TRUTH)[0] - happened(standing)).tolist()
    assert np.quantile(away, 0.9) <= 60


def test_a_record_is_predicted_as_the_closed_loop_predicts_its_jobs_when_they_are_submitted() -> None:
    log, policy = busy(4), resolve("FCFS")
    options = PredictorOptions(every_days=3, first_days=3, least=60, trees=10, leaves=5, renew_s=0)
    made = run_predicted(prepare(log, Rules()), policy, Predictor(options), tail=False)
    predicted, trainings = predict_record(log, made.start, made.start + log.run_time, Predictor(options))
    np.testing.assert_array_equal(predicted, made.predictions[:2])
    assert [training.instant for training in trainings] == [training.instant for training in made.trainings]
    again, _ = predict_record(log, made.start, made.start + log.run_time, Predictor(options, trainings=trainings))
    np.testing.assert_array_equal(again, predicted)


@pytest.mark.parametrize("site", [None, SITE], ids=["easy", "slurm"])
def test_nothing_that_comes_later_changes_a_forecast(site: Site | None) -> None:
    found, instants = loop(site)
    now = instants[len(instants) // 2]
    jobs = found.record.jobs
    later = jobs.submit > now
    rng = np.random.default_rng(3)
    other = dataclasses.replace(
        jobs,
        run_time=np.where(later, rng.permutation(jobs.run_time), jobs.run_time),
        processors=np.where(later, rng.integers(1, 9, len(jobs)), jobs.processors),
        user=np.where(later, rng.integers(0, 99, len(jobs)), jobs.user),
    )
    changed = loop_of(other, site, np.array([now]), is_recorded=False)
    assert (changed.record.start != found.record.start).any()
    draws = Draws(futures=20)
    first, second = (starts(its, its.standing(now), draws) for its in (found, changed))
    assert first.tobytes() == second.tobytes()
    # Nor do the true run times of jobs that run.
    run_time = np.where(found.record.end > now, jobs.requested_time, found.record.end - found.record.start)
    hidden = record_of(jobs, found.record.start, found.record.start + run_time)
    told = dataclasses.replace(found, record=hidden)
    assert starts(told, told.standing(now), draws).tobytes() == first.tobytes()


def test_the_same_seed_gives_the_same_bytes_whatever_the_workers_and_another_one_others() -> None:
    found, instants = loop()
    standing = found.standing(instants[0])
    first = starts(found, standing, Draws(futures=40))
    assert first.tobytes() == starts(found, standing, Draws(futures=40), workers=3).tobytes()
    assert first.tobytes() != starts(found, standing, Draws(futures=40, seed=2)).tobytes()


def test_the_first_of_the_queue_starts_no_later_than_if_all_ran_to_their_limits() -> None:
    found, instants = loop()
    for now in instants[:5]:
        standing = found.standing(now)
        by_limits = starts(found, standing, Draws(futures=1, run_times="limit", arrivals="none"))
        drawn = starts(found, standing, Draws(futures=30, arrivals="none"))
        assert (drawn[:, 0] <= by_limits[0, 0]).all()


def test_running_jobs_without_nodes_get_free_ones_and_no_node_twice() -> None:
    site = dataclasses.replace(SITE, nodes=(NodeGroup("n[1-4]", 4),))
    jobs = tuple(
        QueuedJob(str(n), n, "running", "u", "", "", ("all",), 0, start=0, limit=60, cores=cores, nodes=nodes)
        for n, cores, nodes in ((1, 3, 0), (2, 4, 2), (3, 5, 0), (4, 9, 0))
    )
    placed = on_nodes(Snapshot("made", 10, jobs), site)
    held: dict[str, int] = {}
    for job in placed.jobs:
        for name, cores in zip(job.node_list.split(","), job.node_cores, strict=True):
            held[name] = held.get(name, 0) + cores
    assert [sum(job.node_cores) for job in placed.jobs] == [3, 4, 5, 4]
    assert max(held.values()) <= 4
