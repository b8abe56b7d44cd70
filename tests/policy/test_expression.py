"""The grammar: what it reads, how it prints, and that it refuses everything else with the place of the fault."""

from __future__ import annotations

import ast
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.formula import evaluate, expressions, same_bits
from policyfactory.core.errors import FormulaError
from policyfactory.policy.expression import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_NESTING,
    VARIABLES,
    Binary,
    Coefficient,
    Expression,
    Negative,
    Number,
    Variable,
    number,
    parse,
    substitute,
)
from policyfactory.policy.store import CATALOGUE
from refusals import refusal, refused
from support import cases, examples

P, Q, R = Variable("p"), Variable("q"), Variable("r")
JOB = {"p": 3600.0, "q": 64.0, "r": 86400.0, "w": 120.0, "m": 256.0, "f": 96.0}


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("p", P),
        ("-p**2", Negative(Binary("**", P, Number(2)))),
        ("-p*q", Binary("*", Negative(P), Q)),
        ("2**-p", Binary("**", Number(2), Negative(P))),
        ("p**q**r", Binary("**", P, Binary("**", Q, R))),
        ("p - q - r", Binary("-", Binary("-", P, Q), R)),
        ("p/q*r", Binary("*", Binary("/", P, Q), R)),
        ("p - -q", Binary("-", P, Negative(Q))),
        ("+p", P),
        (" ( (p) )\t", P),
        (".5", Number(0.5)),
        ("5.", Number(5)),
        ("1E+3", Number(1000)),
        ("1.15e-07*p", Binary("*", Number(1.15e-7), P)),
    ],
)
def test_precedence_is_that_of_python(text: str, tree: object) -> None:
    assert parse(text) == tree


# Our rule for whole exponents is repeated multiplication; Python's ** may differ in the last bit: none is here.
@examples(300)
@given(expressions(depth=4))
def test_text_means_what_it_means_in_python(tree) -> None:
    text = tree.text()
    if "**" in text:
        return
    names = {**JOB, "sqrt": math.sqrt, "exp": math.exp, "abs": abs, "min": min, "max": max}
    names |= {"log10": math.log10, "log2": math.log2, "ln": math.log}
    module = ast.parse(text, mode="eval")
    for node in ast.walk(module):
        if isinstance(node, ast.Constant):
            node.value = float(node.value)  # whole numbers of Python have no limit; ours are doubles
    try:
        expected = eval(compile(module, "formula", "eval"), {"__builtins__": {}}, names)
    except (ValueError, ZeroDivisionError, OverflowError):
        return
    if not math.isnan(expected) and "nan" not in str(evaluate(tree, JOB)):
        assert same_bits(evaluate(tree, JOB), expected)


@examples(250)
@given(expressions(depth=5, variables=list(VARIABLES)))
def test_text_parses_back_to_the_same_tree(tree) -> None:
    assert parse(tree.text()) == tree
    assert parse(tree.text()).text() == tree.text()


@pytest.mark.parametrize("policy", CATALOGUE.values(), ids=lambda policy: policy.name)
def test_catalogue_formulas_print_and_parse(policy) -> None:
    assert parse(policy.expression.text()) == policy.expression


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(870.0, "870"), (25600.0, "25600"), (6.86e6, "6.86e6"), (1e6, "1e6"), (1234567.0, "1234567"), (1e21, "1e21")],
        *[(0.1, "0.1"), (1e-20, "1e-20"), (1.15e-7, "1.15e-7"), (2.0**60, "1.152921504606847e18"), (-3.5, "-3.5")],
    ],
)
def test_numbers_print_short(value: float, text: str) -> None:
    shown = number(value).text()
    assert float(shown) == value
    assert shown == text


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "ends"),
        ("p+", 2, "ends"),
        ("p*(q+r", 2, "closed"),
        ("p)", 1, "closes nothing"),
        ("p q", 2, "operator missing q"),
        ("2p", 1, "operator missing q"),
        ("p(q)", 0, "p*(...)"),
        ("(p)(q)", 3, "operator missing q"),
        ("p^2", 1, "CIRCUMFLEX ** ^"),
        ("p × q", 2, "MULTIPLICATION * ×"),
        ("p − q", 2, "MINUS - −"),
        ("p // q", 2, "//"),
        ("log(p)", 0, "ambiguous"),
        ("p + log", 4, "ambiguous"),
        ("P*q", 0, "lower case 1"),
        ("LOG10(p)", 0, "grammar"),
        ("x + p", 0, "variable"),
        ("foo(p)", 0, "grammar"),
        ("log10", 0, "log10"),
        ("log10(p, q)", 0, "one argument 2"),
        ("min(p)", 0, "2 8"),
        ("max(p,q,p,q,p,q,p,q,p)", 0, "2 8"),
        ("log10()", 6, "expected"),
        ("p, q", 1, "comma"),
        ("3,5*p", 1, "comma"),
        ("p**101", 3, "beyond 100"),
        ("p**-1e9", 3, "beyond 100"),
        ("1e301*p", 0, "outside 1e-300 1e300"),
        ("p*1e-400", 2, "outside 1e-300 1e300"),
        ("p*" + "9" * 41, 2, "41 characters"),
        ("p*\u0663", 2, "DIGIT THREE ٣"),
        ("\uff50", 0, "FULLWIDTH LATIN SMALL LETTER ｐ"),
        ("p\u200b", 1, "ZERO WIDTH SPACE 200B"),
        ("p\n+q", 1, "one line 000A"),
        ("p\x00", 1, "U+0000"),
        ("__import__('os').system('true')", 11, "APOSTROPHE"),
        ("__import__(p)", 0, "grammar"),
        ("p.__class__", 1, "grammar"),
        ("p if q else r", 2, "operator missing q"),
        ("lambda: p", 6, "grammar"),
        ("[p for p in q]", 0, "SQUARE ("),
        ("'p'", 0, "APOSTROPHE"),
        ("1_000*p", 1, "operator missing q"),
        ("0x10*p", 1, "operator missing q"),
        ("1j*p", 1, "operator missing q"),
        ("p=q", 1, "EQUALS SIGN ="),
        ("nan*p", 0, "variable"),
        ("inf", 0, "variable"),
    ],
)
def test_what_is_outside_the_grammar_is_refused_at_its_place(text: str, position: int, says: str) -> None:
    with refusal(FormulaError, says) as caught:
        parse(text)
    assert caught.value.position == position
    assert caught.value.text == text


def test_not_a_text_is_refused() -> None:
    refused(FormulaError, "got int p*q", parse, 3)  # type: ignore[arg-type]


def test_bounds() -> None:
    parse("(" * (MAX_NESTING) + "p" + ")" * MAX_NESTING)
    refused(FormulaError, "levels inside 40", parse, "(" * (MAX_NESTING + 1) + "p" + ")" * (MAX_NESTING + 1))
    refused(FormulaError, "levels inside 40", parse, "-" * (MAX_NESTING + 1) + "p")
    refused(FormulaError, "levels inside 40", parse, "**".join(["p"] * (MAX_NESTING + 2)))
    parse("+".join(["p"] * MAX_DEPTH))
    with refusal(FormulaError, "long deep 150") as caught:
        parse("+".join(["p"] * (MAX_DEPTH + 1)))
    assert caught.value.position == 2 * MAX_DEPTH - 1
    refused(FormulaError, "4,000 most", parse, "p" + " " * MAX_LENGTH)


def test_named_coefficients() -> None:
    tree = parse("a*p**b*q + c1*log10(r) + a", coefficients=True)
    assert tree.coefficients == ("a", "b", "c1")
    assert tree.variables == {"p", "q", "r"}
    assert substitute(tree, {"a": -2.0, "b": 0.5, "c1": 3}).text() == "-2*p**0.5*q + 3*log10(r) + (-2)"
    assert substitute(tree, {"a": 1}).coefficients == ("b", "c1")
    # Another part of the formula may have a coefficient that no constant can be.
    assert substitute(Coefficient("a"), {"a": 1, "b": math.inf}) == Number(1)
    assert parse("a_1", coefficients=True) == Coefficient("a_1")
    refused(FormulaError, "variable a a*p p q r", parse, "a*p")
    refused(FormulaError, "user_runing user_running", parse, "p + user_runing")
    for text, says in [
        ("A*p", "lower case 1"),
        ("log*p", "ambiguous"),
        ("c(p)", "grammar"),
        ("_a*p", "variable"),
    ]:
        refused(FormulaError, says, parse, text, coefficients=True)
    refused(FormulaError, "32 most", parse, "c" * 33 + "*p", coefficients=True)


def test_predictions_are_variables_or_where_they_are_free_names_of_coefficients() -> None:
    text = "-ln(s) + ln(e) + 0.4*ln(e90 + user_waiting*user_running)"
    assert parse(text).variables == {"s", "e", "e90", "user_waiting", "user_running"}
    assert parse(text).text() == text
    assert parse("1e3*e + 2*e90") == parse("1000*e + 2*e90")
    free = parse("a*p**e + s*e90", coefficients=True, free=("e", "s"))
    assert free.coefficients == ("a", "e", "s")
    assert free.variables == {"p", "e90"}
    # Only as coefficients: a formula without any has no such names.
    refused(FormulaError, "e e90", parse, "p*e", free=("e", "s"))
    for formula, says in [
        ("E*p", "lower case 1"),
        ("2e*p", "operator e"),
        ("e(p)", "e*(...)"),
        ("s90*p", "variable"),
        ("E90", "e90 lower 1"),
        ("user_waits", "user_waiting user_running user_waits"),
    ]:
        refused(FormulaError, says, parse, formula)


def test_a_number_is_finite_and_not_negative() -> None:
    for value in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite and not negative"):
            Number(value)
    assert str(Number(-0.0)) == "0"


def _strings(count: int, seed: int) -> list[str]:
    """Return texts that a stranger could send: noise, broken formulas, deep nesting, tricks with Unicode."""
    source = random.Random(seed)
    formulas = [policy.formula for policy in CATALOGUE.values()]
    tokens = [*"pqrwm0123456789.+-*/(),", "**", " ", "log10(", "min(", "max(", "sqrt(", "exp(", "e", "1e", "log(", "//"]
    tricks = [
        "\u00b2",
        "\uff50",
        "\u0661",
        "\u2212",
        "\u200b",
        "\u202e",
        "\ud800",
        "\x00",
        "\n",
        "\\",
        "'",
        '"',
        "__",
        "{",
        ";",
    ]

    def noise() -> str:
        return bytes(source.randrange(256) for _ in range(source.randrange(80))).decode("latin-1")

    def soup() -> str:
        return "".join(source.choice(tokens) for _ in range(source.randrange(60)))

    def mutation() -> str:
        text = list(source.choice(formulas))
        for _ in range(source.randrange(1, 6)):
            place = source.randrange(len(text) + 1)
            action = source.randrange(3)
            if action == 0:
                text.insert(place, source.choice(tokens + tricks))
            elif action == 1 and place < len(text):
                del text[place]
            elif place < len(text):
                text[place] = source.choice(tokens + tricks)
        return "".join(text)

    def deep() -> str:
        size = source.choice([10, 39, 41, 200, 1500, 100_000])
        return source.choice(["(", "-", "p+", "p**", "2**", "min(p,", "log10(", "((", "-(", "9"]) * size + "p"

    makers = [noise, soup, mutation, mutation, deep]
    return [makers[number % len(makers)]() for number in range(count)]


def _read(text: str, *, coefficients: bool = False) -> tuple[Expression, FormulaError | None]:
    """Return the tree, or any tree and the refusal; everything else goes through."""
    try:
        return parse(text, coefficients=coefficients), None
    except FormulaError as error:
        return P, error


def test_strange_strings_are_formulas_or_refused_with_a_place() -> None:
    accepted, count = 0, len(cases(2500, 10_000))
    for text in _strings(count, seed=20):
        tree, fault = _read(text, coefficients=len(text) % 2 == 0)
        if fault is not None:
            assert fault.position is not None, text[:200]
            assert 0 <= fault.position <= len(text)
            assert str(fault).replace("\n", "").isprintable()
            assert len(str(fault)) < 600
            continue
        accepted += 1
        assert parse(tree.text(), coefficients=True) == tree
    # Enough of them are formulas, so that the test does not only see refusals.
    assert 0.05 < accepted / count < 0.5


@examples(500)
@given(st.text(max_size=60))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    fault = _read(text)[1]
    assert fault is None or fault.position is not None
