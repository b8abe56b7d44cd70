"""A policy as Slurm's ``job_submit.lua`` that sets ``site_factor``, the recommended way.

The priority plugin adds site_factor to its other factors, so fair-share and QOS still count; hold, release, requeue, a
restart and a change of the time limit by an ordinary user keep the order (seen with Slurm 22.05.8). A job without a
score has 0, less than any with one.
"""

from __future__ import annotations

from policyfactory.export.slurm.instructions import SCORE_WAITING, TAKE_SCORES, UNSCORED, beside
from policyfactory.export.slurm.lua import first_steps, merge_steps, prepared
from policyfactory.export.targets import Export, Site, Target
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make"]

NAME = "slurm-site-factor-lua"

_INSTALL = (
    *first_steps(),
    (
        "Jobs that wait already have site_factor 0 and would run last. Setting their nice values to what they are "
        "scores them and changes nothing else; running tasks of arrays are not touched:"
    ),
    SCORE_WAITING,
    "Jobs without a score, also later, after an error in the script:",
    UNSCORED,
    *merge_steps(),
)

_ROLLBACK = (
    (
        "Take lua out of JobSubmitPlugins, or put the former job_submit.lua back, and restart slurmctld. "
        "Then take the scores from the jobs that wait:"
    ),
    TAKE_SCORES,
)

_LIMITS = (
    (
        "With PriorityType=priority/basic and SchedulerType=sched/builtin, Slurm starts jobs in submit order whatever "
        "their priority: use priority/multifactor."
    ),
    (
        "A requeued job keeps its score. An operator's scontrol update SiteFactor stays until the job's limit, size, "
        "partition or nice is changed."
    ),
)


def make(model: Model, site: Site) -> Export:
    """Return the export.

    Raises
    ------
    ExportError
        If the policy changes while a job waits, or counts from no fixed date.
    """
    limits = (beside(site.weight), *_LIMITS)
    return prepared(model, site, NAME).export("set_site_factor", install=_INSTALL, rollback=_ROLLBACK, limits=limits)


TARGET = Target(NAME, "Slurm: job_submit.lua that sets site_factor, beside fair-share and QOS", make)
