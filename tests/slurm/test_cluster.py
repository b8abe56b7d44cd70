"""The test cluster itself: without an export, jobs start in submit order, and nothing is left behind."""

from __future__ import annotations

import contextlib
from pathlib import Path

from schedulers.processes import short_directory, wait_for
from schedulers.slurm import Cluster
from schedulers.slurmdbd import Accounting


def test_without_a_policy_jobs_start_in_submit_order_and_nothing_is_left() -> None:
    with short_directory() as folder, Cluster(folder) as cluster:
        blocker = cluster.hold_all()
        jobs = [cluster.submit(size, minutes) for size, minutes in [(1, 90), (40, 5), (3, 1), (64, 10), (17, 30)]]
        assert cluster.show(jobs[0])["JobState"] == "PENDING"
        cluster.run("scancel", blocker)
        assert cluster.wait_starts(jobs) == jobs
    assert not folder.exists()
    assert not _processes_of(folder)


def test_with_accounting_jobs_are_recorded() -> None:
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(short_directory())
        accounting = stack.enter_context(Accounting(base))
        folder = stack.enter_context(short_directory())
        cluster = stack.enter_context(Cluster(folder, nodes=1, lines=accounting.lines))
        job = cluster.submit(2, 5)
        cluster.wait_state(job, "COMPLETED")

        def recorded() -> bool:
            return "COMPLETED" in cluster.run("sacct", "-a", "-X", "-P", "-n", "-o", "JobIDRaw,State,TimelimitRaw")

        wait_for("the job in the accounting", recorded)
    assert not _processes_of(base)


def _processes_of(folder: Path) -> list[str]:
    result = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str(folder).encode() in (entry / "environ").read_bytes():
                    result.append(entry.name)
            except OSError:
                continue
    return result
