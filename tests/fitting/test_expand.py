"""Multiplying out: the same values, and the right verdict on what is linear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policyfactory.fitting.sample import _Expansion, are_free, expand, monomial_name, nonlinear_names, parse_form
from policyfactory.policy.expression import (
    Binary,
    Coefficient,
    Expression,
    Negative,
    Variable,
    number,
    parse,
    substitute,
)

LEAVES = st.sampled_from(
    [Coefficient("a"), Coefficient("b"), Coefficient("c"), Variable("p"), Variable("q"), number(2.0)]
)
FORMS = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.builds(Binary, st.sampled_from("+-*/"), part, part),
        st.builds(Negative, part),
        st.builds(Binary, st.just("**"), part, st.just(number(2.0))),
    ),
    max_leaves=8,
)


def test_e_and_s_are_coefficients_of_a_form_and_e90_is_none() -> None:
    form = parse_form("e*p**a + s*q*e90")
    assert form.coefficients == ("e", "a", "s")
    assert form.variables == {"p", "q", "e90"}


def value(expression: Expression, jobs: dict[str, float]) -> float:
    from naive.formula import evaluate

    return evaluate(expression, {**jobs, "r": 1.0, "w": 0.0, "m": 1.0})


@settings(max_examples=300, deadline=None)
@given(FORMS, st.tuples(*[st.floats(0.5, 2.0)] * 5))
def test_the_sum_of_products_has_the_value_of_the_form(form: Expression, numbers: tuple[float, ...]) -> None:
    expanded = expand(form)
    assume(expanded is not None)
    known = dict(zip("abc", numbers[:3], strict=True))
    jobs = {"p": numbers[3], "q": numbers[4]}
    total = sum(
        np.prod([known[name] ** power for name, power in monomial]) * value(part, jobs)
        for monomial, part in expanded.items()  # type: ignore[union-attr]
    )
    expected = value(substitute(form, known), jobs)
    assume(np.isfinite(expected) and np.isfinite(total) and abs(expected) < 1e9)
    assert total == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a*p + b*q", ["a", "b"]),
        ("(c1*log10(p))*(c2*q) + c3*log10(r)", ["c1_c2", "c3"]),
        ("(a*p + b*q)/(c*r)", ["a_per_c", "b_per_c"]),
        ("a*(p + b*q)", ["a", "a_b"]),
        ("-(a*p - b*q)", ["a", "b"]),
        ("p*q + a*log10(r)", ["a"]),
        ("a*p/b", ["a_per_b"]),
        ("1/a*p", ["per_a"]),
    ],
)
def test_effective_coefficients_are_named(text: str, names: list[str]) -> None:
    expanded = expand(parse(text, coefficients=True))
    assert expanded is not None
    monomials = [key for key in expanded if key]
    assert [monomial_name(key) for key in monomials] == names
    assert are_free(monomials)


@pytest.mark.parametrize(
    ("text", "factors"),
    [("a*p*(q + 1)", ["p*(q + 1)"]), ("1/a*p", ["p"]), ("a*(p + b*q)", ["p", "q"]), ("-(a*p - b*q)", ["-p", "q"])],
)
def test_factors_of_one_are_left_out(text: str, factors: list[str]) -> None:
    expanded = expand(parse(text, coefficients=True))
    assert expanded is not None
    assert [factor.text() for key, factor in expanded.items() if key] == factors


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a*p**b*q + c*log10(r)", {"b"}),
        ("a*log10(p + b)*q", {"b"}),
        ("p/(a + b*q)", {"a", "b"}),
        ("exp(a)*p + b*q", {"a"}),
        ("max(a*p, b*q)", {"a", "b"}),
        ("a**p", {"a"}),
        ("a*p + b*q", set()),
    ],
)
def test_what_is_nonlinear_is_distinguished_from_what_is_not(text: str, names: set[str]) -> None:
    form = parse(text, coefficients=True)
    result = nonlinear_names(form)
    assert result == names
    expanded = expand(form, result)
    assert expanded is not None
    assert all(not key or (len(key) == 1 and key[0][1] == 1) for key in expanded)


@pytest.mark.parametrize("text", ["a*p + a*b*q + b*r", "a*p + a**2*q", "a**2*p", "a*b*p + a*b**3*q"])
def test_products_that_depend_on_each_other_are_not_free(text: str) -> None:
    # a**2 cannot be negative, and a, a*b, b are two numbers, not three.
    expanded = expand(parse(text, coefficients=True))
    assert expanded is not None
    assert not are_free([key for key in expanded if key])
    assert nonlinear_names(parse(text, coefficients=True))


def expanded_names(text: str) -> list[str] | None:
    expanded = expand(parse(text, coefficients=True))
    return None if expanded is None else [monomial_name(key) for key in expanded]


def test_whole_powers_up_to_the_eighth_are_multiplied_out() -> None:
    assert expanded_names("(a*p)**1") == ["a"]
    assert expanded_names("(a*p)**8") == ["a_8"]
    for exponent in ("9", "1.5", "0", "-1"):
        assert expanded_names(f"(a*p)**{exponent}") is None
    assert expanded_names("(a*p + b*q)**3") == ["a_3", "a_2_b", "a_b_2", "b_3"]


def test_up_to_sixty_products_are_multiplied_out() -> None:
    def total(letter: str, count: int) -> str:
        return "(" + " + ".join(f"{letter}{k}*p" for k in range(count)) + ")"

    sixty = expanded_names(f"{total('a', 6)}*{total('b', 10)}")
    assert sixty is not None
    assert len(sixty) == 60
    assert expanded_names(f"{total('a', 1)}*{total('b', 61)}") is None
    assert expanded_names(f"{total('a', 8)}*{total('b', 8)}") is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a*p/(b*b)", ["a_per_b_2"]),
        ("a*b*p/(c*d)", ["a_b_per_c_d"]),
        ("p/(a*b)", ["per_a_b"]),
        ("a*p - -(b*q)", ["a", "b"]),
        ("a*p/a + b*q", ["", "b"]),
    ],
)
def test_products_are_named_with_their_exponents(text: str, names: list[str]) -> None:
    assert expanded_names(text) == names


@pytest.mark.parametrize(
    ("products", "free"),
    [
        ([{"a": 1}, {"b": 1}], True),
        ([{"a": 1, "b": 1}, {"b": 1, "c": 1}, {"a": 1, "c": 1}], False),  # the three signs multiply to +
        ([{"a": 1, "b": 1}, {"a": 1, "b": -1}], False),  # so do these two
        ([{"a": 1, "b": 1}, {"b": 1}], True),
        ([{"a": 3}], True),
        ([{"a": 2}], False),
        ([{"a": 1, "b": 2}, {"a": 2, "b": 1}], True),
        ([{"a": 1, "b": 2}, {"a": 2, "b": 4}], False),
        ([{"b": 1}, {"a": 1}, {"c": 5}], True),
        ([], True),
    ],
)
def test_free_products_have_any_sizes_and_signs(products: list[dict[str, int]], free: bool) -> None:
    assert are_free([tuple(sorted(product.items())) for product in products]) is free


@pytest.mark.parametrize("sign", ["+", "-"])
def test_formulas_of_up_to_a_thousand_parts_are_multiplied_out(sign: str) -> None:
    def grouped(term: str, groups: int) -> str:
        return f" {sign} ".join([f"({f' {sign} '.join([term] * 50)})"] * groups)

    assert expanded_names(grouped("a*p", 4)) == ["a"]
    assert expanded_names(grouped("a*p", 6)) is None
    assert expanded_names(f"a*({grouped('p', 8)})") == ["a"]
    assert expanded_names(f"a*({grouped('p', 12)})") is None
    one_too_long = f"({grouped('a*p', 4)} + b*q) {sign} ({grouped('a*p', 2)})"
    assert expanded_names(one_too_long) is None


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("a*p + b*q", [3, 3]),
        ("-(a*p)", [4]),
        ("-(-(a*p))", [5]),  # counted as it was written
        ("a*p - a*q", [3 + 3 + 1]),
        ("b*q - a*p", [3, 3 + 1]),
        ("(a*p + b)*(a*q + b)", [3 + 3 + 1, (3 + 1 + 1) + (1 + 3 + 1) + 1, 1 + 1 + 1]),
        ("(a*p + b)/(a*q)", [3 + 3 + 1, 1 + 3 + 1]),
    ],
)
def test_parts_are_counted(text: str, sizes: list[int]) -> None:
    sized = _Expansion(frozenset()).of(parse(text, coefficients=True))
    assert sized is not None
    assert [size for _, size in sized.values()] == sizes


def test_a_thousand_parts_and_not_one_more() -> None:
    # 250 terms a*p have 999 parts.
    terms = " + ".join([f"({' + '.join(['a*p'] * 50)})"] * 5)
    assert expanded_names(f"-({terms}) + b*q") == ["a", "b"]
    assert expanded_names(f"-(-({terms})) + b*q") is None


@pytest.mark.parametrize(
    ("text", "names"), [("a*b*p + a*c*q", {"a"}), ("p/(a*b*p + a*q)", {"a", "b"}), ("a*p/(a*b*q + a*r)", {"a", "b"})]
)
def test_the_coefficient_in_most_products_is_fixed_and_of_a_divisor_the_first(text: str, names: set[str]) -> None:
    assert nonlinear_names(parse(text, coefficients=True)) == names
