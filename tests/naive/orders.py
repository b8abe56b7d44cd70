"""The queue orders of the other simulators' results, as plain functions of a job, for tests/naive/online.py."""

from __future__ import annotations

from naive.online import Job, Score


def _areas(job: Job) -> int:
    return job.estimate * job.processors


ORDERS: dict[str, Score] = {
    "fcfs": lambda job, now, oldest, free: job.submit,
    "lcfs": lambda job, now, oldest, free: -job.submit,
    "spf": lambda job, now, oldest, free: job.estimate,
    "lpf": lambda job, now, oldest, free: -job.estimate,
    "sqf": lambda job, now, oldest, free: job.processors,
    "lqf": lambda job, now, oldest, free: -job.processors,
    "lexp": lambda job, now, oldest, free: -(now - job.submit + job.estimate) / job.estimate,
    "sexp": lambda job, now, oldest, free: (now - job.submit + job.estimate) / job.estimate,
    "srf": lambda job, now, oldest, free: job.estimate / job.processors,
    "lrf": lambda job, now, oldest, free: -job.estimate / job.processors,
    "saf": lambda job, now, oldest, free: _areas(job),
    "laf": lambda job, now, oldest, free: -_areas(job),
}
