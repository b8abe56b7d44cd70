"""Cleaning: each rule on hand-made jobs, and the published filters on the logs they were made for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from naive.logs import HEADER, log_of, text_of
from policyfactory.core.errors import InputError, UsageError, WorkloadError
from policyfactory.workload.clean import clean, clean_log, read, read_with_cancelled
from policyfactory.workload.machine import known_machine, machine_of
from policyfactory.workload.presets import PRESETS, CleaningReport
from policyfactory.workload.swf.files import format_swf, parse_swf, read_swf
from policyfactory.workload.swf.log import SwfLog
from refusals import refusal, refused

SUBMIT = {"submit": 50}


def steps(report: CleaningReport) -> dict[str, tuple[str, int, int]]:
    return {step.what: (step.action, step.jobs, step.first_job) for step in report.steps}


def test_a_clean_log_stays_as_it_is() -> None:
    jobs = [{"submit": 0, "wait": 3, "user": 7, "allocated": 4}, {"submit": 5, "wait": -1, "run_time": 6}]
    workload = clean(log_of(jobs))
    report = workload.cleaning
    assert report.steps == ()
    assert (report.read, report.kept, report.dropped, report.shift) == (2, 2, 0, 0)
    assert (workload.machine, workload.unix_start, workload.time_zone) == (10, 1_000_000_000, "Europe/Stockholm")
    assert workload.job_id.tolist() == [1, 2]
    assert workload.submit.tolist() == [0, 5]
    assert workload.run_time.tolist() == [10, 6]
    assert workload.requested_time.tolist() == [20, 20]
    assert workload.processors.tolist() == [4, 1]
    assert workload.user.tolist() == [7, -1]
    assert workload.start.tolist() == [3, -1]
    assert workload.origin == "test, preset default: 2 of 2 jobs"


DROPPED = {
    "no submit time": {"submit": -1},
    "no run time": {"run_time": -1},
    "run time 0": {"run_time": 0},
    "no number of processors": {"allocated": -1, "requested": 0},
    "more processors than the machine's 10": {"allocated": 11, "requested": 3},
}


@pytest.mark.parametrize("what", DROPPED)
def test_what_cannot_be_simulated_is_dropped_and_counted(what: str) -> None:
    workload = clean(log_of([{}, SUBMIT | DROPPED[what], {"submit": 60}, SUBMIT | DROPPED[what]]))
    report = workload.cleaning
    assert workload.job_id.tolist() == [1, 3]
    assert steps(report) == {what: ("dropped", 2, 2)}
    assert report.steps[0].first_line == 8
    assert report.dropped == report.counts("dropped") == 2


@pytest.mark.parametrize("what", DROPPED)
def test_without_a_filter_a_bad_job_is_an_error(what: str) -> None:
    if what == "run time 0":
        workload = clean(log_of([{}, DROPPED[what]]), preset="none")
        report = workload.cleaning
        assert workload.run_time.tolist() == [10, 0]
        assert steps(report) == {"run time 0": ("kept", 1, 2)}
        return
    refused(WorkloadError, f"test.swf:8 2 1 {what}", clean, log_of([{}, SUBMIT | DROPPED[what]]), preset="none")


def test_a_job_is_dropped_for_its_first_fault_only() -> None:
    report = clean(log_of([{}, {"submit": -1, "run_time": -1, "allocated": -1, "requested": -1}])).cleaning
    assert steps(report) == {"no submit time": ("dropped", 1, 2)}


def test_changes_are_counted_for_kept_jobs_only() -> None:
    jobs = [{}, {"allocated": -1, "requested": 3}, {"allocated": -1, "requested": 3, "run_time": -1}]
    report = clean(log_of(jobs)).cleaning
    assert steps(report) == {
        "no run time": ("dropped", 1, 3),
        "no allocated processors, the requested ones taken": ("changed", 1, 2),
    }


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [
        ("default", [5, 3, 5]),
        ("none", [5, 3, 5]),
        ("tpds18", [3, 3, 5]),
        ("tpds18-workflow", [3, 3, 5]),
        ("sc17", [5, 5]),
    ],
)
def test_which_number_of_processors_is_taken(preset: str, sizes: list[int]) -> None:
    jobs = [{"allocated": 5, "requested": 3}, {"allocated": -1, "requested": 3}, {"allocated": 5, "requested": -1}]
    workload = clean(log_of(jobs), preset=preset)
    assert workload.processors.tolist() == sizes


def test_tpds18_looks_at_both_numbers() -> None:
    jobs = [{}, {"allocated": 11, "requested": 3}, {"allocated": 3, "requested": 11}]
    assert clean(log_of(jobs), preset="tpds18").cleaning.kept == 1
    assert clean(log_of(jobs), preset="default").cleaning.kept == 2


@pytest.mark.parametrize(
    ("overrun", "run_time", "requested_time", "action"),
    [
        ("keep", [10, 30], [20, 20], "kept"),
        ("cut", [10, 20], [20, 20], "changed"),
        ("raise", [10, 30], [20, 30], "changed"),
        ("drop", [10], [20], "dropped"),
    ],
)
def test_runs_beyond_the_request(overrun: str, run_time: list[int], requested_time: list[int], action: str) -> None:
    preset = dataclasses.replace(PRESETS["default"], overrun=overrun)
    workload = clean(log_of([{}, {"run_time": 30}]), preset=preset)
    report = workload.cleaning
    assert workload.run_time.tolist() == run_time
    assert workload.requested_time.tolist() == requested_time
    assert [(step.action, step.jobs, step.first_job) for step in report.steps] == [(action, 1, 2)]


@pytest.mark.parametrize(("zero_run", "run_time"), [("drop", [10]), ("keep", [10, 0]), ("one", [10, 1])])
def test_runs_of_no_time(zero_run: str, run_time: list[int]) -> None:
    preset = dataclasses.replace(PRESETS["default"], zero_run=zero_run)
    assert clean(log_of([{}, {"run_time": 0}]), preset=preset).run_time.tolist() == run_time


def test_requests_are_capped_on_demand() -> None:
    preset = dataclasses.replace(PRESETS["default"], longest_request=100)
    workload = clean(log_of([{}, {"requested_time": 2_147_483_647}]), preset=preset)
    report = workload.cleaning
    assert workload.requested_time.tolist() == [20, 100]
    assert steps(report) == {"more than 100 s requested, cut to that": ("changed", 1, 2)}


def no_requests() -> SwfLog:
    return log_of(
        [{}, {"requested_time": -1, "run_time": -1}, {"requested_time": -1, "job_id": 7}, {"requested_time": 0}]
    )


def test_a_missing_request_is_an_error_that_names_count_and_first_job() -> None:
    refused(WorkloadError, "2 3 field 9 7 line --estimate-missing", clean, no_requests())


def test_all_that_a_log_lacks_is_said_at_once() -> None:
    log = log_of([{"requested_time": -1}] * 3, header="")
    refused(WorkloadError, "--processors 3 --estimate-missing", clean, log)
    # Not what was said already.
    with refusal(WorkloadError, "--processors") as raised:
        clean(log, estimate_missing="model")
    assert "--estimate-missing" not in str(raised.value)


def test_where_no_job_has_a_request_nothing_that_needs_one_is_proposed() -> None:
    none, some = log_of([{"requested_time": -1}] * 3), log_of([{"requested_time": -1}, {}])
    for log, proposed in ((none, False), (some, True)):
        with refusal(WorkloadError, "--estimate-missing") as raised:
            clean(log)
        assert ("own requests" in str(raised.value)) == proposed
        assert (" drop;" in str(raised.value)) == proposed


def test_a_missing_request_is_replaced_or_dropped_on_demand() -> None:
    workload = clean(no_requests(), estimate_missing="runtime")
    report = workload.cleaning
    assert workload.requested_time.tolist() == [20, 10, 10]
    assert steps(report)["no requested time, the run time taken"] == ("changed", 2, 7)
    workload = clean(no_requests(), estimate_missing="drop")
    report = workload.cleaning
    assert workload.job_id.tolist() == [1]
    assert steps(report)["no requested time"] == ("dropped", 2, 7)
    refused(UsageError, "--estimate-missing perfect", clean, no_requests(), estimate_missing="perfect")


def test_few_missing_requests_are_dropped_and_many_are_an_error() -> None:
    jobs: list[dict[str, object]] = [{"submit": n} for n in range(200)]
    jobs[7]["requested_time"] = -1
    report = clean(log_of(jobs)).cleaning
    assert steps(report) == {"no requested time": ("dropped", 1, 8)}
    assert report.steps[0].why == "fewer than 1% of the usable jobs"
    jobs[8]["requested_time"] = 0
    refused(WorkloadError, "test.swf 2 200", clean, log_of(jobs))
    jobs[8]["run_time"] = -1  # not usable: one of 199 is missing
    assert steps(clean(log_of(jobs)).cleaning)["no requested time"] == ("dropped", 1, 8)
    with refusal(WorkloadError, "test.swf 1 199"):
        clean(log_of([job for job in jobs if job.get("run_time") != -1]), preset="none")


def test_missing_requests_are_those_of_the_user_the_queue_and_the_model() -> None:
    none = {"requested_time": -1}
    jobs: list[dict[str, object]] = [
        {"submit": 0, "user": 1, "requested_time": 100},
        {"submit": 10, "user": 1, **none},  # job 1 is nearer than job 5
        {"submit": 15, "user": 1, **none},  # as near to both: the earlier
        {"submit": 29, "user": 1, **none, "run_time": 250},
        {"submit": 30, "user": 1, "requested_time": 300},
        {"submit": 31, "user": 1, **none, "run_time": 301, "queue": 5},  # longer than the user's: the queue's
        {"submit": 40, "user": 2, "queue": 5, "requested_time": 900},
        {"submit": 41, "user": 2, "queue": 5, "requested_time": 900},
        {"submit": 42, "user": 2, "queue": 5, "requested_time": 60},
        {"submit": 43, "user": 3, "queue": 5, **none},
        {"submit": 44, "user": 3, "queue": 6, **none, "run_time": 5000},  # nobody's: the model
        {"submit": 45, "user": 3, "queue": 6, **none, "run_time": 9000},  # longer than all of the model's
        {"submit": 46, **none},  # no user, no queue
    ]
    workload = clean(log_of(jobs), estimate_missing="model")
    requests = dict(zip(workload.job_id.tolist(), workload.requested_time.tolist(), strict=True))
    assert [requests[job] for job in (2, 3, 4, 6, 10)] == [100, 100, 300, 900, 900]
    # The longest estimate is the least that the model takes, 5,701 s, in whole values of its own.
    assert 5000 <= requests[11] <= 5701
    assert requests[12] == 9000
    assert 10 <= requests[13] <= 5701
    assert steps(workload.cleaning) == {
        "no requested time, the user's own nearest request taken": ("changed", 3, 2),
        "no requested time, the queue's most usual request taken": ("changed", 2, 6),
        "no requested time, Tsafrir's model drawn from (seed 1, at most 1h 35m)": ("changed", 3, 11),
    }
    assert clean(log_of(jobs), estimate_missing="model").sha256() == workload.sha256()
    # What is there is left alone.
    assert [requests[job] for job in (1, 5, 7, 8, 9)] == [100, 300, 900, 900, 60]


def test_a_log_without_any_request_gets_the_models() -> None:
    rng = np.random.default_rng(5)
    jobs = [{"submit": n, "run_time": int(rng.integers(1, 40_000)), "requested_time": -1} for n in range(400)]
    workload = clean(log_of(jobs), estimate_missing="model")
    assert (workload.requested_time >= workload.run_time).all()
    # The longest run takes less than 12 h, which is then the longest request, and one of many.
    assert workload.requested_time.max() == 12 * 3600
    assert 10 < len(np.unique(workload.requested_time)) < 100


def test_sorting_keeps_the_order_of_ties_and_times_count_from_the_first() -> None:
    jobs = [{"submit": 90}, {"submit": 70, "wait": 5}, {"submit": 90}, {"submit": 80}]
    workload = clean(log_of(jobs))
    report = workload.cleaning
    assert workload.job_id.tolist() == [2, 4, 1, 3]
    assert workload.submit.tolist() == [0, 10, 20, 20]
    assert workload.start.tolist() == [5, 10, 20, 20]
    assert workload.unix_start == 1_000_000_070
    assert report.shift == 70
    # Jobs 2 and 4 stand behind one that was submitted later.
    assert steps(report) == {"out of submit order, sorted": ("changed", 2, 2)}


def test_the_first_job_kept_is_the_new_zero() -> None:
    assert clean(log_of([{"submit": 5, "run_time": -1}, {"submit": 9}])).submit.tolist() == [0]


def test_job_numbers_become_unique() -> None:
    workload = clean(log_of([{"job_id": n} for n in (4, 4, 9, 4, -1, -1)]))
    report = workload.cleaning
    assert workload.job_id.tolist() == [4, 10, 9, 11, -1, 12]
    assert steps(report) == {"job number used before, a new one given": ("changed", 3, 4)}


def test_decimals_become_whole_seconds() -> None:
    jobs = [
        {"submit": "0.5", "wait": "1.4"},
        {"submit": "7.49", "run_time": "0.2"},
        {"submit": 8, "requested_time": "0.1"},
    ]
    workload = clean(log_of(jobs))
    report = workload.cleaning
    assert workload.submit.tolist() == [0, 6, 7]
    assert workload.run_time.tolist() == [10, 1, 10]
    assert workload.requested_time.tolist() == [20, 20, 1]
    assert workload.start.tolist() == [1, 6, 7]
    assert steps(report)["times with decimals, rounded to seconds"] == ("changed", 3, 1)


def part(job: int, status: int, run_time: int, submit: int = 0) -> dict[str, object]:
    return {"job_id": job, "status": status, "run_time": run_time, "submit": submit}


def test_the_line_that_sums_up_stands_for_its_parts() -> None:
    log = log_of([part(1, 1, 18), part(1, 2, 10), part(1, 2, 5, -1), part(1, 3, 3, -1), part(2, 1, 7)])
    workload = clean(log)
    report = workload.cleaning
    assert workload.job_id.tolist() == [1, 2]
    assert workload.run_time.tolist() == [18, 7]
    assert steps(report) == {"part (status 2, 3, 4) of a job that has a line of its own": ("dropped", 3, 1)}


def test_parts_without_a_sum_become_one_job() -> None:
    log = log_of(
        [part(1, 2, 10, 4), part(2, 1, 7, 4), part(1, 2, -1, -1), part(1, 4, 15, -1), part(3, 2, 8, 9), part(3, 3, 8)]
    )
    workload = clean(log)
    report = workload.cleaning
    assert workload.job_id.tolist() == [1, 2, 3]
    assert workload.run_time.tolist() == [25, 7, 16]
    assert steps(report) == {
        "later part (status 2, 3, 4) of a job": ("dropped", 3, 1),
        "written in parts only, joined": ("changed", 2, 1),
        "run longer than requested": ("kept", 1, 1),
    }
    kept, _ = clean_log(log)
    assert kept.status.tolist() == [0, 1, 1]


def test_no_usable_job_is_an_error_with_the_reasons() -> None:
    refused(WorkloadError, "test.swf 2 1 0", clean, log_of([{"run_time": -1}, {"run_time": 0}]))
    refused(WorkloadError, "test.swf 1 processors", clean, log_of([{"allocated": 2}], header=""), processors=1)


def test_the_machine_is_the_callers_or_the_headers() -> None:
    log = log_of([{"allocated": 6}])
    assert machine_of(log) == (10, "MaxProcs of the header")
    assert machine_of(log, 10) == (10, "as asked for")
    assert machine_of(log, 99, force=True) == (99, "as asked for, against MaxProcs 10 of the header")
    assert known_machine(log_of([{}], header=""), 99) == (99, "as asked for")
    assert known_machine(log_of([{}], header="")) is None
    refused(UsageError, "--processors 0 1 2,147,483,648", machine_of, log, 0)
    endless = log_of([{"allocated": 6}], header="; MaxProcs: 4294967296\n")
    refused(WorkloadError, "test.swf 4,294,967,296 --force-processors", machine_of, endless)
    nodes = log_of([{"allocated": 6}], header="; MaxNodes: 6\n")
    assert machine_of(nodes) == (6, "MaxNodes of the header, which has no MaxProcs")


def test_a_machine_that_contradicts_the_header_is_refused_unless_forced() -> None:
    log = log_of([{"allocated": 6}, {"allocated": 2}, {"allocated": -1, "requested": 5}])
    for call in (clean, clean_log):
        facts = "--processors 4 test.swf MaxProcs 10 2 3 --force-processors force_processors force_machine"
        refused(UsageError, facts, call, log, processors=4)
    report = clean(log, processors=4, force_processors=True).cleaning
    assert (report.kept, report.machine) == (1, 4)
    assert "machine of 4 processors (as asked for, against MaxProcs 10 of the header)" in report.totals()
    refused(UsageError, "--force-processors --processors", clean, log, force_processors=True)


def test_without_a_header_the_machine_must_be_given() -> None:
    refused(WorkloadError, "test.swf MaxProcs --processors 6", clean, log_of([{"allocated": 6}], header=""))
    refused(WorkloadError, "test.swf MaxNodes 5 6", clean, log_of([{"allocated": 6}], header="; MaxNodes: 5\n"))
    assert clean(log_of([{"allocated": 6}], header=""), processors=8).machine == 8


def test_unknown_presets_are_named_with_the_known() -> None:
    refused(UsageError, "tpds tpds18", clean, log_of([{}]), preset="tpds")
    refused(UsageError, "tpds18 tpds18-workflow sc17 zzz", clean, log_of([{}]), preset="zzz")


def test_the_report_tells_in_words_and_in_json() -> None:
    report = clean(log_of([{}, {"run_time": -1}, {"submit": 3, "run_time": 30}])).cleaning
    assert (
        report.summary()
        == "test.swf: 2 of 3 jobs kept (66.67 %, preset default, 10 processors); dropped: no run time: 1"
    )
    assert report.rows()[0][:2] == ["dropped", "no run time"]
    assert report.rows()[0][3:] == ["job 2 (line 8)", "1", "33.33"]
    assert "3 jobs read, 1 dropped, 2 kept" in report.totals()
    values = json.loads(json.dumps(report.as_dict()))
    assert values["dropped"] == 1
    assert values["steps"][1]["action"] == "kept"


def test_a_cleaned_log_is_read_alike_by_every_preset() -> None:
    jobs = [
        {"submit": 100, "allocated": 5, "requested": 3, "cpu_time": "1.5", "queue": 2},
        {"submit": 90, "allocated": -1, "requested": 2, "run_time": "7.5"},
        {"submit": 95, "run_time": -1},
    ]
    log = log_of(jobs)
    workload = clean(log)
    kept, _ = clean_log(log)
    again = parse_swf(format_swf(kept), "test.swf")
    for preset in ("default", "none", "tpds18", "tpds18-workflow", "sc17"):
        assert clean(again, preset=preset).sha256() == workload.sha256()
    assert again.cpu_time.tolist() == [-1, 1.5]
    assert again.queue.tolist() == [-1, 2]
    header = again.header
    assert (header.unix_start, header.processors) == (1_000_000_090, 10)
    assert (header.integer("MaxJobs"), header.integer("MaxRecords"), header.removed) == (3, 2, 1)
    # 1,000,000,090 is 2001-09-09 01:48:10 UTC.
    assert header.text("StartTime") == "Sun Sep 09 03:48:10 CEST 2001"
    assert header.text("EndTime") == "Sun Sep 09 03:48:30 CEST 2001"


def test_a_log_is_read_and_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "site.swf"
    path.write_text(text_of([{}, {"run_time": 0}], HEADER))
    refused(UsageError, "site.swf MaxProcs 10 --processors", read, path, processors=50)
    workload = read(path, processors=50, force_processors=True)
    report = workload.cleaning
    assert (workload.name, len(workload), workload.machine) == ("site", 1, 50)
    assert report.source == str(path)
    refused(InputError, "none.swf no such file", read, tmp_path / "none.swf")


# Kept jobs: SC17_SCHEDULER.md section 1 for sc17; ONLINE_PEERS.md section 1 for the text of tpds18 on SDSC-BLUE and
# Curie (their filter keeps run time 0 too); SWF.md section 5 for its workflow on KTH (the mirror's file, 27,992 jobs).
PUBLISHED = [
    ("SDSC-BLUE-2000-4.2-cln", "sc17", 223_637),
    ("CEA-Curie-2011-2.1-cln", "sc17", 295_540),
    ("SDSC-BLUE-2000-4.2-cln", "tpds18", 232_562),
    ("CEA-Curie-2011-2.1-cln", "tpds18", 312_807),
    ("KTH-SP2-1996-2.1-cln", "tpds18-workflow", 27_992),
]


@pytest.mark.parametrize(("name", "preset", "kept"), PUBLISHED)
def test_the_published_filters_keep_what_was_published(
    name: str, preset: str, kept: int, shared: Callable[[str], Path]
) -> None:
    workload = read(shared(f"traces/{name}.swf.gz"), preset=preset)
    report = workload.cleaning
    assert len(workload) == report.kept == kept
    assert report.dropped == report.counts("dropped")


def test_the_workflows_filter_makes_the_log_that_the_peers_were_given(shared: Callable[[str], Path]) -> None:
    ours = read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"), preset="tpds18-workflow")
    theirs = read(shared("oracles/online/trace_kth.swf.gz"), preset="none")
    report = theirs.cleaning
    assert report.steps == ()
    for column in ("job_id", "submit", "run_time", "requested_time", "processors", "user"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column), err_msg=column)


def test_logs_of_the_lublin_program_have_no_requests(shared: Callable[[str], Path]) -> None:
    log = read_swf(shared("traces/lublin_256.swf"))
    refused(WorkloadError, "lublin_256.swf 10,000 1 8", clean, log)
    workload = clean(log, estimate_missing="runtime")
    report = workload.cleaning
    assert (len(workload), workload.machine) == (10_000, 256)
    assert report.machine_source == "MaxNodes of the header, which has no MaxProcs"
    assert (workload.requested_time == workload.run_time).all()


@pytest.mark.parametrize("processors", [2**31 + 1, 10**12, 10**18, 10**30])
def test_a_machine_of_more_processors_than_any_is_refused(processors: int, tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1\n")
    refused(UsageError, "1 2,147,483,648", read, path, processors=processors)
    # That a header says so is no reason either.
    path.write_text(f"; MaxProcs: {processors}\n{path.read_text()}")
    refused(WorkloadError, "--processors", read, path)


def test_rlschedulers_filter_reads_a_log_as_its_program_does() -> None:
    jobs = [
        {"submit": 50, "allocated": 4, "requested": 6},
        {"submit": 60, "allocated": 4, "requested": -1, "run_time": -1},
        {"submit": 70, "run_time": 0},
    ]
    workload = clean(log_of(jobs), preset="rlscheduler")
    assert workload.processors.tolist() == [6, 4]
    assert workload.run_time.tolist() == [10, 10]
    assert workload.submit.tolist() == [50, 60]
    assert steps(workload.cleaning) == {
        "run time 0": ("dropped", 1, 3),
        "no run time, 10 s taken": ("changed", 1, 2),
    }


def test_a_log_of_which_most_jobs_are_dropped_says_so_first() -> None:
    good, bad = {"run_time": 30, "requested_time": 60}, {"run_time": -1, "requested_time": 60}
    report = clean(log_of([{**(good if n < 4 else bad), "submit": n, "allocated": 2} for n in range(10)])).cleaning
    first = "most jobs of test.swf were dropped, 6 of 10, 6 of them for: no run time"
    assert report.warning.startswith(first)
    assert report.summary().startswith(first)
    assert report.totals().startswith(first)
    with pytest.warns(UserWarning, match=first):
        report.warn()
    half = clean(log_of([{**(good if n < 5 else bad), "submit": n, "allocated": 2} for n in range(10)])).cleaning
    assert half.warning == ""
    half.warn()
    assert half.totals().startswith("10 jobs read, 5 dropped")


def test_jobs_that_were_cancelled_while_they_waited_are_kept_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    rows = [
        {"job_id": 1, "submit": 100, "wait": 5, "run_time": 60, "requested_time": 90},
        # It waited longer than it would have run.
        {"job_id": 2, "submit": 110, "wait": 300, "run_time": -1, "allocated": -1, "requested_time": 90, "status": 5},
        {"job_id": 3, "submit": 120, "wait": 0, "run_time": 0, "allocated": -1, "requested_time": 90, "status": 5},
        # It had the machine.
        {"job_id": 4, "submit": 130, "wait": 7, "run_time": 0, "requested_time": 90, "status": 5},
        {"job_id": 5, "submit": 140, "wait": -1, "run_time": -1, "allocated": -1, "requested_time": 90, "status": 5},
    ]
    path.write_text(text_of(rows))
    workload, cancelled = read_with_cancelled(path)
    assert workload.job_id.tolist() == [1, 2, 3]
    assert cancelled.tolist() == [-1, 310, 21]  # on a clock that begins with the first submission
    assert workload.run_time.tolist() == [60, 90, 1]
    assert workload.start.tolist() == [5, -1, -1]
    assert read(path).job_id.tolist() == [1]
