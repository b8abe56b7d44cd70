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

_FUNCTIONS = """
-- A job without a site_factor has 0, which is last.
function policyfactory.submit(job_desc, part_list)
  attempt(function()
    if is_set(job_desc.site_factor) then return end
    job_desc.site_factor = value_of(job_desc, nil, part_list, os.time())
  end)
end

-- A change of nice scores again, so that a change to what it is scores jobs that had no score.
function policyfactory.modify(job_desc, job_rec, part_list)
  attempt(function()
    if is_set(job_desc.site_factor) or not (changes_shape(job_desc) or is_set(job_desc.nice)) then return end
    job_desc.site_factor = value_of(job_desc, job_rec, part_list, job_rec.submit_time)
  end)
end
"""

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
    return prepared(model, site, NAME).export(_FUNCTIONS, install=_INSTALL, rollback=_ROLLBACK, limits=limits)


TARGET = Target(NAME, "Slurm: job_submit.lua that sets site_factor, beside fair-share and QOS", make)
