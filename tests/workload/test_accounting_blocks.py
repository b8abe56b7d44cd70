"""sacct read a block at a time gives what its naive twin gives, line by line; numbers are printed as by Python."""

from __future__ import annotations

import gzip
import zoneinfo
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting_logs import COLUMNS, job, sacct_text, waiting
from naive import sacct as naive
from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting import sacct, source
from policyfactory.workload.accounting.record import NAMES, NUMBERS, RecordBlock, Remark
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.accounting.table import StepCounter, TableBuilder
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.models.lublin import generate_lublin
from policyfactory.workload.swf import files as swf
from policyfactory.workload.swf.files import format_swf
from policyfactory.workload.swf.scan import printed
from refusals import refused

ALL = [*COLUMNS, "AllocTRES", "Timelimit", "Elapsed", "SubmitLine", "Cluster", "ReqMem", "ReqGRES", "AllocGRES"]
MORE = {
    "User": "ann",
    "AllocTRES": "cpu=4,node=1",
    "Timelimit": "01:00:00",
    "Elapsed": "00:01:40",
    "SubmitLine": "",
    "Cluster": "c",
    "ReqMem": "",
    "ReqGRES": "",
    "AllocGRES": "",
}
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")

# What a cell can have that a plain one has not.
ODD = {
    "JobIDRaw": ["7.batch", "7.0", "8+1", "8+0", "9_[1-3]", "9_2", "x", "007", "7"],
    "State": ["PENDING", "RUNNING", "CANCELLED by 1000", "COMPLETED+", "new word", ""],
    "Submit": [
        "Unknown",
        "",
        "0",
        "2026-03-29T02:30:00",
        "2025-10-26T02:30:00",
        "2026-01-05T10:00:61",
        "yesterday",
        "²",
    ],
    "Eligible": ["Unknown", "2025-10-26T02:10:00", "1700000000"],
    "Start": ["None", "2025-10-26T02:40:00", "2026-01-05T11:00:00+01:00"],
    "End": ["Unknown", "2025-10-26T02:50:00", "1" * 30, "9" * 19],
    "ElapsedRaw": ["", "-5", "0", " 12", "1_0", "9" * 5000],
    "Elapsed": ["", "1-00:00:00", "long"],
    "TimelimitRaw": ["", "UNLIMITED", "Partition_Limit", "0", "9" * 17],
    "Timelimit": ["", "UNLIMITED", "2-00:00:00", "soon"],
    "ReqCPUS": ["2K", "", "-3", "four", str(1 << 41)],
    "AllocCPUS": ["", "0", "+4"],
    "AllocNodes": ["0", ""],
    "AllocTRES": ["", "cpu=4,node=2,mem=3G,gres/gpu=2"],
    "ReqMem": ["4Gn", "3000Mc", "2.5T", "0n", "much"],
    "ReqNodes": ["0.01K", "2"],
    "ReqGRES": ["gpu:2", "gpu:a:1(IDX:0-1),hbm:0", "hbm:0"],
    "AllocGRES": ["gpu:1"],
    "ReqTRES": ["", "cpu=9,node=3", "cpu=9,gres/gpu:a=2,gres/gpu:b=1,mem=1.50G", "gres/gpu=4,gres/gpu:a=4,mem=7K"],
    "Suspended": ["", "00:10:00", "never"],
    "UID": ["Zoë", "", "a b"],
    "Partition": ["gpu", "", "日本"],
    "SubmitLine": ["sbatch -t 60 x", "sbatch a|b", "sbatch a|b|c", "sbatch --exclusive -d afterok:3:9_1,afterany:7 x"],
    "Cluster": ["", "other"],
}


@st.composite
def cells(draw: st.DrawFn) -> dict[str, object]:
    row = job(draw(st.integers(1, 9)), draw(st.integers(0, 50)), UID=draw(st.sampled_from([1000, 1001, 12]))) | MORE
    for name in draw(st.lists(st.sampled_from(sorted(ODD)), max_size=2)):
        row[name] = draw(st.sampled_from(ODD[name]))
    if draw(st.booleans()):
        row |= {
            name: "2025-12-0{0}T0{0}:00:0{0}".format(draw(st.integers(1, 9))) for name in ("Submit", "Start", "End")
        }
    return row


@st.composite
def logs(draw: st.DrawFn) -> str:
    columns = [name for name in ALL if name not in draw(st.sets(st.sampled_from(["Eligible", "Elapsed", "Timelimit",
        "AllocTRES", "SubmitLine", "Cluster", "ReqNodes", "Suspended", "QOS", "ElapsedRaw"])))]  # fmt: skip
    lines = sacct_text(*draw(st.lists(cells(), max_size=25)), columns=columns).splitlines()
    if draw(st.booleans()):
        lines = [f"{line}|" for line in lines]
    for extra in draw(st.lists(st.sampled_from(["", lines[0], "cut|off", "a" * 40, "  "]), max_size=2)):
        lines.insert(draw(st.integers(1, len(lines))), extra)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join(lines) + draw(st.sampled_from(["", end]))


def gathered(items: object) -> tuple[object, ...]:
    """Give all that the rules see of a log, or the message that refuses it."""
    counter = StepCounter()
    builder = TableBuilder(counter)
    try:
        builder.add(items, "log")  # type: ignore[arg-type]
    except TraceFormatError as error:
        return (str(error),)
    table = builder.table()
    columns = [getattr(table, name).tolist() for name in NUMBERS + NAMES]
    # Remarks of one kind of action may be met in another order within a block.
    return columns, table.job, table.names, table.again(), table.het, sorted(counter.steps(), key=repr)


@settings(max_examples=40)
@given(logs(), st.integers(1, 12), st.sampled_from([0, 7, 1000]))
def test_blocks_give_what_lines_give(text: str, block: int, few: int) -> None:
    """Whatever is in a block, and from whichever line on the compiled kernels read."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(sacct, "_FEW_LINES", few)
        blocks = (lines[at : at + block] for at in range(0, len(lines), block))
        ours = gathered(sacct.read(blocks, "log", Clock(BERLIN)))
    assert ours == gathered(naive.read(lines, BERLIN))


@pytest.mark.parametrize("few", [0, 100])
def test_a_plain_log_is_read_as_a_block(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(sacct, "_FEW_LINES", few)
    jobs = [job(1), job(2, 5, UID=7), waiting(3, 9), job(4, 9, UID=7), job("4.batch", 9)]
    steps, block = sacct.read([sacct_text(*jobs).splitlines()], "log", Clock())
    assert isinstance(steps, Remark)
    assert isinstance(block, RecordBlock)
    assert block.job == ["1", "2", "3", "4"]
    assert block.numbers[0].tolist() == [2, 3, 4, 5]
    assert (steps.line, steps.job, steps.count) == (6, "4.batch", 1)


def chunks_of(text: str, length: int) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


class Chunks(Source):
    """A source whose text comes in these parts."""

    def __init__(self, parts: Iterable[str]) -> None:
        self.name, self._parts = "log", parts

    def chunks(self) -> Iterator[str]:
        yield from self._parts


@pytest.mark.parametrize("before", [0, 3])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(before: int) -> None:
    def endless():
        yield sacct_text(*(job(number) for number in range(1, before + 1)))
        for _ in range(100):
            yield "x" * (source._LONGEST_LINE // 8)
        pytest.fail("read on for ever")

    refused(TraceFormatError, f"log:{before + 2} 1,048,576", list, Chunks(endless()).blocks())


@pytest.mark.parametrize("before", [0, 1, 5000])
def test_a_last_line_without_end_is_not_taken_for_a_long_one(before: int) -> None:
    """What waits for a block to be full is whole lines, and counts for no line."""
    columns = [*COLUMNS, "SubmitLine"]
    text = sacct_text(*(job(n, n % 99, SubmitLine="x" * 150) for n in range(1, before + 2)), columns=columns)
    whole, last = text[:-1].rsplit("\n", 1)
    for cut in (0, 1, 100):
        parts = [*chunks_of(f"{whole}\n{last[:cut]}", 1000), last[cut:50], last[max(cut, 50) :]]
        items = sacct.read(Chunks(parts).blocks(), "log", Clock())
        assert sum(len(item.job) if isinstance(item, RecordBlock) else 1 for item in items) == before + 1


@settings(max_examples=60)
@given(
    lines=st.lists(st.integers(0, 60), min_size=1, max_size=12),
    longest=st.sampled_from([30, 45, 1 << 20]),
    block=st.sampled_from([1, 20, 100, 1 << 20]),
    length=st.integers(1, 80),
    end=st.sampled_from(["\n", "\r\n"]),
    torn=st.booleans(),
    members=st.booleans(),
)
def test_lines_are_cut_where_they_end_and_only_long_ones_are_refused(
    lines: list[int], longest: int, block: int, length: int, end: str, torn: bool, members: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    """Whatever the chunks are: small gzip members, torn last lines, both ends of lines, both limits."""
    text = "".join("x" * width + end for width in lines)
    text = text.removesuffix(end) if torn else text
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(source, "_BLOCK", block)
        changed.setattr(source, "_LONGEST_LINE", longest)
        parts = chunks_of(text, length)
        if members:
            path = tmp_path_factory.mktemp("members") / "log.gz"
            path.write_bytes(b"".join(gzip.compress(part.encode(), mtime=0) for part in parts) or gzip.compress(b""))
            parts = list(Source(path).chunks())
        try:
            blocks = list(Chunks(parts).blocks())
        except TraceFormatError as error:
            at = int(str(error).split(":")[1])
            # The CR of a line's end counts.
            assert lines[at - 1] + len(end) - 1 > longest
            return
    assert max(lines) <= longest
    whole = ["x" * width for width in lines]
    assert [line for one in blocks for line in one] == (whole[:-1] if torn and not lines[-1] else whole)
    assert all(sum(map(len, one)) + 2 * len(one) > block - length - max(lines) - 2 for one in blocks[:-1] if one)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-1000, 1000)), min_size=1, max_size=30))
def test_numbers_are_printed_as_python_prints_them(rows: list[tuple[int, int]]) -> None:
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    assert b"".join(printed(columns, (5, 3))) == "".join(f"{left:5d} {right:3d}\n" for left, right in rows).encode()


def test_a_long_log_is_written_as_a_short_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    log = generate_lublin(64, 500, seed=1)
    short = format_swf(log)
    monkeypatch.setattr(swf, "_MANY", 500)
    assert format_swf(log) == short
