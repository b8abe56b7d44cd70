"""What the courses of total wait say, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.core.text import counted, enumerated, number_text
from policyfactory.statistics.means import estimate_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyfactory.analyses.improvement_course import Courses

__all__ = ["courses_in_words"]


def courses_in_words(found: Sequence[Courses]) -> tuple[str, ...]:
    """Return a paragraph a log: who saves most, what the tuners recover, how steady it is."""
    return tuple(_of_log(courses) for courses in found)


def _of_log(courses: Courses) -> str:
    cases = len(courses.total_s)
    over = courses.log if cases == 1 else f"{courses.log}, {counted(cases, 'case')}"
    if len(courses.names) == 1:
        return f"{over}: there is nothing to compare {courses.names[0]} with."
    if not courses.has_ratio:
        return f"{over}: no job waits under {courses.names[0]}, so nothing can be saved."
    fixed = [at for at in range(1, len(courses.names)) if not courses.tuned[at]]
    tuners = [at for at in range(1, len(courses.names)) if courses.tuned[at]]
    sentences = [_best(courses, fixed, over)] if fixed else []
    if tuners:
        sentences += _tuners(courses, fixed, tuners, "" if fixed else f"{over}: ")
    return " ".join(sentences)


def _end(courses: Courses, at: int) -> float:
    return float(courses.mean[at, -1])


def _amount(courses: Courses, at: int) -> str:
    """Return the change at the end with the range of the cases: ``saves 16.2 % of FCFS's total wait (...)``."""
    value = _end(courses, at)
    word = "saves" if value < 0 else "adds"
    text = f"{word} {number_text(abs(value))} % of {courses.names[0]}'s total wait"
    estimate = estimate_ratio(courses.total_s[:, at], courses.total_s[:, 0])
    if estimate.interval is None:
        return text
    ends = sorted(abs(end) if value * end > 0 else -abs(end) for end in (estimate.interval.low, estimate.interval.high))
    return f"{text} (95 % interval {number_text(ends[0])} to {number_text(ends[1])})"


def _best(courses: Courses, fixed: Sequence[int], over: str) -> str:
    best = min(fixed, key=lambda at: _end(courses, at))
    if _end(courses, best) >= 0:
        return f"{over}: no policy waits less than {courses.names[0]} in total."
    half = courses.mean[best, (courses.mean.shape[1] - 1) // 2] / _end(courses, best)
    pace = f"{max(0, round(100 * half))} % of that in the first half of the time"
    return (
        f"{over}: of the policies, {courses.names[best]} {_amount(courses, best)}, {pace}; it is the best in hindsight."
    )


def _tuners(courses: Courses, fixed: Sequence[int], tuners: Sequence[int], start: str) -> list[str]:
    best = min(tuners, key=lambda at: _end(courses, at))
    of = [at for at in tuners if _end(courses, at) > 0]
    told = [f"{start}Of the tuners, {courses.names[best]} {_amount(courses, best)}{_recovered(courses, fixed, best)}."]
    if len(tuners) > 1:
        worst = max(tuners, key=lambda at: _end(courses, at))
        told.append(f"The last is {courses.names[worst]}, which {_amount(courses, worst)}.")
    if of:
        told.append(f"Worse than {courses.names[0]}: {enumerated(courses.names[at] for at in of)}.")
    return told


def _recovered(courses: Courses, fixed: Sequence[int], at: int) -> str:
    hindsight = min((_end(courses, one) for one in fixed), default=0.0)
    if hindsight >= 0 or _end(courses, at) >= 0:
        return ""
    return f", {round(100 * _end(courses, at) / hindsight)} % of what the best policy in hindsight saves"
