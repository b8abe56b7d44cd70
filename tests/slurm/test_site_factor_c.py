"""The C plugin in a real Slurm: the formula's order, and priorities that follow the clock."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from policyfactory.exports.content import Export
from policyfactory.exports.queue import Queue
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import LARGEST
from policyfactory.policy.store import Model
from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting
from slurm.orders import MODELS, model_of, prove_order, recent_epoch, usual_site, waiting
from slurm.plugin import build, plugin_lines, slurm_source
from support import NIGHTLY

YEAR = 365 * 86_400
# All that a static route cannot do: the time waited, the oldest waiting job, a threshold.
MOVING = Policy("moving", "-(w/p)**3*q + r/1000", epoch=Epoch("oldest-waiting"), threshold=9.0)


def test_jobs_start_in_the_order_of_the_formula(tmp_path: Path, start_cluster: Callable[..., Cluster]) -> None:
    slurm_source()
    cluster = None
    for name in MODELS:
        model = model_of(name, recent_epoch())
        export = build(tmp_path, model, usual_site())
        if cluster is None:
            cluster = start_cluster(lines=plugin_lines(tmp_path))
        else:
            cluster.restart()
        prove_order(cluster, model.policy, export.priorities)
    # A requeued job counts as submitted anew, once Slurm has it rated again.
    assert cluster is not None
    assert export.priorities is not None
    job = cluster.submit(2, 9, body="sleep 60")
    submitted = int(time.time())
    cluster.wait_state(job, "RUNNING")
    time.sleep(2)
    cluster.run("scontrol", "requeue", job)
    cluster.wait_state(job, "PENDING")
    cluster.run("scontrol", "update", f"JobId={job}", "Nice=0")
    queue = waiting(cluster, [job])
    assert queue.submit[0] >= submitted + 1
    assert queue.priority.tolist() == export.priorities(queue).tolist()


# What is asked for, and the seconds and processors that the formula gets.
REQUESTS = [
    (("-n", 4, "-c", 2, "-t", 10), 600, 8),
    (("-c", 3, "-t", 10), 600, 3),
    (("-N", 2, "--ntasks-per-node=4", "-t", 10), 600, 8),
    (("-N", 2, "--mincpus=5", "-t", 10), 600, 10),
    (("-n", 4, "--overcommit", "-t", 10), 600, 1),
    (("-n", 2, "-t", "1:30"), 120, 2),
    (("-n", 2, "-t", "UNLIMITED"), YEAR, 2),
    (("-n", 2), 3600, 2),
    (("-n", 2, "-p", "short"), 1800, 2),
    (("-n", 2, "-p", "open"), YEAR, 2),
    (("-n", 2, "-t", 10, "-a", "0-3"), 600, 2),
]


def test_what_was_asked_for_parameters_and_the_life_of_a_job(
    tmp_path: Path, start_cluster: Callable[..., Cluster]
) -> None:
    slurm_source()
    policy = Policy("both", "p + 1e5*q")
    export = build(tmp_path, Model(policy), usual_site())
    # Nothing starts in a partition that is down.
    cluster = start_cluster(
        nodes=2,
        lines=(*plugin_lines(tmp_path), "PrioritySiteFactorParameters=low=nothing,high=5,colour=red"),
        partitions=[
            "PartitionName=batch Nodes=ALLNODES Default=YES MaxTime=INFINITE DefaultTime=60 State=DOWN",
            "PartitionName=short Nodes=ALLNODES MaxTime=30 State=DOWN",
            "PartitionName=open Nodes=ALLNODES MaxTime=INFINITE State=DOWN",
        ],
    )

    def submit(options: Sequence[object]) -> int:
        out = cluster.run("sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", "true")
        return int(out.split(";")[0])

    def priority(job: int) -> int:
        return int(cluster.show(job)["Priority"])

    # The bad ones are said; the export's own are in use.
    log = (cluster.log / "slurmctld.log").read_text()
    assert "error: site_factor/policyfactory: PrioritySiteFactorParameters: low=nothing is not one of" in log
    assert "error: site_factor/policyfactory: PrioritySiteFactorParameters: colour=red is not one of" in log
    assert "PrioritySiteFactorParameters are not used; the values of the export are" in log
    jobs = [submit(options) for options, _, _ in REQUESTS]
    asked = np.array([[seconds, processors] for _, seconds, processors in REQUESTS])
    assert [priority(job) for job in jobs] == numbers(export, asked[:, 0], asked[:, 1])

    first, second = jobs[:2]
    # A held job has the priority 0, and its own again when it is released.
    cluster.run("scontrol", "hold", first)
    assert priority(first) == 0
    cluster.run("scontrol", "release", first)
    assert [priority(first)] == numbers(export, [600], [8])
    # A changed limit counts at once, nice is subtracted, and a restart changes nothing.
    cluster.run("scontrol", "update", f"JobId={first}", "TimeLimit=5")
    cluster.run("scontrol", "update", f"JobId={second}", "Nice=1000")
    cluster.restart()
    assert [priority(first), priority(second) + 1000] == numbers(export, [300, 600], [8, 3])

    # Good parameters are taken by a reconfiguration, for jobs that Slurm looks at from then on.
    text = cluster.configuration.read_text()
    cluster.configuration.write_text(text.replace("low=nothing,high=5,colour=red", "low=1e5,high=2e7,threshold=3600"))
    cluster.run("scontrol", "reconfigure")
    wait_for("the new range", lambda: "low=100000, high=20000000" in (cluster.log / "slurmctld.log").read_text())
    assert export.scale is not None
    scale = dataclasses.replace(export.scale, low=1e5, high=2e7)
    job = submit(REQUESTS[0][0])
    assert [priority(job)] == scale.integers([600 + 8e5]).tolist()
    assert [priority(jobs[2])] == numbers(export, [600], [8])
    # The others follow at any update, as the README says, of which nice stays what it is; so do the limits, own or not.
    cluster.run("scontrol", "update", f"JobId={first}", "TimeLimit=10")
    limits = [(show["TimeLimit"], show.get("ArrayTaskId")) for show in cluster.show_all().values()]
    type_in(cluster, next(text for text in export.install if "Nice=" in text))
    assert limits == [(show["TimeLimit"], show.get("ArrayTaskId")) for show in cluster.show_all().values()]
    nice = [0, 1000] + [0] * (len(jobs) - 2)
    assert [priority(job) + n for job, n in zip(jobs, nice, strict=True)] == scale.integers(asked @ [1, 1e5]).tolist()
    cluster.run("scontrol", "update", f"JobId={second}", "Nice=0")
    # There is a threshold now, and no slurmdbd that would see it pass.
    assert "without slurmdbd Slurm never calculates it again" in (cluster.log / "slurmctld.log").read_text()

    # The way back: without the plugin jobs keep their number until it is taken from them.
    kept = cluster.configuration.read_text().splitlines()
    cluster.configuration.write_text("\n".join(line for line in kept if "PrioritySiteFactor" not in line) + "\n")
    cluster.restart()
    assert [priority(job)] == scale.integers([600 + 8e5]).tolist()
    type_in(cluster, export.rollback[-1])
    assert {int(show["Priority"]) for show in cluster.show_all().values()} == {1}

    # With a plugin that is missing 22.05 runs on, and jobs are last; newer ones do not start.
    (tmp_path / "site_factor_policyfactory.so").unlink()
    cluster.configuration.write_text("\n".join(kept) + "\n")
    if cluster.version <= (22, 5):
        cluster.restart()
        assert priority(submit(REQUESTS[0][0])) == 1
        return
    with pytest.raises(RuntimeError, match="slurmctld ended"):
        cluster.restart()
    assert "fatal: Failed to initialize site_factor plugin" in (cluster.log / "slurmctld.log").read_text()


# What is asked for on nodes with memory and GPUs, and the nodes, MB and GPUs that the formula gets.
ASKED = [
    (("-n", 4), (1, 4 * 300, 0)),
    (("-N", 3, "--mem=4000"), (3, 12_000, 0)),
    (("-N", 2, "-n", 16, "--mem-per-cpu=500"), (2, 8000, 0)),
    (("-n", 4, "-p", "wide"), (1, 2000, 0)),
    (("-N", 2, "--exclusive", "-p", "wide"), (2, 4000, 0)),
    (("-n", 2, "--gpus=3", "--mem=10"), (1, 10, 3)),
    (("-N", 2, "--gres=gpu:2", "--mem=10"), (2, 20, 4)),
    (("-N", 2, "--gpus-per-node=a100:2", "--mem=10"), (2, 20, 4)),
    (("-n", 4, "--gpus-per-task=1", "--mem=10"), (1, 10, 4)),
]


def test_nodes_memory_and_gpus_are_found(tmp_path: Path, start_cluster: Callable[..., Cluster]) -> None:
    slurm_source()
    policy = Policy("asks", "p + mem + 1e6*n + 1e7*g")
    export = build(tmp_path, Model(policy), usual_site())
    assert export.scale is not None
    # Nodes that nobody starts: their partitions are down.
    cluster = start_cluster(
        nodes=1,
        lines=(
            *plugin_lines(tmp_path),
            "GresTypes=gpu",
            "DefMemPerCPU=300",
            "NodeName=g[1-4] NodeAddr=127.0.0.1 CPUs=16 RealMemory=64000 Gres=gpu:a100:4 State=DOWN",
        ),
        partitions=[
            "PartitionName=batch Nodes=g[1-4] Default=YES MaxTime=INFINITE State=DOWN",
            "PartitionName=wide Nodes=g[1-4] DefMemPerNode=2000 State=DOWN",
            "PartitionName=up Nodes=ALLNODES State=UP",
        ],
        files={"gres.conf": "NodeName=g[1-4] Name=gpu Type=a100 Count=4\n"},
    )

    def number(n: float, mem: float, g: float) -> int:
        score = policy.scores([600], [1], [0], asked=[[n], [mem], [g]])
        return int(export.scale.integers(score)[0]) if export.scale else 0

    jobs = [
        int(cluster.run("sbatch", "--parsable", "-o", "/dev/null", "-t", 10, *options, "--wrap", "true"))
        for options, _ in ASKED
    ]
    found = [int(cluster.show(job)["Priority"]) for job in jobs]
    assert found == [number(*asked) for _, asked in ASKED]
    # A change counts at once, and a restart, which reads the jobs from its saved state, changes nothing.
    cluster.run("scontrol", "update", f"JobId={jobs[1]}", "MinMemoryNode=2000")
    cluster.run("scontrol", "update", f"JobId={jobs[0]}", "MinMemoryCPU=100")
    cluster.restart()
    assert [int(cluster.show(job)["Priority"]) for job in jobs[:2]] == [number(1, 400, 0), number(3, 6000, 0)]


def type_in(cluster: Cluster, text: str) -> None:
    """Run a command of an export, as it stands in its instructions."""
    assert text.startswith("$ ")
    cluster.run("sh", "-c", text.removeprefix("$ "))


def numbers(export: Export, p: Sequence[int], q: Sequence[int]) -> list[float]:
    """Return Slurm's numbers of new jobs."""
    assert export.priorities is not None
    now = np.zeros(len(p), dtype=np.int64)
    names = ("",) * len(p)
    return export.priorities(Queue(names, names, np.asarray(p), np.asarray(q), now, None, 0)).tolist()


def instant_of(export: Export, queue: Queue, first: int) -> int | None:
    """Return the time at which all priorities were calculated together, if there is one from ``first`` to now."""
    assert export.priorities is not None
    for now in range(first, int(time.time()) + 2):
        if np.array_equal(export.priorities(dataclasses.replace(queue, now=now)), queue.priority):
            return now
    return None


def test_priorities_follow_the_clock(tmp_path: Path) -> None:
    slurm_source()
    export = build(tmp_path, Model(MOVING), usual_site())
    with short_directory() as base, Accounting(base) as accounting, short_directory() as folder:
        lines = (*accounting.lines, *plugin_lines(tmp_path), "PriorityCalcPeriod=1")
        with Cluster(folder, nodes=2, lines=lines) as cluster:
            blocker = cluster.hold_all()
            jobs = [cluster.submit(1 + i % 4, 1 + i % 5, body="true") for i in range(6)]
            time.sleep(9)
            jobs += [cluster.submit(1 + i % 5, 1 + i % 3, body="true") for i in range(6)]
            before = waiting(cluster, jobs)
            assert before.priority is not None
            assert max(before.priority) < LARGEST
            time.sleep(1)
            # Slurm calculates every minute, and when it starts again.
            begin = int(time.time())
            cluster.restart()
            wait_for("the calculation", lambda: instant_of(export, waiting(cluster, jobs), begin) is not None, 20)
            after = waiting(cluster, jobs)
            assert after.priority is not None
            late = after.priority >= LARGEST
            assert late.tolist() == [True] * 6 + [False] * 6
            assert len(set(after.priority[~late])) > 3
            cluster.run("scancel", blocker)
            order = np.lexsort((jobs, after.submit, -after.priority))
            assert cluster.wait_starts(jobs) == [jobs[i] for i in order]
            # It was that of submission before.
            assert np.lexsort((jobs, before.submit, -before.priority)).tolist() == list(range(12)) != order.tolist()
            wait_for("the last jobs", lambda: not cluster.run("squeue", "-h").strip())


@pytest.mark.skipif(not NIGHTLY, reason="waits for minutes of Slurm's: make nightly")
def test_priorities_follow_the_clock_every_minute(tmp_path: Path) -> None:
    slurm_source()
    export = build(tmp_path, Model(MOVING), usual_site())
    with short_directory() as base, Accounting(base) as accounting, short_directory() as folder:
        lines = (*accounting.lines, *plugin_lines(tmp_path), "PriorityCalcPeriod=1")
        with Cluster(folder, nodes=2, lines=(*lines, "PrioritySiteFactorParameters=wait=eligible")) as cluster:
            blocker = cluster.hold_all()
            jobs = [cluster.submit(1 + i % 4, 1 + i % 5) for i in range(12)]
            later = cluster.submit(1, 1, "--begin=now+1hour")
            seen = [int(time.time())]
            for _ in range(2):
                since = seen[-1] + 1
                wait_for("a calculation", lambda t=since: instant_of(export, waiting(cluster, jobs), t) is not None, 75)
                seen.append(instant_of(export, waiting(cluster, jobs), since) or 0)
            assert 58 <= seen[2] - seen[1] <= 62
            # All are overdue but the one that could not have run yet.
            priorities = {job: int(show["Priority"]) for job, show in cluster.show_all().items() if job != blocker}
            assert [job for job, priority in priorities.items() if priority < LARGEST] == [later]
            cluster.run("scancel", *jobs, later, blocker)
            wait_for("an empty machine", lambda: not cluster.run("squeue", "-h").strip())
