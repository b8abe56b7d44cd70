"""Jobs that may start in several partitions (``-p fat,thin``): looked at in each, by its tier and its own priority."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import pytest

from naive import slurm_kernels as plain
from naive.slurm import Job
from naive.slurm_cases import TIMES, TIMES_OF_OTHER_KERNEL
from naive.slurm_random import BEGIN, FEATURES, draw
from naive.slurm_workload import run_fast, workload_of
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import simulate as simulated
from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.site.model import VERSIONS, NodeGroup, Outage, Partition, Priority, Site
from support import OTHER_KERNEL, seeds

Simulate = Callable[..., dict[int, object]]
FIRST = (3, 28)  # which have all features between them
SEEDS = seeds(FIRST, 12, 60)
FAT, THIN = Partition("fat", "n1", default=True, max_time=3600), Partition("thin", "n[2-3]", max_time=3600)


def site_of(*partitions: Partition, **more: object) -> Site:
    return Site("drawn", (NodeGroup("n[1-3]"),), partitions or (FAT, THIN), **more)


def job(id_: int, *partitions: str, run_time: int = 60, submit: int = 0, **more: object) -> Job:
    return Job(
        id_, submit, run_time, run_time, partition=partitions[0], partitions=partitions[1:] and partitions, **more
    )


def starts(simulate: Simulate, site: Site, jobs: list[Job]) -> list[int]:
    return [one.start for _, one in sorted(simulate(site, jobs, begin=0).items())]


@pytest.mark.parametrize("simulate", TIMES)
def test_the_first_partition_that_has_room_starts_it(simulate: Simulate) -> None:
    # Job 2 finds fat full and has a node of thin at once, job 3 the other, and job 4 that of fat when job 1 has ended.
    jobs = [job(1, "fat"), job(2, "fat", "thin", run_time=600), job(3, "fat", "thin", run_time=600)]
    jobs.append(job(4, "fat", "thin"))
    assert starts(simulate, site_of(), jobs) == [3, 3, 3, 63]
    assert starts(simulate, site_of(), [job(1, "fat"), job(2, "fat")]) == [3, 63]


@pytest.mark.parametrize("simulate", TIMES)
def test_a_job_is_as_far_ahead_as_its_partition(simulate: Simulate) -> None:
    # By the factor of thin job 2 goes before job 1 there; in fat it is behind it.
    weighs = Priority(partition=1000)
    both = tuple(dataclasses.replace(one, nodes="n1") for one in (FAT, dataclasses.replace(THIN, job_factor=5)))
    jobs = [job(1, "fat"), job(2, "fat", "thin")]
    assert starts(simulate, site_of(*both, priority=weighs), jobs) == [63, 3]
    higher = (both[0], dataclasses.replace(THIN, nodes="n1", tier=2))
    assert starts(simulate, site_of(*higher, priority=weighs), jobs) == [63, 3]


@pytest.mark.parametrize("simulate", TIMES)
def test_who_waits_in_vain_in_one_partition_may_start_in_another(simulate: Simulate) -> None:
    # Two nodes are more than fat has; its limit is above that of thin.
    assert starts(simulate, site_of(), [job(1, "fat", "thin", nodes=2, cores=2)]) == [3]
    short = dataclasses.replace(THIN, max_time=60)
    assert starts(simulate, site_of(FAT, short), [job(1, "thin", "fat", run_time=600)]) == [3]
    assert starts(simulate, site_of(FAT, short), [job(1, "thin", "fat", run_time=7200)]) == [-1]


@pytest.mark.parametrize("simulate", TIMES)
def test_who_waits_for_it_waits_for_its_end_wherever_that_is(simulate: Simulate) -> None:
    jobs = [job(1, "fat", run_time=3600), job(2, "fat", "thin"), job(3, "thin", after=2)]
    assert starts(simulate, site_of(), jobs) == [3, 3, 63]


@pytest.mark.parametrize("simulate", TIMES_OF_OTHER_KERNEL)
def test_it_goes_back_into_all_its_queues(simulate: Simulate) -> None:
    # Its node of thin fails at 60; two minutes later, in the next pass over the whole queue, it has that of fat.
    site = dataclasses.replace(site_of(), outages=(Outage("n[2-3]", 60, 3000),))
    placed = simulate(site, [job(1, "fat"), job(2, "fat", "thin", run_time=600)], begin=0)
    assert (placed[2].requeues, placed[2].start) == (1, 240)


def features(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [name for name in FEATURES if name == "partitions" or (name != "gpus" and rng.random() < 0.5)]


def test_the_first_cases_have_all_features() -> None:
    assert {*features(FIRST[0]), *features(FIRST[1]), "gpus"} == set(FEATURES)
    assert FIRST[0] % 2 != FIRST[1] % 2


@OTHER_KERNEL
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_drawn_sites_are_scheduled_alike(version: str, seed: int) -> None:
    site, jobs = draw(seed, 30, *features(seed), "lists", *(["rules", "limits"] if seed % 2 else []))
    site = dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, slurm_version=version))
    assert run_fast(site, jobs, begin=BEGIN, turnround=seed % 3) == plain.slurm(site, jobs, BEGIN, seed % 3)


def test_a_policy_numbers_it_once() -> None:
    # Shortest first: jobs 4, 3 and 5 have the nodes, job 2 the first that is free again, and job 1 that of fat.
    jobs = [job(1, "fat", run_time=600), job(2, "fat", "thin", run_time=300), job(3, "fat", "thin", run_time=120)]
    jobs += [job(4, "fat", "thin", run_time=60), job(5, "fat", "thin", run_time=180)]
    site = site_of()
    for policy in (resolve("SPF"), Policy("own", "p - w / 1000")):
        schedule = simulated(workload_of(site, jobs, 0), policy, site=site)
        assert schedule.start.tolist() == [363, 63, 3, 3, 3]


def test_partitions_that_the_site_lacks_are_none() -> None:
    site = site_of()
    workload = workload_of(site, [job(1, "fat", "gone"), job(2, "gone", "fat")], 0)
    assert workload.requests is not None
    run = run_slurm(workload.select([0]), site)
    assert run.start.tolist() == [3]
