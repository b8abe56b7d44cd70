"""RLScheduler's kernels against their twin: every decision, every number shown, every start, on random windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from naive.rlscheduler import Twin
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.policy.network import Network, paper_inputs
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.search.environment.episodes import EpisodeOptions, PaperEpisodes
from policyfactory.simulation.compat import CommittedLog, starts_by_formula
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from refusals import refusal, refused
from support import seeds

MACHINE = 16


def random_log(seed: int) -> Workload:
    """Jobs with many ties; every second seed has queues of more than 128."""
    random = np.random.default_rng(seed)
    n = 300 if seed % 2 else 60
    submit = np.cumsum(random.integers(0, 3 if seed % 2 else 30, n)) * 10
    run_time = random.integers(1, 40, n) * 10
    return Workload(
        name=f"random {seed}",
        machine=MACHINE,
        job_id=np.arange(1, n + 1),
        submit=submit,
        run_time=run_time,
        # Under, over and equal to the run time.
        requested_time=np.maximum(run_time + random.integers(-3, 4, n) * 10, 1),
        processors=random.integers(1, MACHINE + 1, n),
        user=np.full(n, -1),
        start=np.full(n, -1),
    )


def twin_of(log: CommittedLog, *, backfill: bool) -> Twin:
    jobs = [
        {
            "number": at,
            "submit": int(log.jobs.submit[at]),
            "run": int(log.jobs.run_time[at]),
            "request": int(log.jobs.request[at]),
            "size": int(log.processors[at]),
            "nodes": int(log.jobs.nodes[at]),
            "shares": log.jobs.features[at].tolist(),
        }
        for at in range(len(log))
    ]
    return Twin(jobs, log.nodes, backfill=backfill)


def begun(log: CommittedLog, jobs: int, first: Sequence[int], *, backfill: bool) -> PaperEpisodes:
    rules = Rules(backfill="easy" if backfill else "none")
    episodes = PaperEpisodes(log, EpisodeOptions(jobs, rules=rules), len(first))
    episodes.begin_all(np.array(first))
    return episodes


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("seed", seeds(6, 40, 40))
def test_every_step_is_that_of_the_twin(seed: int, backfill: bool) -> None:
    log = CommittedLog.of_workload(random_log(seed))
    twin = twin_of(log, backfill=backfill)
    episodes = begun(log, len(log), [0], backfill=backfill)
    random = np.random.default_rng(seed)
    over, longest = False, 0
    while not over:
        rows = np.array(twin.rows(), dtype=np.float32)
        longest = max(longest, len(twin.queue))
        assert int(episodes.clock[0]) == twin.now
        assert episodes.batch.shown[0, : episodes.shown[0]].tolist() == [job["number"] for job in twin.shown()]
        assert (episodes.jobs[0, : len(rows)] == rows).all()
        assert (episodes.jobs[0, len(rows) :] == [0, 1, 1, 1, 1, 1, 1, 0]).all()
        place = int(random.integers(len(rows)))
        over = twin.choose(twin.shown()[place])
        episodes.step(np.array([place]))
    assert episodes.done[0]
    assert episodes.batch.start[0].tolist() == [twin.start[at] for at in range(len(log))]
    assert seed % 2 == 0 or longest > 128


@pytest.mark.parametrize("backfill", [False, True])
def test_episodes_side_by_side_are_those_alone(backfill: bool) -> None:
    log = CommittedLog.of_workload(random_log(1))
    first = np.array([0, 7, 100, 51])
    together = begun(log, 150, first, backfill=backfill)
    while not together.done.all():
        together.step(together.shown // 2)
    for at, one in enumerate(first):
        alone = begun(log, 150, [one], backfill=backfill)
        while not alone.done.all():
            alone.step(alone.shown // 2)
        assert (alone.batch.start[0] == together.batch.start[at]).all()


FORMULAS = {
    "r": lambda job, now, free: job["submit"],
    "p": lambda job, now, free: job["request"],
    "p*q": lambda job, now, free: job["request"] * job["size"],
    "p - 3*w": lambda job, now, free: job["request"] - 3 * (now - job["submit"]),
    "p + 100*min(1, max(0, f - q + 1))": lambda job, now, free: job["request"] + 100 * (job["size"] <= free),
    "q/(1 + w)": lambda job, now, free: job["size"] / (1 + now - job["submit"]),
}


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("seed", seeds(4, 12, 12))
def test_formulas_choose_as_in_the_twin(seed: int, formula: str, backfill: bool) -> None:
    workload = random_log(seed)
    log = CommittedLog.of_workload(workload)
    twin = twin_of(log, backfill=backfill)
    over = False
    while not over:
        # The program sorts its queue by the values, which decides between jobs of one instant in the backfilling.
        twin.queue.sort(key=lambda job: (job["submit"], job["number"]))
        twin.queue.sort(key=lambda job: FORMULAS[formula](job, twin.now, twin.free))
        over = twin.choose(twin.queue[0])
    schedule = simulate(
        workload, Policy("P", formula), compatibility="rlscheduler", backfill="easy" if backfill else "none"
    )
    assert schedule.start.tolist() == [twin.start[at] for at in range(len(log))]
    assert np.flatnonzero(schedule.backfilled).tolist() == sorted(twin.backfilled)


def test_jobs_take_whole_nodes() -> None:
    workload = random_log(0)
    log = CommittedLog._from_columns(
        "nodes",
        [workload.submit, workload.run_time, workload.requested_time, workload.processors],
        np.ones((60, 6), dtype=np.float32),
        (workload.job_id, workload.user),
        (MACHINE, 4, 400),
    )
    assert log.jobs.nodes.tolist() == [-(-q // 4) for q in workload.processors.tolist()]
    start, _ = starts_by_formula(log, Policy("P", "p"), np.zeros(1, dtype=np.int64), 60, backfill=False, r=np.zeros(60))
    twin, over = twin_of(log, backfill=False), False
    while not over:
        over = twin.choose(min(twin.queue, key=lambda job: (job["request"], job["submit"])))
    assert start[0].tolist() == [twin.start[at] for at in range(60)]


def test_what_cannot_be_played_is_refused() -> None:
    workload = random_log(0)
    log = CommittedLog.of_workload(workload)
    refused(EvaluationError, "61 60", PaperEpisodes, log, EpisodeOptions(61))
    episodes = begun(log, 60, [0], backfill=False)
    episodes.step(np.array([1]))
    assert episodes.replaced[0]
    assert episodes.batch.start[0, 0] == log.jobs.submit[0]
    refused(EvaluationError, "whole seconds 0", simulate, half_seconds(workload), "SPF", compatibility="rlscheduler")
    with refusal(UsageError, "60 threshold"):
        simulate(workload, Policy("P", "p", threshold=60.0), compatibility="rlscheduler")
    with refusal(UsageError, "r oldest waiting P"):
        simulate(workload, Policy("P", "q*r", epoch=Epoch("oldest-waiting")), compatibility="rlscheduler")
    for wrong in ({"threshold": 60.0}, {"backfill": "conservative"}, {"ties": "lifo"}, {"overrun": "kill"}):
        refused(UsageError, "programs RLScheduler", Rules, compatibility="rlscheduler", **wrong)


def half_seconds(workload: Workload) -> Workload:
    fine = workload.in_ticks(2)
    return Workload(
        fine.name, fine.machine, fine.job_id, fine.submit + 1, fine.run_time, fine.requested_time, fine.processors,
        fine.user, fine.start, ticks=2,
    )  # fmt: skip


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("seed", seeds(2, 6, 6))
def test_a_network_sees_the_jobs_that_are_shown(seed: int, backfill: bool) -> None:
    workload = random_log(seed)
    log = CommittedLog.of_workload(workload)
    random = np.random.default_rng(seed)
    layers = [(random.normal(size=shape), random.normal(size=shape[1])) for shape in ((8, 4), (4, 1))]
    network = Network.of("N", paper_inputs(log.longest_run), layers, mode="paper")
    schedule = simulate(
        workload, Policy.from_network(network), compatibility="rlscheduler", backfill="easy" if backfill else "none"
    )
    episodes = begun(log, len(log), [0], backfill=backfill)
    while not episodes.done[0]:
        shown = episodes.batch.shown[0, : episodes.shown[0]]
        # What is shown is single precision, and formulas are not.
        values = np.ones((len(shown), 8))
        values[:, 0] = np.minimum((episodes.clock[0] - log.jobs.submit[shown]) / 43200, 0.99999)
        values[:, 1] = np.minimum(log.jobs.request[shown] / log.longest_run, 0.99999)
        values[:, 2] = np.minimum(log.processors[shown] / MACHINE, 0.99999)
        values[:, 7] = episodes.jobs[0, : len(shown), 7] > 0.5
        values[:, 7] = 0.00001 + 0.99998 * values[:, 7]
        for at, (weights, biases) in enumerate(layers):
            values = values @ weights.astype(np.float32) + biases.astype(np.float32)
            values = np.maximum(values, 0) if at == 0 else values
        place = int(np.argmax(np.round(values[:, 0], 9)))
        episodes.step(np.array([place]))
    assert schedule.start.tolist() == episodes.batch.start[0].tolist()
