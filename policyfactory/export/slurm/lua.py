"""What both Lua exports for Slurm share: the score of a job as slurmctld describes it to ``job_submit.lua``.

Seen with Slurm 22.05.8, whose scripts run in Lua 5.1:

- A field that is not set is 4294967294, or 65534 where it has 16 bits; 4294967295 is "unlimited". The size of a job is
  in up to five fields, of which none alone is right: ``-n 4 -c 2`` fills min_cpus, ``-N 2 --mincpus=5`` only
  min_nodes and pn_min_cpus.
- The time limit is in minutes, rounded up. Without one, slurmctld takes the partition's DefaultTime, then its MaxTime.
- slurm_job_modify sees what is to be changed in the description, and the job as it was in the record.
- An error in a function is logged and the job accepted as it is; an error in loading the file keeps slurmctld from
  starting, but while it runs, the file of before stays in force.
"""

from __future__ import annotations

import dataclasses
import math

from policyfactory.export.expressible import fixed_epoch, prepare, static_only, unexpressed
from policyfactory.export.languages.code import helpers_of, write_expression
from policyfactory.export.languages.lua import LANGUAGE
from policyfactory.export.queue import UNLIMITED_S, scaled_priorities
from policyfactory.export.scale import Scale, learn_scale
from policyfactory.export.scripts import parts
from policyfactory.export.slurm.instructions import BACKFILLING, HARDWARE, SEEN, SETTINGS_FIRST, SIZE, TIME
from policyfactory.export.targets import Export, File, Site, header, instructions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["SETTINGS", "Script", "first_steps", "merge_steps", "prepared"]

# The reservation of one job in each partition makes backfilling EASY.
SETTINGS = (
    SETTINGS_FIRST,
    "JobSubmitPlugins=lua",
    "PriorityType=priority/multifactor",
    "SchedulerType=sched/backfill",
    "SchedulerParameters=bf_job_part_count_reserve=1",
)

_PARTS = parts("job_submit.lua")


@dataclasses.dataclass(frozen=True, slots=True)
class Script:
    """A policy on its way to ``job_submit.lua``.

    Parameters
    ----------
    model : Model
        Static, without m, counting from a fixed date if it has r.
    site : Site
        The cluster.
    target : str
        Name of the target.
    scale : Scale
        From its scores to whole numbers.
    """

    model: Model
    site: Site
    target: str
    scale: Scale

    def export(
        self, functions: str, *, install: tuple[str, ...], rollback: tuple[str, ...], limits: tuple[str, ...]
    ) -> Export:
        """Return the export with its one file.

        Parameters
        ----------
        functions : str
            Name of the part that fills the table ``policyfactory`` with ``submit`` and ``modify``.
        install, rollback, limits : tuple of str
            As in `Export`; what both scripts cannot do is added to ``limits``. All of it goes into the file as well.
        """
        limits = (*_shared_limits(self.model.policy), *limits)
        about = header(self.model, self.site, self.target, self.scale)
        about += instructions(SETTINGS, install, rollback, limits)
        text = "\n".join([*(f"-- {line}".rstrip() for line in about), "", self._source(functions), ""])
        priorities = scaled_priorities(self.model.policy, self.scale)
        return Export((File("job_submit.lua", text),), SETTINGS, install, rollback, limits, priorities, self.scale)

    def _source(self, functions: str) -> str:
        policy = self.model.policy
        return "\n".join(
            [
                f"local EPOCH = {policy.epoch.unix_time or 0} -- r counts from it (Unix s)",
                f"local LOW, HIGH, LARGEST = {self.scale.low!r}, {self.scale.high!r}, {self.scale.largest}.0",
                "",
                *helpers_of(policy.expression, LANGUAGE),
                "-- The score of a job; the job with the lowest runs first.",
                "local function score(p, q, r)",
                f"  return {write_expression(policy.expression, LANGUAGE)}",
                "end",
                _PARTS["whole_number"].rstrip("\n"),
                _PARTS["shape"].replace("@UNLIMITED@", str(UNLIMITED_S)).rstrip("\n"),
                "",
                "-- Global, so that another job_submit.lua can call it.",
                "policyfactory = {}",
                _PARTS[functions].rstrip("\n"),
                _PARTS["entry"].rstrip("\n"),
            ]
        )


def prepared(model: Model, site: Site, target: str) -> Script:
    """Return the policy with what a script needs to know: m written as a number, the epoch, the range of scores.

    Raises
    ------
    ExportError
        If the score changes while a job waits, counts from no fixed date, or needs the machine's size.
    """
    model = prepare(model, processors=site.processors)
    static_only(model.policy, target)
    fixed_epoch(model.policy, target)
    return Script(model, site, target, learn_scale(model.policy, site.sample, site.processors, largest=site.weight))


def first_steps() -> tuple[str, ...]:
    """Return how to put the script in place where there is none."""
    return (
        "Look whether Lua takes this file; with one that it does not, slurmctld does not start:",
        "$ luac5.1 -p THIS_FILE",
        (
            "Put this file as job_submit.lua beside slurm.conf on the host of slurmctld, and the settings into "
            "slurm.conf. Where there is a JobSubmitPlugins line, add lua to it (JobSubmitPlugins=all_partitions,lua): "
            "a second line would switch the plugins of the first one off, which only slurmctld.log says. Likewise add "
            "bf_job_part_count_reserve=1 to the SchedulerParameters that are there. Then restart slurmctld."
        ),
        "Later versions of it are read at the next submission, without a restart.",
    )


def merge_steps() -> tuple[str, ...]:
    """Return how to use the export beside a ``job_submit.lua`` that is there already."""
    return (
        (
            "Where there is a job_submit.lua already, save this file beside it as policyfactory.lua and add lines to "
            "the old one. At its top:"
        ),
        'local fine, problem = pcall(dofile, "/etc/slurm/policyfactory.lua")',
        'if not fine then slurm.log_error("policyfactory: %s", tostring(problem)) end',
        (
            "At the end of its slurm_job_submit, before it returns slurm.SUCCESS (a job for which it returns earlier "
            "has no score):"
        ),
        "if policyfactory then policyfactory.submit(job_desc, part_list, submit_uid) end",
        "At the end of its slurm_job_modify:",
        "if policyfactory then policyfactory.modify(job_desc, job_rec, part_list, modify_uid) end",
        "slurmctld reads job_submit.lua again when that file is newer: touch it after a change of policyfactory.lua.",
    )


def _shared_limits(policy: Policy) -> tuple[str, ...]:
    """Return what neither Lua export can do."""
    late = ("slurm-site-factor-c has the threshold.",) if math.isfinite(policy.threshold) else ()
    return (
        *unexpressed(policy),
        *late,
        SEEN,
        TIME,
        SIZE,
        HARDWARE,
        BACKFILLING,
    )
