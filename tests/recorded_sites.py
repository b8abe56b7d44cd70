"""A site of the tests, and logs whose recorded starts are simulated ones: of it, with a limit more, with nodes away."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.site.model import Association, Limits, NodeGroup, Outage, Partition, Priority, Qos, Site
from policyfactory.workload.jobs import Requests, Workload

__all__ = ["DOWN", "JOBS", "LIMITED", "SITE", "recorded", "recorded_on", "submitted", "with_strangers"]

BEGIN = 1_700_000_000
JOBS = 600
SITE = Site(
    "small",
    (NodeGroup("n[01-16]", cores=8),),
    (Partition("batch", nodes="n[01-12]", default=True), Partition("short", nodes="n[13-16]")),
    qos=(Qos("normal"), Qos("high", priority=10)),
    priority=Priority(qos=1000, age=100),
)
LIMITED = dataclasses.replace(
    SITE,
    qos=(Qos("normal", total=Limits(jobs=6)), Qos("high", priority=10)),
    associations=(Association("lab"), *(Association("lab", f"u{number}") for number in range(12))),
    enforced=("limits",),
)
DOWN = dataclasses.replace(SITE, outages=(Outage("n[01-06]", BEGIN + 40_000, drained=True),))


def with_starts(jobs: Workload, site: Site) -> Workload:
    """Return jobs whose log has the starts of a simulated site."""
    return dataclasses.replace(jobs, start=run_slurm(jobs, site).start)


@functools.cache
def submitted() -> Workload:
    """Return jobs that want a little less than the site has, in bursts, in two partitions and two QOS, by 12 users."""
    rng = np.random.default_rng(7)
    number = np.arange(JOBS)
    short = number % 5 == 0
    cores = np.where(short, rng.integers(1, 9, JOBS), 1 << rng.integers(0, 6, JOBS))
    run_time = np.where(short, rng.integers(60, 1800, JOBS), rng.integers(60, 10_000, JOBS))
    user = rng.integers(0, 12, JOBS)
    requests = dataclasses.replace(
        Requests.unknown(JOBS),
        partition=short.astype(np.int64),
        qos=(number % 4 == 0).astype(np.int64),
        account=np.zeros(JOBS, dtype=np.int64),
        user_name=user,
        names={
            "account": ("lab",),
            "partition": ("batch", "short"),
            "qos": ("normal", "high"),
            "user": tuple(f"u{number}" for number in range(12)),
        },
    )
    submit = np.sort(rng.integers(0, 60, JOBS) + 9_000 * rng.integers(0, 24, JOBS))
    return Workload(
        "log",
        128,
        number + 1,
        submit,
        run_time,
        run_time * 2,
        cores,
        user,
        np.full(JOBS, -1),
        unix_start=BEGIN,
        requests=requests,
    )


@functools.cache
def recorded_on(name: str) -> Workload:
    return with_starts(submitted(), {"site": SITE, "limited": LIMITED, "down": DOWN}[name])


def recorded() -> Workload:
    return recorded_on("site")


@functools.cache
def with_strangers(count: int) -> Workload:
    """Return the log of `recorded` in which every tenth job, ``count`` in all, is of a partition that SITE lacks."""
    jobs = recorded()
    assert jobs.requests is not None
    names = {**jobs.requests.names, "partition": ("batch", "short", "old")}
    partition = jobs.requests.partition.copy()
    partition[9 : 10 * count : 10] = 2
    return dataclasses.replace(jobs, requests=dataclasses.replace(jobs.requests, partition=partition, names=names))
