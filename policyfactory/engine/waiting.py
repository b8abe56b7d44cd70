"""The waiting jobs where scores change with time: a list in submit order, scored anew at each pass.

The list is an int64 array (n + 1,): its first element counts the jobs, and from index 1 on are their numbers. Since
it is in submit order, the jobs that have waited longer than a threshold are its beginning, and ties need no
comparison but that of places. Jobs that are started stay in the list until the pass is over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.by_pointer import by_pointer
from policyfactory.core.jit import inlined, joined, kernel
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.events import (
    FREE,
    NEVER,
    NEXT,
    NOW,
    OVERDUE,
    SMALLEST,
    Jobs,
    Order,
    is_listed,
    new_heap,
    new_running,
    new_state,
)


@by_pointer
class Formula(NamedTuple):
    """A policy as a program of `policyfactory.engine.waiting`.

    Parameters
    ----------
    codes : int64 array (k,)
        Instructions.
    operands : float64 array (at least k,)
        Their operands, and behind them the layers of a network.
    depth : int
        Deepest stack.
    r : float64 array (n,)
        Submit time of each job since the policy's epoch, in seconds.
    from_oldest : bool
        The epoch is the submission of the waiting job that was submitted first; ``r`` is not read.
    predictions : float64 array (5, n)
        e, s, e90, user_waiting and user_running of each job; (5, 0) where the program reads none of them.
    asked : float64 array (3, n)
        n, mem and g of each job; (3, 0) where the program reads none of them.
    """

    codes: Int64Array
    operands: FloatArray
    depth: int
    r: FloatArray
    from_oldest: bool
    predictions: FloatArray
    asked: FloatArray


@by_pointer
class Space(NamedTuple):
    """What a run works on: state, running jobs, waiting jobs and their scores (by the queue's order, by their own)."""

    state: Int64Array
    heap: Int64Array
    running: Int64Array
    waiting: Int64Array
    scores: FloatArray
    work: FloatArray


def new_space(jobs: int, processors: int, depth: int) -> Space:
    """Return the space for a run of ``jobs`` jobs with formulas that need ``depth`` rows of a stack."""
    rows = min(jobs, processors)
    waiting = np.zeros(jobs + 1, dtype=np.int64)
    scores, work = np.empty((2, jobs + 1)), np.empty((COLUMNS + PREDICTIONS + ASKED + depth, jobs))
    return Space(new_state(processors), new_heap(rows), new_running(rows), waiting, scores, work)


@joined
def submit_all(jobs: Jobs, state: Int64Array, waiting: Int64Array) -> None:
    """Append every job that is submitted now."""
    while state[NEXT] < len(jobs.submit) and jobs.submit[state[NEXT]] == state[NOW]:
        job = state[NEXT]
        state[NEXT] = job + 1
        waiting[0] += 1
        waiting[waiting[0]] = job
        state[SMALLEST] = min(state[SMALLEST], jobs.processors[job])


@joined
def close_gaps(jobs: Jobs, state: Int64Array, waiting: Int64Array) -> None:
    """Drop the jobs that were started; ``SMALLEST`` is exact afterwards."""
    kept = 0
    smallest = NEVER
    for position in range(1, waiting[0] + 1):
        if jobs.start[waiting[position]] < 0:
            kept += 1
            waiting[kept] = waiting[position]
            smallest = min(smallest, jobs.processors[waiting[position]])
    waiting[0] = kept
    state[SMALLEST] = smallest


@joined
def count_overdue(jobs: Jobs, state: Int64Array, waiting: Int64Array, threshold: int) -> None:
    """Let ``OVERDUE`` be how many jobs, from the beginning of the list, have waited longer than the threshold."""
    count = 0
    while count < waiting[0] and state[NOW] - jobs.submit[waiting[count + 1]] > threshold:
        count += 1
    state[OVERDUE] = count
    if is_listed(jobs):
        _turn_instants(jobs, waiting, count)


@joined
def _turn_instants(jobs: Jobs, waiting: Int64Array, count: int) -> None:
    """Let the first ``count`` jobs be in the order of ocst: of those submitted at one instant the last first."""
    first = 1
    while first <= count:
        last = first
        while last < count and jobs.submit[waiting[last + 1]] == jobs.submit[waiting[first]]:
            last += 1
        if waiting[first] < waiting[last]:
            for step in range((last - first + 1) // 2):
                front, back = waiting[first + step], waiting[last - step]
                waiting[first + step], waiting[last - step] = back, front
        first = last + 1


@inlined
def is_ahead(state: Int64Array, scores: FloatArray, order: Order, position: int, other: int) -> bool:
    """Say whether the job at ``position`` is ahead in the queue of the one at ``other``, an earlier place."""
    if other <= state[OVERDUE]:
        return False
    return bool(scores[position] < scores[other] or (order.last_first and scores[position] == scores[other]))


@joined
def head(jobs: Jobs, state: Int64Array, waiting: Int64Array, scores: FloatArray, order: Order) -> int:
    """Return the place of the first job in the queue, 0 if none waits."""
    best = 0
    for position in range(1, waiting[0] + 1):
        if jobs.start[waiting[position]] < 0 and (best == 0 or is_ahead(state, scores, order, position, best)):
            best = position
            if best <= state[OVERDUE]:
                break
    return best


@joined
def score_waiting(
    jobs: Jobs,
    state: Int64Array,
    waiting: Int64Array,
    formula: Formula,
    machine: tuple[int, int],
    work: FloatArray,
    scores: FloatArray,
) -> None:
    """Fill in the value of each waiting job now; NaN becomes inf (runs last).

    Parameters
    ----------
    jobs : Jobs
        The jobs.
    state : int64 array
        Of the run: this instant, in ticks, and the processors that are free before anything is started (f).
    waiting : int64 array (n + 1,)
        The list.
    formula : Formula
        What to evaluate.
    machine : (int, int)
        Ticks in a second, processors of the machine (m).
    work : float64 array (12 + depth, at least n)
        Work space.
    scores : float64 array (n + 1,)
        The result, by place in the list.
    """
    ticks, processors = machine
    now, free = state[NOW], state[FREE]
    submit, estimate, width, since_epoch = jobs.submit, jobs.estimate, jobs.processors, formula.r
    count = waiting[0]
    oldest = submit[waiting[1]]
    for i in range(count):
        job = waiting[i + 1]
        work[0, i] = estimate[job] / ticks
        work[1, i] = width[job]
        work[2, i] = (submit[job] - oldest) / ticks if formula.from_oldest else since_epoch[job]
        work[3, i] = (now - submit[job]) / ticks
    predictions = formula.predictions
    if predictions.shape[1] > 0:
        for row in range(PREDICTIONS):
            for i in range(count):
                work[COLUMNS + row, i] = predictions[row, waiting[i + 1]]
    asked = formula.asked
    if asked.shape[1] > 0:
        for row in range(ASKED):
            for i in range(count):
                work[COLUMNS + PREDICTIONS + row, i] = asked[row, waiting[i + 1]]
    stack = work[COLUMNS + PREDICTIONS + ASKED :]
    evaluate(formula.codes, formula.operands, work, count, float(processors), float(free), stack)
    for i in range(count):
        scores[i + 1] = np.inf if np.isnan(stack[0, i]) else stack[0, i]


# Evaluation of a compiled formula on arrays of jobs -------------------------------------------------------------------

# A formula is a program in postfix order for a stack machine whose registers are arrays: one instruction works on
# all jobs before the next begins. One compiled kernel serves every policy, so a new formula costs no compilation,
# and no text is ever turned into Python code.
#
# Arithmetic is IEEE double: 1/0 is inf, log10(0) is -inf, 0/0 and the square root of a negative number are NaN.
# ``POWI`` multiplies repeatedly (left to right), so that x**3 is x*x*x in every language that a policy is exported
# to; the other functions are the C library's. ``DENSE`` is a layer of a network: it takes as many rows as the layer has
# inputs and leaves as many as it has outputs, each the bias plus the weighted inputs, added in their order.


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


@joined
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


@joined
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
        for unit in range(inputs):
            value = rows[unit, job]
            first = unit * outputs
            for to in range(outputs):
                sums[to] += value * weights[first + to]
        for to in range(outputs):
            # NaN stays NaN.
            rows[to, job] = 0.0 if cut and sums[to] < 0.0 else sums[to]


@joined
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
