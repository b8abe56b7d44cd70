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
import re
import unicodedata
from collections.abc import Collection
from typing import NoReturn

from policyfactory.core.errors import FormulaError
from policyfactory.policy.nodes import (
    ALIASES,
    FUNCTIONS,
    VARIABLES,
    Binary,
    Call,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
)

__all__ = ["MAX_DEPTH", "MAX_EXPONENT", "MAX_LENGTH", "parse"]

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
class _Part:
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

    def _take(self) -> _Token:
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

    def _join(self, at: _Token, node: Expression, *parts: _Part) -> _Part:
        height = 1 + max(part.height for part in parts)
        if height > MAX_DEPTH:
            self._fail(f"the formula is too long or too deep here (more than {MAX_DEPTH} steps); shorten it", at)
        return _Part(node, height)

    def _enter(self, at: _Token) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._fail(f"more than {MAX_NESTING} levels inside each other; simplify the formula", at)

    def _sum(self) -> _Part:
        left = self._product()
        while self._at_operator("+", "-"):
            operator = self._take()
            right = self._product()
            left = self._join(operator, Binary(operator.text, left.node, right.node), left, right)
        return left

    def _product(self) -> _Part:
        left = self._sign()
        while self._at_operator("*", "/"):
            operator = self._take()
            if operator.text == "/" and self._at_operator("/"):
                self._fail("there is no // (whole-number division); write /", operator)
            right = self._sign()
            left = self._join(operator, Binary(operator.text, left.node, right.node), left, right)
        return left

    def _sign(self) -> _Part:
        if not self._at_operator("-", "+"):
            return self._power()
        operator = self._take()
        self._enter(operator)
        part = self._sign()
        self._nesting -= 1
        return self._join(operator, Negative(part.node), part) if operator.text == "-" else part

    def _power(self) -> _Part:
        base = self._atom()
        if not self._at_operator("**"):
            return base
        operator = self._take()
        self._enter(operator)
        at = self._peek
        exponent = self._sign()
        self._nesting -= 1
        self._check_exponent(exponent.node, at)
        return self._join(operator, Binary("**", base.node, exponent.node), base, exponent)

    def _check_exponent(self, exponent: Expression, at: _Token) -> None:
        while isinstance(exponent, Negative):
            exponent = exponent.part
        if isinstance(exponent, Number) and exponent.value > MAX_EXPONENT:
            self._fail(f"the exponent {exponent.text()} is beyond {MAX_EXPONENT:g}; use a smaller one", at)

    def _atom(self) -> _Part:
        token = self._take()
        if token.kind == "number":
            return _Part(self._number(token))
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
            self._take()
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

    def _name(self, token: _Token) -> _Part:
        name = token.text
        if name in FUNCTIONS:
            return self._call(token)
        if self._at_operator("("):
            self._refuse_function(token)
        if name in self._variables:
            return _Part(Variable(name))
        if name in ALIASES and not self._coefficients:
            return _Part(Variable(ALIASES[name]))
        if name == "log" or not (self._coefficients and _NAME.fullmatch(name)):
            self._refuse_name(token)
        if len(name) > _MAX_NAME:
            self._fail(f"the coefficient's name has {len(name)} characters; at most {_MAX_NAME} are read", token)
        return _Part(Coefficient(name))

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
        self._fail(f"{_shown(token)} is not a variable; a formula is written in {known}", token)

    def _call(self, name: _Token) -> _Part:
        if not self._at_operator("("):
            self._fail(f"{name.text} is a function; write {name.text}(...)", name)
        opened = self._take()
        self._enter(opened)
        parts = [self._sum()]
        while self._at_operator(","):
            self._take()
            parts.append(self._sum())
        least, greatest = FUNCTIONS[name.text]
        if not least <= len(parts) <= greatest:
            expected = "one argument" if greatest == 1 else f"{least} to {greatest} arguments"
            self._fail(f"{name.text} takes {expected}, got {len(parts)}", name)
        self._close(opened)
        return self._join(name, Call(name.text, tuple(part.node for part in parts)), *parts)


def _shown(token: _Token) -> str:
    return repr(token.text if len(token.text) <= _MAX_NAME else token.text[:_MAX_NAME] + "...")
