"""Forms: values go into a compiled program, and mean what the same numbers in a formula do."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.policy.compile import compile_expression, compile_form
from policyfactory.policy.expression import parse
from policyfactory.policy.form import MOST_COEFFICIENTS, Form
from policyfactory.policy.policy import Policy
from refusals import refused

TEXT = "log10(p) + a*log10(q) - b*(log10(w + 10) - 1) + a*b**2"


def test_values_in_the_program_are_numbers_in_the_formula_to_the_bit() -> None:
    form = Form.of("two", TEXT)
    assert form.names == ("a", "b")
    random = np.random.default_rng(1)
    p, q, r, w = (random.integers(1, 10**5, 200).astype(float) for _ in range(4))
    for a, b in [(0.5, 0.25), (-0.3, 1e-3), (1.7, -2.0), (0.0, 0.0)]:
        plain = Policy("plain", TEXT.replace("a*", f"({a})*").replace("b*", f"({b})*"))
        tried = form.with_values((a, b))
        written = form.fixed({"a": a, "b": b}, "written")
        expected = plain.scores(p, q, r, w, m=64)
        assert tried.scores(p, q, r, w, m=64).tolist() == expected.tolist()
        assert written.scores(p, q, r, w, m=64).tolist() == expected.tolist()


def test_one_form_with_other_values_is_another_policy_and_leaves_the_first_as_it_was() -> None:
    form = Form.of("one", "p + a*q")
    first, second = form.with_values([1.0]), form.with_values([100.0])
    assert first.scores([5], [2], [0]).tolist() == [7.0]
    assert second.scores([5], [2], [0]).tolist() == [205.0]
    assert first.scores([5], [2], [0]).tolist() == [7.0]
    assert first.is_static
    assert not Form.of("timed", "p + a*w").with_values([1.0]).is_static
    assert not Form.of("free", "p + a*min(q, f)").with_values([1.0]).is_static


def test_a_negative_number_is_written_as_a_difference() -> None:
    form = Form.of("signs", "p + a*q*p - b*w + c*r/m")
    assert form.fixed({"a": -2.0, "b": -3.0, "c": 4.0}, "x").formula == "p - 2*q*p + 3*w + 4*r/m"
    assert form.fixed({"a": -2.0, "b": 3.0, "c": -4.0}, "x").formula == "p - 2*q*p - 3*w - 4*r/m"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p*q", "has 0 1 40"),
        (" + ".join(f"a{n}*p" for n in range(MOST_COEFFICIENTS + 1)), "41 coefficients"),
        ("a*m", "same jobs bad"),
        ("a*(p", "closed"),
    ],
)
def test_what_is_no_form_is_refused(text: str, said: str) -> None:
    refused((FormulaError, UsageError), said, Form.of, "bad", text)


def test_a_formula_without_values_has_no_program_of_its_own() -> None:
    refused(FormulaError, "a fit --form", compile_expression, parse("a*p", coefficients=True))
    program, places = compile_form(parse("a*p + b*q + a", coefficients=True))
    assert {name: len(where) for name, where in places.items()} == {"a": 2, "b": 1}
    assert np.isnan(program.operands[[at for where in places.values() for at in where]]).all()
