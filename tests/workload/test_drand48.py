"""The C library's random numbers: values of glibc and libstdc++, printed by a C++ program (g++ -std=c++11)."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive.drand48 as naive
from policyfactory.workload.models.drand48 import GlibcRand, lrand48_values, random_shuffle, seed48, uniform48


@pytest.mark.parametrize(
    ("seed", "values"),
    [
        (0, [1804289383, 846930886, 1681692777, 1714636915]),  # srand(0) is srand(1)
        (1, [1804289383, 846930886, 1681692777, 1714636915]),
        (42, [71876166, 708592740, 1483128881, 907283241]),
        (2**31, [1336741213, 1210407648, 1447044896, 337392383]),
        (2**32 - 1, [254925627, 1205188300, 366127624, 1401405153]),
    ],
)
def test_rand_is_glibcs(seed: int, values: list[int]) -> None:
    rand = GlibcRand(seed)
    assert [rand() for _ in values] == values


@pytest.mark.parametrize(
    ("seed", "values", "first", "second"),
    [
        (0, [366850414, 1610402240, 206956554], "0x1.5ddb16e28808p-3", "0x1.7ff32702c6fp-1"),
        (1, [89400484, 976015093, 1792756325], "0x1.5509292a202p-5", "0x1.d16677a98dep-2"),
        (-1, [644300343, 97305740, 768640432], "0x1.3339f1bd4404p-2", "0x1.7331230c6fp-5"),
        (2**32 + 7, [572184555, 1464659504, 570136708], "0x1.10d6bf5d4404p-2", "0x1.5d33b8c0c6fp-1"),
    ],
)
def test_lrand48_and_drand48_are_glibcs(seed: int, values: list[int], first: str, second: str) -> None:
    assert lrand48_values(seed48(seed), 3).tolist() == values
    state = seed48(seed)
    assert [uniform48(state), uniform48(state)] == [float.fromhex(first), float.fromhex(second)]


def test_random_shuffle_is_libstdcxxs() -> None:
    values = list(range(12))
    rand = GlibcRand()
    random_shuffle(values, rand)
    assert values == [4, 10, 11, 8, 0, 5, 2, 1, 6, 9, 3, 7]
    random_shuffle(values, rand)
    assert values == [4, 10, 1, 2, 5, 8, 9, 6, 7, 0, 3, 11]


def test_they_are_the_numbers_of_this_machines_library() -> None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        pytest.skip("the C library is not glibc")
    library.lrand48.restype = ctypes.c_long
    for seed in (3, 99, 20**5):
        library.srand48(ctypes.c_long(seed))
        library.srand(seed)
        rand = GlibcRand(seed)
        assert lrand48_values(seed48(seed), 500).tolist() == [library.lrand48() for _ in range(500)]
        assert [rand() for _ in range(500)] == [library.rand() for _ in range(500)]


@given(st.integers(-(2**40), 2**40))
def test_kernels_are_their_plain_twins(seed: int) -> None:
    plain = seed48(seed).tolist()
    assert lrand48_values(seed48(seed), 20).tolist() == naive.lrand48_values(plain, 20)
    state, plain = seed48(seed), seed48(seed).tolist()
    assert [uniform48(state) for _ in range(20)] == [naive.uniform48(plain) for _ in range(20)]
    assert state.tolist() == plain
    assert state.dtype == np.int64
