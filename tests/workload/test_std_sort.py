"""The order of ``std::sort`` and, by it, the published estimates of paper 004's workload-model logs."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.workload.models.drand48 import largest_first
from policyfactory.workload.models.lublin import generate_lublin
from policyfactory.workload.models.tsafrir import tsafrir_estimates


def drawn(count: int, different: int) -> list[int]:
    """Return numbers below ``different`` of the linear congruential generator of ANSI C."""
    state, values = 12345, []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        values.append((state >> 8) % different)
    return values


def killer(count: int) -> list[int]:
    """Return what the median of three divides worst (Musser, 1997), so that heapsort takes over."""
    half = count // 2
    values = [0] * count
    for i in range(1, half + 1):
        if i % 2:
            values[i - 1], values[i] = i, half + i
        values[half + i - 1] = 2 * i
    return [-value for value in values]


# From the original: pointers to long, ordered with `*a > *b` by std::sort of g++ 12.2 (-O2); first rows and digest.
ORDERS = (
    (drawn(20, 3), [2, 17, 4, 11, 10, 1, 18, 16, 15, 7, 6, 0, 9, 8, 12, 13, 14, 5, 3, 19], "fc097702f89294dd"),
    ([0] * 17, [8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1], "8c5e2fd03fd34471"),
    (drawn(1000, 5), [199, 908, 175, 178, 179, 906, 457, 456, 185, 186], "a4fe67cefb813a1a"),
    (drawn(20_000, 300), [5396, 14157, 8013, 7997, 8143, 6439, 16260, 960], "ace56228157f76a5"),
    (killer(4000), [0, 2000, 2, 2001, 4, 2002, 6, 2003, 8, 2004, 10], "0962fcfda5503ea8"),
)


@pytest.mark.parametrize(("values", "first", "digest"), ORDERS, ids=["20x3", "17x1", "1000x5", "20000x300", "killer"])
def test_equal_values_are_left_as_by_the_original(values: list[int], first: list[int], digest: str) -> None:
    rows = largest_first(np.array(values))
    assert rows[: len(first)].tolist() == first
    assert hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest().startswith(digest)


@given(st.lists(st.integers(-5, 5), max_size=120))
def test_it_sorts(values: list[int]) -> None:
    rows = largest_first(np.array(values, dtype=np.int64))
    assert sorted(rows.tolist()) == list(range(len(values)))
    assert [values[row] for row in rows] == sorted(values, reverse=True)


# Column 9 of the first rows of lublin_256_est.swf and lublin_1024_est.swf, github.com/hpcsched/gen-sched-policies.
PUBLISHED = {
    256: (1488557399, [
        600, 10800, 900, 10800, 3600, 1200, 162754, 64080, 1200, 600, 300, 600, 1200, 43320, 162754, 300, 1800, 18000,
        64800, 144000, 162754, 162754, 162754, 36000, 1200, 1200, 162754, 1200, 162754, 7200, 27120, 28800, 1800,
    ]),
    1024: (1489595336, [
        7200, 1200, 1200, 1800, 300, 18000, 18000, 1800, 1200, 162754, 900, 1800, 1800, 21600, 162754, 162754, 7200,
        300, 900, 162754, 1200, 300, 45660, 300, 900, 300, 72000, 900, 600, 43200, 300, 900, 300, 1200, 300,
    ]),
}  # fmt: skip


@pytest.mark.parametrize("processors", PUBLISHED)
def test_published_estimates_are_met_job_by_job(processors: int) -> None:
    seed, estimates = PUBLISHED[processors]
    jobs = generate_lublin(processors, 20_000, seed=seed, stream="drand48", umed=np.log2(processors) - 2.5)
    made = tsafrir_estimates(jobs, max_estimate=162754, seed=0, stream="drand48")
    assert made.requested_time[: len(estimates)].tolist() == estimates
    # Kept in the order of the log, equal run times get other estimates: the order of the sort is what makes them meet.
    ours = tsafrir_estimates(jobs, max_estimate=162754, seed=0)
    assert ours.requested_time[: len(estimates)].tolist() != estimates
