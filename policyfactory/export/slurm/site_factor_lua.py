"""A policy as Slurm's ``job_submit.lua`` that sets ``site_factor``, the recommended way.

The priority plugin adds site_factor to its other factors, so fair-share and QOS still count; hold, release, requeue, a
restart and a change of the time limit by an ordinary user keep the order (seen with Slurm 22.05.8). A job without a
score has 0, less than any with one.
"""

from __future__ import annotations

from policyfactory.export.bundle import Export
from policyfactory.export.site import Site
from policyfactory.export.slurm.lua import first_steps, merge_steps, prepared
from policyfactory.export.targets import Target
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

function policyfactory.modify(job_desc, job_rec, part_list)
  attempt(function()
    if is_set(job_desc.site_factor) or not changes_shape(job_desc) then return end
    job_desc.site_factor = value_of(job_desc, job_rec, part_list, job_rec.submit_time)
  end)
end
"""

_INSTALL = (
    *first_steps(),
    "Jobs that wait already have site_factor 0 and would run last. Setting their limits to what they are scores them:",
    "$ squeue -h -t PD -o '%A %l' | while read job limit; do scontrol update JobId=$job TimeLimit=$limit; done",
    *merge_steps(),
)

_ROLLBACK = (
    (
        "Take lua out of JobSubmitPlugins, or put the former job_submit.lua back, and restart slurmctld. "
        "Then take the scores from the jobs that wait:"
    ),
    "$ squeue -h -t PD -o %A | while read job; do scontrol update JobId=$job SiteFactor=0; done",
)

_LIMITS = (
    (
        "site_factor is up to 2000000000 and the sum of all factors at most 4294967295. Weights of fair-share, QOS, "
        "age and the others count against it: 2000000000 is as much as the whole range of scores. With all weights 0 "
        "the formula alone decides."
    ),
    (
        "With PriorityType=priority/basic and SchedulerType=sched/builtin, Slurm starts jobs in submit order whatever "
        "their priority: use priority/multifactor."
    ),
    (
        "A requeued job keeps its score. An operator's scontrol update SiteFactor stays until the job's limit or size "
        "is changed."
    ),
)


def make(model: Model, site: Site) -> Export:
    """Return the export.

    Raises
    ------
    ExportError
        If the policy changes while a job waits, or counts from no fixed date.
    """
    return prepared(model, site, NAME).export(_FUNCTIONS, install=_INSTALL, rollback=_ROLLBACK, limits=_LIMITS)


TARGET = Target(NAME, "Slurm: job_submit.lua that sets site_factor, beside fair-share and QOS", make)
