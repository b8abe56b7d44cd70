"""A made log in which a queue forms each day, and the record of a policy on it."""

from __future__ import annotations

import dataclasses

import numpy as np

from policyfactory.core.text import DAY, HOUR
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.jobs import Workload

__all__ = ["daily", "recorded"]


def daily(weeks: int = 14, *, machine: int = 4, apart: int = DAY, seed: int = 1) -> Workload:
    """Return a log in which a queue of short and long jobs forms each day and is gone before the next."""
    drawn = np.random.default_rng(seed)
    days, a_day = 7 * weeks, 14
    jobs = a_day * days
    run_time = np.where(drawn.random(jobs) < 0.6, drawn.integers(60, 600, jobs), drawn.integers(HOUR, 3 * HOUR, jobs))
    submit = np.sort(np.repeat(np.arange(days) * apart, a_day) + drawn.integers(0, apart // 6, jobs))
    return Workload(
        "daily", machine, job_id=np.arange(1, jobs + 1), submit=submit - submit[0], run_time=run_time,
        requested_time=2 * run_time, processors=drawn.integers(1, 4, jobs), user=np.arange(jobs) % 5,
        start=np.full(jobs, -1), unix_start=1_000_000_000,
    )  # fmt: skip


def recorded(log: Workload, policy: str) -> Workload:
    """Return the log with the schedule of a policy as its record."""
    return dataclasses.replace(log, start=simulate(log, resolve(policy), Rules()).start)


def habits(weeks: int = 16) -> Workload:
    """Return a log in which the user decides how long a job is, and nobody says so in the request."""
    rng = np.random.default_rng(5)
    n = 150 * weeks
    user = rng.integers(0, 12, n)
    run_time = np.where(user % 2, rng.integers(10, 60, n), rng.integers(15_000, 25_000, n))
    day = np.sort(rng.integers(0, 7 * weeks, n))
    submit = np.sort(day * 86_400 + rng.integers(0, 14_400, n))
    submit[0], submit[-1] = 0, 7 * weeks * 86_400
    return Workload(
        "habits", 16, np.arange(1, n + 1), submit, run_time, np.full(n, 43_200), rng.integers(1, 9, n), user,
        np.full(n, -1), unix_start=1_000_000_000,
    )  # fmt: skip
