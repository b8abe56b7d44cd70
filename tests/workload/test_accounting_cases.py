"""Accounting as public reports show it: other columns, units and versions than those of the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounting_logs import COLUMNS, UTC, column, counts, imported, job, read_lines, sacct_text
from policyfactory.core.errors import InputError, TraceFormatError, WorkloadError
from policyfactory.workload.accounting.importing import Imported, import_logs
from policyfactory.workload.tables.mapping import read_mapping
from policyfactory.workload.tables.reader import import_tables
from refusals import refusal, refused
from snapshots import snapshot
from support import shared_path


def case(name: str) -> Imported:
    return import_logs([shared_path(f"cases/{name}")], zone=UTC)


def test_a_resource_that_reqtres_does_not_have_is_that_of_alloctres() -> None:
    done = case("old_reqtres_hides_alloctres.txt")
    assert done.log.extra["memory_mb"].tolist() == [31000, 1000]
    assert done.log.extra["gpus"].tolist() == [2, 0]
    assert not [text for text in done.report.lacking if "GPUs" in text]


def test_gpus_of_a_whole_node_are_not_asked_for_where_others_ask(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    jobs = [
        job(1, ReqTRES="cpu=4,gres/gpu=1,node=1", AllocTRES="cpu=4,gres/gpu=1,node=1"),
        job(2, 1, ReqTRES="cpu=4,node=1", AllocTRES="cpu=64,gres/gpu=8,mem=9G,node=1"),
        job(3, 2, ReqTRES="", AllocTRES="cpu=4,gres/gpu=2,node=1"),
    ]
    path.write_text(sacct_text(*jobs, columns=[*COLUMNS, "AllocTRES"]))
    extra = import_logs([path], zone=UTC).log.extra
    assert extra["gpus"].tolist() == [1, 0, 2]
    assert extra["memory_mb"].tolist() == [-1, 9216, -1]


@pytest.mark.parametrize("copies", [1, 3])
def test_what_is_taken_of_an_allocation_is_said_once_and_counted(tmp_path: Path, copies: int) -> None:
    asked, had = "cpu=4,mem=1G,gres/gpu=1,node=1", "cpu=4,mem=9G,gres/gpu=8,node=1"
    for requests, expected in (
        (("", ""), {"memory": 2, "GPUs": 2}),
        ((asked, ""), {"memory": 1, "GPUs": 1}),
        ((asked, "cpu=4,node=1"), {"memory": 1}),  # where some ask for GPUs, it asked for none
        ((asked, asked), {}),
    ):
        jobs = [
            job(number, number, ReqTRES=request, AllocTRES=had) for number, request in enumerate(copies * requests, 1)
        ]
        path = tmp_path / "log.txt"
        path.write_text(sacct_text(*jobs, columns=[*COLUMNS, "AllocTRES"]))
        steps = [step for step in import_logs([path], zone=UTC).report.steps if "as allocated" in str(step)]
        counts = {what: step.count for step in steps for what in ("memory", "GPUs") if what in step.what}
        assert counts == {what: copies * count for what, count in expected.items()}
        assert len(steps) == len(expected)


def test_memory_and_gpus_of_each_node_or_core_are_read_last(tmp_path: Path) -> None:
    assert case("reqmem_column.txt").log.extra["memory_mb"].tolist() == [8192, 24000, 2621440]
    old = {"ReqTRES": "cpu=8,node=2", "NNodes": 2, "AllocNodes": 2, "ReqCPUS": 8}
    jobs = [
        job(1, ReqMem="1500K", ReqGRES="gpu:a100:2(IDX:0-1),hbm:0", AllocGRES="gpu:2", **old),
        job(2, 1, ReqMem="0n", ReqGRES="gres:gpu:1", AllocGRES="", **old),
        job(3, 2, ReqMem="9Gn", ReqGRES="hbm:1", AllocGRES="", **(old | {"ReqTRES": "cpu=8,mem=7M,node=2"})),
        job(4, 3, ReqMem="much", ReqGRES="gpu", AllocGRES="", **old),
    ]
    path = tmp_path / "log.txt"
    path.write_text(sacct_text(*jobs, columns=[*COLUMNS, "ReqMem", "ReqGRES", "AllocGRES"]))
    done = import_logs([path], zone=UTC)
    assert done.log.extra["memory_mb"].tolist() == [2, -1, 7, -1]
    assert done.log.extra["gpus"].tolist() == [4, 2, 0, 2]
    (step,) = [step for step in done.report.steps if "ReqMem" in step.what]
    assert step.first.endswith("ReqMem is 'much'")


def test_an_optional_cell_that_cannot_be_read_costs_no_line_and_is_named() -> None:
    done = case("reqnodes_units.txt")
    assert len(done.log) == 2
    (step,) = done.report.steps
    assert (step.action, step.count) == ("changed", 2)
    snapshot(step.what, step.first)
    assert done.report.as_dict()["steps"][0]["value"] == "ReqNodes is '0.00K'"


def test_a_cell_that_cannot_be_read_falls_back_to_the_next_column(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1, ReqNodes="0.00K", AllocNodes="2", ReqTRES="cpu=4,mem=1M,node=2"))
    assert done.log.extra["nodes"].tolist() == [2]
    assert done.report.count("changed") == 0


def test_a_log_of_which_nothing_is_left_names_column_and_value(tmp_path: Path) -> None:
    with refusal(WorkloadError, "log.txt 2 1 log.txt:2 Start"):
        imported(tmp_path, job(1, Start="soon", End="later"), job(2, Submit="never"))


def test_a_line_that_a_name_with_a_line_break_cut_is_joined() -> None:
    done = case("multiline_name.txt")
    assert column(done, "submit", "allocated", "run_time") == [(0, 8, 3600)] * 2
    assert [(step.action, step.count) for step in done.report.steps] == [("changed", 1)]
    names = ["JobID", "JobName", *COLUMNS[2:]]
    lines = sacct_text(job(1, JobName="a|b"), job(2, JobName="x"), columns=names).splitlines()
    broken = [lines[0], lines[1].replace("a|b", "a"), "", *lines[2].replace("x", "y\n\nz", 1).split("\n")]
    # The end of the second line is not that of a free text: it stays cut off.
    broken.append(lines[2].rpartition("|")[0])
    records, remarks = read_lines("\n".join(broken))
    assert [record.job for record in records] == ["1", "2"]
    assert [remark.kind for remark in remarks] == ["sacct.joined", "sacct.cut_off"]


@pytest.mark.parametrize("delimiter", [";", "\t", "^", "::", "@|@"])
def test_other_delimiters_are_recognised(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "log.txt"
    lines = sacct_text(job(1, ReqTRES="cpu=4"), job(2, 5, ReqTRES="cpu=4"), delimiter=delimiter)
    path.write_text(lines.replace("00:00:00", "0") if ":" in delimiter else lines)
    done = import_logs([path], zone=UTC)
    assert done.report.inputs[0][1] == "sacct"
    assert column(done, "submit", "allocated") == [(0, 4), (5, 4)]


def test_parts_of_a_job_that_changed_its_size_are_one(tmp_path: Path) -> None:
    parts = [
        job(7, 0, start=10, run=20, State="RESIZING", AllocCPUS=8, ReqCPUS=8),
        # Slurm gives the next part the time of the change as its submission.
        job(7, 30, start=30, run=50, State="RESIZING", AllocCPUS=4),
        job(7, 80, start=80, run=5, State="COMPLETED", AllocCPUS=2),
    ]
    done = imported(tmp_path, job(1), *parts)
    fields = ("submit", "wait", "run_time", "allocated", "requested", "status")
    assert column(done, *fields)[1] == (0, 10, 75, 4, 8, 1)
    assert counts(done)["rules.resized"] == 2
    assert done.report.records == done.report.jobs + done.report.count("merged") == 4
    # Of a job whose last part is not in the log nobody knows how long it ran.
    assert len(imported(tmp_path, job(1), parts[0]).log) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "JobId=5 JobName=a\n   UserId=ann(7) GroupId=x(7)\n",
            "log.txt:1 scontrol accounting",
        ),
        ("JobId=5 ArrayJobId=5 ArrayTaskId=1 JobName=a UserId=ann(7)\n", "log.txt:1 scontrol prints"),
        ("  JOBID PARTITION     NAME     USER ST       TIME\n", "log.txt:1 queue squeue"),
        ("JobID    JobName  Partition    State\n------- --------\n", "log.txt:1 sacct without"),
        ('"JOB_FINISH" "10.1" 1527327585 7610 1000 33554438 1 1527326745\n', "log.txt:1 LSF --mapping FILE.toml"),
        (
            "==============================================================\nqname  all.q\n",
            "log.txt:1 qacct prints",
        ),
    ],
)
def test_what_is_no_accounting_is_told_apart_with_the_cure(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    refused(TraceFormatError, message, import_logs, [path], zone=UTC)


def test_the_json_of_the_queue_is_told_apart() -> None:
    refused(TraceFormatError, "squeue_json.json --json output 1", case, "squeue_json.json")


def test_the_sum_of_slots_that_torque_writes_decides() -> None:
    done = case("torque6_exec_host_count.txt")
    assert column(done, "allocated", "requested") == [(32, 32), (4, 4), (4, 4)]
    assert done.report.machine == 40


def test_what_becomes_of_jobs_without_a_requested_time_is_said_as_it_is(tmp_path: Path) -> None:
    jobs = [job(number, number) for number in range(2, 301)]
    few = "".join(imported(tmp_path, job(1, TimelimitRaw="INVALID"), *jobs).report.warnings())
    snapshot(few, part="1")
    (many,) = imported(tmp_path, job(1, TimelimitRaw="INVALID"), *jobs[:3]).report.warnings()
    snapshot(many, part="2")


def test_percents_of_a_table_are_divided(tmp_path: Path) -> None:
    mapping = shared_path("cases/ali.toml").read_text()
    own = tmp_path / "ali.toml"
    own.write_text(
        mapping.replace("times = 0.01", "by = 100").replace(
            'requested = "inst_num"', 'requested = { column = "plan_cpu", by = 100 }'
        )
    )
    done = import_tables([shared_path("cases/ali.csv")], read_mapping(own), without_limits=True)
    # 600 % of a core and 25 % of a GPU, which is one that is not whole.
    assert column(done, "requested") == [(6,)]
    assert done.log.extra["gpus"].tolist() == [1]
    own.write_text(mapping)
    refused(InputError, "ali.toml times 0.01 100", read_mapping, own)
