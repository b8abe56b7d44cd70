"""Cases of settings that real sites use beside those of `schedulers.replay_cases`: 80 jobs each.

Lists of partitions, cores of two threads, what partitions give jobs that do not say it, billing weights, reservations
of users, tasks that wait for those of another array, jobs of which a user has one at a time, what a job may have of
each node, and QOS whose limits are per cent.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

from policyfactory.site.model import Limits, NodeGroup, Partition, Priority, Qos, Reservation, Scheduling, Site
from schedulers.replay import Case
from schedulers.replay_cases import BATCH, FIFO, SHARED, plain, users_of_accounts
from schedulers.replay_mixed import (
    AGED,
    BOTH,
    COUNT,
    EIGHT,
    FAIR,
    MEMORY,
    OVERLAP,
    SHARES,
    SIZES,
    site_with_accounts,
    to_accounts,
)
from schedulers.replay_workloads import (
    at_random,
    in_arrays,
    make_jobs,
    no_wider,
    parts_of_nodes,
    with_gpus,
    with_memory,
)

_GPUS = (NodeGroup("n[1-5]", 4, 16_000), NodeGroup("n[6-8]", 4, 16_000, gpus=2, weight=10))


def partition_lists() -> Case:
    """Jobs for either of two partitions that overlap, of which one is looked at first, among such for one."""
    tiers = (Partition("batch", "n[1-12]", default=True), Partition("other", "n[7-16]", tier=2))
    names = ("batch", "other", "batch,other", "other,batch")
    changes = [at_random("partition", names, (2, 1, 2, 1)), no_wider(10, 1)]
    site = dataclasses.replace(plain(), partitions=tiers)
    return Case("partition-lists", site, make_jobs(301, COUNT, changes=changes))


def lists_shared() -> Case:
    """The same with parts of nodes, and with priorities that change."""
    site = site_with_accounts("test", nodes=SHARED, partitions=OVERLAP)
    names = ("batch", "other", "batch,other", "other,batch")
    parts = [no_wider(5, 4), parts_of_nodes(4, 0.5), at_random("partition", names, (2, 1, 2, 1)), to_accounts]
    return Case("lists-shared", site, make_jobs(302, COUNT, changes=parts, **EIGHT))


def threads_memory() -> Case:
    """Cores of two threads, given whole, and memory of each node; half of the jobs take a part of one."""
    nodes = (NodeGroup("n[1-8]", cores=8, memory=16_000, threads=2),)
    site = Site("test", nodes, BATCH, priority=AGED, scheduling=MEMORY)
    sizes = with_memory((500, 2000, 6000, 14_000), (3, 3, 2, 1))
    jobs = make_jobs(309, COUNT, changes=[parts_of_nodes(8, 0.5), sizes], nodes=8, cores=8, load=1.4)
    return Case("threads-memory", site, jobs)


def partition_defaults() -> Case:
    """Memory of each node in one partition; memory and cores for each GPU in another."""
    partitions = (
        Partition("batch", "n[1-6]", default=True, default_memory_per_node=5000),
        Partition("gpu", "n[5-8]", default_memory_per_gpu=6000, default_cores_per_gpu=2),
    )
    site = Site("test", _GPUS, partitions, priority=FIFO, scheduling=Scheduling(select="cores+memory"))

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if draw.random() < 0.35:
            nodes, gpus = draw.choice(((1, 1), (1, 1), (1, 2), (2, 2)))
            row |= {"partition": "gpu", "nodes": nodes, "cores": nodes, "gpus": nodes * gpus}

    parts = [no_wider(6, 4), parts_of_nodes(4, 0.6), change]
    return Case("partition-defaults", site, make_jobs(303, COUNT, changes=parts, **EIGHT))


def billing_weights() -> Case:
    """Fair share by the largest of what cores, memory and GPUs count."""
    weights = {"cpu": 1.0, "mem": 0.001, "gres/gpu": 6.0}
    priority = dataclasses.replace(FAIR, flags=("MAX_TRES",))
    partitions = (Partition("batch", default=True, billing=weights),)
    plan = Scheduling(select="cores+memory", default_memory_per_core=1000)
    site = site_with_accounts("test", nodes=_GPUS, partitions=partitions, priority=priority, scheduling=plan)
    parts = [parts_of_nodes(4, 0.5), with_gpus(2, 0.35), SIZES, to_accounts]
    return Case("billing-weights", site, make_jobs(304, COUNT, changes=parts, **EIGHT))


def reservation_users() -> Case:
    """Nodes that are kept for two users, and jobs of theirs that ask for them.

    It lasts longer than they: Slurm kills a job at the end of its reservation.
    """
    kept = Reservation("course", "n[3-8]", 1800.0, 36_000.0, users=("daemon", "bin"), known=0.0)
    site = dataclasses.replace(plain(), reservations=(kept,))

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if row["user"] in kept.users and draw.random() < 0.5:
            nodes = min(row["nodes"], 6)
            row |= {"reservation": kept.name, "nodes": nodes, "cores": nodes}

    return Case("reservation-users", site, make_jobs(305, COUNT, changes=[no_wider(10, 1), change]))


def corresponding_tasks() -> Case:
    """Tasks that each wait for one of another array (aftercorr), and jobs of a user that run one at a time."""
    jobs, last = list(in_arrays(make_jobs(306, COUNT, changes=[no_wider(5, 1)]), 5, (0, 2))), dict[str, int]()
    arrays = sorted({job.array for job in jobs if job.array})
    follows = dict(zip(arrays[1::2], arrays[::2], strict=False))
    for place, job in enumerate(jobs):
        if job.array in follows:
            jobs[place] = dataclasses.replace(job, dependency=f"aftercorr:{follows[job.array] + job.id - job.array}")
        elif not job.array and job.user in {"sys", "games"}:
            jobs[place] = dataclasses.replace(job, dependency=f"singleton:{last.get(job.user, 0)}")
            last[job.user] = job.id
    site = dataclasses.replace(plain(), priority=Priority(age=1000, max_age=21_600.0, calculation_period=60.0))
    return Case("corresponding-tasks", site, tuple(jobs))


def node_limits() -> Case:
    """At most two cores of each node in one QOS; its jobs that ask for more wait for ever, and hold up nobody."""
    qos = (Qos("normal", per_node=Limits(cores=2)), Qos("high", priority=100))
    site = site_with_accounts("test", nodes=SHARED, qos=qos, priority=AGED)

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if row["qos"] == "normal":
            row["cores"] = row["nodes"] * draw.choice((1, 2))

    jobs = make_jobs(307, COUNT, changes=[at_random("qos", BOTH, (0.7, 0.3)), change, to_accounts], **EIGHT)
    beyond = [job for job in jobs if job.qos == "normal" and job.cores == 2 * job.nodes][:12:2]
    waiting = [dataclasses.replace(job, id=0, cores=3 * job.nodes, submit=job.submit // 2) for job in beyond]
    return Case("node-limits", site, jobs, waiting=tuple(waiting))


def relative_qos() -> Case:
    """QOS whose limits are per cent: one of the cluster's cores, one of those of the partition whose QOS it is."""
    partitions = (Partition("batch", "n[1-8]", default=True), Partition("other", "n[1-3]", qos="part"))
    per_cent = (
        Qos("high", priority=100, total=Limits(cores=30), per_user=Limits(cores=15), flags=("Relative",)),
        Qos("part", total=Limits(cores=60), flags=("Relative",)),
    )
    # Of 32 and of 12 cores, rounded down.
    qos = (
        Qos("normal"),
        Qos("high", priority=100, total=Limits(cores=9), per_user=Limits(cores=4)),
        Qos("part", total=Limits(cores=7)),
    )
    associations = users_of_accounts(shares=SHARES, qos=BOTH)
    site = site_with_accounts("test", nodes=SHARED, partitions=partitions, qos=qos, associations=associations)
    split, narrow = at_random("partition", ("batch", "other"), (0.6, 0.4)), no_wider(1, 4, partition="other")
    changes = [split, at_random("qos", BOTH, (0.6, 0.4)), narrow, parts_of_nodes(4, 0.5), _no_more_than_a_user_may]
    return Case(
        "relative-qos", site, make_jobs(308, COUNT, changes=[*changes, to_accounts], **EIGHT), per_cent=per_cent
    )


def _no_more_than_a_user_may(draw: random.Random, row: dict[str, Any]) -> None:
    if row["qos"] == "high" and row["cores"] > 4:
        row["nodes"], row["cores"] = 1, 4


_CASES: tuple[Callable[[], Case], ...] = (
    partition_lists, lists_shared, partition_defaults, billing_weights, reservation_users, corresponding_tasks,
    node_limits, relative_qos, threads_memory,
)  # fmt: skip
SETTINGS: dict[str, Callable[[], Case]] = {make.__name__.replace("_", "-"): make for make in _CASES}
