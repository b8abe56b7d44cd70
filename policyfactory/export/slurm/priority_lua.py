"""A policy as Slurm's ``job_submit.lua`` that sets a job's priority itself, past the priority plugin.

For sites whose priority is nothing but the formula. Seen with Slurm 22.05.8: hold and release, and a release of a job
that is not held, put the plugin's own priority in place; ``--nice``, fair-share and QOS have no effect. Priority 0
means held, and 4294967295 is what a release sends: both are left alone, as is a priority that somebody gave.
"""

from __future__ import annotations

from policyfactory.export.slurm.instructions import TO_PLUGINS_PRIORITY
from policyfactory.export.slurm.lua import first_steps, merge_steps, prepared
from policyfactory.export.targets import Export, Site, Target
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make"]

NAME = "slurm-priority-lua"

_INSTALL = (
    "Prefer slurm-site-factor-lua, which has none of the limits below, unless something else needs site_factor.",
    *first_steps(),
    "Jobs that wait already keep the priority that they have.",
    *merge_steps(),
)

_ROLLBACK = (
    (
        "Take lua out of JobSubmitPlugins, or put the former job_submit.lua back, and restart slurmctld. "
        "Then give the jobs that wait, but for the held ones, the plugin's priority:"
    ),
    TO_PLUGINS_PRIORITY,
)

_LIMITS = (
    (
        "A job that is held and released, or released without being held, gets the priority plugin's own priority: "
        "with priority/multifactor and no weights 1, which is last."
    ),
    "Fair-share, QOS, age and --nice have no effect on a job with such a priority.",
    "After a change of limit or size by an ordinary user or an operator other than root, a job keeps its priority.",
    (
        "With PriorityType=priority/basic an unscored job is above all others, and with SchedulerType=sched/builtin as "
        "well, jobs start in submit order whatever their priority: use priority/multifactor."
    ),
)


def make(model: Model, site: Site) -> Export:
    """Return the export.

    Raises
    ------
    ExportError
        If the policy changes while a job waits, or counts from no fixed date.
    """
    return prepared(model, site, NAME).export("set_priority", install=_INSTALL, rollback=_ROLLBACK, limits=_LIMITS)


TARGET = Target(NAME, "Slurm: job_submit.lua that sets the priority itself; fair-share and QOS end", make)
