"""Header lines: labels, repetition, continuation, and what strangers write there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.workload.header import Header, parse_header, printable
from policyfactory.workload.swf.files import parse_swf, read_swf


def header_of(*lines: str) -> Header:
    return parse_header(list(lines))


def test_labels_repeat_and_any_case_finds_them() -> None:
    header = header_of("; Note: one", ";Queue:  1  [fque:1]    ", "; note: two", "; MaxProcs: 240")
    assert header.values("NOTE") == ("one", "two")
    assert header.text("Queue") == "1  [fque:1]"
    assert header.processors == 240
    assert header.text("Partition") is None
    assert header.values("Partition") == ()


def test_continuation_lines_join_the_value_above() -> None:
    header = header_of(
        "; Note: Curie is composed of 3 types of nodes: thin, fat, and hybrid,",
        ";\tsee: http://www-hpc.cea.fr/",
        ";       user=2 (305178 jobs removed)",
        ";",
        ";       a line behind an empty one belongs to nothing",
        "; --- a comment",
    )
    value = "Curie is composed of 3 types of nodes: thin, fat, and hybrid,\nsee: http://www-hpc.cea.fr/\n"
    assert header.values("Note") == (value + "user=2 (305178 jobs removed)",)
    assert len(header.entries) == 1
    assert len(header.lines) == 6


def test_an_address_is_no_label() -> None:
    header = header_of("; Information: http://a/", ";              http://b/", "; http://c/")
    assert header.entries == (("Information", "http://a/\nhttp://b/"),)


def test_a_standard_label_may_be_indented() -> None:
    assert header_of(";        MaxProcs: 64").processors == 64


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("1152", 1152),
        ("1152 (144 nodes x 8)", 1152),
        ("-1", None),
        ("0", None),
        ("many", None),
        ("", None),
        ("1.5", None),
        ("93,312", 93312),
        ("8, or so", 8),
        ("1,2", None),
        ("12.", 12),
    ],
)
def test_numbers_with_text_behind_them(value: str, number: int | None) -> None:
    assert header_of(f"; MaxProcs: {value}").processors == number


def test_an_empty_value_gives_way_to_the_next() -> None:
    assert header_of("; MaxProcs:", "; MaxProcs: 8").processors == 8


def test_dates_and_zones() -> None:
    header = header_of("; UnixStartTime: 843480031", "; TimeZone: 3600", "; TimeZoneString: Europe/Stockholm")
    assert (header.unix_start, header.utc_offset, header.time_zone) == (843480031, 3600, "Europe/Stockholm")
    assert header_of("; UnixStartTime: 0").unix_start is None
    assert header_of("; TimeZoneString: ../../etc/passwd").time_zone is None
    assert header_of("; TimeZone: 999999").utc_offset is None
    assert Header().unix_start is None
    assert Header().time_zone is None


def test_jobs_that_a_cleaning_removed() -> None:
    header = header_of("; Note: filters", ";       job<=14 (14 jobs removed)", "; Note: and (1 job removed)")
    assert header.removed == 15
    assert header_of("; Note: nothing").removed is None


def test_replacing_keeps_the_other_lines() -> None:
    header = header_of("; Version: 2.2", "; a comment", "; MaxProcs: 8", "; Note: one")
    changed = header.replace({"MaxProcs": "16", "MaxRecords": "5"}, notes=("two\nlines",))
    assert changed.lines == (
        "; Version: 2.2", "; a comment", "; MaxProcs: 16", "; Note: one", "; MaxRecords: 5", "; Note: two?lines",
    )  # fmt: skip
    assert changed.processors == 16


def test_printable_shows_nothing_that_moves_the_cursor() -> None:
    assert printable("a\x1b[2Jb\nc\u202e") == "a?[2Jb?c?"
    assert printable("x" * 200, 10) == "x" * 10 + "..."


def test_the_headers_of_the_archive(shared: Callable[[str], Path]) -> None:
    curie = read_swf(shared("traces/CEA-Curie-2011-2.1-cln.swf.gz")).header
    assert (curie.processors, curie.nodes, curie.unix_start, curie.time_zone) == (
        93312,
        5544,
        1296571124,
        "Europe/Paris",
    )
    assert len(curie.values("Partition")) == 33
    assert curie.values("Partition")[17] == "18  z+i5U=:"
    assert curie.removed == 272392 + 28878 + 118014 + 37905 + 3123
    blue = read_swf(shared("traces/SDSC-BLUE-2000-4.2-cln.swf.gz")).header
    assert len(blue.values("Information")) == 7
    assert blue.text("Preemption") == "No"
    assert blue.utc_offset == -28800


@pytest.mark.parametrize("line", [";    {}", "; Partition: 1 a{}b", ";\t{}", "; Note:{}x", ";{}x"])
def test_what_is_the_square_of_blanks_is_read_in_time(line: str) -> None:
    text = f"; MaxProcs: 8\n{line.format(' ' * 400_000)}\n1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n"
    began = time.process_time()
    assert len(parse_swf(text.encode(), "log.swf")) == 1
    assert time.process_time() - began < 30  # it took minutes
