"""Shorter formulas rank jobs as the long ones do."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from naive.formula import expressions, random_jobs
from policyfactory.core.errors import FormulaError
from policyfactory.policy.algebra import (
    from_sympy,
    round_coefficients,
    same_order,
    shorter_formula,
    to_sympy,
)
from policyfactory.policy.expression import PREDICTIONS, Binary, Call, Expression, Negative, Number, Variable, parse
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from refusals import refused
from support import examples

# Constants far from the ends of the doubles, so that 400 digits hold every sum.
MODEST = st.one_of(st.integers(0, 10**7).map(float), st.floats(1e-12, 1e12), st.sampled_from([0.5, 1.0, 870.0, 2.56e4]))

# The formulas of the SC'17 programs and of table 3 of the paper.
SC17 = {
    "F1": "(-0.0155183403*log10(p))*(-0.0005149209*q) + 0.0069596182*log10(r)",
    "F2": "(0.0000342717*sqrt(p))*(0.0076562110*q) + 0.0067364626*log10(r)",
    "F3": "(-0.2188093701*p)*(-0.0000000049*q) + 0.0073580361*log10(r)",
    "F4": "(0.0056500287*p)*(0.0000024814*sqrt(q)) + 0.0074444355*log10(r)",
}


def simplify_order(tree: Expression) -> Expression:
    return shorter_formula(tree).expression


def simple(text: str) -> str:
    return simplify_order(parse(text)).text()


@pytest.mark.parametrize("name", SC17)
def test_the_programs_of_sc17_become_the_table_of_the_paper(name: str) -> None:
    before, _, rest = simple(SC17[name]).rpartition(" + ")
    coefficient, after = rest.split("*", 1)
    # The paper has three digits, and cuts the rest off.
    size = 10 ** (math.floor(math.log10(float(coefficient))) - 2)
    shown = f"{before} + {math.floor(float(coefficient) / size) * size}*{after}"
    assert parse(shown) == CATALOGUE[name].expression
    if name == "F1":
        assert parse(shown).text() == "log10(p)*q + 870*log10(r)"


def test_exact_coefficients_are_kept() -> None:
    # 0.0069596182/(0.0155183403*0.0005149209), by hand with fractions, correctly rounded.
    from fractions import Fraction

    expected = float(Fraction("0.0069596182") / (Fraction("0.0155183403") * Fraction("0.0005149209")))
    assert simple(SC17["F1"]) == f"log10(p)*q + {expected!r}*log10(r)"
    assert expected == pytest.approx(870.96, abs=0.01)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3*p + 7", "p"),
        ("-3*p*q - 1", "-p*q"),
        ("p/(0 - 3)", "-p"),
        ("(p + 3)*m", "p"),
        ("p/m - 5*m", "p"),
        ("2*(p + q)*m + 7", "p + q"),
        ("m*p + 3*m*q", "p + 3*q"),
        ("-(p + q)*3", "-p - q"),
        ("4 - 2*p + 6*q", "-p + 3*q"),
        ("0.5*sqrt(p)*sqrt(p)", "p"),
        ("p*q + q*p", "p*q"),
        ("2**0.5*p", "p"),
        ("exp(2)*p + ln(2)", "p"),
        ("min(p, 3*2) + abs(2 - 3)*q", "min(p, 6) + q"),
        ("1e-300*p", "p"),
        ("log10(p) + 3", "log10(p)"),
        ("p - p + q", "q"),
        ("log10(100)*q", "q"),
        ("r*60/3600", "r"),
        ("2*ln(e) - 2*ln(s) + 0.8*ln(q) + 7", "ln(e) - ln(s) + 0.4*ln(q)"),
        ("-ln(s) + ln(e) + 0.4*ln(q)", "-ln(s) + ln(e) + 0.4*ln(q)"),
        ("3*e", "e"),
        ("p + e + 5", "p + e"),
        ("2*e*p - 4*s", "p*e - 2*s"),
        ("m*e90 + m*user_waiting*2", "e90 + 2*user_waiting"),
        ("user_running/(0 - 3)", "-user_running"),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert simple(text) == expected


@pytest.mark.parametrize("policy", CATALOGUE.values(), ids=lambda policy: policy.name)
def test_the_catalogue_keeps_its_order(policy: Policy) -> None:
    shorter = simplify_order(policy.expression)
    if not policy.name.startswith(("LIN", "QDR", "CUB", "QUA")):
        assert shorter == policy.expression
    jobs = random_jobs(400, seed=9)
    p, q, r, w = (np.array([job[name] for job in jobs]) for name in "pqrw")
    before = policy.scores(p, q, r, w)
    after = Policy("short", shorter.text()).scores(p, q, r, w)
    order = np.argsort(before, kind="stable")
    scale = np.abs(after[np.isfinite(after)]).max()
    # Where doubles of the long formula tie or differ in the last bits only, the short one may tell the jobs apart.
    with np.errstate(invalid="ignore"):
        steps = np.diff(after[order])  # NaN between two infinities
    assert (steps[~np.isnan(steps)] >= -1e-13 * scale).all()
    assert shorter.size <= policy.expression.size


@pytest.mark.parametrize(
    "text",
    [
        "p/(1 - 1)", "log10(0)*p", "exp(1000)*p", "10**100**100*p", "((((1e300*p)**100)**100)**100)", "0*p", "p - p",
        "3", "p*2**q", "min(p, 1e300**16)", "max(p, 1e300*1e300*1e300*1e300*1e300*1e300*1e300)", "sqrt(0 - 1)*p",
        "1/(p - p)", "2**p**q", "(1e-300*p)**-100", "-(w/p)**3*q", "(p**16)**16", "p**100*p**100 + q",
    ],
)  # fmt: skip
def test_what_cannot_be_shortened_safely_is_left_or_has_no_order(text: str) -> None:
    tree = parse(text)
    shorter = simplify_order(tree)
    assert shorter == tree or not shorter.variables


def test_sums_of_many_terms_take_no_time() -> None:
    tree = parse(" + ".join(f"{i}*p*q**{i % 7}" for i in range(1, 101)))
    assert len(simplify_order(tree).text().split("+")) == 7
    product = parse("*".join(["(p + q + r)"] * 60))
    assert simplify_order(product).size <= product.size


@pytest.mark.slow
def test_deep_formulas_come_back() -> None:
    for inside in (
        "log10({} + 2)",
        "sqrt({}*q)",
        "abs(-{})",
        "max({}, q)",
        "({} + 1)*q",
        "-({})/q",
        "({})**0.5",
        "({} + 1)**3",
    ):
        text = "p"
        for _ in range(15):
            text = inside.format(text)
        for _ in range(40):
            longer = inside.format(text)
            try:
                parse(longer)
            except FormulaError:
                break
            text = longer
        assert simplify_order(parse(text)).size <= parse(text).size


def test_a_negative_factor_is_not_dropped() -> None:
    jobs = [[1.0, 2.0], [1.0, 1.0], [0.0, 0.0]]
    for text in ("-2*p", "p*(0 - 2)", "p/(1 - 3)", "-(p + q)/5", "3 - p", "(p + q)*(2 - 4)"):
        scores = Policy("x", simple(text)).scores(*jobs)
        assert scores[0] > scores[1], text


def exact(node: Expression, job: dict[str, mpmath.mpf]) -> mpmath.mpf:
    """Return the value to the digits of the context; raise ValueError where there is none."""
    match node:
        case Number(value):
            return mpmath.mpf(repr(value))
        case Variable(name):
            return job[name]
        case Negative(part):
            return -exact(part, job)
        case Binary(operator, left, right):
            a, b = exact(left, job), exact(right, job)
            if operator == "**":
                if (a < 0 and b != int(b)) or (a == 0 and b <= 0):
                    raise ValueError
                return a**b
            if operator == "/" and b == 0:
                raise ValueError
            return {"+": a + b, "-": a - b, "*": a * b}[operator] if operator != "/" else a / b
        case Call(function, arguments):
            values = [exact(part, job) for part in arguments]
            if function in {"log10", "log2", "ln", "sqrt"} and (
                values[0] < 0 or (values[0] == 0 and function != "sqrt")
            ):
                raise ValueError
            table = {"log10": mpmath.log10, "log2": lambda x: mpmath.log(x, 2), "ln": mpmath.log, "sqrt": mpmath.sqrt}
            return {**table, "abs": abs, "min": min, "max": max}[function](*values)
    raise TypeError(node)


@examples(120)
@given(expressions(depth=4, functions=("log10", "log2", "ln", "sqrt", "abs"), constants=MODEST))
def test_ranking_is_kept(tree: Expression) -> None:
    """In 400 digits, so that only the coefficients' rounding to doubles is left: pairs closer than 1e-9 are ties."""
    assume(tree.variables)
    shorter = simplify_order(tree)
    event("shorter" if shorter != tree else "unchanged")
    with mpmath.workdps(400):
        pairs = []
        for job in random_jobs(8, seed=4):
            values = {name: mpmath.mpf(value) for name, value in job.items()}
            try:
                pair = exact(tree, values), exact(shorter, values)
            except ValueError:
                continue
            if all(1e-150 < size < 1e150 for size in _sizes(tree, values)):
                pairs.append(pair)
        for (a, x), (b, y) in itertools.combinations(pairs, 2):
            if abs(a - b) > 1e-9 * max(abs(a), abs(b)) and abs(x - y) > 1e-9 * max(abs(x), abs(y)):
                assert (a < b) == (x < y), (tree.text(), shorter.text())
            if a == b:
                assert abs(x - y) <= 1e-9 * max(abs(x), abs(y)), (tree.text(), shorter.text())


def test_the_property_sees_a_wrong_simplification() -> None:
    """Dropping a negative factor would be caught by the comparison above."""
    tree, wrong = parse("-3*p"), parse("p")
    jobs = [{"p": mpmath.mpf(1)}, {"p": mpmath.mpf(2)}]
    assert (exact(tree, jobs[0]) < exact(tree, jobs[1])) != (exact(wrong, jobs[0]) < exact(wrong, jobs[1]))


@examples(120)
@given(expressions(depth=4, functions=("log10", "sqrt", "abs")))
def test_sympy_and_back_is_the_same_function(tree: Expression) -> None:
    try:
        back = from_sympy(to_sympy(tree))
    except FormulaError:
        return
    with mpmath.workdps(60):
        for job in random_jobs(4, seed=6):
            values = {name: mpmath.mpf(value) for name, value in job.items()}
            try:
                a, b = exact(tree, values), exact(back, values)
            except ValueError:
                continue
            assert abs(a - b) <= 1e-9 * max(abs(a), abs(b)) or abs(a - b) < 1e-9 * max(_sizes(tree, values))


def _sizes(node: Expression, job: dict[str, mpmath.mpf]) -> list[mpmath.mpf]:
    """Return the sizes of all intermediate values but 0."""
    sizes = [abs(exact(part, job)) for part in node.walk()]
    return [size for size in sizes if size != 0]


def test_rounding() -> None:
    tree = parse("p**0.123456*870.9628 + 2.5673e4*min(q, 0.00129)")
    assert round_coefficients(tree, 3).text() == "p**0.123456*871 + 25700*min(q, 0.00129)"
    with pytest.raises(ValueError, match="prec"):
        round_coefficients(tree, 0)


def test_coefficients_need_values() -> None:
    refused(FormulaError, "c fit", simplify_order, parse("c*p", coefficients=True))
    assert sorted(map(str, to_sympy(parse("c*p", coefficients=True)).free_symbols)) == ["c", "p"]


def test_sympy_is_refused_what_is_not_in_the_grammar() -> None:
    import sympy

    for value in (sympy.Function("sin")(sympy.Symbol("p")), sympy.I, sympy.oo, sympy.Symbol("p") ** sympy.I):
        with pytest.raises(FormulaError):
            from_sympy(value)


# Work. ---------------------------------------------------------------------------------------------------------------


def calls(work: Callable[[], object]) -> int:
    """Return how many functions are called: the same on every machine, unlike seconds."""
    number = 0

    def count(*_: object) -> None:
        nonlocal number
        number += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


# A formula has at most 4,000 characters, 150 steps in a row and 40 levels.
NESTED = [
    "(({})**1.1*1.1 + q)",
    pytest.param("sqrt({}*1.1e-200 + q*r)", marks=pytest.mark.slow),  # of seconds
    "({}*1.7 + q)",
    "-({})/(q + 3.7)",
    "(({} + w)/m)**100",
    "(({}/1.2345678901)**0.333)",
    "({})*({})",
]


@pytest.mark.parametrize("inside", NESTED)
def test_the_work_for_nested_formulas_is_bounded(inside: str) -> None:
    text = "p"
    while True:
        try:
            parse(longer := inside.replace("{}", text))
        except FormulaError:
            break
        text = longer
    tree = parse(text)
    assert calls(lambda: simplify_order(tree)) < 10_000_000


@pytest.mark.parametrize(
    "text",
    [
        # Sympy looked for the prime factors of these: 45 s.
        "((p/(log2(123456.789)/2**17))**0.333)**100",
        "(p*123456789.0123456789)**0.333*q",
        "sqrt(p*1e-290*q + 1.2345678901234567e-300)",
        "(-1.23456789e18*p)**0.7",
        "(p/1.2345678901e-280)**0.123456789",
        "((3.3*p)**0.1)**0.01*((7.7*q)**0.3)**0.03",
        "123456.789**0.333*p",
    ],
)
def test_the_factors_of_numbers_are_not_looked_for(text: str) -> None:
    tree = parse(text)
    assert calls(lambda: simplify_order(tree)) < 300_000


@examples(60)
@given(expressions(depth=7, functions=("log10", "log2", "ln", "sqrt", "abs", "exp")))
def test_the_work_is_bounded_by_the_size(tree: Expression) -> None:
    if tree.size <= 1000:
        assert calls(lambda: simplify_order(tree)) < 100_000 + 20_000 * tree.size


def test_a_root_of_a_number_is_taken_out_of_a_root() -> None:
    assert simple("sqrt(4*p)*q") == "sqrt(p)*q"
    assert simple("(8*p)**(1/3) + q") == "p**0.3333333333333333 + 0.5*q"
    assert simple("(-4*p)**0.5") == "sqrt(-p)"


# Doubles. ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("((m + r)/m)**100", "(r + m)**100"),
        ("1e300*p*1e300*1e300", "p"),
        ("1e-300*p*1e-300*1e300*1e300", "p"),
        ("(p*1e-30)**20*1e300", "p**20"),
        ("(p/r)*(r/q)", "p/q"),
        ("exp(p)/exp(p)*q", "q"),
        ("1e300*(1e300*p) - 1e300*(1e300*p) + q", "q"),
        ("p + 1e300*1e300*0 + 1e300*1e300*r*0", "p"),
        ("1e20 + p - 1e20", "p"),
    ],
)
def test_a_formula_is_kept_where_doubles_of_the_shorter_one_have_another_order(text: str, shorter: str) -> None:
    assert simple(text) == parse(text).text()
    assert shorter_formula(parse(text)).why_not
    assert not same_order(parse(text), parse(shorter))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p", "q"), ("p", "-p"), ("p", "p + 1e-5*q"), ("p*q", "p*q*(w + 1)"), ("p", "min(p, 1e6)"), ("r", "max(r, 1)"),
        ("log10(r)", "log10(r + 1)*q"), ("p/m", "p - 1e-3*m*q"), ("p", "1/(1/p - 1)"), ("q", "q*(r/r)"),
        ("p**100", "p"), ("p**-100", "1/p"), ("abs(p - q)", "p - q"), ("p*0", "p"), ("0 - p", "p"), ("f*p", "p"),
        ("e", "e90"), ("s", "-s"), ("p + e", "p"), ("e*p", "p"), ("q", "q*(1 + user_waiting)"), ("user_running", "s"),
        ("p*q*r*w*e*s*e90*(user_waiting + user_running + 1)", "p*q*r*w*e*s*e90*(user_waiting + user_running)"),
    ],
)  # fmt: skip
def test_other_orders_are_told_apart(one: str, other: str) -> None:
    assert not same_order(parse(one), parse(other))
    assert not same_order(parse(other), parse(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p", "3*p + 7"), ("log10(p)*q + 0.02", "log10(p)*q"), ("p/m", "p"), ("p*1e-300", "p"), ("p", "p**2"),
        ("log10(r)*2", "ln(r)"), ("0.1*p - 0.3*q + 5", "p - 3*q"), ("sqrt(p)", "log2(p)"), ("m*p - m", "p"),
        ("f + p", "p"), ("p/r", "1/(r/p)"), ("-1/p", "p"), ("-ln(s)", "1/s"), ("ln(e)*2 + 1", "e"),
        ("ln(p*q*e*e90) + 3*ln(s)", "p*q*e*e90*s**3"), ("user_waiting + 2*e", "e*4 + user_waiting*2"),
    ],
)  # fmt: skip
def test_equal_orders_are_recognised(one: str, other: str) -> None:
    assert same_order(parse(one), parse(other))
    assert same_order(parse(other), parse(one))


@examples(100)
@given(
    st.sampled_from(["pqrwmf", [*"pqmf", *PREDICTIONS]]).flatmap(
        lambda names: expressions(depth=5, functions=("log10", "log2", "ln", "sqrt", "abs", "exp"), variables=names)
    ),
    st.integers(0, 1000),
)
def test_ranking_is_kept_in_doubles(tree: Expression, seed: int) -> None:
    """On other jobs than those that the simplification looks at; infinite scores of both stay together."""
    assume(tree.variables - {"m", "f"} and not tree.coefficients)
    shorter = simplify_order(tree)
    assume(shorter.variables - {"m", "f"})
    jobs = random_jobs(40, seed=seed)
    p, q, r, w, *predictions = (np.array([job[name] for job in jobs]) for name in (*"pqrw", *PREDICTIONS))
    given = (p, q, r, w, 256.0, jobs[0]["f"], predictions)
    one, other = (Policy("x", one.text()).scores(*given) for one in (tree, shorter))
    at = np.lexsort((other, one))
    one, other = one[at], other[at]
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.diff(one) > 1e-6 * np.maximum(np.abs(one[1:]), np.abs(one[:-1]))
        back = np.diff(other) < -1e-6 * np.maximum(np.abs(other[1:]), np.abs(other[:-1]))
    assert not (apart & back).any(), (tree.text(), shorter.text())
