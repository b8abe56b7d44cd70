"""The sorted tables and the heap of the online engine against Python's lists."""

from __future__ import annotations

import bisect

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfactory.engine.running import new_heap, new_running, next_end, pop_end, put_running, reserve, take_running
from policyfactory.engine.sliding import (
    FIRST_KEY,
    insert_gap,
    is_empty,
    lower_bound,
    new_table,
    remove_column,
    sort_keys,
    upper_bound,
)


def used(table: np.ndarray) -> list[tuple[int, ...]]:
    low, high = table[0, :2]
    return [tuple(int(value) for value in column) for column in table[1:, low:high].T]


def test_table_is_a_sorted_list() -> None:
    # A capacity of 10 and hundreds of steps: the used columns reach both ends and are put back into the middle.
    rng = np.random.default_rng(51)
    for drift in (-1, 0, 1):
        table, plain = new_table(3, 10), []
        for step in range(2000):
            if plain and (len(plain) == 10 or rng.random() < 0.5):
                at = {-1: len(plain) - 1, 0: int(rng.integers(len(plain))), 1: 0}[drift]
                behind = remove_column(table, 3, int(table[0, 0]) + at)
                del plain[at]
                assert behind - table[0, 0] == at
            else:
                key = int(rng.integers(5)) + drift * step
                at = insert_gap(table, 3, upper_bound(table, key))
                table[1:, at] = key, step, -step
                plain.insert(bisect.bisect_right([row[0] for row in plain], key), (key, step, -step))
            assert used(table) == plain
            assert is_empty(table) == (not plain)
            probe = int(rng.integers(5)) + drift * step
            keys = [row[0] for row in plain]
            assert lower_bound(table, probe) - table[0, 0] == bisect.bisect_left(keys, probe)
            assert upper_bound(table, probe) - table[0, 0] == bisect.bisect_right(keys, probe)


def test_heap_and_table_of_running_jobs() -> None:
    rng = np.random.default_rng(52)
    heap, running, plain = new_heap(12), new_running(12), []
    assert next_end(heap, 7) == 7
    for job in range(1500):
        if len(plain) == 12 or (plain and rng.random() < 0.5):
            first = pop_end(heap)
            row = next(row for row in plain if row[1] == first)
            assert row[0] == min(plain)[0]
            plain.remove(row)
            take_running(running, row[2], row[3])
        else:
            end, predicted, width = (int(value) for value in rng.integers(1, 9, 3))
            put_running(heap, running, end, job, predicted, width)
            plain.append((end, job, predicted, width))
        assert next_end(heap, 99) == min([row[0] for row in plain], default=99)
        assert sorted(used(running)) == sorted(row[2:] for row in plain)
        assert [row[0] for row in used(running)] == sorted(row[2] for row in plain)


def test_reservation() -> None:
    # 10 processors, 1 free; 2 end at 5 (outlived at 7), 3 at 9, 1 and 2 at 12, 1 at 20.
    heap, running = new_heap(10), new_running(10)
    for predicted, width in ((9, 3), (12, 1), (5, 2), (12, 2), (20, 1)):
        put_running(heap, running, 99, 0, predicted, width)
    assert reserve(running, 7, 1, 2) == (7, 1)  # what has outlived its estimate counts as ending now
    assert reserve(running, 7, 1, 3) == (7, 0)
    assert reserve(running, 7, 1, 4) == (9, 2)
    assert reserve(running, 7, 1, 7) == (12, 2)  # both that end at 12 are counted
    assert reserve(running, 7, 1, 9) == (12, 0)
    assert reserve(running, 7, 1, 10) == (20, 0)
    assert reserve(running, 9, 1, 3) == (9, 3)  # what ends now beside what has outlived


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_sort_keys_order_as_the_scores(scores: list[float]) -> None:
    values = np.array(scores)
    keys = sort_keys(values)
    for a, key_a in zip(values, keys, strict=True):
        for b, key_b in zip(values, keys, strict=True):
            assert (a < b) == (key_a < key_b)
            assert (a == b) == (key_a == key_b)


def test_sort_keys_at_the_edges() -> None:
    keys = sort_keys(np.array([-np.inf, -1e308, -5e-324, -0.0, 0.0, 5e-324, 1e308, np.inf]))
    assert (np.diff(keys) >= 0).all()
    assert keys[3] == keys[4]
    # Overdue jobs (FIRST_KEY + their number) go before a score of -inf.
    assert keys[0] - FIRST_KEY == 2**52 - 1
