"""Processor numbers for a schedule, with plain sets."""

from __future__ import annotations

from collections.abc import Sequence


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending numbers as (first, last) of each run."""
    actual: list[tuple[int, int]] = []
    for number in numbers:
        if actual and actual[-1][1] == number - 1:
            actual[-1] = (actual[-1][0], number)
        else:
            actual.append((number, number))
    return actual


def allocate(
    start: Sequence[int], end: Sequence[int], processors: Sequence[int], machine: int
) -> list[list[tuple[int, int]]]:
    """The intervals of each job: the lowest hole that takes it whole, else the lowest free processors."""
    result: list[list[tuple[int, int]]] = [[] for _ in start]
    running: list[tuple[int, set[int]]] = []
    free = set(range(machine))
    for job in sorted(range(len(start)), key=lambda row: (start[row], row)):
        for finished, held in [entry for entry in running if entry[0] <= start[job]]:
            free |= held
            running.remove((finished, held))
        wanted = processors[job]
        holes = [hole for hole in runs(sorted(free)) if hole[1] - hole[0] + 1 >= wanted]
        chosen = list(range(holes[0][0], holes[0][0] + wanted)) if holes else sorted(free)[:wanted]
        if len(chosen) < wanted:
            if end[job] > start[job]:
                raise ValueError(job)
            chosen = list(range(wanted))
        result[job] = runs(chosen)
        if end[job] > start[job]:
            free -= set(chosen)
            running.append((end[job], set(chosen)))
    return result
