"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support import ROOT, shared_path


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Give the path of shared material, for example ``shared("traces/lublin_256.swf")``."""
    return shared_path


@pytest.fixture(scope="session")
def root() -> Path:
    """Give the project's top folder."""
    return ROOT
