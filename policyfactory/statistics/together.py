"""What verdicts are called when they are judged together.

S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979: the
probability that any of the words is wrong is at most 5 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from policyfactory.statistics.intervals import LEVEL

__all__ = ["Verdict", "holm", "judged_together"]

Verdict = Literal["better", "worse", "differs", "no difference", "too few cases"]


def judged_together(
    verdicts: Sequence[Verdict], p_values: Sequence[float | None]
) -> list[tuple[Verdict, float | None]]:
    """Return what differences are called when they are judged together, and their p-values after Holm.

    Parameters
    ----------
    verdicts : sequence of str
        What each is called alone (`verdict_of`).
    p_values : sequence of float or None
        The p-value of each; one without an interval has none, and does not count.
    """
    adjusted = iter(holm(p for p in p_values if p is not None))
    results: list[tuple[Verdict, float | None]] = []
    for verdict, p in zip(verdicts, p_values, strict=True):
        own = None if p is None else next(adjusted)
        stands = verdict == "too few cases" or (own is not None and own < 1 - LEVEL)
        results.append((verdict if stands else "no difference", own))
    return results


def holm(p_values: Iterable[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's procedure, in the order in which they were given."""
    # Not statsmodels' multipletests, which it equals: that collects garbage at each call, a tenth of a second here.
    given = np.array(list(p_values), dtype=np.float64)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return [float(p) for p in adjusted]
