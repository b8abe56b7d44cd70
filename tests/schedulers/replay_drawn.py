"""Cases drawn at random, ``drawn-1`` and so on: a site and 80 jobs that mix some of the rules of the other cases.

Nobody chose them, so what the replays of them find is not what somebody thought of. Every job fits into its partition
and below each limit: none waits for ever.
"""

from __future__ import annotations

import dataclasses
import random
import re
from typing import Any

from policyfactory.site.model import Limits, NodeGroup, Outage, Partition, Priority, Qos, Reservation, Scheduling, Site
from schedulers.record import Job
from schedulers.replay import Case
from schedulers.replay_cases import FIFO, SHARED, SINGLE, users_of_accounts
from schedulers.replay_mixed import BOTH, COUNT, EIGHT, SHARES, SIZES, in_some_chains, site_with_accounts, to_accounts
from schedulers.replay_workloads import (
    Change,
    at_random,
    beginning_later,
    in_arrays,
    make_jobs,
    no_wider,
    parts_of_nodes,
    with_gpus,
)

FEATURES = (
    "shared", "memory", "gpus", "tasks", "exclusive", "partitions", "qos", "accounts", "fair share", "age", "sizes",
    "arrays", "chains", "begin", "reservation", "outage", "plan",
)  # fmt: skip
_NAME = re.compile(r"drawn-(\d{1,9})")


def seed_of(name: str) -> int | None:
    """Return the number of a drawn case; None if the name is another's."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def drawn(seed: int) -> Case:
    """Return a case with three to eight of the `FEATURES`."""
    draw = random.Random(f"a replay, drawn {seed}")
    has = set(draw.sample(FEATURES, draw.randint(3, 8)))
    # On eight nodes of four cores, or on sixteen of one.
    shared = bool(has & {"shared", "memory", "gpus", "tasks", "exclusive"})
    site = _site(draw, has, shared=shared)
    jobs = make_jobs(seed, COUNT, changes=_changes(draw, has, shared=shared), **(EIGHT if shared else {}))
    return Case(f"drawn-{seed}", site, _linked(draw, has, jobs))


def _site(draw: random.Random, has: set[str], *, shared: bool) -> Site:
    count, cores = (8, 4) if shared else (16, 1)
    nodes = SHARED if shared else SINGLE
    if "gpus" in has:
        weight = draw.choice((1, 10))
        groups = (("n[1-3]", 0, 1), ("n[4-6]", 2, weight), ("n[7-8]", 0, draw.choice((1, 5))))
        nodes = tuple(NodeGroup(names, 4, 16_000, gpus, of_group) for names, gpus, of_group in groups)
    more: dict[str, Any] = {"nodes": nodes, "priority": _priority(draw, has), "scheduling": _scheduling(draw, has)}
    if "partitions" in has:
        batch = Partition("batch", f"n[1-{count * 3 // 4}]", default=True, job_factor=draw.choice((1, 5)))
        other = Partition("other", f"n[{count // 2}-{count}]", job_factor=10, tier=draw.choice((1, 1, 5)))
        more["partitions"] = (batch, other)
    if "qos" in has:
        # A job has at most a quarter of the nodes.
        widest = count // 4 * cores
        normal = Limits(cores=draw.choice((widest, 2 * widest)), jobs=draw.choice((3, 6)))
        high = Qos("high", priority=100, per_user=Limits(jobs=draw.choice((1, 2, 4))))
        if draw.random() < 0.3:
            high = dataclasses.replace(high, flags=("NoReserve",))
        kind = draw.choice(("per_user", "total", "per_account"))
        more["qos"] = (Qos("normal", **{kind: normal}), high)
    if "accounts" in has:
        names = tuple(qos.name for qos in more.get("qos", (Qos("normal"),)))
        own = Limits(jobs=draw.choice((2, 3, 5)))
        more["associations"] = users_of_accounts(shares=SHARES, qos=names, own=own)
    if "reservation" in has:
        start = draw.randrange(900, 6000)
        hosts = draw.choice(("n[2-4]", f"n[{count // 2}-{count - 1}]", f"n[1-{count}]"))
        end, known = start + draw.randrange(600, 2400), draw.choice((0.0, start / 2))
        more["reservations"] = (Reservation("kept", hosts, float(start), float(end), known=float(known)),)
    if "outage" in has:
        start = draw.randrange(600, 4000)
        end, drained = start + draw.randrange(900, 3600), draw.random() < 0.5
        more["outages"] = (Outage(draw.choice(("n2", "n[3-4]")), float(start), float(end), drained=drained),)
    return site_with_accounts("test", **more)


def _priority(draw: random.Random, has: set[str]) -> Priority:
    if not has & {"fair share", "age", "sizes"}:
        return FIFO
    return Priority(
        fair_share=20_000 * ("fair share" in has),
        age=2000 * ("age" in has),
        job_size=1000 * ("sizes" in has),
        partition=2000 * ("partitions" in has),
        qos=5000 * ("qos" in has),
        max_age=draw.choice((7200.0, 21_600.0)),
        calculation_period=60.0,
        half_life=draw.choice((3600.0, 604_800.0)),
        favor_small=draw.random() < 0.3,
    )


def _scheduling(draw: random.Random, has: set[str]) -> Scheduling:
    plan: dict[str, Any] = {}
    if "memory" in has:
        plan = {"select": "cores+memory", "default_memory_per_core": 1000}
    if "plan" in has:
        choices: dict[str, tuple[float, ...]] = {
            "bf_max_job_test": (8, 15, 500), "bf_max_job_user": (0, 0, 3), "bf_max_job_part": (0, 0, 5),
            "bf_max_job_start": (0, 0, 2), "bf_job_part_count_reserve": (0, 0, 1), "bf_min_age_reserve": (0, 0, 600),
            "bf_window": (3600, 86_400), "bf_resolution": (60, 300), "bf_interval": (10, 30),
            "default_queue_depth": (5, 20, 100), "partition_job_depth": (0, 0, 6), "sched_max_job_start": (0, 0, 3),
        }  # fmt: skip
        plan |= {name: draw.choice(values) for name, values in choices.items()}
    return Scheduling(**plan)


def _changes(draw: random.Random, has: set[str], *, shared: bool) -> list[Change]:
    """Return what makes the jobs those of the site."""
    count, cores = (8, 4) if shared else (16, 1)
    widest = count // 4 if "qos" in has else count // 2
    changes = [no_wider(widest, cores), to_accounts]
    if shared:
        changes.append(parts_of_nodes(cores, draw.choice((0.4, 0.6))))
    if "tasks" in has:
        changes.append(_some_tasks(widest * cores))
    if "gpus" in has:
        changes.append(with_gpus(2, 0.35))
    if "memory" in has:
        changes.append(_memory)
    if "exclusive" in has:
        changes.append(at_random("exclusive", (False, True), (0.75, 0.25)))
    if "partitions" in has:
        changes.append(at_random("partition", ("batch", "other"), (0.6, 0.4)))
    if "qos" in has:
        changes.append(at_random("qos", BOTH, (0.75, 0.25)))
    if "begin" in has:
        changes.append(beginning_later(0.25, 5400))
    return changes


def _some_tasks(most: int) -> Change:
    """Let half of the jobs ask for tasks alone."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if draw.random() < 0.5:
            row["nodes"], row["cores"] = 0, min(draw.choice((1, 1, 2, 3, 5, 6, 7, 10, 12, 16)), most)

    return change


def _memory(draw: random.Random, row: dict[str, Any]) -> None:
    """Let a job ask for memory of each node, or of each task where it asks for no nodes."""
    if row["nodes"]:
        SIZES(draw, row)
    else:
        row["memory"] = row["cores"] * draw.choice((300, 900, 1900))


def _linked(draw: random.Random, has: set[str], jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return the jobs, some of them tasks of arrays, and some that wait for others."""
    if "arrays" in has:
        jobs = in_arrays(jobs, draw.randint(4, 8), (2, 0, 3))
    return in_some_chains(jobs, draw.randrange(1000)) if "chains" in has else jobs
