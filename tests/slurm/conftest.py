"""Clusters for the tests of this folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from schedulers.processes import short_directory
from schedulers.slurm import Cluster


@pytest.fixture
def start_cluster() -> Iterator[Callable[..., Cluster]]:
    """Give a function that starts a `Cluster` with the given arguments; all are stopped and removed afterwards."""
    with contextlib.ExitStack() as stack:

        def start(**arguments: Any) -> Cluster:
            return stack.enter_context(Cluster(stack.enter_context(short_directory()), **arguments))

        yield start
