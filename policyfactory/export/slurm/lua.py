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

_SHAPE = f"""
-- Slurm's marks for "not set", in fields of 32 and of 16 bits; "unlimited" is one more.
local NO_VAL, NO_VAL16 = 4294967294, 65534
-- A job without any limit, as Slurm's backfill scheduler counts it (s).
local UNLIMITED = {UNLIMITED_S}

-- The number in a field of a job, or of its record from before a change; nil if there is none.
local function number_in(field, mark, job, record)
  local value = tonumber(job[field])
  if value == nil or value <= 0 or value >= mark then
    value = record and tonumber(record[field])
  end
  if value and value > 0 and value < mark then return value + 0.0 end
  return nil
end

local function partition_of(job, record, partitions)
  local names = job.partition or (record and record.partition)
  if type(names) == "string" then
    for name in string.gmatch(names, "[^,]+") do
      if partitions[name] then return partitions[name] end
    end
  end
  for _, partition in pairs(partitions) do
    if partition.flag_default == 1 then return partition end
  end
  return {{}}
end

-- p: the time limit (s); without one, that of the partition.
local function requested_time(job, record, partitions)
  local asked = tonumber(job.time_limit) or NO_VAL
  if asked == NO_VAL and record then asked = tonumber(record.time_limit) or NO_VAL end
  if asked > 0 and asked < NO_VAL then return 60.0 * asked end
  local partition = partition_of(job, record, partitions)
  local default = asked == NO_VAL and number_in("default_time", NO_VAL, partition)
  local minutes = default or number_in("max_time", NO_VAL, partition)
  return minutes and 60.0 * minutes or UNLIMITED + 0.0
end

-- q: the largest of what the fields say; none of them alone is always right.
local function requested_processors(job, record)
  local tasks = number_in("num_tasks", NO_VAL, job) or 0.0
  local each = number_in("cpus_per_task", NO_VAL16, job) or 1.0
  local nodes = number_in("min_nodes", NO_VAL, job, record) or 1.0
  local on_each = number_in("pn_min_cpus", NO_VAL16, job, record) or 1.0
  return math.max(number_in("min_cpus", NO_VAL, job, record) or 1.0, tasks * each, nodes * on_each)
end

local function is_set(value)
  return value ~= nil and value ~= NO_VAL
end

-- Whether a change is one of the time limit or of the size; another partition may have another limit.
local function changes_shape(job)
  return is_set(job.time_limit) or is_set(job.partition)
    or (number_in("min_cpus", NO_VAL, job) or number_in("num_tasks", NO_VAL, job)
      or number_in("cpus_per_task", NO_VAL16, job) or number_in("min_nodes", NO_VAL, job)
      or number_in("pn_min_cpus", NO_VAL16, job)) ~= nil
end

-- The number that slurmctld sorts by, of a job that was submitted at a Unix time; r is at least 1 s.
local function value_of(job, record, partitions, submitted)
  local p = requested_time(job, record, partitions or {{}})
  local q = requested_processors(job, record)
  return whole_number(score(p, q, math.max(submitted - EPOCH, 1.0) + 0.0))
end

-- An error is logged; it never keeps a job from being submitted or changed.
local function attempt(what)
  local fine, problem = pcall(what)
  if not fine then pcall(slurm.log_error, "policyfactory: %s", tostring(problem)) end
  return fine
end
"""

_WHOLE_NUMBER = """
-- Lower scores get higher numbers, 1 to LARGEST, and none is cut off; no value gets 1.
local function whole_number(value)
  local u = (value - LOW) / (HIGH - LOW)
  local y = 0.125 + 0.75 * u
  if u < 0.0 then
    y = 0.125 / (1.0 - 6.0 * u)
  elseif u > 1.0 then
    y = 1.0 - 0.125 / (1.0 + 6.0 * (u - 1.0))
  end
  local number = math.floor(LARGEST - y * (LARGEST - 1.0))
  if not (number >= 1.0) then return 1 end
  if number > LARGEST then return LARGEST end
  return number
end
"""

_ENTRY = """
function slurm_job_submit(job_desc, part_list, submit_uid)
  policyfactory.submit(job_desc, part_list, submit_uid)
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  policyfactory.modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
"""


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
            Lua source that fills the table ``policyfactory`` with ``submit`` and ``modify``.
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
                _WHOLE_NUMBER.rstrip("\n"),
                _SHAPE.rstrip("\n"),
                "",
                "-- Global, so that another job_submit.lua can call it.",
                "policyfactory = {}",
                functions.rstrip("\n"),
                _ENTRY.rstrip("\n"),
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
