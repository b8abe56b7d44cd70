"""Times of accounting logs: zones, the hours of summer time, durations as Slurm writes them."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting_logs import T0, counts, job, read_lines, sacct_text
from policyfactory.core.errors import UsageError
from policyfactory.workload.accounting.importing import Zone, import_logs
from policyfactory.workload.accounting.times import Clock, duration, find_zone, machine_zone, parse_date, settle
from refusals import refused

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400), ("1:30", 90), ("24:00:00", 86400), ("1-0", 86400), ("1-12:30", 131400), ("2-00:00:01", 172801),
        ("00:00:04", 4), ("00:00.002", 0), ("1:2:3:4", None), ("", None), ("x", None), ("-5", None), ("1-", None),
    ],
)  # fmt: skip
def test_a_duration_is_read_as_slurm_writes_it(text: str, seconds: int | None) -> None:
    assert duration(text) == seconds


@given(st.integers(0, 10**7))
def test_a_printed_duration_is_read_back(seconds: int) -> None:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    assert duration(f"{days}-{clock}" if days else clock) == seconds


@given(
    st.integers(946684800, 2000000000), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"])
)
def test_a_local_time_is_read_back_or_can_mean_two(unix: int, name: str) -> None:
    zone = zoneinfo.ZoneInfo(name)
    text = dt.datetime.fromtimestamp(unix, zone).strftime("%Y-%m-%dT%H:%M:%S")
    result = Clock(zone).read(text)
    assert unix in result
    assert len(result) == 1 or result[0] < result[1]


def test_the_hour_that_comes_twice_gives_the_earlier_first_and_the_hour_left_out_the_later() -> None:
    clock = Clock(BERLIN)
    assert clock.read("2026-10-25T02:30:00") == (1792888200, 1792891800)
    assert clock.read("2026-03-29T02:30:00") == (1774747800, 1774744200)
    assert clock.read("2026-10-25T03:30:00") == (1792895400,)
    assert clock.read("2026-10-25T02:30:00+01:00") == (1792891800,)
    assert clock.read("1792891800") == (1792891800,)
    for text in ("Unknown", "None", "", "0"):
        assert clock.read(text) == ()
    for text in ("yesterday", "2026-13-01T00:00:00", "2026-01-01", "2026-01-01T00:00:99", "\u0662\u00b2"):
        with pytest.raises(ValueError):  # noqa: PT011 (the caller knows the line)
            clock.read(text)


def test_a_fixed_offset_has_every_hour_once_and_the_clock_knows_whether_it_was_needed() -> None:
    clock = Clock(dt.timezone(dt.timedelta(hours=-5)))
    assert clock.read("1700000000") == (1_700_000_000,)
    assert clock.read("2026-10-25T02:30:00+01:00") == (1792891800,)
    assert not clock.used
    assert clock.read("2026-10-25T02:30:00") == (1792891800 + 6 * 3600,)
    assert clock.read("2026-03-29T02:30:00") == (1774747800 + 6 * 3600,)
    assert clock.used


def test_a_choice_of_times_is_settled_by_run_time_and_order() -> None:
    twice = (1000, 4600)
    assert settle(((500,), twice, (4700,)), 100) == ([500, 4600, 4700], "settled")
    assert settle((twice, (2000,), (2100,)), None) == ([1000, 2000, 2100], "settled")
    assert settle(((500,), twice, ()), None) == ([500, 1000, None], "guessed")
    assert settle((twice, (900,), (950,)), 50) == ([1000, 900, 950], "guessed")
    assert settle(((500,), (4600, 1000), (4700,)), 100) == ([500, 4600, 4700], "never")


def test_the_end_of_summer_time_is_settled_and_counted(tmp_path: Path) -> None:
    def at(hour: str) -> str:
        return f"2026-10-25T{hour}"

    # 02:50 comes twice: run times of 20 minutes and of 80 minutes up to 03:10 tell which it was.
    rows = [
        job(1, Submit=at("01:00:00"), Eligible="Unknown", Start=at("02:50:00"), End=at("03:10:00"), ElapsedRaw=1200),
        job(2, Submit=at("01:00:00"), Eligible="Unknown", Start=at("02:50:00"), End=at("03:10:00"), ElapsedRaw=4800),
        job(3, Submit=at("02:10:00"), Eligible="Unknown", Start=at("02:20:00"), End=at("02:30:00"), ElapsedRaw=600),
    ]
    path = tmp_path / "log"
    path.write_text(sacct_text(*rows))
    done = import_logs([path], zone=Zone(BERLIN, "Europe/Berlin", "named by the test"))
    one, two, three = done.log.wait.tolist()
    assert (one - two, three) == (3600, 600)
    result = counts(done)
    assert result["sacct.settled"] == 2
    assert result["sacct.guessed"] == 1
    assert done.log.header.time_zone == "Europe/Berlin"


def test_a_time_that_never_was_is_counted() -> None:
    row = job(1, Submit="2026-03-29T02:30:00", Start="2026-03-29T04:00:00", End="2026-03-29T04:01:40")
    records, remarks = read_lines(sacct_text(row), BERLIN)
    assert records[0].submit == 1774744200
    assert [item.what for item in remarks] == [
        "times that never were, in the hour that summer time leaves out", "lines with times that have no zone",
    ]  # fmt: skip


def test_unix_seconds_need_no_zone() -> None:
    records, _ = read_lines(sacct_text(job(1)), BERLIN)
    assert (records[0].submit, records[0].end) == (T0, T0 + 100)


def test_this_machines_zone_knows_its_summer_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    assert machine_zone() == (BERLIN, "Europe/Berlin")
    monkeypatch.setenv("TZ", ":/usr/share/zoneinfo/Europe/Berlin")
    assert machine_zone()[1] == "Europe/Berlin"
    monkeypatch.setenv("TZ", "CET-1CEST")
    refused(UsageError, "--time-zone say CET-1CEST", machine_zone)
    monkeypatch.delenv("TZ")
    assert machine_zone()[1]


def test_a_date_is_in_the_zone_and_a_zone_has_a_name() -> None:
    assert parse_date("2026-07-01", BERLIN, "--from") == 1782856800
    assert parse_date("2026-07-01T00:00Z", BERLIN, "--from") == 1782864000
    refused(UsageError, "--from 2026-02-30", parse_date, "2026-02-30", BERLIN, "--from")
    refused(UsageError, "--to 30d 2026-11-20", parse_date, "30d", BERLIN, "--to")
    for name in ("Europe/Berlim", "../etc/passwd", "", "/etc/localtime"):
        refused(UsageError, "time zone --time-zone", find_zone, name)
