"""Each instruction of the formulas' stack machine on values worked by hand, also where the result is no number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policyfactory.engine import waiting as machine

INF, NAN = math.inf, math.nan
P, Q, R, W = [5.0, -2.0, 0.0], [4.0, 1.0, 9.0], [100.0, 0.0, 7.0], [3.0, 30.0, 300.0]
M, F = 64.0, 11.0
PREDICTED = [[50.0, 51.0, 52.0], [0.1, 0.2, 0.3], [90.0, 91.0, 92.0], [6.0, 7.0, 8.0], [1.0, 2.0, 3.0]]

# Instructions with their operands, the value for each of the three jobs.
PROGRAMS = {
    "p": ([("VAR_P", 0)], P),
    "q": ([("VAR_Q", 0)], Q),
    "r": ([("VAR_R", 0)], R),
    "w": ([("VAR_W", 0)], W),
    "e": ([("VAR_E", 0)], PREDICTED[0]),
    "s": ([("VAR_S", 0)], PREDICTED[1]),
    "e90": ([("VAR_E90", 0)], PREDICTED[2]),
    "user_waiting": ([("VAR_USER_WAITING", 0)], PREDICTED[3]),
    "user_running": ([("VAR_USER_RUNNING", 0)], PREDICTED[4]),
    "m": ([("VAR_M", 7.0)], [M, M, M]),
    "f": ([("VAR_F", 7.0)], [F, F, F]),
    "2.5": ([("CONST", 2.5)], [2.5, 2.5, 2.5]),
    "p + q": ([("VAR_P", 0), ("VAR_Q", 0), ("ADD", 0)], [9.0, -1.0, 9.0]),
    "p - q": ([("VAR_P", 0), ("VAR_Q", 0), ("SUB", 0)], [1.0, -3.0, -9.0]),
    "p*q": ([("VAR_P", 0), ("VAR_Q", 0), ("MUL", 0)], [20.0, -2.0, 0.0]),
    "w/r": ([("VAR_W", 0), ("VAR_R", 0), ("DIV", 0)], [0.03, INF, 300 / 7]),
    "p/p": ([("VAR_P", 0), ("VAR_P", 0), ("DIV", 0)], [1.0, 1.0, NAN]),
    "q**r": ([("VAR_Q", 0), ("VAR_R", 0), ("POW", 0)], [2.0**200, 1.0, 9.0**7]),
    "min(p, q)": ([("VAR_P", 0), ("VAR_Q", 0), ("MIN", 0)], [4.0, -2.0, 0.0]),
    "max(p, q)": ([("VAR_P", 0), ("VAR_Q", 0), ("MAX", 0)], [5.0, 1.0, 9.0]),
    "-p": ([("VAR_P", 0), ("NEG", 0)], [-5.0, 2.0, 0.0]),
    "log10(p)": ([("VAR_P", 0), ("LOG10", 0)], [math.log10(5), NAN, -INF]),
    "log2(p)": ([("VAR_P", 0), ("LOG2", 0)], [math.log2(5), NAN, -INF]),
    "ln(p)": ([("VAR_P", 0), ("LN", 0)], [math.log(5), NAN, -INF]),
    "log10(q)": ([("VAR_Q", 0), ("LOG10", 0)], [math.log10(4), 0.0, math.log10(9)]),
    "log10(0.5)": ([("CONST", 0.5), ("LOG10", 0)], [math.log10(0.5)] * 3),
    "log2(0.5)": ([("CONST", 0.5), ("LOG2", 0)], [-1.0] * 3),
    "ln(0.5)": ([("CONST", 0.5), ("LN", 0)], [math.log(0.5)] * 3),
    "sqrt(p)": ([("VAR_P", 0), ("SQRT", 0)], [math.sqrt(5), NAN, 0.0]),
    "sqrt(-0.5)": ([("CONST", -0.5), ("SQRT", 0)], [NAN] * 3),
    "sqrt(0.25)": ([("CONST", 0.25), ("SQRT", 0)], [0.5] * 3),
    "exp(p)": ([("VAR_P", 0), ("EXP", 0)], [math.exp(5), math.exp(-2), 1.0]),
    "abs(p)": ([("VAR_P", 0), ("ABS", 0)], [5.0, 2.0, 0.0]),
    "p**3": ([("VAR_P", 0), ("POWI", 3)], [125.0, -8.0, 0.0]),
    "p**0": ([("VAR_P", 0), ("POWI", 0)], [1.0, 1.0, 1.0]),
    "p, q and w through a layer of two, one after another": (
        [("VAR_P", 0), ("VAR_Q", 0), ("VAR_W", 0), ("DENSE", 5), ("SUB", 0)],
        # 10 + 2 p + 3 q + 0.5 w, 20 - p + 4 q - w, negative ones 0, the first less the second.
        [33.5 - 28, 24 - 0, 187 - 0],
    ),
    "the last layer keeps what is negative": (
        [("VAR_R", 0), ("VAR_P", 0), ("DENSE", 4), ("ADD", 0)],
        [100.0 - 6, 0.0 + 1, 7.0 - 1],
    ),
    "p - (q - (r - w))": (
        [("VAR_P", 0), ("VAR_Q", 0), ("VAR_R", 0), ("VAR_W", 0), ("SUB", 0), ("SUB", 0), ("SUB", 0)],
        [5.0 - (4.0 - 97.0), -2.0 - (1.0 + 30.0), 0.0 - (9.0 + 293.0)],
    ),
}


# Behind a program's own operands: inputs, outputs, whether negative outputs become 0, weights, biases.
LAYERS = {5: [3, 2, 1, 2, -1, 3, 4, 0.5, -1, 10, 20], 4: [1, 1, 0, -1, -1]}


def run(program: list[tuple[str, float]], depth: int = 4) -> np.ndarray:
    codes = np.array([getattr(machine, name) for name, _ in program])
    layers = [number for name, operand in program if name == "DENSE" for number in LAYERS[int(operand)]]
    operands = np.array([*(operand for _, operand in program), *layers], dtype=np.float64)
    columns = np.array((P, Q, R, W, *PREDICTED))
    stack = np.full((depth + 1, 4), -7.5)
    with np.errstate(all="ignore"):
        machine.evaluate(codes, operands, columns, len(P), M, F, stack)
    assert (stack[depth] == -7.5).all()
    assert (stack[:, 3] == -7.5).all(), "the stack is longer than there are jobs"
    return stack[0, :3]


@pytest.mark.parametrize("text", PROGRAMS)
def test_the_value(text: str) -> None:
    program, expected = PROGRAMS[text]
    np.testing.assert_array_equal(run(program), expected)


@pytest.mark.parametrize(("name", "least"), [("MIN", True), ("MAX", False)])
def test_of_two_one_of_which_is_no_number(name: str, least: bool) -> None:
    for a in (NAN, 1.0, 2.0, -INF, INF):
        for b in (NAN, 1.0, 2.0, -INF, INF):
            expected = NAN if math.isnan(a) or math.isnan(b) else (min(a, b) if least else max(a, b))
            np.testing.assert_array_equal(run([("CONST", a), ("CONST", b), (name, 0)]), [expected] * 3)


@pytest.mark.parametrize("name", ["MIN", "MAX"])
def test_of_two_equal_ones_the_first(name: str) -> None:
    # The two zeros are equal, and 1/x tells them apart.
    for a, b in ((0.0, -0.0), (-0.0, 0.0)):
        value = run([("CONST", a), ("CONST", b), (name, 0)])
        assert np.signbit(value).tolist() == [math.copysign(1, a) < 0] * 3


def test_a_power_is_multiplied_from_left_to_right() -> None:
    value = 1.1
    expected = ((1.0 * value) * value * value) * value
    np.testing.assert_array_equal(run([("CONST", value), ("POWI", 4)]), [expected] * 3)


def test_every_instruction_has_a_number_of_its_own() -> None:
    names = list(vars(machine))
    instructions = names[names.index("CONST") : names.index("DENSE") + 1]
    numbers = {name: getattr(machine, name) for name in instructions}
    assert len(set(numbers.values())) == len(numbers) == 30 + 1
