"""A policy for OpenPBS: a shell script of ``qmgr`` commands that sets ``job_sort_formula``, and takes it back.

What the formula is, and how it is guarded, is in `policyfactory.export.pbs.formula`. Where r stands under a logarithm
or the like, a hook writes it into a resource when a job is queued.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY
from policyfactory.export.expressible import fixed_epoch, unexpressed
from policyfactory.export.pbs.evaluate import NEVER_RUNS, Evaluator
from policyfactory.export.pbs.formula import RESOURCE, formula, misplaced, needs_hook
from policyfactory.export.queue import UNLIMITED_S, Queue
from policyfactory.export.scripts import filled
from policyfactory.export.targets import Export, File, Site, Target, header, identifier, instructions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["HOOK", "RESOURCE", "TARGET", "formula", "make", "needs_hook"]

# One hook for all policies: a second would count from another epoch.
HOOK = "pf_submit"
_BEFORE = "pbs_before_policyfactory"

# In PBS_HOME/sched_priv/sched_config. With by_queue (PBS's default) the formula orders the jobs of one queue only;
# without strict_ordering no job has a reservation; starving jobs would go before the formula.
_SETTINGS = (
    "by_queue: false all",
    "round_robin: false all",
    "strict_ordering: true all",
    "help_starving_jobs: false all",
)
_INSTALL = (
    "Put the settings into PBS_HOME/sched_priv/sched_config and send pbs_sched a HUP signal.",
    "For EASY, one reservation:",
    "$ qmgr -c 'set server backfill_depth = 1'",
    f"As root on the server host, in a folder that stays (the settings of before are kept there in {_BEFORE}):",
    "$ sh THIS_FILE",
    (
        "Watch the values in the scheduler's log (log_events with DEBUG2, 0x100): 'Formula Evaluation = ...' for every "
        "job, and 'Zero value will be used' for none."
    ),
)
_ROLLBACK = (
    "In the same folder:",
    "$ sh THIS_FILE remove",
    "Put the old lines of sched_config back, and send pbs_sched a HUP signal.",
)


def make(model: Model, site: Site) -> Export:
    """Return the script and what must be known about it.

    Raises
    ------
    ExportError
        If PBS cannot express the policy; says what to do.
    """
    policy = model.policy
    text = formula(policy, site.processors)
    epoch = fixed_epoch(policy, "PBS") if needs_hook(policy) else None
    limits = _limits(policy, text, site.processors)
    head = [
        *header(model, site, "pbs"),
        "",
        "For OpenPBS 20 or newer (its formulas are Python 3).",
        *instructions(_SETTINGS, _INSTALL, _ROLLBACK, limits),
    ]
    lines = ["#!/bin/sh", *(f"# {line}".rstrip() for line in head), *_script(text, epoch)]
    file = File(f"{identifier(policy.name)}.sh", "\n".join(lines) + "\n", executable=True)
    evaluator = Evaluator(text)

    def priorities(queue: Queue) -> NDArray[np.float64]:
        since = epoch or 0
        jobs = zip(queue.p.tolist(), queue.q.tolist(), queue.submit.tolist(), strict=True)
        values = [
            evaluator.value(
                {
                    "walltime": p,
                    "ncpus": q,
                    "eligible_time": max(queue.now - submit, 0),
                    RESOURCE: max(submit - since, 1),
                }
            )
            for p, q, submit in jobs
        ]
        return np.array([0.0 if value is None else value for value in values])

    return Export((file,), _SETTINGS, _INSTALL, _ROLLBACK, limits, priorities)


def _limits(policy: Policy, text: str, processors: int | None) -> tuple[str, ...]:
    """Return what PBS does otherwise than the policy, and what else must be known."""
    sentences = [
        *unexpressed(policy, can_threshold=True, can_oldest_waiting=not needs_hook(policy), can_wait=True),
        (
            f"A job without walltime counts as one of {UNLIMITED_S // DAY} days: give the queues a default that suits "
            "them (resources_default.walltime)."
        ),
        (
            f"PBS never runs a job whose value is {NEVER_RUNS:.0f} or less (job_sort_formula_threshold, where none is "
            "set); the formula stays above it for jobs of a year on "
            + (f"{processors:,} processors." if processors else "ten million processors.")
        ),
        "Express queues and jobs that were preempted go before the formula; job_sort_key is not used beside it.",
        (
            "OpenPBS 20.0 does not start again while a job_sort_formula is set (its issues 2475 and 2530, mended in "
            "2022 by pull request 2533): restart the server of a test system first."
        ),
        "No PBS is part of the tests: the formula is evaluated there as PBS does it. Try it on a test server first.",
    ]
    if "eligible_time" in text:
        sentences.append(
            "eligible_time counts only the time in which the job could have run: not while it is held, depends on "
            "another, or its owner is at a limit. For jobs that wait already it counts from when eligible_time_enable "
            "was set."
        )
    if "r" in policy.variables and not needs_hook(policy):
        sentences.append(
            "r is now minus the time waited, and now is the same for all jobs: -eligible_time stands for r."
        )
    if needs_hook(policy):
        sentences.append(
            f"The hook writes r, at least 1 s, into the resource {RESOURCE} when a job is queued: one submitted before "
            "the epoch counts as submitted at it. A job without it (the hook failed, or was disabled) runs last. The "
            "script gives the jobs that wait theirs, from their ctime, with qselect, qstat and qalter; it says which "
            "it could not, and may be run again."
        )
    # Overdue jobs have values of their own.
    plain = text.partition(" else ")[2] if math.isfinite(policy.threshold) else text
    wrong, tried = misplaced(policy, plain, processors)
    if wrong:
        sentences.append(
            f"Of {tried:,} shapes of jobs that were tried, {wrong:,} stand elsewhere than the policy puts them: "
            "it has no value there, or an infinite one (a negative number under a logarithm, a division by zero), "
            "and PBS is given a number."
        )
    return tuple(sentences)


def _script(text: str, epoch: int | None) -> list[str]:
    """Return the commands; ``epoch`` is that of the hook, None without one."""
    hook = epoch is not None
    eligible = "eligible_time" in text
    return [
        "set -eu",
        f"before={_BEFORE}",
        "",
        'if [ "${1:-install}" = remove ]; then',
        "    qmgr -c 'unset server job_sort_formula'",
        *(["    qmgr -c 'unset server eligible_time_enable'"] if eligible else []),
        *(
            [
                f"    if qmgr -c 'list hook {HOOK}' > /dev/null 2>&1; then qmgr -c 'delete hook {HOOK}'; fi",
            ]
            if hook
            else []
        ),
        '    if [ -s "$before" ]; then qmgr < "$before"; fi',
        '    rm -f "$before"',
        "    exit 0",
        "fi",
        "",
        "# A scheduler's own formula would be refused beside the server's, and a threshold keeps jobs from running.",
        "own=$(qmgr -c 'print server' && { qmgr -c 'print sched' 2> /dev/null || true; })",
        "if printf '%s\\n' \"$own\" | grep -E 'set sched .*job_sort_formula|job_sort_formula_threshold' >&2; then",
        "    echo 'The lines above must be unset first (qmgr): jobs below the threshold would never run.' >&2",
        "    exit 1",
        "fi",
        'if [ ! -e "$before" ]; then',
        "    kept='^set server (job_sort_formula|eligible_time_enable) '",
        '    printf \'%s\\n\' "$own" | grep -E "$kept" > "$before" || true',
        "fi",
        "",
        # They may run again, after a new fit.
        *(filled("pbs_hook.sh", {"EPOCH": epoch}).splitlines() if hook else []),
        *(["qmgr -c 'set server eligible_time_enable = True'"] if eligible else []),
        f"qmgr -c 'set server job_sort_formula = \"{text}\"'",
    ]


TARGET = Target("pbs", "OpenPBS: shell script that sets job_sort_formula (and a hook where r needs one)", make)
