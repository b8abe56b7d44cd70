"""What holds of any schedule by Slurm's rules, on sites and workloads drawn at random."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from naive.slurm import Job
from naive.slurm_cases import IMPLEMENTATIONS
from naive.slurm_random import BEGIN, FEATURES, draw
from policyfactory.site.fits import node_numbers
from policyfactory.site.model import Scheduling, Site
from support import seeds

pytestmark = pytest.mark.parametrize("simulate", IMPLEMENTATIONS)
DAILY = (3, 28)  # which have all features between them
SEEDS = seeds(DAILY, 20, 80)


def has(site: Site, jobs: list[Job]) -> set[str]:
    """Return which features a drawn case has, by what it consists of."""
    found = {
        "cores": len({one.cores for one in site.nodes}) > 1,
        "memory": site.scheduling.select == "cores+memory",
        "gpus": any(job.gpus for job in jobs),
        "weights": len({one.weight for one in site.nodes}) > 1,
        "partitions": len(site.partitions) > 1,
        "limits": bool(site.enforced),
        "shares": site.priority.fair_share > 0,
        "age": site.priority.age > 0,
        "reservations": bool(site.reservations),
        "outages": bool(site.outages),
        "eligible": any(job.after > 0 for job in jobs),
        "plan": site.scheduling.bf_interval != Scheduling().bf_interval or not site.scheduling.backfill,
        "arrays": any(job.array > 0 for job in jobs),
    }  # fmt: skip
    return {name for name, there in found.items() if there}


def test_the_cases_of_every_change_have_all_features(simulate: object) -> None:
    del simulate
    assert has(*draw(DAILY[0])) | has(*draw(DAILY[1])) == set(FEATURES)


@pytest.mark.parametrize("seed", SEEDS)
def test_schedules_are_possible(simulate: Callable[..., dict[int, object]], seed: int) -> None:
    site, jobs = draw(seed)
    schedule = simulate(site, jobs, begin=BEGIN, turnround=seed % 3)
    assert set(schedule) == {job.id for job in jobs}
    assert any(placed.start >= 0 for placed in schedule.values())
    for job in jobs:
        placed = schedule[job.id]
        if placed.start >= 0:
            check_one(site, job, placed, schedule, seed % 3)
    check_use(site, jobs, schedule, seed % 3)


def check_one(site: Site, job: Job, placed: object, schedule: dict[int, object], turnround: int) -> None:
    partition = next(part for part in site.partitions if part.name == job.partition)
    members = set(node_numbers(site, partition.nodes).tolist())
    assert placed.by in {"main", "backfill"}
    assert placed.start >= max(job.submit, job.eligible)
    assert placed.start < placed.end <= placed.start + max(job.run_time, 1)
    assert set(placed.nodes) <= members
    assert len(placed.nodes) == len(set(placed.nodes))
    assert len(placed.nodes) == (job.nodes if job.nodes > 0 and not job.gpus else len(placed.nodes))
    assert len(placed.nodes) <= partition.max_nodes
    before = schedule[job.after] if job.after > 0 else None
    if before is not None and before.start >= 0 and not placed.requeues and not before.requeues:
        assert placed.start >= before.end + turnround
    for one in site.outages:
        if set(placed.nodes) & set(node_numbers(site, one.nodes).tolist()):
            assert not one.start <= placed.start < one.end


def check_use(site: Site, jobs: list[Job], schedule: dict[int, object], turnround: int) -> None:
    """No node has a job beside one that shares with nobody, nor more jobs than cores, at the start of any job."""
    cores = [group.cores for group in site.nodes]
    whole = {part.name: part.exclusive for part in site.partitions}
    for job in jobs:
        now = schedule[job.id].start
        for node in schedule[job.id].nodes:
            there = [
                other
                for other in jobs
                if node in schedule[other.id].nodes
                and schedule[other.id].start <= now < schedule[other.id].end + turnround
            ]
            assert len(there) <= cores[node]
            if job.exclusive or whole[job.partition]:
                assert len(there) == 1
