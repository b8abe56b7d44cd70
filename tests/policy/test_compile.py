"""The program of a formula computes what its tree says, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.formula import evaluate as plain
from naive.formula import expressions, random_jobs, same_bits
from policyfactory.core.errors import FormulaError
from policyfactory.engine import waiting as machine
from policyfactory.policy.compile import compile_expression
from policyfactory.policy.expression import MAX_REPEATED, OF_A_JOB, VARIABLES, Expression, number, parse, whole_exponent
from refusals import refused
from support import examples

JOBS = random_jobs(40, seed=1)


def run(tree: Expression, jobs: list[dict[str, float]]) -> np.ndarray:
    program = compile_expression(tree)
    columns = np.array([[float(job.get(name, 0.0)) for job in jobs] for name in OF_A_JOB])
    # One row less than the program needs would be written past its end: the guard row must stay.
    stack = np.full((program.depth + 1, len(jobs)), -7.5)
    # Compiled kernels say nothing of 1/0; with NUMBA_DISABLE_JIT numpy would.
    with np.errstate(all="ignore"):
        machine.evaluate(program.codes, program.operands, columns, len(jobs), jobs[0]["m"], jobs[0]["f"], stack)
    assert (stack[-1] == -7.5).all()
    return stack[0].copy()


@examples(200)
@given(expressions(depth=5, variables=tuple(VARIABLES)), st.integers(0, 2**32))
def test_program_equals_the_plain_twin(tree: Expression, seed: int) -> None:
    jobs = random_jobs(8, seed)
    for job, value in zip(jobs, run(tree, jobs), strict=True):
        assert same_bits(value, plain(tree, job)), (tree.text(), job)


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-300, 1e308, np.inf, -np.inf, np.nan, -1.0, 0.3])
@pytest.mark.parametrize(
    "text",
    [
        *[
            "log10(p)",
            "log2(p)",
            "ln(p)",
            "sqrt(p)",
            "exp(p)",
            "abs(p)",
            "1/p",
            "p/p",
            "p - p",
            "min(p, q)",
            "max(q, p)",
        ],
        *["p**2", "p**0", "p**16", "p**17", "p**-1", "p**0.5", "p**-0.5", "p**q", "q**p", "-p"],
    ],
)
def test_edges(text: str, value: float) -> None:
    job = {"p": float(value), "q": 3.0, "r": 0.0, "w": 0.0, "m": 1.0, "f": 0.0}
    tree = parse(text)
    assert same_bits(run(tree, [job])[0], plain(tree, job))


def test_program_in_postfix_order() -> None:
    program = compile_expression(parse("-(w/p)**3*q + 2"))
    assert program.codes.tolist() == [
        machine.VAR_W, machine.VAR_P, machine.DIV, machine.POWI, machine.NEG, machine.VAR_Q, machine.MUL,
        machine.CONST, machine.ADD,
    ]  # fmt: skip
    assert program.operands.tolist() == [0, 0, 0, 3, 0, 0, 0, 2, 0]
    assert program.depth == 2


def test_depth_is_what_the_deepest_branch_needs() -> None:
    assert compile_expression(parse("p + (q + (r + (w + m)))")).depth == 5
    assert compile_expression(parse("p + q + r + w + m")).depth == 2
    assert compile_expression(parse("min(p, q*r, w*m, 3)")).depth == 3


def test_whole_exponents_up_to_a_bound_are_multiplied() -> None:
    assert whole_exponent(number(MAX_REPEATED)) == MAX_REPEATED
    for exponent in (MAX_REPEATED + 1, 0.5, -2):
        assert whole_exponent(number(exponent)) is None
    assert machine.POW in compile_expression(parse("p**17")).codes
    # x*x*x, not the library's pow: here they differ in the last bit.
    x = next(x for x in np.linspace(0.1, 1, 10_000) if x * x * x != x**3.0)
    assert run(parse("p**3"), [{"p": x, "q": 1, "r": 0, "w": 0, "m": 1, "f": 0}])[0] == x * x * x


def test_a_coefficient_without_value_does_not_compile() -> None:
    refused(FormulaError, "c fit --form", compile_expression, parse("c*p", coefficients=True))
