"""Groups of jobs that a reader recognises: users, sizes, run times, requests; and their sums in one schedule.

Sizes are classes of powers of four, 1, 2-4, 5-16, 17-64 and so on: ten of them at most up to 262,144 processors, the
same on every machine, so that machines can be compared. Run times and requests are classes that people speak in: a
minute, an hour, a shift, a day. By run time means by the *actual* run time, since that is what a user experiences and
what the bounded slowdown divides by; by request means by what the scheduler knows, which a user can change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY, HOUR, MINUTE, counted
from policyfactory.engine.metrics import group_sums
from policyfactory.evaluate.analyses.analysis import LogView, marks_of, median_of
from policyfactory.simulate.metrics import TAU
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from policyfactory.simulate.schedule import Schedule

__all__ = [
    "GROUPINGS",
    "UNKNOWN_USER",
    "GroupSums",
    "GroupTable",
    "Grouping",
    "GroupingName",
    "Measure",
    "gather",
    "sums_by_user",
    "together",
]

GroupingName = Literal["size", "runtime", "request", "user"]

UNKNOWN_USER = -1
_SIZES = np.array([1, 2, *(4**k + 1 for k in range(1, 31))], dtype=np.int64)
_TIMES = (0, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY)
_TIME_NAMES = (
    ("under 1 min", "< 1 min"),
    ("1 to 10 min", "1-10 min"),
    ("10 min to 1 h", "10-60 min"),
    ("1 to 6 h", "1-6 h"),
    ("6 to 24 h", "6-24 h"),
    ("24 h or more", "24 h +"),
)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """The sums of each group in one schedule.

    Parameters
    ----------
    key : int64 array (groups,), ascending
        The user's number, or the number of the class.
    jobs : int64 array (groups,)
        Jobs, at least 1.
    work : float64 array (groups,), processor-seconds
        Sum of q p.
    wait : float64 array (groups,), s
        Sum of the waits.
    bsld : float64 array (groups,)
        Sum of the bounded slowdowns.
    """

    key: Int64Array
    jobs: Int64Array
    work: FloatArray
    wait: FloatArray
    bsld: FloatArray

    def mean(self, field: str) -> FloatArray:
        """Return the mean over the jobs of each group of what ``field`` is the sum of."""
        return np.asarray(getattr(self, field) / self.jobs)

    def with_known_users(self, least: int = 1) -> GroupSums:
        """Return those of the known users with at least so many jobs, if the groups are users."""
        kept = (self.key != UNKNOWN_USER) & (self.jobs >= least)
        return GroupSums(*(getattr(self, field.name)[kept] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True, slots=True)
class Grouping:
    """One way to divide the jobs.

    Parameters
    ----------
    name : {"size", "runtime", "request", "user"}
        What it is called in options and files.
    title : str
        What it divides by, as "by ..." goes on.
    many : str
        What its groups are called.
    phrase : str
        What comes before the label of a group in a sentence.
    sums : callable
        From a schedule to its `GroupSums`.
    names : callable
        From a key and the processors of the machine to the names of the group, in a sentence and below an axis.
    """

    name: GroupingName
    title: str
    many: str
    phrase: str
    sums: Callable[[Schedule], GroupSums]
    names: Callable[[int, int], tuple[str, str]]


def together(parts: Sequence[GroupSums]) -> GroupSums:
    """Return the sums over several schedules."""
    import pandas as pd

    names = [field.name for field in dataclasses.fields(GroupSums)]
    frames = [pd.DataFrame({name: getattr(sums, name) for name in names}) for sums in parts]
    added = pd.concat(frames).groupby("key").sum()
    return GroupSums(added.index.to_numpy(), *(column.to_numpy() for _, column in added.items()))


def _sums(schedule: Schedule, code: Int64Array, key: Int64Array) -> GroupSums:
    jobs = schedule.workload
    run_time = schedule.end - schedule.start
    least = TAU * jobs.ticks
    sums = group_sums(code, len(key), schedule.start - jobs.submit, run_time, jobs.processors, least)
    count, work, wait, bsld = sums
    there = count > 0
    ticks = jobs.ticks
    return GroupSums(key[there], count[there], work[there] / ticks, wait[there] / ticks, bsld[there])


def _by_time(schedule: Schedule, ticks: Int64Array) -> GroupSums:
    # Counting the edges that are passed is faster than searching among so few of them.
    code = np.zeros(len(ticks), dtype=np.int64)
    for edge in _TIMES[1:]:
        code += ticks >= edge * schedule.workload.ticks
    return _sums(schedule, code, np.arange(len(_TIMES)))


def _by_size(schedule: Schedule) -> GroupSums:
    jobs = schedule.workload
    if jobs.machine <= len(jobs):
        # A look into a table of all sizes is faster than a search for each job.
        code = (np.searchsorted(_SIZES, np.arange(jobs.machine + 1), side="right") - 1)[jobs.processors]
    else:
        code = np.searchsorted(_SIZES, jobs.processors, side="right") - 1
    return _sums(schedule, code, np.arange(int(np.searchsorted(_SIZES, jobs.machine, side="right"))))


def sums_by_user(schedule: Schedule) -> GroupSums:
    """Return the sums of each user; every unknown user is `UNKNOWN_USER`.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    """
    user = schedule.workload.user
    low, high = (int(user.min()), int(user.max())) if len(user) else (0, 0)
    if high - low >= 4 * len(user) + 1024:
        key, code = np.unique(user, return_inverse=True)
        return _sums(schedule, code, key)
    # Users are small numbers in most logs: a table finds their groups without sorting the jobs.
    return _sums(schedule, user - low, np.arange(low, high + 1))


def _size_names(key: int, machine: int) -> tuple[str, str]:
    low, high = int(_SIZES[key]), min(int(_SIZES[key + 1]) - 1, machine)
    first, last = (str(end) if end <= 4096 else f"{end // 1000}k" for end in (low, high))
    label = counted(low, "processor") if low == high else f"{low:,} to {high:,} processors"
    return label, first if first == last else f"{first}-{last}"


def _time_names(key: int, _machine: int) -> tuple[str, str]:
    return _TIME_NAMES[key]


def _user_names(key: int, _machine: int) -> tuple[str, str]:
    return ("unknown users", "unknown") if key == UNKNOWN_USER else (f"user {key}", str(key))


def _by_run_time(schedule: Schedule) -> GroupSums:
    return _by_time(schedule, schedule.end - schedule.start)


def _by_request(schedule: Schedule) -> GroupSums:
    return _by_time(schedule, schedule.workload.requested_time)


GROUPINGS: dict[GroupingName, Grouping] = {
    "size": Grouping("size", "size", "size classes", "jobs of ", _by_size, _size_names),
    "runtime": Grouping("runtime", "run time", "run-time classes", "jobs that run ", _by_run_time, _time_names),
    "request": Grouping("request", "requested time", "request classes", "jobs that request ", _by_request, _time_names),
    "user": Grouping("user", "user", "users", "", sums_by_user, _user_names),
}


# The groups of a log. -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """One measure of all groups.

    Parameters
    ----------
    title, unit : str
        What it is.
    values : list of list of Estimate [policy][group]
        The group's mean, over cases.
    differences : list of list of Estimate [policy][group]
        That minus the baseline's in the same case, over cases.
    marks : list of list of str [policy][group]
        What the differences are called, those of a group judged together.
    """

    title: str
    unit: str
    values: list[list[Estimate]]
    differences: list[list[Estimate]]
    marks: list[list[str]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class GroupTable(LogView):
    """All groups of one grouping of one log; users by work, classes from small to large.

    Parameters
    ----------
    grouping : Grouping
        How its jobs are divided.
    labels, shorts : tuple of str
        Names of the groups, for sentences and for axes.
    jobs : int64 array (groups,)
        Their jobs in all cases.
    work : float64 array (groups,), processor-seconds
        Their work in all cases.
    enough : bool array (groups,)
        Whether a group has enough jobs for an interval and to be named.
    wait, bsld : Measure
        Mean wait (s) and mean bounded slowdown.
    """

    grouping: Grouping
    labels: tuple[str, ...]
    shorts: tuple[str, ...]
    jobs: Int64Array
    work: FloatArray
    enough: NDArray[np.bool_]
    wait: Measure
    bsld: Measure

    @property
    def job_share(self) -> FloatArray:
        """Share of the jobs in %."""
        jobs: FloatArray = self.jobs.astype(np.float64)
        return 100.0 * jobs / float(jobs.sum())

    @property
    def work_share(self) -> FloatArray:
        """Share of the work in %; 0 if no work was done."""
        return 100.0 * self.work / max(float(self.work.sum()), 1e-300)

    def worst_without_interval(self, place: int) -> int | None:
        """Return the class that loses most wait of all under a policy, if it has no interval; None if it has one.

        Never a user: a few jobs of one person say nothing of that person.

        Parameters
        ----------
        place : int
            Which policy.
        """
        own = self.wait.differences[place]
        known = [group for group in range(len(own)) if np.isfinite(own[group].value)]
        worst = max(known, key=lambda group: own[group].value, default=None)
        if self.grouping.name == "user" or worst is None or own[worst].value <= 0:
            return None
        return worst if own[worst].interval is None else None


def gather(own: LogView, grouping: Grouping, place: int, least: int) -> GroupTable | None:
    """Return the groups of one log; None if they are users and no user is known.

    Parameters
    ----------
    own : LogView
        The log; ``own.kept[case][policy][place]`` is a `GroupSums` of that grouping.
    grouping : Grouping
        How the jobs were divided.
    place : int
        Where this grouping is.
    least : int
        Jobs of a group, all cases together, below which it has no interval.
    """
    cases = [[kept[place] for kept in case] for case in own.kept]
    by_user = grouping.name == "user"
    keys = np.unique(np.concatenate([case[0].key for case in cases]))
    if by_user and set(keys.tolist()) == {UNKNOWN_USER}:
        return None
    # Jobs and work are the same under every policy: those of the baseline count.
    count, work = (_aligned(keys, [case[:1] for case in cases], field)[:, 0] for field in ("jobs", "work"))
    jobs, total_work = count.sum(axis=0).astype(np.int64), work.sum(axis=0)
    order = np.argsort(-total_work, kind="stable") if by_user else np.arange(len(keys))
    enough = (jobs >= least)[order]
    measures = []
    for title, unit, field in (("wait", "s", "wait"), ("bounded slowdown", "1", "bsld")):
        with np.errstate(invalid="ignore"):
            # A group without jobs in a case has no mean there.
            means = (_aligned(keys, cases, field) / count[:, None, :])[:, :, order]
        own_values, minus = means.swapaxes(0, 1), (means - means[:, :1]).swapaxes(0, 1)
        values, differences = ([_estimates(one, enough) for one in each] for each in (own_values, minus))
        each_group = zip(zip(*differences, strict=True), np.moveaxis(means, 2, 0), strict=True)
        marks = zip(*(marks_of(some, of, own.drawn) for some, of in each_group), strict=True)
        measures.append(Measure(title, unit, values, differences, list(map(list, marks))))
    labels, shorts = zip(*(grouping.names(int(key), own.machine) for key in keys[order]), strict=True)
    return GroupTable(
        own.evaluation,
        own.log,
        own.kept,
        grouping,
        labels,
        shorts,
        jobs[order],
        total_work[order],
        enough,
        *measures,
    )


def _aligned(keys: Int64Array, cases: list[list[GroupSums]], field: str) -> FloatArray:
    """Return float64 array (cases, policies, groups) of one field; 0 where a group has no jobs."""
    aligned = np.zeros((len(cases), len(cases[0]), len(keys)))
    for c, case in enumerate(cases):
        for k, sums in enumerate(case):
            aligned[c, k, np.searchsorted(keys, sums.key)] = getattr(sums, field)
    return aligned


def _estimates(values: FloatArray, enough: NDArray[np.bool_]) -> list[Estimate]:
    """Return the median of each group's values, float64 array (cases, groups), with its interval if it has enough."""
    return [
        median_of(column)
        if known
        else Estimate(float(np.nanmedian(column)), None, None, int(np.isfinite(column).sum()))
        for column, known in zip(values.T, enough, strict=True)
    ]
