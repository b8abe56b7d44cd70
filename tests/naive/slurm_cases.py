"""Small sites, and who is asked what Slurm does on them: add an implementation here and all drawn schedules test it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pytest

from naive import slurm
from naive.slurm import Job
from naive.slurm_workload import run_fast
from policyfactory.site.model import VERSIONS, NodeGroup, Partition, Scheduling, Site
from support import OTHER_KERNEL

__all__ = ["IMPLEMENTATIONS", "TIMES", "TIMES_OF_OTHER_KERNEL", "batch", "job", "scheduling"]

Simulate = Callable[..., dict[int, object]]


def _by_rules_of(version: str, simulate: Simulate) -> Simulate:
    def simulated(site: Site, jobs: Sequence[Job], **more: object) -> dict[int, object]:
        passes = dataclasses.replace(site.scheduling, slurm_version=version)
        return simulate(dataclasses.replace(site, scheduling=passes), jobs, **more)

    simulated.version = version
    return simulated


def _of_each_version(simulate: Simulate, name: str, *marks: pytest.MarkDecorator) -> list[object]:
    return [pytest.param(_by_rules_of(version, simulate), id=f"{name}-{version}", marks=marks) for version in VERSIONS]


# (site, jobs, begin=..., turnround=...) -> what became of each job, by id.
IMPLEMENTATIONS = _of_each_version(slurm.simulate, "plain")
# Those and the one that does not say on which nodes.
TIMES = [*IMPLEMENTATIONS, *_of_each_version(run_fast, "fast")]
TIMES_OF_OTHER_KERNEL = [*IMPLEMENTATIONS, *_of_each_version(run_fast, "fast", OTHER_KERNEL)]


def batch(nodes: int, **more: object) -> Site:
    """Return a site of nodes of one core, in one partition called batch that gives whole nodes."""
    more.setdefault("partitions", (Partition("batch", exclusive=True),))
    return Site("drawn", (NodeGroup(f"n[1-{nodes}]"),), **more)


def scheduling(**settings: object) -> dict[str, Scheduling]:
    """Return Slurm's defaults but for these settings, to be given to a site."""
    return {"scheduling": Scheduling(**settings)}


def job(id_: int, submit: int, run_time: int, minutes: int, nodes: int = 1, **more: object) -> Job:
    """Return a job of whole nodes of one core."""
    return Job(id_, submit, run_time, minutes * 60, nodes, max(nodes, 1), **more)
