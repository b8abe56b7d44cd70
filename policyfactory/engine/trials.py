"""Trials: average bounded slowdown of a queue that is started in a given order after a given state.

The rule (docs/scores.md; Carastan-Santos and de Camargo, SC 2017, section 3.2): a job starts at the earliest
time that is not before the previous start, not before its own submission, and at which its processors are free;
strict order, no backfilling. So the machine needs no event queue, only the jobs that still run, latest end first,
with the processors that are in use until each of these ends: ``held[k]`` is the sum over the jobs that end at
``ends[k]`` or later. A job of q processors on a machine of m can start at the latest ``ends[k]`` with
``held[k] > m - q``, or before that if there is none.

Sixteen trials run side by side (``engine.lanes``), without a branch that depends on their values: a started job is
merged into the list in one pass, which also finds the start of the next one. Jobs that have ended stay in the
list as long as another lane needs the row; they change nothing, because their end is not after the clock.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model
from numpy.typing import NDArray

from policyfactory.core.jit import kernel

IntArray = NDArray[np.int32] | NDArray[np.int64]

# Rows of the list are added and dropped four at a time: fewer turns for the processor to guess.
_STEP = 4
_LATEST = {np.dtype(np.int32): 2**31 - 1, np.dtype(np.int64): 2**63 - 1}


class Problem(NamedTuple):
    """A tuple (S, Q) as arrays: the jobs of Q, and the machine after the last job of S has started.

    All integer arrays have the same type, int32 where no time can exceed it.

    Parameters
    ----------
    p, q, r : int array (n,)
        Run time (ticks), processors, submit time (ticks) of the jobs of Q.
    ends, held : int array (k,)
        Ends of the running jobs of S (ticks), latest first, and the processors in use until then.
    limits : int array (4,)
        Start of the last job of S (ticks), processors of the machine, the shortest run time that the bounded
        slowdown divides by (tau, ticks), a time later than any end (ticks).
    """

    p: IntArray
    q: IntArray
    r: IntArray
    ends: IntArray
    held: IntArray
    limits: IntArray


@kernel
def occupy(
    p: NDArray[np.int64], q: NDArray[np.int64], r: NDArray[np.int64], machine: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Start the jobs of S one after the other on an empty machine.

    Parameters
    ----------
    p, q, r : int64 array (n,)
        Run time (ticks), processors (at most ``machine``), submit time (ticks), in the order of starting.
    machine : int
        Processors of the machine.

    Returns
    -------
    ends, held : int64 array (k,)
        As in `Problem`.
    clock : int
        When the last job started (ticks), 0 without jobs.
    """
    ends = np.zeros(len(p), dtype=np.int64)
    procs = np.zeros(len(p), dtype=np.int64)
    running = 0
    clock = 0
    free = machine
    for j in range(len(p)):
        clock = max(clock, r[j])
        while running > 0 and (ends[running - 1] <= clock or free < q[j]):
            running -= 1
            clock = max(clock, ends[running])
            free += procs[running]
        position = running
        while position > 0 and ends[position - 1] < clock + p[j]:
            ends[position] = ends[position - 1]
            procs[position] = procs[position - 1]
            position -= 1
        ends[position] = clock + p[j]
        procs[position] = q[j]
        free -= q[j]
        running += 1
    while running > 0 and ends[running - 1] <= clock:
        running -= 1
    return ends[:running], np.cumsum(procs[:running]), clock


def pose(
    p: NDArray[np.int64], q: NDArray[np.int64], r: NDArray[np.int64], machine: int, state_size: int, tau: int
) -> Problem:
    """Return the problem of a tuple: the first ``state_size`` jobs are S, the others Q.

    Parameters
    ----------
    p, q, r : int64 array (n,)
        Run time (ticks), processors (at most ``machine``), submit time (ticks) in submit order.
    machine, state_size, tau : int
        Processors of the machine, size of S, shortest run time of the bounded slowdown (ticks).
    """
    s = state_size
    ends, held, clock = occupy(p[:s], q[:s], r[:s], machine)
    bound = max(int(clock), int(r.max()), tau) + int(p.sum())
    kind = np.dtype(np.int32 if max(bound, 2 * machine) < 2**31 - 1 else np.int64)
    return Problem(
        p=p[s:].astype(kind),
        q=q[s:].astype(kind),
        r=r[s:].astype(kind),
        ends=ends.astype(kind),
        held=held.astype(kind),
        limits=np.array([clock, machine, tau, _LATEST[kind]], dtype=kind),
    )


@kernel
def _list_rows(problem: Problem) -> int:
    """Return the rows that one list needs: all jobs, a sentinel in front, and the rows added ahead of need."""
    return len(problem.ends) + len(problem.p) + 1 + 2 * _STEP


@kernel
def _draw_up(problem: Problem, lists: IntArray) -> None:
    """Write two lists of the jobs of S to ``lists``: the one that trials change, and the one they begin with.

    A list is the rows of ends, then the rows of processors held, each row one number a lane.
    """
    height = _list_rows(problem) * LANES
    for start in (0, 2 * height):
        for row in range(_list_rows(problem)):
            end = problem.ends[row - 1] if 0 < row <= len(problem.ends) else lists.dtype.type(-1)
            held = problem.held[row - 1] if 0 < row <= len(problem.ends) else lists.dtype.type(0)
            store(lists, start + row * LANES, fill(lists, end))
            store(lists, start + height + row * LANES, fill(lists, held))
        store(lists, start, fill(lists, problem.limits[3]))


@kernel
def _merge(lists: IntArray, source: int, height: int, rows: int, end: Lanes, procs: Lanes, room: Lanes) -> Lanes:
    """Enter a job that ends at ``end`` into the list; return when no more than ``room`` processors are in use.

    The list is read at ``source`` and written at 0. Sorted by end, a row is either kept or takes over the row in
    front of it, and every row behind the new one holds its processors too.
    """
    front_end = load(lists, source)
    front_held = load(lists, source + height)
    free_at = front_held
    for row in range(1, rows + 1, _STEP):
        for k in range(row, row + _STEP):
            old_end = load(lists, source + k * LANES)
            old_held = load(lists, source + height + k * LANES)
            new_end = larger(old_end, smaller(front_end, end))
            new_held = where(end > old_end, front_held + procs, old_held)
            store(lists, k * LANES, new_end)
            store(lists, height + k * LANES, new_held)
            free_at = where(new_held > room, larger(free_at, new_end), free_at)
            front_end = old_end
            front_held = old_held
    return free_at


@kernel
def _resize(lists: IntArray, rows: int, clock: Lanes) -> int:
    """Return how many rows the next pass needs: all that still run in some lane, and one more."""
    if any_lane(load(lists, rows * LANES) > clock):
        for k in range(rows + 1, rows + _STEP + 1):
            store(lists, k * LANES, fill(lists, lists.dtype.type(-1)))
        return rows + _STEP
    if rows > _STEP and not any_lane(load(lists, (rows - _STEP) * LANES) > clock):
        return rows - _STEP
    return rows


@kernel
def _first_rows(problem: Problem) -> int:
    """Return the rows of the first pass, a multiple of the step that leaves room for one job."""
    return (len(problem.ends) + _STEP) // _STEP * _STEP


@kernel
def _first_start(problem: Problem, lists: IntArray, q: Lanes, r: Lanes) -> Lanes:
    """Return when jobs of ``q`` processors submitted at ``r`` start as the first of the queue."""
    height = _list_rows(problem) * LANES
    room = fill(lists, problem.limits[1]) - q
    start = larger(r, fill(lists, problem.limits[0]))
    for k in range(1, len(problem.ends) + 1):
        held = load(lists, 3 * height + k * LANES)
        start = where(held > room, larger(start, load(lists, 2 * height + k * LANES)), start)
    return start


@kernel
def _slowdown(total: NDArray[np.float64], response: Lanes, p: Lanes, tau: Lanes) -> Lanes:
    """Return the bounded slowdown of jobs of run time ``p`` that end ``response`` after their submission."""
    return larger(as_float(response) / as_float(larger(p, tau)), fill(total, 1.0))


@kernel
def front_values(problem: Problem, orders: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
    """Let every job of Q in turn go first, the others in each given order: n trials an order.

    The lanes are the jobs that go first. They share the order of the others, so that all lanes start one of only
    two jobs at a time: the one at place i of the order, or, where the lane's own first job was taken from a
    place up to i, the one behind it.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    orders : uint8 array (b, n)
        Permutations of 0 to n - 1.
    out : float64 array (b, n)
        ``out[i, j]`` becomes the average bounded slowdown of Q if j goes first and the others follow in the order
        ``orders[i]``.
    """
    n = len(problem.p)
    lists = np.empty(4 * _list_rows(problem) * LANES, dtype=problem.p.dtype)
    _draw_up(problem, lists)
    # Lanes beyond the last job repeat job 0 and are not read.
    padded = (n + LANES - 1) // LANES * LANES
    jobs = np.zeros((3, padded), dtype=problem.p.dtype)
    for j in range(padded):
        k = j if j < n else 0
        jobs[0, j], jobs[1, j], jobs[2, j] = problem.p[k], problem.q[k], problem.r[k]
    rank = np.zeros(padded, dtype=problem.p.dtype)
    total = np.empty(LANES, dtype=np.float64)
    for i in range(len(orders)):
        for s in range(n):
            rank[orders[i, s]] = s
        for first in range(0, n, LANES):
            _front_group(problem, lists, jobs, (orders[i], rank, total), first)
            for lane in range(min(LANES, n - first)):
                out[i, first + lane] = total[lane] / n


@kernel
def _front_group(
    problem: Problem,
    lists: IntArray,
    jobs: IntArray,
    ordered: tuple[NDArray[np.uint8], IntArray, NDArray[np.float64]],
    first: int,
) -> None:
    """Run the trials whose first jobs are ``first`` to ``first + 15``; leave the sums of slowdowns in ``total``."""
    order, rank, total = ordered
    height = _list_rows(problem) * LANES
    machine = fill(lists, problem.limits[1])
    tau = fill(lists, problem.limits[2])
    rows = _first_rows(problem)
    source = 2 * height
    lane_rank = load(rank, first)
    procs = load(jobs[1], first)
    submit = load(jobs[2], first)
    start = _first_start(problem, lists, procs, submit)
    end = start + load(jobs[0], first)
    value = _slowdown(total, end - submit, end - start, tau)
    for s in range(len(order) - 1):
        a = order[s]
        b = order[s + 1]
        ahead = lane_rank > fill(rank, rank.dtype.type(s))
        new_procs = where(ahead, fill(lists, problem.q[a]), fill(lists, problem.q[b]))
        free_at = _merge(lists, source, height, rows, end, procs, machine - new_procs)
        source = 0
        procs = new_procs
        submit = where(ahead, fill(lists, problem.r[a]), fill(lists, problem.r[b]))
        start = larger(larger(start, submit), free_at)
        end = start + where(ahead, fill(lists, problem.p[a]), fill(lists, problem.p[b]))
        value = value + _slowdown(total, end - submit, end - start, tau)
        rows = _resize(lists, rows, start)
    store(total, 0, value)


@kernel
def order_values(problem: Problem, orders: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
    """Run one trial for each given order; the lanes are sixteen orders.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    orders : uint8 array (b, n)
        Permutations of 0 to n - 1; ``orders[i, k]`` is the job of Q that starts k-th.
    out : float64 array (b,)
        Becomes the average bounded slowdown of Q in each order.
    """
    n = len(problem.p)
    lists = np.empty(4 * _list_rows(problem) * LANES, dtype=problem.p.dtype)
    _draw_up(problem, lists)
    jobs = np.empty((3, n * LANES), dtype=problem.p.dtype)
    total = np.empty(LANES, dtype=np.float64)
    for first in range(0, len(orders), LANES):
        for lane in range(LANES):
            # Lanes beyond the last order repeat it and are not read.
            row = orders[min(first + lane, len(orders) - 1)]
            for s in range(n):
                j = row[s]
                column = s * LANES + lane
                jobs[0, column], jobs[1, column], jobs[2, column] = problem.p[j], problem.q[j], problem.r[j]
        _order_group(problem, lists, jobs, total)
        for lane in range(min(LANES, len(orders) - first)):
            out[first + lane] = total[lane] / n


@kernel
def _order_group(problem: Problem, lists: IntArray, jobs: IntArray, total: NDArray[np.float64]) -> None:
    """Run 16 trials whose jobs lie in ``jobs`` (p, q, r), a lane each; leave the sums of slowdowns in ``total``."""
    height = _list_rows(problem) * LANES
    machine = fill(lists, problem.limits[1])
    tau = fill(lists, problem.limits[2])
    rows = _first_rows(problem)
    source = 2 * height
    p, q, r = jobs[0], jobs[1], jobs[2]
    procs = load(q, 0)
    submit = load(r, 0)
    start = _first_start(problem, lists, procs, submit)
    end = start + load(p, 0)
    value = _slowdown(total, end - submit, end - start, tau)
    for s in range(LANES, len(p), LANES):
        new_procs = load(q, s)
        free_at = _merge(lists, source, height, rows, end, procs, machine - new_procs)
        source = 0
        procs = new_procs
        submit = load(r, s)
        start = larger(larger(start, submit), free_at)
        end = start + load(p, s)
        value = value + _slowdown(total, end - submit, end - start, tau)
        rows = _resize(lists, rows, start)
    store(total, 0, value)


# Many trials at once --------------------------------------------------------------------------------------------------

# Random orders in, means and co-moments out; memory does not grow with the trials.
#
# The kernels go on from the words and the sums that they are given, so that long runs can be cut into calls.


# Orders made of one drawn order.
VARIANTS = 4
# Blocks and orders drawn at a time: few enough to stay in the cache.
_BLOCKS = 32
_ORDERS = 512


@kernel
def turn(drawn: NDArray[np.uint8], orders: NDArray[np.uint8]) -> None:
    """Write the four orders made of each drawn one: as it is, with its halves exchanged, and both backwards.

    Parameters
    ----------
    drawn : uint8 array (b, n)
        Permutations.
    orders : uint8 array (4 b, n)
        Becomes the orders; those of ``drawn[i]`` are the rows from 4 i on.
    """
    n = drawn.shape[1]
    half = n // 2
    for i in range(len(drawn)):
        for s in range(n):
            job = drawn[i, s]
            exchanged = s + n - half if s < half else s - half
            orders[VARIANTS * i, s] = job
            orders[VARIANTS * i + 1, n - 1 - s] = job
            orders[VARIANTS * i + 2, exchanged] = job
            orders[VARIANTS * i + 3, n - 1 - exchanged] = job


@kernel
def add_block(values: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
    """Add one block to the running means and co-moments (Welford's update: no cancellation).

    Parameters
    ----------
    values : float64 array (4, n)
        Value of the trial in which j goes first, in each of the block's four orders.
    sums : float64 array (n + 1, 3)
        Row j: mean of the block means Y_j, sum of squares of Y_j around it, sum of products of Y_j and T around
        their means, with T the sum of Y_j over j. Row n: blocks so far, mean of T, sum of squares of T.
    """
    n = values.shape[1]
    sums[n, 0] += 1.0
    count = sums[n, 0]
    total = 0.0
    for j in range(n):
        for v in range(VARIANTS):
            total += values[v, j] / VARIANTS
    off_before = total - sums[n, 1]
    sums[n, 1] += off_before / count
    off_after = total - sums[n, 1]
    sums[n, 2] += off_before * off_after
    for j in range(n):
        value = 0.0
        for v in range(VARIANTS):
            value += values[v, j] / VARIANTS
        off = value - sums[j, 0]
        sums[j, 0] += off / count
        sums[j, 1] += off * (value - sums[j, 0])
        sums[j, 2] += off * off_after


@kernel
def add_blocks(problem: Problem, words: NDArray[np.int64], blocks: int, sums: NDArray[np.float64]) -> None:
    """Run ``blocks`` blocks of 4 n trials: four orders of one drawn order, each job of Q first in each of them.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    words : int64 array (4,)
        The random stream; moved on.
    blocks : int
        How many blocks.
    sums : float64 array (n + 1, 3)
        As in `add_block`.
    """
    n = len(problem.p)
    drawn = np.empty((_BLOCKS, n), dtype=np.uint8)
    orders = np.empty((VARIANTS * _BLOCKS, n), dtype=np.uint8)
    values = np.empty((VARIANTS * _BLOCKS, n), dtype=np.float64)
    for first in range(0, blocks, _BLOCKS):
        count = min(_BLOCKS, blocks - first)
        shuffle(words, drawn[:count])
        turn(drawn[:count], orders)
        front_values(problem, orders[: VARIANTS * count], values)
        for i in range(count):
            add_block(values[VARIANTS * i : VARIANTS * (i + 1)], sums)


@kernel
def add_orders(problem: Problem, words: NDArray[np.int64], trials: int, sums: NDArray[np.float64]) -> None:
    """Run ``trials`` trials in independent random orders.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    words : int64 array (4,)
        The random stream; moved on.
    trials : int
        How many trials.
    sums : float64 array (n, 3)
        Row j: number, sum of values, sum of squared values of the trials so far with j first.
    """
    orders = np.empty((_ORDERS, len(problem.p)), dtype=np.uint8)
    values = np.empty(_ORDERS, dtype=np.float64)
    for first in range(0, trials, _ORDERS):
        count = min(_ORDERS, trials - first)
        shuffle(words, orders[:count])
        order_values(problem, orders[:count], values)
        for i in range(count):
            j = orders[i, 0]
            sums[j, 0] += 1.0
            sums[j, 1] += values[i]
            sums[j, 2] += values[i] * values[i]


# Random orders from four words of a seed ------------------------------------------------------------------------------

# Nothing here is random by itself: the words are drawn outside (``core.random``), and the orders are a function of
# them. The generator is xoshiro128++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
# ACM TOMS 47(4), 2021, doi:10.1145/3460772): 32-bit words held in int64, so compiled and plain code agree. The
# shuffle is Fisher and Yates's with Lemire's unbiased bounded integers (ACM TOMACS 29(1), 2019, doi:10.1145/3230636).


_MASK = 0xFFFFFFFF


@kernel
def next_word(s0: int, s1: int, s2: int, s3: int) -> tuple[int, int, int, int, int]:
    """Return 32 random bits and the four words (0 to 2**32 - 1, not all 0) that come after the given ones."""
    total = (s0 + s3) & _MASK
    bits = ((((total << 7) & _MASK) | (total >> 25)) + s0) & _MASK
    shifted = (s1 << 9) & _MASK
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = ((s3 << 11) & _MASK) | (s3 >> 21)
    return bits, s0, s1, s2, s3


@kernel
def shuffle(words: NDArray[np.int64], orders: NDArray[np.uint8]) -> None:
    """Fill every row of ``orders`` (uint8 array (b, n)) with a permutation of 0 to n - 1, all equally likely.

    ``words`` (int64 array (4,), 0 to 2**32 - 1, not all 0) is moved on: the next call goes on with the stream.
    """
    n = orders.shape[1]
    # The words stay in registers: an array could overlap with the orders, and each draw would wait for memory.
    s0, s1, s2, s3 = words[0], words[1], words[2], words[3]
    for row in range(len(orders)):
        for i in range(n):
            orders[row, i] = i
        for i in range(n - 1, 0, -1):
            bits, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            product = bits * (i + 1)
            if product & _MASK <= i:
                # 2**32 is no multiple of most numbers: words in excess of the last multiple are drawn again.
                excess = (_MASK + 1) % (i + 1)
                while product & _MASK < excess:
                    bits, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
                    product = bits * (i + 1)
            j = product >> 32
            orders[row, i], orders[row, j] = orders[row, j], orders[row, i]
    words[0], words[1], words[2], words[3] = s0, s1, s2, s3


# Vectors for kernels: sixteen trials side by side, one in each lane ---------------------------------------------------

# The compiler does not find the parallelism between trials by itself, so the trial kernels say it: ``load`` gives
# 16 neighbouring elements of an array as one value, and ``+ - / >``, ``where``, ``larger``, ``smaller`` work on all
# lanes at once. In compiled code such a value is a vector of LLVM, which becomes AVX-512, AVX2, SSE or NEON
# instructions, whichever the processor has; the results are the same bits on each. Without the compiler
# (``NUMBA_DISABLE_JIT=1``) it is a numpy array of 16 elements, and the functions below are what is run.


LANES = 16
# A value of 16 lanes: a vector in compiled code, an array else.
Lanes: TypeAlias = Any


def load(array: Any, index: int) -> Any:
    """Return the 16 elements of ``array`` (one dimension) from ``index`` on."""
    return array[index : index + LANES].copy()


def store(array: Any, index: int, value: Any) -> None:
    """Write ``value`` to the 16 elements of ``array`` from ``index`` on."""
    array[index : index + LANES] = value


def fill(array: Any, value: Any) -> Any:
    """Return ``value`` in every lane, in the type of ``array``'s elements."""
    return np.full(LANES, value, dtype=array.dtype)


def where(mask: Any, a: Any, b: Any) -> Any:
    """Return lane by lane ``a`` where ``mask`` holds, else ``b``."""
    return np.where(mask, a, b)


def larger(a: Any, b: Any) -> Any:
    """Return lane by lane the larger of two."""
    return np.maximum(a, b)


def smaller(a: Any, b: Any) -> Any:
    """Return lane by lane the smaller of two."""
    return np.minimum(a, b)


def as_float(a: Any) -> Any:
    """Return whole numbers as float64."""
    return a.astype(np.float64)


def any_lane(mask: Any) -> bool:
    """Return whether ``mask`` holds in at least one lane."""
    return bool(mask.any())


class _Lanes(types.Type):
    """The type of 16 elements of ``dtype`` in compiled code."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype}, {LANES})")


_ELEMENTS = {
    types.int32: ir.IntType(32),
    types.int64: ir.IntType(64),
    types.float64: ir.DoubleType(),
    types.boolean: ir.IntType(1),
}


def _vector(dtype: Any) -> ir.VectorType:
    return ir.VectorType(_ELEMENTS[dtype], LANES)


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: _Lanes) -> None:
        super().__init__(manager, lanes, _vector(lanes.dtype))  # type: ignore[no-untyped-call]  # numba is not typed


register_model(_Lanes)(_LanesModel)


def _address(context: Any, builder: Any, array_type: Any, args: Any) -> tuple[Any, int]:
    """Return the address of element ``args[1]`` of ``args[0]`` as a vector, and its alignment in bytes."""
    array = context.make_array(array_type)(context, builder, args[0])
    address = builder.gep(array.data, [args[1]])
    return builder.bitcast(address, _vector(array_type.dtype).as_pointer()), array_type.dtype.bitwidth // 8


def _typed_load(_context: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, alignment = _address(context, builder, signature.args[0], args)
        return builder.load(address, align=alignment)

    return _Lanes(array.dtype)(array, types.intp), generate


def _typed_store(_context: Any, array: Any, _index: Any, _value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, alignment = _address(context, builder, signature.args[0], args)
        builder.store(args[2], address, align=alignment)
        return context.get_dummy_value()

    return types.void(array, types.intp, _Lanes(array.dtype)), generate


def _typed_fill(_context: Any, array: Any, _value: Any) -> Any:
    vector = _vector(array.dtype)

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        nothing = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(nothing, args[1], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))

    return _Lanes(array.dtype)(array, array.dtype), generate


def _typed_where(_context: Any, mask: Any, a: Any, _b: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return a(mask, a, a), generate


def _typed_as_float(_context: Any, a: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.sitofp(args[0], _vector(types.float64))

    return _Lanes(types.float64)(a), generate


def _typed_any(_context: Any, mask: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(mask), generate


def _compare(builder: Any, dtype: Any, sign: str, args: Any) -> Any:
    if dtype == types.float64:
        return builder.fcmp_ordered(sign, *args)
    return builder.icmp_signed(sign, *args)


def _typed_greater(_context: Any, a: Any, _b: Any) -> Any:
    def generate(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _compare(builder, signature.args[0].dtype, ">", args)

    return _Lanes(types.boolean)(a, a), generate


def _typed_choice(sign: str) -> Callable[..., Any]:
    def typed(_context: Any, a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(_compare(builder, signature.args[0].dtype, sign, args), *args)

        return a(a, a), generate

    return typed


def _typed_arithmetic(instruction: str) -> Callable[..., Any]:
    def typed(_context: Any, a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
            prefix = "f" if signature.args[0].dtype == types.float64 else ""
            return getattr(builder, prefix + instruction)(*args)

        return a(a, a), generate

    return typed


def _functions(arguments: int, pairs: Iterable[tuple[Callable[..., Any], Any]]) -> None:
    """Tell the compiler which vector instruction each function of one, two or three arguments stands for."""
    for function, on_lanes in pairs:
        overload(function)(_typed_call(arguments, on_lanes))


# The compiler translates the inner function of each pair and checks that both take the same arguments.
def _typed_call(arguments: int, on_lanes: Any) -> Callable[..., Any]:
    if arguments == 1:
        return lambda a: lambda a: on_lanes(a)  # noqa: ARG005, PLW0108 (see above)
    if arguments == 2:
        return lambda a, b: lambda a, b: on_lanes(a, b)  # noqa: ARG005, PLW0108 (see above)
    return lambda a, b, c: lambda a, b, c: on_lanes(a, b, c)  # noqa: ARG005, PLW0108 (see above)


def _operators(pairs: Iterable[tuple[Callable[..., Any], Any]]) -> None:
    """Tell the compiler what an operator means between two values of lanes."""
    for sign, on_lanes in pairs:
        overload(sign)(_typed_operator(on_lanes))


def _typed_operator(on_lanes: Any) -> Callable[..., Any]:
    def call(a: Any, b: Any) -> Any:
        return on_lanes(a, b)

    def typed(a: Any, b: Any) -> Any:
        return call if isinstance(a, _Lanes) and a == b else None

    return typed


_functions(1, ((as_float, intrinsic(_typed_as_float)), (any_lane, intrinsic(_typed_any))))
_functions(2, ((load, intrinsic(_typed_load)), (fill, intrinsic(_typed_fill))))
_functions(2, ((larger, intrinsic(_typed_choice(">"))), (smaller, intrinsic(_typed_choice("<")))))
_functions(3, ((store, intrinsic(_typed_store)), (where, intrinsic(_typed_where))))
_operators(
    (sign, intrinsic(_typed_arithmetic(name)))
    for sign, name in (
        (operator.add, "add"),
        (operator.sub, "sub"),
        (operator.truediv, "div"),
    )
)
_operators([(operator.gt, intrinsic(_typed_greater))])
