"""A log that keeps its machine busy, for the tests of the environment."""

from __future__ import annotations

import dataclasses

import numpy as np

from naive.online_cases import Shape, random_workload
from policyfactory.workload.jobs import Workload


def busy_log(jobs: int = 120, seed: int = 8) -> Workload:
    """Return a log of that many jobs of five users, of which many wait."""
    rng = np.random.default_rng(seed)
    logs = (random_workload(rng, Shape(jobs=160, machine=16, gap=2)) for _ in range(100))
    log = next(log for log in logs if len(log) >= jobs and log.machine >= 8).select(slice(0, jobs))
    return dataclasses.replace(log, user=np.arange(jobs) % 5)
