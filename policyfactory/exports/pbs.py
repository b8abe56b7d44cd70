"""A policy as the text of OpenPBS's ``job_sort_formula``.

OpenPBS evaluates the formula as a Python expression over a job's numeric resources, HIGHER first; a missing resource
is 0 and any exception silently makes the value 0 (OpenPBS sources: validate_job_formula of the server,
formula_evaluate of the scheduler). So here

- the sign is flipped;
- p is ``walltime``, q is ``ncpus``, w is ``eligible_time`` (PBS counts only the time in which a job could have run);
- r has no counterpart. Where the formula has it as ``d*r`` alone, r = now - waited, and ``-eligible_time`` stands for
  it, as ``now`` is the same for all jobs. Elsewhere (log10(r)) a hook writes the submit time since the epoch, at least
  1 s, into a resource when a job is queued; a job without it (the hook failed or was disabled) comes last;
- a job without walltime counts as one of a year: its 0 would put it before all others;
- n is ``nodect``, which the server counts (the chunks of a select), at least 1; mem is ``mem``, which PBS has in KB; g
  is ``ngpus``; a job that asks for none, and has no default, has 0 of the latter two;
- logarithms, divisors and roots are guarded, so that nothing raises: ``log10(max(pf_submit, 1))``;
- values of -2**31 and less, at which PBS would never run a job, are divided by a power of two, which changes no order.

What comes out is evaluated for jobs of very different shapes, as PBS would, before anybody gets it.
"""

from __future__ import annotations

import ast
import bisect
import dataclasses
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import ExportError
from policyfactory.core.text import DAY, HOUR
from policyfactory.exports.content import Export, ExportSite, File, comment, header, identifier, instructions
from policyfactory.exports.expressible import fixed_epoch, slope, unexpressed
from policyfactory.exports.queue import UNLIMITED_S, Queue
from policyfactory.exports.scripts import filled, parts, sentences
from policyfactory.policy.expression import (
    ASKED,
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
    rewritten,
)
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

RESOURCE = "pf_submit"  # seconds from the epoch to the submission, written by the hook
_NAMES = {"p": "walltime", "q": "ncpus", "w": "eligible_time", "r": RESOURCE, "n": "nodect", "mem": "mem", "g": "ngpus"}
_KB = 1024.0  # in a MB
# The largest job that the formula must not overflow for (seconds, processors).
_EXTREME = {"p": 1e9, "q": 1e7, "r": 1e10, "w": 1e10, "m": 1e7, "n": 1e7, "mem": 1e12, "g": 1e7}
_SAFE = re.compile(r"[a-z0-9_ .+*/()<>,-]+")
_OVERDUE = "1e300"
# Below every value of the formula, which is kept above half of `NEVER_RUNS`, and still run.
_LAST = "-2e9"
_LARGEST_MACHINE = 10**7
_LONGEST_WAIT = 10**8  # s


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Walltime(Expression):
    """p: what was asked for, or a year; never below 1.

    Parameters
    ----------
    alone : bool
        Whether it is the only argument of a function, and needs no parentheses of its own.
    """

    alone: bool = False

    def text(self) -> str:
        """Return the Python text."""
        text = f"{_NAMES['p']} or {format_number(float(UNLIMITED_S))}"
        return text if self.alone else f"({text})"


_MEGABYTES = Binary("/", Coefficient(_NAMES["mem"]), Number(_KB))


@functools.lru_cache(maxsize=64)
def needs_hook(policy: Policy) -> bool:
    """Return whether r cannot be written as a multiple of the waiting time."""
    return "r" in policy.variables and slope(policy.expression, "r") is None


def formula(policy: Policy, processors: int | None = None) -> str:
    """Return the text of ``job_sort_formula``; HIGHER runs first.

    Parameters
    ----------
    policy : Policy
        What is exported.
    processors : int, optional
        The machine's: no job is larger.

    Raises
    ------
    ExportError
        If PBS cannot express the policy; says what to do.
    """
    if "m" in policy.variables:
        raise ExportError(
            f"policy {policy.name} has m, which a PBS formula does not know; give the machine's size: --processors N"
        )
    expression = policy.expression
    if "r" in policy.variables and not needs_hook(policy):
        expression = replace_variables(expression, {"r": Negative(Variable("w"))})
    expression = opposite(_guarded(expression, policy))
    lowest = _lowest(expression.text(), policy, processors)
    divisor = power_of_two(lowest)
    if divisor > 1:
        expression = Binary("/", expression, Number(divisor))
    text = expression.text()
    if needs_hook(policy):
        text = f"{text} if {RESOURCE} > 0 else {_LAST}"
    if math.isfinite(policy.threshold):
        # Overdue jobs go first, the one that waits longest before the others: submit order.
        limit = format_number(policy.threshold)
        text = f"{_OVERDUE}*(1 + eligible_time*1e-12) if eligible_time > {limit} else {text}"
    if not _SAFE.fullmatch(text):
        raise ExportError(f"policy {policy.name}: the formula has a character that PBS does not take; simplify it")
    return text


def power_of_two(lowest: float) -> float:
    """Return by what values down to ``lowest`` must be divided, so that PBS runs every job: 1 or a power of two.

    Doubles are divided by it without rounding, so the order stays.
    """
    room = lowest / (NEVER_RUNS / 2)
    return 1.0 if room <= 1 else 2.0 ** math.ceil(math.log2(room))


@functools.lru_cache(maxsize=4)
def _shapes(processors: int | None, asked: tuple[str, ...] = ()) -> tuple[dict[str, int], ...]:
    """Return jobs of very different shapes: PBS's names and whole numbers, a missing request as 0."""
    largest = max(processors or _LARGEST_MACHINE, 2)
    more = {"n": (0, 1, 3, largest), "mem": (0, 1000, 2 * 1024**2, 10**15), "g": (0, 1, largest)}
    return tuple(
        {"walltime": p, "ncpus": q, "eligible_time": w, RESOURCE: now - w}
        | dict(zip((_NAMES[name] for name in asked), values, strict=True))
        for p, q, w, now, *values in itertools.product(
            (0, 1, 60, HOUR, 7 * HOUR, DAY, 30 * DAY, 366 * DAY),
            sorted({0, 1, 2, 3, min(64, largest), max(largest // 5, 1), largest}),
            (0, 1, HOUR, DAY, 30 * DAY, _LONGEST_WAIT),
            (_LONGEST_WAIT + 1, 20 * _LONGEST_WAIT),
            *(more[name] for name in asked),
        )
    )


@functools.lru_cache(maxsize=32)
def _values(text: str, processors: int | None, asked: tuple[str, ...]) -> tuple[float | None, ...]:
    """Return PBS's value for every shape of job."""
    evaluator = Evaluator(text)
    return tuple(evaluator.value(names) for names in _shapes(processors, asked))


def _lowest(text: str, policy: Policy, processors: int | None) -> float:
    """Return the lowest value of any shape of job.

    Raises
    ------
    ExportError
        If PBS has no value for one of them, or an infinite one below all others.
    """
    lowest = 0.0
    values = _values(text, processors, policy.asked)
    for names, value in zip(_shapes(processors, policy.asked), values, strict=True):
        if value is None or math.isnan(value) or value == -math.inf:
            shape = ", ".join(f"{name} {number}" for name, number in names.items() if name in text)
            raise ExportError(
                f"policy {policy.name}: {text[:80]} overflows in PBS for a job of {shape}, which it would put at "
                "0 or never run; simplify the formula, or use another target"
            )
        lowest = min(lowest, value)
    return lowest


@functools.lru_cache(maxsize=32)
def misplaced(policy: Policy, text: str, processors: int | None = None) -> tuple[int, int]:
    """Return how many shapes of jobs stand elsewhere in PBS than in the policy's order, and how many were tried.

    Guards give numbers to jobs for which the policy has none, or an infinite one.

    Parameters
    ----------
    policy : Policy
        With a fixed epoch where the formula needs one.
    text : str
        What `formula` made of it, without the threshold.
    processors : int, optional
        The machine's.
    """
    wrong, tried = 0, 0
    shapes = [
        (names, value or 0.0)
        for names, value in zip(_shapes(processors, policy.asked), _values(text, processors, policy.asked), strict=True)
        if names["walltime"] and names["ncpus"] and names.get("nodect", 1)
    ]
    for now in (_LONGEST_WAIT + 1, 20 * _LONGEST_WAIT):
        jobs = [names for names, _ in shapes if names["eligible_time"] + names[RESOURCE] == now]
        p, q, w, r = (
            np.array([names[name] for names in jobs]) for name in ("walltime", "ncpus", "eligible_time", RESOURCE)
        )
        asked = np.array([[names.get(_NAMES[name], 1) for names in jobs] for name in ASKED], dtype=np.float64)
        asked[ASKED.index("mem")] /= _KB
        scores = policy.scores(p, q, r, w, asked=asked)
        values = np.array([value for names, value in shapes if names["eligible_time"] + names[RESOURCE] == now])
        wrong += len(jobs) - _longest_fall(scores, values)
        tried += len(jobs)
    return wrong, tried


def _longest_fall(scores: NDArray[np.float64], values: NDArray[np.float64]) -> int:
    """Return how many jobs stand in the right order: the most whose values fall while their scores rise."""
    order = np.argsort(scores, kind="stable")
    scores, values = scores[order], values[order]
    # Sums of the score and of the formula are rounded in different places: scores that are nearly equal are one.
    slack = 1e-13 * np.abs(scores[np.isfinite(scores)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        ranks = np.cumsum(np.append(False, np.diff(scores) > slack))
    ends: list[float] = []  # of the falls of each length, the best last value, its sign flipped
    for value in (-values[np.lexsort((-values, ranks))]).tolist():
        length = bisect.bisect_right(ends, value)
        ends[length : length + 1] = [value]
    return len(ends)


def _guarded(node: Expression, policy: Policy) -> Expression:
    """Return the formula in PBS's names, such that no job makes it raise."""

    def guard(part: Expression) -> Expression | None:
        match part:
            case Variable("p"):
                return _Walltime()
            case Variable("n"):
                return _at_least(Coefficient(_NAMES["n"]), 1.0)
            case Variable("mem"):
                return _MEGABYTES
            case Variable(name):
                return Coefficient(_NAMES[name])
            case Binary("/", left, right):
                return Binary("/", _guarded(left, policy), _divisor(right, policy))
            case Binary("**", base, exponent):
                return _power(part, base, exponent, policy)
            case Call("log10" | "log2" | "ln" | "sqrt" | "exp" | "abs", (argument,)):
                return _guarded_call(part.function, argument, policy)
            case _:
                return None

    return rewritten(node, guard)


def _guarded_call(function: str, argument: Expression, policy: Policy) -> Expression:
    name = "log" if function == "ln" else function
    inside = _guarded(argument, policy)
    if argument == Variable("p") and function != "exp":
        inside = _Walltime(alone=True)
    elif function in {"log10", "log2", "ln"}:
        inside = _at_least_one(argument) or _at_least(inside, 1e-300)
    elif function == "sqrt" and not isinstance(argument, Variable | Number):
        inside = _at_least(inside, 0.0)
    elif function == "exp":
        inside = Call("min", (inside, Number(700.0)))
    return Call(name, (inside,))


def _at_least(part: Expression, least: float) -> Expression:
    return Call("max", (part, Number(least)))


def _at_least_one(part: Expression) -> Expression | None:
    """Return a variable as at least 1, a positive number as it is."""
    if part == Variable("p"):
        return _Walltime()
    if isinstance(part, Variable) and part.name != "mem":
        return _at_least(Coefficient(_NAMES[part.name]), 1.0)
    return part if isinstance(part, Number) and part.value > 0 else None


def _divisor(part: Expression, policy: Policy) -> Expression:
    if isinstance(part, Variable) and part.name in {"p", "q", "n"}:
        return _at_least_one(part) or part
    if isinstance(part, Number) and part.value > 0:
        return part
    return _NotZero(_guarded(part, policy))


def _power(node: Expression, base: Expression, exponent: Expression, policy: Policy) -> Expression:
    from policyfactory.policy.compile import value_at

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


# A policy for OpenPBS -------------------------------------------------------------------------------------------------

# A shell script of ``qmgr`` commands that sets ``job_sort_formula``, and takes it back.
#
# Where r stands under a logarithm or the like, a hook writes it into a resource when a job is queued.


_BEFORE = "pbs_before_policyfactory"

_WORDS = "pbs.txt"


def make(model: Model, site: ExportSite) -> Export:
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
    words = Export((), settings, install, rollback, _limits(policy, text, site.processors))
    head = [
        *header(model, site, "pbs"),
        "",
        "For OpenPBS 20 or newer (its formulas are Python 3).",
        *instructions(words),
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
    return dataclasses.replace(words, files=(file,), priorities=None if policy.asked else priorities)


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


# The value that OpenPBS gives a job by a formula ----------------------------------------------------------------------

# Python arithmetic, and 0 where anything goes wrong.
#
# The scheduler puts the job's numeric resources into a dictionary (0 for what it did not ask for; a number without a
# fraction becomes a Python integer), evaluates the text with the names of ``math``, and takes 0 after any exception
# (OpenPBS, ``formula_evaluate`` of ``src/scheduler/job_info.cpp``). Here the text is walked, not run.


# A job whose value is not above job_sort_formula_threshold never runs; where the site sets none, the threshold is the
# least 32-bit integer (init_sc_attrs and query_server of src/scheduler/fifo.cpp).
NEVER_RUNS = -(2.0**31)

_Names = Mapping[str, float]
_Value = Callable[[_Names], Any]

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in ("log10", "log2", "log", "sqrt", "exp")},
    "max": max,
    "min": min,
    "abs": abs,
}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class Evaluator:
    """A formula, ready to be evaluated for many jobs.

    Parameters
    ----------
    text : str
        As in ``job_sort_formula``.

    Raises
    ------
    ExportError
        If it is no expression of the kind that is exported.
    """

    def __init__(self, text: str) -> None:
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ExportError(f"{text[:60]!r} is no formula that PBS could evaluate: {error}") from None
        self.text = text
        self._value = _prepared(tree.body)

    def value(self, names: _Names) -> float | None:
        """Return the value for a job; None where PBS would take 0, without a word to anyone.

        Parameters
        ----------
        names : mapping of str to number
            Whole numbers as integers, as PBS has them.
        """
        try:
            return float(self._value(names))
        except (ArithmeticError, ValueError, TypeError, KeyError):
            return None


def _prepared(node: ast.expr) -> _Value:
    """Return a function of the names for one part of the text."""
    match node:
        case ast.Constant(value=int() | float() as constant):
            return lambda names: constant  # noqa: ARG005
        case ast.Name(id=name):
            return lambda names: names[name]
        case ast.UnaryOp(op=ast.USub(), operand=part):
            inside = _prepared(part)
            return lambda names: -inside(names)
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _BINARY:
            first, act, second = _prepared(left), _BINARY[type(kind)], _prepared(right)
            return lambda names: act(first(names), second(names))
        case ast.BoolOp(op=ast.Or(), values=[left, right]):
            first, second = _prepared(left), _prepared(right)
            return lambda names: first(names) or second(names)
        case ast.IfExp(test=ast.Compare(left=left, ops=[ast.Gt()], comparators=[right]), body=body, orelse=other):
            low, high = _prepared(left), _prepared(right)
            yes, no = _prepared(body), _prepared(other)
            return lambda names: yes(names) if low(names) > high(names) else no(names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            function, parts = _FUNCTIONS[name], [_prepared(part) for part in arguments]
            return lambda names: function(*[part(names) for part in parts])
    raise ExportError(f"{ast.unparse(node)[:60]!r} is no part of a formula that is exported to PBS")
