"""Jobs of a log that could never start on a site under Slurm's rules, before anything is simulated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from policyfactory.core.errors import EvaluationError
from policyfactory.core.text import counted
from policyfactory.simulate.slurm.jobs import place_jobs
from policyfactory.simulate.slurm.shares import shares_of
from policyfactory.site.fits import Fit, fit_jobs, in_own_partitions, in_partitions, mostly_of_others, without_strangers
from policyfactory.site.layout import lay_out
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload

__all__ = ["fit_to", "never_words", "without_misfits"]

_MOST_NAMED = 5


def fit_to(site: Site, workload: Workload) -> Fit:
    """Return which jobs of a workload could run on an empty site, by all that the simulation refuses jobs for.

    Parameters
    ----------
    site : Site
        Any. For a clock of other ticks than seconds, only what the jobs ask for is compared with what there is.
    workload : Workload
        Any; what it does not say of a job stops none.
    """
    if workload.ticks != 1:
        return fit_jobs(site, workload)
    own = in_partitions(site, workload)
    rows = np.flatnonzero(own)
    never = _never(workload.select(own), site)
    return fit_jobs(site, workload, {int(rows[row]): why for row, why in never.items()})


def without_misfits(workload: Workload, site: Site) -> tuple[Workload, str]:
    """Return a workload without the jobs that could never start on a site, and in a sentence which these are.

    They ran, so the site has changed since, or its file is wrong; `policyfactory.fidelity` says whether there are too
    many of them for anything that is simulated to be trusted.

    Parameters
    ----------
    workload : Workload
        Any; times in seconds.
    site : Site
        A described one.

    Returns
    -------
    workload : Workload
        On the same clock.
    left_out : str
        How many there were, and the first of them; empty if none was left out.

    Raises
    ------
    EvaluationError
        If most jobs are so, apart from those of partitions that the site does not have, or the clock does not count
        seconds.
    """
    workload, strangers = without_strangers(workload, site)
    if not in_partitions(site, workload).all():
        return workload, strangers
    never = _never(workload, site)
    if not never:
        return workload, strangers
    if mostly_of_others(len(workload) - len(never), len(workload)):
        raise EvaluationError(
            f"{workload.name}: {len(never):,} of {counted(len(workload), 'job')} never start on site {site.name}: "
            f"{never_words(workload, never)}; is this log of another cluster? policyfactory site check LOG SITE counts "
            "such jobs by their reasons; correct the site file"
        )
    stays = np.ones(len(workload), dtype=np.bool_)
    stays[list(never)] = False
    sentence = (
        f"{len(never):,} of {counted(len(workload), 'job')} of {workload.name} {'is' if len(never) == 1 else 'are'} "
        f"left out: {'it' if len(never) == 1 else 'they'} could never start on site {site.name}: "
        f"{never_words(workload, never)}."
    )
    return workload.select(stays), f"{strangers} {sentence}".strip()


def never_words(workload: Workload, never: Mapping[int, str]) -> str:
    """Return the first jobs that never start, by row, with the reason of each."""
    stopped: dict[str, list[int]] = {}
    for row, why in never.items():
        stopped.setdefault(why, []).append(int(workload.job_id[row]))
    reasons = [f"{_listed(jobs)} ({why})" for why, jobs in list(stopped.items())[:_MOST_NAMED]]
    return "; ".join(reasons) + ("; and others" if len(stopped) > _MOST_NAMED else "")


def _never(workload: Workload, site: Site) -> dict[int, str]:
    none = np.full(len(workload), -1, dtype=np.int64)
    jobs = in_own_partitions(workload, site)
    return dict(sorted(place_jobs(jobs, site, lay_out(site), shares_of(site)[1], none + 1, none).never.items()))


def _listed(jobs: list[int]) -> str:
    rest = len(jobs) - _MOST_NAMED
    named = ", ".join(map(str, jobs[:_MOST_NAMED])) + (f" and {rest:,} more" if rest > 0 else "")
    return f"job{'s' if len(jobs) > 1 else ''} {named}"
