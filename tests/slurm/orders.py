"""Whether a real Slurm starts its jobs in the order of a formula: the proof that every Slurm route is put to.

A blocker holds the machine, fifty jobs of mixed shape are submitted in random order, the blocker ends; the order in
which slurmctld allocated them, from its log, must be that of the formula, and not submit order. With sched/builtin,
which lets no job pass another.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.exports.content import ExportSite
from policyfactory.exports.queue import Queue
from policyfactory.exports.sample import ExportSample
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import Model, resolve_model
from schedulers.processes import wait_for
from schedulers.slurm import Cluster
from support import ROOT

# The three of the proof; the last is a fitted one.
MODELS = ("F1", "SAF", str(ROOT / "models/ours/OURS-lin.json"))
NAMES = ("F1", "SAF", "Lin")


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """What a job asks for: processors and a time limit."""

    processors: int
    minutes: int


def mixed_shapes(count: int = 50, largest: int = 32, seed: int = 1) -> list[Shape]:
    """Return jobs of 1 to ``largest`` processors and 1 minute to 10 hours, in random order, small ones more often."""
    draw = random.Random(seed)
    return [
        Shape(int(2 ** draw.uniform(0, math.log2(largest))), int(math.exp(draw.uniform(0, math.log(600)))))
        for _ in range(count)
    ]


def model_of(name: str, epoch: int) -> Model:
    """Return a model of the proof, counting from ``epoch`` (Unix s)."""
    model = resolve_model(name)
    return dataclasses.replace(model, policy=dataclasses.replace(model.policy, epoch=Epoch("fixed", epoch)))


def recent_epoch() -> int:
    """Return a Unix time a minute ago: from it, the seconds between the submissions matter even under a logarithm."""
    return int(time.time()) - 60


def usual_site(processors: int = 64) -> ExportSite:
    """Return a site whose jobs are those of `mixed_shapes` and like them, submitted within a day after the epoch."""
    draw = np.random.default_rng(1)
    count = 5_000
    return ExportSite(
        lambda: ExportSample(
            np.ceil(np.exp(draw.uniform(0, math.log(600), count))) * 60.0,
            np.floor(2 ** draw.uniform(0, math.log2(processors), count)),
            draw.uniform(1, 86_400, count),
            np.zeros(count),
            "jobs of mixed shape",
        ),
        processors,
    )


def submit_plainly(cluster: Cluster, shape: Shape) -> int:
    """Submit a job as any user would."""
    return cluster.submit(shape.processors, shape.minutes, body="true")


def waiting(cluster: Cluster, jobs: Sequence[int]) -> Queue:
    """Return the waiting ones of ``jobs``, in this order, with what Slurm itself knows of them.

    The rest of an array has the array's id, a component of a heterogeneous job its own.
    """
    out = cluster.run(
        "squeue", "-h", "-a", "-t", "PD", "-o", "%A|%u|%l|%C|%V|%Q", environment={"SLURM_TIME_FORMAT": "%s"}
    )
    rows = {int(row[0]): row for row in (line.split("|") for line in out.splitlines())}
    result = [rows[job] for job in jobs if job in rows]
    return Queue(
        tuple(row[0] for row in result),
        tuple(row[1] for row in result),
        np.array([seconds_of(row[2]) for row in result], dtype=np.int64),
        np.array([int(row[3]) for row in result], dtype=np.int64),
        np.array([int(row[4]) for row in result], dtype=np.int64),
        np.array([float(row[5]) for row in result]),
        int(time.time()),
    )


def seconds_of(limit: str) -> int:
    """Return the seconds of Slurm's ``[D-]HH:MM:SS``; a year, as its backfill scheduler has it, for UNLIMITED."""
    if limit == "UNLIMITED":
        return 365 * 86_400
    days, _, clock = limit.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    return int(days or 0) * 86_400 + sum(part * 60**i for i, part in enumerate(reversed(parts)))


def at_submission(queue: Queue, priorities: Callable[[Queue], NDArray[np.float64]], tolerance: float = 1.0) -> Queue:
    """Return the queue with the submit times that the priorities were computed with; assert that they were.

    A script that runs at a submission may look at its clock a second before Slurm notes the submit time; so may the
    priority be that of a second earlier, but not for many jobs.
    """
    assert queue.priority is not None
    earlier = dataclasses.replace(queue, submit=queue.submit - 1)
    exact = np.abs(queue.priority - priorities(queue)) <= tolerance
    before = ~exact & (np.abs(queue.priority - priorities(earlier)) <= tolerance)
    wrong = [
        f"job {queue.job[i]}: {queue.priority[i]:.0f}, expected {priorities(queue)[i]:.0f}"
        for i in np.flatnonzero(~exact & ~before)
    ]
    assert not wrong, wrong
    assert before.sum() <= 2 + len(queue) // 10
    return dataclasses.replace(queue, submit=np.where(before, earlier.submit, queue.submit))


def order_of(policy: Policy, queue: Queue) -> list[int]:
    """Return the jobs in the order of the formula: lower scores first, ties by submit time, then by job id."""
    scores = policy.scores(queue.p, queue.q, queue.submit - (policy.epoch.unix_time or 0))
    jobs = [int(job) for job in queue.job]
    return [jobs[i] for i in np.lexsort((jobs, queue.submit, scores))]


def prove_order(
    cluster: Cluster,
    policy: Policy,
    priorities: Callable[[Queue], NDArray[np.float64]] | None = None,
    *,
    shapes: Sequence[Shape] | None = None,
    submit: Callable[[Cluster, Shape], int] = submit_plainly,
    tolerance: float = 1.0,
) -> Queue:
    """Assert that a cluster into which ``policy`` was loaded starts jobs in its order; return the queue as it was.

    Parameters
    ----------
    cluster : Cluster
        Running, with sched/builtin, empty.
    policy : Policy
        Static, its epoch fixed.
    priorities : function of Queue to array, optional
        What Slurm's priorities must be (`Export.priorities`), to ``tolerance``; not compared without it.
    shapes : sequence of Shape, optional
        The jobs; `mixed_shapes` without.
    submit : function
        How a user submits.
    """
    blocker = cluster.hold_all()
    jobs = [submit(cluster, shape) for shape in shapes or mixed_shapes(largest=cluster.total // 4)]
    queue = waiting(cluster, jobs)
    assert [int(job) for job in queue.job] == jobs
    expected = order_of(policy, queue if priorities is None else at_submission(queue, priorities, tolerance))
    cluster.run("scancel", blocker)
    started = cluster.wait_starts(jobs)
    assert started == expected
    assert started != jobs
    # The machine is empty again: the next proof begins as this one did.
    wait_for("the last jobs", lambda: not cluster.run("squeue", "-h").strip())
    return queue
