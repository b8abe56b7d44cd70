"""What a user's past shows of a job, in words for the user who waits."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

from policyfactory.core.text import counted
from policyfactory.core.units import format_duration
from policyfactory.engine.past import SHORT_S

__all__ = ["MOST_LIKE", "PastJob", "UserSeen", "most_like", "sentences"]

MOST_LIKE = 5  # jobs that are spoken of
_FADE = 0.05  # what one more job in between counts, in units of a logarithm: as in `policyfactory.engine.past`
_NUMBERS = ("", "", "two", "three", "four", "five")


class PastJob(NamedTuple):
    """A job that has ended: request (s), processors, run time (s)."""

    request: float
    processors: float
    run: float


@dataclasses.dataclass(frozen=True, slots=True)
class UserSeen:
    """What is known of a user when a job is submitted.

    Parameters
    ----------
    ended : int
        Jobs that had ended.
    jobs : tuple of PastJob
        The last of them, the newest first.
    waiting, running : int
        Other jobs that waited and ran.
    """

    ended: int = 0
    jobs: tuple[PastJob, ...] = ()
    waiting: int = 0
    running: int = 0


def most_like(seen: UserSeen, p: float, q: float) -> tuple[PastJob, ...]:
    """Return the jobs that are most like one that asks for ``p`` seconds and ``q`` processors, the newest first.

    Likeness is that of the predictor's features: |d ln request| + |d ln processors|, and 0.05 for each newer job.
    """

    def far(place: int) -> float:
        job = seen.jobs[place]
        return abs(math.log(job.request / p)) + abs(math.log(job.processors / q)) + _FADE * place

    return tuple(seen.jobs[place] for place in sorted(heapq.nsmallest(MOST_LIKE, range(len(seen.jobs)), key=far)))


def sentences(seen: UserSeen | None, p: float, q: float) -> Iterator[str]:
    """Give in words what is known of the user of a job.

    Parameters
    ----------
    seen : UserSeen or None
        None: the user is not known.
    p, q : float
        What the job asks for: seconds, processors.
    """
    if seen is None:
        yield "Its user is not known, so there is no past to look at."
        return
    if seen.jobs:
        alike = most_like(seen, p, q)
        same = all(job.request == p and job.processors == q for job in alike)
        what = "that asked for the same" if same else "most like it"
        count = len(alike)
        which = f"the last {_NUMBERS[count]} {what}" if count > 1 else "it"
        yield (
            f"{counted(seen.ended, 'job')} of its user had ended; {which} ran {_range(alike)}, "
            f"{_short(alike)} under a minute."
        )
    else:
        yield "No job of its user had ended."
    yield f"{counted(seen.waiting, 'other job')} of its user waited and {seen.running:,} ran."


def _range(jobs: tuple[PastJob, ...]) -> str:
    least, most = (format_duration(round(bound(job.run for job in jobs))) for bound in (min, max))
    return least if least == most else f"{least} to {most}"


def _short(jobs: tuple[PastJob, ...]) -> str:
    count = sum(job.run < SHORT_S for job in jobs)
    if count in (0, len(jobs)):
        if len(jobs) == 1:
            return "which is" if count else "not"
        return "all" if count else "none"
    return f"{count} of them"
