"""Accounting files of Grid Engine: its fields, both units of time, what jobs asked for, and lines that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounting_logs import UTC, column, counts
from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.gridengine import read
from policyfactory.workload.accounting.importing import Imported, import_logs
from policyfactory.workload.accounting.record import LimitKind, Record, State
from policyfactory.workload.accounting.times import Clock
from refusals import refused
from support import shared_path

T = 1_700_000_000


def line(
    job: int = 7, category: str = "-u ada -l h_rt=3600", *, times: int = 1, more: str = "", **changes: object
) -> str:
    """Give a record; ``times``: 1000 for milliseconds."""
    fields = {
        "qname": "all.q", "hostname": "n1", "group": "users", "owner": "ada", "job_name": "relax", "job_number": job,
        "account": "sge", "priority": 0, "submission_time": T * times, "start_time": (T + 60) * times,
        "end_time": (T + 660) * times, "failed": 0, "exit_status": 0, "ru_wallclock": 600,
        **{f"ru_{at}": 0 for at in range(17)}, "project": "NONE", "department": "defaultdepartment",
        "granted_pe": "NONE", "slots": 1, "task_number": 0, "cpu": "60.1", "mem": "7.3", "io": "0.0",
        "category": category, "iow": "0.000000", "pe_taskid": "NONE", "maxvmem": "1.0", "arid": 0, "ar": 0,
    } | changes  # fmt: skip
    return ":".join(map(str, fields.values())) + more


def record(*arguments: object, **changes: object) -> Record:
    (one,) = read([line(*arguments, **changes)], "accounting", Clock())  # type: ignore[arg-type]
    assert isinstance(one, Record)
    return one


def done(folder: Path, *lines: str) -> Imported:
    path = folder / "accounting"
    path.write_text("# Version: 8.1.9\n#\n" + "\n".join(lines) + "\n")
    return import_logs([path], zone=UTC)


def test_a_line_becomes_a_record() -> None:
    parallel = record(
        7, "-l h_rt=10:00:00,h_vmem=2G,gpu=1,exclusive=true -pe mpi 16", granted_pe="mpi", slots=16, project="physics"
    )
    assert parallel == Record(
        1, "7", T, None, T + 60, T + 660, 600, None, 36_000, LimitKind.asked, 16, 16, None, None, State.completed,
        "ada",
        "users", "physics", "all.q", "", "relax", memory=32_768, gpus=1, exclusive=1,
    )  # fmt: skip
    single = record(task_number=3, department="bio")
    assert (single.job, single.requested_nodes, single.account, single.limit) == ("7_3", 1, "bio", 3600)


def test_milliseconds_and_more_fields_of_later_versions_are_read() -> None:
    plain = record()
    assert record(times=1000, ru_wallclock="600.318", more=":0:NONE:668106752:qsub -l h_rt=5 x.sh") == plain


def test_what_is_lacking_is_said_in_words_of_grid_engine(tmp_path: Path) -> None:
    lacking = done(tmp_path, line(granted_pe="mpi", slots=4)).report.lacking
    for what in ("nodes", "memory", "GPUs", "eligible", "accounts"):
        (words,) = [text for text in lacking if what in text.partition("(")[0]]
        assert "Grid Engine: " in words


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"exit_status": 1}, State.failed),
        ({"failed": 100, "exit_status": 137}, State.cancelled),
        ({"failed": 100, "exit_status": 137, "end_time": T + 3660, "ru_wallclock": 3600}, State.timeout),
        ({"failed": 25}, State.requeued),
        ({"failed": 26}, State.failed),
    ],
)
def test_how_a_run_ended(changes: dict[str, object], state: State) -> None:
    assert record(**changes).state is state


def test_limits_and_names_of_every_form() -> None:
    assert record(7, "-l s_rt=90 -q x").limit == 90
    assert record(7, "-l h_rt=INFINITY").limit_kind is LimitKind.unlimited
    assert record(7, "NONE").limit_kind is LimitKind.missing
    named = record(job_name="a:b::c")
    assert (named.name, named.submit, named.user) == ("a:b::c", T, "ada")


def test_runs_tasks_and_lines_that_are_none_are_counted(tmp_path: Path) -> None:
    imported = done(
        tmp_path,
        line(1),
        line(2, failed=25),
        line(2, start_time=T + 900, end_time=T + 1000, ru_wallclock=100),
        line(3, granted_pe="mpi", slots=4),
        line(3, granted_pe="mpi", slots=4, pe_taskid="1.n2"),
        line(4, start_time=0, end_time=0, failed=1),
        "cut:off",
    )
    assert imported.report.inputs[0][1] == "gridengine"
    assert column(imported, "wait", "run_time", "allocated") == [(60, 600, 1), (900, 100, 1), (60, 600, 4)]
    assert counts(imported) == {
        "gridengine.task": 1,
        "gridengine.damaged": 1,
        "rules.last_run": 1,
        "rules.never_started": 1,
        "rules.asked": 3,
    }


def test_a_public_record_is_read() -> None:
    imported = import_logs([shared_path("cases/gridengine_accounting.txt")], zone=UTC)
    assert column(imported, "wait", "run_time", "allocated") == [(333_733, 60, 1)]


def test_a_file_without_any_record_is_refused_with_the_cure() -> None:
    refused(
        TraceFormatError,
        "accounting:2 a:b $SGE_ROOT/$SGE_CELL/common",
        list,
        read(["# x", "a:b"], "accounting", Clock()),
    )
