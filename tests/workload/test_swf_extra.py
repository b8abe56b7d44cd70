"""Fields behind the 18th of a log, and the names of its numbers: nothing of what jobs ask for is lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from naive.logs import line
from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.clean import clean, clean_log, read
from policyfactory.workload.jobs import COLUMNS, Attributes, Requests, Workload
from policyfactory.workload.machine import assume_of_log
from policyfactory.workload.swf.files import format_swf, parse_swf
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import cut_between, in_order
from refusals import refused

HEADER = """; Version: 2.2
; MaxProcs: 64
; Partition: 3 batch
; Partition: 9 gpu
; QOS: 1 normal
; QOS: 2 high
; Account: 7 astro physics
; User: 12 ann
; ExtraFields: nodes memory_mb gpus exclusive eligible qos account
"""


def job(number: int, extra: str = "", **fields: object) -> str:
    """Return the line of a job of 8 processors, submitted at second 1000 + 10 x number."""
    known = {"job_id": number, "submit": 1000 + 10 * number, "run_time": 60, "allocated": 8, "requested": 8,
             "requested_time": 90, "user": 12, "partition": 3, "preceding": -1, "think_time": -1}  # fmt: skip
    return f"{line(**(known | fields))} {extra}".rstrip() + "\n"


def log_of(*lines: str, header: str = HEADER) -> SwfLog:
    return parse_swf((header + "".join(lines)).encode(), "log.swf")


def requests_of(log: SwfLog) -> Requests:
    jobs = clean(log)
    assert jobs.requests is not None
    return jobs.requests


def test_named_fields_and_names_are_read() -> None:
    asked = requests_of(
        log_of(
            job(1, "2 16000 4 1 1500 2 7"),
            job(2, "-1 -1 0 0 -1 1 -1", partition=9, user=13, preceding=1, requested_memory=2000),
            job(3, "1 0 -1 -1 1000 -1 8", partition=-1),
        )
    )
    assert asked.nodes.tolist() == [2, -1, 1]
    # Field 10 is KB for each processor: 2000 KB x 8, in whole MB.
    assert asked.memory.tolist() == [16000, 16, 0]
    assert asked.gpus.tolist() == [4, 0, -1]
    assert asked.exclusive.tolist() == [1, 0, -1]
    # Times count from the first submission at 1010; nothing is eligible before it is submitted.
    assert asked.eligible.tolist() == [490, -1, 20]
    assert asked.after.tolist() == [-1, 1, -1]
    assert [asked.name_of("partition", row) for row in range(3)] == ["batch", "gpu", None]
    assert [asked.name_of("qos", row) for row in range(3)] == ["high", "normal", None]
    assert [asked.name_of("account", row) for row in range(3)] == ["astro physics", None, "8"]
    assert [asked.name_of("user_name", row) for row in range(3)] == ["ann", "13", "ann"]


def test_a_plain_log_says_what_its_18_fields_say(shared: Callable[[str], Path]) -> None:
    header = "; MaxProcs: 64\n; Queue: 3 express\n"
    asked = requests_of(log_of(job(1, queue=3, partition=-1), job(2, queue=4, partition=-1), header=header))
    # Without partitions, queues are what the scheduler has.
    assert asked.names == {"partition": ("express", "4")}
    assert asked.known("user_name") == asked.known("memory") == asked.known("nodes") == 0
    assert clean(log_of(job(1, partition=-1), header="; MaxProcs: 64\n")).requests is None
    curie = read(shared("traces/CEA-Curie-2011-2.1-cln.swf.gz"), estimate_missing="drop").requests
    assert curie is not None
    assert set(curie.names["partition"][:3]) == {"large", "TestIB", "hybrid"}


def test_fields_without_a_name_are_passed_over_and_counted() -> None:
    header = "; MaxProcs: 64\n"
    frontier = log_of(job(1, "8 frontier:excl:Nx112"), job(2, "0 frontier:excl:Nx2"), header=header)
    assert frontier.extra == {}
    assert frontier.oddities == {
        "lines with fields 19, 20 that no name of ExtraFields tells the meaning of, passed over": 2
    }
    mixed = log_of(job(1, "8 x 5"), header=header + "; ExtraFields: gpus, licence, nodes\n")
    assert {name: column.tolist() for name, column in mixed.extra.items()} == {"gpus": [8], "nodes": [5]}
    assert list(mixed.oddities) == ["lines with field 20 that no name of ExtraFields tells the meaning of, passed over"]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("1 2", "log.swf:10 20 25 -1 18 7"),
        ("1 2 3 4 5 6 7 8", "log.swf:10 26 25"),
        ("1 x 3 4 5 6 7", "log.swf:10 20 x"),
        ("1 2 3.5 4 5 6 7", "log.swf:10 21 3.5"),
    ],
)
def test_a_bad_further_field_is_named(extra: str, said: str) -> None:
    refused(TraceFormatError, said, log_of, job(1, extra))


def test_lines_after_the_first_have_as_many_fields() -> None:
    refused(TraceFormatError, "log.swf:3 18 20", log_of, job(1, "1 2"), job(2), header="; MaxProcs: 64\n")
    refused(TraceFormatError, "log.swf:2 71 18", log_of, job(1, " ".join(["1"] * 53)), header="; MaxProcs: 64\n")


def test_what_is_written_is_read_again() -> None:
    log = log_of(job(1, "2 16000 4 1 1500 2 7"), job(2, "1 8000 0 0 -1 1 8", partition=9, requested_time=60.5))
    again = parse_swf(format_swf(log), "log.swf")
    assert again.header == log.header
    assert {name: column.tolist() for name, column in again.extra.items()} == {
        name: column.tolist() for name, column in log.extra.items()
    }
    # Cut and cleaned, times count from another zero.
    cut = cut_between(in_order(log)[0], skip=0, jobs=1)
    assert cut.extra["eligible"].tolist() == [490]
    cleaned, _ = clean_log(log)
    assert requests_of(cleaned).eligible.tolist() == requests_of(log).eligible.tolist()


def test_a_workload_with_requests_comes_back_from_its_file() -> None:
    log = log_of(job(1, "2 16000 4 1 1500 2 7"), job(2, "1 8000 0 0 -1 1 8", partition=9, user=13, preceding=1))
    jobs = clean(log)
    again = clean(parse_swf(format_swf(jobs), "log.swf"))
    assert_equal(again.requests, jobs.requests)
    # Without attributes field 16 has the partitions; with others there, field 15 or 16 as they fit.
    for attributes in (
        None,
        dataclasses.replace(Attributes.unknown(2), queue=np.array([5, 6]), partition=np.array([1, 1])),
    ):
        again = clean(parse_swf(format_swf(dataclasses.replace(jobs, attributes=attributes)), "log.swf"))
        assert again.requests is not None
        assert again.requests.names["partition"] == ("batch", "gpu")
        assert again.requests.partition.tolist() == [0, 1]


def test_assumptions_fill_what_the_log_does_not_say() -> None:
    log, _ = clean_log(log_of(job(1, "-1 16000 4 1 1500 2 7"), job(2, "3 -1 -1 0 -1 1 8", requested_memory=2000)))
    filled, said = assume_of_log(log, "n=q/4,mem=2000*q,g=0")
    asked = requests_of(parse_swf(format_swf(filled), "log.swf"))
    # Field 10 says the memory of job 2.
    assert (asked.nodes.tolist(), asked.memory.tolist(), asked.gpus.tolist()) == ([2, 3], [16_000, 16], [4, 0])
    assert said == tuple(
        f"assumed {what} for 1 of 2 jobs, of which the log does not say it" for what in ("n=q/4", "g=0")
    )
    assert filled.header.values("Note")[-2:] == said
    plain, _ = clean_log(log_of(job(1), header="; MaxProcs: 64\n"))
    assert requests_of(assume_of_log(plain, "g=1")[0]).gpus.tolist() == [1]


def assert_equal(first: Requests | None, second: Requests | None) -> None:
    assert first is not None
    assert second is not None
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    assert first.names == second.names


def test_large_numbers_of_users_are_named_too() -> None:
    header = HEADER.replace("; User: 12 ann", "; User: 123456789 ann")
    extra = "1 1 0 0 -1 1 7"
    asked = requests_of(log_of(job(1, extra, user=123456789), job(2, extra, user=-1), job(3, extra), header=header))
    assert [asked.name_of("user_name", row) for row in range(3)] == ["ann", None, "12"]


def test_a_workload_of_many_jobs_is_written_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = clean(log_of(job(1, "2 16000 4 1 1500 2 7"), job(2, "1 8000 0 0 -1 1 8")))
    plain = format_swf(jobs)
    monkeypatch.setattr("policyfactory.workload.swf.files._MANY", 1)
    assert format_swf(jobs) == plain
    assert isinstance(jobs, Workload)
