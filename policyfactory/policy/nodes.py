"""The tree of a formula: numbers, variables, named coefficients, signs, operations, function calls.

A tree is immutable, compares by content, and prints as text that parses back to the same tree.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "ALIASES",
    "ASKED",
    "FUNCTIONS",
    "MAX_REPEATED",
    "OF_A_JOB",
    "PREDICTIONS",
    "VARIABLES",
    "Binary",
    "Call",
    "Coefficient",
    "Expression",
    "Negative",
    "Number",
    "Variable",
    "format_number",
    "number",
    "opposite",
    "replace_variables",
    "rewritten",
    "substitute",
    "whole_exponent",
]

# name -> what it is (unit); the whole vocabulary of a policy
VARIABLES: dict[str, str] = {
    "p": "requested run time of the job (s)",
    "q": "requested processors of the job (processors)",
    "r": "submit time of the job since the policy's epoch (s)",
    "w": "time the job has waited so far (s)",
    "m": "processors of the machine (processors)",
    "f": "processors free at the beginning of the scheduling pass (processors)",
    "e": "predicted mean run time of the job, by its user's past (s)",
    "s": "predicted shortness of the job, the mean of 10 s / max(run time, 10 s) (1)",
    "e90": "run time that the job is predicted to exceed once in ten (s)",
    "user_waiting": "jobs of the same user that waited when the job was submitted (1)",
    "user_running": "jobs of the same user that ran when the job was submitted (1)",
    "n": "requested nodes of the job (nodes)",
    "mem": "requested memory of the job, in all (MB)",
    "g": "requested GPUs of the job, in all (1)",
}
# What is known of a job from the past of its user, first when it is submitted; e, s and e90 can be made anew while it
# waits, once a job of that user has ended. The rows of `policyfactory.engine.waiting.Formula.predictions`.
PREDICTIONS = ("e", "s", "e90", "user_waiting", "user_running")
# What a job asks for besides processors and time, of `policyfactory.workload.requests`; never a guess: a log that does
# not say it is refused. The rows of `policyfactory.engine.waiting.Formula.asked`.
ASKED = ("n", "mem", "g")
# The rows of `policyfactory.engine.formula.evaluate`: what differs from job to job.
OF_A_JOB = ("p", "q", "r", "w", *PREDICTIONS, *ASKED)
# Other names of variables, in formulas without named coefficients: c is the cores of the job.
ALIASES = {"c": "q"}

# name -> least and greatest number of arguments
FUNCTIONS: dict[str, tuple[int, int]] = {
    "log10": (1, 1),
    "log2": (1, 1),
    "ln": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "abs": (1, 1),
    "min": (2, 8),
    "max": (2, 8),
}

MAX_REPEATED = 16  # whole exponents up to here are repeated multiplication, the same bits in every language

# How tightly each kind of text binds, as in Python: -p**2 is -(p**2), -p*q is (-p)*q.
_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)
_LEVEL = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "**": _POWER}


class Expression:
    """A formula or a part of one."""

    __slots__ = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        """The parts, from left to right."""
        return ()

    @property
    def level(self) -> int:
        """How tightly the text of this node binds."""
        return _ATOM

    def text(self) -> str:
        """Return the canonical text, which parses back to this tree."""
        raise NotImplementedError

    def walk(self) -> Iterator[Expression]:
        """Give every node once, a parent before its parts, from left to right."""
        todo: list[Expression] = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(reversed(node.children))

    @property
    def variables(self) -> frozenset[str]:
        """The names among `VARIABLES` that occur."""
        return frozenset(node.name for node in self.walk() if isinstance(node, Variable))

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The names of coefficients without a value, in order of first appearance."""
        return tuple(dict.fromkeys(node.name for node in self.walk() if isinstance(node, Coefficient)))

    @property
    def size(self) -> int:
        """The number of nodes."""
        return sum(1 for _ in self.walk())

    def __str__(self) -> str:
        """Return the canonical text."""
        return self.text()

    def within(self, least: int) -> str:
        """Return the text, in parentheses if it binds less tightly than ``least``."""
        return self.text() if self.level >= least else f"({self.text()})"


@dataclasses.dataclass(frozen=True, slots=True)
class Number(Expression):
    """A finite constant, zero or positive (a negative one is the `Negative` of it)."""

    value: float

    def __post_init__(self) -> None:
        """Refuse what the text could not say."""
        if not (math.isfinite(self.value) and self.value >= 0):
            raise ValueError(f"a constant is finite and not negative, got {self.value!r}; use number()")
        object.__setattr__(self, "value", abs(float(self.value)))

    def text(self) -> str:
        """Return the shortest text of this double."""
        return format_number(self.value)


@dataclasses.dataclass(frozen=True, slots=True)
class Variable(Expression):
    """One of `VARIABLES`."""

    name: str

    def text(self) -> str:
        """Return the name."""
        return self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Coefficient(Expression):
    """A named coefficient whose value is to be found by a fit."""

    name: str

    def text(self) -> str:
        """Return the name."""
        return self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Negative(Expression):
    """Minus something."""

    part: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The one part."""
        return (self.part,)

    @property
    def level(self) -> int:
        """Between product and power."""
        return _SIGN

    def text(self) -> str:
        """Return the part with a minus sign before it."""
        return f"-{self.part.within(_SIGN)}"


@dataclasses.dataclass(frozen=True, slots=True)
class Binary(Expression):
    """An operation on two parts; ``operator`` is one of ``+ - * / **``."""

    operator: str
    left: Expression
    right: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """Left and right."""
        return (self.left, self.right)

    @property
    def level(self) -> int:
        """That of the operator."""
        return _LEVEL[self.operator]

    def text(self) -> str:
        """Return both parts around the operator, with the parentheses that are needed."""
        if self.operator == "**":
            # Binds to the right, and takes a sign there without parentheses.
            return f"{self.left.within(_ATOM)}**{self.right.within(_SIGN)}"
        left = self.left.within(self.level)
        right = self.right.text()
        if self.right.level <= self.level or isinstance(self.right, Negative):
            right = f"({right})"
        space = " " if self.level == _SUM else ""
        return f"{left}{space}{self.operator}{space}{right}"


@dataclasses.dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function of one or more parts."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    def text(self) -> str:
        """Return name and arguments."""
        return f"{self.function}({', '.join(part.text() for part in self.arguments)})"


def format_number(value: float) -> str:
    """Return the shortest decimal text that reads back as the same double: ``870``, ``0.5``, ``6.86e6``."""
    mantissa, _, exponent = repr(value).partition("e")
    if exponent:
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    plain = mantissa.removesuffix(".0")
    if value < 1e6 or value != int(value):
        return plain
    digits = plain.rstrip("0")
    point = "." if len(digits) > 1 else ""
    scientific = f"{digits[0]}{point}{digits[1:]}e{len(plain) - 1}"
    return scientific if len(scientific) < len(plain) else plain


def number(value: float) -> Expression:
    """Return the constant ``value`` of any sign as an expression.

    Raises
    ------
    ValueError
        If it is not finite.
    """
    return Negative(Number(-value)) if value < 0 else Number(value)


def whole_exponent(exponent: Expression) -> int | None:
    """Return the exponent if it is a whole number from 0 to `MAX_REPEATED`, else None."""
    if isinstance(exponent, Number) and exponent.value == int(exponent.value) and exponent.value <= MAX_REPEATED:
        return int(exponent.value)
    return None


def rewritten(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Return ``expression`` with what ``change`` makes of it or, where that is None, of its parts."""
    changed = change(expression)
    if changed is not None:
        return changed
    parts = [rewritten(part, change) for part in expression.children]
    match expression:
        case Negative():
            return Negative(*parts)
        case Binary(operator):
            return Binary(operator, *parts)
        case Call(function):
            return Call(function, tuple(parts))
        case _:
            return expression


def substitute(expression: Expression, values: Mapping[str, float]) -> Expression:
    """Return ``expression`` with numbers in place of the named coefficients that have a value."""

    def value_of(node: Expression) -> Expression | None:
        return number(values[node.name]) if isinstance(node, Coefficient) and node.name in values else None

    return rewritten(expression, value_of)


def replace_variables(expression: Expression, parts: Mapping[str, Expression]) -> Expression:
    """Return ``expression`` with other expressions in place of the variables that ``parts`` names."""
    return rewritten(expression, lambda node: parts.get(node.name) if isinstance(node, Variable) else None)


def opposite(expression: Expression) -> Expression:
    """Return minus ``expression``, the sign as far left in a product as it goes: ``-p*q``."""
    match expression:
        case Negative(part):
            return part
        case Binary("*" | "/" as operator, left, right):
            return Binary(operator, opposite(left), right)
        case _:
            return Negative(expression)
