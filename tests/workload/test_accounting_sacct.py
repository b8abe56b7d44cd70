"""Reading sacct -P: columns by header, delimiters in names, lines that are damaged."""

from __future__ import annotations

import itertools
import shlex
import time
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting_logs import COLUMNS, T0, job, read_lines, sacct_text, waiting
from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.record import LimitKind, Record, Remark, State
from policyfactory.workload.accounting.sacct import array_tasks, asked, read, read_limit, state_of, tres
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED, RECOMMENDED_LINES, Columns
from policyfactory.workload.accounting.times import Clock
from refusals import refusal, refused


def test_a_line_becomes_a_record() -> None:
    (record,), remarks = read_lines(sacct_text(job("11_3", 5, start=25, run=7, JobIDRaw=33, AllocCPUS=16)))
    assert remarks == []
    assert record == Record(
        2, "11_3", T0 + 5, T0 + 5, T0 + 25, T0 + 32, 7, 0, 3600, LimitKind.given, 4, 16, 1, 1, State.completed,
        "1000", "100", "physics", "batch", "normal", memory=1000, gpus=0, user_name="ada",
    )  # fmt: skip


def test_columns_are_known_by_the_header_in_any_order_and_selection() -> None:
    least = ["State", "Submit", "Start", "End", "Timelimit", "ReqCPUS", "JobID"]
    (record,), _ = read_lines(sacct_text(job(7, Timelimit="1-02:00:00"), columns=least))
    assert (record.job, record.limit, record.requested, record.allocated, record.elapsed) == ("7", 93600, 4, None, None)
    by_tres = ["JobIDRaw", "state", "SUBMIT", "Start", "Elapsed", "TimelimitRaw", "AllocTRES", "ReqTRES"]
    cells = {name.casefold(): cell for name, cell in job(7, Elapsed="00:01:40").items()}
    text = "|".join(by_tres) + "\n"
    text += "|".join(str(cells.get(name.casefold(), "cpu=8,node=2")) for name in by_tres) + "\n"
    (record,), _ = read_lines(text)
    assert (record.requested, record.allocated, record.allocated_nodes, record.elapsed) == (4, 8, 2, 100)


def test_the_other_delimiter_and_lines_that_end_with_one_are_read() -> None:
    text = sacct_text(job(1), job(2), delimiter="\x1f")
    assert [record.job for record in read_lines(text)[0]] == ["1", "2"]
    closed = "".join(f"{line}|\n" for line in sacct_text(job(1), job(2)).splitlines())
    assert read_lines(closed) == read_lines(sacct_text(job(1), job(2)))


def test_a_missing_column_is_named_with_the_command_that_prints_it() -> None:
    columns = [name for name in COLUMNS if name not in {"TimelimitRaw", "Submit"}]
    with refusal(TraceFormatError, "log:1 TimelimitRaw Timelimit") as error:
        read_lines(sacct_text(job(1), columns=columns))
    assert RECOMMENDED in str(error.value)
    refused(TraceFormatError, "log:1 State", read_lines, "JobID|State|state\n")


def test_the_lines_for_a_terminal_are_the_recommended_command() -> None:
    assert all(len(line) < 80 for line in RECOMMENDED_LINES)
    words = shlex.split("\n".join(RECOMMENDED_LINES).replace("\\\n", ""))
    assert words[-2:] == [">", "sacct.txt"]
    fields = [word for before, word in itertools.pairwise(words) if before == "-o"]
    others = words[: words.index("-o")]
    assert [*others, "-o", ",".join(fields)] == shlex.split(RECOMMENDED)
    assert len(words) == len(others) + 2 * len(fields) + 2


def test_dumps_one_after_the_other_in_one_file_are_read_by_their_own_headers() -> None:
    second = ["JobID", *[name for name in reversed(COLUMNS) if name != "JobID"]]
    text = sacct_text(job(1), columns=["JobID", *[name for name in COLUMNS if name != "JobID"]])
    records, remarks = read_lines(text + sacct_text(job(2, 9), columns=second))
    assert [(record.job, record.submit) for record in records] == [("1", T0), ("2", T0 + 9)]
    assert remarks == []


def test_steps_are_skipped_and_counted() -> None:
    steps = [job(f"1.{name}", UID="", TimelimitRaw="") for name in ("batch", "extern", "0")]
    records, remarks = read_lines(sacct_text(job(1), *steps))
    assert [record.job for record in records] == ["1"]
    assert [(item.action, item.job, item.count) for item in remarks] == [("skipped", "1.batch", 3)]


NAMED = ["JobID", "JobName", *COLUMNS[2:]]


def test_a_delimiter_in_a_job_name_is_found_by_counting() -> None:
    text = sacct_text(job(1, JobName="a|b|c d"), job(2, JobName="plain"), columns=NAMED)
    records, remarks = read_lines(text)
    assert [(record.job, record.user, record.submit) for record in records] == [("1", "1000", T0), ("2", "1000", T0)]
    assert [(item.action, item.job, item.line) for item in remarks] == [("changed", "1", 2)]


def test_a_line_with_a_delimiter_in_its_name_is_looked_at_as_any_other() -> None:
    columns = [*NAMED, "Cluster"]
    with refusal(TraceFormatError, "log:3 two one"):
        read_lines(sacct_text(job(1, JobName="", Cluster="one"), job(2, JobName="a|b", Cluster="two"), columns=columns))
    night = {"Submit": "2026-10-25T02:50:00", "Start": "2026-10-25T02:50:00", "End": "2026-10-25T03:10:00"}
    text = sacct_text(job(1, JobName="a|b", **night, ElapsedRaw=1200), columns=NAMED)
    (record,), remarks = read_lines(text, zoneinfo.ZoneInfo("Europe/Berlin"))
    assert record.start == record.end - 1200
    assert [(item.action, item.line, item.count) for item in remarks] == [
        ("changed", 2, 1),
        ("changed", 2, 1),
        ("kept", 2, 1),
    ]
    assert "summer time" in remarks[1].what


def test_with_several_free_texts_the_one_reading_that_makes_sense_is_taken() -> None:
    columns = ["JobID", "JobName", *COLUMNS[2:], "SubmitLine", "Constraints"]
    cells = job(1, JobName="a|b", SubmitLine="sbatch -J a|b -t 60 x.sh", Constraints="intel|amd")
    records, remarks = read_lines(sacct_text(cells, columns=columns))
    assert (records[0].user, records[0].allocated, records[0].end) == ("1000", 4, T0 + 100)
    # The submit line may have lost a part: whether the limit was asked for is left open.
    assert records[0].limit_kind is LimitKind.given
    assert remarks[0].action == "changed"


def test_a_name_that_copies_the_columns_behind_it_is_dropped_never_shifted() -> None:
    copied = "|".join(str(job(1, 50, UID=0)[name]) for name in COLUMNS[2:])
    columns = ["JobID", "JobName", *COLUMNS[2:], "Comment"]
    evil = job(1, JobName=f"x|{copied}", Comment="")
    records, remarks = read_lines(sacct_text(evil, columns=columns))
    assert records == []
    assert (remarks[0].action, remarks[0].why.partition(";")[0]) == ("dropped", "it can be read in several ways")
    # With the name as the only free text, counting alone decides.
    (record,), _ = read_lines(sacct_text(job(1, JobName=f"x|{copied}"), columns=NAMED))
    assert (record.user, record.submit) == ("1000", T0)


def test_surplus_fields_without_a_free_text_are_dropped_and_counted() -> None:
    records, remarks = read_lines(sacct_text(job(1, Account="a|b"), job(2)))
    assert [record.job for record in records] == ["2"]
    assert [(item.action, item.job) for item in remarks] == [("dropped", "1")]
    assert "do not ask sacct for free texts" in remarks[0].why


def test_a_line_with_very_many_delimiters_is_dropped_at_once() -> None:
    columns = ["JobID", "JobName", "Comment", "Constraints", "WorkDir", *COLUMNS[2:], "SubmitLine"]
    cells = job(1, JobName="|" * 5000, Comment="", Constraints="", WorkDir="", SubmitLine="")
    records, remarks = read_lines(sacct_text(cells, columns=columns))
    assert (records, len(remarks)) == ([], 1)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("Submit", "yesterday"), ("Start", "2026-01-01"), ("AllocCPUS", "many"), ("AllocCPUS", "1.50K"),
        ("ElapsedRaw", "1:00"), ("TimelimitRaw", "soon"), ("Suspended", "a while"), ("ReqCPUS", "\u00b2"),
        ("End", "9" * 5000), ("Eligible", "soon"),
    ],
)  # fmt: skip
def test_a_cell_that_cannot_be_read_is_counted_and_costs_the_line_only_if_times_are_lost(
    column: str, value: str
) -> None:
    dropped = column in {"Submit", "Start"}
    columns = [name for name in COLUMNS if name != "ReqTRES"]
    records, remarks = read_lines(sacct_text(job(1, **{column: value}), job(2), columns=columns))
    assert [record.job for record in records] == (["2"] if dropped else ["1", "2"])
    assert [(item.action, item.job, item.line, item.column, item.value) for item in remarks] == [
        ("dropped" if dropped else "changed", "1", 2, column, value)
    ]
    # Without a run time the end is needed.
    records, _ = read_lines(sacct_text(job(1, End="soon", ElapsedRaw="long"), job(2)))
    assert [record.job for record in records] == ["2"]


def test_a_line_that_was_cut_off_is_counted() -> None:
    text = sacct_text(job(1), job(2))
    records, remarks = read_lines(text[:-60])
    assert ([record.job for record in records], [item.line for item in remarks]) == (["1"], [3])


def test_thousands_are_read_where_sacct_rounded_nothing() -> None:
    (record,), _ = read_lines(sacct_text(job(1, NNodes="2K", AllocNodes="2K", AllocCPUS=262144)))
    assert record.allocated_nodes == 2048


def test_two_clusters_are_refused() -> None:
    columns = [*COLUMNS, "Cluster"]
    assert len(read_lines(sacct_text(job(1, Cluster="a"), job(2, Cluster="a"), columns=columns))[0]) == 2
    with refusal(TraceFormatError, "log:3 b a"):
        read_lines(sacct_text(job(1, Cluster="a"), job(2, Cluster="b"), columns=columns))


def test_a_cancelled_job_that_never_had_a_node_has_no_processors() -> None:
    cancelled = {"State": "CANCELLED by 1000", "ElapsedRaw": 0}
    (record,), _ = read_lines(sacct_text(job(1, AllocNodes=0, run=0, **cancelled)))
    assert (record.allocated, record.state) == (0, State.cancelled)
    columns = [*[name for name in COLUMNS if name != "AllocNodes"], "AllocTRES"]
    (record,), _ = read_lines(sacct_text(job(1, AllocTRES="", run=0, **cancelled), columns=columns))
    assert record.allocated == 0
    (record,), _ = read_lines(sacct_text(job(1, AllocTRES=""), columns=columns))
    assert record.allocated == 4


def test_what_is_not_over_has_no_end_and_the_rest_of_an_array_counts_its_tasks() -> None:
    running = job(1, State="COMPLETING", ElapsedRaw=50)
    records, _ = read_lines(sacct_text(running, waiting("57_[0-20%3]", JobIDRaw=57)))
    assert (records[0].start, records[0].end, records[0].elapsed) == (T0, None, 50)
    assert (records[1].start, records[1].tasks, records[1].state) == (None, 21, State.pending)


def test_parts_of_a_het_job_name_their_job() -> None:
    records, _ = read_lines(sacct_text(job("17+0", JobIDRaw=17), job("17+1", JobIDRaw=18), job(19)))
    assert [record.group_id for record in records] == ["17", "17", None]


@pytest.mark.parametrize(
    ("job_id", "tasks"),
    [("57_[0-20%3]", 21), ("57_[1,3,5-7]", 5), ("57_[0-9:3]", 4), ("57_3", 1), ("57", 1), ("57_[]", 1), ("57_[7]", 1),
     ("57_[9-1]", 1), ("57_[0-99999999999]", 10_000_000), ("57_[1-", 1)],
)  # fmt: skip
def test_the_tasks_of_an_array_are_counted(job_id: str, tasks: int) -> None:
    assert array_tasks(job_id) == tasks


@pytest.mark.parametrize(
    ("raw", "text", "limit"),
    [("60", "", (3600, LimitKind.given)), ("", "01:00:00", (3600, LimitKind.given)),
     ("UNLIMITED", "", (None, LimitKind.unlimited)),
     ("", "UNLIMITED", (None, LimitKind.unlimited)), ("Partition_Limit", "", (None, LimitKind.partition)),
     ("", "", (None, LimitKind.missing)), ("0", "", (None, LimitKind.unlimited))],
)  # fmt: skip
def test_a_limit_is_a_number_or_says_why_not(raw: str, text: str, limit: tuple[int | None, LimitKind]) -> None:
    assert read_limit(raw, text) == limit


def test_a_limit_that_the_submit_line_shows_was_asked_for() -> None:
    assert asked("sbatch -t 90 x.sh") == {5400}
    assert asked("sbatch -t90 --time=1-0 --time 00:00:30 x") == {5400, 86400, 60}
    assert asked("sbatch --time-min=5 -t") == set()
    columns = [*COLUMNS, "SubmitLine"]
    lines = ["sbatch -t 60 x.sh", "sbatch x.sh", "sbatch x.sh -t 5"]
    records, _ = read_lines(sacct_text(*[job(n, SubmitLine=line) for n, line in enumerate(lines, 1)], columns=columns))
    assert [record.limit_kind for record in records] == [LimitKind.asked, LimitKind.given, LimitKind.given]


def test_states_and_resources_are_known_by_their_first_word_and_name() -> None:
    assert state_of("CANCELLED by 1000") is State.cancelled
    assert state_of("OUT_OF_MEMORY") is State.failed
    assert state_of("SUSPENDED") is State.running
    assert state_of("NEW_WORD") is State.unknown
    assert tres("billing=64,cpu=48,mem=1000M,node=4", "node") == 4
    assert tres("gres/gpu=2,ncpu=3", "cpu") is None


CELL = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\x1f\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"), max_size=12
)


@settings(max_examples=150)
@given(st.lists(st.tuples(CELL, st.integers(0, 10**6), st.integers(0, 10**5), st.integers(1, 10**4)), max_size=8))
def test_whatever_is_in_the_names_a_line_is_read_as_written_or_dropped_and_counted(
    rows: list[tuple[str, int, int, int]],
) -> None:
    columns = ["JobID", "JobName", *COLUMNS[2:], "Comment"]
    cells = [
        job(n, submit, start=submit + wait, AllocCPUS=size, JobName=name, Comment=name[::-1])
        for n, (name, submit, wait, size) in enumerate(rows, 1)
    ]
    records, remarks = read_lines(sacct_text(*cells, columns=columns))
    dropped = {item.job for item in remarks if item.action == "dropped"}
    assert {record.job for record in records} | dropped == {str(n) for n in range(1, len(rows) + 1)}
    for record in records:
        _, submit, wait, size = rows[int(record.job) - 1]
        assert (record.submit, record.start, record.allocated) == (T0 + submit, T0 + submit + wait, size)


@settings(max_examples=150)
@given(st.lists(st.text(max_size=40), max_size=10), st.integers(0, 400))
def test_hostile_lines_are_counted_one_by_one(lines: list[str], cut: int) -> None:
    good = sacct_text(job(1), job(2))
    noise = [line.replace("\n", " ").replace("\r", " ") for line in lines]
    text = good[: len(good) - cut].split("\n")
    if len(text[0]) < len("|".join(COLUMNS)):
        return
    items = read([[*text, *noise]], "log", Clock())
    counted = sum(item.count if isinstance(item, Remark) else len(item.job) for item in items)
    lines_of_jobs = [line for line in [*text[1:], *noise] if line.strip() and line.partition("|")[0] != "JobIDRaw"]
    assert counted >= len(lines_of_jobs)


def test_a_header_of_many_columns_takes_no_longer_for_each_of_them() -> None:
    # The square of their number was 30 s for 50,000.
    times = []
    for number in (1_000, 100_000):
        begin = time.process_time()
        refused(TraceFormatError, "log:1 JobID JobIDRaw", Columns, "|".join(f"c{n}" for n in range(number)), "log:1")
        times.append(time.process_time() - begin)
    assert times[1] < 1000 * times[0] + 1


@pytest.mark.slow
def test_a_text_of_lines_that_are_no_jobs_ends_early() -> None:
    # Eight microseconds a line: 4 MB of them took 16 s.
    head = "JobID|Submit|Start|End|ReqCPUS|AllocCPUS|State|Timelimit"
    refused(TraceFormatError, "log.txt 100,001 100,002", list, read([[head, *["|"] * 100_001]], "log.txt", Clock()))
