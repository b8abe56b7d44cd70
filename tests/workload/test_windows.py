"""Windows: each rule by hand, the windows of the SC'17 programs job by job, and cutting of logs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.logs import HEADER, log_of
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.clean import clean, read
from policyfactory.workload.header import parse_header
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import (
    WindowSpec,
    cut,
    cut_between,
    cut_windows,
    in_order,
    parse_windows,
    slices_by_jobs,
    slices_by_time,
    slices_sc17,
    starts_rlscheduler,
)
from refusals import refused

DAY = 86400


def workload_at(*submit: int) -> Workload:
    return clean(log_of([{"submit": time, "wait": 1} for time in submit]))


def ranges(slices: list[slice]) -> list[tuple[int, int]]:
    return [(rows.start, rows.stop) for rows in slices]


TEXTS = {
    "10x15d": WindowSpec(10, 15 * DAY),
    "15d": WindowSpec(None, 15 * DAY),
    "3x2h30m": WindowSpec(3, 9000),
    "4x600s": WindowSpec(4, 600),
    "10x5000jobs": WindowSpec(10, 0, 5000, "jobs"),
    "1job": WindowSpec(None, 0, 1, "jobs"),
    "sc17:10x15d": WindowSpec(10, 15 * DAY, 0, "sc17"),
    "rlscheduler:10x1024jobs:1": WindowSpec(10, 0, 1024, "rlscheduler", "1"),
    "RLScheduler:100x1024job:numpy99": WindowSpec(100, 0, 1024, "rlscheduler", "numpy99"),
    "SC17:15D": WindowSpec(None, 15 * DAY, 0, "sc17"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_windows_as_people_write_them(text: str) -> None:
    assert parse_windows(text) == TEXTS[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0x15d",
        "10x",
        "10x0",
        "10xinf",
        "tenx15d",
        "10x15y",
        "0jobs",
        "sc17:5jobs",
        "-1x5d",
        "rlscheduler:10x15d:1",
        "rlscheduler:10x5jobs",
        "rlscheduler:0x5jobs:1",
    ],
)
def test_what_is_no_window(text: str) -> None:
    refused(UsageError, "10x15d 10 15", parse_windows, text)


def test_windows_of_equal_length_begin_with_the_first_job() -> None:
    submit = np.array([100, 105, 109, 110, 131, 139, 140, 145])
    # [100, 110), [110, 120), [120, 130) is empty, [130, 140), and [140, 150) has no regular end.
    assert ranges(slices_by_time(submit, 10)) == [(0, 3), (3, 4), (4, 6)]
    assert ranges(slices_by_time(submit, 10, 2)) == [(0, 3), (3, 4)]
    assert slices_by_time(submit, 100) == []
    assert slices_by_time(submit[:0], 10) == []


def test_a_length_beyond_the_clock_is_longer_than_any_log() -> None:
    submit = np.array([0, 5, 9])
    assert slices_by_time(submit, 9, None) == [slice(0, 2)]
    for length in (10, 2**63, 10**30):
        assert slices_by_time(submit, length) == slices_sc17(submit, length, first_jobs=1) == []
    refused(WorkloadError, "0 windows test", cut, workload_at(0, 5, 9), parse_windows("2x99999999999999999999d"))


def test_windows_of_equal_numbers_leave_the_rest() -> None:
    assert ranges(slices_by_jobs(np.arange(7), 3)) == [(0, 3), (3, 6)]
    assert ranges(slices_by_jobs(np.arange(7), 3, 1)) == [(0, 3)]
    assert slices_by_jobs(np.arange(2), 3) == []


def test_windows_of_sc17_take_their_first_jobs_whatever_the_time() -> None:
    # Two first jobs here. Submitted exactly at the end still belongs; the tail is no window.
    submit = np.array([0, 50, 60, 65, 70, 71, 200])
    assert ranges(slices_sc17(submit, 10, first_jobs=2)) == [(0, 2), (2, 5)]
    assert ranges(slices_sc17(submit, 10, first_jobs=1)) == [(0, 1), (1, 3), (3, 6)]
    assert ranges(slices_sc17(np.arange(40), 5)) == [(0, 16), (16, 32)]


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60).map(sorted),
    st.integers(1, 90),
    st.integers(1, 20),
)
def test_windows_are_ordered_and_do_not_overlap(times: list[int], length: int, first_jobs: int) -> None:
    submit = np.array(times)
    for slices in (
        slices_by_time(submit, length),
        slices_by_jobs(submit, first_jobs),
        slices_sc17(submit, length, None, first_jobs),
    ):
        ends = [0]
        for start, end in ranges(slices):
            assert ends[-1] <= start < end
            ends.append(end)
    windows = slices_sc17(submit, length, None, first_jobs)
    taken = [job for rows in windows for job in range(len(times))[rows]]
    assert taken == list(range(len(taken)))
    for rows in windows:
        assert rows.stop - rows.start >= first_jobs
        assert submit[rows.stop] > submit[rows.start] + length or rows.stop - rows.start == first_jobs
    for rows in slices_by_time(submit, length):
        window = submit[rows] - submit[0]
        assert len(set(window // length)) == 1
    whole = int((submit[-1] - submit[0]) // length)
    assert (
        sum(len(submit[rows]) for rows in slices_by_time(submit, length)) == (submit - submit[0] < whole * length).sum()
    )


def test_each_window_counts_from_its_own_first_job() -> None:
    windows = cut(workload_at(7, 12, 18, 25, 40), "10s")
    assert [window.name for window in windows] == ["test[1]", "test[2]"]
    assert [window.submit.tolist() for window in windows] == [[0, 5], [0, 7]]
    assert windows[1].start.tolist() == [1, 8]
    assert windows[1].unix_start == 1_000_000_018
    assert [len(window) for window in cut(workload_at(0, 1, 2, 3, 4), "2jobs")] == [2, 2]
    assert [len(window) for window in cut(workload_at(*range(20)), "sc17:5s")] == [16]


def test_cut_follows_the_rule_of_the_words() -> None:
    workload = workload_at(*range(0, 40, 2))
    for text, sizes in {"10s": [5, 5, 5], "2x10s": [5, 5], "3x4jobs": [4, 4, 4], "sc17:10s": [16]}.items():
        assert [len(window) for window in cut(workload, parse_windows(text))] == sizes


def test_too_few_windows_are_an_error() -> None:
    refused(WorkloadError, "5 10s 2 3 20s test", cut, workload_at(0, 10, 20), "5x10s")
    refused(WorkloadError, "4 0 test", cut, workload_at(0, 10, 20), "4jobs")
    refused(WorkloadError, "3 10s SC17 test", cut, workload_at(0, 10, 20), "sc17:3x10s")


def test_a_clock_of_ticks_is_cut_by_seconds() -> None:
    import dataclasses

    workload = dataclasses.replace(workload_at(0, 5_000_000, 10_000_000, 20_000_000), ticks=1_000_000)
    assert [window.submit.tolist() for window in cut(workload, "10s")] == [[0, 5_000_000], [0]]


@pytest.mark.parametrize(("name", "key"), [("SDSC-BLUE-2000-4.2-cln", "sdscblue"), ("CEA-Curie-2011-2.1-cln", "curie")])
def test_the_windows_of_the_sc17_programs(name: str, key: str, shared: Callable[[str], Path]) -> None:
    oracle = json.loads(shared("oracles/sc17_windows.json").read_text())["configs"][f"{key}_runtime"]
    workload = read(shared(f"traces/{name}.swf.gz"), preset="sc17")
    report = workload.cleaning
    assert report.kept == oracle["kept_jobs"]
    slices = slices_sc17(workload.submit, 15 * DAY)
    # The driver stops after 15 windows of Curie; the 16th ends before the log does.
    assert len(slices) == oracle["windows_total"] + (key == "curie")
    assert len(oracle["windows"]) >= 10
    for window in oracle["windows"]:
        rows = slices[window["i"]]
        assert (rows.start, rows.stop) == (window["job_lo"], window["job_hi"])
        assert int(workload.job_id[rows][0]) == window["first_swf_id"]
        assert int(workload.job_id[rows][-1]) == window["last_swf_id"]


def a_log() -> SwfLog:
    # A job a day from 2001-09-10 00:00 at the site (22:00 UTC the day before), the second one last in the file.
    zero = 1_000_072_800 - 1_000_000_000
    days = [0, 2, 3, 4, 5, 1]
    return log_of(
        [{"submit": zero + DAY * day, "user": day} for day in days] + [{"submit": -1}], HEADER + "; MaxJobs: 7\n"
    )


def test_a_log_is_put_in_order_before_it_is_cut() -> None:
    log, dropped = in_order(a_log())
    assert dropped == 1
    assert log.user.tolist() == [0, 1, 2, 3, 4, 5]
    refused(WorkloadError, "test.swf submit nothing", in_order, log_of([{"submit": -1}]))


def test_a_job_that_is_written_in_parts_is_cut_as_one() -> None:
    fields = ({"submit": 5, "run_time": 100, "status": 2}, {"submit": -1, "run_time": 200, "status": 3})
    parts = [{"job_id": 1, **each} for each in fields]
    log, dropped = in_order(log_of([*parts, {"job_id": 2, "submit": 0, "run_time": 50, "status": 1}]))
    assert dropped == 0
    assert (log.job_id.tolist(), log.run_time.tolist(), log.status.tolist()) == ([2, 1], [50, 300], [1, 1])


def test_dates_of_the_whole_log_are_none_of_a_part_that_nobody_can_date() -> None:
    log, _ = in_order(log_of([{"submit": 0}, {"submit": DAY}]))
    header = parse_header(["; StartTime: Mon Jan 01 00:00:00 UTC 2001", "; UnixStartTime: 0"])
    part = cut_between(dataclasses.replace(log, header=header), start="1d")
    assert (part.header.text("StartTime"), part.header.text("EndTime")) == ("unknown", None)


def test_windows_of_a_log_keep_all_fields() -> None:
    log, _ = in_order(a_log())
    windows = cut_windows(log, parse_windows("2x2d"))
    assert [window.name for window in windows] == ["test-w01", "test-w02"]
    assert windows[1].user.tolist() == [2, 3]
    assert windows[1].submit.tolist() == [0, DAY]
    header = windows[1].header
    assert header.unix_start == 1_000_072_800 + 2 * DAY
    assert header.text("StartTime") == "Wed Sep 12 00:00:00 CEST 2001"
    assert (header.integer("MaxJobs"), header.integer("MaxRecords")) == (7, 2)
    assert header.values("Note")[0] == "window 2 of 2, 2 x 2d, cut by policyfactory (4 jobs removed)"
    assert [len(window) for window in cut_windows(log, parse_windows("4jobs"))] == [4]
    refused(WorkloadError, "test.swf 0 windows", cut_windows, log, parse_windows("sc17:1d"))
    refused(WorkloadError, "test.swf 9 1d 5", cut_windows, log, parse_windows("9x1d"))


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    log, _ = in_order(a_log())
    for start, end in (("3d", "2d"), ("2001-09-12", "2001-09-11"), ("2d", "2d")):
        refused(UsageError, f"--from {start} --to {end} earlier", cut_between, log, start=start, end=end)
        refused(UsageError, f"start {start} end {end} earlier", clean(log).between, start, end)


@pytest.mark.parametrize(
    ("options", "users"),
    [
        ({"start": "2d"}, [2, 3, 4, 5]),
        ({"end": "2d"}, [0, 1]),
        ({"start": "1d", "end": "3d"}, [1, 2]),
        ({"start": "2001-09-12"}, [2, 3, 4, 5]),
        ({"start": "2001-09-12T00:01"}, [3, 4, 5]),
        ({"start": "2001-09-12 00:00:01"}, [3, 4, 5]),
        ({"start": "2001-09-11T22:00Z", "end": "2001-09-13T00:01+02:00"}, [2, 3]),
        ({"skip": 1, "jobs": 2}, [1, 2]),
        ({"start": "1d", "skip": 1, "jobs": 99}, [2, 3, 4, 5]),
    ],
)
def test_cutting_between_times_dates_and_numbers(options: dict[str, object], users: list[int]) -> None:
    log, _ = in_order(a_log())
    part = cut_between(log, **options)
    assert part.user.tolist() == users
    assert part.submit[0] == 0


def test_moments_that_are_neither_dates_nor_durations() -> None:
    log, _ = in_order(a_log())
    refused(UsageError, "--from soon 30d 12h", cut_between, log, start="soon")
    refused(UsageError, "--to 2001-13-01", cut_between, log, end="2001-13-01")
    refused(
        UsageError, "UnixStartTime after 2001-09-10 --from", cut_between, log_of([{}], header=""), start="2001-09-10"
    )
    refused(WorkloadError, "test.swf 6 5d", cut_between, log, start="40d")
    refused(WorkloadError, "test.swf job left", cut_between, log, skip=6)


def test_windows_of_rlscheduler_are_drawn_by_its_two_generators() -> None:
    # Those of gym 0.14 are in RLScheduler's own records (tests/engine/test_rlscheduler_oracle.py).
    random = np.random.RandomState(99)
    assert starts_rlscheduler(5000, 1000, 3, "numpy99").tolist() == [random.randint(1000, 3999) for _ in range(3)]
    assert (starts_rlscheduler(10**6, 1000, 50, "1") < 10_000 - 1001).all()
    assert starts_rlscheduler(12, 5, 4, "1").tolist() == [5, 5, 5, 5]
    refused(WorkloadError, "5 11", starts_rlscheduler, 11, 5, 4, "1")


def test_windows_of_rlscheduler_keep_the_clock_of_the_log() -> None:
    window = cut(workload_at(*range(100, 124, 2)), "rlscheduler:2x5jobs:1")[1]
    assert window.submit.tolist() == [10, 12, 14, 16, 18]
    log = log_of([{"submit": submit} for submit in range(100, 124, 2)])
    (_, file) = cut_windows(log, parse_windows("rlscheduler:2x5jobs:1"))
    assert file.submit.tolist() == [110, 112, 114, 116, 118]
    assert str(parse_windows("rlscheduler:2x5jobs:1")) == "2 windows of 5 jobs drawn as RLScheduler does (seed 1)"
