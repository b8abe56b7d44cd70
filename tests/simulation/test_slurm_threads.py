"""Cores of several threads (ThreadsPerCore with CR_Core): jobs get whole cores, and count with all their threads."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from naive import slurm_kernels as plain
from naive.forced import forced
from naive.slurm import Job
from naive.slurm_cases import TIMES, scheduling
from naive.slurm_forced import wanted_by
from naive.slurm_random import BEGIN, FEATURES, draw
from naive.slurm_workload import run_fast
from policyfactory.core.errors import SiteError
from policyfactory.simulation.slurm.jobs import threads_of
from policyfactory.site.file import check_site
from policyfactory.site.fits import lay_out
from policyfactory.site.model import VERSIONS, Association, Limits, NodeGroup, Partition, Priority, Site
from policyfactory.site.slurm.site import Reports, import_slurm
from policyfactory.workload.accounting.times import Clock
from refusals import refused
from schedulers.record import read_record
from support import OTHER_KERNEL, seeds

Simulate = Callable[..., dict[int, object]]
FIRST = (3, 28)  # which have all features between them
SEEDS = seeds(FIRST, 12, 60)
PARTS = (Partition("batch", default=True),)


def site_of(*nodes: NodeGroup, **more: object) -> Site:
    return Site("drawn", nodes, PARTS, **more)


def starts(simulate: Simulate, site: Site, jobs: list[Job]) -> list[int]:
    return [one.start for _, one in sorted(simulate(site, jobs, begin=0).items())]


def job(id_: int, cores: int, nodes: int = -1, run_time: int = 60, **more: object) -> Job:
    return Job(id_, 0, run_time, run_time, nodes, cores, **more)


@pytest.mark.parametrize("simulate", TIMES)
def test_a_core_has_one_job(simulate: Simulate) -> None:
    # Two cores of two threads: jobs of one thread have one each, and the third waits for the next pass after an end.
    #   core 1:  1 3
    #   core 2:  2
    node = NodeGroup("n1", 4, threads=2)
    jobs = [job(1, 1), job(2, 1), job(3, 1)]
    assert starts(simulate, site_of(node), jobs) == [3, 3, 63]
    assert starts(simulate, site_of(dataclasses.replace(node, threads=1)), jobs) == [3, 3, 3]
    # Three threads are two cores.
    assert starts(simulate, site_of(node), [job(1, 3), job(2, 1)]) == [3, 63]


@pytest.mark.parametrize("simulate", TIMES)
def test_what_is_rounded_up_is_what_a_job_has_of_each_node(simulate: Simulate) -> None:
    # Three threads on two nodes are a core of each; a core is left on each, and a job of two nodes fits beside.
    nodes = NodeGroup("n[1-2]", 4, threads=2)
    assert starts(simulate, site_of(nodes), [job(1, 3, 2), job(2, 2, 2), job(3, 1)]) == [3, 3, 63]


@pytest.mark.parametrize("simulate", TIMES)
def test_memory_of_a_core_is_that_of_all_its_threads(simulate: Simulate) -> None:
    # 300 MB a thread are 600 MB for the core of a job of one thread: two of them do not fit into 1,000 MB.
    site = site_of(NodeGroup("n1", 8, 1000, threads=2), **scheduling(select="cores+memory"))
    jobs = [job(1, 1, memory=300), job(2, 1, memory=300), job(3, 1, memory=200)]
    assert starts(simulate, site, jobs) == [3, 63, 63]


@pytest.mark.parametrize("simulate", TIMES)
def test_limits_count_all_threads(simulate: Simulate) -> None:
    root = Association("root")
    lab = Association("lab", parent="root", total=Limits(cores=3))
    site = site_of(
        NodeGroup("n1", 8, threads=2),
        associations=(root, lab, Association("lab", "ann")),
        enforced=("associations", "limits"),
    )
    jobs = [job(number, 1, account="lab", user="ann") for number in (1, 2)]
    assert starts(simulate, site, jobs) == [3, 63]


def features(seed: int) -> list[str]:
    rng = random.Random(seed)
    always = {"limits", "memory"}
    return [name for name in FEATURES if name in always or (name != "gpus" and rng.random() < 0.5)]


def test_the_first_cases_have_all_features() -> None:
    assert {*features(FIRST[0]), *features(FIRST[1]), "gpus"} == set(FEATURES)
    assert FIRST[0] % 2 != FIRST[1] % 2


@OTHER_KERNEL
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_drawn_sites_are_scheduled_alike(version: str, seed: int) -> None:
    site, jobs = draw(seed, 30, *features(seed), "threads", *(["rules"] if seed % 2 else []))
    site = dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, slurm_version=version))
    assert run_fast(site, jobs, begin=BEGIN, turnround=seed % 3) == plain.slurm(site, jobs, BEGIN, seed % 3)


def recorded(folder: Path) -> Site:
    return import_slurm(folder / "slurm.conf", Reports(), Clock(), "24.11")[0]


@pytest.mark.parametrize("replay", ["threads-1", pytest.param("threads-2", marks=pytest.mark.slow)])
def test_a_real_one_starts_what_is_wanted(shared: Callable[[str], Path], replay: str) -> None:
    folder = shared(f"oracles/slurm24/{replay}")
    record = read_record(folder / "record.json.gz")
    # On the record's fast clock the settings are the case's, sped up.
    slow = Priority(age=1000, job_size=1000, max_age=7200.0, calculation_period=60.0)
    site = dataclasses.replace(recorded(folder), priority=slow)
    some = random.Random(1).sample([job.id for job in record.jobs], 10)
    result = forced(record, wanted_by(site, record), only=some)
    assert [start.job for start in result.starts if not start.wanted] == []


@pytest.mark.parametrize(
    ("settings", "threads"),
    [
        ("SelectTypeParameters=CR_Core", 2),
        ("SelectTypeParameters=CR_Core_Memory", 2),
        # Cores have one job here, too (seen with 22.05), but jobs count with the threads that they ask for.
        ("SelectTypeParameters=CR_CPU", 2),
        ("SelectType=select/linear", 1),
    ],
)
def test_an_import_has_the_threads_where_cores_are_given_whole(tmp_path: Path, settings: str, threads: int) -> None:
    (tmp_path / "slurm.conf").write_text(
        f"ClusterName=a\n{settings}\nNodeName=n1 CPUs=8 CoresPerSocket=4 ThreadsPerCore=2\nPartitionName=p Nodes=n1\n"
    )
    site = import_slurm(tmp_path / "slurm.conf", Reports(), Clock(), "24.11")[0]
    assert (site.nodes[0].cores, site.nodes[0].threads) == (8, threads)
    assert [one.value for one in site.not_modelled] == ["CR_CPU"] * ("CR_CPU" in settings)


def test_cpus_that_are_cores_have_no_threads(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=a\nNodeName=n1 CPUs=4 CoresPerSocket=4 ThreadsPerCore=2\nPartitionName=p Nodes=n1\n"
    )
    site = import_slurm(tmp_path / "slurm.conf", Reports(), Clock(), "24.11")[0]
    assert (site.nodes[0].cores, site.nodes[0].threads) == (4, 1)


def test_a_partition_of_nodes_that_differ_has_the_fewest_threads() -> None:
    site = site_of(NodeGroup("a1", 4, threads=2), NodeGroup("b1", 4))
    assert threads_of(lay_out(site)).tolist() == [1]


def test_cores_that_are_no_multiple_are_refused() -> None:
    site = site_of(NodeGroup("n1", 5, threads=2))
    refused(SiteError, "site.toml n1 5 2", check_site, site, "site.toml")
