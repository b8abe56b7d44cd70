"""The Standard Workload Format: every field, every quirk, every fault."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from naive import scan as naive
from naive.logs import HEADER, line, log_of, text_of
from policyfactory.core.errors import InputError, OutputError, TraceFormatError
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import format_swf, parse_swf, read_swf, write_swf
from policyfactory.workload.swf.log import FIELDS, SwfLog
from policyfactory.workload.swf.scan import scan_number
from refusals import refused

KINDS = ("ok", "bad number", "bad width", "too large", "decimal", "irregular")


def same(first: SwfLog, second: SwfLog) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field), err_msg=field)


def test_every_field_has_its_place() -> None:
    log = parse_swf(b"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n", "log.swf")
    assert [int(getattr(log, field)[0]) for field in FIELDS] == list(range(1, 19))
    assert [column.dtype for column in log.columns().values()] == [np.int64] * 18
    assert FIELDS[1] == "submit"
    assert FIELDS[4] == "allocated"
    assert FIELDS[7] == "requested"
    assert FIELDS[10] == "status"


def test_columns_cannot_be_written_to() -> None:
    log = log_of([{}])
    with pytest.raises(ValueError, match="read-only"):
        log.submit[0] = 5


def test_decimals_negatives_and_signs() -> None:
    rows = [{"cpu_time": "552.21", "run_time": "-1"}, {"cpu_time": "-0.5", "run_time": "+7"}, {"cpu_time": "61.00"}]
    log = log_of(rows)
    assert log.cpu_time.tolist() == [552.21, -0.5, 61.0]
    assert log.run_time.tolist() == [-1, 7, 10]
    assert log.run_time.dtype == np.int64


@pytest.mark.parametrize(
    "token",
    ["0.1", "123456789.123456", "0.30000000000000004", "1e3", "2.5E-3", ".5", "7.", "-.25", "9007199254740993.5"],
)
def test_a_decimal_is_read_as_python_reads_it(token: str) -> None:
    assert log_of([{"run_time": token}]).run_time.tolist() == [float(token)]


def test_a_whole_number_written_as_a_decimal_is_one() -> None:
    log = log_of([{"allocated": "16.0", "user": "3e1"}])
    assert log.allocated.tolist() == [16]
    assert log.allocated.dtype == np.int64
    assert log.user.tolist() == [30]


# No deadline: the first example waits for the compiler.
@settings(deadline=None)
@given(st.from_regex(rb"[0-9+\-.eE_x]{1,24}", fullmatch=True))
@example(b"1.")
@example(b".")
@example(b"-")
@example(b"1e")
@example(b"+-1")
@example(b"1_0")
@example(b"12345678901234567890")
def test_one_number_is_read_as_its_twin_reads_it(token: bytes) -> None:
    kind, value = naive.scan_number(token)
    end, number, behind, result = scan_number(np.frombuffer(token + b"\n", dtype=np.uint8), 0)
    if KINDS[result] == "irregular" and kind == "decimal":
        # More digits than are exact: left for the C library.
        assert sum(token.count(digit) for digit in b"0123456789") > 15
        return
    assert KINDS[result] == kind
    if kind == "ok":
        assert (number, end) == (value, len(token))
    if kind == "decimal":
        assert (number / 10**behind, end) == (value, len(token))


NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.decimals(-(10**6), 10**6, places=2).map(str),
    st.sampled_from(["-1", "0", "1", "1e5", "1.5e2", "0.30000000000000004", "007", "+4"]),
)
SPACE = st.sampled_from([" ", "  ", "\t", " \t "])
END = st.sampled_from(["\n", "\n", "\r\n", " \n"])


@st.composite
def job_lines(draw: st.DrawFn) -> str:
    fields = [draw(NUMBERS) for _ in range(draw(st.sampled_from([18] * 12 + [17, 19])))]
    if draw(st.integers(0, 11)) == 0:
        fields[draw(st.integers(0, len(fields) - 1))] = draw(
            st.sampled_from(["x", "1x", "--1", "1.2.3", "9" * 19, "1,5"])
        )
    return draw(st.sampled_from(["", " ", "\t"])) + draw(SPACE).join(fields) + draw(END)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(job_lines(), job_lines(), st.sampled_from(["; a comment\n", "\n", " \r\n"])), min_size=1))
def test_a_text_is_read_as_its_twin_reads_it(lines: list[str]) -> None:
    text = "".join(lines).encode()
    jobs, fault, _, _ = naive.scan_jobs(text)
    whole = [n for n, field in enumerate(FIELDS) if field not in {"submit", "wait", "run_time", "cpu_time", "memory",
             "requested_time", "requested_memory", "think_time"}]  # fmt: skip
    refused = (
        fault is not None
        or not jobs
        or any(
            not math.isfinite(value) or (place in whole and value != int(value))
            for job in jobs
            for place, value in enumerate(job)
        )
    )
    if refused:
        with pytest.raises(TraceFormatError) as error:
            parse_swf(text, "log.swf")
        if fault is not None:
            expected = f"log.swf:{fault[1]}: " + (
                f"{fault[2]} fields" if fault[0] == "bad width" else f"field {fault[2]} "
            )
            assert str(error.value).startswith(expected)
        return
    log = parse_swf(text, "log.swf")
    result = np.array([getattr(log, field) for field in FIELDS], dtype=np.float64)
    np.testing.assert_array_equal(result.T, np.array(jobs))
    same(parse_swf(format_swf(log), "log.swf"), log)


def test_line_numbers_of_jobs() -> None:
    text = HEADER + "\n" + line() + "\n; between\n\n" + line() + "\n"
    log = parse_swf(text.encode(), "log.swf")
    assert log.line.tolist() == [8, 11]
    assert log.location(1) == "log.swf:11"
    assert log.oddities == {"comment lines between the jobs": 1, "blank lines": 1}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_of_every_system(end: str, last: bool) -> None:
    text = text_of([{}, {"submit": 5}])
    text = text if last else text.removesuffix("\n")
    log = parse_swf(text.replace("\n", end).encode(), "log.swf")
    assert log.submit.tolist() == [0, 5]
    assert log.header.processors == 10
    assert log.line.tolist() == [7, 8]
    assert bool(log.oddities) == (end != "\n")


def test_a_byte_order_mark_and_names_in_latin_1() -> None:
    text = b"\xef\xbb\xbf; Computer: K\xf6ln\n" + line().encode() + b"\n"
    log = parse_swf(text, "log.swf")
    assert log.oddities == {"a byte order mark": 1}
    assert format_swf(log).startswith(b"; Computer: K\xf6ln\n")


def test_packed_files_are_known_by_content(tmp_path: Path) -> None:
    text = text_of([{}, {"submit": 5}]).encode()
    (tmp_path / "plain.gz").write_bytes(text)
    (tmp_path / "packed.swf").write_bytes(gzip.compress(text))
    (tmp_path / "two.swf.gz").write_bytes(gzip.compress(text[:200]) + gzip.compress(text[200:]) + b"\0" * 512)
    logs = [read_swf(tmp_path / name) for name in ("plain.gz", "packed.swf", "two.swf.gz")]
    for log in logs[1:]:
        same(log, logs[0])
    assert [log.name for log in logs] == ["plain", "packed", "two"]
    assert logs[0].sha256 == hashlib.sha256(text).hexdigest()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    log = log_of([{"cpu_time": "0.1", "think_time": 7}, {"submit": 123456789012, "user": 4}])
    for name in ("a.swf", "b.swf.gz"):
        write_swf(log, tmp_path / name)
        again = read_swf(tmp_path / name)
        same(again, log)
        assert again.header == log.header
    assert (tmp_path / "b.swf.gz").read_bytes()[:2] == b"\x1f\x8b"
    first = (tmp_path / "b.swf.gz").read_bytes()
    write_swf(log, tmp_path / "b.swf.gz")
    assert (tmp_path / "b.swf.gz").read_bytes() == first


@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "CEA-Curie-2011-2.1-cln"])
def test_archive_files_without_decimals_are_written_byte_for_byte(name: str, shared: Callable[[str], Path]) -> None:
    path = shared(f"traces/{name}.swf.gz")
    assert format_swf(read_swf(path)) == gzip.decompress(path.read_bytes())


def test_an_archive_file_with_decimals_keeps_every_number(shared: Callable[[str], Path]) -> None:
    log = read_swf(shared("traces/HPC2N-2002-2.1-cln.swf.gz"))
    assert log.cpu_time.dtype == np.float64
    same(parse_swf(format_swf(log), "again.swf"), log)


def test_a_workload_is_written_with_its_machine_and_date() -> None:
    workload = Workload(
        name="w", machine=8, job_id=[3, 4], submit=[0, 5], run_time=[7, 8], requested_time=[9, 10], processors=[1, 8],
        user=[1, -1], start=[-1, 9], unix_start=1000, time_zone="Europe/Paris", ticks=1000, origin="made up",
    )  # fmt: skip
    log = parse_swf(format_swf(workload), "w.swf")
    assert log.wait.tolist() == [-1, 4]
    assert log.requested.tolist() == log.allocated.tolist() == [1, 8]
    assert (log.header.processors, log.header.unix_start, log.header.time_zone) == (8, 1000, "Europe/Paris")
    assert log.header.values("Note") == ("made up", "times are in 1/1000 s")


BAD_LINES = {
    "abc 2 3": (1, "1 abc field"),
    line(run_time="12h"): (1, "4 12h field"),
    line(wait="1.2.3"): (1, "3 1.2.3 field"),
    line(run_time="1e"): (1, "4 1e 18"),
    line(run_time="1e999"): (1, "4 1e999 18"),
    line(submit="1234567890123456789"): (1, "2 1234567890123456789 18"),
    line(allocated="2.5"): (1, "5 2.5 field"),
    line() + " 5": (1, "19 18 fields"),
    line()[:-3]: (1, "17 18 fields"),
    line(user="\x1b[31m"): (1, "12 31m field"),
    line(user="\x0b7"): (1, "12 7 field"),
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named_with_field_value_and_cure(bad: str, tmp_path: Path) -> None:
    offset, message = BAD_LINES[bad]
    path = tmp_path / "log.swf"
    path.write_text(f"{HEADER}{line()}\n{bad}\n{line()}\n")
    refused(TraceFormatError, f"log.swf:{7 + offset} {message} delete", read_swf, path)


def test_a_file_of_another_kind_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit\n1,2\n")
    refused(TraceFormatError, "jobs.csv:1 field Standard job_id,submit", read_swf, path)


def test_a_comment_without_end_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "notes.swf"
    path.write_text("; words\n" * 150_000)
    refused(TraceFormatError, "notes.swf:131073 bytes comments 1,048,576", read_swf, path)


def test_files_that_are_not_there_or_no_files(tmp_path: Path) -> None:
    refused(InputError, "missing.swf file check", read_swf, tmp_path / "missing.swf")
    refused(InputError, "directory name", read_swf, tmp_path)


def test_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "empty.swf").write_text("")
    (tmp_path / "blank.swf").write_text(" \n\n")
    (tmp_path / "header.swf").write_text(HEADER)
    (tmp_path / "packed.swf.gz").write_bytes(gzip.compress(b""))
    refused(TraceFormatError, "empty.swf 18 numbers", read_swf, tmp_path / "empty.swf")
    refused(TraceFormatError, "blank.swf empty", read_swf, tmp_path / "blank.swf")
    refused(TraceFormatError, "header.swf 6 header", read_swf, tmp_path / "header.swf")
    refused(TraceFormatError, "packed.swf.gz empty", read_swf, tmp_path / "packed.swf.gz")


def test_damaged_packed_files(tmp_path: Path) -> None:
    packed = gzip.compress(text_of([{"submit": n} for n in range(500)]).encode())
    (tmp_path / "cut.swf.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "tail.swf.gz").write_bytes(packed[:-6])
    (tmp_path / "flipped.swf.gz").write_bytes(packed[:-7] + bytes([packed[-7] ^ 255]) + packed[-6:])
    (tmp_path / "behind.swf.gz").write_bytes(packed + b"something")
    (tmp_path / "other.swf").write_bytes(bz2.compress(b"1 2 3"))
    refused(InputError, "cut.swf.gz middle download", read_swf, tmp_path / "cut.swf.gz")
    refused(InputError, "tail.swf.gz ends middle", read_swf, tmp_path / "tail.swf.gz")
    refused(InputError, "flipped.swf.gz unpacked download -3", read_swf, tmp_path / "flipped.swf.gz")
    refused(InputError, "behind.swf.gz damaged -3", read_swf, tmp_path / "behind.swf.gz")
    refused(InputError, "other.swf bzip2 packed", read_swf, tmp_path / "other.swf")


def test_a_file_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyfactory.workload.swf.files._LARGEST_TEXT", 100_000)
    (tmp_path / "bomb.swf.gz").write_bytes(gzip.compress(b" " * 1_000_000))
    refused(InputError, "bomb.swf.gz 100,000 unpacks", read_swf, tmp_path / "bomb.swf.gz")


def test_writing_where_nothing_can_be_written(tmp_path: Path) -> None:
    refused(OutputError, f"{tmp_path} directory", write_swf, log_of([{}]), tmp_path)
    refused(OutputError, "log.swf exist create", write_swf, log_of([{}]), tmp_path / "nowhere" / "log.swf")
