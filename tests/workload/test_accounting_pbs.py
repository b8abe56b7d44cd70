"""Accounting logs of OpenPBS and TORQUE become records: every type of line, every way to say how many processors."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Iterable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.importing import Zone, import_logs
from policyfactory.workload.accounting.pbs import (
    count_slots,
    fields_of,
    hosts_of,
    parse_walltime,
    read,
    requested_processors,
    vnode_processors,
)
from policyfactory.workload.accounting.record import LimitKind, Record, Remark, State, array_size
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.swf.files import read_swf
from refusals import refused

# 2026-03-02 10:00:00 UTC
T = 1_772_445_600


def stamp(seconds: int, zone: dt.tzinfo = dt.UTC) -> str:
    return dt.datetime.fromtimestamp(seconds, zone).strftime("%m/%d/%Y %H:%M:%S")


def line(seconds: int, kind: str, job: str, text: str = "", zone: dt.tzinfo = dt.UTC) -> str:
    return f"{stamp(seconds, zone)};{kind};{job};{text}"


def openpbs(begin: int = T + 30, end: int = T + 630, status: str | None = "0", **changes: str) -> str:
    """The text of an E record as OpenPBS 23 writes it."""
    fields = {
        "user": "ada",
        "group": "physics",
        "account": '"grant 7"',
        "project": "_pbs_project_default",
        "jobname": "relax",
        "queue": "workq",
        "ctime": str(T),
        "qtime": str(T),
        "etime": str(T + 5),
        "start": str(begin),
        "exec_host": "c1/0*8+c2/0*8",
        "exec_vnode": "(c1:ncpus=8:mem=4194304kb)+(c2:ncpus=8:mem=4194304kb)",
        "Resource_List.mem": "8gb",
        "Resource_List.ncpus": "16",
        "Resource_List.nodect": "2",
        "Resource_List.place": "scatter",
        "Resource_List.select": "2:ncpus=8:mem=4gb:mpiprocs=8",
        "Resource_List.walltime": "01:00:00",
        "session": "4711",
        "end": str(end),
        "Exit_status": status,
        "resources_used.cput": "02:30:00",
        "resources_used.ncpus": "16",
        "resources_used.walltime": "00:09:57",
        "eligible_time": "00:00:25",
        "run_count": "1",
        **changes,
    }
    return " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)


def torque(**changes: str) -> str:
    """The text of an E record as TORQUE 6 writes it, the servers' default ncpus=1 beside nodes included."""
    fields = {
        "user": "bela",
        "group": "chem",
        "account": "c01-mat",
        "jobname": "opt.job",
        "queue": "batch",
        "ctime": str(T),
        "qtime": str(T + 1),
        "etime": str(T + 1),
        "start_count": "1",
        "start": str(T + 100),
        "owner": "bela@login1.example.org",
        "exec_host": "n11/0-15+n10/0-15",
        "Resource_List.ncpus": "1",
        "Resource_List.neednodes": "2:ppn=16",
        "Resource_List.nodect": "2",
        "Resource_List.nodes": "2:ppn=16",
        "Resource_List.walltime": "120:00:00",
        "session": "18613",
        "total_execution_slots": "32",
        "unique_node_count": "2",
        "end": str(T + 400),
        "Exit_status": "0",
        "resources_used.walltime": "00:05:00",
        **changes,
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())


def records(lines: Iterable[str], zone: dt.tzinfo = dt.UTC) -> list[Record]:
    return [item for item in read(lines, "log", Clock(zone)) if isinstance(item, Record)]


def remarks(lines: Iterable[str]) -> list[Remark]:
    return [item for item in read(lines, "log", Clock()) if isinstance(item, Remark)]


def one(text: str) -> Record:
    (record,) = records([line(T + 630, "E", "7.srv", text)])
    return record


def test_an_end_record_of_openpbs() -> None:
    assert one(openpbs()) == Record(
        line=1,
        job="7.srv",
        submit=T,
        eligible=T + 5,
        start=T + 30,
        end=T + 630,
        elapsed=600,
        limit=3600,
        limit_kind=LimitKind.given,
        requested=16,
        allocated=16,
        requested_nodes=2,
        allocated_nodes=2,
        state=State.completed,
        user="ada",
        group="physics",
        account="grant 7",
        partition="workq",
        name="relax",
        memory=8192,
        gpus=0,
    )


def test_an_end_record_of_torque() -> None:
    record = one(torque())
    assert (record.requested, record.allocated, record.requested_nodes, record.allocated_nodes) == (32, 32, 2, 2)
    assert (record.submit, record.start, record.end, record.limit) == (T, T + 100, T + 400, 120 * 3600)
    assert (record.user, record.group, record.account, record.partition) == ("bela", "chem", "c01-mat", "batch")


def test_a_daemon_that_writes_queue_and_start_adds_no_job() -> None:
    lines = [
        line(T, "Q", "7.srv", "queue=workq"),
        line(T + 30, "S", "7.srv", openpbs(status=None)),
        line(T + 630, "E", "7.srv", openpbs()),
    ]
    (record,) = records(lines)
    assert (record.line, record.state) == (3, State.completed)
    assert remarks(lines) == []


@pytest.mark.parametrize(
    ("fields", "processors"),
    [
        ({"Resource_List.ncpus": "12", "Resource_List.select": "2:ncpus=6"}, 12),
        ({"Resource_List.select": "2:ncpus=4:mem=1gb+1:ncpus=3"}, 11),
        ({"Resource_List.select": "ncpus=4+3"}, 7),
        ({"Resource_List.select": "1:host=c1:ncpus=5"}, 5),
        ({"Resource_List.select": "4:mpiprocs=2"}, 4),
        ({"Resource_List.select": "1:ncpus=0"}, None),
        ({"Resource_List.nodes": "4:ppn=16"}, 64),
        ({"Resource_List.nodes": "4:ppn=16:avx", "Resource_List.ncpus": "1"}, 64),
        ({"Resource_List.nodes": "1", "Resource_List.ncpus": "8"}, 8),
        ({"Resource_List.nodes": "n1:ppn=2+n2:ppn=3"}, 5),
        ({"Resource_List.nodes": "2:fast:ppn=8+1#shared"}, 17),
        ({"Resource_List.nodes": "2:ppn=2:cpp=3"}, 12),
        ({"Resource_List.nodes": "1:gpus=2:ppn=6"}, 6),
        ({"Resource_List.nodes": "n1+n2+n3"}, 3),
        ({"Resource_List.procs": "48", "Resource_List.nodes": "1"}, 48),
        ({"Resource_List.mppwidth": "256", "Resource_List.ncpus": "1"}, 256),
        ({"Resource_List.nodes": "x" * 50}, 1),
        ({"Resource_List.ncpus": "many"}, None),
        ({}, None),
    ],
)
def test_processors_asked_for(fields: dict[str, str], processors: int | None) -> None:
    assert requested_processors(fields) == processors


@pytest.mark.parametrize(
    ("hosts", "slots", "different"),
    [
        ("c1/0", 1, 1),
        ("c1/0*13+c2/0*13", 26, 2),
        ("c1/0*4+c1/1*4+c2/7", 9, 2),
        ("n33/3+n33/2+n33/1+n33/0", 4, 1),
        ("n11/0-15+n10/0-15", 32, 2),
        ("n1/0-3,8,10-11", 7, 1),
        ("n1.example.org/0-1+n2.example.org/5", 3, 2),
        ("n1+n2", 2, 2),
        ("n1/0*x", 1, 1),
        ("n1/5-2", 1, 1),
        ("n1/0-3,x", 5, 1),
    ],
)
def test_processors_of_the_hosts(hosts: str, slots: int, different: int) -> None:
    assert (count_slots(hosts), hosts_of(hosts)) == (slots, different)


def test_processors_of_virtual_nodes_count_before_those_of_hosts() -> None:
    assert vnode_processors("(v1:ncpus=4:mem=2kb)+(v2:ncpus=2+v3:ncpus=1)+(v4:mem=1kb)") == 7
    assert one(openpbs(exec_host="c1/0+c2/0")).allocated == 16
    assert one(openpbs(exec_vnode="(c1:mem=1kb)")).allocated == 16
    assert one(openpbs(exec_vnode=None, exec_host=None)).allocated is None
    # On a Cray the host is the login node, and mppwidth says what was used.
    assert one(torque(exec_host="nid00007/24", **{"Resource_List.mppwidth": "512"})).allocated == 512


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:16:40", 1000),
        ("876000:00:00", 876000 * 3600),
        ("90", 90),
        ("10:30", 630),
        ("2:03:00:00", 2 * 86400 + 3 * 3600),
        ("01:00:00.50", 3600),
        ("", None),
        ("one hour", None),
        ("-1:00:00", None),
        ("1:2:3:4:5", None),
        ("\u0661:00:00", None),
        ("9" * 13, None),
    ],
)
def test_walltimes(text: str, seconds: int | None) -> None:
    assert parse_walltime(text) == seconds


def test_a_job_without_walltime_has_no_requested_time() -> None:
    record = one(openpbs(**{"Resource_List.walltime": None}))
    assert (record.limit, record.limit_kind, record.elapsed) == (None, LimitKind.missing, 600)
    assert one(openpbs(**{"Resource_List.walltime": "00:00:00"})).limit_kind is LimitKind.missing
    lines = [line(T, "E", "7.srv", openpbs(**{"Resource_List.walltime": "soon"}))]
    assert records(lines)[0].limit_kind is LimitKind.missing
    assert [(remark.action, remark.what) for remark in remarks(lines)] == [
        ("changed", "jobs whose walltime cannot be read")
    ]


@pytest.mark.parametrize(
    ("changes", "deleted", "state"),
    [
        ({"Exit_status": "0"}, False, State.completed),
        ({"Exit_status": "0"}, True, State.completed),
        ({"Exit_status": "1"}, False, State.failed),
        ({"Exit_status": "271"}, True, State.cancelled),
        ({"Exit_status": "271"}, False, State.failed),
        ({"Exit_status": "271", "Resource_List.walltime": "00:10:00"}, False, State.timeout),
        ({"Exit_status": "-29"}, False, State.timeout),
        ({"Exit_status": "-27"}, False, State.failed),
        ({"Exit_status": None}, False, State.unknown),
        ({"Exit_status": None}, True, State.cancelled),
    ],
)
def test_how_a_job_ended(changes: dict[str, str], deleted: bool, state: State) -> None:
    lines = [line(T + 620, "D", "7.srv", "requestor=ada@login1")] if deleted else []
    (record,) = records([*lines, line(T + 630, "E", "7.srv", openpbs(**changes))])
    assert record.state is state


def test_a_job_deleted_before_it_began() -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    lines = [
        line(T, "Q", "8.srv", "queue=workq", berlin),
        line(T + 50, "D", "8.srv", "requestor=ada@login1", berlin),
    ]
    (record,) = records(lines, berlin)
    assert (record.submit, record.start, record.end, record.state) == (T, None, T + 50, State.cancelled)
    assert (record.partition, record.allocated, record.line, record.user) == ("workq", None, 1, "")
    # OpenPBS from 20 on writes the whole request when a job is queued.
    (asked,) = records([line(T + 9, "Q", "8.srv", openpbs(begin=0, exec_host=None, exec_vnode=None)), lines[1]])
    assert (asked.submit, asked.start, asked.user, asked.requested, asked.limit) == (T, None, "ada", 16, 3600)
    # The zone matters for these times only.
    (shifted,) = records(lines, dt.UTC)
    assert shifted.submit == T + 3600
    (ended,) = records([line(T, "E", "8.srv", openpbs())], berlin)
    assert ended.submit == T


def test_a_job_deleted_by_the_server_before_it_began_has_start_zero() -> None:
    lines = [
        line(T, "Q", "8.srv", "queue=workq"),
        line(T + 9, "D", "8.srv", "requestor=root@srv"),
        line(T + 9, "E", "8.srv", openpbs(begin=0, end=T + 9, status="271", exec_host=None, exec_vnode=None)),
    ]
    (record,) = records(lines)
    assert (record.start, record.elapsed, record.allocated, record.state) == (None, None, None, State.cancelled)


def test_jobs_that_the_log_leaves_behind() -> None:
    lines = [
        line(T, "Q", "1.srv", "queue=workq"),
        line(T, "Q", "2.srv", f"user=ada ctime={T - 3} queue=long"),
        line(T + 5, "S", "2.srv", openpbs(begin=T + 5, status=None, queue="long")),
        line(T, "Q", "3.srv", "queue=workq"),
        line(T + 5, "S", "3.srv", openpbs(begin=T + 5, status=None)),
        line(T + 9, "A", "3.srv"),
        line(T + 9, "Q", "4.srv", "queue=workq"),
        line(T + 19, "A", "4.srv"),
    ]
    waiting, running, aborted, never = records(lines)
    assert (waiting.job, waiting.submit, waiting.state) == ("1.srv", T, State.pending)
    assert (running.start, running.end, running.state, running.line) == (T + 5, None, State.running, 3)
    assert (aborted.start, aborted.end, aborted.state) == (T + 5, T + 9, State.failed)
    assert (never.start, never.end, never.state) == (None, T + 19, State.cancelled)


def test_a_running_job_that_was_deleted_is_still_running_here() -> None:
    """Its E record is in the next file."""
    lines = [line(T + 30, "S", "3.srv", openpbs(status=None)), line(T + 99, "D", "3.srv", "requestor=ada@login1")]
    (record,) = records(lines)
    assert (record.state, record.end) == (State.running, None)


def test_a_job_that_is_run_again() -> None:
    """OpenPBS's R record has the times of the run; TORQUE's has nothing, and the S record before it counts."""
    first = openpbs(begin=T + 30, end=T + 90, status="-11")
    second = openpbs(begin=T + 200, end=T + 800)
    whole = [
        line(T + 90, "R", "7.srv", first),
        line(T + 200, "S", "7.srv", openpbs(begin=T + 200, status=None)),
        line(T + 800, "E", "7.srv", second),
    ]
    bare = [line(T + 30, "S", "7.srv", first), line(T + 90, "R", "7.srv"), *whole[1:]]
    for lines in (whole, bare):
        again, last = records(lines)
        assert (again.start, again.end, again.elapsed, again.state) == (T + 30, T + 90, 60, State.requeued)
        assert (again.submit, again.job) == (last.submit, last.job) == (T, "7.srv")
        assert (last.start, last.end, last.state) == (T + 200, T + 800, State.completed)
    lost = [line(T, "R", "7.srv"), *whole[1:]]
    assert [record.state for record in records(lost)] == [State.completed]
    assert [remark.what for remark in remarks(lost)] == ["reruns whose first start is not in this file"]
    waits = records(whole[:1])
    assert [record.state for record in waits] == [State.requeued, State.pending]
    assert waits[1].submit == T


def test_suspended_time_is_no_run_time() -> None:
    lines = [
        line(T + 30, "S", "7.srv", openpbs(status=None)),
        line(T + 100, "z", "7.srv", "resources_used.walltime=00:01:10"),
        line(T + 150, "r", "7.srv"),
        line(T + 600, "z", "7.srv"),
        line(T + 630, "E", "7.srv", openpbs()),
    ]
    (record,) = records(lines)
    assert (record.suspended, record.elapsed) == (80, 520)
    # The walltime that the scheduler polled is older than the end of a short job, and is not used.
    assert one(openpbs(**{"resources_used.walltime": "00:00:00"})).elapsed == 600
    wrong = [
        line(T - 9000, "z", "7.srv"),
        line(T + 630, "E", "7.srv", openpbs()),
    ]
    assert records(wrong)[0].elapsed == 600
    assert [remark.action for remark in remarks(wrong)] == ["changed"]


def test_arrays_count_by_their_tasks() -> None:
    lines = [
        line(T, "Q", "9[].srv", f"user=ada queue=workq ctime={T} array_indices=0-9:2"),
        line(T + 30, "S", "9[0].srv", openpbs(status=None)),
        line(T + 30, "S", "9[].srv", f"ctime={T} array_indices=0-9:2"),
        line(T + 630, "E", "9[0].srv", openpbs()),
        line(T + 640, "E", "9[2].srv", openpbs()),
        line(T + 650, "D", "9[4].srv", "requestor=ada@login1"),
    ]
    result = records(lines)
    assert [(record.job, record.state, record.tasks) for record in result] == [
        ("9[0].srv", State.completed, 1),
        ("9[2].srv", State.completed, 1),
        ("9[].srv", State.pending, 2),
        ("9[4].srv", State.cancelled, 1),
    ]
    assert {record.submit for record in result} == {T}
    assert [item.action for item in remarks(lines)] == ["skipped"]
    # When the array has ended, nothing of it waits.
    done = [*lines, line(T + 700, "E", "9[].srv", openpbs(array_indices="0-9:2"))]
    assert [record.job for record in records(done)] == ["9[0].srv", "9[2].srv", "9[4].srv"]
    deleted = records([lines[0], line(T + 8, "D", "9[].srv", "requestor=ada@login1")])
    assert [(record.state, record.tasks, record.end) for record in deleted] == [(State.cancelled, 5, T + 8)]


@pytest.mark.parametrize(
    ("indices", "tasks"),
    [("0-9", 10), ("0-999999999", 10**7), ("0-8:2", 5), ("1,4-6%2", 4), ("7", 1), ("a-b", 0), ("9-3", 0), ("", 0)],
)
def test_sizes_of_arrays(indices: str, tasks: int) -> None:
    assert array_size(indices) == tasks


def test_lines_that_are_no_end_of_a_job_are_counted() -> None:
    lines = [
        line(T, "L", "license", "floating license hour:3 day:3 month:3 max:10"),
        line(T, "B", "R5.srv", f"owner=root queue=R5 ctime={T} start={T} end={T + 60}"),
        line(T, "Q", "5.srv", "queue=route"),
        line(T, "M", "5.srv", "destination=far@other"),
        "04/01/2026 10:00:0",
        "",
        line(T, "E", "6.srv", "user=ada queue=workq"),
        line(T, "E", "6.srv", f"user=ada queue=workq ctime={T} end={T + 5}"),
    ]
    assert records(lines) == []
    assert [(remark.line, remark.action) for remark in remarks(lines)] == [
        (1, "skipped"),
        (2, "skipped"),
        (4, "dropped"),
        (5, "dropped"),
        (7, "dropped"),
        (8, "dropped"),
    ]


def test_a_file_without_any_record_is_refused() -> None:
    refused(TraceFormatError, "other.txt:2 PBS MM/DD/YYYY", list, read(["", "JobID|State"], "other.txt", Clock()))
    refused(TraceFormatError, "PBS record empty", list, read([], "empty", Clock()))


def test_blanks_and_quotes_in_values() -> None:
    text = openpbs(jobname="my first job", group='"RConsole Users"', project="north sea")
    record = one(text.replace("project=north sea", 'project="north sea"').replace("account=", "no="))
    assert (record.group, record.account, record.start) == ("RConsole Users", "north sea", T + 30)
    assert fields_of('a=\'x "y" z\' b="it\'s" c="open d=4') == {"a": 'x "y" z', "b": "it's", "c": '"open', "d": "4"}


HOSTILE = [
    '"x', "'", "x queue=mine ctime=5 start=6 end=7", 'y" z="', "user=root group=wheel", ";E;9.srv;", "=", " = = ",
    "é\u2028x", "Resource_List.walltime=99:00:00",
]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), max_size=4).map(" ".join))
def test_a_job_name_changes_no_other_field(name: str) -> None:
    name = name.replace("\n", " ").replace("\r", " ")
    record = one(openpbs(jobname=name))
    record.name = "relax"
    assert record == one(openpbs())


KINDS = st.sampled_from("EQSRDAMzrLxC")
IDS = st.sampled_from(["1.srv", "2.srv", "3[].srv", "3[1].srv", "3[2].srv", "x[", "]["])
NUMBERS = st.one_of(st.integers(T - 10, T + 10).map(str), st.sampled_from(["0", "-1", "", "9" * 20, "x"]))


@st.composite
def wild_lines(draw: st.DrawFn) -> str:
    text = openpbs(
        **{
            name: draw(NUMBERS)
            for name in draw(
                st.sets(st.sampled_from(["ctime", "start", "end", "Resource_List.ncpus", "array_indices"]))
            )
        }
    )
    when = draw(st.sampled_from([stamp(T), stamp(T + 60), "13/32/2026 25:61:61", "02/30/2026 10:00:00"]))
    return f"{when};{draw(KINDS)};{draw(IDS)};{draw(st.sampled_from([text, '', 'queue=a', text[:90]]))}"


@given(st.lists(st.one_of(wild_lines(), st.text(max_size=30)), max_size=12))
def test_any_log_gives_records_that_make_sense(lines: list[str]) -> None:
    try:
        result = list(read([line.replace("\n", "") for line in lines], "log", Clock()))
    except TraceFormatError:
        assert not any(line.count(";") >= 3 and line[:5] in {stamp(T)[:5], "13/32", "02/30"} for line in lines)
        return
    for item in result:
        assert 1 <= item.line <= len(lines)
        if isinstance(item, Record):
            assert item.tasks >= 1
            assert item.limit is None or item.limit > 0
            if item.suspended is not None:
                assert None not in (item.start, item.end, item.elapsed)
                assert item.elapsed + item.suspended == item.end - item.start
        else:
            assert item.action in {"dropped", "skipped", "changed", "kept"}


@st.composite
def runs(draw: st.DrawFn) -> list[int]:
    """Submit, start and end of some jobs."""
    submit = draw(st.integers(T, T + 1000))
    start = submit + draw(st.integers(0, 1000))
    return [submit, start, start + draw(st.integers(0, 1000))]


@given(st.lists(runs(), min_size=1, max_size=8), st.randoms(use_true_random=False), st.integers(0, 3000))
def test_what_a_server_writes_is_read_back(jobs: list[list[int]], random, cut: int) -> None:
    """Events of several jobs in the order of their times, the log cut off somewhere: each job as far as it is there."""
    events = []
    for number, (submit, start, end) in enumerate(jobs):
        job = f"{number}.srv"
        text = openpbs(begin=start, end=end, ctime=str(submit))
        events += [
            (submit, 0, number, line(submit, "Q", job, "queue=workq")),
            (start, 1, number, line(start, "S", job, openpbs(begin=start, status=None, ctime=str(submit)))),
            (end, 2, number, line(end, "E", job, text)),
        ]
    events.sort(key=lambda event: event[:3])
    kept = [event for event in events if event[0] <= T + cut]
    expected = {}
    for number, (submit, start, end) in enumerate(jobs):
        if submit <= T + cut:
            state = State.pending if start > T + cut else State.running if end > T + cut else State.completed
            expected[f"{number}.srv"] = (
                submit,
                start if state is not State.pending else None,
                end if state is State.completed else None,
                state,
            )
    if kept:
        result = records([event[3] for event in kept])
        assert {record.job: (record.submit, record.start, record.end, record.state) for record in result} == expected
        assert len(result) == len(expected)


def test_daily_files_give_the_same_jobs_as_one(tmp_path: Path) -> None:
    """A server begins a file a day: jobs begin in one and end in another, are run again, deleted, or wait on."""
    day = 86_400
    random = Random(5)
    events: list[tuple[int, str]] = []
    for number in range(200):
        job = f"{number}.srv"
        submit = T + random.randrange(5 * day)
        start = submit + random.randrange(2 * day)
        end = start + random.randrange(1, 2 * day)
        fields = {"ctime": str(submit), "user": f"u{number % 7}", "jobname": "x y=z"}
        events.append((submit, line(submit, "Q", job, "queue=workq")))
        kind = number % 10
        if kind == 0:
            events.append((start, line(start, "D", job, "requestor=ada@login1")))
            continue
        if kind == 1:
            continue
        events.append((start, line(start, "S", job, openpbs(begin=start, status=None, **fields))))
        if kind == 2:
            # The node failed after a minute, and the job began again an hour later.
            events.append((start + 60, line(start + 60, "R", job, openpbs(start, start + 60, "-11", **fields))))
            start, end = start + 3660, end + 3660
            events.append((start, line(start, "S", job, openpbs(begin=start, status=None, **fields))))
        if kind == 3:
            events.append((end, line(end, "D", job, "requestor=ada@login1")))
        if kind != 4:
            events.append((end, line(end, "E", job, openpbs(start, end, "271" if kind == 3 else "0", **fields))))
    events.sort(key=lambda event: event[0])
    (tmp_path / "all").write_text("\n".join(text for _, text in events) + "\n")
    days: dict[int, list[str]] = {}
    for when, text in events:
        days.setdefault((when - T) // day, []).append(text)
    names = []
    for number, texts in days.items():
        names.append(tmp_path / f"day{number}")
        names[-1].write_text("\n".join(texts) + "\n")
    zone = Zone(dt.UTC, "UTC", "named by the test")
    whole, parts, shuffled = (
        import_logs(paths, zone=zone).log for paths in ([tmp_path / "all"], names, [*names[::-1], names[2]])
    )
    assert len(days) >= 7
    # Of ten jobs one was deleted before it began, one waits and one runs at the end.
    assert len(whole) == len(parts) == len(shuffled) == 140
    for column in ("submit", "wait", "run_time", "allocated", "requested", "requested_time", "status", "user"):
        assert np.array_equal(getattr(whole, column), getattr(parts, column)), column
        assert np.array_equal(getattr(whole, column), getattr(shuffled, column)), column
    assert sorted(np.unique(whole.status).tolist()) == [1, 5]


def test_a_real_workload_comes_back(shared, tmp_path: Path) -> None:
    """KTH's log as an OpenPBS server would have written it, imported: the same jobs."""
    log = read_swf(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    n = 2000
    submit = T + log.submit[:n]
    start = submit + log.wait[:n]
    end = start + log.run_time[:n]
    with (tmp_path / "kth").open("w") as file:
        for job in range(n):
            q, p = log.requested[job], log.requested_time[job]
            text = openpbs(
                int(start[job]),
                int(end[job]),
                ctime=str(submit[job]),
                user=f"u{log.user[job]}",
                exec_host=f"n1/0*{q}",
                exec_vnode=f"(n1:ncpus={q})",
                **{
                    "Resource_List.ncpus": str(q),
                    "Resource_List.select": f"1:ncpus={q}",
                    "Resource_List.walltime": f"{p // 3600:02}:{p // 60 % 60:02}:{p % 60:02}",
                },
            )
            file.write(line(int(end[job]), "E", f"{job}.srv", text) + "\n")
    result = import_logs([tmp_path / "kth"], zone=Zone(dt.UTC, "UTC", "named by the test"), processors=100).log
    assert len(result) == n
    assert np.array_equal(result.submit + submit.min(), submit)
    for column in ("wait", "run_time", "requested", "requested_time"):
        assert np.array_equal(getattr(result, column), getattr(log, column)[:n]), column
    assert np.array_equal(result.allocated, log.requested[:n])


@pytest.mark.slow
def test_jobs_that_never_end_are_no_log() -> None:
    # Each takes a kilobyte: 32 MB of them took a gigabyte.
    lines = (f"01/01/2024 00:00:00;Q;{number}.s;queue=q" for number in range(300_001))
    refused(TraceFormatError, "log:300001 300,001 ended", list, read(lines, "log", Clock()))
