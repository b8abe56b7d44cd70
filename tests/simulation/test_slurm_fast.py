"""The fast Slurm against the plain one: when each job starts and ends, by which pass, how often its nodes failed."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import time
from collections.abc import Callable, Sequence

import pytest

from naive import slurm_kernels as plain
from naive.slurm_jobs import Job
from naive.slurm_nodes import Nodes
from naive.slurm_random import BEGIN, FEATURES, MORE, draw
from naive.slurm_workload import run_fast, workload_of
from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.site.model import VERSIONS, NodeGroup, Partition, Scheduling, Site
from support import seeds

# What looking for GPUs did to the weights of nodes until 22.05 is left out of the kernel; see the test below.
SAME = [name for name in FEATURES if name != "gpus"]
# All of it by night, and where Slurm's sources changed (make areas).
pytestmark = pytest.mark.slow
# Two cases have all features between them, or three where more are mixed; see the first test.
FIRST, FIRST_DEFAULTS, FIRST_RESERVATIONS, FIRST_MIXED = (3, 28), (7, 45), (31, 42), (2, 7, 13)
BILLED = "shares", "memory", "partitions"
SEEDS = seeds(FIRST, 10, 40)
OLD = VERSIONS[0]
# Mixed cases in which the two differed.
DIFFERED = [
    ("26.05", 209, "memory,weights,limits,shares,outages,eligible,plan,arrays"),
    ("22.05", 402, "memory,weights,limits,shares,outages,arrays,preemption"),
    ("24.11", 814, "cores,weights,partitions,limits,age,arrays,preemption,each node"),
    ("24.11", 85, "memory,gpus,eligible,plan,threads,preemption,defaults,each node,kept for some"),
    ("24.11", 32, "cores,partitions,age,plan,kept for some"),
    ("22.05", 12, "cores,weights,partitions,limits,shares,arrays,preemption,lists"),
    ("26.05", 1187, "cores,gpus,weights,partitions,reservations,rules,threads,lists,billing"),
]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def drawn(version: str, seed: int, jobs: int, *features: str) -> tuple[Site, list[Job]]:
    """Return a site under the rules of a version, and its jobs."""
    site, asked = draw(seed, jobs, *features)
    return dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, slurm_version=version)), asked


def leave_out_found_gpus(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Slurm 22.05 makes nodes lighter by the GPUs that it has just found there, for all that it plans next.
    if version == OLD:
        monkeypatch.setattr(Nodes, "weigh", lambda self, i: self.weight[i])


def assert_alike(site: Site, jobs: list[Job], seed: int) -> None:
    """Assert that both schedule the jobs alike, on nodes that are free 0 to 2 s after the end of a job."""
    assert run_fast(site, jobs, begin=BEGIN, turnround=seed % 3) == plain.slurm(site, jobs, BEGIN, seed % 3)


def mostly(rng: random.Random, chance: float, *always: str) -> list[str]:
    """Return some features, and those that a case always has."""
    return [name for name in FEATURES if name in always or rng.random() < chance]


def plain_features(rng: random.Random) -> list[str]:
    return [name for name in SAME if rng.random() < 0.5] or ["plan"]


def default_features(rng: random.Random, seed: int) -> list[str]:
    kinds = {"gpus", "partitions", "cores"}
    return [name for name in FEATURES if name in kinds or (name == "memory" and seed % 4) or rng.random() < 0.3]


def all_features(seed: int) -> list[str]:
    rng = random.Random(seed)
    return mostly(rng, 0.5) + [name for name in MORE if rng.random() < 0.4]


def test_the_first_cases_have_all_features() -> None:
    def of(choose: Callable[[random.Random, int], list[str]], some: Sequence[int] = FIRST) -> set[str]:
        return {name for seed in some for name in choose(random.Random(seed), seed)}

    assert of(lambda rng, _: plain_features(rng)) == set(SAME)
    for always in (["gpus"], ["limits", "memory"], [], ["limits", "cores"]):
        assert of(lambda rng, _, always=always: mostly(rng, 0.5, *always)) == set(FEATURES)
    assert of(lambda rng, _: mostly(rng, 0.4, *BILLED)) == set(FEATURES)
    assert of(lambda rng, _: mostly(rng, 0.3, "partitions"), FIRST_RESERVATIONS) == set(FEATURES)
    assert of(default_features, FIRST_DEFAULTS) == set(FEATURES)
    assert of(lambda _, seed: all_features(seed), FIRST_MIXED) == {*FEATURES, *MORE}


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_sites_are_scheduled_alike(version: str, seed: int) -> None:
    site, jobs = drawn(version, seed, 40, *plain_features(random.Random(seed)))
    assert_alike(site, jobs, seed)


# A queue that only new priorities set going again; jobs that go back into the queue together.
@pytest.mark.parametrize("seed", [1155, 1173, *SEEDS])
def test_but_for_one_rule_of_old_sites_with_gpus_are_too(
    version: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_found_gpus(version, monkeypatch)
    rng = random.Random(seed)
    site, jobs = drawn(version, seed, 40, *mostly(rng, 0.5, "gpus"))
    assert_alike(site, jobs, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_sites_with_many_rules_are_too(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    rng = random.Random(seed)
    site, jobs = drawn(version, seed, 40, *mostly(rng, 0.5, "limits", "memory"), "rules")
    # Accounts are said of most jobs.
    jobs = [dataclasses.replace(job, account="", user="") if rng.random() < 0.1 else job for job in jobs]
    assert_alike(site, jobs, seed)


@pytest.mark.parametrize("seed", seeds(FIRST_DEFAULTS, 10, 40))
def test_sites_with_defaults_of_partitions_are_too(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    site, jobs = drawn(version, seed, 40, *default_features(random.Random(seed), seed), "defaults")
    assert_alike(site, jobs, seed)


# A job that is started and stopped in one pass; an array that is no longer full when one of its tasks is stopped.
@pytest.mark.parametrize("seed", [74, 145, 190, *SEEDS])
def test_sites_that_stop_jobs_for_others_are_too(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    rng = random.Random(seed)
    features = mostly(rng, 0.5)
    features += ["limits", "memory", "rules"] * (rng.random() < 0.3) + ["limits"] * (rng.random() < 0.4)
    site, jobs = drawn(version, seed, 40, *features, "preemption")
    assert_alike(site, jobs, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_on_each_node_are_kept_alike(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    site, jobs = drawn(version, seed, 40, *mostly(random.Random(seed), 0.5, "limits", "cores"), "each node")
    assert_alike(site, jobs, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_billed_counts_alike(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    site, jobs = drawn(version, seed, 40, *mostly(random.Random(seed), 0.4, *BILLED), "billing")
    assert_alike(site, jobs, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_are_cancelled_alike(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    site, jobs = drawn(version, seed, 40, *mostly(random.Random(seed), 0.5, "eligible"), "cancelled")
    assert_alike(site, jobs, seed)


@pytest.mark.parametrize("seed", seeds(FIRST_RESERVATIONS, 10, 40))
def test_reservations_for_some_are_kept_alike(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    site, jobs = drawn(version, seed, 40, *mostly(random.Random(seed), 0.3, "partitions"), "kept for some")
    assert_alike(site, jobs, seed)


# Jobs that must not begin before a time and wait for another one; a job that is started and cancelled in one pass; jobs
# that go back into the queue together under priority/basic; nothing but a start at once, and that after maintenance;
# arrays in lists of partitions; the size of a job on whole nodes relative to its time limit; a queue
# that new priorities alone set going.
@pytest.mark.parametrize(
    ("slurm_version", "seed", "features"),
    DIFFERED,
)
def test_mixed_cases_in_which_they_differed_are_too(
    slurm_version: str, seed: int, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_found_gpus(slurm_version, monkeypatch)
    site, jobs = drawn(slurm_version, seed, 40, *features.split(","))
    assert_alike(site, jobs, seed)


@pytest.mark.parametrize("seed", seeds(FIRST_MIXED, 10, 40))
def test_sites_that_mix_all_of_it_are_too(version: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_found_gpus(version, monkeypatch)
    site, jobs = drawn(version, seed, 40, *all_features(seed))
    assert_alike(site, jobs, seed)


def test_versions_schedule_otherwise() -> None:
    starts = {
        version: [
            [job.start for job in run_fast(*drawn(version, seed, 60, "cores", "memory", "plan"), begin=BEGIN).values()]
            for seed in range(12)
        ]
        for version in VERSIONS
    }
    for older, newer in itertools.pairwise(starts.values()):
        assert sum(start != other for start, other in zip(older, newer, strict=True)) > 2


def test_the_rule_that_is_left_out_changes_few_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    # docs/simulator.md says how few: the seeds are the first of those that are counted there.
    by_rule, without = [], []
    for schedules in (by_rule, without):
        for seed in range(1000, 1060):
            rng = random.Random(seed)
            features = [name for name in FEATURES if name == "gpus" or rng.random() < 0.5]
            schedules.append(plain.slurm(*drawn(OLD, seed, 40, *features), BEGIN, 0))
        monkeypatch.setattr(Nodes, "weigh", lambda self, i: self.weight[i])
    changed = [
        sum(one[id_].start != other[id_].start for id_ in one) for one, other in zip(by_rule, without, strict=True)
    ]
    assert 0 < sum(changed) < 0.05 * 40 * len(changed)
    assert sum(count > 0 for count in changed) < 0.2 * len(changed)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_queue_is_scheduled_alike(version: str, seed: int) -> None:
    # The nodes of running jobs are moved together several times.
    site, jobs = drawn(version, seed, 200, "cores", "partitions", "age", "outages")
    assert run_fast(site, jobs, begin=BEGIN) == plain.slurm(site, jobs, BEGIN, 0)


@pytest.mark.parametrize("seed", seeds(1, 5, 20))
def test_a_machine_of_many_kinds_of_nodes_is_scheduled_alike(version: str, seed: int) -> None:
    # A set of its blocks takes several words, and a block of many nodes is taken in parts.
    rng = random.Random(seed)
    site, jobs = drawn(version, seed, 40, "plan", rng.choice(("age", "outages", "reservations")))
    sizes = [rng.choice((1, 1, 1, 2, 9)) for _ in range(100)]
    kinds = [(f"m{at}n[1-{size}]", rng.choice((2, 4, 8))) for at, size in enumerate(sizes)]
    others = tuple(NodeGroup(names, cores) for names, cores in kinds)
    site = dataclasses.replace(site, nodes=(*site.nodes, *others))
    for at, job in enumerate(jobs):
        times = rng.choice((3, 20, 60))
        nodes = job.nodes if job.nodes < 0 else job.nodes * times
        jobs[at] = dataclasses.replace(job, nodes=nodes, cores=job.cores * times)
    assert run_fast(site, jobs, begin=BEGIN) == plain.slurm(site, jobs, BEGIN, 0)


def test_a_queue_of_years_is_passed_over_quickly() -> None:
    # Passes that find all as it was are a thousand times as many as jobs: as many steps took 500 times as long.
    def spent(jobs: list[Job], **settings: bool) -> float:
        site = Site("drawn", (NodeGroup("n1", 1),), (Partition("all"),), scheduling=Scheduling(**settings))
        workload, best = workload_of(site, jobs, BEGIN), math.inf
        for _ in range(3):
            began = time.process_time()
            run_slurm(workload, site)
            best = min(best, time.process_time() - began)
        return best

    year = 365 * 86400
    long = [Job(number, BEGIN, run_time=year, limit=year, cores=1) for number in range(1, 21)]
    short = [Job(number, BEGIN + 60 * number, run_time=30, limit=30, cores=1) for number in range(1, 4001)]
    for backfill in (True, False):
        assert spent(long, backfill=backfill) < 20 * spent(short, backfill=backfill)
