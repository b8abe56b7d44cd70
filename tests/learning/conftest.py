"""Fixtures of the tests of learn."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def quick_fits(few_resamples: None) -> None:
    """Let fits take a tenth of their time."""
