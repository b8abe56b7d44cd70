"""The value of any formula at one job, with the array machine's arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from policyfactory.engine.formula import evaluate
from policyfactory.policy.compile import compile_expression
from policyfactory.policy.nodes import Expression

__all__ = ["value_at"]


def value_at(expression: Expression, job: Mapping[str, float]) -> float:
    """Return the value of ``expression``; ``job`` gives p, q, r, w (s, processors) and m. NaN stays NaN."""
    program = compile_expression(expression)
    p, q, r, w = (np.array([float(job[name])]) for name in "pqrw")
    stack = np.empty((program.depth, 1))
    evaluate(program.codes, program.operands, p, q, r, w, float(job["m"]), stack)
    return float(stack[0, 0])
