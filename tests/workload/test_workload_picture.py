"""When jobs come by the clock of the site, and pictures of logs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from naive.logs import HEADER, log_of
from policyfactory.core.errors import WorkloadError
from policyfactory.workload.clean import clean_log
from policyfactory.workload.describe import describe, draw_log, find_quirks
from policyfactory.workload.jobs import site_clock
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import arrivals
from refusals import refused
from snapshots import snapshot

PICTURES = ["accuracy", "arrivals", "run-times", "sizes"]


def submitted(*moments: datetime, header: str = HEADER) -> SwfLog:
    return log_of([{"submit": int(moment.timestamp()) - 1_000_000_000} for moment in moments], header)


def test_hours_are_those_of_the_site_in_summer_and_winter() -> None:
    zone = ZoneInfo("Europe/Stockholm")
    # A Monday in July and one in January, 9 h at the site both: 7 h and 8 h in UTC.
    result = arrivals(submitted(datetime(2003, 7, 7, 9, 30, tzinfo=zone), datetime(2004, 1, 5, 9, 59, tzinfo=zone)))
    assert np.flatnonzero(result.hour_of_week).tolist() == [9]
    assert result.hour_of_week[9] == 2
    assert result.clock == "Europe/Stockholm time"
    assert result.dated


def test_every_hour_of_the_week_has_its_place() -> None:
    header = HEADER.replace("Europe/Stockholm", "UTC")
    monday = datetime(2003, 7, 7, tzinfo=UTC).timestamp()
    log = log_of([{"submit": int(monday) - 1_000_000_000 + 3600 * hour + 1800} for hour in range(2 * 168)], header)
    result = arrivals(log)
    assert result.hour_of_week.tolist() == [2] * 168
    assert result.hours_seen.tolist() == [2] * 168
    assert result.per_week.tolist() == [168, 168]
    assert result.rate(slice(0, 5)).tolist() == [1.0] * 24


def test_a_rate_is_jobs_for_each_hour_that_the_log_lasts() -> None:
    # Three jobs within one hour, then one an hour later: the log sees two hours, once each.
    result = arrivals(log_of([{"submit": time} for time in (0, 10, 20, 3600)], header=""))
    assert result.hours_seen.sum() == 2
    assert result.rate(slice(0, 7))[:3].tolist() == [3.0, 1.0, 0.0]
    assert not result.dated
    snapshot(result.clock)


def test_the_clock_of_a_site() -> None:
    def clock(lines: str) -> str:
        return site_clock(log_of([{}], lines).header)[1]

    assert clock("; TimeZoneString: Europe/Paris\n") == "Europe/Paris"
    assert clock("; TimeZone: -28800\n") == "UTC-8 h"
    assert clock("; TimeZoneString: Europe/Nowhere\n; TimeZone: 3600\n") == "UTC+1 h"
    snapshot(clock("; TimeZoneString: Europe/Nowhere\n"), clock("; Note: x\n"), part="1")
    result = arrivals(log_of([{}], "; UnixStartTime: 1000000000\n"))
    snapshot(result.clock, part="2")


def test_the_archives_logs_are_busy_in_working_hours(shared: Callable[[str], Path]) -> None:
    result = arrivals(read_swf(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz")))
    day = result.rate(slice(0, 5))
    assert result.per_week.sum() == 28_476
    # By UTC the peak would be an hour or two earlier.
    assert day[9:18].min() > 2 * max(day[0:7].max(), day[22:].max())
    assert day.max() > 2 * result.rate(slice(5, 7)).max()


@pytest.mark.parametrize(
    "name", [pytest.param("KTH-SP2-1996-2.1-cln.swf.gz", marks=pytest.mark.slow), "lublin_256.swf"]
)
def test_pictures_of_a_log(name: str, shared: Callable[[str], Path], tmp_path: Path) -> None:
    log = read_swf(shared(f"traces/{name}"))
    drawn = draw_log(log, describe(log), tmp_path)
    expected = PICTURES if "KTH" in name else PICTURES[1:]
    assert sorted(path.name for path in drawn) == [f"{log.name}-{what}.png" for what in expected]
    for path in drawn:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 10_000


def test_pictures_of_odd_logs(tmp_path: Path) -> None:
    nothing = {"submit": -1, "run_time": -1, "allocated": -1, "requested": -1, "requested_time": -1}
    assert draw_log(log_of([nothing]), describe(log_of([nothing])), tmp_path) == []
    one = log_of([{"run_time": 0, "requested_time": 2_147_483_647}])
    assert len(draw_log(one, describe(one), tmp_path)) == 4


def test_a_clock_that_is_not_in_seconds_is_reported_not_drawn(tmp_path: Path) -> None:
    log = log_of([{"submit": 10**16}, {"submit": 2 * 10**16}])
    description = describe(log)
    assert [path.name for path in draw_log(log, description, tmp_path) if "arrivals" in path.name] == []
    assert any("are these times in seconds?" in quirk for quirk in find_quirks(log, description))
    refused(WorkloadError, "hours unknown test", arrivals, log)
    kept, _ = clean_log(log)
    assert kept.header.text("StartTime") is None
    assert kept.submit.tolist() == [0, 10**16]


def test_the_name_of_a_log_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    import dataclasses

    log = dataclasses.replace(log_of([{}]), name="../../etc/pass$wd")
    assert {path.parent for path in draw_log(log, describe(log), tmp_path)} == {tmp_path}
    assert (tmp_path / "_.._etc_pass_wd-sizes.png").exists()
