"""The workload table keeps its rules."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from policyfactory import Workload
from policyfactory.core.errors import WorkloadError
from refusals import refused


def small(**changes: object) -> Workload:
    columns: dict[str, object] = {
        "job_id": [1, 2, 3],
        "submit": [5, 5, 9],
        "run_time": [0, 10, 20],
        "requested_time": [1, 15, 20],
        "processors": [1, 2, 4],
        "user": [1, 1, -1],
        "start": [5, -1, 12],
    }
    columns.update(changes)
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    return Workload(name="small", machine=4, unix_start=100, **arrays)  # type: ignore[arg-type]


def test_columns_are_read_only_int64() -> None:
    submit = np.array([1, 2, 3], dtype=np.int64)
    workload = small(submit=submit)
    assert workload.submit.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        workload.submit[0] = 7
    submit[0] = 0  # the caller's own array stays writable


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("submit", [-1, 5, 9], "1 submit -1"),
        ("run_time", [0, -1, 20], "2 run_time -1"),
        ("requested_time", [1, 15, 0], "3 requested_time 0"),
        ("processors", [1, 0, 4], "2 processors 0"),
        ("processors", [1, 2, 5], "3 processors 5 4"),
        ("submit", [5, 4, 9], "2 job comes"),
        ("user", [1, 2], "2 3 shapes"),
    ],
)
def test_a_job_that_breaks_a_rule_is_named(column: str, value: list[int], message: str) -> None:
    refused(WorkloadError, message, small, **{column: value})


def test_select_and_rebase() -> None:
    part = small().select(slice(1, 3), name="part", rebase=True)
    assert part.submit.tolist() == [0, 4]
    assert part.start.tolist() == [-1, 7]
    assert (part.unix_start, part.name, len(part)) == (105, "part", 2)
    assert small().select(np.array([True, False, True])).job_id.tolist() == [1, 3]


def test_the_digest_is_of_the_jobs_and_the_machine() -> None:
    assert small().sha256() == dataclasses.replace(small(), name="other").sha256()
    assert small().sha256() != dataclasses.replace(small(), machine=5).sha256()
    assert small().sha256() != small(run_time=[0, 10, 21]).sha256()


def test_the_same_jobs_on_a_finer_clock() -> None:
    unknown, one = np.array([-1, 7]), np.array([1, 2])
    jobs = Workload("two", 4, one, np.array([0, 5]), np.array([3, 0]), np.array([4, 1]), one, one, unknown, ticks=10)
    fine = jobs.in_ticks(1000)
    assert (fine.ticks, fine.submit.tolist(), fine.run_time.tolist()) == (1000, [0, 500], [300, 0])
    assert (fine.requested_time.tolist(), fine.start.tolist()) == ([400, 100], [-1, 700])
    assert (fine.processors.tolist(), fine.name, fine.machine) == ([1, 2], "two", 4)
    for ticks in (1, 15):
        refused(WorkloadError, f"two {ticks} 10", jobs.in_ticks, ticks)
    refused(WorkloadError, "7 1/10000000000000000000 two", jobs.in_ticks, 10**19)
