"""The arena: replicas with their past ahead, the models of one run for all policies."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.core.errors import UsageError
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Predictor
from policyfactory.search.replicated import AIMS, TEACHER, Part, Replicated, foretold, replicated, values_of
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.predicted import run_predicted
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import Replicas, loads_of
from refusals import refused

OPTIONS = PredictorOptions(window=500, every_days=7, first_days=3, least=60, trees=10, leaves=4)


@pytest.fixture(scope="module")
def workload() -> Workload:
    rng = np.random.default_rng(2)
    n = 1_500
    user = rng.integers(0, 12, n)
    run_time = np.where(rng.random(n) < user / 12, rng.integers(1, 30, n), rng.integers(2_000, 9_000, n))
    return Workload(
        "log", 16, np.arange(1, n + 1), np.sort(rng.integers(0, 8 * 7 * 86_400, n)), run_time, np.full(n, 14_400),
        rng.integers(1, 12, n), user, np.full(n, -1),
    )  # fmt: skip


@pytest.fixture(scope="module")
def arena(workload: Workload) -> Replicated:
    return replicated(workload, Part(600, 1_500, past=400), Rules(), count=3, seed=5, predictor=OPTIONS)


def by_hand(workload: Workload, number: int) -> Workload:
    part = workload.select(slice(200, 1_500))
    return Replicas(part, lead_in=400, seed=5).sample(number, loads_of(3)[number - 1])


def test_the_past_is_simulated_and_not_measured(workload: Workload, arena: Replicated) -> None:
    saf = CATALOGUE["SAF"]
    values = values_of(arena, [saf])[:, 0]
    for number in (1, 2, 3):
        whole = simulate(by_hand(workload, number), saf).after(400)
        assert len(whole) == len(arena.schedule(number - 1, saf)) > 700
        assert values[number - 1].tolist() == [measure(whole, AIMS)[name] for name in AIMS]


def test_policies_are_tried_on_the_models_of_the_teacher_or_learn_themselves(
    workload: Workload, arena: Replicated
) -> None:
    own = Policy("OWN", "ln(e) + ln(q)")
    jobs, predictor = by_hand(workload, 1), Predictor(OPTIONS)
    honest = simulate(jobs, own, predictor=predictor).after(400)
    assert arena.schedule(0, own, learns=True).start.tolist() == honest.start.tolist()
    # To the teacher itself its models are those that it would learn.
    taught = simulate(jobs, TEACHER, predictor=predictor).after(400)
    assert arena.schedule(0, TEACHER).start.tolist() == taught.start.tolist()
    assert len(arena.taught(0)) > 3
    assert arena.taught(0) is arena.taught(0)
    assert len(arena.taught(0, tail=True)[0].forests.tail.roots) == 10


def test_how_many_replicas_is_bounded(workload: Workload) -> None:
    refused(UsageError, "0 1 1,000", replicated, workload, Part(0, 1_500), Rules(), count=0)


def test_a_job_of_a_foretold_replica_is_predicted_as_it_was_in_the_log(workload: Workload, arena: Replicated) -> None:
    part = Part(600, 1_500, past=400)
    again, replicas = foretold(workload, part, Rules(), count=3, seed=5, predictor=OPTIONS)
    some, lead_in = part.cut(workload)
    log = run_predicted(prepare(some, Rules()), TEACHER, Predictor(OPTIONS)).predictions
    assert len(np.unique(log[0])) > 50
    for number, (replica, same) in enumerate(zip(replicas, arena.prepared, strict=True)):
        jobs = replica.workload
        assert jobs.sha256() == same.workload.sha256()
        # A job is known by its user, request, processors and run time, which few have in common.
        for row in range(lead_in, len(jobs)):
            alike = np.flatnonzero(
                (some.user == jobs.user[row])
                & (some.run_time == jobs.run_time[row])
                & (some.processors == jobs.processors[row])
            )
            assert replica.predictions[:, row].tolist() in log[:, alike].T.tolist()
        saf = CATALOGUE["SAF"]
        assert again.given(replica, saf).start.tolist() == arena.schedule(number, saf).start.tolist()
