"""The least that a speed may be: a failure where somebody measures, a line in the log of CI (shared machines)."""

from __future__ import annotations

import os

__all__ = ["hold"]


def hold(what: str, value: float, *, least: float) -> None:
    """Say ``value`` of ``what``, and fail if it is below ``least`` and this is not CI."""
    below = value < least
    print(f"{what}: {value:.3g} (at least {least:g}){' BELOW' if below else ''}")
    if below and os.environ.get("CI") != "true":
        raise AssertionError(f"{what} is {value:.3g}, at least {least:g} is promised; is the machine quiet?")
