"""Logs and results of other simulators, read for the tests of the engine."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def oracle(shared: Callable[[str], Path]) -> Callable[[str], dict[str, np.ndarray]]:
    """Give the columns of a per-job result: job_id, submit, start, runtime, procs, requested and others."""

    def read(name: str) -> dict[str, np.ndarray]:
        with gzip.open(shared(f"oracles/online/{name}.csv.gz"), "rt") as file:
            rows = list(csv.DictReader(file))
        columns = {key: np.array([int(float(row[key])) for row in rows]) for key in rows[0]}
        order = np.lexsort((columns["job_id"], columns["submit"]))
        return {key: values[order] for key, values in columns.items()}

    return read
