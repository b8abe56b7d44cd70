"""What each user got: means of waits and slowdowns in every case and over all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.grouping import UNKNOWN_USER, GroupSums

__all__ = ["Means", "UserMeans", "users_of"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Means:
    """The users of one schedule, or of several together.

    Parameters
    ----------
    user : int64 array (users,), ascending
        Their numbers.
    jobs : int64 array (users,)
        Their jobs.
    wait : float64 array (users,), s
        Mean wait of each.
    bsld : float64 array (users,)
        Mean bounded slowdown of each.
    """

    user: NDArray[np.int64]
    jobs: NDArray[np.int64]
    wait: FloatArray
    bsld: FloatArray


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class UserMeans:
    """The users of one log.

    Parameters
    ----------
    cases : list of list of Means [case][policy]
        Users with enough jobs in the case.
    overall : list of Means [policy]
        All cases together; every known user.
    unknown_jobs, jobs : int
        Jobs of unknown users, which belong to nobody here, and all jobs; of all cases.
    """

    cases: list[list[Means]]
    overall: list[Means]
    unknown_jobs: int
    jobs: int

    @property
    def count(self) -> int:
        """Known users with enough jobs in at least one case."""
        return len(np.unique(np.concatenate([case[0].user for case in self.cases])))


def users_of(cases: Sequence[Sequence[GroupSums]], min_jobs: int) -> UserMeans:
    """Return the users' means.

    Parameters
    ----------
    cases : sequence of sequence of GroupSums [case][policy]
        Sums by user.
    min_jobs : int
        Users with fewer jobs in a case are left out of it.
    """
    base = [case[0] for case in cases]
    return UserMeans(
        [[_means(sums, min_jobs) for sums in case] for case in cases],
        [_means(_together([case[k] for case in cases]), 1) for k in range(len(cases[0]))],
        sum(int(sums.jobs[sums.key == UNKNOWN_USER].sum()) for sums in base),
        sum(int(sums.jobs.sum()) for sums in base),
    )


def _means(sums: GroupSums, least: int) -> Means:
    kept = (sums.key != UNKNOWN_USER) & (sums.jobs >= least)
    jobs = sums.jobs[kept]
    return Means(sums.key[kept], jobs, sums.wait[kept] / jobs, sums.bsld[kept] / jobs)


def _together(parts: Sequence[GroupSums]) -> GroupSums:
    """Return the sums over several schedules."""
    key, code = np.unique(np.concatenate([sums.key for sums in parts]), return_inverse=True)

    def added(field: str) -> FloatArray:
        return np.bincount(code, np.concatenate([getattr(sums, field) for sums in parts]), len(key)).astype(np.float64)

    return GroupSums(key, added("jobs").astype(np.int64), added("work"), added("wait"), added("bsld"))
