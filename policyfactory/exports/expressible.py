"""What a target can express of a policy: what a site fixes first, what is linear, what is refused or left out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Literal

from policyfactory.core.errors import ExportError, FormulaError, UsageError
from policyfactory.core.text import format_duration
from policyfactory.policy.algebra import multiply_out, to_sympy
from policyfactory.policy.expression import ASKED, PREDICTIONS, Expression, Number, Variable, replace_variables
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import Model

# Targets that leave a threshold out; see `unexpressed`.
NO_THRESHOLD = frozenset({"slurm-site-factor-lua", "slurm-priority-lua", "slurm-weights", "gridengine"})
# What not every target knows of a job: the names, what is said of them, and what a formula should be without.
_READ = {
    "free": (("f",), "has {}, the processors that are free when the queue is sorted, which {} does not know", "f"),
    "predictions": (
        PREDICTIONS,
        "reads {}, which are predicted from the past of a job's user and which {} does not know",
        "them",
    ),
    "asked": (ASKED, "reads {} (requested nodes n, memory mem, GPUs g), which {} does not know", "them"),
}


def prepare(
    model: Model,
    *,
    epoch: int | Literal["oldest-waiting"] | None = None,
    processors: int | None = None,
    threshold: float | None = None,
) -> Model:
    """Return the model with its epoch and threshold set and m replaced, where they are given.

    Parameters
    ----------
    model : Model
        What is exported.
    epoch : int, "oldest-waiting" or None
        Unix time (s) from which r counts, or the rule that it counts from the job that has waited longest.
    processors : int or None
        Processors of the machine, written in place of m.
    threshold : float or None
        Jobs that have waited longer (s) go first; ``math.inf`` for never.

    Raises
    ------
    UsageError
        If the policy is a function without a formula, ``processors`` is not positive, or the threshold is below 0.
    """
    policy = model.policy
    expression = policy.expression  # asked for first: of a function there is none, whatever else is given
    if epoch is not None:
        rule = Epoch("fixed", epoch) if isinstance(epoch, int) else Epoch(epoch)
        policy = dataclasses.replace(policy, epoch=rule)
    if threshold is not None:
        policy = dataclasses.replace(policy, threshold=threshold)
    if processors is not None:
        if processors < 1:
            raise UsageError(f"--processors {processors}: a machine has at least 1 processor")
        if "m" in policy.variables:
            with_size = replace_variables(expression, {"m": Number(float(processors))})
            policy = dataclasses.replace(policy, formula=with_size.text())
    return dataclasses.replace(model, policy=policy)


def check_size(policy: Policy) -> None:
    """Refuse a policy that still has m: its target takes a number for it, which `prepare` writes.

    Raises
    ------
    ExportError
        If the formula has m.
    """
    if "m" in policy.variables:
        raise ExportError(f"policy {policy.name} has m; give the machine's size: --processors N")


def check_known(
    policy: Policy, target: str, knows: Collection[str] = (), others: Mapping[str, Collection[str]] | None = None
) -> None:
    """Refuse a policy that reads what its target does not know of a job.

    Parameters
    ----------
    policy : Policy
        What is exported.
    target : str
        Its name.
    knows : collection of str
        What it knows of ``free`` (the free processors f), ``predictions`` and ``asked`` (n, mem and g).
    others : mapping of str to collection of str, optional
        The targets that know each of them, for the message.

    Raises
    ------
    ExportError
        If the formula reads one that is not known.
    """
    for kind, (names, words, cure) in _READ.items():
        read = ", ".join(name for name in names if name in policy.variables)
        if read and kind not in knows:
            able = ", ".join((others or {}).get(kind, ()))
            instead = f"{cure}, or a target that has them: {able}" if able else cure
            raise ExportError(f"policy {policy.name} {words.format(read, target)}; use a formula without {instead}")


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
        What is exported.
    can_threshold : bool
        Whether jobs that have waited too long can go first.
    can_oldest_waiting : bool
        Whether r can count from the job that has waited longest.
    can_wait : bool
        Whether the score is computed again while a job waits.
    """
    sentences = []
    if math.isfinite(policy.threshold) and not can_threshold:
        sentences.append(_no_threshold(policy))
    if "r" in policy.variables and policy.epoch.rule == "oldest-waiting" and not can_oldest_waiting:
        sentences.append("The policy counts r from the job that has waited longest; here it cannot.")
    if "w" in policy.variables and not can_wait:
        sentences.append("The score is computed once, with w = 0: that the policy changes while a job waits is lost.")
    return tuple(sentences)


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
        What is exported.
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


def slope(expression: Expression, name: str) -> float | None:
    """Return the constant by which ``expression`` grows with the variable; None where it is no constant.

    Parameters
    ----------
    expression : Expression
        Without named coefficients.
    name : {"p", "q", "r", "w", "m"}
        The variable; a formula without it has the slope 0.
    """
    if name not in expression.variables:
        return 0.0
    try:
        terms = {
            term: factor for term, factor in multiply_out(expression).items() if name in map(str, term.free_symbols)
        }
        alone = to_sympy(Variable(name))
        return None if set(terms) - {alone} else float(terms.get(alone, 0))
    except (FormulaError, OverflowError, RecursionError):
        return None


def linear_coefficients(
    expression: Expression, products: tuple[str, ...] = ("p", "q", "r", "w")
) -> dict[str, float] | None:
    """Return the factors of some products if ``expression`` is a sum of their multiples and a constant, else None.

    Parameters
    ----------
    expression : Expression
        Without named coefficients.
    products : tuple of str
        Variables side by side: ``pq`` is p*q.
    """
    try:
        terms = {str(term): factor for term, factor in multiply_out(expression).items()}
        factors = {product: float(terms.pop("*".join(product), 0)) for product in products}
    except (FormulaError, OverflowError, RecursionError):
        return None
    return None if set(terms) - {"1"} else factors
