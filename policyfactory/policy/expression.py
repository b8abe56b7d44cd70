"""From text to a formula: the one way in, for catalogue, command line and model files alike.

The grammar, with the precedence of Python::

    sum     = product { ("+" | "-") product }
    product = sign { ("*" | "/") sign }
    sign    = ("-" | "+") sign | power
    power   = atom [ "**" sign ]
    atom    = NUMBER | VARIABLE | COEFFICIENT | FUNCTION "(" sum { "," sum } ")" | "(" sum ")"

Text is never handed to an interpreter. Length, depth, numbers and exponents are bounded, so that whatever a model
file holds is answered at once, with a tree or with a `FormulaError` that points at the fault.
"""

from __future__ import annotations

import dataclasses
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NoReturn

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.core.text import did_you_mean

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
MODELLED = PREDICTIONS[:3]  # the others are counted
# What a job asks for besides processors and time, of `policyfactory.workload.jobs`; never a guess: a log that does
# not say it is refused. The rows of `policyfactory.engine.waiting.Formula.asked`.
ASKED = ("n", "mem", "g")
# The rows of `policyfactory.engine.waiting.evaluate`: what differs from job to job.
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


# From text to a formula: the one way in, for catalogue, command line and model files alike ----------------------------


MAX_LENGTH = 4000  # characters of a formula
MAX_NESTING = 40  # parentheses, signs and powers inside each other
MAX_DEPTH = 150  # height of the tree, so also terms of one sum
MAX_EXPONENT = 100.0  # largest constant exponent
_MAX_NAME = 32  # characters of a coefficient's name
_MAX_DIGITS = 40  # characters of a number
_SMALLEST, _LARGEST = 1e-300, 1e300

_TOKEN = re.compile(
    r"(?P<space>[ \t]+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|[-+*/(),])"
)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CURES = {
    "^": "write ** for a power",
    "%": "there is no remainder",
    "\u00d7": "write * for a product",
    "\u00b7": "write * for a product",
    "\u00f7": "write / for a quotient",
    "\u2212": "write - (minus of the keyboard)",
    "\u2013": "write - (minus of the keyboard)",
    "\u221a": "write sqrt(...)",
    "[": "write ( for a parenthesis",
    "{": "write ( for a parenthesis",
    "\n": "write the formula in one line",
    "\r": "write the formula in one line",
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # number, name, operator or end
    text: str
    position: int


@dataclasses.dataclass(frozen=True, slots=True)
class _TextPart:
    """A tree and its height."""

    node: Expression
    height: int = 1


def parse(text: str, *, coefficients: bool = False, free: Collection[str] = ()) -> Expression:
    """Return the tree of a formula.

    Parameters
    ----------
    text : str
        For example ``"log10(p)*q + 870*log10(r)"``.
    coefficients : bool
        Whether other lower-case names are named coefficients, as in ``"a*p**b*q + c*log10(r)"``.
    free : collection of str
        Variables that can not occur in these formulas: as ``coefficients`` their names are those of coefficients.

    Raises
    ------
    FormulaError
        If the text is outside the grammar or its bounds; it has the position of the fault.

    Examples
    --------
    >>> parse("a*p**b*q + c*log10(r)", coefficients=True).coefficients
    ('a', 'b', 'c')
    """
    if not isinstance(text, str):
        raise FormulaError(f"a formula is a text such as 'p*q', got {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise FormulaError(
            f"the formula has {len(text):,} characters; at most {MAX_LENGTH:,} are read", text, MAX_LENGTH
        )
    return _Parser(text, coefficients=coefficients, free=free).whole()


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            _refuse_character(text, position)
        kind = str(match.lastgroup)
        if kind != "space":
            tokens.append(_Token(kind, match.group(), position))
        position = match.end()
    tokens.append(_Token("end", "", len(text)))
    return tokens


def _refuse_character(text: str, position: int) -> NoReturn:
    character = text[position]
    name = unicodedata.name(character, f"U+{ord(character):04X}")
    shown = repr(character) if character.isprintable() else f"U+{ord(character):04X}"
    cure = _CURES.get(character, "use digits, p q r and the like, + - * / **, parentheses and the grammar's functions")
    raise FormulaError(f"the character {shown} ({name}) is not in the grammar; {cure}", text, position)


class _Parser:
    """A recursive descent over the tokens, one method a rule of the grammar."""

    def __init__(self, text: str, *, coefficients: bool, free: Collection[str]) -> None:
        self._text = text
        self._coefficients = coefficients
        self._variables = [name for name in VARIABLES if name not in free]
        self._tokens = _tokens(text)
        self._next = 0
        self._nesting = 0

    def whole(self) -> Expression:
        part = self._sum()
        if self._peek.kind != "end":
            self._refuse_rest()
        return part.node

    # Tokens

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _advance(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _at_operator(self, *operators: str) -> bool:
        return self._peek.kind == "operator" and self._peek.text in operators

    def _fail(self, reason: str, token: _Token) -> NoReturn:
        raise FormulaError(reason, self._text, token.position)

    def _refuse_rest(self) -> NoReturn:
        token = self._peek
        if token.text == ")":
            self._fail("this ) closes nothing; remove it or open a parenthesis before", token)
        if token.text == ",":
            self._fail("a comma stands only between the arguments of min and max; write decimals with a point", token)
        self._fail(f"an operator is missing before {_shown(token)}; write for example 2*p, p*q", token)

    # Trees

    def _join(self, token: _Token, node: Expression, *parts: _TextPart) -> _TextPart:
        height = 1 + max(part.height for part in parts)
        if height > MAX_DEPTH:
            self._fail(f"the formula is too long or too deep here (more than {MAX_DEPTH} steps); shorten it", token)
        return _TextPart(node, height)

    def _enter(self, token: _Token) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._fail(f"more than {MAX_NESTING} levels inside each other; simplify the formula", token)

    def _sum(self) -> _TextPart:
        left = self._product()
        while self._at_operator("+", "-"):
            operator = self._advance()
            right = self._product()
            left = self._join(operator, Binary(operator.text, left.node, right.node), left, right)
        return left

    def _product(self) -> _TextPart:
        left = self._sign()
        while self._at_operator("*", "/"):
            operator = self._advance()
            if operator.text == "/" and self._at_operator("/"):
                self._fail("there is no // (whole-number division); write /", operator)
            right = self._sign()
            left = self._join(operator, Binary(operator.text, left.node, right.node), left, right)
        return left

    def _sign(self) -> _TextPart:
        if not self._at_operator("-", "+"):
            return self._power()
        operator = self._advance()
        self._enter(operator)
        part = self._sign()
        self._nesting -= 1
        return self._join(operator, Negative(part.node), part) if operator.text == "-" else part

    def _power(self) -> _TextPart:
        base = self._atom()
        if not self._at_operator("**"):
            return base
        operator = self._advance()
        self._enter(operator)
        token = self._peek
        exponent = self._sign()
        self._nesting -= 1
        self._check_exponent(exponent.node, token)
        return self._join(operator, Binary("**", base.node, exponent.node), base, exponent)

    def _check_exponent(self, exponent: Expression, token: _Token) -> None:
        while isinstance(exponent, Negative):
            exponent = exponent.part
        if isinstance(exponent, Number) and exponent.value > MAX_EXPONENT:
            self._fail(f"the exponent {exponent.text()} is beyond {MAX_EXPONENT:g}; use a smaller one", token)

    def _atom(self) -> _TextPart:
        token = self._advance()
        if token.kind == "number":
            return _TextPart(self._number(token))
        if token.kind == "name":
            return self._name(token)
        if token.kind == "end":
            self._fail("the formula ends where a number, a variable, a function or ( was expected", token)
        if token.text != "(":
            self._fail(f"a number, a variable, a function or ( was expected, not {_shown(token)}", token)
        self._enter(token)
        part = self._sum()
        self._close(token)
        return part

    def _close(self, opened: _Token) -> None:
        if self._at_operator(")"):
            self._advance()
            self._nesting -= 1
        elif self._peek.kind == "end":
            self._fail("this parenthesis is not closed; add )", opened)
        else:
            self._refuse_rest()

    def _number(self, token: _Token) -> Number:
        if len(token.text) > _MAX_DIGITS:
            self._fail(f"the number has {len(token.text)} characters; at most {_MAX_DIGITS} are read", token)
        value = float(token.text)
        is_zero = value == 0.0 and not re.search("[1-9]", re.split("[eE]", token.text)[0])
        if not (is_zero or _SMALLEST <= value <= _LARGEST):
            self._fail(f"the number {token.text} is outside 1e-300 to 1e300", token)
        return Number(value)

    def _name(self, token: _Token) -> _TextPart:
        name = token.text
        if name in FUNCTIONS:
            return self._call(token)
        if self._at_operator("("):
            self._refuse_function(token)
        if name in self._variables:
            return _TextPart(Variable(name))
        if name in ALIASES and not self._coefficients:
            return _TextPart(Variable(ALIASES[name]))
        if name == "log" or not (self._coefficients and _NAME.fullmatch(name)):
            self._refuse_name(token)
        if len(name) > _MAX_NAME:
            self._fail(f"the coefficient's name has {len(name)} characters; at most {_MAX_NAME} are read", token)
        return _TextPart(Coefficient(name))

    def _refuse_function(self, token: _Token) -> NoReturn:
        if token.text == "log":
            self._fail("log is ambiguous; write log10(...), ln(...) or log2(...)", token)
        if token.text in self._variables:
            self._fail(f"an operator is missing after {token.text}; write {token.text}*(...)", token)
        known = ", ".join(FUNCTIONS)
        self._fail(f"the function {_shown(token)} is not in the grammar; it has {known}", token)

    def _refuse_name(self, token: _Token) -> NoReturn:
        lower = token.text.lower()
        if token.text == "log":
            self._fail("log is ambiguous; write log10(...), ln(...) or log2(...)", token)
        if token.text != lower and (lower in self._variables or lower in FUNCTIONS or self._coefficients):
            self._fail(f"names are written in lower case: {lower[:_MAX_NAME]}", token)
        known = ", ".join(self._variables)
        hint = did_you_mean(token.text, self._variables)
        self._fail(f"{_shown(token)} is not a variable; {hint}a formula is written in {known}", token)

    def _call(self, name: _Token) -> _TextPart:
        if not self._at_operator("("):
            self._fail(f"{name.text} is a function; write {name.text}(...)", name)
        opened = self._advance()
        self._enter(opened)
        parts = [self._sum()]
        while self._at_operator(","):
            self._advance()
            parts.append(self._sum())
        least, greatest = FUNCTIONS[name.text]
        if not least <= len(parts) <= greatest:
            expected = "one argument" if greatest == 1 else f"{least} to {greatest} arguments"
            self._fail(f"{name.text} takes {expected}, got {len(parts)}", name)
        self._close(opened)
        return self._join(name, Call(name.text, tuple(part.node for part in parts)), *parts)


def _shown(token: _Token) -> str:
    return repr(token.text if len(token.text) <= _MAX_NAME else token.text[:_MAX_NAME] + "...")


# The texts of a policy: what tables, reports and scripts can print ----------------------------------------------------


_LONGEST_NAME = 100
_LONGEST_TEXT = 2000


def check_texts(name: str, description: str, source: str) -> None:
    """Refuse a name, or words about a policy, that could not be printed in one line.

    Raises
    ------
    UsageError
        Naming which.
    """
    if not (0 < len(name) <= _LONGEST_NAME and name.isprintable() and name.strip() == name):
        raise UsageError(
            f"the policy name {name[:_LONGEST_NAME]!r} cannot be used; "
            f"give 1 to {_LONGEST_NAME} printable characters without blanks around them"
        )
    for field, value in (("description", description), ("source", source)):
        if len(value) > _LONGEST_TEXT or not value.isprintable():
            raise UsageError(
                f"the {field} of policy {name} cannot be used; "
                f"give at most {_LONGEST_TEXT} printable characters in one line"
            )


# A formula as LaTeX mathematics, in the order in which it is written --------------------------------------------------


_FUNCTIONS = {"log10": r"\log_{10}", "log2": r"\log_{2}", "ln": r"\ln", "min": r"\min", "max": r"\max"}
_VARIABLES = {"e90": "e_{90}", "user_waiting": r"\mathrm{user\_waiting}", "user_running": r"\mathrm{user\_running}",
              "mem": r"\mathrm{mem}"}  # fmt: skip


def to_latex(expression: Expression) -> str:
    r"""Return LaTeX for mathematics mode, without delimiters: ``\sqrt{p} \, q``."""
    match expression:
        case Number(value):
            return _number(value)
        case Variable(name):
            return _VARIABLES.get(name, name)
        case Coefficient(name):
            return r"\mathrm{" + name.replace("_", r"\_") + "}"
        case Negative(part):
            return "-" + (_wrapped(part) if isinstance(part, Negative) else _inside(part, 2))
        case Binary("/", left, right):
            return rf"\frac{{{to_latex(left)}}}{{{to_latex(right)}}}"
        case Binary("**", base, exponent):
            # A fraction, a function or a number with exponent needs the parentheses that the text does not.
            plain = isinstance(base, Variable) or (isinstance(base, Number) and "e" not in format_number(base.value))
            shown = to_latex(base) if plain else _wrapped(base)
            return f"{shown}^{{{to_latex(exponent)}}}"
        case Binary(operator, left, right):
            level = expression.level
            after = _inside(right, level + 1)
            if isinstance(right, Negative):
                after = _wrapped(right)
            return f"{_inside(left, level)} {_sign(operator, right)} {after}"
        case Call(function, arguments):
            return _call(function, arguments)
    raise TypeError(f"{type(expression).__name__} is no part of a formula")


def _sign(operator: str, right: Expression) -> str:
    if operator != "*":
        return operator
    # Digits side by side would read as one number.
    first = right
    while isinstance(first, Binary):
        first = first.left
    return r"\cdot" if isinstance(first, Number) else r"\,"


def _call(function: str, arguments: tuple[Expression, ...]) -> str:
    inside = ", ".join(to_latex(part) for part in arguments)
    if function == "sqrt":
        return rf"\sqrt{{{inside}}}"
    if function == "exp":
        # Not e to the power: e is the predicted run time.
        return rf"\exp\left({inside}\right)"
    if function == "abs":
        return rf"\left|{inside}\right|"
    return rf"{_FUNCTIONS[function]}\left({inside}\right)"


def _inside(part: Expression, least: int) -> str:
    return to_latex(part) if part.level >= least or _is_fraction(part) else _wrapped(part)


def _is_fraction(part: Expression) -> bool:
    return isinstance(part, Binary) and part.operator == "/"


def _wrapped(part: Expression) -> str:
    return rf"\left({to_latex(part)}\right)"


def _number(value: float) -> str:
    mantissa, _, exponent = format_number(value).partition("e")
    if not exponent:
        return mantissa
    return rf"10^{{{exponent}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{exponent}}}"
