"""What the targets that write site_factor or a priority tell an administrator: the same words in every one.

The commands for jobs that wait name the waiting tasks of an array one by one, all in one list. Seen with Slurm 22.05.8:
an update of ``JobId=12`` changes the running tasks as well, and may end them by their old limit; one of ``12_3`` splits
the task off the array's record; one of all waiting tasks in a list, ``12_[3,4,5]``, does neither. squeue without ``-r``
puts held tasks and others into one line.
"""

from __future__ import annotations

from policyfactory.core.units import DAY
from policyfactory.export.queue import UNLIMITED_S

__all__ = [
    "BACKFILLING",
    "HARDWARE",
    "SCORE_WAITING",
    "SEEN",
    "SETTINGS_FIRST",
    "SIZE",
    "TAKE_SCORES",
    "TIME",
    "TO_PLUGINS_PRIORITY",
    "UNSCORED",
    "beside",
]

# Of lines "ID VALUE" one for every job, and one for every array and value: "12_[3,4,5] VALUE".
_BY_ARRAY = (
    """awk -F'[_ ]' 'NF < 3; NF > 2 { t[$1 " " $3] = t[$1 " " $3] "," $2 } """
    """END { for (k in t) { split(k, a, " "); print a[1] "_[" substr(t[k], 2) "]", a[2] } }'"""
)
_WAITING = f"squeue -h -a -r -t PD -o '%i %y' | {_BY_ARRAY}"
_NOT_HELD = f"squeue -h -a -r -t PD -o '%Q %i %y' | sed -n '/^0 /!s/^[0-9]* //p' | {_BY_ARRAY}"

# Any update has slurmctld ask for the score again; one of nice to what it is changes nothing else.
SCORE_WAITING = f'$ {_WAITING} | while read job nice; do scontrol update "JobId=$job" Nice=$nice; done'
TAKE_SCORES = f'$ {_WAITING} | while read job nice; do scontrol update "JobId=$job" SiteFactor=0; done'
# A release sets nice to 0.
TO_PLUGINS_PRIORITY = (
    f'$ {_NOT_HELD} | while read job nice; do scontrol release "$job"; scontrol update "JobId=$job" Nice=$nice; done'
)
# Jobs with the site_factor 0.
UNSCORED = "$ sprio -h -o '%i %S' | awk '$2 == 0'"

SETTINGS_FIRST = (
    "# Where slurm.conf has one of these lines already, change that line: of two Slurm takes the last one only."
)

SEEN = "Seen with Slurm 22.05.8."
TIME = (
    "p has whole minutes, as Slurm's time limits have. Without --time it is the partition's DefaultTime, else its "
    f"MaxTime; without any limit it is {UNLIMITED_S // DAY} days, as for Slurm's backfilling."
)
SIZE = (
    "q is what a job asks for: with --exclusive not the whole nodes that it gets, in a heterogeneous job that of each "
    "component."
)
HARDWARE = "A job is processors and time: memory and GPUs are not looked at."
BACKFILLING = (
    "Backfilling by bf_job_part_count_reserve=1 is EASY for the first job of each partition. A reservation takes whole "
    "nodes: where jobs share nodes, fewer jobs pass than in a simulation."
)


def beside(largest: int) -> str:
    """Return what the other factors of a site count beside scores of 1 to ``largest``."""
    return (
        f"site_factor is up to {largest}, Slurm adds it to its other factors (fair-share, QOS, age, partition), and "
        f"the sum is at most 4294967295. A factor with the weight {largest} counts as much as the whole range of "
        "scores; one with a far smaller weight decides only between jobs of nearly the same score. With all weights 0 "
        "the formula alone decides. export --weight N makes N the largest number."
    )
