"""Logs and results of other simulators, read for the tests of the engine."""

from __future__ import annotations

import functools
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def oracle(shared: Callable[[str], Path]) -> Callable[[str], dict[str, np.ndarray]]:
    """Give the columns of a per-job result: job_id, submit, start, runtime, procs, requested and others."""

    @functools.cache
    def table(name: str) -> dict[str, np.ndarray]:
        with gzip.open(shared(f"oracles/online/{name}.csv.gz"), "rt") as file:
            keys = file.readline().strip().split(",")
            rows = np.loadtxt(file, delimiter=",", ndmin=2).astype(np.int64)
        return dict(zip(keys, rows.T, strict=True))

    def read(name: str) -> dict[str, np.ndarray]:
        columns = table(name)
        order = np.lexsort((columns["job_id"], columns["submit"]))
        return {key: values[order] for key, values in columns.items()}

    return read
