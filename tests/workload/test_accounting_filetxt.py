"""Files of jobcomp/filetxt become records: the genuine sample, and whatever users write into names and folders."""

from __future__ import annotations

import collections
import datetime as dt
import zoneinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.filetxt import read
from policyfactory.workload.accounting.record import LimitKind, Record, Remark, State
from policyfactory.workload.accounting.times import Clock
from refusals import refusal, refused

SAMPLE = "oracles/slurm/jobcomp_filetxt_sample.txt"


def line(**changes: str) -> str:
    """A line as Slurm 22.05 writes it."""
    fields = {
        "JobId": "17",
        "UserId": "ada(1000)",
        "GroupId": "physics(100)",
        "Name": "relax",
        "JobState": "COMPLETED",
        "Partition": "batch",
        "TimeLimit": "90",
        "StartTime": "2026-03-02T10:00:30",
        "EndTime": "2026-03-02T10:20:30",
        "NodeList": "n[1-2]",
        "NodeCnt": "2",
        "ProcCnt": "32",
        "WorkDir": "/data/run",
        "ReservationName": "",
        "Tres": "cpu=20,mem=4G,node=2,billing=20",
        "Account": "grant7",
        "QOS": "normal",
        "WcKey": "",
        "Cluster": "c",
        "SubmitTime": "2026-03-02T10:00:00",
        "EligibleTime": "2026-03-02T10:00:10",
        **changes,
    }
    text = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
    return f"{text} DerivedExitCode=0:0 ExitCode=0:0 "


def records(*lines: str, zone: dt.tzinfo = dt.UTC) -> list[Record]:
    return [item for item in read(lines, "jobcomp.txt", Clock(zone)) if isinstance(item, Record)]


# 2026-03-02 10:00:00 UTC
T = 1_772_445_600
PLAIN = Record(
    line=1,
    job="17",
    submit=T,
    eligible=T + 10,
    start=T + 30,
    end=T + 1230,
    elapsed=1200,
    limit=5400,
    limit_kind=LimitKind.given,
    requested=20,
    allocated=32,
    requested_nodes=2,
    name="relax",
    allocated_nodes=2,
    state=State.completed,
    user="ada",
    group="physics",
    account="grant7",
    partition="batch",
    qos="normal",
    memory=4096,
    gpus=0,
)


def test_a_line_of_the_plugin() -> None:
    assert records(line()) == [PLAIN]
    # Before Tres it was Gres; long before, these fields did not exist.
    old = line(ReservationName=None, Tres=None, Account=None, QOS=None, WcKey=None, Cluster=None)
    (record,) = records(old)
    assert (record.requested, record.allocated, record.account, record.submit) == (None, 32, "", T)
    gres = line().replace("Tres=cpu=20,mem=4G,node=2,billing=20", "Gres=gpu:2")
    (record,) = records(gres)
    assert (record.requested, record.account, record.qos) == (None, "grant7", "normal")


def test_the_genuine_sample(shared) -> None:
    result = list(read(shared(SAMPLE).read_text().splitlines(), SAMPLE, Clock()))
    assert len(result) == 50
    assert not any(isinstance(item, Remark) for item in result)
    assert collections.Counter(record.state for record in result) == {
        State.completed: 39,
        State.cancelled: 3,
        State.node_fail: 3,
        State.failed: 2,
        State.timeout: 2,
        State.requeued: 1,
    }
    jobs = collections.defaultdict(list)
    for record in result:
        jobs[record.job].append(record)
    assert {job for job, runs in jobs.items() if len(runs) > 1} == {"25", "35", "10"}
    assert {"11_0", "11_5", "12_10", "17+0", "17+1"} <= set(jobs)
    assert [jobs[part][0].group_id for part in ("17+0", "17+1", "18") if part in jobs] == ["17", "17"]
    (never,) = jobs["5"]
    assert (never.state, never.start, never.allocated, never.requested) == (State.cancelled, None, 0, 2)
    (exclusive,) = jobs["21"]
    assert (exclusive.requested, exclusive.allocated) == (1, 16)
    (unlimited,) = jobs["20"]
    assert (unlimited.limit, unlimited.limit_kind) == (None, LimitKind.unlimited)
    (piped,) = jobs["22"]
    assert (piped.partition, piped.elapsed, piped.limit) == ("batch", 1, 3600)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"JobState": "CANCELLED", "ProcCnt": "0", "NodeCnt": "0"}, {"state": State.cancelled, "start": None}),
        ({"JobState": "PENDING"}, {"state": State.requeued, "elapsed": 1200}),
        ({"JobState": "SOMETHING_NEW"}, {"state": State.unknown}),
        ({"TimeLimit": "UNLIMITED"}, {"limit": None, "limit_kind": LimitKind.unlimited}),
        ({"TimeLimit": "Partition_Limit"}, {"limit": None, "limit_kind": LimitKind.partition}),
        ({"EligibleTime": "Unknown"}, {"eligible": None}),
        ({"UserId": "DOM\\ada b(1)"}, {"user": "DOM\\ada b"}),
        ({"UserId": "1000"}, {"user": "1000"}),
        ({"Account": ""}, {"account": ""}),
        ({"EligibleTime": "2026-03-02T10:00:10 ArrayJobId=11 ArrayTaskId=3"}, {"job": "11_3"}),
        ({"EligibleTime": "2026-03-02T10:00:10 HetJobId=17 HetJobOffset=1"}, {"job": "17+1", "group_id": "17"}),
        ({"EligibleTime": "2026-03-02T10:00:10 PackJobId=17 PackJobOffset=1"}, {"job": "17+1", "group_id": "17"}),
    ],
)
def test_what_a_line_can_say(changes: dict[str, str], expected: dict[str, object]) -> None:
    (record,) = records(line(**changes))
    assert {name: getattr(record, name) for name in expected} == expected


def test_a_job_that_changed_its_size_is_said() -> None:
    (part,) = read([line(JobState="RESIZING")], "x", Clock())
    assert isinstance(part, Record)
    assert part.state is State.resized


def test_local_times_and_the_end_of_summer_time() -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    (winter,) = records(line(), zone=berlin)
    assert (winter.submit, winter.elapsed) == (T - 3600, 1200)

    def night(submit: str, start: str, end: str) -> list[Any]:
        day = "2026-10-25T"
        return list(read([line(SubmitTime=day + submit, StartTime=day + start, EndTime=day + end)], "x", Clock(berlin)))

    # 02:30 comes twice that night; the end before the start tells that the clock was put back in between.
    record, note = night("01:00:00", "02:50:00", "02:10:00")
    assert record.elapsed == 1200
    assert (note.action, "settled" in note.what) == ("kept", True)
    record, note = night("01:00:00", "02:10:00", "02:50:00")
    assert record.elapsed == 2400
    assert (note.action, "taken as the earlier" in note.what) == ("changed", True)


def test_lines_that_cannot_be_used_are_counted() -> None:
    bad = [
        "JobId=17 UserId=ada(1000) GroupId=p(1) Name=x JobState=COMPLETED",
        line(SubmitTime=None, EligibleTime=None),
        line(StartTime="yesterday"),
        line(SubmitTime="Unknown"),
        line(ProcCnt="many"),
        line(TimeLimit="forever"),
        "rubbish",
    ]
    result = list(read([*bad, "", line()], "x", Clock()))
    assert [(item.line, item.action) for item in result if isinstance(item, Remark)] == [
        (n, "dropped") for n in range(1, 8)
    ]
    assert [item.line for item in result if isinstance(item, Record)] == [9]


def test_a_file_without_any_record_is_refused() -> None:
    with refusal(TraceFormatError, "x.txt:2 JobId=1 jobcomp/filetxt"):
        list(read(["", "JobId=1 of an old Slurm"], "x.txt", Clock()))
    refused(TraceFormatError, "x.txt:0 record", list, read([], "x.txt", Clock()))


FAKE = (
    " JobState=FAILED Partition=mine TimeLimit=1 StartTime=2020-01-01T00:00:00 EndTime=2020-01-01T00:00:01 NodeList=x "
    "NodeCnt=1 ProcCnt=1"
)
HOSTILE = [
    FAKE, FAKE + " WorkDir=/x", "JobState=FAILED", "Name=", "|", "SubmitTime=2020-01-01T00:00:00", " = ", "\u2028",
    "ArrayJobId=1 ArrayTaskId=2", " GroupId=x(1) Name=", "Tres=cpu=999", "Account=mine QOS=high WcKey=", "WorkDir=",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=6)), max_size=4).map(" ".join)


@given(TEXTS, TEXTS)
def test_a_name_or_a_folder_changes_no_other_field(name: str, folder: str) -> None:
    clean = [text.replace("\n", " ").replace("\r", " ") for text in (name, folder)]
    result = list(read([line(), line(Name=clean[0], WorkDir="/x" + clean[1])], "x", Clock()))
    if isinstance(result[1], Remark):
        # Nothing tells the fields from a text that holds all of them: dropped, and counted.
        assert result[1].what == "lines whose job name or folder looks like the fields between them"
        assert any("ProcCnt=1 WorkDir=" in text or text.endswith("ProcCnt=1") for text in clean)
    else:
        assert result[1].name == clean[0]
        result[1].line, result[1].name = 1, PLAIN.name
        assert result == [PLAIN, PLAIN]


def test_a_name_that_is_a_whole_record_is_dropped_and_counted() -> None:
    result = list(read([line(), line(Name="x" + FAKE + " WorkDir=/y")], "x", Clock()))
    assert [(item.line, type(item)) for item in result] == [(1, Record), (2, Remark)]


@given(
    st.lists(st.one_of(st.text(max_size=40), st.builds(line, Name=TEXTS, TimeLimit=st.text(max_size=5))), max_size=5)
)
def test_any_file_is_read_or_refused(lines: list[str]) -> None:
    try:
        result = list(read([text.replace("\n", " ") for text in lines], "x", Clock()))
    except TraceFormatError:
        return
    assert {item.line for item in result} == {n for n, text in enumerate(lines, 1) if text.strip()}
