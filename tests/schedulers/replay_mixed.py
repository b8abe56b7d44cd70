"""Cases that mix rules which those of `schedulers.replay_cases` test singly: three or more in each, 80 jobs.

They are replayed on a modern Slurm (docs/fidelity.md).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

from policyfactory.site.model import (
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
from schedulers.replay import Case
from schedulers.replay_cases import ACCOUNTS, BATCH, ENFORCED, FIFO, SHARED, SINGLE, users_of_accounts
from schedulers.replay_workloads import (
    Change,
    at_random,
    beginning_later,
    in_arrays,
    make_jobs,
    no_wider,
    of_users,
    parts_of_nodes,
    with_gpus,
    with_memory,
)

COUNT = 80
SHARES = {"physics": 5.0, "chemistry": 3.0, "guests": 1.0}
EIGHT: dict[str, Any] = {"nodes": 8, "cores": 4, "load": 1.4}
BOTH = ("normal", "high")
FAIR = Priority(
    fair_share=20_000,
    age=2000,
    job_size=500,
    partition=2000,
    qos=5000,
    max_age=21_600.0,
    calculation_period=60.0,
    half_life=3600.0,
)
AGED = Priority(age=1000, job_size=1000, max_age=7200.0, calculation_period=60.0)
OVERLAP = (Partition("batch", "n[1-6]", default=True), Partition("other", "n[4-8]"))
MEMORY = Scheduling(select="cores+memory", default_memory_per_core=1000)
SIZES = with_memory((500, 2000, 6000, 14_000), (3, 3, 2, 1))
to_accounts = of_users("account", ACCOUNTS)
_QOS = at_random("qos", BOTH, (0.75, 0.25))


def _whole_nodes(most: int, *, partition: str = "") -> Change:
    """Let jobs of more nodes have ``most``, with all their cores."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if row["nodes"] > most and (not partition or row.get("partition") == partition):
            row["nodes"], row["cores"] = most, most * 4

    return change


def _tasks(sizes: Sequence[int], *, memory: Sequence[int] = ()) -> Change:
    """Let jobs ask for tasks alone, and for as much memory for each."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        row["nodes"], row["cores"] = 0, draw.choice(sizes)
        if memory:
            row["memory"] = row["cores"] * draw.choice(memory)

    return change


def _shorter(partition: str, seconds: int) -> Change:
    """Let jobs of a partition have no longer limits than it allows."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if row.get("partition", partition) == partition:
            row["limit"] = min(row["limit"], seconds)
            row["run_time"] = min(row["run_time"], row["limit"] - 60)

    return change


def in_some_chains(jobs: Sequence[Job], seed: int) -> tuple[Job, ...]:
    """Let two in five jobs that are no tasks of arrays wait for one of the fourteen before them."""
    draw, result = random.Random(seed), list[Job]()
    alone = [job.id for job in jobs if not job.array]
    for job in jobs:
        earlier = [number for number in alone if job.id - 14 <= number < job.id]
        if not job.array and earlier and draw.random() < 0.4:
            kind = ("afterany", "afterok")[job.id % 2]
            result.append(dataclasses.replace(job, dependency=f"{kind}:{draw.choice(earlier)}"))
        else:
            result.append(job)
    return tuple(result)


def site_with_accounts(name: str, **site: Any) -> Site:
    """Return a site with accounts and shares, and what else a case has."""
    site = {"partitions": BATCH, "priority": FAIR, "qos": (Qos("normal"),), "enforced": ENFORCED} | site
    if "associations" not in site:
        site["associations"] = users_of_accounts(shares=SHARES, qos=tuple(qos.name for qos in site["qos"]))
    return Site(name, **site)


def share_mix() -> Case:
    """Partitions that overlap, a QOS's priority and limits of its users, fair share, memory."""
    site = site_with_accounts(
        "test",
        nodes=SHARED,
        partitions=(OVERLAP[0], dataclasses.replace(OVERLAP[1], job_factor=10)),
        scheduling=MEMORY,
        qos=(Qos("normal", per_user=Limits(cores=12)), Qos("high", priority=100, per_user=Limits(jobs=2))),
    )
    split = at_random("partition", ("batch", "other"), (0.6, 0.4))
    changes = [split, parts_of_nodes(4, 0.6), _whole_nodes(6, partition="batch"), _whole_nodes(5, partition="other")]
    changes += [_whole_nodes(3), SIZES, _QOS, to_accounts]
    return Case("share-mix", site, make_jobs(101, COUNT, changes=changes, **EIGHT))


def arrays_deps_begin() -> Case:
    """Arrays of which two or three tasks may run, chains, begin times, fair share and age."""
    site = site_with_accounts("test", nodes=SINGLE, priority=dataclasses.replace(FAIR, partition=0, qos=0))
    jobs = make_jobs(103, COUNT, changes=[no_wider(8, 1), to_accounts, beginning_later(0.25, 5400)])
    return Case("arrays-deps-begin", site, in_some_chains(in_arrays(jobs, 8, (2, 0, 3)), 103))


def small_test_tiers() -> Case:
    """Few jobs are looked at; tiers, a QOS's priority, age, size."""
    parts = (
        Partition("batch", default=True, max_time=10_800.0),
        Partition("urgent", "n[5-16]", tier=10, max_time=5400.0),
    )
    site = site_with_accounts(
        "test",
        nodes=SINGLE,
        partitions=parts,
        priority=dataclasses.replace(FAIR, fair_share=0, partition=0),
        qos=(Qos("normal"), Qos("high", priority=100)),
        associations=users_of_accounts(qos=BOTH),
        scheduling=Scheduling(bf_max_job_test=10, bf_max_job_user=3, default_queue_depth=8),
    )
    changes = [at_random("partition", ("batch", "urgent"), (0.75, 0.25)), no_wider(12, 1)]
    changes += [_shorter("urgent", 5400), _shorter("batch", 10_800), _QOS]
    return Case("small-test-tiers", site, make_jobs(106, COUNT, changes=changes))


def tasks_only() -> Case:
    """Jobs that ask for tasks alone, on nodes that they share, in partitions that overlap."""
    site = Site("test", SHARED, OVERLAP, priority=AGED)

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        row["nodes"], row["cores"] = 0, draw.choice((1, 1, 2, 3, 5, 6, 7, 10, 12, 16))
        row["partition"] = draw.choice(("batch", "batch", "other"))

    return Case("tasks-only", site, make_jobs(109, COUNT, changes=[change], **EIGHT))


def qos_arrays_chains() -> Case:
    """Limits of a QOS in all and of its users, arrays, chains, age."""
    site = site_with_accounts(
        "test",
        nodes=SINGLE,
        priority=Priority(qos=10_000, age=1000, max_age=21_600.0),
        qos=(Qos("normal", total=Limits(cores=12)), Qos("high", priority=100, per_user=Limits(jobs=2))),
        associations=users_of_accounts(qos=BOTH),
    )
    jobs = in_arrays(make_jobs(201, COUNT, changes=[no_wider(8, 1), _QOS]), 6, (2, 3, 0))
    return Case("qos-arrays-chains", site, in_some_chains(jobs, 201))


def short_passes() -> Case:
    """Few jobs of a partition, and few in all, are looked at; partitions that overlap and have limits; fair share."""
    site = site_with_accounts(
        "test",
        nodes=SINGLE,
        partitions=(
            Partition("batch", "n[1-12]", default=True, max_time=7200.0),
            Partition("other", "n[7-16]", job_factor=5, max_time=5400.0, max_nodes=6),
        ),
        scheduling=Scheduling(bf_max_job_test=12, bf_max_job_part=5, default_queue_depth=10, partition_job_depth=6),
    )
    changes = [at_random("partition", ("batch", "other"), (0.6, 0.4)), no_wider(12, 1)]
    changes += [no_wider(6, 1, partition="other"), _shorter("batch", 7200), _shorter("other", 5400), to_accounts]
    return Case("short-passes", site, make_jobs(202, COUNT, changes=changes))


def gpus_fair_share() -> Case:
    """GPUs, memory, weights of nodes, fair share."""
    nodes = (NodeGroup("n[1-5]", 4, 16_000), NodeGroup("n[6-8]", 4, 16_000, gpus=4, weight=10))
    site = site_with_accounts("test", nodes=nodes, scheduling=MEMORY)
    changes = [parts_of_nodes(4), with_gpus(4, 0.35), SIZES, to_accounts]
    return Case("gpus-fair-share", site, make_jobs(203, COUNT, changes=changes, **EIGHT))


def reservations_begin() -> Case:
    """Maintenance of some nodes and of all, begin times, tiers, age."""
    site = site_with_accounts(
        "test",
        nodes=SINGLE,
        partitions=(Partition("batch", default=True), Partition("urgent", "n[5-16]", tier=10)),
        priority=dataclasses.replace(AGED, job_size=0),
        associations=users_of_accounts(qos=("normal",)),
        reservations=(
            Reservation("some", "n[3-8]", 2700.0, 4500.0),
            Reservation("all", "n[1-16]", 7200.0, 8100.0, known=3000.0),
        ),
    )
    changes = [at_random("partition", ("batch", "urgent"), (0.7, 0.3)), no_wider(12, 1), beginning_later(0.3, 6000)]
    return Case("reservations-begin", site, make_jobs(204, COUNT, changes=changes))


def exclusive_memory_tiers() -> Case:
    """Nodes for one job alone, memory, tiers of partitions that overlap, size."""
    parts = (OVERLAP[0], dataclasses.replace(OVERLAP[1], tier=5))
    site = Site("test", SHARED, parts, priority=AGED, scheduling=MEMORY)
    changes = [parts_of_nodes(4), at_random("partition", ("batch", "other"), (0.7, 0.3)), _whole_nodes(4)]
    changes += [at_random("exclusive", (False, True), (0.7, 0.3)), SIZES]
    return Case("exclusive-memory-tiers", site, make_jobs(205, COUNT, changes=changes, **EIGHT))


def accounts_partition_qos() -> Case:
    """Limits of accounts and of their users, a partition's own QOS, fair share."""
    limited = tuple(
        dataclasses.replace(entry, total=Limits(cores=9, jobs=5))
        if entry.account == "physics" and not entry.user
        else entry
        for entry in users_of_accounts(shares=SHARES, qos=("normal",), own=Limits(jobs=3))
    )
    site = site_with_accounts(
        "test",
        nodes=SINGLE,
        partitions=(Partition("batch", default=True), Partition("other", "n[7-16]", job_factor=10, qos="part")),
        qos=(Qos("normal"), Qos("part", total=Limits(cores=8), per_user=Limits(cores=6))),
        associations=limited,
    )
    changes = [at_random("partition", ("batch", "other"), (0.6, 0.4)), no_wider(9, 1)]
    changes += [no_wider(6, 1, partition="other"), to_accounts]
    return Case("accounts-partition-qos", site, make_jobs(206, COUNT, changes=changes))


def easy_outages() -> Case:
    """One reservation a partition, nodes that are shared, that fail and that are drained, age."""
    site = Site(
        "test",
        SHARED,
        OVERLAP,
        priority=AGED,
        scheduling=Scheduling(bf_job_part_count_reserve=1),
        outages=(Outage("n[2-3]", 1500.0, 4000.0), Outage("n7", 1200.0, 5000.0, drained=True)),
    )
    changes = [parts_of_nodes(4, 0.6), at_random("partition", ("batch", "other"), (0.6, 0.4)), _whole_nodes(3)]
    return Case("easy-outages", site, make_jobs(207, COUNT, changes=changes, **EIGHT))


def tasks_memory_weights() -> Case:
    """Tasks alone with memory for each, nodes of several sizes and weights, partitions that overlap."""
    nodes = (
        NodeGroup("n[1-3]", 4, 8000),
        NodeGroup("n[4-6]", 8, 16_000, weight=5),
        NodeGroup("n[7-8]", 2, 32_000, weight=3),
    )
    site = Site("test", nodes, OVERLAP, priority=AGED, scheduling=MEMORY)
    tasks = _tasks((1, 1, 2, 3, 4, 5, 6, 8, 11), memory=(300, 900, 1900))
    changes = [at_random("partition", ("batch", "other"), (0.6, 0.4)), tasks]
    return Case("tasks-memory-weights", site, make_jobs(208, COUNT, changes=changes, **EIGHT))


def window_begin_arrays() -> Case:
    """A short window of the plan in coarse steps, begin times, arrays, size."""
    site = Site("test", SINGLE, BATCH, priority=AGED, scheduling=Scheduling(bf_window=3600.0, bf_resolution=300.0))
    jobs = make_jobs(209, COUNT, changes=[no_wider(10, 1), beginning_later(0.25, 5000)])
    return Case("window-begin-arrays", site, in_arrays(jobs, 7, (3, 2)))


def users_few_starts() -> Case:
    """Few jobs of a user in a partition are looked at, few started by a pass; limits of users; tiers."""
    site = site_with_accounts(
        "test",
        nodes=SINGLE,
        partitions=(Partition("batch", default=True), Partition("urgent", "n[5-16]", tier=10)),
        qos=(Qos("normal", per_user=Limits(cores=10)), Qos("high", priority=100, per_user=Limits(jobs=2))),
        scheduling=Scheduling(bf_max_job_user_part=3, bf_max_job_start=2, sched_max_job_start=3),
    )
    changes = [at_random("partition", ("batch", "urgent"), (0.75, 0.25)), no_wider(8, 1), _QOS, to_accounts]
    return Case("users-few-starts", site, make_jobs(210, COUNT, changes=changes))


def no_reserve_young() -> Case:
    """A QOS that keeps no nodes, young jobs that keep none either, memory, fair share."""
    site = site_with_accounts(
        "test",
        nodes=SHARED,
        partitions=OVERLAP,
        scheduling=dataclasses.replace(MEMORY, bf_min_age_reserve=600.0),
        qos=(Qos("normal"), Qos("high", priority=100, flags=("NoReserve",), per_user=Limits(cores=8))),
    )
    changes = [at_random("partition", ("batch", "other"), (0.6, 0.4)), parts_of_nodes(4, 0.6), _whole_nodes(2)]
    changes += [SIZES, _QOS, to_accounts]
    return Case("no-reserve-young", site, make_jobs(211, COUNT, changes=changes, **EIGHT))


def gpus_exclusive_reservation() -> Case:
    """GPUs, nodes for one job alone, maintenance, chains, first come first served."""
    nodes = (NodeGroup("n[1-4]", 4, 16_000, weight=2), NodeGroup("n[5-8]", 4, 16_000, gpus=2, weight=5))
    site = Site(
        "test",
        nodes,
        BATCH,
        priority=FIFO,
        scheduling=MEMORY,
        reservations=(Reservation("some", "n[4-6]", 2000.0, 3500.0),),
    )
    changes = [
        parts_of_nodes(4),
        with_gpus(2, 0.4),
        at_random("exclusive", (False, True), (0.8, 0.2)),
        SIZES,
    ]
    jobs = make_jobs(212, COUNT, changes=changes, **EIGHT)
    return Case("gpus-exclusive-reservation", site, in_some_chains(jobs, 212))


_MADE: tuple[Callable[[], Case], ...] = (
    share_mix, arrays_deps_begin, small_test_tiers, tasks_only, qos_arrays_chains, short_passes, gpus_fair_share,
    reservations_begin, exclusive_memory_tiers, accounts_partition_qos, easy_outages, tasks_memory_weights,
    window_begin_arrays, users_few_starts, no_reserve_young, gpus_exclusive_reservation,
)  # fmt: skip
# By name, as `schedulers.replay_cases.CASES`.
MIXED: dict[str, Callable[[], Case]] = {make.__name__.replace("_", "-"): make for make in _MADE}
