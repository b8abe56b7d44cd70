"""Named tuples that kernels are given behind a pointer: what they hold is read, and nothing of it is kept."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import kernel


@by_pointer
class Inner(NamedTuple):
    numbers: NDArray[np.float64]
    factor: float


@by_pointer
class Outer(NamedTuple):
    inner: Inner
    table: NDArray[np.int64]


@kernel
def fill(outer: Outer) -> float:
    """Write into the arrays of both, and return a sum."""
    for row in range(outer.table.shape[0]):
        outer.table[row, 1] = row
    outer.inner.numbers[0] = 4.0
    return outer.inner.factor * outer.inner.numbers.sum()


@pytest.mark.parametrize("calls", [1, 50])
def test_a_kernel_reads_and_writes_the_arrays_and_keeps_none(calls: int) -> None:
    numbers, table = np.ones(3), np.zeros((2, 2), dtype=np.int64)
    outer = Outer(Inner(numbers, 0.5), table)
    before = [sys.getrefcount(array) for array in (numbers, table)]
    for _ in range(calls):
        assert fill(outer) == 3.0
    assert numbers.tolist() == [4.0, 1.0, 1.0]
    assert table.tolist() == [[0, 0], [0, 1]]
    assert [sys.getrefcount(array) for array in (numbers, table)] == before
