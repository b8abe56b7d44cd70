"""The plain twin of the array machine: one job, the tree itself, Python's own floats."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from hypothesis import strategies as st

from policyfactory.policy.expression import MAX_REPEATED, Binary, Call, Expression, Negative, Number, Variable, number


def evaluate(node: Expression, job: dict[str, float]) -> float:
    """Return the value of a formula at a job {p, q, r, w, m, f}, with the rules of C for infinity and NaN."""
    match node:
        case Number(value):
            return value
        case Variable(name):
            return float(job[name])
        case Negative(part):
            return -evaluate(part, job)
        case Binary("**", base, Number(times)) if times == int(times) and times <= MAX_REPEATED:
            value, factor = 1.0, evaluate(base, job)
            for _ in range(int(times)):
                value *= factor
            return value
        case Binary(operator, left, right):
            return _binary(operator, evaluate(left, job), evaluate(right, job))
        case Call(function, arguments):
            values = [evaluate(part, job) for part in arguments]
            return _extreme(function, values) if len(values) > 1 else _unary(function, values[0])
    raise TypeError(node)


def _binary(operator: str, a: float, b: float) -> float:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if operator == "/":
        if b != 0 or math.isnan(b):
            return a / b
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    odd = b == int(b) and int(b) % 2 == 1 if math.isfinite(b) else False
    if a == 0 and b < 0:
        return math.copysign(math.inf, a) if odd else math.inf
    try:
        return math.pow(a, b)
    except ValueError:
        return math.nan
    except OverflowError:
        return -math.inf if a < 0 and odd else math.inf


def _unary(function: str, x: float) -> float:
    if math.isnan(x):
        return x
    if function in {"log10", "log2", "ln"}:
        if x <= 0:
            return -math.inf if x == 0 else math.nan
        return {"log10": math.log10, "log2": math.log2, "ln": math.log}[function](x)
    if function == "sqrt":
        return math.sqrt(x) if x >= 0 else math.nan
    if function == "abs":
        return abs(x)
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _extreme(function: str, values: list[float]) -> float:
    if any(math.isnan(value) for value in values):
        return math.nan
    return min(values) if function == "min" else max(values)


CONSTANTS = st.one_of(
    st.integers(0, 10**7).map(float),
    st.floats(1e-12, 1e12, allow_subnormal=False),
    st.sampled_from([0.0, 0.5, 1.0, 1e-20, 870.0, 2.56e4, 6.86e6, 1e300, 1e-300, 123456789.0, 1e21]),
)


@st.composite
def expressions(
    draw: st.DrawFn,
    *,
    depth: int = 5,
    functions: tuple[str, ...] = ("log10", "log2", "ln", "sqrt", "exp", "abs"),
    constants: st.SearchStrategy[float] = CONSTANTS,
    variables: Sequence[str] = "pqrwmf",
) -> Expression:
    """Draw a formula of the grammar."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        if draw(st.booleans()):
            return Variable(draw(st.sampled_from(variables)))
        return number(draw(constants))

    def part() -> Expression:
        return draw(expressions(depth=depth - 1, functions=functions, constants=constants, variables=variables))

    kind = draw(st.sampled_from(["+", "-", "*", "/", "**", "sign", "call", "extreme"]))
    if kind == "sign":
        return Negative(part())
    if kind == "call":
        return Call(draw(st.sampled_from(functions)), (part(),))
    if kind == "extreme":
        count = draw(st.integers(2, 4))
        return Call(draw(st.sampled_from(["min", "max"])), tuple(part() for _ in range(count)))
    if kind == "**":
        exponent = draw(st.sampled_from([0.0, 1.0, 2.0, 3.0, 16.0, 17.0, 0.5, 0.37, -1.0, -2.0, -0.5]))
        return Binary("**", part(), number(exponent))
    return Binary(kind, part(), part())


def random_jobs(count: int, seed: int) -> list[dict[str, float]]:
    """Return jobs as a cluster has them: whole seconds and processors, some at the edges."""
    source = random.Random(seed)
    return [
        {
            "p": float(source.choice([1, 60, 3600, int(10 ** source.uniform(0, 6))])),
            "q": float(source.choice([1, 2, 64, int(10 ** source.uniform(0, 4))])),
            "r": float(source.choice([0, int(10 ** source.uniform(0, 7)), int(10 ** source.uniform(0, 7))])),
            "w": float(source.choice([0, int(10 ** source.uniform(0, 6)), int(10 ** source.uniform(0, 6))])),
            "m": 256.0,
            "f": float(seed % 257),
            "e": float(10 ** source.uniform(0, 6)),
            "s": float(10 ** source.uniform(-5, 0)),
            "e90": float(10 ** source.uniform(0, 6)),
            "user_waiting": float(source.choice([0, 1, 30])),
            "user_running": float(source.choice([0, 1, 30])),
            "n": float(source.choice([1, 2, 500])),
            "mem": float(source.choice([0, 1, int(10 ** source.uniform(0, 6))])),
            "g": float(source.choice([0, 1, 8])),
        }
        for _ in range(count)
    ]


def same_bits(a: float, b: float) -> bool:
    """Return whether two doubles are the same number; NaN is equal to NaN, 0 to -0."""
    return a == b or (math.isnan(a) and math.isnan(b))
