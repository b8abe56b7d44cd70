"""Fixtures of the tests of learn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from small_fits import few_fits


@pytest.fixture(scope="module", autouse=True)
def quick_fits() -> Iterator[None]:
    """Let fits take a tenth of their time."""
    with few_fits():
        yield
