"""Tables of one's own: mappings, what cells can be, filters, limits that nobody asked for."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from accounting_logs import counts
from job_tables import OWN, T0, moment, own, write_csv, write_lines, write_parquet
from policyfactory.core.errors import InputError, UsageError, WorkloadError
from policyfactory.workload.accounting.importing import Imported
from policyfactory.workload.accounting.options import ImportRules, Labels
from policyfactory.workload.clean import clean
from policyfactory.workload.describe import describe, find_quirks
from policyfactory.workload.swf.files import format_swf, parse_swf
from policyfactory.workload.tables.cells import (
    UNLIMITED,
    TextCells,
    read_counts,
    read_durations,
    read_memory,
    read_names,
)
from policyfactory.workload.tables.mapping import MappedColumn, read_mapping
from policyfactory.workload.tables.reader import import_tables
from refusals import refusal, refused
from support import extra_module

NAMES = "id,submitted,began,ended,limit,cores"
DAY = "2024-03-05"
ROWS = [
    f"1,{DAY} 12:00:00,{DAY} 12:01:00,{DAY} 12:11:00,3600,4",
    f"2,{DAY} 12:00:30,{DAY} 12:02:00,{DAY} 12:03:00,600,8",
]
UNLIMITED_OWN = OWN.replace('limit = { column = "limit", unit = "s" }\n', "")


def read(path: Path, text: str = OWN, **options: Any) -> Imported:
    mapping = own(text)
    rules = ImportRules(**{"unit": mapping.unit, **options.pop("rules", {})})
    return import_tables([path], mapping, rules=rules, **options)


@pytest.mark.parametrize("packed", [False, True])
def test_three_words_a_column_are_a_mapping(tmp_path: Path, packed: bool) -> None:
    path = write_lines(tmp_path / "jobs.csv", NAMES, ROWS)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    done = read(path, processors=16)
    assert done.log.header.unix_start == T0
    assert done.log.submit.tolist() == [0, 30]
    assert done.log.wait.tolist() == [60, 90]
    assert done.log.run_time.tolist() == [600, 60]
    assert done.log.requested_time.tolist() == [3600, 600]
    assert done.report.inputs[0][1] == "mine"
    assert done.report.inputs[0][2]


def test_the_same_table_in_parquet_gives_the_same_jobs(tmp_path: Path) -> None:
    pa = extra_module("pyarrow", "parquet")
    text = read(write_lines(tmp_path / "jobs.csv", NAMES, ROWS))
    cells = [row.split(",") for row in ROWS]
    kinds = {
        "words": {name: [row[place] for row in cells] for place, name in enumerate(NAMES.split(","))},
        "typed": {
            "id": pa.array([1, 2], pa.int32()),
            "submitted": pa.array([moment(0), moment(30)], pa.timestamp("ms", tz="UTC")),
            "began": pa.array([moment(60, None), moment(120, None)], pa.timestamp("s")),
            "ended": pa.array([moment(660), moment(180)], pa.timestamp("us", tz="Asia/Tokyo")),
            "limit": pa.array([3600.0, 600.0]),
            "cores": pa.array([4, 8], pa.uint16()),
        },
    }
    for name, columns in kinds.items():
        done = read(write_parquet(tmp_path / f"{name}.parquet", columns, row_group_size=1))
        for field in ("submit", "wait", "run_time", "requested_time", "allocated"):
            assert getattr(done.log, field).tolist() == getattr(text.log, field).tolist(), (name, field)


def test_local_times_are_of_the_mappings_zone_and_change_with_the_clocks(tmp_path: Path) -> None:
    zoned = OWN.replace('form = "csv"', 'form = "csv"\nzone = "Europe/Berlin"')
    day = "2024-03-31"
    # 02:30 never was; 03:30 is an hour and a half after 01:00.
    rows = [
        f"1,{day} 01:00:00,{day} 01:00:00,{day} 03:30:00,7200,1",
        f"2,{day} 02:30:00,{day} 04:00:00,{day} 04:10:00,60,1",
    ]
    done = read(write_lines(tmp_path / "jobs.csv", NAMES, rows), zoned)
    assert done.log.run_time.tolist() == [5400, 600]
    assert counts(done)["sacct.never"] == 1
    assert (done.report.time_zone, done.report.zone_needed) == ("Europe/Berlin", True)
    # In Parquet a time can be without a zone too; of the hour that comes twice the order and the run time tell which.
    pa = extra_module("pyarrow", "parquet")
    hands = pa.timestamp("us")
    columns = {
        "id": ["1", "2"],
        "submitted": ["2024-10-27T00:30:00+02:00"] * 2,
        "began": pa.array(["2024-10-27T02:40:00", "2024-10-27T01:30:00"]).cast(hands),
        "ended": pa.array(["2024-10-27T02:10:00", "2024-10-27T02:30:00"]).cast(hands),
        "limit": [7200, 7200],
        "cores": [1, 1],
    }
    done = read(write_parquet(tmp_path / "local.parquet", columns), zoned)
    assert done.log.run_time.tolist() == [1800, 3600]
    assert counts(done)["sacct.settled"] == 1
    assert counts(done)["sacct.guessed"] == 1
    # Offsets in the cells need no zone.
    rows = [f"1,{day}T00:00:00Z,{day} 01:30:00.25+01:00,{day} 04:30:00+02,7200,1"]
    done = read(write_lines(tmp_path / "jobs.csv", NAMES, rows), zoned)
    assert (done.log.wait.tolist(), done.log.run_time.tolist()) == ([1800], [7200])
    assert not done.report.zone_needed


def test_a_table_without_limits_needs_an_assumption_and_the_log_says_so(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "jobs.csv", [*NAMES.split(",")[:4], "cores"], [[*row.split(",")[:4], "4"] for row in ROWS]
    )
    refused(UsageError, "--assume-limit 24h", read, path, UNLIMITED_OWN)
    done = read(path, UNLIMITED_OWN, rules={"assumed": 86400})
    assert done.log.requested_time.tolist() == [86400, 86400]
    assert counts(done)["rules.assumed"] == 2
    assert "what it does on this log is an assumption too" in done.report.warnings()[0]
    # Everything that reads the log knows, and nothing recommends a policy for it.
    log = parse_swf(format_swf(done.log), "g.swf")
    workload = clean(log)
    step = next(step for step in workload.cleaning.steps if step.what.startswith("no requested time"))
    assert (step.action, step.jobs) == ("changed", 2)
    assert step.what.endswith("EASY backfilling on them is an assumption")
    assert any("were assumed when the log was imported" in quirk for quirk in find_quirks(log, describe(log)))
    unknown = read(path, UNLIMITED_OWN, without_limits=True)
    assert unknown.log.requested_time.tolist() == [-1, -1]


def test_filters_and_periods_are_counted(tmp_path: Path) -> None:
    text = (
        OWN
        + 'partition = "queue"\n[[filter]]\ncolumn = "queue"\nkeep = ["batch", "long"]\nwhy = "exclusive jobs only"\n'
    )
    rows = [
        f"{number},{row.partition(',')[2]},{queue}"
        for number, (row, queue) in enumerate(zip(ROWS * 2, ["batch", "shared", "long", "batch"], strict=True))
    ]
    path = write_lines(tmp_path / "jobs.csv", f"{NAMES},queue", rows)
    done = read(path, text, rules={"begin": T0 + 10})
    assert (done.report.records, done.report.jobs) == (4, 1)
    assert counts(done) == {
        "rows whose queue is not batch, long": 1,
        "tables.outside": 2,
        "rules.no_word": 1,
    }
    assert next(step.why for step in done.report.steps if "queue" in step.what) == "exclusive jobs only"
    # Both were asked for: no warning says that the rules drop too much.
    assert not any("the rules dropped" in text for text in done.report.warnings())
    dropped = text.replace('keep = ["batch", "long"]', 'drop = ["shared"]')
    assert counts(read(path, dropped))["rows whose queue is shared"] == 1


def test_ids_that_repeat_are_runs_of_a_job_or_jobs_of_their_own(tmp_path: Path) -> None:
    later = f"1,{DAY} 13:00:00,{DAY} 13:01:00,{DAY} 13:02:00,3600,4"
    path = write_lines(tmp_path / "jobs.csv", NAMES, [*ROWS, ROWS[0], later])
    done = read(path)
    assert done.job == ("1", "2")
    assert counts(done)["rules.twice"] == 1
    assert counts(done)["rules.last_run"] == 1
    done = read(path, OWN.replace('form = "csv"', 'form = "csv"\nrepeated = "jobs"'))
    assert done.job == ("1", "1:1", "2", "1:2")


def test_ends_before_starts_and_starts_before_submissions_are_dropped_by_reason(tmp_path: Path) -> None:
    rows = [
        *ROWS,
        f"3,{DAY} 12:00:00,{DAY} 12:10:00,{DAY} 12:05:00,60,1",
        f"4,{DAY} 12:00:00,{DAY} 11:00:00,{DAY} 12:05:00,60,1",
        f"5,,{DAY} 11:00:00,{DAY} 12:05:00,60,1",
        f"6,{DAY} 12:00:00,{DAY} 12:10:00,tomorrow,60,1",
        f"7,{DAY} 12:00:00,{DAY} 12:10:00,{DAY} 12:20:00,an hour,1",
        f"8,{DAY} 12:00:00,{DAY} 12:10:00,{DAY} 12:20:00,60,1.5",
        "9,short",
        f"10,{DAY} 12:00:00,{DAY} 12:10:00,{DAY} 12:20:00,60,1,more",
    ]
    done = read(write_lines(tmp_path / "jobs.csv", NAMES, rows))
    assert done.job == ("1", "2")
    assert counts(done) == {
        "rules.early_end": 1,
        "rules.early_start": 1,
        "rules.no_submit": 1,
        "tables.time": 1,
        "tables.duration": 1,
        "tables.count": 1,
        "tables.cut_off": 1,
        "tables.surplus": 1,
        "rules.no_word": 2,
    }
    assert done.report.records == done.report.jobs + done.report.count("dropped") == 10
    # Line 7 of the file is the row of job 6.
    assert next(step.place for step in done.report.steps if "end time" in step.what).endswith("jobs.csv:7")


def test_more_jobs_than_a_log_can_have_are_refused_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policyfactory.workload.accounting.rules._MOST_JOBS", 1)
    refused(WorkloadError, "jobs.csv 2 1", read, write_lines(tmp_path / "jobs.csv", NAMES, ROWS))


def test_what_a_duration_can_be() -> None:
    texts = [
        "60",
        "60.0",
        "",
        "nan",
        "12:00:00",
        "1-00:00:00",
        "1 days 00:00:01",
        "UNLIMITED",
        "4294967295",
        "7",
        "x",
        "-1",
    ]
    column = MappedColumn("limit", "min", none=("7",), unlimited=("4294967295",))
    assert read_durations(TextCells(texts), column).tolist() == [
        3600, 3600, -1, -1, 43200, 86400, 86401, UNLIMITED, UNLIMITED, -1, -2, -1,
    ]  # fmt: skip
    assert read_durations(TextCells(["86400000"]), MappedColumn("limit", "ms")).tolist() == [86400]


def test_what_counts_and_memory_can_be() -> None:
    import numpy as np

    assert read_counts(TextCells(["4", "4.0", "", "-1", "1.5", "x", "1e3"]), MappedColumn("n", times=4)).tolist() == [
        16, 16, -1, -1, -2, -2, 4000,
    ]  # fmt: skip
    where = MappedColumn("where", after=":", before="x")
    assert read_counts(TextCells(["a:b:2500x112", "none", ""]), where).tolist() == [2500, -1, -1]
    gpus = MappedColumn("tres", tres=("gres/gpu", "1002"))
    cells = ["cpu=4,gres/gpu=2", '"1=40,1002=1"', "cpu=4", "", "junk"]
    assert read_counts(TextCells(cells), gpus, absent=0).tolist() == [2, 1, 0, -1, -2]
    nodes, cores = np.array([2, 2, 2, -1, 2, 2]), np.array([8, 8, 8, 8, 8, 8])
    slurm = MappedColumn("mem", "slurm")
    texts = ["4Gn", "1Gc", "512M", "4Gn", "0", "2T"]
    assert read_memory(TextCells(texts), slurm, nodes, cores).tolist() == [8192, 8192, 512, -1, -1, 2 << 20]
    assert read_memory(TextCells(["1.5", "x"]), MappedColumn("mem", "GB"), nodes[:2], cores[:2]).tolist() == [1536, -2]
    tres = MappedColumn("tres", "MB", tres=("mem",))
    assert read_memory(TextCells(["cpu=1,mem=8G", "mem=100"]), tres, nodes[:2], cores[:2]).tolist() == [8192, 100]


def test_long_names_are_cut_and_counted() -> None:
    codes, names, cut = read_names(TextCells(["a" * 1000, "b", "b"]), MappedColumn("user"))
    assert (codes.tolist(), [len(name) for name in names], cut) == ([0, 1, 1], [256, 1], 1)


def test_an_anonymous_log_says_nothing_of_the_data_set(tmp_path: Path) -> None:
    text = OWN.replace("schema = 1", 'schema = 1\ntitle = "secret set"\n[machine]\ncomputer = "secret machine"', 1)
    path = write_lines(tmp_path / "jobs.csv", NAMES, ROWS)
    shown = format_swf(read(path, text).log).decode()
    assert "data set: secret set" in shown
    assert "secret" not in format_swf(read(path, text, labels=Labels(anonymous=True)).log).decode()


BAD = {
    "a table that is not known": ("[colums]\n", "bad.toml colums columns"),
    "a newer schema": ("schema = 2", "bad.toml schema 2 1"),
    "no schema": ("title = 'x'", "bad.toml schema 1"),
    "no TOML": ("schema = ", "bad.toml TOML"),
    "no form": ("schema = 1\n[columns]\nsubmit = 's'", "bad.toml form table"),
    "a field that is not known": (OWN + "memroy = 'm'", "bad.toml memroy columns"),
    "no submission": (OWN.replace("submit = ", "eligible = "), "bad.toml columns submit"),
    "no sizes": (
        OWN.replace('requested = "cores"\nallocated = "cores"', ""),
        "bad.toml requested allocated",
    ),
    "a unit that is none": (OWN.replace('unit = "s"', 'unit = "weeks"'), "bad.toml unit weeks"),
    "a deadline that is no limit": (OWN + 'run_time = { column = "r", unit = "deadline" }', "bad.toml unit deadline"),
    "a key of a column": (OWN + 'gpus = { column = "g", tims = 4 }', "bad.toml tims times"),
    "a key for another field": (OWN + 'user = { column = "u", times = 4 }', "bad.toml times nothing"),
    "a column without a name": (OWN + "user = { unit = '' }", "bad.toml column given"),
    "a column whose name is empty": (OWN + "user = ''", "bad.toml columns column"),
    "a filter without a column": (OWN + "[[filter]]\ncolumn = ''\nkeep = ['a']", "bad.toml needs column 1"),
    "a column that is a number": (OWN + "user = 7", "bad.toml user 7"),
    "a state that is none": (OWN + '[states]\n"3" = "done"', "bad.toml 3 done"),
    "a filter that does both": (OWN + '[[filter]]\ncolumn = "q"\nkeep = ["a"]\ndrop = ["b"]', "bad.toml column 1"),
    "a machine that is neither": (OWN + "[machine]\nshared = 1", "bad.toml shared 1"),
    "a machine of no nodes": (OWN + "[machine]\nnodes = 0", "bad.toml nodes 0 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_mapping_is_refused_with_table_key_and_cure(tmp_path: Path, name: str) -> None:
    text, message = BAD[name]
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with refusal(InputError, message) as error:
        read_mapping(path)
    assert str(error.value).startswith(str(path))
