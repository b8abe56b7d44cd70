"""One browser for all pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsers import launched


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started
