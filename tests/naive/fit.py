"""Plain twins of the fits: exact rational least squares, all 576 forms one by one, a bootstrap row by row."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

FUNCTIONS = {"id": lambda x: x, "log10": np.log10, "sqrt": np.sqrt, "inv": lambda x: 1 / x}


def solve(design: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None) -> list[Fraction]:
    """Return the weighted least-squares solution from the normal equations, in rational numbers: without error."""
    rows = [[Fraction(value) for value in row] for row in np.asarray(design).tolist()]
    right = [Fraction(value) for value in np.asarray(target).tolist()]
    squared = (
        [Fraction(1)] * len(rows) if weight is None else [Fraction(value) ** 2 for value in np.asarray(weight).tolist()]
    )
    terms = range(len(rows[0]))
    system = [
        [sum(w * row[i] * row[j] for w, row in zip(squared, rows, strict=True)) for j in terms]
        + [sum(w * row[i] * y for w, row, y in zip(squared, rows, right, strict=True))]
        for i in terms
    ]
    return _eliminate(system)


def _eliminate(system: list[list[Fraction]]) -> list[Fraction]:
    """Solve by Gauss and Jordan."""
    size = len(system)
    for column in range(size):
        pivot = next(row for row in range(column, size) if system[row][column] != 0)
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [value / system[column][column] for value in system[column]]
        for row in range(size):
            if row != column:
                factor = system[row][column]
                system[row] = [a - factor * b for a, b in zip(system[row], system[column], strict=True)]
    return [row[-1] for row in system]


def fit_forms(p: np.ndarray, q: np.ndarray, r: np.ndarray, score: np.ndarray) -> dict[str, float]:
    """Return the mean absolute error of each of the 576 forms that is finite everywhere, one numpy lstsq each."""
    result = {}
    for a, op1, b, op2, c in itertools.product(FUNCTIONS, "+*/", FUNCTIONS, "+*/", FUNCTIONS):
        with np.errstate(divide="ignore", invalid="ignore"):
            columns = form_columns((a, op1, b, op2, c), p, q, r)
        design = np.column_stack(columns)
        if not np.isfinite(design).all():
            continue
        norms = np.linalg.norm(design * (p * q)[:, None], axis=0)
        weighted = design * (p * q)[:, None] / norms
        coefficients = np.linalg.lstsq(weighted, score * p * q, rcond=None)[0] / norms
        written = f"(c1*{a}(p) {op1} c2*{b}(q)) {op2} c3*{c}(r)"
        result[written] = float(np.abs(design @ coefficients - score).mean())
    return result


def form_columns(form: Sequence[str], p: np.ndarray, q: np.ndarray, r: np.ndarray) -> list[np.ndarray]:
    """Return the columns of ((c1 a(p)) op1 (c2 b(q))) op2 (c3 c(r)), multiplied out by hand."""
    a, op1, b, op2, c = form
    left, middle, right = FUNCTIONS[a](p), FUNCTIONS[b](q), FUNCTIONS[c](r)

    def join(operator: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x * y if operator == "*" else x / y

    if op1 == "+" and op2 == "+":
        return [left, middle, right]
    if op2 == "+":
        return [join(op1, left, middle), right]
    if op1 == "+":
        return [join(op2, left, right), join(op2, middle, right)]
    return [join(op2, join(op1, left, middle), right)]


def refit(
    design: np.ndarray, target: np.ndarray, weight: np.ndarray, tuple_of: np.ndarray, drawn: Sequence[int]
) -> tuple[np.ndarray, float]:
    """Return coefficients and mean absolute error of one bootstrap replicate, from copies of the drawn tuples' rows."""
    rows = np.concatenate([np.flatnonzero(tuple_of == number) for number in drawn])
    x, y, w = design[rows], target[rows], weight[rows]
    norms = np.linalg.norm(x * w[:, None], axis=0)
    coefficients = np.linalg.lstsq(x * w[:, None] / norms, y * w, rcond=None)[0] / norms
    return coefficients, float(np.abs(x @ coefficients - y).mean())
