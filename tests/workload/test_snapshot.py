"""Queues as squeue and scontrol print them: one table, whatever the form and the version."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import InputError, PolicyfactoryError, TraceFormatError
from policyfactory.simulation.slurm.explanation import explain_queue
from policyfactory.site.model import NodeGroup, Partition, Site
from policyfactory.workload import snapshot
from policyfactory.workload.jobs import Attributes, Requests, Workload
from policyfactory.workload.snapshot import (
    QueuedJob,
    Snapshot,
    queue_of,
    read_snapshot,
    users_in,
    usual_account,
    with_queue,
    without_untold,
)
from recorded_queues import FORMS, VERSIONS, queue_file
from support import some_by_day

# What not every form says: cores by node, the most nodes, what ended in the same second.
_SAID_BY_SOME = {"node_cores", "most_nodes", "reason", "array_limit"}
SCONTROL = (
    "JobId=7 JobName=a UserId=ada(1) GroupId=ada(1) MCS_label=N/A Priority=12 Nice=0 Account=lab QOS=normal "
    "JobState=PENDING Reason=Priority Dependency=(null) TimeLimit=01:00:00 SubmitTime=1000 EligibleTime=1000 "
    "AccrueTime=1000 StartTime=Unknown Partition=batch NodeList= NumNodes=2-2 NumCPUs=8 "
    "ReqTRES=cpu=8,mem=4G,node=2,billing=8,gres/gpu=2 OverSubscribe=OK"
)


def read(path: Path, text: str | bytes) -> Snapshot:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_snapshot(path)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_forms_say_the_same(version: str) -> None:
    tables = {
        form: {job.number: dataclasses.asdict(job) for job in read_snapshot(queue_file(version, form)).jobs}
        for form in FORMS
    }
    first = tables.pop(FORMS[0])
    assert len(first) > 10
    for form, jobs in tables.items():
        assert jobs.keys() == first.keys()
        for number, job in jobs.items():
            differing = {name for name in job if job[name] != first[number][name]}
            # Since 26.05 lines do not say who has whole nodes.
            unsaid = {"exclusive"} if (version, form) == ("26.05", "lines.txt") else set()
            assert differing <= _SAID_BY_SOME | {"name"} | unsaid, (form, number)


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_what_was_submitted(version: str) -> None:
    snapshot = read_snapshot(queue_file(version, FORMS[0]))
    assert snapshot.version.startswith(version)
    jobs = {job.number: job for job in snapshot.jobs}
    assert (jobs[1].state, jobs[1].nodes, jobs[1].cores, jobs[1].limit) == ("running", 2, 8, 1200)
    assert jobs[1].node_list in {"n[1-2]", "n[2-3]"}
    assert (jobs[4].nodes, jobs[4].exclusive, jobs[4].account) == (4, True, "physics")
    assert jobs[7].held
    assert jobs[8].eligible == jobs[8].submit + 3600
    assert jobs[10].dependency.startswith("afterok:1")
    assert (jobs[11].tasks, jobs[11].array_limit, jobs[11].array) in {(9, 2, 11), (10, 2, 11)}
    assert jobs[11].name.endswith("-9%2]")
    two = next(job for job in snapshot.jobs if len(job.partitions) == 2)
    assert (set(two.partitions), two.memory, two.cores) == ({"batch", "short"}, 900, 9)


def test_the_table_has_a_row_for_each_job() -> None:
    snapshot = read_snapshot(queue_file("24.11", FORMS[0]))
    frame = snapshot.frame()
    assert len(frame) == len(snapshot.jobs)
    assert frame["priority"].dtype == "Int64"


def test_a_record_of_scontrol(tmp_path: Path) -> None:
    (job,) = read(tmp_path / "q.txt", SCONTROL).jobs
    assert (job.number, job.user, job.state, job.limit, job.submit) == (7, "ada", "waiting", 3600, 1000)
    assert (job.nodes, job.most_nodes, job.cores, job.memory, job.gpus) == (2, 2, 8, 4096.0, 2)
    assert job.resources["mem"] == 4096


def test_what_a_name_says_of_other_fields_is_not_taken_for_them(tmp_path: Path) -> None:
    text = SCONTROL.replace("Reason=Priority", "Reason=Priority Comment=x Partition=stolen").replace(
        "NodeList=", "Command=/x JobState=RUNNING NodeList="
    )
    (job,) = read(tmp_path / "q.txt", text).jobs
    assert job.state == "waiting"


def test_jobs_that_ended_are_counted_and_left_out(tmp_path: Path) -> None:
    text = SCONTROL + "\n" + SCONTROL.replace("PENDING", "COMPLETED").replace("JobId=7", "JobId=8") + "\n"
    snapshot = read(tmp_path / "q.txt", text)
    assert len(snapshot.jobs) == 1
    assert "1 job that ended" in " ".join(snapshot.assumed)


def test_a_job_that_is_being_cleaned_up_has_its_nodes_and_no_time_left(tmp_path: Path) -> None:
    text = SCONTROL.replace("PENDING", "COMPLETING").replace("StartTime=Unknown", "StartTime=2000 RunTime=00:01:40")
    (job,) = read(tmp_path / "q.txt", text.replace("NodeList=", "NodeList=n[1-2]")).jobs
    assert (job.state, job.node_list, job.limit) == ("running", "n[1-2]", 1)


def test_the_moment_is_that_of_the_running_jobs(tmp_path: Path) -> None:
    running = SCONTROL.replace("PENDING", "RUNNING").replace("StartTime=Unknown", "StartTime=2000 RunTime=00:01:40")
    assert read(tmp_path / "q.txt", running).taken == 2100
    assert read_snapshot(tmp_path / "q.txt", taken=5000).taken == 5000


def test_what_is_taken_without_the_files_saying_so_is_told(tmp_path: Path) -> None:
    def assumed(text: str, taken: int | None = None) -> str:
        (tmp_path / "q.txt").write_text(text)
        return " ".join(read_snapshot(tmp_path / "q.txt", taken=taken).assumed)

    assert "--taken" in assumed(SCONTROL)  # nobody runs, so that nothing says what time it is
    dated = '{"jobs": [%s], "last_update": 9000, "meta": {}}'
    job = '{"job_id": 1, "job_state": ["PENDING"], "submit_time": 100, "partition": "all", "cpus": 1%s}'
    assert assumed(dated % job % ', "time_limit": 60', taken=9001) == ""
    assert "printed at" in assumed(dated % job % ', "time_limit": 60', taken=999_999)
    assert "TIME_LIMIT" in assumed(dated % job % "")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", ":1", "does not begin"),
        ("JobID|User|State\n1|a|COMPLETED\n", ":1", "does not begin"),
        ("; Version: 2.2\n", ":1", "does not begin"),
        ("             JOBID PARTITION     NAME\n", ":1", "squeue --json"),
        ('{"jobs": [{"job_id": 1}]}', "job 1 of the list", "JobState"),
        ('{"jobs": [{"time": {}, "job_id": 1}]}', "job 1 of the list", "sacct --json"),
        ('{"jobs": [3]}', "job 1 of the list", "JobId"),
        ('{"jobs": [', "", "squeue --json"),
        ('{"meta": {}}', "", "no list called jobs"),
        ("[" * 100_000, ":1", "does not begin"),
        ('{"jobs": [' + "[" * 100_000, "job 1", "nested"),
        ("JobId=x JobState=PENDING SubmitTime=1\n", ":1", "JobId"),
        ("JobId=1 JobState=PENDING SubmitTime=yesterday\n", ":1", "'yesterday'"),
        ("JOBID|STATE|SUBMIT_TIME\n1|PENDING|5|x\n", ":2", "cells"),
        (SCONTROL.replace("SubmitTime=1000", "SubmitTime=Unknown"), ":1", "SubmitTime"),
    ],
)
def test_what_is_no_queue_is_refused_with_its_place(tmp_path: Path, text: str, place: str, said: str) -> None:
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path / "q.txt", text)
    assert place in str(caught.value)
    assert said in str(caught.value)
    assert "print" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_snapshot(tmp_path / "none.json")


def test_blank_lines_before_the_first_are_nothing(tmp_path: Path) -> None:
    lines = "\n \nJOBID|STATE|SUBMIT_TIME\n1|PENDING|5\n"
    assert [job.number for job in read(tmp_path / "q.txt", lines).jobs] == [1]
    with pytest.raises(TraceFormatError, match=":5: "):
        read(tmp_path / "q.txt", lines + "2|PENDING\n")
    with pytest.raises(TraceFormatError, match=":3: a job without SubmitTime"):
        read(tmp_path / "q.txt", "\n\n" + SCONTROL.replace("SubmitTime=1000", "SubmitTime=Unknown"))


def test_no_shared_cores_mean_whole_nodes_only_where_some_jobs_share(tmp_path: Path) -> None:
    lines = "JOBID|STATE|SUBMIT_TIME|OVER_SUBSCRIBE\n1|PENDING|5|NO\n2|PENDING|5|NO\n"
    assert [job.exclusive for job in read(tmp_path / "q.txt", lines).jobs] == [False, False]
    jobs = read(tmp_path / "q.txt", lines + "3|PENDING|5|OK\n").jobs
    assert [job.exclusive for job in jobs] == [True, True, False]


def test_the_texts_of_all_jobs_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyfactory.workload.snapshot._MOST_TEXT", 3000)
    lines = "JOBID|STATE|SUBMIT_TIME|USER\n" + "".join(f"{number}|PENDING|5|{'u' * 900}\n" for number in range(3))
    with pytest.raises(TraceFormatError, match=r"first 3 jobs.*squeue --partition"):
        read(tmp_path / "q.txt", lines)


def test_numbers_have_bounds(tmp_path: Path) -> None:
    (job,) = read(tmp_path / "q.txt", SCONTROL.replace("mem=4G", "mem=999999999999999P")).jobs
    assert job.memory is None
    (job,) = read(tmp_path / "q.txt", SCONTROL.replace("mem=4G", "x=1 MinMemoryNode=999999999999999P")).jobs
    assert job.memory is None
    for throttle, limit in (("%3", 3), ("%\N{SUPERSCRIPT TWO}", 0), ("%" + "9" * 30, 0)):
        (job,) = read(tmp_path / "q.txt", f"{SCONTROL} ArrayJobId=7 ArrayTaskId=5{throttle}").jobs
        assert (job.tasks, job.array_limit) == (1, limit)
    with pytest.raises(TraceFormatError, match=r":1: EligibleTime='9{20}' of job 7 is no time"):
        read(tmp_path / "q.txt", SCONTROL.replace("EligibleTime=1000", "EligibleTime=" + "9" * 20))


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({"tres_per_node": "gres/gpu:2080ti"}, 2), ({"tres_per_node": "gres/gpu"}, 2),
        ({"tres_per_job": "gres/gpu:3"}, 3),
        ({"tres_per_task": "gres/gpu:1", "tasks": {"set": True, "infinite": False, "number": 8}}, 8),
        ({"tres_per_node": "gres/gpu:a100:2,gres/shard:4"}, 4), ({}, 0),
    ],
)  # fmt: skip
def test_gpus_that_no_tres_counts_are_those_that_are_asked_for(
    tmp_path: Path, asked: dict[str, Any], gpus: int
) -> None:
    jobs = json.loads(gzip.decompress(queue_file("26.05", "squeue.json.gz").read_bytes()))["jobs"]
    waiting = next(job for job in jobs if job["job_state"] == ["PENDING"])
    counted = {"set": True, "infinite": False, "number": 2}
    (tmp_path / "q.json").write_text(
        json.dumps({"jobs": [waiting | {"tres_req_str": "cpu=4,mem=1G,node=2", "node_count": counted} | asked]})
    )
    assert read_snapshot(tmp_path / "q.json").jobs[0].gpus == gpus


def variants(good: Any, values: tuple[Any, ...], keys: Iterable[Any] | None = None) -> Iterator[Any]:
    """Give a value with each of its parts, or of those with these keys, replaced by each value, however deep it is."""
    if isinstance(good, dict | list):
        for key in keys or (good if isinstance(good, dict) else range(len(good))):
            for other in (*values, *variants(good[key], values)):
                changed = good.copy()
                changed[key] = other
                yield changed


@pytest.mark.parametrize("state", some_by_day(["RUNNING", "PENDING"], 1))
def test_strange_values_are_taken_as_unknown(tmp_path: Path, state: str) -> None:
    """Whatever stands in a job's fields: nothing but an error of ours, no number out of bounds, and it is explained."""
    jobs = json.loads(gzip.decompress(queue_file("26.05", "squeue.json.gz").read_bytes()))["jobs"]
    good = next(job for job in jobs if job["job_state"] == [state])
    strange = (
        None, [], {}, [[]], {"set": True, "number": 1e300}, -(2**70), "\x1b[31m", "9" * 400, True, [1], 5, "9" * 20,
        10**14, "999999999999999P", "\N{SUPERSCRIPT TWO}",
    )  # fmt: skip
    site = Site("small", (NodeGroup("n[1-4]", 4),), partitions=(Partition("batch"), Partition("short")))
    # What the reader has no word for is changed all at once.
    text = Path(snapshot.__file__).read_text(encoding="utf-8")
    known = {key for key in good if f'"{key}"' in text}
    assert 20 < len(known) < len(good)
    rest = [good | dict.fromkeys(good.keys() - known, value) for value in strange]
    found = {}
    for changed in (*variants(good, strange, known), *rest):
        (tmp_path / "q.json").write_text(json.dumps({"jobs": [changed]}))
        with contextlib.suppress(TraceFormatError):
            queue = read_snapshot(tmp_path / "q.json")
            found[repr(queue)] = queue
    assert len(found) > 20
    for queue in found.values():
        for job in queue.jobs:
            assert "\x1b" not in repr(job)
            assert max(abs(job.cores), job.tasks, job.memory or 0, job.gpus, *job.node_cores, 0) < 2**53
        with contextlib.suppress(PolicyfactoryError):
            explain_queue(queue, site)


@pytest.mark.parametrize(
    ("state", "turn", "start"), [("SUSPENDED", 2100, 8900), ("RUNNING", 5000, 4900), ("RUNNING", "None", 2000)]
)
def test_what_a_job_ran_is_told_without_the_time_in_which_it_was_suspended(
    tmp_path: Path, state: str, turn: object, start: int
) -> None:
    """It had run for 100 s when it was suspended, or went on."""
    words = SCONTROL.replace("PENDING", state).replace("StartTime=Unknown", f"StartTime=2000 SuspendTime={turn}")
    words = words.replace("Partition", "SecsPreSuspend=100 Partition")
    snapshot = read(tmp_path / "q.txt", words + "\n" + SCONTROL.replace("JobId=7", "JobId=8 LastSchedEval=9000"))
    assert (snapshot.taken, snapshot.jobs[0].start) == (9000, start)
    assert any("suspended" in text for text in snapshot.assumed) == (state == "SUSPENDED")


def test_what_else_a_job_asks_for_is_kept_in_words(tmp_path: Path) -> None:
    text = SCONTROL.replace("NodeList= ", "NodeList= ReqNodeList=n1 Features=fast Licenses=matlab:1 HetJobId=5 ")
    (job,) = read(tmp_path / "q.txt", text).jobs
    assert (job.only, job.het) == ("nodes n1, features fast, licenses matlab:1", 5)
    (job,) = read(tmp_path / "q.txt", SCONTROL).jobs
    assert (job.only, job.het) == ("", 0)


def test_what_a_queue_names_is_what_the_log_has_of_the_same_names() -> None:
    """Partitions and QOS by names, groups by users; what nobody can know is learned of nobody."""
    unknown = np.full(3, -1)
    asked = Requests(
        *(unknown,) * 6,
        partition=np.array([0, 1, 0]),
        qos=np.array([0, 0, 1]),
        account=np.array([0, 0, 1]),
        user_name=np.array([0, 1, 1]),
        names={"partition": ("batch", "short"), "qos": ("low", "high"), "account": ("a", "b"), "user": ("ann", "bob")},
    )
    told = Attributes(*np.array([[9, 9, 9], [4, 5, 6], [7, 7, 7], [1, 2, 3], [8, 8, 9], [-1, -1, -1]]))
    columns = (np.arange(1, 4), np.array([0, 10, 20]), np.array([5, 5, 5]), np.array([9, 9, 9]), np.array([1, 1, 1]))
    log = Workload("log", 4, *columns, np.array([11, 12, 12]), unknown, unix_start=100, attributes=told, requests=asked)
    jobs = [
        QueuedJob("8", 8, "waiting", "bob", "b", "high", ("batch",), 150),
        QueuedJob("9", 9, "waiting", "eve", "", "odd", ("strange",), 150),
        QueuedJob("10", 10, "waiting", "eve", "", "", (), 150),
    ]
    user, strange = users_in(log, jobs)
    assert strange == 1
    joined, _ = with_queue(without_untold(log), jobs, user, 60)
    assert joined.attributes is not None
    new = joined.attributes.select(slice(3, None))
    assert (new.queue.tolist(), new.partition.tolist(), new.group.tolist()) == ([3, -1, -1], [9, -1, -1], [6, -1, -1])
    assert (joined.attributes.executable < 0).all()
    assert (joined.attributes.requested_memory < 0).all()
    # Without names nobody knows what a queue's partition is called in the log.
    plain = without_untold(dataclasses.replace(log, requests=None)).attributes
    assert plain is not None
    assert (plain.queue.max(), plain.partition.max(), plain.group.max()) == (-1, -1, 6)
    # Of several partitions a queue tells the first, and not in which the job will run.
    names = asked.names | {"partitions": ("short,batch",)}
    listed = dataclasses.replace(asked, partitions=np.array([0, 0, -1]), names=names)
    several = without_untold(dataclasses.replace(log, requests=listed)).attributes
    assert several is not None
    assert several.queue.tolist() == [2, 2, 3]
    # Which number a partition has, jobs of several do not say.
    last = dataclasses.replace(listed, partitions=np.array([-1, -1, 0]))
    told_again, _ = with_queue(without_untold(dataclasses.replace(log, requests=last)), jobs[:1], user[:1], 60)
    assert told_again.attributes is not None
    assert told_again.attributes.queue.tolist() == [1, 2, 2, 1]
    queue = Snapshot("queue", 160, tuple(jobs))
    assert [usual_account(queue, log, name) for name in ("bob", "ann", "eve")] == ["b", "a", ""]


def test_a_job_that_is_not_eligible_yet_is_held_in_the_queue_of_an_instant() -> None:
    """When it will be let in is not known then, though the log says it."""
    unknown = np.full(2, -1)
    asked = Requests(*(unknown,) * 4, np.array([500, 10]), *(unknown,) * 5)
    columns = (np.arange(1, 3), np.array([0, 10]), np.array([5, 5]), np.array([9, 9]), np.array([1, 1]))
    log = Workload("log", 4, *columns, unknown, unknown, unix_start=100, requests=asked)
    snapshot, rows = queue_of(log, unknown, (np.zeros(0, dtype=np.int64), np.arange(2)), 20, ["all"])
    assert rows.tolist() == [0, 1]
    assert [(job.held, job.eligible) for job in snapshot.jobs] == [(True, None), (False, 110)]
