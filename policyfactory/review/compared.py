"""Two times of a machine compared: what is known before it is put into words."""

from __future__ import annotations

import dataclasses

from policyfactory.report.verdict import Verdict
from policyfactory.review.groups import Changed, Period
from policyfactory.statistics.intervals import Estimate

__all__ = ["METRICS", "Review", "Way"]

METRICS = ("wait", "bsld")


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """One way to take the load into account.

    Parameters
    ----------
    name : str
        In words.
    wait, bsld : Estimate
        The difference, after minus before, of the mean wait (s) and the mean bounded slowdown.
    simulated : bool
        Whether it is by a simulation, which alone knows what each week finds waiting from the weeks before.
    """

    name: str
    wait: Estimate
    bsld: Estimate
    simulated: bool = dataclasses.field(default=False, kw_only=True)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Review:
    """Two times compared.

    Parameters
    ----------
    before, after : Period
        The times.
    pairs : list of (int, int)
        Weeks of like load.
    ways : tuple of Way
        By matched weeks, by regression and, unless most requested times are invented, against the simulation.
    groups : list of Changed
        Users, sizes and partitions.
    gains : dict of str to Estimate
        What the policy gains over first come, first served in a simulation of each time, in mean bounded slowdown;
        empty without one.
    distances : tuple of float
        Of each time, the mean bounded slowdown of the record over that of simulated first come, first served.
    verdict : Verdict
        Did it help.
    """

    before: Period
    after: Period
    pairs: list[tuple[int, int]]
    ways: tuple[Way, ...]
    groups: list[Changed]
    gains: dict[str, Estimate]
    distances: tuple[float, ...]
    verdict: Verdict
