"""A resampled log, job by job."""

from __future__ import annotations

from collections.abc import Sequence

WEEK = 604_800

# submit, run_time, requested_time, processors, user
Job = tuple[int, int, int, int, int]


def resample(jobs: Sequence[Job], uniform: Sequence[Sequence[float]], draw: str, ticks: int = 1) -> list[Job]:
    """Return the jobs of the new log; ``uniform[week][user]`` decides which week of the user's is drawn."""
    week_length = WEEK * ticks
    zero = jobs[0][0]
    weeks = (jobs[-1][0] - zero) // week_length
    history = [(at, job) for at, job in enumerate(jobs) if job[0] - zero < weeks * week_length]
    users = sorted({max(job[4], -1) for _, job in history})
    result = []
    for new_week, draws in enumerate(uniform):
        chosen = []
        for user, value in zip(users, draws, strict=True):
            own = [(at, job) for at, job in history if max(job[4], -1) == user]
            candidates = range(weeks)
            if draw == "active":
                candidates = sorted({(job[0] - zero) // week_length for _, job in own})
            drawn = candidates[int(value * len(candidates))]
            chosen += [(at, job) for at, job in own if (job[0] - zero) // week_length == drawn]
        chosen.sort(key=lambda pair: ((pair[1][0] - zero) % week_length, max(pair[1][4], -1), pair[0]))
        result += [
            (new_week * week_length + (job[0] - zero) % week_length, *job[1:4], max(job[4], -1)) for _, job in chosen
        ]
    return result
