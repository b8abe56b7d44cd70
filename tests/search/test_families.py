"""The families: what they are, from where they are searched, and what a user may write."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.core.errors import FormulaError, UsageError
from policyfactory.policy.store import resolve
from policyfactory.search.distill import SURFACE
from policyfactory.search.families import FAMILIES, REFERENCES, family_of
from policyfactory.search.options import parse_start
from refusals import refused


def test_predictions_are_variables_of_a_family_and_no_coefficients() -> None:
    family = family_of("-ln(s) + a*ln(e) + b*ln(q)", {"a": 1.0, "b": 0.4})
    assert family.form.names == ("a", "b")
    assert family.form.expression.variables == {"s", "e", "q"}
    assert family.form.is_static
    predictions = [[100.0, 20.0], [0.1, 0.5], [400.0, 60.0], [0, 0], [0, 0]]
    policy = family.form.with_values(family.start)
    expected = np.log([10.0, 2.0]) + np.log([100.0, 20.0]) + 0.4 * np.log([4.0, 1.0])
    assert policy.scores([600, 60], [4, 1], [0, 5], predictions=predictions) == pytest.approx(expected)


@pytest.mark.parametrize("name", [*FAMILIES, SURFACE])
def test_no_stock_family_reads_predictions(name: str) -> None:
    assert family_of(name).form.expression.variables <= {"p", "q", "w", "f"}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_stock_family_has_a_start_for_each_coefficient_and_is_a_formula(name: str) -> None:
    family = family_of(name)
    assert family.name == name
    assert len(family.start) == len(family.scale) == len(family.form.names)
    policy = family.form.fixed(dict(zip(family.form.names, family.start, strict=True)), "x")
    assert np.isfinite(policy.scores([100, 1], [4, 1], [0, 5], [60, 0], m=16)).all()


def test_the_products_are_twelve_terms_beside_that_of_the_length() -> None:
    names = family_of("products").form.names
    assert set(names) == {f"k_{one}" for one in ("y", "v", "c", "xx", "yy", "vv", "xy", "xv", "xc", "yv", "yc", "vc")}
    p, q, w, f = 1000.0, 8.0, 90.0, 4.0
    x, y, v, c = 3.0, np.log10(8.0), 1.0, 0.0
    values = dict(zip(names, np.arange(1.0, 13.0), strict=True))
    terms = {"y": y, "v": v, "c": c, "xx": x * x, "yy": y * y, "vv": v * v, "xy": x * y, "xv": x * v, "xc": x * c,
             "yv": y * v, "yc": y * c, "vc": v * c}  # fmt: skip
    expected = x + sum(values[f"k_{name}"] * term for name, term in terms.items())
    got = family_of("products").form.fixed(values, "x").scores([p], [q], [0], [w], m=16, f=f)
    assert got[0] == pytest.approx(expected, rel=1e-12)


def test_what_every_choice_is_judged_beside_is_what_its_name_says() -> None:
    assert REFERENCES["SAF"].formula == resolve("SAF").formula
    assert REFERENCES["P*SQRT(Q)"].scores([10], [16], [0]).tolist() == [40.0]


def test_a_formula_of_the_users_with_starts_of_his_own() -> None:
    family = family_of("mine=log10(p) + a*q - big*w", {"big": 250.0})
    assert (family.name, family.start, family.scale) == ("mine", (0.0, 250.0), (1.0, 250.0))
    assert family_of("p + a*q").name == "form"
    # Of several families each takes the starts that it knows.
    assert family_of("linear", {"b": 0.3, "zz": 1.0}).start == (0.5, 0.3)


@pytest.mark.parametrize(
    ("text", "start", "said"),
    [
        ("liner", {}, "liner family"),
        ("p*q", {}, "0 coefficients"),
        ("p**e", {}, "log10 a*log10 0"),
        ("p**e*q**s", {}, "predictions"),
        ("a b=p + a*q", {}, "NAME=FORMULA used"),
        ("p + a*x(", {}, "family form x"),
        ("p + a*q", {"b": 1.0}, "--start b a"),
    ],
)
def test_what_is_no_family_is_refused(text: str, start: dict[str, float], said: str) -> None:
    refused((FormulaError, UsageError), said, family_of, text, start)


def test_starts_are_read_from_a_list() -> None:
    assert parse_start(" a=0.5, b=-1e3 ,") == {"a": 0.5, "b": -1000.0}
    for bad in ("a", "a=x", "a=nan", "a=inf"):
        refused(UsageError, "NAME=NUMBER 0.5,b --start", parse_start, bad)
