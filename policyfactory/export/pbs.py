"""A policy as OpenPBS's ``job_sort_formula``, in a shell script of ``qmgr`` commands.

OpenPBS evaluates the formula as a Python expression over a job's numeric resources, HIGHER first; a missing resource
is 0 and any exception silently makes the value 0 (OpenPBS sources: validate_job_formula of the server,
formula_evaluate of the scheduler). So here

- the sign is flipped;
- p is ``walltime``, q is ``ncpus``, w is ``eligible_time`` (PBS counts only the time in which a job could have run);
- r has no counterpart. Where the formula has it as ``d*r`` alone, r = now - waited, and ``-eligible_time`` stands for
  it, as ``now`` is the same for all jobs. Elsewhere (log10(r)) a hook writes the submit time since the epoch into a
  resource when a job is queued;
- logarithms, divisors and roots are guarded, so that nothing raises: ``log10(max(walltime, 1))``.
"""

from __future__ import annotations

import dataclasses
import math
import re

from policyfactory.core.errors import ExportError, FormulaError
from policyfactory.export.targets import Target, header, identifier
from policyfactory.policy.nodes import (
    Binary,
    Call,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
    format_number,
    opposite,
    replace_variables,
)
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["RESOURCE", "TARGET", "formula", "needs_hook", "render"]

RESOURCE = "pf_submit"  # seconds from the epoch to the submission, written by the hook
_NAMES = {"p": "walltime", "q": "ncpus", "w": "eligible_time", "r": RESOURCE}
# The largest job that the formula must not overflow for (seconds, processors).
_EXTREME = {"p": 1e9, "q": 1e7, "r": 1e10, "w": 1e10, "m": 1e7}
_SAFE = re.compile(r"[a-z0-9_ .+*/()<>,-]+")
_OVERDUE = "1e300"


@dataclasses.dataclass(frozen=True, slots=True)
class _NotZero(Expression):
    """A divisor; where it is 0 a tiny number takes its place, as the quotient is infinite then."""

    part: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The divisor."""
        return (self.part,)

    def text(self) -> str:
        """Return the Python text."""
        return f"({self.part.text()} or 1e-30)"


def needs_hook(policy: Policy) -> bool:
    """Return whether r can not be written as a multiple of the waiting time."""
    return "r" in policy.variables and not _is_linear_in_r(policy.expression)


def formula(policy: Policy) -> str:
    """Return the text of ``job_sort_formula``; HIGHER runs first.

    Raises
    ------
    ExportError
        If PBS can not express the policy; says what to do.
    """
    if "m" in policy.variables:
        raise ExportError(
            f"policy {policy.name} has m, which a PBS formula does not know; give the machine's size: --processors N"
        )
    expression = policy.expression
    if "r" in policy.variables and not needs_hook(policy):
        expression = replace_variables(expression, {"r": Negative(Variable("w"))})
    text = opposite(_guarded(expression, policy)).text()
    if math.isfinite(policy.threshold):
        # Overdue jobs go first, the one that waits longest before the others: submit order.
        limit = format_number(policy.threshold)
        text = f"{_OVERDUE}*(1 + eligible_time*1e-12) if eligible_time > {limit} else {text}"
    if not _SAFE.fullmatch(text):
        raise ExportError(f"policy {policy.name}: the formula has a character that PBS does not take; simplify it")
    return text


def _is_linear_in_r(expression: Expression) -> bool:
    """Return whether the formula is a constant times r plus something without r."""
    from policyfactory.policy.simplify import to_sympy

    try:
        value = to_sympy(expression)
    except FormulaError:
        return False
    return all(value.diff(symbol).is_number for symbol in value.free_symbols if symbol.name == "r")


def _guarded(node: Expression, policy: Policy) -> Expression:
    """Return the formula in PBS's names, such that no job makes it raise."""

    def walk(part: Expression) -> Expression:
        return _guarded(part, policy)

    match node:
        case Variable(name):
            return Coefficient(_NAMES[name])
        case Number():
            return node
        case Negative(part):
            return Negative(walk(part))
        case Binary("/", left, right):
            return Binary("/", walk(left), _divisor(right, policy))
        case Binary("**", base, exponent):
            return _power(node, base, exponent, policy)
        case Binary(operator, left, right):
            return Binary(operator, walk(left), walk(right))
        case Call("log10" | "log2" | "ln", (part,)):
            name = "log" if node.function == "ln" else node.function
            return Call(name, (_at_least_one(part) or _at_least(walk(part), 1e-300),))
        case Call("sqrt", (part,)):
            return Call("sqrt", (walk(part) if isinstance(part, Variable | Number) else _at_least(walk(part), 0.0),))
        case Call("exp", (part,)):
            return Call("exp", (Call("min", (walk(part), Number(700.0))),))
        case Call(function, arguments):
            return Call(function, tuple(map(walk, arguments)))
    raise TypeError(f"{type(node).__name__} is no part of a formula")


def _at_least(part: Expression, least: float) -> Expression:
    return Call("max", (part, Number(least)))


def _at_least_one(part: Expression) -> Expression | None:
    """Return a variable as at least 1 (a missing walltime is 0 in PBS), a positive number as it is."""
    if isinstance(part, Variable):
        return _at_least(Coefficient(_NAMES[part.name]), 1.0)
    return part if isinstance(part, Number) and part.value > 0 else None


def _divisor(part: Expression, policy: Policy) -> Expression:
    if isinstance(part, Variable) and part.name in {"p", "q"}:
        return _at_least(Coefficient(_NAMES[part.name]), 1.0)
    if isinstance(part, Number) and part.value > 0:
        return part
    return _NotZero(_guarded(part, policy))


def _power(node: Expression, base: Expression, exponent: Expression, policy: Policy) -> Expression:
    from policyfactory.policy.evaluation import value_at

    negative = isinstance(exponent, Negative)
    size = exponent.part if isinstance(exponent, Negative) else exponent
    if not isinstance(size, Number):
        raise ExportError(
            f"policy {policy.name}: {node.text()} has a variable exponent, which PBS would compute with whole numbers "
            "of any length; use another target, or a constant exponent"
        )
    if not abs(value_at(node, _EXTREME)) < 1e150:
        raise ExportError(
            f"policy {policy.name}: {node.text()} overflows in PBS, which makes it 0; use a smaller exponent"
        )
    inside = _guarded(base, policy)
    if negative:
        inside = _at_least_one(base) or _at_least(inside, 1e-30)
    elif size.value != int(size.value) and not isinstance(base, Variable):
        inside = _at_least(inside, 0.0)
    return Binary("**", inside, exponent)


def render(model: Model) -> str:
    """Return a shell script that sets the formula, and the hook where one is needed.

    Raises
    ------
    ExportError
        If PBS can not express the policy; says what to do.
    """
    policy = model.policy
    text = formula(policy)
    lines = ["#!/bin/sh", *(f"# {line}".rstrip() for line in header(model, "pbs")), *_notes(policy), "set -e", ""]
    if needs_hook(policy):
        lines += _hook(policy)
    if "eligible_time" in text:
        lines.append("qmgr -c 'set server eligible_time_enable = True'")
    lines.append(f"qmgr -c 'set server job_sort_formula = \"{text}\"'")
    return "\n".join(lines) + "\n"


def _notes(policy: Policy) -> list[str]:
    notes = [
        "#",
        "# For OpenPBS 20 or newer (its formulas are Python 3). Run as root on the server host.",
        "# PBS puts the HIGHER value first, so the sign is flipped. A job without walltime counts as 1 s where it",
        "# would stand under a logarithm or a fraction: give the queue a default (resources_default.walltime).",
    ]
    if needs_hook(policy):
        notes.append(f"# A hook writes r into the resource {RESOURCE} when a job is queued; jobs queued before have 0.")
    elif "r" in policy.variables:
        notes.append("# r is now minus the time waited, and now is the same for all jobs: -eligible_time stands for r.")
    return notes


def _hook(policy: Policy) -> list[str]:
    """Return the commands that make the resource and the hook."""
    epoch = policy.epoch.unix_time
    if policy.epoch.rule == "oldest-waiting":
        raise ExportError(
            f"policy {policy.name} counts r from the oldest waiting job, which PBS can not do; "
            "give a fixed date: --epoch 2026-01-01"
        )
    if epoch is None:
        raise ExportError(
            f"policy {policy.name} counts r from the start of a window, which a scheduler in production does not have; "
            "give the date from which it counts: --epoch 2026-01-01"
        )
    name = f"pf_{identifier(policy.name)}"
    return [
        f'hook=$(mktemp "${{TMPDIR:-/tmp}}/{name}.XXXXXX")',
        "cat > \"$hook\" <<'END_OF_HOOK'",
        *_hook_source(epoch),
        "END_OF_HOOK",
        # The script may run again, after a new fit.
        f"qmgr -c 'list resource {RESOURCE}' > /dev/null 2>&1 || qmgr -c 'create resource {RESOURCE} type=float'",
        f"qmgr -c 'list hook {name}' > /dev/null 2>&1 || qmgr -c 'create hook {name} event=\"queuejob,modifyjob\"'",
        f'qmgr -c "import hook {name} application/x-python default $hook"',
        'rm "$hook"',
        "",
    ]


def _hook_source(epoch: int) -> list[str]:
    return [
        "import time",
        "",
        "import pbs",
        "",
        f"EPOCH = {epoch}  # seconds since 1970",
        "",
        "event = pbs.event()",
        "if event.type == pbs.QUEUEJOB:",
        f'    event.job.Resource_List["{RESOURCE}"] = float(max(0, int(time.time()) - EPOCH))',
        f'elif event.job.Resource_List["{RESOURCE}"] is not None:',
        f'    event.reject("{RESOURCE} is set by the server when a job is queued")',
    ]


TARGET = Target(
    "pbs", ".sh", "shell script that sets OpenPBS's job_sort_formula (and a hook where r needs one)", render
)
