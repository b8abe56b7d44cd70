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

from policyfactory.core.errors import ExportError
from policyfactory.export.expressible import fixed_epoch
from policyfactory.export.languages.perl import comment, score_function
from policyfactory.export.queue import policy_priorities
from policyfactory.export.scripts import whole
from policyfactory.export.targets import Export, File, Site, Target, header, identifier, instructions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make"]

NAME = "oar"

_STOCK = "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"


def _switch(scheduler: str) -> str:
    """Return the command that gives the queue another scheduler, and says if there is none then."""
    # In one call oarnotify would add before it removes, and it ends with 0 whatever happened.
    return (
        f"$ oarnotify --remove-queue default; oarnotify --add-queue default,2,{scheduler}; "
        f"oarnotify --list-queues | grep -A 3 '^default$' | grep 'scheduler = {scheduler}$' || "
        "echo 'NO QUEUE default: repeat oarnotify --add-queue'"
    )


_ROLLBACK = (
    (
        "Give the queue its former scheduler back, at once and without a restart; it is active then, as after the "
        "installation:"
    ),
    _switch(_STOCK),
)
_LIMITS = (
    (
        "OAR plans every waiting job, each as early as it fits (conservative backfilling): a job may start before "
        "one that stands before it, if that one is not delayed."
    ),
    (
        "Quotas, tokens, containers and dependencies stay as they are. The fair-sharing of the stock scheduler "
        "does not count: it would sort the jobs again."
    ),
    (
        "p is the walltime of the job's first description, if it has several (oarsub -l given more than once). q "
        "is the resources that it asks for; of whole nodes, the number of resources of a node on average."
    ),
    "At most 1000 jobs are planned in a pass, as in the stock scheduler: here the first of the order, not the oldest.",
    "Advance reservations and running jobs keep their places.",
    (
        "A job for which there is no score (its resources cannot be counted, an error) runs last; how many there are "
        "is logged at every pass, with the first of them (see LOG_FILE of oar.conf)."
    ),
    "r is at least 1 s from a fixed epoch: a job submitted before it counts as submitted at it.",
)


def make(model: Model, site: Site) -> Export:
    """Return the export.

    Raises
    ------
    ExportError
        If the policy counts r from the start of a window, or has m and the machine's size is not known.
    """
    policy = model.policy
    if policy.epoch.rule != "oldest-waiting":
        fixed_epoch(policy, NAME)
    if "m" in policy.variables and site.processors is None:
        raise ExportError(f"policy {policy.name} has m; give the machine's size: --processors N")
    program = f"oar_sched_pf_{identifier(policy.name)}"
    install = (
        "Put the file into OAR's folder of schedulers on the host of the server, as an executable, and try it:",
        f"$ install -m 755 {program} /usr/lib/oar/schedulers/",
        f"$ perl -c /usr/lib/oar/schedulers/{program}",
        (
            "Then make it the scheduler of a queue; the queue's name and priority (here default, 2) stay as "
            "oarnotify --list-queues shows them, and waiting jobs stay in it. OAR cannot change a queue: it is "
            "removed and added, a submission between the two has no queue, and if the second fails there is none until "
            "it is repeated. So all in one line, which shows the new scheduler at its end:"
        ),
        _switch(program),
        "The queue is active then. If it was not (state = notActive in the list of before):",
        "$ oarnotify --disable-queue default",
    )
    head = [
        *header(model, site, NAME),
        *instructions(install=install, rollback=_ROLLBACK, limits=_LIMITS),
    ]
    return Export(
        (File(program, _scheduler(policy, head, site), executable=True),),
        (),
        install,
        _ROLLBACK,
        _LIMITS,
        functools.partial(policy_priorities, policy, site.processors),
    )


def _scheduler(policy: Policy, head: list[str], site: Site) -> str:
    oldest = policy.epoch.rule == "oldest-waiting"
    epoch = "undef" if oldest else str(policy.epoch.unix_time or 0)
    what = "the submission of the job that has waited longest" if oldest else "this Unix time"
    threshold = "9**9**9" if math.isinf(policy.threshold) else repr(policy.threshold)
    size = site.processors if "m" in policy.variables else None
    return "\n".join(
        [
            "#!/usr/bin/perl",
            *comment(head),
            "",
            "use strict;",
            "use warnings;",
            "",
            "# The scheduler that plans the sorted jobs: the one that the queue had.",
            f"my $STOCK = '{_STOCK}';",
            "",
            "package PolicyFactory;",
            "",
            "use POSIX ();",
            "use OAR::Conf;",
            "use OAR::IO;",
            "use OAR::Modules::Judas qw(oar_error oar_warn);",
            "",
            f"my $EPOCH = {epoch};  # r counts from {what}",
            f"my $THRESHOLD = {threshold};  # jobs that have waited longer go first, s",
            "my $MOST = 1000;  # jobs planned in a pass",
            "my $ALL = 1_000_000;",
            *([f"my $m = {size};  # processors of the machine"] if size is not None else []),
            "",
            *score_function(policy),
            whole("oar.perl"),
        ]
    )


TARGET = Target(NAME, "OAR 2: a scheduler of a queue (Perl) that sorts the jobs for OAR's own", make)
