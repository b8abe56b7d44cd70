"""Lists of partitions in submit lines: read, kept in the log, and told from what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

import policyfactory as pf
from commands import runner
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


def test_a_log_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    run = runner(tmp_path, monkeypatch, capfd)
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
    run("workload", "import", tmp_path / "jobs.txt", "--anonymize", "--output", tmp_path / "nobody.swf")
    assert "PartitionList" not in (tmp_path / "nobody.swf").read_text()
