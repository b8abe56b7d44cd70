"""Whether two formulas sort jobs in the same order, tried on jobs as odd as they come.

Algebra knows no largest number: ``((m + r)/m)**100`` and ``(r + m)**100`` are the same order, but in doubles the second
overflows where the first does not, and jobs with one infinite score are sorted by submit time. So both are computed as
a scheduler's formula is, for jobs from the smallest to larger than any, and compared: jobs whose scores are equal (both
infinite, or without a value) in one of them must be so in the other, and no two may change places; differences within
the rounding of doubles do not count.
"""

from __future__ import annotations

import math

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.engine.formula import evaluate
from policyfactory.policy.compile import compile_expression
from policyfactory.policy.nodes import Expression

__all__ = ["same_order"]

# Seconds, processors and jobs. No two are in a simple ratio, so that no two jobs are equal by chance.
_VALUES = {
    "p": (1.0, 67.3, 3607.1, 87013.9, 2.617e6, 1.193e10),
    "q": (1.0, 3.0, 67.0, 20011.0, 1.1e7),
    "r": (0.0, 1.0, 991.7, 86413.3, 3.1e7, 1.9e9, 1.7e13),
    "w": (0.0, 1.0, 509.3, 70001.7, 2.9e6, 1.3e10),
    "e": (0.37, 53.9, 4019.3, 9.7e4, 2.3e9),
    "s": (1.0, 0.2239, 4.157e-3, 7.1e-9),
    "e90": (1.3, 8101.9, 3.7e5, 6.1e9),
    "user_waiting": (0.0, 1.0, 59.0),
    "user_running": (0.0, 1.0, 71.0),
    "n": (1.0, 7.0, 9203.0),
    "mem": (0.0, 1.0, 509.0, 4.1e6),
    "g": (0.0, 1.0, 83.0),
}
# Of more jobs than so many these are tried: with a prime step all are different, and of all kinds.
_MOST_JOBS, _STEP = 40_000, 1_000_003
_MACHINES = (1.0, 128.0, 1.3e7)
_FREE = (0.0, 1.0, 61.0, 17011.0, 9.7e6)
_ROUNDING = 1e-9
# Below it doubles lose digits.
_TINY = float(np.finfo(np.float64).tiny)


def same_order(one: Expression, other: Expression) -> bool:
    """Return whether two formulas sort in the same order.

    Parameters
    ----------
    one, other : Expression
        Without named coefficients.
    """
    names = one.variables | other.variables
    axes = [values if name in names else values[:1] for name, values in _VALUES.items()]
    jobs = _jobs(axes)
    machines = _MACHINES if "m" in names else _MACHINES[-1:]
    free = _FREE if "f" in names else _FREE[:1]
    sizes = [(m, f) for m in machines for f in free if f <= m]
    return all(_agree(_scores(one, jobs, *size), _scores(other, jobs, *size)) for size in sizes)


def _jobs(axes: list[tuple[float, ...]]) -> FloatArray:
    """Return the jobs that have one value of each axis, all of them or many: float64 array (axes, jobs)."""
    sizes = [len(axis) for axis in axes]
    count = math.prod(sizes)
    places = np.arange(count) if count <= _MOST_JOBS else np.arange(_MOST_JOBS) * _STEP % count
    return np.array([np.array(axis)[at] for axis, at in zip(axes, np.unravel_index(places, sizes), strict=True)])


def _scores(expression: Expression, jobs: FloatArray, machine: float, free: float) -> FloatArray:
    program = compile_expression(expression)
    stack = np.empty((program.depth, jobs.shape[1]))
    evaluate(program.codes, program.operands, np.ascontiguousarray(jobs), jobs.shape[1], machine, free, stack)
    scores = stack[0].copy()
    # As `Policy.scores` has it: what has no value runs last.
    scores[np.isnan(scores)] = np.inf
    scores[np.abs(scores) < _TINY] = 0.0
    return np.asarray(scores, dtype=np.float64)


def _agree(one: FloatArray, other: FloatArray) -> bool:
    at = np.lexsort((other, one))
    one, other = one[at], other[at]
    before, after = _steps(one), _steps(other)
    torn = (one[1:] == one[:-1]) & (after != 0)
    merged = (other[1:] == other[:-1]) & (before != 0)
    return not bool((torn | merged | ((before > 0) & (after < 0))).any())


def _steps(scores: FloatArray) -> FloatArray:
    """Return 1 or -1 where a score is larger or smaller than the one before, 0 where only rounding tells them apart."""
    size = np.maximum(np.abs(scores[1:]), np.abs(scores[:-1]))
    with np.errstate(invalid="ignore"):
        steps = np.where(scores[1:] == scores[:-1], 0.0, np.diff(scores))
    rounding = np.where(np.isfinite(size), _ROUNDING * size, 0.0)
    return np.where(np.abs(steps) > rounding, np.sign(steps), 0.0)
