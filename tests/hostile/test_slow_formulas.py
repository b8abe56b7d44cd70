"""Formulas that would take computer algebra for ever are answered at once: shortened, left as they are, or refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from commands import Run
from policyfactory.core.errors import FormulaError
from policyfactory.exports.expressible import linear_coefficients, slope
from policyfactory.exports.perl import urgencies
from policyfactory.fitting.sample import expand, nonlinear_names
from policyfactory.policy.algebra import LARGEST, multiply_out, shorter_formula
from policyfactory.policy.expression import parse
from policyfactory.policy.policy import Policy
from support import NIGHTLY

pytestmark = pytest.mark.slow


def nested(step: str, times: int, start: str = "p") -> str:
    """A formula in which each step holds the one before, as {}."""
    for number in range(times):
        start = step.replace("{}", start).replace("#", str(number + 1))
    return start


SLOW = {
    "a power of a sum": "(p + q + r + w)**100",
    "powers of powers": "((p + q)**100)**100",
    "a product of powers": "*".join(["(p + q + r + w)**100"] * 20),
    "a tower": "p**(9**(9**2))",
    "a tower of numbers": "9**9**9**p",
    "fractions as exponents": "(2*p + 3*q)**99.5*(p - q)**0.3333333333333333",
    "a product of sums": "*".join(f"(p + {n}*q + r)" for n in range(1, 120)),
    "a sum of powers to a power": "((" + "+".join(f"p**{n}*q" for n in range(1, 60)) + ")**99 + q)**99",
    "quotients": "/".join(["p"] + [f"(q + {n}/r)" for n in range(1, 100)]),
    "roots in roots": nested("sqrt({}+q*#)", 38),
    "least of greatest": nested("min({},q+#,max(r,w*#))", 38),
    "sizes of sizes": nested("abs({}-q)", 38),
    "powers in exponents": nested("(p+q**{})", 18),
    "fractions of fractions": nested("1/({}+q)", 38),
    "itself squared": nested("({}+r)*({}+w)", 6, "(p+q)"),
    "itself to itself": nested("({})**({})", 7, "(p+q)"),
    "long numbers": "*".join(["1.2345678901234567"] * 140) + "*p",
    "long roots": "(1e300*p)**0.01 + (3**0.1 + p)**100 + sqrt(123456789012345678901234567890*q)",
}


# By day one of each kind: powers, towers, sums, quotients, functions in functions.
BY_DAY = ("a power of a sum", "a tower", "a sum of powers to a power", "quotients", "least of greatest", "long roots")


@pytest.mark.parametrize("name", SLOW if NIGHTLY else BY_DAY)
def test_a_formula_is_answered_in_seconds(name: str) -> None:
    text = SLOW[name]
    tree = parse(text)
    began = time.process_time()
    shorter = shorter_formula(tree).expression
    assert shorter.size <= tree.size
    assert shorter == shorter_formula(tree).expression
    linear_coefficients(tree)
    urgencies(Policy("x", text))
    expand(tree)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "text", ["(p+q+r)**500", "p**9**9**9**9**9**9**9**9*1e999", "p**1e10", "-" * 5000 + "p", "(" * 41 + "p"]
)
def test_what_is_beyond_the_bounds_is_refused(text: str) -> None:
    with pytest.raises(FormulaError):
        parse(text)


def test_forms_do_not_grow_when_they_are_multiplied_out() -> None:
    began = time.process_time()
    grown = nested("({})**7", 12, "a*(p+1)")
    assert expand(parse(grown, coefficients=True)) is None
    assert nonlinear_names(parse(grown, coefficients=True)) == {"a"}
    many = "+".join(["log10(a*p+b*q)"] * 140)
    assert nonlinear_names(parse(many, coefficients=True)) == {"a", "b"}
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("p + 2*q - 0.5*r", {"p": 1, "q": 2, "r": -0.5, "w": 0}),
        ("2*(p + 1)*(q + 1) - 2*p*q", {"p": 2, "q": 2, "r": 0, "w": 0}),
        ("p*q**2/q/q + sqrt(4)*w", {"p": 1, "q": 0, "r": 0, "w": 2}),
        ("p**2/p + log10(q) - log10(q)", {"p": 1, "q": 0, "r": 0, "w": 0}),
        ("sqrt(p)*sqrt(p) + (q + r)**2 - (q - r)**2 - 4*q*r", {"p": 1, "q": 0, "r": 0, "w": 0}),
        ("p*0 + 3", {"p": 0, "q": 0, "r": 0, "w": 0}),
        ("p*q", None),
        ("sqrt(p)", None),
        ("(p + q)**100", None),
        ("p*1e300*1e300", None),
        ("p/0", None),
    ],
)
def test_what_is_linear(text: str, linear: dict[str, float] | None) -> None:
    assert linear_coefficients(parse(text)) == linear


def test_what_is_too_long_to_multiply_out_stands_as_it_is_written() -> None:
    assert slope(parse("2*(p + q)**100 + w"), "w") == 1
    assert slope(parse("2*(p + q)**100 + w"), "p") is None
    with pytest.raises(FormulaError, match=r"no finite value|too long to be exact"):
        multiply_out(parse("(1e300*1e300)**100*p"))


def test_commands_answer_as_well(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "slow.json"
    model = {"kind": "policyfactory-model", "schema_version": 1, "name": "slow"}
    began = time.process_time()
    for text in (SLOW["a power of a sum"], SLOW["powers of powers"], "+".join(f"p**{n % 90}*q*r" for n in range(140))):
        path.write_text(json.dumps(model | {"formula": text.replace(" + w", "").replace("r", "q")}))
        assert "slow" in run("policy", "show", str(path)).stdout
        for target in ("c", "python"):
            run("export", str(path), "--to", target, "--output", str(tmp_path / target), "--overwrite")
    assert time.process_time() - began < 30


def test_a_formula_that_is_too_long_to_shorten_is_shown_with_a_note(run: Run, tmp_path: Path) -> None:
    long = nested("({}+1)*({}+q)", 8, "p")
    assert parse(long).size > LARGEST
    assert shorter_formula(parse(long)).expression == parse(long)
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"kind": "policyfactory-model", "schema_version": 1, "name": "long", "formula": long}))
    said = " ".join(run("policy", "show", str(path)).stdout.split())
    assert f"not looked for: the formula has {parse(long).size:,} parts, more than {LARGEST:,}" in said
