"""A user's own jobs, ordered by nice values: on a real Slurm."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from policyfactory.exports.queue import Queue
from policyfactory.exports.slurm.multifactor import NICE_NAME, nice_priorities
from policyfactory.exports.slurm.multifactor import by_nice as make
from policyfactory.policy.policy import Policy
from schedulers.processes import require_root, short_directory, wait_for
from schedulers.slurm import Cluster
from slurm.orders import MODELS, NAMES, Shape, mixed_shapes, model_of, prove_order, recent_epoch, usual_site, waiting

BASE = 1_000_000
PARTITIONS = (
    "PartitionName=batch Nodes=ALLNODES Default=YES MaxTime=INFINITE DefaultTime=60 State=UP",
    # Nothing starts here, so that priorities can be looked at.
    "PartitionName=closed Nodes=ALLNODES MaxTime=INFINITE DefaultTime=60 State=DOWN",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with short_directory() as folder:
        lines = [f"PriorityWeightPartition={BASE}"]
        with Cluster(folder, partitions=PARTITIONS, lines=lines) as running:
            yield running


@pytest.fixture
def closed(cluster: Cluster) -> Iterator[Callable[..., int]]:
    """Give a function that submits a job which does not start; all are removed afterwards."""
    jobs = []

    def submit(processors: int, minutes: int | str, *options: object) -> int:
        jobs.append(cluster.submit(processors, minutes, "--partition=closed", *options))
        return jobs[-1]

    yield submit
    cluster.run("scancel", *jobs)


def script_of(cluster: Cluster, name: str, epoch: int) -> tuple[list[str], Policy]:
    """Put the script of a policy beside slurm.conf; return the command and the policy."""
    model = model_of(name, epoch)
    path = cluster.folder / NICE_NAME
    path.write_text(make(model, usual_site()).text)
    return ["sh", str(path)], model.policy


def by_nice(policy: Policy) -> Callable[[Queue], NDArray[np.float64]]:
    """Return what the priorities must be once the script has run on jobs that all had `BASE`."""

    def priorities(queue: Queue) -> NDArray[np.float64]:
        before = dataclasses.replace(queue, priority=np.full(len(queue), float(BASE)))
        return nice_priorities(policy, before)

    return priorities


@pytest.mark.parametrize("name", MODELS, ids=NAMES)
def test_jobs_start_in_the_order_of_the_formula(cluster: Cluster, name: str) -> None:
    command, policy = script_of(cluster, name, recent_epoch())
    shapes = mixed_shapes()
    submitted: list[Shape] = []

    def submit(running: Cluster, shape: Shape) -> int:
        submitted.append(shape)
        # The last job is submitted by the script, which then sets the nice values of all.
        before = [*command, "sbatch"] if len(submitted) == len(shapes) else ["sbatch"]
        size = ["-n", shape.processors, "-t", shape.minutes]
        out = running.run(*before, "--parsable", "-o", "/dev/null", *size, "--wrap", "true")
        return int(out)

    prove_order(cluster, policy, by_nice(policy), shapes=shapes, submit=submit)


def test_a_hundred_priorities_are_those_of_the_python_map(cluster: Cluster, closed: Callable[..., int]) -> None:
    command, policy = script_of(cluster, "F1", recent_epoch())
    jobs = [closed(shape.processors, shape.minutes) for shape in mixed_shapes(100, seed=2)]
    queue = waiting(cluster, jobs)
    assert queue.priority is not None
    assert set(queue.priority) == {BASE}
    cluster.run(*command, "set")
    after = waiting(cluster, jobs)
    assert after.priority is not None
    assert np.abs(after.priority - nice_priorities(policy, queue)).max() <= 1
    assert len(set(after.priority)) == 100
    # Again it changes nothing.
    cluster.run(*command, "set")
    again = waiting(cluster, jobs)
    assert again.priority is not None
    assert list(again.priority) == list(after.priority)
    cluster.run(*command, "reset")
    back = waiting(cluster, jobs)
    assert back.priority is not None
    assert set(back.priority) == {BASE}


def test_arrays_held_jobs_and_jobs_at_the_bottom(cluster: Cluster, closed: Callable[..., int]) -> None:
    command, _ = script_of(cluster, "SAF", recent_epoch())
    wide = closed(32, 600)
    array = closed(2, 30, "--array=0-3%2")
    held = closed(1, 1, "--hold")
    later = closed(1, 1, "--partition=batch", "--begin=now+1hour")
    bottom = closed(1, 1, "--nice=2147483645")
    endless = closed(1, "UNLIMITED")
    assert cluster.show(bottom)["Priority"] == "1"
    # One task that differs from the others of its array.
    cluster.run("scontrol", "update", f"JobId={array}_2", "Nice=7")
    output = cluster.run(*command, "set", check=False)
    assert "7 waiting jobs and tasks of arrays looked at" in output, output
    assert "2 waiting jobs left alone" in output
    assert "still stand before" not in output
    rows = (line.split() for line in cluster.run("squeue", "-h", "-r", "-o", "%i %Q %y").splitlines())
    result = {job: (int(priority), int(nice)) for job, priority, nice in rows}
    assert result[str(bottom)] == (BASE, 0)
    assert {result[f"{array}_{task}"] for task in range(4)} == {(BASE - 2, 2)}
    assert result[str(wide)] == (BASE - 4, 4)
    assert result[str(endless)] == (BASE - 6, 6)
    assert result[str(held)] == (0, 0)
    assert result[str(later)] == (BASE, 0)


def test_hold_release_and_a_restart_keep_the_order_and_a_changed_limit_needs_a_run(
    cluster: Cluster, closed: Callable[..., int]
) -> None:
    command, _ = script_of(cluster, "SAF", recent_epoch())
    wide, narrow = closed(32, 600), closed(2, 30)
    cluster.run(*command, "set")
    assert [cluster.show(job)["Priority"] for job in (wide, narrow)] == [str(BASE - 2), str(BASE)]
    cluster.run("scontrol", "hold", wide)
    assert cluster.show(wide)["Priority"] == "0"
    cluster.run("scontrol", "release", wide)
    cluster.restart()
    cluster.run("scontrol", "update", f"JobId={wide}", "TimeLimit=1")
    assert [cluster.show(job)["Priority"] for job in (wide, narrow)] == [str(BASE - 2), str(BASE)]
    cluster.run(*command, "set")
    assert [cluster.show(job)["Priority"] for job in (wide, narrow)] == [str(BASE), str(BASE - 2)]


def test_running_tasks_of_an_array_are_not_touched_and_a_requeued_job_keeps_its_nice_value(cluster: Cluster) -> None:
    command, _ = script_of(cluster, "SAF", recent_epoch())
    array = cluster.submit(32, 10, "--array=0-5", "--requeue", body="sleep 600")
    wait_for("two tasks", lambda: cluster.run("squeue", "-h", "-r", "-t", "R", "-o", "%i").split() == [
        f"{array}_0", f"{array}_1"
    ])  # fmt: skip
    cluster.run("scontrol", "update", f"JobId={array}_4", "TimeLimit=1")
    first = cluster.submit(1, 5, "--nice=3", "--hold")
    cluster.run("scontrol", "release", first)
    last = cluster.submit(64, 600)

    def values() -> dict[str, tuple[str, ...]]:
        rows = (line.split() for line in cluster.run("squeue", "-h", "-r", "-o", "%i %T %l %y").splitlines())
        return {row[0]: tuple(row[1:]) for row in rows}

    try:
        cluster.run(*command, "set")
        result = values()
        assert result[f"{array}_0"] == result[f"{array}_1"] == ("RUNNING", "10:00", "0")
        # The task with another limit has a place of its own, before the longer ones.
        assert [result[f"{array}_{task}"][2] for task in (2, 3, 4, 5)] == ["4", "4", "2", "4"]
        assert result[str(first)][2] == "0"
        assert result[str(last)][2] == "6"
        cluster.run("scontrol", "update", f"JobId={array}_0", "Nice=9")
        cluster.run("scontrol", "requeue", f"{array}_0")
        wait_for("the requeued task", lambda: values()[f"{array}_0"][0] == "PENDING")
        assert values()[f"{array}_0"][2] == "9"
        assert cluster.show(f"{array}_0")["Priority"] == str(BASE - 9)
        cluster.run(*command, "reset")
        # A task may have started in the requeued one's place: that keeps what it has.
        assert {nice for state, _, nice in values().values() if state == "PENDING"} == {"0"}
    finally:
        cluster.empty()


def test_an_ordinary_user_orders_own_jobs_and_no_others(cluster: Cluster, closed: Callable[..., int]) -> None:
    require_root()
    command, _ = script_of(cluster, "SAF", recent_epoch())
    of_root = closed(32, 600)
    size = ["--partition=closed", "--chdir=/", "--output=/dev/null"]
    own = []
    for processors in (16, 4, 8):
        job = [*size, "-n", processors, "-t", 10, "--wrap", "true"]
        own.append(int(cluster.run_as("nobody", *command, "sbatch", "--parsable", *job)))
    try:
        queue = waiting(cluster, own)
        assert queue.priority is not None
        assert list(queue.priority) == [BASE - 4, BASE, BASE - 2]
        assert cluster.show(of_root)["Nice"] == "0"
        cluster.run_as("nobody", *command, "reset")
        assert {cluster.show(job)["Nice"] for job in own} == {"0"}
    finally:
        cluster.run("scancel", *own)
