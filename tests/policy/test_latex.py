"""LaTeX in the order in which the formula is written."""

from __future__ import annotations

import pytest
from hypothesis import given

from naive.formula import expressions
from policyfactory.policy.expression import VARIABLES, parse, to_latex
from support import examples


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("p*q", r"p \, q"),
        ("870*log10(r)", r"870 \, \log_{10}\left(r\right)"),
        ("2*3*p", r"2 \cdot 3 \, p"),
        ("p*2", r"p \cdot 2"),
        ("6.86e6*p", r"6.86 \cdot 10^{6} \, p"),
        ("1e-20 + w", "10^{-20} + w"),
        ("-(w/p)**3*q", r"-\left(\frac{w}{p}\right)^{3} \, q"),
        ("-(w + p)/p", r"\frac{-\left(w + p\right)}{p}"),
        ("p - (q - r)", r"p - \left(q - r\right)"),
        ("p - (-q)", r"p - \left(-q\right)"),
        ("p + q/r", r"p + \frac{q}{r}"),
        ("p*(q + r)", r"p \, \left(q + r\right)"),
        ("sqrt(p)**2", r"\left(\sqrt{p}\right)^{2}"),
        ("1e6**q", r"\left(10^{6}\right)^{q}"),
        ("p**-0.5", "p^{-0.5}"),
        ("p**q**r", "p^{q^{r}}"),
        ("exp(-w)", r"\exp\left(-w\right)"),
        ("e**2*ln(s)", r"e^{2} \, \ln\left(s\right)"),
        ("e90/user_waiting + user_running", r"\frac{e_{90}}{\mathrm{user\_waiting}} + \mathrm{user\_running}"),
        ("abs(p - q)", r"\left|p - q\right|"),
        ("max(p, ln(q), log2(m))", r"\max\left(p, \ln\left(q\right), \log_{2}\left(m\right)\right)"),
    ],
)
def test_examples(text: str, latex: str) -> None:
    assert to_latex(parse(text)) == latex


def test_a_coefficient_is_upright() -> None:
    assert to_latex(parse("c_1*p", coefficients=True)) == r"\mathrm{c\_1} \, p"


@examples(200)
@given(expressions(variables=list(VARIABLES)))
def test_braces_and_delimiters_are_paired(tree) -> None:
    latex = to_latex(tree)
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")
    assert "--" not in latex.replace("- -", "")
