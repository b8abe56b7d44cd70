"""A user's past in words."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.prediction.training import MOST_LIKE, PastJob, UserSeen, most_like, sentences
from snapshots import snapshot

HOUR = 3600.0


def seen_of(*runs: float, request: float = HOUR, processors: float = 4) -> UserSeen:
    return UserSeen(len(runs), tuple(PastJob(request, processors, run) for run in runs))


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (
            seen_of(20, 40, 30, 25, 35, 9000),
            ("6 jobs of its user had ended; the last five that asked for the same ran 20s to 40s, all under a minute."),
        ),
        (
            seen_of(20, 7200),
            (
                "2 jobs of its user had ended; the last two that asked for the same ran 20s to 2h, 1 of "
                "them under a minute."
            ),
        ),
        (
            seen_of(90, 90, 90, request=60),
            ("3 jobs of its user had ended; the last three most like it ran 1m 30s, none under a minute."),
        ),
        (seen_of(20), "1 job of its user had ended; it ran 20s, which is under a minute."),
        (seen_of(60), "1 job of its user had ended; it ran 1m, not under a minute."),
        (UserSeen(), "No job of its user had ended."),
    ],
)
def test_what_has_ended(seen: UserSeen, says: str) -> None:
    first, second = sentences(seen, HOUR, 4)
    assert first == says
    snapshot(second)


def test_what_waits_and_runs() -> None:
    snapshot(list(sentences(UserSeen(0, (), 1, 1200), 60, 1))[1])


def test_a_user_who_is_not_known() -> None:
    snapshot(list(sentences(None, 60, 1)))


def test_the_most_like_are_those_of_the_features() -> None:
    rng = np.random.default_rng(1)
    jobs = tuple(
        PastJob(*row) for row in np.column_stack([rng.choice([60, 600, 3600], 60), rng.integers(1, 9, (60, 2))])
    )
    ln = np.log([[job.request, job.processors] for job in jobs])
    weight = np.exp(-np.abs(ln - np.log([600, 3])).sum(axis=1) - 0.05 * np.arange(60))
    chosen = np.sort(np.argsort(-weight, kind="stable")[:MOST_LIKE])
    assert most_like(UserSeen(60, jobs), 600, 3) == tuple(jobs[at] for at in chosen)


def test_jobs_that_ask_for_the_same_come_before_newer_ones_that_do_not() -> None:
    others = (PastJob(86_400, 64, 80_000),) * 7
    same = (PastJob(HOUR, 4, 30),) * 5
    first = next(sentences(UserSeen(12, others + same), HOUR, 4))
    snapshot(first)
