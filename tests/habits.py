"""A log of users with habits: half run for seconds and half for hours, whatever they ask for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from policyfactory.workload.jobs import Workload

__all__ = ["log_text", "users_with_habits", "write_log"]


def users_with_habits(seed: int, jobs: int = 600, days: int = 6) -> Workload:
    """Return the jobs of eight users: the even ones run for seconds, the odd ones for hours."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 8, jobs)
    run = np.where(user % 2 == 0, rng.integers(5, 60, jobs), rng.integers(3000, 9000, jobs))
    submit = np.sort(rng.integers(0, days * 86_400, jobs))
    request = rng.choice([3600, 7200, 14_400], jobs)
    columns = (np.arange(1, jobs + 1), submit, np.minimum(run, request), request, rng.integers(1, 5, jobs))
    return Workload("habits", 8, *columns, user, np.full(jobs, -1))


def log_text(workload: Workload, header: str = "; MaxProcs: 8\n", order: np.ndarray | None = None) -> str:
    """Return the jobs in the Standard Workload Format, in the order that is given."""
    lines = []
    for row in range(len(workload)) if order is None else order:
        job, submit, run, wanted, width, user = (
            int(column[row])
            for column in (
                *(workload.job_id, workload.submit, workload.run_time, workload.requested_time),
                *(workload.processors, workload.user),
            )
        )
        lines.append(f"{job} {submit} -1 {run} {width} -1 -1 {width} {wanted} -1 1 {user} -1 -1 -1 -1 -1 -1\n")
    return header + "".join(lines)


def write_log(path: Path, workload: Workload, header: str = "; MaxProcs: 8\n", order: np.ndarray | None = None) -> Path:
    """Write the jobs into a file, and return it."""
    path.write_text(log_text(workload, header, order))
    return path
