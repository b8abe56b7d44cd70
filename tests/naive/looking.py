"""Sums by group and integrals in bins, in exact fractions and interval by interval."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def group_sums(
    code: Sequence[int],
    groups: int,
    wait: Sequence[int],
    run_time: Sequence[int],
    processors: Sequence[int],
    least: int,
) -> tuple[list[int], list[int], list[int], list[Fraction]]:
    """Jobs, work, waits and bounded slowdowns of each group, exactly."""
    members = [[i for i, own in enumerate(code) if own == group] for group in range(groups)]
    return (
        [len(rows) for rows in members],
        [sum(int(processors[i]) * int(run_time[i]) for i in rows) for rows in members],
        [sum(int(wait[i]) for i in rows) for rows in members],
        [
            sum(
                (max(Fraction(int(wait[i] + run_time[i]), max(int(run_time[i]), least)), Fraction(1)) for i in rows),
                Fraction(0),
            )
            for rows in members
        ],
    )


def binned_integral(
    begin: Sequence[int], end: Sequence[int], weight: Sequence[int], origin: int, width: int, bins: int
) -> list[int]:
    """The overlap of every interval with every bin."""
    edges = [(origin + k * width, origin + (k + 1) * width) for k in range(bins)]
    return [
        sum(int(w) * max(0, min(int(e), high) - max(int(b), low)) for b, e, w in zip(begin, end, weight, strict=True))
        for low, high in edges
    ]
