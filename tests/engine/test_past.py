"""The past of jobs that go back to the queue, event by event, against lists."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.engine.past import (
    ENDED,
    ENDED_LAST,
    FACTS,
    GROUPS,
    RUNNING,
    STARTED_LAST,
    WAITING,
    new_past,
    note_end,
    note_return,
    note_start,
    submitted,
    take_changed,
)
from support import cases

JOBS, USERS = 30, 3


@pytest.mark.parametrize("returns", [0.0, 0.4])
def test_who_waits_runs_and_has_ended_is_that_of_lists(returns: float) -> None:
    for seed in cases(20, 400):
        rng = np.random.default_rng(seed)
        user = rng.integers(-1, USERS, JOBS)
        user[0] = USERS - 1
        past = new_past(user, np.zeros((JOBS, FACTS)), np.full((JOBS, GROUPS), -1), np.zeros((JOBS, 4)), 1)
        waiting: dict[int, list[int]] = {one: [] for one in range(-1, USERS)}
        running: list[int] = []
        ended: list[int] = []
        started: dict[int, int] = {}
        changed: list[int] = []
        coming = 0
        for now in range(200):
            queue = [job for jobs in waiting.values() for job in jobs]
            event = rng.random()
            if event < 0.3 and coming < JOBS:
                waiting[user[coming]].append(coming)
                submitted(past, coming, now)
                coming += 1
            elif event < 0.6 and queue:
                job = int(rng.choice(queue))
                waiting[user[job]].remove(job)
                running.append(job)
                started[user[job]] = job
                note_start(past, job, now + 10)
                assert past.end[job] == now + 10
            elif event < 0.6 + 0.2 * returns and running:
                job = running.pop(int(rng.integers(len(running))))
                waiting[user[job]].append(job)
                note_return(past, job)
                assert past.end[job] == -1
            elif event < 0.9 and running:
                job = running.pop(int(rng.integers(len(running))))
                ended.append(job)
                if user[job] >= 0 and user[job] not in changed:
                    changed.append(user[job])
                note_end(past, job)
            else:
                jobs = np.full(JOBS, -7)
                expected = [job for one in changed for job in waiting[one]]
                assert take_changed(past, jobs) == len(expected)
                assert jobs[: len(expected)].tolist() == expected
                changed = []
            for one in range(USERS):
                mine = [job for job in ended if user[job] == one]
                counts = [len(waiting[one]), sum(user[job] == one for job in running), len(mine)]
                assert past.by_user[one, [WAITING, RUNNING, ENDED]].tolist() == counts
                assert past.by_user[one, STARTED_LAST] == started.get(one, -1)
                assert past.by_user[one, ENDED_LAST] == ([-1, *mine][-1])
        assert past.ended[: len(ended)].tolist() == ended
        assert len(ended) > 5
