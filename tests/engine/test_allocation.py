"""Processor numbers: the kernel does what the plain twin does, and nothing overlaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from naive.allocation import allocate as naive_allocate
from policyfactory.engine.metrics import _release, allocate
from support import examples

Jobs = tuple[list[int], list[int], list[int], int]


def fast(
    start: list[int], end: list[int], processors: list[int], machine: int
) -> tuple[int, list[list[tuple[int, int]]]]:
    starts, ends, sizes = (np.array(column, dtype=np.int64) for column in (start, end, processors))
    failed, first, stop, low, high = allocate(
        starts, ends, sizes, machine, np.argsort(starts, kind="stable"), np.argsort(ends, kind="stable")
    )
    return failed, [[(int(low[i]), int(high[i])) for i in range(a, b)] for a, b in zip(first, stop, strict=True)]


@st.composite
def schedules(draw: st.DrawFn) -> Jobs:
    """Jobs that start in submit order as soon as they fit: any such list is a schedule."""
    machine = draw(st.integers(1, 12))
    start: list[int] = []
    end: list[int] = []
    size: list[int] = []
    clock = 0
    for _ in range(draw(st.integers(0, 25))):
        wanted, length = draw(st.integers(1, machine)), draw(st.integers(0, 6))
        clock += draw(st.integers(0, 2))
        while sum(q for a, b, q in zip(start, end, size, strict=True) if a <= clock < b) + wanted > machine:
            clock += 1
        start.append(clock)
        end.append(clock + length)
        size.append(wanted)
    return start, end, size, machine


@examples(300)
@given(schedules(), st.randoms())
def test_the_kernel_is_its_plain_twin_and_no_processor_has_two_jobs(jobs: Jobs, random: object) -> None:
    start, end, size, machine = jobs
    failed, result = fast(*jobs)
    assert failed == -1
    assert result == naive_allocate(*jobs)
    for intervals, wanted in zip(result, size, strict=True):
        assert sum(high - low + 1 for low, high in intervals) == wanted
        assert all(0 <= low <= high < machine for low, high in intervals)
        assert intervals == sorted(intervals)
    for at in range(max(end, default=0)):
        held = [
            number
            for a, b, intervals in zip(start, end, result, strict=True)
            if a <= at < b
            for low, high in intervals
            for number in range(low, high + 1)
        ]
        assert len(held) == len(set(held)), f"a processor has two jobs at {at}"


def test_holes_are_used_whole_first_and_then_from_below() -> None:
    # 8 processors. A 0-1, B 2-3, C 4-5, D 6-7 start at 0; A and C end at 1.
    #   t=1: E needs 2 -> hole 0-1.  F needs 2 -> hole 4-5.
    #   B ends at 2, E at 3, D at 3: free 0-3 and 6-7. G needs 5 at 3 -> 0-3 and 6.
    start, end, size = [0, 0, 0, 0, 1, 1, 3], [1, 2, 1, 3, 3, 9, 9], [2, 2, 2, 2, 2, 2, 5]
    failed, result = fast(start, end, size, 8)
    assert failed == -1
    assert result == [[(0, 1)], [(2, 3)], [(4, 5)], [(6, 7)], [(0, 1)], [(4, 5)], [(0, 3), (6, 6)]]


def test_too_many_processors_at_once_name_the_job() -> None:
    failed, _ = fast([0, 1], [5, 5], [3, 2], 4)
    assert failed == 1


def test_a_job_of_no_length_takes_nothing_from_the_others() -> None:
    # The machine is full; two jobs of 0 s at that instant still get numbers.
    failed, result = fast([0, 2, 2, 2], [4, 2, 2, 4], [3, 4, 1, 1], 4)
    assert failed == -1
    assert result == [[(0, 2)], [(0, 3)], [(3, 3)], [(3, 3)]]


def test_many_holes_outgrow_the_first_work_space() -> None:
    # 400 single processors, every second one freed: 200 holes, then one job takes all of them.
    start = [0] * 400 + [1]
    end = [1 if number % 2 else 9 for number in range(400)] + [9]
    failed, result = fast(start, end, [1] * 400 + [200], 400)
    assert failed == -1
    assert result[-1] == [(number, number) for number in range(1, 400, 2)]


def test_many_intervals_outgrow_the_first_work_space() -> None:
    # 120 single processors, every second one freed: 60 holes. Twelve jobs, one after the other, take all of them.
    start = [0] * 120 + list(range(1, 13))
    end = [1 if number % 2 else 99 for number in range(120)] + list(range(2, 14))
    size = [1] * 120 + [60] * 12
    failed, result = fast(start, end, size, 120)
    assert failed == -1
    assert result == naive_allocate(start, end, size, 120)
    assert sum(len(intervals) for intervals in result) == 120 + 12 * 60
    # Then a job of no length finds the machine full, with just no room left for its interval.
    for jobs in range(8, 40):
        start, end = [0] * 4 + [0] * jobs, [9] * 4 + [0] * jobs
        failed, result = fast(start, end, [1] * 4 + [3] * jobs, 4)
        assert failed == -1
        assert result[4:] == [[(0, 2)]] * jobs


def test_a_job_of_no_length_frees_nothing_when_it_ends() -> None:
    # B has processors 0 and 1 for no time while A holds them: what ends at 2 must not be free for C, which fails.
    failed, _ = fast([0, 2, 3], [9, 2, 5], [4, 2, 1], 4)
    assert failed == 2


def test_what_is_freed_on_both_sides_of_a_hole_is_one_hole() -> None:
    # 9 processors, A to C hold three each; A and C end, then B: the next job gets 0 to 8 as one interval.
    failed, result = fast([0, 0, 0, 3], [1, 2, 1, 5], [3, 3, 3, 9], 9)
    assert (failed, result[3]) == (-1, [(0, 8)])


def test_a_hole_that_is_used_up_is_gone() -> None:
    # 7 single processors; 0 and 2 are free at 1, and G takes both; 4 and 6 are free at 2, and H takes these.
    start, end = [0] * 7 + [1, 2], [1, 99, 1, 99, 2, 99, 2, 99, 99]
    failed, result = fast(start, end, [1] * 7 + [2, 2], 7)
    assert failed == -1
    assert result[7:] == [[(0, 0), (2, 2)], [(4, 4), (6, 6)]]


def test_holes_that_come_from_above_are_in_order() -> None:
    # 6, 4, 2 and 0 are freed one after the other, each before all others; then one job takes the four.
    failed, result = fast([0] * 7 + [4], [4, 99, 3, 99, 2, 99, 1, 99], [1] * 7 + [4], 7)
    assert failed == -1
    assert result[7] == [(0, 0), (2, 2), (4, 4), (6, 6)]


def test_holes_above_one_that_is_joined_stay_as_they_are() -> None:
    # Seven jobs on 16 processors; when those on 0-1, 2-3, 8-9 and 14-15 have ended, there are the holes 0-3, 8-9 and
    # 14-15. At 3 the job on 4-7 ends: 0-9 is one hole, and 14-15 is the second.
    start, end, size = [0] * 7, [1, 1, 3, 1, 9, 9, 1], [2, 2, 4, 2, 2, 2, 2]
    start, end, size = [*start, 3, 3], [*end, 9, 9], [*size, 10, 2]
    failed, result = fast(start, end, size, 16)
    assert failed == -1
    assert result == naive_allocate(start, end, size, 16)
    assert result[7:] == [[(0, 9)], [(14, 15)]]


def test_a_hole_below_all_others_is_not_joined_with_what_the_list_has_no_use_for() -> None:
    free_low, free_high = np.array([9, -1, -1]), np.array([9, -1, 3])
    assert _release(free_low, free_high, 1, 4, 5) == 2
    assert free_low[:2].tolist() == [4, 9]
    assert free_high[:2].tolist() == [5, 9]
