"""Sites and queues for the tests of exports."""

from __future__ import annotations

import numpy as np

from policyfactory.core.text import DAY
from policyfactory.exports.content import ExportSite
from policyfactory.exports.queue import Queue
from policyfactory.exports.sample import ExportSample

__all__ = ["make_queue", "make_sample", "make_site"]


def make_sample(
    jobs: int = 5000, *, seed: int = 1, first: int = 0, life: int = 365 * DAY, processors: int = 64
) -> ExportSample:
    """Jobs of all shapes: 1 min to 2 d, 1 to ``processors``, r from ``first`` over ``life``, waits up to a day."""
    rng = np.random.default_rng(seed)
    p = 60 * np.ceil(np.exp(rng.uniform(0, np.log(2880), jobs)))
    q = np.floor(np.exp(rng.uniform(0, np.log(processors + 1), jobs)))
    r = np.floor(rng.uniform(first, first + life, jobs))
    w = np.floor(rng.uniform(0, DAY, jobs))
    return ExportSample(p, q, r, w, f"{jobs} random jobs of the tests")


def make_site(jobs: int = 5000, *, processors: int | None = None, **more: int) -> ExportSite:
    """A site with `make_sample`'s jobs."""
    return ExportSite(lambda: make_sample(jobs, processors=processors or 64, **more), processors)


def make_queue(jobs: int = 100, *, seed: int = 1, now: int = 1_767_225_600 + 30 * DAY, processors: int = 64) -> Queue:
    """Waiting jobs of all shapes, submitted in the day before ``now``, without a priority of today."""
    sample = make_sample(jobs, seed=seed, processors=processors)
    return Queue(
        job=tuple(str(number) for number in range(1, jobs + 1)),
        user=tuple(f"user{number % 7}" for number in range(jobs)),
        p=sample.p.astype(np.int64),
        q=sample.q.astype(np.int64),
        submit=np.sort(now - sample.w.astype(np.int64)),
        priority=None,
        now=now,
    )
