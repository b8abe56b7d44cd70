"""The past, event by event: who waits, runs and has ended against lists, what is known of a job against the twin."""

from __future__ import annotations

import math

import numpy as np
import pytest

from naive.online import Job
from naive.predicted import Known, Predicted
from policyfactory.engine.past import (
    ENDED,
    ENDED_LAST,
    ENDS,
    FACTS,
    FEATURES,
    GROUPS,
    MOST_RENEWED,
    RUNNING,
    STARTED_LAST,
    STARTS,
    WAITING,
    describe,
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
        user[0] = USERS - 1  # so that there are as many
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


def test_of_a_user_so_many_are_predicted_anew_at_once() -> None:
    n = MOST_RENEWED + 3
    past = new_past(np.zeros(n, dtype=np.int64), np.zeros((n, FACTS)), np.full((n, GROUPS), -1), np.zeros((n, 4)), 1)
    for job in range(n):
        submitted(past, job, 0)
    note_start(past, 1, 5)
    note_end(past, 1)
    jobs = np.full(n, -7)
    assert take_changed(past, jobs) == MOST_RENEWED
    assert jobs.tolist() == [0, *range(2, MOST_RENEWED + 1), -7, -7, -7]


def test_what_is_known_of_a_job_is_that_of_the_twin() -> None:
    n = 250
    for seed in cases(4, 60):
        rng, ticks = np.random.default_rng(seed), 1 + seed % 2
        user, groups = rng.integers(-1, 2, n), rng.integers(-1, 3, (n, GROUPS))
        user[:4], groups[0] = 0, 0
        groups += np.where(groups >= 0, 3 * np.arange(GROUPS), 0)
        facts, outcome = rng.integers(0, 3, (n, FACTS)) / 2, rng.random((n, 4))
        outcome[:, 0] = np.where(rng.random(n) < 0.5, math.log(60.0), rng.choice([1.0, 5.0, 9.0], n))
        # Of many equal numbers rounding leaves a mean square below the square of the mean, or a little above it.
        outcome[user == 1, 0] = math.log(59.5)
        atol = np.full(FEATURES, 1e-12)
        atol[FACTS + 6] = 1e-6
        past = new_past(user, facts, groups, outcome, ticks)
        jobs = [Job(job, -1, 0, 0, 1) for job in range(n)]
        rows = zip(user, facts.tolist(), groups.tolist(), outcome.tolist(), strict=True)
        known = [Known(int(one), *given) for one, *given in rows]
        twin = Predicted(jobs, n, lambda *_: 0.0, known=known, ticks=ticks)
        twin.now, twin.features = 0, {}
        start, features = np.full(n, -1), np.empty(FEATURES)
        for job in range(n):
            twin.now += int(rng.choice([0, 0, 1, 599, 600, 601])) * ticks * (job > 2)
            for other in twin.ended(jobs)[past.progress[ENDS] :]:
                note_end(past, other.id)
            jobs[job].submit = twin.now
            describe(past, start, job, twin.now, features)
            expected = twin.described(jobs[job])
            assert (np.abs(features - expected) <= atol + 1e-12 * np.abs(expected)).all(), f"seed {seed}, job {job}"
            twin.features[job] = expected
            submitted(past, job, twin.now)
            waiting = [other.id for other in jobs[: job + 1] if other.start < 0]
            for other in rng.permutation(waiting)[: int(rng.integers(3))].tolist():
                jobs[other].start, jobs[other].end = twin.now, twin.now + int(rng.choice([1, 60, 600, 3000])) * ticks
                jobs[other].sequence = past.progress[STARTS]
                past.progress[STARTS] += 1
                start[other] = twin.now
                note_start(past, other, jobs[other].end)
