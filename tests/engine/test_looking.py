"""Sums by group and integrals in bins, against exact twins and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from naive import looking
from policyfactory.engine.metrics import binned_integral, group_sums

jobs = st.tuples(st.integers(0, 4), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 100_000))
intervals = st.tuples(st.integers(0, 200), st.integers(-5, 120), st.integers(0, 50))


def column(rows: list[tuple[int, ...]], at: int) -> NDArray[np.int64]:
    return np.array([row[at] for row in rows], dtype=np.int64)


@given(st.lists(jobs, max_size=40), st.integers(1, 50))
def test_sums_of_groups_are_exact_to_the_last_digits(rows: list[tuple[int, ...]], least: int) -> None:
    code, wait, run_time, width = (column(rows, at) for at in range(4))
    count, work, waited, slowdown = group_sums(code, 5, wait, run_time, width, least)
    expected = looking.group_sums(code.tolist(), 5, wait.tolist(), run_time.tolist(), width.tolist(), least)
    assert count.tolist() == expected[0]
    assert work.tolist() == expected[1]
    assert waited.tolist() == expected[2]
    # Every quotient is rounded once, the corrected sum once more.
    for result, exact in zip(slowdown.tolist(), expected[3], strict=True):
        assert abs(Fraction(result) - exact) <= exact * Fraction(3, 2**53)


def test_a_large_sum_does_not_swallow_small_ones() -> None:
    ones = np.array([2**60, *[1] * 1024], dtype=np.int64)
    zero = np.zeros(1025, dtype=np.int64)
    assert group_sums(zero, 1, ones, zero, zero + 1, 1)[2].tolist() == [2**60 + 1024]
    # Nor the other way round, nor in the work; neighbours of 2**60 are 256 apart.
    late = np.array([*[1] * 100, 2**60, *[1] * 40], dtype=np.int64)
    zero = np.zeros(141, dtype=np.int64)
    assert group_sums(zero, 1, late, zero, zero + 1, 1)[2].tolist() == [2**60 + 256]
    assert group_sums(zero, 1, zero, late, zero + 1, 1)[1].tolist() == [2**60 + 256]
    # A slowdown of 2**60 and 140 of 1.
    assert group_sums(zero, 1, late, zero, zero + 1, 1)[3].tolist() == [2**60 + 256]


@given(st.lists(intervals, max_size=30), st.integers(0, 60), st.integers(1, 40), st.integers(1, 12))
def test_bins_are_exact(rows: list[tuple[int, ...]], origin: int, width: int, bins: int) -> None:
    begin, weight = column(rows, 0), column(rows, 2)
    end = begin + column(rows, 1)
    result = binned_integral(begin, end, weight, origin, width, bins)
    assert result.tolist() == looking.binned_integral(
        begin.tolist(), end.tolist(), weight.tolist(), origin, width, bins
    )


@given(st.lists(intervals, min_size=1, max_size=30), st.integers(1, 40))
def test_bins_that_cover_all_add_up_to_the_whole(rows: list[tuple[int, ...]], width: int) -> None:
    begin, length, weight = column(rows, 0), np.maximum(column(rows, 1), 0), column(rows, 2)
    bins = int((begin + length).max()) // width + 1
    assert binned_integral(begin, begin + length, weight, 0, width, bins).sum() == (length * weight).sum()


def test_bins_by_hand() -> None:
    # 3 processors from 5 to 25, 2 from 10 to 12, bins of 10 from 0: 3x5; 3x10 + 2x2; 3x5.
    result = binned_integral(np.array([5, 10]), np.array([25, 12]), np.array([3, 2]), 0, 10, 3)
    assert result.tolist() == [15, 34, 15]
    # The same, seen from 8 on, in one bin of 10.
    assert binned_integral(np.array([5, 10]), np.array([25, 12]), np.array([3, 2]), 8, 10, 1).tolist() == [34]


@pytest.mark.parametrize("second", [10**6, 10**9])
def test_bins_of_a_fine_clock(second: int) -> None:
    begin, end = np.array([0, 3]) * 86400 * second, np.array([7, 5]) * 86400 * second
    result = binned_integral(begin, end, np.array([93_312, 1]), 0, 86400 * second, 8)
    days = [93_312, 93_312, 93_312, 93_313, 93_313, 93_312, 93_312, 0]
    np.testing.assert_allclose(result, np.array(days) * 86400.0 * second, rtol=1e-15)
    week = binned_integral(begin, end, np.array([93_312, 1]), 0, 7 * 86400 * second, 1)
    np.testing.assert_allclose(week, sum(days) * 86400.0 * second, rtol=1e-15)


def test_what_ends_where_the_bins_begin_is_outside() -> None:
    begin, end, weight = np.array([[-5, 0, 3], [0, 0, 7], [20, 25, 9]]).T
    assert binned_integral(begin, end, weight, 0, 5, 4).tolist() == [0.0] * 4
