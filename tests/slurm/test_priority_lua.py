"""The export that sets priorities on a real Slurm: the order of the formula, and the limits that it says it has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from policyfactory.exports.content import TARGETS, Export
from policyfactory.policy.policy import Policy
from schedulers.processes import require_root, short_directory
from schedulers.slurm import Cluster
from slurm.orders import (
    MODELS,
    NAMES,
    at_submission,
    mixed_shapes,
    model_of,
    prove_order,
    recent_epoch,
    usual_site,
    waiting,
)

TARGET = TARGETS["slurm-priority-lua"]
CLOSED = ("-p", "closed")


def export_of(name: str = "F1") -> tuple[Policy, Export]:
    model = model_of(name, recent_epoch())
    return model.policy, TARGET.make(model, usual_site())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    partitions = (
        "PartitionName=batch Nodes=ALLNODES Default=YES MaxTime=INFINITE DefaultTime=60 State=UP",
        "PartitionName=closed Nodes=ALLNODES MaxTime=INFINITE DefaultTime=45 State=DOWN",
    )
    files = {"job_submit.lua": export_of()[1].text}
    with (
        short_directory() as folder,
        Cluster(folder, processors=32, lines=["JobSubmitPlugins=lua"], partitions=partitions, files=files) as result,
    ):
        yield result


@pytest.fixture
def export(cluster: Cluster) -> Iterator[Export]:
    """F1, in force from the next submission on; whatever is left at the end goes."""
    export = export_of()[1]
    cluster.replace_file("job_submit.lua", export.text)
    yield export
    cluster.empty()


def priority(cluster: Cluster, job: int) -> int:
    return int(cluster.show(job)["Priority"])


@pytest.mark.parametrize("name", MODELS, ids=NAMES)
def test_jobs_start_in_the_order_of_the_formula(cluster: Cluster, name: str) -> None:
    policy, export = export_of(name)
    cluster.replace_file("job_submit.lua", export.text)
    prove_order(cluster, policy, export.priorities)


def test_every_priority_is_that_of_the_python_map(cluster: Cluster, export: Export) -> None:
    jobs = [cluster.submit(shape.processors, shape.minutes, *CLOSED) for shape in mixed_shapes(100, 64, seed=4)]
    assert export.priorities is not None
    at_submission(waiting(cluster, jobs), export.priorities)
    before = [priority(cluster, job) for job in jobs[:3]]
    cluster.restart()
    assert [priority(cluster, job) for job in jobs[:3]] == before


def test_held_jobs_and_given_priorities_stay(cluster: Cluster, export: Export) -> None:
    held = cluster.submit(4, 30, *CLOSED, "--hold")
    given = cluster.submit(4, 30, *CLOSED, "--priority=77")
    cluster.run("scontrol", "update", f"JobId={given}", "TimeLimit=5")
    cluster.run("scontrol", "update", f"JobId={held}", "TimeLimit=5")
    assert (priority(cluster, held), priority(cluster, given)) == (0, 77)
    # The limits that the export says it has: a release ends the score, for good.
    job = cluster.submit(4, 30, *CLOSED)
    cluster.run("scontrol", "hold", job)
    cluster.run("scontrol", "release", job)
    cluster.run("scontrol", "release", held)
    assert (priority(cluster, job), priority(cluster, held)) == (1, 1)
    assert cluster.show(job)["Reason"] != "JobHeldAdmin"


def test_a_change_of_root_scores_again(cluster: Cluster, export: Export) -> None:
    job = cluster.submit(4, 30, *CLOSED)
    assert export.priorities is not None
    for change in ("TimeLimit=300", "NumCPUs=9", "TimeLimit=2"):
        cluster.run("scontrol", "update", f"JobId={job}", change)
        queue = waiting(cluster, [job])
        assert np.abs(queue.priority - export.priorities(queue)) <= 1
    cluster.run("scontrol", "update", f"JobId={job}", "Priority=123")
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=40")
    assert priority(cluster, job) == 123


def test_the_change_of_an_ordinary_user_is_made_and_leaves_the_priority(cluster: Cluster, export: Export) -> None:
    require_root()
    words = "sbatch --parsable -o /dev/null -p closed -n 3 -t 50 --priority=99 --wrap true"
    job = int(cluster.run_as("nobody", *words.split()))
    assert export.priorities is not None
    at_submission(waiting(cluster, [job]), export.priorities)
    before = priority(cluster, job)
    cluster.run_as("nobody", "scontrol", "update", f"JobId={job}", "TimeLimit=5")
    assert cluster.show(job)["TimeLimit"] == "00:05:00"
    assert priority(cluster, job) == before


def test_a_broken_script_leaves_submissions_working_and_the_job_last(cluster: Cluster, export: Export) -> None:
    # Read at a submission; the one of before stays in force when the next cannot be read.
    cluster.submit(4, 30, *CLOSED)
    cluster.replace_file("job_submit.lua", export.text[:-200])
    job = cluster.submit(4, 30, *CLOSED)
    assert export.priorities is not None
    at_submission(waiting(cluster, [job]), export.priorities)
    cluster.replace_file("job_submit.lua", export.text.replace("  return pf_log10", "  return nobody.knows + pf_log10"))
    assert priority(cluster, cluster.submit(4, 30, *CLOSED)) == 1
    assert priority(cluster, cluster.submit(4, 30, *CLOSED, "--hold")) == 0


def test_a_requeued_job_keeps_its_priority(cluster: Cluster, export: Export) -> None:
    job = cluster.submit(2, 9, body="sleep 60")
    cluster.wait_state(job, "RUNNING")
    before = priority(cluster, job)
    cluster.run("scontrol", "requeue", job)
    cluster.wait_state(job, "PENDING")
    assert priority(cluster, job) == before > 1


def test_the_command_of_the_rollback_gives_the_plugins_priority(cluster: Cluster, export: Export) -> None:
    jobs = [cluster.submit(4, minutes, *CLOSED) for minutes in (30, 300)]
    jobs.append(cluster.submit(4, 30, *CLOSED, "--nice=7"))
    held = [cluster.submit(4, 30, *CLOSED, "--hold"), cluster.submit(4, 30, *CLOSED, "--hold", "-a", "0-3")]
    # An array with one held task: squeue shows all of it in one line.
    array = cluster.submit(4, 30, *CLOSED, "-a", "0-5")
    cluster.run("scontrol", "hold", f"{array}_2")
    (command,) = (line[2:] for line in export.rollback if line.startswith("$ squeue"))
    cluster.run("sh", "-c", command)
    assert [priority(cluster, job) for job in (*jobs, *held)] == [1, 1, 1, 0, 0]
    assert cluster.show(jobs[-1])["Nice"] == "7"
    result = {show["ArrayTaskId"]: show["Priority"] for show in cluster.show_all().values()
             if show.get("ArrayJobId") == str(array) and show["JobState"] == "PENDING"}  # fmt: skip
    assert result == {"0-1,3-5": "1", "2": "0"}
