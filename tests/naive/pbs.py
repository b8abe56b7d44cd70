"""How OpenPBS checks and evaluates a job_sort_formula, written again from its sources (no code of theirs).

The server runs the formula as Python with every name set to 1 and refuses it for SyntaxError and NameError only; the
scheduler evaluates it for every job, and any exception makes the value 0. Here a walk over Python's syntax tree.
"""

from __future__ import annotations

import ast
import math
import operator
from typing import Any

SILENT_ZERO = "exception"
NUMERIC = {"walltime", "ncpus", "mem", "nodect", "eligible_time", "queue_priority", "job_priority", "pf_submit"}
_FUNCTIONS: dict[str, Any] = {name: getattr(math, name) for name in ("log10", "log2", "log", "sqrt", "exp")}
_FUNCTIONS |= {"max": max, "min": min, "abs": abs}
_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def validate(formula: str) -> None:
    """Raise SyntaxError or NameError where ``qmgr`` would refuse the formula."""
    assert not set(formula) & set("'\"\\\n"), "these end the text into which the server puts the formula"
    evaluate(formula, dict.fromkeys(NUMERIC, 1))


def evaluate(formula: str, job: dict[str, float]) -> float | str:
    """Return the value for a job; `SILENT_ZERO` where PBS would make it 0 without a word."""
    try:
        return _value(ast.parse(formula, mode="eval").body, job)
    except (ValueError, ArithmeticError, TypeError):
        return SILENT_ZERO


def _value(node: ast.expr, job: dict[str, float]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            if name not in job:
                raise NameError(name)
            return job[name]
        case ast.UnaryOp(op=ast.USub(), operand=part):
            return -_value(part, job)
        case ast.BinOp(left=left, op=kind, right=right):
            return _OPERATORS[type(kind)](_value(left, job), _value(right, job))
        case ast.BoolOp(op=ast.Or(), values=[first, second]):
            return _value(first, job) or _value(second, job)
        case ast.IfExp(test=ast.Compare(left=left, ops=[ast.Gt()], comparators=[right]), body=body, orelse=other):
            return _value(body if _value(left, job) > _value(right, job) else other, job)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in _FUNCTIONS:
                raise NameError(name)
            return _FUNCTIONS[name](*(_value(part, job) for part in arguments))
    raise SyntaxError(ast.dump(node))
