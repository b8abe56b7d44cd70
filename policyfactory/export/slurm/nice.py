"""A policy as a script with which a user of Slurm orders own waiting jobs, without an administrator.

A job's priority is the sum of its factors minus its nice value; a user may set the nice value of own waiting jobs to
0 .. 2147483645 (NICE_OFFSET - 3), more and less, but not below 0 (Slurm 22.05.8, seen). So a user can only lower jobs.
The script lowers as little as makes the order: it goes through the jobs in the order of the formula, and each keeps
the priority that it has without nice unless that would put it before a job that goes first. A job that is lowered
more than needed would only wait for other users' jobs.

With an order that is made anew from what waits now, it needs neither a range of scores nor much room: two numbers a
job. Two, because the factors that Slurm computes anew are cut to whole numbers. It also follows policies that change
while a job waits, as often as it is run.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import ExportError
from policyfactory.core.units import DAY
from policyfactory.export.expressible import fixed_epoch, slope
from policyfactory.export.languages.awk import score_functions
from policyfactory.export.queue import UNLIMITED_S, Queue, overdue, scores_of
from policyfactory.export.scripts import filled
from policyfactory.export.targets import Export, File, Site, Target, header, instructions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["FILE_NAME", "GAP", "MOST_NICE", "TARGET", "make", "nice_priorities"]

FILE_NAME = "nice_jobs.sh"
GAP = 2  # between the priorities of neighbours
MOST_NICE = 2_147_483_645
_UNKNOWN = 1e9  # priority of every job where the queue does not tell it

_INSTALL = (
    f"Copy {FILE_NAME} to where you submit jobs; it needs sh, awk, squeue, scontrol and sbatch, and no rights.",
    "Look at what it would do:",
    f"$ sh {FILE_NAME} show",
    "Set the nice values of your waiting jobs, now and whenever jobs were added:",
    f"$ sh {FILE_NAME} set",
    "Or submit with it, arguments as for sbatch; it then sets them at once:",
    f"$ sh {FILE_NAME} sbatch -n 4 -t 10 job.sh",
)
_ROLLBACK = (f"$ sh {FILE_NAME} reset",)


def make(model: Model, site: Site) -> Export:
    """Return the script.

    Raises
    ------
    ExportError
        If the policy has m without ``site.processors``, or an r that needs a fixed epoch and has none.
    """
    policy = model.policy
    if "m" in policy.variables and site.processors is None:
        raise ExportError(f"policy {policy.name} has m; give the machine's size: --processors N")
    # A constant times r only adds the same to all jobs when the epoch moves: any epoch will do.
    moves = policy.epoch.rule == "oldest-waiting" or slope(policy.expression, "r") is not None
    epoch = policy.epoch.unix_time if moves else fixed_epoch(policy, "slurm-nice")
    limits = _limits(policy)
    awk = filled(
        "nice.awk",
        {
            "FIXED": int(epoch is not None),
            "EPOCH": epoch or 0,
            "UNLIMITED": UNLIMITED_S,
            "THRESHOLD": repr(policy.threshold) if math.isfinite(policy.threshold) else "-1",
            "PROCESSORS": site.processors or 1,
            "GAP": GAP,
            "MOST": MOST_NICE,
            "SCORE": score_functions(policy.expression),
        },
    )
    text = "\n".join(
        [
            "#!/bin/sh",
            *(f"# {line}".rstrip() for line in header(model, site, "slurm-nice")),
            *(f"# {line}".rstrip() for line in instructions((), _INSTALL, _ROLLBACK, limits)),
            "",
            filled("nice.sh", {"NAME": FILE_NAME, "AWK": awk}),
        ]
    )
    return Export(
        (File(FILE_NAME, text, executable=True),),
        install=_INSTALL,
        rollback=_ROLLBACK,
        limits=limits,
        priorities=functools.partial(nice_priorities, policy, site.processors),
    )


def _limits(policy: Policy) -> tuple[str, ...]:
    sentences = [
        (
            "It orders your own jobs among themselves, those of each partition by themselves. A user can only lower "
            "jobs: the first by the formula keeps its priority, the others are put below it, and jobs of other users "
            "may pass them."
        ),
        (
            f"Priorities must leave room: {GAP} for each waiting job. Where they are small numbers (or all are 1, as "
            "with priority/multifactor without weights), the last jobs tie; the script says how many."
        ),
        "r is at least 1 s: a job submitted before the epoch counts as submitted at it.",
        "A job submitted since the last run stands where Slurm put it until the script runs again.",
        "Nice values that you gave by hand are replaced. A priority that an operator set by hand takes no nice value.",
        "Held jobs, jobs that wait for others or for a time, and heterogeneous jobs are left as they are, and counted.",
        f"A job without a limit (UNLIMITED) counts as {UNLIMITED_S // DAY} days.",
        (
            "The waiting tasks of an array that ask for the same get one nice value; tasks that run are not touched. "
            "Slurm keeps tasks that come to differ as jobs of their own."
        ),
    ]
    if not policy.is_static or math.isfinite(policy.threshold):
        sentences.append(
            "What changes while a job waits (w, a threshold, an epoch that moves) is as of the last run: run the "
            "script again from time to time, for example with scrontab or cron."
        )
    if policy.epoch.rule == "oldest-waiting" and "r" in policy.variables:
        sentences.append("r counts from the oldest of your own waiting jobs; those of others may be hidden from you.")
    return tuple(sentences)


def nice_priorities(policy: Policy, processors: int | None, queue: Queue) -> NDArray[np.float64]:
    """Return the priorities after every user of the queue has run the script; HIGHER runs first.

    Parameters
    ----------
    policy : Policy
    processors : int or None
        The machine's, for a formula with m.
    queue : Queue
        One partition; its priorities are those without nice.
    """
    today = np.full(len(queue), _UNKNOWN) if queue.priority is None else queue.priority
    late = overdue(policy, queue)
    scores = np.where(late, 0.0, scores_of(policy, queue, processors))
    order = np.lexsort((np.arange(len(queue)), queue.submit, scores, ~late))
    users = np.unique(np.array(queue.user, dtype=object).astype(str), return_inverse=True)[1]
    priorities = np.array(today, dtype=np.float64)
    for user in range(users.max(initial=-1) + 1):
        own = order[users[order] == user]
        steps = GAP * np.arange(len(own))
        priorities[own] = np.minimum.accumulate(today[own] + steps) - steps
    return np.maximum(np.maximum(priorities, today - MOST_NICE), 1.0)


TARGET = Target("slurm-nice", "shell script with which a user of Slurm orders own waiting jobs by nice values", make)
