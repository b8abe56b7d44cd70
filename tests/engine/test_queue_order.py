"""The order of the queue in the planning kernels, and how small the jobs behind a place are, beside the plain ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

from naive import queues as plain
from policyfactory.engine.conservative import queue_of, smallest_behind
from policyfactory.engine.events import Order, new_jobs


@pytest.mark.parametrize("last_first", [False, True])
def test_the_queue_is_in_the_same_order(*, last_first: bool) -> None:
    rng = random.Random(last_first)
    order = Order(0, last_first, True, False, False, 1)
    seen = set()
    for _ in range(50):
        count = rng.randint(1, 12)
        jobs = rng.sample(range(100), count)
        waiting = np.array([count, *sorted(jobs), *([-1] * 5)])
        # Few scores, so that many are equal.
        scores = np.array([0.0, *(rng.choice((1.0, 2.0, 3.0)) for _ in range(count + 5))])
        overdue = rng.randint(0, count)
        queue = queue_of(waiting, scores, overdue, order)
        assert queue.tolist() == plain.queue_of(waiting, scores, overdue, order).tolist()
        seen.add(tuple(queue.tolist()) == tuple(sorted(jobs)))
    assert seen == {False, True}


def test_the_smallest_job_behind_a_place_is_the_same() -> None:
    rng = np.random.default_rng(1)
    for count in range(1, 12):
        zero, ones = np.zeros(20, dtype=np.int64), np.ones(20, dtype=np.int64)
        jobs, queue = new_jobs(zero, ones, ones, rng.integers(1, 6, 20)), rng.permutation(20)[:count]
        assert smallest_behind(jobs, queue).tolist() == plain.smallest_behind(jobs, queue).tolist()
