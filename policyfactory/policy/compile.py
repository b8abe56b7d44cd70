"""From a formula to the postfix program that `policyfactory.engine.waiting.evaluate` runs on arrays of jobs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import FormulaError
from policyfactory.core.options import FloatArray
from policyfactory.engine import waiting as machine
from policyfactory.policy.expression import (
    FUNCTIONS,
    OF_A_JOB,
    VARIABLES,
    Binary,
    Call,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
    whole_exponent,
)

# The machine has an instruction for each name of the grammar: VAR_P reads p, LOG10 is log10.
_VARIABLE: dict[str, int] = {name: getattr(machine, f"VAR_{name.upper()}") for name in VARIABLES}
_FUNCTION: dict[str, int] = {name: getattr(machine, name.upper()) for name in FUNCTIONS}
_OPERATOR = {"+": machine.ADD, "-": machine.SUB, "*": machine.MUL, "/": machine.DIV, "**": machine.POW}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A formula for the array machine.

    Parameters
    ----------
    codes : int64 array (k,)
        Instructions in postfix order.
    operands : float64 array (at least k,)
        Constants and whole exponents; 0 where an instruction has none. Behind them the layers of a network.
    depth : int
        Rows of work space that the machine needs.
    """

    codes: NDArray[np.int64]
    operands: NDArray[np.float64]
    depth: int

    def values(self, columns: FloatArray, m: float, f: float) -> FloatArray:
        """Return the value for each job.

        Parameters
        ----------
        columns : float64 array (rows, n)
            Of the jobs: p, q, r and w, then what else the formula reads, by `OF_A_JOB`.
        m, f : float
            Processors of the machine, and those that are free.
        """
        jobs = columns.shape[1]
        stack = np.empty((self.depth, jobs))
        machine.evaluate(self.codes, self.operands, np.ascontiguousarray(columns), jobs, m, f, stack)
        values: FloatArray = stack[0].copy()
        return values


def compile_expression(expression: Expression) -> Program:
    """Return the program of ``expression``.

    Raises
    ------
    FormulaError
        If a named coefficient has no value yet.
    """
    program, places = compile_form(expression)
    if places:
        name = next(iter(places))
        raise FormulaError(f"the coefficient {name} has no value; fit it first (policyfactory fit --form)")
    return program


def compile_form(expression: Expression) -> tuple[Program, dict[str, list[int]]]:
    """Return the program of ``expression``, and where in its operands the value of each named coefficient goes."""
    codes: list[int] = []
    operands: list[float | str] = []
    depth = _emit(expression, codes, operands)
    places: dict[str, list[int]] = {}
    for index, operand in enumerate(operands):
        if isinstance(operand, str):
            places.setdefault(operand, []).append(index)
    return Program(np.array(codes, dtype=np.int64), _values(operands), depth), places


def _values(operands: Sequence[float | str]) -> NDArray[np.float64]:
    """Return the operands as numbers, a coefficient that has no value yet as NaN."""
    return np.array([math.nan if isinstance(operand, str) else operand for operand in operands], dtype=np.float64)


def compile_network(
    inputs: Sequence[Expression], layers: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
) -> Program:
    """Return the program of a network: its inputs, its layers, and a minus sign, as the highest output runs first.

    Parameters
    ----------
    inputs : sequence of Expression
        Without named coefficients.
    layers : sequence of (float32 array (inputs, outputs), float32 array (outputs,))
        Weights and biases; negative outputs of all but the last become 0.
    """
    codes: list[int] = []
    operands: list[float | str] = []
    depth = max(index + _emit(formula, codes, operands) for index, formula in enumerate(inputs))
    depth = max(depth, *(len(biases) for _, biases in layers))
    offset = len(codes) + len(layers) + 1
    parts = []
    for number, (weights, biases) in enumerate(layers, start=1):
        parts.append(np.concatenate(([*weights.shape, number < len(layers)], weights.ravel(), biases)))
        codes.append(machine.DENSE)
        operands.append(float(offset))
        offset += len(parts[-1])
    codes.append(machine.NEG)
    operands.append(0.0)
    return Program(np.array(codes, dtype=np.int64), np.concatenate((_values(operands), *parts)), depth)


def _emit(node: Expression, codes: list[int], operands: list[float | str]) -> int:
    """Append the instructions of ``node``; return the rows that they need. A coefficient's operand is its name."""

    def add(code: int, operand: float | str = 0.0) -> None:
        codes.append(code)
        operands.append(operand)

    match node:
        case Number(value):
            add(machine.CONST, value)
            return 1
        case Variable(name):
            add(_VARIABLE[name])
            return 1
        case Negative(part):
            depth = _emit(part, codes, operands)
            add(machine.NEG)
            return depth
        case Binary("**", base, exponent) if (times := whole_exponent(exponent)) is not None:
            depth = _emit(base, codes, operands)
            add(machine.POWI, float(times))
            return depth
        case Binary(operator, left, right):
            depth = max(_emit(left, codes, operands), 1 + _emit(right, codes, operands))
            add(_OPERATOR[operator])
            return depth
        case Call(function, (first, *rest)):
            depth = _emit(first, codes, operands)
            for part in rest:
                depth = max(depth, 1 + _emit(part, codes, operands))
                add(_FUNCTION[function])
            if not rest:
                add(_FUNCTION[function])
            return depth
        case Coefficient(name):
            add(machine.CONST, name)
            return 1
    raise FormulaError(f"{type(node).__name__} is no part of a formula")


def value_at(expression: Expression, job: Mapping[str, float]) -> float:
    """Return the value of ``expression``.

    ``job`` gives p, q, r, w (s, processors), m, the predictions and requests that the formula reads and, if not all of
    m, f.
    """
    columns = np.array([[float(job[name])] if name in job else [math.nan] for name in OF_A_JOB])
    m = float(job["m"])
    return float(compile_expression(expression).values(columns, m, float(job.get("f", m)))[0])
