"""The default export on a real Slurm: jobs start in the order of the formula, and keep it whatever happens to them."""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from policyfactory.exports.content import TARGETS, Export
from policyfactory.exports.queue import UNLIMITED_S
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
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

TARGET = TARGETS["slurm-site-factor-lua"]
PARTITIONS = (
    "PartitionName=batch Nodes=ALLNODES Default=YES MaxTime=INFINITE DefaultTime=60 State=UP",
    "PartitionName=closed Nodes=ALLNODES MaxTime=INFINITE DefaultTime=45 State=DOWN",
    "PartitionName=day Nodes=ALLNODES MaxTime=1440 State=DOWN",
    "PartitionName=endless Nodes=ALLNODES MaxTime=INFINITE State=DOWN",
)
CLOSED = ("-p", "closed")


def export_of(name: str = "F1") -> tuple[Policy, Export]:
    model = model_of(name, recent_epoch())
    return model.policy, TARGET.make(model, usual_site())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    text = export_of()[1].text
    with (
        short_directory() as folder,
        Cluster(
            folder,
            processors=32,
            lines=["JobSubmitPlugins=lua"],
            partitions=PARTITIONS,
            files={"job_submit.lua": text},
        ) as result,
    ):
        yield result


@pytest.fixture
def export(cluster: Cluster) -> Iterator[Export]:
    """F1, in force from the next submission on; whatever still waits at the end goes."""
    export = export_of()[1]
    cluster.replace_file("job_submit.lua", export.text)
    yield export
    cluster.empty()


def priority(cluster: Cluster, job: int) -> int:
    return int(cluster.show(job)["Priority"])


def expected(export: Export, cluster: Cluster, job: int) -> float:
    """What the map gives for the job as Slurm shows it now."""
    assert export.priorities is not None
    return float(export.priorities(waiting(cluster, [job]))[0])


def assert_scored(export: Export, cluster: Cluster, *jobs: int, nice: int = 0) -> None:
    """The jobs have the priorities of their submission."""
    priorities = export.priorities
    assert priorities is not None
    at_submission(waiting(cluster, jobs), lambda queue: priorities(queue) - nice)


@pytest.mark.parametrize("name", MODELS, ids=NAMES)
def test_jobs_start_in_the_order_of_the_formula(cluster: Cluster, name: str) -> None:
    policy, export = export_of(name)
    cluster.replace_file("job_submit.lua", export.text)
    prove_order(cluster, policy, export.priorities)


def test_what_counts_the_users_jobs_sees_them_in_slurmctld(cluster: Cluster) -> None:
    policy = Policy("counts", "user_waiting + 1000*user_running")
    site = dataclasses.replace(usual_site(), log_only=True)
    cluster.replace_file("job_submit.lua", TARGET.make(Model(policy), site).text)
    for _ in range(2):
        cluster.wait_state(cluster.submit(1, 30, body="sleep 100"), "RUNNING")
    jobs = []
    for options in ((), ("--array=1-20%2",), (), ()):
        time.sleep(1.2)  # slurmctld tells Lua of jobs from second to second
        jobs.append(cluster.submit(1, 30, *CLOSED, *options))
    # A job that is changed keeps the counts of its submission, and a task those of its array.
    for job in (jobs[2], f"{jobs[1]}_7"):
        time.sleep(1.2)
        cluster.run("scontrol", "update", f"JobId={job}", "Nice=1")
    log = (cluster.log / "slurmctld.log").read_text(errors="replace")
    found = [int(score) for score in re.findall(r"policy=counts .* score=(\d+)", log)]
    cluster.empty()
    # What came last may be missing, if something else had changed in the same second.
    last = [{0}, {0, 1, 1000}, {1000, 1001, 2000}, {2000, 2001}, {2001, 2021}, {2021, 2022}]
    assert all(count in known for count, known in zip(found[:6], last, strict=True)), found
    assert found[6:] == [found[4], found[3]]


def test_every_priority_is_that_of_the_python_map(cluster: Cluster, export: Export) -> None:
    draw = random.Random(2)
    jobs, sizes = [], []
    for shape in mixed_shapes(100, 64, seed=3):
        each = draw.choice([1, 1, 2, 3])
        tasks = max(1, shape.processors // each)
        jobs.append(cluster.submit(tasks, shape.minutes, *CLOSED, "-c", each))
        sizes.append(tasks * each)
    queue = waiting(cluster, jobs)
    assert queue.q.tolist() == sizes
    assert export.priorities is not None
    at_submission(queue, export.priorities)
    assert len(set(queue.priority.tolist())) > 90


# How a job asks for its size and time, and what is p (s) and q of it.
ASKED = [
    ("", 45 * 60, 1),
    ("-n 4 -c 2", 45 * 60, 8),
    ("-c 3 -t 0:30", 60, 3),
    ("-N 2 --ntasks-per-node=4 -t 1:30", 120, 8),
    ("-N 2 --mincpus=5 -t 2:00:00", 7200, 10),
    ("-N 2 --exclusive", 45 * 60, 2),
    ("-n 5 -t 1-12", 129_600, 5),
    ("-a 0-3 -n 2 -t 7", 420, 2),
    ("-n 2 -t UNLIMITED", UNLIMITED_S, 2),
    ("-n 2 -p day", 86_400, 2),
    ("-n 2 -p day,endless", 86_400, 2),
    ("-n 2 -p endless", UNLIMITED_S, 2),
]


def test_size_and_time_are_found_however_they_are_asked_for(cluster: Cluster, export: Export) -> None:
    jobs = []
    for options, _, _ in ASKED:
        words = options.split()
        words += [] if "-p" in words else CLOSED
        jobs.append(int(cluster.run("sbatch", "--parsable", "-o", "/dev/null", *words, "--wrap", "true")))
    p, q = (np.array([row[column] for row in ASKED]) for column in (1, 2))
    assert export.priorities is not None
    at_submission(dataclasses.replace(waiting(cluster, jobs), p=p, q=q), export.priorities)


def test_the_order_outlives_hold_release_restart_requeue_and_changes(cluster: Cluster, export: Export) -> None:
    job, other = cluster.submit(4, 30, *CLOSED), cluster.submit(4, 31, *CLOSED, "--nice=1000")
    held = cluster.submit(4, 30, *CLOSED, "--hold")
    first = priority(cluster, job)
    assert_scored(export, cluster, job)
    assert_scored(export, cluster, other, nice=1000)
    assert priority(cluster, held) == 0
    cluster.run("scontrol", "hold", job)
    assert priority(cluster, job) == 0
    cluster.run("scontrol", "release", f"{job},{held}")
    assert priority(cluster, job) == first
    assert_scored(export, cluster, held)
    cluster.restart()
    assert priority(cluster, job) == first

    for change in ("TimeLimit=600", "NumCPUs=17", "NumNodes=2", "TimeLimit=UNLIMITED", "TimeLimit=5"):
        before = priority(cluster, job)
        cluster.run("scontrol", "update", f"JobId={job}", *change.split())
        # Now the submit time is known, so that the map holds to the last place.
        assert priority(cluster, job) == pytest.approx(expected(export, cluster, job), abs=1)
        assert change == "NumNodes=2" or priority(cluster, job) != before
    cluster.run("scontrol", "update", f"JobId={job}", "SiteFactor=5")
    assert priority(cluster, job) == 5

    ran = cluster.submit(2, 9, body="sleep 60")
    cluster.wait_state(ran, "RUNNING")
    of_ran = priority(cluster, ran)
    cluster.run("scontrol", "requeue", ran)
    cluster.wait_state(ran, "PENDING")
    assert priority(cluster, ran) == of_ran


def test_an_ordinary_user_changes_the_limit_and_nothing_else(cluster: Cluster, export: Export) -> None:
    require_root()
    words = "sbatch --parsable -o /dev/null -p closed -n 3 -t 50 --priority=99 --wrap true"
    job = int(cluster.run_as("nobody", *words.split()))
    before = priority(cluster, job)
    assert_scored(export, cluster, job)
    for change in ("SiteFactor=2000000000", "Priority=4000000000"):
        cluster.run_as("nobody", "scontrol", "update", f"JobId={job}", change, check=False)
        assert priority(cluster, job) == before
    cluster.run_as("nobody", "scontrol", "update", f"JobId={job}", "TimeLimit=5")
    assert priority(cluster, job) == pytest.approx(expected(export, cluster, job), abs=1)
    assert priority(cluster, job) > before


def test_a_broken_script_leaves_submissions_working(cluster: Cluster, export: Export) -> None:
    good = cluster.submit(4, 30, *CLOSED)
    broken = {
        "a file that ends early": export.text[: len(export.text) * 2 // 3],
        "a score that raises": export.text.replace("  return pf_log10", "  return nobody.knows + pf_log10"),
        "an error beside it": export.text.replace(" policyfactory.submit(...) end", " nobody.knows(...) end"),
        "an error in the file": export.text.replace("\npolicyfactory = {}", "\nnobody.knows()"),
    }
    jobs = {}
    for name, text in broken.items():
        assert text != export.text
        cluster.replace_file("job_submit.lua", text)
        jobs[name] = cluster.submit(4, 30, *CLOSED)
    # The script of before stays in force where the new one cannot be read; without a score, a job is last.
    assert_scored(export, cluster, good, jobs["a file that ends early"])
    del jobs["a file that ends early"]
    assert [priority(cluster, job) for job in jobs.values()] == [1, 1, 1]
    assert "policyfactory: " in (cluster.log / "slurmctld.log").read_text()
    cluster.replace_file("job_submit.lua", broken["a score that raises"])
    cluster.submit(1, 1, *CLOSED)
    cluster.run("scontrol", "update", f"JobId={good}", "TimeLimit=10")
    assert cluster.show(good)["TimeLimit"] == "00:10:00"


NO_SCRIPT = """function slurm_job_submit() return slurm.SUCCESS end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"""


def type_in(cluster: Cluster, texts: Sequence[str], word: str) -> str:
    """Run the one command of an export's instructions that has the word; return what it prints."""
    (command,) = (text[2:] for text in texts if text.startswith("$ ") and word in text)
    return cluster.run("sh", "-c", command)


def test_the_commands_for_jobs_that_wait_score_them_and_take_the_scores_away(cluster: Cluster, export: Export) -> None:
    cluster.replace_file("job_submit.lua", NO_SCRIPT)
    # An array of which one task runs, whose limit somebody has extended, one is held, and one has its own nice.
    array = cluster.submit(64, 10, "-a", "0-12:2%1", body="sleep 600")
    cluster.wait_state(f"{array}_0", "RUNNING")
    cluster.run("scontrol", "update", f"JobId={array}_0", "TimeLimit=300")
    cluster.run("scontrol", "hold", f"{array}_4")
    cluster.run("scontrol", "update", f"JobId={array}_6", "Nice=9")
    jobs = [cluster.submit(3, minutes, *CLOSED, "--nice=50") for minutes in (10, 3000)]
    jobs.append(cluster.submit(2, "UNLIMITED", *CLOSED, "-a", "0-2"))
    # Without a limit of its own: it has none afterwards either.
    jobs.append(int(cluster.run("sbatch", "--parsable", "-o", "/dev/null", "-p", "day", "--wrap", "true")))
    held = cluster.submit(2, 5, *CLOSED, "--hold")
    before = kept(cluster)
    # The array in four records, and the five others.
    assert len(before) == 9
    # sprio leaves out what cannot run yet, as held jobs and this array.
    assert {*jobs[:2], jobs[3]} <= unscored(cluster, export)

    cluster.replace_file("job_submit.lua", export.text)
    type_in(cluster, export.install, "scontrol")
    assert kept(cluster) == before
    assert not unscored(cluster, export)
    queue = waiting(cluster, jobs)
    assert export.priorities is not None
    nice = np.array([50, 50, 0, 0])
    assert np.abs(queue.priority + nice - export.priorities(queue)).max() <= 1
    result = cluster.show_all()
    tasks = {
        show["ArrayTaskId"]: int(show["Priority"]) for show in result.values() if show.get("ArrayJobId") == str(array)
    }
    rest = tasks.pop("2,8,10,12%1")
    assert rest == pytest.approx(expected(export, cluster, array), abs=1)
    assert {task: tasks[task] for task in "46"} == {"4": 0, "6": rest - 9}
    # Held jobs have a score as well, for when they are released.
    cluster.run("scontrol", "release", f"{array}_4", held)
    assert int(cluster.show(f"{array}_4")["Priority"]) == rest
    assert priority(cluster, held) == pytest.approx(expected(export, cluster, held), abs=1)
    cluster.run("scontrol", "update", "PartitionName=day", "MaxTime=30")
    try:
        cluster.run("scontrol", "update", f"JobId={jobs[-1]}", "Nice=0")
        assert waiting(cluster, jobs[-1:]).p.tolist() == [1800]
        assert priority(cluster, jobs[-1]) == pytest.approx(expected(export, cluster, jobs[-1]), abs=1)
    finally:
        cluster.run("scontrol", "update", "PartitionName=day", "MaxTime=1440")

    type_in(cluster, export.rollback, "scontrol")
    assert kept(cluster) == before
    assert unscored(cluster, export) >= {*jobs[:2], jobs[3]}
    assert {int(line) for line in cluster.run("sprio", "-h", "-o", "%S").split()} == {0}


def kept(cluster: Cluster) -> dict[int, list[str | None]]:
    """Return, of every record that slurmctld has, what an update of the score must not change."""
    names = ("JobState", "TimeLimit", "Nice", "ArrayTaskId", "Partition", "NumCPUs", "Comment")
    living = {job: show for job, show in cluster.show_all().items() if show["JobState"] in ("PENDING", "RUNNING")}
    return {job: [show.get(name) for name in names] for job, show in living.items()}


def unscored(cluster: Cluster, export: Export) -> set[int]:
    """Return the jobs that the command for it lists."""
    return {int(line.split()[0]) for line in type_in(cluster, export.install, "sprio").splitlines()}


def test_a_script_that_is_there_already_calls_the_export(cluster: Cluster, export: Export) -> None:
    (cluster.folder / "policyfactory.lua").write_text(export.text)
    lines = [part.strip() for part in export.install if part.startswith("  ")]
    top, say, submit, modify = (line.replace("/etc/slurm", str(cluster.folder)) for line in lines)
    own = f"""{top}
{say}
function slurm_job_submit(job_desc, part_list, submit_uid)
  job_desc.comment = "seen"
  job_desc.time_limit = 77
  {submit}
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  {modify}
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""
    cluster.replace_file("job_submit.lua", own)
    job = cluster.submit(3, 20, *CLOSED)
    assert (cluster.show(job)["Comment"], cluster.show(job)["TimeLimit"]) == ("seen", "01:17:00")
    assert_scored(export, cluster, job)
    cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=8")
    assert priority(cluster, job) == pytest.approx(expected(export, cluster, job), abs=1)
    # One that cannot be read is logged, and the site's own script goes on.
    (cluster.folder / "policyfactory.lua").write_text("this is not Lua")
    cluster.replace_file("job_submit.lua", own)
    job = cluster.submit(3, 20, *CLOSED)
    assert (cluster.show(job)["Comment"], priority(cluster, job)) == ("seen", 1)
    assert "policyfactory.lua:1: '=' expected" in (cluster.log / "slurmctld.log").read_text()


def test_with_the_printed_settings_jobs_pass_as_easy_lets_them(start_cluster: Callable[..., Cluster]) -> None:
    # The large first: A is the head, needs 4 of the 5 nodes that are free in 10 minutes, and leaves one over.
    export = TARGET.make(model_of("LAF", 0), usual_site())
    assert export.priorities is not None
    settings = dict(line.split("=", 1) for line in export.settings if not line.startswith("#"))
    weight = 50_000
    cluster = start_cluster(
        nodes=8,
        processors=1,
        scheduler=settings.pop("SchedulerType").removeprefix("sched/"),
        parameters=settings.pop("SchedulerParameters"),
        lines=[*(f"{key}={value}" for key, value in settings.items()), f"PriorityWeightPartition={weight}"],
        partitions=(f"{PARTITIONS[0]} PriorityJobFactor=0", f"{PARTITIONS[1]} PriorityJobFactor=10"),
        files={"job_submit.lua": export.text},
    )
    for minutes in (10, 20):
        cluster.wait_state(cluster.submit(3, minutes, body="sleep 600"), "RUNNING")
    # Submitted in the opposite order, and all at once there.
    shapes = [(1, 5), (1, 30), (4, 10), (4, 30)]
    e, d, b, a = [cluster.submit(size, minutes, "--hold", body="sleep 600") for size, minutes in shapes]
    cluster.run("scontrol", "release", f"{a},{b},{d},{e}")
    # A conservative backfilling would let only E pass. (The log of Slurm 26.05 does not say what backfilling starts.)
    for job in (d, e):
        cluster.wait_state(job, "RUNNING")
    queue = waiting(cluster, [a, b])
    assert queue.priority.tolist() == export.priorities(queue).tolist()
    assert queue.priority[0] > queue.priority[1]
    # A user sees the score of a job.
    assert cluster.run("sprio", "-h", "-j", a, "-o", "%Y %S").split() == [str(int(queue.priority[0]))] * 2
    # Other factors of the priority still count, here the partition's. Each component of a heterogeneous job is a job
    # to Slurm (sched/builtin takes none).
    small, large = (("-n", size, "-t", 10, *CLOSED) for size in (2, 7))
    leader = int(cluster.run("sbatch", "--parsable", "-o", "/dev/null", *small, ":", *large, "--wrap", "true"))
    queue = waiting(cluster, [leader, leader + 1])
    assert queue.q.tolist() == [2, 7]
    assert (queue.priority - weight).tolist() == export.priorities(queue).tolist()

    # By usual weights the formula alone decides, unless it has a weight of that size itself.
    for largest, wins in ((None, "formula"), (100_000, "partition")):
        site = usual_site() if largest is None else dataclasses.replace(usual_site(), weight=largest)
        export = TARGET.make(model_of("LAF", 0), site)
        cluster.replace_file("job_submit.lua", export.text)
        first, favoured = cluster.submit(8, 300, "--begin=now+1hour"), cluster.submit(8, 200, *CLOSED)
        queue = waiting(cluster, [first, favoured])
        assert export.priorities is not None
        assert (queue.priority - [0, weight]).tolist() == export.priorities(queue).tolist()
        assert (queue.priority[0] > queue.priority[1]) == (wins == "formula")
    # Of two lines of slurm.conf with one key the last counts, which only the log says.
    with cluster.configuration.open("a") as file:
        file.write("JobSubmitPlugins=all_partitions\n")
    cluster.restart()
    assert re.search(r"JobSubmitPlugins *= all_partitions$", cluster.run("scontrol", "show", "config"), re.MULTILINE)
    assert "specified more than once, latest value used" in (cluster.log / "slurmctld.log").read_text()
