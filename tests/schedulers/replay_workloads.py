"""Seeded workloads for replays: a burst, then a stream that is more than the machine can do; some hours in all."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from schedulers.record import Job

# On every Debian, so that jobs can run as them.
USERS = ("daemon", "bin", "sys", "games", "man")
Change = Callable[[random.Random, dict[str, Any]], None]


def make_jobs(
    seed: int,
    count: int = 120,
    *,
    nodes: int = 16,
    cores: int = 1,
    load: float = 1.25,
    changes: Sequence[Change] = (),
) -> tuple[Job, ...]:
    """Return jobs for ``nodes`` nodes of ``cores`` cores.

    Three in ten take one node, the others up to all of them, small ones more often; run times are log-normal about 4
    minutes, from 1 to 45; limits are whole minutes, from little more to eight times as much. A quarter comes at once.

    Parameters
    ----------
    load : float
        Work that comes with the stream / what the machine can do meanwhile.
    changes : sequence of functions
        Each gets the random numbers and the fields of a job, in turn, and may change them.
    """
    draw = random.Random(seed)
    rows = [_draw_job(draw, nodes, cores) for _ in range(count)]
    for change in changes:
        for row in rows:
            change(draw, row)
    burst = count // 4
    work = sum(_share(row, cores) * int(row["run_time"]) for row in rows[burst:])
    span = work / (nodes * load)
    moments = [0] * burst + sorted(int(draw.uniform(0, span)) for _ in range(count - burst))
    return tuple(
        Job(id=number, submit=moment, **row)
        for number, (moment, row) in enumerate(zip(moments, rows, strict=True), start=1)
    )


def _draw_job(draw: random.Random, nodes: int, cores: int) -> dict[str, Any]:
    width = 1 if draw.random() < 0.3 else int(2 ** draw.uniform(0, math.log2(nodes + 1)))
    run_time = int(min(max(draw.lognormvariate(math.log(240), 0.9), 60), 2700))
    # What a start and an end take on the false clock must not end a job by its limit.
    limit = math.ceil((run_time * math.exp(draw.uniform(math.log(1.05), math.log(8))) + 60) / 60) * 60
    user = draw.choices(USERS, weights=(5, 3, 2, 2, 1))[0]
    return {"run_time": run_time, "limit": limit, "nodes": width, "cores": width * cores, "user": user}


def _share(row: dict[str, Any], cores: int) -> float:
    """Return how many nodes' worth of cores a job takes."""
    return int(row["cores"]) / cores


def of_users(field: str, names: dict[str, str]) -> Change:
    """Give jobs what their user has: an account, a QOS."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        row[field] = names[row["user"]]

    return change


def at_random(field: str, values: Sequence[object], weights: Sequence[float]) -> Change:
    """Give jobs one of ``values``."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        row[field] = draw.choices(values, weights=weights)[0]

    return change


def no_wider(limit: int, cores: int, *, partition: str = "") -> Change:
    """Let jobs, of a partition, ask for at most ``limit`` nodes."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if not partition or row.get("partition") == partition:
            row["nodes"] = min(int(row["nodes"]), limit)
            row["cores"] = int(row["nodes"]) * cores

    return change


def parts_of_nodes(cores: int, share: float = 0.4) -> Change:
    """Let more jobs ask for one node, and those for some of its cores; a job of several nodes has all of theirs.

    So a record that names the nodes of a job says how many cores it has on each.
    """

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if row["nodes"] == 1 or draw.random() < share:
            row["nodes"], row["cores"] = 1, draw.randint(1, cores)

    return change


def with_memory(sizes: Sequence[int], weights: Sequence[float]) -> Change:
    """Let jobs ask for one of ``sizes`` MB on each node."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        row["memory"] = int(row["nodes"]) * draw.choices(sizes, weights=weights)[0]

    return change


def with_gpus(most: int, share: float = 0.5) -> Change:
    """Let a share of the jobs ask for GPUs and as many cores: some of a node's, or all of two nodes."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if draw.random() < share:
            nodes = 1 if draw.random() < 0.8 else 2
            gpus = draw.randint(1, most) if nodes == 1 else most
            row |= {"nodes": nodes, "cores": nodes * gpus, "gpus": nodes * gpus}

    return change


def beginning_later(share: float, most: int) -> Change:
    """Let a share of the jobs be eligible only up to ``most`` seconds after the origin."""

    def change(draw: random.Random, row: dict[str, Any]) -> None:
        if draw.random() < share:
            row["eligible"] = draw.randint(60, most)

    return change


def in_chains(jobs: Sequence[Job], seed: int, share: float = 0.4) -> tuple[Job, ...]:
    """Let a share of the jobs wait for one of the ten before them, in turn for its end and for its success."""
    draw, result = random.Random(seed), list[Job]()
    for job in jobs:
        kind = ("afterany", "afterok")[job.id % 2]
        waits = job.id > 1 and draw.random() < share
        before = max(job.id - draw.randint(1, 10), 1)
        result.append(dataclasses.replace(job, dependency=f"{kind}:{before}") if waits else job)
    return tuple(result)


def in_arrays(jobs: Sequence[Job], size: int, limits: Sequence[int]) -> tuple[Job, ...]:
    """Make every other ``size`` jobs in a row the tasks of an array, which differ in their run times alone.

    Parameters
    ----------
    limits : sequence of int
        How many tasks may run at once (0: all), in turn.
    """
    result = list[Job]()
    for number, begin in enumerate(range(0, len(jobs), size)):
        first, tasks = jobs[begin], jobs[begin : begin + size]
        if number % 2 == 0:
            result += tasks
            continue
        most = limits[number // 2 % len(limits)]
        result += [
            dataclasses.replace(
                first,
                id=job.id,
                run_time=min(job.run_time, first.limit - 60),
                array=first.id,
                array_limit=most,
            )
            for job in tasks
        ]
    return tuple(result)
