"""Model jobs as SWF files: the header tells how they were made, the jobs come back as they were."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from policyfactory.core.errors import WorkloadError
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import offered_load
from policyfactory.workload.models.lublin import LublinModel, cut_run_times, draw_jobs, scale_to_load
from policyfactory.workload.models.lublin_log import format_log, load_of, log_of_draw, write_log
from policyfactory.workload.models.tsafrir import Estimates, draw_estimates, replace_requests, usable_lines
from policyfactory.workload.swf.files import parse_swf, read_swf
from refusals import refused

HEAD = "; Version: 2.2\n; MaxProcs: 8\n; Note: from a site\n"
# Job, submit, wait, run, allocated, ..., requested (8), request (9), ..., status (11), ..., user (12).
LINE = "{} {} 5 {} {} -1 -1 {} {} -1 1 7 -1 -1 2 -1 -1 -1\n"


def small_log(extra: str = "") -> bytes:
    lines = [LINE.format(k, 10 * k, 100 + k, 4, 4, 500) for k in range(1, 301)]
    return (HEAD + "".join(lines) + extra).encode()


def drawn(run_time: np.ndarray) -> Estimates:
    return draw_estimates(run_time, 7200, seed=1)


def test_header_tells_how_the_jobs_were_made() -> None:
    model = LublinModel.for_machine(100, typed=True, start_hour=8)
    draw = scale_to_load(draw_jobs(model, 1000, seed=3), 0.8)
    log = log_of_draw(draw, ("policyfactory workload lublin ...", "random numbers: numpy stream, seed 3"))
    header = log.header
    assert (header.processors, header.nodes, header.positive("MaxJobs")) == (100, 100, 1000)
    assert (header.unix_start, header.time_zone) == (8 * 3600, "UTC")
    assert header.text("Conversion").endswith("policyfactory workload lublin ...")
    notes = "\n".join(header.values("Note"))
    for words in ("typed, 100 processors", "interactive: serial=0.1541", "batch: serial=0.2927", "offered load 0.8000",
                 "random numbers: numpy stream, seed 3", "field 15 (queue): 0 interactive, 1 batch"):  # fmt: skip
        assert words in notes
    assert load_of(log, 100).startswith("offered load 0.8000")
    plain = log_of_draw(draw_jobs(LublinModel.for_machine(64), 5, seed=1), ("test",))
    assert plain.header.unix_start is None
    assert plain.header.positive("MaxRuntime") == 162_754


def test_control_characters_of_a_command_stay_out_of_the_header() -> None:
    draw = draw_jobs(LublinModel.for_machine(64), 5, seed=1)
    log = log_of_draw(draw, ("policyfactory\n1 2 3 \x1b[31m", "a\nb"))
    assert len(parse_swf(format_log(log), "m.swf")) == 5
    assert b"\x1b" not in format_log(log)


def test_a_written_log_is_read_back(tmp_path: Path) -> None:
    draw = draw_jobs(LublinModel.for_machine(256, typed=True), 2000, seed=1)
    draw, cut = cut_run_times(draw, 64_800)
    made = draw_estimates(draw.run_time, 64_800, seed=1)
    log = log_of_draw(draw, ("test",), made)
    for name in ("m.swf", "m.swf.gz"):
        write_log(log, tmp_path / name)
        again = read_swf(tmp_path / name)
        for field, column in log.columns().items():
            assert (getattr(again, field) == column).all(), field
    assert gzip.decompress((tmp_path / "m.swf.gz").read_bytes()) == (tmp_path / "m.swf").read_bytes()
    workload = read(tmp_path / "m.swf")
    assert len(workload) == 2000
    assert workload.machine == 256
    assert (workload.requested_time == made.requested_time).all()
    assert (workload.processors == draw.processors).all()
    assert (workload.submit == draw.submit - draw.submit[0]).all()
    assert cut == (draw_jobs(LublinModel.for_machine(256, typed=True), 2000, seed=1).run_time > 64_800).sum()


def test_requests_of_a_log_are_replaced_and_nothing_else() -> None:
    log = parse_swf(small_log(), "site.swf")
    result, made = replace_requests(log, drawn)
    assert (result.requested_time == made.requested_time).all()
    assert (result.requested_time >= result.run_time).all()
    for field, column in log.columns().items():
        if field != "requested_time":
            assert (getattr(result, field) == column).all(), field
    assert result.header.values("Note") == ("from a site", made.note)
    assert result.header.positive("MaxJobs") == 300


def test_unusable_lines_are_dropped_and_counted_and_long_runs_cut() -> None:
    extra = LINE.format(301, 9000, -1, 4, 4, 500) + LINE.format(302, 9001, 10, -1, -1, 500)
    extra += LINE.format(303, 9002, 99_999, 4, 4, 500) + LINE.format(304, 9003, 10.5, -1, 4, -1)
    log = parse_swf(small_log(extra), "site.swf")
    assert usable_lines(log).sum() == 302
    result, made = replace_requests(log, drawn)
    assert result.job_id.tolist() == [*range(1, 301), 303, 304]
    assert result.run_time[-2:].tolist() == [7200, 10.5]
    assert made.cut == 1
    assert made.note.endswith("values, at most 2h; 1 longer run times were cut to that")
    assert result.requested_time[-2] == 7200
    assert result.header.values("Note")[1:] == (made.note, "2 lines without run time or processors were dropped")


def test_the_parts_of_a_job_have_one_request() -> None:
    part = "301 {} 0 {} 4 -1 -1 4 500 -1 {} 1 1 1 1 1 -1 -1\n"
    log = parse_swf(small_log(part.format(9000, 100, 2) + part.format(-1, 7000, 3)), "site.swf")
    result, _ = replace_requests(log, drawn)
    assert (result.job_id[-1], result.run_time[-1], len(result)) == (301, 7100, 301)
    assert result.requested_time[-1] >= 7100


def test_a_log_without_a_job_that_ran_is_refused() -> None:
    log = parse_swf((HEAD + LINE.format(1, 1, -1, 4, 4, 500)).encode(), "site.swf")
    refused(WorkloadError, "site.swf 1 jobs", replace_requests, log, drawn)


def test_offered_load_of_a_log_is_that_of_its_jobs() -> None:
    draw = draw_jobs(LublinModel.for_machine(256), 10_000, seed=1487089399, stream="drand48")
    # The published trace is overloaded: 1.061 (see the oracle).
    assert offered_load(draw.submit, draw.run_time, draw.processors, 256) == pytest.approx(
        1.0607685635844673, rel=1e-12
    )
