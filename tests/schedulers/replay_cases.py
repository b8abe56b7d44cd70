"""The cases that are replayed on a real slurmctld: each stands for a rule, and has a workload of its own seed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from policyfactory.exports.content import TARGETS, ExportSite
from policyfactory.exports.sample import ExportSample
from policyfactory.policy.policy import Epoch
from policyfactory.policy.store import resolve_model
from policyfactory.site.model import (
    Association,
    Limits,
    NodeGroup,
    Outage,
    Partition,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Site,
)
from schedulers.record import Job
from schedulers.replay import BEGIN, Case
from schedulers.replay_workloads import (
    USERS,
    at_random,
    beginning_later,
    in_arrays,
    in_chains,
    make_jobs,
    no_wider,
    of_users,
    parts_of_nodes,
    with_gpus,
    with_memory,
)

SINGLE = (NodeGroup("n[1-16]", cores=1),)
SHARED = (NodeGroup("n[1-8]", cores=4, memory=16_000),)
BATCH = (Partition("batch", default=True),)
FIFO = Priority("basic")
ACCOUNTS = dict(zip(USERS, ("physics", "physics", "chemistry", "chemistry", "guests"), strict=True))
ENFORCED = ("associations", "limits", "qos")


def plain(**scheduling: object) -> Site:
    """Return sixteen nodes of one core, first come, first served."""
    return Site("test", SINGLE, BATCH, priority=FIFO, scheduling=Scheduling(**scheduling))


def users_of_accounts(*, shares: Mapping[str, float] | None = None, **users: object) -> tuple[Association, ...]:
    accounts = tuple(Association(name, shares=(shares or {}).get(name, 1.0)) for name in sorted(set(ACCOUNTS.values())))
    return accounts + tuple(Association(account, user, account, **users) for user, account in ACCOUNTS.items())


def policy_lua(name: str) -> str:
    """Return the export of a policy that Slurm loads, for jobs like those of `make_jobs`."""
    draw = np.random.default_rng(1)
    count = 2_000
    limit = np.clip(np.exp(draw.normal(math.log(600), 1.2, count)), 60, 21_600)
    sample = ExportSample(
        np.ceil(limit / 60) * 60.0,
        np.floor(2 ** draw.uniform(0, 4, count)),
        draw.uniform(1, 21_600, count),
        np.zeros(count),
        "jobs of the replays",
    )
    model = resolve_model(name)
    model = dataclasses.replace(model, policy=dataclasses.replace(model.policy, epoch=Epoch("fixed", BEGIN)))
    return TARGETS["slurm-site-factor-lua"].make(model, ExportSite(lambda: sample, 16)).text


def _plain_cases() -> dict[str, tuple[Site, tuple[Job, ...]]]:
    return {
        "fifo": (plain(), make_jobs(1)),
        "fifo-easy": (plain(bf_job_part_count_reserve=1), make_jobs(2)),
        "fifo-interval-5": (plain(bf_interval=5.0), make_jobs(3)),
        "fifo-easy-interval-5": (plain(bf_interval=5.0, bf_job_part_count_reserve=1), make_jobs(4)),
        "fifo-builtin": (plain(backfill=False), make_jobs(5, 80)),
        "fifo-max-job-test": (plain(bf_max_job_test=8), make_jobs(6)),
        "fifo-window": (plain(bf_window=1800.0), make_jobs(7)),
        "fifo-resolution": (plain(bf_resolution=600.0), make_jobs(8)),
        "fifo-max-job-user": (plain(bf_max_job_user=2), make_jobs(9)),
        "begin": (plain(), make_jobs(10, changes=[beginning_later(0.3, 7200)])),
        "dependencies": (plain(), in_chains(make_jobs(28), 28)),
        "arrays": (plain(), in_arrays(make_jobs(29, changes=[no_wider(6, 1)]), 8, (0, 2, 3))),
    }


def _partition_cases() -> dict[str, tuple[Site, tuple[Job, ...]]]:
    halves = (Partition("batch", "n[1-10]", default=True), Partition("other", "n[11-16]"))
    overlap = (Partition("batch", "n[1-12]", default=True), Partition("other", "n[7-16]"))
    tiers = (Partition("batch", default=True), Partition("urgent", "n[5-16]", tier=10))
    limited = (
        Partition("batch", default=True, job_factor=10, max_time=3600.0, max_nodes=8),
        Partition("other", job_factor=100, min_nodes=2, qos="part"),
    )
    split = at_random("partition", ("batch", "other"), (0.6, 0.4))
    weights = Priority(partition=10_000, max_age=21_600.0, age=1000)
    short = [
        at_random("limit", (600, 1200, 1800, 3600), (1, 1, 1, 1)),
        at_random("run_time", (60, 200, 400), (1, 1, 1)),
    ]
    return {
        "partitions-disjoint": (
            dataclasses.replace(plain(), partitions=halves),
            make_jobs(11, changes=[split, no_wider(10, 1), no_wider(6, 1, partition="other")]),
        ),
        "partitions-overlapping": (
            dataclasses.replace(plain(), partitions=overlap),
            make_jobs(12, changes=[split, no_wider(12, 1), no_wider(10, 1, partition="other")]),
        ),
        "tiers": (
            dataclasses.replace(plain(), partitions=tiers),
            make_jobs(
                13,
                changes=[
                    at_random("partition", ("batch", "urgent"), (0.75, 0.25)),
                    no_wider(12, 1, partition="urgent"),
                ],
            ),
        ),
        "partition-limits": (
            dataclasses.replace(
                plain(),
                partitions=limited,
                priority=weights,
                qos=(Qos("normal"), Qos("part", total=Limits(cores=6))),
                associations=users_of_accounts(qos=("normal",)),
                enforced=ENFORCED,
            ),
            make_jobs(
                14,
                changes=[
                    *short,
                    at_random("partition", ("batch", "other"), (0.7, 0.3)),
                    no_wider(8, 1),
                    no_wider(6, 1, partition="other"),
                    _at_least_two,
                ],
            ),
        ),
    }


def _at_least_two(draw: object, row: dict[str, Any]) -> None:
    """Let jobs of the partition other ask for two nodes or more: it takes no others."""
    if row["partition"] == "other":
        row["nodes"] = row["cores"] = max(int(row["nodes"]), 2)


def _limit_cases() -> dict[str, tuple[Site, tuple[Job, ...]]]:
    both = ("normal", "high")
    qos = at_random("qos", both, (0.8, 0.2))

    def limited(normal: Qos, high: Qos, **more: object) -> Site:
        return dataclasses.replace(
            plain(),
            priority=Priority(qos=10_000, age=1000, max_age=21_600.0),
            qos=(normal, high),
            associations=users_of_accounts(qos=both, **more),
            enforced=ENFORCED,
        )

    shares = {"physics": 5.0, "chemistry": 3.0, "guests": 1.0}
    bounded = tuple(
        dataclasses.replace(entry, total=Limits(cores=9, jobs=5))
        if entry.account == "physics" and not entry.user
        else entry
        for entry in users_of_accounts(qos=("normal",), own=Limits(jobs=2))
    )
    return {
        "multifactor": (
            dataclasses.replace(
                plain(), priority=Priority(age=10_000, job_size=5000, max_age=7200.0, calculation_period=60.0)
            ),
            make_jobs(15),
        ),
        "qos-priority": (limited(Qos("normal"), Qos("high", priority=100)), make_jobs(16, changes=[qos])),
        "qos-group": (
            limited(Qos("normal", total=Limits(cores=12)), Qos("high", priority=100, total=Limits(cores=4, jobs=3))),
            make_jobs(17, changes=[no_wider(12, 1), qos, _narrow_high]),
        ),
        "qos-user": (
            limited(Qos("normal", per_user=Limits(cores=8)), Qos("high", priority=100, per_user=Limits(jobs=1))),
            make_jobs(18, changes=[no_wider(8, 1), qos]),
        ),
        "associations": (
            dataclasses.replace(
                plain(),
                priority=Priority(age=1000, max_age=21_600.0),
                qos=(Qos("normal"),),
                associations=bounded,
                enforced=ENFORCED,
            ),
            make_jobs(19, 100, changes=[no_wider(9, 1)]),
        ),
        "fair-share": (
            dataclasses.replace(
                plain(),
                priority=Priority(
                    fair_share=100_000, age=1000, max_age=21_600.0, calculation_period=60.0, half_life=3600.0
                ),
                qos=(Qos("normal"),),
                associations=users_of_accounts(shares=shares, qos=("normal",)),
                enforced=ENFORCED,
            ),
            make_jobs(20, changes=[of_users("account", ACCOUNTS)]),
        ),
    }


def _narrow_high(draw: object, row: dict[str, Any]) -> None:
    """Let jobs of QOS high fit its four cores."""
    if row["qos"] == "high":
        row["nodes"] = row["cores"] = min(int(row["nodes"]), 4)


def _node_cases() -> dict[str, tuple[Site, tuple[Job, ...]]]:
    shared = Site("test", SHARED, BATCH, priority=FIFO)
    memory = dataclasses.replace(shared, scheduling=Scheduling(select="cores+memory", default_memory_per_core=1000))
    gpus = dataclasses.replace(
        memory, nodes=(NodeGroup("n[1-5]", 4, 16_000), NodeGroup("n[6-8]", 4, 16_000, gpus=4, weight=10))
    )
    eight = {"nodes": 8, "cores": 4, "load": 1.4}
    parts = parts_of_nodes(4)
    sizes = with_memory((500, 2000, 6000, 14_000), (3, 3, 2, 1))
    return {
        "shared-nodes": (shared, make_jobs(21, 140, changes=[parts], **eight)),
        "memory": (memory, make_jobs(22, 140, changes=[parts, sizes], **eight)),
        "gpus": (gpus, make_jobs(23, 140, changes=[parts, with_gpus(4, 0.35), sizes], **eight)),
        "exclusive": (
            shared,
            make_jobs(24, changes=[parts, at_random("exclusive", (False, True), (0.7, 0.3))], **eight),
        ),
        "reservation": (
            dataclasses.replace(
                plain(),
                reservations=(
                    Reservation("maintenance", "n[1-8]", 3600.0, 5400.0),
                    Reservation("all", "n[1-16]", 9000.0, 9900.0, known=4000.0),
                ),
            ),
            make_jobs(25),
        ),
        "down": (
            dataclasses.replace(plain(), outages=(Outage("n[3-5]", 1800.0, 4500.0), Outage("n9", 3000.0, 6000.0))),
            make_jobs(26, changes=[no_wider(12, 1)]),
        ),
        "drained": (
            dataclasses.replace(plain(), outages=(Outage("n[1-4]", 1500.0, 5000.0, drained=True),)),
            make_jobs(27, changes=[no_wider(12, 1)]),
        ),
    }


# A policy each, first with Slurm's own planning, then as EASY.
POLICIES = {
    "policy-F1": ("F1", {}),
    "policy-SPF": ("SPF", {}),
    "policy-SAF": ("SAF", {}),
    "policy-SAF-easy": ("SAF", {"bf_job_part_count_reserve": 1}),
}


def _policy_case(name: str, number: int) -> Case:
    policy, parameters = POLICIES[name]
    site = dataclasses.replace(plain(**parameters), priority=Priority())
    return Case(name, site, make_jobs(30 + number), policy_lua(policy))


def _cases() -> dict[str, Callable[[], Case]]:
    tables = (_plain_cases(), _partition_cases(), _limit_cases(), _node_cases())
    result: dict[str, Callable[[], Case]] = {}
    for table in tables:
        for name, (site, jobs) in table.items():
            result[name] = lambda name=name, site=site, jobs=jobs: Case(name, site, jobs)
    for number, name in enumerate(POLICIES):
        result[name] = lambda name=name, number=number: _policy_case(name, number)
    return result


# By name; a case is made when it is asked for.
CASES = _cases()
