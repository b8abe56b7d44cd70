"""Who follows whom, and what follows a job: as found by looking at each pair."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.engine.events import NEVER
from policyfactory.prediction.next_jobs import THINK_TIME, Followers


def jobs(seed: int, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return users, submit times and ends of jobs, some of which never end, or in the second of their submission."""
    rng = np.random.default_rng(seed)
    user, submit = rng.integers(-1, 4, n), np.sort(rng.integers(0, 40_000, n))
    end = submit + rng.choice([0, 60, THINK_TIME, 5000], n) * (rng.random(n) < 0.9)
    return user, submit, np.where(rng.random(n) < 0.1, NEVER, end)


def plain_leader(user: np.ndarray, submit: np.ndarray, end: np.ndarray, row: int) -> int:
    found = -1
    for other in range(len(user)):
        soon = 0 < submit[row] - end[other] <= THINK_TIME
        if user[other] == user[row] >= 0 and soon and (found < 0 or end[other] >= end[found]):
            found = other
    return found


def plain_after(leader: list[int], submit: np.ndarray, until: int, job: int) -> list[int]:
    found: list[int] = []
    for row, its in enumerate(leader):
        if submit[row] <= until and its >= 0 and (its == job or its in found):
            found.append(row)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_followers_are_those_of_a_plain_search(seed: int) -> None:
    user, submit, end = jobs(seed)
    followers = Followers(user, submit, end)
    leader = [plain_leader(user, submit, end, row) for row in range(len(user))]
    # Of several that ended in one second, any.
    known = np.array(leader) >= 0
    np.testing.assert_array_equal(followers.leader >= 0, known)
    np.testing.assert_array_equal(end[followers.leader[known]], end[np.array(leader)[known]])
    asked = np.flatnonzero(end < NEVER)[::3]
    rows, which = followers.after(asked, 9000)
    for number, job in enumerate(asked.tolist()):
        its = plain_after(followers.leader.tolist(), submit, int(end[job]) + 9000, job)
        assert rows[which == number].tolist() == its


@pytest.mark.parametrize("since", [-90_000, 5000])
@pytest.mark.parametrize("seed", range(10))
def test_a_like_job_is_one_of_the_users_last_that_ended_in_between_or_anybodys(seed: int, since: int) -> None:
    user, submit, end = jobs(seed, 400)
    followers, until = Followers(user, submit, end), 30_000
    between = (user >= 0) & (end > since) & (end <= until)
    for asked in range(-1, 6):
        mine = between & (user == asked)
        last = set(np.sort(end[mine if mine.any() else between])[-50 if mine.any() else 0 :].tolist())
        drawn = followers.like(np.full(2000, asked), since, until, np.linspace(0, 1, 2000, endpoint=False))
        assert {int(end[row]) for row in drawn} == last
        assert (user[drawn] == asked).all() == mine.any()
    assert (followers.like(np.arange(3), -9000, -1, np.zeros(3)) == -1).all()
