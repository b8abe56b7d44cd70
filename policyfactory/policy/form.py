"""Formulas with free coefficients, as a search tries them: values go into a program that was compiled once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.core.options import FloatArray
from policyfactory.policy.compile import Program, compile_form
from policyfactory.policy.expression import (
    PREDICTIONS,
    Binary,
    Expression,
    Negative,
    opposite,
    parse,
    rewritten,
    substitute,
)
from policyfactory.policy.policy import Policy

MOST_COEFFICIENTS = 40
_LONGEST_WAIT = 12.0  # decimal logarithm of seconds: for ever


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A formula whose named coefficients have no values yet.

    Parameters
    ----------
    name : str
        Its short name.
    text : str
        The formula, as it was written.
    expression : Expression
        It, parsed.
    names : tuple of str
        The coefficients, in order of first appearance.
    program : Program
        The formula for the array machine; the operands of the coefficients are NaN.
    places : tuple of int array
        Where in the operands the value of each coefficient goes.
    variables : frozenset of str
        Those that occur.
    threshold : str
        The one of them that is no part of the formula but the decimal logarithm of the policy's threshold in seconds;
        empty if none is.
    """

    name: str
    text: str
    expression: Expression
    names: tuple[str, ...]
    program: Program
    places: tuple[np.ndarray, ...]
    variables: frozenset[str]
    threshold: str = ""

    @classmethod
    def of(cls, name: str, text: str, *, threshold: str = "") -> Form:
        """Return the form that a text is, for example ``log10(p) + a*log10(q)``.

        Raises
        ------
        FormulaError
            If it is no formula, or is the same for all jobs.
        UsageError
            If it has no coefficient, or more than `MOST_COEFFICIENTS`.
        """
        expression = parse(text, coefficients=True)
        names = expression.coefficients
        if not 0 < len(names) <= MOST_COEFFICIENTS:
            raise UsageError(
                f"the form {name} has {len(names)} coefficients, expected 1 to {MOST_COEFFICIENTS}; name what is to be "
                f"found, for example log10(p) + a*log10(q){_predictions_named(expression)}"
            )
        if not expression.variables - {"m", "f"}:
            raise FormulaError(f"the form {name} is the same for all jobs and ranks none; use p, q, r or w in it")
        program, places = compile_form(expression)
        where = tuple(np.array(places[name]) for name in names)
        if threshold:
            names, where = (*names, threshold), (*where, np.empty(0, dtype=np.intp))
        return cls(
            name=name,
            text=text,
            expression=expression,
            names=names,
            program=program,
            places=where,
            variables=expression.variables,
            threshold=threshold,
        )

    @property
    def is_static(self) -> bool:
        """Whether a job's value never changes while it waits, with r counted from a fixed instant."""
        return not self.variables & {"w", "f"}

    def with_values(self, values: Sequence[float] | FloatArray) -> FormPolicy:
        """Return the policy with these values, in the order of `names`; nothing is parsed or compiled."""
        operands = self.program.operands.copy()
        for places, value in zip(self.places, values, strict=True):
            operands[places] = value
        program = dataclasses.replace(self.program, operands=operands)
        threshold = self._threshold(dict(zip(self.names, values, strict=True)))
        return FormPolicy(self.name, self.text, threshold=threshold, form=self, substituted=program)

    def fixed(self, values: Mapping[str, float], name: str, *, description: str = "", source: str = "") -> Policy:
        """Return an ordinary policy, with numbers in place of all coefficients.

        Raises
        ------
        FormulaError
            If nothing is left that tells jobs apart.
        """
        text = rewritten(substitute(self.expression, values), _signed).text()
        return Policy(name, text, description, source, threshold=self._threshold(values))

    def _threshold(self, values: Mapping[str, float]) -> float:
        """Return the threshold in seconds, a whole number of them."""
        if not self.threshold:
            return math.inf
        return float(round(10.0 ** min(float(values[self.threshold]), _LONGEST_WAIT)))


def _predictions_named(expression: Expression) -> str:
    """Return which names of predictions are no coefficients, though they look so."""
    names = [name for name in PREDICTIONS if name in expression.variables]
    return f" ({' and '.join(names)} {'is a prediction' if len(names) == 1 else 'are predictions'})" if names else ""


def _signed(expression: Expression) -> Expression | None:
    """Return ``a - 2*b`` for ``a + -2*b``: the same number for every job."""
    match expression:
        case Binary("+" | "-" as operator, left, right) if isinstance(_first_factor(right), Negative):
            return Binary("-" if operator == "+" else "+", rewritten(left, _signed), opposite(right))
    return None


def _first_factor(expression: Expression) -> Expression:
    while isinstance(expression, Binary) and expression.operator in {"*", "/"}:
        expression = expression.left
    return expression


@dataclasses.dataclass(frozen=True, repr=False)
class FormPolicy(Policy):
    """A form with values, for a simulation: its ``formula`` still has the names of the coefficients.

    Parameters
    ----------
    form : Form
        What it is made of.
    substituted : Program
        The program with the values.
    """

    form: Form = dataclasses.field(kw_only=True)
    substituted: Program = dataclasses.field(kw_only=True)

    def __post_init__(self) -> None:
        """Trust the form, which was checked."""

    @property
    def expression(self) -> Expression:
        """The formula as a tree, with coefficients in it."""
        return self.form.expression

    @property
    def variables(self) -> frozenset[str]:
        """Those of the form, found once for all its values."""
        return self.form.variables

    @property
    def program(self) -> Program:
        """The program with the values."""
        return self.substituted
