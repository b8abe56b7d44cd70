"""Units of coefficients follow from the formula."""

from __future__ import annotations

import pytest

from policyfactory.fitting.sample import coefficient_unit
from policyfactory.policy.expression import parse


@pytest.mark.parametrize(
    ("term", "unit"),
    [
        ("1", "1"),
        ("p", "1/s"),
        ("r", "1/s"),
        ("q", "1/processors"),
        ("1/p", "s"),
        ("log10(p)*q", "1/processors"),
        ("sqrt(p)*q", "1/(s^0.5 processors)"),
        ("p**2*q**3", "1/(s^2 processors^3)"),
        ("p/q", "processors/s"),
        ("q/p", "s/processors"),
        ("p/r", "1"),
        ("p + r", "1/s"),
        ("p + q", "?"),
        ("log10(p + q)", "1"),
        ("max(p, r)", "1/s"),
        ("p**-1", "s"),
        ("p**(q/q)", "?"),
        ("abs(-p)", "1/s"),
        ("1/(sqrt(p)*log10(q))", "s^0.5"),
        ("sqrt(p*q)", "1/(s^0.5 processors^0.5)"),
        ("sqrt(q**4)", "1/processors^2"),
        ("max(p, q)", "?"),
        ("min(p, r, q)", "?"),
        ("max(q, q, q)", "1/processors"),
        ("p**0.001", "1/s^0.001"),
        ("e*e90/s", "1/s^2"),
        ("ln(e) - ln(s)", "1"),
        ("q*user_waiting*user_running", "1/processors"),
        # A score table knows neither the waiting time nor the machine, and what they stand with has no unit then.
        ("p*w", "?"),
        ("w + p", "?"),
        ("w**2", "?"),
        ("sqrt(m)", "?"),
    ],
)
def test_unit_of_what_multiplies_a_term(term: str, unit: str) -> None:
    assert coefficient_unit(parse(term)) == unit
