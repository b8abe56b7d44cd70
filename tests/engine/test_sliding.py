"""The sorted tables and the heap of the online engine against Python's lists."""

from __future__ import annotations

import bisect

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.engine.events import (
    FIRST_KEY,
    insert_gap,
    is_empty,
    lower_bound,
    new_heap,
    new_running,
    new_table,
    next_end,
    pop_end,
    pop_job,
    push_job,
    put_running,
    remove_column,
    reserve,
    sort_keys,
    take_running,
    upper_bound,
)
from support import examples


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


@examples(300)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_sort_keys_order_as_the_scores(scores: list[float]) -> None:
    values = np.array(scores)
    keys = sort_keys(values)
    for a, key_a in zip(values, keys, strict=True):
        for b, key_b in zip(values, keys, strict=True):
            assert (a < b) == (key_a < key_b)
            assert (a == b) == (key_a == key_b)


def test_sort_keys_tell_neighbours_apart() -> None:
    for value in (1.0, 1.5, 3.0, 1e300, 1e-300):
        for sign in (1.0, -1.0):
            below, above = np.nextafter(sign * value, -np.inf), np.nextafter(sign * value, np.inf)
            keys = sort_keys(np.array([below, sign * value, above]))
            assert np.diff(keys).tolist() == [1, 1]


def test_a_new_table_is_empty_in_the_middle_and_takes_its_capacity_at_either_end() -> None:
    for capacity in (1, 10, 500):
        table = new_table(2, capacity)
        assert table.shape[0] == 3
        assert is_empty(table)
        assert table[0, 0] == table[0, 1] == table.shape[1] // 2
        assert table.shape[1] >= 2 * capacity + 32
        for direction in (-1, 1):
            table = new_table(2, capacity)
            for key in range(capacity):
                at = insert_gap(table, 2, lower_bound(table, direction * key))
                table[1:, at] = direction * key, key
            assert [row[0] for row in used(table)] == sorted(direction * key for key in range(capacity))


def test_a_full_table_that_drifts_is_put_back_whole() -> None:
    # 200 entries in 464 columns: moved to the middle they overlap with where they were.
    for direction in (-1, 1):
        table, plain = new_table(3, 200), []
        for key in range(2000):
            if len(plain) == 200:
                low, high = table[0, :2]
                remove_column(table, 3, int(low) if direction > 0 else int(high) - 1)
                del plain[0 if direction > 0 else -1]
            at = insert_gap(table, 3, lower_bound(table, direction * key))
            table[1:, at] = direction * key, key, 3 * key
            plain.insert(len(plain) if direction > 0 else 0, (direction * key, key, 3 * key))
            assert 0 <= table[0, 0] <= table[0, 1] <= table.shape[1]
            if key % 40 == 0 or key > 1900:
                assert used(table) == plain


def test_sort_keys_at_the_edges() -> None:
    keys = sort_keys(np.array([-np.inf, -1e308, -5e-324, -0.0, 0.0, 5e-324, 1e308, np.inf]))
    assert (np.diff(keys) >= 0).all()
    assert keys[3] == keys[4]
    # Overdue jobs (FIRST_KEY + their number) go before a score of -inf.
    assert keys[0] - FIRST_KEY == 2**52 - 1


def filled(count: int, capacity: int, shift: int = 0) -> np.ndarray:
    """Return a table with the keys 0, 10, 20, ..., ``shift`` columns from where they would begin."""
    table = new_table(3, capacity)
    low = table.shape[1] // 2 - count // 2 + shift
    table[0, :2] = low, low + count
    table[1:, low : low + count] = 10 * np.arange(count)
    return table


def test_an_entry_is_put_in_and_taken_out_at_the_nearer_end() -> None:
    # Only columns between it and that end are moved; as near to both, those to the right.
    for count in (1, 2, 5, 6):
        for shift in (-3, 0, 3):
            for place in range(count + 1):
                table = filled(count, 10, shift)
                low, high = (int(bound) for bound in table[0, :2])
                at = insert_gap(table, 3, low + place)
                table[1:, at] = 10 * place - 5
                left = place < count - place
                assert table[0, :2].tolist() == ([low - 1, high] if left else [low, high + 1])
                keys = [*range(0, 10 * place, 10), 10 * place - 5, *range(10 * place, 10 * count, 10)]
                assert used(table) == [(key, key, key) for key in keys]
            for place in range(count):
                table = filled(count, 10, shift)
                low, high = (int(bound) for bound in table[0, :2])
                remove_column(table, 3, low + place)
                left = place < count - 1 - place
                assert table[0, :2].tolist() == ([low + 1, high] if left else [low, high - 1])


def test_a_table_goes_back_into_the_middle_only_from_an_end() -> None:
    for direction in (-1, 1):
        table = filled(4, 10)
        size, ends = table.shape[1], [(0, 4), (table.shape[1] - 4, table.shape[1])]
        assert size == 2 * 10 + 64, "twice the capacity, and 64 to spare"
        # One column from the end: it moves there.
        low = 1 if direction < 0 else size - 5
        table[0, :2] = low, low + 4
        table[1:, low : low + 4] = 10 * np.arange(4)
        remove_column(table, 3, low + 1 if direction > 0 else low + 2)
        at = insert_gap(table, 3, low if direction < 0 else int(table[0, 1]))
        table[1:, at] = 10 * direction + 15 + 5 * direction
        reached = ends[0] if direction < 0 else ends[1]
        assert tuple(table[0, :2]) == reached, "there is still room at the end"
        # At the end: it is put into the middle, then the entry is put in at the nearer end.
        before = used(table)
        at = insert_gap(table, 3, int(table[0, 0]))
        table[1:, at] = -50
        assert used(table) == [(-50, -50, -50), *before]
        assert tuple(table[0, :2]) == ((size - 4) // 2 - 1, (size - 4) // 2 + 4)


def test_all_that_end_together_at_the_shadow_time_count() -> None:
    heap, running = new_heap(6), new_running(6)
    for job, processors in enumerate([1, 2, 3, 4]):
        put_running(heap, running, 9, job, 5, processors)
    put_running(heap, running, 9, 4, 6, 20)
    assert reserve(running, 0, 0, 1) == (5, 9)


def test_jobs_come_off_their_heap_by_time_and_number() -> None:
    rng = np.random.default_rng(52)
    for _ in range(50):
        time, heap, plain = rng.integers(0, 6, 15), np.zeros(16, dtype=np.int64), []
        to_come = rng.permutation(15).tolist()
        while to_come or plain:
            if to_come and (not plain or rng.random() < 0.6):
                job = to_come.pop()
                push_job(heap, time, job)
                bisect.insort(plain, (int(time[job]), job))
            else:
                assert pop_job(heap, time) == plain.pop(0)[1]
            assert heap[0] == len(plain)
            assert sorted(heap[1 : len(plain) + 1].tolist()) == sorted(job for _, job in plain)
