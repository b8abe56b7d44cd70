"""A policy for Grid Engine: a submission verifier that gives each job its urgency, or urgencies of resources alone.

Grid Engine starts the job with the higher priority first. With ``weight_urgency`` 1 and the other weights 0 that is the
urgency: the sum of each hard request times the slots of the job times the urgency of the resource (sge_priority(5)). So

- a formula of p*q, q, r and w with constant factors needs no program: the urgencies of ``h_rt`` and ``slots`` and
  ``weight_waiting_time`` are those factors, with the sign flipped (`gridengine_urgency`);
- for any other formula a job submission verifier (JSV), started by the qmaster, computes the score when a job is
  submitted and adds a request for it, divided by the slots, as these come back as a factor. Whole numbers from 1 up are
  requested, so a job without a request, after an error in the script, has 0 and runs last.

Seen with Grid Engine 8.1.9.
"""

from __future__ import annotations

from policyfactory.core.units import format_duration
from policyfactory.export.expressible import fixed_epoch, static_only, unexpressed
from policyfactory.export.gridengine.scripts import JSV_NAME, RESOURCE, apply_script, rollback_script
from policyfactory.export.gridengine.urgency import Urgencies, urgencies
from policyfactory.export.languages.perl import comment, score_function
from policyfactory.export.queue import scaled_priorities
from policyfactory.export.scale import Scale, learn_scale
from policyfactory.export.scripts import whole
from policyfactory.export.targets import Export, File, Site, Target, header, instructions
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["TARGET", "make"]

NAME = "gridengine"

_EASY = (
    (
        "For EASY backfilling, add `-R y` to $SGE_ROOT/$SGE_CELL/common/sge_request, and set max_reservation 1 and a "
        "default_duration of a day or so with qconf -msconf: only the first job in the order gets a reservation."
    ),
)
_FIRST = "Put all files of this export into one folder on the host of the qmaster, where its user can read it"
_ROLLBACK = (
    (
        "As a manager, on the host of the qmaster, also where apply.sh stopped half way: it restores what apply.sh "
        "changed, from its folder `before`."
    ),
    "$ ./rollback.sh",
)
_LIMITS = (
    (
        "Without reservations (-R y and max_reservation) Grid Engine starts any job that fits, whatever waits "
        "before it: large jobs starve under any policy that puts small ones first."
    ),
    (
        "weight_ticket, weight_priority and weight_waiting_time of the scheduler's configuration become what the "
        "formula needs (0 or its factor): share-tree, functional and override tickets, and qsub -p, do not count "
        "then. A site that wants them gives them weights again; they are normalised, so they are weights against "
        "the whole range of scores."
    ),
    "Urgencies of further resources are added to the score; apply.sh names those that are not 0.",
)
_JSV_LIMITS = (
    "r is at least 1 s: a job submitted before the epoch counts as submitted at it.",
    "The score is computed when a job is submitted. Jobs that wait already have none and run after all that have one.",
    (
        "With a JSV of the server, Grid Engine refuses qalter -l (jsv_allowed_mod): a limit cannot be changed "
        "later, and nobody can give a job another score."
    ),
    "Every job has a request of its own, so jobs no longer share categories: the scheduler looks at each of them.",
    "A range of slots (-pe NAME 4-8) counts with its least number, as with urgency_slots min of the environment.",
    (
        "If the script cannot be run at all (no Perl, not executable, a syntax error after an edit), Grid Engine "
        "refuses submissions until it can; an error while it runs lands the job last. apply.sh tries it first."
    ),
)


def make(model: Model, site: Site) -> Export:
    """Return the export; without a script of its own where urgencies suffice.

    Raises
    ------
    ExportError
        If the policy changes while a job waits otherwise than by a constant times the time, or counts from no fixed
        date, or has m.
    """
    factors = urgencies(model.policy)
    return _by_script(model, site) if factors is None else _by_urgency(model, site, factors)


def _by_urgency(model: Model, site: Site, factors: Urgencies) -> Export:
    settings = factors.settings()
    install = (
        f"{_FIRST}; then, there and as a manager:",
        "$ ./apply.sh",
        "Jobs that wait already are ordered anew at once.",
        *_EASY,
    )
    limits = (
        "Exact: the formula is computed by Grid Engine itself, at every scheduling pass.",
        *unexpressed(model.policy, can_oldest_waiting=True, can_wait=True),
        *factors.limits(),
        *_LIMITS,
    )
    head = [
        *header(model, site, NAME),
        *instructions(settings=settings, install=install, rollback=_ROLLBACK, limits=limits),
    ]
    return Export(
        (
            File("apply.sh", apply_script(head, factors.changes()), executable=True),
            File("rollback.sh", rollback_script(head[:2], scripted=False), executable=True),
        ),
        settings,
        install,
        _ROLLBACK,
        limits,
        factors.priorities,
    )


def _by_script(model: Model, site: Site) -> Export:
    policy = model.policy
    static_only(policy, NAME, "choose a policy without w (Grid Engine itself has a constant times w, no more)")
    fixed_epoch(policy, NAME)
    scale = learn_scale(policy, site.sample, site.processors, largest=site.weight)
    longest = int(site.sample.p.max())
    settings = ("weight_urgency 1", "weight_waiting_time 0", "weight_ticket 0", "weight_priority 0")
    install = (
        f"{_FIRST} ($SGE_ROOT/$SGE_CELL/common/policyfactory will do); then, there and as a manager:",
        "$ ./apply.sh",
        *_EASY,
    )
    limits = (
        *unexpressed(policy),
        (
            f"A job without h_rt and s_rt counts as one of {format_duration(longest)}, the longest of the sample: "
            f"change $NO_LIMIT in {JSV_NAME} to what the queues give, or add -l h_rt=... to sge_request."
        ),
        *_JSV_LIMITS,
        *_LIMITS,
    )
    head = header(model, site, NAME, scale)
    said = instructions(settings=settings, install=install, rollback=_ROLLBACK, limits=limits)
    changes = {"slots": "0", RESOURCE: "1", "weight_waiting_time": "0"}
    return Export(
        (
            File(JSV_NAME, _verifier(policy, scale, longest, [*head, *said]), executable=True),
            File("apply.sh", apply_script(head[:2], changes), executable=True),
            File("rollback.sh", rollback_script(head[:2], scripted=True), executable=True),
        ),
        settings,
        install,
        _ROLLBACK,
        limits,
        scaled_priorities(policy, scale, site.processors),
        scale,
    )


def _verifier(policy: Policy, scale: Scale, no_limit: int, head: list[str]) -> str:
    return "\n".join(
        [
            "#!/usr/bin/perl",
            *comment(head),
            "",
            "use strict;",
            "use warnings;",
            "use POSIX ();",
            "",
            f"my $RESOURCE = '{RESOURCE}';",
            f"my $EPOCH = {policy.epoch.unix_time or 0};  # Unix time from which r counts",
            f"my $NO_LIMIT = {no_limit};  # p of a job without h_rt and s_rt, s",
            f"my ($LOW, $HIGH, $LARGEST) = ({scale.low!r}, {scale.high!r}, {scale.largest});",
            "",
            *score_function(policy),
            whole("verifier.perl"),
        ]
    )


TARGET = Target(NAME, "Grid Engine: urgencies where they suffice, else a submission verifier (JSV)", make)
