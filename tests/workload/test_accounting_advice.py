"""What an import tells an administrator beside its tables: what will stop the next command, and what to say then."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from pathlib import Path

import pytest

from accounting_logs import T0, UTC, Cells, column, imported, job, sacct_text, waiting
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.text import parse_duration
from policyfactory.workload.accounting.importing import Imported, Zone, import_logs
from policyfactory.workload.accounting.options import ImportRules
from policyfactory.workload.accounting.table import PartitionLimits
from policyfactory.workload.accounting.times import Clock, parse_date
from refusals import refusal, refused
from snapshots import snapshot


def sized(folder: Path, processors: int, *jobs: Cells, unit: str = "cpus") -> Imported:
    path = folder / "log.txt"
    path.write_text(sacct_text(*jobs))
    return import_logs([path], zone=UTC, processors=processors, rules=ImportRules(unit=unit))


def test_jobs_without_a_requested_time_are_warned_of_with_the_cure(tmp_path: Path) -> None:
    rows = [job(1, TimelimitRaw="UNLIMITED"), job(2, TimelimitRaw="Partition_Limit"), job(3, TimelimitRaw=""), job(4)]
    (text,) = imported(tmp_path, *rows).report.warnings()
    snapshot(text, part="1")
    assert "--estimate-missing drop" in text
    cured = imported(tmp_path, *rows, unlimited=604_800, partition_limit={"batch": 86_400})
    (text,) = cured.report.warnings()
    snapshot(text, part="2")
    assert "--unlimited" not in text
    assert imported(tmp_path, job(4)).report.warnings() == []


def test_limits_made_unknown_are_among_the_jobs_without_a_requested_time(tmp_path: Path) -> None:
    rows = [job(1), job(2), job(3, TimelimitRaw=5)]
    (text,) = imported(tmp_path, *rows, default_limit={"batch": 3600}, defaults="unknown").report.warnings()
    snapshot(text)


def test_only_jobs_that_are_written_and_ran_lack_a_requested_time(tmp_path: Path) -> None:
    never = job(2, run=0, State="CANCELLED by 1", AllocNodes=0, ElapsedRaw=0, TimelimitRaw="UNLIMITED")
    later = job(3, 500, TimelimitRaw="UNLIMITED")
    done = imported(tmp_path, job(1), never, later, keep_unstarted=True, end=T0 + 100)
    assert done.log.requested_time.tolist() == [3600, -1]
    assert done.report.warnings() == []


def test_a_machine_smaller_than_what_was_in_use_is_warned_of(tmp_path: Path) -> None:
    rows = [job(1, run=100, AllocCPUS=8), job(2, 50, AllocCPUS=5), job(3, 100, AllocCPUS=3)]
    (text,) = sized(tmp_path, 7, *rows).report.warnings()
    snapshot(text, part="1")
    (text,) = sized(tmp_path, 12, *rows).report.warnings()
    snapshot(text, part="2")
    assert sized(tmp_path, 13, *rows).report.warnings() == imported(tmp_path, *rows).report.warnings() == []
    (text,) = sized(tmp_path, 1, job(1, AllocNodes=3), unit="nodes").report.warnings()
    snapshot(text, part="3")


def test_a_limit_for_a_partition_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    rows = [job(1), job(2, Partition="gpu")]
    for option in ("partition_limit", "default_limit"):
        facts = f"--{option.replace('_', '-')} bacth batch gpu"
        refused(UsageError, facts, imported, tmp_path, *rows, **{option: {"gpu": 60, "bacth": 60}})
    # One that is left out by --partition is no slip.
    assert imported(tmp_path, *rows, partitions=("gpu",), default_limit={"batch": 60}).report.jobs == 1


def test_only_what_the_rules_dropped_asks_whether_they_are_right(tmp_path: Path) -> None:
    waits = [waiting(n, 5) for n in range(20, 23)]
    (text,) = imported(tmp_path, job(1), job(2), *waits).report.warnings()
    snapshot(text)
    assert imported(tmp_path, job(1), job(2), *waits[:2]).report.warnings() == []
    many = [job(n, 100 * n, Partition="batch" if n else "gpu") for n in range(9)]
    assert imported(tmp_path, *many, partitions=("gpu",)).report.warnings() == []
    assert imported(tmp_path, *many, end=T0 + 50).report.warnings() == []
    assert imported(tmp_path, *many, begin=T0 + 750).report.warnings() == []
    path = tmp_path / "log.txt"
    assert import_logs([path] * 4, zone=UTC).report.warnings() == []
    # Those of another time were not dropped by the rules, whatever else is wrong with them.
    assert imported(tmp_path, job(1), *waits, end=T0 + 2).report.warnings() == []


def test_limits_that_were_all_asked_for_have_no_commonest_other(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "JobID|State|Submit|Start|End|TimelimitRaw|AllocCPUS|Partition|SubmitLine\n"
        f"1|COMPLETED|{T0}|{T0}|{T0 + 5}|60|4|batch|sbatch -t 60 x.sh\n"
        f"2|COMPLETED|{T0}|{T0}|{T0 + 5}|UNLIMITED|4|big|sbatch x.sh\n"
        f"3|COMPLETED|{T0}|{T0}|{T0 + 5}|30|4|small|sbatch x.sh\n"
    )
    rows = import_logs([tmp_path / "log"], zone=UTC).report.partition_rows()
    assert [(row[0], *row[4:6]) for row in rows] == [
        ("batch", "- (all asked for)", "-"), ("big", "- (no limits)", "-"), ("small", "30m", "100.0"),
    ]  # fmt: skip


@pytest.mark.parametrize(("seconds", "text"), [(86_400, "1d"), (95_400, "1d2h30m"), (3_660, "1h1m"), (90, "1m30s")])
def test_the_proposed_default_is_one_that_the_option_takes(seconds: int, text: str) -> None:
    question = PartitionLimits("batch", 20, 20, 0, seconds, 1.0, None).question()
    assert question is not None
    assert f"--default-limit batch={text}, and" in question
    assert parse_duration(text) == seconds


def test_a_log_of_unix_seconds_needs_no_zone(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1))
    assert not done.report.zone_needed
    assert "its times are Unix seconds; dates are in UTC (named by the test)" in done.report.totals()
    assert not any("zone: named" in line for line in done.log.header.lines)
    local = job(2, Submit="2023-11-14T22:13:20", Start="2023-11-14T22:13:20", End="2023-11-14T22:15:00")
    done = imported(tmp_path, job(1), local)
    assert done.report.zone_needed
    assert "; times in UTC (named by the test)" in done.report.totals()
    assert "; Note: time zone: named by the test" in done.log.header.lines


def test_a_clock_knows_whether_a_time_needed_its_zone() -> None:
    clock = Clock(zoneinfo.ZoneInfo("Europe/Berlin"))
    assert clock.read("1700000000") == clock.read("2023-11-14T22:13:20Z") == (1_700_000_000,)
    assert clock.column(["1700000000"] * 2000 + ["Unknown"]).max() == 1_700_000_000
    assert not clock.used
    assert clock.read("2023-11-14T23:13:20") == (1_700_000_000,)
    assert clock.used
    many = Clock(clock.zone)
    assert many.column(["2023-11-14T23:13:20"] * 2000).tolist() == [1_700_000_000] * 2000
    assert many.used


def test_dates_are_days_times_of_day_or_unix_seconds() -> None:
    assert parse_date("2026-11-20", dt.UTC, "--from") == parse_date("1795132800", dt.UTC, "--from") == 1795132800
    assert parse_date("2026-11-20T16:00", dt.UTC, "--from") == 1795132800 + 16 * 3600
    for wrong in ("20.11.2026", "20261120", "2026-11-31", "yesterday", ""):
        words = "--from 2026-11-20 2026-11-20T16:00"
        refused(UsageError, words, parse_date, wrong, dt.UTC, "--from")


def test_a_time_without_jobs_is_refused_with_the_time_of_the_log(tmp_path: Path) -> None:
    rows = [job(1), job(2, 3600, Partition="gpu"), job(3, 60)]
    words = "log.txt 2023-11-14 22:13:20 UTC 23:13:20"
    refused(WorkloadError, words, imported, tmp_path, *rows, begin=T0 + 86_400)
    zone = Zone(zoneinfo.ZoneInfo("Europe/Berlin"), "Europe/Berlin", "named by the test")
    with refusal(WorkloadError, "log.txt from 2023-11-14 23:13:20 CET"):
        import_logs([tmp_path / "log.txt"], rules=ImportRules(end=T0, partitions=("batch",)), zone=zone)


@pytest.mark.parametrize("text", [sacct_text(), '{"jobs": []}'])
def test_a_log_without_records_says_what_to_look_at_in_the_query(tmp_path: Path, text: str) -> None:
    (tmp_path / "log").write_text(text)
    refused(WorkloadError, "log result rights", import_logs, [tmp_path / "log"], zone=UTC)


def test_a_time_beyond_all_calendars_stops_no_import(tmp_path: Path) -> None:
    far = 1 << 39
    done = imported(tmp_path, job(1, Submit=far, Eligible=far, Start=far, End=far + 100))
    snapshot(done.report.machine_source)
    assert column(done, "submit", "run_time") == [(0, 100)]
