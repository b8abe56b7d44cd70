"""A policy for OAR 2: a scheduler of a queue that sorts the waiting jobs and hands them to OAR's own scheduler.

The scheduler of a queue is a program of OAR's folder ``schedulers``; the stock ones ask ``OAR::IO`` for the jobs that
wait and plan them in the order in which they get them, each as early as it fits (conservative backfilling). The
exported Perl program puts its own function in place of that question and then runs the stock scheduler. It runs at
every pass and knows the time, so policies with w, thresholds and the oldest waiting job work as they are.

Seen with OAR 2.5.9.
"""

from __future__ import annotations

import functools
import math

from policyfactory.exports.content import Export, ExportSite, File, comment, header, identifier, instructions
from policyfactory.exports.expressible import check_size, fixed_epoch
from policyfactory.exports.languages import perl_function
from policyfactory.exports.queue import policy_priorities
from policyfactory.exports.scripts import filled, sentences
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

NAME = "oar"

_STOCK = "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"


def make(model: Model, site: ExportSite) -> Export:
    """Return the export: a scheduler for OAR whose queue is sorted by the policy.

    Raises
    ------
    ExportError
        If the policy counts r from the start of a window, or has m.
    """
    policy = model.policy
    if policy.epoch.rule != "oldest-waiting":
        fixed_epoch(policy, NAME)
    check_size(policy)
    program = f"oar_sched_pf_{identifier(policy.name)}"
    install, rollback, limits = (
        sentences("oar.txt", what, SCHEDULER=scheduler)
        for what, scheduler in (("install", program), ("rollback", _STOCK), ("limits", ""))
    )
    head = [*header(model, site, NAME), *instructions(install=install, rollback=rollback, limits=limits)]
    return Export(
        (File(program, _scheduler(policy, head), executable=True),),
        (),
        install,
        rollback,
        limits,
        functools.partial(policy_priorities, policy),
    )


def _scheduler(policy: Policy, head: list[str]) -> str:
    oldest = policy.epoch.rule == "oldest-waiting"
    epoch = "undef" if oldest else str(policy.epoch.unix_time or 0)
    what = "the submission of the job that has waited longest" if oldest else "this Unix time"
    threshold = "9**9**9" if math.isinf(policy.threshold) else repr(policy.threshold)
    return filled(
        "oar.perl",
        {
            "HEAD": "\n".join(comment(head)),
            "STOCK": _STOCK,
            "EPOCH": epoch,
            "COUNTED_FROM": what,
            "THRESHOLD": threshold,
            "SCORE": "\n".join(perl_function(policy.expression)),
        },
    )
