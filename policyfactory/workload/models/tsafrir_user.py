"""What a site knows of its users' estimates, worked into the defaults of the estimate model.

A pair (estimate, jobs) takes the place of the nearest popular estimate and of the nearest popularity; the rest is
scaled so that the head keeps its 89 %.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from policyfactory.core.errors import UsageError

__all__ = ["HEAD_PERCENT", "UserBin", "check_user_bins", "merge_sizes", "merge_times"]

UserBin = tuple[int, int]
HEAD_PERCENT = 89.0
_MAX_BINS = 20


def check_user_bins(user_bins: Sequence[UserBin], jobs: int, max_estimate: int) -> dict[int, int]:
    """Return jobs by estimate.

    Parameters
    ----------
    user_bins : sequence of (int, int)
        Estimate (s) and jobs.
    jobs : int
        Jobs altogether.
    max_estimate : int
        Longest estimate, s.

    Raises
    ------
    UsageError
        If a pair is out of range or comes twice, or if there are too many of them.
    """
    given: dict[int, int] = {}
    for time, count in user_bins:
        if not 1 <= time <= max_estimate:
            raise UsageError(f"user bin {time}={count}: an estimate is 1 to {max_estimate} s (the longest estimate)")
        if not 1 <= count <= jobs:
            raise UsageError(f"user bin {time}={count}: give 1 to {jobs} jobs (as many as there are)")
        if time in given:
            raise UsageError(f"user bin {time} s is given twice ({given[time]} and {count} jobs); give it once")
        given[time] = count
    allowed = _MAX_BINS - (max_estimate not in given)
    if len(given) > allowed:
        raise UsageError(
            f"{len(given)} user bins; the head has 20 values, one of them {max_estimate} s: give at most {allowed}"
        )
    if sum(given.values()) > jobs:
        raise UsageError(
            f"the user bins have {sum(given.values())} jobs together, more than the {jobs} of the workload"
        )
    return given


def merge_times(head: list[int], given: dict[int, int], max_estimate: int, joint: Collection[int]) -> list[int]:
    """Return the popular estimates with the user's among them.

    A new estimate replaces the nearest one: round values first, then those of ``joint``; never the longest one.
    Differs from the original, which can replace an estimate that the user gave by another one.

    Parameters
    ----------
    head : list of int
        The 20 default estimates, s, the longest first.
    given : dict of int to int
        Jobs by estimate (s).
    max_estimate : int
        Longest estimate, s.
    joint : collection of int
        Estimates that all logs share, s.
    """
    new = [time for time in given if time not in head]
    replaced: dict[int, int] = {}
    for group in (set(head) - set(joint), set(joint) & set(head)):
        old = group - {max_estimate} - set(given)
        for _, time, default in sorted((abs(time - default), time, default) for time in new for default in old):
            if time not in replaced.values() and default not in replaced:
                replaced[default] = time
    return [max_estimate, *sorted(replaced.get(time, time) for time in head[1:])]


def merge_sizes(
    sizes: list[float], given: dict[int, int], jobs: int, max_estimate: int
) -> list[tuple[float, int | None]]:
    """Return percentage and, if the user gave it, estimate of each popularity rank.

    The largest bin chooses first and takes the place of the nearest size; rank 1 is kept for the longest
    estimate. The other sizes are scaled to fill the head up to 89 %, or are 0 if the user's reach that far.

    Parameters
    ----------
    sizes : list of float
        The 20 default percentages, descending.
    given : dict of int to int
        Jobs by estimate (s).
    jobs : int
        Jobs altogether.
    max_estimate : int
        Longest estimate, s.
    """
    if not given:
        return [(size, None) for size in sizes]
    percent = {time: 100.0 * count / jobs for time, count in given.items()}
    defaults = list(sizes)
    if max_estimate in given:
        scale = (HEAD_PERCENT - percent[max_estimate]) / sum(sizes[1:])
        defaults = sorted([percent[max_estimate], *(size * scale for size in sizes[1:])], reverse=True)
    owner: dict[int, int] = {}
    for time in sorted(given, key=lambda t: -given[t]):
        free = [k for k in range(len(defaults)) if k not in owner and (k > 0 or time == max_estimate)]
        owner[min(free, key=lambda k: abs(percent[time] - defaults[k]))] = time
    rest = sum(size for k, size in enumerate(defaults) if k not in owner)
    known = sum(percent[time] for time in owner.values())
    scale = (HEAD_PERCENT - known) / rest if known < HEAD_PERCENT and rest else 0.0
    merged = [(percent[owner[k]], owner[k]) if k in owner else (size * scale, None) for k, size in enumerate(defaults)]
    return [merged[0], *sorted(merged[1:], key=lambda pair: -pair[0])]
