"""What a target cannot express of a policy: refused with the cure, or said in a sentence."""

from __future__ import annotations

import math
from collections.abc import Collection

from policyfactory.core.errors import ExportError
from policyfactory.core.units import format_duration
from policyfactory.policy.policy import Policy

__all__ = ["fixed_epoch", "keeps_threshold", "left_out", "open_epoch", "static_only", "unexpressed"]


def fixed_epoch(policy: Policy, target: str) -> int | None:
    """Return the Unix time from which r counts; None for a policy without r.

    Raises
    ------
    ExportError
        If it has r but counts from a window's start or from the oldest waiting job.
    """
    if "r" not in policy.variables:
        return None
    if policy.epoch.unix_time is not None:
        return policy.epoch.unix_time
    if policy.epoch.rule == "oldest-waiting":
        raise ExportError(
            f"policy {policy.name} counts r from the oldest waiting job, which {target} cannot do; "
            "give a fixed date: --epoch 2026-01-01"
        )
    raise ExportError(
        f"policy {policy.name} counts r from the start of a window, which a scheduler in production does not have; "
        "give the date from which it counts: --epoch 2026-01-01"
    )


def static_only(policy: Policy, target: str, cure: str = "use --to slurm-site-factor-c, or a policy without w") -> None:
    """Refuse a policy with w for a target that computes the score once, when a job is submitted.

    Raises
    ------
    ExportError
        If the formula has w.
    """
    if "w" in policy.variables:
        raise ExportError(
            f"policy {policy.name} changes while a job waits (it has w), but {target} computes it once, at submission; "
            f"{cure}"
        )


def unexpressed(
    policy: Policy, *, can_threshold: bool = False, can_oldest_waiting: bool = False, can_wait: bool = False
) -> tuple[str, ...]:
    """Return a sentence for everything of the policy that a target leaves out, for `Export.limits`.

    Parameters
    ----------
    policy : Policy
    can_threshold : bool
        Whether jobs that have waited too long can go first.
    can_oldest_waiting : bool
        Whether r can count from the job that has waited longest.
    can_wait : bool
        Whether the score is computed again while a job waits.
    """
    found = []
    if math.isfinite(policy.threshold) and not can_threshold:
        found.append(_no_threshold(policy))
    if "r" in policy.variables and policy.epoch.rule == "oldest-waiting" and not can_oldest_waiting:
        found.append("The policy counts r from the job that has waited longest; here it cannot.")
    if "w" in policy.variables and not can_wait:
        found.append("The score is computed once, with w = 0: that the policy changes while a job waits is lost.")
    return tuple(found)


def open_epoch(policy: Policy) -> tuple[str, ...]:
    """Return a sentence for a program whose r counts from a window's start, and none for another."""
    if "r" in policy.variables and policy.epoch.rule == "window-start":
        return ("r counts from the start of a window, which production does not have: fix it with --epoch DATE.",)
    return ()


def left_out(policy: Policy, limits: Collection[str]) -> tuple[str, ...]:
    """Return the sentences of an export's limits that say what of the policy is lost; the others are the scheduler's.

    Parameters
    ----------
    policy : Policy
    limits : collection of str
        Of the `Export`; those of `unexpressed` and `open_epoch` count, and those that begin with ``NOT``.
    """
    known = {*unexpressed(policy), *open_epoch(policy)}
    return tuple(text for text in limits if text in known or text.startswith("NOT "))


def keeps_threshold(policy: Policy, limits: Collection[str]) -> bool:
    """Tell whether jobs that have waited too long go first under an export with these limits."""
    return _no_threshold(policy) not in limits


def _no_threshold(policy: Policy) -> str:
    return (
        f"The policy's threshold is left out: jobs that have waited longer than {format_duration(policy.threshold)} "
        "do not go first here."
    )
