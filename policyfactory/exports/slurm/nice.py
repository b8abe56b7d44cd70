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

import dataclasses
import functools
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.text import DAY
from policyfactory.exports.content import Export, ExportSite, File, comment, header, instructions, uninstall_script
from policyfactory.exports.expressible import check_size, fixed_epoch, slope
from policyfactory.exports.languages import awk_functions
from policyfactory.exports.queue import UNLIMITED_S, Queue, overdue, scores_of
from policyfactory.exports.scripts import filled, sentences
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

FILE_NAME = "nice_jobs.sh"
GAP = 2  # between the priorities of neighbours
MOST_NICE = 2_147_483_645
_UNKNOWN = 1e9  # priority of every job where the queue does not tell it


def make(model: Model, site: ExportSite) -> Export:
    """Return the script that sets nice values for the waiting jobs of one partition.

    Raises
    ------
    ExportError
        If the policy has m, or an r that needs a fixed epoch and has none.
    """
    policy = model.policy
    check_size(policy)
    # A constant times r only adds the same to all jobs when the epoch moves: any epoch will do.
    moves = policy.epoch.rule == "oldest-waiting" or slope(policy.expression, "r") is not None
    epoch = policy.epoch.unix_time if moves else fixed_epoch(policy, "slurm-nice")
    way = "queue_log" if site.log_only else "nice"
    words = Export(
        install=sentences("slurm.txt", f"{way}_install", FILE=FILE_NAME),
        rollback=sentences("slurm.txt", f"{way}_rollback", FILE=FILE_NAME),
        limits=_limits(policy),
    )
    head = header(model, site, "slurm-nice") + instructions(words)
    return dataclasses.replace(
        words,
        files=(queue_script(FILE_NAME, head, policy, epoch, site),),
        priorities=functools.partial(nice_priorities, policy),
        uninstall=None if site.log_only else uninstall_script(policy, ("nice",), FILE_NAME),
    )


def queue_script(
    name: str, head: list[str], policy: Policy, epoch: int | None, site: ExportSite, *, everybody: bool = False
) -> File:
    """Return the script, which lists waiting jobs and ranks them by a policy.

    Parameters
    ----------
    name : str
        Of the file.
    head : list of str
        Lines of its comment.
    policy : Policy
        Without m.
    epoch : int or None
        Unix time (s) from which r counts; None: the oldest waiting job's submission.
    site : ExportSite
        Its size, and whether the script only logs.
    everybody : bool
        Rank the jobs of all users by the score alone, in place of one's own by nice values.
    """
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
            "BY_SCORE": int(everybody),
            "SCORE": awk_functions(policy.expression),
        },
    )
    whose = "" if everybody else '--user="$(id -u)" '
    script = filled("nice.sh", {"NAME": name, "AWK": awk, "WHOSE": whose, "LOG_ONLY": int(site.log_only)})
    return File(name, "\n".join(["#!/bin/sh", *comment(head), "", script]), executable=True)


def _limits(policy: Policy) -> tuple[str, ...]:
    applies = {
        "nice_limits": True,
        "nice_changes": not policy.is_static or math.isfinite(policy.threshold),
        "nice_oldest": policy.epoch.rule == "oldest-waiting" and "r" in policy.variables,
    }
    return sentences("slurm.txt", *(name for name, does in applies.items() if does), GAP=GAP, DAYS=UNLIMITED_S // DAY)


def nice_priorities(policy: Policy, queue: Queue) -> NDArray[np.float64]:
    """Return the priorities after every user of the queue has run the script; HIGHER runs first.

    Parameters
    ----------
    policy : Policy
        What is exported.
    queue : Queue
        One partition; its priorities are those without nice.
    """
    today = np.full(len(queue), _UNKNOWN) if queue.priority is None else queue.priority
    late = overdue(policy, queue)
    scores = np.where(late, 0.0, scores_of(policy, queue))
    order = np.lexsort((np.arange(len(queue)), queue.submit, scores, ~late))
    users = np.unique(np.array(queue.user, dtype=object).astype(str), return_inverse=True)[1]
    priorities = np.array(today, dtype=np.float64)
    for user in range(users.max(initial=-1) + 1):
        rows = order[users[order] == user]
        steps = GAP * np.arange(len(rows))
        priorities[rows] = np.minimum.accumulate(today[rows] + steps) - steps
    return np.maximum(np.maximum(priorities, today - MOST_NICE), 1.0)
