"""The numbers of a log: by hand on small ones, and those of notes/SWF.md section 5 on the archive's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naive.logs import log_of
from policyfactory.core.errors import UsageError
from policyfactory.workload.clean import clean_log
from policyfactory.workload.describe import Description, describe, description_rows, find_quirks, occupancy
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog
from refusals import refused
from support import shared_path


def test_a_small_log_by_hand() -> None:
    # Machine of 10. Job 1 holds 4 processors in [5, 15), job 2 holds 8 in [12, 32): 12 at once in [12, 15).
    jobs: list[dict[str, Any]] = [
        {"submit": 0, "wait": 5, "run_time": 10, "allocated": 4, "requested": 4, "requested_time": 40, "user": 1},
        {"submit": 10, "wait": 2, "run_time": 20, "allocated": 8, "requested": 6, "requested_time": 10, "user": 2},
        {"submit": 10, "wait": 9, "run_time": 0, "allocated": 1, "requested": 1, "requested_time": 40, "user": 2},
        {"submit": 20, "wait": -1, "run_time": -1, "allocated": -1, "requested": 2, "requested_time": -1, "status": 5},
    ]
    result = describe(log_of(jobs))
    assert (result.jobs, result.machine, result.nodes, result.span) == (4, 10, 10, 20)
    assert result.utilisation == (10 * 4 + 20 * 8) / (10 * (32 - 5))
    assert (result.peak_processors, result.above_capacity_share) == (12, 3 / 27)
    assert result.users == 2
    assert result.mean_processors == (4 + 8 + 1 + 2) / 4
    assert (result.largest_job, result.size_gcd, result.serial_share, result.power_of_two_share) == (8, 1, 0.25, 1.0)
    assert (result.mean_run_time, result.median_run_time) == (10, 10)
    assert (result.mean_requested_time, result.distinct_requests) == (30, 2)
    assert (result.mean_accuracy, result.median_accuracy) == (1.125, 1.125)
    assert (result.request_missing_share, result.requested_processors_missing_share) == (0.25, 0)
    assert (result.allocated_missing_share, result.size_differs_share) == (0.25, 1 / 3)
    assert (result.overrun_share, result.zero_run_share, result.missing_run_share) == (1 / 3, 0.25, 0.25)
    assert (result.tie_share, result.out_of_order_share) == (1 / 3, 0)
    assert result.mean_wait == 16 / 3
    assert result.statuses == {"1": 3, "5": 1}


def test_premature_jobs_request_at_least_a_hundred_times_their_run() -> None:
    jobs = [{"run_time": 10, "requested_time": r} for r in (999, 1000, 1001, -1)] + [{"run_time": 0}]
    assert describe(log_of(jobs)).premature_share == 2 / 3


def test_processors_are_given_back_before_they_are_taken() -> None:
    log = log_of([{"submit": 0, "allocated": 10}, {"submit": 10, "allocated": 10}])
    use = occupancy(log, 10)
    assert (use.peak, use.above, use.utilisation) == (10, 0.0, 1.0)


def test_parts_of_jobs_are_not_counted_as_jobs() -> None:
    parts = [{"job_id": 1, "status": s, "run_time": 5, "submit": -1} for s in (2, 3)]
    result = describe(log_of([{"run_time": 10}, *parts]))
    assert (result.jobs, result.mean_run_time, result.statuses) == (1, 10, {"1": 1})


def test_a_log_that_tells_nothing_is_described_all_the_same() -> None:
    nothing = {
        "submit": -1,
        "wait": -1,
        "run_time": -1,
        "allocated": -1,
        "requested": -1,
        "requested_time": -1,
        "status": -1,
    }
    log = log_of([nothing, nothing], header="")
    result = describe(log)
    assert result.machine is None
    assert math.isnan(result.utilisation)
    assert math.isnan(result.span)
    assert math.isnan(result.mean_accuracy)
    assert json.dumps(result.as_dict(), allow_nan=False)
    assert ["utilisation (first start to last end), %", "-"] in description_rows([result])
    assert find_quirks(log, result)


def test_statuses_that_nobody_knows_take_one_line() -> None:
    log = log_of([{"status": status} for status in (1, 0, 7, 9, 11)])
    rows = [row for row in description_rows([describe(log), describe(log_of([{}]))]) if row[0].startswith("status")]
    assert rows == [
        ["status 0 (failed)", "1", "0"],
        ["status 1 (completed)", "1", "1"],
        ["status not of the format", "3", "0"],
    ]


def test_the_machine_of_a_description() -> None:
    assert describe(log_of([{}]), 64, force=True).machine == 64
    refused(UsageError, "--processors 64 test.swf MaxProcs 10", describe, log_of([{}]), 64)
    assert describe(log_of([{"allocated": 4}], header="; MaxNodes: 4\n")).machine == 4
    assert describe(log_of([{"allocated": 5}], header="; MaxNodes: 4\n")).machine is None


@cache
def archive(name: str) -> tuple[SwfLog, Description]:
    log = read_swf(shared_path(f"traces/{name}.swf.gz"))
    return log, describe(log)


# The rows of notes/SWF.md section 5 and, for premature jobs, row 2 of section 7, as printed there.
COLUMNS = [
    "jobs", "MaxProcs", "MaxNodes", "span, days", "utilisation (first start to last end), %",
    "request missing, % of jobs", "requested q missing, % of jobs", "allocated q missing, % of jobs",
    "requested ≠ allocated, % of both known", "run > request, % of both known", "run 0, % of jobs",
    "run missing, % of jobs", "out of order, % of lines", "users", "gcd of sizes", "largest size",
    "mean size, processors", "mean run time, s", "mean request, s", "distinct requests", "serial, % of known sizes",
    "powers of two, % of known sizes", "peak processors", "request / run ≥ 100, % of both known",
]  # fmt: skip
TABLE = {
    "HPC2N-2002-2.1-cln": "202876 240 240 1268.3 60.13 0.00 0.00 0.00 0.36 7.30 0.000 0.00 0.00 257 "
    "1 200 6.4 17025 44900 691 42.1 91.9 248 18.41",
    "SDSC-BLUE-2000-4.2-cln": "243306 1152 144 974.1 76.71 0.00 0.00 8.02 0.32 10.08 0.011 4.42 0.00 468 "
    "8 1152 43.6 4240 10198 563 0.0 92.2 2944 15.38",
    "KTH-SP2-1996-2.1-cln": "28476 100 100 332.9 70.12 0.00 0.00 0.00 0.77 1.67 0.028 0.00 0.00 214 "
    "1 100 7.7 8872 13663 271 32.9 73.5 104 8.27",
    "CEA-Curie-2011-2.1-cln": "312826 93312 5544 253.7 62.03 0.00 27.05 3.49 9.21 1.73 5.526 0.00 0.00 582 "
    "1 79920 720.4 6158 61098 355 18.8 83.9 91838 43.18",
}
STATUSES = {
    "HPC2N-2002-2.1-cln": {"-1": 878, "1": 201998},
    "SDSC-BLUE-2000-4.2-cln": {"-1": 2, "1": 195586, "5": 47718},
    "KTH-SP2-1996-2.1-cln": {"0": 7946, "1": 20530},
    "CEA-Curie-2011-2.1-cln": {"0": 14003, "1": 281337, "5": 17486},
}


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_the_archives_logs(name: str) -> None:
    _, result = archive(name)
    shown = {row[0]: row[1].replace(",", "") for row in description_rows([result])}
    assert {column: shown[column] for column in COLUMNS} == dict(zip(COLUMNS, TABLE[name].split(), strict=True))
    assert result.statuses == STATUSES[name]


def test_the_filtered_kth_log_is_the_mirrors() -> None:
    # The second KTH row of notes/SWF.md: the file that has gone through the workflow of TPDS 2018.
    log, _ = archive("KTH-SP2-1996-2.1-cln")
    kept, _ = clean_log(log, preset="tpds18-workflow")
    # Their lines of the log as it was: cleaning writes the size that is used into both fields.
    result = describe(log.select(np.isin(log.job_id, kept.job_id)))
    shown = {row[0]: row[1].replace(",", "") for row in description_rows([result])}
    row = (
        "27992 100 100 332.9 68.60 0.00 0.00 0.00 0.78 0.00 0.000 0.00 0.00 212 "
        "1 100 7.7 8573 13463 270 32.6 73.3 103 8.41"
    )
    assert {column: shown[column] for column in COLUMNS} == dict(zip(COLUMNS, row.split(), strict=True))
    assert result.statuses == {"0": 7509, "1": 20483}


def test_other_readings_of_the_utilisation(shared: Callable[[str], Path]) -> None:
    # notes/SWF.md section 6: on 80,640 thin-node processors Curie has 71.8 %.
    log, _ = archive("CEA-Curie-2011-2.1-cln")
    assert round(100 * describe(log, 80_640, force=True).utilisation, 1) == 71.8


# Facts of notes/SWF.md sections 3, 5 and 8 that a user should be told.
TOLD = {
    "HPC2N-2002-2.1-cln": [
        "324,495 jobs were removed", "decimals in field 6 (average CPU time)",
        "14.65 % of the lines share the submit second", "10 requests are longer than 90d, the longest 8,639,999 s",
        "up to 248 processors", "878 jobs (0.43 % of all) of unknown",
    ],
    "SDSC-BLUE-2000-4.2-cln": [
        "144 nodes of 8 processors",
        "4d 23h after the log's 0", "10,744 jobs (4.42 % of all) without run time",
        "multiples of 8", "up to 2,944 processors", "for 1.20 % of the time",
        "47,718 jobs (19.61 % of all) cancelled (status 5), 36,954 of them after the start", "8,899 of them ran",
    ],
    "KTH-SP2-1996-2.1-cln": [
        "6d 22h after", "5,381 jobs (67.72 % of the failed ones, status 0) failed within 60 s",
        "475 jobs (1.67 % of those",
    ],
    "CEA-Curie-2011-2.1-cln": [
        "5,544 nodes of several kinds", "366d 9h after", "84,604 jobs (27.05 % of all) without requested processors",
        "3 jobs (less than 0.01 % of all) without requested time", "2,147,483,647 s",
        "17,286 jobs (5.53 % of all) with run time 0",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_the_quirks_of_the_archives_logs_are_reported(name: str) -> None:
    quirks = "\n".join(find_quirks(*archive(name)))
    for fact in TOLD[name]:
        assert fact in quirks
    # MaxJobs minus the removals is the number of lines in all four: nothing to complain about.
    assert "MaxJobs" not in quirks


QUIRKS = [
    ("", [{}], "no header"),
    ("; MaxNodes: 4\n", [{"allocated": 5}], "the header has no MaxProcs; MaxNodes, 4, is too small for its jobs"),
    ("; MaxNodes: 4\n", [{}], "the header has no MaxProcs; MaxNodes, 4, is taken"),
    ("; MaxProcs: abc\n", [{}], "the header has MaxProcs 'abc', which is no number of processors; give --processors"),
    ("; MaxProcs: 8\n; MaxProcs: 16\n", [{}], "several MaxProcs, 8, 16: the first number is taken"),
    ("; MaxJobs: 5\n", [{}, {}], "MaxJobs 5 makes 5: 3 are missing, it was filtered again or cut off"),
    ("; MaxJobs: 5\n; Note: x (4 jobs removed)\n", [{}, {}], "minus the 4 it says were removed makes 1: 1 too many"),
    ("; MaxJobs: 2\n; MaxRecords: 9\n", [{}, {}], "MaxRecords is 9, the file has 2 lines"),
    ("; MaxRuntime: 15\n", [{}], "1 requests exceed the header's MaxRuntime of 15 s"),
    ("", [{}, {"job_id": 1}], "1 job numbers are used more than once"),
    ("", [{"preceding": 1}, {}], "1 job (50.00 % of all) that wait for another one (field 17"),
    ("", [{"submit": -1}, {}], "1 job (50.00 % of all) without submit time"),
    ("", [{"submit": 5}, {"submit": 3}], "1 jobs stand behind a later one"),
    ("", [{"wait": -1}, {"wait": -1}], "no wait is recorded"),
    ("", [{"wait": -1}, {"wait": 2}], "1 job (50.00 % of all) without a recorded wait"),
    ("", [{"run_time": 90}, {"run_time": 50}], "on average jobs run longer than they request"),
    ("", [{"requested_time": -1}], "no job has a requested time"),
    ("", [{"requested": -1}], "no job has requested processors"),
    ("", [{"status": -1}], "no status is recorded"),
    (
        "; MaxProcs: 2\n",
        [{"allocated": 3}],
        "1 job (100.00 % of all) larger than the machine's 2 processors: is the number right?",
    ),
    (
        "",
        [{"status": 2}, {"job_id": 1, "status": 3}],
        "1 jobs are written in parts only (status 2, 3, 4), joined here without the gaps",
    ),
    ("", [{}, {"job_id": 1, "status": 3}], "1 lines are parts (status 2, 3, 4)"),
    ("", [{}], "only 1 different requested times"),
]


@pytest.mark.parametrize(("header", "jobs", "words"), QUIRKS)
def test_quirks_are_reported_in_words(header: str, jobs: list[dict[str, Any]], words: str) -> None:
    log = log_of(jobs, header)
    assert any(words in quirk for quirk in find_quirks(log, describe(log))), find_quirks(log, describe(log))


def test_made_up_starts_are_not_blamed() -> None:
    log = log_of([{"allocated": 10, "wait": -1}] * 2)
    result = describe(log)
    assert result.peak_processors == 20
    assert not any("at once" in quirk for quirk in find_quirks(log, result))
    log = log_of([{"allocated": 10, "wait": 0}] * 2)
    assert any("up to 20 processors at once" in quirk for quirk in find_quirks(log, describe(log)))


def test_a_log_without_quirks_has_few_words() -> None:
    jobs = [{"submit": 100 * n, "requested_time": 20 + n, "user": 1} for n in range(20)]
    log = log_of(jobs, "; MaxProcs: 4\n; MaxJobs: 20\n")
    assert find_quirks(log, describe(log)) == []
