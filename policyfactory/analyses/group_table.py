"""The groups of one log side by side: their sums in every case and under every policy, and what follows from them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.grouping import Grouping, GroupSums
from policyfactory.analyses.over_cases import median_of
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["GroupTable", "Measure", "gather"]

FloatArray = NDArray[np.float64]


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
    """

    title: str
    unit: str
    values: list[list[Estimate]]
    differences: list[list[Estimate]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class GroupTable:
    """All groups of one grouping of one log; users by work, classes from small to large.

    Parameters
    ----------
    log : str
        The log.
    grouping : Grouping
        How its jobs are divided.
    policies : tuple of str
        The first is the baseline.
    labels, shorts : list of str
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

    log: str
    grouping: Grouping
    policies: tuple[str, ...]
    labels: list[str]
    shorts: list[str]
    jobs: NDArray[np.int64]
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


def gather(
    evaluation: Evaluation, log: str, grouping: Grouping, seen: list[list[Any]], place: int, least: int
) -> GroupTable:
    """Return the groups of one log.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    log : str
        Which log.
    grouping : Grouping
        How the jobs were divided.
    seen : list
        ``seen[case][policy][place]`` is a `GroupSums` of that grouping.
    place : int
        Where this grouping is.
    least : int
        Jobs of a group, all cases together, below which it has no interval.
    """
    cases = [[kept[place] for kept in seen[row]] for row in evaluation.rows(log)]
    machine = evaluation.cases[int(evaluation.rows(log)[0])].machine
    keys = np.unique(np.concatenate([case[0].key for case in cases]))
    # Jobs and work are the same under every policy: those of the baseline count.
    count, work = (_aligned(keys, [case[:1] for case in cases], field)[:, 0] for field in ("jobs", "work"))
    jobs, total_work = count.sum(axis=0).astype(np.int64), work.sum(axis=0)
    order = np.argsort(-total_work, kind="stable") if grouping.name == "user" else np.arange(len(keys))
    enough = jobs >= least
    measures = []
    for title, unit, field in (("wait", "s", "wait"), ("bounded slowdown", "1", "bsld")):
        sums = _aligned(keys, cases, field)
        with np.errstate(invalid="ignore"):
            means = (sums / count[:, None, :])[:, :, order]  # a group without jobs in a case has no mean there
        measures.append(_measure(title, unit, means, enough[order]))
    return GroupTable(
        log,
        grouping,
        evaluation.policies,
        [grouping.label(int(key), machine) for key in keys[order]],
        [grouping.short(int(key), machine) for key in keys[order]],
        jobs[order],
        total_work[order],
        enough[order],
        *measures,
    )


def _aligned(keys: NDArray[np.int64], cases: list[list[GroupSums]], field: str) -> FloatArray:
    """Return float64 array (cases, policies, groups) of one field; 0 where a group has no jobs."""
    found = np.zeros((len(cases), len(cases[0]), len(keys)))
    for c, case in enumerate(cases):
        for k, sums in enumerate(case):
            found[c, k, np.searchsorted(keys, sums.key)] = getattr(sums, field)
    return found


def _measure(title: str, unit: str, means: FloatArray, enough: NDArray[np.bool_]) -> Measure:
    values, differences = [], []
    for k in range(means.shape[1]):
        own, base = means[:, k, :], means[:, 0, :]
        values.append([_estimate(own[:, g], enough[g]) for g in range(means.shape[2])])
        differences.append([_estimate(own[:, g] - base[:, g], enough[g]) for g in range(means.shape[2])])
    return Measure(title, unit, values, differences)


def _estimate(values: FloatArray, enough: np.bool_) -> Estimate:
    if enough:
        return median_of(values)
    there = values[np.isfinite(values)]
    return Estimate(float(np.median(there)), None, None, len(there))
