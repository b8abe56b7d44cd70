"""The value that OpenPBS gives a job by a formula: Python arithmetic, and 0 where anything goes wrong.

The scheduler puts the job's numeric resources into a dictionary (0 for what it did not ask for; a number without a
fraction becomes a Python integer), evaluates the text with the names of ``math``, and takes 0 after any exception
(OpenPBS, ``formula_evaluate`` of ``src/scheduler/job_info.cpp``). Here the text is walked, not run.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from policyfactory.core.errors import ExportError

__all__ = ["NEVER_RUNS", "Evaluator"]

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
