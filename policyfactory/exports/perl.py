"""A policy for Grid Engine and for OAR 2, which are told the order by programs in Perl.

Grid Engine (seen with 8.1.9) starts the job with the higher priority first. With ``weight_urgency`` 1 and the other
weights 0 that is the urgency: the sum of each hard request times the slots of the job times the urgency of the resource
(sge_priority(5)). So

- a formula of p*q, q, r and w with constant factors needs no program: the urgencies of ``h_rt`` and ``slots`` and
  ``weight_waiting_time`` are those factors, with the sign flipped (`urgencies`);
- for any other formula a job submission verifier (JSV), started by the qmaster, computes the score when a job is
  submitted and adds a request for it, divided by the slots, as these come back as a factor. Whole numbers from 1 up are
  requested, so a job without a request, after an error in the script, has 0 and runs last.

OAR (seen with 2.5.9) gets a scheduler of a queue, which is a program of its folder ``schedulers``; the stock ones ask
``OAR::IO`` for the jobs that wait and plan them in the order in which they get them, each as early as it fits
(conservative backfilling). The exported program puts its own function in place of that question and then runs the stock
scheduler. It runs at every pass and knows the time, so policies with w, thresholds and the oldest waiting job work as
they are.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.text import format_duration
from policyfactory.exports.content import Export, ExportSite, File, comment, header, identifier, instructions
from policyfactory.exports.expressible import check_size, fixed_epoch, linear_coefficients, static_only, unexpressed
from policyfactory.exports.languages import perl_function
from policyfactory.exports.queue import Queue, policy_priorities, scaled_priorities
from policyfactory.exports.sample import learn_scale
from policyfactory.exports.scripts import fill, filled, parts, sentences
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

_GRIDENGINE = "gridengine"
RESOURCE = "pf_score"
JSV_NAME = "policyfactory_jsv.pl"
_WORDS = "gridengine.txt"
_TITLES = {
    "apply.sh": "apply.sh: puts the order into a running Grid Engine; run it as a manager.",
    "rollback.sh": "rollback.sh: undoes apply.sh; run it as a manager.",
}


def gridengine(model: Model, site: ExportSite) -> Export:
    """Return the export; without a script of its own where urgencies suffice.

    Raises
    ------
    ExportError
        If the policy changes while a job waits otherwise than by a constant times the time, or counts from no fixed
        date, or has m.
    """
    factors = urgencies(model.policy)
    return _by_script(model, site) if factors is None else _by_urgency(model, site, factors)


def _by_urgency(model: Model, site: ExportSite, factors: Urgencies) -> Export:
    where = "before" if factors.time < 0 else "after"
    limits = (
        *sentences(_WORDS, "urgency_exact"),
        *unexpressed(model.policy, can_oldest_waiting=True, can_wait=True),
        *sentences(_WORDS, *(["urgency_limit"] if factors.time else []), "limits", WHERE=where),
    )
    install, rollback = sentences(_WORDS, "urgency_install"), sentences(_WORDS, "rollback")
    words = Export((), factors.settings(), install, rollback, limits, factors.priorities)
    head = [*header(model, site, _GRIDENGINE), *instructions(words)]
    apply = f"start save {'check_limit' if factors.time else ''} keep slots limit complexes weights applied"
    files = (
        _shell("apply.sh", head, apply, KNOWN="h_rt", **factors.changes()),
        _shell("rollback.sh", head[:2], "start before rollback"),
    )
    return dataclasses.replace(words, files=files)


def _by_script(model: Model, site: ExportSite) -> Export:
    policy = model.policy
    static_only(policy, _GRIDENGINE, "choose a policy without w (Grid Engine itself has a constant times w, no more)")
    fixed_epoch(policy, _GRIDENGINE)
    scale = learn_scale(policy, site.sample, largest=site.weight)
    longest = int(site.sample.p.max())
    words = Export(
        settings=("weight_urgency 1", "weight_waiting_time 0", "weight_ticket 0", "weight_priority 0"),
        install=sentences(_WORDS, "verifier_install"),
        rollback=sentences(_WORDS, "rollback"),
        limits=unexpressed(policy)
        + sentences(_WORDS, "verifier_limits", LONGEST=format_duration(longest), JSV=JSV_NAME),
        priorities=scaled_priorities(policy, scale),
        scale=scale,
    )
    head = header(model, site, _GRIDENGINE, scale)
    verifier = filled(
        "verifier.perl",
        {
            "HEAD": "\n".join(comment([*head, *instructions(words)])),
            "RESOURCE": RESOURCE,
            "EPOCH": policy.epoch.unix_time or 0,
            "LONGEST": longest,
            "RANGE": f"{scale.low!r}, {scale.high!r}, {scale.largest}",
            "SCORE": "\n".join(perl_function(policy.expression)),
        },
    )
    apply = "start save check_verifier keep slots request complexes offer weights verifier applied"
    files = (
        File(JSV_NAME, verifier, executable=True),
        _shell("apply.sh", head[:2], apply, SLOTS="0", KNOWN=RESOURCE, WAITING="0"),
        _shell("rollback.sh", head[:2], "start before rollback_verifier rollback"),
    )
    return dataclasses.replace(words, files=files)


def _shell(name: str, head: list[str], chosen: str, **values: str) -> File:
    """Return apply.sh or rollback.sh: the ``chosen`` parts of its template, with the values."""
    text = "".join(parts("gridengine.sh")[part] for part in chosen.split())
    # Never the header: it has texts of strangers.
    text = fill(text, {"RESOURCE": RESOURCE, "JSV": JSV_NAME, **values})
    return File(name, "\n".join(["#!/bin/sh", *comment([_TITLES[name], *head]), text]), executable=True)


# Formulas that Grid Engine computes itself ----------------------------------------------------------------------------

# Formulas that Grid Engine computes itself, from the urgencies of resources and the weight of the waiting time.


# qconf keeps six decimals of weight_waiting_time: the smallest factor is brought above this, for nine digits of it.
_LEAST = 1000.0


@dataclasses.dataclass(frozen=True, slots=True)
class Urgencies:
    """``time * p * q + slots * q + waiting * w``, by which Grid Engine sorts jobs, HIGHER first.

    Parameters
    ----------
    time : float
        Urgency of ``h_rt``; Grid Engine multiplies it by the requested seconds and by the slots.
    slots : float
        Urgency of ``slots``.
    waiting : float
        ``weight_waiting_time``, of each second since the submission.
    """

    time: float
    slots: float
    waiting: float

    def changes(self) -> dict[str, str]:
        """Return what apply.sh sets, by the names that its template has."""
        return {"SLOTS": _plain(self.slots), "H_RT": _plain(self.time), "WAITING": f"{self.waiting:.6f}"}

    def settings(self) -> tuple[str, ...]:
        """Return the lines of the complexes (``qconf -mc``, last column) and of the scheduler (``qconf -msconf``)."""
        changes = self.changes()
        return (
            f"h_rt urgency {changes['H_RT']}",
            f"slots urgency {changes['SLOTS']}",
            f"weight_waiting_time {changes['WAITING']}",
            "weight_urgency 1",
            "weight_ticket 0",
            "weight_priority 0",
        )

    def priorities(self, queue: Queue) -> NDArray[np.float64]:
        """Return what Grid Engine shows as urgency (``qstat -urg``); HIGHER runs first."""
        p, q, waited = (np.asarray(a, dtype=np.float64) for a in (queue.p, queue.q, queue.now - queue.submit))
        return self.time * p * q + self.slots * q + self.waiting * waited


def urgencies(policy: Policy) -> Urgencies | None:
    """Return the urgencies that sort jobs as the policy does; None where there are none.

    There are for a sum of constants times ``p*q``, ``q``, ``r`` and ``w``. ``r`` is now minus the time waited, and now
    is the same for all jobs; so the epoch does not matter, whatever its rule.

    Parameters
    ----------
    policy : Policy
        What is exported.
    """
    terms = linear_coefficients(policy.expression, ("pq", "q", "r", "w"))
    if terms is None:
        return None
    # Lower scores run first, higher urgencies do. (0.0 - x has no negative zero.)
    factors = (0.0 - terms["pq"], 0.0 - terms["q"], terms["r"] - terms["w"])
    sizes = [abs(factor) for factor in factors if factor]
    if not sizes or not all(map(math.isfinite, sizes)):
        return None
    factor = 10.0 ** max(0, math.ceil(math.log10(_LEAST / min(sizes))))
    if not max(sizes) * factor < 1e100:
        return None
    return Urgencies(*(part * factor for part in factors))


def _plain(value: float) -> str:
    """Return a number as Grid Engine reads it."""
    return f"{value:.17g}"


# A policy for OAR 2: a scheduler of a queue ---------------------------------------------------------------------------


_STOCK = "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"


def oar(model: Model, site: ExportSite) -> Export:
    """Return the export: a scheduler for OAR whose queue is sorted by the policy.

    Raises
    ------
    ExportError
        If the policy counts r from the start of a window, or has m.
    """
    policy = model.policy
    if policy.epoch.rule != "oldest-waiting":
        fixed_epoch(policy, "oar")
    check_size(policy)
    program = f"oar_sched_pf_{identifier(policy.name)}"
    install, rollback, limits = (
        sentences("oar.txt", what, SCHEDULER=scheduler)
        for what, scheduler in (("install", program), ("rollback", _STOCK), ("limits", ""))
    )
    words = Export((), (), install, rollback, limits, functools.partial(policy_priorities, policy))
    text = _scheduler(policy, [*header(model, site, "oar"), *instructions(words)])
    return dataclasses.replace(words, files=(File(program, text, executable=True),))


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
