"""Queues as squeue prints them and as sites write them."""

from __future__ import annotations

import contextlib
import datetime as dt
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import PolicyfactoryError, TraceFormatError, UsageError
from policyfactory.exports.queue import LARGEST_FILE, UNLIMITED_S, read_queue
from refusals import refusal, refused

# What squeue of Slurm 22.05.8 printed, with an array, a held job and a job without a limit.
SQUEUE = """JOBID,PRIORITY,SUBMIT_TIME,TIME_LIMIT,CPUS,USER
9,1,1795294232,UNLIMITED,1,ann
8,4,1795294231,1:00:00,1,bob
7_[0-3,7%2],3,1795294232,5:00,2,ann
6,2,1795294230,2-02:00:00,17,eve
10,0,1795294232,3:00,1,ann
"""


def test_what_squeue_prints() -> None:
    queue, notes = read_queue(SQUEUE.encode(), "queue.csv")
    assert queue.job == ("9", "8", "7_[0-3,7%2]", "6")
    assert queue.user == ("ann", "bob", "ann", "eve")
    assert queue.p.tolist() == [UNLIMITED_S, 3600, 300, 180_000]
    assert queue.q.tolist() == [1, 1, 2, 17]
    assert queue.submit.tolist() == [1795294232, 1795294231, 1795294232, 1795294230]
    assert queue.priority is not None
    assert queue.priority.tolist() == [1, 4, 3, 2]
    assert queue.now == 1795294232
    assert notes == (
        "held jobs (priority 0), left out as an export releases none: 1",
        "jobs without a time limit, ordered as if they asked for 365d: 1",
    )


# As QUEUE_COMMAND prints it on 22.05.8, which does not count --cpus-per-gpu of a waiting job, and on 24.11.5.
BY_GPU = """JOBID|PRIORITY|SUBMIT_TIME|TIME_LIMIT|CPUS|USER|TRES_ALLOC|TASKS|CPUS_PER_TRES|TRES_PER_JOB|TRES_PER_NODE|\
TRES_PER_SOCKET|TRES_PER_TASK|
6|1|5|10:00|4|ann|cpu=4,mem=62.50G,node=1,billing=4|4|gpu:3|N/A|gres:gpu:2|gres:gpu:1|N/A|
5_1|1|5|10:00|1|ann|cpu=1,mem=62.50G,node=1,billing=1|1|gres:gpu:8|gres:gpu:4|N/A|N/A|N/A|
4|1|5|10:00|32|ann|cpu=32,mem=80M,node=1,billing=1,gres/gpu=4|1|gres/gpu:8|gres/gpu:4|N/A|N/A|N/A|
3|1|5|10:00|4|ann|cpu=4,node=1|4|gres:gpu:3|N/A|N/A|N/A|gres/gpu=1|
2|1|5|10:00|2|ann|cpu=2,mem=125G,node=2,billing=2|2|gres:gpu:3|N/A|gres:gpu:a100:2,gres:gputype:9|N/A|N/A|
1|1|5|10:00|5|ann|cpu=5,node=2|5|N/A|gres:gpu:4|N/A|N/A|N/A|
"""


def test_processors_by_gpu_are_counted() -> None:
    queue, _ = read_queue(BY_GPU.encode(), "queue.csv")
    assert dict(zip(queue.job, queue.q.tolist(), strict=True)) == {"6": 6, "5_1": 32, "4": 32, "3": 12, "2": 12, "1": 5}
    many = BY_GPU.replace("gres:gpu:8|gres:gpu:4", "gres:gpu:999999999|gres:gpu:999999999")
    refused(TraceFormatError, "queue.csv:3 cpus_per_gpu 1,000,000,000", read_queue, many.encode(), "queue.csv")


def test_a_table_of_ones_own_in_any_order_of_columns() -> None:
    text = '\ufeffUser;limit;job;Processors;submit\r\n"an;n";2h30m;a 1;64;2026-01-31T08:00:00Z\r\n\r\nbob;90;b;1;5\r\n'
    queue, notes = read_queue(text.encode(), "q", now=1_800_000_000)
    assert queue.job == ("a 1", "b")
    assert queue.user == ("an;n", "bob")
    assert queue.p.tolist() == [9000, 90]
    assert queue.submit.tolist() == [1_769_846_400, 5]
    assert queue.priority is None
    assert queue.now == 1_800_000_000
    assert notes == ()


def test_a_priority_of_0_is_a_number_where_it_is_not_squeues() -> None:
    queue, notes = read_queue(b"job,priority,submit,limit,cpus\na,0,5,60,1\nb,-2.5,6,60,1\n", "q")
    assert queue.priority is not None
    assert queue.priority.tolist() == [0, -2.5]
    assert notes == ()


def test_times_without_a_zone() -> None:
    text = b"job|submit|limit|cpus\na|2026-07-01T12:00:00|60|1\n"
    queue, notes = read_queue(text, "q", zone=zoneinfo.ZoneInfo("Asia/Tokyo"))
    assert queue.submit.tolist() == [int(dt.datetime(2026, 7, 1, 3, tzinfo=dt.UTC).timestamp())]
    assert notes == ("submit times without a zone, taken as Asia/Tokyo: 1",)
    here, notes = read_queue(text, "q")
    assert here.submit.tolist() == [int(dt.datetime(2026, 7, 1, 12).astimezone().timestamp())]
    assert "this machine's" in notes[0]


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("0:30", 30),
        ("1:00", 60),
        ("90:00", 5400),
        ("23:59:59", 86_399),
        ("1-00:00:00", 86_400),
        ("7-12", 648_000),
        ("7-12:30", 649_800),
        ("0", 1),
        ("3600", 3600),
        ("1d", 86_400),
        ("unlimited", UNLIMITED_S),
        ("NOT_SET", UNLIMITED_S),
        ("INVALID", UNLIMITED_S),
        ("Partition_Limit", UNLIMITED_S),
    ],
)
def test_limits(limit: str, seconds: int) -> None:
    queue, _ = read_queue(f"job,submit,limit,cpus\na,5,{limit},1\n".encode(), "q")
    assert queue.p.tolist() == [seconds]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "q:1 JOBID SLURM_TIME_FORMAT=%s"),
        ("JOBID,SUBMIT_TIME,TIME_LIMIT\n", "q:1 CPUS column"),
        ("job,submit,limit,cpus,processors\n", "q:1 two columns"),
        ("job,submit,limit,cpus\n", "waiting job"),
        ("JOBID,PRIORITY,SUBMIT_TIME,TIME_LIMIT,CPUS\n1,0,5,60,1\n", "waiting job"),
        ("job,submit,limit,cpus\na,5,60\n", "q:2 3 4"),
        ("job,submit,limit,cpus\n\na,5,60,0\n", "q:3 0 1"),
        ("job,submit,limit,cpus\na,5,60,1.5\n", "q:2 1.5 processors"),
        ("job,submit,limit,cpus\na,soon,60,1\n", "q:2 soon submit"),
        ("job,submit,limit,cpus\na,0001-01-01T00:00:00,60,1\n", "q:2 0001-01-01T00:00:00 submit"),
        ("job,submit,limit,cpus\na,0001-01-01T00:00:00+14:00,60,1\n", "1970 2100 years"),
        ("job,submit,limit,cpus\na,9999-12-31T23:59:59,60,1\n", "q:2 9999-12-31T23:59:59 submit"),
        ("job,submit,limit,cpus\na,9999-12-31T23:59:59-14:00,60,1\n", "1970 2100 years"),
        ("job,submit,limit,cpus\na,4133980800,60,1\n", "q:2 4133980800 submit"),
        ("job,submit,limit,cpus\na,5,60,1\nb,6,60,1\na,7,60,2\n", "q:4 a 2"),
        ("job,submit,limit,cpus\na,5,1:2:3:4,1\n", "q:2 1:2:3:4 D-HH:MM:SS"),
        ("job,submit,limit,cpus\na,5,99999-00:00:00,1\n", "q:2 limit"),
        ("job,submit,limit,cpus\na,5,-60,1\n", "q:2 limit"),
        ("job,submit,limit,cpus,priority\na,5,60,1,high\n", "q:2 high priority"),
        ("job,submit,limit,cpus,priority\na,5,60,1,inf\n", "q:2 inf priority"),
        ('job,submit,limit,cpus\n"a,5,60,1\n', "q:2 unexpected end"),
    ],
)
def test_a_bad_line_is_named(text: str, says: str) -> None:
    refused(TraceFormatError, says, read_queue, text.encode(), "q")


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo", "America/New_York", "UTC"])
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
def test_the_ends_of_the_calendar_are_refused_in_every_zone(zone: str | None, text: str) -> None:
    with refusal(TraceFormatError, "q:2 submit 00:00"):
        read_queue(
            f"job,submit,limit,cpus\na,{text},60,1\n".encode(),
            "q",
            zone=None if zone is None else zoneinfo.ZoneInfo(zone),
        )


def test_a_queue_is_not_looked_at_before_its_last_job() -> None:
    refused(UsageError, "--at 4 a 5", read_queue, b"job,submit,limit,cpus\na,5,60,1\n", "q", now=4)


def test_a_file_that_is_no_queue_is_refused_by_its_size() -> None:
    refused(TraceFormatError, "one 67,108,865 q", read_queue, bytes(LARGEST_FILE + 1), "q")


@given(st.binary(max_size=200), st.sampled_from([b"", SQUEUE.encode()]))
def test_no_bytes_end_in_anything_but_a_queue_or_a_message(data: bytes, before: bytes) -> None:
    with contextlib.suppress(PolicyfactoryError):
        assert len(read_queue(before + data, "q")[0]) >= 4
