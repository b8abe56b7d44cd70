"""Weights of priority/multifactor: on a real Slurm."""

from __future__ import annotations

import dataclasses
import re
import time

import numpy as np
import pytest

from policyfactory.exports.content import Export, ExportSite
from policyfactory.exports.queue import Queue
from policyfactory.exports.slurm.multifactor import WEIGHTS_NAME, by_weights
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import Model
from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting
from slurm.orders import (
    MODELS,
    Shape,
    mixed_shapes,
    model_of,
    prove_order,
    recent_epoch,
    submit_plainly,
    usual_site,
    waiting,
)
from support import NIGHTLY

LIN = MODELS[-1]
# Beside the partition of the proofs one where nothing starts; and the file, as its first lines say.
PARTITIONS = (
    "PartitionName=batch Nodes=ALLNODES Default=YES MaxTime=INFINITE DefaultTime=60 State=UP",
    "PartitionName=closed Nodes=ALLNODES MaxTime=INFINITE DefaultTime=60 State=DOWN",
    f"Include {WEIGHTS_NAME}",
)


def site() -> ExportSite:
    return dataclasses.replace(usual_site(), nodes=4)


def nearest_as_policy(made: Export, epoch: int) -> Policy:
    """Return what an export says that its weights order by; minus the age is r, as now is the same for all jobs."""
    (sentence,) = (line for line in made.limits if line.startswith("What they order by"))
    text = re.sub(r"- ([\d.e-]+)\*min\(w, \d+\)", r"+ \1*r", sentence.partition("evaluate: ")[2])
    return Policy("weights", text, epoch=Epoch("fixed", epoch))


def check_hundred(cluster: Cluster, made: Export) -> None:
    """Assert that a hundred jobs have the priorities of the Python map."""
    jobs = [cluster.submit(s.processors, s.minutes, "-p", "closed") for s in mixed_shapes(100, 64, seed=3)]
    jobs.append(cluster.submit(3, "UNLIMITED", "-p", "closed"))
    queue = waiting(cluster, jobs)
    assert queue.priority is not None
    assert made.priorities is not None
    assert np.abs(queue.priority - made.priorities(queue)).max() <= 1
    assert len(set(queue.priority)) > 5
    cluster.run("scancel", *jobs)


def check_life(cluster: Cluster, made: Export) -> None:
    """Assert that two jobs keep the order of the weights in all that happens to them."""
    assert made.priorities is not None
    jobs = [cluster.submit(16, 600, "-p", "closed"), cluster.submit(4, 30, "-p", "closed")]

    def in_order() -> bool:
        queue = waiting(cluster, jobs)
        assert queue.priority is not None
        assert made.priorities is not None
        assert np.abs(queue.priority - made.priorities(queue)).max() <= 1
        return bool(queue.priority[0] < queue.priority[1])

    assert in_order()
    cluster.run("scontrol", "hold", jobs[1])
    assert cluster.show(jobs[1])["Priority"] == "0"
    cluster.run("scontrol", "release", jobs[1])
    assert in_order()
    cluster.restart()
    assert in_order()
    # A changed limit counts at once.
    cluster.run("scontrol", "update", f"JobId={jobs[0]}", "TimeLimit=1")
    assert not in_order()
    cluster.run("scancel", *jobs)


def test_weights_of_processors_and_size_order_the_jobs() -> None:
    epoch = recent_epoch()
    exact, opposite, *nearest = (by_weights(model_of(name, epoch), site()) for name in ("SQF", "LPF", "SAF", LIN))
    assert "PriorityFavorSmall=YES" in opposite.text
    # Flags of the site that the limits say can be kept without slurmdbd.
    flags = exact.text.replace("NO_NORMAL_TRES\n", "NO_NORMAL_TRES,NO_NORMAL_QOS,CALCULATE_RUNNING\n")
    assert flags != exact.text
    with short_directory() as folder, Cluster(folder, partitions=PARTITIONS, files={WEIGHTS_NAME: flags}) as cluster:
        check_hundred(cluster, exact)
        for made in (opposite, *nearest):
            cluster.replace_file(WEIGHTS_NAME, made.text)
            cluster.run("scontrol", "reconfigure")
            check_hundred(cluster, made)
            if made in nearest:
                prove_order(cluster, nearest_as_policy(made, epoch), made.priorities)
            if made is nearest[0]:
                check_life(cluster, made)


@pytest.mark.skipif(not NIGHTLY, reason="waits for a minute of Slurm's: make nightly")
@pytest.mark.parametrize("name", ["exact", "F1"])
def test_weights_of_age_order_the_jobs_with_slurmdbd(name: str) -> None:
    epoch = recent_epoch()
    # No small multiple of one factor is one of the other: no two jobs tie.
    policy = Policy("Lin", "0.03 + 1.2e-4*q + 3.7123e-4*r", epoch=Epoch("fixed", epoch))
    made = by_weights(Model(policy) if name == "exact" else model_of(name, epoch), site())
    if name != "exact":
        policy = nearest_as_policy(made, epoch)
    assert "r" in policy.variables
    shapes = mixed_shapes()
    submitted: list[int] = []

    def spread_of_ages(queue: Queue) -> float:
        assert made.priorities is not None
        later = made.priorities(queue) - queue.priority
        return float(later.max() - later.min())

    def submit(cluster: Cluster, shape: Shape) -> int:
        submitted.append(submit_plainly(cluster, shape))
        time.sleep(0.06)
        if len(submitted) == len(shapes):
            # A job's age is 0 until Slurm recalculates; then all ages are of one instant.
            wait_for("ages", lambda: spread_of_ages(waiting(cluster, submitted)) <= 2, seconds=150, pause=1)
        return submitted[-1]

    with short_directory() as base, Accounting(base) as accounting, short_directory() as folder:
        more = {"lines": accounting.lines, "partitions": PARTITIONS, "files": {WEIGHTS_NAME: made.text}}
        with Cluster(folder, **more) as cluster:
            queue = prove_order(cluster, policy, shapes=shapes, submit=submit)
    assert spread_of_ages(queue) <= 2
    assert len(set(queue.submit)) > 1
