"""Guesses of run times, plainly: for each job the list of its user's ended jobs is made anew."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence


@dataclasses.dataclass
class Job:
    submit: int
    end: int
    user: int
    request: float
    run: float
    processors: float


def guesses(jobs: Sequence[Job]) -> list[list[float]]:
    """What mean of two, fading mean, neighbours, median and ninth decile say of each job at its submission."""
    return [guesses_of(job, ended_of(jobs, job)) for job in jobs]


def ended_of(jobs: Sequence[Job], job: Job) -> list[Job]:
    """The user's jobs that have ended when ``job`` is submitted, the last one first; at one instant in submit order."""
    rows = [(one.end, row) for row, one in enumerate(jobs) if one.end <= job.submit and one.user == job.user]
    return [jobs[row] for _, row in sorted(rows, reverse=True)] if job.user >= 0 else []


def guesses_of(job: Job, ended: list[Job]) -> list[float]:
    if not ended:
        return [job.request] * 5
    two = sum(one.run for one in ended[:2]) / 2 if len(ended) > 1 else job.request
    fading = ended[-1].run
    for one in ended[-2::-1]:
        fading = (fading + one.run) / 2
    recent = ended[:60]

    def far(one: Job) -> float:
        return abs(math.log(one.request / job.request)) + abs(math.log(one.processors / job.processors))

    near = sorted(recent, key=far)[:5]  # a stable sort: of equal ones the last that ended
    shares = sorted(min(one.run / one.request, 1.0) for one in recent)
    parts = [job.request * shares[math.ceil(len(shares) * tenths / 10) - 1] for tenths in (5, 9)]
    means = [two, fading, sum(one.run for one in near) / len(near)]
    return [*(min(mean, job.request) for mean in means), *parts]
