"""Lists of partitions and dependencies in submit lines: read, kept in the log, told from what looks like them."""

from __future__ import annotations

from pathlib import Path

import pytest

import policyfactory as pf
from commands import Run, runner
from policyfactory.workload.accounting.sacct import asks_for_partitions
from policyfactory.workload.swf.files import write_swf

HEADER = "JobIDRaw|JobID|UID|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|SubmitLine"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sbatch -p fat,thin job.sh", "fat,thin"),
        ("sbatch -pfat,thin-2 job.sh", "fat,thin-2"),
        ("sbatch --partition=a.b,c,d -n 4", "a.b,c,d"),
        ("srun --partition fat,thin true", "fat,thin"),
        ("sbatch -p fat job.sh --parts a,b", ""),
        ("sbatch --wrap x-p fat,thin", ""),
    ],
)
def test_a_submit_line_says_them(line: str, found: str) -> None:
    assert asks_for_partitions(line) == found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return runner(tmp_path, monkeypatch, capfd)


def test_a_log_keeps_them(tmp_path: Path, run: Run) -> None:
    lines = ("sbatch -p fat,thin a", "sbatch -p thin b", "sbatch -p fat,thin c", "sbatch -p old,older d")
    rows = [
        f"{job}|{job}|7|{partition}|COMPLETED|{1000 + job}|{2000 + job}|{2100 + job}|100|5|1|1|{line}"
        for job, (line, partition) in enumerate(zip(lines, ("thin", "thin", "thin", "fat"), strict=True), 1)
    ]
    (tmp_path / "jobs.txt").write_text("\n".join([HEADER, *rows]) + "\n")
    run("workload", "import", tmp_path / "jobs.txt", "--output", tmp_path / "log.swf")
    workload = pf.read(tmp_path / "log.swf")
    requests = workload.requests
    assert requests is not None
    # Job 4 ran in none of those that its line seems to name.
    assert [requests.name_of("partitions", row) for row in range(4)] == ["fat,thin", None, "fat,thin", None]
    assert [requests.name_of("partition", row) for row in range(4)] == ["thin", "thin", "thin", "fat"]
    write_swf(workload, tmp_path / "again.swf")
    again = pf.read(tmp_path / "again.swf").requests
    assert again is not None
    assert [again.name_of("partitions", row) for row in range(4)] == ["fat,thin", None, "fat,thin", None]
    done = run("workload", "import", tmp_path / "jobs.txt", "--anonymize", "--output", tmp_path / "nobody.swf")
    assert "PartitionList" not in (tmp_path / "nobody.swf").read_text()
    words = " ".join((done.stdout + done.stderr).split())
    assert "no lists of partitions (--anonymize leaves out those of 2 jobs)" in words


def preceding(tmp_path: Path, run: Run, jobs: list[tuple[str, str, str]], user: str = "7") -> list[int]:
    """Return the job of the log that each has to wait for: jobs by id, name and submit line, a minute long each."""
    header = "JobIDRaw|JobID|UID|JobName|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|SubmitLine"
    rows = [
        f"{row}|{job}|{user}|{name}|COMPLETED|{1000 + row}|{2000 + 60 * row}|{2060 + 60 * row}|60|5|1|1|{line}"
        for row, (job, name, line) in enumerate(jobs, 101)
    ]
    (tmp_path / "jobs.txt").write_text("\n".join([header, *rows]) + "\n")
    run("workload", "import", tmp_path / "jobs.txt", "--output", tmp_path / "log.swf", "--overwrite")
    requests = pf.read(tmp_path / "log.swf").requests
    return [] if requests is None else requests.after.tolist()


def test_a_task_waits_for_the_one_of_its_number(run: Run, tmp_path: Path) -> None:
    line = "sbatch -d aftercorr:50 -a 0-2 x"
    jobs = [("50_0", "a", ""), ("50_1", "a", ""), ("60_0", "b", line), ("60_1", "b", line), ("60_2", "b", line)]
    # Task 2 has none of its number, and waits for the end of all.
    assert preceding(tmp_path, run, jobs) == [-1, -1, 1, 2, 2]


def test_a_single_job_waits_for_those_of_its_name(run: Run, tmp_path: Path) -> None:
    line = "sbatch --dependency=singleton x"
    jobs = [("1", "a", ""), ("2", "b", line), ("3", "a", line), ("4", "a", line), ("5", "c", "sbatch x")]
    assert preceding(tmp_path, run, jobs) == [-1, -1, 1, 3, -1]


def test_jobs_of_unknown_users_do_not_wait_for_strangers(run: Run, tmp_path: Path) -> None:
    line = "sbatch --dependency=singleton x"
    assert [after for after in preceding(tmp_path, run, [("1", "a", ""), ("2", "a", line)], user="") if after > 0] == []
