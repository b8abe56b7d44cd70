"""Evaluation of a compiled formula on arrays of jobs.

A formula is a program in postfix order for a stack machine whose registers are arrays: one instruction works on
all jobs before the next begins. One compiled kernel serves every policy, so a new formula costs no compilation,
and no text is ever turned into Python code.

Arithmetic is IEEE double: 1/0 is inf, log10(0) is -inf, 0/0 and the square root of a negative number are NaN.
``POWI`` multiplies repeatedly (left to right), so that x**3 is x*x*x in every language that a policy is exported
to; the other functions are the C library's. ``DENSE`` is a layer of a network: it takes as many rows as the layer has
inputs and leaves as many as it has outputs, each the bias plus the weighted inputs, added in their order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import kernel

__all__ = [
    "ABS", "ADD", "ASKED", "COLUMNS", "CONST", "DENSE", "DIV", "EXP", "LN", "LOG2", "LOG10", "MAX", "MIN", "MUL", "NEG",
    "POW", "POWI", "PREDICTIONS", "SQRT", "SUB", "VAR_E", "VAR_E90", "VAR_F", "VAR_G", "VAR_M", "VAR_MEM", "VAR_N",
    "VAR_P", "VAR_Q", "VAR_R", "VAR_S", "VAR_USER_RUNNING", "VAR_USER_WAITING", "VAR_W", "evaluate",
]  # fmt: skip

CONST, VAR_P, VAR_Q, VAR_R, VAR_W, VAR_E, VAR_S, VAR_E90, VAR_USER_WAITING, VAR_USER_RUNNING = range(10)
VAR_N, VAR_MEM, VAR_G, VAR_M, VAR_F = range(10, 15)
ADD, SUB, MUL, DIV, POW, MIN, MAX = range(15, 22)
NEG, LOG10, LOG2, LN, SQRT, EXP, ABS, POWI = range(22, 30)
DENSE = 30

COLUMNS = 4  # p, q, r, w, which every job has
PREDICTIONS = 5  # behind them e, s, e90, user_waiting, user_running
ASKED = 3  # behind those n, mem, g


@kernel
def evaluate(
    codes: NDArray[np.int64],
    operands: NDArray[np.float64],
    columns: NDArray[np.float64],
    n: int,
    m: float,
    f: float,
    stack: NDArray[np.float64],
) -> None:
    """Run a program on n jobs; the values are left in ``stack[0, :n]``.

    Parameters
    ----------
    codes : int64 array (k,)
        Instructions in postfix order.
    operands : float64 array (at least k,)
        The constant of CONST, the exponent (a whole number from 0) of POWI, and of DENSE where in this array its layer
        begins: inputs, outputs, 1 if negative outputs become 0 (else 0), the weights of the first input, of the
        second, ..., the biases. Not read elsewhere.
    columns : float64 array (4, 9 or 12, at least n)
        Seconds, processors, seconds since the epoch, seconds waited (p, q, r, w); behind them, where the program reads
        one of them, the predictions e, s, e90, user_waiting and user_running, and behind these, likewise, n, mem and g.
    n : int
        Jobs.
    m, f : float
        Processors of the machine, processors free.
    stack : float64 array (depth, at least n)
        Work space; ``depth`` is the deepest that the program needs.
    """
    top = -1
    for step in range(len(codes)):
        code = codes[step]
        if code <= VAR_F:
            top += 1
            if code == CONST or code >= VAR_M:
                value = operands[step] if code == CONST else (m if code == VAR_M else f)
                for i in range(n):
                    stack[top, i] = value
            else:
                source = columns[code - VAR_P]
                for i in range(n):
                    stack[top, i] = source[i]
        elif code <= MAX:
            top -= 1
            _binary(code, stack[top], stack[top + 1], n)
        elif code == DENSE:
            layer = operands[int(operands[step]) :]
            top -= int(layer[0]) - 1
            _dense(layer, stack[top:], n)
            top += int(layer[1]) - 1
        else:
            _unary(code, operands[step], stack[top], n)


@kernel
def _binary(code: int, a: NDArray[np.float64], b: NDArray[np.float64], n: int) -> None:
    if code == ADD:
        for i in range(n):
            a[i] += b[i]
    elif code == SUB:
        for i in range(n):
            a[i] -= b[i]
    elif code == MUL:
        for i in range(n):
            a[i] *= b[i]
    elif code == DIV:
        for i in range(n):
            a[i] /= b[i]
    elif code == POW:
        for i in range(n):
            a[i] = math.pow(a[i], b[i])
    elif code == MIN:
        for i in range(n):
            # NaN on either side stays NaN.
            if not (a[i] <= b[i] or a[i] != a[i]):
                a[i] = b[i]
    else:
        for i in range(n):
            if not (a[i] >= b[i] or a[i] != a[i]):
                a[i] = b[i]


@kernel
def _dense(layer: NDArray[np.float64], rows: NDArray[np.float64], n: int) -> None:
    """Replace the inputs of a layer, the first rows, by its outputs.

    Job by job: queues are short and layers wide, so the inner loop, which the compiler turns into vector instructions,
    goes over outputs.
    """
    inputs, outputs, cut = int(layer[0]), int(layer[1]), layer[2] != 0.0
    weights = layer[3 : 3 + inputs * outputs]
    biases = layer[3 + inputs * outputs : 3 + (inputs + 1) * outputs]
    sums = np.empty(outputs)
    for job in range(n):
        for to in range(outputs):
            sums[to] = biases[to]
        for at in range(inputs):
            value = rows[at, job]
            first = at * outputs
            for to in range(outputs):
                sums[to] += value * weights[first + to]
        for to in range(outputs):
            # NaN stays NaN.
            rows[to, job] = 0.0 if cut and sums[to] < 0.0 else sums[to]


@kernel
def _unary(code: int, operand: float, a: NDArray[np.float64], n: int) -> None:
    if code == NEG:
        for i in range(n):
            a[i] = -a[i]
    elif code == LOG10:
        for i in range(n):
            a[i] = math.log10(a[i]) if a[i] > 0.0 else (-np.inf if a[i] == 0.0 else np.nan)
    elif code == LOG2:
        for i in range(n):
            a[i] = math.log2(a[i]) if a[i] > 0.0 else (-np.inf if a[i] == 0.0 else np.nan)
    elif code == LN:
        for i in range(n):
            a[i] = math.log(a[i]) if a[i] > 0.0 else (-np.inf if a[i] == 0.0 else np.nan)
    elif code == SQRT:
        for i in range(n):
            a[i] = math.sqrt(a[i]) if a[i] >= 0.0 else np.nan
    elif code == EXP:
        for i in range(n):
            a[i] = math.exp(a[i])
    elif code == ABS:
        for i in range(n):
            a[i] = abs(a[i])
    else:
        times = int(operand)
        for i in range(n):
            value = 1.0
            for _ in range(times):
                value *= a[i]
            a[i] = value
