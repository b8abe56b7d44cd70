"""Sums over schedules, in exact fractions and one tick at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def total(values: Sequence[float]) -> Fraction:
    """Return the exact sum."""
    return sum((Fraction(value) for value in values), Fraction(0))


def weighted_total(values: Sequence[int], first: Sequence[int], second: Sequence[int]) -> Fraction:
    """Return the exact sum of the products."""
    return total([int(a) * int(b) * int(c) for a, b, c in zip(values, first, second, strict=True)])


def slowdown(wait: Sequence[int], run_time: Sequence[int], share: Sequence[int], least: int) -> list[Fraction]:
    """Return max((w + p) / (share * max(p, least)), 1) of each job."""
    jobs = zip(wait, run_time, share, strict=True)
    return [max(Fraction(int(w + p), int(s) * max(int(p), least)), Fraction(1)) for w, p, s in jobs]


def busy_integrals(start: Sequence[int], end: Sequence[int], processors: Sequence[int]) -> tuple[int, int]:
    """Return the sums over all ticks of the processors in use and of their square."""
    use = [
        sum(int(q) for s, e, q in zip(start, end, processors, strict=True) if s <= tick < e)
        for tick in range(min(start), max(end) + 1)
    ]
    return sum(use), sum(value * value for value in use)
