"""What a run of `policyfactory.engine.easy` remembers between passes, so as not to look again: a bound, a reservation.

Without them the starts would be the same and the work more, so schedules do not show whether they are kept.
"""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.engine.easy import JOB, RANK, WIDTH, SortedRun, easy_until, new_queue, put_elsewhere
from policyfactory.engine.events import (
    BOUNDS,
    EXTRA,
    FREE,
    HIGH,
    LOW,
    NEVER,
    NOW,
    ONCE,
    SHADOW,
    SMALLEST,
    UNTIL,
    VALID,
    Order,
    new_heap,
    new_jobs,
    new_running,
    new_state,
)

Row = tuple[int, int, int | None, bool, tuple[int, int]]
# Submit, run time, estimate, processors; 10 processors. A runs to 20; B, the head, is reserved 20, with 5 left then.
JOBS = [
    (0, 20, 20, 6),
    (1, 10, 10, 5),
    (2, 3, 3, 3),
    (3, 5, 5, 3),
    (4, 40, 40, 2),
    (5, 2, 2, 1),
    (6, 20, 20, 1),
    (7, 1, 1, 1),
    (8, 9, 9, 8),
]


def remembered(order: Order, backfill_key: list[int]) -> list[Row]:
    """Return instant, free processors, the bound, whether the reservation holds, and the reservation."""
    key = np.arange(len(JOBS))
    jobs = new_jobs(*np.array(JOBS).T, key=key, backfill_key=np.array(backfill_key))
    state, heap, running, queue = new_state(10), new_heap(9), new_running(9), new_queue(9)
    rows = []
    for instant in range(60):
        state[UNTIL] = instant + 1
        easy_until(jobs, SortedRun(state, heap, running, queue), order)
        waiting = [row[3] for row, start in zip(JOBS, jobs.start, strict=True) if start < 0 and row[0] <= instant]
        assert state[SMALLEST] <= min(waiting, default=NEVER), "a bound"
        if state[NOW] == instant:
            bound = None if state[SMALLEST] == NEVER else int(state[SMALLEST])
            reserved = (int(state[SHADOW]), int(state[EXTRA]))
            rows.append((instant, int(state[FREE]), bound, bool(state[VALID]), reserved))
    assert (jobs.start >= 0).all()
    return rows


IN_THE_QUEUES_ORDER: list[Row] = [
    (0, 4, None, False, (0, 0)),
    (1, 4, 5, False, (0, 0)),  # B waits; nothing was submitted that asks for its reservation
    (2, 1, 5, True, (20, 5)),  # C goes ahead of B
    (3, 1, 3, True, (20, 5)),  # D needs 3
    (4, 1, 2, True, (20, 5)),
    (5, 0, 1, True, (20, 5)),  # C ends; D and F start; the bound of E is not looked for when nothing is free
    (6, 0, 1, True, (20, 5)),
    (7, 0, 1, True, (20, 4)),  # F ends; G starts, and runs beyond 20 on one of the 5
    (8, 0, 1, True, (20, 4)),  # H waits
    (10, 0, 1, True, (20, 2)),  # D ends; E and H start
    (11, 1, 5, False, (20, 2)),  # H ends; all were seen, and nobody fits: the bound is exact
    (20, 2, 5, False, (20, 2)),  # A ends; B starts
    (27, 3, 5, False, (20, 2)),
    (30, 0, None, False, (20, 2)),
]
# H, G, F, E are tried from the last: the gaps are closed after a pass, and the bound is exact then.
IN_AN_ORDER_OF_ITS_OWN: list[Row] = [
    *IN_THE_QUEUES_ORDER[:5],
    (5, 0, 2, True, (20, 5)),
    (6, 0, 1, True, (20, 5)),
    (7, 0, 1, True, (20, 5)),
    (8, 0, 2, True, (20, 4)),
    (10, 1, 5, True, (20, 2)),
    (20, 2, 5, False, (20, 2)),
    (28, 3, 5, False, (20, 2)),
    (30, 0, None, False, (20, 2)),
]


@pytest.mark.parametrize(
    ("threshold", "backfill_key", "expected"),
    [
        (NEVER, [], IN_THE_QUEUES_ORDER),
        (NEVER, [0, 1, 2, 3, 8, 7, 6, 5, 4], IN_AN_ORDER_OF_ITS_OWN),
        # B, the head, is overdue at 8: a job that is moved to the front takes the reservation with it.
        (6, [], [*IN_THE_QUEUES_ORDER[:8], (8, 0, 1, False, (20, 4)), *IN_THE_QUEUES_ORDER[9:]]),
    ],
    ids=["in the queue's order", "in an order of its own", "with a threshold"],
)
def test_what_is_known_after_each_instant(threshold: int, backfill_key: list[int], expected: list[Row]) -> None:
    order = Order(threshold, last_first=False, backfill=True, own_order=bool(backfill_key))
    assert remembered(order, backfill_key or list(range(len(JOBS)))) == expected


def test_a_new_head_has_a_reservation_of_its_own() -> None:
    # A runs to 20. B is the head and reserved 20; C goes ahead on 3 of the 5 that are left then, to 32. D, of 10, comes
    # before B and can start at 32 with nothing to spare, so E, of 1 and to 104, must not go ahead, as it might of B.
    rows = [(0, 20, 20, 6), (1, 10, 10, 5), (2, 30, 30, 3), (3, 5, 5, 10), (4, 100, 100, 1)]
    jobs = new_jobs(*np.array(rows).T, key=np.array([0, 5, 6, 1, 9]), backfill_key=np.arange(5))
    order = Order(NEVER, last_first=False, backfill=True, own_order=False)
    easy_until(jobs, SortedRun(new_state(10), new_heap(5), new_running(5), new_queue(5)), order)
    assert jobs.start.tolist() == [0, 20, 2, 32, 37]


@pytest.mark.parametrize("last_first", [False, True])
def test_a_job_with_another_key_stands_where_a_sort_puts_it(last_first: bool) -> None:
    rng, order = np.random.default_rng(1), Order(NEVER, last_first=last_first, backfill=False, own_order=False)
    n = 12
    # The first takes all of the machine until the end; the others wait, with keys of which many are equal.
    width = np.array([10, *rng.integers(1, 9, n - 1)])
    keys = rng.integers(0, 4, n)
    jobs = new_jobs(np.arange(n), np.full(n, 99), np.full(n, 99), width, key=keys)
    run = SortedRun(new_state(10), new_heap(n), new_running(n), new_queue(n))
    run.state[UNTIL] = n
    easy_until(jobs, run, order)
    for _ in range(100):
        job = int(rng.integers(1, n))
        old, keys[job] = int(keys[job]), rng.integers(0, 4)  # which the jobs have a view of
        put_elsewhere(jobs, run.state, run.queue, order, job, old)
        expected = sorted(range(1, n), key=lambda one: (jobs.key[one], -one if last_first else one))
        low, high = run.queue[BOUNDS, [LOW, HIGH]]
        assert run.queue[JOB, low:high].tolist() == expected
        np.testing.assert_array_equal(run.queue[[RANK, WIDTH], low:high], [jobs.key[expected], width[expected]])
        assert run.state[VALID] == ONCE


def test_a_run_begins_with_nothing() -> None:
    columns = np.array(JOBS).T
    jobs = new_jobs(*columns)
    assert jobs.start.tolist() == [-1] * 9
    assert not jobs.backfilled.any()
    assert jobs.sequence.shape == jobs.key.shape == jobs.backfill_key.shape == (0,)
    assert new_jobs(*columns, listed=True).sequence.tolist() == [0] * 9
    # All alike to the compiler, and safe from each other: nobody writes into what was given.
    assert not any(column.flags.writeable for column in jobs[:6])
    assert new_state(10).tolist() == [0, 10, 0, 0, 0, NEVER, 0, 0, 0, NEVER, 0]
    order = Order(NEVER, last_first=False, backfill=True, own_order=False)
    assert (order.same_formula, order.ticks) == (False, 1)
