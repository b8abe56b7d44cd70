"""What imported jobs asked for besides processors: read in every format, kept in the new log, said where it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounting_logs import COLUMNS, T0, UTC, imported, job, sacct_text, waiting
from commands import Run, runner
from policyfactory.site.fits import site_of
from policyfactory.workload.accounting import pbs as pbs_fields
from policyfactory.workload.accounting.importing import Imported, import_logs
from policyfactory.workload.accounting.options import Labels
from policyfactory.workload.accounting.sacct import array_limit, asks_for_nodes, depends_on, tres_gpus, tres_memory
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Requests
from policyfactory.workload.swf.files import write_swf
from policyfactory.workload.swf.log import log_of_workload


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command of the package; see `commands`."""
    return runner(tmp_path, monkeypatch, capfd)


@pytest.mark.parametrize(
    ("text", "memory", "gpus"),
    [
        ("billing=4,cpu=4,mem=1000M,node=1", 1000, 0),
        ("cpu=4,mem=1.50T,gres/gpu=4,gres/gpu:a100=4", 1_572_864, 4),
        ("mem=16G,gres/gpu:a100=2,gres/gpu:v100=1,gres/shard=9", 16_384, 3),
        ("mem=1K", 1, 0),
        ("mem=7", 7, 0),
        ("cpu=4,vmem=3M", None, 0),
        ("mem=xM", None, 0),
        ("", None, None),
    ],
)
def test_trackable_resources(text: str, memory: int | None, gpus: int | None) -> None:
    assert (tres_memory(text), tres_gpus(text)) == (memory, gpus)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("sbatch -d afterok:17:18_2,afterany:20 job.sh", "17:18_2:20"),
        ("sbatch --dependency=afterany:5?afternotok:6 --exclusive x", "5:6"),
        ("sbatch --dependency afterok:5:5", "5"),
        ("sbatch -dafterok:5", "5"),
        ("sbatch --dependency=after:5+10,singleton", "singleton"),
        ("sbatch -d singleton x --note=afterok:5", "singleton"),
        ("sbatch --dependency=singleton2", ""),
        ("sbatch -d aftercorr:17:18_2", "17_*:18_2"),
        ("", ""),
    ],
)
def test_dependencies_of_a_submit_line(line: str, after: str) -> None:
    assert depends_on(line) == after
    assert asks_for_nodes(line) == (1 if "--exclusive" in line else None)


@pytest.mark.parametrize(
    ("fields", "memory", "gpus"),
    [
        ({"mem": "4gb", "ngpus": "2", "select": "1:ncpus=4:ngpus=9"}, 4096, 2),
        ({"select": "2:ncpus=4:mem=1gb:ngpus=1+1:ncpus=1:mem=512mb"}, 2560, 2),
        ({"nodes": "3:ppn=4:gpus=2", "mem": "100kw"}, 1, 6),
        ({"mem": "much", "select": "1:ncpus=1"}, None, 0),
        ({"mem": "3tb"}, 3 << 20, None),
        ({}, None, None),
    ],
)
def test_memory_and_gpus_of_pbs(fields: dict[str, str], memory: int | None, gpus: int | None) -> None:
    asked = {f"Resource_List.{name}": value for name, value in fields.items()}
    assert (pbs_fields.asked_memory(asked), pbs_fields.requested_gpus(asked)) == (memory, gpus)


def test_dependencies_of_pbs() -> None:
    depend = "afterok:17.srv@srv.example.org:18.srv,before:19.srv,afterany:20.srv,after:21.srv"
    assert pbs_fields.depends_on({"depend": depend}) == "17.srv:18.srv:20.srv"
    assert pbs_fields.depends_on({}) == ""


def requests_of(done: Imported, path: Path) -> Requests:
    """Return what the new log says, read from its file."""
    write_swf(done.log, path)
    jobs = read(path)
    assert jobs.requests is not None
    return jobs.requests


def test_the_new_log_keeps_what_jobs_asked_for(tmp_path: Path) -> None:
    more = {"QOS": "high", "Account": "bio lab", "Partition": "gpu", "User": "bela", "UID": 1001}
    jobs = (
        job(10, 0, User="ann", SubmitLine="sbatch --exclusive x"),
        job(11, 5, start=200, run=50, Eligible=T0 + 100, ReqTRES="cpu=8,mem=2G,node=2,gres/gpu:a=3", ReqNodes=2,
            SubmitLine="sbatch -d afterok:10 x", **more),
        job("12_1", 6, User="ann", SubmitLine=""),
        job("12_2", 6, start=20, run=500, User="ann", SubmitLine=""),
        job(13, 9, Eligible="Unknown", User="ann", SubmitLine="sbatch -d afterany:12:99 x"),
    )  # fmt: skip
    path = tmp_path / "sacct.txt"
    path.write_text(sacct_text(*jobs, columns=[*COLUMNS, "SubmitLine"]))
    done = import_logs([path], zone=UTC)
    assert done.report.lacking == ()
    asked = requests_of(done, tmp_path / "log.swf")
    assert asked.nodes.tolist() == [1, 2, 1, 1, 1]
    assert asked.memory.tolist() == [1000, 2048, 1000, 1000, 1000]
    assert asked.gpus.tolist() == [0, 3, 0, 0, 0]
    assert asked.exclusive.tolist() == [1, -1, -1, -1, -1]
    assert asked.eligible.tolist() == [0, 100, 6, 6, -1]
    # After the whole array 12, that is after its task that ended last; job 99 is not in the log.
    assert asked.after.tolist() == [-1, 1, -1, -1, 4]
    names = [[asked.name_of(column, row) for column in ("partition", "qos", "account")] for row in (0, 1)]
    assert names == [["batch", "normal", "physics"], ["gpu", "high", "bio lab"]]
    assert asked.known("user_name") == 0
    assert "ann" not in (tmp_path / "log.swf").read_text()
    with_users = import_logs([path], zone=UTC, labels=Labels(users=True))
    asked = requests_of(with_users, tmp_path / "users.swf")
    assert [asked.name_of("user_name", row) for row in range(3)] == ["ann", "bela", "ann"]
    # Without the column User a log has numbers only, which are no names.
    path.write_text(sacct_text(*jobs, columns=[name for name in COLUMNS if name != "User"]))
    unnamed = import_logs([path], zone=UTC, labels=Labels(users=True))
    assert requests_of(unnamed, tmp_path / "unnamed.swf").known("user_name") == 0
    assert unnamed.log.header.values("User") == ()


def test_the_nodes_of_a_job_that_had_more_than_the_least_are_not_known(tmp_path: Path) -> None:
    # sbatch -n 16, -N 4, -N 2-4 on nodes of four cores, and -n 3.
    jobs = [
        job(1, ReqNodes=1, AllocNodes=4, AllocCPUS=16, ReqCPUS=16, ReqTRES="cpu=16,node=1"),
        job(2, 1, ReqNodes=4, AllocNodes=4, AllocCPUS=16, ReqCPUS=16, ReqTRES="cpu=16,node=4"),
        job(3, 2, ReqNodes=2, AllocNodes=3, ReqTRES="cpu=4,node=2"),
        job(4, 3, ReqNodes=1, AllocNodes=1, AllocCPUS=3, ReqCPUS=3, ReqTRES="cpu=3,node=1"),
    ]
    done = imported(tmp_path, *jobs)
    asked = requests_of(done, tmp_path / "log.swf")
    assert asked.nodes.tolist() == [-1, 4, -1, 1]
    assert asked.allocated_nodes.tolist() == [4, -1, 3, -1]
    what = "jobs that had more nodes than the least that they asked for: how many they wanted is not known"
    assert [(step.count, step.first_job) for step in done.report.steps if step.what == what] == [(2, "1")]
    # ReqTRES has the same minimum.
    without = imported(tmp_path, *(one | {"ReqNodes": ""} for one in jobs))
    assert without.log.extra["nodes"].tolist() == [-1, 4, -1, 1]
    site = site_of(read(tmp_path / "log.swf", processors=16, force_processors=True))
    assert [(group.names, group.cores) for group in site.nodes] == [("n[1-4]", 4)]
    again = log_of_workload(read(tmp_path / "log.swf"))
    assert again.extra["allocated_nodes"].tolist() == [4, -1, 3, -1]


def test_without_the_nodes_that_jobs_had_those_asked_for_are_not_known(tmp_path: Path) -> None:
    hidden = {"AllocNodes": "", "NNodes": ""}
    done = imported(tmp_path, job(1, ReqNodes=1, **hidden), job(2, 1, ReqNodes=3, **hidden))
    assert "nodes" not in done.log.extra
    assert done.report.lacking[0].startswith("the log has no nodes asked for (sacct: ReqNodes and AllocNodes")
    # One node is all that a job can have asked for that had one; of others the nodes they had say nothing.
    only = [job(number, number, ReqNodes="", ReqTRES="cpu=4", AllocNodes=number) for number in (1, 2)]
    assert imported(tmp_path, *only).log.extra["nodes"].tolist() == [1, -1]


def test_an_anonymous_log_keeps_the_numbers_and_no_names(tmp_path: Path) -> None:
    done = imported(
        tmp_path, job(1, Partition="a"), job(2, 1, Partition="b", Account="x"), labels=Labels(anonymous=True)
    )
    asked = requests_of(done, tmp_path / "log.swf")
    assert asked.names["partition"] == ("1", "2")
    assert sorted(asked.partition.tolist()) == [0, 1]
    assert asked.names["account"] == ("1", "2")
    assert asked.memory.tolist() == [1000, 1000]
    text = (tmp_path / "log.swf").read_text()
    assert "physics" not in text
    assert "Account:" not in text


def test_what_the_log_lacks_is_said_with_its_price(tmp_path: Path, run: Run) -> None:
    least = ["JobIDRaw", "State", "Submit", "Start", "End", "Timelimit", "ReqCPUS"]
    path = tmp_path / "least.txt"
    path.write_text(sacct_text(job(7, Timelimit="1-02:00:00"), columns=least))
    done = import_logs([path], zone=UTC)
    lacking = [text.partition(" (")[0] for text in done.report.lacking]
    assert lacking == [
        f"the log has no {what}"
        for what in (
            "nodes asked for",
            "memory",
            "GPUs",
            "eligible times",
            "partitions",
            "qualities of service",
            "names of users",
            "accounts",
        )
    ]
    assert done.log.extra == {}
    shown = run("workload", "import", path, "--time-zone", "UTC")
    assert "the log has no memory (sacct: ReqTRES" in " ".join(shown.stderr.split())
    # No job asks for a GPU: there may be none, or they are not counted.
    usual = imported(tmp_path, job(7))
    assert [text.partition(" (")[0] for text in usual.report.lacking] == ["the log has no GPUs"]


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("sbatch --array=0-99%10 job.sh", 10),
        ("sbatch -a 1,3-7:2%2 job.sh", 2),
        ("sbatch -a1-4%3 job.sh", 3),
        ("sbatch --array 1-4%3 job.sh", 3),
        ("sbatch --array=0-99 job.sh", None),
        ("sbatch --array=0-99%0 job.sh", None),
        ("sbatch --not-array=0-9%4 job.sh", None),
        ("sbatch --array=0-9%4x job.sh", None),
        ("", None),
    ],
)
def test_the_limit_of_an_array_in_its_submit_line(line: str, limit: int | None) -> None:
    assert array_limit(line) == limit


def test_how_many_tasks_of_an_array_may_run_at_once_is_kept(tmp_path: Path) -> None:
    line = "sbatch --array=0-3%2 x"
    jobs = (
        job(10, 0, SubmitLine="sbatch x --array=0-3%9"),  # no array: an argument of the script
        *(job(f"12_{task}", 5, SubmitLine=line) for task in range(3)),
        waiting("14_[2-3%1]", 7, SubmitLine="sbatch y"),  # #SBATCH in the script; a task has begun
        job("14_1", 7, SubmitLine="sbatch y"),
        job("16_1", 8, SubmitLine="sbatch --array=1-2 y"),
    )
    path = tmp_path / "sacct.txt"
    path.write_text(sacct_text(*jobs, columns=[*COLUMNS, "SubmitLine"]))
    asked = requests_of(import_logs([path], zone=UTC), tmp_path / "log.swf")
    assert asked.array.tolist() == [-1, 1, 1, 1, 2, -1]
    assert asked.array_limit.tolist() == [-1, 2, 2, 2, 1, -1]
    # Without a limit there are no such fields.
    assert not {"array", "array_limit"} & set(imported(tmp_path, job("16_1"), job("16_2")).log.extra)


def test_names_are_written_or_not(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "log.txt"
    path.write_text(sacct_text(job(1)))
    both = run("workload", "import", path, "--anonymize", "--user-names", code=2)
    assert "--anonymize writes no names, and --user-names writes them" in " ".join(both.stderr.split())
