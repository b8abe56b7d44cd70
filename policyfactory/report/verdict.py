"""The verdict of a report: a light, why, and what the numbers rest on."""

from __future__ import annotations

import dataclasses
from typing import Literal

__all__ = ["Light", "Verdict"]

Light = Literal["better", "cannot tell", "worse", "unsound"]


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What the numbers say, for who has to decide about a queue.

    Parameters
    ----------
    light : {"better", "cannot tell", "worse", "unsound"}
        ``better``: than what the site has now, and than first come, first served. ``unsound``: the simulation is too
        far from the record to judge by it.
    sentences : tuple of str
        Why, the most important first.
    caveats : tuple of str
        What the numbers rest on: dropped jobs, invented requests, load, time.
    """

    light: Light
    sentences: tuple[str, ...]
    caveats: tuple[str, ...] = ()
