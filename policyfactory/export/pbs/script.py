"""A policy for OpenPBS: a shell script of ``qmgr`` commands that sets ``job_sort_formula``, and takes it back.

What the formula is, and how it is guarded, is in `policyfactory.export.pbs.formula`. Where r stands under a logarithm
or the like, a hook writes it into a resource when a job is queued.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY
from policyfactory.export.content import Export, File, Site, comment, header, identifier, instructions
from policyfactory.export.expressible import fixed_epoch, unexpressed
from policyfactory.export.pbs.evaluate import NEVER_RUNS, Evaluator
from policyfactory.export.pbs.formula import RESOURCE, formula, misplaced, needs_hook
from policyfactory.export.queue import UNLIMITED_S, Queue
from policyfactory.export.scripts import filled, parts, sentences
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["HOOK", "RESOURCE", "formula", "make", "needs_hook"]

# One hook for all policies: a second would count from another epoch.
HOOK = "pf_submit"
_BEFORE = "pbs_before_policyfactory"

_WORDS = "pbs.txt"


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
    settings, install, rollback = (
        sentences(_WORDS, what, BEFORE=_BEFORE) for what in ("settings", "install", "rollback")
    )
    limits = _limits(policy, text, site.processors)
    head = [
        *header(model, site, "pbs"),
        "",
        "For OpenPBS 20 or newer (its formulas are Python 3).",
        *instructions(settings, install, rollback, limits),
    ]
    script = "\n".join(["#!/bin/sh", *comment(head), _script(text, epoch)])
    file = File(f"{identifier(policy.name)}.sh", script, executable=True)
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

    # What the jobs of a list ask for beside time and processors is not known.
    return Export((file,), settings, install, rollback, limits, None if policy.asked else priorities)


def _limits(policy: Policy, text: str, processors: int | None) -> tuple[str, ...]:
    """Return what PBS does otherwise than the policy, and what else must be known."""
    hook = needs_hook(policy)
    # Overdue jobs have values of their own.
    plain = text.partition(" else ")[2] if math.isfinite(policy.threshold) else text
    wrong, tried = misplaced(policy, plain, processors)
    applies = {
        "limits": True,
        "asked": bool(policy.asked),
        "eligible": "eligible_time" in text,
        "linear_in_r": "r" in policy.variables and not hook,
        "hook": hook,
        "misplaced": wrong > 0,
    }
    return unexpressed(policy, can_threshold=True, can_oldest_waiting=not hook, can_wait=True) + sentences(
        _WORDS,
        *(name for name, does in applies.items() if does),
        DAYS=UNLIMITED_S // DAY,
        NEVER_RUNS=f"{NEVER_RUNS:.0f}",
        PROCESSORS=f"{processors:,}" if processors else "ten million",
        RESOURCE=RESOURCE,
        TRIED=f"{tried:,}",
        WRONG=f"{wrong:,}",
    )


def _script(text: str, epoch: int | None) -> str:
    """Return the commands; ``epoch`` is that of the hook, None without one."""
    hook, eligible = epoch is not None, "eligible_time" in text
    chosen = f"start {'remove_eligible' if eligible else ''} {'remove_hook' if hook else ''} keep".split()
    return "".join(
        [
            *(parts("pbs.sh")[name] for name in chosen),
            filled("pbs_hook.sh", {"EPOCH": epoch}) if hook else "",
            parts("pbs.sh")["set_eligible"] if eligible else "",
            f"qmgr -c 'set server job_sort_formula = \"{text}\"'\n",
        ]
    )
